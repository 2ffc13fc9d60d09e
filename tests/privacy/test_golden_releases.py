"""Every release of every algorithm, for a seeded noise stream, is what it was when recorded.

The recorded digests are of the bytes of each release as the journal keeps it. Later releases follow
from eigenvectors of earlier ones, whose last bits depend on the linear algebra library and the
processor; where a probe of these differs from the recorded one, only first releases are compared.

`python -m tests.privacy.test_golden_releases` records anew; names of fits behind it: only those. Do
so only for a change that is meant to move releases, and say in docs/decisions/ which and why.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.conftest import ratings_for
from tests.contracts.test_algorithms import CASES
from tests.contracts.test_interactions import CASES as IMPLICIT
from tests.contracts.test_interactions import interactions_for

import tacit

GOLDEN = Path(__file__).parents[1] / "files" / "golden_releases.json"
RELATIONS = ("replace", "add_remove")
SIZES = {"users": 150, "items": 12, "per_user": 7}


@cache
def ratings() -> tacit.Ratings:
    """Read when a test runs: that compiles loops, which collecting tests should not wait for."""
    return ratings_for(8, **SIZES)


@cache
def touched() -> tacit.Ratings:
    return interactions_for(8, **SIZES)


def fits() -> dict[str, Callable[..., Any]]:
    """Return every fit by name, a call that wants a budget, a seed and a checkpoint."""
    found: dict[str, Callable[..., Any]] = {}
    for name, algorithm in CASES.items():
        found[name] = lambda a=algorithm, **rest: tacit.fit(ratings(), a, **rest)
    for name, interactions in IMPLICIT.items():
        found[f"interactions, {name}"] = lambda a=interactions, **rest: tacit.fit(
            touched(), a, **rest
        )
    found["moments, top items"] = lambda **rest: tacit.fit(
        ratings(), tacit.Moments(), top_items=9, **rest
    )
    found["frank-wolfe, tight clip"] = lambda **rest: tacit.fit(
        ratings(), tacit.FrankWolfe(rounds=3, row_norm=1.0, residual_clip=0.1), **rest
    )
    found["als, stronger weights"] = lambda **rest: tacit.fit(
        ratings(), tacit.ALS(rank=2, rounds=2, alpha=0.5), **rest
    )
    candidates = [tacit.Moments(), tacit.SVD(rank=2), tacit.ALS(rank=2, rounds=1)]
    found["tune"] = lambda **rest: tacit.tune(ratings(), candidates, **rest)
    return found


FITS = fits()


def digest(values: np.ndarray) -> str:
    text = f"{values.dtype}{values.shape}".encode()
    return hashlib.sha256(text + values.tobytes()).hexdigest()[:16]


def releases_of(name: str, relation: str) -> list[str]:
    """Return the digests of a fit's releases, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        FITS[name](epsilon=2.0, neighbours=relation, noise_seed_unsafe=11, checkpoint=folder)
        files = sorted(Path(folder).glob("release-*"))
        return [digest(load_file(file)["values"]) for file in files]


def probe() -> str:
    """Return a digest that tells one linear algebra from another."""
    grid = np.sin(np.arange(144.0)).reshape(12, 12)
    values, vectors = np.linalg.eigh(grid + grid.T)
    return digest(np.concatenate([values, vectors.ravel(), (grid @ grid).ravel()]))


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", FITS)
def test_every_release_is_what_it_was(name: str, relation: str) -> None:
    golden = recorded()
    wanted, found = golden["releases"][f"{name}, {relation}"], releases_of(name, relation)
    same_algebra = golden["probe"] == probe()
    count = len(wanted) if same_algebra else 1
    assert found[:count] == wanted[:count]
    assert len(found) == len(wanted) or not same_algebra


def test_a_rating_that_moved_by_half_a_star_would_be_noticed() -> None:
    """The twin: digests are of the values, so one rating changes them."""
    plain = ratings_for(8, **SIZES)
    values = plain.values.copy()
    values[0] += 0.5 if values[0] < 5 else -0.5
    turned = tacit.Ratings(*(
        plain.rating_range, plain.catalogue, plain.user_ids, plain.indptr, plain.items, values
    ), plain.implicit)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        tacit.fit(turned, tacit.Moments(), epsilon=2.0, noise_seed_unsafe=11, checkpoint=folder)
        first = load_file(min(Path(folder).glob("release-*")))["values"]
    assert digest(first) != recorded()["releases"]["moments, replace"][0]


def record(*names: str) -> None:
    """Record these fits anew, or all of them; what else is recorded stays, in the order of fits."""
    kept = recorded()["releases"] if names else {}
    releases = {
        f"{n}, {r}": releases_of(n, r) if n in (names or FITS) else kept[f"{n}, {r}"]
        for n in FITS
        for r in RELATIONS
    }
    golden = {"probe": probe(), "releases": releases}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    record(*sys.argv[1:])
