"""tacit verify: recompute epsilon from a model's certificate and compare."""

import typer

from tacit.cli.options import AsJson, ModelPath, show_json

__all__ = ["run"]


def run(model: ModelPath, as_json: AsJson = False) -> None:
    """Check what a model promises. Recomputes epsilon from its list; exit code 1 if it fails."""
    from tacit.models import load

    found = load(model).verify()
    if as_json:
        show_json(
            {
                "holds": found.holds,
                "epsilon": found.epsilon_claimed,
                "epsilon_recomputed": found.epsilon_recomputed,
                "problems": list(found.problems),
            }
        )
    elif found.holds:
        typer.echo(
            f"holds: the releases give epsilon {found.epsilon_recomputed:.6g}, "
            f"and {found.epsilon_claimed:g} is claimed"
        )
    else:
        typer.echo("DOES NOT HOLD: " + "; ".join(found.problems))
    if not found.holds:
        raise typer.Exit(1)
