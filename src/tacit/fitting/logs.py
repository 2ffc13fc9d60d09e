"""What a fit writes to Python's `logging`, under the name `tacit`: public numbers, and no time.

Records say which method runs under which budget, and the names of its releases. They follow from
settings, and from what was released: it may decide whether another release is made. Noise and costs
are left to the certificate. Nothing is written unless the program that uses tacit sets up logging.
"""

import logging
from os import PathLike

from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.promise import shown
from tacit.models import Model
from tacit.trusted.journal import Journal

_LOG = logging.getLogger("tacit")
_LOG.addHandler(logging.NullHandler())
_RESUMED = logging.getLogger("tacit.resumed")


def log_start(algorithm: str, budget: PrivacyBudget | None) -> None:
    """Say what begins."""
    _LOG.info("fit begins: %s, %s", algorithm, _promise(budget))


def log_resumed(journal: Journal | None, planned: int, folder: str | PathLike[str] | None) -> None:
    """Say how many releases of an earlier run are read back, under the name `tacit.resumed`."""
    if journal is not None and journal.found:
        of = max(planned, journal.found)
        _RESUMED.info(
            "%d of %d releases are read back from %s, and not paid for again",
            journal.found, of, folder,
        )  # fmt: skip


def log_end(model: Model) -> Model:
    """Say what was released, as the certificate does, and hand the model on."""
    for entry in model.certificate.releases:
        _LOG.debug("released: %s", entry.name)
    promise = _promise(model.certificate.budget) if model.private else "NOT PRIVATE"
    _LOG.info("fit ends: %d releases, %s", model.releases, promise)
    return model


def _promise(budget: PrivacyBudget | None) -> str:
    if budget is None:
        return "NOT PRIVATE"
    return (
        f"epsilon {shown(budget.epsilon)}, delta {shown(budget.delta)}, {budget.neighbours.value}"
    )
