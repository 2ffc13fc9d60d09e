"""`tacit plan` as a person types it."""

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.reporting import plan_figure
from tacit.research.theory import expectation
from tacit.research.theory.expectation import STARTS_FROM_MOMENTS
from tacit.research.theory.forecast import forecast
from tests.support.cases import slow

Run = Callable[..., tuple[int, str, str]]
ASKED = ("--users", 500_000, "--items", 400, "--epsilon", 0.5)

known = cache(forecast)
"""Most of these plans are of the same case."""


@pytest.fixture(autouse=True)
def _known_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectation, "forecast", known)
    monkeypatch.setattr(plan_figure, "forecast", known)


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `tacit plan` in this process."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tacit", "plan", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


def test_a_plan_is_short_and_says_what_matters(plan: Run) -> None:
    code, out, err = plan(*ASKED)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 80
    for words in (
        "500,000 x 400", "by rule", "7071", "4.472", "Thm. 3.2", "Cor. 3.1", "Thm. B.3",
        "10,836", "8,305", "1.30", "1.85", "prefer SVD", "up to constants", "loose",
        "User mean", "latent factors found", "users needed",
    ):  # fmt: skip
        assert words in out, words
    assert "Table 1" not in out
    assert "favours" not in out


def test_the_headline_is_the_forecast_of_moments_and_comes_first(plan: Run) -> None:
    _, out, _ = plan(*ASKED)
    head = " ".join(out.split("\n\n")[0].split())
    assert head.startswith("Expect RMSE about 0.399 (Moments) against 0.494 of the user mean (-19.")
    assert "without privacy about 0.399" in head
    assert "item means only" in head


def test_it_says_which_method_is_forecast(plan: Run) -> None:
    words = " ".join(plan(*ASKED)[1].split())
    assert STARTS_FROM_MOMENTS in words
    assert "Moments 0.3992 0.3987 its gain over the user mean" in words
    assert "Default method" not in words
    assert json.loads(plan(*ASKED, "--json")[1])["expected"]["method"] == "moments"


def test_where_there_is_nothing_to_gain_it_says_so_and_what_would_help(plan: Run) -> None:
    _, out, _ = plan("--users", 500, "--items", 400, "--epsilon", 0.1)
    words = " ".join(out.split())
    assert "It would learn next to nothing at this epsilon" in words
    assert "more users, a larger epsilon, or fewer items (--top-items" in words


def test_guesses_change_what_to_expect(plan: Run) -> None:
    assumed = ("--item-sd", 0.3, "--user-sd", 0.1, "--noise-sd", 0.2, "--factors", 3)
    more = ("--factor-share", 0.5, "--factor-decay", 1, "--skew", 0, "--activity-spread", 0)
    found = json.loads(plan(*ASKED, *assumed, *more, "--json")[1])["expected"]
    assert found["assumed"] == {
        "item_sd": 0.3, "user_sd": 0.1, "noise_sd": 0.2, "factors": 3, "factor_share": 0.5,
        "factor_decay": 1.0, "skew": 0.0, "activity_spread": 0.0, "noise_spread": 0.25,
    }  # fmt: skip
    assert found["rmse_own_mean"] == pytest.approx((0.17 * (1 + 1 / 80)) ** 0.5, rel=1e-6)
    assert found["rmse"] < 0.22


@pytest.mark.slow
def test_a_simulation_stands_beside_the_forecast(plan: Run) -> None:
    size = ("--users", 2000, "--items", 60, "--epsilon", 4, "--per-user", 20)
    code, out, _ = plan(*size, "--simulate", "few")
    assert code == 0
    assert "synthetic, few: RMSE" in out
    assert "Gain of the default" in out
    found = json.loads(plan(*size, "--simulate", "few", "--json")[1])["simulated"]
    assert found["family"] == "few"
    assert found["gain"] == pytest.approx(found["forecast_gain"], abs=0.03)
    assert found["default_gain"] == pytest.approx(1 - found["default"] / found["own_mean"])
    assert found["default_gain"] == pytest.approx(found["gain"], abs=0.05)


@pytest.mark.parametrize(
    "few", [("--users", 100, "--items", 400, "--epsilon", 1), slow((*ASKED[:4], "--epsilon", 30))]
)
def test_where_the_bounds_do_not_apply_there_is_a_forecast(
    plan: Run, few: tuple[object, ...]
) -> None:
    code, out, _ = plan(*few)
    assert code == 0
    assert "The paper's bounds do not apply" in out
    found = json.loads(plan(*few, "--json")[1])
    assert "the paper's bounds need" in found["bounds_do_not_apply"]
    assert found["bounds"] is None
    assert found["expected"]["rmse"] > 0


def test_tables_are_shown_when_asked_for(plan: Run) -> None:
    _, out, _ = plan(*ASKED, "--tables")
    for words in ("Table 1", "1,789", "no bound known", "Table 2", "Noisy power method", "93.3"):
        assert words in out


