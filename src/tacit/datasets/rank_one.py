"""Synthetic-400 and Synthetic-900: the rank-one matrices of the paper as Ratings."""

from pathlib import Path

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.spec import Dataset
from tacit.datasets.synthetic import synthesise


def read(dataset: Dataset, folder: Path) -> Ratings:  # noqa: ARG001 - as other readers
    """Draw a rank-one matrix of the size of the dataset; there is no file of it."""
    users, items, ratings = dataset.counts
    made = synthesise(
        "rank-one", users=users, items=items, per_user=ratings // users, test_fraction=0.0
    )
    catalogue = Catalogue(made.items["item"], made.items["title"])
    return Ratings.from_frame(made.train, rating_range=dataset.range, catalogue=catalogue)
