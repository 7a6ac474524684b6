"""Motions that are shown and need not be simulated."""

import numpy as np

import kinetree as kt

DOUBLE = kt.samples.double_pendulum()


def moving(**options):
    """Three states of a double pendulum."""
    t = np.array([0.0, 0.5, 1.0])
    q, qd = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), np.full((3, 2), 0.4)
    zero = np.zeros(3)
    return kt.Trajectory(DOUBLE, t, q, qd, 10 * q, zero, zero, zero, **options)
