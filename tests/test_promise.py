"""The words of a promise fit its numbers: percentages, grades, and what is not called private."""

import json
import math
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import tacit
from tacit.accounting.budget import epsilon_of, mu_of
from tacit.accounting.certificate import IDEALISED, Certificate
from tacit.accounting.ledger import Entry
from tacit.accounting.promise import (
    Grade,
    grade_of,
    percent,
    promise,
    recomputed,
    rounded_down,
    rounded_up,
    two_lists,
    weakness,
)
from tacit.cli import main
from tacit.reporting.card import model_card
from tacit.reporting.html import write_report
from tests.conftest import named, ratings_for
from tests.test_model_file import rewritten

RELATIONS = ("replace", "add_remove")
OLD = Path(__file__).parent / "old_models"


def budget_of(epsilon: float, relation: str = "replace", delta: float = 1e-6) -> Any:
    return tacit.PrivacyBudget(epsilon, delta, neighbours=relation)  # type: ignore[arg-type]


def text_of(epsilon: float, relation: str = "replace", delta: float = 1e-6) -> str:
    budget = budget_of(epsilon, relation, delta)
    return " ".join(promise(budget, mu_of(epsilon, delta)))


def certificate_of(epsilon: float, relation: str = "replace", delta: float = 1e-6) -> Certificate:
    """A certificate of one release that spends the whole budget."""
    entry = Entry(named("a sum"), 1.0, 1.0 / mu_of(epsilon, delta))
    return Certificate(budget_of(epsilon, relation, delta), (entry,), {})


def exact_percent(mu: float) -> Any:
    with mpmath.workdps(60):
        return 100 * mpmath.ncdf(mpmath.mpf(mu) / 2)


class TestPercentages:
    """Bounds are rounded up, and are not made to look like a coin toss or like certainty."""

    def test_examples(self) -> None:
        assert percent(mu_of(1.0, 1e-6)) == "54.8"  # 54.7106
        assert percent(2 * mu_of(1.0, 1e-6)) == "59.4"  # 59.3557
        assert percent(mu_of(0.01, 1e-9)) == "50.044"  # 50.0435
        assert percent(mu_of(20.0, 1e-6)) == "94.8"  # 94.7134
        assert percent(0.0) == "50"

    def test_never_below_the_truth_and_never_far_above(self) -> None:
        with mpmath.workdps(60):
            for mu in np.geomspace(1e-15, 6.0, 300):
                true = exact_percent(float(mu))
                said = mpmath.mpf(percent(float(mu)))
                assert said >= true > 50
                assert said - true <= 0.1
                assert said - 50 <= 1.11 * (true - 50)

    @pytest.mark.parametrize("above", [4.8, 0.044, 31.7])
    def test_not_below_the_truth_next_to_a_number_that_is_printed(self, above: float) -> None:
        """Where 50 + above is passed by less than floating point can be trusted with."""
        edge = float(mpmath.sqrt(8) * mpmath.erfinv(mpmath.mpf(above) / 50))
        with mpmath.workdps(60):
            for part in (-1e-12, -1e-15, 0.0, 2e-16, 1e-15, 1e-13, 5e-13):
                mu = edge * (1 + part)
                assert mpmath.mpf(percent(mu)) >= exact_percent(mu)

    def test_three_digits_would_be_below_the_truth(self) -> None:
        """The twin: how percentages were written before."""
        mu = mu_of(1.0, 1e-6)
        assert mpmath.mpf(f"{float(exact_percent(mu)):.3g}") < exact_percent(mu)
        assert f"{float(exact_percent(mu_of(0.01, 1e-9))):.3g}" == "50"

    @pytest.mark.parametrize("mu", [6.6, 10.0, 1e3, math.inf])
    def test_what_is_nearly_certain_is_not_written_as_a_limit(self, mu: float) -> None:
        assert percent(mu) == "more than 99.9"


