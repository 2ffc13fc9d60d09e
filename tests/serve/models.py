"""Small model files for the tests of the server and the page."""

from functools import cache
from pathlib import Path

import numpy as np

import tacit
from tests.conftest import ratings_for

__all__ = ["latent_model", "save_latent", "touched_model"]


@cache
def latent_model(seed: int = 2) -> tacit.Model:
    """The default on a small problem."""
    ratings = ratings_for(seed, users=600, items=25, per_user=9)
    return tacit.fit(ratings, epsilon=4.0, delta=1e-4, noise_seed_unsafe=1)


@cache
def touched_model() -> tacit.Model:
    """A model of interactions, with whole numbers as ids."""
    items = [np.random.default_rng(u).choice(18, 6, replace=False) for u in range(200)]
    touched = tacit.Ratings.from_arrays(
        np.repeat(np.arange(200), 6),
        np.concatenate(items),
        np.ones(1200),
        implicit=True,
        catalogue=tacit.Catalogue(list(range(18))),
    )
    return tacit.fit(touched, epsilon=4.0, delta=1e-4, noise_seed_unsafe=1)


def save_latent(folder: Path, titles: list[str] | None = None) -> Path:
    """Write the default's model, perhaps with other titles."""
    model = latent_model()
    if titles is not None:
        ids = model.catalogue.ids.to_list()
        names = [*titles, *(f"Film No. {at}" for at in range(len(titles), len(ids)))]
        catalogue = tacit.Catalogue(ids, titles=names)
        model = tacit.Model(
            model.rule, catalogue, model.rating_range, model.certificate, model.releases
        )
    path = folder / "model.tacit"
    model.save(path)
    return path
