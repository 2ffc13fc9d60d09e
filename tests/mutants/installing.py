"""Putting a mutant in the place of the code as it is, without importing anything again.

The functions that live in this process get the code of the mutant, so that whoever holds one has
the mutant's. What a module does while it is imported (its constants, defaults, classes) cannot be
changed afterwards; such a mutant is imported in the place of the module, in a fresh process.
"""

import gc
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

PLAIN = (bool, int, float, str, type(None))


def install(path: Path, mutated: str) -> bool:
    """Give all functions of a file the code of the mutant; False if that is not all of it."""
    old = compile(path.read_text(), str(path), "exec", dont_inherit=True)
    new = compile(mutated, str(path), "exec", dont_inherit=True)
    pairs = list(_pairs(old, new))
    if any(not before.co_flags & inspect.CO_OPTIMIZED for before, _ in pairs):
        return _install_values(path, new)
    for before, after in pairs:
        living = [each for each in functions(path) if each.__code__ == before]
        if not living:
            return False
        for function in living:
            function.__code__ = after
    return True


def _install_values(path: Path, new: CodeType) -> bool:
    """Set the constants and defaults of a module that are others in the mutant."""
    module = next(m for m in sys.modules.values() if getattr(m, "__file__", None) == str(path))
    fresh = ModuleType(module.__name__)
    fresh.__dict__.update({"__file__": str(path), "__builtins__": __builtins__})
    exec(new, fresh.__dict__)  # noqa: S102  # it is the package's own source, but for one change
    return _set_values(module, vars(fresh), module.__name__)


def _set_values(owner: Any, fresh: Mapping[str, Any], home: str) -> bool:
    """Set what differs in a module or class, and wherever else the module's name is known."""
    changed = False
    for name, value in fresh.items():
        found = vars(owner).get(name)
        if isinstance(found, type) and found.__module__ == home and isinstance(value, type):
            changed |= _set_values(found, vars(value), home)
        elif isinstance(found, FunctionType) and isinstance(value, FunctionType):
            changed |= found.__defaults__ != value.__defaults__
            changed |= found.__kwdefaults__ != value.__kwdefaults__
            found.__defaults__, found.__kwdefaults__ = value.__defaults__, value.__kwdefaults__
        elif name == "__dataclass_params__" and repr(found) != repr(value):
            setattr(owner, name, value)  # so that a test that looks at it fails at once
            changed = True
        elif _is_plain(value) and not name.startswith("__") and found != value:
            for place in _known_in(owner, name):
                setattr(place, name, value)
            changed = True
    return changed


def _is_plain(value: object) -> bool:
    """Whether a value holds nothing of a class that was made anew with it."""
    if type(value) in (tuple, list):
        return all(map(_is_plain, value))  # type: ignore[call-overload]
    if type(value) is dict:
        return all(_is_plain(key) and _is_plain(each) for key, each in value.items())
    return type(value) in PLAIN


def _known_in(owner: Any, name: str) -> list[Any]:
    if isinstance(owner, type):
        return [owner]
    modules = [m for m in list(sys.modules.values()) if isinstance(m, ModuleType)]
    ours = [m for m in modules if m.__name__.partition(".")[0] in ("tacit", "tests")]
    return [owner, *(m for m in ours if vars(m).get(name) is getattr(owner, name))]


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions that differ, and the module or class bodies that differ by themselves."""
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    flat = [  # without places in the text: a definition ends where its last line does
        code.replace(
            co_consts=tuple(c for c in code.co_consts if not isinstance(c, CodeType)),
            co_linetable=b"",
        )
        for code in (old, new)
    ]
    if flat[0] != flat[1] or len(inner[0]) != len(inner[1]):
        yield old, new
        return
    for before, after in zip(*inner, strict=True):
        if before.co_flags & inspect.CO_OPTIMIZED:
            if before != after:
                yield before, after
        else:
            yield from _pairs(before, after)


@cache
def functions(path: Path) -> tuple[FunctionType, ...]:
    """All functions of a file that live in this process."""
    gc.unfreeze()  # or those that were set aside when tests had been collected are not listed
    found = (each for each in gc.get_objects() if type(each) is FunctionType)
    return tuple(each for each in found if each.__code__.co_filename == str(path))


class MutantFinder(MetaPathFinder):
    """Imports one module from a text instead of its file."""

    def __init__(self, module: str, mutated: str) -> None:
        self._module, self._mutated = module, mutated

    def find_spec(self, name, path=None, target=None) -> ModuleSpec | None:  # type: ignore[no-untyped-def]
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _MutantLoader(name, spec.origin, self._mutated)
        return spec

    def put_first(self) -> None:
        sys.meta_path.insert(0, self)


class _MutantLoader(SourceFileLoader, Loader):
    def __init__(self, name: str, path: str, mutated: str) -> None:
        super().__init__(name, path)
        self._mutated = mutated

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return compile(self._mutated, self.path, "exec", dont_inherit=True)
