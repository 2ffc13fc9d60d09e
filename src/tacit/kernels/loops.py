"""The loops of a fit, by name: what statistics ask for, and an engine may replace."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.kernels.alike import co_occurrences
from tacit.kernels.factors import factor_gradient
from tacit.kernels.filled import descend, map_rows, quantise_rows
from tacit.kernels.holdout import add_losses
from tacit.kernels.items import row_sums, weighted_counts, weighted_sums
from tacit.kernels.latent import expected_equations, expected_gradient, factor_moments
from tacit.kernels.normal_equations import normal_equations
from tacit.kernels.norms import count_norms
from tacit.kernels.residuals import advance, covariance, energy, moments, product
from tacit.kernels.rows import choose, keep_inside, lengths_inside, row_means_and_scales
from tacit.kernels.user_moments import user_moments

Loop = Callable[..., Any]


@dataclass(frozen=True)
class Loops:
    """One loop for each task. Another one takes the same arguments and gives the same integers.

    An engine with loops of its own (for a GPU, say) has `replace(LOOPS, covariance=...)`.
    """

    lengths_inside: Loop
    keep_inside: Loop
    choose: Loop
    row_means_and_scales: Loop
    advance: Loop
    descend: Loop
    map_rows: Loop
    quantise_rows: Loop
    covariance: Loop
    co_occurrences: Loop
    product: Loop
    energy: Loop
    moments: Loop
    factor_gradient: Loop
    normal_equations: Loop
    weighted_sums: Loop
    weighted_counts: Loop
    row_sums: Loop
    count_norms: Loop
    user_moments: Loop
    add_losses: Loop
    factor_moments: Loop
    expected_gradient: Loop
    expected_equations: Loop


LOOPS = Loops(
    lengths_inside=lengths_inside,
    keep_inside=keep_inside,
    choose=choose,
    row_means_and_scales=row_means_and_scales,
    advance=advance,
    descend=descend,
    map_rows=map_rows,
    quantise_rows=quantise_rows,
    covariance=covariance,
    co_occurrences=co_occurrences,
    product=product,
    energy=energy,
    moments=moments,
    factor_gradient=factor_gradient,
    normal_equations=normal_equations,
    weighted_sums=weighted_sums,
    weighted_counts=weighted_counts,
    row_sums=row_sums,
    count_norms=count_norms,
    user_moments=user_moments,
    add_losses=add_losses,
    factor_moments=factor_moments,
    expected_gradient=expected_gradient,
    expected_equations=expected_equations,
)
"""The loops of this package, compiled for processors."""
