"""tacit report: a page for one's own data, with what is measured marked and nothing loaded."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.models.latent import LatentFactorRule
from tacit.models.results import Reason, Recommendation
from tacit.reporting.model_sections import (
    _because,
    _choice_bars,
    _rating_bars,
    invented_people,
    model_sections,
)
from tacit.reporting.pictures import Dot, budget_bar, item_map
from tests.conftest import ratings_for
from tests.test_cli import Shell, folder, shell
from tests.test_report import Page

__all__ = ["folder", "shell"]

HOSTILE = "<script>alert(1)</script>"


def page_of(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_without_ratings_nothing_is_marked(shell: Shell, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    code, out, err = shell("report", folder / "m.tacit", "-o", page)
    assert (code, out, err) == (0, f"wrote {page}\n", "")
    source = page.read_text(encoding="utf-8")
    assert "NOT PRIVATE" not in source
    for words in ("What is promised", "Where the budget went", "What was taken as public"):
        assert words in source
    assert "<script" not in source
    assert "http" not in source.replace("http-equiv", "")


def test_with_train_it_says_what_evaluate_says(shell: Shell, folder: Path, tmp_path: Path) -> None:
    words = ("--train", folder / "train.csv")
    page = tmp_path / "r.html"
    found = shell.json("evaluate", folder / "m.tacit", *words, "--test", folder / "test.csv")
    code, out, _ = shell(
        "report", folder / "m.tacit", *words, "--ratings", folder / "test.csv", "-o", page
    )
    assert code == 0
    assert "NOT PRIVATE" in out
    text = " ".join(page_of(page).text)
    assert f"{found['rmse']:.4f}" in text
    assert "NOT PRIVATE" in text
    for measure in ("ndcg", "recall", "coverage"):  # beside lists of the most popular items
        ours, popular = (f"{100 * found[who][measure]:.1f} %" for who in ("ranking", "popularity"))
        assert re.search(rf"{ours}\s+{popular}", text)
    assert "Striped bars" not in text  # there is none


def test_held_out_ratings_alone_are_folded_in(shell: Shell, folder: Path, tmp_path: Path) -> None:
    code, _, err = shell(
        "report", folder / "m.tacit", "--ratings", folder / "train.csv", "-o", tmp_path / "r.html"
    )
    assert (code, err) == (0, "")
    few = pl.DataFrame({"user": [1, 2], "item": [3, 4], "rating": [4.0, 2.0]})
    few.write_csv(tmp_path / "few.csv")
    code, _, err = shell(
        "report", folder / "m.tacit", "--ratings", tmp_path / "few.csv", "-o", tmp_path / "r.html"
    )
    assert code == 2
    assert "or give --train" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-o", "page.pdf"), ".html"),
        (("--train", "train.csv"), "--ratings"),
        (("--ratings", "nothing.csv"), "no such file"),
    ],
)
def test_what_does_not_go_is_said(
    shell: Shell, folder: Path, words: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, _, err = shell("report", "m.tacit", *words)
    assert code == 2
    assert told in err


@pytest.mark.parametrize(
    "algorithm",
    [None, tacit.Moments(), tacit.SVD(), tacit.FrankWolfe(rounds=3), tacit.Cleansing()],
)
def test_every_method_has_its_sections(algorithm: Any) -> None:
    model = tacit.fit(ratings_for(0), algorithm, epsilon=5.0)
    found = {section.name: section.html() for section in model_sections(model)}
    assert "budget" in found
    for text in found.values():
        Page(text)
    people = list(invented_people(model))
    assert ("lists" in found) == bool(people)


def test_only_what_adds_to_a_prediction_is_a_reason_for_it() -> None:
    model = tacit.fit(ratings_for(0), "moments", epsilon=5.0)
    reasons = [
        Reason("a", "A", 5.0, 0.25),
        Reason("b", "B", 5.0, -0.3),
        Reason("c", "C", 5.0, 0.001),
    ]
    row = Recommendation("x", "X", 4.0, None, 3.0, tuple(reasons))
    assert _because(model, row) == "+0.25 for A"
    assert _because(model, replace(row, because=tuple(reasons[1:]))) == "what is usual"


def test_one_item_of_vast_noise_does_not_empty_the_bars_of_factors() -> None:
    """With equal weights it would: an item that nobody rated may have been measured as anything."""
    rule = cast(LatentFactorRule, tacit.fit(ratings_for(0), epsilon=5.0).rule)
    factors = np.random.default_rng(1).normal(size=(rule.offsets.size, 2))
    measured, noise = np.ones((len(factors), 3)), np.full((len(factors), 3), 0.01)
    measured[:, :2] = factors
    measured[0], noise[0] = 1e6, 1e12
    for bar in _rating_bars(replace(rule, factors=factors), measured, noise):
        assert bar.measured == pytest.approx(bar.kept, rel=0.5)
        assert bar.noise == pytest.approx(0.1, rel=0.1)
    assert np.sum(factors**2) < 1e-6 * np.sum(measured[:, :2] ** 2), "what equal weights would show"


def test_the_noise_of_choice_is_that_of_both_looks_and_popularity_is_no_bar() -> None:
    fitted = tacit.fit(ratings_for(0), epsilon=5.0)
    rule = cast(LatentFactorRule, fitted.rule)
    factors = np.zeros((rule.offsets.size, 3))
    factors[:, 0], factors[0, 1], factors[1, 2] = 1.0, 0.2, 0.1
    look = next(each for each in fitted.certificate.releases if "co-occurrences" in each.name)
    for looks, share in (1, 1.0), (2, np.sqrt(0.5)):
        certificate = SimpleNamespace(users=80, releases=[look] * looks)
        model = cast(Any, SimpleNamespace(certificate=certificate))
        bars = _choice_bars(model, replace(rule, choice_factors=factors))
        assert [bar.kept for bar in bars] == pytest.approx([0.04, 0.01])
        assert bars[0].noise == pytest.approx(share * look.noise_sd / 80)


def test_no_budget_is_drawn_where_there_is_none() -> None:
    model = tacit.fit(ratings_for(0), budget=None)
    assert "budget" not in {section.name for section in model_sections(model)}


def test_hostile_titles_are_text_on_the_map() -> None:
    drawn = item_map([Dot(0.1, 0.2, HOSTILE, 1.0), Dot(0.9, 0.9, HOSTILE, 0.5)])
    assert HOSTILE not in drawn
    assert "&lt;script&gt;" in drawn


def test_labels_do_not_lie_on_each_other() -> None:
    crowd = [Dot(0.5, 0.5, f"title {k}", 1.0 - k / 100) for k in range(50)]
    assert item_map(crowd).count("<text") == 1
    apart = [Dot(0.1, k / 10, f"title {k}", 0.5) for k in range(10)]
    assert item_map(apart).count("<text") == 10


def test_shares_of_the_budget_add_up() -> None:
    releases = [
        {"name": "a", "kind": "a", "mu": 3.0},
        {"name": "b 1", "kind": "b", "mu": 4.0},
        {"name": "b 2", "kind": "b", "mu": 0.0},
    ]
    drawn = budget_bar(releases)
    assert 'width="36.00%"' in drawn
    assert 'width="64.00%"' in drawn
    assert budget_bar([{"name": "a", "kind": "a", "mu": None}]) == ""
