"""Numba loops over CSR arrays: arrays in, arrays out. They know nothing of privacy."""

from tacit._compiling import listen

listen()
