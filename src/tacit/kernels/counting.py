"""Compile loops that allocate no arrays without reference counting.

Counting references to arrays, row by row, takes about as long as a row of 80 ratings. A loop that
makes no array needs no counts: what it is given stays where it is until the loop ends.
"""

from numba import njit

without_counting = njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
