"""Transmissions and ros2_control of URDF files are actuators, servos where gains are given."""

import numpy as np
import pytest
from support.urdf_files import arm, joint, link, quietly, read, robot

import kinetree as kt
from kinetree.loaders import loads
from kinetree.model import Actuator, Coupling, Tendon
from kinetree.writers.urdf import to_urdf

SIMPLE = """<transmission name='t'><type>transmission_interface/SimpleTransmission</type>
<joint name='j'><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
<actuator name='motor'><mechanicalReduction>50</mechanicalReduction></actuator></transmission>"""


def test_simple_transmission_is_an_actuator():
    assert quietly(arm("continuous", "", SIMPLE)).actuators == (Actuator("motor", 1, (50.0,)),)


def test_an_offset_of_zero_is_no_news():
    text = SIMPLE.replace("<mech", "<offset>0.0</offset><mech")
    assert quietly(arm("continuous", "", text)).actuators == (Actuator("motor", 1, (50.0,)),)


def test_old_transmission_is_an_actuator_too():
    old = """<transmission type='pr2_mechanism_model/SimpleTransmission' name='t'>
    <actuator name='motor'/><joint name='j'/><mechanicalReduction>-63</mechanicalReduction>
    </transmission>"""
    assert quietly(arm("continuous", "", old)).actuators == (Actuator("motor", 1, (-63.0,)),)


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        (
            SIMPLE.replace("Simple", "FourBarLinkage"),
            "a SimpleTransmission of one joint or a DifferentialTransmission of two is an actuator",
        ),
        (
            SIMPLE.replace("Effort", "Position"),
            "<hardwareInterface>: the gains of a position servo are not in the file: the actuator "
            "is a motor, its control a force",
        ),
        (
            SIMPLE.replace("Effort", "hardware_interface/Velocity"),
            "<hardwareInterface>: the gains of a velocity servo are not in the file",
        ),
        (SIMPLE.replace("'j'", "'x'"), "the joint 'x' that it drives does not exist"),
        (SIMPLE + SIMPLE, "another transmission has the actuator 'motor'"),
        (SIMPLE.replace("<mech", "<offset>1</offset><mech"), "<offset>: the zero of the motor"),
        ("<transmission name='t'/>", "<transmission name='t'>: a SimpleTransmission of one"),
    ],
)
def test_other_transmissions_are_noted(text, notice):
    _, notices = read(arm("continuous", "", text))
    assert notice in notices[0]
    assert len(notices) == 1


def test_a_joint_that_does_not_move_is_not_driven():
    model, notices = read(arm("fixed", "", SIMPLE))
    assert "that it drives does not move" in notices[0]
    assert model.actuators == ()


def test_a_transmission_whose_reduction_is_not_a_number_is_left_out():
    for text in ("", "fifty"):
        model, notices = read(arm("continuous", "", SIMPLE.replace(">50<", f">{text}<")))
        assert model.actuators == ()
        assert "it is left out: <mechanicalReduction>: the content must" in notices[0]


def test_rotor_inertia_is_armature():
    rotor = "<drake:rotor_inertia value='2e-5'/><drake:gear_ratio value='30'/><mech"
    model = quietly(arm("continuous", "", SIMPLE.replace("<mech", rotor)))
    assert model.bodies[0].dynamics.armature == (pytest.approx(2e-5 * 30**2),)
    own = "<dynamics damping='0.3'/>"
    model = quietly(
        arm("continuous", own, SIMPLE.replace("<mech", "<drake:rotor_inertia value='1'/><mech"))
    )
    assert model.bodies[0].dynamics.armature == (1.0,)
    assert model.bodies[0].dynamics.damping == (0.3,)


# --- differentials -------------------------------------------------------------------------------

TWO = (
    *(link(f"l{k}") for k in range(3)),
    *(joint(f"j{k}", f"l{k}", f"l{k + 1}", "continuous", "") for k in range(2)),
)
DIFFERENTIAL = """<transmission name='d'>
<type>transmission_interface/DifferentialTransmission</type>
<actuator name='b'><role>actuator2</role><mechanicalReduction>-30</mechanicalReduction></actuator>
<actuator name='a'><role>actuator1</role><mechanicalReduction>50</mechanicalReduction></actuator>
<joint name='j0'><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint>
<joint name='j1'><role>joint2</role><mechanicalReduction>3</mechanicalReduction></joint>
</transmission>"""


