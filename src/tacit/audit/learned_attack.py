"""Attacks that are learned: from what is seen to what is hidden, by regularised linear regression.

`Learned` guesses hidden numbers from examples. `learned_scores` is an attack on the whole published
model, which uses what a model file holds, and nothing else. Of each model it sees the arrays of the
local rule, their products by item (which do not depend on the signs and the order of latent
factors), the numbers beside them, and the scores that the rule gives to the two rows in question. A
linear score is learned on some fits and used on others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.audit.population import Row
from tacit.models import Model
from tacit.models.rules import Floats, OwnRows

_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # times the mean square of what is seen


@dataclass(frozen=True, eq=False)
class Learned:
    """The best linear guess of what is hidden, learned from examples."""

    centre: Floats
    scale: Floats
    weights: Floats
    mean: Floats
    far: float

    @classmethod
    def from_examples(cls, seen: Floats, hidden: Floats, far: float = np.inf) -> "Learned":
        """Learn from rows of examples; the ridge is that which errs least on rows left out.

        What is seen is cut off beyond `far` sds: noise has outliers.
        """
        centre, scale = seen.mean(axis=0), seen.std(axis=0)
        scale = np.where(scale > 1e-12 * (1 + np.abs(centre)), scale, np.inf)
        rows = np.clip((seen - centre) / scale, -far, far)
        mean = hidden.mean(axis=0)
        products = rows @ rows.T
        size = max(float(np.trace(products)) / len(rows), 1e-300)
        tried = [_left_out(products, hidden - mean, ridge * size) for ridge in _RIDGES]
        best = int(np.argmin([error for error, _ in tried]))
        return cls(centre, scale, rows.T @ tried[best][1], mean, far)

    def guess(self, seen: Floats) -> Floats:
        """Return guesses of what is hidden, for one or many rows of what is seen."""
        rows = np.clip((seen - self.centre) / self.scale, -self.far, self.far)
        return np.asarray(rows @ self.weights + self.mean)


def _left_out(products: Floats, hidden: Floats, ridge: float) -> tuple[float, Floats]:
    """Return the mean square error on examples left out one by one, and the solution."""
    inverse = np.linalg.inv(products + ridge * np.eye(len(hidden)))
    solution = inverse @ hidden
    return float(np.mean((solution / np.diag(inverse)[:, None]) ** 2)), solution


Named = dict[str, Floats]

_FAR = 4.0  # what is further out, in robust sds, counts as this far
_SCORE_RIDGES = (0.03, 0.3, 3.0, 30.0)


def features(model: Model, rows: Sequence[Row]) -> Named:
    """Return everything that an attacker reads off a model file, by name."""
    arrays, settings = model.rule.parts()
    found: Named = {}
    for name, array in arrays.items():
        found[name] = array.ravel()
        for axis in range(array.ndim):
            if array.ndim > 1 and array.shape[axis] == len(model.catalogue):
                found[f"{name} by items, axis {axis}"] = _products(array, axis)
    numbers = [float(value) for value in settings.values() if isinstance(value, int | float)]
    found["numbers"] = np.array(numbers)
    if rows:
        found["scores"] = model.rule.scores(_own(rows)).ravel()
    return found


def _products(array: Floats, axis: int) -> Floats:
    """Return the products of all pairs of items, which turning directions does not change."""
    flat = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    return np.asarray((flat @ flat.T)[np.triu_indices(len(flat))])


def _own(rows: Sequence[Row]) -> OwnRows:
    """Return rows as own ratings."""
    rated = [np.flatnonzero(~np.isnan(row)) for row in rows]
    indptr = np.cumsum([0, *(len(items) for items in rated)])
    values = [row[items] for row, items in zip(rows, rated, strict=True)]
    items = np.concatenate(rated).astype(np.uint16)
    return OwnRows(indptr.astype(np.int64), items, np.concatenate(values).astype(np.float32))


def learned_scores(
    seen: tuple[Sequence[Named], Sequence[Named]], unseen: tuple[Sequence[Named], Sequence[Named]]
) -> tuple[Floats, Floats]:
    """Learn a score from models (without her, with her), and return those of others."""
    names = _common([*seen[0], *seen[1], *unseen[0], *unseen[1]])
    without, with_her, *others = (_table(models, names) for models in (*seen, *unseen))
    half, rest = len(without) // 2, len(with_her) // 2
    first, second = (without[:half], with_her[:rest]), (without[half:], with_her[rest:])
    ridge = max(_SCORE_RIDGES, key=lambda ridge: _parted(first, second, ridge))
    weights, centre, scale = _weights(without, with_her, ridge)
    scores = [_squashed(table, centre, scale) @ weights for table in others]
    return scores[0], scores[1]


def _common(models: Sequence[Named]) -> list[str]:
    """Return the names whose arrays have the same size in all models."""
    return [
        name
        for name, array in models[0].items()
        if all(name in model and model[name].size == array.size for model in models)
    ]


def _table(models: Sequence[Named], names: list[str]) -> Floats:
    table = np.array([np.concatenate([model[name] for name in names]) for model in models])
    return np.asarray(np.nan_to_num(table, posinf=0.0, neginf=0.0))


def _squashed(table: Floats, centre: Floats, scale: Floats) -> Floats:
    """Return columns in robust sds, with what is far out drawn in: noise has outliers."""
    return np.clip((table - centre) / scale, -_FAR, _FAR)


def _weights(without: Floats, with_her: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
    """Return the weights of a regularised linear discriminant, and how columns are scaled."""
    both = np.concatenate([without, with_her])
    centre = np.median(both, axis=0)
    scale = 1.4826 * np.median(np.abs(both - centre), axis=0)
    scale = np.where(scale > 0, scale, np.where(both.std(axis=0) > 0, both.std(axis=0), 1.0))
    one, other = (_squashed(table, centre, scale) for table in (without, with_her))
    spread = (np.cov(one.T) * len(one) + np.cov(other.T) * len(other)) / (len(one) + len(other))
    apart = other.mean(axis=0) - one.mean(axis=0)
    weights = np.linalg.solve(np.atleast_2d(spread) + ridge * np.eye(apart.size), apart)
    return weights, centre, scale


def _parted(seen: tuple[Floats, Floats], unseen: tuple[Floats, Floats], ridge: float) -> float:
    """Return how far apart a score learned on some models parts others, in sds."""
    weights, centre, scale = _weights(*seen, ridge)
    one, other = (_squashed(table, centre, scale) @ weights for table in unseen)
    spread = float(np.sqrt((one.var() + other.var()) / 2))
    return float(other.mean() - one.mean()) / spread if spread > 0 else 0.0
