"""The sensitivity attack: a search for the two neighbouring rows that move a sum furthest.

It knows nothing of the statistics it attacks. It takes down every statistic that a small fit
releases, whatever the algorithm and its settings, and asks for the exact sum with one row and
with another. Rows are proposed at random and by design; the best pairs are then improved item by
item (another rating, or none), and along the gradient, taken by finite differences.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Neighbours
from tacit.accounting.release import Release
from tacit.audit.exact_sums import Opened, opened_run
from tacit.audit.finding import Finding
from tacit.audit.population import Row, World, synthetic_world
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.audit.target import Target

Vector = NDArray[np.float64]
Units = NDArray[np.int64]

SLACK = 1 + 1e-12
"""Norms of integers are computed in doubles: what is closer than this is equal."""


@dataclass(frozen=True)
class Effort:
    """How hard to look.

    Attributes:
        drawn: rows proposed at random.
        starts: pairs that are improved.
        rounds: of improving each, at the most.
        alike: of a run of alike releases, such as one a round, so many are attacked.
    """

    drawn: int = 80
    starts: int = 3
    rounds: int = 4
    alike: int = 5


QUICK = Effort(drawn=40, starts=1, rounds=2, alike=2)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring rows, and how far they move the sum; `after` None: she is gone."""

    before: Row
    after: Row | None
    change: float


@dataclass(eq=False)
class PairSearch:
    """A search for the worst pair of rows in a world.

    Attributes:
        world: everyone else.
        total: the exact sum over all people, with this row of hers, as whole numbers.
        scale: what one of each number stands for.
        rng: what random proposals come from.
        effort: how hard to look.
    """

    world: World
    total: Callable[[Row | None], Units]
    scale: Vector
    rng: np.random.Generator
    effort: Effort = field(default_factory=Effort)

    def __post_init__(self) -> None:
        """Keep what was computed: rows come up again and again."""
        self._known: dict[bytes, Vector] = {}
        self._gone = self.total(None)

    def worst(self, relation: Neighbours) -> Pair:
        """Return the worst pair found under a relation."""
        return max(
            (self._improved(pair, relation) for pair in self._starts(relation)),
            key=lambda pair: pair.change,
        )

    def pair(self, before: Row, after: Row | None) -> Pair:
        """Return a pair with the change that it makes."""
        apart = self._vector(before) - self._vector(after)
        return Pair(before, after, float(np.linalg.norm(apart)))

    def _vector(self, row: Row | None) -> Vector:
        """Return what her row adds to the sum, as it stands with everyone else there."""
        if row is None:
            return np.zeros(self._gone.size)
        key = row.tobytes()
        if key not in self._known:
            self._known[key] = (self.total(row) - self._gone) * self.scale
        return self._known[key]

    def _starts(self, relation: Neighbours) -> list[Pair]:
        """Return the best pairs of rows that are proposed at random or by design."""
        rows = self.proposals()
        if relation is Neighbours.ADD_REMOVE:
            nobody = np.full(self.world.n_items, np.nan)
            found = [self.pair(row, after) for row in rows for after in (None, nobody)]
            return sorted(found, key=lambda pair: -pair.change)[: self.effort.starts]
        vectors = np.array([self._vector(row) for row in rows])
        squares = np.sum(vectors**2, axis=1)
        apart = squares[:, None] + squares - 2 * vectors @ vectors.T
        best = np.argsort(-np.triu(apart, 1), axis=None)[: self.effort.starts]
        places = zip(*np.unravel_index(best, apart.shape), strict=True)
        return [self.pair(rows[one], rows[other]) for one, other in places]

    def proposals(self) -> list[Row]:
        """Return rows by design and at random."""
        return [*designed(self.world), *self._drawn()]

    def _drawn(self) -> Iterator[Row]:
        """Yield random rows: of any length, most of them at the ends of the range."""
        low, high = self.world.ends
        for _ in range(self.effort.drawn):
            row = self.rng.choice([low, high], self.world.n_items)
            if self.rng.random() < 0.3:
                row = self.rng.uniform(low, high, self.world.n_items)
            row[self.rng.random(row.size) < self.rng.random()] = np.nan
            yield row

    def _improved(self, pair: Pair, relation: Neighbours) -> Pair:
        """Improve both rows in turn until nothing helps, or patience ends."""
        for _ in range(self.effort.rounds):
            before = pair
            pair = self._climbed(pair, 0)
            if relation is Neighbours.REPLACE:
                pair = self._climbed(pair, 1)
            pair = self._along_the_gradient(pair)
            if pair.change <= before.change * SLACK:
                break
        return pair

    def _climbed(self, pair: Pair, side: int) -> Pair:
        """Try for every item of one row: no rating, the ends, the middle, something else."""
        low, high = self.world.ends
        for item in self.rng.permutation(self.world.n_items):
            values = (np.nan, low, high, (low + high) / 2, self.rng.uniform(low, high))
            for value in values if low < high else (np.nan, high):
                pair = max(pair, self._changed(pair, side, item, value), key=lambda p: p.change)
        return pair

    def _changed(self, pair: Pair, side: int, item: int, value: float) -> Pair:
        rows = [pair.before, pair.after]
        row = rows[side]
        if row is None:
            return pair
        rows[side] = row.copy()
        rows[side][item] = value  # type: ignore[index]
        return self.pair(rows[0], rows[1])  # type: ignore[arg-type]

    def _along_the_gradient(self, pair: Pair) -> Pair:
        """Move all ratings of both rows at once, along finite differences of the change."""
        low, high = self.world.ends
        if not low < high:
            return pair
        step = (high - low) / 64
        slopes = [self._slopes(pair, side, step) for side in (0, 1)]
        steepest = max(float(np.max(np.abs(slope), initial=0.0)) for slope in slopes)
        if steepest == 0.0:
            return pair
        for reach in (1.0, 0.3, 0.1, 0.03, 0.01):
            scale = reach * (high - low) / steepest
            before = np.clip(pair.before + scale * slopes[0], low, high)
            after = pair.after
            if after is not None:
                after = np.clip(after + scale * slopes[1], low, high)
            pair = max(pair, self.pair(before, after), key=lambda p: p.change)
        return pair

    def _slopes(self, pair: Pair, side: int, step: float) -> Vector:
        """Return how the change grows with each rating of a row; 0 where nothing is rated."""
        row = (pair.before, pair.after)[side]
        slopes = np.zeros(self.world.n_items)
        if row is None:
            return slopes
        low, high = self.world.ends
        for item in np.flatnonzero(~np.isnan(row)).tolist():
            up, down = min(row[item] + step, high), max(row[item] - step, low)
            rise = self._changed(pair, side, item, up).change
            rise -= self._changed(pair, side, item, down).change
            slopes[item] = rise / (up - down)
        return slopes


