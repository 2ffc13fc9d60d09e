"""Full disks and folders that cannot be written, in real processes.

Three kinds of full disk: a file system of 20 KiB that really is full (Linux, where a process may
mount one for itself), a limit on the size of files that the system enforces (RLIMIT_FSIZE: a short
write, then an error), and an error of fsync, which some file systems give instead of one of write.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from tacit import _atomic
from tests.conftest import ratings_for
from tests.faults.child import CONFIG
from tests.faults.running import ROOT, assert_finished, command, releases, run

LIMITED = """
import resource, sys
from pathlib import Path
import tacit
from tests.faults import child
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    child.main(Path(sys.argv[1]))
except tacit.TacitError as error:
    print(type(error).__name__, error)
    sys.exit(2)
"""

AS_NOBODY = """
import os, sys
import tacit
from tests.conftest import ratings_for
from tests.faults.child import CONFIG
ratings = ratings_for(0)
tacit.fit(ratings, CONFIG, epsilon=1.0)  # loads and compiles everything
if os.getuid() == 0:
    os.seteuid(65534)
try:
    tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=sys.argv[1])
except tacit.CheckpointError as error:
    print(error)
    sys.exit(2)
"""


def script(code: str, *arguments: object) -> tuple[int, str]:
    line = [sys.executable, "-c", code, *map(str, arguments)]
    found = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.returncode, found.stdout + found.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_limit_on_file_sizes(tmp_path: Path) -> None:
    """Files of 1000 bytes and no more: the first release fits and a matrix does not."""
    code, text = script(LIMITED, tmp_path, 1000)
    assert code == 2
    assert text.startswith("CheckpointError")
    assert "nothing was released that is not on disk" in text
    kept = releases(tmp_path)
    assert len(kept) == 1
    code, text = script(LIMITED, tmp_path, 3000)  # now all releases fit, and the model does not
    assert (code, text.split()[0]) == (2, "ModelFileError")
    assert not (tmp_path / "model.tacit").exists()
    assert not list(tmp_path.glob(".*"))
    assert run(tmp_path) == 0
    assert releases(tmp_path).items() >= kept.items()
    assert_finished(tmp_path)


def mounts() -> bool:
    """Whether a process may mount a file system for itself here."""
    line = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(line, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not mounts(), reason="a process may not mount a file system here")
@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A disk of 20 KiB, five pages: the lock, fit.json and a few releases fit, not all."""
    folder, keep = tmp_path / "disk", tmp_path / "kept"
    folder.mkdir()
    keep.mkdir()
    fit = " ".join(f"'{word}'" for word in command(folder))
    shell = f"""mount -t tmpfs -o size=20k tmpfs {folder} && {fit}
        test $? -ne 0 && rm -f {folder}/log && cp -a {folder}/. {keep}"""
    line = ["unshare", "-rm", "sh", "-c", shell]
    found = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "No space left on device" in found.stderr
    kept = releases(keep)
    assert 1 <= len(kept) < 4
    again = tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=keep / "checkpoint")
    assert again.verify().holds
    assert releases(keep).items() > kept.items()
    assert not list((keep / "checkpoint").glob(".*"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
@pytest.mark.slow
@pytest.mark.parametrize("begun", [False, True])
def test_a_checkpoint_that_cannot_be_written(begun: bool, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    tmp_path.chmod(0o755)
    folder.mkdir()
    if begun:
        tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=folder)
        (folder / "release-0003.safetensors").unlink()
        for path in sorted(folder.glob("release-*"))[2:]:
            path.unlink()
        for path in folder.iterdir():
            path.chmod(0o444)
    folder.chmod(0o555)
    before = releases(folder)
    code, text = script(AS_NOBODY, folder)
    folder.chmod(0o755)
    assert code == 2, text
    assert "cannot be used: Permission denied" in text
    assert releases(folder) == before


def test_a_folder_that_cannot_be_synced_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release whose name may be lost with the power must not be used."""
    sync, calls = os.fsync, []

    def broken(descriptor: int) -> None:
        calls.append(descriptor)
        if os.path.isdir(f"/proc/self/fd/{descriptor}") and len(calls) > 8:  # noqa: PTH112
            raise OSError(5, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(tacit.CheckpointError, match="Input/output error"):
        tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=tmp_path / "c")


def test_a_link_at_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    """Someone who guesses the temporary name cannot have another file written over."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".m.{os.getpid()}.part").symlink_to(victim)
    _atomic.write_durably(tmp_path / "m", b"content", owner_only=True)
    assert victim.read_text() == "mine"
    assert (tmp_path / "m").read_bytes() == b"content"
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "victim"]
