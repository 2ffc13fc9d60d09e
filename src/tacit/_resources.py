"""How many cores and how much memory this machine has."""

import math
import os

from tacit.errors import EngineError


def usable_cores() -> int:
    """Return the number of cores this process may use, which can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_memory(needed: int, what: str, instead: str) -> None:
    """Refuse what cannot fit into this machine's memory, before anything is computed.

    `what` names it in public numbers only; `instead` says what to do.
    """
    if needed > physical_memory():
        raise EngineError(f"{what} than this machine has ({physical_memory():,} bytes); {instead}")


def physical_memory() -> float:
    """Return the bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return math.inf