def test_a_differential_has_two_motors_that_act_on_both_joints():
    model = quietly(robot(*TWO, DIFFERENTIAL))
    assert model.tendons == (Tendon("a", (1, 2), (2.0, 3.0)), Tendon("b", (1, 2), (2.0, -3.0)))
    assert model.actuators == (
        Actuator("a", gear=(50.0,), tendon="a"),
        Actuator("b", gear=(-30.0,), tendon="b"),
    )


def test_a_differential_keeps_power():
    """Forces and velocities of motors and joints, as the documentation of ROS has them."""
    model, (f_a, f_b), qd = quietly(robot(*TWO, DIFFERENTIAL)), (0.3, -0.7), np.array([0.4, 1.1])
    n, N = (2.0, 3.0), (50.0, -30.0)
    tau = n[0] * (N[0] * f_a + N[1] * f_b), n[1] * (N[0] * f_a - N[1] * f_b)
    speeds = N[0] * (n[0] * qd[0] + n[1] * qd[1]), N[1] * (n[0] * qd[0] - n[1] * qd[1])
    assert np.dot(tau, qd) == pytest.approx(f_a * speeds[0] + f_b * speeds[1])
    ours = sum(
        f * a.gear[0] * np.array(t.coefficients)
        for f, a, t in zip((f_a, f_b), model.actuators, model.tendons, strict=True)
    )
    np.testing.assert_allclose(ours, tau)


# --- ros2_control --------------------------------------------------------------------------------

BLOCK = """<ros2_control name='r' type='system'><hardware><plugin>x/Y</plugin></hardware>
{}</ros2_control>"""


def commanded(inside, name="j", more=""):
    part = f"<joint name='{name}'>{inside}<state_interface name='position'/></joint>"
    return arm("continuous", "", BLOCK.format(part + more))


def test_an_effort_interface_is_a_motor():
    bounds = "<param name='min'>-8</param><param name='max'>5</param>"
    text = f"<command_interface name='position'/><command_interface name='effort'>{bounds}"
    model, notices = read(commanded(text + "</command_interface>"))
    assert model.actuators == (Actuator("j", 1, control=(-8.0, 5.0)),)
    assert len(notices) == 1
    assert "<hardware>: kinetree runs no drivers of hardware" in notices[0]


def test_a_reduction_of_ros2_control():
    through = """<transmission name='t'><plugin>transmission_interface/SimpleTransmission</plugin>
    <actuator name='motor' role='actuator1'/><joint name='j' role='joint1'>
    <mechanical_reduction>-4</mechanical_reduction></joint></transmission>"""
    bounds = "<param name='min'>-8</param><param name='max'>4</param>"
    text = f"<command_interface name='effort'>{bounds}</command_interface>"
    model, _ = read(commanded(text, more=through))
    assert model.actuators == (Actuator("motor", 1, (-4.0,), control=(-1.0, 2.0)),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<param name='kp'>90</param><param name='kd'>4</param>"
            "<command_interface name='position'><param name='min'>-1</param></command_interface>",
            {"gain": (90, 0, 0), "bias": (0, -90, -4), "control": (-1.0, np.inf)},
        ),
        (
            "<command_interface name='position_pid'><param name='pos_kp'>90</param>"
            "</command_interface>",
            {"gain": (90, 0, 0), "bias": (0, -90, 0)},
        ),
        (
            "<command_interface name='velocity'/><param name='velocity_kp'>7</param>",
            {"gain": (7, 0, 0), "bias": (0, 0, -7)},
        ),
    ],
)
def test_servos_of_ros2_control_have_the_gains_of_the_file(text, expected):
    model, notices = read(commanded(text))
    assert len(notices) == 1  # of the hardware
    assert model.actuators == (Actuator("j", 1, **expected),)


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        (
            "<command_interface name='position'/>",
            "joint 'j': the gains of a position servo are not in the file: the actuator is a motor",
        ),
        (
            "<command_interface name='velocity'/>",
            "joint 'j': the gains of a velocity servo are not in the file",
        ),
        (
            "<command_interface name='position'/><param name='kp'>1</param>"
            "<param name='ki'>2</param>",
            "integral gain of joint 'j': an actuator has none",
        ),
        (
            "<command_interface name='effort'><param name='min'>3</param>"
            "<param name='max'>1</param></command_interface>",
            "min and max: 3 is above 1: no bounds",
        ),
    ],
)
def test_what_ros2_control_leaves_open_is_noted(text, notice):
    model, notices = read(commanded(text))
    assert notice in notices[0]
    assert [a.name for a in model.actuators] == ["j"]


