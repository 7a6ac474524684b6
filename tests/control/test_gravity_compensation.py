"""A mechanism that is held against gravity."""

import numpy as np
import pytest
from support.motions import simulate

import kinetree as kt
from kinetree.control import GravityCompensation


def test_it_stays_where_it_is_let_go(rng):
    m = kt.samples.arm()
    q0 = m.random_configuration(rng)
    q, _ = simulate(m, GravityCompensation(m), q0, np.zeros(m.nv), 0.2, 0.02)
    assert np.abs(q[-1] - q0).max() < 1e-10


def test_kinetic_energy_stays_and_with_damping_dies(rng):
    m = kt.samples.scara()
    q0, qd0 = m.random_configuration(rng), rng.standard_normal(m.nv)
    energy = {}
    for damping in (0.0, [5.0, 5.0, 5.0, 0.005]):
        hold = GravityCompensation(m, damping)
        energy[hold] = kt.kinetic_energy(m, *simulate(m, hold, q0, qd0, 1.0, 0.005))
    free, damped = energy.values()
    assert np.abs(free / free[0] - 1).max() < 1e-6
    assert np.all(np.diff(damped) < 0)
    assert damped[-1] < 0.1 * damped[0]


def test_batches_and_errors(rng):
    m = kt.samples.scara()
    hold = GravityCompensation(m, np.eye(4))
    q, qd = rng.standard_normal((2, 7, 4))
    assert np.allclose(hold(0.0, q, qd), kt.gravity_force(m, q) - qd)
    with pytest.raises(kt.ShapeError, match=r"damping must be a number, \(4,\) or \(4, 4\), got"):
        GravityCompensation(m, np.ones(3))
