r"""A mechanism that remembers: what it returns is a release and all earlier ones of its kind.

An algorithm asks it for releases and for their noise, as always. What is drawn is the statistic in
the *frame* of the first release of its kind (its bounds and offsets, all public), so that releases
of different times are of the same thing. They are combined per person (estimation.drift), and what
comes out is brought into the frame that the algorithm asked for, with the noise that it now has.

*Guarantee:* each release is made by `Mechanism.release`, once, under the reservation of this fit.
The rest is post-processing of it and of earlier releases. Frames depend on earlier releases only.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.accounting.release import Release, ReleaseKind
from tacit.estimation.cooccurrence import CoRatings, activity_strata, co_ratings
from tacit.estimation.popularity import follow_popularity, popularity_level
from tacit.fitting.joining import turn_track
from tacit.fitting.memory import Memory
from tacit.fitting.track import Track
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import ItemCounts

Floats = NDArray[np.float64]
_CLOSE = 0.15  # a norm that is so near to that of the frame is that of the frame
_RARE = 0.1  # of the mean weight of items: what changes below it does not count
_LEGIBLE = 0.1  # of the users: noise in the weight of a class of people, to have classes
REMEMBERED = {
    ReleaseKind.SPREADS: 0,
    ReleaseKind.ITEM_WEIGHTS: 1,
    ReleaseKind.ITEM_EFFECTS: 1,
    ReleaseKind.COVARIANCE: 2,
    ReleaseKind.CO_OCCURRENCES: 2,
    ReleaseKind.FACTOR_MOMENTS: 0,
}
"""Kinds of releases that can be compared over time, and how many axes of items they have."""
_LOOKS = ReleaseKind.COVARIANCE, ReleaseKind.CO_OCCURRENCES
"""Kinds that may be released twice in one fit; both are remembered as one."""


class Remembering(Mechanism):
    """Releases as `Mechanism` makes them, returned together with what is remembered."""

    def __init__(
        self, inner: Mechanism, memory: Memory, ids: Sequence[Any], horizon: float
    ) -> None:
        """Remember by these item ids; `horizon` is how many such fits will be remembered, about."""
        self.__dict__.update(copy(inner).__dict__)
        self._memory, self._ids, self._horizon = memory, list(ids), horizon
        self._users = float(self.public_users or 0)
        self._rated: CoRatings | None = None
        self._weight_noise = 0.0
        self._made: dict[str, float] = {}  # noise of what was returned, by name of the release

    def noise_sd(self, release: Release, sensitivity: Sensitivity | None = None) -> float:
        """Return the noise sd of what `release` will return: less than that of one release."""
        drawn = super().noise_sd(release, sensitivity)
        if release.name in self._made:
            return self._made[release.name]
        if release.kind not in REMEMBERED or not self._users:
            return drawn
        track = self._memory.tracks.get(_name(release))
        scale = self._frame_scale(release, sensitivity)
        if self._looked_at(release):
            return drawn * (scale or 1.0)
        if track is None or scale is None:
            return self._coarser(release, drawn)
        drawn *= scale
        if release.kind is ReleaseKind.FACTOR_MOMENTS:
            drawn /= math.sqrt(2.0)  # off the diagonal, as tracks of these are kept
            told = math.sqrt(2.0 * track.expected([], (drawn / self._users) ** 2))
            return self._users * told
        ids = self._items_of(track, release)
        self._resize(release.kind, track, ids)
        expected = track.expected(ids, (drawn / self._users) ** 2)
        return self._coarser(release, self._users * math.sqrt(expected))

    def release(self, release: Release, statistic: Statistic) -> Floats:
        """Make a release in its frame, and return it with all that is remembered."""
        make = _FRAMES.get(release.kind)
        if make is None:
            return super().release(release, statistic)
        return make(self, release, statistic)

    def _together(
        self, release: Release, framed: Statistic, ids: list[Any], frame: dict[str, Any]
    ) -> Floats:
        """Draw the statistic of a frame and combine it with earlier releases; sums, as drawn."""
        name, axes = _name(release), REMEMBERED[release.kind]
        sd = super().noise_sd(release, framed.sensitivity)
        drawn = super().release(release, framed)
        if release.kind is ReleaseKind.SPREADS and self.public_users is None:
            self._users = max(float(drawn[3]), 1.0)
        track = self._memory.tracks.get(name)
        if track is None or track.frame != frame:
            track = self._memory.start(name, Track.start(axes, frame, ids, drawn.shape))
        for one in filter(None, (track, self._memory.before(name))):
            self._resize(release.kind, one, ids)
        each, noise = drawn / self._users, (sd / self._users) ** 2
        values, variances = self._memory.add(name, ids, each, noise)
        self._memory.drew(name, axes, frame, ids, each, noise)
        track = self._memory.tracks[name]
        usual = track.stated(ids, variances)
        self._made[release.name] = self._users * math.sqrt(usual)
        even = np.sqrt(usual / np.maximum(variances, max(usual, 1e-300)))
        return np.asarray(self._users * values * np.where(track.old(ids, values.shape), 1.0, even))

    def _resize(self, kind: ReleaseKind, track: Track, ids: list[Any]) -> None:
        """Tell a track how often items are rated, as far as it is known, and how well.

        A sum over the users of an item is larger if there are more of them, and drifts in
        proportion to them.
        """
        counts = self._memory.tracks.get(ReleaseKind.ITEM_WEIGHTS.value)
        if counts is None or not track.axes or not counts.noises:
            return
        weights = np.maximum(counts.values.reshape(-1, len(counts.ids)).sum(axis=0), 0.0)
        if weights.any():
            rows = counts.values.size / weights.size
            noise = math.sqrt(rows * counts.stated(counts.ids, counts.variances))
            weights *= weights**2 / (weights**2 + noise**2)  # or those that noise made drift most
            unclear = max(noise, _RARE * float(weights.mean()))
            sizes = dict(zip(counts.ids, weights, strict=True))
            along = kind is not ReleaseKind.ITEM_WEIGHTS
            track.resize(ids, sizes, unclear if along else None, noise)

    def _spreads(self, release: Release, statistic: Any) -> Floats:
        """Spreads are always of the same form."""
        bounds = statistic.bounds
        frame = {
            "middle": float(bounds.offsets[0]), "half": statistic.half, "cap": statistic.cap,
            "usual": statistic.usual,
        }  # fmt: skip
        return self._together(release, statistic, [], frame)

    def _weights(self, release: Release, statistic: ItemCounts) -> Floats:
        """Weights are drawn in the classes that can be told apart in the end."""
        track = self._memory.tracks.get(release.name)
        edges = self._edges(super().noise_sd(release))
        if track is not None:
            edges = tuple(track.frame["edges"])
        framed = ItemCounts(statistic.n_items, edges)
        found = self._together(release, framed, self._ids, {"edges": list(edges)})
        rows = _regrouped(np.atleast_2d(found), edges, statistic.edges)
        sd = self._made[release.name]
        if set(statistic.edges) != set(edges):
            sd *= math.sqrt(len(edges) + 1)
        self._made[release.name] = sd
        self._rated = co_ratings(rows, sd, statistic.edges, self._users)
        self._weight_noise = float(np.mean(self._rated.error * self._rated.weights))
        return rows if statistic.edges else rows[0]

    def _edges(self, noise_sd: float) -> tuple[int, ...]:
        """Return the classes that will be legible after as many fits as are planned."""
        noise = noise_sd / math.sqrt(self._horizon) * math.sqrt(len(self._ids))
        return activity_strata(len(self._ids), _LEGIBLE * self._users / max(noise, 1e-300))

    def _coarser(self, release: Release, sd: float) -> float:
        """Return the noise of weights if classes had to be put together to be legible."""
        if release.kind is not ReleaseKind.ITEM_WEIGHTS:
            return sd
        track = self._memory.tracks.get(release.name)
        edges = self._edges(super().noise_sd(release)) if track is None else track.frame["edges"]
        noise = sd * math.sqrt(len(self._ids))
        asked = activity_strata(len(self._ids), _LEGIBLE * self._users / max(noise, 1e-300))
        return sd if set(asked) >= set(edges) else sd * math.sqrt(len(edges) + 1)

    def _effects(self, release: Release, statistic: Any) -> Floats:
        """Effects about another overall mean are moved by what that takes off everyone."""
        bounds, frame = statistic.bounds, self._frame(release, statistic.bounds)
        overall = frame.setdefault("overall", float(bounds.offsets[0]))
        framed = replace(
            statistic,
            bounds=replace(
                bounds,
                offsets=np.full(bounds.offsets.size, overall),
                norm=frame["norm"],
                bias_shrinkage=frame["shrinkage"],
            ),
        )
        found = self._together(release, framed, self._ids, frame)
        shift, weights = overall - float(bounds.offsets[0]), self._weights_of_items()
        length = max(float(weights.sum()) / self._users, 1.0) ** 2
        left = frame["shrinkage"] / (length + frame["shrinkage"])
        return np.asarray(found + shift * left * weights)

    def _moment(self, release: Release, statistic: Any) -> Floats:
        """A second moment is about the means of its own time: when these drift, it does not."""
        bounds, frame = statistic.bounds, self._frame(release, statistic.bounds)
        frozen = replace(bounds, norm=frame["norm"], bias_shrinkage=frame["shrinkage"])
        framed = replace(statistic, bounds=frozen, bound=frame["norm"])
        ids = [self._ids[at] for at in self._known(statistic)]
        if self._looked_at(release):
            return self._again(release, framed, ids, frame)
        return self._together(release, framed, ids, frame)

    def _pairs(self, release: Release, statistic: Any) -> Floats:
        """Co-occurrences are always of the same form; popularity in them is that of today.

        What noise e of the weights adds to them is c e e^T, beyond what popularity takes off: one
        eigenvalue, c times items times the variance of e, which counts as noise.
        """
        known = self._known(statistic)
        ids = [self._ids[at] for at in known]
        if self._looked_at(release):
            return self._again(release, statistic, ids, {})
        found = self._together(release, statistic, ids, {})
        counts = self._memory.tracks.get(ReleaseKind.ITEM_WEIGHTS.value)
        gone = 0.0 if counts is None else 1.0 - counts.kept
        weights, error = self._weights_of_items()[known], self._weight_noise
        level = abs(popularity_level(found, weights))
        self._made[release.name] += level * gone * error**2 * math.sqrt(known.size / 2.0)
        return follow_popularity(found, weights, gone)

    def _again(
        self, release: Release, framed: Statistic, ids: list[Any], frame: dict[str, Any]
    ) -> Floats:
        """Draw a second look, remember it with the first one, and return it by itself.

        What is remembered was returned with the first look; an algorithm combines the two, as it
        does in a fit.
        """
        name, sd = _name(release), super().noise_sd(release, framed.sensitivity)
        drawn = super().release(release, framed)
        each, noise = drawn / self._users, (sd / self._users) ** 2
        self._memory.tracks[name].refine(ids, each, noise)
        self._memory.drew(name, REMEMBERED[release.kind], frame, ids, each, noise)
        self._made[release.name] = sd
        return drawn

    def _looked_at(self, release: Release) -> bool:
        """Return whether this is a second look at what this refit has looked at before."""
        if release.kind not in _LOOKS or release.name in self._made:
            return False
        return any(name.startswith(_name(release)) for name in self._made)

    def _looks(self, release: Release, statistic: Any) -> Floats:
        """Moments of latent factors are turned to the factors of today (fitting.turning)."""
        sd = super().noise_sd(release, statistic.sensitivity)
        told = self.noise_sd(release, statistic.sensitivity)
        drawn = super().release(release, statistic)
        model, track = statistic.model, self._memory.tracks.get(release.name)
        here = {
            "ids": [str(each) for each in self._ids],
            "choice": model.choice.tolist(), "factors": model.factors.tolist(),
        }  # fmt: skip
        noise = (sd / self._users) ** 2 / 2
        self._memory.drew(release.name, 0, here, [], drawn / self._users, noise)
        if track is not None and not turn_track(track, here):
            track, drawn = None, drawn * (told / sd)  # as much noise as was told, and less to see
            self._made[release.name] = told
        if track is None:
            found = drawn
            if release.name not in self._made:
                self._made[release.name] = sd
            track = Track.start(0, {}, [], drawn.shape)
            self._memory.tracks[release.name] = track
            track.add([], drawn / self._users * (sd / self._made[release.name]), noise)
        else:
            values, variances = track.add([], drawn / self._users, noise)
            self._made[release.name] = self._users * math.sqrt(2.0 * track.stated([], variances))
            found = self._users * values
        track.frame |= here
        return np.asarray(found)

    def _frame(self, release: Release, bounds: Any) -> dict[str, Any]:
        """Return the frame of earlier releases, or a new one if rows have become longer or shorter.

        It is the same object as the track's, so that what is added to it stays.
        """
        track = self._memory.tracks.get(_name(release))
        if track is not None and _near(bounds.norm, track.frame["norm"]):
            return track.frame
        return {"norm": float(bounds.norm), "shrinkage": float(bounds.bias_shrinkage)}

    def _frame_scale(self, release: Release, sensitivity: Sensitivity | None) -> float | None:
        """Return the sensitivity of the frame over that which is asked about; None: a new frame."""
        power = {ReleaseKind.ITEM_EFFECTS: 1, ReleaseKind.COVARIANCE: 2}.get(release.kind)
        track = self._memory.tracks.get(_name(release))
        if power is None or sensitivity is None or track is None:
            return 1.0
        norm, frozen = sensitivity.add_remove ** (1 / power), float(track.frame["norm"])
        return (frozen / norm) ** power if _near(norm, frozen) else None

    def _items_of(self, track: Track, release: Release) -> list[Any]:
        """Return the items that a release of this kind is expected to be of."""
        if REMEMBERED[release.kind] == 2 and len(track.ids) < len(self._ids):
            return track.ids
        return self._ids

    def _known(self, statistic: Any) -> NDArray[np.int64]:
        items = statistic.items
        return np.arange(len(self._ids)) if items is None else np.asarray(items)

    def _weights_of_items(self) -> Floats:
        if self._rated is None:
            return np.zeros(len(self._ids))
        return self._rated.weights


def _name(release: Release) -> str:
    """Return the name of the track of a release: two looks have one together."""
    return release.kind.value if release.kind in _LOOKS else release.name


def _near(norm: float, frozen: float) -> bool:
    return abs(norm / frozen - 1) <= _CLOSE


def _regrouped(rows: Floats, edges: Sequence[int], wanted: Sequence[int]) -> Floats:
    """Add classes up to coarser ones: class c begins at edges[c - 1]."""
    starts = [0, *edges]
    groups = [sum(start >= edge for edge in wanted) for start in starts]
    out = np.zeros((len(wanted) + 1, rows.shape[1]))
    np.add.at(out, groups, rows)
    return out


_FRAMES: dict[ReleaseKind, Callable[[Remembering, Release, Any], Floats]] = {
    ReleaseKind.SPREADS: Remembering._spreads,
    ReleaseKind.ITEM_WEIGHTS: Remembering._weights,
    ReleaseKind.ITEM_EFFECTS: Remembering._effects,
    ReleaseKind.COVARIANCE: Remembering._moment,
    ReleaseKind.CO_OCCURRENCES: Remembering._pairs,
    ReleaseKind.FACTOR_MOMENTS: Remembering._looks,
}
