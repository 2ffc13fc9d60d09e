"""tacit tune: choose among candidates by a search that is paid for, and fit the best."""

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.fit import algorithm_of, budget_from_options, report
from tacit.cli.options import (
    AccountingName,
    AsJson,
    BookOption,
    Delta,
    Duplicates,
    FeatureNames,
    Force,
    ItemColumn,
    ItemsPath,
    NeighboursName,
    NoiseSeed,
    NoPrivacy,
    RatingColumn,
    Strict,
    Threads,
    TitleColumn,
    TopItems,
    UnknownItemsName,
    UserColumn,
)
from tacit.cli.progress import Quiet, say
from tacit.cli.sources import Address, EngineName, Given, Listed, Source, Where, Workers, learned

if TYPE_CHECKING:
    from tacit.algorithms import Algorithm

__all__ = ["run"]


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
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME KEY=VALUE...'", help="An algorithm and its settings; repeat it."
        ),
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="A TOML file with a [[candidate]] for each.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy loss of search and fit together.")
    ] = None,
    delta: Delta = None,
    neighbours: NeighboursName = None,
    accounting: AccountingName = "exact",
    no_privacy: NoPrivacy = False,
    book: BookOption = None,
    share: Annotated[float, typer.Option(help="Of the budget, for the search.")] = 0.3,
    items: ItemsPath = None,
    title_column: TitleColumn = None,
    feature: FeatureNames = None,
    unknown_items: UnknownItemsName = "error",
    top_items: TopItems = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that lets a killed search go on.")
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
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Choose among candidates privately and fit the best. The search is paid for, too."""
    from tacit.fitting.booked import book_of, reserved, terms_of

    opened = book_of(book)
    terms = terms_of(opened, delta, neighbours)
    budget = budget_from_options(epsilon, *terms, accounting, no_privacy=no_privacy)
    configs = _candidates(candidate or [], candidates)
    where = Where(engine, threads, address, workers)
    where.check()
    columns = user_column, item_column, rating_column
    listed = Listed(items, title_column, feature)
    given = Given(rating_range, columns, duplicates, listed, unknown_items)
    source = Source.of(ratings, given)
    read = source.reader(output, items, candidates, book, checkpoint=checkpoint, force=force)
    options: dict[str, Any] = {"share": share, "checkpoint": checkpoint, "budget": budget}
    options |= {"noise_seed_unsafe": noise_seed_unsafe}
    options |= {"top_items": top_items, "strict": strict}
    from tacit.fitting.tune import CHOSEN, tune

    with reserved(opened, budget, checkpoint, (), kind="tune") as options["book"]:
        model = learned(where, read, partial(tune, candidates=configs, **options))
    model.save(output, overwrite=force)
    report(model, output, as_json)
    if not as_json:
        say(f"chosen: {model.certificate.public[CHOSEN]}")


def _candidates(texts: list[str], path: Path | None) -> "list[Algorithm]":
    """Read the candidates of the command line, or of a file."""
    from tacit.errors import ConfigError

    if bool(texts) == (path is not None):
        raise ConfigError(
            "give either --candidate 'NAME KEY=VALUE...', twice or more, or --candidates FILE.toml"
        )
    return [_from_text(text) for text in texts] if path is None else _from_file(path)


def _from_text(text: str) -> "Algorithm":
    from tacit.errors import ConfigError

    name, *settings = shlex.split(text) or [""]
    if not name or "=" in name:
        raise ConfigError(f"--candidate {text!r}: expected an algorithm's name, then KEY=VALUE")
    return _candidate(f"--candidate {text!r}", name, settings)


def _candidate(where: str, name: str, settings: list[str]) -> "Algorithm":
    """Return the algorithm of a candidate; an error says of which."""
    from tacit.errors import ConfigError

    try:
        return algorithm_of(name, settings, None)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _from_file(path: Path) -> "list[Algorithm]":
    """Read a TOML file; values are as TOML has them, and "none" stands for None."""
    import tomllib

    from tacit._damaged import MALFORMED
    from tacit.errors import ConfigError

    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["candidate"]
        named = [(table.pop("algorithm"), table) for table in tables]
    except OSError as error:
        raise ConfigError(f"--candidates {path}: {error.strerror or 'cannot be read'}") from None
    except MALFORMED:
        raise ConfigError(
            f"--candidates {path}: expected a [[candidate]] table for each, with "
            'algorithm = "frank-wolfe" and its settings'
        ) from None
    where = f"--candidates {path}"
    return [_candidate(where, name, _settings(table)) for name, table in named]


def _settings(table: dict[str, Any]) -> list[str]:
    """Return settings as they would be typed."""
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in table.items()}
    return [f"{key}={text}" for key, text in texts.items()]
