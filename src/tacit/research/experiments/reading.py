"""Experiments from TOML: every key checked before anything is run."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from tacit.accounting.budget import Accounting, Neighbours
from tacit.algorithms import ALGORITHMS, algorithm_from
from tacit.datasets.registry import DATASETS
from tacit.datasets.synthetic import Kind
from tacit.errors import ConfigError
from tacit.fitting.fit import automatic
from tacit.research.experiments.guides import BOUNDS
from tacit.research.experiments.paths import experiment_text, file_text, full_name
from tacit.research.experiments.spec import (
    AUTOMATIC,
    MEASURES,
    NEW_USERS,
    POPULARITY,
    RANKING,
    YARDSTICKS,
    DatasetChoice,
    Experiment,
    Guide,
    MethodChoice,
    Quick,
    multiple_of_truth,
    points_of_grid,
)
from tacit.research.experiments.toml_fields import REQUIRED, Fields

_KINDS = get_args(Kind)
_REST = "*"
_SIZES = {"users": 1_000_000_000, "items": 10_000_000, "per_user": 10_000_000, "seed": 2**31}
_OF_TRUTH = ("nuclear_norm", "row_norm")


def read_experiment(name: str) -> Experiment:
    """Read an experiment by its name, or from a TOML file of one's own.

    Raises:
        ConfigError: there is none, or its file cannot be used.
    """
    if name.endswith(".toml"):
        path = Path(name)
        return replace(parse_experiment(path.stem, file_text(path)), file=name)
    name = full_name(name)
    return parse_experiment(name, experiment_text(name))


def parse_experiment(name: str, text: str) -> Experiment:
    """Read an experiment from the text of its file."""
    where = f"{name}.toml"
    try:
        top = Fields(where, tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is not TOML: {error}") from None
    new_users = top.number("new_users", 0.0, 0.5, 0.0)
    shares = top.number("test_share", 0.0, 0.5, 0.0 if new_users else 0.01), new_users
    cap = _cap(top, None)
    experiment = Experiment(
        name=name,
        title=top.text("title"),
        about=" ".join(top.text("about").split()),
        datasets=tuple(_dataset(one, shares) for one in top.tables("datasets")),
        methods=_methods(top.tables("methods"), cap),
        epsilons=top.numbers("epsilons", 1e-9),
        delta=top.number("delta", 1e-300, 0.5, 1e-6),
        draws=top.whole("draws", 1, 1000, 10),
        validation_share=top.number("validation_share", 0.001, 0.3, 0.02),
        measure=top.word("measure", MEASURES, "rmse"),
        also=_also(top),
        wall_seconds=top.number("wall_seconds", 0.1, 1e6, 600.0),
        axis=top.word("axis", ("epsilon", "users", "items"), "epsilon"),
        guides=tuple(_guide(one) for one in top.tables("guides", [])),
        leader=top.text("leader", None),
        quick=_quick(Fields(f"{where}, quick", top.raw("quick", {}))),
    )
    top.close()
    _check_together(experiment, where)
    return experiment


def _cap(fields: Fields, default: Any) -> Any:
    """Take max_ratings: a number, "all", or "own" to leave it to the algorithm."""
    value = fields.raw("max_ratings", default)
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if value is default or whole or value in ("all", "own"):
        return value
    return fields.refuse("max_ratings", value, 'a whole number, "all" or "own"')


def _also(fields: Fields) -> tuple[str, ...]:
    """Take further measures of the same runs."""
    names = fields.raw("also", [])
    if not isinstance(names, list) or any(name not in NEW_USERS for name in names):
        fields.refuse("also", names, f"a list of {', '.join(NEW_USERS)}")
    return tuple(names)


def _dataset(fields: Fields, shares: tuple[float, float]) -> DatasetChoice:
    """Read a dataset; `shares` are the test share and that of new users where it has no own."""
    name, kind = fields.text("name", None), fields.text("synthetic", None)
    file = fields.text("file", None)
    if [name, kind, file].count(None) != 2:
        raise ConfigError(f"{fields.where}: give one of name, synthetic and file")
    if file is not None:
        return _file(fields, file, shares)
    known = tuple(DATASETS) if kind is None else _KINDS
    source = name or kind
    if source not in known:
        fields.refuse("name" if kind is None else "synthetic", source, f"one of {', '.join(known)}")
    limits = {"top": 10_000_000} if kind is None else _SIZES
    sizes = {key: fields.whole(key, 0, most, None) for key, most in limits.items()}
    title = DATASETS[source].title if kind is None else source
    found = DatasetChoice(
        source=source,
        synthetic=kind is not None,
        label=fields.text("label", title),
        parameters={key: size for key, size in sizes.items() if size is not None},
        test_share=fields.number("test_share", 0.0, 0.5, shares[0]),
        new_users=shares[1],
    )
    fields.close()
    return found


def _file(fields: Fields, name: str, shares: tuple[float, float]) -> DatasetChoice:
    """Read what is stated of a file that is on someone's own machine: its size and its range."""
    sizes = {key: fields.whole(key, 1, 10_000_000_000) for key in ("users", "items", "ratings")}
    sizes |= {key: fields.whole(key, -1000, 1000) for key in ("lowest", "highest")}
    if sizes["lowest"] >= sizes["highest"]:
        fields.refuse("highest", sizes["highest"], "a whole number above lowest")
    label = fields.text("label", name)
    share = fields.number("test_share", 0.0, 0.5, shares[0])
    fields.close()
    return DatasetChoice(name, False, label, sizes, share, shares[1], is_file=True)


