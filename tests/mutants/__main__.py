"""Writes docs/privacy/mutants.md: python -m tests.mutants."""

from tests.mutants.table import PAGE, page

PAGE.parent.mkdir(exist_ok=True)
PAGE.write_text(page())
