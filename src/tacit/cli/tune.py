"""tacit tune: choose among candidates by a search that is paid for, and fit the best."""

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit._atomic import reason_of
from tacit.cli.making import Making, Promise, algorithm_of
from tacit.cli.options import ModelOutput, RatingsPaths
from tacit.cli.progress import say
from tacit.cli.sources import Given, Source, Where
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from tacit.algorithms import Algorithm


def run(
    ratings: RatingsPaths,
    *,
    output: ModelOutput,
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME KEY=VALUE...'", help="An algorithm and its settings; give two or more."
        ),
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="A TOML file with one [[candidate]] table for each.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy budget epsilon of search and fit together.")
    ] = None,
    share: Annotated[
        float, typer.Option(help="The share of the budget that the search gets.")
    ] = 0.3,
    promise: Promise,
    given: Given,
    making: Making,
    where: Where,
) -> None:
    """Choose among candidates privately and fit the best. The search is paid for, too."""
    paid = promise.paid(epsilon)
    configs = _candidates(candidate or [], candidates)
    where.check()
    source = Source.of(ratings, given)
    from tacit.fitting.tune import CHOSEN, tune

    seed, inputs = promise.noise_seed_unsafe, (given.items, candidates)
    work = partial(
        tune, candidates=configs, share=share, budget=paid.budget, noise_seed_unsafe=seed
    )
    model = making.model(source, where, output, paid, work, inputs, "tune")
    making.report(model, output)
    if not making.as_json:
        say(f"chosen: {model.certificate.public[CHOSEN]}")


def _candidates(texts: list[str], path: Path | None) -> "list[Algorithm]":
    """Read the candidates of the command line, or of a file."""
    if bool(texts) == (path is not None):
        raise ConfigError(
            "give either --candidate 'NAME KEY=VALUE...', twice or more, or --candidates FILE.toml"
        )
    return [_from_text(text) for text in texts] if path is None else _from_file(path)


def _from_text(text: str) -> "Algorithm":
    name, *settings = shlex.split(text) or [""]
    if not name or "=" in name:
        raise ConfigError(f"--candidate {text!r}: expected an algorithm's name, then KEY=VALUE")
    return _candidate(f"--candidate {text!r}", name, settings)


def _candidate(where: str, name: str, settings: list[str]) -> "Algorithm":
    """Return the algorithm of a candidate; an error says of which."""
    try:
        return algorithm_of(name, settings, None)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _from_file(path: Path) -> "list[Algorithm]":
    """Read a TOML file; values are as TOML has them, and "none" stands for None."""
    import tomllib

    from tacit._damaged import MALFORMED

    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["candidate"]
        named = [(table.pop("algorithm"), table) for table in tables]
    except OSError as error:
        raise ConfigError(f"--candidates {path}: cannot be read: {reason_of(error)}") from None
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
