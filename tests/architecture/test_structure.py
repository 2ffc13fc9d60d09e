"""The walls of the house, read off the syntax trees."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest
from tests.support.source import MODULES, SOURCE

import tacit

NOISE_WORDS = {"random", "secrets", "urandom", "token_bytes", "Philox", "default_rng", "randomgen"}
# Where randomness may stand: noise in the sampler; an explicit rng or seed in these.
RANDOM_ROOMS = {
    "trusted/sampler.py",
    "trusted/sealing.py",
    "estimation/eigen.py",
    "estimation/latent.py",
    "estimation/spiked_covariance.py",
    "datasets/drawing.py",
    "datasets/families.py",
    "datasets/synthetic.py",
    "datasets/titles.py",
    "datasets/synthetic_loops.py",
    "evaluation/accuracy.py",
    "evaluation/new_users.py",
    "evaluation/splitting.py",
    "research/experiments/preparing.py",
    "audit/population.py",
    "audit/sensitivity.py",
    "audit/rating.py",
    "audit/game.py",
}


@cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


@cache
def names_used(tree: ast.AST) -> tuple[tuple[str, int], ...]:
    return tuple(_names_used(tree))


def _names_used(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.alias):
            yield from ((part, node.lineno) for part in node.name.split("."))
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((part, node.lineno) for part in node.module.split("."))


def rooms_using(words: set[str]) -> set[str]:
    return {room for room, tree in MODULES.items() if any(n in words for n, _ in names_used(tree))}


def test_randomness_stands_only_where_it_may() -> None:
    rooms = rooms_using(NOISE_WORDS)
    assert "trusted/sampler.py" in rooms
    assert rooms <= RANDOM_ROOMS


def test_only_the_mechanism_draws_noise() -> None:
    drawers = rooms_using({"floor_normals", "idealised_normals"})
    assert drawers == {"trusted/mechanism.py"}
    assert rooms_using({"SystemNoise", "SeededNoiseUnsafe"}) == {"fitting/fit.py"}
    assert rooms_using({"fill"}) == {"trusted/sampler.py"}


def test_only_the_mechanism_opens_a_bounded_sum() -> None:
    assert rooms_using({"_exact_sum"}) == {"trusted/statistic.py", "trusted/mechanism.py"}


def test_only_the_audit_opens_sums_outside_of_the_mechanism() -> None:
    """An attacker on synthetic people: one room of the audit, and nobody else imports it."""
    summing = {
        room
        for room, tree in MODULES.items()
        for node in nodes_of(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "integer_sum"
        and not isinstance(node.func.value, ast.Call)  # super()
    }
    assert summing == {"trusted/statistic.py", "audit/exact_sums.py"}
    knowing = {
        room
        for room, tree in MODULES.items()
        for node in nodes_of(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tacit.audit.exact_sums"
    }
    assert knowing == {f"audit/{room}.py" for room in ("sensitivity", "rating", "game", "observe")}


def test_only_the_audit_passes_an_observer() -> None:
    """The mechanism takes one and `fitting` hands it on; calls of `fit` and `tune` have none."""
    passing = {
        room
        for room, tree in MODULES.items()
        for node in nodes_of(tree)
        if isinstance(node, ast.keyword) and node.arg == "observer"
    }
    assert passing == {"fitting/fit.py", "audit/exact_sums.py"}
    parameters = {
        (room, node.name)
        for room, tree in MODULES.items()
        for node in nodes_of(tree)
        if isinstance(node, ast.FunctionDef)
        and any(arg.arg == "observer" for arg in (*node.args.args, *node.args.kwonlyargs))
    }
    assert parameters == {
        ("trusted/mechanism.py", "__init__"),
        ("audit/exact_sums.py", "watched_fit"),
    }


def test_only_statistics_and_rows_call_the_loops_that_see_rows_in_a_fit() -> None:
    loops = {"covariance", "advance", "choose", "weighted_sums", "product", "energy"}
    loops |= {
        "factor_gradient",
        "quantise_rows",
        "weighted_counts",
        "count_norms",
        "row_sums",
        "user_moments",
    }
    loops |= {"mark_held_out", "add_losses", "kept_lengths", "normal_equations"}
    callers = {
        room
        for room, tree in MODULES.items()
        for node in nodes_of(tree)
        if isinstance(node, ast.Call) and called(node) in loops
    }
    assert len(callers) > 3
    assert all(room.startswith("trusted/") for room in callers)


def called(call: ast.Call) -> str | None:
    """The loop that is called, or bound to its first arguments: loop(...), loops.loop, partial."""
    func = call.args[0] if isinstance(call.func, ast.Name) and call.func.id == "partial" else None
    func = func or call.func
    if isinstance(func, ast.Attribute):
        of_loops = isinstance(func.value, ast.Name | ast.Attribute) and ast.unparse(func.value)
        return func.attr if of_loops and of_loops.endswith("loops") else None
    return func.id if isinstance(func, ast.Name) else None


def test_no_assert_eval_pickle_or_print_in_the_product() -> None:
    forbidden = {"eval", "exec", "pickle", "joblib", "marshal", "dill", "print", "allow_pickle"}
    for room, tree in MODULES.items():
        lines = [node.lineno for node in nodes_of(tree) if isinstance(node, ast.Assert)]
        assert not lines, f"{room} has asserts"
        used = {(name, line) for name, line in names_used(tree) if name in forbidden}
        if room.startswith("cli/"):
            used = {item for item in used if item[0] != "print"}
        assert not used, room


@pytest.mark.parametrize(
    "room", [room for room in MODULES if room.startswith(("trusted/", "engines/", "kernels/"))]
)
def test_the_trust_zone_writes_no_logs(room: str) -> None:
    words = {"logging", "logger", "warnings", "rich", "typer", "stdout", "stderr"}
    assert not [name for name, _ in names_used(MODULES[room]) if name in words]


def test_rooms_and_functions_stay_small() -> None:
    for room, tree in MODULES.items():
        text = (SOURCE / room).read_text()
        assert text.count("\n") <= 450, f"{room} is crowded"
        for node in nodes_of(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
                assert length <= 45, f"{room}: {node.name} has {length} lines"


def test_public_names_are_there_and_no_others() -> None:
    for name in tacit.__all__:
        assert getattr(tacit, name).__name__
    packages = ("audit", "datasets", "engines", "errors", "evaluation", "integrations")
    assert dir(tacit) == sorted((*tacit.__all__, *packages))
    for name in packages:
        code = f"import tacit; print(tacit.{name}.__name__)"  # in a process that has not loaded it
        found = subprocess.check_output([sys.executable, "-c", code], text=True)
        assert found.strip() == f"tacit.{name}"
    with pytest.raises(AttributeError, match="no attribute"):
        _ = tacit.no_such_name  # type: ignore[attr-defined]


def test_importing_the_package_is_light() -> None:
    heavy = ("numba", "polars", "scipy", "numpy")
    code = f"import sys, tacit, tacit.cli; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_error_is_a_tacit_error() -> None:
    from tacit import errors

    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, errors.TacitError | errors.TacitWarning)