def designed(world: World) -> Iterator[Row]:
    """Yield rows by design: the first, last or every other so many items, at either end; none."""
    low, high = world.ends
    yield np.full(world.n_items, np.nan)
    for count in range(1, world.n_items + 1):
        first = np.arange(world.n_items) < count
        for chosen in (first, first[::-1]):
            for value in (low, high):
                yield np.where(chosen, value, np.nan)
        if low < high:
            signs = np.where(np.arange(world.n_items) % 2 == 0, low, high)
            yield np.where(first, signs, np.nan)


def pair_search_of(
    release: Opened, world: World, rng: np.random.Generator, effort: Effort
) -> PairSearch:
    """Return the search for the worst pair of one release, measured in its own units."""

    def total(row: Row | None) -> Units:
        return release.exact(world.ratings(row))

    return PairSearch(world, total, np.array(release.unit), rng, effort)


def total_cost_search(
    releases: list[Opened], world: World, rng: np.random.Generator, effort: Effort
) -> PairSearch:
    """Return the search for the pair that is worst for a whole run: its change is its cost mu."""

    def total(row: Row | None) -> Units:
        ratings = world.ratings(row)
        return np.concatenate([release.exact(ratings) for release in releases])

    scales = [release.unit / release.entry.noise_sd for release in releases]
    sizes = [release.exact(world.ratings(None)).size for release in releases]
    return PairSearch(world, total, np.repeat(scales, sizes), rng, effort)


def sensitivity(
    subject: Target,
    *,
    seed: int = 0,
    effort: Effort | None = None,
    steps: Steps = NO_PROGRESS,
) -> list[Finding]:
    """Search every release of a subject, under both relations.

    Args:
        subject: what is attacked.
        seed: of the world, of the noise in the fit that is taken down, and of the search.
        effort: how hard to look.
        steps: counts releases that were attacked under one relation.
    """
    effort = effort or Effort()
    world = synthetic_world(subject, seed)
    everyone = world.ratings(world.others[0])
    run = opened_run(subject, everyone, everyone, present=True, seed=seed)
    small = World(world.others[:5], world.rating_range, world.implicit)
    attacks = [(releases, each) for releases in alike(run.releases) for each in Neighbours]
    steps.plan(len(attacks))
    found = []
    for releases, relation in attacks:
        found.append(_finding(subject, releases, small, relation, (seed, effort)))
        steps.step()
    return found


def alike(releases: list[Opened]) -> list[list[Opened]]:
    """Put releases together that are alike but for their number, and have the same bound."""
    groups: dict[tuple[Release, float, float], list[Opened]] = {}
    for release in releases:
        kind, stated = replace(release.entry.release, index=()), release.stated
        groups.setdefault((kind, stated.add_remove, stated.replace), []).append(release)
    return list(groups.values())


def some(releases: list[Opened], effort: Effort) -> list[Opened]:
    """Return those of a run of alike releases that are attacked."""
    places = np.linspace(0, len(releases) - 1, min(len(releases), effort.alike)).astype(int)
    return [releases[place] for place in places]


def _finding(
    subject: Target,
    releases: list[Opened],
    world: World,
    relation: Neighbours,
    search: tuple[int, Effort],
) -> Finding:
    """Attack some of a run of alike releases, and report the worst."""
    seed, effort = search
    attacked = some(releases, effort)
    found = [_worst_change(subject, release, world, relation, search) for release in attacked]
    change, stated = max(found, key=lambda each: each[0] / each[1])
    first, last = releases[0].entry.name, releases[-1].entry.name
    name = first if len(releases) == 1 else f"{first} to {last}"
    return Finding(
        part="sensitivity",
        subject=f"{subject.name}: {name} ({relation.value})",
        claim=f"one person moves this sum by at most {stated:.6g} (L2)",
        measured=change,
        limit=stated,
        holds=change <= stated * SLACK,
        how=f"search over pairs of rows, random, designed and climbing; {len(attacked)} of "
        f"{len(releases)} such releases attacked; seed {seed}",
    )


def _worst_change(
    subject: Target,
    release: Opened,
    world: World,
    relation: Neighbours,
    search: tuple[int, Effort],
) -> tuple[float, float]:
    """Return how far a release was moved, and how far it may be: under its relation as paid."""
    seed, effort = search
    pair_search = pair_search_of(release, world, np.random.default_rng(seed), effort)
    paid = relation is subject.budget.neighbours
    stated = release.entry.sensitivity if paid else release.stated.under(relation)
    return pair_search.worst(relation).change, stated
