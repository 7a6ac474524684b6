"""All joints at once: every kind, every kind of number, one tree of everything."""

from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from support.closeness import assert_close

import kinetree.joints
from kinetree.algorithms import aba, crba, rnea
from kinetree.joints import (
    REPRESENTATIVES,
    AbstractJoint,
    CustomJoint,
    Fixed,
    Free,
    Prescribed,
    PrescribedInstant,
    Prismatic,
    Reversed,
    SphereInCylinder,
    Spherical,
    Translation,
)
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import dense

all_joints = pytest.mark.parametrize("joint", REPRESENTATIVES, ids=str)


def test_every_exported_kind_is_represented():
    exported = (getattr(kinetree.joints, name) for name in kinetree.joints.__all__)
    kinds = {x for x in exported if isinstance(x, type)}
    assert kinds - {AbstractJoint} == set(kinetree.joints.KINDS)
    expected = kinds - {AbstractJoint, CustomJoint, Prescribed, PrescribedInstant}
    assert {type(joint) for joint in REPRESENTATIVES} == expected


def test_representatives_are_distinct_and_hashable():
    assert len(set(REPRESENTATIVES)) == len(REPRESENTATIVES)


@pytest.mark.covers("RBDA Table 4.1", by=AbstractJoint)
def test_sizes_of_the_subspaces_are_those_of_the_table(rng):
    sizes = {
        "Fixed": 0, "Revolute": 1, "Prismatic": 1, "Helical": 1, "Screw": 1, "Cylindrical": 2,
        "Universal": 2, "RackAndPinion": 1, "Planar": 3, "Spherical": 3, "Euler": 3,
        "Exponential": 3, "Translation": 3, "SphereInCylinder": 4, "Free": 6,
    }  # fmt: skip
    for joint in REPRESENTATIVES:
        kind = joint.joint if isinstance(joint, Reversed) else joint
        n = sizes[type(kind).__name__]
        q = joint.random(rng)
        assert joint.motion_subspace(q).to_array().shape == (6, n)
        assert joint.constraint_subspace(q).to_array().shape == (6, 6 - n)


@pytest.mark.covers("6-D Guide 2: Joint Models", "RBDA 3.5", by=AbstractJoint)
@all_joints
def test_complex_step_of_transform_is_minus_velocity_cross_transform(joint, rng):
    q, qd = joint.random(rng), rng.standard_normal(joint.nv)
    h = 1e-30
    moved = q + 1j * h * joint.configuration_rate(q, qd)
    X_J, _, v_J, c_J = joint.jcalc(moved, qd)
    rate = np.imag(X_J.to_matrix()) / h
    X, v = np.real(X_J.to_matrix()), np.real(v_J.to_array())
    assert_close(rate, -dense.crm(v) @ X, ulps=200, scale=1 + np.max(np.abs(rate)))
    expected = np.imag(v_J.to_array()) / h
    assert_close(np.real(c_J.to_array()), expected, ulps=200, scale=1 + np.max(np.abs(v)) ** 2)


@pytest.mark.covers("RBDA 4.4", by=AbstractJoint)
@all_joints
def test_mpmath_numbers_give_the_float_result_and_more_digits(joint, rng):
    q, qd = joint.random(rng), rng.standard_normal(joint.nv)
    with mpmath.workdps(50):
        exact = np.array([mpmath.mpf(x) for x in q], dtype=object)
        rates = np.array([mpmath.mpf(x) for x in qd], dtype=object)
        X_J, S, v_J, c_J = joint.jcalc(exact, rates)
        mp = [X_J.to_matrix(), S.to_array(), v_J.to_array(), c_J.to_array()]
        mp += [joint.constraint_subspace(exact).to_array(), joint.active_subspace(exact).to_array()]
        mp = [np.array(x, dtype=float) for x in mp]
    X_J, S, v_J, c_J = joint.jcalc(q, qd)
    T, T_a = joint.constraint_subspace(q), joint.active_subspace(q)
    floats = [X_J.to_matrix(), S.to_array(), v_J.to_array(), c_J.to_array(), T.to_array()]
    for a, b in zip([*floats, T_a.to_array()], mp, strict=True):
        assert_close(a, b, ulps=64, scale=max(1.0, np.max(np.abs(b), initial=0)))


