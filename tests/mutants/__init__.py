"""Mutants: the code, broken as a tired engineer would break it, and the tests that notice."""
