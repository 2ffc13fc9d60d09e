"""tacit demo: all steps on synthetic ratings, from a file to one person's recommendations."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit._atomic import reason_of
from tacit.cli.options import Force
from tacit.cli.progress import Quiet, say, status, with_bar
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.data.catalogue import Catalogue
    from tacit.data.ratings import Ratings
    from tacit.evaluation import Accuracy
    from tacit.models import Model
    from tacit.reporting.html import Measure


def run(
    folder: Annotated[Path, typer.Option(help="Where the files of the demo go.")] = Path("demo"),
    users: Annotated[int, typer.Option(help="How many synthetic users.")] = 100_000,
    epsilon: Annotated[float, typer.Option(help="The privacy budget.")] = 1.0,
    force: Force = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Try everything on synthetic ratings. Certificate, accuracy, recommendations and a report."""
    from tacit.accounting.budget import PrivacyBudget
    from tacit.accounting.promise import rounded_up
    from tacit.fitting.fit import fit
    from tacit.models import load
    from tacit.reporting.html import write_report
    from tacit.reporting.model_sections import model_sections

    budget = PrivacyBudget(epsilon)  # refused before anything is written
    _say(f"1. {users} synthetic users rate films that do not exist")
    with status("drawing and reading the ratings"):
        files = _make_files(folder, users, force)
        train, test = _read(files, "train"), _read(files, "test")

    _say(f"2. learn from them with epsilon = {epsilon:g}, and write what may be published")
    made = with_bar(lambda bar: fit(train, budget=budget, progress=bar))
    made.save(files["model"], overwrite=True)
    model = load(files["model"])
    say(model.certificate.text())
    checked = model.verify()
    say(f"\n  Checked: the releases give epsilon {rounded_up(checked.epsilon_recomputed or 0.0)}.")

    _say("3. accuracy on held-out ratings (NOT PRIVATE: for the owner of the data)")
    accuracies, measures = _measured(model, train, test, epsilon)
    _show_accuracies(accuracies)

    _say("4. someone who was not in the data rates six films, on her own machine")
    person = _person(model.catalogue)
    recommendations = model.recommend(person, n=8)
    _show_person(model, person, recommendations)
    write_report(
        files["report"],
        model=model,
        accuracies=accuracies,
        person=person,
        recommendations=recommendations,
        measures=measures,
        more=model_sections(model),
        overwrite=True,
    )
    _say(f"wrote {files['model']} and {files['report']}")
    _say_how_to_open_the_page(files["model"], folder / "site")


def _say_how_to_open_the_page(model: Path, site: Path) -> None:
    """Say how to see one's own list: by the server, or by any static host where it is missing."""
    called = Path(sys.argv[0])
    tacit = str(called) if called.name == "tacit" else "tacit"
    typer.echo(
        "Now rate films yourself: a page works out your list on this machine, and sends nothing."
    )
    if find_spec("fastapi") and find_spec("uvicorn"):
        typer.echo(f"\n  {tacit} serve {model}")
        typer.echo("\nand open http://127.0.0.1:8765/ in a browser.")
        return
    typer.echo(f"\n  {tacit} export-web {model} -o {site}")
    typer.echo(f"  python3 -m http.server --bind 127.0.0.1 --directory {site} 8765")
    typer.echo("\nand open http://127.0.0.1:8765/ in a browser. With an API besides:")
    pip = f"{called.with_name('python')} -m pip" if called.name == "tacit" else "pip"
    typer.echo(f"\n  {pip} install 'tacit[serve]' && {tacit} serve {model}")


def learn_quickly(folder: Path) -> Path:
    """Return the model that an earlier demo left in a folder, or learn one there."""
    from tacit.fitting.fit import fit

    there = folder / "model.tacit"
    if (folder / ".tacit-demo").is_file() and there.is_file():
        return there
    typer.echo("learning from 100000 synthetic users with epsilon = 1 ...", err=True)
    files = _make_files(folder, 100_000, False)
    fit(_read(files, "train"), epsilon=1.0).save(files["model"], overwrite=True)
    return files["model"]


