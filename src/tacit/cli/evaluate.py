"""tacit evaluate: quality on held-out ratings, for the owner of the data. NOT PRIVATE."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tacit.cli.lists import POPULARITY_NOTE, show_left_out, show_lists
from tacit.cli.new_users import Asked, check_alone, show_new_users
from tacit.cli.options import AsJson, Layout, ModelPath, plain_table, show_json, show_table
from tacit.cli.sources import own_ratings
from tacit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from tacit.data.ratings import Ratings
    from tacit.evaluation import Accuracy, Calibration, Ranking
    from tacit.models import Model


def run(
    model: ModelPath,
    *,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="The ratings that predictions are made from; may be repeated."
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Held-out ratings; may be repeated."),
    ] = None,
    new_users: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Instead of both: all ratings of users who were not in the fit; may be repeated. "
            "80 % are folded in, 20 % held out. Nobody can check that they were not in the fit.",
        ),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", help="Length of lists; 10, or all items if fewer.")
    ] = None,
    relevant: Annotated[
        float | None,
        typer.Option(
            "--relevant",
            "--liked",
            help="The lowest rating that counts as liked; 0.7 up the range if left out, so 3.8 of "
            "1 to 5.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With --new-users: the random seed of the held-out part (0).")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="With --new-users: how lists are sorted, by 'rating' or 'choice'; left out, as "
            "`tacit recommend` does."
        ),
    ] = None,
    layout: Layout,
    as_json: AsJson = False,
) -> None:
    """Measure quality (NOT PRIVATE). The figures come straight from held-out ratings."""
    if new_users:
        check_alone({"--train": train, "--test": test, "--k": k is not None})
        found, read = _new_users(model, new_users, layout)
        asked = Asked(relevant, 0 if seed is None else seed, by)
        show_new_users(found, read, asked, as_json)
        return
    _evaluate(
        model,
        _apart(*_both(train, test, {"--seed": seed, "--by": by})),
        layout,
        (k, relevant, as_json),
    )


def _both(
    train: list[str] | None, test: list[str] | None, others: "Mapping[str, int | str | None]"
) -> tuple[list[str], list[str]]:
    """Return the names of both parts; refuse one alone, and what goes with --new-users only."""
    if not train or not test:
        raise ConfigError(
            f"{'--test' if train else '--train'} is missing: give --train and --test, or "
            "--new-users with ratings of users who were not in the fit"
        )
    for name, value in others.items():
        if value is not None:
            raise ConfigError(
                f"{name} goes with --new-users and changes nothing here; leave it out"
            )
    return train, test


def _new_users(
    path: "Path", names: list[str], layout: Layout
) -> "tuple[Model, tuple[Ratings, int]]":
    """Return the model, and the new users' ratings with how many are of items it does not have."""
    from tacit.data.readers.registry import files_of
    from tacit.models import load

    files = files_of(names)
    model = load(path)
    return model, own_ratings(model, files, layout)


def _evaluate(
    model: "Path",
    files: "tuple[list[Path], list[Path]]",
    layout: Layout,
    shown: tuple[int | None, float | None, bool],
) -> None:
    """Measure users' predictions from their training ratings, and show everything."""
    from tacit.evaluation import ExactPopularity, measure, user_mean_accuracy
    from tacit.models import load

    (inputs, tested), (k, relevant, as_json) = files, shown
    found = load(model)
    rows, left_out = own_ratings(found, inputs, layout)
    held_out = _held_out(tested, layout, found.implicit)
    length = min(10, len(found.catalogue)) if k is None else k
    if found.implicit:
        show_lists(found, (rows, left_out), held_out, length, as_json)
        return
    accuracy, calibration = measure(found, rows, held_out)
    measured = _Measured(
        accuracy,
        user_mean_accuracy(rows, held_out),
        _ranking((found, rows, held_out, length, relevant)),
        _ranking((ExactPopularity(rows), rows, held_out, length, relevant)),
        calibration,
        left_out,
    )
    if as_json:
        _show_json(measured)
    else:
        _show(measured)


class _Measured(NamedTuple):
    """Everything that is shown; `popularity` has the lists of exact popularity."""

    accuracy: "Accuracy"
    user_mean: "Accuracy"
    ranking: "Ranking | None"
    popularity: "Ranking | None"
    calibration: "Calibration | None"
    train_left_out: int


