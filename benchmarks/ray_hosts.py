"""A fit on a Ray cluster of two hosts, one of which is killed on the way and replaced.

    sudo .venv-extras/bin/python benchmarks/ray_hosts.py

The hosts are network namespaces of this machine (Linux, as root, with iproute2 and util-linux),
joined by a virtual cable. Each has an address, a host name, process ids, /tmp and /dev/shm of its
own; what they share is the disk, as with a shared file system. The addresses are used in these
namespaces only. It prints what each fit took, and fails unless all models are the same file.
"""

import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tacit
from tacit.data.store_writer import write_store
from tacit.datasets.synthetic import synthesise

ADDRESSES = {1: "10.77.0.1", 2: "10.77.0.2"}
PORT = 6379
ROUNDS, KILLED_AFTER = 30, 12
RAY = Path(sys.executable).with_name("ray")
OWN = (
    "mount --make-rprivate /; hostname $0; mount -t tmpfs tmpfs /tmp; "
    'mount -t tmpfs -o size=1g tmpfs /dev/shm; exec "$@"'
)


def call(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)


class Host:
    """A host that runs a node of the cluster until it is killed, whole."""

    def __init__(self, number: int) -> None:
        address = ADDRESSES[number]
        role = ["--head", f"--port={PORT}", "--include-dashboard=false"]
        if number > 1:
            role = [f"--address={ADDRESSES[1]}:{PORT}"]
        node = [RAY, "start", *role, f"--node-ip-address={address}", "--num-cpus=1", "--block"]
        node.append("--object-store-memory=200000000")
        alone = [
            "unshare",
            "-m",
            "-u",
            "-p",
            "-f",
            "--mount-proc",
            "--kill-child",
            "bash",
            "-c",
            OWN,
        ]
        where = ["ip", "netns", "exec", f"tacit{number}", *alone, f"tacit{number}"]
        self.process = subprocess.Popen(
            [str(word) for word in where + node], stdout=subprocess.DEVNULL
        )
        time.sleep(20)  # until the node has joined

    def run(self, *arguments: object) -> "subprocess.Popen[str]":
        """Start this program on the host."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        inside = ["nsenter", "-t", children.split()[0], "-m", "-u", "-p", "-n", "--"]
        words = [*inside, sys.executable, __file__, *map(str, arguments)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def kill(self) -> None:
        """End all of its processes at once, as a loss of power would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def cable() -> Iterator[None]:
    """Two network namespaces and a cable between them."""
    try:
        for number in ADDRESSES:
            call("ip", "netns", "add", f"tacit{number}")
            call("ip", "-n", f"tacit{number}", "link", "set", "lo", "up")
        call("ip", "link", "add", "veth1", "netns", "tacit1", "type", "veth", "peer", "name",
             "veth2", "netns", "tacit2")  # fmt: skip
        for number, address in ADDRESSES.items():
            name = f"tacit{number}"
            call("ip", "-n", name, "addr", "add", f"{address}/24", "dev", f"veth{number}")
            call("ip", "-n", name, "link", "set", f"veth{number}", "up")
        yield
    finally:
        for number in ADDRESSES:
            subprocess.run(["ip", "netns", "del", f"tacit{number}"], check=False)


def fit(store: str, engine: str) -> None:
    """Fit, say how far it is, and say which file came out."""
    start = time.perf_counter()
    rows = tacit.engines.StoreEngine(1)
    if engine == "ray":
        rows = tacit.engines.Ray(address=f"{ADDRESSES[1]}:{PORT}", workers=2)  # type: ignore[assignment]
    model = tacit.fit(
        tacit.Store.open(store),
        tacit.FrankWolfe(rounds=ROUNDS),
        epsilon=1.0,
        engine=rows,
        noise_seed_unsafe=7,
        progress=lambda done, planned: print(f"{done} of {planned}", flush=True),
    )
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.tacit")
        digest = hashlib.sha256((Path(folder) / "model.tacit").read_bytes()).hexdigest()
    print(f"{digest} {time.perf_counter() - start:.0f}", flush=True)


def watched(process: "subprocess.Popen[str]", victim: Host | None = None) -> str:
    """Return the digest of the model of a fit; kill a host on the way and bring up another."""
    line = ""
    for line in process.stdout or ():
        if victim is not None and line.startswith(f"{KILLED_AFTER} of"):
            victim.kill()
            print(f"  host 2 is killed after {KILLED_AFTER} releases, and another one started")
            victim.process = Host(2).process
    digest, seconds = line.split()
    print(f"  {seconds} s, model {digest[:16]}")
    return digest


def main() -> None:
    if len(sys.argv) > 1:
        fit(*sys.argv[1:])
        return
    made = synthesise("tastes", users=40_000, items=300, per_user=60, test_fraction=0.0, seed=3)
    catalogue = tacit.Catalogue(made.items["item"])
    ratings = tacit.Ratings.from_frame(
        made.train, rating_range=made.rating_range, catalogue=catalogue
    )
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder, cable():
        store = write_store(ratings, Path(folder) / "store", 4).folder
        hosts = [Host(1), Host(2)]
        try:
            print("threads on host 1")
            digests = [watched(hosts[0].run(store, "threads"))]
            print("two hosts")
            digests.append(watched(hosts[0].run(store, "ray")))
            print("two hosts, one of which is killed")
            digests.append(watched(hosts[0].run(store, "ray"), hosts[1]))
        finally:
            for host in hosts:
                host.kill()
    if len(set(digests)) > 1:
        sys.exit("the models differ")


if __name__ == "__main__":
    main()
