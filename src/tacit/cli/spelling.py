"""Error messages that name the command-line option instead of the Python parameter."""

from collections.abc import Iterator, Mapping
from typing import Any

# What Python calls ratings or items that a file on the command line holds, and that parameter.
_FILES = {"own_ratings": "ratings", "candidates": "only", "exclude": "exclude"}


def as_typed(message: str, options: Mapping[str, str], given: Mapping[str, Any]) -> str:
    """Name the option in a message that begins with its parameter, or with a file that it gave.

    Args:
        message: what an error says: by convention `name=value: expected ...`, or `file: ...`.
        options: how each parameter of the command is typed.
        given: the value of each.

    >>> as_typed("threads=0: expected 1 to 9 or None", {"threads": "--threads"}, {"threads": 0})
    '--threads 0: expected 1 to 9, or leave it out'
    >>> as_typed("a.csv: no such file", {"items": "--items"}, {"items": "a.csv"})
    '--items a.csv: no such file'
    >>> as_typed("own_ratings: no", {"ratings": "--ratings"}, {"ratings": "a.csv"})
    '--ratings a.csv: no'
    >>> as_typed("candidates: no", {"only": "--only"}, {"only": "a.csv"})
    '--only a.csv: no'
    >>> setting = {"settings": "--set"}, {"settings": ["rank=0"]}
    >>> as_typed("rank=0: expected 1 to 9 or None; leave it out for None", *setting)
    '--set rank=0: expected 1 to 9, or leave it out'
    """
    called, colon, told = message.partition(": ")
    file = given.get(_FILES.get(called, ""))
    if colon and file:
        message = f"{file}: {told}"
    name, equals, rest = message.partition("=")
    if equals and name in options:
        return _option(options[name], rest)
    for typed, value in _texts(options, given):
        setting = equals and typed == options.get("settings") and value.startswith(f"{name}=")
        if setting or message.startswith(f"{value}: "):
            return f"{typed} {_without_none(message) if setting else message}"
    return message


def interrupted(given: Mapping[str, Any]) -> str:
    """Say what a command that was interrupted leaves behind, and how to go on."""
    said = "interrupted; no file is half-written"
    if given.get("checkpoint"):
        said += f"; the same command goes on with the releases in {given['checkpoint']}"
    if given.get("book"):
        said += f"; what was released stays paid for in {given['book']}"
    return said


def _option(typed: str, rest: str) -> str:
    """Write what is wrong with an option: there is no None in a shell, options are left out."""
    if rest.startswith("None"):
        return f"{typed} is missing{rest.removeprefix('None')}"
    return f"{typed} {_without_none(rest)}"


def _without_none(told: str) -> str:
    return told.replace("; leave it out for None", "").replace(" or None", ", or leave it out")


def _texts(options: Mapping[str, str], given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each text and path that was typed, with its option."""
    for name, typed in options.items():
        value = given.get(name)
        for each in value if isinstance(value, list) else [value]:
            if each is not None and not isinstance(each, bool | int | float | tuple):
                yield typed, str(each)
