"""tacit fit: learn privately from a file of ratings and write the model."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import (
    AccountingName,
    AsJson,
    BookOption,
    Delta,
    Duplicates,
    FeatureNames,
    Force,
    Implicit,
    ItemColumn,
    ItemsPath,
    NeighboursName,
    NoiseSeed,
    NoPrivacy,
    RatingColumn,
    Settings,
    Strict,
    Threads,
    TitleColumn,
    TopItems,
    UnknownItemsName,
    UserColumn,
    show_json,
)
from tacit.cli.progress import Quiet, say
from tacit.cli.sources import Address, EngineName, Given, Listed, Source, Where, Workers, learned
from tacit.cli.summary import summary

if TYPE_CHECKING:
    from tacit.accounting.budget import PrivacyBudget
    from tacit.algorithms import Algorithm
    from tacit.models import Model

__all__ = [
    "algorithm_of",
    "budget_from_options",
    "report",
    "run",
]


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(
            metavar="RATINGS",
            help="CSV, TSV, :: (also .gz, .zip), Parquet, Arrow; a glob, or one store.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the model goes.")],
    rating_range: Annotated[
        tuple[float, float] | None, typer.Option(help="LO HI: the public range of ratings.")
    ] = None,
    implicit: Implicit = False,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy loss that may not be exceeded.")
    ] = None,
    delta: Delta = None,
    neighbours: NeighboursName = None,
    accounting: AccountingName = "exact",
    no_privacy: NoPrivacy = False,
    book: BookOption = None,
    items: ItemsPath = None,
    title_column: TitleColumn = None,
    feature: FeatureNames = None,
    unknown_items: UnknownItemsName = "error",
    top_items: TopItems = None,
    max_ratings: Annotated[
        int | None, typer.Option(help="At most this many ratings a user count.")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            is_eager=True,
            help="latent-factors (default), moments, frank-wolfe, oja, svd, pgd, cleansing, sgld, "
            "als; with --implicit: interactions.",
        ),
    ] = None,
    settings: Settings = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that lets a killed fit go on.")
    ] = None,
    threads: Threads = None,
    engine: EngineName = None,
    address: Address = None,
    workers: Workers = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    duplicates: Duplicates = "error",
    noise_seed_unsafe: NoiseSeed = None,
    strict: Strict = False,
    force: Force = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what was chosen, and why.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Learn privately from ratings. Writes a model file, which may be published."""
    from tacit.fitting.booked import book_of, reserved, terms_of

    opened = book_of(book)
    terms = terms_of(opened, delta, neighbours)
    budget = budget_from_options(epsilon, *terms, accounting, no_privacy=no_privacy)
    where = Where(engine, threads, address, workers)
    where.check()
    columns = user_column, item_column, rating_column
    listed = Listed(items, title_column, feature)
    given = Given(rating_range, columns, duplicates, listed, unknown_items, implicit)
    options: dict[str, Any] = {"checkpoint": checkpoint, "noise_seed_unsafe": noise_seed_unsafe}
    options |= {"top_items": top_items, "strict": strict, "budget": budget}
    source = Source.of(ratings, given)
    config = algorithm_of(algorithm, settings or [], max_ratings, implicit=source.implicit)
    read = source.reader(output, items, book, checkpoint=checkpoint, force=force)
    from tacit.fitting.fit import fit

    with reserved(opened, budget, checkpoint, ()) as options["book"]:
        model = learned(where, read, partial(fit, algorithm=config, **options))
    model.save(output, overwrite=force)
    report(model, output, as_json, explain=explain)


def budget_from_options(
    epsilon: float | None, delta: float, neighbours: str, accounting: str, *, no_privacy: bool
) -> "PrivacyBudget | None":
    """Return the budget that the options ask for; None for no privacy."""
    from tacit.accounting.budget import PrivacyBudget
    from tacit.errors import ConfigError

    if no_privacy == (epsilon is not None):
        raise ConfigError("give either --epsilon E or --no-privacy")
    if epsilon is None:
        return None
    return PrivacyBudget(epsilon, delta, neighbours, accounting)  # type: ignore[arg-type]


def algorithm_of(
    name: str | None, settings: list[str], max_ratings: int | None, *, implicit: bool = False
) -> "Algorithm":
    """Return the algorithm with its settings; settings without a name change the automatic one."""
    from tacit.algorithms import algorithm_from
    from tacit.errors import ConfigError
    from tacit.fitting.fit import automatic, check_kind

    config: Any = algorithm_from(name) or automatic(implicit)
    check_kind(config, implicit)
    pairs = [_setting(text) for text in settings]
    changes = dict(pairs)
    if len(changes) < len(pairs):
        raise ConfigError(f"--set: given twice for one of {', '.join(changes)}; give each once")
    if max_ratings is not None:
        changes["max_ratings"] = max_ratings
    result: Algorithm = replace(config, **changes)
    return result


def _setting(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE; values are numbers, true, false, none, or lists of numbers."""
    from tacit.errors import ConfigError

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {text}: expected KEY=VALUE, such as rank=10")
    words = {"none": None, "true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return key, value
    return key, tuple(parsed) if isinstance(parsed, list) else parsed


def report(model: "Model", output: Path, as_json: bool, *, explain: bool = False) -> None:
    """Say in six lines what was promised and made, or all of it as JSON."""
    if as_json:
        told = {"explanation": model.explain().splitlines()} if explain else {}
        show_json({"model": str(output), **model.certificate.to_json(), **told})
        return
    say(summary(model, output))
    if explain:
        say("\n" + model.explain())
