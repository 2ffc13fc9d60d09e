"""A Ray cluster of real processes: the same bits, whoever dies; and nothing that stays behind."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.data.store_writer import write_store
from tacit.engines import Ray
from tacit.engines.ray_worker import Worker
from tests.conftest import ratings_for
from tests.contracts.test_algorithms import assert_identical
from tests.contracts.test_engines import ALL, SIZES, ratings_of

BUDGET: dict[str, Any] = {"epsilon": 2.0, "noise_seed_unsafe": 3}
MARK = "somebody-in-particular"
STRANGER = """
import sys, ray
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level=50)
except Exception as error:
    print("refused", type(error).__name__)
else:
    print("let in")
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Ray]:
    """One cluster for all tests, with three processes for rows at the most."""
    pytest.importorskip("ray")
    with Ray(workers=3) as engine:
        yield engine


@pytest.fixture(scope="module")
def stranger(cluster: Ray) -> Iterator["subprocess.Popen[str]"]:
    """Someone who knows the address but not the token; it takes Ray a while to give up."""
    environment = os.environ | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "wrong" * 12}
    environment.pop("RAY_AUTH_TOKEN_PATH", None)
    command = [sys.executable, "-c", STRANGER, address_of(cluster)]
    with subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True) as process:
        yield process
        process.kill()


def address_of(cluster: Ray) -> str:
    return str(cluster._ray.get_runtime_context().gcs_address)


def by_threads(rows: tacit.Ratings, config: Any) -> tacit.Model:
    return tacit.fit(rows, config, engine=tacit.ThreadEngine(2), **BUDGET)


@pytest.mark.extras
@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize("name", ALL)
def test_a_cluster_gives_the_same_bits_as_threads(name: str, cluster: Ray) -> None:
    config = ALL[name]
    rows = ratings_of(config)
    one, other = by_threads(rows, config), tacit.fit(rows, config, engine=cluster, **BUDGET)
    assert_identical(one, other)
    assert one.certificate.to_json() == other.certificate.to_json()


@pytest.mark.extras
@pytest.mark.parametrize("keep", [True, False])
def test_more_shards_than_processes_and_a_search(cluster: Ray, tmp_path: Path, keep: bool) -> None:
    """What is held out, and which items there are, is decided where the rows are."""
    rows = ratings_for(8, **SIZES)
    store = write_store(rows, tmp_path / "store", 7)
    cluster._keep = keep
    candidates = [tacit.Moments(), tacit.FrankWolfe(rounds=2)]
    options = BUDGET | {"top_items": 9}
    one = tacit.tune(rows, candidates, **options)
    assert_identical(one, tacit.tune(store, candidates, engine=cluster, **options))
    cluster._keep = None


