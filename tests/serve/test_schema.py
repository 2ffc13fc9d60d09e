"""Schemathesis tries what the OpenAPI description allows, and what it does not, and finds nothing.

One of its checks is left out: that whatever the description allows is answered with a 200. The
rating range, and which orders a model knows, depend on the model that is being served, and what is
outside of them is a 422.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.serve.models import save_latent

pytest.importorskip("schemathesis")
pytest.importorskip("fastapi")
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tacit.serve.app import create_app
from tacit.serve.limits import Limits

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("default")]

OPERATIONS = {
    "POST /v1/recommend", "POST /v1/recommend/batch", "POST /v1/predict", "POST /v1/predict/batch",
    "GET /v1/certificate", "GET /v1/items", "GET /health", "GET /metrics",
}  # fmt: skip
TAKE_NOTHING = {"GET /v1/certificate", "GET /health", "GET /metrics"}
EXAMPLES = 60


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = save_latent(tmp_path_factory.mktemp("schema"))
    app = create_app(path, limits=Limits(ratings=8, people=3, items=20))
    described = schemathesis.openapi.from_asgi("/openapi.json", app)
    found = [each.ok() for each in described.get_all_operations()]
    return {f"{each.method.upper()} {each.path}": each for each in found}


def test_all_of_the_api_is_described(operations: dict[str, Any]) -> None:
    assert set(operations) == OPERATIONS


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *((name, GenerationMode.POSITIVE) for name in sorted(OPERATIONS)),
        *((name, GenerationMode.NEGATIVE) for name in sorted(OPERATIONS - TAKE_NOTHING)),
    ],
)
def test_nothing_breaks_it(operations: dict[str, Any], name: str, mode: Any) -> None:
    @seed(7)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operations[name].as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    run()
