"""Crashes and faults, in real processes."""
