"""Armature of tendons: rotors that follow them, against MuJoCo, in files and in the doors."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded, mass_matrix
from support.spatial_tendons import numbers

import kinetree as kt
from kinetree.errors import ModelWarning, UnknownNameError
from kinetree.interop import mujoco as M
from kinetree.model.rotors import rotors_of, without_rotors

FINGER = """<mujoco><compiler angle="radian"/><option timestep="0.0005" integrator="RK4"/>
<worldbody><site name="drum" pos="-.1 0 .3"/>
<body name="a"><joint name="ja" axis="0 1 0" ref=".2" damping=".1"/>
  <geom name="pulley" type="cylinder" size=".05 .1" euler="1.57 0 0" mass=".5"/>
  <geom size=".05" pos=".2 0 0" mass=".4"/><site name="beside" pos="0 0 .2"/>
  <body name="b" pos=".3 0 .1"><joint name="jb" axis="1 3 .2" damping=".1"/>
    <geom size=".05" pos=".2 .05 0" mass=".3"/>
    <body name="c" pos=".3 0 0"><joint name="jc" axis="1 0 0" type="slide" damping=".1"/>
      <geom size=".05" pos="0 0 .1" mass=".2"/><site name="tip" pos=".1 0 .1"/></body></body>
</body></worldbody>
<tendon>
  <spatial name="rope" armature="{rope}" stiffness="20" springlength=".4">
    <site site="drum"/><site site="beside"/><pulley divisor="2"/><site site="drum"/>
    <site site="tip"/></spatial>
  <fixed name="belt" armature="{belt}"><joint joint="ja" coef=".5"/><joint joint="jc" coef="-2"/>
  </fixed>
</tendon>
<actuator><motor tendon="rope" gear="2" armature="{motor}"/></actuator></mujoco>"""
HEAVY = FINGER.format(rope=0.7, belt=0.3, motor=0.1)


def states(text, rng):
    """Our model and MuJoCo's with its data, in the same random state."""
    mj_model, model = mujoco.MjModel.from_xml_string(text), loaded(text)
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = rng.normal(size=(2, mj_model.nv)) * [[0.4], [2.0]]
    mujoco.mj_forward(mj_model, data)
    q = M.from_q(model, mj_model, data.qpos)
    return model, q, M.from_v(model, mj_model, data.qpos, data.qvel), mj_model, data


def test_inertia_and_bias_are_those_of_mujoco(rng):
    for _ in range(20):
        model, q, qd, mj_model, data = states(HEAVY, rng)
        assert model.nv == 3
        H = mass_matrix(mj_model, data)
        np.testing.assert_allclose(kt.mass_matrix(model, q), H, rtol=0, atol=1e-12)
        light = loaded(FINGER.format(rope=0, belt=0, motor=0))
        assert np.abs(kt.mass_matrix(light, q) - H).max() > 0.1
        bias = kt.bias_force(model, q, qd)
        np.testing.assert_allclose(bias, data.qfrc_bias, rtol=0, atol=1e-11)
        qdd = kt.forward_dynamics(model, q, qd, kt.passive_force(model, q, qd))
        np.testing.assert_allclose(qdd, data.qacc, rtol=0, atol=1e-9)


def test_motion_is_that_of_mujoco(rng):
    model, q, qd, mj_model, data = states(HEAVY, rng)
    data.ctrl[:] = 1.5
    mujoco.mj_step(mj_model, data, 400)
    motion = kt.simulate(
        model, q, qd, duration=0.2, dt=5e-4, controls=[1.5], integrator="rk4", store_every=400
    )
    np.testing.assert_allclose(
        motion.q[-1], M.from_q(model, mj_model, data.qpos), rtol=0, atol=1e-9
    )


