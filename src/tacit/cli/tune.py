"""tacit tune: choose among candidates by a search that is paid for, and fit the best."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.fit import (
    algorithm_of,
    budget_from_options,
    check_features,
    checked_files,
    report,
    with_bar,
)
from tacit.cli.options import (
    AccountingName,
    AsJson,
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
    TopItems,
    UnknownItemsName,
    UserColumn,
)

if TYPE_CHECKING:
    from tacit.algorithms import Algorithm

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
    delta: Delta = 1e-6,
    neighbours: NeighboursName = "replace",
    accounting: AccountingName = "exact",
    no_privacy: NoPrivacy = False,
    share: Annotated[float, typer.Option(help="Of the budget, for the search.")] = 0.3,
    items: ItemsPath = None,
    feature: FeatureNames = None,
    unknown_items: UnknownItemsName = "error",
    top_items: TopItems = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that lets a killed search go on.")
    ] = None,
    threads: Threads = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    duplicates: Duplicates = "error",
    noise_seed_unsafe: NoiseSeed = None,
    strict: Strict = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Choose among candidates privately and fit the best. The search is paid for, too."""
    budget = budget_from_options(epsilon, delta, neighbours, accounting, no_privacy=no_privacy)
    configs = _candidates(candidate or [], candidates)
    check_features(feature, items)
    others = [items, candidates]
    paths = checked_files(ratings, output, others, checkpoint=checkpoint, force=force)
    from tacit.data.catalogue import Catalogue
    from tacit.data.ratings import Columns, Ratings
    from tacit.engines import ThreadEngine
    from tacit.fitting.tune import CHOSEN, tune

    engine = ThreadEngine(threads)
    rows = Ratings.from_file(
        paths,
        rating_range=rating_range,
        columns=Columns(user_column, item_column, rating_column),
        duplicates=duplicates,  # type: ignore[arg-type]  # checked there
        catalogue=Catalogue.from_file(items, features=feature or ()) if items else None,
        unknown_items=unknown_items,  # type: ignore[arg-type]  # checked there
    )
    options: dict[str, Any] = {"share": share, "engine": engine, "checkpoint": checkpoint}
    options |= {"noise_seed_unsafe": noise_seed_unsafe}
    options |= {"top_items": top_items, "strict": strict}
    model = with_bar(lambda bar: tune(rows, configs, budget=budget, progress=bar, **options))
    model.save(output, overwrite=force)
    report(model, output, as_json)
    if not as_json:
        typer.echo(f"chosen: {model.certificate.public[CHOSEN]}")


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
    return algorithm_of(name, settings, None)


def _from_file(path: Path) -> "list[Algorithm]":
    """Read a TOML file; values are as TOML has them, and "none" stands for None."""
    import tomllib

    from tacit.errors import ConfigError

    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["candidate"]
        named = [(table.pop("algorithm"), table) for table in tables]
    except OSError as error:
        raise ConfigError(f"--candidates {path}: {error.strerror or 'cannot be read'}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(
            f"--candidates {path}: expected a [[candidate]] table for each, with "
            'algorithm = "frank-wolfe" and its settings'
        ) from None
    return [algorithm_of(name, _settings(table), None) for name, table in named]


def _settings(table: dict[str, Any]) -> list[str]:
    """Return settings as they would be typed."""
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in table.items()}
    return [f"{key}={text}" for key, text in texts.items()]
