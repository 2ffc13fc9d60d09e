"""Single ratings: how far apart are the releases of two lists that differ in one rating?

Such lists are neighbours under replace, and cost at most what was paid. Under add_remove they are
two changes apart, from one list to none and from none to the other: at most twice of it. That is
what the certificate says of any two lists of one person; here it is searched for a single rating
that was given, withheld or changed.
"""

import math
from collections.abc import Iterator

import numpy as np

from tacit.accounting.promise import percent, two_lists
from tacit.audit.exact_sums import Opened, opened_run
from tacit.audit.finding import Finding
from tacit.audit.population import Row, World, synthetic_world
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.audit.sensitivity import (
    SLACK,
    Effort,
    Pair,
    PairSearch,
    alike,
    pair_search_of,
    some,
    total_cost_search,
)
from tacit.audit.target import Target

_HOW = (
    "search over pairs of rows that differ in one rating, given, withheld or changed; random, "
    "designed and climbing"
)


def rating(
    subject: Target, *, seed: int = 0, effort: Effort | None = None, steps: Steps = NO_PROGRESS
) -> list[Finding]:
    """Search for a single rating that costs most, in every release and in the whole fit.

    Args:
        subject: what is attacked.
        seed: of the world, of the noise in the fit that is taken down, and of the search.
        effort: how hard to look.
        steps: counts runs of alike releases that were attacked, and the whole fit.
    """
    effort = effort or Effort()
    world = synthetic_world(subject, seed)
    everyone = world.ratings(world.others[0])
    run = opened_run(subject, everyone, everyone, present=True, seed=seed)
    small = World(world.others[:5], world.rating_range, world.implicit)
    groups = alike(run.releases)
    steps.plan(len(groups) + 1)
    found = []
    for group in groups:
        found.append(_of_releases(subject, group, small, (seed, effort)))
        steps.step()
    rng = np.random.default_rng(seed)
    whole = worst_rating(total_cost_search(run.releases, small, rng, effort)).change
    total = math.sqrt(math.fsum(release.entry.mu**2 for release in run.releases))
    steps.step()
    return [*found, _finding(subject, "the whole fit", whole, total)]


def _of_releases(
    subject: Target, releases: list[Opened], world: World, search: tuple[int, Effort]
) -> Finding:
    """Attack some of a run of alike releases, and report the one that was moved furthest."""
    seed, effort = search
    found = []
    for release in some(releases, effort):
        pair_search = pair_search_of(release, world, np.random.default_rng(seed), effort)
        found.append((worst_rating(pair_search).change / release.entry.noise_sd, release.entry.mu))
    cost, paid = max(found, key=lambda each: each[0] / each[1])
    first, last = releases[0].entry.name, releases[-1].entry.name
    return _finding(subject, first if first == last else f"{first} to {last}", cost, paid)


def _finding(subject: Target, name: str, cost: float, paid: float) -> Finding:
    relation = subject.budget.neighbours
    limit = two_lists(relation, paid)
    return Finding(
        part="rating",
        subject=f"{subject.name}: {name}, one rating ({relation.value})",
        claim=f"two lists of one person cost at most mu = {limit:.4g}, also where they differ in "
        f"one rating: an attacker is right at most {percent(limit)} % of the time",
        measured=cost,
        limit=limit,
        holds=cost <= limit * SLACK,
        how=_HOW,
    )


def worst_rating(pair_search: PairSearch) -> Pair:
    """Return the worst pair found whose rows differ in one rating."""
    found = sorted(_proposed(pair_search), key=lambda pair: -pair.change)[
        : pair_search.effort.starts
    ]
    return max((_improved(pair_search, pair) for pair in found), key=lambda pair: pair.change)


def _proposed(pair_search: PairSearch) -> Iterator[Pair]:
    """Yield rows beside the same rows with one item's rating withheld, given or changed."""
    for row in pair_search.proposals():
        item = int(pair_search.rng.integers(pair_search.world.n_items))
        yield from (
            pair_search.pair(row, after) for after in _with(row, item, _values(pair_search.world))
        )


def _improved(pair_search: PairSearch, pair: Pair) -> Pair:
    """Improve a pair item by item until nothing helps, or patience ends."""
    for _ in range(pair_search.effort.rounds):
        before = pair
        for item in pair_search.rng.permutation(pair_search.world.n_items).tolist():
            pair = max((pair, *_changed(pair_search, pair, item)), key=lambda each: each.change)
        if pair.change <= before.change * SLACK:
            break
    return pair


def _changed(pair_search: PairSearch, pair: Pair, item: int) -> Iterator[Pair]:
    """Yield pairs with other ratings of an item: the same in both rows unless it is the one."""
    before, after = pair.before, pair.after
    if after is None:
        return
    values = (*_values(pair_search.world), float(pair_search.rng.uniform(*pair_search.world.ends)))
    alone = not np.array_equal(before[item], after[item], equal_nan=True)
    for one in _with(before, item, values):
        others = values if alone else one[item : item + 1]
        yield from (pair_search.pair(one, other) for other in _with(after, item, others))


def _with(row: Row, item: int, values: "tuple[float, ...] | Row") -> Iterator[Row]:
    """Yield copies of a row with each of some ratings of one item."""
    for value in values:
        changed = row.copy()
        changed[item] = value
        yield changed


def _values(world: World) -> tuple[float, ...]:
    """Return no rating, both ends of the range, and its middle."""
    low, high = world.ends
    return (math.nan, low, high, (low + high) / 2) if low < high else (math.nan, high)