def test_worlds_have_it(rng):
    """Steps of second order against fine steps of the fourth."""
    model, q, qd, *_ = states(HEAVY, rng)
    fine = kt.simulate(model, q, qd, duration=0.1, dt=2e-4, integrator="rk4", controls=[1.5])
    world = kt.World(timestep=2e-4, gravity=model.gravity)
    robot = world.add(model, q=q, qd=qd)
    world.step(500, control=[1.5])
    np.testing.assert_allclose(robot.q, fine.q[-1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("ending", ["json", "toml", "xml", "urdf"])
def test_files_return_it(tmp_path, rng, ending):
    model, q, qd, *_ = states(HEAVY, rng)
    path = tmp_path / f"finger.{ending}"
    kt.save(model, path)
    again = kt.load(path)
    assert sorted(rotors_of(again).values()) == ["belt", "rope"]
    np.testing.assert_allclose(
        kt.mass_matrix(again, q), kt.mass_matrix(model, q), rtol=0, atol=1e-13
    )
    expected = kt.bias_force(model, q, qd)
    np.testing.assert_allclose(kt.bias_force(again, q, qd), expected, rtol=0, atol=1e-12)
    if ending == "xml":
        assert 'armature="0.3"' in path.read_text()


def test_sdf_says_what_it_loses(tmp_path):
    with pytest.warns(ModelWarning, match="armature of tendon 'rope'"):
        kt.save(loaded(HEAVY), tmp_path / "finger.sdf")


def test_rotors_stay_with_what_they_are_of(rng):
    """Copies with another name, subtrees, held joints and models without the rotors."""
    model, q, _, mj_model, data = states(HEAVY, rng)
    bare, armature = without_rotors(model)
    assert armature == {"rope": pytest.approx(0.7 + 0.1 * 4), "belt": 0.3}
    assert (bare.couplings, bare.body_count) == ((), 3)
    two = kt.edit.attach(model, model, on="world", prefix="other_")
    H = kt.mass_matrix(two, np.concatenate([q, q]))
    np.testing.assert_allclose(H[3:, 3:], mass_matrix(mj_model, data), rtol=0, atol=1e-12)
    locked = kt.edit.lock(model, {"jb": q[1]})
    expected = np.delete(np.delete(mass_matrix(mj_model, data), 1, 0), 1, 1)
    np.testing.assert_allclose(kt.mass_matrix(locked, q[[0, 2]]), expected, rtol=0, atol=1e-12)


def test_a_joint_of_several_variables_is_a_notice(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(HEAVY.replace('type="slide"', 'type="ball"').replace(
        '<joint joint="jc" coef="-2"/>', ""))  # fmt: skip
    with pytest.warns(ModelWarning, match="its armature is not represented"):
        model = kt.load(path)
    assert [*rotors_of(model).values()] == ["belt"]
    (notice,) = [n for n in model.report if "armature" in n.why]
    assert notice.why == (
        "its armature is not represented: joint 'jc', which has several variables, moves it"
    )
    assert notice.effect == "motion"


def test_a_winch_follows_a_tendon_and_its_name_is_checked():
    def rope(name):
        b = kt.ModelBuilder("m")
        b.body("arm", joint=kt.Revolute("y"), inertia=kt.shapes.sphere(0.1, mass=1))
        b.body("drum", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=2), on="base")
        b.frame("end", on="arm", at=(0.5, 0, 0)).frame("top", on="base", at=(0, 0, 1))
        b.tendon("rope", path=("top", "end"))
        return b.coupling("winch", joint="drum_joint", tendon=name).build()

    model = rope("rope")
    q = np.array([0.3])
    length = np.linalg.norm(np.array([0.5 * np.cos(0.3), 0, -0.5 * np.sin(0.3) - 1]))
    assert model.expand(q)[1] == pytest.approx(length, abs=1e-15)
    assert "rope(arm_joint)" in model.summary()
    with pytest.raises(UnknownNameError, match=r"tendon of coupling 'winch'.* did you mean 'rope'"):
        rope("ropes")


def test_random_tendons_in_random_trees(rng):
    """Trees of hinges and slides, with rotors on tendons through sites, over a pulley."""
    for _ in range(5):
        n = 4
        bodies = ""
        for i in reversed(range(n)):
            kind = rng.choice(["hinge", "slide"])
            bodies = (
                f'<body pos="{numbers(rng.normal(size=3) * 0.4)}">'
                f'<joint name="j{i}" type="{kind}" axis="{numbers(rng.normal(size=3))}"/>'
                f'<geom name="g{i}" size=".1" mass="1" pos="{numbers(rng.normal(size=3) * 0.1)}"/>'
                f'<site name="s{i}" pos="{numbers(rng.normal(size=3) * 0.4)}"/>{bodies}</body>'
            )
        text = (
            f'<mujoco><worldbody><site name="w" pos="0 0 1"/>{bodies}</worldbody><tendon>'
            f'<spatial name="t" armature="{rng.uniform(0.2, 2)}"><site site="w"/>'
            f'<site site="s2"/><pulley divisor="2"/><site site="s0"/>'
            f'<site site="s3"/></spatial></tendon></mujoco>'
        )
        model, q, qd, mj_model, data = states(text, rng)
        H = mass_matrix(mj_model, data)
        np.testing.assert_allclose(kt.mass_matrix(model, q), H, rtol=0, atol=1e-11)
        qdd = kt.forward_dynamics(model, q, qd, kt.passive_force(model, q, qd))
        np.testing.assert_allclose(qdd, data.qacc, rtol=1e-8, atol=1e-8)
