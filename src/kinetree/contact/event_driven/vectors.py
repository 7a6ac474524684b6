"""Products of many vectors at once, quicker than NumPy's for few of them."""

import numpy as np


def dot(a, b):
    """Scalar products of arrays of 3-vectors, (...,)."""
    return np.einsum("...i,...i->...", a, b)


def cross(a, b):
    """Cross products of arrays of 3-vectors, faster than NumPy's for few vectors."""
    i, j = [1, 2, 0], [2, 0, 1]
    return a[..., i] * b[..., j] - a[..., j] * b[..., i]


def turn(R, vectors):
    """Matrix-vector products ``R x`` of matrices (..., 3, 3) and vectors (..., 3)."""
    return np.einsum("...ij,...j->...i", R, vectors)


def unit(a, least=1e-12):
    """Unit vectors and lengths (..., 1) of vectors; zero vectors where shorter than ``least``."""
    length = np.sqrt(np.maximum(dot(a, a), least * least))[..., None]
    return a / length, length


def across(a, n):
    """Components of vectors orthogonal to unit vectors ``n``."""
    return a - n * dot(a, n)[..., None]


def velocity_at(motions, points):
    """Linear velocities (..., 3) of spatial motions (..., 6) at points."""
    return motions[..., 3:] + cross(motions[..., :3], points)
