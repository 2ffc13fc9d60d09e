"""What to expect before any budget is spent: of `Moments`, and by the paper's theorems.

Public numbers in, public numbers out. `tacit plan` shows them as a table.
"""

from tacit.research.theory.bounds import (
    Bound,
    best_rounds,
    empirical_risk,
    empirical_risk_at_best,
    frank_wolfe_risk,
    generalisation_error,
    generalisation_gap,
    generalisation_rounds,
    recommended_rounds,
    share_kept,
    zero_error,
)
from tacit.research.theory.case import Case
from tacit.research.theory.expectation import Expectation, UsersNeeded, expect
from tacit.research.theory.forecast import Forecast, forecast
from tacit.research.theory.incoherence import condition_number, incoherence, spectral_gap
from tacit.research.theory.noise import (
    NoiseComparison,
    compare_noise,
    eigenvalue_error,
    energy_loss,
    oracle_slack,
    paper_noise_sd,
)
from tacit.research.theory.plan import Plan, PlannedBound, Verdict, favours, make_plan
from tacit.research.theory.problem import Problem, every_entry, rank_one, unit_rows
from tacit.research.theory.subspace import (
    oja_loss,
    oja_noise_sd,
    oja_steps,
    oja_variance,
    privacy_parameter,
    ratings_needed,
    sampling_error,
    subspace_error,
    svd_error,
    svd_error_by_rows,
)
from tacit.research.theory.tables import TABLE_1, TABLE_2, ApproximationError, SampleComplexity
from tacit.research.theory.tastes import Tastes

__all__ = [
    "TABLE_1",
    "TABLE_2",
    "ApproximationError",
    "Bound",
    "Case",
    "Expectation",
    "Forecast",
    "NoiseComparison",
    "Plan",
    "PlannedBound",
    "Problem",
    "SampleComplexity",
    "Tastes",
    "UsersNeeded",
    "Verdict",
    "best_rounds",
    "compare_noise",
    "condition_number",
    "eigenvalue_error",
    "empirical_risk",
    "empirical_risk_at_best",
    "energy_loss",
    "every_entry",
    "expect",
    "favours",
    "forecast",
    "frank_wolfe_risk",
    "generalisation_error",
    "generalisation_gap",
    "generalisation_rounds",
    "incoherence",
    "make_plan",
    "oja_loss",
    "oja_noise_sd",
    "oja_steps",
    "oja_variance",
    "oracle_slack",
    "paper_noise_sd",
    "privacy_parameter",
    "rank_one",
    "ratings_needed",
    "recommended_rounds",
    "sampling_error",
    "share_kept",
    "spectral_gap",
    "subspace_error",
    "svd_error",
    "svd_error_by_rows",
    "unit_rows",
    "zero_error",
]
