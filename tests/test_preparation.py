"""What a fit pays for before it begins: the choice of items, and the norm of rows."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tacit
import tacit.accounting.budget
from tacit.accounting.certificate import Certificate
from tacit.accounting.ledger import Ledger
from tacit.estimation.row_norms import default_row_norm, norm_edges, row_norm_of
from tacit.fitting.top_items import top_items
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.journal import Journal
from tacit.trusted.selection import restricted
from tests.conftest import named, ratings_for

CONFIG = tacit.FrankWolfe(rounds=4, item_means=0.2)
PAID = replace(CONFIG, row_norm="private")
BOUND = tacit.accounting.budget.Sensitivity(add_remove=1.0, replace=2.0)


def popular(users: int = 900, items: int = 12) -> tacit.Ratings:
    """Item j is rated with a chance that falls with j; ids are not in that order."""
    rng = np.random.default_rng(4)
    rated = rng.random((users, items)) < np.linspace(0.9, 0.1, items)
    rows, columns = np.nonzero(rated)
    names = [f"film-{(7 * item) % items:02d}" for item in range(items)]
    catalogue = tacit.Catalogue(sorted(names), [f"Title {n}" for n in sorted(names)], public=True)
    return tacit.Ratings.from_arrays(
        rows, [names[c] for c in columns], rng.integers(1, 6, rows.size),
        rating_range=(1, 5), catalogue=catalogue,
    )  # fmt: skip


MOST_RATED = sorted(f"film-{(7 * item) % 12:02d}" for item in range(5))


def published(model: tacit.Model) -> dict[str, np.ndarray]:
    return model.rule.parts()[0]


def releases(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("release-*"))}


class TestTopItems:
    """`fit(..., top_items=n)`."""

    @pytest.mark.parametrize("relation", ["replace", "add_remove"])
    def test_the_most_rated_items_are_the_catalogue(self, relation: str) -> None:
        ratings = popular()
        model = tacit.fit(
            ratings, CONFIG, epsilon=20.0, neighbours=relation, top_items=5, noise_seed_unsafe=1
        )
        assert model.catalogue.ids.to_list() == MOST_RATED
        assert model.catalogue.title(0) == f"Title {MOST_RATED[0]}"
        assert model.catalogue.public
        assert model.predict({MOST_RATED[0]: 5.0}).shape == (5,)
        assert published(model)["directions"].shape[1] == 5

    def test_with_no_budget_the_choice_is_exact(self) -> None:
        model = tacit.fit(popular(), CONFIG, budget=None, top_items=5)
        assert model.catalogue.ids.to_list() == MOST_RATED
        assert not model.private

    def test_with_a_tiny_budget_the_choice_is_noise(self) -> None:
        """The twin: the choice comes from the noisy counts, not from the ratings."""
        chosen = {
            tuple(tacit.fit(popular(), CONFIG, epsilon=0.01, top_items=5).catalogue.ids)
            for _ in range(5)
        }
        assert len(chosen) > 1

    @pytest.mark.parametrize("relation", ["replace", "add_remove"])
    @pytest.mark.parametrize("accounting", ["exact", "paper"])
    def test_the_whole_budget_is_spent_and_no_more(self, relation: str, accounting: str) -> None:
        budget = tacit.PrivacyBudget(1.0, neighbours=relation, accounting=accounting)
        model = tacit.fit(popular(), CONFIG, budget=budget, top_items=5)
        names = [entry.name for entry in model.certificate.releases]
        assert names[0] == "item counts"
        assert model.verify().holds
        assert model.certificate.exact_epsilon <= 1.0
        if accounting == "exact":
            assert model.certificate.exact_epsilon == pytest.approx(1.0, rel=1e-6)
            cost = model.certificate.releases[0].mu ** 2 / budget.mu**2
            assert cost == pytest.approx(0.05)

    def test_the_certificate_says_where_the_catalogue_comes_from(self) -> None:
        model = tacit.fit(popular(), CONFIG, epsilon=1.0, top_items=5)
        line = model.certificate.public["catalogue"]
        assert line.startswith("the 5 most rated by the release 'item counts'")
        assert "12 items, a public list" in line
        assert model.verify().catalogue == line

    def test_a_choice_from_a_list_that_is_not_public_stays_an_assumption(self) -> None:
        ratings = tacit.Ratings.from_arrays(
            [1, 1, 2, 2, 3], [7, 8, 7, 9, 7], [1, 2, 3, 4, 5], rating_range=(1, 5)
        )
        model = tacit.fit(ratings, epsilon=1.0, top_items=2)
        assert "ASSUMED" in model.certificate.public["catalogue"]
        assert not model.catalogue.public

    def test_a_choice_whose_release_is_not_listed_does_not_verify(self) -> None:
        model = tacit.fit(popular(), CONFIG, epsilon=1.0, top_items=5)
        forged = model.certificate.to_json()
        forged["releases"] = forged["releases"][1:]
        found = Certificate.from_json(json.loads(json.dumps(forged))).verify()
        assert not found.holds
        assert "catalogue comes from a release 'item counts'" in found.problems[0]

    @pytest.mark.parametrize("many", [12, 13, 10_000])
    def test_as_many_as_there_are_is_no_choice_and_costs_nothing(self, many: int) -> None:
        ratings, options = popular(), {"epsilon": 1.0, "noise_seed_unsafe": 3}
        plain = tacit.fit(ratings, CONFIG, **options)
        model = tacit.fit(ratings, CONFIG, top_items=many, **options)
        assert np.array_equal(published(plain)["directions"], published(model)["directions"])
        assert plain.certificate.to_json() == model.certificate.to_json()

    @pytest.mark.parametrize("wrong", [0, -1, 2.0, "many", True])
    def test_a_wrong_number_is_named(self, wrong: Any) -> None:
        with pytest.raises(tacit.ConfigError, match=r"^top_items="):
            tacit.fit(popular(), CONFIG, epsilon=1.0, top_items=wrong)

    def test_fitting_the_choice_is_fitting_the_restricted_ratings(self) -> None:
        """Nothing of the other items' ratings is left when rows are bounded."""
        ratings = popular()
        model = tacit.fit(ratings, CONFIG, budget=None, top_items=5)
        catalogue = tacit.Catalogue(MOST_RATED, public=True)
        frame = pl.DataFrame(
            {
                "user": np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr)),
                "item": ratings.catalogue.ids.gather(ratings.items.astype(np.int64)),
                "rating": ratings.values,
            }
        )
        asked = {"catalogue": catalogue, "unknown_items": "drop"}
        same = tacit.Ratings.from_frame(frame, rating_range=(1, 5), **asked)
        by_hand = tacit.fit(same, CONFIG, budget=None)
        for name, array in published(by_hand).items():
            assert np.array_equal(array, published(model)[name]), name

    def test_everyone_keeps_her_row(self) -> None:
        few = restricted(popular(), np.array([3]))
        assert few.n_users == popular().n_users
        assert np.diff(few.indptr).max() == 1
        assert np.diff(few.indptr).min() == 0

    def test_the_choice_breaks_ties_by_place(self) -> None:
        assert top_items(np.array([2.0, 2.0, 5.0, 2.0]), 3).tolist() == [0, 1, 2]

    def test_other_numbers_of_items_are_other_fits(self, tmp_path: Path) -> None:
        tacit.fit(popular(), CONFIG, epsilon=1.0, top_items=5, checkpoint=tmp_path)
        for other in (None, 6):
            with pytest.raises(tacit.CheckpointError, match="preparation"):
                tacit.fit(popular(), CONFIG, epsilon=1.0, top_items=other, checkpoint=tmp_path)


