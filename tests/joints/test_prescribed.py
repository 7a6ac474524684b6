"""Joints driven by time — RBDA §3.5, §5.3."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba, rnea
from kinetree.errors import JointError
from kinetree.joints import (
    AbstractJoint,
    Cylindrical,
    Fixed,
    Prescribed,
    PrescribedInstant,
    Prismatic,
    RackAndPinion,
    Reversed,
    Revolute,
    Universal,
    check_joint,
)
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Motion, Plucker, rx, ry


def wave(n):
    """Smooth motion of n variables with its derivatives."""
    rate, phase = np.arange(2, 2 + n), np.arange(n) / 3

    def motion(t):
        s, c = np.sin(rate * t + phase), np.cos(rate * t + phase)
        return s, rate * c, -rate * rate * s

    return motion


DRIVEN = [Fixed(), Revolute("z"), RackAndPinion(0.3), Universal("xy"), Cylindrical((1, 2, 3))]


@pytest.mark.covers("RBDA 3.5", by=Prescribed)
@pytest.mark.parametrize("joint", DRIVEN, ids=str)
def test_prescribed_joint_keeps_the_contract_in_time(joint, rng):
    driven = Prescribed(joint, wave(joint.nv))
    check_joint(driven, rng)
    check_joint(Reversed(driven), rng)
    assert driven.at(0.2).constraint_subspace(()).to_array().shape == (6, 6)


def test_motion_whose_rates_are_not_its_derivatives_is_caught():
    driven = Prescribed(Prismatic("x"), lambda t: ([t * t], [t], [1.0]))
    with pytest.raises(JointError, match="check S, sigma and configuration_rate"):
        check_joint(driven)
    driven = Prescribed(Prismatic("x"), lambda t: ([t * t], [2 * t], [1.0]))
    with pytest.raises(JointError, match="c_J is not the rate of v_J"):
        check_joint(driven)


@pytest.mark.covers("RBDA 5.3", "RBDA 3.5", by=(Prescribed, PrescribedInstant))
@pytest.mark.parametrize("joint", DRIVEN, ids=str)
def test_tree_with_a_driven_joint_is_the_tree_with_that_motion_imposed(joint, rng):
    placements = [random_placement(rng) for _ in range(3)]
    inertias = [random_inertia(rng) for _ in range(3)]

    def tree(middle):
        builder, on = ModelBuilder(), None
        kinds = (Revolute("y"), middle, Universal("zx"))
        for name, kind, at, inertia in zip("abc", kinds, placements, inertias, strict=True):
            builder.body(name, on=on, joint=kind, at=at, inertia=inertia)
            on = name
        return builder.build()

    t = 0.7
    x, xd, xdd = wave(joint.nv)(t)
    imposed, driven = tree(joint), tree(Prescribed(joint, wave(joint.nv)).at(t))
    q, qd, qdd = rng.standard_normal((3, 3))

    def joined(a, b):
        return np.concatenate([a[:1], b, a[1:]])

    others = np.r_[0, 1 + joint.nv : 3 + joint.nv]
    tau = rnea.inverse_dynamics(driven, q, qd, qdd)
    full = rnea.inverse_dynamics(imposed, joined(q, x), joined(qd, xd), joined(qdd, xdd))
    assert_close(tau, full[others], ulps=200, scale=np.max(np.abs(full)))
    assert_close(aba.forward_dynamics(driven, q, qd, tau), qdd, ulps=1e5)


@pytest.mark.covers("RBDA 3.5", by=Prescribed)
def test_pendulum_on_a_shaken_pivot_feels_effective_gravity(rng):
    def shake(t):
        return [0.1 * np.sin(9 * t)], [0.9 * np.cos(9 * t)], [-8.1 * np.sin(9 * t)]

    t, inertia = 0.4, random_inertia(rng)
    builder = ModelBuilder().body("pivot", joint=Prescribed(Prismatic("z"), shake).at(t))
    shaken = builder.body("bob", on="pivot", joint=Revolute("x"), inertia=inertia).build()
    gravity = (0, 0, -9.81 - shake(t)[2][0])
    plain = ModelBuilder(gravity=gravity).body("bob", joint=Revolute("x"), inertia=inertia).build()
    q, qd, tau = rng.standard_normal((3, 1))
    a, b = (aba.forward_dynamics(m, q, qd, tau) for m in (shaken, plain))
    assert_close(a, b, ulps=500)


class Wobble(AbstractJoint):
    """A hinge about x whose axis time itself swings about y: one freedom and a sigma."""

    nq = nv = 1
    constant_subspace = False

    def __init__(self, t=None):
        self.t = t

    def __eq__(self, other):
        return type(other) is Wobble and other.t == self.t

    def __hash__(self):
        return hash(self.t)

    def at(self, t):
        return Wobble(t)

    def jcalc(self, q, qd):
        t, w, zero = self.t, 0.8, np.zeros(3)
        x, swing = np.array([1.0, 0, 0]), np.array([0, w, 0])
        E = rx(q[0])
        sigma = E @ swing
        S = Motion(x[:, None], zero[:, None])
        c_J = Motion(np.cross(sigma, x * qd[0]), zero)  # sigma° = -qd x × E swing
        return Plucker(E @ ry(w * t), zero), S, S @ qd + Motion(sigma, zero), c_J

    def constraint_subspace(self, q):
        return Revolute("x").constraint_subspace(q)

    def active_subspace(self, q):
        return Revolute("x").active_subspace(q)

    def coordinates(self, X):
        return Revolute("x").coordinates(Plucker(X.E @ ry(0.8 * self.t).T, X.r))


@pytest.mark.covers("RBDA 3.5", by=AbstractJoint)
def test_joint_with_freedom_and_sigma_keeps_the_contract(rng):
    check_joint(Wobble(), rng)


@pytest.mark.covers("RBDA 3.5", by=AbstractJoint)
def test_power_of_a_moving_joint_is_that_of_its_force_and_of_sigma(rng):
    joint = Wobble(0.3)
    q, qd, tau = rng.standard_normal((3, 1))
    f_J = joint.active_subspace(q) @ tau + joint.constraint_subspace(q) @ rng.standard_normal(5)
    v_J, sigma = joint.jcalc(q, qd)[2], joint.jcalc(q, np.zeros(1))[2]
    assert_close(f_J.dot(v_J), tau @ qd + f_J.dot(sigma), ulps=50, scale=5.0)


def test_prescribed_joint_without_a_time_says_what_to_do():
    driven = Prescribed(Revolute("z"), wave(1))
    with pytest.raises(JointError, match=r"depends on time: use joint.at\(t\)"):
        driven.jcalc(np.zeros(0), np.zeros(0))


def test_motion_of_the_wrong_size_is_rejected():
    driven = Prescribed(Cylindrical("z"), wave(1))
    with pytest.raises(
        JointError, match=r"Cylindrical joint must return \(q, qd, qdd\) of lengths"
    ):
        driven.at(0.0)
