"""A picture of a plan of refits: what is spent, and the RMSE to expect. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.book.splits import PlannedRefit
from tacit.reporting.drawing import QUIET, check_picture, save_figure
from tacit.reporting.plan_figure import new_figure
from tacit.research.theory.case import Case
from tacit.research.theory.forecast import forecast
from tacit.research.theory.lifetime import expected_of

_POINTS = 14
_BLUE, _ORANGE = "#2f5d8a", "#c8702a"


def draw_lifetime(
    refits: Sequence[PlannedRefit], case: Case, path: Path, *, overwrite: bool = False
) -> None:
    """Draw the epsilon that is spent so far, and the RMSE of refits with and without memory."""
    check_picture("--plot", path, overwrite=overwrite)
    with new_figure(1, 2) as (figure, axes):
        numbers = [refit.number for refit in refits]
        left, right = axes[0]
        left.plot(numbers, [refit.spent_epsilon for refit in refits], color=_BLUE, label="spent")
        left.plot(
            numbers, [refit.epsilon for refit in refits], color=QUIET, ls=":", label="each refit"
        )
        left.set(title="epsilon", xlabel="refit", ylim=(0, None))
        left.legend(frameon=False)
        at = np.unique(np.geomspace(1, len(refits), _POINTS).round().astype(int))
        chosen = [refits[number - 1] for number in at]
        together = [expected_of(case, refit).rmse for refit in chosen]
        alone = [expected_of(case, refit, remembers=False).rmse for refit in chosen]
        right.plot(at, together, color=_BLUE, label="refits that remember")
        right.plot(at, alone, color=_ORANGE, ls="--", label="each by itself")
        right.axhline(forecast(case).rmse, color=QUIET, ls=":", label="one fit with all of it")
        right.set(title="expected RMSE (Moments)", xlabel="refit")
        right.legend(frameon=False)
        save_figure(figure, path)
