"""PID controllers of MJCF, MuJoCo's own and those of its plugin, against MuJoCo."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InteropError, ModelError
from kinetree.interop import mujoco as M
from kinetree.loaders import loads

ARM = """<mujoco><option timestep="{h}" integrator="{method}"/>
<default><geom contype="0" conaffinity="0"/></default>
{extension}<worldbody><site name="w" pos="0 0 1"/>
<body name="a"><joint name="j" axis="0 1 0" damping=".2" ref="{ref}"/>
  <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/><site name="s" pos=".2 0 0"/>
  <body name="b" pos=".4 0 0"><joint name="k" axis="0 1 1" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".02" mass=".5"/></body></body></worldbody>
<tendon><spatial name="t"><site site="w"/><site site="s"/></spatial></tendon>
<actuator>{actuators}</actuator></mujoco>"""
LOADED = Path(mujoco.__file__).parent / "plugin" / "libactuator.so"
PIDS = {
    "integral": 'ki="30"',
    "bounded integral": 'ki="30" imax=".02"',
    "slew": 'slewmax="1.5"',
    "all": 'ki="30" imax=".05" slewmax="1.5"',
}
has_pid = pytest.mark.skipif(not hasattr(mujoco.mjtDyn, "mjDYN_PID"), reason="MuJoCo before 4")


def text_of(actuators, *, h=5e-4, ref=20, method="RK4", extension=""):
    return ARM.format(actuators=actuators, h=h, ref=ref, method=method, extension=extension)


def mujoco_after(text, controls, duration):
    mj_model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj_model)
    data.ctrl[:] = controls
    mujoco.mj_step(mj_model, data, round(duration / mj_model.opt.timestep))
    return mj_model, data


def moved(model, controls, duration, dt=5e-4):
    start = model.neutral(), np.zeros(model.nv)
    return kt.simulate(
        model, *start, duration=duration, dt=dt, controls=controls, integrator="rk4", limits=None
    )


@has_pid
@pytest.mark.parametrize("what", PIDS)
def test_motions_are_those_of_mujoco(what):
    """With RK4 on both sides; a bound is reached within a step of either."""
    more = PIDS[what]
    text = text_of(
        f'<pid joint="j" kp="20" kv="1" input="pos" {more}/>'
        f'<pid tendon="t" kp="9" kv=".4" input="pos" {more} ctrlrange="-1 1.3"/>'
    )
    model = loads(text, "mjcf")
    mj_model, data = mujoco_after(text, [0.8, 2.0], 0.5)
    found = moved(model, [0.8, 2.0], 0.5)
    close = 1e-3 if "imax" in more or "slew" in more else 1e-9
    np.testing.assert_allclose(
        found.q[-1], M.from_q(model, mj_model, data.qpos), rtol=0, atol=close
    )
    np.testing.assert_allclose(found.activation[-1], data.act, rtol=0, atol=close)
    assert not [n for n in model.report if n.effect == "control"]


@has_pid
@pytest.mark.parametrize("what", PIDS)
def test_worlds_move_as_fine_steps_do(what):
    text = text_of(f'<pid joint="j" kp="20" kv="1" input="pos" {PIDS[what]}/>')
    model = loads(text, "mjcf")
    fine = moved(model, [0.8], 0.5, dt=1e-4)
    gaps = []
    for steps in (250, 1000):
        world = kt.World(timestep=0.5 / steps, gravity=model.gravity)
        robot = world.add(model)
        world.step(steps, control=[0.8])
        gaps.append(np.abs(robot.q - fine.q[-1]).max())
        np.testing.assert_allclose(world.activation, fine.activation[-1], rtol=0, atol=2e-3)
    assert gaps[1] < min(1e-4, max(gaps[0] / 3, 1e-6))


@has_pid
@pytest.mark.skipif(not LOADED.exists(), reason="MuJoCo without its plugins")
@pytest.mark.parametrize("what", PIDS)
def test_the_plugin_is_read_as_mujocos_own(what):
    """Its ``imax`` bounds a force; its setpoint begins with the first control."""
    mujoco.mj_loadPluginLibrary(str(LOADED))
    given = dict(part.replace('"', "").split("=") for part in PIDS[what].split())
    if "imax" in given:
        given["imax"] = repr(float(given["imax"]) * float(given["ki"]))
    keys = "".join(f'<config key="{k}" value="{x}"/>' for k, x in given.items())
    states = ("ki" in given) + ("slewmax" in given)
    text = text_of(
        f'<plugin joint="j" plugin="mujoco.pid" actdim="{states}">'
        f'<config key="kp" value="20"/><config key="kd" value="1"/>{keys}</plugin>',
        h=1e-4, method="Euler", extension='<extension><plugin plugin="mujoco.pid"/></extension>',
    )  # fmt: skip
    model = loads(text, "mjcf")
    begins = [n for n in model.report if n.why.startswith("its setpoint begins at zero")]
    assert len(begins) == ("slewmax" in given)
    mj_model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj_model)
    mujoco.mj_step(mj_model, data)  # where its setpoint is the control, zero, at once
    data.ctrl[:] = 0.8
    mujoco.mj_step(mj_model, data, 3000)
    found = moved(model, [0.8], 0.3)
    np.testing.assert_allclose(found.q[-1], M.from_q(model, mj_model, data.qpos), rtol=0, atol=2e-3)
    own = data.act[::-1] if states == 2 else data.act  # the integral comes first there
    np.testing.assert_allclose(found.activation[-1], own, rtol=0, atol=2e-3)


@has_pid
@pytest.mark.parametrize("ending", ["json", "toml", "xml", "urdf"])
def test_files_return_it(tmp_path, ending):
    text = text_of(f'<pid name="p" joint="j" kp="20" kv="1" input="pos" {PIDS["all"]}/>', ref=0)
    model = loads(text, "mjcf")
    posture = kt.Posture("k", model.neutral(), controls=[0.3], activation=[0.2, 0.01])
    model = model.replace(postures=(posture,))
    path = tmp_path / f"arm.{ending}"
    kt.save(model, path)
    again = kt.load(path)
    (one,), (other,) = model.actuators, again.actuators
    names = ("gain", "bias", "activation", "integral", "integral_zero", "integral_range", "kind")
    for name in names:
        assert getattr(one, name) == getattr(other, name)
    assert other.time_constant == pytest.approx(one.time_constant, rel=1e-15)
    assert again.posture("k").activation.tolist() == [0.2, 0.01]


@has_pid
def test_mjcf_has_no_offset_of_lengths(tmp_path):
    model = loads(text_of('<pid joint="j" kp="20" input="pos" ki="3"/>', ref=20), "mjcf")
    with pytest.raises(InteropError, match="has integral action or a ramp, and a law that <pid>"):
        kt.save(model, tmp_path / "arm.xml")


def pendulum(**law):
    b = kt.ModelBuilder("m").body("b", joint=kt.Revolute("y"), inertia=kt.shapes.box(
        0.1, 0.1, 1.0, mass=2))  # fmt: skip
    return b.actuator("servo", joint="b_joint", kp=50.0, kv=5.0, **law).build()


def test_steps_are_of_the_fourth_order():
    model = pendulum(integral=80.0)
    ends = [moved(model, [0.7], 0.4, dt=dt).q[-1] for dt in (0.02, 0.01, 0.0025)]
    coarse, fine = (np.abs(q - ends[-1]).max() for q in ends[:2])
    assert fine < coarse / 12


def test_a_simulation_goes_on_from_a_state_with_its_integral():
    model = pendulum(integral=80.0, activation="ramp", time_constant=0.5)
    whole = moved(model, [0.7], 0.4)
    half = moved(model, [0.7], 0.2)
    rest = kt.simulate(
        model, half.state, duration=0.2, dt=5e-4, controls=[0.7], integrator="rk4", limits=None
    )
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(rest.activation[-1], whole.activation[-1], rtol=0, atol=1e-12)


def test_batches_of_motions_and_worlds():
    model = pendulum(integral=80.0)
    q = np.array([[0.0], [0.4]])
    both = kt.simulate(model, q, 0 * q, duration=0.2, dt=1e-3, controls=[0.7], limits=None)
    one = kt.simulate(model, q[1], 0 * q[1], duration=0.2, dt=1e-3, controls=[0.7], limits=None)
    np.testing.assert_allclose(both.q[-1, 1], one.q[-1], rtol=0, atol=1e-13)


def test_what_cannot_have_it_says_so():
    model = pendulum(integral=80.0)
    with pytest.raises(ModelError, match=r"rollout cannot be combined with .* integral action"):
        kt.rollout(model, model.neutral(), [0.0], controls=[0.1], dt=1e-3, steps=3)
    with pytest.raises(ModelError, match="and no integral action"):
        pendulum(integral_zero=0.1)
    with pytest.raises(ModelError, match="integral of actuator 'servo' must be a number"):
        pendulum(integral=np.inf)
