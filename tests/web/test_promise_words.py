"""The page says of a promise what Python says: it computes grade and sentences from the numbers.

A model file states them too. A file of an older version, or one written by hand, may state others
than its numbers give; Python does not repeat these, and neither does the page.
"""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import tacit
from tacit.accounting.budget import PrivacyBudget, epsilon_of
from tacit.accounting.certificate import Certificate
from tacit.accounting.ledger import Entry
from tacit.accounting.promise import recomputed, rounded_down, rounded_up
from tacit.accounting.release import Release, ReleaseKind
from tacit.models.digest import BLANK, sealed
from tests.web.node import answers, needs_node

pytestmark = needs_node

OLD = Path(__file__).parents[1] / "old_models"
PROMISE = Path(__file__).parents[2] / "web" / "promise.js"
WORDS = ("private", "grade", "not_private_because", "promise")
BUDGETS = [
    PrivacyBudget(epsilon, delta, neighbours)
    for neighbours in ("replace", "add_remove")
    for epsilon, delta in (
        (1.0, 1e-6), (0.01, 1e-9), (1e-3, 1e-30), (0.123456789, 1e-6), (1.0000004, 1e-5),
        (4.0, 2e-5), (8.6, 1e-6), (8.8, 1e-6), (19.0, 1e-6), (21.0, 1e-6), (200.0, 1e-6),
        (1000.0, 1e-6), (1.0, 0.005), (1.0, 0.5), (3.0, 1.5e-7),
    )
]  # fmt: skip
STRONG = {
    "private": True,
    "grade": "strong",
    "not_private_because": [],
    "promise": ["This is a strong promise: nobody can learn anything."],
}


def certificate_of(budget: PrivacyBudget, mu: float | None = None) -> Certificate:
    """A certificate of one release that costs all of a budget, or another mu."""
    entry = Entry(Release(ReleaseKind.COVARIANCE, (1,)), 1.0, 1 / (mu or budget.mu))
    return Certificate(budget, (entry,), {"catalogue": "a public list"})


def stating(folder: Path, name: str, certificate: Certificate, said: dict[str, Any]) -> Path:
    """A model file with this certificate, whose words about itself are `said`."""
    base = tacit.load(OLD / "moments.tacit")
    path = folder / f"{name}.tacit"
    tacit.Model(base.rule, base.catalogue, base.rating_range, certificate, 1).save(path)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    facts = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["tacit"])
    facts |= {"digest": BLANK, "certificate": facts["certificate"] | said}
    path.write_bytes(sealed(save(load_file(path), {"tacit": json.dumps(facts)})))
    return path


def certificates(folder: Path, files: list[Path]) -> list[dict[str, Any]]:
    said = answers(folder, [{"file": str(file), "questions": []} for file in files])
    return [{**each["about"]["certificate"], "verified": each["verified"]} for each in said]


def test_a_file_that_praises_itself_is_told_by_its_numbers(tmp_path: Path) -> None:
    """Every file claims to be strong; page and Python say what the numbers give, word for word."""
    files = [
        stating(tmp_path, str(at), certificate_of(budget), STRONG)
        for at, budget in enumerate(BUDGETS)
    ]
    grades = set()
    for file, found in zip(files, certificates(tmp_path, files), strict=True):
        model = tacit.load(file)
        wanted = model.certificate.to_json()
        assert {name: found[name] for name in WORDS} == {name: wanted[name] for name in WORDS}
        assert found["verified"]["holds"] == model.certificate.verify().holds
        grades.add(found["grade"])
    assert grades == {"strong", "moderate", "weak", "none"}


def test_a_refit_says_what_is_counted(tmp_path: Path) -> None:
    certificate = certificate_of(PrivacyBudget(1.0)).resting_on(0.01)
    [found] = certificates(tmp_path, [stating(tmp_path, "refit", certificate, {})])
    assert found["promise"] == certificate.promise()
    assert "refit" in "".join(found["promise"])


@pytest.mark.parametrize("too_much", [1e-10, 1e-8])
def test_the_page_accepts_rounding_and_no_more_than_verify_does(
    too_much: float, tmp_path: Path
) -> None:
    """Ten times the rounding that Python accepts does not hold on the page either."""
    budget = PrivacyBudget(1.0)
    exact = epsilon_of(budget.mu, budget.delta)
    certificate = certificate_of(replace(budget, epsilon=exact / (1 + too_much)), budget.mu)
    [found] = certificates(tmp_path, [stating(tmp_path, "near", certificate, {})])
    assert found["verified"]["holds"] == certificate.verify().holds == (too_much < 1e-9)


@pytest.mark.parametrize(
    "impossible", [{"epsilon": 1e9}, {"delta": 0.0}, {"delta": 1.5}, {"neighbours": "nobody"}]
)
def test_an_impossible_budget_is_refused(impossible: dict[str, Any], tmp_path: Path) -> None:
    file = stating(tmp_path, "odd", certificate_of(PrivacyBudget(1.0)), impossible)
    with pytest.raises(tacit.errors.ModelFileError):
        tacit.load(file)
    [said] = answers(tmp_path, [{"file": str(file), "questions": []}])
    assert said["error"] == "ModelFileError"


def test_numbers_are_rounded_as_in_python(tmp_path: Path) -> None:
    """Costs and bounds up, noise down, and a recomputed epsilon never beyond a claim it keeps."""
    rng = np.random.default_rng(1)
    values = [*np.geomspace(1e-9, 1e9, 120).tolist(), 9.99996, 10.0, 1.0000004, 99999.96, 1 / 3]
    claims = [value * (1 + 10.0 ** -rng.integers(3, 17)) for value in values] + [0.5]
    script = tmp_path / "ask.mjs"
    script.write_text(
        f"import {{ recomputed, roundedDown, roundedUp }} from {json.dumps(str(PROMISE))};\n"
        f"const values = {json.dumps(values)}, claims = {json.dumps(claims)};\n"
        "const found = values.map((value, at) => [...[4, 6].flatMap((digits) => ["
        "roundedUp(value, digits), roundedDown(value, digits)]), recomputed(value, claims[at])]);\n"
        "process.stdout.write(JSON.stringify(found));\n"
    )
    done = subprocess.run(["node", str(script)], capture_output=True, text=True, check=True)
    for value, claim, said in zip(values, claims, json.loads(done.stdout), strict=False):
        wanted = [write(value, digits) for digits in (4, 6) for write in (rounded_up, rounded_down)]
        assert list(map(float, said)) == list(map(float, [*wanted, recomputed(value, claim)]))


def test_idealised_noise_is_not_private_whatever_a_file_says(tmp_path: Path) -> None:
    file = stating(tmp_path, "edited", certificate_of(BUDGETS[0]), {"numerics": "idealised"})
    (found,) = certificates(tmp_path, [file])
    wanted = tacit.load(file).certificate.to_json()
    assert {name: found[name] for name in WORDS} == {name: wanted[name] for name in WORDS}
    assert not found["private"]
    assert not found["verified"]["holds"]
