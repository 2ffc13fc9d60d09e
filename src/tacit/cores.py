"""How many cores this process may use."""

import os

__all__ = ["usable_cores"]


def usable_cores() -> int:
    """Return the number of cores this process may use, which can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
