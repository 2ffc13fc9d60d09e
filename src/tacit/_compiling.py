"""Says that loops are being compiled, once, when that happens: the first time on a machine.

What is compiled is kept beside the package, or in the user's cache folder where that cannot be
written (numba's NUMBA_CACHE_DIR says where else), so that a second process does not wait.
"""

import logging
from collections.abc import Callable

__all__ = ["TEXT", "listen", "tell_with"]

TEXT = "compiling loops for this machine; this happens once and takes up to a minute"

_tell: list[Callable[[str], object]] = [logging.getLogger("tacit").info]
_heard: list[object] = []


def tell_with(tell: Callable[[str], object]) -> None:
    """Set what is called with `TEXT` when this process compiles its first loop."""
    _tell[0] = tell


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
        _heard.append(Heard())
        event.register("numba:compile", _heard[0])  # type: ignore[no-untyped-call]