def _methods(tables: Sequence[Fields], cap: Any) -> tuple[MethodChoice, ...]:
    """Read all methods; "*" stands for every algorithm that no other method names or means."""
    known = (AUTOMATIC, *YARDSTICKS, *ALGORITHMS, _REST)
    names = [fields.word("algorithm", known, REQUIRED) for fields in tables]
    found: list[MethodChoice] = []
    for name, fields in zip(names, tables, strict=True):
        if name == _REST:
            fields.close()
            taken = {automatic().name if one == AUTOMATIC else one for one in names}
            found += [MethodChoice(one, one) for one in ALGORITHMS if one not in taken]
        else:
            found.append(_method(fields, name, cap))
    return tuple(found)


def _method(fields: Fields, algorithm: str, cap: Any) -> MethodChoice:
    settings = _settings(fields, "settings")
    grids = _grids(fields)
    cap = _cap(fields, cap)
    if cap not in (None, "own") and algorithm in ALGORITHMS and "max_ratings" not in settings:
        settings["max_ratings"] = None if cap == "all" else cap
    method = MethodChoice(
        algorithm=algorithm,
        label=fields.text("label", algorithm),
        settings=settings,
        grid=grids[0] if grids else {},
        later_grids=grids[1:],
        tuned_at=fields.numbers("tuned_at", 1e-9, None),
        tuned_users=fields.whole("tuned_users", 1, 10_000_000_000, None),
        epsilons=fields.numbers("epsilons", 1e-9, None),
        draws=fields.whole("draws", 1, 1000, None),
        accounting=fields.word("accounting", tuple(Accounting), "exact"),
        neighbours=fields.word("neighbours", tuple(Neighbours), "replace"),
        like=fields.text("like", None),
    )
    fields.close()
    _check_settings(method, fields.where)
    return method


def _settings(fields: Fields, name: str) -> dict[str, Any]:
    table = fields.raw(name, {})
    if not isinstance(table, dict):
        fields.refuse(name, table, "a table of settings")
    return {key: _value(value) for key, value in table.items()}


def _grids(fields: Fields) -> tuple[dict[str, tuple[Any, ...]], ...]:
    """Take what is tuned: a table of lists, or several that are searched one after the other."""
    tables = fields.raw("tune", [])
    tables = [tables] if isinstance(tables, dict) else tables
    if not isinstance(tables, list) or not all(isinstance(one, dict) and one for one in tables):
        fields.refuse("tune", tables, "a table of lists, or a list of such tables")
    return tuple(
        {
            name: tuple(_value(one) for one in values)
            if isinstance(values, list) and values
            else fields.refuse(f"tune.{name}", values, "a list of values")
            for name, values in table.items()
        }
        for table in tables
    )


def _value(value: Any) -> Any:
    """Turn a TOML value into a setting: TOML has no None and no tuples."""
    if isinstance(value, list):
        return tuple(value)
    return None if value == "none" else value


