"""Loops that carry bodies without inertia: the tree alone is singular, the mechanism is not."""

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms import crba
from kinetree.algorithms.closed import maximal
from kinetree.model import JointDynamics
from kinetree.spatial import Inertia

WAYS = ("projection", "projection+energy", "charts", "baumgarte", "none", "generalized_alpha")


def four_bar_without(*names):
    """The four-bar linkage with some of its bodies massless, closed, and a state of it."""
    model = kt.samples.four_bar()
    bodies = [replace(b, inertia=Inertia.zero()) if b.name in names else b for b in model.bodies]
    model = model.replace(bodies=bodies, dynamics={"crank_joint": JointDynamics(damping=0.2)})
    q = kt.loops.assemble(model)
    return model, q, kt.loops.project_velocity(model, q, np.ones(model.nv), weights="plain")


def by_hand(model, q, qd, tau, duration, count):
    """Classical Runge-Kutta steps, accelerations in maximal coordinates."""
    h, n = duration / count, model.nv

    def rate(x):
        q, qd = x[:n], x[n:]
        f = kt.passive_force(model, q, qd) + tau
        return np.concatenate([qd, maximal.forward_dynamics(model, q, qd, f)])

    x = np.concatenate([q, qd])
    for _ in range(count):
        k1 = rate(x)
        k2 = rate(x + h / 2 * k1)
        k3 = rate(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3))
    return x[:n], x[n:]


@pytest.mark.parametrize(("name", "ways"), [("coupler", WAYS), ("rocker", WAYS[:1])])
def test_a_massless_link_is_carried_along(name, ways):
    model, q, qd = four_bar_without(name)
    assert np.linalg.matrix_rank(crba.joint_space_inertia(model, q)) < model.nv
    tau = np.array([0.3, 0.0, 0.0])
    expected = by_hand(model, q, qd, tau, 0.1, 20)
    for way in ways:
        motion = kt.simulate(
            model, q, qd, duration=0.1, dt=2e-3, constraints=way, controller=lambda t, q, qd: tau
        )
        tolerance = 1e-4 if way == "generalized_alpha" else 1e-7  # of order 2, and 4 to 6
        np.testing.assert_allclose(motion.q[-1], expected[0], atol=tolerance)
        np.testing.assert_allclose(motion.qd[-1], expected[1], atol=20 * tolerance)
        assert not motion.report.warnings
        assert motion.report.smallest_pivot > 0.1
    rolled = kt.rollout(model, q, qd, tau, steps=50, dt=2e-3)
    np.testing.assert_allclose(rolled.q[-1], expected[0], atol=1e-7)


def test_drives_of_massless_links_exert_what_the_motion_takes():
    """The force of a prescribed joint balances the power of the whole mechanism."""
    model, q, _ = four_bar_without("coupler")

    def turning(t):
        return q[0] + 0.5 * t * t, t, 1.0

    motion = kt.simulate(model, q, duration=0.1, dt=2e-3, prescribed={"crank_joint": turning})
    np.testing.assert_allclose(motion.q[-1, 0], q[0] + 0.005, atol=1e-9)
    whole, half = kt.samples.four_bar(), 25
    tau, state = motion.tau[half], (motion.q[half], motion.qd[half])
    light = [
        replace(b, inertia=b.inertia * 1e-6) if b.name == "coupler" else b for b in whole.bodies
    ]
    almost = whole.replace(bodies=light, dynamics={"crank_joint": JointDynamics(damping=0.2)})
    passive = kt.passive_force(almost, *state)
    qdd = kt.forward_dynamics(almost, *state, tau + passive)
    np.testing.assert_allclose(qdd[0], 1.0, atol=1e-4)


def test_a_motion_that_nothing_resists_is_named():
    model, q, _ = four_bar_without("crank", "coupler", "rocker")
    with pytest.raises(kt.SingularError, match="'four-bar' is singular: some motion that its loop"):
        kt.simulate(model, q, duration=0.1)


# --- stiff springs and dampers -------------------------------------------------------------------


def message_of(call):
    with pytest.raises(kt.SimulationError) as caught:
        call()
    return str(caught.value)


def with_warning(call):
    with pytest.warns(kt.SimulationWarning, match="acts within .* is stable in steps up to"):
        return call()


def test_stiff_dampers_are_named_with_the_integrators_for_them():
    model = kt.samples.double_pendulum()
    stiff = model.replace(dynamics={"elbow": JointDynamics(damping=3e3)})
    named = (
        "the damper at joint 'elbow' acts within 15.6 µs, and a step takes 10 ms: take "
        "integrator='auto' or 'rosenbrock_w', which are for stiff systems, or a dt below 21.8 µs"
    )
    explicit = {"dt": 0.01, "integrator": "rk4"}
    for run in (
        lambda: kt.simulate(stiff, [0.5, 0.2], duration=0.5, **explicit),
        lambda: kt.rollout(stiff, [0.5, 0.2], steps=50, **explicit),
    ):
        assert named in message_of(lambda run=run: with_warning(run))
    motion = kt.simulate(stiff, [0.5, 0.2], duration=0.5, dt=0.01, integrator="rosenbrock")
    np.testing.assert_allclose(motion.q[-1, 1], 0.2, atol=1e-3)


def test_a_spring_is_named_where_it_is_the_stiffer():
    model = kt.samples.double_pendulum()
    stiff = model.replace(dynamics={"shoulder": JointDynamics(stiffness=1e9, damping=1e-3)})
    found = message_of(
        lambda: with_warning(
            lambda: kt.simulate(stiff, [0.5, 0.2], duration=0.5, dt=0.01, integrator="rk4")
        )
    )
    assert "the spring at joint 'shoulder' acts within" in found


def test_loops_with_stiff_dampers_name_the_integrator_for_them():
    model = kt.samples.four_bar()
    stiff = model.replace(dynamics={"crank_joint": JointDynamics(damping=3e3)})
    q = kt.loops.assemble(stiff)
    with pytest.raises((kt.SimulationError, kt.SimulationWarning)) as caught:  # as rounding has it
        with_warning(lambda: kt.simulate(stiff, q, duration=0.2, dt=0.01, integrator="rk6"))
    found = str(caught.value)
    assert "the damper at joint 'crank_joint' acts within" in found
    assert "take integrator='auto' or 'rosenbrock_w'" in found
    with pytest.raises(kt.LoopError, match=r"of a tree; .* or constraints='generalized_alpha'"):
        kt.simulate(stiff, q, duration=0.2, dt=0.01, integrator="rosenbrock")
