"""The two-body problem of the 6-D guide: in 3-D vectors by its formulas, and by this package."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba, crba, rnea
from kinetree.algorithms.closed import maximal
from kinetree.algorithms.closed.subspace import Subspace
from kinetree.algorithms.closed.systems import (
    Implicit,
    SubsystemEquation,
    apply_implicit,
    collect,
    implicit_equations,
)
from kinetree.joints import Free, Revolute, Screw
from kinetree.model import ModelBuilder
from kinetree.samples import random_placement
from kinetree.spatial import Force, Inertia, Motion, crf, crm, xlt
from kinetree.spatial.rotation import rotation_exp
from kinetree.spatial.vector3 import skew


def example():
    return {
        "m1": 2.0,
        "m2": 1.0,
        "I1": np.diag([0.2, 0.3, 0.4]),
        "I2": np.diag([0.1, 0.2, 0.25]),
        "r1": np.array([0.5, 0.0, 0.1]),
        "r2": np.array([-0.3, 0.2, 0.0]),
        "s": np.array([0.0, 0.0, 1.0]),
        "f": np.array([1.0, 2.0, 3.0]),
        "n": np.array([0.1, -0.2, 0.3]),
    }


def random_example(rng):
    R1, R2 = (rotation_exp(rng.standard_normal(3)) for _ in range(2))
    s = rng.standard_normal(3)
    return {
        "m1": rng.uniform(1, 3),
        "m2": rng.uniform(1, 3),
        "I1": R1 @ np.diag([0.2, 0.3, 0.4]) @ R1.T,
        "I2": R2 @ np.diag([0.1, 0.2, 0.25]) @ R2.T,
        "s": s / np.linalg.norm(s),
        **{name: rng.standard_normal(3) for name in ("r1", "r2", "f", "n")},
    }


def in_three_dimensions(m1, m2, I1, I2, r1, r2, s, f, n):
    """(S20), (S24), (S25), (S28)–(S32): the 6×6 matrix, a1, wd1 and alpha."""
    R1, R2, ss = skew(r1), skew(r2), np.outer(s, s)
    J = I2 + m2 * R2.T @ R2
    K = J + m2 * R1 @ R2
    sJs = s @ J @ s
    A = (m1 + m2) * np.eye(3) + m2**2 * R2 @ ss @ R2 / sJs
    B = m2 * (R2 - R1) - m2 * R2 @ ss @ K.T / sJs
    C = m2 * (R1 - R2) + m2 * K @ ss @ R2 / sJs
    D = I1 + I2 - m2 * (R1 - R2) @ (R1 - R2) - K @ ss @ K.T / sJs
    matrix = np.block([[A, B], [C, D]])
    x = np.linalg.solve(matrix, np.concatenate([f, n]))
    a1, wd1 = x[:3], x[3:]
    alpha = -(s @ (K.T @ wd1 - m2 * R2 @ a1)) / sJs
    return matrix, a1, wd1, alpha, sJs


def in_space(m1, m2, I1, I2, r1, r2, s, f, n):
    """Spatial quantities with origin at C1: inertias, joint axis, applied force."""
    I_1 = Inertia.from_mass_center(m1, np.zeros(3), I1)
    I_2 = Inertia.from_mass_center(m2, r1 - r2, I2)
    return I_1, I_2, Motion(s, np.cross(r1, s)), Force(n, f)


def two_bodies(m1, m2, I1, I2, r1, r2, s, f, n):
    """A floating body with a hinge at P; body frames at C1 and P."""
    I_1 = Inertia.from_mass_center(m1, np.zeros(3), I1)
    I_2 = Inertia.from_mass_center(m2, -r2, I2)
    return (
        ModelBuilder("two bodies", gravity=(0, 0, 0))
        .body("B1", joint=Free(), inertia=I_1)
        .body("B2", on="B1", joint=Revolute(s), at=r1, inertia=I_2)
        .build()
    )


EXAMPLES = ["printed", "random"]


@pytest.fixture(params=EXAMPLES)
def data(request, rng):
    return example() if request.param == "printed" else random_example(rng)


def test_numbers_of_the_example():
    _, a1, wd1, alpha, sJs = in_three_dimensions(**example())
    tenth_digit = {"ulps": 1, "condition": 1e6, "scale": 1}
    assert_close(a1, [0.3694223097, 0.7540711759, 1.1975410153], **tenth_digit)
    assert_close(wd1, [0.900564529, 0.515637675, 0.1351779398], **tenth_digit)
    assert_close(alpha, -0.9343314221, **tenth_digit)
    assert_close(sJs, 0.38)


@pytest.mark.covers(
    "6-D Guide 1: Two-Body Problem in 3-D", by=(maximal.solution, aba.forward_dynamics)
)
def test_package_solves_the_two_body_problem_as_its_three_dimensional_formulas_do(data):
    matrix, a1, wd1, alpha, _ = in_three_dimensions(**data)
    assert_close(matrix, matrix.T)
    assert np.all(np.linalg.eigvalsh(matrix) > 0)
    model = two_bodies(**data)
    f_ext = [None, Force(data["n"], data["f"]), Force.zero()]
    expected = np.concatenate([wd1, a1, [alpha]])
    q, zero = model.neutral(), np.zeros(7)
    condition = np.linalg.cond(crba.joint_space_inertia(model, q))
    for forward_dynamics in (maximal.forward_dynamics, aba.forward_dynamics):
        qdd = forward_dynamics(model, q, zero, zero, f_ext)
        assert_close(qdd, expected, condition=condition)


@pytest.mark.covers("6-D Guide 1: Two-Body Problem in 6-D", by=apply_implicit)
@pytest.mark.covers("6-D Guide 1: Using Spatial Vectors", by=apply_implicit)
def test_spatial_solution_equals_the_three_dimensional_one(data):
    """(S33)–(S39), and the same as two collected bodies under one constraint."""
    matrix, a1, wd1, alpha, _ = in_three_dimensions(**data)
    I1, I2, s, f = in_space(**data)
    U = I2 @ s
    apparent = I1.to_matrix() + I2.to_matrix() - np.outer(U.to_array(), U.to_array()) / (s.T @ U)
    a = Motion.from_array(np.linalg.solve(apparent, f.to_array()))
    condition = np.linalg.cond(apparent)
    # the two matrices differ by the order of angular and linear part only
    assert_close(apparent, np.roll(matrix, (3, 3), (0, 1)))
    assert_close(a.to_array(), np.concatenate([wd1, a1]), condition=condition)
    assert_close(-(s.T @ (I2 @ a)) / (s.T @ U), alpha, condition=condition)

    bodies = [SubsystemEquation.from_body(I, Force.zero(), F) for I, F in ((I1, f), (I2, f * 0))]
    T = Subspace.span(Motion.from_array(s.to_array()[:, None])).complement().basis
    hinge = Implicit(np.hstack([-T.T, T.T]))
    solution = apply_implicit(collect(*bodies), hinge)
    condition = np.linalg.cond(implicit_equations(collect(*bodies), hinge)[0])
    assert_close(solution.qdd[:6], a.to_array(), condition=condition)
    f_J = I2 @ (a + s * alpha)
    assert_close(T @ solution.lam, f_J.to_array(), condition=condition, scale=1)
    assert_close(s.T @ f_J, 0.0, scale=1)


@pytest.mark.covers("6-D Guide 1: Two-Body Problem in 6-D", by=maximal.solution)
def test_solution_does_not_depend_on_the_reference_point(data, rng):
    """Both bodies with their frames at C1, or at any other point: the same motion, and (S39)."""
    I1, I2, s, f = in_space(**data)
    X = random_placement(rng)

    def solved(I1, I2, s, f):
        model = (
            ModelBuilder("two bodies", gravity=(0, 0, 0))
            .body("B1", joint=Free(), inertia=I1)
            .body("B2", on="B1", joint=Screw(s), inertia=I2)
            .build()
        )
        q, zero = model.neutral(), np.zeros(7)
        found = maximal.solution(model, q, zero, zero, [None, f, Force.zero()])
        return found, np.linalg.cond(crba.joint_space_inertia(model, q))

    U = (I2 @ s).to_array()
    apparent = I1.to_matrix() + I2.to_matrix() - np.outer(U, U) / (s.to_array() @ U)
    a = np.linalg.solve(apparent, f.to_array())
    (here, condition), (there, other) = solved(I1, I2, s, f), solved(*map(X.apply, (I1, I2, s, f)))
    assert_close(here.qdd[:6], a, condition=condition)
    assert_close(there.qdd[:6], (X @ Motion.from_array(a)).to_array(), condition=other)
    assert_close(there.qdd[6], here.qdd[6], condition=other)
    force, moved = (x.f_J[2] for x in (here, there))
    assert_close(moved.to_array(), (X.star @ force).to_array(), condition=other)


@pytest.mark.covers("6-D Guide 1: Two-Body Problem in 6-D", by=aba.forward_dynamics)
def test_with_velocities_the_problem_is_one_step_of_the_articulated_body_algorithm(data, rng):
    """The reader's exercise: add v ×* I v and sd qd to (S33)–(S39)."""
    I1, I2, s, f = in_space(**data)
    v1 = Motion.from_array(rng.standard_normal(6))
    rate = rng.standard_normal()
    v2 = v1 + s * rate
    c = crm(v2, s * rate)
    p1, p2 = crf(v1, I1 @ v1), crf(v2, I2 @ v2)
    U, D = I2 @ s, s.T @ (I2 @ s)
    apparent = I1.to_matrix() + I2.to_matrix() - np.outer(U.to_array(), U.to_array()) / D
    bias = p1 + p2 + I2 @ c - U * ((s.T @ (I2 @ c + p2)) / D)
    a1 = Motion.from_array(np.linalg.solve(apparent, (f - bias).to_array()))
    alpha = -(s.T @ (I2 @ (a1 + c) + p2)) / D

    model = two_bodies(**data)
    f_ext = [None, f, Force.zero()]
    qd = np.concatenate([v1.to_array(), [rate]])
    expected = np.concatenate([a1.to_array(), [alpha]])
    q, condition = model.neutral(), np.linalg.cond(apparent)
    for forward_dynamics in (maximal.forward_dynamics, aba.forward_dynamics):
        qdd = forward_dynamics(model, q, qd, np.zeros(7), f_ext)
        assert_close(qdd, expected, condition=condition)
    # a free body's qdd is its spatial acceleration: v × v = 0, so (S36) can be checked as well
    f_J = rnea.newton_euler(model, q, qd, expected, f_ext).f[2]
    s_at_P = xlt(data["r1"]) @ s
    assert_close(s_at_P.T @ f_J, 0.0, scale=10, condition=condition)


