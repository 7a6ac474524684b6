"""Regressors of real robots, here and in Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
from support.example_robots import ROBOTS, twins

import kinetree as kt
from kinetree.identification import inertial_parameters
from kinetree.interop import pinocchio as P


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("name", ROBOTS)
def test_regressors(name, floating, rng):
    ours, theirs = twins(ROBOTS[name], floating)
    data = theirs.createData()
    q, qd, qdd = ours.random_configuration(rng), *rng.standard_normal((2, ours.nv))
    x, v = P.to_q(ours, theirs, q), P.to_v(ours, theirs, q, qd)
    a = P.to_a(ours, theirs, q, qd, qdd)

    Y = pin.computeJointTorqueRegressor(theirs, data, x, v, a)
    _agree(
        kt.regressor(ours, q, qd, qdd), _columns(ours, theirs, P.from_tau(ours, theirs, x, Y.T).T)
    )
    y = pin.computeKineticEnergyRegressor(theirs, data, x, v)
    _agree(kt.kinetic_energy_regressor(ours, q, qd), _columns(ours, theirs, y[None])[0])
    y = pin.computePotentialEnergyRegressor(theirs, data, x)
    _agree(kt.potential_energy_regressor(ours, q), _columns(ours, theirs, y[None])[0])
    if not floating:  # of a floating base the universe has no part
        p = np.concatenate([I.toDynamicParameters() for I in list(theirs.inertias)[1:]])
        _agree(inertial_parameters(ours), P.from_parameters(ours, theirs, p))


def _columns(ours, theirs, Y):
    """Pinocchio's columns in our order."""
    return np.array([P.from_parameters(ours, theirs, row) for row in Y])


def _agree(actual, expected):
    assert np.max(np.abs(actual - expected)) <= 1e-10 * np.max(np.abs(expected))
