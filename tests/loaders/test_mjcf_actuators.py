"""Actuators of MJCF act as in MuJoCo: read, written and read again."""

import warnings

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded

import kinetree as kt
from kinetree.errors import ModelWarning
from kinetree.interop import mujoco as M
from kinetree.loaders import read
from kinetree.writers.mjcf import to_mjcf

WORLD = """<mujoco model="m"><compiler angle="radian"/>
<worldbody>
  <site name="here" pos=".1 0 .2" euler=".3 0 .4"/>
  <body name="cart"><joint name="slide" type="slide" axis="1 0 0" ref=".4"/>
    <geom size=".1" mass="2"/><site name="top" pos="0 .1 .3" euler="0 .4 .1"/>
    <body name="arm" pos="0 0 .5"><joint name="hinge" axis="0 1 0" pos="0 0 -.1" ref="-.7"
        range="-1 2" limited="true" damping=".1"/>
      <geom type="capsule" size=".1 .3" mass="1"/>
      <body name="hand" pos=".1 0 .4"><joint name="ball" type="ball"/>
        <geom type="box" size=".1 .2 .3" mass=".7"/><site name="tip" pos="0 0 .3" euler=".2 .1 0"/>
      </body></body></body>
  <body name="bird" pos="0 2 1"><freejoint name="free"/><geom type="box" size=".1 .2 .3"/></body>
</worldbody>
<tendon><fixed name="cable"><joint joint="slide" coef=".7"/><joint joint="hinge" coef="-.4"/>
  </fixed><spatial name="rope"><site site="here"/><site site="tip"/></spatial></tendon>
<actuator>{}</actuator>{}</mujoco>"""

ACTUATORS = {
    "motor": '<motor joint="hinge" gear="3" ctrlrange="-1 1" ctrllimited="true"/>',
    "gain": '<general joint="hinge" gear="2" gainprm="-4" forcerange="-1 8" forcelimited="true"/>',
    "position": '<position joint="hinge" kp="20" kv="3" gear="-2"/>',
    "damping ratio": '<position joint="hinge" kp="20" dampratio=".7"/>',
    "inherited range": '<position joint="hinge" kp="20" inheritrange=".8"/>',
    "position of a slide": '<position joint="slide" kp="20" forcerange="-9 9"/>',
    "velocity": '<velocity joint="slide" kv="4" gear="5"/>',
    "damper": '<damper joint="hinge" kv="4" ctrlrange="0 2"/>',
    "affine": '<general joint="hinge" gaintype="affine" gainprm="1 2 3" biastype="affine" '
    'biasprm="-4 5 -6" gear="1.5"/>',
    "position with a filter": '<position joint="hinge" kp="9" timeconst=".2" gear="3"/>',
    "integrated velocity": '<intvelocity joint="hinge" kp="9" kv="2" actrange="-.3 .4"/>',
    "cylinder": '<cylinder joint="slide" timeconst=".3" area="2" bias="1 -2.5 -3"/>',
    "integrator": '<general joint="slide" dyntype="integrator" gainprm="2" actrange="-1 .2" '
    'actlimited="true"/>',
    "exact filter": '<general joint="slide" dyntype="filterexact" dynprm=".4" gaintype="affine" '
    'gainprm="0 0 1"/>',
    "ball": '<position joint="ball" kp="2" kv="1" gear="1 -2 .5"/>',
    "ball in the parent": '<position jointinparent="ball" kp="2" kv="1" gear="1 -2 .5"/>',
    "hinge in the parent": '<position jointinparent="hinge" kp="2" gear=".3"/>',
    "free, turned": '<general joint="free" gear="0 0 0 1 2 3" biastype="affine" biasprm="1 2 3"/>',
    "free, pushed": '<general joint="free" gear="1 2 3" biastype="affine" biasprm="1 2 3"/>',
    "free in the parent": '<velocity jointinparent="free" kv="2" gear="1 2 3 -1 .5 .2"/>',
    "site": '<general site="tip" gear="1 2 3 .4 -.5 .6" biastype="affine" biasprm="1 2 -3"/>',
    "site on a site": '<position site="tip" refsite="top" kp="4" kv="2" gear="1 2 3 0 0 0"/>',
    "turned against a site": '<position site="tip" refsite="here" kp="4" gear="0 0 0 1 -.5 .2"/>',
    "tendon": '<position tendon="cable" kp="6" kv="2" gear="3"/>',
    "motor of a tendon": '<motor tendon="cable" gear="-2"/>',
    "world": '<motor site="here" gear="1 0 0 0 0 0"/>',
}


