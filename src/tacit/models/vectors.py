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
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit._atomic import reason_of
from tacit._validate import path_of
from tacit.data.catalogue import Catalogue
from tacit.errors import ConfigError, MissingPackage
from tacit.models.implicit import InteractionRule
from tacit.models.latent import LatentFactorRule
from tacit.models.linear import ProjectionRule, RidgeRule
from tacit.models.rules import Floats, LocalRule, OwnRows

if TYPE_CHECKING:
    import polars as pl

_NEIGHBOURS = 32  # links of an item in the graph of an index


class HasVectors:
    """Items and people as vectors; a part of `Model`."""

    rule: LocalRule
    catalogue: Catalogue

    @property
    def item_vectors(self) -> Floats:
        """A vector for each item, in the order of the catalogue; they may be published.

        Its product with `user_vector` is the predicted rating of the item, before it is moved into
        the rating range. The last column is the item's own offset, or for interactions its
        popularity. Post-processing of releases.

        Raises:
            ConfigError: predictions of this model are no inner products.
        """
        make = _BASES.get(type(self.rule))
        if make is None:
            raise ConfigError(
                f"item_vectors: predictions of this model's local rule ({self.rule.kind}) are no "
                "inner products of vectors; fit with LatentFactors, Moments, ALS, SVD or "
                "Interactions"
            )
        return np.ascontiguousarray(make(self.rule), dtype=np.float64)

    def user_vector(self, own_ratings: Any) -> Floats:
        """Return a person's vector, from her own ratings as `predict` takes them; for her alone.

        It tells about her ratings, and no certificate covers it: do not publish it.
        """
        return self.vector_of_scores(self.rule.scores(self._own(own_ratings))[0])

    def vector_of_scores(self, scores: Floats) -> Floats:
        r"""Return the shortest vector b whose products with the item vectors are these scores.

        Scores of a rule with vectors lie in their column space, $s = A b$, so least squares find b
        exactly: it is not another way to predict.
        """
        vectors = self.item_vectors
        scale = np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)
        solved, *_ = np.linalg.lstsq(vectors / scale, scores, rcond=1e-12)
        return np.asarray(solved / scale)

    def export_vectors(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the item vectors, whole or not at all: .parquet (item, title, vector) or .npy."""
        from tacit._atomic import durable_file
        from tacit._outputs import Kind, Output, check_replaceable

        target = path_of("path", path)
        if target.suffix not in {".parquet", ".npy"}:
            expected = "expected a name that ends in .parquet or .npy"
            raise ConfigError(f"path={target.name!r}: {expected}")
        check_replaceable(Output("path", target, Kind.RATINGS), overwrite=overwrite)
        try:
            with durable_file(target) as file:
                if target.suffix == ".npy":
                    np.save(file, self.item_vectors)
                else:
                    self._vector_frame().write_parquet(file)
        except OSError as error:
            raise ConfigError(f"path={target}: cannot be written ({reason_of(error)})") from None

    def ann_index(self) -> Any:
        """Return a faiss index of the items, for approximate search by inner product.

        Needs the extra `tacit[ann]`. `index.search(vectors, n)` gives positions in the catalogue.
        Its order is that of predicted ratings; give what it finds to
        `recommend(own, candidates=...)` for the order of this model.
        """
        try:
            import faiss
        except ImportError:
            raise MissingPackage("ann_index", "faiss", "ann") from None
        vectors = self.item_vectors.astype(np.float32)
        index = faiss.IndexHNSWFlat(vectors.shape[1], _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        index.add(vectors)
        return index

    def _vector_frame(self) -> "pl.DataFrame":
        """Return a frame with columns item, title (where there are titles) and vector."""
        import polars as pl

        vectors, catalogue = self.item_vectors, self.catalogue
        columns: dict[str, Any] = {"item": catalogue.ids}
        if catalogue.titles is not None:
            columns["title"] = [catalogue.title(at) for at in range(len(catalogue))]
        columns["vector"] = pl.Series(
            vectors.astype(np.float32), dtype=pl.Array(pl.Float32, vectors.shape[1])
        )
        return pl.DataFrame(columns)

    def _own(self, own_ratings: Any) -> OwnRows:
        """Return a person's own ratings as a row."""
        raise NotImplementedError


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
