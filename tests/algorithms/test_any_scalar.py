"""One text for every kind of number: each algorithm on mpmath numbers gives the float result."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import random_state

from kinetree.algorithms import centroidal, coriolis, crba, energy, jacobians, rnea
from kinetree.joints import Fixed, Prismatic, Revolute
from kinetree.textbook import closed_form, crba_variants, rnea_3d, rnea_absolute, stacked

FRAME_FUNCTIONS = {
    "jacobian": lambda m, q, qd, qdd, where: jacobians.frame_jacobian(m, q, *where),
    "jacobian_rate": lambda m, q, qd, qdd, where: jacobians.frame_jacobian_rate(m, q, qd, *where),
    "velocity": lambda m, q, qd, qdd, where: jacobians.frame_velocity(m, q, qd, *where),
    "acceleration": lambda m, *state: jacobians.frame_acceleration(m, *state[:3], *state[3]),
    "pose": lambda m, q, qd, qdd, where: jacobians.frame_pose(m, q, where[0]),
}
FUNCTIONS = {
    "rnea": lambda m, q, qd, qdd: rnea.inverse_dynamics(m, q, qd, qdd),
    "rnea_absolute": lambda m, q, qd, qdd: rnea_absolute.inverse_dynamics(m, q, qd, qdd),
    "crba": lambda m, q, qd, qdd: crba.joint_space_inertia(m, q),
    "crba forward": lambda m, q, qd, qdd: crba.forward_dynamics(m, q, qd, qdd),
    "definition": lambda m, q, qd, qdd: crba_variants.from_definition(m, q),
    "jacobian sum": lambda m, q, qd, qdd: crba_variants.from_jacobians(m, q),
    "base coordinates": lambda m, q, qd, qdd: crba_variants.from_base_coordinates(m, q),
    "unit accelerations": lambda m, q, qd, qdd: crba_variants.from_unit_accelerations(m, q),
    "column": lambda m, q, qd, qdd: crba_variants.column(m, q, m.nv - 1).tau,
    "coriolis": lambda m, q, qd, qdd: coriolis.coriolis_matrix(m, q, qd),
    "christoffel": lambda m, q, qd, qdd: coriolis.christoffel(m, q),
    "closed form": lambda m, q, qd, qdd: closed_form.velocity_coefficients(m, q),
    "stacked inertia": lambda m, q, qd, qdd: stacked.joint_space_inertia(m, q),
    "stacked coriolis": lambda m, q, qd, qdd: stacked.coriolis_force(m, q, qd),
    "stacked gravity": lambda m, q, qd, qdd: stacked.gravity_force(m, q),
    "energy": lambda m, q, qd, qdd: energy.total_energy(m, q, qd),
    "momentum": lambda m, q, qd, qdd: centroidal.total_momentum(m, q, qd),
    "mass centre": lambda m, q, qd, qdd: centroidal.center_of_mass(m, q),
}


def exact(x):
    return np.array([mpmath.mpf(float(value)) for value in x], dtype=object)


def compare(function, m, *state, condition=1.0):
    expected = np.asarray(function(m, *state))
    with mpmath.workdps(30):
        result = np.asarray(function(m, *map(exact, state)))
    assert result.dtype == object
    scale = 100 + np.max(np.abs(expected))
    assert_close(result.astype(float), expected, scale=scale, condition=condition)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_state(name, rng):
    m, q, qd, qdd, _ = random_state(rng, bodies=5)
    solves = name == "crba forward"
    condition = np.linalg.cond(crba.joint_space_inertia(m, q)) if solves else 1.0
    compare(FUNCTIONS[name], m, q, qd, qdd, condition=condition)


@pytest.mark.parametrize("function", FRAME_FUNCTIONS.values(), ids=FRAME_FUNCTIONS)
@pytest.mark.parametrize("reference", ["world", "body", "aligned"])
def test_functions_of_frames(function, reference, rng):
    m, q, qd, qdd, _ = random_state(rng, bodies=5)
    where = (m.frame("body5"), reference)
    compare(lambda *state: function(*state, where), m, q, qd, qdd)


def test_the_3d_algorithm(rng):
    m, q, qd, qdd, _ = random_state(rng, joints=[Revolute("x"), Prismatic("y"), Fixed()])
    compare(rnea_3d.inverse_dynamics, m, q, qd, qdd)
