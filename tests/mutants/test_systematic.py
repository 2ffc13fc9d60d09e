"""The machinery of systematic mutation testing: what is changed, and that it takes effect."""

import ast
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants import earlier
from tests.mutants.earlier import definitions, digests, noted
from tests.mutants.generated import CONFIG, changes_of
from tests.mutants.installing import install
from tests.mutants.mutant import SOURCE
from tests.mutants.systematic import refuse_compiled

MODULE = '''\
"""A budget in small."""

MOST = 3


def left(spent: int | None, *, most: int = MOST) -> int:
    """What is left."""
    if spent is None or spent > most:
        raise ValueError(f"{most + 1} is too much")
    spend(spent)
    return most - spent


def spend(cost):
    cost += 1
'''


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "small_budget.py"
    path.write_text(MODULE)
    spec = spec_from_file_location("small_budget", path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    sys.modules["small_budget"] = made
    spec.loader.exec_module(made)
    yield made  # type: ignore[misc]
    del sys.modules["small_budget"]


def place(module: ModuleType) -> Path:
    return Path(str(module.__file__))


def test_every_small_change_is_made_and_annotations_stay(module: ModuleType) -> None:
    changes = changes_of(place(module), "small_budget.py")
    lines = {(change.where, change.new) for change in changes}
    assert {
        ("module", "MOST = 4"),
        ("module", "MOST = 2"),
        ("left", "if spent is not None or spent > most:"),
        ("left", "if spent is None and spent > most:"),
        ("left", "if spent is None or spent >= most:"),
        ("left", "pass"),
        ("left", "return most + spent"),
        ("spend", "cost += 2"),
    } <= lines
    assert not any("int &" in line or "/, most" in line for _, line in lines)
    assert {change.line for change in changes if change.in_error} == {9}


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("except OSError:", ["OSError"]),
        ("except (OSError, ValueError) as error:", ["OSError", "ValueError"]),
        ("except (OSError, *MORE):", ["OSError", "*MORE"]),
        ("except json.JSONDecodeError:", ["json.JSONDecodeError"]),
    ],
)
def test_everything_that_is_caught_becomes_something_else(
    line: str, caught: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "catching.py"
    path.write_text(f"def read():\n    try:\n        go()\n    {line}\n        return None\n")
    made = {change.new for change in changes_of(path, path.name)}
    assert {line.replace(each, "CosmicRayTestingException") for each in caught} <= made


def test_a_fresh_clone_has_no_folder_for_them_yet(module: ModuleType, tmp_path: Path) -> None:
    kept = tmp_path / "build" / "mutants"
    first, again = (changes_of(place(module), "small_budget.py", kept) for _ in range(2))
    assert first == again == changes_of(place(module), "small_budget.py")


def mutate(module: ModuleType, new: str) -> bool:
    changes = changes_of(place(module), "small_budget.py")
    (change,) = [change for change in changes if change.new == new]
    return install(place(module), change.source)


def test_whoever_holds_a_function_gets_the_mutant(module: ModuleType) -> None:
    held = module.left
    assert held(1) == 2
    assert mutate(module, "return most + spent")
    assert held(1) == 4


def test_constants_and_defaults_change_too(module: ModuleType) -> None:
    assert mutate(module, "MOST = 4")
    assert module.MOST == 4
    assert module.left(1) == 3


def test_what_cannot_be_changed_afterwards_is_said(module: ModuleType) -> None:
    """The twin: a change of how a class is made is left to a fresh process."""
    assert not install(place(module), MODULE + "\n\nclass Late:\n    pass\n")


def test_the_whole_trust_zone_is_mutated() -> None:
    groups = CONFIG["tacit"]["groups"].values()
    named = [file for group in groups for file in group["files"]]
    assert len(set(named)) == len(named)
    assert all((SOURCE / file).exists() for file in named)
    zone = {str(path.relative_to(SOURCE)) for path in (SOURCE / "trusted").rglob("[!_]*.py")}
    assert zone <= set(named)


@pytest.mark.parametrize("group", CONFIG["tacit"]["groups"])
def test_who_imports_a_plain_loop_is_plain(group: str) -> None:
    """Or it would be imported compiled, and its mutants would never run."""
    plain = CONFIG["tacit"]["groups"][group]["plain"]
    for path in sorted((SOURCE / "kernels").glob("*.py")):
        tree = ast.walk(ast.parse(path.read_text()))
        imports = {f"{node.module}." for node in tree if isinstance(node, ast.ImportFrom)}
        named = [name for name in plain if f"tacit.{name}." in imports]
        assert not named or f"kernels.{path.stem}" in plain, (path.stem, named)


def test_a_loop_that_is_to_be_mutated_is_not_compiled() -> None:
    """The twin: here all loops are."""
    with pytest.raises(ImportError, match=r"tacit\.kernels\.rows is compiled"):
        refuse_compiled(["kernels.rows"])


def test_what_is_as_it_was_is_told_by_its_code_alone() -> None:
    """Another docstring or import is not a change; another number is, wherever it stands."""
    source = 'import a\nMOST = 3\n\ndef f(x: int = 1) -> int:\n    "One."\n    return x + MOST\n'
    same = digests(source.replace("One.", "Two.").replace("import a", "import b"))
    assert same == digests(source)
    for old, new in (("= 3", "= 4"), ("= 1", "= 2"), ("x +", "x -")):
        changed = digests(source.replace(old, new))
        assert len(set(changed.values()) - set(same.values())) == 1


def test_a_definition_is_noted_if_all_its_mutants_were_run_and_none_survives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = "accounting/ledger.py"
    (a, in_a), (b, in_b), (c, in_c), (d, _) = definitions(file)[-4:]
    monkeypatch.setattr(earlier, "FILES", [file])
    monkeypatch.setattr(earlier, "known", lambda: dict.fromkeys((b, c, d), "before"))
    ran = {(file, lines[0]) for lines in (in_a, in_b, in_c)}
    not_run, alive = {(file, in_b[-1])}, {(file, in_c[-1])}
    assert noted("now", ran, not_run | alive, alive) == {a: "now", b: "before", d: "before"}
