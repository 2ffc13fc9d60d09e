"""Yahoo! Music R2: twenty tables of user, song and rating, with tabs between them."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.data.tables import Columns
from tacit.datasets.archives import member_path
from tacit.datasets.paths import found
from tacit.datasets.spec import Dataset


def read(dataset: Dataset, folder: Path) -> Ratings:
    """All ratings of R2, both of its parts; songs are numbered from 0.

    It takes about 30 bytes of memory a rating to read, so more than 20 GB for the whole.
    """
    catalogue = Catalogue(np.arange(dataset.counts.items))  # type: ignore[arg-type]
    with ExitStack() as stack:
        paths = [stack.enter_context(member_path(*place)) for place in found(dataset, folder)]
        return Ratings.from_file(
            paths,
            rating_range=dataset.range,
            columns=Columns(0, 1, 2),
            catalogue=catalogue,
            unknown_items="drop",  # noticed by their number: see loading
        )
