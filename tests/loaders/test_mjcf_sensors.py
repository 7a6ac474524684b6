"""Sensors of MJCF files: readings are those of MuJoCo, and files keep them."""

import mujoco
import numpy as np
import pytest
from support.closeness import assert_close
from support.mujoco_mechanisms import loaded

import kinetree as kt
from kinetree.contact.contacts import contact_axes
from kinetree.interop.mujoco import from_a, from_q, from_v
from kinetree.loaders import read

_BOX = '<geom type="box" size=".1 .2 .3" pos=".1 -.05 .2" euler="10 20 30"'
ROBOT = f"""
<mujoco model="sensed">
  <compiler angle="radian"/>
  <option magnetic=".1 -.5 .2" gravity="1 2 -9"><flag contact="disable"/></option>
  <worldbody>
    <body name="table" pos=".3 .2 .1" euler=".1 .2 .3"><geom type="box" size=".3 .3 .1"/>
      <site name="on_table" pos=".1 .1 .1" euler=".3 .1 .2"/></body>
    <body name="trunk" pos=".1 .2 .3"><freejoint/>{_BOX} name="torso"/>
      <site name="imu" pos=".1 .2 -.1" euler=".2 .4 -.3"/>
      <body name="arm" pos=".1 .2 .3" euler=".2 -.3 .4">
        <joint name="shoulder" axis="1 2 3" pos=".1 0 -.2" ref=".3" armature=".1"
          limited="true" range="-.2 .5" stiffness="3"/>
        <joint name="slider" type="slide" axis="0 1 2" pos=".1 .1 0" ref="-.1"/>
        {_BOX}/>
        <site name="elbow" pos="0 .1 .3" euler=".1 .2 .3"/>
        <body name="wrist" pos="0 .1 .4" euler=".3 .2 .1">{_BOX} name="wrist_geom"/>
          <site name="ft" pos=".05 0 .02" euler=".3 -.1 .2"/>
          <camera name="eye" pos=".1 0 0" euler="0 .4 .1"/>
          <body name="tool" pos="0 .1 .1" euler="0 .2 .1">{_BOX}/></body>
          <body name="hand" pos="0 .2 .1" euler=".1 .2 .1"><joint name="ball" type="ball"/>{_BOX}/>
            <site name="palm" pos=".02 .1 .1"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <sensor>{{sensors}}</sensor>
</mujoco>"""

_FRAMES = [("site", "ft"), ("body", "arm"), ("xbody", "wrist"), ("geom", "wrist_geom"),
           ("camera", "eye"), ("body", "tool"), ("xbody", "arm"), ("site", "on_table")]  # fmt: skip
_AT_SITES = "accelerometer gyro velocimeter magnetometer force torque"


def _sensors():
    for kind in ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis"):
        yield from _of_frames(kind, relative=True)
    for kind in ("framelinvel", "frameangvel"):
        yield from _of_frames(kind, relative=True)
    for kind in ("framelinacc", "frameangacc"):
        yield from _of_frames(kind)
    for kind in _AT_SITES.split():
        for site in ("ft", "imu", "palm", "elbow", "on_table"):
            yield f'<{kind} site="{site}" name="{kind}-{site}"/>'
    for kind in ("subtreecom", "subtreelinvel", "subtreeangmom"):
        for body in ("world", "trunk", "arm", "wrist", "tool", "hand", "table"):
            yield f'<{kind} body="{body}" name="{kind}-{body}"/>'
    for kind in ("jointpos", "jointvel", "jointlimitpos", "jointlimitvel"):
        for joint in ("shoulder",) if "limit" in kind else ("shoulder", "slider"):
            yield f'<{kind} joint="{joint}" name="{kind}-{joint}"/>'
    yield '<ballquat joint="ball" name="ballquat"/><ballangvel joint="ball" name="ballangvel"/>'
    yield "<clock/><e_potential/><e_kinetic/>"
    yield '<gyro site="imu" name="cut" cutoff=".3" noise=".01"/>'


def _of_frames(kind, relative=False):
    for of, name in _FRAMES:
        yield f'<{kind} objtype="{of}" objname="{name}" name="{kind}-{of}-{name}"/>'
    if relative:
        for (of, name), (ref, other) in zip(_FRAMES, _FRAMES[3:] + _FRAMES[:3], strict=True):
            more = f'reftype="{ref}" refname="{other}" name="{kind}-{name}-to-{ref}-{other}"'
            yield f'<{kind} objtype="{of}" objname="{name}" {more}/>'


