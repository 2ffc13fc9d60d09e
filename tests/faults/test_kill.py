"""kill -9 at every boundary of a release and in between, in real processes.

A fit is killed, started again and killed later, and so on. However often that happens: what was
used is never drawn again and never changes, the budget is spent once, and at the model's path there
is no file, the old one or a whole one.
"""

from pathlib import Path

import pytest

from tests.faults.child import MODEL_STAGES, STAGES
from tests.faults.running import assert_drawn_once, assert_finished, killed, releases, run

QUICK = [
    ("after the sum", 1),
    ("noise drawn", 2),
    ("half written", 2),
    ("renamed, folder not synced", 3),
    ("used", 3),
]


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many releases the fit makes when nothing happens to it."""
    folder = tmp_path_factory.mktemp("whole")
    assert run(folder) == 0
    return len(assert_finished(folder).certificate.releases)


@pytest.mark.slow
def test_a_fit_that_is_killed_again_and_again_is_one_fit(tmp_path: Path) -> None:
    kept: dict[str, bytes] = {}
    for stage, number in QUICK:
        killed(tmp_path, stage, number)
        now = releases(tmp_path)
        assert {name: now[name] for name in kept} == kept
        kept = now
    assert len(kept) == 3
    assert run(tmp_path) == 0
    assert_finished(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", STAGES)
def test_killed_at_this_stage_of_every_release(stage: str, count: int, tmp_path: Path) -> None:
    for number in range(1, count + 1):
        killed(tmp_path, stage, number)
    assert run(tmp_path) == 0
    assert_finished(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", MODEL_STAGES)
def test_killed_while_the_model_is_written(stage: str, count: int, tmp_path: Path) -> None:
    """First where there is no model yet, then where there is an older one."""
    model = tmp_path / "model.tacit"
    killed(tmp_path, stage, count + 1)
    assert model.exists() == stage.startswith("renamed")
    assert run(tmp_path) == 0
    whole = model.read_bytes()
    killed(tmp_path, stage, count + 1)
    assert model.read_bytes() == whole
    assert_finished(tmp_path)


def test_the_check_notices_a_second_draw(tmp_path: Path) -> None:
    """The twin: a release that was used and is lost from the folder, drawn again by a fit."""
    (tmp_path / "log").write_text("drawn 1 \nused 1 aa\ndrawn 1 \nused 1 bb\n")
    with pytest.raises(AssertionError, match="drawn again"):
        assert_drawn_once(tmp_path)
    (tmp_path / "log").write_text("drawn 1 \nused 1 aa\nused 1 bb\n")
    with pytest.raises(AssertionError, match="changed"):
        assert_drawn_once(tmp_path)
