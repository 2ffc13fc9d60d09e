"""What a fit writes to Python's `logging`, under the name `tacit`: public numbers, and no time.

Records say which method runs under which budget, and the names of its releases. They follow from
settings alone: noise and costs of releases may depend on earlier releases, and are left to the
certificate. Nothing is written unless the program that uses tacit sets up logging.
"""

import logging

from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.promise import shown
from tacit.models import Model

__all__ = ["log_end", "log_start"]

_LOG = logging.getLogger("tacit")
_LOG.addHandler(logging.NullHandler())


def log_start(algorithm: str, budget: PrivacyBudget | None) -> None:
    """Say what begins."""
    _LOG.info("fit begins: %s, %s", algorithm, _promise(budget))


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
