"""The reservation of a fit in a book: made before data is read, closed with its certificate."""

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from tacit._atomic import make_folder, reason_of, write_durably
from tacit._damaged import MALFORMED, UNSOUND
from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.certificate import Certificate
from tacit.accounting.ledger import Entry, Ledger
from tacit.accounting.promise import rounded_up, shown
from tacit.accounting.release import ReleaseKind
from tacit.book.account import Account, FitRecord, Terms, total_cost
from tacit.book.memory import Remember, digest_of, read_memory, write_memory
from tacit.errors import BookError, CheckpointError, PrivacyError

_BOUND = "book.json"
_EARLIER = ReleaseKind.EARLIER_REFITS  # paid for when they were made
_ANEW = "give another folder, which is a fit of its own and is paid for"


class Keeper(Protocol):
    """What a reservation needs of the book that it is in."""

    terms: Terms

    def add(self, what: Mapping[str, Any], memory: Remember | None = None) -> None:
        """Add an event, and what is remembered with it."""
        ...


class Reservation:
    """What one fit may spend; as a context it is given back what an error leaves unspent.

    - A fit that ends is closed at what its releases cost.
    - A fit that an error stops before a release is cancelled, and after one counts with the
      releases that were made: they were written down before their noise was drawn. With a
      checkpoint nothing is given back: the same call goes on, and pays nothing more.
    - A process that is killed can tell nobody: all that it reserved stays spent, unless it had a
      checkpoint and is started again.
    """

    def __init__(self, book: Keeper, record: FitRecord, begun: Mapping[str, bytes]) -> None:
        """Take a reservation of a book; `begun` is what refits remembered when it was made."""
        self.book, self.record, self.begun = book, record, begun
        self.budget = PrivacyBudget(record.epsilon, record.delta, book.terms.neighbours)
        self._ledger: Ledger | None = None
        self._ended = False
        self.memory: Remember | None = None  # what a refit has to remember

    @property
    def id(self) -> str:
        """The random name of this fit in the book."""
        return self.record.id

    def __enter__(self) -> "Reservation":
        """Go on to the fit."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Settle a fit that has not come to its end."""
        if not self._ended and not self.record.checkpoint:
            quiet = suppress(BookError) if error is not None else nullcontext()
            with quiet:  # what cannot be written down stays paid in full
                self.stop()

    def watch(
        self, ledger: Ledger, progress: Callable[[int, int], None] | None
    ) -> Callable[[int, int], None]:
        """Return a progress function that writes every release into the book as it is made."""
        self._ledger = ledger

        def release_made(number: int, planned: int) -> None:
            self._record(number, ledger.entries[number - 1])
            if progress is not None:
                progress(number, planned)

        return release_made

    def _record(self, number: int, entry: Entry) -> None:
        """Write a release down; one that was written before must be the same."""
        if number <= len(self.record.releases):
            if self.record.releases[number - 1] != entry:
                raise PrivacyError(
                    f"release {number} of this fit is in the book as another one; the checkpoint "
                    f"is not that of the reservation; {_ANEW}"
                )
            return
        self._add(
            {
                "event": "released",
                "number": number,
                "drawn": uuid.uuid4().hex,  # tells copies of a release from two that are alike
                "release": entry.release.to_json(),
                "sensitivity": entry.sensitivity,
                "noise_sd": entry.noise_sd,
                "mu": entry.mu,
            }
        )
        self.record.releases.append(entry)

    def close(self, certificate: Certificate) -> None:
        """End the fit at what its releases cost; remember what refits may use."""
        self._ended = True
        digest = certificate_digest(certificate)
        if self.record.state == "closed":  # the same fit, read back from its checkpoint
            if self.record.certificate != digest:
                raise PrivacyError("this checkpoint gave another model than the book knows of")
            return
        made = [e for e in certificate.releases if e.release.kind is not _EARLIER]
        cost = total_cost(made)
        self._add({"event": "closed", "cost": cost, "certificate": digest}, self.memory)

    def stop(self) -> None:
        """End a fit that an error stopped, at the cost of what was drawn."""
        self._ended = True
        drawn = self._ledger.entries if self._ledger is not None else ()
        if drawn:
            self._add({"event": "stopped", "cost": total_cost(drawn)})
        else:
            self._add({"event": "cancelled"})

    def public_line(self) -> str:
        """Say, for the certificate, which share of which lifetime budget this fit may spend."""
        terms, (number, digest) = self.book.terms, self.record.event
        part = 100 * self.record.reserved / terms.limit
        return (
            f"{self.record.kind} of the book {terms.population}, event {number} ({digest[:16]}): "
            f"up to {rounded_up(part, 3)} % of the squared cost that epsilon = "
            f"{shown(terms.epsilon)}, delta = {shown(terms.delta)} "
            f"({terms.neighbours.value}) allows all fits together"
        )

    def _add(self, what: dict[str, Any], memory: Remember | None = None) -> None:
        self.book.add({**what, "fit": self.id}, memory)


