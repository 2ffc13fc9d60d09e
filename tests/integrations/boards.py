"""A checkerboard: every even user has every even item, every odd one every odd, but one."""

import numpy as np
from scipy.sparse import csr_matrix


def checkerboard(size: int) -> csr_matrix:
    """Users by items; the item with a user's own number is the one that she has yet to find."""
    numbers = np.arange(size)
    alike = (numbers[:, None] + numbers) % 2 == 0
    return csr_matrix((alike & ~np.eye(size, dtype=bool)).astype(np.float32))
