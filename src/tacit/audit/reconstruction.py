"""Reconstruction: reading Ada's ratings off a published model.

The attacker knows everyone else's rows, the method, its settings, the budget, and the law that rows
are drawn from. She fits models for some hundred rows of her own, with noise of her own, and learns
from them which model to expect for each row that there is, and how far off that is. So she knows
how well each row explains the published model, and guesses every entry by all of them together.
Where there is no noise she goes on: she fits the likeliest rows until one gives the very model.

What is allowed: let p be the share of entries that the best guess gets right with no model to look
at. Whatever is computed from releases of total cost mu is right on at most Phi(Phi^-1(p) + mu)
of the entries on average. (For one entry: "the guess is her true level" is a test between her row
and another that is drawn anew, under which it passes with probability at most p; a test of a
mu-Gaussian mechanism then passes with at most Phi(Phi^-1(p) + mu) in her world; and this is
concave in p, so that it holds for averages over rows and entries.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.accounting.budget import PrivacyBudget, mu_of
from tacit.audit.finding import Finding, Interval
from tacit.audit.learned_attack import Learned
from tacit.audit.population import Insider, Law, Levels, law_of, published, stream
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.audit.target import Target
from tacit.models import Model
from tacit.models.rules import Floats

_USERS, _ITEMS = 40, 6
_OWN_FITS = 300  # that the attacker learns from
_TURNS, _TRIES = 8, 25  # of the search where there is no noise: rows that she fits in turn
_EXPLAINED = 1e-9  # the misfit of a row that gives the very same model
_MISS = 0.01  # how often a bound on the share read may be wrong
_BISECTIONS = 50


@dataclass(frozen=True)
class Reading:
    """What was read: true rows, and what the attacker took them for; people by items."""

    truth: Levels
    read: Levels

    @property
    def share(self) -> float:
        """The share of entries that are right, blank ones included."""
        return float(np.mean(self.truth == self.read))

    @property
    def interval(self) -> Interval:
        """Confidence limits of the share, 99 % each (Chernoff's bound, over people).

        For n independent shares between 0 and 1 with mean p, a mean of q > p or more has a chance
        of at most exp(-n KL(q, p)); the entries of one person may depend on each other. The upper
        limit is the lower one of the share that is wrong.
        """
        low, high = (_at_least(share, len(self.truth)) for share in (self.share, 1 - self.share))
        return Interval(low, 1 - high, 1 - _MISS)

    @property
    def correlation(self) -> float:
        """Between true and read levels of the entries that are rated in both; 0 if too few."""
        both = (self.truth > 0) & (self.read > 0)
        pairs = np.array([self.truth[both], self.read[both]], dtype=np.float64)
        if pairs.shape[1] < 3 or np.any(pairs.std(axis=1) == 0):
            return 0.0
        return float(np.asarray(np.corrcoef(pairs))[0, 1])


def _at_least(share: float, people: int) -> float:
    """Return the lower confidence limit of a mean share of so many people."""
    low, high = 0.0, share
    allowed = math.log(1 / _MISS) / people
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        within = _divergence(share, middle) < allowed
        low, high = (low, middle) if within else (middle, high)
    return low


def _divergence(found: float, chance: float) -> float:
    """Return KL(found, chance) of two coins."""
    from scipy.special import rel_entr

    return float(rel_entr(found, chance) + rel_entr(1 - found, 1 - chance))


class Reader:
    """The attacker, who has learned how models of one world depend on one row."""

    def __init__(self, insider: Insider, law: Law, seed: int, steps: Steps = NO_PROGRESS) -> None:
        """Fit models for rows of her own, drawn from the law, with noise of her own."""
        self._alone = insider.without_noise()
        self._exact = insider.budget is None
        items, self._levels = law.shares.shape
        self._rows = np.indices((self._levels,) * items).reshape(items, -1).T
        self._chances = law.log_chances(self._rows)
        own = law.draw(_OWN_FITS, stream(seed, 5))
        seen = []
        for at, row in enumerate(own):
            seen.append(published(insider.fit(row, seed + at)))
            steps.step()
        self._learn(self._one_hot(own), np.array(seen))

    def _learn(self, own: Floats, seen: Floats) -> None:
        """Learn what model to expect for a row, and from other rows how far off that is."""
        kept = len(own) * 2 // 3
        learned = Learned.from_examples(own[:kept], seen[:kept])
        off = seen[kept:] - learned.guess(own[kept:])
        self._whiten = _whitening(off)
        expected = learned.guess(self._one_hot(self._rows)) @ self._whiten
        self._expected = expected.astype(np.float32)

    def read(self, model: Model) -> Levels:
        """Return the likeliest level of every item; without noise, the row that gives the model."""
        shown = published(model) @ self._whiten
        chances = self._chances - np.sum((self._expected - shown) ** 2, axis=1) / 2
        if self._exact:
            return self._searched(shown, chances)
        weights = np.exp(chances - chances.max())
        by_level = [np.bincount(entries, weights, self._levels) for entries in self._rows.T]
        return np.asarray(np.argmax(by_level, axis=1))

    def _searched(self, shown: Floats, chances: Floats) -> Levels:
        """Fit the likeliest rows one by one; expect the others to differ as learned from the best.

        Ends with the row that gives the very model that is shown, or the one that comes closest.
        """
        tried: dict[int, float] = {}
        for _ in range(_TURNS):
            new = [at for at in np.argsort(-chances)[: len(tried) + _TRIES] if at not in tried]
            off = {int(at): self._off(int(at), shown) for at in new[:_TRIES]}
            tried |= {at: float(vector @ vector) for at, vector in off.items()}
            best = min(tried, key=lambda at: tried[at])
            if tried[best] < _EXPLAINED:
                break
            if best in off:
                shift = shown - off[best] - self._expected[best]
            chances = self._chances - np.sum((self._expected + shift - shown) ** 2, axis=1) / 2
        return np.asarray(self._rows[best])

    def _off(self, at: int, shown: Floats) -> Floats:
        """Return how far the model that a row gives without noise is from the one that is shown."""
        return np.asarray(shown - published(self._alone.fit(self._rows[at], 0)) @ self._whiten)

    def _one_hot(self, rows: Levels) -> Floats:
        """Return 1 for the level that each entry has and 0 for the others, a row for a person."""
        return np.eye(self._levels)[rows].reshape(len(rows), -1)


def _whitening(off: Floats) -> Floats:
    """Return a matrix after which errors like these have the covariance I, about.

    Few fits tell little of a covariance, so a tenth of it is taken as if entries were independent.
    """
    covariance = off.T @ off / len(off)
    covariance = 0.9 * covariance + 0.1 * np.diag(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1] + 1e-300)))


def read_limit(budget: PrivacyBudget, blind: float) -> float:
    """Return the largest share that anyone can read on average, given that of a blind guess.

    >>> round(read_limit(PrivacyBudget(epsilon=1.0), 0.4), 3)
    0.493
    """
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(blind) + mu_of(budget.epsilon, budget.delta)))


def read_rows(
    subject: Target,
    budget: PrivacyBudget | None,
    people: int,
    seed: int,
    steps: Steps = NO_PROGRESS,
) -> tuple[Reading, Law]:
    """Read so many people's rows, each from a model of its own, and tell the law they are from."""
    law = law_of(_ITEMS, seed, implicit=subject.implicit)
    rng = stream(seed, 4)
    insider = Insider(subject, budget, law.draw(_USERS - 1, rng))
    reader = Reader(insider, law, seed * 1_000_000, steps)
    truth = law.draw(people, rng)
    first = seed * 1_000_000 + _OWN_FITS
    read = []
    for at, row in enumerate(truth):
        read.append(reader.read(insider.fit(row, first + at)))
        steps.step()
    return Reading(truth, np.array(read)), law


def steps_of_reading(people: int) -> int:
    """Return how many steps `read_rows` takes: a fit of the attacker's own, or a person read."""
    return _OWN_FITS + people


def reconstruction(
    subject: Target,
    seed: int = 0,
    *,
    epsilons: Sequence[float] = (),
    people: int = 20,
    steps: Steps = NO_PROGRESS,
) -> list[Finding]:
    """Read rows off models without privacy, as a control, and off models with it.

    Epsilon is the subject's, or each of those given. Noise comes from seeds, as in `membership`.
    What keeps its promise is called unsound with a probability of at most 1 % a finding.
    """
    chosen = epsilons or (subject.budget.epsilon,)
    budgets = [None, *(replace(subject.budget, epsilon=epsilon) for epsilon in chosen)]
    steps.plan(steps_of_reading(people) * len(budgets))
    return [
        _finding(subject.name, budget, *read_rows(subject, budget, people, seed, steps))
        for budget in budgets
    ]


def _finding(name: str, budget: PrivacyBudget | None, reading: Reading, law: Law) -> Finding:
    blind, interval = law.blind_share, reading.interval
    how = (
        f"someone who knows all other rows looks for the row that explains the model best, for "
        f"{len(reading.truth)} people; correlation with true ratings {reading.correlation:.2f}; "
        f"a guess without any model is right on {blind:.3f}"
    )
    if budget is None:
        claim = "Control: nothing is promised; what is read here shows how strong the attack is."
        subject = f"{name}, NOT PRIVATE"
        return Finding(
            "reconstruction", subject, claim, reading.share, 1.0, True, how, interval, control=True
        )
    limit = read_limit(budget, blind)
    claim = f"Nobody reads more than a share of {limit:.3f} of a row on average."
    subject, holds = f"{name}, epsilon {budget.epsilon:g}", interval.low <= limit
    return Finding("reconstruction", subject, claim, reading.share, limit, holds, how, interval)
