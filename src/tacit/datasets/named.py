"""A dataset by its name."""

from tacit.datasets.described import Dataset
from tacit.datasets.known import DATASETS
from tacit.errors import ConfigError

__all__ = ["dataset_named"]


def dataset_named(name: str) -> Dataset:
    """The description of a dataset; upper and lower case are the same."""
    found = DATASETS.get(name.strip().lower()) if isinstance(name, str) else None
    if found is None:
        raise ConfigError(f"dataset={name!r}: expected one of {', '.join(DATASETS)}")
    return found
