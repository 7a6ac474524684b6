"""Loop-closure functions that a user writes — RBDA §8.11."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.errors import LoopError, ShapeError, UnreachableError
from kinetree.joints import Revolute, Spherical
from kinetree.loops.dynamics.solution import solve
from kinetree.samples import actuated_arm
from kinetree.spatial.ops import atan2, cos, sin, sqrt
from kinetree.textbook.closure_functions import LoopClosure

L1, L2 = 1.0, 0.6


def gamma(y):
    """RBDA §8.11: the arm of Figure 8.3."""
    x, z = L2 * cos(y[0]) - L1, L2 * sin(y[0])
    return [y[0], atan2(z, x), sqrt(x * x + z * z), y[1]]


def arm(**options):
    return LoopClosure(
        actuated_arm(L1, L2), gamma, (Revolute("z"), Revolute("z")), ("theta1", "theta4"), **options
    )


@pytest.mark.covers("RBDA 8.11", by=LoopClosure)
def test_the_numbers_of_figure_8_3():
    q, qd, G, g = arm().motion([0.8, 0.2], [1.5, 0.4])
    d, theta2 = 0.723845252, 2.5047983615
    u1, u2, u3, u4 = -0.110743028522, 0.594621092526, 2.257696774972, 0.200335650407
    assert np.allclose(q, [0.8, theta2, d, 0.2], atol=1e-9)
    assert np.allclose(G, [[1, 0], [u1, 0], [u2, 0], [0, 1]], atol=1e-12)
    assert np.allclose(g, [0, u3, u4, 0], atol=1e-11)
    assert_close(qd, G @ [1.5, 0.4])


@pytest.mark.covers("RBDA 8.11", by=LoopClosure.motion)
def test_K_G_is_zero_and_K_g_is_k():
    closure = arm()
    q, qd, G, g = closure.motion([0.8, 0.2], [1.5, 0.4])
    c = loop_constraints(closure.model, q, qd)
    assert c.K.shape == (5, 4)
    assert np.linalg.matrix_rank(c.K, tol=1e-12) == 2
    assert np.abs(c.error).max() < 1e-15
    assert np.abs(c.K @ G).max() < 1e-15
    assert np.abs(c.K @ g - c.k).max() < 1e-14


def test_forward_dynamics_is_that_of_the_loop(rng):
    closure = arm(coordinates=lambda q: q[[0, 3]])
    y, yd, tau, f = np.array([0.8, 0.2]), np.array([1.5, 0.4]), *rng.standard_normal((2, 4))
    q, qd, G, g = closure.motion(y, yd)
    forces = {"forearm": np.array([0, 0, f[0], f[1], f[2], 0])}
    expected = solve(closure.model, q, qd, tau, forces)
    assert_close(G @ closure.forward_dynamics(y, yd, tau, forces) + g, expected.qdd, ulps=1e4)
    found = solve(closure.model, q, qd, tau, forces, method="closure", closure=closure)
    assert_close(found.qdd, expected.qdd, ulps=1e4)
    assert_close(found.lam, expected.lam, ulps=1e5)


@pytest.mark.covers("RBDA 8.11", by=LoopClosure.forward_dynamics)
def test_integrating_y_cannot_open_the_loop():
    closure = arm()
    y, yd, dt = np.array([0.8, 0.2]), np.zeros(2), 0.01
    for _ in range(40):
        yd = yd + dt * closure.forward_dynamics(y, yd, np.zeros(4))
        y = closure.integrate(y, dt * yd)
    q, qd, _, _ = closure.motion(y, yd)
    c = loop_constraints(closure.model, q, qd)
    assert np.abs(c.error).max() < 1e-15
    assert np.abs(c.rate).max() < 1e-14
    assert np.abs(y - [0.8, 0.2]).max() > 0.1


def test_y_outside_the_set_C_is_rejected():
    """With l1 = l2 the actuator has no length at theta1 = 0."""
    model = actuated_arm(0.6, 0.6)

    def margins(y):
        return [2 * 0.36 * (1 - np.cos(y[0]))]

    closure = LoopClosure(model, gamma, (Revolute("z"),) * 2, ("theta1", "theta4"), margins)
    with pytest.raises(
        UnreachableError,
        match=r"'actuated arm' cannot be assembled at theta1, theta4 = \[0\. 0\.\]: margin 0",
    ):
        closure.configuration([0.0, 0.0])
    assert len(closure.configuration([1.0, 0.0])) == 4


def test_velocities_that_are_not_rates_are_accounted_for(rng):
    """y a quaternion: yd is an angular velocity, and so is the qd of a ball joint."""
    from kinetree.model import ModelBuilder
    from kinetree.samples import random_inertia
    from kinetree.spatial.rotation import quaternion_product

    model = (
        ModelBuilder("two balls")
        .body("one", joint=Spherical(), inertia=random_inertia(rng))
        .body("two", on="one", joint=Spherical(), inertia=random_inertia(rng))
        .build()
    )
    turn = Spherical().random(rng)

    def follow(y):  # the second ball turns as the first, in another frame
        back = np.array([turn[0], *-turn[1:]])
        return [*y, *quaternion_product(quaternion_product(turn, y), back)]

    closure = LoopClosure(model, follow, (Spherical(),), ("ball",))
    y, yd, h = Spherical().random(rng), rng.standard_normal(3), 1e-5
    q, qd, G, g = closure.motion(y, yd)
    assert_close(qd, G @ yd)
    assert_close(np.linalg.norm(qd[3:]), np.linalg.norm(yd), ulps=1e3)

    def along(t):
        return closure.motion(closure.integrate(y, t * yd), yd).qd

    assert np.abs((along(h) - along(-h)) / (2 * h) - g).max() < 1e-8
    ahead = model.difference(q, closure.configuration(closure.integrate(y, h * yd)))
    assert np.abs(ahead / h - qd).max() < 1e-4


def test_what_does_not_fit_is_rejected():
    closure = arm()
    with pytest.raises(ShapeError, match=r"y must have shape \(2,\) for theta1, theta4"):
        closure.configuration([0.8])
    with pytest.raises(ShapeError, match=r"yd must have shape \(2,\)"):
        closure.motion([0.8, 0.2], [1.0])
    q = closure.configuration([0.8, 0.2])
    state = (closure.model, q, np.zeros(4), np.zeros(4))
    with pytest.raises(LoopError, match="does not say which y a q has"):
        solve(*state, method="closure", closure=closure)
    wrong = arm(coordinates=lambda q: q[[0, 0]])
    with pytest.raises(ShapeError, match="q is not on the branch of this closure function"):
        solve(*state, method="closure", closure=wrong)


@pytest.mark.parametrize(
    ("margins", "worst"),
    [([1, -2, 0.5], "1 of its closure function is -2"), ([0.1, 3, -0.0], "2 .* is -?0"),
     ([1, np.nan, -9], "1 .* is nan"), ([-1, -3, -2], "1 .* is -3")],
)  # fmt: skip
def test_the_worst_margin_is_named(margins, worst):
    closure = arm(margins=lambda y: margins)
    with pytest.raises(UnreachableError, match=f"margin {worst}, and must be above zero"):
        closure.configuration([0.8, 0.2])
