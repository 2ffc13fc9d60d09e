"""tacit info: what a model file holds."""

import typer

from tacit.cli.options import AsJson, ModelPath, show_json


def run(model: ModelPath, as_json: AsJson = False) -> None:
    """Show what a model file holds. Its algorithm, rule, catalogue, rating range and promise."""
    from tacit.models import load

    found = load(model)
    certificate = found.certificate.to_json()
    facts = {
        "private": found.private,
        "epsilon": certificate["epsilon"],
        "delta": certificate["delta"],
        "neighbours": certificate["neighbours"],
        "algorithm": certificate["algorithm"],
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
    if found.implicit:
        facts["rating_range"] = None  # of the ones that stand for interactions
    for name, value in facts.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {_text(name, value)}")


def _text(name: str, value: object) -> str:
    """Write a fact for a person; a promise to its last digit."""
    from tacit.accounting.promise import shown

    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return (" to " if name == "rating_range" else ", ").join(
            shown(each) if isinstance(each, float) else str(each) for each in value
        ) or "none"
    return shown(value) if isinstance(value, float) else str(value)