def _apart(train: list[str], test: list[str]) -> "tuple[list[Path], list[Path]]":
    """Return the files of both parts; refuse a file that is in both."""
    from tacit.data.readers.registry import files_of

    inputs, tested = files_of(train), files_of(test)
    for path in tested:
        if any(path.samefile(other) for other in inputs):
            raise DataError(
                f"--test {path}: it is also a file of --train, so nothing in it is held out; split "
                "the ratings with `tacit split`, fit on one part, and give that as --train"
            )
    return inputs, tested


def _held_out(paths: "list[Path]", layout: Layout, implicit: bool) -> "pl.DataFrame":
    """Read held-out ratings of all files as one table; merge pairs given twice if that is asked."""
    import polars as pl

    from tacit.data.readers.registry import read_file

    roles = layout.columns.pair if implicit else layout.columns.roles
    tables = [pl.DataFrame(read_file(path, roles)) for path in paths]
    table = pl.concat(tables, how="vertical_relaxed")
    if layout.duplicates == "last":
        return table.unique(["user", "item"], keep="last", maintain_order=True)
    if layout.duplicates == "mean" and not implicit:
        rating = pl.col("rating").cast(pl.Float64, strict=False).mean()
        return table.group_by("user", "item", maintain_order=True).agg(rating)
    return table


def _ranking(arguments: tuple[Any, ...]) -> "Ranking | None":
    """Rank; None if no held-out rating is relevant, which is no reason to show nothing at all."""
    from tacit.evaluation import rank

    try:
        return rank(*arguments)
    except DataError:
        return None


def _show_json(measured: _Measured) -> None:
    names = ("user_mean", "ranking", "popularity", "calibration")
    parts = {name: getattr(measured, name) for name in names}
    facts = measured.accuracy.to_json()
    del facts["notice"]
    facts |= {name: part and part.to_json() for name, part in parts.items()}
    show_json(facts | {"train_left_out": measured.train_left_out, "label": "NOT PRIVATE"})


def _show(measured: _Measured) -> None:
    """Print one table for a person, and what it was measured on."""
    accuracy, _, ranking, _, calibration, left_out = measured
    typer.echo("NOT PRIVATE: computed from held-out ratings, for the owner of the data")
    stds = ["> if stds were right"] * (calibration is not None)
    table = plain_table("measure", "> found", "> baseline", *stds)
    for name, *values in _rows(measured):
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in values))
    show_table(table)
    typer.echo(f"{accuracy.ratings} ratings of {accuracy.users} users, {accuracy.skipped} skipped")
    show_left_out(left_out)
    typer.echo("baseline of errors: each rating is predicted by the user's mean rating in train")
    if ranking is None:
        typer.echo("no ranking: no held-out rating is high enough; give a lower --relevant")
    else:
        good = f"a rating of at least {ranking.relevant:g}"
        typer.echo(f"lists of {ranking.k} for {ranking.lists} users, {ranking.people} with {good}")
        typer.echo(f"baseline of lists: {POPULARITY_NOTE}")
    if calibration is None:
        typer.echo("no stds: the local rule of this model knows no uncertainty")


_Row = tuple[str, *tuple[float | None, ...]]


def _rows(measured: _Measured) -> list[_Row]:
    """Name every figure, with what it is to be compared with in a column of its own."""
    accuracy, mean, ranking, popularity, calibration, _ = measured
    rows: list[_Row] = [("RMSE", accuracy.rmse, mean.rmse), ("MAE", accuracy.mae, mean.mae)]
    if ranking is not None and popularity is not None:
        rows += [
            (f"{shown}@{ranking.k}", getattr(ranking, name), getattr(popularity, name))
            for name, shown in (("ndcg", "NDCG"), ("recall", "recall"), ("coverage", "coverage"))
        ]
    if calibration is None:
        return rows
    return rows + [(name, found, None, right) for name, found, right in _std_rows(calibration)]


def _std_rows(calibration: "Calibration") -> list[tuple[str, float, float]]:
    """Name the figures of the stds: found, and what they should be."""
    return [
        ("within 1 std", calibration.within_one, calibration.expected_one),
        ("within 2 stds", calibration.within_two, calibration.expected_two),
        ("mean square of error/std", calibration.mean_square, calibration.expected_square),
        *(
            (f"RMSE where std is about {tenth.std:.3f}", tenth.rmse, tenth.expected)
            for tenth in calibration.deciles
        ),
    ]
