"""What `tacit evaluate --new-users` shows: lists for users who were not in the fit. NOT PRIVATE."""

from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from tacit.cli.lists import POPULARITY
from tacit.cli.options import plain_table, show_json, show_table
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from tacit.data.ratings import Ratings
    from tacit.evaluation import Estimate, NewUserRanking
    from tacit.models import Model

_ROWS = (
    ("recall_20", "recall@20"),
    ("ndcg_10", "NDCG@10"),
    ("ndcg_100", "NDCG@100"),
    ("coverage_20", "coverage@20"),
    ("popularity_20", "popularity@20"),
    ("popularity_held_out", "popularity, held out"),
)


class Asked(NamedTuple):
    """How lists are measured: from which rating on an item is relevant, the seed, the order."""

    relevant: float | None
    seed: int
    by: str | None


def check_alone(others: dict[str, Any]) -> None:
    """Refuse options that do not go with --new-users."""
    given = [name for name, value in others.items() if value]
    if given:
        raise ConfigError(
            f"--new-users with {' and '.join(given)}: new users' own ratings and held-out ratings "
            "are both taken from --new-users, and lists have fixed lengths; leave out "
            f"{' and '.join(given)}"
        )


def show_new_users(
    model: "Model", read: "tuple[Ratings, int]", asked: Asked, as_json: bool
) -> None:
    """Measure lists for new users beside exact popularity, and show both."""
    from tacit.evaluation import ExactPopularity, fold_in, rank_new_users

    (ratings, left_out), (relevant, seed, by) = read, asked
    found = rank_new_users(model, ratings, relevant=relevant, seed=seed, by=by)
    popularity = ExactPopularity(fold_in(ratings, seed).own)
    popular = rank_new_users(popularity, ratings, relevant=relevant, seed=seed)
    if as_json:
        parts: dict[str, Any] = {"new_users": found.to_json(), "popularity": popular.to_json()}
        parts |= {"left_out": left_out, "seed": seed, "by": by}
        show_json({**parts, "label": "NOT PRIVATE"})
        return
    typer.echo("NOT PRIVATE: computed from new users' ratings, for the owner of the data")
    _show_table(found, popular)
    _show_counts(found, left_out)


def _show_table(found: "NewUserRanking", popular: "NewUserRanking") -> None:
    """Print all figures, each with its interval."""
    table = plain_table("measure", "found (95 % interval)", POPULARITY)
    for name, shown in _ROWS:
        table.add_row(shown, *(_text(getattr(each, name)) for each in (found, popular)))
    show_table(table)


def _text(value: "Estimate | float") -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value.mean:.4f} ({value.low:.4f} to {value.high:.4f})"


def _show_counts(found: "NewUserRanking", left_out: int) -> None:
    """Say whom the figures are of, and what the columns mean."""
    typer.echo(
        f"{found.users} users with a held-out rating of at least {found.relevant:g}; not counted: "
        f"{found.not_counted} without one, {found.skipped} with fewer than 3 ratings"
    )
    if left_out:
        typer.echo(f"{left_out} ratings left out: the model does not have their items")
    typer.echo("intervals: 1000 bootstrap resamples of the users")
    typer.echo(f"{POPULARITY} (NOT PRIVATE): everyone is shown what most new users have")
    typer.echo("valid only if these users were not in the fit, which a model file does not tell")
