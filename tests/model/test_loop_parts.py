"""Loop joints with limits, dynamics and actuators: kept by every way to handle a model."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InteropError, ModelError, ModelWarning, UnknownNameError
from kinetree.joints import CustomJoint, Fixed, Prismatic, Revolute, Spherical
from kinetree.loops.dynamics.clusters import renumber
from kinetree.model import Actuator, JointDynamics, Limits, Loop, Model, ModelBuilder
from kinetree.spatial import rotx, xlt
from kinetree.writers.mjcf import to_mjcf

ROD = kt.shapes.rod(0.5, mass=1.0, at=(0, 0, 0.25))
DYNAMICS = JointDynamics(damping=0.2, friction=0.1, stiffness=4.0, rest=0.3)
LIMITS = Limits(-0.5, 1.5, 2.0, 30.0)


def builder():
    return (
        ModelBuilder("linkage")
        .body("a", joint=Revolute("y"), inertia=ROD)
        .body("hook", on="a", joint=Fixed(), at=(0, 0, 0.1), inertia=ROD)
        .body("b", on="hook", joint=Revolute("y"), at=(0, 0, 0.4), inertia=ROD)
        .body("c", joint=Revolute("y"), at=(0.5, 0, 0), inertia=ROD)
        .loop("ball", predecessor="a", successor="c", joint=Spherical())
        .loop("ram", predecessor="b", successor="c", joint=Prismatic("x"), at=(0, 0, 0.5),
              successor_at=xlt(0, 0, 0.5) @ rotx(0.2), limits=LIMITS, dynamics=DYNAMICS)
        .actuator("motor", joint="a_joint", gear=2.0)
        .actuator("pump", joint="ram", gear=3.0, control=(-1, 1), effort=(-5, 5))
    )  # fmt: skip


MODEL = builder().build()


def assert_kept(model, prefix=""):
    loop = next(x for x in model.loops if x.name == f"{prefix}ram")
    assert (loop.limits, loop.dynamics) == (LIMITS, DYNAMICS)
    pump = next(a for a in model.actuators if a.name == f"{prefix}pump")
    assert model.driven_joint(pump) == f"{prefix}ram"
    assert (pump.gear, pump.control, pump.effort) == ((3.0,), (-1.0, 1.0), (-5.0, 5.0))
    motor = next(a for a in model.actuators if a.name == f"{prefix}motor")
    assert model.driven_joint(motor) == f"{prefix}a_joint"


def test_what_a_builder_makes():
    assert_kept(MODEL)
    assert MODEL.actuators[1].loop == 2
    assert MODEL.loop_names == ("ball", "ram")
    assert "springs in ram" in MODEL.summary()
    assert "damping in ram" in MODEL.summary()


def test_files_and_dictionaries_keep_them(tmp_path):
    again = Model.from_dict(json.loads(json.dumps(MODEL.to_dict())))
    assert again == MODEL
    kt.save(MODEL, tmp_path / "m.toml")
    assert kt.load(tmp_path / "m.toml") == MODEL
    kt.save(MODEL, tmp_path / "m.urdf")
    assert_kept(kt.load(tmp_path / "m.urdf", lump=False))


def test_older_dictionaries_have_neither():
    data = MODEL.replace(loops=MODEL.loops[:1]).to_dict()
    for loop in data["loops"]:
        del loop["limits"], loop["dynamics"]
    assert Model.from_dict(data).loops[0].dynamics is None


def test_the_fingerprint_tells_them_apart_and_is_the_old_one_without():
    ram = MODEL.loops[1]
    for changed in ({"limits": None}, {"dynamics": None}, {"limits": Limits(-1, 1)}):
        assert MODEL.replace(loops=(MODEL.loops[0], replace(ram, **changed))) != MODEL
    on_ball = replace(MODEL.actuators[1], loop=1, gear=(3.0, 0.0, 0.0))
    assert MODEL.replace(actuators=(MODEL.actuators[0], on_ball)) != MODEL


def test_edits_keep_them():
    assert_kept(kt.edit.lump_fixed(MODEL))
    assert_kept(kt.edit.floating(MODEL))
    assert_kept(kt.edit.lock(MODEL, {"b_joint": 0.1}))
    assert_kept(renumber(MODEL).model)
    both = kt.edit.attach(MODEL, MODEL, on="c", prefix="x_")
    assert_kept(both)
    assert_kept(both, "x_")
    assert both.actuators[3].loop == 4
    assert_kept(kt.edit.extract(kt.edit.floating(MODEL), "base"))
    assert_kept(kt.model.MechanismGraph.from_model(MODEL).to_model(MODEL.joint_names))
    assert_kept(MODEL.map_numbers(float))


def test_replacing_by_name():
    assert MODEL.replace(limits={"ram": None}).loops[1].limits is None
    assert MODEL.replace(joint={"ram": Revolute("x")}).loops[1].joint == Revolute("x")
    assert [a.name for a in MODEL.replace(loops=()).actuators] == ["motor"]
    assert MODEL.replace(loops=MODEL.loops[::-1]).actuators[1].loop == 1
    with pytest.raises(ModelError, match="loop joint 'ram' has two placements"):
        MODEL.replace(placement={"ram": xlt(0, 0, 0)})


def test_stiffness_of_a_loop_joint_is_a_parameter():
    q, qd = np.array([0.1, 0.2, 0.3]), np.zeros(3)
    model = kt.edit.lump_fixed(MODEL)
    force = kt.compile(kt.passive_force, model, parameters=("stiffness:ram",))
    stiffer = model.replace(dynamics={"ram": replace(DYNAMICS, stiffness=7.0)})
    np.testing.assert_allclose(force(q, qd, [7.0]), kt.passive_force(stiffer, q, qd), rtol=1e-12)
    with pytest.raises(ModelError, match="cannot have armature"):
        kt.compile(kt.passive_force, model, parameters=("armature:ram",))


@pytest.mark.parametrize("turned", [False, True])
def test_a_loop_joint_that_duplicates_a_tree_joint_is_rejected(turned):
    ends = {"predecessor": "base", "successor": "a"}
    if turned:
        ends = {"predecessor": "a", "successor": "base"}
    message = "loop joint 'again' duplicates joint 'a_joint' of the tree: both allow the same"
    with pytest.raises(ModelError, match=message):
        builder().loop("again", **ends, joint=Revolute("-y")).build()
    # a second hinge elsewhere on the axis, and other joints there, are something else
    builder().loop(
        "again", **ends, joint=Revolute("y"), at=(0, 1, 0), successor_at=(0, 1, 0)
    ).build()
    builder().loop("again", **ends, joint=Revolute("x")).build()
    builder().loop("again", **ends, joint=Spherical()).build()
    cam = CustomJoint(lambda q: rotx(q[0]), 1)
    builder().loop("again", **ends, joint=cam).build()


def loops(**changes):
    return lambda: MODEL.replace(loops=(MODEL.loops[0], replace(MODEL.loops[1], **changes)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (loops(limits=Limits((1, 2))), ModelError, "limits of joint 'ram': lower needs 1 entries"),
        (loops(limits=(0, 1)), ModelError, "limits of joint 'ram' must be Limits, got tuple"),
        (loops(dynamics=JointDynamics(damping=(1, 2))), ModelError,
         "dynamics of joint 'ram': damping needs 1 entries, got 2"),
        (loops(dynamics=JointDynamics(damping=-1)), ModelError, "damping must not be negative"),
        (loops(dynamics=JointDynamics(armature=1)), ModelError, "loop joint 'ram' has armature"),
        (loops(successor=3), ModelError, "loop joint 'ram' connects body 'b' to itself"),
        (loops(joint=Revolute), ModelError, "loop joint 'ram' must be a joint such as"),
        (lambda: builder().actuator("x", joint="rm").build(), UnknownNameError,
         "joint of actuator 'x' is 'rm', which the builder does not have; did you mean 'ram'"),
        (lambda: MODEL.replace(actuators=(Actuator("x", 0, loop=3),)), ModelError,
         "actuator 'x' refers to loop joint 3; the model has loop joints 1 to 2"),
        (lambda: MODEL.replace(actuators=(Actuator("x", 1, loop=1),)), ModelError,
         "actuator 'x' drives joint 1 and loop joint 1"),
        (lambda: MODEL.replace(actuators=(Actuator("x", 0, loop=1),)), ModelError,
         "actuator 'x' drives joint 'ball' with 3 degrees of freedom; gear needs 3 entries"),
        (lambda: to_mjcf(kt.edit.lump_fixed(MODEL)), InteropError,
         "loop joint 'ram' has stiffness, which an equality of MJCF cannot have"),
        (lambda: to_mjcf(_pinned()), InteropError,
         "actuator 'm' drives 'pin', which closes a loop"),
    ],
)  # fmt: skip
def test_messages(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()


def test_mjcf_says_that_limits_of_loop_joints_are_left_out():
    pinned = _pinned().replace(actuators=(), limits={"pin": Limits(-1, 1)})
    with pytest.warns(ModelWarning, match="not in the MJCF: limits of loop joints 'pin'"):
        to_mjcf(pinned)


def _pinned():
    loop = Loop("pin", 0, 1, Revolute("y"), xlt(0, 1, 0), xlt(0, 1, 0))
    one = ModelBuilder().body("a", joint=Revolute("y"), inertia=ROD).build()
    return one.replace(loops=(loop,), actuators=(Actuator("m", 0, loop=1),))


def test_a_limit_of_effort_that_does_not_act_is_told():
    pump = replace(MODEL.actuators[1], effort=(-np.inf, np.inf))
    with pytest.warns(ModelWarning, match=r"'pump' drives loop joint 'ram', whose limit of effort"):
        MODEL.replace(actuators=(MODEL.actuators[0], pump))
    ram = replace(MODEL.loops[1], limits=Limits(-0.5, 1.5))
    MODEL.replace(loops=(MODEL.loops[0], ram), actuators=(pump,))