@pytest.fixture(scope="module")
def everything():
    """MuJoCo's model with all actuators, ours, and MuJoCo's of what we write."""
    text = WORLD.format("\n".join(ACTUATORS.values()), "")
    mj_model, model = mujoco.MjModel.from_xml_string(text), loaded(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        written = to_mjcf(model)
    return mj_model, model, mujoco.MjModel.from_xml_string(written)


def _after(mj_model, qpos, qvel, ctrl, act):
    data = mujoco.MjData(mj_model)
    data.qpos, data.qvel, data.ctrl, data.act = qpos, qvel, ctrl, act
    mujoco.mj_forward(mj_model, data)
    return data


def _states(mj_model, count=6):
    rng = np.random.default_rng(3)
    for _ in range(count):
        qpos = rng.normal(size=mj_model.nq)
        qpos[2:6] /= np.linalg.norm(qpos[2:6])
        qpos[9:13] /= np.linalg.norm(qpos[9:13])
        yield (
            qpos,
            rng.normal(size=mj_model.nv),
            rng.normal(size=mj_model.nu),
            rng.normal(size=mj_model.na),
        )


def test_every_actuator_has_a_counterpart(everything):
    mj_model, model, _ = everything
    assert len(model.actuators) == mj_model.nu == len(ACTUATORS)
    kinds = dict(zip(ACTUATORS, [a.kind for a in model.actuators], strict=True))
    assert kinds["motor"] == kinds["gain"] == kinds["world"] == "motor"
    assert kinds["damping ratio"] == kinds["position of a slide"] == "position"
    for kind in ("position", "velocity", "damper", "cylinder"):
        assert kinds[kind] == kind
    assert kinds["integrated velocity"] == "intvelocity"
    assert kinds["affine"] == kinds["integrator"] == "general"


def test_forces_are_those_of_mujoco(everything):
    mj_model, model, _ = everything
    for state in _states(mj_model):
        data = _after(mj_model, *state)
        q = M.from_q(model, mj_model, data.qpos)
        qd = M.from_v(model, mj_model, data.qpos, data.qvel)
        ours = kt.actuator_forces(model, q, qd, *state[2:])
        scale = 1 + np.abs(data.actuator_force)
        worst = np.argmax(np.abs(ours - data.actuator_force) / scale)
        assert abs(ours - data.actuator_force)[worst] < 1e-14 * scale[worst], [*ACTUATORS][worst]
        tau = M.from_tau(model, mj_model, data.qpos, data.qfrc_actuator)
        np.testing.assert_allclose(
            kt.driving_force(model, q, qd, *state[2:]), tau, atol=1e-14 * np.abs(tau).max()
        )


def test_what_is_written_acts_as_before(everything):
    mj_model, model, written = everything
    assert (written.nu, written.na) == (mj_model.nu, mj_model.na)
    for qpos, qvel, ctrl, act in _states(mj_model):
        q = M.from_q(model, mj_model, qpos)
        qd = M.from_v(model, mj_model, qpos, qvel)
        one = _after(mj_model, qpos, qvel, ctrl, act)
        there = M.to_q(model, written, q)
        two = _after(written, there, M.to_v(model, written, q, qd), ctrl, act)
        scale = 1 + np.abs(one.actuator_force).max()
        np.testing.assert_allclose(two.actuator_force, one.actuator_force, atol=1e-13 * scale)
        np.testing.assert_allclose(
            two.act_dot, one.act_dot, atol=1e-14 * (1 + np.abs(one.act_dot).max())
        )
        tau = M.from_tau(model, mj_model, qpos, one.qfrc_actuator)
        again = M.from_tau(model, written, there, two.qfrc_actuator)
        np.testing.assert_allclose(again, tau, atol=1e-13 * (1 + np.abs(tau).max()))


def test_what_is_written_reads_back(everything):
    _, model, _ = everything
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        again = loaded(to_mjcf(model))
    for old, new in zip(model.actuators, again.actuators, strict=True):
        names = ["name", "gear", "control", "effort", "tendon", "activation"]
        names += [] if old.tendon else ["gain", "bias"]  # the offset of a tendon goes into these
        for name in names:
            assert getattr(new, name) == getattr(old, name)
        assert (new.time_constant, new.activation_range) == (
            old.time_constant,
            old.activation_range,
        )
        for name in ("frame", "reference"):
            one, two = getattr(old, name), getattr(new, name)
            assert bool(one) == bool(two)
            if one:
                frames = model.frame(one), again.frame(two)
                assert np.allclose(frames[0].placement.r, frames[1].placement.r)


def test_plain_kinds_are_written_as_such():
    inside = ("motor", "position of a slide", "velocity", "affine", "integrated velocity")
    text = to_mjcf(loaded(WORLD.format("".join(ACTUATORS[k] for k in inside), "")))
    assert '<motor name="actuator_0" joint="hinge" gear="3"' in text
    assert '<velocity name="actuator_2" joint="slide" gear="5" kv="4"' in text
    assert text.count("<general") == 3  # the slide counts from elsewhere than its reference


KEYS = """<keyframe><key name="hold" ctrl="1 2 3 4" act=".1 .2"/><key name="zero" ctrl="0 0 0 0"/>
<key name="none" qpos=".5 0 1 0 0 0 0 0 0 1 0 0 0"/></keyframe>"""


def test_keyframes_have_controls_and_activations():
    inside = "".join(ACTUATORS[k] for k in ("position", "cylinder", "motor", "integrator"))
    model = loaded(WORLD.format(inside, KEYS))
    hold, zero, none = (model.posture(name) for name in ("hold", "zero", "none"))
    assert hold.controls.tolist() == [1, 2, 3, 4]
    assert hold.activation.tolist() == [0.1, 0.2]
    assert zero.controls.tolist() == [0, 0, 0, 0]
    assert zero.activation.size == none.controls.size == none.activation.size == 0
    again = loaded(to_mjcf(model))
    for p in model.postures:
        assert again.posture(p.name).controls.tolist() == p.controls.tolist()
        assert again.posture(p.name).activation.tolist() == p.activation.tolist()
    theirs = M.from_model(mujoco.MjModel.from_xml_string(WORLD.format(inside, KEYS)))
    assert theirs.posture("none").controls.tolist() == [0, 0, 0, 0]  # MuJoCo has no other


PIDS = """<pid name="a" joint="hinge" kp="3" kv=".4" gear="2" posrange="-1 1" velrange="-2 2"/>
<pid name="b" joint="slide" kp="5" kv="1" input="pos" forcerange="-3 3"/>
<pid name="c" tendon="cable" kp="5" kv="1.5" input="pos vel ff" ffrange="-.3 .3"/>
<pid name="d" joint="ball" gear="1 2 .5" kp="2" kv="1" input="vel"/>
<plugin name="e" plugin="mujoco.pid" joint="hinge" ctrlrange="-.5 .5" forcerange="-4 4" gear="-2">
<config key="kp" value="6"/><config key="kd" value=".7"/></plugin>
<plugin name="f" plugin="mujoco.pid" instance="soft" joint="slide"/>
<plugin name="g" instance="soft" joint="hinge"/>"""
EXTENSION = """<extension><plugin plugin="mujoco.pid"><instance name="soft">
<config key="kp" value="2"/></instance></plugin></extension>"""


def pids(inside=PIDS):
    return f"{EXTENSION}<worldbody>".join(WORLD.format(inside, "").split("<worldbody>"))


def test_pid_controllers_are_a_servo_for_each_input():
    mj_model, model = mujoco.MjModel.from_xml_string(pids()), loaded(pids())
    names = [a.name for a in model.actuators]
    assert names == ["a", "a_velocity", "b", "c", "c_velocity", "c_feedforward", "d", "e", "f", "g"]
    for qpos, qvel, ctrl, act in _states(mj_model, 8):
        data = _after(mj_model, qpos, qvel, ctrl, act)
        q, qd = M.from_q(model, mj_model, qpos), M.from_v(model, mj_model, qpos, qvel)
        tau = M.from_tau(model, mj_model, qpos, data.qfrc_actuator)
        ours = kt.algorithms.actuators.driving_force(model, q, qd, ctrl)
        np.testing.assert_allclose(ours, tau, rtol=0, atol=1e-13 * np.abs(tau).max())


def test_what_pid_controllers_with_states_do_not_have_is_noted(tmp_path):
    inside = """<pid name="x" joint="hinge" kp="3" kv="1" ki="2" slewmax="5" forcerange="-2 2"/>
    <plugin name="y" plugin="mujoco.pid" joint="hinge" actdim="3" dyntype="filter" dynprm="1">
    <config key="kp" value="6"/><config key="ki" value="1"/><config key="slewmax" value="1"/>
    </plugin><motor name="z" joint="slide"/>"""
    after = '<sensor><actuatorfrc name="s" actuator="x"/></sensor>'
    path = tmp_path / "robot.xml"
    path.write_text(pids(inside).replace("</actuator>", "</actuator>" + after))
    model, notices = read(path).model, read(path).notices
    said = {(n.what, n.why) for n in notices if n.effect == "control"}
    assert any("bounds the force of each of its inputs" in why for _, why in said)
    assert any("has several inputs, whose forces are apart here" in why for _, why in said)
    of_plugin = [why for what, why in said if what == "<plugin name='y'>"]
    assert sorted(of_plugin) == [
        "its setpoint begins at zero, or at the activation of a posture, not with the first "
        "control",
        "its setpoint is the control, not that of dyntype='filter'",
    ]
    assert [a.name for a in model.actuators] == ["x", "x_velocity", "y", "z"]
    assert [a.kind for a in model.actuators[:3]] == ["pid", "motor", "pid"]


LEFT_OUT = {
    "only its gain or only its bias is that of a muscle": '<general name="x" joint="hinge" '
    'biastype="muscle" biasprm=".7 1 9 9 .5 1.6 1.5 1.3 1.2" lengthrange="0 1"/>',
    "it turns a body to an orientation": '<orientation name="x" joint="ball" kp="3"/>',
    "it is a DC motor with its electronics": '<dcmotor name="x" joint="hinge" resistance="1" '
    'motorconst="1 1"/>',
    "it pushes in the axes of the world and turns in those of the body": '<motor name="x" '
    'joint="free" gear="1 0 0 1 0 0"/>',
}


@pytest.mark.parametrize("why", LEFT_OUT)
def test_what_has_no_counterpart_is_left_out_by_name(tmp_path, why):
    key = '<keyframe><key name="k" ctrl="{}" act="{}"/></keyframe>'
    inside = '<motor joint="hinge"/>{}<cylinder name="c" joint="slide" timeconst="1"/>'
    text = WORLD.format(inside.format(LEFT_OUT[why]), "")
    compiled = mujoco.MjModel.from_xml_string(text)  # some have several controls
    sizes = compiled.nu, compiled.na
    key = key.format(*(" ".join(str(k) for k in range(1, n + 1)) for n in sizes))
    path = tmp_path / "robot.xml"
    path.write_text(WORLD.format(inside.format(LEFT_OUT[why]), key))
    model, notices = read(path).model, read(path).notices
    notices = [n for n in notices if n.what == "<actuator name='x'>"]
    assert [n.why for n in notices] == [f"{why}, and is left out"]
    assert [n.effect for n in notices] == ["control"]
    assert [a.name for a in model.actuators] == ["actuator_0", "c"]
    assert model.posture("k").controls.tolist() == [1, sizes[0]]
    assert model.posture("k").activation.tolist() == [sizes[1]]


def test_damping_and_armature_of_motors_on_tendons():
    text = WORLD.format('<motor tendon="cable" gear="2" damping=".3" armature=".1"/>', "")
    model = loaded(text)
    assert model.tendons[0].damping == pytest.approx(0.3 * 2**2)
    mj_model = mujoco.MjModel.from_xml_string(text)
    state = next(_states(mj_model))
    data = _after(mj_model, *state)
    q, qd = M.from_q(model, mj_model, data.qpos), M.from_v(model, mj_model, data.qpos, data.qvel)
    passive = M.from_tau(model, mj_model, data.qpos, data.qfrc_passive)
    np.testing.assert_allclose(kt.passive_force(model, q, qd), passive, atol=1e-14)
    H = np.zeros((mj_model.nv, mj_model.nv))
    mujoco.mj_fullM(mj_model, data, H)
    v = np.array(data.qvel)
    v += np.eye(mj_model.nv)[0]  # it moves a joint that the tendon runs over
    ours = M.from_v(model, mj_model, data.qpos, v)
    assert ours @ kt.mass_matrix(model, q) @ ours == pytest.approx(v @ H @ v, rel=1e-13)
    assert kt.mass_matrix(model, q)[0, 0] == pytest.approx(H[0, 0], rel=1e-13)


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ('delay="0.1" nsample="3"', "controls act without delay"),
        (
            'dyntype="filter" dynprm="0.1" actearly="true"',
            "an activation acts at its time, not a step ahead",
        ),
    ],
)
def test_attributes_that_are_not_used(tmp_path, attributes, why):
    path = tmp_path / "robot.xml"
    path.write_text(WORLD.format(f'<general joint="hinge" {attributes}/>', ""))
    notices = [n for n in read(path).notices if "attribute" in n.what]
    assert {(n.why, n.effect) for n in notices} == {(why, "control")}


def test_groups_that_are_switched_off():
    text = WORLD.format('<motor name="a" joint="hinge" group="2"/><motor joint="hinge"/>', "")
    text = text.replace("<worldbody>", '<option actuatorgroupdisable="2"/><worldbody>')
    model = loaded(text)
    assert [a.name for a in model.actuators] == ["actuator_1"]


def test_controls_that_are_not_clamped():
    text = WORLD.format('<motor joint="hinge" ctrlrange="-1 1"/>', "")
    flag = '<option><flag clampctrl="disable"/></option><worldbody>'
    (free,) = loaded(text.replace("<worldbody>", flag)).actuators
    assert (loaded(text).actuators[0].control, free.control) == ((-1.0, 1.0), (-np.inf, np.inf))


def test_a_filter_without_time_constant_is_none():
    text = '<general joint="slide" dyntype="filter" dynprm="0" gainprm="2"/>'
    (motor,) = loaded(WORLD.format(text, "")).actuators
    assert (motor.kind, motor.activation, motor.gain[0]) == ("motor", "", 2.0)
