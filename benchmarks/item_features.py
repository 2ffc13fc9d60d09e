r"""What public item features add: on items whose parameters follow them in part, and not at all.

Each rating is $y_{ij} = 3.2 + m_j + 0.4 b_i + F_j u_i + N(0, 0.7^2)$, rounded to half stars in
[0.5, 5]. $m_j$ and $F_j$ are a part $\sqrt{share}$ of linear functions of features (a genre, a
number, a vector of 3) and a part $\sqrt{1 - share}$ of their own. One item in ten has no rating in
the fit. A fit with features and one without make the same releases: they have the same seed of
noise. Run it as

    python benchmarks/item_features.py --users 4000 --items 400 --seeds 3
"""

import argparse
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import tacit

RANGE = (0.5, 5.0)
RANK, GENRES = 3, 8


class World(NamedTuple):
    """Ratings to fit and to test, the catalogue with features, and which items are cold."""

    train: tacit.Ratings
    test: tuple[np.ndarray, np.ndarray, np.ndarray]
    catalogue: tacit.Catalogue
    cold: np.ndarray
    popularity: np.ndarray


def made(share: float, users: int, items: int, seed: int, per_user: int = 30) -> World:
    rng = np.random.default_rng(seed)
    genre, year = rng.integers(GENRES, size=items), rng.standard_normal(items)
    vector = rng.standard_normal((items, 3))
    design = np.column_stack([2.0 * np.eye(GENRES)[genre], year, vector])
    told = design @ rng.standard_normal((design.shape[1], RANK + 1)) / np.sqrt(8.0)
    own = rng.standard_normal((items, RANK + 1))
    items_numbers = np.sqrt(share) * told + np.sqrt(1 - share) * own
    factors, means = 0.4 * items_numbers[:, :RANK], 0.45 * items_numbers[:, RANK]
    popularity = (1.0 + rng.permutation(items)) ** -0.8
    cold = rng.random(items) < 0.1
    taste, bias = rng.standard_normal((users, RANK)), 0.4 * rng.standard_normal(users)
    keys = np.log(popularity) + rng.gumbel(size=(users, items))
    rows = np.repeat(np.arange(users), per_user)
    columns = np.argsort(-keys, axis=1)[:, :per_user].ravel()
    exact = 3.2 + means[columns] + bias[rows] + np.sum(factors[columns] * taste[rows], axis=1)
    stars = np.clip(np.round(2 * (exact + 0.7 * rng.standard_normal(rows.size))) / 2, *RANGE)
    held = cold[columns] | (rng.random(rows.size) < 0.15)
    table = {"genre": [f"g{each}" for each in genre], "year": year, "vector": vector}
    catalogue = tacit.Catalogue(np.arange(items), features=table)
    train = tacit.Ratings.from_arrays(
        rows[~held], columns[~held], stars[~held], rating_range=RANGE, catalogue=catalogue
    )
    test = rows[held], columns[held], stars[held].astype(np.float64)
    return World(train, test, catalogue, cold, popularity)


def errors(model: tacit.Model, world: World) -> dict[str, float]:
    """RMSE of held-out ratings of popular, rare and cold items, and error/std of cold ones."""
    rows, columns, stars = world.test
    left = np.empty((2, rows.size))
    for start, scores, stds in model.predict_rows_with_std(world.train):
        mine = (rows >= start) & (rows < start + len(scores))
        at = rows[mine] - start, columns[mine]
        left[0, mine], left[1, mine] = scores[at] - stars[mine], stds[at]
    rare = world.popularity < np.quantile(world.popularity, 0.5)
    groups = {"warm": ~world.cold, "rare": rare & ~world.cold, "cold": world.cold}
    found = {
        name: float(np.sqrt(np.mean(left[0, group[columns]] ** 2)))
        for name, group in groups.items()
    }
    ratio = left[0] / left[1]
    return found | {"z": float(np.sqrt(np.mean(ratio[world.cold[columns]] ** 2)))}


def fitted(ratings: tacit.Ratings, epsilon: float | None, seed: int) -> tacit.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.TacitWarning)
        if epsilon is None:
            return tacit.fit(ratings, budget=None)
        return tacit.fit(ratings, epsilon=epsilon, noise_seed_unsafe=seed)


def plain(ratings: tacit.Ratings) -> tacit.Ratings:
    """The same ratings of a catalogue without features."""
    return replace(ratings, catalogue=replace(ratings.catalogue, features=None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=4000)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.5, 0.9])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0, 0.0])
    options = parser.parse_args()
    names = ("warm", "rare", "cold", "z")
    heads = " | ".join(f"{name}, without | with" for name in names)
    print(f"| share | epsilon | {heads} |\n|{'---|' * (2 + 2 * len(names))}")
    for share in options.shares:
        for epsilon in options.epsilons:
            table: list[list[dict[str, Any]]] = []
            for seed in range(options.seeds):
                world = made(share, options.users, options.items, seed)
                both = (plain(world.train), world.train)
                models = [fitted(ratings, epsilon or None, seed) for ratings in both]
                table.append([errors(model, world) for model in models])
            cells = [
                f"{np.mean([row[k][name] for row in table]):.4f}" for name in names for k in (0, 1)
            ]
            print(f"| {share:g} | {epsilon or 'none'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
