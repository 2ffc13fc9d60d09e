"""How fast tacit.js is in Node: python benchmarks/web.py. Needs node on the path.

Models are random numbers of the shapes that fits publish: 20 factors (and 20 choice factors), 10
rounds. A person has 50 ratings. Times are of the processor, so that a busy machine does not count:
the first time in a process, when nothing is compiled yet, and the median of 40 more. Bars: a
prediction of all 400 items in 5 ms, of 100,000 in 100 ms.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.accounting.release import ReleaseKind
from tacit.models.filling import FillingRule
from tacit.models.implicit import InteractionRule
from tacit.models.latent import LatentFactorRule
from tacit.models.linear import ProjectionRule, RidgeRule
from tacit.models.neighbours import NeighbourRule
from tacit.models.replay import ReplayRule

HERE = Path(__file__).parent
RANK, ROUNDS, RATINGS, RUNS = 20, 10, 50, 40
BARS = {400: 5.0, 100_000: 100.0}
PAIRS = {"neighbours", "filling"}  # fits release a matrix of all pairs: none has so many items
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape) / 5


def _ridge(n: int) -> Any:
    noise = 0.5 + RNG.random(n)
    return RidgeRule(normal(n, RANK), 3 + normal(n), noise, True, 2.0, ReleaseKind.COVARIANCE)


def _latent(n: int) -> Any:
    factors, choice = normal(n, RANK), normal(n, RANK) / np.sqrt(n)
    choice[:, 0] = np.abs(choice[:, 0])
    noise, shares = 0.5 + RNG.random(n), np.full(n, 1 / n)
    return LatentFactorRule(
        factors, 3 + normal(n), noise, choice, shares, normal(RANK, RANK), 3.5
    )  # fmt: skip


def _neighbours(n: int) -> Any:
    factors = normal(n, RANK)
    return NeighbourRule(factors @ factors.T + np.eye(n), 3 + normal(n), 30, 1.0, 2.0)


def _interactions(n: int) -> Any:
    shares = RNG.random(n)
    return InteractionRule(normal(n, RANK), shares / shares.sum())


def _replay(n: int) -> Any:
    vectors, gains, keeps = normal(ROUNDS, n), np.ones(ROUNDS), np.full(ROUNDS, 0.9)
    return ReplayRule(vectors, gains, keeps, 3 + normal(n), np.empty((0, 2)), 4.0, None, True)


def _filling(n: int) -> Any:
    ranks = (RANK,) * ROUNDS
    return FillingRule(
        normal(n, RANK * ROUNDS) / np.sqrt(n), np.ones(RANK * ROUNDS), np.full(ROUNDS, 0.5),
        np.full(ROUNDS, 10.0), 3 + normal(n), 4.0, None, True, ranks,
    )  # fmt: skip


RULES: dict[str, Callable[[int], Any]] = {
    "latent-factors (default)": _latent,
    "ridge": _ridge,
    "projection": lambda n: ProjectionRule(normal(n, RANK), 3 + normal(n), 1.0, None, True),
    "replay": _replay,
    "filling": _filling,
    "interactions": _interactions,
    "neighbours": _neighbours,
}


def save_random(path: Path, items: int, make: Callable[[int], Any] = _latent) -> None:
    base = tacit.load(HERE.parent / "tests" / "old_models" / "moments.tacit")
    catalogue = tacit.Catalogue(list(range(items)), titles=[f"Item {at}" for at in range(items)])
    rule = make(items)
    tacit.Model(rule, catalogue, (0.5, 5.0), base.certificate, base.releases).save(path)


def measure(make: Callable[[int], Any], items: int, folder: Path) -> dict[str, Any]:
    path = folder / "model.tacit"
    save_random(path, items, make)
    command = ["node", str(HERE / "web.mjs"), str(path), str(RATINGS), str(RUNS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> int:
    print(f"{'local rule':<26}{'items':>8}{'file':>9}{'read':>9}{'predict':>18}{'list of 10':>18}")
    print(f"{'':<26}{'':>8}{'MB':>9}{'ms':>9}{'first / median':>18}{'first / median':>18}")
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make in RULES.items():
            for items, bar in BARS.items():
                if name in PAIRS and items > 10_000:
                    continue
                found = measure(make, items, Path(folder))
                pairs = [found["predict"], found["recommend"]]
                shown = "".join(f"{p['first']:>9.1f} /{p['median']:>7.2f}" for p in pairs)
                late = found["predict"]["median"] > bar
                slow += late
                mark = f"  ABOVE {bar:g} ms" if late else ""
                size = found["bytes"] / 1e6
                print(f"{name:<26}{items:>8}{size:>9.1f}{found['read']:>9.0f}{shown}{mark}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