TEXT = ROBOT.format(sensors="\n".join(_sensors()))


def states(mj_model, rng, count=4):
    """Random states of MuJoCo: qpos, qvel, qacc and the readings."""
    found = []
    data = mujoco.MjData(mj_model)
    for _ in range(count):
        q = np.array(mj_model.qpos0)
        mujoco.mj_integratePos(mj_model, q, rng.normal(size=mj_model.nv), 0.7)
        data.qpos, data.qvel, data.time = q, rng.normal(size=mj_model.nv), rng.uniform(0, 5)
        data.qfrc_applied = 10 * rng.normal(size=mj_model.nv)
        mujoco.mj_forward(mj_model, data)
        found.append([np.array(x) for x in (q, data.qvel, data.qacc, data.time, data.sensordata)])
    return [np.array(x) for x in zip(*found, strict=True)]


def ours(model, mj_model, qpos, qvel, qacc):
    """Our states of these."""
    q, qd = from_q(model, mj_model, qpos), from_v(model, mj_model, qpos, qvel)
    return q, qd, from_a(model, mj_model, qpos, qvel, qacc)


def assert_same_readings(model, readings, theirs):
    """Equal to rounding, in units of the largest reading of the same kind."""
    assert readings.shape == theirs.shape
    table, size = kt.sensors(model), {}
    for s in model.sensors:
        its = np.abs(theirs[..., table.at(s.name)]).max()
        size[s.kind] = max(size.get(s.kind, 1.0), its)
    for s in model.sensors:
        mine, its = readings[..., table.at(s.name)], theirs[..., table.at(s.name)]
        if s.kind in ("framequat", "ballquat"):  # either sign is the same rotation
            its = its * np.sign(np.sum(mine * its, axis=-1, keepdims=True))
        assert np.abs(mine - its).max() < 1e-12 * size[s.kind], (s.name, mine, its)


@pytest.mark.parametrize("lump", [True, False])
def test_every_kind_reads_what_mujoco_reads(rng, lump):
    model = loaded(TEXT, lump=lump)
    mj_model = mujoco.MjModel.from_xml_string(TEXT)
    qpos, qvel, qacc, t, theirs = states(mj_model, rng)
    q, qd, qdd = ours(model, mj_model, qpos, qvel, qacc)
    assert_same_readings(model, kt.sensor_readings(model, q, qd, qdd, t=t), theirs)


def test_files_keep_them(rng):
    model = loaded(TEXT, lump=False)
    with pytest.warns(kt.ModelWarning, match="offset 0.3 of sensor 'jointpos-shoulder'"):
        text = kt.writers.mjcf.to_mjcf(model)
    again = loaded(text, lump=False)
    assert [(s.name, s.kind) for s in again.sensors] == [(s.name, s.kind) for s in model.sensors]
    q, qd = model.random_configuration(rng, 3), rng.normal(size=(3, model.nv))
    qdd, t = rng.normal(size=(3, model.nv)), rng.normal(size=3)
    one, other = (kt.sensors(m)(q, qd, qdd, t=t) for m in (model, again))
    lost = {s.name: s.offset for s in model.sensors}
    for name, reading in one.items():
        scale = 1 + np.abs(reading).max()
        assert_close(other[name] + lost[name], reading, condition=100, scale=scale)
    twice = loaded(kt.writers.mjcf.to_mjcf(again), lump=False)
    assert twice.to_dict()["sensors"] == again.to_dict()["sensors"]


DRIVEN = f"""
<mujoco>
  <compiler angle="radian"/>
  <option><flag contact="disable"/></option>
  <worldbody>
    <body name="arm"><joint name="a" axis="0 1 0" ref=".2" damping=".3" actuatorfrclimited="true"
      actuatorfrcrange="-2 2"/>{_BOX}/>
      <body name="hand" pos="0 0 .5" gravcomp=".7"><joint name="b" axis="1 0 0" stiffness="2"/>
        {_BOX}/>
        <site name="imu" pos=".1 .2 .3"/></body></body>
  </worldbody>
  <tendon><fixed name="string" limited="true" range="-.3 .4" stiffness="3"
    springlength="-.1 .2"><joint joint="a" coef="2"/>
    <joint joint="b" coef="-.5"/></fixed></tendon>
  <actuator>
    <motor name="motor" joint="a" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <position name="servo" joint="a" gear="2" kp="5"/>
    <velocity name="damped" joint="b" kv=".7" forcelimited="true" forcerange="-.2 .2"/>
    <motor name="winch" tendon="string" gear="1.5"/>
  </actuator>
  <sensor>
    <actuatorpos actuator="motor"/><actuatorpos actuator="servo"/><actuatorpos actuator="winch"/>
    <actuatorvel actuator="servo"/><actuatorvel actuator="winch"/>
    <actuatorfrc actuator="motor"/><actuatorfrc actuator="servo"/><actuatorfrc actuator="damped"/>
    <jointactuatorfrc joint="a"/><jointactuatorfrc joint="b"/>
    <tendonpos tendon="string"/><tendonvel tendon="string"/><tendonactuatorfrc tendon="string"/>
    <tendonlimitpos tendon="string"/><tendonlimitvel tendon="string"/>
    <accelerometer site="imu"/><force site="imu"/><e_potential/>
  </sensor>
</mujoco>"""


