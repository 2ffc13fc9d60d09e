"""Experiments as small TOML files: run, kept, resumed, tabled and drawn. NOT PRIVATE."""
