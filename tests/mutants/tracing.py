"""Which lines of the package a test runs."""

import sys
import threading
from types import CodeType, FrameType
from typing import Any

from tests.mutants.mutant import SOURCE

PATIENCE = 5000  # lines that a function runs without a new one until it is no longer watched


class Tracer:
    """Notes which lines of the package run, in all threads.

    A function that has run many lines without a new one is left alone, since watching a loop of
    plain Python takes longer than running it.
    """

    def __init__(self) -> None:
        self.lines: dict[str, set[int]] = {}
        self._prefix = f"{SOURCE}/"
        self._patience: dict[CodeType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        name = code.co_filename
        if not name.startswith(self._prefix) or self._patience.get(code) == 0:
            return None
        seen = self.lines.setdefault(name[len(self._prefix) :], set())
        patience = self._patience

        def each_line(frame: FrameType, event: str, _: Any) -> Any:
            if frame.f_lineno not in seen:
                seen.add(frame.f_lineno)
                patience[code] = PATIENCE
            elif patience.get(code, PATIENCE) == 0:
                frame.f_trace_lines = False
            else:
                patience[code] = patience.get(code, PATIENCE) - 1
            return each_line

        return each_line(frame, event, _)

    def start(self) -> None:
        threading.settrace(self)
        sys.settrace(self)

    def stop(self) -> None:
        threading.settrace(None)  # type: ignore[arg-type]
        sys.settrace(None)
