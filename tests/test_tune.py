"""tune: the search is in the certificate, finds the better candidate, and survives a crash."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.cli import main
from tacit.fitting.tune import CHOSEN, LOSSES, describe
from tacit.trusted.journal import Journal
from tests.conftest import ratings_for, spy_on_sums

GOOD = tacit.FrankWolfe(rounds=4, shift=False, residual_clip=1.0)
BAD = replace(GOOD, row_norm=0.01)  # rows are shortened to nothing: it learns next to nothing
CANDIDATES = (BAD, GOOD)


@pytest.fixture(scope="module")
def many() -> tacit.Ratings:
    return ratings_for(0, users=1500, items=12, per_user=8)


def published(model: tacit.Model) -> dict[str, np.ndarray]:
    return model.rule.parts()[0]


def releases(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("release-*"))}


@pytest.mark.parametrize("order", [CANDIDATES, CANDIDATES[::-1]])
def test_the_better_candidate_is_chosen(order: tuple[Any, ...], many: tacit.Ratings) -> None:
    """In either order: at this seed and epsilon the gap is many noise sds wide."""
    model = tacit.tune(many, order, epsilon=20.0, noise_seed_unsafe=1)
    number = 1 + order.index(GOOD)
    assert model.certificate.public[CHOSEN].startswith(f"candidate {number}, ")
    assert (
        tacit.tune(many, order, budget=None)
        .certificate.public[CHOSEN]
        .startswith(f"candidate {number}, ")
    )


def test_with_next_to_no_budget_the_choice_is_noise(many: tacit.Ratings) -> None:
    """The twin: the choice rests on the noisy losses and on nothing else."""
    chosen = {
        tacit.tune(many, CANDIDATES, epsilon=0.01, noise_seed_unsafe=seed).certificate.public[
            CHOSEN
        ]
        for seed in range(8)
    }
    assert len(chosen) == 2


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_search_and_fit_together_cost_the_budget_and_no_more(relation: str, share: float) -> None:
    model = tacit.tune(
        ratings_for(1), CANDIDATES, epsilon=0.7, neighbours=relation, share=share, top_items=9
    )
    assert model.certificate.exact_epsilon == pytest.approx(0.7, rel=1e-6)
    assert model.certificate.exact_epsilon <= 0.7
    assert model.verify().holds, model.verify().problems
    squares = {entry.name: entry.mu**2 for entry in model.certificate.releases}
    whole, rest = sum(squares.values()), 0.95
    trials = [
        sum(v for n, v in squares.items() if n.startswith(f"candidate {k}: ")) for k in (1, 2)
    ]
    assert trials == pytest.approx([rest * 0.8 * share / 2 * whole] * 2)
    assert squares[LOSSES.name] == pytest.approx(rest * 0.2 * share * whole)
    final = sum(v for n, v in squares.items() if n.startswith(("covariance", "user count")))
    assert final == pytest.approx(rest * (1 - share) * whole)


def test_every_sum_is_in_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = spy_on_sums(monkeypatch)
    model = tacit.tune(ratings_for(1), CANDIDATES, epsilon=1.0, top_items=9)
    listed = [entry.sensitivity for entry in model.certificate.releases]
    assert [statistic.sensitivity.replace for statistic in asked] == listed


def test_trials_never_see_what_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are given fewer ratings; the comparison and the fit are given all."""
    taken: list[int] = []
    plain = tacit.ThreadEngine.take

    def spying(self: tacit.ThreadEngine, ratings: tacit.Ratings) -> None:
        taken.append(ratings.values.size)
        plain(self, ratings)

    monkeypatch.setattr(tacit.ThreadEngine, "take", spying)
    ratings = ratings_for(1, users=800)
    tacit.tune(ratings, CANDIDATES, epsilon=1.0)
    whole = ratings.values.size
    assert taken[0] == whole
    assert 0.85 * whole < taken[1] < 0.95 * whole  # 10 sds: 4800 ratings
    assert taken[2:] == [whole]


def test_the_winner_is_fitted_to_all_ratings(many: tacit.Ratings) -> None:
    tuned = tacit.tune(many, CANDIDATES, budget=None)
    plain = tacit.fit(many, GOOD, budget=None)
    for name, array in published(plain).items():
        assert np.array_equal(array, published(tuned)[name])


