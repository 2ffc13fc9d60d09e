"""tacit data: the named datasets: which there are, what they are, and getting them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, WithExamples, plain_table, show_json, show_table

if TYPE_CHECKING:
    from tacit.datasets import Dataset

app = typer.Typer(rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A dataset; `tacit data list` has all.")]


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list", cls=WithExamples)
def show_all(as_json: AsJson = False) -> None:
    """List the named datasets. With their published sizes and how to get them."""
    from tacit.datasets import DATASETS
    from tacit.datasets.paths import data_folder

    rows = [_dataset_facts(dataset) for dataset in DATASETS.values()]
    if as_json:
        show_json({"folder": data_folder(), "datasets": rows})
        return
    table = plain_table("name", "> users", "> items", "> ratings", "how")
    for row in rows:
        counts = (f"{row[count]:,}" for count in ("users", "items", "ratings"))
        table.add_row(row["name"], *counts, _how(row))
    show_table(table)
    typer.echo(f"folder: {data_folder()}  (TACIT_DATA names another)")


@app.command("info", cls=WithExamples)
def show_one(name: Name, as_json: AsJson = False) -> None:
    """Show what is known of a dataset. Address, licence, counts, files, and where they go."""
    from tacit.datasets.registry import dataset_named

    facts = _dataset_facts(dataset_named(name))
    if as_json:
        show_json(facts)
        return
    width = max(map(len, facts))
    for key, value in facts.items():
        for place, line in enumerate(_lines(value)):
            typer.echo(f"{'' if place else key.replace('_', ' '):<{width}}  {line}")


@app.command("get", cls=WithExamples)
def get(name: Name, force: Force = False, as_json: AsJson = False) -> None:
    """Download a dataset that anyone may have. For the others, say how to get them."""
    from tacit.datasets.fetch import fetch
    from tacit.datasets.registry import dataset_named

    dataset = dataset_named(name)
    if dataset.downloads:
        typer.echo(f"{dataset.title}: {dataset.licence}", err=True)
    files = fetch(dataset, overwrite=force)
    if as_json:
        show_json({"name": dataset.name, "files": files})
        return
    for file in files:
        typer.echo(f"{file}")


def _dataset_facts(dataset: "Dataset") -> dict[str, Any]:
    """All that is known of a dataset, by stable keys."""
    from tacit.datasets.paths import folder_of, is_here

    folder = folder_of(dataset)
    facts: dict[str, Any] = {"name": dataset.name, "title": dataset.title}
    facts |= {"address": dataset.page or None, "licence": dataset.licence}
    facts |= dataset.counts._asdict()
    facts |= {
        "scale": list(dataset.scale),
        "rating_range": list(dataset.range),
        "paper_max_ratings": dataset.max_ratings,
        "files": [member.name for member in dataset.members],
        "downloads": [download.address for download in dataset.downloads],
        "sha256": [download.sha256 for download in dataset.downloads],
        "how_to_get": _advice(dataset),
        "folder": str(folder) if dataset.members else None,
        "here": is_here(dataset, folder),
    }
    return facts


def _lines(value: object) -> list[str]:
    """A fact as lines for a person: a file a line, a range in one, thousands apart."""
    if isinstance(value, list) and value and isinstance(value[0], float):
        return [" to ".join(f"{bound:g}" for bound in value)]
    if isinstance(value, list):
        return [str(entry) for entry in value] or ["none"]
    if isinstance(value, bool) or value is None:
        return ["yes" if value else "no" if value is False else "none"]
    return [f"{value:,}" if isinstance(value, int) else str(value)]


def _advice(dataset: "Dataset") -> str:
    """How to get a dataset, in a line."""
    if dataset.downloads:
        return f"tacit data get {dataset.name}"
    return dataset.how_to_get or "drawn when it is loaded"


def _how(row: dict[str, Any]) -> str:
    """How to get a dataset, in a word or two."""
    if not row["files"]:
        return "synthetic"
    if row["here"]:
        return "here"
    return "tacit data get" if row["downloads"] else "by hand: tacit data info"
