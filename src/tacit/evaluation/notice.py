"""What every measurement says of itself: it is NOT PRIVATE."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

NOTICE = "NOT PRIVATE: measured on people's held-out ratings, without noise"


class Measured:
    """A frozen dataclass of figures that come straight from people's ratings."""

    def to_json(self: "DataclassInstance") -> dict[str, Any]:
        """Return all fields, and the notice that they are not private."""
        return {"notice": NOTICE, **asdict(self)}

    def __repr__(self: "DataclassInstance") -> str:
        """Show all fields, labelled."""
        fields = ", ".join(f"{name}={value!r}" for name, value in asdict(self).items())
        return f"{type(self).__name__}(NOT PRIVATE: {fields})"