class Crash(BaseException):
    """Nothing in the package catches it."""


@pytest.mark.parametrize("survived", range(6))
def test_going_on_after_a_crash_is_bit_identical(
    survived: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a paid catalogue and a paid norm: six releases, and a crash after any of them."""
    ratings = popular()
    options: dict[str, Any] = {"epsilon": 3.0, "top_items": 5, "noise_seed_unsafe": 4}
    whole = tacit.fit(ratings, PAID, checkpoint=tmp_path / "whole", **options)
    assert len(whole.certificate.releases) == 6
    write = Journal.write

    def crashing(self: Journal, number: int, *rest: Any) -> None:
        if number > survived:
            raise Crash
        write(self, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", crashing)
        with pytest.raises(Crash):
            tacit.fit(ratings, PAID, checkpoint=tmp_path / "cut", **options)
    resumed = tacit.fit(ratings, PAID, checkpoint=tmp_path / "cut", **options)
    assert releases(tmp_path / "cut") == releases(tmp_path / "whole")
    assert resumed.catalogue == whole.catalogue
    assert resumed.certificate.to_json() == whole.certificate.to_json()
    for name, array in published(whole).items():
        assert np.array_equal(array, published(resumed)[name])


def test_what_was_released_is_not_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tacit.fit(popular(), PAID, epsilon=1.0, top_items=5, checkpoint=tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(mechanism_module, "floor_normals", never)
    again = tacit.fit(popular(), PAID, epsilon=1.0, top_items=5, checkpoint=tmp_path)
    assert np.array_equal(published(first)["directions"], published(again)["directions"])


class TestPrivateNorm:
    """`row_norm="private"`."""

    def test_it_is_the_quantile_of_the_norms(self) -> None:
        """Nine tenths of the rows, and no more than 12 % above them: that is how bins lie."""
        ratings = ratings_for(0, users=2000)
        config = tacit.FrankWolfe(rounds=2, row_norm="private")
        found = tacit.fit(ratings, config, budget=None).rule.parts()[1]["row_norm"]
        norms = []
        for start, stop in zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True):
            row = ratings.values[start:stop].astype(float)
            norms.append(np.linalg.norm(row - row.mean()))
        exact = float(np.quantile(norms, 0.9))
        assert exact <= found * (1 + 1e-9)
        assert found <= exact * 2 ** (1 / 6) * 1.001

    def test_with_noise_it_comes_near_with_many_users_and_fades_with_few(self) -> None:
        config = tacit.FrankWolfe(rounds=2, row_norm="private")
        rule = default_row_norm(60, (0.5, 5.0))

        def norm_of(users: int, epsilon: float) -> float:
            ratings = ratings_for(0, users, items=60)
            model = tacit.fit(ratings, config, epsilon=epsilon, noise_seed_unsafe=1)
            return float(model.rule.parts()[1]["row_norm"])

        many = ratings_for(0, 2000, items=60)
        exact = tacit.fit(many, config, budget=None).rule.parts()[1]["row_norm"]
        assert norm_of(2000, 30.0) == pytest.approx(exact, rel=0.15)
        assert norm_of(80, 0.05) == pytest.approx(rule, rel=0.02)
        assert abs(math.log(exact / rule)) > 0.2

    def test_the_noise_of_what_follows_is_scaled_and_its_cost_is_not(self) -> None:
        ratings = ratings_for(0, users=2000)
        plain = tacit.fit(ratings, replace(CONFIG, row_norm=None), epsilon=5.0).certificate
        paid = tacit.fit(ratings, PAID, epsilon=5.0)
        norm = paid.rule.parts()[1]["row_norm"]
        first = next(e for e in paid.certificate.releases if e.name == "covariance 1")
        assert first.sensitivity == pytest.approx(math.sqrt(2) * (2 * norm) ** 2)
        other = next(e for e in plain.releases if e.name == "covariance 1")
        assert first.mu**2 / other.mu**2 == pytest.approx(0.75 / 0.8)
        names = [entry.name for entry in paid.certificate.releases]
        assert names[:2] == ["item sums", "row norms"]
        line = paid.certificate.public["frank-wolfe row_norm"]
        assert line == "paid for by the release 'row norms'"

    def test_edges_and_fading(self) -> None:
        edges = norm_edges(80, (1.0, 5.0))
        assert edges[-1] == pytest.approx(4 * math.sqrt(80))
        assert np.allclose(edges[1:] / edges[:-1], 2 ** (1 / 6))
        counts = np.zeros(48)
        counts[20] = 1000.0
        rule = default_row_norm(80, (1.0, 5.0))
        assert row_norm_of(counts, 0.0, edges, rule) == edges[20]
        found = [row_norm_of(counts, sd, edges, rule) for sd in (0.0, 5.0, 20.0, 100.0, 1e9)]
        assert found == sorted(found)
        assert found[-1] == pytest.approx(rule)
        assert row_norm_of(-counts, 1.0, edges, rule) == rule


class TestOpenReservations:
    """What the ledger leaves open, and what it still refuses."""

    def test_a_scaled_release_has_scaled_noise_at_the_same_cost(self) -> None:
        ledger = Ledger(tacit.PrivacyBudget(1.0))
        planned = ledger.reserve(named("r"), BOUND, 0.5, scaled=True)
        other = tacit.accounting.budget.Sensitivity(add_remove=3.0, replace=6.0)
        assert ledger.planned(named("r"), other).noise_sd == pytest.approx(3 * planned.noise_sd)
        spent = ledger.spend(named("r"), other)
        assert spent.sensitivity == 6.0
        assert spent.mu == pytest.approx(planned.mu)
        with pytest.raises(tacit.PrivacyError, match="spent already"):
            ledger.spend(named("r"), other)

    @pytest.mark.parametrize("bad", [0.0, math.inf, math.nan])
    def test_an_impossible_sensitivity_is_refused(self, bad: float) -> None:
        ledger = Ledger(tacit.PrivacyBudget(1.0))
        ledger.reserve(named("r"), BOUND, 0.5, scaled=True)
        with pytest.raises(tacit.PrivacyError, match="sensitivity"):
            ledger.spend(
                named("r"), tacit.accounting.budget.Sensitivity(add_remove=bad, replace=bad)
            )

    def test_a_scaled_release_of_another_shape_cannot_cost_more(self) -> None:
        """The paper's formula prices add_remove; a wider ratio to replace would be unpaid."""
        ledger = Ledger(tacit.PrivacyBudget(1.0, accounting="paper"))
        ledger.reserve(named("r"), tacit.accounting.budget.Sensitivity(1.0, 1.0), 0.1, scaled=True)
        with pytest.raises(tacit.PrivacyError, match="not reserved"):
            ledger.spend(named("r"), tacit.accounting.budget.Sensitivity(1.0, 1.5))

    def test_parts_are_set_aside_as_a_whole(self) -> None:
        ledger = Ledger(tacit.PrivacyBudget(1.0))
        whole = ledger.left
        part = ledger.part(0.3, candidate=1)
        assert ledger.left == pytest.approx(0.7 * whole)
        part.reserve(named("r"), BOUND, 0.5)
        assert part.left == pytest.approx(0.15 * whole)
        with pytest.raises(tacit.BudgetExceeded, match="'candidate 1: s'"):
            part.reserve(named("s"), BOUND, 0.6)
        with pytest.raises(tacit.BudgetExceeded):
            ledger.part(0.8)
        ledger.reserve(named("r"), BOUND, 0.7)
        assert [entry.name for entry in ledger.reserved] == ["candidate 1: r", "r"]
        with pytest.raises(tacit.ConfigError, match="'candidate 1: r'"):
            part.reserve(named("r"), BOUND, 0.1)

    def test_all_parts_write_in_one_book(self) -> None:
        ledger = Ledger(tacit.PrivacyBudget(1.0))
        one, two = ledger.part(0.5, candidate=1), ledger.part(0.5, candidate=2)
        for part in (one, two):
            part.reserve(named("r"), BOUND, 1.0)
            part.spend(named("r"), BOUND)
        assert [entry.name for entry in ledger.entries] == ["candidate 1: r", "candidate 2: r"]
        with pytest.raises(tacit.PrivacyError, match="not reserved"):
            ledger.spend(named("r"), BOUND)
        total = math.sqrt(sum(entry.mu**2 for entry in ledger.entries))
        assert tacit.accounting.budget.epsilon_of(total, 1e-6) == pytest.approx(1.0, rel=1e-8)

    @pytest.mark.parametrize("share", [0.0, -1.0, 1.5, math.nan])
    def test_impossible_parts(self, share: float) -> None:
        with pytest.raises(tacit.ConfigError, match="share"):
            Ledger(tacit.PrivacyBudget(1.0)).part(share)
