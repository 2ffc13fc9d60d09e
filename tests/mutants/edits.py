"""Edits of a function as a syntax tree: whatever the formatting, the comments and the rest do.

An edit names a function, method or class of a file, and gives Python that is in it exactly once and
what takes its place: an expression for an expression, or statements for statements.
"""

import ast
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Edit:
    """In `where` of a file ("" is the whole module), `new` takes the place of `old`."""

    file: str
    where: str
    old: str
    new: str


def edited(source: str, edit: Edit) -> str:
    """Return a source with an edit made; a ValueError if its place is not there exactly once."""
    tree = ast.parse(source)
    old, new = ast.parse(edit.old).body, ast.parse(edit.new).body
    scope = _scope(tree, edit.where)
    if _is_expression(old) and _is_expression(new):
        found = _in_expressions(scope, old[0].value, new[0].value)  # type: ignore[attr-defined]
    else:
        found = _in_statements(scope, old, new)
    if found != 1:
        raise ValueError(f"{edit.file}, {edit.where}: the code of a mutant is there {found}x")
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_expression(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Expr)


def _scope(tree: ast.Module, where: str) -> ast.AST:
    """Find a function or class by its name, a method by Class.method."""
    scope: ast.AST = tree
    for name in where.split(".") if where else ():
        inner = [node for node in getattr(scope, "body", ()) if getattr(node, "name", "") == name]
        if len(inner) != 1:
            raise ValueError(f"{where}: there are {len(inner)} of {name}")
        scope = inner[0]
    return scope


def _in_expressions(scope: ast.AST, old: ast.expr, new: ast.expr) -> int:
    """Replace an expression wherever it is; return how often that was."""
    wanted, found = ast.dump(old), 0

    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            nonlocal found
            if isinstance(node, ast.expr) and ast.dump(node) == wanted:
                found += 1
                return new
            return self.generic_visit(node)

    Replacing().visit(scope)
    return found


def _in_statements(scope: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> int:
    """Replace a run of statements wherever it is; return how often that was."""
    wanted, found = [ast.dump(statement) for statement in old], 0
    for node in list(ast.walk(scope)):
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(body, list):
                continue
            for at in range(len(body) - len(old), -1, -1):
                if [ast.dump(one) for one in body[at : at + len(old)]] == wanted:
                    body[at : at + len(old)] = new or [ast.Pass()]
                    found += 1
    return found