class TestGrades:
    """A grade follows the weakest of epsilon, delta and an attacker's success."""

    @pytest.mark.parametrize(
        ("epsilon", "relation", "delta", "grade"),
        [
            (1.0, "replace", 1e-6, "strong"),
            (1.0, "add_remove", 1e-6, "strong"),
            (1.01, "replace", 1e-6, "moderate"),
            (1.0, "replace", 1e-5, "strong"),
            (1.0, "add_remove", 1e-5, "moderate"),  # two lists: 60.6 %
            (1.0, "replace", 1e-4, "moderate"),  # delta
            (1.0, "replace", 1e-3, "moderate"),
            (0.1, "replace", 1e-2, "weak"),
            (5.0, "replace", 1e-6, "moderate"),
            (3.0, "add_remove", 1e-6, "moderate"),
            (5.0, "add_remove", 1e-6, "weak"),  # two lists: 84.7 %
            (5.1, "replace", 1e-6, "weak"),
            (1.0, "replace", 2e-3, "weak"),  # delta
            (20.0, "replace", 1e-6, "weak"),
            (20.0, "replace", 1e-4, "none"),  # two lists: 95.9 %
            (10.0, "add_remove", 1e-6, "none"),  # two lists: 96.8 %
            (20.1, "replace", 1e-6, "none"),
            (0.1, "replace", 0.011, "none"),  # delta
            (1000.0, "replace", 1e-6, "none"),
        ],
    )
    def test_examples_of_grades(
        self, epsilon: float, relation: str, delta: float, grade: str
    ) -> None:
        assert grade_of(budget_of(epsilon, relation, delta), mu_of(epsilon, delta)) == grade

    @pytest.mark.parametrize("relation", RELATIONS)
    def test_it_never_gets_better_with_a_larger_epsilon_or_delta(self, relation: str) -> None:
        order = list(Grade)
        epsilons, deltas = (0.01, 0.5, 1, 2, 5, 8, 20, 40), (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)
        places = np.array(
            [
                [order.index(grade_of(budget_of(e, relation, d), mu_of(e, d))) for d in deltas]
                for e in epsilons
            ]
        )
        assert (np.diff(places, axis=0) >= 0).all()
        assert (np.diff(places, axis=1) >= 0).all()

    @pytest.mark.parametrize(
        ("epsilon", "word"), [(1.0, "strong"), (4.0, "moderate"), (8.0, "weak")]
    )
    def test_the_sentences_follow_it(self, epsilon: float, word: str) -> None:
        text = text_of(epsilon)
        assert f"This is a {word} promise" in text
        assert ("barely depends" in text) == (word == "strong")

    def test_the_certificate_and_its_json_have_it(self) -> None:
        for epsilon, grade in ((1.0, "strong"), (4.0, "moderate"), (8.0, "weak"), (50.0, "none")):
            certificate = certificate_of(epsilon)
            assert certificate.grade == certificate.to_json()["grade"] == grade

    def test_what_makes_no_promise_has_none(self) -> None:
        model = tacit.fit(ratings_for(0), epsilon=1.0, noise_seed_unsafe=1)
        assert model.certificate.grade is Grade.NONE

    def test_numbers_are_not_rounded_to_better_ones(self) -> None:
        assert "(1.0000004, 1e-06)-joint" in text_of(1.0000004)
        assert "(1, 1e-06)-joint" in text_of(1.0)


class TestTwoLists:
    """Under add_remove two lists are two changes apart, whatever they differ in."""

    def test_replace_says_one_number(self) -> None:
        text = text_of(1.0)
        assert "two possible rating lists of this person" in text
        assert "at most 54.8 % of the time (50 % is a coin toss)" in text
        assert "single rating" in text
        assert text.count(" % ") == 2  # 54.8 and the coin toss

    def test_add_remove_says_two(self) -> None:
        text = text_of(1.0, "add_remove")
        assert "one certain rating list or none at all" in text
        assert "is right at most 54.8 % of the time" in text
        assert "differ in a single rating or in all of them, the limit is 59.4 %" in text
        assert "same limit" not in text

    def test_the_cost_is_doubled_under_add_remove_alone(self) -> None:
        assert two_lists(budget_of(1.0).neighbours, 0.3) == 0.3
        assert two_lists(budget_of(1.0, "add_remove").neighbours, 0.3) == 0.6


