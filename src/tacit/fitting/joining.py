"""Two refits at once: the one that ends later adds what it released to what the earlier one wrote.

Each has begun with the same memory, and has combined its releases with that. What the later one
would write knows nothing of the earlier one's. So it takes what is written by then, and adds its
own releases to it, as further looks at the same time. All of it is post-processing of releases.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.errors import TacitWarning
from tacit.fitting.memory import Drawn, Memory
from tacit.fitting.track import Track
from tacit.fitting.turning import turn_between, turned

_COMMON = 0.5  # of the items must be the same for factors to be compared


def joined(mine: Memory, earlier: float, paid: float, written: Mapping[str, bytes]) -> Memory:
    """Return what another refit has written meanwhile, and the releases of this one.

    `paid` is what this one may spend, `earlier` what had been spent for what it began with. Where
    another one has begun anew, nothing is added: how this one's releases were made depends on those
    that are forgotten, which nobody would count any more. Releases that were made in another frame
    than those that are written cannot be combined with them: then what is written stays.
    """
    theirs = Memory(written)
    of_one_series = theirs.about.get("began") == mine.about.get("began") or not earlier
    if theirs.settings != mine.settings or not of_one_series:
        warnings.warn(
            "another refit of this book, with other settings or begun anew, has ended while this "
            "one ran: what this one released is not remembered, and the next refit goes on from "
            "the other one",
            TacitWarning,
            stacklevel=2,
        )
        return theirs
    for each in mine.drawn:
        _add(theirs, each)
    theirs.about["spent"] = float(theirs.about.get("spent", 0.0)) + paid
    return theirs


def _add(theirs: Memory, drawn: Drawn) -> None:
    track = theirs.tracks.get(drawn.name)
    if track is None:
        track = Track.start(drawn.axes, drawn.frame, drawn.ids, drawn.values.shape)
        theirs.tracks[drawn.name] = track
        track.add(drawn.ids, drawn.values, drawn.noise)
    elif "factors" in drawn.frame:
        if turn_track(track, drawn.frame):
            track.refine([], drawn.values, drawn.noise)
            track.frame = drawn.frame
    elif track.frame == drawn.frame and _rows(track) == _rows(drawn):
        track.refine(drawn.ids, drawn.values, drawn.noise)


def _rows(known: Track | Drawn) -> tuple[int, ...]:
    """Return the shape but for items, of which there may be others by now."""
    return known.values.shape[: known.values.ndim - known.axes]


def turn_track(track: Track, frame: Mapping[str, Any]) -> bool:
    """Bring a track to the factors of another frame; False if it has others, or more of them."""
    where = {key: at for at, key in enumerate(track.frame["ids"])}
    both = [(where[key], at) for at, key in enumerate(frame["ids"]) if key in where]
    old, here = (
        (np.array(each["choice"]), np.array(each["factors"])) for each in (track.frame, frame)
    )
    alike = all(one.shape[1:] == two.shape[1:] for one, two in zip(old, here, strict=True))
    whole = track.seen.shape[1] == track.values.size
    if not (alike and whole and len(both) >= _COMMON * max(len(where), len(frame["ids"]))):
        return False
    before, now = np.array(both).T
    turn = turn_between((old[0][before], old[1][before]), (here[0][now], here[1][now]))
    track.values, track.seen = turned(track.values, turn), turned(track.seen, turn)
    return True
