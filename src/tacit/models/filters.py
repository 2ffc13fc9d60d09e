"""Which items may be recommended: candidates and exclusions."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.errors import ConfigError
from tacit.models.own_ratings import item_column

_FORMS = "a list of item ids, or a frame with a column item"
_SHOWN = 3


def allowed_items(candidates: Any, exclude: Any, catalogue: Catalogue) -> NDArray[np.bool_]:
    """Return for each item whether it is among `candidates` (None: all) and not in `exclude`."""
    allowed = np.ones(len(catalogue), dtype=bool)
    if candidates is not None:
        allowed[:] = False
        allowed[named_positions("candidates", candidates, catalogue)] = True
    if exclude is not None:
        allowed[named_positions("exclude", exclude, catalogue)] = False
    if not allowed.any():
        raise ConfigError(
            "candidates, exclude: they leave no item; expected at least one (on the command line: "
            "--only, --exclude)"
        )
    return allowed


def named_positions(name: str, given: Any, catalogue: Catalogue) -> NDArray[np.int64]:
    """Return the positions of given items; any that the catalogue does not have is an error."""
    ids = item_column(given)
    if ids is None:
        raise ConfigError(f"{name}={type(given).__name__}: expected {_FORMS}")
    try:
        positions = catalogue.positions(ids) if len(ids) else np.empty(0, np.int64)
    except (ConfigError, ValueError, pl.exceptions.PolarsError):
        raise ConfigError(f"{name}: expected item ids like those of the catalogue") from None
    unknown = [ids[int(at)] for at in np.flatnonzero(positions < 0)]
    if unknown:
        shown = ", ".join(repr(each)[:60] for each in unknown[:_SHOWN])
        more = ", ..." if len(unknown) > _SHOWN else ""
        raise ConfigError(
            f"{name}: {len(unknown)} of {len(ids)} items are not in the catalogue ({shown}{more}); "
            "leave them out, or give ids as the catalogue has them"
        )
    return positions
