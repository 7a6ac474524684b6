"""Implicit steps on a chart: order, quadratic convergence, stiff springs, closed loops."""

from functools import cache

import numpy as np
import pytest
from support.linkages import spatial_chain

import kinetree as kt
from kinetree.loops.kinematics.constraint import closure_error, constraint
from kinetree.loops.linear.linearization import linearize_in_coordinates
from kinetree.model import JointDynamics
from kinetree.textbook.implicit_step import implicit_step

STIFF = kt.samples.four_bar().replace(
    dynamics={"crank_joint": JointDynamics(stiffness=5e3, damping=2.0)}
)
CRANK = ["crank_joint"]


@pytest.fixture
def state():
    G = linearize_in_coordinates(STIFF, np.zeros(3), np.zeros(3), np.zeros(3), independent=CRANK).G
    return np.zeros(3), G @ np.array([2.0]), np.zeros(3)


def period(state):
    A, _ = linearize_in_coordinates(STIFF, *state, independent=CRANK)
    return 2 * np.pi / np.abs(np.linalg.eigvals(A)).max()


def run(state, duration, steps, **options):
    q, qd, tau = state
    for _ in range(steps):
        q, qd, _ = implicit_step(STIFF, q, qd, tau, duration / steps, independent=CRANK, **options)
    return np.concatenate([q, qd])


@pytest.mark.covers("Spencer 4.5", by=implicit_step)
@pytest.mark.parametrize("scheme", ["trapezoid", "backward_euler"])
def test_newton_converges_quadratically_on_closed_configurations(scheme, state):
    q, qd, tau = state
    step = implicit_step(STIFF, q, qd, tau, 0.02, scheme=scheme, independent=CRANK)
    c = np.array(step.corrections)
    assert len(c) <= 8
    good = c[:-1][c[:-1] < 0.1]
    assert np.all(c[len(c) - len(good) :] < 20 * good**2 + 1e-13)
    assert np.abs(closure_error(STIFF, step.q)).max() < 1e-14
    assert np.abs(constraint(STIFF, step.q, step.qd).rate).max() < 1e-13

    other = implicit_step(
        STIFF, q, qd, tau, 0.02, scheme=scheme, independent=CRANK, linearization="differences"
    )
    assert np.abs(other.q - step.q).max() < 1e-12
    assert np.abs(other.qd - step.qd).max() < 1e-11


@pytest.mark.parametrize(("scheme", "order"), [("trapezoid", 2), ("backward_euler", 1)])
def test_orders(scheme, order, state):
    time = period(state) / 4
    exact = run(state, time, 80)
    coarse, fine = (np.abs(run(state, time, n, scheme=scheme) - exact).max() for n in (10, 20))
    assert abs(np.log2(coarse / fine) - order) < 0.2 * order


def test_a_step_far_beyond_the_period_of_the_spring_stays_tame(state):
    moved = run(state, 200 * period(state), 10, scheme="backward_euler")
    assert np.abs(moved[:3]).max() < 0.01  # it creeps back to the rest position
    assert np.abs(moved[3:]).max() < 0.1


def test_errors_name_what_is_wrong(state):
    q, qd, tau = state
    with pytest.raises(
        kt.UnknownNameError, match=r"no scheme 'rk4'; use one of \['backward_euler'"
    ):
        implicit_step(STIFF, q, qd, tau, 0.01, scheme="rk4")
    with pytest.raises(kt.KinetreeError, match=r"does not converge|finds no closed configuration"):
        implicit_step(STIFF, q, 1e3 * qd, tau, 1.0, independent=CRANK)


@cache
def floating_pair():
    """A free body in a slot, and a joint on it."""
    chain = spatial_chain(
        np.random.default_rng(0), kt.Free(), kt.Revolute("y"), cut=kt.joints.SphereInCylinder("x")
    )
    return *chain, None


def floating_tree():
    m = kt.samples.satellite()
    return m, m.neutral(), None


@pytest.mark.parametrize("make", [floating_pair, floating_tree])
@pytest.mark.parametrize(("scheme", "order"), [("trapezoid", 2), ("backward_euler", 1)])
def test_orders_and_convergence_on_a_curved_manifold(make, scheme, order):
    """Displacements from the start of a step take the place of coordinates."""
    m, q0, independent = make()
    rng = np.random.default_rng(3)
    qd0 = kt.loops.project_velocity(m, q0, rng.standard_normal(m.nv))
    tau = np.zeros(m.nv)

    def end(steps, scheme):
        q, qd = q0, qd0
        for _ in range(steps):
            q, qd, corrections = implicit_step(
                m, q, qd, tau, 0.05 / steps, scheme=scheme, independent=independent
            )
            assert len(corrections) <= 6  # quadratic convergence
        return q, qd

    exact_q, exact_qd = end(48, "trapezoid")
    assert np.abs(closure_error(m, exact_q)).max(initial=0) < 1e-13
    errors = []
    for steps in (4, 8):
        q, qd = end(steps, scheme)
        errors.append(max(np.abs(m.difference(exact_q, q)).max(), np.abs(qd - exact_qd).max()))
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.25 * order


def test_corrections_on_a_curved_manifold_are_squares_of_those_before():
    m, q, _ = floating_pair()
    rng = np.random.default_rng(3)
    qd = kt.loops.project_velocity(m, q, 3 * rng.standard_normal(m.nv))
    c = np.array(implicit_step(m, q, qd, np.zeros(m.nv), 0.05).corrections)
    assert np.all(c[1:] < 3 * c[:-1] ** 2 + 1e-13)
