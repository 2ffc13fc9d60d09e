"""What refits remember: a track for each kind of release, by item ids, as arrays and as bytes.

A track holds the filtered statistic per person, the variance of its noise, the frame that its
releases are made in (bounds and offsets, frozen so that they can be compared), and a sample of
entries of earlier releases to estimate the drift from. All of it is made of noisy releases.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from tacit._damaged import MALFORMED, UNSOUND
from tacit.errors import BookError
from tacit.estimation.drift import MOST_SEEN, combined, drift_variance, gain

__all__ = ["Memory", "Track"]

Floats = NDArray[np.float64]
_SAMPLE = 4096  # entries that the drift is estimated from
_MUCH_GONE = 1.5  # times as many items as there are now: those that left are forgotten
_FORMAT = "tacit-memory/1"


@dataclass
class Track:
    """One kind of release over time; its last `axes` axes are items."""

    axes: int
    frame: dict[str, Any]
    ids: list[Any]
    values: Floats
    variances: Floats
    places: NDArray[np.int64]
    seen: Floats
    noises: list[float] = field(default_factory=list)

    @classmethod
    def start(
        cls, axes: int, frame: dict[str, Any], ids: list[Any], shape: tuple[int, ...]
    ) -> "Track":
        """Begin with nothing known; `shape` is that of a release of these items."""
        places = _sample(shape, symmetric=axes == 2)
        values, variances = np.zeros(shape), np.full(shape, math.inf)
        seen = np.zeros((0, places.shape[1]))
        return cls(axes, frame, list(ids), values, variances, places, seen)

    @property
    def drift(self) -> float:
        """The variance by which an entry wanders from one release to the next."""
        return drift_variance(self.seen, np.array(self.noises))

    def expected(self, ids: list[Any], noise: float) -> Floats:
        """Return the variances that entries of these items will have after one more release."""
        if not self.noises:
            return np.full(self._shape_for(len(ids)), noise)
        grown = self._grown(ids)
        before = grown.variances[grown._index(ids)] + self.drift
        return gain(before, noise) * noise

    def add(self, ids: list[Any], release: Floats, noise: float) -> tuple[Floats, Floats]:
        """Take in a release of these items; return what is known of them, and its variances."""
        grown = self._grown(ids)
        drift, index = self.drift, grown._index(ids)
        aged = grown.variances + drift
        values, variances = combined(grown.values[index], aged[index], release, noise)
        grown.values[index], aged[index] = values, variances
        self.ids, self.values, self.variances = grown.ids, grown.values, aged
        self._look(ids, release, noise)
        self._forget(ids)
        return values, variances

    def _look(self, ids: list[Any], release: Floats, noise: float) -> None:
        """Keep a sample of a release, to tell the drift by; a symmetric one has half the noise."""
        every = np.full(self.values.shape, np.nan)
        every[self._index(ids)] = release
        row = every.ravel()[self._places_now()] * (math.sqrt(2.0) if self.axes == 2 else 1.0)
        self.seen = np.vstack([self.seen, row[None]])[-MOST_SEEN:]
        self.noises = [*self.noises, noise][-MOST_SEEN:]

    def _places_now(self) -> NDArray[np.int64]:
        """Return where the sampled entries are: they are kept as positions along the axes."""
        return np.asarray(np.ravel_multi_index(tuple(self.places), self.values.shape))

    def _grown(self, ids: list[Any]) -> "Track":
        """Return the track with room for all of these items."""
        known = set(self.ids)
        new = [each for each in ids if each not in known] if self.axes else []
        if not new:
            return self
        every = [*self.ids, *new]
        pad = [(0, 0)] * (self.values.ndim - self.axes) + [(0, len(new))] * self.axes
        values = np.pad(self.values, pad)
        variances = np.pad(self.variances, pad, constant_values=math.inf)
        return Track(
            self.axes, self.frame, every, values, variances, self.places, self.seen, self.noises
        )

    def _index(self, ids: list[Any]) -> Any:
        if not self.axes:
            return ...
        where = {each: at for at, each in enumerate(self.ids)}
        places = np.array([where.get(each, len(self.ids)) for each in ids], dtype=np.int64)
        lead = [np.arange(size) for size in self.values.shape[: self.values.ndim - self.axes]]
        return np.ix_(*lead, *([places] * self.axes))

    def _shape_for(self, count: int) -> tuple[int, ...]:
        return (*self.values.shape[: self.values.ndim - self.axes], *([count] * self.axes))

    def _forget(self, ids: list[Any]) -> None:
        """Drop items that are gone once they are many; the drift is then estimated anew."""
        if not self.axes or len(self.ids) <= _MUCH_GONE * len(ids):
            return
        index = self._index(ids)
        self.values, self.variances = self.values[index], self.variances[index]
        self.ids = list(ids)
        self.places = _sample(self.values.shape, symmetric=self.axes == 2)
        self.seen, self.noises = np.zeros((0, self.places.shape[1])), []

    def to_bytes(self) -> bytes:
        """Return the track as a safetensors file."""
        alike = self.variances.size > 0 and bool(np.all(self.variances == self.variances.flat[0]))
        head = {
            "format": _FORMAT, "axes": self.axes, "frame": self.frame, "ids": self.ids,
            "noises": self.noises, "shape": list(self.values.shape),
        }  # fmt: skip
        arrays = {
            "values": self.values,
            "variances": self.variances.ravel()[:1] if alike else self.variances,
            "places": self.places,
            "seen": self.seen,
        }
        packed = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return to_bytes(packed, metadata={"tacit": json.dumps(head)})

    @classmethod
    def from_bytes(cls, content: bytes) -> "Track":
        """Read a track; a BookError if it is not one."""
        try:
            size = int.from_bytes(content[:8], "little")
            head = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["tacit"])
            return cls._parsed(head, from_bytes(content))
        except UNSOUND:
            raise BookError("what the book remembers for refits cannot be read") from None

    @classmethod
    def _parsed(cls, head: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Track":
        shape = tuple(int(size) for size in head["shape"])
        values = np.array(arrays["values"], dtype=np.float64)
        variances = np.array(arrays["variances"], dtype=np.float64)
        variances = np.full(shape, variances[0]) if variances.shape == (1,) else variances
        axes, ids, places = int(head["axes"]), list(head["ids"]), arrays["places"]
        fits = head["format"] == _FORMAT and values.shape == variances.shape == shape
        fits = fits and axes in (0, 1, 2) and len(set(ids)) == len(ids)
        fits = fits and shape[len(shape) - axes :] == (len(ids),) * axes
        seen, noises = np.array(arrays["seen"], dtype=np.float64), list(head["noises"])
        fits = fits and seen.shape == (len(noises), places.shape[1])
        if not (fits and len(places) == len(shape) and np.isfinite(values).all()):
            raise ValueError
        np.ravel_multi_index(tuple(places), shape)  # a ValueError if one is outside
        return cls(axes, dict(head["frame"]), ids, values, variances, places, seen, noises)


class Memory:
    """All tracks of a book, and what the fits were that they are of."""

    def __init__(self, content: Mapping[str, bytes]) -> None:
        """Read what a book holds."""
        about = content.get("about", b"{}")
        try:
            self.about: dict[str, Any] = json.loads(about)
        except MALFORMED:
            raise BookError("what the book remembers for refits cannot be read") from None
        self.tracks = {
            name: Track.from_bytes(each) for name, each in content.items() if name != "about"
        }

    def to_bytes(self) -> dict[str, bytes]:
        """Return what a book has to hold."""
        about = {"about": json.dumps(self.about, sort_keys=True).encode()}
        return about | {name: track.to_bytes() for name, track in self.tracks.items()}


def _sample(shape: tuple[int, ...], *, symmetric: bool) -> NDArray[np.int64]:
    """Return positions of entries, spread evenly; above the diagonal if it is symmetric."""
    if symmetric:
        rows, columns = np.triu_indices(shape[-1], 1)
        chosen = np.linspace(0, rows.size - 1, min(_SAMPLE, rows.size)).astype(np.int64)
        return np.array([rows[chosen], columns[chosen]], dtype=np.int64)
    size = math.prod(shape)
    chosen = np.linspace(0, size - 1, min(_SAMPLE, size)).astype(np.int64)
    return np.array(np.unravel_index(chosen, shape), dtype=np.int64)
