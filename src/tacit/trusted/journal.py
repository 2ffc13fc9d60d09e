"""The journal (checkpoint): each release is written and synced before it is used.

A crash and a restart read back what was written, because drawing again would be a second
release. The folder also keeps a fingerprint of the ratings, so that releases of other ratings
are never mixed in: it is as private as the ratings themselves, and its files are readable by
their owner only.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from tacit._atomic import hold, make_folder, reason_of, sync_folder, write_durably
from tacit._damaged import UNSOUND
from tacit.accounting.ledger import Entry
from tacit.errors import CheckpointError

_VERSION = 2
_ABOUT = "fit.json"
_ANEW = "delete the folder and fit anew, which spends the budget again"


class Journal:
    """A checkpoint folder, held by one process at a time."""

    def __init__(self, folder: str | os.PathLike[str], about: Mapping[str, str]) -> None:
        """Open or begin the checkpoint of the fit that `about` describes, part by part."""
        self._folder = Path(folder)
        try:
            make_folder(self._folder)
            self._lock = hold(self._folder / "lock")
        except BlockingIOError:
            raise CheckpointError(
                f"checkpoint {folder} is in use by another process; wait for it or give another"
            ) from None
        except OSError as error:
            raise _unusable(self._folder, error) from None
        try:
            self._compare({"version": str(_VERSION), **about})
            self._sweep()
            sync_folder(self._folder)  # a process may have been killed before it could
            self._found = self._newest()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise _unusable(self._folder, error) from None
            raise

    @property
    def found(self) -> int:
        """How many releases were there when it was opened."""
        return self._found

    def close(self) -> None:
        """Let other processes use the folder."""
        self._lock.close()

    def read(self, number: int, entry: Entry) -> NDArray[np.float64] | None:
        """Return the release of this number if it was written before, else None."""
        path = self._path(number)
        try:
            return _decode(path.read_bytes(), entry)
        except FileNotFoundError:
            self._refuse_gap(number)
            return None
        except OSError as error:
            raise _unusable(self._folder, error) from None
        except UNSOUND as error:
            raise CheckpointError(
                f"checkpoint file {path} is damaged ({type(error).__name__}); {_ANEW}"
            ) from None

    def write(self, number: int, entry: Entry, values: NDArray[np.float64]) -> None:
        """Make a release durable; only then may it be used."""
        try:
            write_durably(self._path(number), _encode(entry, values), owner_only=True)
        except OSError as error:
            raise _unusable(self._folder, error) from None

    def _path(self, number: int) -> Path:
        return self._folder / f"release-{number:04d}.safetensors"

    def _refuse_gap(self, number: int) -> None:
        """A release that is lost although later ones were made of it must not be drawn again."""
        if number < self._found:
            raise CheckpointError(
                f"checkpoint {self._folder} has later releases than number {number}, which is "
                f"missing; {_ANEW}"
            )

    def _newest(self) -> int:
        """The highest number of a release that is in the folder, or 0."""
        names = (path.stem.removeprefix("release-") for path in self._folder.glob("release-*"))
        return max((int(name) for name in names if name.isdecimal()), default=0)

    def _sweep(self) -> None:
        """Remove what processes that were killed while writing left behind: it was never used."""
        for path in self._folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    def _compare(self, about: dict[str, str]) -> None:
        path = self._folder / _ABOUT
        if not path.exists():
            if any(self._folder.glob("release-*")):
                raise CheckpointError(f"checkpoint {self._folder} has releases but no {_ABOUT}")
            write_durably(path, json.dumps(about, indent=1).encode(), owner_only=True)
            return
        _refuse_other(self._folder, about)


def check_beforehand(folder: str | os.PathLike[str], about: Mapping[str, str]) -> None:
    """Refuse the checkpoint of another fit by what is known of this one before data is read."""
    try:
        there = (Path(folder) / _ABOUT).exists()
        if there:
            _refuse_other(Path(folder), about)
    except (OSError, ValueError):
        return  # a journal in this folder will say what is wrong with it


def _refuse_other(folder: Path, about: Mapping[str, str]) -> None:
    """Refuse a folder that some part of the description of a fit is not the same in."""
    path = folder / _ABOUT
    try:
        found = json.loads(path.read_bytes())
        other = sorted(part for part in about if found.get(part) != about[part])
    except UNSOUND:
        raise CheckpointError(f"checkpoint file {path} is damaged; {_ANEW}") from None
    if other:
        raise CheckpointError(
            f"checkpoint {folder} belongs to another fit: it differs in {', '.join(other)}; give "
            "another folder, or the same ratings, settings and budget"
        )


def _encode(entry: Entry, values: NDArray[np.float64]) -> bytes:
    facts = json.dumps([entry.name, entry.sensitivity, entry.noise_sd, _checksum(values)])
    return to_bytes({"values": values}, metadata={"tacit": facts})


def _decode(content: bytes, entry: Entry) -> NDArray[np.float64]:
    values: NDArray[np.float64] = from_bytes(content)["values"]
    size = int.from_bytes(content[:8], "little")
    *written, checksum = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["tacit"])
    if checksum != _checksum(values):
        raise ValueError("checksum")
    if written != [entry.name, entry.sensitivity, entry.noise_sd]:
        raise ValueError("another release")
    return values


def _checksum(values: NDArray[np.float64]) -> str:
    """A fingerprint of the type, the shape and the bytes of a release."""
    return hashlib.sha256(f"{values.dtype}{values.shape}".encode() + values.tobytes()).hexdigest()


def _unusable(folder: Path, error: OSError) -> CheckpointError:
    reason = reason_of(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        reason = "it is a file, or in one; give a folder"
    return CheckpointError(
        f"checkpoint {folder} cannot be used: {reason}; nothing was released that is not on disk"
    )
