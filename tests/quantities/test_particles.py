"""Lagrange's equations from particles — tutorial, section 2."""

import numpy as np
import pytest
import sympy
from scipy.special import ellipj, ellipk
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import jacobians as jac
from kinetree.algorithms import rnea

MASSES = np.array([0.7, 0.4, 1.1])
PLACES = np.array([[0.1, 0.0, 0.3], [-0.2, 0.0, 0.5], [0.1, 0.0, 0.9]])  # in the plane of motion
GRAVITY = np.array([0.0, 0.0, 9.81])  # hangs upwards: the mass centre is above the hinge at rest


def pendulum():
    inertia = kt.Inertia.from_particles(MASSES, PLACES)
    builder = kt.ModelBuilder("pendulum", gravity=GRAVITY)
    return builder.body("b", joint=kt.Revolute("y"), inertia=inertia).build()


def exact_motion(model, amplitude, t):
    """q, qd, qdd of a large swing about the hanging position, by elliptic functions."""
    I = model.inertia[1]
    h = np.linalg.norm(I.first_moment)
    w0 = np.sqrt(9.81 * h / I.rotational[1, 1])
    rest = -np.arctan2(I.first_moment[0], I.first_moment[2])
    k = np.sin(amplitude / 2)
    sn, cn, dn, _ = ellipj(ellipk(k * k) - w0 * t, k * k)
    angle = 2 * np.arcsin(k * sn)
    rate = -2 * k * w0 * cn * dn / np.sqrt(1 - (k * sn) ** 2)
    return rest + angle, rate, -(w0**2) * np.sin(angle)


def residual(model, q, qd, qdd):
    """``Σ (μ r̈ - f)·∂r/∂q_j`` over the particles, (4) and (5) of the tutorial, word by word."""
    total = np.zeros(model.nv)
    for mass, place in zip(MASSES, PLACES, strict=True):
        at = {"frame": "aligned", "point": place}
        r_dd = kt.acceleration(model, q, qd, qdd, "b", kind="classical", **at)[3:]
        J = kt.jacobian(model, q, "b", **at)[3:]
        total += J.T @ (mass * r_dd - mass * model.gravity)
    return total


@pytest.mark.covers("Tutorial 2", by=(kt.jacobian, kt.acceleration))
def test_the_residual_of_dalembert_vanishes_along_an_exact_swing(rng):
    """TU-05: also where the swing is far from small, and nowhere else."""
    model = pendulum()
    scale = 9.81 * float(MASSES @ np.linalg.norm(PLACES, axis=1))
    for t in np.linspace(0, 3, 13):
        q, qd, qdd = (np.array([x]) for x in exact_motion(model, 2.8, t))
        assert_close(residual(model, q, qd, qdd), [0.0], scale=scale, condition=10)
        assert abs(residual(model, q, qd, qdd + 0.1)[0]) > 0.05  # of another motion
        q, (qd, qdd) = rng.uniform(-3, 3, 1), rng.standard_normal((2, 1))
        tau = rnea.inverse_dynamics(model, q, qd, qdd)  # the force of a motion that is driven
        assert_close(residual(model, q, qd, qdd), tau, scale=scale, condition=10)
    # and the exact motion is one: its rates are the derivatives
    t, h = 0.7, 1e-5
    ahead, here, behind = (exact_motion(model, 2.8, t + s * h) for s in (1, 0, -1))
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), here[1], rtol=1e-8)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), here[2], rtol=1e-8)


@pytest.mark.covers(
    "Tutorial 2", by=(jac.frame_velocity, jac.frame_jacobian, jac.frame_jacobian_rate)
)
def test_two_identities_of_velocities_hold_as_formulas():
    """TU-06, (7) and (8): ``∂ṙ/∂q̇_j = ∂r/∂q_j`` and ``∂ṙ/∂q_j = d/dt ∂r/∂q_j``, in symbols."""
    half = sympy.Rational(1, 2)
    builder = kt.ModelBuilder("arm")
    builder.body("a", joint=kt.Revolute("z"))
    builder.body("b", on="a", joint=kt.Revolute("y"), at=(half, 0, 0))
    builder.body("c", on="b", joint=kt.Prismatic("x"), at=(0, 0, half))
    model = builder.build()
    q, qd = np.array(sympy.symbols("q:3")), np.array(sympy.symbols("v:3"))
    place = np.array([sympy.Rational(1, 3), 2, -1])
    T = jac.frame_pose(model, q, model.frame("c"))
    r = T[:3, :3] @ place + T[:3, 3]
    at = (model.frame("c"), "aligned", place)
    r_d = jac.frame_velocity(model, q, qd, *at)[3:]
    J, J_d = jac.frame_jacobian(model, q, *at)[3:], jac.frame_jacobian_rate(model, q, qd, *at)[3:]
    nothing = sympy.zeros(3, 1)
    sines, cosines = sympy.symbols("s:3"), sympy.symbols("c:3")
    letters = {sympy.sin(x): s for x, s in zip(q, sines, strict=True)}
    letters |= {sympy.cos(x): c for x, c in zip(q, cosines, strict=True)}
    ones = [c**2 + s**2 - 1 for c, s in zip(cosines, sines, strict=True)]

    def same(a, b):
        """Polynomials in sines and cosines: the remainder decides, and takes no time."""
        pairs = zip(a, b, strict=True)
        rest = [sympy.nsimplify(sympy.expand((x - y).subs(letters))) for x, y in pairs]
        return all(sympy.reduced(x, ones, *cosines, *sines)[1] == 0 for x in rest)

    total = sum((sympy.Matrix(list(r)).diff(q[k]) * qd[k] for k in range(3)), nothing)
    assert same(r_d, total)  # (6)
    for j in range(3):
        dr = [sympy.diff(x, q[j]) for x in r]
        assert same([sympy.diff(x, qd[j]) for x in r_d], dr)
        assert same(J[:, j], dr)
        rate = [sum(sympy.diff(x, q[k]) * qd[k] for k in range(3)) for x in dr]
        assert same([sympy.diff(x, q[j]) for x in r_d], rate)
        assert same(J_d[:, j], rate)
        assert not same(J_d[:, j], nothing)
