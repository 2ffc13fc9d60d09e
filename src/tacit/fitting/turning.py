r"""Moments of latent factors from one fit, seen from the factors of another.

$v = (c, u, \rho)$: choice factors $c = C^T x$, posterior means $u$ of factors $F$, and a fit error.
Another fit has other $C$ and $F$ that span about the same space. Its $c'$ is about $Q c$, $Q^T$
the least-squares solution of $C Q^T = C'$, and its $u'$ about $R u$, $R$ the rotation that brings
$F' R$ nearest to $F$. A second moment $M$ of $v$ is then $T M T^T$, $T$ = diag(Q, R, 1).
All of it is post-processing of public numbers.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.fitting.memory import Track

__all__ = ["turn_between", "turn_track", "turned"]

Floats = NDArray[np.float64]
_COMMON = 0.5  # of the items must be the same for factors to be compared


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


def turn_between(old: tuple[Floats, Floats], new: tuple[Floats, Floats]) -> Floats:
    """Return T for (C, F) of an old fit and of a new one, of the same items.

    >>> rng = np.random.default_rng(0)
    >>> c, f = rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    >>> turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    >>> np.allclose(turn_between((c, f), (c, f @ turn.T))[2:5, 2:5], turn)
    True
    """
    choices, factors = old[0].shape[1], old[1].shape[1]
    total = np.eye(choices + factors + 1)
    total[:choices, :choices] = np.linalg.lstsq(old[0], new[0], rcond=None)[0].T
    left, _, right = np.linalg.svd(new[1].T @ old[1])
    total[choices:-1, choices:-1] = left @ right
    return total


def turned(moments: Floats, turn: Floats) -> Floats:
    """Return T M T^T for every matrix M in a row of flat ones, or for one."""
    size = len(turn)
    every = turn @ moments.reshape(-1, size, size) @ turn.T
    return np.asarray(every.reshape(moments.shape))
