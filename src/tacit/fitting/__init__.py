"""Fits: an algorithm, a budget and an engine, brought together."""
