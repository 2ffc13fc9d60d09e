"""Local rules: own ratings in, own scores out. Deterministic, and made of published arrays only."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    Protocol,
    Self,
    get_type_hints,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.release import Release, ReleaseKind
from tacit.errors import ModelFileError

if TYPE_CHECKING:
    from tacit.kernels.rows import RowArrays

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ZERO = 1e-9  # of the largest norm: a vector that is shorter is rounding


class OwnRows(NamedTuple):
    """Some people's own ratings, in CSR form; items are positions in the catalogue."""

    indptr: NDArray[np.int64]
    items: NDArray[Any]
    values: NDArray[np.float32]


class Pairs(NamedTuple):
    """What some people ask for: person i asks for items[starts[i] : starts[i + 1]]."""

    starts: NDArray[np.int64]
    items: NDArray[np.int64]

    @property
    def people(self) -> NDArray[np.int64]:
        """Who asks, for each item."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))


class Lists(NamedTuple):
    """Everyone's best items, best first: -1 where none is left, with zeros beside it."""

    items: NDArray[np.int64]
    scores: Floats
    shares: Floats


class LocalRule(Protocol):
    """What a published model does with a person's own ratings."""

    kind: ClassVar[str]

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items, in a new array."""
        ...

    def parts(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the arrays and the settings that a model file holds."""
        ...

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """Say what the rule is made of that is not among these releases."""
        ...


@runtime_checkable
class Uncertain(Protocol):
    """What a local rule can do besides, if it knows how far off its scores may be."""

    def spread(self, own: OwnRows) -> Floats:
        """Return the sd of the error of everyone's prediction of every item, in a new array."""
        ...


@runtime_checkable
class Pairwise(Protocol):
    """What a local rule can do besides, if it can predict some items without all others."""

    def pair_scores(self, own: OwnRows, pairs: Pairs, spread: bool) -> tuple[Floats, Floats]:
        """Return the predicted rating of each pair, and the sd of its error if `spread`."""
        ...


@runtime_checkable
class Choosing(Protocol):
    """What a local rule can do besides, if it knows what people choose."""

    def choice(self, own: OwnRows) -> Floats:
        """Return everyone's score of choice of every item, positive, in a new array."""
        ...

    def ranking(self, own: OwnRows) -> Floats:
        """Return what everyone's list is ordered by, in a new array."""
        ...

    def ranked(self, scores: Floats, choice: Floats) -> Floats:
        """Return what lists are ordered by, from everyone's `scores` and `choice`."""
        ...


@runtime_checkable
class Listing(Protocol):
    """What a local rule can do besides, if it makes lists sooner than scores of all items."""

    def lists(self, own: OwnRows, rated: OwnRows, allowed: Bools, count: int) -> Lists:
        """Return everyone's `count` best items by `Choosing.ranking`.

        Only items that are allowed and not in a person's row of `rated` are in a list. With them
        come predicted ratings, and the share of choice of each among all that might be in it.
        """
        ...


@runtime_checkable
class Comparing(Protocol):
    """What a local rule can do besides, if its published numbers tell which items are alike."""

    def similarities(self, item: int) -> Floats:
        """Return how similar every item is to this one, from -1 to 1; NaN where nothing tells."""
        ...


@runtime_checkable
class Linear(Protocol):
    """What a local rule can do besides, if scores are linear in one's own ratings."""

    def contributions(self, own: OwnRows, items: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return one person's scores of some items without her ratings, and what each rating adds.

        The second array is items by ratings; its row sums and the first array add up to the scores.
        """
        ...


def cosines(vectors: Floats, item: int) -> Floats:
    """Return the cosine of every row with one of them; NaN where either is zero.

    >>> cosines(np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 0.0]]), 0).round(3)
    array([1.   , 0.707,   nan])
    """
    norms = np.linalg.norm(vectors, axis=1)
    zero = norms <= _ZERO * float(np.max(norms, initial=0.0))
    products = vectors @ vectors[item]
    lengths = np.where(zero | zero[item], np.nan, norms * norms[item])
    return np.asarray(np.clip(products / lengths, -1.0, 1.0))


def less_mean(factors: Floats) -> Floats:
    """Return factors less their mean over items; differences that are rounding are zero."""
    gaps = factors - factors.mean(axis=0)
    return np.where(np.abs(gaps) > _ZERO * np.max(np.abs(factors), initial=0.0), gaps, 0.0)


class PublishedRule:
    """A local rule as a model file holds it: fields that are arrays, and the others as settings.

    A subclass is a frozen dataclass, and checks in `check` what a file may have wrong.
    """

    def parts(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the arrays and the settings that a model file holds."""
        arrays, settings = {}, {}
        for name, hint in _fields_of(type(self)).items():
            value = getattr(self, name)
            if hint not in (Floats, Floats | None):
                settings[name] = list(value) if isinstance(value, tuple) else value
            elif value is not None:
                arrays[name] = value
        return arrays, settings

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> Self:
        """Read back what `parts` gave, trusting none of it."""
        found: dict[str, Any] = {}
        for name, hint in _fields_of(cls).items():
            if hint == Floats | None:
                found[name] = arrays.get(name)
            elif hint == Floats:
                found[name] = np.ascontiguousarray(arrays[name])
            else:
                found[name] = _READ[hint](settings[name])
        rule = cls(**found)
        rule.check()
        return rule

    def check(self) -> None:
        """Refuse arrays that do not fit together, and settings that are impossible."""
        raise NotImplementedError


