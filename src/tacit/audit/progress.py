"""Progress of an audit, as a count of steps. Its people are synthetic."""

from collections.abc import Callable

Tell = Callable[[int, int], None]
"""Called with (steps done, steps in all) of one part."""
Progress = Callable[[str, int, int], None]
"""Called with (part, steps done, steps in all): at the start of a part, and after each step."""


class Steps:
    """The steps of one part; with nobody to tell, counting them does nothing.

    >>> steps = Steps(lambda done, planned: print(f"{done} of {planned}"))
    >>> steps.plan(2)
    0 of 2
    >>> steps.step()
    1 of 2
    """

    def __init__(self, tell: Tell | None = None) -> None:
        """Begin with no steps."""
        self._tell = tell
        self._done = self._planned = 0

    def plan(self, steps: int) -> None:
        """Say how many more steps there will be."""
        self._planned += steps
        self._say()

    def step(self) -> None:
        """Say that one is done."""
        self._done += 1
        self._say()

    def _say(self) -> None:
        if self._tell:
            self._tell(self._done, self._planned)


NO_PROGRESS = Steps()
"""Steps that nobody is told of."""
