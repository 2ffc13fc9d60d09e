"""Mutants that Cosmic Ray's operators make of a source file, one small change each."""

import ast
import json
import pickle
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.exceptions import CosmicRayTestingException
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.operators.exception_replacer import ExceptionReplacer
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from parso.python.tree import Name

CONFIG = tomllib.loads((Path(__file__).parent / "cosmic-ray.toml").read_text())
EXCLUDED = CONFIG["cosmic-ray"]["filters"]["operators-filter"]["exclude-operators"]


class Change(NamedTuple):
    """One mutant of a file: where it is, what the line was and is, and the whole new source."""

    file: str
    where: str
    line: int
    old: str
    new: str
    source: str
    in_error: bool
    of_constants: bool  # in the body of a module or class, so that others may be computed from it
    again: int = 0  # how many mutants before it in the file look just the same

    @property
    def key(self) -> str:
        """What names it whatever line it is on."""
        again = f" (no. {self.again + 1})" if self.again else ""
        return f"{self.file} | {self.where} | {self.old} -> {self.new}{again}"


class RemoveCall(Operator):
    """Replaces a statement that is only a call by `pass`; Cosmic Ray has nothing like it."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and node.children[0].type in ("atom_expr", "power"):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:  # noqa: ARG002
        first = node.children[0]
        node.children[0] = Name("pass", first.start_pos, first.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class CatchAnother(ExceptionReplacer):
    """Replaces what is caught by another exception; Cosmic Ray's own stops at `*ERRORS`, `a.B`."""

    @staticmethod
    def _name_nodes(node: Any) -> list[Any]:
        caught = node.children[1]
        if caught.type != "atom":
            return [caught]
        inside = caught.children[1]
        return inside.children[::2] if inside.type == "testlist_comp" else [inside]

    def mutate(self, node: Any, index: int) -> Any:
        caught = self._name_nodes(node)[index]
        first, beside = caught.get_first_leaf(), caught.parent.children
        other = Name(CosmicRayTestingException.__name__, first.start_pos, first.prefix)
        beside[next(place for place, each in enumerate(beside) if each is caught)] = other
        return node


def operators() -> Iterator[Operator]:
    """All operators but the excluded ones."""
    for name in sorted(operator_names()):
        if name == "core/ExceptionReplacer":
            yield CatchAnother()
        elif not any(re.fullmatch(pattern, name) for pattern in EXCLUDED):
            yield get_operator(name)()
    yield RemoveCall()


def changes_of(path: Path, file: str, kept: Path | None = None) -> list[Change]:
    """Every change of a source file that compiles and is not about annotations alone.

    Making them takes a while; in the folder `kept` they are looked up the next time.
    """
    source = path.read_text()
    if kept is None:
        return _made(source, file)
    place = kept / f"{sha256((source + file + str(EXCLUDED)).encode()).hexdigest()[:16]}.json"
    if not place.exists():
        kept.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(_made(source, file)))
    return [Change(*each) for each in json.loads(place.read_text())]


def _made(source: str, file: str) -> list[Change]:
    """Change the statements of a module one by one: a tree of one is small and quick to copy."""
    lines, statements = source.splitlines(keepends=True), ast.parse(source)
    found: dict[str, Change] = {}
    for statement in statements.body:
        first = min(
            [statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))]
        )
        before, own, after = (
            "".join(part)
            for part in (lines[: first - 1], lines[first - 1 : statement.end_lineno],
                         lines[statement.end_lineno :])
        )  # fmt: skip
        for mutated in _mutated(own):
            whole = before + mutated + after
            found[whole] = _described(file, source, whole, statements)
    return _numbered(sorted(found.values(), key=lambda change: change.line))


def first_line(statement: ast.stmt) -> int:
    """Where a statement begins, with its decorators."""
    return min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])


def _mutated(source: str) -> Iterator[str]:
    """Yield every change of a statement that compiles and does something else."""
    tree = get_ast(source)
    frozen, seen = pickle.dumps(tree), {None, _plain(source)}
    for operator in operators():
        positions = sum(len(list(operator.mutation_positions(node))) for node in ast_nodes(tree))
        for occurrence in range(positions):
            mutated = MutationVisitor(occurrence, operator).walk(pickle.loads(frozen)).get_code()  # noqa: S301
            if _plain(mutated) not in seen:
                yield mutated


def _numbered(changes: list[Change]) -> list[Change]:
    """Tell apart the mutants that look just the same, so that none hides behind another."""
    seen: Counter[str] = Counter()
    numbered = []
    for change in changes:
        numbered.append(change._replace(again=seen[change.key]))
        seen[change.key] += 1
    return numbered


class _WithoutAnnotations(ast.NodeTransformer):
    """Takes off what is not run: annotations, how loops are compiled, which arguments are named."""

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        node.defaults = [*node.defaults, *(value for value in node.kw_defaults if value)]
        node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = [each for each in node.decorator_list if not _compiles(each)]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _compiles(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "njit"


def _plain(source: str) -> str | None:
    try:
        return ast.dump(_WithoutAnnotations().visit(ast.parse(source)))
    except SyntaxError:
        return None


def _described(file: str, source: str, mutated: str, tree: ast.Module) -> Change:
    pairs = zip(source.splitlines(), mutated.splitlines(), strict=False)
    line, (old, new) = next((n, pair) for n, pair in enumerate(pairs, 1) if len(set(pair)) > 1)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    names = [node.name for node in around if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    in_error = any(isinstance(node, ast.Raise) for node in around)
    where = ".".join(names) or "module"
    outside = not any(isinstance(node, ast.FunctionDef) for node in around)
    return Change(file, where, line, _tidy(old), _tidy(new), mutated, in_error, outside)


def _tidy(line: str) -> str:
    """A line without the blanks that a mutation leaves, and without its comment."""
    return re.sub(r"\s+", " ", re.sub(r"\s+# .*", "", line)).strip()
