"""Muscles: curves, forces and activations against MuJoCo, and the same in compiled steps."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded
from support.spatial_tendons import random_mjcf, random_muscles

import kinetree as kt
from kinetree.algorithms import actuators, muscles
from kinetree.contact.engine import muscles as compiled
from kinetree.errors import ModelError
from kinetree.interop import mujoco as M
from kinetree.quantities.actuators import activation_after

ARM = """<mujoco><worldbody>
<site name="top" pos="0 .03 .1"/><site name="back" pos="0 -.04 .1"/>
<body name="upper" pos="0 0 0"><joint name="shoulder" axis="1 0 0" damping=".1"/>
<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" contype="0" conaffinity="0"/>
<site name="biceps_1" pos="0 .03 -.05"/><site name="triceps_1" pos="0 -.03 -.05"/>
<geom name="elbow" type="cylinder" size=".03 .03" pos="0 0 -.3" euler="0 90 0" mass=".05"
contype="0" conaffinity="0"/><site name="behind" pos="0 -.06 -.3"/>
<body name="lower" pos="0 0 -.3"><joint name="hinge" axis="1 0 0" ref="30" damping=".1"/>
<geom type="capsule" fromto="0 0 0 0 0 -.25" size=".025" contype="0" conaffinity="0"/>
<site name="biceps_2" pos="0 .025 -.06"/><site name="triceps_2" pos="0 -.025 -.05"/>
</body></body></worldbody>
<tendon><spatial name="biceps"><site site="biceps_1"/><site site="biceps_2"/></spatial>
<spatial name="triceps"><site site="triceps_1"/><geom geom="elbow" sidesite="behind"/>
<site site="triceps_2"/></spatial></tendon>
<actuator><muscle name="biceps" tendon="biceps" force="300" lengthrange=".18 .36"/>
<muscle name="triceps" tendon="triceps" force="200" lengthrange=".2 .4" timeconst=".02 .06"/>
<muscle name="deltoid" joint="shoulder" gear="-.04" range=".7 1.1" lengthrange="-.08 .08"
scale="150" lmin=".4" fvmax="1.4" vmax="2"/>
<general name="plain" joint="shoulder" dyntype="muscle" dynprm=".01 .04" gainprm="2"/>
</actuator></mujoco>"""


@pytest.fixture(scope="module")
def arm():
    return loaded(ARM)


def test_forces_are_those_of_mujoco(arm, rng):
    mj_model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(mj_model)
    assert [a.kind for a in arm.actuators] == ["muscle", "muscle", "muscle", "general"]
    assert arm.actuators[2].muscle.force == pytest.approx(150 / mj_model.actuator_acc0[2])
    seen = []
    for _ in range(200):
        q, qd = rng.uniform(-1.5, 1.5, 2), 6 * rng.normal(size=2)
        act = rng.uniform(size=4)
        data.qpos[:], data.qvel[:] = M.to_q(arm, mj_model, q), M.to_v(arm, mj_model, q, qd)
        data.act[:], data.ctrl[:] = act, 0.5
        mujoco.mj_forward(mj_model, data)
        u = np.full(4, 0.5)
        ours = actuators.actuator_forces(arm, q, qd, u, act)
        np.testing.assert_allclose(ours, data.actuator_force, rtol=0, atol=1e-10)
        tau = actuators.driving_force(arm, q, qd, u, act)
        theirs = M.from_tau(arm, mj_model, data.qpos, data.qfrc_actuator)
        np.testing.assert_allclose(tau, theirs, rtol=0, atol=1e-10)
        seen.append(ours)
    assert np.all(np.ptp(seen, axis=0) > 1)


def test_muscles_of_random_models_pull_as_in_mujoco(rng):
    """Random curves, on tendons through space that wind around shapes; lengths and forces."""
    seen = []
    for _ in range(12):
        text = random_mjcf(rng, within=False, actuators=random_muscles(rng, 4))
        mj_model, model = mujoco.MjModel.from_xml_string(text), loaded(text)
        data = mujoco.MjData(mj_model)
        q, qd = model.random_configuration(rng), 3 * rng.normal(size=model.nv)
        u, act = rng.uniform(size=4), rng.uniform(size=4)
        data.qpos[:], data.qvel[:] = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
        data.ctrl[:], data.act[:] = u, act
        mujoco.mj_forward(mj_model, data)
        through = actuators.transmission(model, q, qd)
        np.testing.assert_allclose(through.length, data.actuator_length, rtol=0, atol=1e-12)
        np.testing.assert_allclose(through.velocity, data.actuator_velocity, rtol=0, atol=1e-11)
        ours = actuators.actuator_forces(model, q, qd, u, act)
        np.testing.assert_allclose(ours, data.actuator_force, rtol=0, atol=1e-10)
        tau = actuators.driving_force(model, q, qd, u, act)
        theirs = M.from_tau(model, mj_model, data.qpos, data.qfrc_actuator)
        np.testing.assert_allclose(tau, theirs, rtol=0, atol=1e-10)
        seen.append(ours)
    assert np.count_nonzero(np.abs(seen) > 1) > 20


def test_curves_and_slopes_of_compiled_steps_are_those_of_the_text(rng):
    muscle = kt.Muscle(200.0, (0.2, 0.5), (0.6, 1.2), lmin=0.3, lmax=1.5, fvmax=1.3)
    numbers = np.array(compiled.numbers_of(muscle))
    for _ in range(200):
        length, velocity, u = rng.uniform(0, 0.9), rng.normal(), rng.uniform()
        f = muscles.muscle_force(muscle, length, velocity, u)
        np.testing.assert_allclose(
            compiled.muscle_force.python(numbers, length, velocity, u), f, rtol=1e-13, atol=1e-12
        )
        for n, (dl, dv) in enumerate(((1e-30j, 0), (0, 1e-30j)), start=1):
            slope = muscles.muscle_force(muscle, length + dl, velocity + dv, u)[0].imag / 1e-30
            assert f[n] == pytest.approx(slope, rel=1e-12, abs=1e-12)
        assert -f[1] <= muscle.steepest.stiffness
        assert -f[2] <= muscle.steepest.damping
    no_stretch = kt.Muscle(1.0, (0.2, 0.5), fvmax=1.0)
    assert muscles.force_velocity(no_stretch, 0.5) == (1.0, 0.0)


def test_activations_follow_their_differential_equation(rng):
    """By Runge–Kutta steps so small that nothing is left of their errors."""
    rise, fall = 0.01, 0.04

    def rate(u, a):
        stretch = 0.5 + 1.5 * a
        return (u - a) / (rise * stretch if u > a else fall / stretch)

    for u, a in rng.uniform(size=(10, 2)):
        x, h = a, 0.03 / 400
        for _ in range(400):
            k1 = rate(u, x)
            k2 = rate(u, x + h / 2 * k1)
            k3 = rate(u, x + h / 2 * k2)
            x += h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(u, x + h * k3))
        found = muscles.muscle_activation(u, a, (rise, fall), 0.03)
        assert found == pytest.approx(x, abs=1e-10)
        assert compiled.muscle_activation.python(u, a, rise, fall, 0.03) == pytest.approx(
            found, abs=1e-15
        )
    assert muscles.muscle_activation(1.0, 0.0, (rise, fall), 100.0) == pytest.approx(1.0, abs=1e-15)
    assert muscles.muscle_activation(0.0, 1.0, (rise, fall), 100.0) == pytest.approx(0.0, abs=1e-15)
    assert muscles.muscle_activation(0.3, 0.3, (rise, fall), 1.0) == 0.3


def test_an_arm_with_muscles_moves_as_in_mujoco(arm):
    """MuJoCo's activations take Euler's steps: half as long, half the difference."""
    U, span, q0 = np.array([0.8, 0.1, 0.3, 0.2]), 0.1, np.array([0.2, 0.3])
    found = kt.simulate(arm, q0, duration=span, dt=2.5e-4, integrator="rk4", controls=U)
    ends = []
    for h in (2e-4, 1e-4, 5e-5):
        mj_model = mujoco.MjModel.from_xml_string(ARM)
        mj_model.opt.timestep = h
        mj_model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        data = mujoco.MjData(mj_model)
        data.qpos[:], data.ctrl[:] = M.to_q(arm, mj_model, q0), U
        for _ in range(round(span / h)):
            mujoco.mj_step(mj_model, data)
        ends.append(M.from_q(arm, mj_model, data.qpos))
    limit = 2 * ends[2] - ends[1]
    np.testing.assert_allclose(found.q[-1], limit, rtol=0, atol=2e-6)
    np.testing.assert_allclose(found.activation[-1], activation_after(arm, U, np.zeros(4), span))
    world = kt.World(timestep=2.5e-4)
    world.add(arm, q=q0)
    world.step(round(span / 2.5e-4), control=U)
    np.testing.assert_allclose(world.q, found.q[-1], rtol=0, atol=2e-4)
    np.testing.assert_allclose(world.activation, found.activation[-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("suffix", [".toml", ".json", ".xml", ".urdf"])
def test_files_keep_muscles(arm, tmp_path, suffix):
    file = tmp_path / f"arm{suffix}"
    kt.save(arm.replace(geometry=()), file)
    again = kt.load(file)
    q, qd, act = np.array([0.3, -0.4]), np.array([1.0, -2.0]), np.array([0.2, 0.9, 0.5, 0.1])
    ours, theirs = (actuators.actuator_forces(m, q, qd, np.zeros(4), act) for m in (arm, again))
    np.testing.assert_allclose(theirs, ours, rtol=1e-13)
    assert [a.deactivation_time for a in again.actuators] == [0.04, 0.06, 0.04, 0.04]


def test_impossible_muscles_are_refused():
    for given, message in (
        ({"length_range": (0.3, 0.2)}, "length_range of a Muscle must be the smallest"),
        ({"force": -1.0}, "force of a Muscle must be a number that is not negative, got -1.0"),
        ({"lmin": 1.2}, "needs lmin < 1 < lmax"),
        ({"fvmax": 0.9}, "fvmax >= 1"),
    ):
        with pytest.raises(ModelError, match=message):
            kt.Muscle(**({"force": 1.0, "length_range": (0.1, 0.2)} | given))
    for law, message in (
        ({"activation": "muscle", "time_constant": 0.1}, "needs a deactivation_time above zero"),
        (
            {"deactivation_time": 0.1},
            "deactivation_time of actuator 'a' is for activation='muscle'",
        ),
        ({"muscle": 3.0}, "muscle of actuator 'a' must be a Muscle, got float"),
    ):
        with pytest.raises(ModelError, match=message):
            _with(law)


def _with(law):
    b = kt.ModelBuilder("m").body("b", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(1, mass=2))
    return b.actuator("a", joint="b_joint", **law).build()
