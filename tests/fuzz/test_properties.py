"""Properties that hypothesis attacks: whatever comes in, only the errors of the house come out."""

import contextlib
import json
import string
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tacit
from tacit.accounting.certificate import Certificate
from tacit.accounting.release import ReleaseKind
from tacit.errors import ConfigError, DataError, ModelFileError
from tacit.research.experiments.reading import parse_experiment
from tests.conftest import ratings_for
from tests.fuzz.subjects import STARS, own_model

QUIET = settings(
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FIELDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "1", "-1", "4.5", "nan", "inf", "1e999", "0x1", "null", '"', '""', "user"]
    ),
    st.integers().map(str),
    st.floats().map(str),
)
LINES = st.lists(st.lists(FIELDS, min_size=1, max_size=5), max_size=12)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.binary(max_size=9)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=9), st.integers()), inner, max_size=4),
        st.tuples(inner, inner),
    ),
    max_leaves=8,
)


@given(lines=LINES, sign=st.sampled_from([",", "\t", "::", ";", "|"]), end=st.sampled_from("\n\r"))
@QUIET
def test_any_table_of_text(lines: list[list[str]], sign: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    text = (end + "\n" if end == "\r" else end).join(sign.join(fields) for fields in lines)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(DataError):
        tacit.Ratings.from_file(path, rating_range=STARS, duplicates="last")
    with contextlib.suppress(DataError):
        tacit.Catalogue.from_file(path)


@given(content=st.binary(max_size=200), name=st.sampled_from(["r.csv", "r.parquet", "r"]))
@QUIET
def test_any_bytes(content: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(DataError):
        tacit.Ratings.from_file(tmp_path / name, rating_range=STARS)
    with pytest.raises(ModelFileError):
        tacit.load(tmp_path / name)


@given(users=st.lists(SCALARS, max_size=6), items=ANYTHING, values=ANYTHING)
@QUIET
def test_any_arrays(users: list[Any], items: Any, values: Any) -> None:
    with contextlib.suppress(DataError, ConfigError):
        tacit.Ratings.from_arrays(users, items, values, rating_range=STARS)


OWN = st.one_of(
    ANYTHING,
    st.dictionaries(st.sampled_from(["film-02", "film-05", "x", 3, None]), SCALARS),
    st.tuples(st.lists(SCALARS, max_size=4), st.lists(SCALARS, max_size=4)),
    st.lists(st.floats(), max_size=4).map(lambda x: pl.DataFrame({"item": x, "rating": x})),
)


@given(own=OWN, wanted=st.one_of(st.none(), st.lists(SCALARS, max_size=4)))
@example(own={"film-02": 10**400}, wanted=None)
@example(own=(["film-02"], [[1.0, 2.0]]), wanted=None)
@QUIET
def test_any_own_ratings(own: Any, wanted: Any) -> None:
    """A person's own input, as a web service might pass it on: scores, or an error of the house."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(DataError, ConfigError):
            scores = own_model().predict(own, items=wanted)
            assert np.isfinite(scores[~np.isnan(scores)]).all()
        with contextlib.suppress(DataError, ConfigError):
            own_model().recommend(own)


def certificates() -> st.SearchStrategy[dict[str, Any]]:
    """Certificates of the right form with any numbers in them."""
    numbers = st.one_of(
        st.floats(), st.integers(), st.floats(1e-300, 1e300), st.floats(0.01, 50), st.none()
    )
    entry = st.fixed_dictionaries(
        {"name": st.text(max_size=5), "sensitivity": numbers, "noise_sd": numbers, "mu": st.none()},
        optional={
            "kind": st.one_of(st.sampled_from(list(ReleaseKind)), ANYTHING),
            "index": st.one_of(st.lists(st.integers(), max_size=3), ANYTHING),
            "part": st.one_of(st.lists(st.integers(), max_size=3), ANYTHING),
            "label": ANYTHING,
        },
    )
    whole = own_model().certificate.to_json()
    changes = {
        "epsilon": numbers,
        "delta": numbers,
        "releases": st.one_of(st.lists(entry, max_size=4), ANYTHING),
        "public": st.one_of(st.just(whole["public"]), ANYTHING),
        "private": st.booleans(),
        "sources": st.one_of(st.dictionaries(st.text(max_size=3), entry, max_size=2), ANYTHING),
        "algorithm": ANYTHING,
        "settings": ANYTHING,
    }
    return st.fixed_dictionaries({}, optional=changes).map(lambda change: whole | change)


@given(st.data())
@QUIET
def test_any_certificate(data: st.DataObject) -> None:
    value = data.draw(certificates())
    try:
        certificate = Certificate.from_json(value)
    except ModelFileError:
        return
    certificate.verify()
    certificate.text()
    json.dumps(certificate.to_json())


@pytest.mark.parametrize(
    ("sensitivity", "noise"), [(1e200, 1.0), (1.0, 1e-200), (1e308, 1e-308), (5e-324, 1e308)]
)
def test_costs_that_no_number_holds(sensitivity: float, noise: float) -> None:
    value = own_model().certificate.to_json()
    value["releases"] = [
        {"name": "x", "sensitivity": sensitivity, "noise_sd": noise, "mu": None} for _ in range(3)
    ]
    with contextlib.suppress(ModelFileError):
        Certificate.from_json(value).verify()


KEYS = ("title", "about", "datasets", "methods", "epsilons", "draws", "delta", "axis", "quick")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(KEYS),
            st.one_of(
                st.integers().map(str),
                st.floats().map(str),
                st.sampled_from(["[]", "{}", "[{}]", '["x"]', "[1, 'a']", "true", "1979-05-27"]),
                st.text(string.printable, max_size=10).map(json.dumps),
                st.text(max_size=10),
            ),
        ),
        max_size=8,
    )
)
@QUIET
def test_any_experiment(pairs: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{key} = {value}" for key, value in pairs)
    with pytest.raises(ConfigError):
        parse_experiment("x", text)


def test_deep_experiments_are_refused() -> None:
    for text in ("x = " + "[" * 5000 + "]" * 5000, "x = " + "{a = " * 5000 + "1" + "}" * 5000):
        with pytest.raises(ConfigError):
            parse_experiment("x", text)


def test_ratings_for_is_what_these_tests_say() -> None:
    """The items named above are in the catalogue, or nothing would be predicted from them."""
    known = ratings_for(0).catalogue.ids.to_list()
    assert {"film-02", "film-05"} <= set(known)
