"""A year of refits under one lifetime budget, beside fits that do not remember; prints tables.

python benchmarks/lifetime.py                      # synthetic people whose tastes drift
python benchmarks/lifetime.py RATINGS.parquet LO HI  # real people, who arrive one after another

Synthetic: item means, loadings and popularity wander (an autoregression that keeps their spread):
`drift` is the share of their variance that is new after a year. Every week a tenth of everyone's
ratings is replaced by new ones of that week. Held out are ratings of the week itself.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

import tacit
from tacit.book import splits
from tacit.book.splits import planned_refits
from tacit.evaluation import evaluate, rank, user_mean_accuracy
from tacit.fitting import track

LIFETIME, DELTA = 1.0, 1e-6
STARS = (1.0, 5.0)


class Week(NamedTuple):
    """Ratings of all weeks up to now, and some of this week that were held out."""

    number: int
    train: tacit.Ratings
    test: pl.DataFrame


class People:
    """People with tastes, items that wander; rows of `per_user` ratings, a tenth of them new."""

    def __init__(self, users: int, items: int, per_user: int, drift: float, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.users, self.items, self.per_user = users, items, per_user
        self.keep = (1 - drift) ** (1 / 52)  # of the correlation, in a week
        rng = self.rng
        self.own = 0.4 * rng.standard_normal(users)
        self.tastes = rng.standard_normal((users, 4))
        self.means = 0.45 * rng.standard_normal(items)
        self.sizes = np.array([0.45, 0.35, 0.25, 0.2])
        self.loadings = self.sizes * rng.standard_normal((items, 4))
        self.rank_by = rng.standard_normal(items)
        self.catalogue = tacit.Catalogue(list(range(items)))
        self.test_users = rng.choice(users, min(4000, users), replace=False)
        self.chosen = self._choose(np.arange(users), per_user)
        self.stars = self._rate(np.arange(users)[:, None], self.chosen)

    def weeks(self, count: int) -> Iterator[Week]:
        """Yield one week after another."""
        for number in range(1, count + 1):
            if number > 1:
                self._drift()
                self._renew()
            yield Week(number, self._ratings(), self._held_out())

    def _drift(self) -> None:
        fresh = math.sqrt(1 - self.keep**2)
        noise = self.rng.standard_normal
        self.means = self.keep * self.means + fresh * 0.45 * noise(self.items)
        self.loadings = self.keep * self.loadings + fresh * self.sizes * noise((self.items, 4))
        self.rank_by = self.keep * self.rank_by + fresh * noise(self.items)

    def _choose(self, users: np.ndarray, count: int) -> np.ndarray:
        """Choose items by popularity and a little by taste, without an item twice."""
        appeal = self.rank_by + 0.4 * (self.tastes[users] @ self.loadings.T)
        appeal = appeal + self.rng.gumbel(size=appeal.shape)
        return np.argpartition(-appeal, count, axis=1)[:, :count]

    def _rate(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        fit = np.einsum("...k,...k->...", self.tastes[users], self.loadings[items])
        raw = 3.4 + self.own[users] + self.means[items] + fit
        raw = raw + 0.8 * self.rng.standard_normal(items.shape)
        return np.clip(np.round(raw), *STARS)

    def _renew(self) -> None:
        """Exchange a tenth of everyone's ratings for new ones."""
        count = max(1, self.per_user // 10)
        new = self._choose(np.arange(self.users), 3 * count)
        known = (new[:, :, None] == self.chosen[:, None, :]).any(axis=2)
        first = np.argsort(known, axis=1, kind="stable")[:, :count]
        rows = np.arange(self.users)[:, None]
        fresh, fine = new[rows, first], ~known[rows, first]
        slots = np.argsort(self.rng.random((self.users, self.per_user)), axis=1)[:, :count]
        stars = self._rate(rows, fresh)
        self.chosen[rows, slots] = np.where(fine, fresh, self.chosen[rows, slots])
        self.stars[rows, slots] = np.where(fine, stars, self.stars[rows, slots])

    def _ratings(self) -> tacit.Ratings:
        users = np.repeat(np.arange(self.users), self.per_user)
        return tacit.Ratings.from_arrays(
            users, self.chosen.ravel(), self.stars.ravel(), rating_range=STARS,
            catalogue=self.catalogue,
        )  # fmt: skip

    def _held_out(self) -> pl.DataFrame:
        """Return new ratings of this week, of items that these people have not rated."""
        users = self.test_users
        new = self._choose(users, min(40, self.items - 1))
        known = (new[:, :, None] == self.chosen[users][:, None, :]).any(axis=2)
        first = np.argsort(known, axis=1, kind="stable")[:, :6]
        rows = np.arange(users.size)[:, None]
        items, fine = new[rows, first], ~known[rows, first]
        stars = self._rate(users[:, None], items)
        who = np.broadcast_to(users[:, None], items.shape)
        return pl.DataFrame(
            {"user": who[fine], "item": items[fine], "rating": stars[fine].astype(np.float32)}
        )


class Types(People):
    """Another family: everyone is of one of eight types, and goes over to other types by and by.

    A type has a rating for each item; `drift` is how many people change their type in a year, and
    which part of all items exchange their popularity (a few very popular ones, as Zipf says). What
    is known lags behind at once, and not by a random walk.
    """

    def __init__(self, users: int, items: int, per_user: int, drift: float, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        self.likes = 0.7 * rng.standard_normal((8, items))
        self.weekly = 1 - (1 - drift) ** (1 / 52)
        self.type = self._types(rng, users)
        super().__init__(users, items, per_user, drift, seed)

    def _types(self, rng: np.random.Generator, count: int) -> np.ndarray:
        shares = 1.0 / np.arange(1, 9)
        return rng.choice(8, count, p=shares / shares.sum())

    def _drift(self) -> None:
        rng = self.rng
        moved = rng.random(self.users) < self.weekly
        self.type[moved] = (self.type[moved] + rng.integers(1, 8, moved.sum())) % 8
        new = rng.random((8, self.items)) < self.weekly
        self.likes[new] = 0.7 * rng.standard_normal(new.sum())
        places = np.flatnonzero(rng.random(self.items) < self.weekly)
        self.rank_by[places] = self.rank_by[rng.permutation(places)]

    def _choose(self, users: np.ndarray, count: int) -> np.ndarray:
        popular = -np.log1p(np.argsort(np.argsort(self.rank_by)))
        appeal = popular + 0.5 * self.likes[self.type[users]]
        appeal = appeal + self.rng.gumbel(size=appeal.shape)
        return np.argpartition(-appeal, count, axis=1)[:, :count]

    def _rate(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        raw = 3.4 + self.own[users] + self.likes[self.type[users], items]
        raw = raw + 0.8 * self.rng.standard_normal(items.shape)
        return np.clip(np.round(raw), *STARS)


FAMILIES = {"tastes": People, "types": Types}


def arriving(path: Path, users: int, stars: tuple[float, float], count: int) -> Iterator[Week]:
    """Real people in the order of their ids, as if they had come one after another."""
    frame = pl.read_parquet(path)
    names = [name for name in frame.columns if name in ("user", "item", "rating")]
    frame = frame.select(names)
    everyone = frame["user"].unique().sort().sample(users, seed=0, shuffle=True)
    frame = frame.join(pl.DataFrame({"user": everyone, "order": np.arange(users)}), on="user")
    catalogue = tacit.Catalogue(frame["item"].unique().sort())
    shuffled = frame.sample(fraction=1.0, seed=1, shuffle=True)
    held = shuffled.with_columns(pl.int_range(pl.len()).over("user").alias("n"))
    sizes = held.with_columns(pl.len().over("user").alias("size"))
    first = users // 3
    for number in range(1, count + 1):
        there = first + (users - first) * number // count
        now = sizes.filter(pl.col("order") < there)
        test = now.filter((pl.col("n") < 3) & (pl.col("size") >= 10) & (pl.col("order") < 6000))
        train = now.filter(~((pl.col("n") < 3) & (pl.col("size") >= 10)))
        ratings = tacit.Ratings.from_arrays(
            train["user"], train["item"], train["rating"], rating_range=stars, catalogue=catalogue
        )
        yield Week(number, ratings, test.select("user", "item", "rating"))


def measured(model: tacit.Model, week: Week) -> tuple[float, float]:
    """Return RMSE and NDCG@10 on what was held out."""
    lists = rank(model, week.train, week.test, k=10)
    return evaluate(model, week.train, week.test).rmse, lists.ndcg


def run(
    weeks: Iterator[Week], total: int, shown: list[int], title: str, split: str
) -> dict[int, np.ndarray]:
    """Refit every week; print what comes out in some of them, beside fits that do not remember.

    Return RMSE of refit, (a), (b), (c) and the user mean, and NDCG@10 of the first four, by week.
    """
    rows: dict[int, np.ndarray] = {}
    plan = planned_refits(LIFETIME, DELTA, total, split)
    share = planned_refits(LIFETIME, DELTA, total, "equal")[0].epsilon
    first, last = plan[0].epsilon, plan[-1].epsilon
    print(f"\n### {title}; {total} weeks, split {split!r}: epsilon {first:.3f} to {last:.3f}\n")
    print(
        "| week | refit | (a) one fit at epsilon 1 | (b) alone | (c) no privacy | user mean "
        "| refit, (a), (b), (c): NDCG@10 | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        book = tacit.Book.new(f"{folder}/people.book", epsilon=LIFETIME, delta=DELTA)
        for week in weeks:
            start = time.perf_counter()
            model = tacit.refit(week.train, book=book, epsilon=plan[week.number - 1].epsilon)
            seconds = time.perf_counter() - start
            if week.number not in shown:
                continue
            rivals = [
                tacit.fit(week.train, epsilon=LIFETIME, delta=DELTA),
                tacit.fit(week.train, epsilon=share, delta=DELTA),
                tacit.fit(week.train, budget=None),
            ]
            found = [measured(each, week) for each in (model, *rivals)]
            own = user_mean_accuracy(week.train, week.test).rmse
            row = np.array([rmse for rmse, _ in found] + [own] + [ndcg for _, ndcg in found])
            rows[week.number] = row
            print(f"| {week.number} | {_cells(row)} | {seconds:.1f} |", flush=True)
            if week.number == max(shown):
                break
    return rows


def _cells(row: np.ndarray) -> str:
    lists = ", ".join(f"{each:.3f}" for each in row[5:])
    return " | ".join(f"{each:.4f}" for each in row[:5]) + f" | {lists}"


def print_means(every: list[dict[int, np.ndarray]]) -> None:
    """Print means over runs, and by how much the refit differs from (a) and (b), with its error."""
    print(
        f"\nmeans of {len(every)} runs; refit / (a) - 1 and refit / (b) - 1 in %, and NDCG@10 less "
        "that of (b), with standard errors\n"
    )
    print("| week | refit | (a) | (b) | (c) | user mean | NDCG@10 | over (a) | over (b) | lists |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for week in every[0]:
        rows = np.array([each[week] for each in every])
        gaps = np.hstack([100 * (rows[:, :1] / rows[:, 1:3] - 1), rows[:, 5:6] - rows[:, 7:8]])
        errors = gaps.std(axis=0, ddof=1) / math.sqrt(len(every))
        one, two, lists = zip(gaps.mean(axis=0), errors, strict=True)
        told = [f"{mean:+.1f} ({error:.1f})" for mean, error in (one, two)]
        told.append(f"{lists[0]:+.3f} ({lists[1]:.3f})")
        print(f"| {week} | {_cells(rows.mean(axis=0))} | {' | '.join(told)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ratings", nargs="*", help="PARQUET LO HI; synthetic people without")
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--per-user", type=int, default=30)
    parser.add_argument("--drift", type=float, nargs="*", default=[0.0, 0.05, 0.3, 0.9])
    parser.add_argument("--split", default="first")
    parser.add_argument("--first", type=float, default=splits.FIRST_SHARE, help="of split first")
    parser.add_argument("--family", choices=FAMILIES, default="tastes")
    parser.add_argument("--lag", type=float, default=track._LAG, help="how much lag counts")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--show", type=int, nargs="*", default=[1, 4, 10, 26, 52])
    options = parser.parse_args()
    track._LAG, splits.FIRST_SHARE = options.lag, options.first
    if options.ratings:
        path, low, high = options.ratings
        stars, every = (float(low), float(high)), []
        for _ in options.seeds:  # of noise, which has no seed: the people are the same
            weeks = arriving(Path(path), options.users, stars, options.weeks)
            title = f"{options.users} real people"
            every.append(run(weeks, options.weeks, options.show, title, options.split))
        if len(every) > 1:
            print_means(every)
        return
    for drift in options.drift:
        every = []
        for seed in options.seeds:
            people = FAMILIES[options.family](
                options.users, options.items, options.per_user, drift, seed
            )
            title = f"{options.users} people, {options.items} items, drift {drift:g} a year"
            weeks = people.weeks(options.weeks)
            every.append(run(weeks, options.weeks, options.show, title, options.split))
        if len(every) > 1:
            print_means(every)


if __name__ == "__main__":
    main()
