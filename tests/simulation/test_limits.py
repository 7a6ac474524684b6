"""Ends of travel: springs that push back, stops that joints bounce off and rest at."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import arm, assert_balanced, block, geared_robot

import kinetree as kt
from kinetree.errors import LoopError, ModelError, ShapeError, UnknownNameError
from kinetree.model import JointDynamics, Limits
from kinetree.simulation.forces.modes import Modes

BOUNDS = Limits(lower=-1.0, upper=1.0)


def test_stiff_limits_are_the_default_and_hold_a_load():
    # 8 N against a spring of 4e4 N/m.
    model = block(2.0, (-4.0, 0.0, 0.0), BOUNDS)
    law = kt.StiffLimits(stiffness=4e4)
    motion = kt.simulate(model, [-0.9], duration=2.0, dt=1e-3, limits=law)
    assert abs(motion.q[-1, 0] - (-1 - 8 / 4e4)) < 1e-9
    assert_balanced(motion, 1e-3)
    default = kt.simulate(model, [-0.9], duration=2.0, dt=1e-3)
    assert -1.001 < default.q[-1, 0] < -1
    assert abs(default.qd[-1, 0]) < 1e-9
    assert_balanced(default, 1e-3)


def test_stiff_limits_without_damping_return_all_energy():
    law = kt.StiffLimits(stiffness=1e3, damping_ratio=0.0)
    motion = kt.simulate(block(limits=BOUNDS), [0.9], [1.0], duration=0.5, dt=1e-4, limits=law)
    assert np.max(motion.q) > 1.0
    assert abs(motion.qd[-1, 0] + 1.0) < 1e-7
    # In the stop for half a period of the swing on the spring.
    inside = motion.t[motion.q[:, 0] > 1]
    assert abs(np.ptp(inside) - np.pi * np.sqrt(2.0 / 1e3)) < 3e-4
    assert_balanced(motion, 1e-7)


@pytest.mark.parametrize("integrator", ["rosenbrock", "implicit_midpoint"])
def test_integrators_for_stiff_systems_take_long_steps_into_limits_and_friction(integrator):
    model = block(2.0, (-4.0, 0.0, 0.0), BOUNDS, friction=1.0)
    options = {"friction": kt.Friction(width=1e-2), "limits": kt.StiffLimits(stiffness=1e4)}
    motion = kt.simulate(model, [-0.95], duration=2.0, dt=2e-3, integrator=integrator, **options)
    assert -1 - 9 / 1e4 < motion.q[-1, 0] < -1 - 7 / 1e4
    assert abs(motion.qd[-1, 0]) < 1e-3
    assert_balanced(motion, 1e-2)


def test_stiff_limits_never_pull(rng):
    law = kt.StiffLimits().of(block(limits=BOUNDS))
    q, qd = rng.uniform(-1.2, 1.2, (1000, 1)), 10 * rng.standard_normal((1000, 1))
    force = law(block(limits=BOUNDS), 0.0, q, qd)
    assert np.all(force[q > 1] <= 0)
    assert np.all(force[q < -1] >= 0)
    assert np.all(force[np.abs(q) < 1] == 0)


@pytest.mark.parametrize("geared", [False, True], ids=["arm", "geared"])
def test_resistance_of_stiff_limits_is_the_derivative_of_their_force(geared, rng):
    model = geared_robot(rng) if geared else kt.samples.panda()
    full = model.uncoupled
    stops = [(i, i, sign, -0.2 * sign, 50.0, 3.0) for i in range(full.nv) for sign in (1.0, -1.0)]
    law = kt.StiffLimits(onset=1e-15, stops=tuple(stops))
    unit, h = np.eye(model.nv), 1e-5
    for _ in range(20):
        q, qd = rng.normal(size=(2, model.nv))  # beyond most of them
        K, D = law.resistance(model, q, qd)
        change = [law(model, 0, q, qd - h * u) - law(model, 0, q, qd + h * u) for u in unit]
        assert_close(D, np.diag(change) / (2 * h), condition=1 / h)
        assert np.any(D > 0)
        if not geared:  # ratios that change would show, too
            change = [law(model, 0, q - h * u, qd) - law(model, 0, q + h * u, qd) for u in unit]
            assert_close(K, np.diag(change) / (2 * h), condition=1 / h)


@pytest.mark.covers("RBDA 11.7", by=Modes.impact)
def test_rigid_limits_bounce_when_the_formula_says():
    a, e = 4.0, 0.5
    model = block(2.0, (-a, 0.0, 0.0), BOUNDS)
    law = kt.RigidLimits(restitution=e, rest_velocity=1e-3)
    motion = kt.simulate(model, [0.0], duration=3.0, dt=0.01, limits=law)
    first = np.sqrt(2 / a)
    speed = a * first * e ** np.arange(1, 12)  # after each impact
    leaves = speed >= 1e-3
    times = first + np.concatenate([[0], np.cumsum(2 * speed / a)])[: leaves.sum() + 1]
    assert [e.name for e in motion.events] == ["block_joint reaches its lower limit"] * len(times)
    assert np.max(np.abs(np.array([e.t for e in motion.events]) - times)) < 1e-10
    assert np.all(motion.q[motion.t > times[-1] + 1e-9] == -1)  # rests there, exactly
    lost = sum(e.energy for e in motion.events)
    assert abs(lost + 2.0 * a * 1.0) < 1e-12
    assert motion.report.event_energy == lost
    assert_balanced(motion, 1e-13)


def test_rigid_limits_without_loss_keep_the_energy():
    law = kt.RigidLimits(restitution=1.0)
    motion = kt.simulate(block(limits=BOUNDS), [0.0], [1.5], duration=5.0, dt=0.01, limits=law)
    assert len(motion.events) == 4
    assert np.ptp(motion.energy) < 1e-12
    x = 0.0 + 1.5 * 5.0  # unfolded: the path of light between mirrors
    assert abs(abs((x - 1) % 4 - 2) - 1 - motion.q[-1, 0]) < 1e-10
    assert_balanced(motion, 1e-13)


def test_an_impact_of_one_joint_moves_the_others_as_the_inertia_says(rng):
    model = arm(Limits(lower=-0.5, upper=0.5))
    modes = Modes(model, None, kt.RigidLimits(restitution=0.3), ())
    q, qd = np.array([0.5, 0.1]), np.array([2.0, -1.0])
    _, after = modes.impact(0, -1.0, q, qd)
    H = kt.mass_matrix(model, q)
    u = H @ (after - qd)  # RBDA (11.57)
    assert_close(after[0], -0.3 * qd[0])
    assert abs(u[1]) < 1e-14
    assert u[0] < 0
    assert kt.kinetic_energy(model, q, after) < kt.kinetic_energy(model, q, qd)


def test_a_joint_at_its_stop_is_kept_there_by_an_impulse_or_leaves():
    model = arm(Limits(lower=-0.5, upper=0.5))
    modes = Modes(model, None, kt.RigidLimits(), ())
    for elbow in (0.5, -0.5):
        q, qd = np.array([0.5, elbow]), np.array([2.0, 0.0])
        _, after = modes.impact(0, -1.0, q, qd)
        u = kt.mass_matrix(model, q) @ (after - qd)
        inward = -np.sign(elbow)
        assert after[0] == 0
        assert (after[1] == 0 and u[1] * inward > 0) or (
            after[1] * inward > 0 and abs(u[1]) < 1e-14
        )


def test_a_pendulum_with_stops_accounts_for_every_joule():
    model = arm(Limits(lower=-0.6, upper=0.6), damping=0.05)
    law = kt.RigidLimits(restitution=0.4)
    motion = kt.simulate(model, [0.5, -0.5], [5.0, -8.0], duration=3.0, dt=2e-3, limits=law)
    assert len(motion.events) >= 4
    assert np.all(np.abs(motion.q) <= 0.6 + 1e-9)
    assert np.all(np.array([e.energy for e in motion.events]) <= 1e-9)
    assert_balanced(motion, 1e-7)


def test_a_joint_held_at_its_stop_leaves_when_pulled_away():
    def controller(t, q, qd):
        return -5.0 if t < 0.5 else 5.0

    model = block(2.0, limits=BOUNDS)
    motion = kt.simulate(
        model, [-1.0], duration=1.0, dt=0.01, controller=controller, limits="rigid"
    )
    assert np.all(motion.q[motion.t <= 0.5] == -1)
    assert_close(motion.q[-1], np.array([-1 + 0.5 * 2.5 * 0.25]), ulps=1e4)
    assert_balanced(motion, 1e-12)

    @kt.kernel
    def turning(model, t, q, qd):
        return np.array([10 * (t - 0.5)])

    motion = kt.simulate(model, [-1.0], duration=1.0, dt=0.03, forces=turning, limits="rigid")
    (leaves,) = motion.events
    assert leaves.name == "block_joint breaks away"
    assert abs(leaves.t - 0.5) < 1e-11
    assert_close(motion.q[-1], np.array([-1 + 5 / 6 * 0.5**3]), ulps=1e4)
    assert_balanced(motion, 1e-12)


def test_friction_and_stops_at_the_same_joint():
    model = block(2.0, (-4.0, 0.0, 0.0), BOUNDS, friction=3.0)
    law = kt.RigidLimits(restitution=0.5)
    motion = kt.simulate(model, [0.0], duration=3.0, dt=0.01, friction="exact", limits=law)
    first = np.sqrt(2 / 2.5)  # 8 N of load less 3 N of friction on 2 kg
    assert abs(motion.events[0].t - first) < 1e-10
    assert abs(motion.events[1].t - (first + 0.5 * 2.5 * first / 5.5)) < 1e-10  # and back: 11 N
    assert motion.q[-1, 0] == -1
    assert np.all(motion.qd[-1] == 0)
    assert_balanced(motion, 1e-12)


def test_limits_of_arms_on_a_floating_base():
    inertia = kt.shapes.box(0.2, 0.3, 0.4, mass=5.0)
    model = (
        kt.ModelBuilder("floating", gravity=(0, 0, 0))
        .body("hull", joint=kt.Free(), inertia=inertia)
        .body("arm", on="hull", joint=kt.Revolute("x"), at=(0, 0, 0.2), inertia=inertia)
        .build()
        .replace(
            limits={"arm_joint": Limits(lower=-0.3, upper=0.3)},
            dynamics={"arm_joint": JointDynamics(friction=0.5)},
        )
    )
    qd0 = np.array([0.3, -0.2, 0.5, 0.1, 0.2, 0.3, 3.0])
    for options in (
        {"limits": kt.RigidLimits(restitution=0.7), "friction": "exact"},
        {"limits": "stiff"},
    ):
        motion = kt.simulate(model, model.neutral(), qd0, duration=1.0, dt=2e-3, **options)
        momentum = kt.momentum(model, motion.q, motion.qd)
        assert np.max(np.abs(momentum - momentum[0])) < 1e-6  # forces inside change nothing
        assert np.max(np.abs(motion.q[:, 7])) < 0.33
        assert_balanced(motion, 1e-2 if options["limits"] == "stiff" else 1e-8)


def test_no_limits_on_request():
    motion = kt.simulate(block(limits=BOUNDS), [0.0], [1.0], duration=2.0, dt=0.1, limits=None)
    assert_close(motion.q[-1], np.array([2.0]))
    assert_balanced(motion, 1e-14)


def test_samples_of_a_batch_bounce_on_their_own():
    model = block(2.0, (-4.0, 0.0, 0.0), BOUNDS)
    q0 = np.array([[0.0], [0.5], [-1.0]])
    law = kt.RigidLimits(restitution=0.5)
    motion = kt.simulate(model, q0, duration=1.5, dt=0.02, limits=law)
    for k in range(3):
        alone = kt.simulate(model, q0[k], duration=1.5, dt=0.02, limits=law)
        assert np.max(np.abs(motion.q[:, k] - alone.q)) < 1e-9
    assert np.all(motion.q[:, 2] == -1)
    assert_balanced(motion, 1e-12)


def test_limits_are_checked():
    model = block(limits=BOUNDS)
    with pytest.raises(ShapeError, match=r"joint 'block_joint' at 1\.5, beyond its limits -1 to 1"):
        kt.simulate(model, [1.5], duration=0.1, limits="rigid")
    with pytest.raises(UnknownNameError, match="limits must be 'stiff', 'rigid'"):
        kt.simulate(model, [0.0], duration=0.1, limits="soft")
    with pytest.raises(TypeError, match="limits must be 'stiff', 'rigid'"):
        kt.simulate(model, [0.0], duration=0.1, limits=3.0)
    with pytest.raises(ModelError, match="restitution must be between 0 and 1"):
        kt.RigidLimits(restitution=1.5)
    with pytest.raises(ModelError, match="rest_velocity must not be negative"):
        kt.RigidLimits(rest_velocity=-1.0)
    with pytest.raises(ModelError, match="frequency of stiff limits must be positive"):
        kt.StiffLimits(frequency=0.0)
    with pytest.raises(ModelError, match="damping_ratio of stiff limits"):
        kt.StiffLimits(damping_ratio=-1.0)
    with pytest.raises(ModelError, match="one number or nv = 1"):
        kt.simulate(model, [0.0], duration=0.1, limits=kt.StiffLimits(stiffness=(1.0, 2.0)))
    m = kt.samples.four_bar()
    stopped = m.replace(limits={m.joint_names[0]: Limits(lower=-3.0, upper=3.0)})
    with pytest.raises(LoopError, match="stops hold single joints"):
        kt.simulate(stopped, m.neutral(), duration=0.1, limits="rigid")


def test_limits_of_quaternions_have_no_stops():
    inertia = kt.shapes.box(0.2, 0.3, 0.4, mass=5.0)
    model = kt.ModelBuilder("top").body("top", joint=kt.Spherical(), inertia=inertia).build()
    bad = model.replace(limits={"top_joint": Limits(lower=(-1, -1, -1, -1), upper=(1, 1, 1, 1))})
    with pytest.raises(ModelError, match=r"'top_joint' .Spherical. has a finite lower limit"):
        kt.simulate(bad, model.neutral(), duration=0.1)
