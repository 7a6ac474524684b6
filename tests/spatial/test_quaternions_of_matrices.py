"""Quaternions of rotation matrices, many at once, against the rotation that they stand for."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.spatial.rotation import quaternions


def matrices(p):
    """Rotation matrices of unit quaternions (..., 4), by ``v + 2 w (u × v) + 2 u × (u × v)``."""
    w, u = p[..., :1, None], np.cross(np.eye(3), p[..., None, 1:])  # rows e_i × u: its matrix
    return np.eye(3) + 2 * w * u + 2 * u @ u


@pytest.mark.parametrize("largest", range(4))
def test_whichever_component_is_the_largest(largest, rng):
    """Turns of all sizes: each of the four formulas is that of some."""
    p = rng.normal(size=(50, 4))
    p[:, largest] = 1.0 + np.max(np.abs(p), axis=1)
    p /= np.linalg.norm(p, axis=1)[:, None]
    found = quaternions(matrices(p))
    found *= np.sign(np.sum(found * p, axis=1))[:, None]
    assert_close(found, p, ulps=16)


def test_half_turns_and_none():
    """Two of three diagonal entries are equal there, or all."""
    p = np.array([np.eye(4)[k] for k in range(4)] + [[0, 0.6, 0.8, 0], [0, 0, -0.6, 0.8]])
    found = quaternions(matrices(p).reshape(2, 3, 3, 3)).reshape(6, 4)
    assert_close(np.abs(np.sum(found * p, axis=1)), np.ones(6), ulps=16)
    assert_close(matrices(found), matrices(p), ulps=16)