def test_actuators_and_tendons_read_what_mujoco_reads(rng):
    model, mj_model = loaded(DRIVEN), mujoco.MjModel.from_xml_string(DRIVEN)
    mj_model.tendon_limited[:] = 0  # its force is soft there
    data = mujoco.MjData(mj_model)
    for _ in range(6):
        data.qpos, data.qvel, data.ctrl = rng.normal(size=2), rng.normal(size=2), rng.normal(size=4)
        mujoco.mj_forward(mj_model, data)
        state = [np.array(x) for x in (data.qpos, data.qvel)]
        q, qd = from_q(model, mj_model, state[0]), from_v(model, mj_model, *state)
        readings = kt.sensors(model)(q, qd, controls=np.array(data.ctrl))
        theirs = np.array(data.sensordata)
        limited = [readings.sensors.at(n) for n in readings if "limit" in n]
        assert len(limited) == 2
        length = readings["tendonpos_10"]
        beyond = np.minimum(length + 0.3, 0) + np.minimum(0.4 - length, 0)
        assert_close(readings.values[limited[0]], beyond)
        for at in limited:  # which MuJoCo has only while it pushes
            theirs[at] = readings.values[at]
        assert_same_readings(model, readings.values, theirs)


TOUCHING = """
<mujoco>
  <worldbody><geom name="floor" type="plane" size="5 5 .1"/>
    <body name="a" pos="0 0 .09"><freejoint/><geom name="ball" size=".1"/>
      <site name="under" type="box" size=".05 .05 .05" pos="0 0 -.1"/>
      <site name="aside" type="ellipsoid" size=".05 .06 .04" pos=".3 0 0"/>
      <site name="round" type="cylinder" size=".05 .02" pos="0 0 -.09"/>
      <site name="capsule" type="capsule" size=".05 .02" pos="0 .03 -.12"/>
      <body name="arm" pos="0 0 .25"><joint axis="0 1 0"/><geom name="tip" type="capsule"
        size=".06 .1"/></body></body>
    <body name="b" pos=".1 .15 .09"><freejoint/><geom name="other" size=".1"/></body>
  </worldbody>
  <sensor>
    <touch site="under"/><touch site="aside"/><touch site="round"/><touch site="capsule"/>
    <touch site="under" cutoff=".5"/><force site="under"/><torque site="under"/>
    <distance geom1="tip" geom2="other" cutoff="1"/><normal geom1="tip" geom2="other" cutoff="1"/>
    <fromto geom1="tip" geom2="other" cutoff="1"/><fromto geom1="other" geom2="tip" cutoff="1"/>
    <distance body1="a" body2="b" cutoff="1"/><distance geom1="tip" geom2="floor"/>
    <distance geom1="tip" geom2="floor" cutoff=".05"/><normal geom1="ball" geom2="floor"/>
  </sensor>
</mujoco>"""


