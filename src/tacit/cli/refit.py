"""tacit refit: fit the ratings of today, and remember what earlier refits released."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.making import Making, Paid, algorithm_of
from tacit.cli.options import ModelOutput, RatingsPaths, Settings
from tacit.cli.sources import Given, Source, Where


def run(
    ratings: RatingsPaths,
    *,
    book: Annotated[
        Path, typer.Option(help="The lifetime book; it keeps the budget and earlier releases.")
    ],
    epsilon: Annotated[float, typer.Option(help="The privacy budget epsilon of this refit.")],
    output: ModelOutput,
    given: Given,
    algorithm: Annotated[
        str | None, typer.Option(help="latent-factors (default) or moments.")
    ] = None,
    settings: Settings = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Start again: use no earlier release.")
    ] = False,
    making: Making,
    where: Where,
) -> None:
    """Fit again, together with the earlier refits of a book. Writes a model file.

    What is released now is combined with what earlier refits released.
    """
    from tacit.accounting.budget import PrivacyBudget
    from tacit.book import Book

    opened = Book(book)
    paid = Paid(PrivacyBudget(epsilon, opened.delta, opened.neighbours), opened)
    where.check()
    config = algorithm_of(algorithm, settings or [], None) if algorithm or settings else None
    source = Source.of(ratings, given)
    from tacit.fitting.refit import refit

    work = partial(refit, algorithm=config, epsilon=epsilon, forget=forget)
    model = making.model(source, where, output, paid, work, (given.items,), "refit")
    making.report(model, output)
