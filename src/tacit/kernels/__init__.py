"""Numba loops over CSR arrays: arrays in, arrays out. They know nothing of privacy."""
