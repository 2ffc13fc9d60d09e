"""tacit fit: learn privately from a file of ratings and write the model."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, ItemColumn, RatingColumn, UserColumn, show_json

if TYPE_CHECKING:
    from tacit.algorithms import Algorithm
    from tacit.budget import PrivacyBudget
    from tacit.models import Model
    from tacit.ratings import Ratings

__all__ = ["run"]


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(metavar="RATINGS...", help="CSV, TSV, :: or Parquet files, or a glob."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the model goes.")],
    rating_range: Annotated[
        tuple[float, float], typer.Option(help="LO HI: the public range of ratings.")
    ],
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy loss that may not be exceeded.")
    ] = None,
    delta: Annotated[float, typer.Option(help="... except with this probability.")] = 1e-6,
    neighbours: Annotated[str, typer.Option(help="replace or add_remove.")] = "replace",
    accounting: Annotated[str, typer.Option(help="exact, or paper for comparison.")] = "exact",
    no_privacy: Annotated[
        bool, typer.Option("--no-privacy", help="No noise: the model is NOT PRIVATE.")
    ] = False,
    items: Annotated[
        Path | None, typer.Option(help="Public catalogue: a file with columns item, title.")
    ] = None,
    max_ratings: Annotated[
        int | None, typer.Option(help="At most this many ratings a user count.")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(help="frank-wolfe, oja, svd, pgd, cleansing or sgld; by rule if left out."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the algorithm; may be repeated."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that lets a killed fit go on.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores if left out.")] = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    duplicates: Annotated[
        str, typer.Option(help="error, last or mean, for pairs given twice.")
    ] = "error",
    noise_seed_unsafe: Annotated[
        int | None, typer.Option(help="Repeatable noise: NOT PRIVATE.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn privately from ratings. Writes a model file, which may be published."""
    budget = _budget(epsilon, delta, neighbours, accounting, no_privacy=no_privacy)
    config = _algorithm(algorithm, settings or [], max_ratings)
    if not output.parent.is_dir():
        from tacit.errors import ConfigError

        raise ConfigError(f"--output {output}: its folder does not exist")
    from tacit.catalogue import Catalogue
    from tacit.engines import ThreadEngine
    from tacit.ratings import Columns, Ratings

    engine = ThreadEngine(threads)
    rows = Ratings.from_file(
        ratings,
        rating_range=rating_range,
        columns=Columns(user_column, item_column, rating_column),
        duplicates=duplicates,  # type: ignore[arg-type]  # checked there
        catalogue=Catalogue.from_file(items) if items else None,
    )
    options = {"engine": engine, "checkpoint": checkpoint, "noise_seed_unsafe": noise_seed_unsafe}
    model = _fit(rows, config, budget, options)
    model.save(output)
    _report(model, output, as_json)


def _budget(
    epsilon: float | None, delta: float, neighbours: str, accounting: str, *, no_privacy: bool
) -> "PrivacyBudget | None":
    from tacit.budget import PrivacyBudget
    from tacit.errors import ConfigError

    if no_privacy == (epsilon is not None):
        raise ConfigError("give either --epsilon E or --no-privacy")
    if epsilon is None:
        return None
    return PrivacyBudget(epsilon, delta, neighbours, accounting)  # type: ignore[arg-type]


def _algorithm(name: str | None, settings: list[str], max_ratings: int | None) -> "Algorithm":
    """Return the algorithm with its settings; settings without a name change the automatic one."""
    from tacit.algorithms import ALGORITHMS
    from tacit.errors import ConfigError
    from tacit.fitting import automatic

    if name is not None and name not in ALGORITHMS:
        raise ConfigError(f"--algorithm {name}: expected one of {', '.join(ALGORITHMS)}")
    config: Any = ALGORITHMS[name]() if name else automatic()
    changes = dict(_setting(text) for text in settings)
    if max_ratings is not None:
        changes["max_ratings"] = max_ratings
    unknown = sorted(set(changes) - {field.name for field in fields(config)})
    if unknown:
        known = ", ".join(field.name for field in fields(config))
        raise ConfigError(f"--set {unknown[0]}: {config.name} has no such setting; it has {known}")
    result: Algorithm = replace(config, **changes)
    return result


def _setting(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE; values are numbers, true, false, none, or lists of numbers."""
    from tacit.errors import ConfigError

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {text}: expected KEY=VALUE")
    words = {"none": None, "true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    try:
        parsed = json.loads(value)
    except ValueError:
        return key, value
    return key, tuple(parsed) if isinstance(parsed, list) else parsed


def _fit(
    rows: "Ratings", config: "Algorithm", budget: "PrivacyBudget | None", options: dict[str, Any]
) -> "Model":
    """Fit with a bar that counts releases, which are planned in advance and reveal nothing."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tacit.fitting import fit

    columns = TextColumn("releases"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def progress(done: int, planned: int) -> None:
            bar.update(task, completed=done, total=planned)

        return fit(rows, config, budget=budget, progress=progress, **options)


def _report(model: "Model", output: Path, as_json: bool) -> None:
    if as_json:
        show_json({"model": str(output), **model.certificate.to_json()})
        return
    typer.echo(model.certificate.text())
    typer.echo(f"\nwrote {output}")
