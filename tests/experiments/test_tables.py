"""Tables and figures from stored rows, and the sentences that say who leads."""

import math
from pathlib import Path
from typing import Any

import pytest
from tests.support.small_experiment import TEXT, small, synthetic_row

from tacit.reporting.figures import draw
from tacit.reporting.leading import leading_sentences
from tacit.reporting.tables import csv_text, markdown_text
from tacit.research.experiments.guides import BOUNDS, slope
from tacit.research.experiments.jobs import Job, cells_of
from tacit.research.experiments.reading import parse_experiment
from tacit.research.experiments.summary import points_of

Rows = dict[str, dict[str, Any]]


@pytest.fixture
def rows() -> Rows:
    """Everything of the small experiment."""
    found: Rows = {}
    for _ in range(2):  # trials first
        jobs = [job for cell in cells_of(small(), found) for job in (*cell.trials, *cell.runs)]
        found = {job.key: synthetic_row(job) for job in jobs}
    return found


def fail(rows: Rows, algorithm: str, reason: str) -> None:
    for row in rows.values():
        if row["algorithm"] == algorithm and row["role"] == "run":
            row |= {"status": "failed", "reason": reason, "rmse": None}


def test_a_table_has_means_errors_and_the_command(rows: Rows) -> None:
    text = markdown_text(small(), points_of(small(), rows), "tacit reproduce small", [])
    lines = text.splitlines()
    assert lines[0] == "# Small"
    assert "Made by `tacit reproduce small`. NOT PRIVATE" in lines[2]
    assert "tuned without paying for it" in text
    start = lines.index("## few")
    # Draws are 0.000, 0.001 and 0.002 above: a mean of 0.001, and an error of 0.001/sqrt 3.
    assert lines[start + 4 : start + 9] == [
        "| method | epsilon 0.5 | epsilon 2 | no privacy |",
        "|---|---|---|---|",
        "| automatic | 0.9960 ± 0.0006 | 0.9810 ± 0.0006 | 0.9010 ± 0.0006 |",
        "| svd † | 0.8460 ± 0.0006 | 0.8310 ± 0.0006 | 0.7510 ± 0.0006 |",
        "| user mean | 1.1010 ± 0.0006 | 1.1010 ± 0.0006 | 1.1010 ± 0.0006 |",
    ]
    assert "| few | svd | rank = 2 | 1.5 | 1 MiB |" in lines


def test_a_csv_has_a_line_a_cell(rows: Rows) -> None:
    lines = csv_text(small(), points_of(small(), rows)).splitlines()
    assert len(lines) == 1 + 2 * (3 + 3 + 1)
    assert lines[4] == (
        'few,60,20,svd,svd,0.5,1e-06,rmse,0.846,0.000577,3,True,"{""rank"": 2}",1.5,1048576,'
    )


def test_what_failed_is_a_dash_with_its_reason(rows: Rows) -> None:
    fail(rows, "svd", "over the wall-time cap of 60 s")
    text = markdown_text(small(), points_of(small(), rows), "c", ["Jester is left out."])
    assert "| svd † | - | - | - |" in text
    assert "- few, svd (epsilon 0.5, 2, no privacy): over the wall-time cap of 60 s" in text
    assert "Skipped: Jester is left out." in text


def test_a_sentence_for_every_place_where_another_leads(rows: Rows) -> None:
    sentences = leading_sentences(small(), points_of(small(), rows))
    assert len(sentences) == 6
    assert sentences[0].startswith("few, epsilon 0.5: **svd** leads with 0.8460 against 0.9960")
    assert "more than twice the standard error" in sentences[0]
    assert sentences[2].startswith("few, no privacy: **svd**")


def test_no_sentence_where_it_leads_or_the_rival_is_the_same_fit(rows: Rows) -> None:
    slower = {key: row | {"rmse": row["rmse"] + 1} for key, row in rows.items()}
    better = {k: r if r["algorithm"] == "latent-factors" else slower[k] for k, r in rows.items()}
    assert leading_sentences(small(), points_of(small(), better)) == []
    assert "lowest mean everywhere" in markdown_text(small(), points_of(small(), better), "c", [])
    same = {key: row | {"used": '{"the": "same"}'} for key, row in rows.items()}
    for row in same.values():
        row["used"] = "" if row["algorithm"] == "user-mean" else row["used"]
    assert leading_sentences(small(), points_of(small(), same)) == []


