"""Reads mutants in a process of its own: `python -m tests.fuzz.child SUBJECT FIRST LAST BYTES`.

For each it writes one line of JSON, before it is read and after. So the process that started this
one knows which mutant it was that ended, hung or filled this process.
"""

import json
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.subjects import SECRETS, SUBJECTS, TWINS, Sound, Target

Say = Callable[..., None]
"""Writes a line of facts."""


def outcome(subject: Target, path: Path) -> str:
    """What comes of reading a file: "read", the name of an expected error, or what is wrong."""
    try:
        subject.read(path)
    except subject.errors as error:
        chain = [error, error.__cause__, error.__context__]
        shown = " ".join(str(one) for one in chain if one is not None)
        first = path.read_bytes().split(b"\n")[0]  # names of columns may be told
        named = first.replace(b"\0", b"")  # also in UTF-16
        told = [secret for secret in SECRETS if secret in shown and secret.encode() not in named]
        return f"WRONG: a message tells {told}" if told else type(error).__name__
    except BaseException as error:  # that is what is looked for
        return f"WRONG: {type(error).__name__}: {str(error)[:300]}"
    return "read"


@contextmanager
def channel() -> Iterator[Say]:
    """The standard output, which what is tested does not get."""
    with os.fdopen(os.dup(1), "w") as file:
        os.dup2(2, 1)
        yield lambda **facts: print(json.dumps(facts), file=file, flush=True)


def limit_memory(room: int) -> None:
    """Let this process grow by so many bytes and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def peak_memory() -> int:
    """The most memory this process had, in KiB; ru_maxrss begins with that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main(name: str, first: int, last: int, room: int) -> None:
    warnings.simplefilter("ignore")
    subject = (SUBJECTS | TWINS)[name]
    with TemporaryDirectory() as folder, channel() as say:
        sound = subject.sound()
        for file in sound:  # everything is loaded and compiled before memory is limited
            (Path(folder) / file.name).write_bytes(file.content)
            say(sound=file.name, outcome=outcome(subject, Path(folder) / file.name))
        limit_memory(room)
        for number in range(first, last):
            _one(subject, sound[number % len(sound)], number, Path(folder), say)
        say(peak=peak_memory())


def _one(subject: Target, sound: Sound, number: int, folder: Path, say: Say) -> None:
    path = folder / sound.name
    path.write_bytes(sound.mutant(number))
    say(begins=number)
    say(number=number, outcome=outcome(subject, path))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
