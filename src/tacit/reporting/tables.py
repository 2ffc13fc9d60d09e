"""Tables of an experiment: CSV for machines, Markdown for people, with the command at the top."""

import csv
import io
import json
import math
from collections.abc import Sequence

from tacit.evaluation import NOTICE
from tacit.reporting.leading import leading_sentences
from tacit.research.experiments.guides import BOUNDS, slope
from tacit.research.experiments.spec import MEASURES, DatasetChoice, Experiment, epsilon_text
from tacit.research.experiments.summary import Point

_COLUMNS = (
    "dataset", "users", "items", "method", "algorithm", "epsilon", "delta", "measure", "mean",
    "standard_error", "draws", "tuned_unpaid", "settings", "fit_seconds", "peak_bytes", "reason",
)  # fmt: skip

_TUNED = (
    "Methods marked † are **tuned without paying for it**, as in the paper: their settings are the "
    "best of a grid on {:g} % of the ratings, which are in no test part. Their epsilon does not "
    "cover that choice."
)


def csv_text(experiment: Experiment, points: Sequence[Point]) -> str:
    """Return one line a cell."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for point in points:
        cell, have = point.cell, bool(point.values)
        writer.writerow(
            (
                cell.dataset.label, cell.dataset.users, cell.dataset.items, cell.method.label,
                cell.method.algorithm, "" if cell.epsilon is None else cell.epsilon,
                experiment.delta, experiment.measure, f"{point.mean:.6g}" if have else "",
                f"{point.error:.3g}" if have else "", len(point.values), bool(cell.method.grid),
                json.dumps(dict(point.settings), sort_keys=True),
                "" if point.fit_seconds is None else f"{point.fit_seconds:.3g}",
                point.peak_bytes or "", point.reason,
            )
        )  # fmt: skip
    return file.getvalue()


def markdown_text(
    experiment: Experiment, points: Sequence[Point], command: str, skipped: Sequence[str]
) -> str:
    """Return the whole page."""
    parts = [
        f"# {experiment.title}",
        f"Made by `{command}`. {NOTICE}.",
        experiment.about,
        _protocol(experiment, points),
    ]
    parts += [f"Skipped: {line}" for line in skipped]
    if any(point.values for point in points):
        parts.append(f"![{experiment.title}]({experiment.name}.svg)")
    if experiment.leader is not None:
        parts.append(_leading(experiment, points))
    for dataset in _tabled(experiment):
        parts += _sections(experiment, dataset, points)
    parts += _growth(experiment, points)
    parts += [_settings(experiment, points), _failures(points)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _protocol(experiment: Experiment, points: Sequence[Point]) -> str:
    test, shares = _held_out(experiment)
    text = (
        f"{MEASURES[experiment.measure]}: the mean over {_draws(experiment, points)} of noise and "
        f"test part, ± the standard error of that mean; delta = {experiment.delta:g}; "
        f"{test if shares != [0.0] else 'every entry is seen, and compared with the truth'}. "
        "A dash stands for what failed or has not been run; a job may take "
        f"{experiment.wall_seconds:g} s."
    )
    if any(method.grid for method in experiment.methods):
        text += f" {_TUNED.format(100 * experiment.validation_share)}"
    return text


def _held_out(experiment: Experiment) -> tuple[str, list[float]]:
    """Say what a draw holds out, users or ratings; and which shares of the ratings."""
    apart = sorted({dataset.new_users for dataset in experiment.datasets})
    shares = sorted({dataset.test_share for dataset in experiment.datasets})
    held = " or ".join(f"{100 * share:g} %" for share in (apart if any(apart) else shares))
    if any(apart):
        text = f"{held} of the users are in no fit in each draw, nobody in two of them, and a fifth"
        return f"{text} of the ratings of each is held out of the row her list is made from", apart
    return f"{held} of the ratings held out in each draw, never the same rating twice", shares


def _draws(experiment: Experiment, points: Sequence[Point]) -> str:
    """Say how many draws there are, and which methods have fewer."""
    counts: dict[str, list[int]] = {method.label: [] for method in experiment.methods}
    for point in points:
        if point.values:
            counts[point.cell.method.label].append(len(point.values))
    most = max((max(found) for found in counts.values() if found), default=0)
    fewer = [
        f"{label}: {' to '.join(dict.fromkeys((str(min(found)), str(max(found)))))}"
        for label, found in counts.items()
        if found and min(found) < most
    ]
    text = "1 draw" if most == 1 else f"{most} draws"
    return f"{text} ({'; '.join(fewer)})" if fewer else text


def _leading(experiment: Experiment, points: Sequence[Point]) -> str:
    sentences = leading_sentences(experiment, points)
    if not sentences:
        return f"## Who leads\n\n{experiment.leader} has the lowest mean everywhere."
    lines = "\n".join(f"- {sentence}" for sentence in sentences)
    return f"## Where {experiment.leader} does not lead\n\n{lines}"


def _tabled(experiment: Experiment) -> list[DatasetChoice]:
    return list(experiment.datasets) if experiment.axis == "epsilon" else []


def _sections(experiment: Experiment, dataset: DatasetChoice, points: Sequence[Point]) -> list[str]:
    """Return the tables of one dataset: of the measure, and of each further one."""
    first = _section(experiment, dataset, points)
    tables = [first] if first else []
    for measure in experiment.also if first else ():
        others = [point.by(measure) for point in points]
        tables.append(f"{MEASURES[measure]}:\n\n{_table(experiment, dataset, others)}")
    return tables


def _section(experiment: Experiment, dataset: DatasetChoice, points: Sequence[Point]) -> str:
    """Return the table of one dataset: a line a method, a column an epsilon."""
    here = [point for point in points if point.cell.dataset == dataset]
    if not any(point.values or point.reason != "not run" for point in here):
        return ""
    size = f"{dataset.users:,} users, {dataset.items:,} items, about {dataset.ratings:,} ratings"
    return "\n".join(
        [f"## {dataset.label}", "", f"{size}.", "", _table(experiment, dataset, points)]
    )


def _table(experiment: Experiment, dataset: DatasetChoice, points: Sequence[Point]) -> str:
    here = [point for point in points if point.cell.dataset == dataset]
    epsilons = sorted({p.cell.epsilon for p in here if p.cell.epsilon is not None})
    lines = ["| method | " + " | ".join(_head(epsilon) for epsilon in epsilons) + " |"]
    lines.append("|---" * (len(epsilons) + 1) + "|")
    for method in experiment.methods:
        found = {p.cell.epsilon: p for p in here if p.cell.method == method}
        own = found.get(None)
        cells = [_text(own if own is not None else found.get(epsilon)) for epsilon in epsilons]
        mark = " †" if method.grid else ""
        lines.append(f"| {method.label}{mark} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _head(epsilon: float) -> str:
    return epsilon_text(epsilon) if math.isinf(epsilon) else f"epsilon {epsilon:g}"


def _text(point: Point | None) -> str:
    if point is None:
        return ""
    if not point.values:
        return "-"
    error = f" ± {point.error:.4f}" if len(point.values) > 1 else ""
    return f"{point.mean:.4f}{error}"


def _growth(experiment: Experiment, points: Sequence[Point]) -> list[str]:
    """Return the table of a growth experiment: a column a size, and slopes in log-log."""
    if experiment.axis == "epsilon":
        return []
    sizes = [getattr(dataset, experiment.axis) for dataset in experiment.datasets]
    head = f"| method | epsilon | {' | '.join(f'{size:,}' for size in sizes)} | slope |"
    lines = [f"## {MEASURES[experiment.measure]} by number of {experiment.axis}", "", head]
    lines.append("|---" * (len(sizes) + 3) + "|")
    for method in experiment.methods:
        for epsilon in experiment.epsilons_of(method):
            line = [p for p in points if p.cell.method == method and p.cell.epsilon == epsilon]
            drawn = [(x, p.mean) for x, p in zip(sizes, line, strict=True) if p.mean > 0]
            steep = f"{slope(*zip(*drawn, strict=True)):.2f}" if len(drawn) > 1 else ""
            cells = " | ".join(_text(point) for point in line)
            lines.append(f"| {method.label} | {epsilon_text(epsilon)} | {cells} | {steep} |")
    for guide in experiment.guides:
        lines.append(
            f"| *theory: {BOUNDS[guide.bound].title}* | | {_rates(experiment, guide.bound)} |"
        )
    lines += ["", "Slopes are of least squares in log-log; theory hides constants."]
    return ["\n".join(lines)]


def _rates(experiment: Experiment, bound: str) -> str:
    """Return a rate at every size, and its slope."""
    epsilon = min(experiment.epsilons)
    rates = [BOUNDS[bound].at(one.users, one.items, epsilon) for one in experiment.datasets]
    sizes = [getattr(dataset, experiment.axis) for dataset in experiment.datasets]
    steep = f" | {slope(sizes, rates):.2f}" if len(sizes) > 1 else " | "
    return " | ".join(f"{rate:.3g}" for rate in rates) + steep


def _settings(experiment: Experiment, points: Sequence[Point]) -> str:
    """Return the settings of every method and what a fit takes."""
    lines = ["## Settings and what a fit takes", ""]
    lines += ["| dataset | method | settings | seconds a fit | peak memory |", "|---" * 5 + "|"]
    for dataset in experiment.datasets:
        for method in experiment.methods:
            here = [p for p in points if p.cell.dataset == dataset and p.cell.method == method]
            done = [point for point in here if point.values]
            if done:
                lines.append(f"| {dataset.label} | {method.label} | {_cost(done)} |")
    return "\n".join(lines) if len(lines) > 4 else ""


def _cost(points: Sequence[Point]) -> str:
    seconds = [point.fit_seconds for point in points if point.fit_seconds is not None]
    peak = max((point.peak_bytes or 0 for point in points), default=0)
    ends = (min(seconds), max(seconds)) if seconds else ()
    time = " to ".join(dict.fromkeys(f"{end:.2g}" if end < 100 else f"{end:,.0f}" for end in ends))
    return f"{_choices(points)} | {time} | {peak / 2**20:,.0f} MiB"


def _choices(points: Sequence[Point]) -> str:
    """Name settings; where one was tuned, its values with their epsilons."""
    texts = []
    for name in dict.fromkeys(name for point in points for name in point.settings):
        found: dict[str, list[str]] = {}
        for point in points:
            value = point.settings.get(name)
            text = "all" if value is None else str(value)
            found.setdefault(text, []).append(epsilon_text(point.cell.epsilon))
        values = [f"{text} ({', '.join(epsilons)})" for text, epsilons in found.items()]
        texts.append(f"{name} = {', '.join(values if len(found) > 1 else found)}")
    return "; ".join(texts) or "its own"


def _failures(points: Sequence[Point]) -> str:
    """List failures, those of one reason together."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for point in points:
        if not point.values and point.reason not in ("", "not run"):
            cell = point.cell
            place = cell.dataset.label, cell.method.label, point.reason
            found.setdefault(place, []).append(epsilon_text(cell.epsilon))
    lines = [
        f"- {dataset}, {method} (epsilon {', '.join(epsilons)}): {reason}"
        for (dataset, method, reason), epsilons in found.items()
    ]
    return "## What failed\n\n" + "\n".join(lines) if lines else ""
