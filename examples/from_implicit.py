"""From implicit to tacit: the same program with either library, and what each finds.

Run it with `python examples/from_implicit.py`. If implicit is installed, its ALS is fitted too;
the lines that differ are in `theirs` and `ours`, and nowhere else.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from tacit.integrations.implicit import PrivateRecommender


def plays(people: int = 4000, items: int = 60, seed: int = 0) -> tuple[csr_matrix, np.ndarray]:
    """Return who played what, one play of each person held out, and what was held out."""
    rng = np.random.default_rng(seed)
    tastes = rng.integers(0, 3, people)
    chance = np.where(tastes[:, None] == np.arange(items) % 3, 0.4, 0.05)
    played = rng.random((people, items)) < chance
    played[np.arange(people), tastes] = True  # so that everyone has played something
    held_out = np.array([rng.choice(np.flatnonzero(row)) for row in played])
    played[np.arange(people), held_out] = False
    return csr_matrix(played.astype(np.float32)), held_out


def theirs() -> Any:
    """Return a model of implicit, or None where it is not installed."""
    try:
        from implicit.als import AlternatingLeastSquares
    except ImportError:
        return None
    return AlternatingLeastSquares(factors=8, random_state=0)


def ours() -> Any:
    """Return a private one: it needs an epsilon, and no number of factors."""
    return PrivateRecommender(epsilon=1.0)


def found(model: Any, matrix: csr_matrix, held_out: np.ndarray) -> float:
    """Fit, recommend ten items to everyone, and return how often what was held out is there."""
    model.fit(matrix, show_progress=False)
    people = np.arange(matrix.shape[0])
    ids, _ = model.recommend(people, matrix, N=10)
    return float(np.mean(np.any(ids == held_out[:, None], axis=1)))


def main() -> None:
    """Compare both, and show what is new."""
    matrix, held_out = plays()
    known = theirs()
    if known is not None:
        print(f"implicit, not private: {found(known, matrix, held_out):.2f} found among ten")
    private = ours()
    print(f"tacit, epsilon 1:      {found(private, matrix, held_out):.2f} found among ten")
    popular = np.argsort(-np.asarray(matrix.sum(axis=0)).ravel())[:10]
    print(f"the ten most popular:  {np.mean(np.isin(held_out, popular)):.2f}")
    print(private.model)
    print("items like item 4:", private.similar_items(4, N=4)[0])
    try:
        private.similar_users(0)
    except NotImplementedError as refused:
        print("similar_users:", refused)


if __name__ == "__main__":
    main()
