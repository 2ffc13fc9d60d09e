"""Quality of lists for new users against epsilon, beside tuned methods without privacy.

    python benchmarks/lists.py [--data ratings.parquet --rating-range 1 5] [--family tastes]
        [--items 400] [--users 60000] [--tested 4000] [--epsilons 0.1 1 5] [--draws 3] [--liked 4]
        [--by rating] [--without als] [--seed 0] [--figure lists.png] [--csv lists.csv]

People are drawn at random into three groups: those of the fit (--users), those that settings are
tuned on (--validated), and new users (--tested), whose lists are measured once, after all settings
are fixed. No person is in two groups. Without --data it makes a synthetic family.

Peers: exact popularity (items that most people rated, or liked), EASE [Steck 2019] and ALS of the
package `implicit` (pip install implicit==0.7.3; left out if it is missing), the last two tuned by
recall@20 of the validation users.
`tacit` has its defaults at every epsilon, and nothing is tuned for it. `Interactions` is fitted on
what people like, and is given what new users like.

Prints a Markdown table; figures of `tacit` are means over the draws of noise, intervals are of the
users (means of the ends over the draws). NOT PRIVATE: measured on people's held-out ratings.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from list_peers import (
    ALS_GRID,
    EASE_GRID,
    Grid,
    Scored,
    als,
    at_the_end,
    ease,
    entries,
    has_implicit,
    tuned,
)

import tacit
from tacit.datasets.synthetic import synthesise
from tacit.evaluation import Estimate, ExactPopularity, NewUserRanking, rank_new_users

FAMILIES = ("tastes", "popular", "missing-not-at-random", "sparse", "few", "wide")


class Groups(NamedTuple):
    """Three groups of people over one catalogue, and what counts as liked."""

    fitted: tacit.Ratings
    validated: tacit.Ratings
    tested: tacit.Ratings
    liked: float
    seed: int

    def measure(self, model: Any, **how: Any) -> NewUserRanking:
        """Measure lists for the new users: for the table only, never to choose anything."""
        return rank_new_users(model, self.tested, relevant=self.liked, seed=self.seed, **how)

    def validate(self, model: Any) -> float:
        """Recall@20 of the validation users, to choose settings by."""
        found = rank_new_users(model, self.validated, relevant=self.liked, seed=self.seed)
        return found.recall_20.mean


class Row(NamedTuple):
    """A line of the table: a method at one epsilon (None: no privacy), and its draws."""

    method: str
    epsilon: float | None
    found: list[NewUserRanking]

    def mean(self, name: str) -> float:
        """A figure, averaged over the draws."""
        values = [getattr(each, name) for each in self.found]
        return float(np.mean([v.mean if isinstance(v, Estimate) else v for v in values]))

    def recall(self) -> Estimate:
        """Recall@20 and its interval, averaged over the draws."""
        ends = [(e.recall_20.mean, e.recall_20.low, e.recall_20.high) for e in self.found]
        return Estimate(*map(float, np.mean(ends, axis=0)))


def groups_of(options: argparse.Namespace) -> Groups:
    """Read or make ratings, and draw three groups of people."""
    ratings = _ratings(options)
    sizes = (options.users, options.validated, options.tested)
    if sum(sizes[1:]) >= ratings.n_users:
        sys.exit(f"--validated and --tested: {sum(sizes[1:])} of {ratings.n_users} users; ask less")
    order = np.random.default_rng(options.seed).permutation(ratings.n_users)
    ends = np.cumsum([options.tested, options.validated, options.users])
    tested, validated, fitted = np.split(order[: ends[-1]], ends[:2])
    parts = [ratings.take_rows(np.sort(rows)) for rows in (fitted, validated, tested)]
    lo, hi = ratings.rating_range
    liked = lo + 0.7 * (hi - lo) if options.liked is None else options.liked
    return Groups(*parts, liked, options.seed)


def _ratings(options: argparse.Namespace) -> tacit.Ratings:
    if options.data is None:
        people = options.users + options.validated + options.tested
        size = {"users": people, "items": options.items, "seed": options.seed}
        made = synthesise(options.family, test_fraction=0.0, **size)
        frame, catalogue, limits = made.train, made.items["item"], made.rating_range
    else:
        frame, limits = pl.read_parquet(options.data), tuple(options.rating_range)
        catalogue = frame["item"].unique().sort()
    items = tacit.Catalogue(catalogue, public=True)
    return tacit.Ratings.from_frame(frame, rating_range=limits, catalogue=items)


def peers(groups: Groups, without: list[str]) -> Iterator[Row]:
    """Measure what has no privacy, tuned on the validation users."""
    liked = _liked(groups.fitted, groups.liked)
    for name, counted in (("popularity", groups.fitted), ("popularity of liked", liked)):
        yield Row(f"exact {name}", None, [groups.measure(ExactPopularity(counted))])
    makers: dict[str, tuple[Callable[..., Any], Grid]] = {"EASE": (ease, EASE_GRID)}
    if "als" not in without and has_implicit():
        makers["implicit ALS"] = (als, ALS_GRID)
    elif "als" not in without:
        print("ALS is left out: pip install implicit==0.7.3 to have it", file=sys.stderr)
    for name, (maker, grid) in makers.items():
        make = maker(groups.fitted, groups.liked)
        start = time.perf_counter()
        best, tried = tuned(grid, lambda settings, make=make: groups.validate(make(settings)))
        report(name, best, f"the best of {tried}, {time.perf_counter() - start:.0f} s", grid)
        yield Row(name, None, [groups.measure(make(best))])


def report(name: str, settings: dict[str, Any], how: str, grid: Grid) -> None:
    """Say what was chosen, and whether the grid ended there."""
    chosen = ", ".join(f"{key}={value}" for key, value in settings.items())
    found = at_the_end(grid, settings)
    ends = f"; at an end of the grid: {', '.join(found)}" if found else ""
    print(f"{name}: {chosen} ({how}{ends})", file=sys.stderr, flush=True)


def ours(groups: Groups, options: argparse.Namespace) -> Iterator[Row]:
    """Measure the default of `tacit.fit` at every epsilon, in every order that is asked for."""
    orders: list[dict[str, str]] = [{}, *({"by": by} for by in options.by)]
    for epsilon in [*options.epsilons, None]:
        models = list(_fits(groups.fitted, epsilon, options.draws))
        for how in orders:
            name = f"tacit, by {how['by']}" if how else "tacit"
            yield Row(name, epsilon, [groups.measure(model, **how) for model in models])


def interactions(groups: Groups, options: argparse.Namespace) -> Iterator[Row]:
    """Measure `tacit.Interactions` on what people like."""
    if "interactions" in options.without:
        return
    liked = _liked(groups.fitted, groups.liked)
    for epsilon in [*options.epsilons, None]:
        found = [
            groups.measure(_by_liked(model, groups.liked))
            for model in _fits(liked, epsilon, options.draws)
        ]
        yield Row("Interactions on liked", epsilon, found)


def _fits(ratings: tacit.Ratings, epsilon: float | None, draws: int) -> Iterator[tacit.Model]:
    for _ in range(1 if epsilon is None else draws):
        yield tacit.fit(ratings, budget=None if epsilon is None else tacit.PrivacyBudget(epsilon))


def _liked(ratings: tacit.Ratings, lowest: float) -> tacit.Ratings:
    """What users like, as interactions; everyone keeps her row."""
    matrix = entries(ratings, lowest)
    return tacit.Ratings.from_sparse(matrix, implicit=True, catalogue=ratings.catalogue)


def _by_liked(model: tacit.Model, lowest: float) -> Scored:
    """Lists from what a user likes; what she rated and does not like is left out as well."""

    def scores(own: tacit.Ratings) -> np.ndarray:
        rows = _liked(own, lowest)
        return np.concatenate([part for _, part in model.predict_rows(rows, clip=False)])

    return Scored(model.catalogue, scores)


HEADS = (
    "method", "epsilon", "recall@20 (95 % interval)", "to EASE", "NDCG@10", "NDCG@100",
    "coverage@20", "popularity@20 / held out",
)  # fmt: skip


def cells(row: Row, ease_recall: float) -> list[str]:
    recall = row.recall()
    bias = row.mean("popularity_20") / row.mean("popularity_held_out")
    return [
        row.method,
        "none" if row.epsilon is None else f"{row.epsilon:g}",
        f"{recall.mean:.4f} ({recall.low:.4f} to {recall.high:.4f})",
        f"{recall.mean / ease_recall:.3f}",
        *(f"{row.mean(name):.4f}" for name in ("ndcg_10", "ndcg_100", "coverage_20")),
        f"{bias:.2f}",
    ]


def draw(rows: list[Row], path: Path, title: str) -> None:
    """Draw recall against epsilon: ours as curves, peers as lines across."""
    from lists_figure import ListPoint, draw_lists

    curves: dict[str, list[ListPoint]] = {}
    for row in rows:
        curves.setdefault(row.method, []).append(ListPoint(row.epsilon, row.recall()))
    across = {
        name: points[0].quality.mean
        for name, points in curves.items()
        if [point.epsilon for point in points] == [None]
    }
    shown = {name: points for name, points in curves.items() if name not in across}
    draw_lists(path, shown, across, title, overwrite=True)


def write_csv(rows: list[Row], path: Path, about: str) -> None:
    """Write recall@20 of every method with its interval, and what it was measured on."""
    table = [
        {"method": row.method, "epsilon": row.epsilon, **asdict(row.recall()), "data": about}
        for row in rows
    ]
    pl.DataFrame(table, infer_schema_length=None).write_csv(path)


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="Parquet with columns user, item, rating")
    parser.add_argument("--rating-range", type=float, nargs=2, default=(1.0, 5.0))
    parser.add_argument("--family", default="tastes", choices=FAMILIES)
    parser.add_argument("--items", type=int, help="of a family; what is usual for it if none")
    parser.add_argument("--users", type=int, default=20_000, help="people of the fit")
    parser.add_argument("--validated", type=int, default=2_000)
    parser.add_argument("--tested", type=int, default=4_000)
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.1, 1.0, 5.0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--liked", type=float, help="liked from here on; 0.7 up the range if none")
    parser.add_argument("--by", nargs="*", default=[], help="further orders of the default's lists")
    parser.add_argument("--without", nargs="*", default=[], choices=["als", "interactions"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help=".png or .svg")
    parser.add_argument("--csv", type=Path, help="also write recall@20, for other figures")
    return parser.parse_args()


def main() -> None:
    """Measure, print and draw."""
    options = options_of()
    if options.figure:
        from tacit.reporting.drawing import check_picture

        check_picture("--figure", options.figure, overwrite=True)
    groups = groups_of(options)
    rows = list(peers(groups, options.without))
    base = next(row.recall().mean for row in rows if row.method == "EASE")
    counted = rows[0].found[0].users
    facts = f"{groups.fitted.n_users:,} users of the fit, {groups.fitted.n_items:,} items"
    print(
        f"\nNOT PRIVATE. {facts}; {counted:,} new users with a liked item (>= {groups.liked:g})\n"
    )
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|")
    for row in rows:
        print("| " + " | ".join(cells(row, base)) + " |", flush=True)
    for maker in (ours, interactions):
        for row in maker(groups, options):
            rows.append(row)
            print("| " + " | ".join(cells(row, base)) + " |", flush=True)
    if options.figure:
        draw(rows, options.figure, f"Lists for new users: {facts}")
    if options.csv:
        write_csv(rows, options.csv, f"{options.data or options.family}: {facts}")


if __name__ == "__main__":
    main()
