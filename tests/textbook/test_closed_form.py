"""Closed forms against recursions."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import Arm, random_state, two_link_arm

from kinetree import samples
from kinetree.algorithms import jacobians, kinematics, rnea
from kinetree.model import Model
from kinetree.spatial import Motion
from kinetree.textbook import closed_form


@pytest.mark.covers(
    "RBDA 5.2", "RBDA Example 2.3", "RBDA Example 4.1", by=closed_form.body_velocities
)
def test_velocities_as_sums_over_joints(rng):
    m, q, qd, *_ = random_state(rng)
    _, recursive = kinematics.base_velocities(m, q, qd)
    for a, b in zip(closed_form.body_velocities(m, q, qd), recursive, strict=True):
        assert_close(a.to_array(), b.to_array(), scale=10)


@pytest.mark.covers(
    "RBDA 5.2", "RBDA Example 2.5", "6-D Guide 2: Acceleration", by=closed_form.body_accelerations
)
@pytest.mark.parametrize("n", range(3))
def test_accelerations_as_double_sums_over_joints(n, rng):
    """Recursion, double sum and Jacobian form: three ways to the same accelerations."""
    m, q, qd, qdd, _ = random_state(rng)
    X, _, recursive = kinematics.body_accelerations(m, q, qd, qdd)
    X_0 = kinematics.base_transforms(m, X)
    closed = closed_form.body_accelerations(m, q, qd, qdd)
    for i in range(1, m.body_count + 1):
        expected = X_0[i].inv_apply(recursive[i]).to_array()
        scale = 20 + np.max(np.abs(expected))
        assert_close(closed[i].to_array(), expected, scale=scale)
        frame = m.frame(m.body_names[i])
        J = jacobians.frame_jacobian(m, q, frame)
        Jd = jacobians.frame_jacobian_rate(m, q, qd, frame)
        assert_close(J @ qdd + Jd @ qd, expected, scale=scale)


@pytest.mark.covers("RBDA 5.2", by=(closed_form.body_velocities, kinematics.base_velocities))
@pytest.mark.parametrize("n", [1, 4, 9])
def test_costs_of_chain_velocities(n, monkeypatch, rng):
    """In scalar-vector products and vector sums: n of each, against n(n+1)/2 and n(n-1)/2."""
    m = samples.chain(n)
    q, qd = m.random_configuration(rng), rng.standard_normal(n)
    counts = {"__matmul__": 0, "__add__": 0}
    for name in counts:
        original = getattr(Motion, name)

        def counted(self, other, name=name, original=original):
            counts[name] += 1
            return original(self, other)

        monkeypatch.setattr(Motion, name, counted)
    kinematics.base_velocities(m, q, qd)
    assert counts == {"__matmul__": n, "__add__": n}
    counts.update(__matmul__=0, __add__=0)
    closed_form.body_velocities(m, q, qd)
    by_joints = n  # jcalc forms S qd once for each joint in any case
    assert counts == {"__matmul__": n * (n + 1) // 2 + by_joints, "__add__": n * (n - 1) // 2}


@pytest.mark.covers("RBDA 5.2", "Lynch & Park 9.1", by=closed_form.equation_of_motion)
@pytest.mark.parametrize("n", range(3))
def test_coefficients_of_the_equation_of_motion(n, rng):
    m, q, qd, qdd, _ = random_state(rng, bodies=5)
    equation = closed_form.equation_of_motion(m, q)
    tau = rnea.inverse_dynamics(m, q, qd, qdd)
    scale = np.max(np.abs(equation.H)) * (1 + qd @ qd) + np.max(np.abs(equation.g))
    assert_close(equation.inverse_dynamics(qd, qdd), tau, scale=scale)
    assert_close(equation.C, equation.C.transpose(0, 2, 1), ulps=0)


@pytest.mark.covers("Lynch & Park 9.1", by=closed_form.equation_of_motion)
def test_planar_arm_of_lynch_and_park():
    equation = closed_form.equation_of_motion(two_link_arm(), Arm.q)
    assert_close(equation.H, Arm.M, ulps=8)
    assert_close((equation.C @ Arm.qd) @ Arm.qd, Arm.c, ulps=20)
    assert_close(equation.g, Arm.gravity, ulps=8)
    assert_close(equation.inverse_dynamics(Arm.qd, Arm.qdd), Arm.tau, ulps=8)


def test_model_without_bodies():
    equation = closed_form.equation_of_motion(Model(), np.zeros(0))
    assert equation.inverse_dynamics(np.zeros(0), np.zeros(0)).shape == (0,)
    assert len(closed_form.body_velocities(Model(), np.zeros(0), np.zeros(0))) == 1
