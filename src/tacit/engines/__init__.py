"""Where rows live and who sums over them: here, in this process, by threads."""

from tacit.engines.threads import ThreadEngine

__all__ = ["ThreadEngine"]
