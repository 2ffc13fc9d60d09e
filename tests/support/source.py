"""The source as syntax trees, each parsed once in a process and only when it is looked at."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import tacit

SOURCE = Path(tacit.__file__).parent


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file; nobody may change it."""
    return ast.parse(path.read_text(encoding="utf-8"))


class _Modules(Mapping[str, ast.Module]):
    """The syntax tree of every module, by its path in the package."""

    def __init__(self) -> None:
        self._names = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))

    def __getitem__(self, name: str) -> ast.Module:
        return tree_of(SOURCE / name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


MODULES = _Modules()
