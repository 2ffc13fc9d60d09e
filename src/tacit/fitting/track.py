"""A track: one kind of release over time, filtered; by item ids, as arrays and as bytes.

It holds the statistic per person, the variance of its noise, the frame that its releases are made
in (bounds, frozen so that they can be compared), and a sample of entries of earlier releases to
estimate the drift from. All of it is made of noisy releases.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from tacit._damaged import UNSOUND
from tacit.errors import BookError
from tacit.estimation.drift import MOST_SEEN, combined, drift_variance, gain

Floats = NDArray[np.float64]
_SAMPLE = 4096  # entries that the drift is estimated from
_LAG = 12.0  # times as bad as noise: what lags behind goes on in the direction of the drift
_CERTAIN = 3.0  # sd of the noise of a size: changes that count
_OLD = 0.5  # of the precision of the releases of the best-known item
_MUCH_GONE = 1.5  # times as many items as there are now: those that left are forgotten
_ODD = 2.0  # times the squared gap that was to be expected: a break
_CHANCE = 6.0  # and standard errors of it
_FORMAT = "tacit-memory/3"


class Misfit(NamedTuple):
    """How a release fits what is known: mean squared gap over its variance, of so many entries."""

    square: float
    entries: int
    likely: float

    @property
    def odd(self) -> bool:
        """Whether it is of other people, as it were: no drift so far explains it."""
        return self.square > _ODD + _CHANCE * math.sqrt(2.0 / max(self.entries, 1))


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
    precisions: Floats = field(default_factory=lambda: np.zeros(0))
    """For each item, the sum of 1/noise over the releases that it was in."""
    stretched: Floats = field(default_factory=lambda: np.ones((0, 0)))
    """By what `seen` was multiplied since, and so was the sd of its noise."""
    sizes: Floats = field(default_factory=lambda: np.ones(0))
    """For each item, how often it is rated; 1 as long as that is not known."""

    @classmethod
    def start(
        cls, axes: int, frame: dict[str, Any], ids: list[Any], shape: tuple[int, ...]
    ) -> "Track":
        """Begin with nothing known; `shape` is that of a release of these items."""
        places = _sample(shape, symmetric=axes == 2)
        values, variances = np.zeros(shape), np.full(shape, math.inf)
        seen = np.zeros((0, places.shape[1]))
        track = cls(axes, frame, list(ids), values, variances, places, seen)
        track.precisions, track.sizes = np.zeros(len(ids)), np.ones(len(ids))
        track.stretched = np.ones(seen.shape)
        return track

    @property
    def drift(self) -> Floats:
        """The variances by which entries wander from one release to the next."""
        scales = self._scales()
        sample = scales.ravel()[self._places_now()]
        noises = np.reshape(self.noises, (-1, 1)) * self.stretched**2
        return drift_variance(self.seen, noises, sample) * scales**2

    @property
    def kept(self) -> float:
        """How much of the precision of all releases of items is left after the drift, up to 1."""
        if not (self.axes and self.noises) or self.frame.get("even"):
            return 1.0
        aged = self.stated(self.ids, self.variances + _LAG * self.drift)
        return min(1.0, 1.0 / max(aged * float(self.precisions.max()), 1e-300))

    def expected(self, ids: list[Any], noise: float) -> float:
        """Return the variance that will be stated after one more release of these items."""
        if not self.noises:
            return noise
        self._grow(ids)
        aged = (self.variances + _LAG * self.drift)[self._index(ids)]
        return self.stated(ids, gain(aged, noise) * noise)

    @property
    def left(self) -> float:
        """Which part of the precision of entries is left after the drift of one more refit."""
        there = np.isfinite(self.variances)
        before = float(self.variances[there].sum())
        return before / max(before + float((_LAG * self.drift)[there].sum()), 1e-300)

    def now(self, ids: list[Any]) -> tuple[Floats, Floats]:
        """Return what is known of these items, and its variances."""
        self._grow(ids)
        index = self._index(ids)
        return self.values[index], self.variances[index]

    def aged(self, ids: list[Any]) -> tuple[Floats, Floats]:
        """Return what is known of these items, and its variances after the drift of a refit."""
        values, variances = self.now(ids)
        return values, variances + _LAG * self.drift[self._index(ids)]

    def anew(self) -> "Track":
        """Return a track of the same items that knows nothing; what was spent on them stays."""
        fresh = Track.start(self.axes, self.frame, self.ids, self.values.shape)
        fresh.sizes, fresh.precisions = self.sizes.copy(), self.precisions.copy()
        return fresh

    def misfit(self, ids: list[Any], release: Floats, noise: float | Floats) -> Misfit:
        """Return how far a release is from what is known; where nothing is known it fits."""
        values, variances = self.aged(ids)
        spread = variances + noise
        there = np.isfinite(spread) & (spread > 0)
        squares = (release - values)[there] ** 2 * (2.0 if self.axes == 2 else 1.0) / spread[there]
        if not squares.size:
            return Misfit(1.0, 0, 0.0)
        likely = -0.5 * float(np.sum(np.log(spread[there]) + squares))
        return Misfit(float(squares.mean()), squares.size, likely)

    def add(self, ids: list[Any], release: Floats, noise: float | Floats) -> tuple[Floats, Floats]:
        """Take in a release of these items; return what is known of them, and its variances.

        The variance of its noise is one for all, or that of each entry.
        """
        self._grow(ids)
        self._look(ids, release, noise)  # it tells the drift, too
        index = self._index(ids)
        aged = self.variances + _LAG * self.drift
        values, variances = combined(self.values[index], aged[index], release, noise)
        self.values[index], aged[index] = values, variances
        self.variances = aged
        self.precisions[self._at(ids)] += 1.0 / max(float(np.median(noise)), 1e-300)
        self._forget(ids)
        return values, variances

    def refine(self, ids: list[Any], release: Floats, noise: float | Floats) -> None:
        """Take in a second release of the same time."""
        self._grow(ids)
        index = self._index(ids)
        self.values[index], self.variances[index] = combined(
            self.values[index], self.variances[index], release, noise
        )
        self.precisions[self._at(ids)] += 1.0 / max(float(np.median(noise)), 1e-300)
        self._look(ids, release, noise)
        if len(self.noises) < 2:
            return
        before, last = np.reshape(self.noises[-2:], (2, 1)) * self.stretched[-2:] ** 2
        both, less = combined(self.seen[-2], before, self.seen[-1], last)
        self.seen = np.vstack([self.seen[:-2], both[None]])  # nan: in one of them only
        usual = float(np.median(less))
        self.stretched = np.vstack([self.stretched[:-2], np.sqrt(less / usual)[None]])
        self.noises = [*self.noises[:-2], usual]

    def widen(self, rows: int) -> None:
        """Make room for so many rows; nothing is known of the new ones."""
        new = rows - len(self.values)
        fresh = _sample((new, self.values.shape[1]), symmetric=False)
        fresh[0] += len(self.values)
        pad = [(0, new), (0, 0)]
        self.values = np.pad(self.values, pad)
        self.variances = np.pad(self.variances, pad, constant_values=math.inf)
        self.places = np.hstack([self.places, fresh])
        pad = [(0, 0), (0, fresh.shape[1])]
        self.seen = np.pad(self.seen, pad, constant_values=np.nan)
        self.stretched = np.pad(self.stretched, pad, constant_values=1.0)

    def narrow(self, kept: NDArray[np.bool_]) -> None:
        """Keep these rows."""
        there = kept[self.places[0]]
        self.values, self.variances = self.values[kept], self.variances[kept]
        self.places = self.places[:, there]
        self.places[0] = (np.cumsum(kept) - 1)[self.places[0]]
        self.seen, self.stretched = self.seen[:, there], self.stretched[:, there]

    def resize(
        self,
        ids: list[Any],
        sizes: Mapping[Any, float],
        unclear: float | None = None,
        noise: float = 0.0,
    ) -> None:
        """Tell how often items are rated by now.

        If it is told how large an `unclear` size is, one that may be nothing, entries are larger by
        as much as sizes are, but for what noise of this sd may have made of that.
        """
        self._grow(ids)
        before = zip(self.ids, self.sizes, strict=True)
        now = np.array([sizes.get(item, size) for item, size in before])
        if unclear is not None:
            change = now - self.sizes
            certain = 1.0 - (_CERTAIN * noise) ** 2 / np.maximum(change**2, 1e-300)
            now = self.sizes + change * np.maximum(certain, 0.0)
            each = (now + unclear) / (self.sizes + unclear)
            ratio = np.outer(each, each) if self.axes == 2 else each
            self.values, self.variances = self.values * ratio, self.variances * ratio**2
            sample = np.broadcast_to(ratio, self.values.shape).ravel()[self._places_now()]
            self.seen, self.stretched = self.seen * sample, self.stretched * sample
        self.sizes = now

    def stated(self, ids: list[Any], variances: Floats) -> float:
        """Return the variance to state for a release of these items, new ones left out.

        It is the mean, or of a matrix that of the row with most noise: where noise is uneven, its
        largest eigenvalue is about that of a matrix that has so much everywhere.
        """
        old = self.old(ids, variances.shape)
        if self.axes < 2:
            return float(np.mean(variances, where=old))
        rows = old.any(axis=1)
        each = np.mean(variances[rows], axis=1, where=old[rows])
        return float(each @ each / each.sum())

    def old(self, ids: list[Any], shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return which entries are of items that were in about as many releases as any of these."""
        if not self.axes:
            return np.ones(shape, dtype=bool)
        known = self.precisions[self._at(ids)]
        long = known >= _OLD * known.max()
        return np.broadcast_to(np.outer(long, long) if self.axes == 2 else long, shape)

    def _scales(self) -> Floats:
        """Return scales of all entries: products of the sizes of their items, and of their row.

        Each size is taken plus the average: an item that is hardly rated may become popular.
        """
        if not self.axes or self.frame.get("even"):
            return np.ones(self.values.shape)
        sizes: Floats = self.sizes + self.sizes.mean()
        if self.axes == 2:
            return np.outer(sizes, sizes)
        if self.values.ndim == 1:
            return sizes
        rows = np.maximum(self.values.sum(axis=-1, keepdims=True), 0.0)
        return np.asarray((rows + rows.mean()) * sizes)

    def _look(self, ids: list[Any], release: Floats, noise: float | Floats) -> None:
        """Keep a sample of a release, to tell the drift by; a symmetric one has half the noise."""
        every, uneven = np.full(self.values.shape, np.nan), np.ones(self.values.shape)
        usual = float(np.median(noise))
        every[self._index(ids)] = release
        uneven[self._index(ids)] = np.sqrt(noise / usual) if usual else 1.0
        sample = self._places_now()
        row = every.ravel()[sample] * (math.sqrt(2.0) if self.axes == 2 else 1.0)
        self.seen = np.vstack([self.seen, row[None]])[-MOST_SEEN:]
        self.stretched = np.vstack([self.stretched, uneven.ravel()[sample][None]])[-MOST_SEEN:]
        self.noises = [*self.noises, usual][-MOST_SEEN:]

    def _places_now(self) -> NDArray[np.int64]:
        """Return where the sampled entries are: they are kept as positions along the axes."""
        return np.asarray(np.ravel_multi_index(tuple(self.places), self.values.shape))

    def _grow(self, ids: list[Any]) -> None:
        """Make room for all of these items."""
        known = set(self.ids)
        new = [each for each in ids if each not in known] if self.axes else []
        if not new:
            return
        pad = [(0, 0)] * (self.values.ndim - self.axes) + [(0, len(new))] * self.axes
        self.ids = [*self.ids, *new]
        self.values = np.pad(self.values, pad)
        self.variances = np.pad(self.variances, pad, constant_values=math.inf)
        self.precisions = np.pad(self.precisions, (0, len(new)))
        self.sizes = np.append(self.sizes, np.full(len(new), self.sizes.mean()))

    def _index(self, ids: list[Any]) -> Any:
        if not self.axes:
            return ...
        places = self._at(ids)
        lead = [np.arange(size) for size in self.values.shape[: self.values.ndim - self.axes]]
        return np.ix_(*lead, *([places] * self.axes))

    def _at(self, ids: list[Any]) -> NDArray[np.int64]:
        """Return the places of items; none if the track has no items."""
        where = {each: at for at, each in enumerate(self.ids)}
        return np.array([where[each] for each in ids] if self.axes else [], dtype=np.int64)

    def _forget(self, ids: list[Any]) -> None:
        """Drop items that are gone once they are many; the drift is then estimated anew."""
        if not self.axes or len(self.ids) <= _MUCH_GONE * len(ids):
            return
        index = self._index(ids)
        self.values, self.variances = self.values[index], self.variances[index]
        places = self._at(ids)
        self.precisions, self.sizes = self.precisions[places], self.sizes[places]
        self.ids = list(ids)
        self.places = _sample(self.values.shape, symmetric=self.axes == 2)
        self.seen, self.noises = np.zeros((0, self.places.shape[1])), []
        self.stretched = np.ones(self.seen.shape)

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
            "stretched": self.stretched,
            "precisions": self.precisions,
            "sizes": self.sizes,
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
        precisions = np.array(arrays["precisions"], dtype=np.float64)
        sizes = np.array(arrays["sizes"], dtype=np.float64)
        stretched = np.array(arrays["stretched"], dtype=np.float64)
        fits = fits and seen.shape == stretched.shape == (len(noises), places.shape[1])
        fits = fits and precisions.shape == sizes.shape == (len(ids),) and bool(np.all(sizes >= 0))
        finite = all(np.isfinite(each).all() for each in (values, precisions, sizes, stretched))
        if not (fits and finite and len(places) == len(shape)):
            raise ValueError
        np.ravel_multi_index(tuple(places), shape)  # a ValueError if one is outside
        frame = dict(head["frame"])
        track = cls(axes, frame, ids, values, variances, places, seen, noises, precisions)
        track.stretched, track.sizes = stretched, sizes
        return track


def _sample(shape: tuple[int, ...], *, symmetric: bool) -> NDArray[np.int64]:
    """Return positions of entries, spread evenly; above the diagonal if it is symmetric."""
    if symmetric:
        rows, columns = np.triu_indices(shape[-1], 1)
        chosen = np.linspace(0, rows.size - 1, min(_SAMPLE, rows.size)).astype(np.int64)
        return np.array([rows[chosen], columns[chosen]], dtype=np.int64)
    size = math.prod(shape)
    chosen = np.linspace(0, size - 1, min(_SAMPLE, size)).astype(np.int64)
    return np.array(np.unravel_index(chosen, shape), dtype=np.int64)