class Assassin:
    """Kills a worker's process between rounds, and another one while it is summing."""

    def __init__(self, cluster: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cluster, self._answer = cluster, cluster._answer
        self.killed: list[int] = []
        self._armed = False
        monkeypatch.setattr(cluster, "_answer", self._while_summing)

    def between(self, done: int, _planned: int) -> None:
        if done == 1:
            self._kill(0)
        self._armed = done == 3

    def _while_summing(self, reference: Any) -> bytes:
        if self._armed:
            self._armed = False
            self._kill(1)
        return self._answer(reference)

    def _kill(self, which: int) -> None:
        process = self._cluster._greet()[which] if not self.killed else self.others[which]
        if not self.killed:
            self.others = self._cluster._greet()
        os.kill(process, signal.SIGKILL)
        self.killed.append(process)


@pytest.mark.extras
def test_killed_processes_change_nothing(
    cluster: Ray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are built anew from the releases so far: each round's local state depends on all."""
    rows, config = ratings_for(8, **SIZES), tacit.FrankWolfe(rounds=5)
    store = write_store(rows, tmp_path / "store", 2)
    assassin = Assassin(cluster, monkeypatch)
    model = tacit.fit(store, config, engine=cluster, progress=assassin.between, **BUDGET)
    assert len(assassin.killed) == 2
    assert not set(assassin.killed) & set(cluster._greet())
    assert_identical(by_threads(rows, config), model)


@pytest.mark.extras
def test_workers_have_the_priority_of_the_driver(cluster: Ray) -> None:
    """Ray's own is 15 below: beside a busy process a fit would take many times as long."""
    cluster.take(ratings_for(8, **SIZES))
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert {os.getpriority(os.PRIO_PROCESS, process) for process in cluster._greet()} == {ours}


@pytest.mark.extras
def test_the_command_joins_a_cluster_with_its_token(cluster: Ray, tmp_path: Path) -> None:
    rows = ratings_for(8, **SIZES)
    store = write_store(rows, tmp_path / "store", 2)
    cluster.take(store)  # two of its three cores: one is left for the command
    from tacit.engines import ray

    command = [sys.executable, "-m", "tacit", "fit", str(store.folder), "--epsilon", "2"]
    command += ["--noise-seed-unsafe", "3", "--algorithm", "svd", "--set", "rank=2"]
    command += ["--engine", "ray", "--address", address_of(cluster), "--workers", "1"]
    command += ["-o", str(tmp_path / "m.tacit")]
    environment = os.environ | {"RAY_AUTH_TOKEN": ray._TOKEN}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    model = tacit.load(tmp_path / "m.tacit")
    expected = by_threads(rows, tacit.SVD(rank=2))
    assert np.array_equal(model.predict({}), expected.predict({}))
    assert not list(store.folder.glob("*.key*"))[1:]  # its own key is gone; this engine's is there


@pytest.mark.extras
def test_a_stranger_is_refused(stranger: "subprocess.Popen[str]") -> None:
    said, _ = stranger.communicate(timeout=100)
    assert said.startswith("refused")


@pytest.mark.extras
def test_logs_and_objects_know_nothing_of_rows(cluster: Ray, tmp_path: Path) -> None:
    """Nothing in the cluster's folder but the store has rows; the key is nowhere else either."""
    count = 40
    frame = pl.DataFrame(
        {
            "user": [f"{MARK}-{k // 8}" for k in range(8 * count)],
            "item": [f"film-{k % 8}" for k in range(8 * count)],
            "rating": [1.0 + (k * k) % 5 for k in range(8 * count)],
        }
    )
    rows = tacit.Ratings.from_frame(frame, rating_range=(1, 5))
    tacit.fit(rows, tacit.SVD(rank=2), engine=cluster, **BUDGET)
    cluster.take(rows)
    written = cluster._folder / f"rows-{cluster._takes - 1}"
    next(written.glob("shard-*1.*")).write_bytes(b"x")
    with pytest.raises(tacit.EngineError) as caught:  # and not after an error either
        cluster.sum(tacit.trusted.statistics.UserCount(), 1.0)
    assert MARK not in str(caught.value)
    folder = cluster._folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    secrets = [MARK.encode(), cluster._key, rows.values.tobytes()[:64]]
    beside = [path for path in folder.rglob("*") if path.is_file()]
    assert any("logs" in path.parts for path in beside)
    for path in beside:
        if not any(part.startswith("rows-") for part in path.parts):
            content = path.read_bytes()
            assert not any(secret in content for secret in secrets), path
    assert not list(folder.rglob("*spill*/*"))


@pytest.mark.extras
def test_there_is_no_dashboard_and_no_key_in_what_is_sent(cluster: Ray) -> None:
    assert not cluster._ray._private.worker.global_worker.node.webui_url
    cluster.take(ratings_for(8, **SIZES))
    sent = cluster._ray.cloudpickle.dumps(cluster._tasks)
    assert str(cluster._key_file).encode() in sent
    assert cluster._key not in sent
    assert stat.S_IMODE(cluster._key_file.stat().st_mode) == 0o600


def _runs(process: int) -> bool:
    """Whether a process is there, and not only its entry that nobody has read yet."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.extras
def test_nothing_stays_behind(cluster: Ray) -> None:
    """The last test: it ends the cluster."""
    cluster.take(ratings_for(8, **SIZES))
    processes, folder, key = cluster._greet(), cluster._folder, cluster._key_file
    with pytest.raises(tacit.EngineError, match="joined a Ray cluster already"):
        Ray()
    cluster.close()
    cluster.close()
    assert not folder.exists()
    assert not key.exists()
    assert "RAY_AUTH_TOKEN_PATH" not in os.environ
    deadline = time.monotonic() + 30  # a process that was told to end takes a moment to
    while any(map(_runs, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, processes))
    with pytest.raises(tacit.EngineError, match="was closed"):
        cluster.take(ratings_for(8, **SIZES))


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(tacit.ConfigError, match=r"pip install 'tacit\[ray\]'"):
        Ray()


@pytest.mark.parametrize(
    "options", [{"workers": 0}, {"address": "ray://head:10001"}, {"address": 3}, {"keep": 1}]
)
def test_settings_are_checked_before_anything_starts(options: dict[str, Any]) -> None:
    with pytest.raises(tacit.ConfigError, match=next(iter(options))):
        Ray(**options)


class Joined:
    """A cluster that anyone can join, as far as an engine can tell."""

    class exceptions:  # noqa: N801
        RayError = RuntimeError

    @staticmethod
    def get(_: Any, timeout: float) -> list[tuple[int, bool]]:  # noqa: ARG004
        return [(1, True), (2, False)]


def test_a_cluster_without_a_token_is_refused() -> None:
    engine = Ray.__new__(Ray)
    engine._ray, engine._workers = Joined(), []
    with pytest.raises(tacit.EngineError, match="RAY_AUTH_MODE=token"):
        engine._greet()


def test_a_worker_tells_what_went_wrong_in_public_words_only(tmp_path: Path) -> None:
    """What another library says may quote what it is about; only its kind is passed on."""
    from tacit.engines.ray_worker import Task
    from tacit.trusted.statistics import UserCount

    rows = ratings_for(8, **SIZES)
    store = write_store(rows, tmp_path / "store", 2)
    task = Task(str(store.folder), store.stamp, (0, 1), (), 1, True, str(tmp_path / "none"))
    trouble = Worker().sum(task, UserCount(), 1.0).trouble
    assert "cannot read the key" in trouble
    assert "not copies" in trouble

    def view(_: tacit.Ratings) -> tacit.Ratings:
        raise ValueError(MARK)

    view.catalogue = lambda catalogue: catalogue  # type: ignore[attr-defined]
    loud = Task(str(store.folder), store.stamp, (0, 1), (view,), 2, True, "")  # type: ignore[arg-type]
    answer = Worker().sum(loud, UserCount(), 1.0)
    assert answer.trouble == "a worker failed (ValueError)"
    nowhere = Task(str(tmp_path), store.stamp, (0, 1), (), 4, True, "")
    assert "same path" in Worker().sum(nowhere, UserCount(), 1.0).trouble
    other = Task(str(store.folder), "another", (0, 1), (), 3, True, "")
    assert "another one lies" in Worker().sum(other, UserCount(), 1.0).trouble
