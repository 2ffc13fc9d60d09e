"""The theory behind the default method, and experiments that can be repeated."""
