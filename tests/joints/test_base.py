"""The joint interface: a user's joint, defaults, rate matrix."""

from dataclasses import dataclass

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import check_dynamics_of_chain
from support.special_joints import Driven

from kinetree.algorithms import rnea
from kinetree.joints import (
    REPRESENTATIVES,
    AbstractJoint,
    Free,
    Planar,
    Revolute,
    Spherical,
    check_joint,
)
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial import Force, Motion, xlt


@dataclass(frozen=True)
class Parabola(AbstractJoint):
    """The example of the module docstring: a pin in a parabolic slot."""

    nq = nv = 1
    constant_subspace = False

    def jcalc(self, q, qd):
        x, zero = q[0], np.zeros((3, 1), dtype=int)
        S = Motion(zero, np.array([[1], [2 * x], [0]]))
        c_J = Motion(zero[:, 0], np.array([0, 2 * qd[0] * qd[0], 0]))
        return xlt(x, x * x, 0), S, S @ qd, c_J

    def constraint_subspace(self, q):
        columns = np.zeros((6, 5), dtype=q.dtype)
        columns[[0, 1, 2, 5], [0, 1, 2, 3]] = 1
        columns[3:5, 4] = -2 * q[0], 1
        return Force.from_array(columns)

    def coordinates(self, X):
        return X.r[:1]


@pytest.mark.covers("RBDA 4.6", "6-D Guide 2: Joint Models", by=AbstractJoint)
def test_joint_of_a_user_keeps_the_contract(rng):
    check_joint(Parabola(), rng)


def test_joint_of_a_user_runs_in_the_algorithms_unchanged(rng):
    check_dynamics_of_chain([Revolute("y"), Parabola(), Spherical(), Parabola(), Free()], rng)


def test_bead_on_a_parabolic_wire_obeys_its_textbook_equation(rng):
    """(1 + 4x²) m x'' + 4 m x x'² + 2 m g x = tau, gravity along -y."""
    m, g = 0.7, 9.81
    bead = random_inertia(rng)
    model = (
        ModelBuilder(gravity=(0, -g, 0))
        .body("bead", joint=Parabola(), inertia=bead * (m / bead.mass))
        .build()
    )
    x, xd, xdd = rng.standard_normal(3)
    tau = rnea.inverse_dynamics(model, np.array([x]), np.array([xd]), np.array([xdd]))
    assert_close(tau[0], m * ((1 + 4 * x * x) * xdd + 4 * x * xd * xd + 2 * g * x), ulps=20)


@pytest.mark.covers("RBDA 3.1", by=AbstractJoint.rate_matrix)
@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=str)
def test_rate_matrix_times_velocity_is_the_configuration_rate(joint, rng):
    q, qd = joint.random(rng), rng.standard_normal(joint.nv)
    Q = joint.rate_matrix(q)
    assert Q.shape == (joint.nq, joint.nv)
    assert_close(Q @ qd, joint.configuration_rate(q, qd), ulps=20)


@pytest.mark.covers("RBDA 3.1", by=AbstractJoint.configuration_rate)
@pytest.mark.parametrize("joint", [Free(), Free("child"), Planar(), Spherical()], ids=str)
def test_more_position_than_velocity_variables_or_other_ones(joint, rng):
    q = joint.random(rng)
    assert not joint.rates_are_velocities
    assert np.linalg.matrix_rank(joint.rate_matrix(q)) == joint.nv <= joint.nq


def test_joints_do_not_depend_on_time_by_default():
    joint = Revolute("z")
    assert joint.at(3.0) is joint


def test_no_singularity_unless_a_joint_defines_one(rng):
    assert Spherical().singularity(Spherical().random(rng)) == 1


class Steady(Driven):
    """Turns at a constant rate about one axis."""

    def jcalc(self, q, qd):
        X, S, _, _ = super().jcalc(q, qd)
        return X, S, Motion((0.0, 0.0, 1.0), np.zeros(3)), Motion.zero()


def test_a_joint_with_any_velocity_at_rest_moves_by_itself():
    assert AbstractJoint.moves_by_itself.fget(Steady(0.0))
    assert AbstractJoint.moves_by_itself.fget(Driven(0.3))
    assert not AbstractJoint.moves_by_itself.fget(Revolute("z"))
