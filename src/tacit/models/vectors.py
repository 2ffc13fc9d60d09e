r"""Items and people as vectors whose inner products are predictions, for other programs.

$\hat y_{ij} = \langle a_j, b_i \rangle$, where $a_j$ is row j of `item_vectors` and $b_i$ is
`user_vector` of what person i rated, before predictions are moved into the rating range.

*What may be published:* item vectors are rows of the published model or products of them:
post-processing of the releases, covered by the certificate. A user vector is computed from her own
ratings. It is the user's, like her list, and covered by nothing if it is shown to others: an index
of items may be public, an index of users may not.
"""

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit._validate import path_of
from tacit.errors import ConfigError
from tacit.models.implicit import InteractionRule
from tacit.models.latent import LatentFactorRule
from tacit.models.linear import ProjectionRule, RidgeRule
from tacit.models.rules import Floats, LocalRule

if TYPE_CHECKING:
    import polars as pl

    from tacit.models.model import Model

__all__ = [
    "HasVectors",
    "ann_index",
    "item_vectors",
    "user_vector",
    "vector_frame",
    "write_vectors",
]

_NEIGHBOURS = 32  # links of an item in the graph of an index


class HasVectors:
    """Items and people as vectors; a part of `Model`."""

    @property
    def item_vectors(self) -> Floats:
        """A vector for each item, in the order of the catalogue; they may be published.

        Its product with `user_vector` is the predicted rating of the item, before it is moved into
        the rating range. The last column is the item's own offset. Post-processing of releases.

        Raises:
            ConfigError: predictions of this model are no inner products.
        """
        return item_vectors(cast("Model", self).rule)

    def user_vector(self, own_ratings: Any) -> Floats:
        """Return a person's vector, from her own ratings as `predict` takes them; for her alone.

        It tells about her ratings, and no certificate covers it: do not publish it.
        """
        model = cast("Model", self)
        return user_vector(model, model.rule.scores(model._own(own_ratings))[0])

    def export_vectors(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the item vectors to a file: .parquet (item, title, vector) or .npy."""
        write_vectors(cast("Model", self), path, overwrite=overwrite)

    def ann_index(self) -> Any:
        """Return a faiss index of the items, for search by inner product with a user vector.

        Needs the extra `tacit[ann]`. Positions that it finds are those of the catalogue.
        """
        return ann_index(cast("Model", self))


def item_vectors(rule: LocalRule) -> Floats:
    """Return a vector for each item of the catalogue, in its order, items by dimensions.

    The last column is the item's own part: its offset, or for interactions its popularity.

    Raises:
        ConfigError: predictions of this local rule are no inner products.
    """
    make = _BASES.get(type(rule))
    if make is None:
        raise ConfigError(
            f"item_vectors: predictions of this model's local rule ({rule.kind}) are no inner "
            "products of vectors; fit with LatentFactors, Moments, ALS, SVD or Interactions"
        )
    return np.ascontiguousarray(make(rule), dtype=np.float64)


def user_vector(model: "Model", scores: Floats) -> Floats:
    r"""Return the shortest vector b whose products with the item vectors are these scores.

    Scores of a rule with vectors lie in their column space, $s = A b$, so least squares find b
    exactly: it is not another way to predict.
    """
    vectors = item_vectors(model.rule)
    scale = np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)
    solved, *_ = np.linalg.lstsq(vectors / scale, scores, rcond=1e-12)
    return np.asarray(solved / scale)


def vector_frame(model: "Model") -> "pl.DataFrame":
    """Return a frame with columns item, title (where there are titles) and vector."""
    import polars as pl

    vectors = item_vectors(model.rule)
    columns: dict[str, Any] = {"item": model.catalogue.ids}
    if model.catalogue.titles is not None:
        columns["title"] = [model.catalogue.title(at) for at in range(len(model.catalogue))]
    columns["vector"] = pl.Series(
        vectors.astype(np.float32), dtype=pl.Array(pl.Float32, vectors.shape[1])
    )
    return pl.DataFrame(columns)


def write_vectors(model: "Model", path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write the item vectors, whole or not at all: .parquet with ids, or .npy without."""
    from tacit._atomic import durable_file
    from tacit._outputs import Kind, Output, check_replaceable

    target = path_of("path", path)
    if target.suffix not in {".parquet", ".npy"}:
        raise ConfigError(f"path={target.name!r}: expected a name that ends in .parquet or .npy")
    check_replaceable(Output("path", target, Kind.RATINGS), overwrite=overwrite)
    try:
        with durable_file(target) as file:
            if target.suffix == ".npy":
                np.save(file, item_vectors(model.rule))
            else:
                vector_frame(model).write_parquet(file)
    except OSError as error:
        raise ConfigError(f"path={target}: cannot be written ({error.strerror})") from None


def ann_index(model: "Model") -> Any:
    """Return a faiss index of the items for approximate search by inner product.

    `index.search(vectors, n)` gives positions in the catalogue. Its order is that of predicted
    ratings; give what it finds to `recommend(own, candidates=...)` for the order of this model.
    """
    try:
        import faiss
    except ImportError:
        raise ConfigError(
            "ann_index needs the package faiss: install tacit[ann], or export the vectors"
        ) from None
    vectors = item_vectors(model.rule).astype(np.float32)
    index = faiss.IndexHNSWFlat(vectors.shape[1], _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.add(vectors)
    return index


def _with_ones(factors: Floats, offsets: Floats) -> Floats:
    return np.column_stack([factors, np.ones(offsets.size), offsets])


_BASES: dict[type, Callable[[Any], Floats]] = {
    LatentFactorRule: lambda rule: np.column_stack([rule.factors, rule.offsets]),
    RidgeRule: lambda rule: _with_ones(rule.factors, rule.offsets),
    ProjectionRule: lambda rule: _with_ones(rule.basis, rule.offsets),
    InteractionRule: lambda rule: np.column_stack(
        [rule.factors * rule.offsets[:, None], rule.offsets]
    ),
}
