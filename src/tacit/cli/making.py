"""What fit, tune and refit share: their options, and the steps from ratings to a model file."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tacit.cli.options import AsJson, Force, OptionGroup, show_json
from tacit.cli.progress import Quiet, say
from tacit.cli.sources import Source, Where, learned
from tacit.cli.summary import summary
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from tacit.accounting.budget import PrivacyBudget
    from tacit.algorithms import Algorithm
    from tacit.book import Book
    from tacit.models import Model


class Paid(NamedTuple):
    """What a fit may spend, and the lifetime book that pays; None for no privacy, and no book."""

    budget: "PrivacyBudget | None"
    book: "Book | None"


@dataclass(frozen=True)
class Promise(OptionGroup):
    """What is promised, but for epsilon."""

    delta: Annotated[
        float | None,
        typer.Option(help="The probability that epsilon may be exceeded; 1e-6, or that of --book."),
    ] = None
    neighbours: Annotated[
        str | None,
        typer.Option(
            help="Neighbouring data sets: replace (default, or that of --book) or add_remove."
        ),
    ] = None
    accounting: Annotated[
        str, typer.Option(help="How noise follows from epsilon: exact, or paper for comparison.")
    ] = "exact"
    no_privacy: Annotated[
        bool, typer.Option("--no-privacy", help="No noise: the model is NOT PRIVATE.")
    ] = False
    noise_seed_unsafe: Annotated[
        int | None, typer.Option(help="Draw the noise from this seed, for tests: NOT PRIVATE.")
    ] = None
    book: Annotated[
        Path | None,
        typer.Option(help="The lifetime book of these users; the budget is reserved in it first."),
    ] = None

    def paid(self, epsilon: float | None) -> Paid:
        """Return the budget that the options ask for; None for no privacy."""
        from tacit.accounting.budget import PrivacyBudget
        from tacit.book import Book
        from tacit.fitting.booked import terms_of

        opened = None if self.book is None else Book(self.book)
        delta, neighbours = terms_of(opened, self.delta, self.neighbours)
        if self.no_privacy == (epsilon is not None):
            raise ConfigError("give either --epsilon E or --no-privacy")
        if epsilon is None:
            return Paid(None, opened)
        return Paid(PrivacyBudget(epsilon, delta, neighbours, self.accounting), opened)  # type: ignore[arg-type]  # checked there


@dataclass(frozen=True)
class Making(OptionGroup):
    """How a model is made and written, but for its name."""

    top_items: Annotated[
        int | None,
        typer.Option(help="Keep this many items: the most rated ones, by a noisy count."),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A folder for checkpoints, from which the same command resumes."),
    ] = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Refuse public settings that look computed from the ratings."
        ),
    ] = False
    force: Force = False
    as_json: AsJson = False
    quiet: Quiet = False

    def model(
        self,
        source: Source,
        where: Where,
        output: Path,
        paid: Paid,
        fit: "Callable[..., Model]",
        inputs: tuple[Path | None, ...],
        kind: str = "fit",
    ) -> "Model":
        """Check what would be written, reserve the budget, read the ratings, fit and write.

        Args:
            source: the ratings.
            where: where they are summed.
            output: the model file.
            paid: what is spent, and by which book.
            fit: what is called with the ratings and the options of every fit.
            inputs: files that are read besides the ratings and the book.
            kind: what the book calls it.
        """
        from tacit.fitting.booked import reserved

        inputs += paid.book.files if paid.book else ()
        read = source.reader(output, *inputs, checkpoint=self.checkpoint, force=self.force)
        common = {"checkpoint": self.checkpoint, "top_items": self.top_items, "strict": self.strict}
        with reserved(paid.book, paid.budget, self.checkpoint, (), kind=kind) as book:
            model = learned(where, read, partial(fit, book=book, **common))
        model.save(output, overwrite=self.force)
        return model

    def report(self, model: "Model", output: Path, *, explain: bool = False) -> None:
        """Say in six lines what was promised and made, or all of it as JSON."""
        if self.as_json:
            told = {"explanation": model.explain().splitlines()} if explain else {}
            show_json({"model": str(output), **model.certificate.to_json(), **told})
            return
        say(summary(model, output))
        if explain:
            say("\n" + model.explain())


def algorithm_of(
    name: str | None, settings: list[str], max_ratings: int | None, *, implicit: bool = False
) -> "Algorithm":
    """Return the algorithm with its settings; settings without a name change the automatic one."""
    from tacit.algorithms import algorithm_from
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
