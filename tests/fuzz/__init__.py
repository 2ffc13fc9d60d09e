"""Hostile input: damaged files of every kind that tacit reads."""
