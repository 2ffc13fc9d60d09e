"""Tell the user, once, that loops are being compiled: only the first run on a machine waits.

It is a record at INFO of the logger `tacit`; a program without logging that a person runs by hand
says it on stderr, and the command line in its own way. What is compiled is kept beside the package,
or in the user's cache folder where that cannot be written (numba's NUMBA_CACHE_DIR says where
else), so that a second process does not wait. A service without any such folder keeps it in a
temporary one of its own, and compiles anew each time.

A compiled loop holds the code of the loops that it calls, also of those in other files, and numba
compiles it anew only if its own file has changed. So all of them are forgotten if any file of the
loops is not what it was when they were compiled: or a mended loop would not be used.
"""

import atexit
import contextlib
import hashlib
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

TEXT = (
    "compiling loops for this machine, which takes up to a minute; it happens once for each method "
    "and each kind of request"
)

NOWHERE = (
    "compiled loops cannot be kept, and every process compiles them again: set NUMBA_CACHE_DIR to "
    "a folder that can be written"
)

_LOOPS = Path(__file__).parent / "kernels"
_STAMP = "sources.sha256"

_LOG = logging.getLogger("tacit")


def _log_or_show(text: str) -> None:
    """Log, or write to a person at a terminal or a notebook who has not set up logging."""
    if not _LOG.isEnabledFor(logging.INFO) and (sys.stderr.isatty() or hasattr(sys, "ps1")):
        sys.stderr.write(f"tacit: {text}\n")
    _LOG.info(text)


_tell: list[Callable[[str], object]] = [_log_or_show]
_heard: list[object] = []


def tell_with(tell: Callable[[str], object]) -> None:
    """Set what is called with `TEXT` when this process compiles its first loop."""
    _tell[0] = tell


def tell_again() -> None:
    """Say it again if what begins now has loops to compile: a fit may have compiled others."""
    del _heard[1:]


def listen() -> None:
    """Hear of compilations, from the import of the first loops on."""
    from numba.core import event

    class Heard(event.Listener):
        def on_start(self, event: object) -> None:  # noqa: ARG002
            if len(_heard) == 1:
                _heard.append(True)
                _tell[0](TEXT)

        def on_end(self, event: object) -> None:
            """Nothing is said at the end."""

    if not _heard:
        _keep_somewhere()
        forget_changed(_LOOPS, _kept_in(_LOOPS))
        _heard.append(Heard())
        event.register("numba:compile", _heard[0])  # type: ignore[no-untyped-call]


def _keep_somewhere() -> None:
    """Give numba a folder where it finds none: a loop that is to be kept would be an error."""
    import numba

    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="tacit-loops-")  # nobody else can write to it
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        numba.config.CACHE_DIR = folder  # type: ignore[attr-defined]
        _tell[0](NOWHERE)


def _kept_in(sources: Path) -> Path:
    """Return the folder where numba keeps what it compiles of the files of a folder."""
    import numba

    code = _probe.__code__.replace(co_filename=str(min(sources.glob("*.py"))))
    probe = numba.njit(cache=True)(FunctionType(code, {}))
    return Path(str(probe.stats.cache_path))


def forget_changed(sources: Path, kept: Path) -> None:
    """Remove compiled loops from `kept` if the sources are not those that its stamp is of."""
    digest = hashlib.sha256()
    for path in sorted(sources.glob("*.py")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    stamp = kept / _STAMP
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
    for path in [*kept.glob("*.nbi"), *kept.glob("*.nbc")]:
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # without a stamp the next process compiles anew
        kept.mkdir(parents=True, exist_ok=True)
        stamp.write_text(digest.hexdigest())


def _probe() -> None:
    """Be a function that numba looks for a folder for."""
