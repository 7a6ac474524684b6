"""Compiled accelerations and projections against the general solutions in NumPy."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms.closed import joint_space
from kinetree.loops.kinematics.compiled_projection import ClosedState, close_loops
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.projection import project_velocity
from kinetree.loops.kinematics.whitening import orthogonal, smallest, whitening
from kinetree.loops.stepping.choice import choose
from kinetree.loops.stepping.motion import acceleration

NAMES = ("four_bar", "five_bar", "bennett", "ladder")


def state(name, rng):
    model = getattr(kt.samples, name)()
    q = np.array(model.posture("home").q, dtype=float)
    return model, q, project_velocity(model, q, rng.normal(size=model.nv)), choose(model, q).chosen


@pytest.mark.covers("RBDA 8.5", by=acceleration)
@pytest.mark.parametrize("name", NAMES)
def test_accelerations_are_those_of_the_general_solution(name, rng):
    model, q, qd, chosen = state(name, rng)
    tau = rng.normal(size=model.nv)
    expected = joint_space.forward_dynamics(model, q, qd, tau)
    found = acceleration(model, q, qd, tau, chosen=chosen)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


@pytest.mark.covers("Spencer 3.1", by=close_loops)
@pytest.mark.parametrize("name", NAMES)
def test_a_state_off_the_constraints_goes_back_to_them(name, rng):
    model, q, qd, chosen = state(name, rng)
    moved = model.integrate(q, 1e-5 * rng.normal(size=model.nv))
    found = ClosedState(
        *close_loops(model, moved, qd + 1e-3 * rng.normal(size=model.nv), chosen=chosen)
    )
    left = constraint(model, found.q, found.qd)
    assert np.max(np.abs(left.error)) < 1e-14
    assert np.max(np.abs(left.rate)) < 1e-12
    again = ClosedState(*close_loops(model, found.q, found.qd, chosen=chosen))
    np.testing.assert_allclose(again.q, found.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(again.qd, found.qd, rtol=0, atol=1e-12)


@pytest.mark.covers("Spencer 3.1", by=close_loops)
def test_velocities_change_as_by_an_impulse_of_the_constraint_forces(rng):
    model, q, _, chosen = state("five_bar", rng)
    qd = rng.normal(size=model.nv)
    np.testing.assert_allclose(
        close_loops(model, q, qd, chosen=chosen)[1], project_velocity(model, q, qd), atol=1e-13
    )


def test_a_redundant_equation_has_no_effect(rng):
    """At a singular position, whatever acceleration is requested."""
    model = kt.samples.five_bar()
    q = np.array(model.posture("singular").q, dtype=float)
    chosen = choose(model, q).chosen
    equations = orthogonal(whitening(model, q), chosen(constraint(model, q, np.zeros(4)).K))
    assert min(equations.health) < 1e-25
    requested = np.array([1.0, 0.0]) if equations.health[0] < 1e-25 else np.array([0.0, 1.0])
    assert np.max(np.abs(smallest(equations, requested))) < 10