def test_the_certificate_names_candidates_and_choice(many: tacit.Ratings) -> None:
    model = tacit.tune(many, CANDIDATES, epsilon=5.0)
    public = model.certificate.public
    assert public["candidate 1"].startswith("frank-wolfe row_norm=0.01 rounds=4")
    assert public[CHOSEN].endswith(f"by the release '{LOSSES.name}'")
    assert model.verify().holds
    text = model.certificate.text()
    assert "candidate 1: covariance 1 to 3" in text
    forged = replace(
        model.certificate,
        releases=tuple(e for e in model.certificate.releases if e.release != LOSSES),
    )
    assert not forged.verify().holds


class Crash(BaseException):
    """Nothing in the package catches it."""


@pytest.mark.parametrize("survived", [0, 1, 3, 4, 5, 6, 8])
def test_going_on_after_a_crash_is_bit_identical(
    survived: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts, 2 + 2 releases of trials, losses, 2 of the winner: a crash after some of them."""
    ratings = ratings_for(2)
    candidates = [replace(candidate, rounds=3) for candidate in CANDIDATES]
    options: dict[str, Any] = {"epsilon": 3.0, "noise_seed_unsafe": 4, "top_items": 9}
    whole = tacit.tune(ratings, candidates, checkpoint=tmp_path / "whole", **options)
    assert len(whole.certificate.releases) == 8
    write = Journal.write

    def crashing(self: Journal, number: int, *rest: Any) -> None:
        if number > survived:
            raise Crash
        write(self, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", crashing)
        if survived < 8:
            with pytest.raises(Crash):
                tacit.tune(ratings, candidates, checkpoint=tmp_path / "cut", **options)
    resumed = tacit.tune(ratings, candidates, checkpoint=tmp_path / "cut", **options)
    assert releases(tmp_path / "cut") == releases(tmp_path / "whole")
    assert resumed.certificate.to_json() == whole.certificate.to_json()
    for name, array in published(whole).items():
        assert np.array_equal(array, published(resumed)[name])


@pytest.mark.parametrize(
    "changes", [{"share": 0.4}, {"holdout_seed": 1}, {"candidates": CANDIDATES[::-1]}]
)
def test_another_search_is_another_checkpoint(changes: dict[str, Any], tmp_path: Path) -> None:
    def attempt(candidates: Any = CANDIDATES, **options: Any) -> None:
        tacit.tune(ratings_for(2), candidates, epsilon=1.0, checkpoint=tmp_path, **options)

    attempt()
    with pytest.raises(tacit.CheckpointError, match="algorithm"):
        attempt(**changes)
    with pytest.raises(tacit.CheckpointError, match="algorithm"):
        tacit.fit(ratings_for(2), GOOD, epsilon=1.0, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": [GOOD]}, "candidates: 1"),
        ({"candidates": [GOOD] * 51}, "candidates: 51"),
        ({"candidates": ["frank-wolf", GOOD]}, "algorithm=.frank-wolf."),
        ({"share": 0.0}, "share=0.0"),
        ({"share": 1.0}, "share=1.0"),
        ({"share": "some"}, "share='some'"),
        ({"holdout_seed": -1}, "holdout_seed=-1"),
        ({"top_items": 0}, "top_items=0"),
        ({"epsilon": None}, "epsilon"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    given = {"candidates": CANDIDATES, "epsilon": 1.0} | arguments
    with pytest.raises(tacit.ConfigError, match=message):
        tacit.tune(ratings_for(2), given.pop("candidates"), **given)


def test_a_candidate_that_cannot_be_private_is_refused_before_any_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("ratings were read")

    monkeypatch.setattr(tacit.ThreadEngine, "take", never)
    with pytest.raises(tacit.ConfigError, match="not private"):
        tacit.tune(ratings_for(2), (GOOD, tacit.ApproximateFrankWolfe()), epsilon=1.0)


def test_candidates_of_all_kinds_can_be_compared(many: tacit.Ratings) -> None:
    kinds = (
        tacit.FrankWolfe(rounds=3, eigen="oja"),
        tacit.FrankWolfe(rounds=3, local="ridge"),
        tacit.SVD(rank=2, row_norm="private"),
        tacit.ProjectedGradient(rounds=2),
        tacit.Cleansing(rank=2, local="neighbours"),
        tacit.NoisyGradient(rank=2, rounds=2),
    )
    for relation in ("replace", "add_remove"):
        model = tacit.tune(many, kinds, epsilon=2.0, neighbours=relation)
        assert model.verify().holds, model.verify().problems
        assert np.isfinite(model.predict({})).all()


def test_describe() -> None:
    assert describe(tacit.SVD()) == "svd"
    assert describe(tacit.Cleansing(shares=(0.2, 0.5, 0.3))) == "cleansing shares=0.2,0.5,0.3"


class TestCommandLine:
    """`tacit tune`, and what `tacit fit` learned with it."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        from tacit.datasets.synthetic import synthesise

        made = synthesise("tastes", users=400, items=20, per_user=8, seed=3)
        made.train.write_csv(tmp_path / "train.csv")
        made.items.write_csv(tmp_path / "items.csv")
        return tmp_path

    @pytest.fixture
    def run(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
    ) -> Any:
        def call(verb: str, *words: object) -> tuple[int, str, str]:
            common = [verb, folder / "train.csv", "-o", folder / "m.tacit", "--epsilon", 1]
            common += ["--rating-range", 0.5, 5, *words]
            monkeypatch.setattr(sys, "argv", ["tacit", *map(str, common)])
            with pytest.raises(SystemExit) as left:
                main()
            out, err = capsys.readouterr()
            return int(left.value.code or 0), out, err

        return call

    def test_candidates_as_words(self, run: Any, folder: Path) -> None:
        words = ("--candidate", "frank-wolfe rounds=3", "--candidate", "svd rank=2 eigen=power")
        code, out, err = run("tune", *words, "--items", folder / "items.csv", "--top-items", 15)
        assert code == 0, err
        assert "chosen: candidate " in out.splitlines()[-1]
        model = tacit.load(folder / "m.tacit")
        assert len(model.catalogue) == 15
        assert model.verify().holds

    def test_candidates_in_a_file_and_json(self, run: Any, folder: Path) -> None:
        (folder / "c.toml").write_text(
            '[[candidate]]\nalgorithm = "frank-wolfe"\nrounds = 3\nshift = false\n'
            '[[candidate]]\nalgorithm = "cleansing"\nshares = [0.2, 0.5, 0.3]\nclip = "none"\n'
        )
        code, out, err = run("tune", "--candidates", folder / "c.toml", "--share", 0.4, "--json")
        assert code == 0, err
        public = json.loads(out)["public"]
        assert public["candidate 1"].startswith("frank-wolfe rounds=3 shift=False")
        assert public["candidate 2"].startswith("cleansing shares=0.2,0.5,0.3")
        assert public["share of the search"].startswith("0.4")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "--candidate"),
            (("--candidate", "svd"), "candidates: 1"),
            (("--candidate", "rank=3", "--candidate", "svd"), "algorithm's name"),
            (("--candidate", "magic", "--candidate", "svd"), "expected one of"),
            (("--candidate", "svd color=3", "--candidate", "svd"), "no such setting"),
            (("--candidates", "missing.toml"), "missing.toml"),
        ],
    )
    def test_errors_are_one_line(self, run: Any, words: tuple[str, ...], message: str) -> None:
        code, _, err = run("tune", *words)
        assert code == 2
        assert message in err
        assert err.strip().count("\n") == 0

    def test_a_file_that_is_no_list_of_candidates(self, run: Any, folder: Path) -> None:
        for content in ("rounds = 3", "[[candidate]]\nrounds = 3\n", "= ="):
            (folder / "c.toml").write_text(content)
            code, _, err = run("tune", "--candidates", folder / "c.toml")
            assert code == 2
            assert "[[candidate]]" in err

    def test_fit_takes_top_items_and_is_strict_if_asked(self, run: Any, folder: Path) -> None:
        words = ("--top-items", 15, "--items", folder / "items.csv", "--strict", "--json")
        code, out, err = run("fit", *words)
        assert code == 0, err
        assert "the 15 most rated by the release 'item counts'" in out
        code, _, err = run("fit", "--strict")
        assert code == 2
        assert "catalogue was taken from the ratings" in err
        code, _, err = run("fit", "--algorithm", "svd", "--set", "row_norm=7.31842")
        assert code == 0
        assert "note: row_norm=7.31842 looks as if" in err