@pytest.mark.covers("6-D Guide 1: Two-Body Problem in 3-D", by=xlt)
def test_transfer_rules_at_rest_are_plucker_transforms(rng):
    """(S5), (S7), (S9), (S10): from C to P = C + r."""
    r, a, wd, f, n = rng.standard_normal((5, 3))
    X = xlt(r)
    at_P = X @ Motion(wd, a)
    assert_close(at_P.linear, a - np.cross(r, wd))
    assert_close(at_P.angular, wd)
    force_at_P = X.star @ Force(n, f)
    assert_close(force_at_P.angular, n - np.cross(r, f))
    assert_close(force_at_P.linear, f)


@pytest.mark.covers("6-D Guide 1: Motion Constraints", by=crm)
def test_derivative_of_a_joint_axis_is_its_cross_product_with_the_velocity_of_its_body(rng):
    """Sd = v_i × S for columns fixed in body i; a2 - a1 = Sd qd + S qdd."""
    model = two_bodies(**random_example(rng))
    q, qd, h = model.random_configuration(rng), rng.standard_normal(7), 1e-30
    rate = model.configuration_rate(q, qd)

    def axis_and_velocities(q):
        X1 = model.jcalc(1, q, qd)[0]
        X2 = model.jcalc(2, q, qd)[0] @ model.tree_transform[2] @ X1
        s = X2.inverse() @ Motion(np.array(model.joint[2].axis), np.zeros(3))
        v1 = X1.inverse() @ Motion(qd[:3], qd[3:6])
        return s, v1, v1 + s * qd[6]

    s, v1, v2 = axis_and_velocities(q)
    moved = axis_and_velocities(q + 1j * h * rate)[0]
    derivative = np.imag(moved.to_array()) / h
    # the axis of a hinge is fixed in both bodies, and v2 - v1 is along it
    assert_close(crm(v1, s).to_array(), derivative)
    assert_close(crm(v2, s).to_array(), derivative)


@pytest.mark.covers("6-D Guide 1: Motion Constraints", by=maximal.solution)
def test_a_powered_joint_delivers_the_power_of_tau(data, rng):
    model = two_bodies(**data)
    q, qd = model.random_configuration(rng), rng.standard_normal(7)
    tau = np.array([0, 0, 0, 0, 0, 0, 1.7])
    f_J = maximal.solution(model, q, qd, tau).f_J[2]
    eq = maximal.equations(model, q, qd, tau)
    v_J = Motion.from_array((eq.P.T @ eq.v)[6:])
    assert_close(f_J.T @ v_J, tau[6] * qd[6], condition=np.linalg.cond(eq.matrix))
