"""Public features of items in a fit: used after its last release, where the method can."""

import warnings

from tacit.data.catalogue import Catalogue
from tacit.errors import TacitWarning
from tacit.models import Model
from tacit.models.latent import LatentFactorRule


def use_features(model: Model, catalogue: Catalogue) -> Model:
    """Return the model with the features of the catalogue used, if it has any.

    It is post-processing: it reads the published model and public features.
    """
    if catalogue.features is None:
        return model
    if isinstance(model.rule, LatentFactorRule):
        return model.with_items(catalogue)
    method = model.certificate.method
    warnings.warn(
        f"item features are not used: {method.name if method else 'this method'} has no use for "
        "them; LatentFactors, the default for ratings, has",
        TacitWarning,
        stacklevel=4,
    )
    return model
