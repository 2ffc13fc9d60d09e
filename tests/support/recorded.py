"""The noise that a fit draws, kept for a second calculation that adds the same."""

import numpy as np
import pytest

from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.sampler import NoiseSource, floor_normals


def recorded_noise(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Keep a copy of the noise of every release, flat and in units of its sd, in order."""
    drawn: list[np.ndarray] = []

    def draw(source: NoiseSource, size: int, bits: int) -> np.ndarray:
        units = floor_normals(source, size, bits)
        drawn.append(units / 2.0**bits)
        return units

    monkeypatch.setattr(mechanism_module, "floor_normals", draw)
    return drawn
