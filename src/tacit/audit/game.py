"""The distinguishing game: many fits with a crafted person and without her; who can tell?

The person is the one that moves the releases of a whole fit furthest, as far as the search finds
one. Two guessers play:

- one sees every release, knows everyone else, and uses the likelihood ratio: no guesser does
  better than that;
- one sees published models only, and learns from half of the fits how to tell the others.

Each picks its threshold on some of the fits and is counted on others; except for the likelihood
ratio in the Gaussian form, where the best threshold is known in advance (zero) and all fits are
counted. The counts give lower bounds on epsilon that all hold together with 95 % confidence
(audit.bounds).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Neighbours
from tacit.audit.bounds import (
    GuessCounts,
    best_threshold,
    count,
    epsilon_at_least,
    gaussian_epsilon_at_least,
)
from tacit.audit.exact_sums import kept_items, opened_run
from tacit.audit.finding import Finding
from tacit.audit.learned_attack import Named, features, learned_scores
from tacit.audit.population import World, synthetic_world
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.audit.sensitivity import QUICK, Effort, Pair, total_cost_search
from tacit.audit.target import Target
from tacit.data.ratings import Ratings
from tacit.engines import ThreadEngine
from tacit.errors import ConfigError, TacitWarning
from tacit.fitting.fit import fit

Floats = NDArray[np.float64]
Scores = tuple[Floats, Floats]
"""Of fits without her, and of fits with her."""


class Played(NamedTuple):
    """Scores to choose a threshold by, others to judge it by; and the best one, if it is known."""

    choose: Scores
    judge: Scores
    middle: float | None = None


CONFIDENCE = 0.95
_MISS = (1 - CONFIDENCE) / 4  # of each bound: there are two guessers, and two forms
_LEAST = 20


@dataclass(frozen=True, eq=False)
class Match:
    """The two worlds of a game: `pair.before` is the person, `pair.after` is in her place."""

    subject: Target
    world: World
    pair: Pair
    trials: int
    seed: int | None
    steps: Steps = NO_PROGRESS

    @property
    def worlds(self) -> tuple[Ratings, Ratings]:
        """Everyone's ratings without her, and with her."""
        return self.world.ratings(self.pair.after), self.world.ratings(self.pair.before)

    def noise_seed(self, guesser: int, present: bool, trial: int) -> int | None:
        """Return the seed of one fit; None: noise is the operating system's."""
        if self.seed is None:
            return None
        words = [self.seed, guesser, int(present), trial]
        return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)


def game(
    subject: Target,
    *,
    trials: int = 500,
    seed: int | None = None,
    effort: Effort = QUICK,
    steps: Steps = NO_PROGRESS,
) -> list[Finding]:
    """Play the game and return four findings: two guessers, two forms of the bound.

    Args:
        subject: what is attacked.
        trials: fits in each world and for each guesser; half of them choose the threshold.
        seed: makes noise repeatable; None: the operating system's.
        effort: how hard to look for the worst person.
        steps: counts fits.
    """
    if trials < _LEAST:
        raise ConfigError(f"trials={trials!r}: expected a whole number of at least {_LEAST}")
    steps.plan(4 * trials)
    world = synthetic_world(subject, seed or 0)
    pair = crafted(subject, world, seed=seed or 0, effort=effort)
    match = Match(subject, world, pair, trials, seed, steps)
    told = (
        f"{trials} fits with her and {trials} without, for each guesser; her rows cost "
        f"mu = {pair.change:.3g}; a lower bound of epsilon, 95 % confidence for all four; noise "
        f"below {100 * noticed_noise(subject, pair, trials):.0f} % of what is due would be noticed"
    )
    guessers: dict[str, Callable[[Match], Played]] = {
        "likelihood ratio of all releases": likelihood_ratios,
        "learned score of the published model": published_models,
    }
    return [
        finding
        for name, play in guessers.items()
        for finding in _findings(subject, name, play(match), told)
    ]


def noticed_noise(subject: Target, pair: Pair, trials: int) -> float:
    """Return how little noise there must be, over what is due, for a usual game to notice.

    It is what the likelihood ratio of this pair would prove, in the Gaussian form, if as many
    guesses were right as are expected.
    """
    from scipy.special import ndtr

    budget = subject.budget
    for noise in np.arange(1.0, 0.0, -0.01):
        right = round(trials * float(ndtr(pair.change / noise / 2)))
        counts = GuessCounts(trials - right, trials, right, trials)
        if gaussian_epsilon_at_least(counts, budget.delta, _MISS) > budget.epsilon:
            return float(noise)
    return 0.0


