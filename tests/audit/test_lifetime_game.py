"""The distinguishing game across several refits: together they stay below the lifetime claim.

The same person is in the ratings of every week, or another one is. The guesser sees all releases of
all refits and uses their likelihood ratio; memory makes later statistics depend on earlier
releases, so the ratio is added up along the way. The bound holds with 95 % confidence; the seed of
the pair is fixed, the noise is the operating system's.
"""

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting.budget import PrivacyBudget
from tacit.audit.bounds import GuessCounts, gaussian_epsilon_at_least
from tacit.audit.exact_sums import _Worlds
from tacit.audit.game import crafted
from tacit.audit.population import synthetic_world
from tacit.audit.sensitivity import QUICK
from tacit.audit.target import Target
from tacit.fitting.fit import Options, run_plan
from tacit.fitting.refit import Refit
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.sampler import floor_normals

REFITS, TRIALS = 3, 40
LIFETIME = PrivacyBudget(4.0)
EACH = PrivacyBudget(2.15)


def test_the_refits_fit_into_the_lifetime() -> None:
    assert REFITS * EACH.mu**2 <= LIFETIME.mu**2 < 1.2 * REFITS * EACH.mu**2


METHODS = [tacit.Moments(), tacit.LatentFactors()]  # the second one remembers gradients, too


def log_ratio(
    algorithm: Any,
    worlds: tuple[tacit.Ratings, tacit.Ratings],
    present: bool,
    patch: pytest.MonkeyPatch,
) -> float:
    """Refit a few times in one world; return how much likelier all releases are with her."""
    played, other = worlds[::-1] if present else worlds
    content: dict[str, bytes] = {}
    total, release = 0.0, Mechanism.release
    for _ in range(REFITS):
        both = _Worlds(other, 1 if present else -1)

        def watched(self: Any, which: Any, statistic: Any, both: Any = both) -> Any:
            values = release(self, which, statistic)
            both.released(self._ledger.entries[-1], statistic, values.copy())
            return values

        record = SimpleNamespace(reserved=EACH.mu**2, event=(1, "0" * 64))
        book = SimpleNamespace(terms=LIFETIME)
        place: Any = SimpleNamespace(record=record, book=book, begun=content, memory=None)
        plan = Refit(algorithm, [], place)
        others: dict[str, Any] = {"checkpoint": None, "progress": None, "strict": False}
        options = Options.checked("exact", None, None, **others)
        with patch.context() as patched, warnings.catch_warnings():
            patched.setattr(Mechanism, "release", watched)
            warnings.simplefilter("ignore", tacit.TacitWarning)
            run_plan(played, plan, EACH, both, options)  # type: ignore[arg-type]
        content, total = place.memory(content), total + both.watched.log_ratio
    return total


def bound(algorithm: Any, patch: pytest.MonkeyPatch) -> float:
    """Play, and return a lower bound of epsilon at the lifetime's delta."""
    subject = Target(algorithm, EACH)
    world = synthetic_world(subject, 0)
    pair = crafted(subject, world, seed=0, effort=QUICK)
    worlds = world.ratings(pair.after), world.ratings(pair.before)
    none, hers = (
        np.array([log_ratio(algorithm, worlds, present, patch) for _ in range(TRIALS)])
        for present in (False, True)
    )
    right = GuessCounts(int(np.sum(none > 0)), TRIALS, int(np.sum(hers > 0)), TRIALS)
    return gaussian_epsilon_at_least(right, LIFETIME.delta, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("algorithm", METHODS, ids=lambda each: each.name)
def test_several_refits_stay_below_the_lifetime_claim(
    algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bound(algorithm, monkeypatch) <= LIFETIME.epsilon


@pytest.mark.statistical
@pytest.mark.parametrize("algorithm", METHODS, ids=lambda each: each.name)
def test_with_an_eighth_of_the_noise_it_falls(
    algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the book says the same, and the guesser knows better."""
    draw: Callable[..., Any] = floor_normals
    monkeypatch.setattr(
        mechanism_module, "floor_normals", lambda source, size, bits: draw(source, size, bits) >> 3
    )
    assert bound(algorithm, monkeypatch) > LIFETIME.epsilon
