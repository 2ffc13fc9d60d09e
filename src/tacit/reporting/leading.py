"""Where the method that is claimed to lead does not: one sentence for each case."""

import math
import statistics
from collections.abc import Sequence

from tacit.research.experiments.spec import Experiment, epsilon_text
from tacit.research.experiments.summary import Point


def leading_sentences(experiment: Experiment, points: Sequence[Point]) -> list[str]:
    """Return a sentence for every dataset and epsilon where another method has a lower mean.

    Predictors that cost nothing count as rivals at every epsilon; those that look at everyone's
    ratings without paying count only where nobody pays. A rival whose certificate lists the very
    same settings is the same fit, and no rival.
    """
    sentences = []
    for own in points:
        if own.cell.method.label != experiment.leader:
            continue
        where = f"{own.cell.dataset.label}, {_at(own.cell.epsilon)}"
        rivals = [point for point in points if _is_rival(own, point)]
        if not own.values and not rivals:  # a dataset that is not here
            continue
        if not own.values:
            sentences.append(f"{where}: **{experiment.leader} gave no result** ({own.reason}).")
            continue
        best = min(rivals, key=lambda point: point.mean, default=None)
        if best is not None and best.mean < own.mean:
            sentences.append(f"{where}: {_lead(own, best)}")
    return sentences


def _at(epsilon: float | None) -> str:
    text = epsilon_text(epsilon)
    return text if epsilon is None or math.isinf(epsilon) else f"epsilon {text}"


def _is_rival(own: Point, other: Point) -> bool:
    same_place = other.cell.dataset.label == own.cell.dataset.label
    if other is own or not same_place or not other.values:
        return False
    if other.used and other.used == own.used:
        return False
    if other.cell.epsilon is None:  # all yardsticks but a user's own mean look at everyone's
        without = own.cell.epsilon is not None and math.isinf(own.cell.epsilon)
        return other.cell.method.algorithm == "user-mean" or without
    return other.cell.epsilon == own.cell.epsilon


def _lead(own: Point, best: Point) -> str:
    """Say by how much a rival leads, and whether that is more than chance would give."""
    common = sorted(set(own.values) & set(best.values))
    gaps = [own.values[draw] - best.values[draw] for draw in common]
    gap = own.mean - best.mean
    text = (
        f"**{best.cell.method.label}** leads with {best.mean:.4f} against {own.mean:.4f} of "
        f"{own.cell.method.label} ({100 * gap / own.mean:.2f} % lower"
    )
    if len(gaps) < 2:
        return text + "; a single draw)."
    error = statistics.stdev(gaps) / math.sqrt(len(gaps))
    sure = "more" if gap > 2 * error else "less"
    return f"{text}; {sure} than twice the standard error of the difference, {error:.4f})."
