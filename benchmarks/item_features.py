r"""What public item features add: on items whose parameters follow them in part, and not at all.

Each rating is $y_{ij} = 3.2 + m_j + 0.4 b_i + F_j u_i + N(0, 0.7^2)$, rounded to half stars in
[0.5, 5]. $m_j$ and $F_j$ are a part $\sqrt{share}$ of linear functions of features (a genre, a
number, a vector of 3) and a part $\sqrt{1 - share}$ of their own. One item in ten has no rating in
the fit. A fit with features and one without make the same releases: they have the same seed of
noise. Prints a Markdown table of RMSE without -> with features on held-out ratings: of warm items,
of the less popular half of them, of cold items in the catalogue of the fit, and of cold items that
are added after it; then the root mean square of error/std of cold items, which is 1 for honest
stds. Run it as

    python benchmarks/item_features.py --users 4000 --items 400 --seeds 3
"""

import argparse
import warnings
from dataclasses import replace
from typing import NamedTuple

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
    """RMSE of held-out ratings of warm, rare and cold items, and of error/std of cold ones."""
    rows, columns, stars = world.test
    left, places = np.empty((2, rows.size)), model.catalogue.positions(columns)
    for start, scores, stds in model.predict_rows_with_std(of(model.catalogue, world)):
        mine = (rows >= start) & (rows < start + len(scores))
        at = rows[mine] - start, places[mine]
        left[0, mine], left[1, mine] = scores[at] - stars[mine], stds[at]
    rare = world.popularity < np.quantile(world.popularity, 0.5)
    groups = {"warm": ~world.cold, "rare": rare & ~world.cold, "cold": world.cold}
    found = {name: _root_mean_square(left[0, group[columns]]) for name, group in groups.items()}
    return found | {"error/std": _root_mean_square((left[0] / left[1])[world.cold[columns]])}


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def of(catalogue: tacit.Catalogue, world: World) -> tacit.Ratings:
    """The ratings to fit, of another catalogue with the same items or more."""
    if catalogue.ids.equals(world.catalogue.ids):
        return replace(world.train, catalogue=catalogue)
    train = world.train
    users = np.repeat(np.arange(train.n_users), np.diff(train.indptr))
    rated = train.items.astype(np.int64), train.values
    return tacit.Ratings.from_arrays(users, *rated, rating_range=RANGE, catalogue=catalogue)


def three_models(world: World, epsilon: float | None, seed: int) -> list[tacit.Model]:
    """Fits without features, with them, and of warm items only, with the cold ones added later."""
    bare = replace(world.catalogue, features=None)
    warm = world.catalogue.rows(np.flatnonzero(~world.cold))
    models = [fitted(of(each, world), epsilon, seed) for each in (bare, world.catalogue, warm)]
    return [*models[:2], models[2].with_items(world.catalogue)]


def fitted(ratings: tacit.Ratings, epsilon: float | None, seed: int) -> tacit.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.TacitWarning)
        if epsilon is None:
            return tacit.fit(ratings, budget=None)
        return tacit.fit(ratings, epsilon=epsilon, noise_seed_unsafe=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=4000)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.5, 0.9])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0, 0.0])
    options = parser.parse_args()
    print("| share | epsilon | warm | rare | cold | added | error/std, cold | added |")
    print(f"|{'---|' * 8}")
    for share in options.shares:
        for epsilon in options.epsilons:
            runs = [_run(share, epsilon or None, options, seed) for seed in range(options.seeds)]
            print(f"| {share:g} | {epsilon or 'none'} | {_cells(runs)} |", flush=True)


def _run(
    share: float, epsilon: float | None, options: argparse.Namespace, seed: int
) -> list[dict[str, float]]:
    world = made(share, options.users, options.items, seed)
    return [errors(model, world) for model in three_models(world, epsilon, seed)]


def _cells(runs: list[list[dict[str, float]]]) -> str:
    """Means over seeds: without -> with features, and for items added after the fit."""

    def mean(model: int, name: str) -> str:
        return f"{np.mean([run[model][name] for run in runs]):.3f}"

    cells = [f"{mean(0, name)} -> {mean(1, name)}" for name in ("warm", "rare", "cold")]
    cells += [mean(2, "cold"), f"{mean(0, 'error/std')} -> {mean(1, 'error/std')}"]
    return " | ".join([*cells, mean(2, "error/std")])


if __name__ == "__main__":
    main()