@pytest.mark.parametrize("height", [0.0, 0.015, -0.02])
def test_touch_and_distances_read_what_mujoco_reads(rng, height):
    model, mj_model = loaded(TOUCHING), mujoco.MjModel.from_xml_string(TOUCHING)
    data = mujoco.MjData(mj_model)
    data.qpos[2] += height
    data.qpos[7] = 0.4
    data.qvel[:] = rng.normal(size=mj_model.nv)
    mujoco.mj_forward(mj_model, data)
    q, qd, qdd = ours(model, mj_model, *(np.array(x) for x in (data.qpos, data.qvel, data.qacc)))
    body = [model.body_index(mj_model.body(b).name) if b else 0 for b in range(mj_model.nbody)]
    ends = [[body[mj_model.geom_bodyid[g]] for g in c.geom] for c in data.contact[: data.ncon]]
    first, second = np.array(ends).T if data.ncon else (np.zeros(0, int),) * 2
    forces, force = np.zeros((data.ncon, 3)), np.zeros(6)
    axes = np.array([c.frame for c in data.contact[: data.ncon]]).reshape(-1, 3, 3)
    points = np.array([c.pos for c in data.contact[: data.ncon]]).reshape(-1, 3)
    contacts = kt.contact.Contacts(first, second, points, axes[:, 0], np.zeros(data.ncon))
    for k in range(data.ncon):
        mujoco.mj_contactForce(mj_model, data, k, force)
        forces[k] = contact_axes(axes[k, 0]) @ (axes[k].T @ force[:3])
    given = {"contacts": contacts, "contact_forces": forces}
    readings = kt.sensors(model)(q, qd, qdd, **given)
    assert_same_readings(model, readings.values, np.array(data.sensordata))
    if height == 0:
        assert readings["touch_0"] > 1
        assert readings["touch_4"] == 0.5


def test_sensors_that_mujoco_rejects_are_left_out_and_noted(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(TEXT.replace('site="ft" name="gyro-ft"', 'site="no" name="gyro-ft"'))
    found = read(path)
    assert not found.model.sensors
    (notice,) = (n for n in found.notices if n.what == "<sensor>")
    assert "unrecognized name 'no'" in notice.why
    assert notice.why.endswith("all sensors are left out")
    assert notice.effect == "control"


def test_replicas_have_theirs():
    text = """
    <mujoco><worldbody>
      <replicate count="3" offset="1 0 0"><body name="b"><joint name="j"/><geom size=".1"/></body>
      </replicate></worldbody><sensor><jointpos name="q" joint="j"/></sensor></mujoco>"""
    model = loaded(text)
    assert [(s.name, s.of) for s in model.sensors] == [("q0", "j0"), ("q1", "j1"), ("q2", "j2")]


RANGED = """
<mujoco><option><flag contact="disable"/></option>
  <worldbody><geom name="floor" type="plane" size="0 0 .1"/>
    <body name="eye" pos="0 0 1"><freejoint/><geom size=".05" mass="1"/>
      <site name="a"/><site name="b" euler="180 0 0"/><site name="c" euler="0 90 0"/>
      <site name="d" euler="120 30 0"/><site name="e" euler="-100 60 40" pos=".1 0 0"/></body>
    <geom type="box" size=".3 .4 .2" pos="1 .1 1" euler="10 20 30"/>
    <geom type="ellipsoid" size=".3 .4 .2" pos="-.6 .3 .5" euler="10 20 30"/>
    <geom type="cylinder" size=".3 .4" pos=".2 -1 1.2" euler="40 20 30"/>
    <geom type="capsule" size=".2 .3" pos="-.1 1 1.5" euler="50 20 70"/>
    <geom size=".3" pos="0 .1 2.5"/><geom size=".3" pos="0 0 1.6" rgba="1 1 1 0"/>
    <geom type="plane" size=".8 0 .1" pos="0 0 3.5" euler="160 20 0"/>
    <geom type="plane" size=".9 .7 .1" pos="0 0 .3"/><geom type="plane" size="0 0 .1" pos="0 0 4"/>
  </worldbody>
  <sensor><rangefinder site="a"/><rangefinder site="b"/><rangefinder site="c"/>
    <rangefinder site="d"/><rangefinder site="e"/><rangefinder site="b" cutoff=".5"/></sensor>
</mujoco>"""


def test_ranges_are_those_of_mujoco(rng):
    model, mj_model = loaded(RANGED), mujoco.MjModel.from_xml_string(RANGED)
    data, hits = mujoco.MjData(mj_model), 0
    for _ in range(30):
        data.qpos[:3] = [0, 0, 1] + 0.2 * rng.normal(size=3)
        data.qpos[3:] = rng.normal(size=4)
        mujoco.mj_normalizeQuat(mj_model, data.qpos)
        mujoco.mj_forward(mj_model, data)
        readings = kt.sensors(model)(from_q(model, mj_model, np.array(data.qpos)))
        theirs = np.array(data.sensordata)
        assert_close(
            readings.values, theirs, condition=100, scale=1 + np.max(theirs) ** 2
        )  # flat rays
        hits += np.sum(readings.values > 0)
    assert hits > 60
