"""Limits and friction of joints that close loops are rows: the same wherever a loop is cut."""

from typing import Any

import numpy as np
import pytest
from support.environments import state_in_environment

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.loops.kinematics.loop_joints import loop_positions
from kinetree.model import JointDynamics, Limits, MechanismGraph

BAR = kt.samples.four_bar()
HOME = np.array(BAR.posture("home").q)
AT_HOME = loop_positions(BAR, HOME)["pin"]
TREES = {
    "pin closes the loop": ["crank_joint", "coupler_joint", "rocker_joint"],
    "pin is in the tree": ["crank_joint", "coupler_joint", "pin"],
}


def cut(which, **joint):
    """The linkage with one of its joints cut, a pin that has limits or friction, and its home."""
    given: dict[str, Any] = {name: {"pin": value} for name, value in joint.items()}
    model = MechanismGraph.from_model(BAR.replace(actuators=(), **given)).to_model(TREES[which])
    return model, np.array(model.posture("home").q)


def crank_after(which, h, time=0.4, **joint):
    """Angle and speed of the crank after some time in a world."""
    model, q = cut(which, **joint)
    world = kt.World(timestep=h)
    world.add(model, q=q)
    world.step(round(time / h))
    k = model.joint_index("crank_joint")
    return world.q[model.q_slice[k].start], world.qd[model.v_slice[k].start]


PINS = {
    "limits": {"limits": Limits(AT_HOME - 0.05, AT_HOME + 0.05)},
    "friction that slides": {"dynamics": JointDynamics(friction=0.05)},
    "friction that holds": {"dynamics": JointDynamics(friction=50.0)},
    "both": {
        "limits": Limits(AT_HOME - 0.05, AT_HOME + 0.08),
        "dynamics": JointDynamics(friction=0.03),
    },
}


@pytest.mark.parametrize("pin", PINS)
def test_motions_do_not_depend_on_where_the_loop_is_cut(pin):
    apart = []
    for h in (2e-3, 1e-3):
        ends = [crank_after(which, h, **PINS[pin]) for which in TREES]
        apart.append(np.abs(np.diff(ends, axis=0)).max())
    assert apart[0] < 1e-3  # at up to 10.8 rad/s
    assert apart[1] < max(0.6 * apart[0], 1e-8)


def test_a_limit_is_kept_exactly_and_friction_holds():
    model, q = cut("pin closes the loop", **PINS["limits"])
    world = kt.World(timestep=1e-3)
    world.add(model, q=q)
    farthest = 0.0
    for _ in range(400):
        world.step()
        farthest = max(farthest, np.abs(loop_positions(model, world.q)["pin"] - AT_HOME).max())
    assert farthest == pytest.approx(0.05, abs=1e-8)
    assert np.abs(world.qd).max() < 1e-9  # it leans on the stop
    held, q = cut("pin closes the loop", **PINS["friction that holds"])
    world = kt.World(timestep=1e-3)
    world.add(held, q=q)
    world.step(400)
    np.testing.assert_allclose(world.q, q, atol=1e-9)


def test_exact_friction_is_the_limit_of_smooth_friction():
    model, q = cut("pin closes the loop", **PINS["friction that slides"])
    law = kt.Friction(width=1e-5)
    peer = kt.simulate(model, q, duration=0.2, dt=5e-5, integrator="rk4", friction=law).q[-1]
    apart = []
    for h in (2e-3, 5e-4):
        world = kt.World(timestep=h)
        world.add(model, q=q)
        world.step(round(0.2 / h))
        apart.append(np.abs(world.q - peer).max())
    assert apart[1] < 0.5 * apart[0] < 1e-3


def state_of_environment(model, q, h, steps):
    nothing_touches = TimeStepping(Scene(model, pairs=[]))
    return state_in_environment(model, q, dt=h, decimation=steps, contact=nothing_touches)["q"]


@pytest.mark.parametrize("pin", ["both", "limits"])
def test_every_door_has_the_same_rows(pin):
    model, q = cut("pin closes the loop", **PINS[pin])
    h, steps = 1e-3, 300
    world = kt.World(timestep=h)
    world.add(model, q=q)
    worlds = world.batch(2)
    world.step(steps)
    worlds.step(steps)
    contact = TimeStepping(Scene(model, pairs=[]))
    doors = {
        "batch": worlds.q[1],
        "simulate": kt.simulate(model, q, duration=steps * h, dt=h, contact=contact).q[-1],
        "rollout": kt.rollout(model, q, steps=steps, dt=h, contact=contact).q[-1],
        "Environment": state_of_environment(model, q, h, steps),
    }
    for door, found in doors.items():
        np.testing.assert_allclose(found, world.q, atol=1e-10, err_msg=door)


def test_derivatives_have_stiff_limits_and_smooth_friction():
    """Their code is unrolled, which has no rows of loop joints."""
    model, q = cut("pin closes the loop", **PINS["both"])

    @kt.kernel
    def end(model, q, qd):
        return q @ q

    contact = TimeStepping(Scene(model, pairs=[]))
    found = kt.rollout_gradient(model, q, steps=5, dt=1e-3, contact=contact, terminal=end)
    assert np.all(np.isfinite(found.q0))
