r"""Moments of latent factors from one fit, seen from the factors of another.

$v = (c, u, \rho)$: choice factors $c = C^T x$, posterior means $u$ of factors $F$, and a fit error.
Another fit has other $C$ and $F$ that span about the same space. Its $c'$ is about $Q c$, $Q^T$
the least-squares solution of $C Q^T = C'$, and its $u'$ about $R u$, $R$ the rotation that brings
$F' R$ nearest to $F$. A second moment $M$ of $v$ is then $T M T^T$, $T$ = diag(Q, R, 1).
All of it is post-processing of public numbers.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