class TestNotPrivate:
    """What promises nothing to speak of is not called private."""

    @pytest.mark.parametrize(
        ("epsilon", "relation", "delta", "why"),
        [
            (1000.0, "replace", 1e-6, "epsilon 1000 is above 20"),
            (10.0, "add_remove", 1e-6, "96.8 %, is above 95 %"),
            (1.0, "replace", 0.02, "delta 0.02 is above 0.01"),
        ],
    )
    def test_it_says_so_and_why(
        self, epsilon: float, relation: str, delta: float, why: str
    ) -> None:
        certificate = certificate_of(epsilon, relation, delta)
        assert not certificate.private
        assert not certificate.verify().holds
        assert certificate.text().startswith("NOT PRIVATE")
        assert why in certificate.text()
        assert why in " ".join(certificate.verify().problems)
        assert "joint differential privacy" not in " ".join(certificate.promise())

    def test_a_weak_one_is_still_one(self) -> None:
        """The twin."""
        certificate = certificate_of(19.0)
        assert certificate.private
        assert certificate.verify().holds

    def test_releases_that_cost_too_much_are_graded_by_their_cost(self) -> None:
        entry = Entry(named("a sum"), 1.0, 0.1)  # mu = 10, whatever is claimed
        assert Certificate(budget_of(1.0), (entry,), {}).grade is Grade.NONE

    def test_it_survives_json_once(self) -> None:
        certificate = certificate_of(1000.0)
        again = Certificate.from_json(json.loads(json.dumps(certificate.to_json())))
        assert again.to_json() == certificate.to_json()
        assert len(again.reasons_not_private) == 1

    def test_a_model_file_of_before_is_read_and_says_so(self, tmp_path: Path) -> None:
        """Files of before have no grade, and call any epsilon private."""
        path = tmp_path / "m.tacit"
        with pytest.warns(tacit.TacitWarning, match="NOT PRIVATE"):
            tacit.fit(ratings_for(0), epsilon=50.0).save(path)

        def as_before(facts: dict[str, dict[str, object]]) -> None:
            facts["certificate"] |= {"private": True, "not_private_because": []}
            del facts["certificate"]["grade"]

        rewritten(path, as_before)
        model = tacit.load(path)
        assert not model.private
        assert "epsilon 50 is above 20" in " ".join(model.verify().problems)
        assert epsilon_of(model.certificate.mu, 1e-6) == pytest.approx(50.0)


