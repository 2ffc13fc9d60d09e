"""Reconstruction: all is read where there is no noise, and no more than is allowed with it.

Seeds are fixed. A finding's bound (Chernoff's, over people) is wrong with a probability of 1 %.
"""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import tacit
from tacit.audit import reconstruction as module
from tacit.audit.population import Law, law_of, stream
from tacit.audit.reconstruction import Reading, read_limit, read_rows, reconstruction
from tacit.audit.target import Target
from tacit.reporting import audit_figure

BUDGET = tacit.PrivacyBudget(1.0)
SUBJECT = Target(tacit.FrankWolfe(rounds=4, item_means=0.2), BUDGET)
PEOPLE = 12


@pytest.fixture(autouse=True)
def _fewer_own_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OWN_FITS", 150)


@pytest.fixture(scope="module")
def free() -> tuple[Reading, Law]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_OWN_FITS", 150)
        return read_rows(SUBJECT, None, PEOPLE, seed=1)


@pytest.mark.statistical
def test_rows_are_read_off_an_exact_model_and_guessed_off_a_private_one(
    free: tuple[Reading, Law], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, law = free
    assert reading.share > 0.9
    assert reading.correlation > 0.9
    true_rows = read_rows
    monkeypatch.setattr(module, "read_rows", lambda *given: true_rows(*given) if given[1] else free)
    control, private = reconstruction(SUBJECT, seed=1, people=PEOPLE)
    assert control.measured == reading.share
    assert private.holds
    assert private.measured < law.blind_share + 0.15
    assert private.limit == read_limit(BUDGET, law.blind_share)


@pytest.mark.statistical
def test_a_model_without_noise_that_claims_epsilon_1_is_found_out(
    free: tuple[Reading, Law],
) -> None:
    """The twin: the same reading under a promise that was not kept."""
    reading, law = free
    assert reading.interval.low > read_limit(BUDGET, law.blind_share)


def test_the_limit_is_that_of_the_best_test() -> None:
    mu = BUDGET.mu
    assert read_limit(BUDGET, 0.3) == pytest.approx(norm.cdf(norm.ppf(0.3) + mu), rel=1e-6)
    shares = np.linspace(0.05, 0.95, 50)
    limits = [read_limit(tacit.PrivacyBudget(4.0), share) for share in shares]
    assert np.all(np.diff(limits, 2) < 0)  # concave, so that it holds for averages


@pytest.mark.parametrize("levels", [2, 6, 40])
def test_the_best_guess_from_a_release_stays_below_the_limit(levels: int) -> None:
    """One entry, equally likely levels, released as far apart as mu allows; likelihood guesses."""
    budget = tacit.PrivacyBudget(8.0)
    rng = np.random.default_rng(5)
    level = rng.integers(levels, size=50_000)
    release = rng.normal(size=(level.size, levels))
    release[np.arange(level.size), level] += budget.mu / math.sqrt(2)
    right = float(np.mean(np.argmax(release, axis=1) == level))
    assert right > 1.4 / levels
    assert right < read_limit(budget, 1 / levels)
    release[np.arange(level.size), level] += 2 * budget.mu  # the twin: three times as far apart
    assert np.mean(np.argmax(release, axis=1) == level) > read_limit(budget, 1 / levels)


def test_a_law_is_drawn_as_it_says() -> None:
    law = law_of(6, 2)
    rows = law.draw(40_000, stream(0, 9))
    found = np.array([np.bincount(entries, minlength=6) for entries in rows.T]) / len(rows)
    assert np.abs(found - law.shares).max() < 5 * 0.5 / np.sqrt(len(rows))
    assert np.mean(rows == law.best_guess) == pytest.approx(law.blind_share, abs=0.01)
    assert np.exp(law.log_chances(rows[:50])).max() < 1
    few = law_of(2, 0)
    every = np.indices((6, 6)).reshape(2, -1).T
    assert np.exp(few.log_chances(every)).sum() == pytest.approx(1.0)


def test_interactions_have_one_level() -> None:
    law = law_of(6, 0, implicit=True)
    assert law.shares.shape == (6, 2)
    assert np.all((law.odds > 0) & (law.odds < 1))
    findings = reconstruction(Target(tacit.Interactions(), BUDGET), seed=1, people=4)
    assert all(finding.holds for finding in findings[1:])


def test_readings_count_what_is_right() -> None:
    reading = Reading(np.array([[1, 0, 5], [2, 3, 0]]), np.array([[1, 0, 4], [2, 1, 1]]))
    assert reading.share == pytest.approx(3 / 6)
    assert 0 <= reading.interval.low < reading.share < reading.interval.high <= 1
    assert 0 < reading.correlation < 1
    everyone = Reading(np.ones((20, 3), int), np.ones((20, 3), int))
    assert everyone.interval.low == pytest.approx(0.01 ** (1 / 20))
    assert Reading(np.zeros((2, 3), int), np.zeros((2, 3), int)).correlation == 0.0


def test_the_picture_is_drawn_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    law = law_of(6, 0)
    rows = law.draw(PEOPLE, stream(0, 9))
    monkeypatch.setattr(audit_figure, "read_rows", lambda *_: (Reading(rows, rows), law))
    for name in ("one", "two"):
        audit_figure.draw(tmp_path / name, SUBJECT, seed=1, people=PEOPLE)
    svg = (tmp_path / "one.svg").read_bytes()
    assert svg == (tmp_path / "two.svg").read_bytes()
    assert b"Without privacy" in svg
    assert (tmp_path / "one.png").stat().st_size > 10_000
    with pytest.raises(tacit.ConfigError, match=r"expected a name that ends in \.svg"):
        audit_figure.draw(tmp_path / "one.gif", SUBJECT)
    with pytest.raises(tacit.ConfigError, match="folder"):
        audit_figure.draw(tmp_path / "none" / "one.svg", SUBJECT)