def certificate_digest(certificate: Certificate) -> str:
    """Return the SHA-256 of a certificate's machine form."""
    text = json.dumps(certificate.to_json(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def token_of(
    checkpoint: str | PathLike[str], account: Account, budget: PrivacyBudget, kind: str
) -> FitRecord | None:
    """Return the fit of this book that a checkpoint folder belongs to, if it belongs to one."""
    folder = Path(checkpoint)
    try:
        token = json.loads((folder / _BOUND).read_bytes()[:4096])
        population, name = token["population"], token["fit"]
    except FileNotFoundError:
        if any(folder.glob("release-*")):
            raise CheckpointError(
                f"checkpoint {folder} is of a fit without this book; {_ANEW}"
            ) from None
        return None
    except (OSError, *MALFORMED):
        raise CheckpointError(f"checkpoint {folder}: {_BOUND} cannot be read; {_ANEW}") from None
    if population != account.terms.population:
        raise CheckpointError(f"checkpoint {folder} belongs to another book; {_ANEW}")
    record = account.fit(name)
    if record is None:  # killed after the token was written and before the book was
        if any(folder.glob("release-*")):
            raise CheckpointError(f"checkpoint {folder} has releases that the book lacks; {_ANEW}")
        return None
    _check_resumed(folder, record, budget, kind)
    return record


def begun_with(
    checkpoint: str | PathLike[str], record: FitRecord, remembered: str
) -> dict[str, bytes]:
    """Return what the refit of a checkpoint began with: what the book knows by this fingerprint."""
    if record.kind != "refit":
        return {}
    folder = Path(checkpoint)
    try:
        begun = read_memory(folder)
        if digest_of(begun) != remembered:
            raise ValueError
    except (OSError, *UNSOUND):
        raise CheckpointError(
            f"checkpoint {folder}: what its refit began with is missing or damaged; {_ANEW}"
        ) from None
    return begun


def _check_resumed(folder: Path, record: FitRecord, budget: PrivacyBudget, kind: str) -> None:
    if record.kind != kind:
        raise CheckpointError(
            f"checkpoint {folder} is of a {record.kind} of this book, and not of a {kind}; {_ANEW}"
        )
    if (record.epsilon, record.delta) != (budget.epsilon, budget.delta):
        raise CheckpointError(
            f"checkpoint {folder} is of a fit at epsilon {record.epsilon:g}, delta "
            f"{record.delta:g}; give these, or another folder"
        )
    if record.state in ("stopped", "cancelled"):
        raise CheckpointError(f"checkpoint {folder} is of a fit that has ended; {_ANEW}")
    files = sum(1 for _ in folder.glob("release-*.safetensors"))
    if files < len(record.releases):
        raise CheckpointError(
            f"checkpoint {folder} has {files} of the {len(record.releases)} releases that the book "
            f"knows of: to draw them again would be a second release; {_ANEW}"
        )


def bind(
    checkpoint: str | PathLike[str], population: str, fit: str, begun: Mapping[str, bytes]
) -> None:
    """Bind a checkpoint folder to a fit, and keep what it begins with, before the book has it."""
    folder = Path(checkpoint)
    content = json.dumps({"population": population, "fit": fit}).encode()
    try:
        make_folder(folder)
        write_memory(folder, begun)
        write_durably(folder / _BOUND, content, owner_only=True)
    except OSError as error:
        raise CheckpointError(f"checkpoint {folder} cannot be used: {reason_of(error)}") from None
