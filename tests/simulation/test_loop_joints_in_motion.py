"""Springs, friction, limits and actuators in joints that close loops, in simulations."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.loops.kinematics.loop_joints import loop_positions, loop_velocities
from kinetree.model import JointDynamics, Limits, MechanismGraph
from kinetree.simulation.forces.limits import StiffLimits
from kinetree.simulation.forces.loop_joints import loop_joint_forces_of

BAR = kt.samples.four_bar()
HOME = np.array(BAR.posture("home").q)
AT_HOME = loop_positions(BAR, HOME)["pin"]


def swing(model, q=HOME, duration=0.2, **options):
    return kt.simulate(model, q, duration=duration, dt=1e-3, **options)


def test_a_spring_in_a_loop_joint_keeps_the_energy():
    model = BAR.replace(dynamics={"pin": JointDynamics(stiffness=3.0, rest=AT_HOME)})
    motion = swing(model)
    assert np.ptp(motion.energy) < 1e-10
    assert not np.allclose(motion.q[-1], swing(BAR).q[-1], atol=1e-3)


def test_limits_of_a_loop_joint_stop_it():
    bound = Limits(AT_HOME - 0.05, AT_HOME + 0.05)
    free = loop_positions(BAR, swing(BAR).q)["pin"] - AT_HOME
    assert np.max(np.abs(free)) > 0.13
    held = BAR.replace(limits={"pin": bound})
    motion = swing(held)
    assert np.max(np.abs(loop_positions(held, motion.q)["pin"] - AT_HOME)) < 0.06
    loose = swing(held, limits=None)
    assert_close(loose.q[-1], swing(BAR).q[-1], ulps=1e6)
    stiffer = swing(held, limits=StiffLimits(stiffness=1e4))
    assert np.max(np.abs(loop_positions(held, stiffer.q)["pin"] - AT_HOME)) < 0.06


def test_friction_of_a_loop_joint_takes_energy_at_the_rate_of_its_speed():
    model = BAR.replace(dynamics={"pin": JointDynamics(friction=0.05)})
    motion = swing(model, duration=0.1)
    speed = loop_velocities(model, motion.q, motion.qd)["pin"][:, 0]
    work = np.trapezoid(0.05 * np.abs(speed), motion.t)
    assert motion.energy[0] - motion.energy[-1] == pytest.approx(work, rel=2e-2)
    assert np.ptp(swing(model, duration=0.1, friction=None).energy) < 1e-9


def test_controls_reach_actuators_of_loop_joints():
    graph = MechanismGraph.from_model(BAR.replace(actuators=()))
    graph.actuator("motor", joint="pin", gear=2.0, control=(-1, 1))
    recut = graph.to_model()
    assert "pin" in recut.joint_names  # the joint with the motor gets a variable
    looped = graph.to_model(["crank_joint", "coupler_joint", "rocker_joint"])
    ends = []
    for model in (recut, looped):
        motion = swing(model, np.array(model.posture("home").q), controls=[0.4])
        ends.append(motion.q[-1, model.q_slice[model.joint_index("crank_joint")]])
    assert_close(ends[0], ends[1], ulps=1e8)
    with pytest.raises(ModelError, match="a torque-speed curve is for an actuator of a joint in"):
        swing(looped, motors={"motor": kt.TorqueSpeed(stall=1.0, free_speed=10.0)})


def test_what_loop_joints_cannot_do():
    rough = BAR.replace(dynamics={"pin": JointDynamics(friction=0.05)})
    with pytest.raises(ModelError, match="exact friction of joint 'pin', which closes a loop"):
        swing(rough, friction="exact")
    bounded = BAR.replace(limits={"pin": Limits(-1, 1)})
    with pytest.raises(ModelError, match="rigid limits of joint 'pin', which closes a loop"):
        swing(bounded, limits="rigid")
    ball = BAR.replace(joint={"pin": kt.Spherical()}, limits={"pin": Limits([0] * 4, [1] * 4)})
    with pytest.raises(ModelError, match="no stop can be put there"):
        swing(ball)
    assert loop_joint_forces_of(BAR, "smooth", "stiff") is None