def test_other_joints_and_parts_of_ros2_control():
    effort = "<command_interface name='effort'/>"
    model, notices = read(commanded(effort, name="x"))
    assert "the joint 'x' that it drives does not exist" in notices[0]
    model, notices = read(commanded("", more="<sensor name='s'/><gpio name='g'/>"))
    assert model.actuators == ()
    assert "<sensor name='s'>: a sensor of the hardware" in notices[0]
    assert "<gpio name='g'>: inputs and outputs of the hardware" in notices[2]
    model, notices = read(commanded(effort).replace("</robot>", SIMPLE + "</robot>"))
    assert [a.name for a in model.actuators] == ["motor"]
    assert "<joint name='j'>: joint 'j' has an actuator already" in " ".join(notices)
    text = "<command_interface name='position'/><param name='kp'>-3</param>"
    model, notices = read(commanded(text))
    assert model.actuators == ()
    assert "parameter 'kp' must not be negative, got -3" in notices[0]
    text = "<command_interface name='effort'><param name='max'>x</param></command_interface>"
    model, notices = read(commanded(text))
    assert model.actuators == ()
    assert "it is left out: <command_interface name='effort'>: parameter 'max' must" in notices[0]


def test_a_mimic_of_ros2_control_is_a_coupling():
    follower = """<joint name='j1'><param name='mimic'>j0</param>
    <param name='multiplier'>-2</param></joint>"""
    model, _ = read(robot(*TWO, BLOCK.format(follower)))
    assert model.couplings == (Coupling("j1_mimic", 2, 1, (0.0, -2.0)),)
    model, notices = read(robot(*TWO, BLOCK.format(follower.replace("j0", "x"))))
    assert model.couplings == ()
    assert "the joint 'x' does not exist" in notices[0]


def test_a_differential_of_ros2_control():
    through = DIFFERENTIAL.replace("type>", "plugin>").replace("mechanicalR", "mechanical_r")
    both = "".join(
        f"<joint name='{j}'><command_interface name='effort'/></joint>" for j in ("j0", "j1")
    )
    model, _ = read(robot(*TWO, BLOCK.format(both + through)))
    assert model.actuators == quietly(robot(*TWO, DIFFERENTIAL)).actuators


# --- written and read again ----------------------------------------------------------------------


def _servos():
    model = quietly(arm("continuous", "", SIMPLE))
    more = (
        Actuator("p", 1, gear=(3.0,), gain=9.0, bias=(1.0, -9.0, -2.0), effort=(-5.0, 6.0)),
        Actuator("v", 1, gain=4.0, bias=(0.0, 0.0, -4.0), control=(-1.0, 1.0)),
        Actuator("f", 1, activation="filter", time_constant=0.2, activation_range=(-1.0, 2.0)),
    )
    model = model.replace(actuators=(*model.actuators, *more))
    posture = kt.Posture("home", model.neutral(), controls=(1, 2, 3, 4), activation=(0.5,))
    return model.replace(postures=[posture])


def test_servos_are_written_for_kinetree():
    model = _servos()
    text = to_urdf(model)
    assert "PositionJointInterface" in text
    assert "VelocityJointInterface" in text
    again = loads(text, "urdf")
    assert again.actuators == model.actuators
    assert again.postures == model.postures


def test_tendons_and_frames_are_written_for_kinetree():
    model = quietly(robot(*TWO, DIFFERENTIAL))
    spring = Tendon("s", (2,), (0.5,), 0.1, lower=-1.0, stiffness=3.0, rest=(0.1, 0.2))
    pulled = Actuator("p", tendon="s", gain=3.0, bias=(0.0, -3.0, 0.0), control=(-1.0, 2.0))
    jet = Actuator("jet", frame="l2", reference="l1", gear=(0, 0, 0, 0, 0, 1.0))
    model = model.replace(
        tendons=(*model.tendons, spring), actuators=(*model.actuators, pulled, jet)
    )
    again = quietly(to_urdf(model))
    assert again.actuators == model.actuators
    assert again.tendons == model.tendons
