"""`tacit audit` as a person types it, and the audit of a model that it stands on."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import ratings_for

import tacit
from tacit.algorithms import SVD, Interactions
from tacit.audit import PARTS, Audit, Finding, Scale, audit
from tacit.audit.target import target_of_model
from tacit.cli import main
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.sampler import NoiseSource, floor_normals

QUICK = ("--quick", "--trials", "30", "--seed", "1")
TWO = ("--parts", "sensitivity,game")
KEYS = {
    "format", "holds", "algorithm", "epsilon", "delta", "neighbours", "accounting", "seed",
    "findings",
}  # fmt: skip
FINDING_KEYS = {
    "part",
    "subject",
    "claim",
    "measured",
    "limit",
    "holds",
    "how",
    "interval",
    "control",
}
# Settings of every kind: numbers, words, truth, a list, a norm that is paid for, rules.
CONFIGS: list[Any] = [
    tacit.LatentFactors(),
    tacit.LatentFactors(step="equations", rounds=2, rank=2, max_ratings=5),
    tacit.Moments(),
    tacit.Moments(max_ratings=5, rank=2, eigen="block", columns=4),
    tacit.FrankWolfe(rounds=3, schedule=(1.0, 2.0), shift=False, local="ridge"),
    tacit.FrankWolfe(eigen="oja", oja_steps=2, rounds=2, row_norm="private"),
    tacit.SVD(rank=2, row_norm=1.5, centre=False),
    tacit.ProjectedGradient(rounds=2, rate="t^-1/2", item_means=0.2),
    tacit.Cleansing(shares=(0.2, 0.5, 0.3), local="neighbours"),
    tacit.NoisyGradient(rounds=2),
    tacit.ALS(rank=2, rounds=2, pooling=False),
]


def shell(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the command line in this process; return its exit code and what it said."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tacit", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


@pytest.fixture
def half_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(source: NoiseSource, size: int, bits: int) -> np.ndarray:
        return floor_normals(source, size, bits) >> 1

    monkeypatch.setattr(mechanism_module, "floor_normals", draw)


def test_an_algorithm_holds(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shell(capsys, "audit", "svd", "--epsilon", 4, *TWO, *QUICK)
    assert code == 0, out
    assert "AUDIT of svd: epsilon 4, delta 1e-06, replace" in out
    assert "Synthetic people only" in out
    assert out.rstrip().splitlines()[-1].startswith("HOLDS")


@pytest.mark.parametrize(("relation", "limit"), [("replace", "0.8379"), ("add_remove", "1.676")])
def test_the_report_has_a_line_for_single_ratings(
    capsys: pytest.CaptureFixture[str], relation: str, limit: str
) -> None:
    """It is compared with what the certificate says of two lists."""
    assert "rating" in PARTS
    words = ("--neighbours", relation, "--parts", "rating", "--quick", "--seed", 1)
    code, out, _ = shell(capsys, "audit", "svd", "--epsilon", 4, *words)
    assert code == 0, out
    (line,) = (line for line in out.splitlines() if "the whole fit, one rating" in line)
    assert line.split()[0] == "holds"
    assert limit in line


def test_json_has_stable_keys(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("audit", "svd", "--epsilon", 4, "--set", "rank=2", "--parts", "sensitivity")
    code, out, _ = shell(capsys, *words, *QUICK, "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == KEYS
    assert found["format"] == "tacit-audit/1"
    assert found["holds"] is True
    assert all(set(finding) == FINDING_KEYS for finding in found["findings"])


@pytest.mark.statistical
def test_half_the_noise_is_exit_code_one_and_says_what(
    capsys: pytest.CaptureFixture[str], half_noise: None
) -> None:
    """The twin."""
    words = ("audit", "svd", "--epsilon", 8, "--parts", "game", "--trials", 150, "--seed", 1)
    code, out, _ = shell(capsys, *words)
    assert code == 1
    assert "FAILS" in out
    assert "DOES NOT HOLD: game, svd: likelihood ratio" in out


def test_a_model_file_is_audited_as_its_certificate_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "m.tacit"
    tacit.fit(ratings_for(1), tacit.SVD(rank=2), epsilon=3.0).save(path)
    words = ("audit", path, "--parts", "sensitivity", *QUICK)
    code, out, _ = shell(capsys, *words, "-o", tmp_path / "page.html", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["algorithm"], found["epsilon"]) == ("svd", 3.0)
    assert [finding["part"] for finding in found["findings"]][:2] == ["certificate", "sensitivity"]
    assert "<table>" in (tmp_path / "page.html").read_text()
    for name in ("page.txt", "page.json"):
        assert shell(capsys, *words, "-o", tmp_path / name)[0] == 0
    assert "HOLDS" in (tmp_path / "page.txt").read_text()
    assert set(json.loads((tmp_path / "page.json").read_text())) == KEYS


def test_a_model_that_promises_nothing_does_not_hold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "m.tacit"
    tacit.fit(ratings_for(1), tacit.SVD(), budget=None).save(path)
    code, out, _ = shell(capsys, "audit", path)
    assert code == 1
    assert "nothing is promised" in out


def test_a_seeded_model_fails_by_its_certificate() -> None:
    model = tacit.fit(ratings_for(1), tacit.SVD(), epsilon=1.0, noise_seed_unsafe=1)
    found = audit(model, parts=["sensitivity"], scale=Scale(quick=True))
    assert [finding.part for finding in found.broken] == ["certificate"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("svd",), "--epsilon is missing"),
        (("no-such-thing", "--epsilon", 1), "neither a file nor an algorithm"),
        (("svd", "--epsilon", 1, "--parts", "magic"), "expected some of sensitivity"),
        (("svd", "--epsilon", 1, "--trials", -3), "--trials -3"),
        (("svd", "--epsilon", 1, "--set", "colour=red"), "no such setting"),
        (("svd", "--epsilon", 1, "-o", "page.pdf"), ".txt, .json or .html"),
        (("approximate-frank-wolfe", "--epsilon", 1, *TWO), "not private"),
    ],
)
def test_what_cannot_be_audited_is_exit_code_two(
    capsys: pytest.CaptureFixture[str], words: tuple[object, ...], said: str
) -> None:
    code, _, err = shell(capsys, "audit", *words)
    assert code == 2
    assert said in err


def test_a_model_is_not_given_another_promise(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "m.tacit"
    tacit.fit(ratings_for(1), tacit.SVD(), epsilon=3.0).save(path)
    assert shell(capsys, "audit", path, "--epsilon", 1)[0] == 2
    assert shell(capsys, "audit", path, "--set", "rank=1")[0] == 2
    with pytest.raises(tacit.ConfigError, match="budget"):
        audit(tacit.load(path), budget=tacit.PrivacyBudget(1.0))
    with pytest.raises(tacit.ConfigError, match="budget=None"):
        audit(tacit.SVD())


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_settings_are_read_back_from_the_certificate(config: Any, relation: str) -> None:
    """What they say of themselves is the same; what is a rule stays one."""
    ratings = ratings_for(1)
    budget = tacit.PrivacyBudget(2.0, neighbours=relation)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=1)
    subject = target_of_model(model)
    again = tacit.fit(ratings, subject.algorithm, budget=subject.budget, noise_seed_unsafe=1)
    assert again.certificate.public == model.certificate.public
    assert again.certificate.releases == model.certificate.releases
    assert subject.rating_range == ratings.rating_range


def test_a_rule_stays_a_rule_in_a_smaller_world() -> None:
    model = tacit.fit(ratings_for(1), tacit.SVD(rank=2), epsilon=2.0)
    assert target_of_model(model).algorithm == replace(tacit.SVD(), rank=2)


def test_interactions_are_audited_as_interactions() -> None:
    ratings = tacit.Ratings.from_arrays([1, 1, 2, 2, 3], [7, 8, 7, 9, 8], implicit=True)
    model = tacit.fit(ratings, epsilon=2.0)
    assert target_of_model(model).implicit
    found = audit(model, parts=["sensitivity"], scale=Scale(quick=True))
    assert found.holds
    assert found.name == "interactions"


def test_items_that_were_chosen_are_remembered() -> None:
    model = tacit.fit(ratings_for(1), tacit.SVD(), epsilon=2.0, top_items=9)
    assert target_of_model(model).narrowed


def test_a_tuned_model_is_refused_with_a_way_out() -> None:
    model = tacit.tune(ratings_for(1), [tacit.SVD(rank=1), tacit.SVD(rank=2)], epsilon=5.0)
    with pytest.raises(tacit.ConfigError, match="tuned"):
        audit(model)


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        (SVD(), ("sensitivity", "game")),
        pytest.param(SVD(), PARTS, marks=pytest.mark.slow),
        pytest.param(Interactions(), PARTS, marks=pytest.mark.slow),
    ],
    ids=["two parts of svd", "svd", "interactions"],
)
def test_parts_run_in_order_and_tell_every_step(config: Any, parts: tuple[str, ...]) -> None:
    """Each part tells how many steps there are before the first, and ends with all of them."""
    told: list[tuple[str, int, int]] = []
    audit(
        config,
        budget=tacit.PrivacyBudget(4.0),
        parts=parts[::-1],
        scale=Scale(trials=20, seed=1, quick=True),
        progress=lambda *step: told.append(step),
    )
    assert list(dict.fromkeys(part for part, _, _ in told)) == list(parts)
    for part in parts:
        steps = [(done, planned) for each, done, planned in told if each == part]
        planned = steps[0][1]
        assert steps == [(done, planned) for done in range(planned + 1)], part


def test_the_bar_is_on_stderr_and_only_where_someone_looks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("audit", "svd", "--epsilon", 4, "--parts", "sensitivity", *QUICK)
    code, out, err = shell(capsys, *words)
    assert (code, err.strip()) == (0, "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    code, again, err = shell(capsys, *words)
    assert (code, again) == (0, out)
    assert "audit: sensitivity" in err
    assert "0/4" in err


def test_a_page_names_the_method_once_and_says_which_noise_repeats() -> None:
    """A phone has no room for the method in each row."""
    rows = [Finding("noise", f"svd{mark} one", "y", 0.5, 1.0, True, "z") for mark in (":", ",")]
    page = Audit("svd", None, tuple(rows)).page()
    assert page.count(">one") == 2
    assert "svd: one" not in page
    assert "svd, one" not in page
    assert "of all other parts: seed 0" in page
    assert "Noise: seed 3." in Audit("svd", None, tuple(rows), 3).page()


def test_what_is_not_finite_is_null_in_json_and_nothing_at_all_does_not_hold() -> None:
    odd = Finding("certificate", "x", "y", math.inf, 0.0, False, "z")
    found = Audit("x", None, (odd,))
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["findings"][0]["limit"] == 0.0
    assert "FAILS" in found.text()
    assert 'class="fails"' in found.page()
    assert not Audit("x", None, ()).holds
