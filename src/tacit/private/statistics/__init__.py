"""All statistics: one file each, with its formula and the proof of its sensitivity."""

from tacit.private.statistics.covariance import ResidualCovariance
from tacit.private.statistics.descent_moments import DescentMoments
from tacit.private.statistics.energy import ResidualEnergy
from tacit.private.statistics.factor_gradient import FactorGradient
from tacit.private.statistics.filled_covariance import FilledCovariance
from tacit.private.statistics.holdout_losses import HeldOutLosses, Holdout
from tacit.private.statistics.item_counts import ItemCounts
from tacit.private.statistics.item_sums import ItemSums
from tacit.private.statistics.norm_histogram import RowNorms
from tacit.private.statistics.normal_equations import NormalEquations, equations_sensitivity
from tacit.private.statistics.product import ResidualProduct, product_sensitivity
from tacit.private.statistics.rating_count import RatingCount
from tacit.private.statistics.row_sums import RowSums
from tacit.private.statistics.user_count import UserCount
from tacit.private.statistics.user_moments import UserMoments

__all__ = [
    "DescentMoments",
    "FactorGradient",
    "FilledCovariance",
    "HeldOutLosses",
    "Holdout",
    "ItemCounts",
    "ItemSums",
    "NormalEquations",
    "RatingCount",
    "ResidualCovariance",
    "ResidualEnergy",
    "ResidualProduct",
    "RowNorms",
    "RowSums",
    "UserCount",
    "UserMoments",
    "equations_sensitivity",
    "product_sensitivity",
]
