"""Rows for loops that are called without an engine."""

import numpy as np


def frozen(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same numbers, not to be written to, as in a fit: loops are compiled for that anyway."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views
