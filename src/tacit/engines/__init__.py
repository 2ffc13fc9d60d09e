"""Engines hold the rows and sum them: threads, a store, a cluster; base.py is the protocol."""

from tacit.engines.base import Engine
from tacit.engines.ray import Ray
from tacit.engines.stored import StoreEngine
from tacit.engines.threads import ThreadEngine

__all__ = ["Engine", "Ray", "StoreEngine", "ThreadEngine"]