def crafted(subject: Target, world: World, *, seed: int, effort: Effort) -> Pair:
    """Return the pair of rows that a whole fit tells apart best, as far as one is found."""
    everyone = world.ratings(world.others[0])
    run = opened_run(subject, everyone, everyone, present=True, seed=seed)
    pair_search = total_cost_search(run.releases, world, np.random.default_rng(seed), effort)
    return pair_search.worst(subject.budget.neighbours)


def likelihood_ratios(match: Match) -> Played:
    """Return the log-likelihood ratios of fits in both worlds, in two halves."""
    without, with_her = match.worlds

    def ratio(present: bool, trial: int) -> float:
        seed = match.noise_seed(0, present, trial)
        run = opened_run(match.subject, with_her, without, present=present, seed=seed)
        match.steps.step()
        return run.log_ratio

    half = match.trials // 2
    none, hers = (
        np.array([ratio(present, trial) for trial in range(match.trials)])
        for present in (False, True)
    )
    return Played((none[:half], hers[:half]), (none[half:], hers[half:]), middle=0.0)


def published_models(match: Match) -> Played:
    """Return learned scores of models: learned on half of them, used on the other half.

    A third of those that were not learned from choose the threshold; the rest are counted.
    """
    shown = [
        [
            _shown(match, ratings, match.noise_seed(1, bool(present), trial))
            for trial in range(match.trials)
        ]
        for present, ratings in enumerate(match.worlds)
    ]
    half = match.trials // 2
    seen, unseen = ([models[part] for models in shown] for part in (slice(half), slice(half, None)))
    none, hers = learned_scores((seen[0], seen[1]), (unseen[0], unseen[1]))
    third = len(none) // 3
    return Played((none[:third], hers[:third]), (none[third:], hers[third:]))


def _shown(match: Match, ratings: Ratings, seed: int | None) -> Named:
    """Fit one model and read off what it shows."""
    subject = match.subject
    top = kept_items(subject, ratings.n_items) if subject.narrowed else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)  # settings of synthetic ratings leak nothing
        model = fit(
            ratings,
            subject.algorithm,
            budget=subject.budget,
            noise_seed_unsafe=seed,
            top_items=top,
            engine=ThreadEngine(1),
        )
    match.steps.step()
    if subject.narrowed:  # the catalogue is published too, and rows are of other items
        listed = np.isin(np.arange(ratings.n_items), model.catalogue.ids.to_numpy())
        return features(model, []) | {"items": listed.astype(np.float64)}
    rows = (match.pair.before, match.pair.after)
    return features(model, [row for row in rows if row is not None])


def _findings(subject: Target, guesser: str, played: Played, told: str) -> list[Finding]:
    """Return what a guesser's scores prove, in both forms of the bound."""
    budget = subject.budget
    counts = {
        "any noise": _judged(played, lambda c: epsilon_at_least(c, budget.delta, _MISS)),
        "Gaussian noise": _judged_in_the_middle(
            played, lambda c: gaussian_epsilon_at_least(c, budget.delta, _MISS)
        ),
    }
    return [
        Finding(
            part="game",
            subject=f"{subject.name}: {guesser} ({form})",
            claim=f"epsilon is at most {budget.epsilon:g} at delta {budget.delta:g}, "
            f"{_relation(budget.neighbours)}",
            measured=measured,
            limit=budget.epsilon,
            holds=measured <= budget.epsilon,
            how=told,
        )
        for form, measured in counts.items()
    ]


def _judged(played: Played, bound: Callable[[GuessCounts], float]) -> float:
    """Choose the threshold on one half and count on the other."""
    return bound(count(*played.judge, best_threshold(*played.choose, bound)))


def _judged_in_the_middle(played: Played, bound: Callable[[GuessCounts], float]) -> float:
    """Count all scores where the best threshold is known in advance."""
    if played.middle is None:
        return _judged(played, bound)
    none, hers = (
        np.concatenate(halves) for halves in zip(played.choose, played.judge, strict=True)
    )
    return bound(count(none, hers, played.middle))


def _relation(neighbours: Neighbours) -> str:
    replaced = neighbours is Neighbours.REPLACE
    return "one row replaced" if replaced else "one row added or removed"
