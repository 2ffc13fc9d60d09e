"""What adapters share: the budget that was asked for, models as bytes, and rows of matrices."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.certificate import Certificate
from tacit.data.catalogue import Catalogue
from tacit.errors import ConfigError, DataError
from tacit.fitting.budgets import NOT_GIVEN, NotGiven, budget_of
from tacit.models import Model, load
from tacit.models.rules import OwnRows

__all__ = [
    "budget_asked",
    "budget_settings",
    "check_columns",
    "model_bytes",
    "model_from_bytes",
    "own_rows",
]


def budget_asked(
    epsilon: float | None, delta: float, neighbours: str, nonprivate: bool
) -> PrivacyBudget | None:
    """Return the budget that settings ask for; no privacy must be asked for by name."""
    if nonprivate and epsilon is not None:
        raise ConfigError(f"epsilon={epsilon!r} with nonprivate=True: give one of them")
    if not nonprivate and epsilon is None:
        raise ConfigError(
            "give epsilon=..., the privacy loss that a fit may spend; nonprivate=True asks for a "
            "model that is NOT PRIVATE"
        )
    given: NotGiven | None = None if nonprivate else NOT_GIVEN
    return budget_of(given, epsilon, delta, neighbours)


def budget_settings(certificate: Certificate) -> dict[str, Any]:
    """Return the settings that ask for what a certificate states."""
    budget = certificate.budget
    if budget is None:
        return {"epsilon": None, "nonprivate": True}
    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbours": str(budget.neighbours),
    }


def model_bytes(model: Model) -> bytes:
    """Return a model as the bytes of its file: all that may leave, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tacit"
        model.save(path)
        return path.read_bytes()


def model_from_bytes(content: bytes) -> Model:
    """Read a model from the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tacit"
        path.write_bytes(content)
        return load(path)


def own_rows(matrix: Any) -> OwnRows:
    """Return the stored entries of a sparse matrix as people's own rows, zeros among them."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    return OwnRows(
        rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data.astype(np.float32)
    )


def check_columns(name: str, columns: int, catalogue: Catalogue) -> None:
    """Refuse a matrix whose columns are not the items of a model."""
    if columns != len(catalogue):
        raise DataError(f"{name}: {columns} columns, and the model has {len(catalogue)} items")
