"""What refits remember: a track for each kind of release, and what they have in common."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._damaged import MALFORMED
from tacit.errors import BookError
from tacit.fitting.track import Track

Floats = NDArray[np.float64]
_BREAK = 3  # releases after which there can be one: the drift is known by then
_BEFORE = "before a break: "
_SETTINGS = "algorithm", "rating_range"


@dataclass(frozen=True)
class Drawn:
    """A release as it was drawn: per person, with the variance of its noise, in its frame."""

    name: str
    axes: int
    frame: dict[str, Any]
    ids: list[Any]
    values: Floats
    noise: float | Floats


class Memory:
    """All tracks of a book, and what the fits were that they are of.

    Attributes:
        about: the settings of the refits, what they have spent, and where the series began.
        drawn: what was released since it was read; it is not written.
    """

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
        self.drawn: list[Drawn] = []

    def start(self, name: str, track: Track) -> Track:
        """Begin a kind, or begin it anew."""
        self.tracks.pop(_BEFORE + name, None)
        self.tracks[name] = track
        return track

    def before(self, name: str) -> Track | None:
        """Return what was known before a break that the last release may have been."""
        return self.tracks.get(_BEFORE + name)

    def drew(
        self,
        name: str,
        axes: int,
        frame: dict[str, Any],
        ids: list[Any],
        each: Floats,
        noise: float | Floats,
    ) -> None:
        """Note a release of this refit, in case another one is written meanwhile."""
        self.drawn.append(Drawn(name, axes, dict(frame), list(ids), each.copy(), noise))

    def add(
        self, name: str, ids: list[Any], release: Floats, noise: float | Floats
    ) -> tuple[Floats, Floats]:
        """Take a release into its track; return what is known by now, and its variances.

        A release that no drift so far explains may be of an odd week, or the first one after people
        have changed. Nobody can tell yet, so nothing older is used with it; the next release tells
        which of the two it goes with, and the other one is dropped.
        """
        track, before = self.tracks[name], self.tracks.pop(_BEFORE + name, None)
        if before is not None:
            one, other = (each.misfit(ids, release, noise) for each in (before, track))
            track = self.tracks[name] = before if one.likely > other.likely else track
        elif len(track.noises) >= _BREAK and track.misfit(ids, release, noise).odd:
            self.tracks[_BEFORE + name] = track
            track = self.tracks[name] = track.anew()
        return track.add(ids, release, noise)

    @property
    def settings(self) -> dict[str, Any]:
        """What all refits that are combined must have in common; empty if there were none."""
        return {name: self.about[name] for name in _SETTINGS if name in self.about}

    @property
    def kept(self) -> float:
        """How much of all that was known of items is left after the drift: the least of a kind."""
        now = (each.kept for name, each in self.tracks.items() if not name.startswith(_BEFORE))
        return min(now, default=1.0)

    def to_bytes(self) -> dict[str, bytes]:
        """Return what a book has to hold."""
        about = {"about": json.dumps(self.about, sort_keys=True).encode()}
        return about | {name: track.to_bytes() for name, track in self.tracks.items()}
