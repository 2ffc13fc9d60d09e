"""Settings that look computed from the ratings are noticed, and others are left in peace."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.fitting.provenance import given_settings, looks_computed
from tests.conftest import ratings_for

COMPUTED = [
    7.31842,
    15234.7,
    4.992,
    0.1371,
    737,
    943,
    1682,
    73421,
    12345.0,
    math.pi,
    1.005,
    1e7 / 7,
]
PLAIN = [
    0, 1, 5, 80, 99, 100, 128, 250, 400, 475, 900, 1000, 1024, 20_000, 25_000, 130_000,
    0.5, 0.1 + 0.2, 4.5, 7.25, 0.125, 1 / 3, 2 / 7, 101.25, 33 / 16, 1e-6, 1e9, -10.0, -3, 737.0,
    math.sqrt(2), 4.5 / 4 * math.sqrt(80), 5 / 4 * math.sqrt(100), 1 / math.sqrt(12), 4096.0,
    True, None, "private", math.inf,
]  # fmt: skip


@pytest.mark.parametrize("value", COMPUTED)
def test_a_number_that_looks_computed(value: float) -> None:
    assert looks_computed(value)
    assert looks_computed(-value)


@pytest.mark.parametrize("value", PLAIN)
def test_a_number_that_does_not(value: Any) -> None:
    assert not looks_computed(value)


def test_numbers_from_data_are_nearly_always_noticed() -> None:
    """Norms of rows, as computed or rounded to five digits; whole counts nine times in ten."""
    rng = np.random.default_rng(0)
    norms = rng.uniform(3, 30, 2000)
    assert sum(looks_computed(float(norm)) for norm in norms) > 1995
    assert sum(looks_computed(float(f"{norm:.5g}")) for norm in norms) > 1900
    counts = rng.integers(101, 100_000, 2000)
    assert sum(looks_computed(int(count)) for count in counts) > 1800


LEAKS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("row_norm=7.31842", {"row_norm": 7.31842}, {}),
    ("nuclear_norm=15234.7", {"nuclear_norm": 15234.7}, {}),
    ("max_ratings=737", {"max_ratings": 737}, {}),
    ("schedule=1.2345", {"schedule": (1.0, 1.2345, 1.0)}, {}),
    ("top_items=137", {}, {"top_items": 137}),
    ("delta=1.36201e-06", {}, {"delta": 1.36201e-6, "neighbours": "add_remove"}),
]


@pytest.mark.parametrize(("message", "settings", "options"), LEAKS)
def test_it_is_a_warning_and_in_strict_mode_an_error(
    message: str, settings: dict[str, Any], options: dict[str, Any]
) -> None:
    config = tacit.FrankWolfe(rounds=4, **settings)
    arguments: dict[str, Any] = {"epsilon": 1.0} | options
    with pytest.warns(tacit.PrivacyLeakWarning, match=message) as caught:
        tacit.fit(ratings_for(0), config, **arguments)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(tacit.PrivacyError, match=f"strict: {message}"):
        tacit.fit(ratings_for(0), config, strict=True, **arguments)


def test_a_rating_range_that_looks_computed() -> None:
    ratings = tacit.Ratings.from_arrays(
        [1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 3, 4], rating_range=(0.137, 4.992)
    )
    with pytest.warns(tacit.PrivacyLeakWarning, match=r"rating_range=4\.992"):
        tacit.fit(ratings, epsilon=1.0)


def test_the_candidates_of_a_search_are_looked_at_too() -> None:
    odd = tacit.FrankWolfe(rounds=3, row_norm=7.31842)
    with pytest.warns(tacit.PrivacyLeakWarning, match=r"candidate 2: row_norm=7\.31842"):
        tacit.tune(ratings_for(0), [tacit.FrankWolfe(rounds=3), odd], epsilon=1.0)


def test_a_catalogue_from_the_ratings_is_an_error_in_strict_mode_only() -> None:
    ratings = tacit.Ratings.from_arrays(
        [1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 3, 4], rating_range=(1, 5)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tacit.fit(ratings, epsilon=1.0)
    with pytest.raises(tacit.PrivacyError, match="catalogue was taken from the ratings"):
        tacit.fit(ratings, epsilon=1.0, strict=True)
    tacit.fit(ratings_for(0), epsilon=1.0, strict=True)


def test_nothing_is_said_where_nothing_is_promised() -> None:
    tacit.fit(ratings_for(0), tacit.FrankWolfe(rounds=3, row_norm=7.31842), budget=None)


def test_the_warning_does_not_depend_on_the_ratings() -> None:
    """Ratings of other people give the same words: the rule reads what was passed, nothing else."""
    config = tacit.FrankWolfe(rounds=3, row_norm=7.31842)
    said = []
    for seed in range(3):
        with pytest.warns(tacit.PrivacyLeakWarning) as caught:
            tacit.fit(ratings_for(seed, users=40 + seed), config, epsilon=1.0)
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1] == said[2]


def test_only_given_settings_count_and_seeds_do_not() -> None:
    config = tacit.FrankWolfe(rounds=7, sampling_seed=20_240_131, start_seed=987_654_321)
    assert list(given_settings(config)) == [("rounds", 7)]
    assert list(given_settings(replace(config, rounds=10))) == []


def test_no_default_looks_computed() -> None:
    """Someone who types a default out is not suspected."""
    from tacit.algorithms import ALGORITHMS

    for make in ALGORITHMS.values():
        config: Any = make()
        for name in config.__dataclass_fields__:
            value = getattr(config, name)
            for part in value if isinstance(value, tuple) else (value,):
                assert not looks_computed(part), f"{config.name} {name}"
