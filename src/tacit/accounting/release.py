"""A release as a typed value: its kind, its number, and the part of a fit it belongs to.

The text that people read (`Release.name`) is made from it, and never read back. It knows public
things only: which releases a fit makes is fixed by its settings.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tacit.errors import ConfigError

_LONGEST, _LARGEST = 8, 2**53  # of an index or a part: how many numbers, and how large


class ReleaseKind(StrEnum):
    """What a release is of; the value is what names begin with."""

    USER_COUNT = "user count"
    """The number of users, where the relation protects it."""
    RATING_COUNT = "rating count"
    """The number of ratings of all users."""
    ITEM_COUNTS = "item counts"
    """How often each item was rated, to choose the most rated ones (`top_items`)."""
    ITEM_WEIGHTS = "item weights"
    """How often each item was rated, a user with d ratings counting 1/sqrt(d)."""
    ITEM_SUMS = "item sums"
    """The sum of the ratings of each item, and their number."""
    ITEM_EFFECTS = "item effects"
    """The sum, for each item, of what is left of its ratings without user biases."""
    SPREADS = "spreads"
    """Sums over users of means, squared means and variances of their ratings."""
    ROW_NORMS = "row norms"
    """A histogram of the norms of users' rows (`row_norm="private"`)."""
    COVARIANCE = "covariance"
    """An items-by-items sum of outer products of users' rows or residuals."""
    PRODUCT = "product"
    """The same, multiplied by a published vector or block."""
    ENERGY = "energy"
    """The squared norm of users' residuals along one direction: an eigenvalue."""
    MOMENTS = "moments"
    """Risk and duality gap of one Frank-Wolfe step; only in fits without privacy."""
    CO_RATINGS = "co-ratings"
    """How often each pair of items was rated by the same user."""
    CO_OCCURRENCES = "co-occurrences"
    """How often each pair of items was used by the same user, without ratings."""
    CO_OCCURRENCE_PRODUCT = "co-occurrence product"
    """The same, multiplied by a published block."""
    EQUATIONS = "equations"
    """The normal equations of all item factors, one round of alternating least squares."""
    GRADIENT = "gradient"
    """The gradient of the loss for the parameters of the model, one step."""
    FACTOR_MOMENTS = "factor moments"
    """The second moment of users' latent factors, as they follow from choices and ratings."""
    HELD_OUT_LOSSES = "held-out losses"
    """The loss of each candidate of a search on ratings that were held out."""
    EARLIER_REFITS = "earlier refits"
    """All releases of earlier refits of a lifetime book that a model also rests on, as one."""
    STATED = "stated"
    """A sum that the audit states itself, to look at the noise on it."""
    OTHER = "other"
    """Anything else: of an algorithm outside of this package, or of an older model file."""


@dataclass(frozen=True)
class Release:
    """One release of a fit.

    Attributes:
        kind: what it is of.
        index: its number, from 1, where a fit makes several of a kind: (round,) or (round, step).
        part: () for the fit itself; (2,) for the trial fit of candidate 2 of a search; a search
            inside a search would add a number.
        label: what its name begins with, for the kind OTHER only.

    >>> Release(ReleaseKind.PRODUCT, (2, 1)).name
    'product 2.1'
    >>> Release(ReleaseKind.EQUATIONS, (1,), part=(2,)).name
    'candidate 2: equations 1'
    """

    kind: ReleaseKind
    index: tuple[int, ...] = ()
    part: tuple[int, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        """Check the values."""
        if not isinstance(self.kind, ReleaseKind):
            raise ConfigError(f"kind={self.kind!r}: expected a ReleaseKind")
        for name in ("index", "part"):
            if not _whole_numbers(getattr(self, name)):
                raise ConfigError(
                    f"{name} of a release of kind {self.kind.value!r}: expected a tuple of at most "
                    f"{_LONGEST} whole numbers from 0"
                )
        if bool(self.label) != (self.kind is ReleaseKind.OTHER):
            raise ConfigError(
                f"label={self.label!r} of a release of kind {self.kind.value!r}: expected a text "
                "for the kind OTHER, and none for any other kind"
            )

    @property
    def name(self) -> str:
        """The text for people; no other release of a fit has the same."""
        prefix = "".join(f"candidate {number}: " for number in self.part)
        return f"{prefix}{self.label or self.kind.value} {self.number}".rstrip()

    @property
    def number(self) -> str:
        """The index as text: '2.1'."""
        return ".".join(str(number) for number in self.index)

    def to_json(self) -> dict[str, Any]:
        """Return the machine's form; `from_json` reads it back."""
        label = {"label": self.label} if self.label else {}
        return {
            "name": self.name,
            "kind": self.kind.value,
            "index": list(self.index),
            "part": list(self.part),
            **label,
        }

    @classmethod
    def from_json(cls, value: Any) -> "Release":
        """Read the machine's form back, and refuse one whose name is not its own."""
        label = str(value.get("label", ""))
        if value["kind"] not in list(ReleaseKind):
            raise ConfigError("a release is of an unknown kind; a newer tacit may read it")
        kind = ReleaseKind(value["kind"])
        release = cls(kind, tuple(value["index"]), tuple(value["part"]), label)
        if release.name != value["name"]:
            raise ConfigError(f"a release is named {value['name']!r}, and is {release.name!r}")
        return release


def _whole_numbers(values: Any) -> bool:
    """Whether an index or a part is a short tuple of numbers to count with."""
    return (
        isinstance(values, tuple)
        and len(values) <= _LONGEST
        and all(type(number) is int and 0 <= number < _LARGEST for number in values)
    )
