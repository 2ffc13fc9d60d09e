"""How tests and examples are collected in all folders; what tests share is in tests/conftest."""

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in modules that have any: pytest would load and search all of them."""
    found = yield
    if file_path.suffix == ".py" and b">>>" not in file_path.read_bytes():
        return [each for each in found if not isinstance(each, DoctestModule)]
    return found
