"""The learned part of attacks: from what is seen to what is hidden, by ridge regression."""

from dataclasses import dataclass

import numpy as np

from tacit.models.rules import Floats

__all__ = ["Learned"]

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