def _fields_of(rule: Any) -> dict[str, Any]:
    """Return the fields of a rule with their types, in order."""
    hints = get_type_hints(rule)
    return {field.name: hints[field.name] for field in fields(rule)}


def _whole_or_none(value: Any) -> int | None:
    """Read a count from a model file."""
    if value is None:
        return None
    if not 1 <= int(value) <= 2**53:
        raise ModelFileError("the settings of the local rule are impossible")
    return int(value)


_READ: dict[Any, Callable[[Any], Any]] = {
    bool: bool,
    int: int,
    int | None: _whole_or_none,
    float: float,
    tuple[int, ...]: lambda value: tuple(int(each) for each in value),
    ReleaseKind: ReleaseKind,
}
"""How settings are read, by the types of their fields."""


def check_shapes(rule: Any, **shapes: tuple[int, ...]) -> None:
    """Refuse arrays of a model file that are of other shapes, or not finite."""
    shapes["offsets"] = (rule.offsets.size,)
    for name, shape in shapes.items():
        array = getattr(rule, name)
        if array.shape != shape or not np.isfinite(array).all():
            raise ModelFileError("the arrays of the local rule do not fit together")


def kinds_paid(releases: Iterable[Release]) -> Counter[ReleaseKind]:
    """Count the releases of each kind; trials of candidates are no part of the model."""
    return Counter(release.kind for release in releases if not release.part)


def missing_parts(
    releases: Iterable[Release], offsets: Floats, kinds: Sequence[ReleaseKind], wanted: int
) -> list[str]:
    """Say what is not paid for: `wanted` releases of some kinds, and offsets that differ."""
    paid = kinds_paid(releases)
    missing = []
    if sum(paid[kind] for kind in kinds) < wanted:
        missing.append(f"it has more parts than releases named {kinds[0].value!r}")
    if np.ptp(offsets) > 0 and not paid[ReleaseKind.ITEM_SUMS] + paid[ReleaseKind.ITEM_EFFECTS]:
        missing.append("it has item means, and no release of item sums or effects")
    return missing


def centred(
    own: OwnRows, offsets: Floats, centre: bool, shrink: float = 0.0
) -> tuple[Floats, Floats]:
    """Return everyone's ratings without offsets and own mean, and those means."""
    people = own.indptr.size - 1
    lengths = np.diff(own.indptr)
    values = own.values.astype(np.float64) - offsets[own.items]
    if not centre:
        return values, np.zeros(people)
    who = np.repeat(np.arange(people), lengths)
    means = np.bincount(who, values, people) / np.maximum(lengths + shrink, 1e-12)
    return values - means[who], means


def own_arrays(
    own: OwnRows, offsets: Floats, limits: tuple[bool, float, float, float]
) -> "RowArrays":
    """Return people's own rows as the loops take them, with their means and scales.

    `limits` are (centre, shrink, norm, most), as in a fit.
    """
    from tacit.kernels.rows import RowArrays, RowLimits, row_means_and_scales

    people = own.indptr.size - 1
    centre, shrink, norm, most = limits
    width = np.uint16 if offsets.size <= 1 << 16 else np.uint32
    own = OwnRows(own.indptr.view(), own.items.astype(width), own.values.view())
    for array in own:
        array.flags.writeable = False  # as in a fit: loops are compiled once for both
    rows = RowArrays(*own, offsets, np.zeros(people), np.ones(people), np.inf)
    row_means_and_scales(rows, RowLimits(centre, shrink, norm, False, most), 0, people)
    return rows
