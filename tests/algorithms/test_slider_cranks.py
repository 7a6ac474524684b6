"""Slider-cranks that actuators push: lengths, arms and motions against MuJoCo."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import driven_states, loaded

import kinetree as kt
from kinetree.algorithms import actuators
from kinetree.interop import mujoco as M


def numbers(values):
    return " ".join(repr(float(x)) for x in values)


def random_mjcf(rng, kinds=("hinge", "slide", "ball")):
    """A chain of three bodies with sites, and rods between them, some of them too short."""

    def body(i):
        kind = rng.choice(kinds)
        axis = "" if kind == "ball" else f'axis="{numbers(rng.normal(size=3))}"'
        pose = f'pos="{numbers(rng.normal(size=3) * 0.3)}" quat="{numbers(rng.normal(size=4))}"'
        site = f'<site name="s{i}" pos="{numbers(rng.normal(size=3) * 0.3)}" '
        site += f'quat="{numbers(rng.normal(size=4))}"/>'
        inside = f'<joint type="{kind}" {axis} damping="1"/><geom size=".1"/>{site}'
        return f"<body {pose}>{inside}{body(i + 1) if i < 2 else ''}</body>"

    rods = "".join(
        f'<general cranksite="s{a}" slidersite="{b}" cranklength="{rng.uniform(0.2, 1.5)}" '
        f'gear="{rng.normal()}" gainprm="3" biastype="affine" biasprm="0 -20 -1"/>'
        for a, b in ((0, "w"), (1, "s0"), (2, "s0"), (2, "w"), (0, "s2"))
    )
    world = f'<site name="w" quat="{numbers(rng.normal(size=4))}"/>{body(0)}'
    return (
        '<mujoco><option timestep="1e-4" integrator="RK4"><flag contact="disable"/></option>'
        f"<worldbody>{world}</worldbody><actuator>{rods}</actuator></mujoco>"
    )


def test_lengths_and_forces_are_those_of_mujoco(rng):
    for _ in range(20):
        model, q, qd, mj_model, data = driven_states(random_mjcf(rng), rng)
        through = actuators.transmission(model, q, qd)
        np.testing.assert_allclose(through.length, data.actuator_length, rtol=0, atol=1e-12)
        np.testing.assert_allclose(through.velocity, data.actuator_velocity, rtol=0, atol=1e-10)
        ours = actuators.driving_force(model, q, qd, data.ctrl)
        theirs = M.from_tau(model, mj_model, data.qpos, data.qfrc_actuator)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * max(1, abs(theirs).max()))


def test_motions_are_those_of_mujoco():
    text = """<mujoco><option timestep="1e-4" integrator="RK4"/><worldbody>
    <site name="guide" pos="0 -.1 0" zaxis="1 .5 0"/>
    <body><joint damping=".1"/><geom type="capsule" size=".01" fromto="0 0 0 .2 0 0"/>
    <site name="pin" pos=".1 0 0"/></body></worldbody>
    <actuator><position cranksite="pin" slidersite="guide" cranklength=".15" kp="30"/></actuator>
    </mujoco>"""
    mj_model, model = mujoco.MjModel.from_xml_string(text), loaded(text)
    data = mujoco.MjData(mj_model)
    data.ctrl[:] = -0.05
    mujoco.mj_step(mj_model, data, 2000)
    found = kt.simulate(
        model, [0.0], duration=0.2, dt=1e-4, integrator="rk4", controls=[-0.05]
    )  # fmt: skip
    np.testing.assert_allclose(found.q[-1], data.qpos, rtol=0, atol=1e-9)
    errors = []
    for h in (2e-3, 1e-3):
        world = kt.World(timestep=h)
        robot = world.add(model)
        world.step(round(0.2 / h), control={robot.name: [-0.05]})
        errors.append(abs(world.q - data.qpos).max())
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] > 3


@pytest.mark.parametrize("suffix", [".toml", ".json", ".xml", ".urdf"])
def test_files_keep_cranks(rng, tmp_path, suffix):
    model, q, qd, *_ = driven_states(random_mjcf(rng, ["hinge", "slide"]), rng)
    file = tmp_path / f"crank{suffix}"
    kt.save(model, file)
    again = kt.load(file)
    expected = actuators.transmission(model, q, qd)
    found = actuators.transmission(again, q, qd)
    np.testing.assert_allclose(found.length, expected.length, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.arms, expected.arms, rtol=0, atol=1e-13)


def test_cranks_without_a_slider_are_refused():
    builder = kt.ModelBuilder("m").body(
        "a", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    with pytest.raises(kt.errors.ModelError, match="a rod from its frame to a slider along z"):
        builder.actuator("push", frame="a", crank=0.3).build()
