"""Several processes on one checkpoint, and signals, with real processes."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import tacit
from tests.conftest import ratings_for
from tests.faults.child import CONFIG
from tests.faults.running import ROOT, assert_drawn_once, assert_finished, command, releases

WAITING = """
import sys, time
from pathlib import Path
from tests.faults import child
folder = Path(sys.argv[1])
reach = child.Killer.reach
def waiting(self, stage):
    if stage == "used" and self.now == 2:
        (folder / "ready").touch()
        time.sleep(600)
    reach(self, stage)
child.Killer.reach = waiting
child.main(folder)
"""


def wait_for(condition: Callable[[], bool], child: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 120
    while not condition():
        assert child.poll() is None, "it ended too early"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.002)


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    """The lock goes with the process, however it ends."""
    line = [sys.executable, "-c", WAITING, str(tmp_path)]
    with subprocess.Popen(line, cwd=ROOT, text=True) as first:
        try:
            wait_for((tmp_path / "ready").exists, first)
            kept = releases(tmp_path)
            with pytest.raises(tacit.CheckpointError, match="in use by another process; wait for"):
                tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=tmp_path / "checkpoint")
            assert releases(tmp_path) == kept
        finally:
            first.send_signal(signal.SIGKILL)
    tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=tmp_path / "checkpoint")
    assert releases(tmp_path).items() > kept.items()


@pytest.mark.slow
def test_three_processes_that_start_together_make_one_fit(tmp_path: Path) -> None:
    """Each gets the folder or is refused; whoever comes second uses what the first one wrote."""
    starts = [
        subprocess.Popen(command(tmp_path), cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    texts = [child.communicate()[1] for child in starts]
    codes = [child.returncode for child in starts]
    assert 0 in codes
    assert all("in use" in text for code, text in zip(codes, texts, strict=True) if code)
    assert_drawn_once(tmp_path)
    assert_finished(tmp_path)


def ratings_file(folder: Path) -> Path:
    ratings = ratings_for(0)
    rows = [
        (ratings.user_ids[k], ratings.catalogue.ids[int(item)], float(value))
        for k in range(ratings.n_users)
        for item, value in zip(
            ratings.items[ratings.indptr[k] : ratings.indptr[k + 1]],
            ratings.values[ratings.indptr[k] : ratings.indptr[k + 1]],
            strict=True,
        )
    ]
    pl.DataFrame(rows, ["user", "item", "rating"], orient="row").write_csv(folder / "r.csv")
    return folder / "r.csv"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize(
    "sent",
    [signal.SIGINT, signal.SIGTERM],
    ids=["SIGINT", "SIGTERM"],
)
def test_a_signal_in_a_fit_leaves_a_checkpoint_that_goes_on(
    sent: signal.Signals, tmp_path: Path
) -> None:
    """The command line, stopped in the middle of 4000 releases, then asked for the same again."""
    model, folder = tmp_path / "m.tacit", tmp_path / "c"
    line = [
        *(
            sys.executable,
            "-c",
            "from tacit.cli import main; main()",
            "fit",
            ratings_file(tmp_path),
        ),
        *("--rating-range", "0.5", "5", "--epsilon", "1", "--algorithm", "frank-wolfe"),
        *("--set", "rounds=4000", "--checkpoint", folder, "-o", model),
    ]
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(list(map(str, line)), **options) as child:  # type: ignore[call-overload]
        wait_for(lambda: len(releases_names(folder)) >= 3, child)
        child.send_signal(sent)
        text = child.communicate()[1]
    assert child.returncode == 130
    assert "interrupted" in text
    assert "Traceback" not in text
    assert not list(folder.glob(".*"))
    assert not model.exists()
    assert not list(tmp_path.glob(".*"))
    assert 3 <= len(releases_names(folder)) < 4000
    assert_same_until(releases_names(folder)[-1], folder)


def releases_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("release-*"))


def assert_same_until(last: str, folder: Path) -> None:
    """A fit that goes on reads all that was written, and draws only what comes after."""
    before = releases(folder)
    config = tacit.FrankWolfe(rounds=4000)
    rows = tacit.Ratings.from_file(folder.parent / "r.csv", rating_range=(0.5, 5.0))

    class Enough(Exception):  # noqa: N818 - it reads as a sentence
        pass

    def progress(made: int, _: int) -> None:
        if f"release-{made:04d}.safetensors" > last:
            raise Enough

    with pytest.raises(Enough):
        tacit.fit(rows, config, epsilon=1.0, checkpoint=folder, progress=progress)
    after = releases(folder)
    assert len(after) == len(before) + 1
    assert after.items() >= before.items()
