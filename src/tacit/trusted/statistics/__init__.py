"""All statistics: one file each, with its formula and the proof of its sensitivity."""

from tacit.trusted.statistics.covariance import ResidualCovariance
from tacit.trusted.statistics.descent_moments import DescentMoments
from tacit.trusted.statistics.energy import ResidualEnergy
from tacit.trusted.statistics.expected_equations import ExpectedEquations
from tacit.trusted.statistics.expected_gradient import ExpectedGradient
from tacit.trusted.statistics.factor_gradient import FactorGradient
from tacit.trusted.statistics.factor_moments import FactorMoments
from tacit.trusted.statistics.filled_covariance import FilledCovariance
from tacit.trusted.statistics.holdout_losses import HeldOutLosses, Holdout
from tacit.trusted.statistics.item_counts import ItemCounts
from tacit.trusted.statistics.item_sums import ItemSums
from tacit.trusted.statistics.norm_histogram import RowNorms
from tacit.trusted.statistics.normal_equations import NormalEquations, equations_sensitivity
from tacit.trusted.statistics.posterior import LatentModel
from tacit.trusted.statistics.product import ResidualProduct, product_sensitivity
from tacit.trusted.statistics.rating_count import RatingCount
from tacit.trusted.statistics.row_sums import RowSums
from tacit.trusted.statistics.user_count import UserCount
from tacit.trusted.statistics.user_moments import UserMoments

__all__ = [
    "DescentMoments",
    "ExpectedEquations",
    "ExpectedGradient",
    "FactorGradient",
    "FactorMoments",
    "FilledCovariance",
    "HeldOutLosses",
    "Holdout",
    "ItemCounts",
    "ItemSums",
    "LatentModel",
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
