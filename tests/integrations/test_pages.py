"""The examples in the pages of adapters, each where its library is installed."""

import doctest
import warnings
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "integrations"
NEEDS = {"sklearn": "sklearn", "opendp": "opendp", "mlflow": "mlflow"}


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow's own dependencies
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("page", sorted(NEEDS))
def test_its_examples_run(page: str) -> None:
    pytest.importorskip(NEEDS[page])
    if page == "mlflow":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of MLflow's own type hints, when it is loaded
            import mlflow.pyfunc  # noqa: F401
    assert_examples_run(PAGES / f"{page}.md")


def assert_examples_run(page: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert found.attempted > 3
    assert found.failed == 0
