"""tacit info: what a model file holds."""

import typer

from tacit.cli.options import AsJson, ModelPath, show_json

__all__ = ["run"]


def run(model: ModelPath, as_json: AsJson = False) -> None:
    """Show what a model file holds. Its rule, catalogue, rating range and promise."""
    from tacit.models import load

    found = load(model)
    certificate = found.certificate.to_json()
    facts = {
        "private": found.private,
        "epsilon": certificate["epsilon"],
        "delta": certificate["delta"],
        "neighbours": certificate["neighbours"],
        "rule": found.rule.kind,
        "items": len(found.catalogue),
        "titles": found.catalogue.titles is not None,
        "features": found.catalogue.features.names if found.catalogue.features else [],
        "catalogue_public": found.catalogue.public,
        "rating_range": list(found.rating_range),
        "releases": len(certificate["releases"]),
        "bytes": model.stat().st_size,
        "digest": found.digest,
    }
    if as_json:
        show_json(facts)
        return
    if not found.private:
        typer.echo("NOT PRIVATE")
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {value}")