def _read(files: dict[str, Path], part: str) -> "Ratings":
    """Read the ratings that were drawn, with the public catalogue."""
    from tacit.data.catalogue import Catalogue
    from tacit.data.ratings import Ratings

    catalogue = Catalogue.from_file(files["items"])
    return Ratings.from_file(files[part], rating_range="synthetic-tastes", catalogue=catalogue)


def _make_files(folder: Path, users: int, force: bool) -> dict[str, Path]:
    """Draw the ratings; files that are there are replaced if an earlier demo wrote them."""
    from tacit.cli.synth import write_frame
    from tacit.datasets.synthetic import synthesise

    names = ("train.parquet", "test.parquet", "items.csv", "model.tacit", "report.html")
    files = {name.partition(".")[0]: folder / name for name in names}
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--folder {folder}: it is a file; give the name of a folder")
    made = synthesise("tastes", users=users, items=400, per_user=60, seed=7, test_fraction=0.02)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder, files.values(), force)
    except OSError as error:
        raise ConfigError(f"--folder {folder}: {reason_of(error)}") from None
    for part, frame in (("train", made.train), ("test", made.test), ("items", made.items)):
        write_frame(frame, files[part])
    return files


def _claim(folder: Path, files: "Iterable[Path]", force: bool) -> None:
    """Refuse a folder with such files that no demo wrote; mark it as one of a demo's own."""
    from tacit._atomic import write_durably
    from tacit._outputs import Kind, Output, check_outputs

    mark = folder / ".tacit-demo"
    outputs = [Output("--folder", file, Kind.RATINGS) for file in files]
    check_outputs(outputs, force=force or mark.is_file())
    write_durably(mark, b"The files of `tacit demo` in this folder are replaced by the next one.\n")


def _measured(
    model: "Model", train: "Ratings", test: "Ratings", epsilon: float
) -> "tuple[list[tuple[str, Accuracy, bool]], list[Measure]]":
    """Measure the model beside what needs no model, and beside the same without noise."""
    from tacit.evaluation import evaluate, item_mean_accuracy, user_mean_accuracy
    from tacit.fitting.fit import fit

    bare = with_bar(lambda bar: fit(train, budget=None, progress=bar))
    with status("measuring"):
        accuracies = [
            ("user mean (free)", user_mean_accuracy(train, test), True),
            (f"tacit, epsilon {epsilon:g}", evaluate(model, train, test), True),
            ("the same without noise", evaluate(bare, train, test), False),
            ("item means without noise", item_mean_accuracy(train, test), False),
        ]
        return accuracies, _measures(model, train, test)


def _measures(model: "Model", train: "Ratings", test: "Ratings") -> "list[Measure]":
    """Measure lists, and stds where the local rule knows them, for the report."""
    from tacit.evaluation import ExactPopularity, calibrate, rank

    calibrations = [calibrate(model, train, test)] if model.knows_std else []
    lists = rank(model, train, test), rank(ExactPopularity(train), train, test)
    return [lists, *calibrations]


def _person(catalogue: "Catalogue") -> dict[Any, float]:
    """Invent someone who loves space films and does not care for love stories."""
    from tacit.datasets.titles import GENRES

    def titled(genre: str) -> list[Any]:
        words = next(each for each in GENRES if each.name == genre).adjectives
        named = (any(word in catalogue.title(at) for word in words) for at in range(len(catalogue)))
        return [catalogue.ids[at] for at, fits in enumerate(named) if fits]

    loved, disliked = titled("space")[:4], titled("romance")[:2]
    return dict.fromkeys(loved, 5.0) | dict.fromkeys(disliked, 1.0)


def _show_accuracies(accuracies: "list[tuple[str, Accuracy, bool]]") -> None:
    for label, accuracy, private in accuracies:
        mark = "" if private else "  NOT PRIVATE"
        say(f"  {label:<28} RMSE {accuracy.rmse:.4f}   MAE {accuracy.mae:.4f}{mark}")


def _show_person(model: "Model", person: dict[Any, float], recommendations: list[Any]) -> None:
    positions = model.catalogue.positions(list(person))
    for at, stars in zip(positions, person.values(), strict=True):
        say(f"  rated     {stars:.1f}  {model.catalogue.title(int(at))}")
    for row in recommendations:
        say(f"  predicted {row.score:.1f}  {row.title}")


def _say(text: str) -> None:
    say(f"\n== {text}\n")