def test_no_sentence_for_a_dataset_that_is_not_here(rows: Rows) -> None:
    here = {key: row for key, row in rows.items() if "tastes" in row["dataset"]}
    sentences = leading_sentences(small(), points_of(small(), here))
    assert sentences
    assert all(sentence.startswith("tastes") for sentence in sentences)


def test_free_predictors_are_rivals_and_a_default_without_result_is_said(rows: Rows) -> None:
    for row in rows.values():
        row["rmse"] = 0.5 if row["algorithm"] == "user-mean" else row["rmse"]
    assert "**user mean** leads" in leading_sentences(small(), points_of(small(), rows))[0]
    fail(rows, "latent-factors", "MemoryError")
    first = leading_sentences(small(), points_of(small(), rows))[0]
    assert first == "few, epsilon 0.5: **automatic gave no result** (MemoryError)."


def test_figures_are_written_and_not_empty(rows: Rows, tmp_path: Path) -> None:
    svg, png = draw(small(), points_of(small(), rows), tmp_path)
    text = svg.read_text()
    for word in ("few", "tastes", "automatic", "svd †", "user mean", "RMSE", "epsilon"):
        assert f">{word}" in text, word
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert png.stat().st_size > 20_000
    assert svg.read_text() == draw(small(), points_of(small(), rows), tmp_path)[0].read_text()


def test_what_is_far_below_all_private_values_leaves_the_panel(rows: Rows, tmp_path: Path) -> None:
    """A method that is exact without noise would squeeze all others into one line."""
    assert "below the panel" not in draw(small(), points_of(small(), rows), tmp_path)[0].read_text()
    for row in rows.values():
        if row["algorithm"] == "latent-factors" and row["epsilon"] == math.inf:
            row["rmse"] = 1e-7
    svg = draw(small(), points_of(small(), rows), tmp_path)[0].read_text()
    assert svg.count("1 method also goes below the panel") == 2  # panels
    assert "1e-07" not in svg


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    assert draw(small(), points_of(small(), {}), tmp_path) == []


GROWTH = TEXT.replace('leader = "automatic"', 'axis = "users"')
GROWTH = GROWTH.replace("users = 60", "users = 90", 1)


def test_growth_shows_slopes_beside_theory(tmp_path: Path) -> None:
    text = GROWTH.replace("tune = { rank = [1, 2] }", "") + (
        '\n[[guides]]\nmethod = "svd"\nbound = "theorem-3.2"\n'
    )
    experiment = parse_experiment("growth", text)
    rows = {}
    for cell in cells_of(experiment, {}):
        for job in cell.runs:
            rows[job.key] = synthetic_row(job) | {"rmse": 3.0 / cell.dataset.users}
    points = points_of(experiment, rows)
    table = markdown_text(experiment, points, "c", [])
    assert "| svd | 2 | 0.0333 ± 0.0000 | 0.0500 ± 0.0000 | -1.00 |" in table
    assert "*theory: Theorem 3.2*" in table
    svg, _ = draw(experiment, points, tmp_path)
    assert "Theorem 3.2" in svg.read_text()


def test_rates_are_those_of_the_theory() -> None:
    sizes = [10_000, 100_000, 1_000_000]
    rates = [BOUNDS["table-2-frank-wolfe"].at(size, 100, 1.0) for size in sizes]
    assert slope(sizes, rates) == pytest.approx(0.3)
    rates = [BOUNDS["theorem-3.2"].at(size, 100, 1.0) for size in sizes]
    assert slope(sizes, rates) == pytest.approx(-0.2)


def test_every_measure_can_be_a_job() -> None:
    assert Job({}, "svd", ranking=True).key != Job({}, "svd").key
