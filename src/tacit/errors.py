"""Every exception and warning that tacit raises on purpose.

    TacitError
    ├── ConfigError          a parameter that cannot be used as given
    │   ├── MissingPackage   an optional package that is not installed
    │   └── PositionError    a position in the catalogue that does not exist
    ├── DataError            ratings, a catalogue or own ratings that cannot be used as given
    │   └── UnknownItemsError  ratings of items that are not in the catalogue
    ├── PrivacyError         something that would break the promise
    │   ├── BudgetExceeded   a release that costs more than what is left
    │   │   └── LifetimeExceeded  a fit that would pass the limit of its lifetime book
    │   └── RefusedError     what another library offers, and no promise could be kept with
    ├── BookError            a lifetime book that is damaged, an old copy, or in use
    ├── CheckpointError      a checkpoint folder of another fit, or a damaged one
    ├── ModelFileError       a file that is not a valid model
    ├── SignatureError       no signature, or not one of this file by this key
    └── EngineError          the machine cannot do it: memory, threads, too many users

    TacitWarning
    ├── PrivacyLeakWarning   a setting that looks as if it had been computed from the ratings
    ├── UnpaidFitsWarning    one certificate for each fit, and several fits, as in cross-validation
    └── UnknownItemsWarning  own ratings, or wanted items, outside the catalogue

A message names the parameter, its value, what was expected and what to do.
It never holds a rating, a user id or a number computed from ratings.
"""

__all__ = [
    "BookError",
    "BudgetExceeded",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "EngineError",
    "LifetimeExceeded",
    "MissingPackage",
    "ModelFileError",
    "PositionError",
    "PrivacyError",
    "PrivacyLeakWarning",
    "RefusedError",
    "SignatureError",
    "TacitError",
    "TacitWarning",
    "UnknownItemsError",
    "UnknownItemsWarning",
    "UnpaidFitsWarning",
]


class TacitError(Exception):
    """The root of all errors of this package."""


class ConfigError(TacitError, ValueError):
    """A parameter has a value that cannot be used."""


class MissingPackage(ConfigError, ImportError):  # noqa: N818 - it reads as a sentence
    """An optional package is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        """Say what needs which package, and what installs it."""
        super().__init__(f"{what} needs {package}; install it with: pip install 'tacit[{extra}]'")


class PositionError(ConfigError, IndexError):
    """A position in the catalogue does not exist."""


class DataError(TacitError, ValueError):
    """Ratings, a catalogue or own ratings cannot be used as they are."""


class UnknownItemsError(DataError):
    """Ratings are of items that are not in the catalogue, and were not to be left out.

    Attributes:
        rows: how many rows of the input there are of such items.
    """

    def __init__(self, column: str, rows: int) -> None:
        """Say how many rows are of other items, and what to do."""
        super().__init__(
            f"column {column!r}: {rows} row{'' if rows == 1 else 's'} with an item that is not in "
            "the catalogue; give a catalogue that lists every rated item, or "
            "unknown_items='drop' to leave such ratings out (on the command line: "
            "--unknown-items drop)"
        )
        self.rows = rows


class PrivacyError(TacitError):
    """Going on would break the privacy promise."""


class BudgetExceeded(PrivacyError):  # noqa: N818 - it reads as a sentence
    """A release would cost more than what is left of the budget.

    Attributes:
        asked: cost of the refused release, as a squared mu.
        left: what the budget still had, as a squared mu.
    """

    def __init__(self, name: str, *, asked: float, left: float) -> None:
        """Say which release was refused, what it asked for and what was left."""
        super().__init__(
            f"release {name!r} asks for mu^2 = {asked:.6g} and {left:.6g} is left of the budget; "
            "nothing was drawn. Give a larger epsilon, plan fewer releases or smaller shares, "
            "or use accounting='exact'."
        )
        self.asked = asked
        self.left = left


class LifetimeExceeded(BudgetExceeded):
    """A fit would pass what its book allows in a lifetime, or in a year.

    Attributes:
        asked: cost of the refused fit, as a squared mu.
        left: what the book still had, as a squared mu.
    """

    def __init__(self, message: str, *, asked: float, left: float) -> None:
        """Say what was asked for, what is left and what that would buy."""
        PrivacyError.__init__(self, message)
        self.asked = asked
        self.left = left


class BookError(TacitError):
    """A lifetime book cannot be used: damaged, an old copy, of another kind, or in use."""


class RefusedError(PrivacyError, NotImplementedError):
    """Another library offers this; here it would break the promise, or there is nothing to do."""


class CheckpointError(TacitError):
    """A checkpoint belongs to another fit, is in use, or is damaged."""


class ModelFileError(TacitError, ValueError):
    """A file is not a model that this version can read."""


class SignatureError(TacitError, ValueError):
    """A signature is missing, damaged, of another file, or by another key."""


class EngineError(TacitError):
    """The engine cannot carry out the work on this machine."""


class TacitWarning(UserWarning):
    """The root of all warnings of this package."""


class PrivacyLeakWarning(TacitWarning):
    """Something that is taken as public looks as if it had been computed from the ratings."""


class UnknownItemsWarning(TacitWarning):
    """Some own ratings or wanted items are not in the catalogue and were left out."""


class UnpaidFitsWarning(TacitWarning):
    """Several fits of the same people's ratings: each has a certificate, none is of all of them."""
