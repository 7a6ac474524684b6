"""One rigid body in six or seven coordinates — tutorial §4."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.joints import Euler, Exponential
from kinetree.spatial.vector3 import skew, unskew
from kinetree.textbook import lagrange_body as body

MASS, I_0 = 2.0, np.array([[0.3, 0.02, -0.01], [0.02, 0.5, 0.03], [-0.01, 0.03, 0.4]])
KINDS = list(body.COORDINATES)
STEP = 1e-20


def state(kind, rng):
    q = rng.standard_normal(body.COORDINATES[kind])
    if kind == "quaternion":
        q[3:] /= np.linalg.norm(q[3:])
    qd = rng.standard_normal(len(q))
    if kind == "quaternion":  # of unit length
        qd[3:] -= q[3:] * (q[3:] @ qd[3:])
    return q, qd


def derivative(f, x, dx):
    """Along ``dx``, by a complex step."""
    return np.imag(f(x + 1j * STEP * dx)) / STEP


@pytest.mark.covers("Tutorial 4", by=body.jacobian)
@pytest.mark.parametrize("kind", KINDS)
def test_angular_columns_are_the_derivatives_of_the_rotation(kind, rng):
    """(29): ``[j_j] = ∂R/∂q_j Rᵀ``, skew for every coordinate; and (42) for their derivatives."""
    q, _ = state(kind, rng)
    R, J = body.rotation(kind, q), body.jacobian(kind, q)
    assert_close(R.T @ R, np.eye(3))
    n = len(q)
    for j, e in enumerate(np.eye(n)):
        turn = derivative(lambda q: body.rotation(kind, q), q, e) @ R.T
        assert_close(turn + turn.T, np.zeros((3, 3)), scale=5)
        assert_close(unskew(turn), J[3:, j], scale=5)
    dJ = [body.jacobian_rate(kind, q, e)[3:] for e in np.eye(n)]
    for j in range(n):
        for k in range(n):
            found = dJ[k][:, j] - dJ[j][:, k]
            assert_close(found, np.cross(J[3:, k], J[3:, j]), scale=20)


@pytest.mark.covers("Tutorial 4", by=body.inertia_matrix)
def test_seven_coordinates_have_an_inertia_matrix_of_rank_six(rng):
    """TU-23: its null space is the stretch of the quaternion."""
    q, _ = state("quaternion", rng)
    M = body.inertia_matrix("quaternion", MASS, I_0, q)
    assert M.shape == (7, 7)
    s = np.linalg.svd(M, compute_uv=False)
    assert s[6] < 1e-15 * s[0]
    assert s[5] > 1e-2 * s[0]
    assert_close(M @ [0, 0, 0, *q[3:]], np.zeros(7), scale=10)
    for kind in ("exponential", "euler"):
        assert np.linalg.matrix_rank(body.inertia_matrix(kind, MASS, I_0, state(kind, rng)[0])) == 6


@pytest.mark.covers("Tutorial 4", by=body.lagrange_terms)
@pytest.mark.parametrize("kind", KINDS)
def test_every_term_of_lagrange_has_the_value_of_the_tutorial(kind, rng):
    """TU-28 to TU-31: (37), (38), (40) and (43), and the sum (36) against the energy itself."""
    q, qd = state(kind, rng)
    qdd = rng.standard_normal(len(q))
    terms = body.lagrange_terms(kind, MASS, I_0, q, qd, qdd)
    J, R = body.jacobian(kind, q), body.rotation(kind, q)
    V, I_c = J @ qd, R @ I_0 @ R.T
    M_c = np.block([[MASS * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), I_c]])
    gyro = J[3:].T @ skew(V[3:]) @ I_c @ V[3:]
    assert np.max(np.abs(gyro)) > 0.05  # there is something to get wrong
    h = 1e-6
    ahead, behind = (body.jacobian(kind, q + s * h * qd) for s in (1, -1))
    Jd = (ahead - behind) / (2 * h)
    assert_close(terms.a, J.T @ M_c @ J @ qdd, scale=20)
    np.testing.assert_allclose(terms.b, J.T @ M_c @ Jd @ qd, atol=1e-8)
    assert_close(terms.c, gyro, scale=20)
    assert_close(terms.d, -gyro, scale=20)
    assert_close(terms.e, -gyro, scale=20)
    assert_close(terms.e[:3], np.zeros(3), scale=20)  # (40)

    def inertia(q):
        R = body.rotation(kind, q)
        return R @ I_0 @ R.T

    # finite differences of the inertia, TU-29 and TU-30
    dI = (inertia(q + h * qd) - inertia(q - h * qd)) / (2 * h)
    np.testing.assert_allclose(terms.c, J[3:].T @ dI @ V[3:], atol=1e-8)
    for j, e in enumerate(np.eye(len(q))):
        dI = (inertia(q + h * e) - inertia(q - h * e)) / (2 * h)
        np.testing.assert_allclose(terms.d[j], V[3:] @ dI @ V[3:] / 2, atol=1e-8)

    def energy(q, qd):
        V, R = body.jacobian(kind, q) @ qd, body.rotation(kind, q)
        return (MASS * V[:3] @ V[:3] + V[3:] @ (R @ I_0 @ R.T) @ V[3:]) / 2

    def momentum(q, qd):
        J, R = body.jacobian(kind, q), body.rotation(kind, q)
        V = J @ qd
        return MASS * J[:3].T @ V[:3] + J[3:].T @ (R @ I_0 @ R.T) @ V[3:]

    dp = np.imag(momentum(q + 1j * STEP * qd, qd + 1j * STEP * qdd)) / STEP
    dT = np.array([derivative(lambda q: energy(q, qd), q, e) for e in np.eye(len(q))])
    assert_close(terms.total, dp - dT, scale=50)
    M, C = body.equation_of_motion(kind, MASS, I_0, q, qd)
    assert_close(terms.total, M @ qdd + C, scale=50)
    wrong = terms.a + terms.b + terms.c + terms.d + terms.e  # the sign of the fourth term matters
    assert np.max(np.abs(wrong - terms.total)) > 0.05


V_0, FORCE = np.array([0.3, -0.2, 0.5, 1.0, 9.0, 2.0]), np.array([0.4, 0.0, -1.0])


def run(kind, steps, pushed, h=2e-3):
    """Position, rotation and velocities in the end, by the classical method of order four."""
    q = np.zeros(body.COORDINATES[kind])
    if kind == "quaternion":
        q[3] = 1.0
    y = np.array([q, np.linalg.pinv(body.jacobian(kind, q)) @ V_0])

    def rate(t, y):
        load = FORCE, np.array([np.sin(5 * t), 0.3, -0.2])
        return np.array([y[1], body.acceleration(kind, MASS, I_0, *y, *(pushed * x for x in load))])

    for t in h * np.arange(steps):
        k1 = rate(t, y)
        k2 = rate(t + h / 2, y + h / 2 * k1)
        k3 = rate(t + h / 2, y + h / 2 * k2)
        k4 = rate(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    q, qd = y
    return q[:3], body.rotation(kind, q), body.jacobian(kind, q) @ qd


@pytest.mark.covers("Tutorial 4", by=(body.acceleration, body.equation_of_motion))
def test_all_parameterisations_give_one_motion():
    """TU-23: force and torques, up to shortly before the second angle is 90°."""
    ends = {kind: run(kind, 100, pushed=1, h=1e-3) for kind in KINDS}
    for kind in ("euler", "quaternion"):
        for found, expected in zip(ends[kind], ends["exponential"], strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.covers("Tutorial 4", by=body.acceleration)
def test_seven_coordinates_move_the_body_as_a_free_joint_does():
    """On through a full turn, where the others are singular."""
    inertia = kt.Inertia.from_mass_center(MASS, np.zeros(3), I_0)
    builder = kt.ModelBuilder("free", gravity=(0, 0, 0))
    model = builder.body("b", joint=kt.Free(), inertia=inertia).build()
    start = np.concatenate([V_0[3:], V_0[:3]])
    motion = kt.simulate(model, model.neutral(), start, duration=0.8, rtol=1e-10, atol=1e-10)
    T = kt.pose(model, motion.q[-1], "b")
    x, R, V = run("quaternion", 400, pushed=0)
    np.testing.assert_allclose(x, T[:3, 3], atol=1e-7)
    np.testing.assert_allclose(R, T[:3, :3], atol=1e-7)
    np.testing.assert_allclose(V[3:], T[:3, :3] @ motion.qd[-1][:3], atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "place"), [("exponential", [0, 2 * np.pi, 0]), ("euler", [0.3, np.pi / 2, 0.1])]
)
def test_singular_coordinates_are_named(kind, place):
    q = np.array([0, 0, 0, *place], float)
    with pytest.raises(kt.SingularError, match=f"{kind} coordinates are singular at"):
        body.acceleration(kind, MASS, I_0, q, np.ones(6), np.zeros(3), np.ones(3))
    with pytest.raises(kt.UnknownNameError, match="coordinates must be one of"):
        body.jacobian("axis-angle", q)


@pytest.mark.parametrize(("kind", "joint"), [("exponential", Exponential()), ("euler", Euler())])
def test_coordinates_are_those_of_the_joints(kind, joint, rng):
    q, _ = state(kind, rng)
    X, S, *_ = joint.jcalc(q[3:], np.zeros(3))
    assert_close(body.rotation(kind, q), X.E.T)
    assert_close(body.jacobian(kind, q)[3:, 3:], X.E.T @ S.angular, scale=2)
