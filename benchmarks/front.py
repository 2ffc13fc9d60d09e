"""The pictures of the front page: error and lists against epsilon, beside methods without privacy.

    python benchmarks/front.py [--output docs/pictures]

Two files, front-ratings.svg and front-lists.svg: side by side on a wide page, stacked
on a phone. Where the reader's system is dark, so are they.

It computes nothing: errors are those of docs/results/leaderboard.csv (`make leaderboard`), lists
those of docs/results/front-lists.csv, which `python benchmarks/lists.py --draws 1 --epsilons 0.1
0.3 1 3 10 --csv docs/results/front-lists.csv` makes. NOT PRIVATE: measured on held-out ratings.
"""

import argparse
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl

from tacit.reporting.drawing import GRID, INK, QUIET, calm_style, check_matplotlib

RESULTS = Path(__file__).parents[1] / "docs" / "results"
DARK = "@media (prefers-color-scheme: dark) { svg { filter: invert(0.88) } }\n"
DASHES: tuple[Any, ...] = ("--", "-.", ":", (0, (1, 3)))
ERRORS = {
    "automatic": "tacit, without noise",
    "als": "alternating least squares, without noise",
}
LISTS = {
    "EASE": "EASE",
    "implicit ALS": "ALS of the package implicit",
    "exact popularity of liked": "most liked items",
}


def errors() -> tuple[dict[float, float], dict[str, float]]:
    """RMSE on Jester: ours by epsilon, and others without privacy."""
    rows = pl.read_csv(RESULTS / "leaderboard.csv", infer_schema_length=None).filter(
        (pl.col("dataset") == "Jester") & (pl.col("measure") == "rmse")
    )
    ours, across = {}, {}
    for row in rows.iter_rows(named=True):
        private = row["epsilon"] is not None and row["epsilon"] != float("inf")
        if private and row["method"] == "automatic":
            ours[row["epsilon"]] = row["mean"]
        elif not private and row["method"] in ERRORS:
            across[ERRORS[row["method"]]] = row["mean"]
        elif row["method"] == "user mean":
            across["user's own mean, no model"] = row["mean"]
    return ours, across


def lists() -> tuple[dict[float, float], dict[str, float]]:
    """Recall@20 of new users: ours by epsilon, and others without privacy."""
    rows = pl.read_csv(RESULTS / "front-lists.csv", infer_schema_length=None)
    ours, across = {}, {}
    for row in rows.iter_rows(named=True):
        if row["method"] == "tacit" and row["epsilon"] is not None:
            ours[row["epsilon"]] = row["mean"]
        elif row["method"] in LISTS:
            across[LISTS[row["method"]]] = row["mean"]
    return ours, across


def panel(
    path: Path,
    title: str,
    found: tuple[dict[float, float], dict[str, float]],
    legend: str,
    heights: tuple[float, float] | None = None,
) -> None:
    """Draw one picture: a curve of ours, and lines of the others."""
    from matplotlib.figure import Figure

    ours, across = found
    figure = Figure(figsize=(4.25, 3.6), layout="constrained", facecolor="white")
    axes = figure.subplots()
    epsilons = sorted(ours)
    axes.plot(epsilons, [ours[e] for e in epsilons], color=INK, marker="o", linewidth=2.4)
    axes.lines[0].set_label("tacit: private")
    for (label, height), dashes in zip(across.items(), DASHES, strict=False):
        name = label if "no model" in label else f"{label}: not private"
        axes.axhline(height, color=QUIET, linewidth=1.2, linestyle=dashes, label=name)
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("epsilon: smaller is more private")
    axes.set_title(title)
    axes.legend(frameon=False, fontsize=8.5, loc=legend, labelcolor=INK)
    axes.grid(True, axis="y", color=GRID, linewidth=0.8)
    if heights is not None:
        axes.set_ylim(*heights)
    drawn = StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    head, style, rest = drawn.getvalue().partition('<style type="text/css">')
    path.write_text(head + style + DARK + rest, encoding="utf-8")


def main() -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS.parent / "pictures")
    folder = parser.parse_args().output
    check_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    with calm_style():
        title = "Error of predicted ratings (RMSE): lower is better\n73,421 people, 100 jokes"
        panel(folder / "front-ratings.svg", title, errors(), "center right")
        title = (
            "Liked items found in lists of 20: higher is better\n20,000 synthetic people, 400 films"
        )
        panel(folder / "front-lists.svg", title, lists(), "lower right", (0.0, 0.55))


if __name__ == "__main__":
    main()