class TestWarnings:
    """A fit says before it begins that its promise is weak."""

    @pytest.mark.parametrize(
        ("budget", "said"),
        [
            ({"epsilon": 8.0}, "epsilon=8, delta=1e-06, replace: the promise is weak"),
            ({"epsilon": 4.0, "neighbours": "add_remove"}, "79.9 %, is above 75 %"),
            ({"epsilon": 1.0, "delta": 2e-3, "neighbours": "add_remove"}, "delta 0.002 is above"),
            ({"epsilon": 40.0}, "the model will say NOT PRIVATE"),
        ],
    )
    def test_fit_and_tune_warn(self, budget: dict[str, Any], said: str) -> None:
        ratings = ratings_for(0)
        with pytest.warns(tacit.TacitWarning, match=said) as told:
            tacit.fit(ratings, tacit.SVD(), **budget)
        assert told[0].filename == __file__
        with pytest.warns(tacit.TacitWarning, match=said):
            tacit.tune(ratings, [tacit.SVD(rank=1), tacit.SVD(rank=2)], **budget)

    def test_the_papers_calibration_may_be_worth_more(self) -> None:
        """It says NOT PRIVATE of the whole budget, of which this calibration spends a part."""
        budget = tacit.PrivacyBudget(10.0, neighbours="add_remove", accounting="paper")  # type: ignore[arg-type]
        with pytest.warns(tacit.TacitWarning, match="the model may say NOT PRIVATE"):
            model = tacit.fit(ratings_for(0), tacit.SVD(), budget=budget)
        assert model.certificate.grade is Grade.WEAK

    def test_they_do_not_for_a_better_one_or_for_none(self) -> None:
        ratings = ratings_for(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tacit.fit(ratings, tacit.SVD(), epsilon=5.0)
            tacit.fit(ratings, tacit.SVD(), epsilon=1.0, delta=1e-3)
            tacit.fit(ratings, tacit.SVD(), budget=None)
            tacit.fit(ratings, tacit.SVD(), epsilon=50.0, noise_seed_unsafe=1)

    def test_a_better_promise_has_no_weakness(self) -> None:
        assert weakness(budget_of(5.0), mu_of(5.0, 1e-6)) == ""


def test_a_refit_counts_earlier_refits_and_says_so() -> None:
    budget = budget_of(1.0)
    alone, refit = promise(budget, budget.mu), promise(budget, budget.mu, refit=True)
    (others,) = set(alone) - set(refit)
    (but_earlier,) = set(refit) - set(alone)
    assert others == "Not covered: other models fitted to the same ratings; their costs add up."
    assert "the earlier refits that it uses, which are counted in epsilon" in but_earlier


class TestNumbersThatArePrinted:
    """A promise is printed to its last digit, and a cost is never printed as less than it is."""

    @pytest.mark.parametrize("digits", [3, 4, 6])
    def test_costs_are_rounded_up_and_not_far(self, digits: int) -> None:
        for cost in np.geomspace(1e-9, 149.0, 400):
            said = float(rounded_up(float(cost), digits))
            assert cost <= said <= cost * (1 + 10.0 ** (1 - digits)), cost

    def test_what_has_few_digits_stays_as_it_is(self) -> None:
        assert [rounded_up(cost) for cost in (0.0, 1.0, 0.5, 4.25, 1e-5)] == [
            "0", "1", "0.5", "4.25", "1e-05",
        ]  # fmt: skip
        assert rounded_up(math.inf) == "inf"

    def test_there_are_as_many_digits_as_asked_for(self) -> None:
        third = 1 / 3
        assert [rounded_up(third), rounded_up(10 * third), rounded_up(third / 1e5)] == [
            "0.333334", "3.33334", "3.33334e-06",
        ]  # fmt: skip
        assert [rounded_up(third, digits) for digits in (2, 4)] == ["0.34", "0.3334"]

    def test_a_certificate_lists_costs_with_four_digits(self) -> None:
        entry = Entry(named("a sum"), 1.0, 3.0)
        text = Certificate(budget_of(2.0), (entry,), {}).text()
        assert "noise sd 3, mu 0.3334\n" in text
        assert "mu = 0.333334, which is epsilon = " in text

    @pytest.mark.parametrize("digits", [4, 6])
    def test_noise_is_rounded_down_and_not_far(self, digits: int) -> None:
        for sd in [*np.geomspace(1e-9, 1e9, 400), 9.99996, 99999.96, 10.0, 1e-5]:
            said = float(rounded_down(float(sd), digits))
            assert sd * (1 - 10.0 ** (1 - digits)) <= said <= sd, sd
        assert [rounded_down(sd) for sd in (0.0, math.inf, 4.25)] == ["0", "inf", "4.25"]
        assert rounded_down(1.23456789) == "1.23456"

    def test_an_epsilon_within_its_claim_is_not_printed_beyond_it(self) -> None:
        """1.0000004 was claimed, and verify said: holds, the releases give epsilon 1.00001."""
        for claimed in (1.0000004, 0.1 + 0.2, 1 / 3, 1e-9, 4.0, 8.123456789):
            for found in (claimed, np.nextafter(claimed, 0), claimed * (1 - 1e-11), claimed / 2):
                assert found <= float(recomputed(found, claimed)) <= claimed
        assert recomputed(math.pi, 1.0) == rounded_up(math.pi) == "3.1416"
        assert recomputed(math.inf, 1.0) == "inf"
        assert recomputed(0.12345111, 1.0) == "0.123452", "six digits, where they are enough"
        text = certificate_of(1.0000004).text()
        assert "which is epsilon = 1.0000004 at this delta" in text
        assert "1.00001" not in text

    def test_a_certificate_states_bounds_and_noise_to_the_safe_side(self) -> None:
        model = tacit.load(OLD / "moments.tacit")
        entry = Entry(named("a sum"), math.sqrt(2), 11.56109999)
        certificate = Certificate(budget_of(2.0), (entry,), {})
        assert "sensitivity 1.41422, noise sd 11.561," in certificate.text()
        card = model_card(replace(model, certificate=certificate, releases=1), "A model")
        assert "| 1.41422 | 11.561 |" in card

    def test_info_shows_a_promise_to_its_last_digit(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = replace(tacit.load(OLD / "moments.tacit"), certificate=certificate_of(1.0000004))
        for certificate, said in ((certificate_of(1.0000004), "1.0000004"), (None, "none")):
            given = certificate or Certificate(None, (), {}, "exact", ("a reason",))
            path = tmp_path / f"{said}.tacit"
            replace(model, certificate=given).save(path)
            monkeypatch.setattr(sys, "argv", ["tacit", "info", str(path)])
            with pytest.raises(SystemExit):
                main()
            lines = capsys.readouterr().out.splitlines()
            assert next(line.split() for line in lines if line.startswith("epsilon"))[-1] == said

    def test_no_page_says_a_smaller_epsilon(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """1.0004 was "1" on the report, and 1.0000004 in verify, the card and the book."""
        for epsilon in (1.0004, 1.0000004):
            model = tacit.fit(ratings_for(0), tacit.SVD(rank=1), epsilon=epsilon, delta=1e-4)
            path = tmp_path / f"{epsilon}.tacit"
            model.save(path)
            monkeypatch.setattr(sys, "argv", ["tacit", "verify", str(path)])
            with pytest.raises(SystemExit):
                main()
            said = capsys.readouterr().out
            assert f"{epsilon!r} is claimed" in said
            assert f"epsilon={epsilon!r}" in repr(model)
            assert f"| {epsilon!r} |" in model_card(model, "A model")
            page = tmp_path / f"{epsilon}.html"
            write_report(page, model=model, accuracies=[], person={}, recommendations=[])
            assert f"<b>{epsilon!r}</b>" in page.read_text()
            beyond = rounded_up(epsilon) if epsilon < 1.0001 else "1.00041"
            assert not any(beyond in text for text in (said, page.read_text()))


class TestNoiseThatIsNotWhatItShouldBe:
    """A certificate says of noise from a seed, or in floating point, what it is."""

    def test_a_seed_is_not_the_systems_generator(self) -> None:
        """Beneath NOT PRIVATE stood: from the operating system's cryptographic generator."""
        model = tacit.fit(ratings_for(0), tacit.SVD(rank=1), epsilon=1.0, noise_seed_unsafe=1)
        text = model.certificate.text()
        assert "operating system" not in text
        assert "an exact Gaussian on their grid, from a seed" in text
        assert "operating system's cryptographic generator" in certificate_of(1.0).text()

    def test_idealised_noise_is_not_private_whatever_a_file_says(self) -> None:
        """A file that was edited to say "private" beside "idealised" was private, and verified."""
        content = certificate_of(1.0).to_json()
        assert Certificate.from_json(content).verify().holds
        edited = Certificate.from_json({**content, "numerics": "idealised"})
        assert not edited.private
        assert edited.text().startswith("NOT PRIVATE")
        assert edited.reasons_not_private == (IDEALISED,)
        assert not edited.verify().holds
        again = Certificate.from_json(edited.to_json())
        assert again.to_json() == edited.to_json()