def _check_settings(method: MethodChoice, where: str) -> None:
    """Build every candidate once, so that a wrong setting is found before anything is run."""
    if method.algorithm not in ALGORITHMS:
        if method.settings or method.grid:
            raise ConfigError(f"{where}: {method.algorithm} takes no settings")
        return
    first = dict(method.settings)
    for grid in method.grids or ({},):
        candidates = points_of_grid(first, grid)
        for candidate in candidates:
            words = [name for name, value in candidate.items() if _is_by_size(name, value)]
            try:
                algorithm_from(method.algorithm, **candidate | dict.fromkeys(words, 10))
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}") from None
        first = candidates[0]


def _is_by_size(name: str, value: Any) -> bool:
    """Whether a setting is given by a word: a multiple of the hidden matrix's, or Theorem 3.2's."""
    if name == "rounds":
        return bool(value == "theory")
    return name in _OF_TRUTH and multiple_of_truth(value) is not None


def _guide(fields: Fields) -> Guide:
    guide = Guide(fields.text("method"), fields.word("bound", BOUNDS, REQUIRED))
    fields.close()
    return guide


def _quick(fields: Fields) -> Quick:
    found = Quick(
        draws=fields.whole("draws", 1, 1000, 1),
        epsilons=fields.numbers("epsilons", 1e-9, None),
        users=fields.whole("users", 1, 1_000_000_000, None),
    )
    fields.close()
    return found


def _check_together(experiment: Experiment, where: str) -> None:
    """Check what several keys say together."""
    labels = [method.label for method in experiment.methods]
    for names in (labels, [dataset.label for dataset in experiment.datasets]):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ConfigError(f"{where}: the label {twice[0]!r} is given twice; give each once")
    named = [experiment.leader, *(guide.method for guide in experiment.guides)]
    for name in (*named, *(method.like for method in experiment.methods)):
        if name is not None and name not in labels:
            raise ConfigError(f"{where}: no method has the label {name!r}")
    if experiment.leader is not None and experiment.measure in (*RANKING, *NEW_USERS):
        raise ConfigError(f"{where}: a leader is who has the least error; measure rmse or mae")
    _check_lists(experiment, where)
    if any(method.tuned_users for method in experiment.methods) and not all(
        dataset.synthetic for dataset in experiment.datasets
    ):
        raise ConfigError(f"{where}: tuned_users goes with synthetic datasets only")
    whole = experiment.measure == "frobenius"
    tuned = any(method.grid for method in experiment.methods)
    for dataset in experiment.datasets:
        seen = dataset.test_share == 0.0 and not dataset.new_users
        if whole != seen or (whole and dataset.source != "rank-one"):
            raise ConfigError(
                f"{where}: {dataset.label}: measure='frobenius' goes with rank-one ratings and "
                "test_share=0, and every other measure with a test_share above 0"
            )
        kept = dataset.test_share * experiment.draws + experiment.validation_share * tuned
        if kept > (0.5 if tuned else 1.0) or (tuned and whole):
            raise ConfigError(
                f"{where}: {dataset.label}: the test parts of all draws and the validation part "
                "take up too much; give fewer draws or smaller shares"
            )


def _check_lists(experiment: Experiment, where: str) -> None:
    """Check that lists of new users are measured where users are kept apart, and only there."""
    lists = experiment.measure in NEW_USERS
    apart = [dataset.new_users for dataset in experiment.datasets]
    shares = [dataset.test_share for dataset in experiment.datasets]
    if any(lists != (share > 0) for share in apart) or (experiment.also and not lists):
        raise ConfigError(
            f"{where}: new_users above 0 goes with measure {', '.join(NEW_USERS)} (and `also`), "
            "and with no other"
        )
    wrong = [
        m for m in experiment.methods if m.is_yardstick and lists != (m.algorithm == POPULARITY)
    ]
    if wrong:
        raise ConfigError(
            f"{where}: {wrong[0].algorithm} cannot be measured so: {POPULARITY} has lists, the "
            "other yardsticks predict ratings"
        )
    if not lists:
        return
    if any(shares) or any(method.grid for method in experiment.methods):
        raise ConfigError(f"{where}: with new_users there is no test_share and nothing is tuned")
    if max(apart) * experiment.draws > 1:
        raise ConfigError(f"{where}: new_users times draws is above 1; give fewer draws")