@all_joints
def test_mpmath_integrate_difference_and_loop_error(joint, rng):
    q, dv = joint.random(rng), rng.standard_normal(joint.nv) / 2
    with mpmath.workdps(40):
        exact = np.array([mpmath.mpf(x) for x in q], dtype=object)
        step = np.array([mpmath.mpf(x) for x in dv], dtype=object)
        reached = joint.integrate(exact, step)
        error = joint.loop_error(joint.transform(reached))
        floats = [np.array(x, dtype=float) for x in (reached, error)]
    assert_close(joint.integrate(q, dv), floats[0], ulps=64, scale=4.0)
    assert_close(np.zeros(6 - joint.nv), floats[1], ulps=64, scale=4.0)


@pytest.mark.covers("RBDA 3.5", "6-D Guide 1: Motion Constraints", by=AbstractJoint)
@all_joints
def test_active_force_delivers_the_joint_power_and_constraint_force_none(joint, rng):
    q, qd = joint.random(rng), rng.standard_normal(joint.nv)
    tau, lam = rng.standard_normal(joint.nv), rng.standard_normal(6 - joint.nv)
    _, S, v_J, _ = joint.jcalc(q, qd)
    f_J = joint.active_subspace(q) @ tau + joint.constraint_subspace(q) @ lam
    assert_close(S.T @ f_J, tau, ulps=200, scale=10.0)
    assert_close(f_J.dot(v_J), tau @ qd, ulps=500, scale=10.0)


@all_joints
def test_velocity_variables_are_recovered_from_the_velocity(joint, rng):
    q, qd = joint.random(rng), rng.standard_normal(joint.nv)
    v_J = joint.jcalc(q, qd)[2]
    assert_close(joint.velocity_variables(q, v_J), qd, ulps=100, scale=4.0)


def test_joints_without_trigonometry_are_exact_on_fractions():
    third = Fraction(1, 3)
    joints = (Prismatic("-y"), Translation(), Fixed(), Spherical(), Free(), SphereInCylinder("x"))
    for joint in joints:
        q = np.array([third * k for k in range(1, joint.nq + 1)], dtype=object)
        qd = np.array([third / k for k in range(1, joint.nv + 1)], dtype=object)
        X_J, _, v_J, c_J = joint.jcalc(q, qd)
        for x in (*X_J.to_matrix().ravel(), *v_J.to_array(), *c_J.to_array()):
            assert isinstance(x, (int, np.integer, Fraction))


@all_joints
def test_symbols_give_formulas(joint):
    q = np.array(sympy.symbols(f"q:{joint.nq}", real=True), dtype=object)
    qd = np.array(sympy.symbols(f"u:{joint.nv}", real=True), dtype=object)
    numbers = {**dict.fromkeys(q, 0.4), **dict.fromkeys(qd, 0.7)}
    X_J, _, v_J, c_J = joint.jcalc(q, qd)
    at = joint.jcalc(np.full(joint.nq, 0.4), np.full(joint.nv, 0.7))
    for a, b in ((X_J.to_matrix(), at[0].to_matrix()), *zip((v_J, c_J), at[2:], strict=True)):
        a, b = (x if isinstance(x, np.ndarray) else x.to_array() for x in (a, b))
        values = [float(sympy.sympify(x).subs(numbers)) for x in a.ravel()]
        assert_close(np.reshape(values, a.shape), b, ulps=50, scale=5.0)


@dataclass(frozen=True)
class Tree:
    """A random tree with every joint once, branching, in random order."""

    seed: int

    def build(self):
        rng = np.random.default_rng(self.seed)
        builder, names = ModelBuilder("everything"), ["base"]
        for n, k in enumerate(rng.permutation(len(REPRESENTATIVES))):
            on = names[rng.integers(max(0, n - 3), n + 1)]
            names.append(f"body{n}")
            builder.body(
                names[-1], on=on, joint=REPRESENTATIVES[k], at=random_placement(rng),
                inertia=random_inertia(rng),
            )  # fmt: skip
        return builder.build()


@pytest.mark.covers("RBDA 4.6", "RBDA 4.4", by=AbstractJoint)
@pytest.mark.parametrize("seed", range(3))
def test_forward_dynamics_inverts_inverse_dynamics_on_a_tree_of_all_joints(seed, rng):
    model = Tree(seed).build()
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    qdd = rng.standard_normal(model.nv)
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    H = crba.joint_space_inertia(model, q)
    assert_close(H, H.T, ulps=10)
    assert np.min(np.linalg.eigvalsh(H)) > 0
    back = aba.forward_dynamics(model, q, qd, tau)
    assert_close(back, qdd, ulps=20, condition=np.linalg.cond(H))
    C = rnea.bias_force(model, q, qd)
    assert_close(H @ qdd + C, tau, ulps=100)


def test_models_with_the_same_joints_have_the_same_fingerprint():
    assert Tree(1).build() == Tree(1).build()
    assert Tree(1).build() != Tree(2).build()