def test_json_has_it_all(plan: Run) -> None:
    code, out, _ = plan(*ASKED, "--json", "--neighbours", "add_remove", "--delta", "1e-7")
    found = json.loads(out)
    assert code == 0
    assert list(found) == [
        "expected", "simulated", "bounds_do_not_apply", "problem",
        "neighbours", "rounds", "rounds_for_all", "noise", "bounds", "zero_rmse",
        "favours", "table_1", "table_2", "notes",
    ]  # fmt: skip
    assert list(found["expected"]) == [
        "rmse", "rmse_own_mean", "rmse_biases_without_noise", "rmse_without_noise", "gain",
        "gain_without_noise", "item_effects_learned", "factors_found",
        "factors_found_without_noise", "smallest_factor_variance", "noise_sd", "users_needed",
        "assumed", "verdict", "method",
    ]  # fmt: skip
    assert found["simulated"] is None
    assert found["problem"]["delta"] == 1e-7
    assert found["neighbours"] == "add_remove"
    assert set(found["noise"]["frank-wolfe"]) == {"replace", "add_remove"}
    assert found["noise"]["frank-wolfe"]["replace"]["ratio"] > 1
    assert len(found["table_2"]) == 6
    assert found["favours"]["method"] in {"svd", "frank-wolfe"}


def test_what_is_given_is_used_and_marked(plan: Run) -> None:
    words = ("--per-user", 20, "--rating-range", 0.5, 5, "--nuclear-norm", 9000, "--row-norm", 3)
    _, out, _ = plan(*ASKED, *words, "--rank", 4, "--incoherence", 2)
    assert "20 a user on average" in out
    assert "from 0.5 to 5" in out
    assert out.count("given") == 2
    found = json.loads(plan(*ASKED, *words, "--rank", 4, "--incoherence", 2, "--json")[1])
    assert found["problem"]["rank"] == 4
    assert found["problem"]["incoherence"] == 2.0
    assert found["problem"]["nuclear_norm"] == 9000.0


@pytest.fixture(params=[2, pytest.param(None, marks=pytest.mark.slow)], ids=["few", "all"])
def _forecasts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many forecasts on a curve; None: as many as people get, and made anew each time."""
    if request.param:
        monkeypatch.setattr(plan_figure, "_FORECASTS", request.param)
    else:
        monkeypatch.setattr(expectation, "forecast", forecast)
        monkeypatch.setattr(plan_figure, "forecast", forecast)


@pytest.mark.usefixtures("_forecasts")
@pytest.mark.parametrize(
    ("name", "start"),
    [pytest.param("p.svg", b"<?xml", marks=pytest.mark.slow), ("p.png", b"\x89PNG")],
)
def test_plot(plan: Run, tmp_path: Path, name: str, start: bytes) -> None:
    code, out, err = plan(*ASKED, "--plot", tmp_path / name)
    assert (code, err) == (0, "")
    assert f"wrote {tmp_path / name}" in out
    first = (tmp_path / name).read_bytes()
    assert first.startswith(start)
    if name.endswith("svg"):
        plan(*ASKED, "--plot", tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
        for words in ("epsilon", "exact, replace", "Thm. B.3", "500,000 users", "user mean"):
            assert words in first.decode()


def test_without_matplotlib_the_message_is_kind(
    plan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = plan(*ASKED, "--plot", tmp_path / "p.svg")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "pip install 'tacit[figures]'" in err
    assert plan(*ASKED)[0] == 0


BAD = {
    "no users": ("--users", 0, "--items", 400, "--epsilon", 1),
    "one item": ("--users", 10, "--items", 1, "--epsilon", 1),
    "one user": ("--users", 1, "--items", 400, "--epsilon", 1),
    "negative sd": (*ASKED, "--item-sd", -1),
    "no noise": (*ASKED, "--noise-sd", 0),
    "endless sd": (*ASKED, "--user-sd", "inf"),
    "no factors": (*ASKED, "--factors", 0),
    "all share": (*ASKED, "--factor-share", 1),
    "bad skew": (*ASKED, "--skew", "nan"),
    "no such family": (*ASKED, "--simulate", "tall"),
    "too large a family": (*ASKED, "--simulate", "popular"),
    "no epsilon": ("--users", 1000, "--items", 400),
    "negative epsilon": ("--users", 1000, "--items", 400, "--epsilon", -1),
    "bad delta": (*ASKED, "--delta", 0),
    "no ratings": (*ASKED, "--per-user", 0),
    "bad range": (*ASKED, "--rating-range", 5, 1),
    "endless range": (*ASKED, "--rating-range", "-inf", "inf"),
    "bad k": (*ASKED, "--nuclear-norm", -3),
    "bad L": (*ASKED, "--row-norm", "nan"),
    "bad rank": (*ASKED, "--rank", 0),
    "bad incoherence": (*ASKED, "--incoherence", 0),
    "bad relation": (*ASKED, "--neighbours", "swap"),
    "bad ending": (*ASKED, "--plot", "plan.pdf"),
    "bad folder": (*ASKED, "--plot", "no/such/plan.svg"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_error_is_one_line_and_exit_code_2(
    case: str, plan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = plan(*BAD[case])
    assert (code, out) == (2, "")
    assert err.startswith("tacit: error: ")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_written_is_one_line(plan: Run, tmp_path: Path) -> None:
    (tmp_path / "p.svg").mkdir()
    code, _, err = plan(*ASKED, "--plot", tmp_path / "p.svg")
    assert code == 2
    assert "it is a folder; give the name of a file" in err
