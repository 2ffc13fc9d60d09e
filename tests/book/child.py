"""A process that writes a book and may be ended in the middle of it.

    python -m tests.book.child FOLDER LIMIT [full]
    python -m tests.book.child --fit FOLDER NUMBER

The first form reserves and cancels a fit, where no file may pass LIMIT bytes: the system writes as
much as fits, and at the next write ends the process (SIGXFSZ); with `full` it gives an error
instead, as a full disk does. The second fits with a checkpoint, and kills itself (SIGKILL) when the
release of this number is on disk and not yet in the book.
"""

import os
import resource
import signal
import sys
from pathlib import Path

import tacit
from tacit.accounting.budget import PrivacyBudget

EPSILON = 0.1


def reserve(folder: Path, limit: int, full: bool) -> None:
    book = tacit.Book(folder / "people.book")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN if full else signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    with book.reserve(PrivacyBudget(EPSILON)):
        pass


def fit(folder: Path, number: int) -> None:
    from tacit.book.reservation import Reservation
    from tests.conftest import ratings_for

    record = Reservation._record

    def killed(self: Reservation, made: int, entry: object) -> None:
        if made == number:
            os.kill(os.getpid(), signal.SIGKILL)
        record(self, made, entry)  # type: ignore[arg-type]

    Reservation._record = killed  # type: ignore[method-assign]
    tacit.fit(
        ratings_for(0),
        tacit.FrankWolfe(rounds=4),
        epsilon=EPSILON,
        book=folder / "people.book",
        checkpoint=folder / "checkpoint",
    )


if __name__ == "__main__" and sys.argv[1] == "--fit":
    fit(Path(sys.argv[2]), int(sys.argv[3]))
elif __name__ == "__main__":
    try:
        reserve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] == ["full"])
    except tacit.BookError as error:
        sys.exit(f"{type(error).__name__}: {error}")
