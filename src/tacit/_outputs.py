"""Which files may be overwritten: never an input, and no file of another kind unless asked.

Three rules, checked before anything is read or spent, and the last once more before a file is
replaced:

- an output is never one of the inputs, whatever its name: links and hard links are followed;
- two outputs are two files, and a checkpoint has a folder of its own;
- a file that is there already is replaced only if its content is of the same kind (a model by a
  model), or if that was asked for (`overwrite=True`, `--force`).
"""

import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from tacit._atomic import reason_of
from tacit._damaged import MALFORMED
from tacit.errors import ConfigError

_HEAD = 1 << 16
_LARGEST_HEADER = 1 << 24


class Kind(Enum):
    """What a file holds, as it is called in a message."""

    MODEL = "a model file of tacit"
    REPORT = "a report of tacit"
    AUDIT = "an audit of tacit"
    CARD = "a model card of tacit"
    PICTURE = "a picture drawn by matplotlib"
    RESULTS = "a page or a table of tacit reproduce"
    LIFETIME = "a lifetime certificate of tacit"
    RATINGS = "ratings or a list of items"


class Output(NamedTuple):
    """A file that is to be written: the parameter that names it, the file, and what it will be."""

    name: str
    path: Path
    kind: Kind


def check_outputs(
    outputs: Sequence[Output],
    inputs: Iterable[Path] = (),
    *,
    checkpoint: Path | None = None,
    force: bool = False,
) -> None:
    """Refuse outputs that would be lost, or that would destroy something.

    Args:
        outputs: the files that will be written.
        inputs: the files that are read, patterns expanded.
        checkpoint: the folder of a checkpoint, if there is one.
        force: whether a file of another kind may be replaced. An input may not, in any case.

    Raises:
        ConfigError: an output is an input, another output, or in the folder of the checkpoint;
            its folder does not exist; or there is a file that is not of its kind.
    """
    read = list(inputs)
    for output in outputs:
        _refuse_input(output, read)
    for one, other in combinations(outputs, 2):
        if _same_name(one.path, other.path):
            raise ConfigError(
                f"{one.name} {one.path} and {other.name} {other.path} are the same file; give two"
            )
    for output in outputs:
        check_replaceable(output, overwrite=force)
    if checkpoint is not None:
        _refuse_shared_folder(checkpoint, [*(output.path for output in outputs), *read])


def check_replaceable(output: Output, *, overwrite: bool) -> None:
    """Refuse to write where there is no folder, or where there is something of another kind.

    Raises:
        ConfigError: the output cannot be written there.
    """
    name, path, kind = output
    try:
        _refuse_no_file(name, path)
    except OSError as error:
        raise ConfigError(f"{name} {path} cannot be written: {reason_of(error)}") from None
    if os.path.lexists(path) and not overwrite and not is_of_kind(path, kind):
        known = "" if kind is Kind.RATINGS else f" and is not {kind.value}"
        raise ConfigError(
            f"{name} {path}: the file is there already{known}; give another name, or replace it "
            "with --force (in Python: overwrite=True)"
        )


def _refuse_no_file(name: str, path: Path) -> None:
    """Refuse a place without a folder, and what is there but is not a file."""
    if not path.parent.is_dir():
        raise ConfigError(f"{name} {path}: its folder does not exist; make it, or give another")
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or a device"
        raise ConfigError(f"{name} {path}: it is {what}; give the name of a file")


def is_of_kind(path: Path, kind: Kind) -> bool:
    """Whether a file is of a kind that its content shows; ratings show nothing of the sort."""
    try:
        with path.open("rb") as file:
            return _RECOGNISED[kind](file.read(_HEAD), path)
    except (OSError, *MALFORMED):
        return False


def _is_model(head: bytes, path: Path) -> bool:
    """A safetensors header whose metadata says that it is a model, and not a checkpoint's."""
    size = int.from_bytes(head[:8], "little")
    if size > _LARGEST_HEADER:
        return False
    with path.open("rb") as file:
        header = json.loads(file.read(8 + size)[8:])
    about = json.loads(header["__metadata__"]["tacit"])
    return str(about["format"]).startswith("tacit-model/")


def _is_audit(head: bytes, _path: Path) -> bool:
    """The three forms of an audit: a text, a page, or JSON that names its format."""
    marks = (b"<title>AUDIT of ", b'"format": "tacit-audit/')
    return head.startswith(b"AUDIT of ") or any(mark in head[:1000] for mark in marks)


def _is_picture(head: bytes, _path: Path) -> bool:
    drawn = head.startswith(b"\x89PNG\r\n") or b"<svg " in head
    return drawn and b"Matplotlib v" in head


def _is_results(head: bytes, _path: Path) -> bool:
    page, table = b"\n\nMade by `tacit reproduce ", b"dataset,users,items,method,"
    return page in head or head.startswith(table)


_RECOGNISED: dict[Kind, Callable[[bytes, Path], bool]] = {
    Kind.MODEL: _is_model,
    Kind.REPORT: lambda head, _: b"<title>tacit: privacy and accuracy report</title>" in head,
    Kind.AUDIT: _is_audit,
    Kind.CARD: lambda head, _: b"<!-- model card of tacit -->" in head[:2000],
    Kind.PICTURE: _is_picture,
    Kind.RESULTS: _is_results,
    Kind.LIFETIME: lambda head, _: b'"format": "tacit-lifetime/' in head[:200],
    Kind.RATINGS: lambda _head, _path: False,
}


def _refuse_input(output: Output, inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input, whatever it is called there, or would become one."""
    for path in inputs:
        if _same_file(output.path, path) or _same_name(output.path, path):
            raise ConfigError(
                f"{output.name} {output.path} is the same file as the input {path}, which would "
                "be lost; give another name"
            )


def _same_name(one: Path, other: Path) -> bool:
    """Whether two paths lead to one name; names that some systems take for one are one."""
    return _plain(one) == _plain(other)


def _plain(path: Path) -> str:
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


def _same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file that exists, by links or hard links say."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _refuse_shared_folder(checkpoint: Path, files: Iterable[Path]) -> None:
    """Refuse a checkpoint folder with other files in it: a folder that failed is deleted."""
    folder = Path(_plain(checkpoint))
    for path in files:
        plain = Path(_plain(path))
        if plain.is_relative_to(folder) or folder.is_relative_to(plain):
            raise ConfigError(
                f"checkpoint={checkpoint}: it shares its place with {path}; give the checkpoint a "
                "folder of its own, as it holds what nobody else may see and can be deleted"
            )
