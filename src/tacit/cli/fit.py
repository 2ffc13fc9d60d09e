"""tacit fit: learn privately from a file of ratings and write the model."""

from functools import partial
from typing import Annotated

import typer

from tacit.cli.making import Making, Promise, algorithm_of
from tacit.cli.options import ModelOutput, RatingsPaths, Settings
from tacit.cli.sources import GivenOrImplicit, Source, Where


def run(
    ratings: RatingsPaths,
    *,
    output: ModelOutput,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy budget epsilon; smaller is more private.")
    ] = None,
    promise: Promise,
    given: GivenOrImplicit,
    algorithm: Annotated[
        str | None,
        typer.Option(
            is_eager=True,
            help="latent-factors (default), moments, frank-wolfe, oja, svd, pgd, cleansing, sgld, "
            "als; with --implicit: interactions.",
        ),
    ] = None,
    settings: Settings = None,
    max_ratings: Annotated[
        int | None, typer.Option(help="At most this many ratings of each user are used.")
    ] = None,
    making: Making,
    where: Where,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Explain what was chosen and why, and what the budget paid for."
        ),
    ] = False,
) -> None:
    """Learn privately from ratings. Writes a model file, which may be published."""
    paid = promise.paid(epsilon)
    where.check()
    source = Source.of(ratings, given)
    config = algorithm_of(algorithm, settings or [], max_ratings, implicit=source.implicit)
    from tacit.fitting.fit import fit

    seed = promise.noise_seed_unsafe
    work = partial(fit, algorithm=config, budget=paid.budget, noise_seed_unsafe=seed)
    model = making.model(source, where, output, paid, work, (given.items,))
    making.report(model, output, explain=explain)
