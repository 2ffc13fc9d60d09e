"""What a mutant is."""

from dataclasses import dataclass
from pathlib import Path

from tests.mutants.edits import Edit

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tacit"


@dataclass(frozen=True)
class Mutant:
    """A mistake: what it would do to people, the edits that make it, and who must notice.

    Every test of `caught_by` passes on the code as it is and fails on the mutant.
    """

    name: str
    harm: str
    edits: tuple[Edit, ...]
    caught_by: tuple[str, ...]
