"""Where rows live and who sums over them: threads of this process; base.py is the protocol."""

from tacit.engines.base import Engine
from tacit.engines.threads import ThreadEngine

__all__ = ["Engine", "ThreadEngine"]
