"""Actuators and the controls of postures: laws, ends, and what editing and files keep of them."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.joints import Free, Prismatic, Revolute, Spherical
from kinetree.model import (
    Actuator,
    MechanismGraph,
    Model,
    ModelBuilder,
    attach,
    extract,
    floating,
    lock,
    lump_fixed,
    reroot,
)
from kinetree.model.edit import grounded
from kinetree.spatial import Inertia
from kinetree.writers.native import to_toml

SOLID = Inertia.from_mass_center(2.0, (0.1, 0.0, -0.2), np.diag([0.4, 0.5, 0.3]))


def builder():
    """A carriage, an arm with a ball, and one of each kind of actuator."""
    return (
        ModelBuilder("m")
        .body("cart", joint=Prismatic("x"), inertia=SOLID)
        .body("arm", on="cart", joint=Revolute("y"), at=(0, 0, 0.1), inertia=SOLID)
        .body("hand", on="arm", joint=Spherical(), at=(0, 0, 0.4), inertia=SOLID)
        .frame("tip", on="hand", at=(0, 0, 0.2))
        .tendon("cable", joints={"cart_joint": 0.5, "arm_joint": -0.2})
        .actuator("push", joint="cart_joint", gear=3.0, control=(-1, 1), effort=(-5, 4))
        .actuator("turn", joint="arm_joint", kp=40.0, kv=2.0, effort=(-20, 20))
        .actuator("run", joint="cart_joint", kv=3.0)
        .actuator("wrist", joint="hand_joint", gear=(1, 0, 2), activation="filter",
                  time_constant=0.1)
        .actuator("pull", tendon="cable", gear=2.0, kp=7.0, activation="integrator",
                  activation_range=(-2, 2))
        .actuator("jet", frame="tip", gear=(0, 0, 0.1, 0, 0, 1))
        .actuator("spring", frame="tip", reference="cart", gear=(0, 0, 0, 1, 0, 0),
                  gain=(1, 0.5, -0.2), bias=(0.3, -2, 0))
        .posture("home", q={"arm_joint": 0.3})
        .posture("hold", q={"arm_joint": 0.5}, controls={"turn": 0.5, "push": 0.25, "jet": 2.0},
                 activation={"pull": 0.125})
    )  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return builder().build()


def test_kinds_are_those_of_mujoco(model):
    kinds = {a.name: a.kind for a in model.actuators}
    assert kinds == {
        "push": "motor", "turn": "position", "run": "velocity", "wrist": "cylinder",
        "pull": "intvelocity", "jet": "motor", "spring": "general",
    }  # fmt: skip
    assert Actuator("a", 1, gain=(0, 0, -3.0), control=(0, 1)).kind == "damper"
    assert Actuator("a", 1, gain=(2.0,), bias=(1.5, -2.0, -0.1)).kind == "position"
    assert Actuator("a", 1, bias=(1.0, 0, 0)).kind == "general"
    assert Actuator("a", 1, activation="integrator").kind == "general"
    assert [a.is_servo for a in model.actuators] == [False, True, True, True, True, False, True]


def test_gains_of_servos(model):
    turn, run = model.actuators[1:3]
    assert turn.gain == (40.0, 0.0, 0.0)
    assert turn.bias == (0.0, -40.0, -2.0)
    assert run.gain == (3.0, 0.0, 0.0)
    assert run.bias == (0.0, 0.0, -3.0)
    assert Actuator("a", 1, gain=5).gain == (5.0, 0.0, 0.0)


def test_forces_within_reach(model):
    push, turn, *_ = model.actuators
    assert push.force_range == (-1.0, 1.0)
    assert turn.force_range == (-20.0, 20.0)  # whatever its control
    assert replace(push, gain=-8.0).force_range == (-5.0, 4.0)
    assert replace(push, gain=0.0).force_range == (0.0, 0.0)
    assert Actuator("a", 1, gain=-2.0, control=(-1.0, 3.0)).force_range == (-6.0, 2.0)


def test_controls_of_postures(model):
    hold = model.posture("hold")
    assert hold.controls.tolist() == [0.25, 0.5, 0, 0, 0, 2.0, 0]
    assert hold.activation.tolist() == [0.0, 0.125]  # those of wrist and pull
    assert model.posture("home").controls.size == model.posture("home").activation.size == 0
    assert hold != replace(hold, controls=())
    assert hash(hold) == hash(replace(hold))


def test_dictionaries_files_and_pickles_keep_everything(model):
    assert Model.from_dict(model.to_dict()) == model
    assert kt.loads(to_toml(model)) == model
    assert pickle.loads(pickle.dumps(model)) == model
    again = Model.from_dict(model.to_dict())
    assert again.actuators == model.actuators
    assert again.postures == model.postures


def test_a_file_may_give_kp_and_kv(model):
    text = to_toml(model)
    law = "gain = [40.0, 0.0, 0.0]\nbias = [0.0, -40.0, -2.0]"
    assert law in text
    assert kt.loads(text.replace(law, "kp = 40.0\nkv = 2.0")).actuators == model.actuators


@pytest.mark.parametrize(
    "change",
    [
        {"gain": (1.0, 0, 0)}, {"bias": (0, 0, 1.0)}, {"activation_range": (-2.0, 3.0)},
        {"time_constant": 0.2, "activation": "filter"}, {"effort": (-1.0, 1.0)},
    ],
)  # fmt: skip
def test_the_law_is_part_of_the_fingerprint(model, change):
    pull = replace(model.actuators[4], **change)
    others = [pull if a.name == "pull" else a for a in model.actuators]
    assert model.replace(actuators=others).fingerprint != model.fingerprint


def test_frame_and_reference_do_not_look_alike(model):
    one = Actuator("a", frame="tip", gear=(1.0,) * 6)
    prints = {
        model.replace(actuators=[a], postures=()).fingerprint
        for a in (one, replace(one, reference="tip"), replace(one, frame="hand"))
    }
    assert len(prints) == 3


def test_controls_follow_the_actuators(model):
    fewer = model.replace(actuators=[a for a in reversed(model.actuators) if a.name != "push"])
    assert fewer.posture("hold").controls.tolist() == [0, 2.0, 0, 0, 0, 0.5]
    assert fewer.posture("hold").activation.tolist() == [0.125, 0.0]
    assert model.replace(actuators=()).posture("hold").controls.size == 0
    without = model.replace(tendons=())
    assert "pull" not in [a.name for a in without.actuators]
    assert without.posture("hold").activation.tolist() == [0.0]


def test_locked_joints_take_their_actuators_along(model):
    locked = lock(model, {"cart_joint": 0.2})
    assert [a.name for a in locked.actuators] == ["turn", "wrist", "pull", "jet", "spring"]
    assert locked.posture("hold").controls.tolist() == [0.5, 0, 0, 2.0, 0]
    still = lock(model, {"cart_joint": 0.2, "arm_joint": 0.1}, lump=True)
    assert [a.name for a in still.actuators] == ["wrist", "jet", "spring"]
    assert still.actuators[2].reference == "cart"  # a frame of the base by now


def test_actuators_and_controls_of_two_robots(model):
    both = attach(model, model, on="tip", prefix="b_")
    names = [a.name for a in both.actuators]
    assert names == [*(a.name for a in model.actuators), *(f"b_{a.name}" for a in model.actuators)]
    spring = both.actuators[-1]
    assert (spring.frame, spring.reference) == ("b_tip", "b_cart")
    assert both.actuators[-3].tendon == "b_cable"
    first, second = both.posture("hold"), both.posture("b_hold")
    assert first.controls.tolist() == [0.25, 0.5, 0, 0, 0, 2.0, 0, *[0.0] * 7]
    assert second.controls.tolist() == [*[0.0] * 7, 0.25, 0.5, 0, 0, 0, 2.0, 0]
    assert second.activation.tolist() == [0, 0, 0, 0.125]


def test_part_of_a_robot(model):
    part = extract(model.replace(tendons=()), "arm")
    assert [a.name for a in part.actuators] == ["turn", "wrist", "jet"]
    assert part.posture("hold").controls.tolist() == [0.5, 0, 2.0]
    free = floating(model)
    assert free.actuators[1].joint == 3
    assert np.array_equal(free.posture("hold").controls, model.posture("hold").controls)
    assert grounded(free).actuators == model.actuators
    assert lump_fixed(model).postures == model.postures


def test_another_root_keeps_what_frames_mean():
    robot = (
        ModelBuilder("r")
        .body("trunk", joint=Free(), inertia=SOLID)
        .body("leg", on="trunk", joint=Revolute("y"), at=(0, 0, -0.3), inertia=SOLID)
        .actuator("jet", frame="trunk", reference="leg", gear=(0, 0, 0, 0, 0, 1))
        .posture("p", controls={"jet": 3.0})
        .build()
    )
    turned = reroot(robot, "leg")
    jet = turned.actuators[0]
    assert (jet.frame, jet.reference) == ("trunk_link", "leg")
    assert turned.posture("p").controls.tolist() == [3.0]
    found = MechanismGraph("g").add_model(robot).to_model()
    assert found.actuators == robot.actuators


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "actuator 'a' drives nothing: give a joint, a tendon or a frame"),
        (
            {"joint": "arm_joint", "frame": "tip"},
            "actuator 'a' drives joint 2 and frame 'tip'; it can drive one of them",
        ),
        (
            {"tendon": "cabel"},
            "tendon of actuator 'a' is 'cabel', which the model 'm' does not have; did you",
        ),
        ({"frame": "tipp"}, "frame of actuator 'a' is 'tipp', which the model 'm' does not have"),
        ({"frame": "tip", "reference": "x", "gear": [1] * 6}, "reference of actuator 'a' is 'x'"),
        (
            {"joint": "arm_joint", "reference": "tip"},
            "has a reference frame, which only one with a",
        ),
        ({"frame": "tip"}, "drives frame 'tip' by a wrench (moment, force); gear needs 6 entries"),
        ({"tendon": "cable", "gear": (1, 2)}, "drives tendon 'cable'; gear needs 1 entry, got 2"),
        (
            {"joint": "arm_joint", "effort": (2, -2)},
            "effort of actuator 'a' must be the smallest and the largest value, got (2.0, -2.0)",
        ),
        (
            {"joint": "arm_joint", "kp": -1.0},
            "kp of actuator 'a' must be a number that is not negative",
        ),
        ({"joint": "arm_joint", "kp": 1.0, "gain": 2.0}, "kp or kv, which stand for gain and bias"),
        ({"joint": "arm_joint", "gain": (1, 2, 3, 4)}, "gain of actuator 'a' needs 3 numbers"),
        ({"joint": "arm_joint", "bias": "x"}, "bias of actuator 'a' must hold numbers, got 'x'"),
        (
            {"joint": "arm_joint", "activation": "nerve"},
            "activation of actuator 'a' must be 'integrator', 'filter', 'muscle', 'ramp' or ''",
        ),
        (
            {"joint": "arm_joint", "activation": "filter"},
            "a filter and needs a time_constant above",
        ),
        (
            {"joint": "arm_joint", "time_constant": 1.0},
            "time_constant of actuator 'a' is for activ",
        ),
        ({"joint": "arm_joint", "time_constant": -1.0}, "number of seconds that is not negative"),
        (
            {"joint": "arm_joint", "activation_range": (0, 1)},
            "actuator 'a' has an activation_range and no activation; use control",
        ),
    ],
)
def test_wrong_actuators(given, message):
    with pytest.raises(kt.errors.KinetreeError, match=re.escape(message)):
        builder().actuator("a", **given).build()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"controls": [1, 2]}, "controls of posture 'p' must be given by actuator name"),
        (
            {"controls": {"pusch": 1.0}},
            "actuator in controls of posture 'p' is 'pusch', which the model does not have",
        ),
        (
            {"activation": {"turn": 1.0}},
            "actuator in activation of posture 'p' is 'turn', which the model does",
        ),
        ({"controls": {"turn": (1.0, 2.0)}}, "controls of posture 'p' needs one number for 'turn'"),
    ],
)
def test_wrong_controls(given, message):
    with pytest.raises(kt.errors.KinetreeError, match=re.escape(message)):
        builder().posture("p", **given).build()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"controls": (1.0,)},
            "controls of posture 'hold' needs 7 entries, one for each actuator of the model, got 1",
        ),
        (
            {"activation": (1.0,) * 7},
            "activation of posture 'hold' needs 2 entries, one for each state of the actuators",
        ),
        ({"controls": (np.nan,) * 7}, "controls of posture 'hold' must be finite, got nan"),
    ],
)
def test_controls_of_the_wrong_size(model, change, message):
    with pytest.raises(kt.errors.ModelError, match=re.escape(message)):
        model.replace(postures=[replace(model.posture("hold"), **change)])
