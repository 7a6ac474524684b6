"""Servos of MJCF exert what they exert in MuJoCo, and hold a robot where MuJoCo holds it."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded

import kinetree as kt
from kinetree.interop import mujoco as M

TEXT = """<mujoco><compiler angle="radian"/><option timestep="{dt}" integrator="RK4"/>
<worldbody><site name="ground" pos=".2 .1 .3" euler=".3 .2 .1"/>
<body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0" damping="0.1" ref="0.3"/>
  <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1" contype="0"/>
  <site name="sa" pos=".1 .02 .03" euler=".1 -.2 .3"/>
  <body name="b" pos=".4 0 0"><joint name="j2" axis="1 1 0" damping="0.1" armature=".01"
      actuatorfrcrange="-3 3"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass=".7" contype="0"/>
    <site name="sb" pos=".2 .01 .02" euler=".4 .5 -.6"/>
    <body name="c" pos=".3 0 0"><joint name="j3" type="slide" axis="0 0 1" stiffness="50"/>
      <geom size=".05" mass=".4" contype="0"/><site name="sc" pos=".02 .01 .05" euler="-.2 .6 .3"/>
    </body></body></body>
<body name="d" pos="0 1 1"><joint name="ball" type="ball" damping=".05"/>
  <geom type="box" size=".1 .05 .2" pos=".05 0 .1" mass="1" contype="0"/>
  <site name="sd" pos=".1 0 .1" euler=".3 0 .2"/></body>
<body name="e" pos="0 2 1"><freejoint name="root"/>
  <geom type="box" size=".1 .05 .2" pos=".05 0 .1" mass="1" contype="0"/></body>
</worldbody>
<tendon><fixed name="cable"><joint joint="j1" coef=".7"/><joint joint="j3" coef="-1.3"/></fixed>
</tendon>
<actuator>{actuators}</actuator></mujoco>"""

PLAIN = """<motor joint="j2" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
<position joint="j1" kp="40" kv="3" gear="2" forcerange="-20 20"/>
<velocity joint="j3" kv="5" gear="-1.5"/>
<damper joint="j2" kv="2" ctrlrange="0 1"/>
<general joint="j2" gaintype="affine" gainprm="2 .5 .3" biastype="affine" biasprm=".3 -4 -.2"/>
<position tendon="cable" kp="12" gear="1.7"/>
<position joint="ball" kp="3" kv=".1" gear="1 .5 -2"/>
<velocity jointinparent="ball" kv=".2" gear=".3 .5 -.2"/>
<motor site="sd" gear="1 2 3 .1 .2 .3"/>
<velocity site="sb" kv="2" gear="0 1 0 .3 0 0"/>
<position site="sc" refsite="sa" kp="20" gear="1 .5 2 0 0 0"/>
<position site="sc" refsite="sd" kp="4" gear="0 0 0 1 .5 2"/>
<position site="sb" refsite="ground" kp="4" gear=".2 0 1 1 .5 2"/>
<position joint="root" kp="3" kv=".2" gear="1 2 -1 0 0 0"/>
<velocity joint="root" kv=".2" gear="0 0 0 1 2 -1"/>"""

STATEFUL = """<intvelocity joint="j3" kp="30" actrange="-.04 .04"/>
<cylinder joint="j1" timeconst=".05" area="2" bias="1 -2 -3"/>
<general joint="j2" dyntype="filter" dynprm=".1" gainprm="2 .5 .3" gaintype="affine"/>
<general joint="j1" dyntype="filterexact" dynprm=".07" gainprm="2" biastype="affine"
  biasprm="0 -2 0"/>
<general joint="j2" dyntype="integrator" gainprm=".5"/>"""


def both(actuators, dt=1e-3):
    """MuJoCo's model and ours."""
    text = TEXT.format(actuators=actuators, dt=dt)
    return mujoco.MjModel.from_xml_string(text), loaded(text)


def at(mj_model, model, q, qd, ctrl, act=0.0):
    data = mujoco.MjData(mj_model)
    data.qpos, data.qvel = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    data.ctrl[:], data.act[:] = ctrl, act
    mujoco.mj_forward(mj_model, data)
    return data


def test_forces_before_and_behind_the_gear():
    mj_model, m = both(PLAIN + STATEFUL)
    assert (len(m.actuators), mj_model.na) == (mj_model.nu, 5)
    rng, cut = np.random.default_rng(1), 0
    q = m.random_configuration(rng, 12)
    qd, u, act = (rng.normal(size=(12, n)) for n in (m.nv, mj_model.nu, 5))
    forces, tau = kt.actuator_forces(m, q, qd, u, act), kt.driving_force(m, q, qd, u, act)
    for k in range(12):
        data = at(mj_model, m, q[k], qd[k], u[k], act[k])
        scale = 1 + np.abs(data.actuator_force).max()
        np.testing.assert_allclose(forces[k], data.actuator_force, atol=1e-13 * scale)
        theirs = M.from_tau(m, mj_model, data.qpos, data.qfrc_actuator)
        np.testing.assert_allclose(tau[k], theirs, atol=1e-13 * scale)
        cut += abs(tau[k, 1]) == 3.0
    assert 0 < cut < 12  # actuatorfrcrange


# MuJoCo's "filterexact" is exact in steps of Euler's method, not in those of Runge and Kutta.
MOTIONS = {"plain": PLAIN, "stateful": STATEFUL.replace("filterexact", "filter")}


@pytest.mark.parametrize("actuators", MOTIONS.values(), ids=MOTIONS)
def test_motions_agree_at_the_order_of_the_integrators(actuators):
    """A tenth of a second under constant controls: forces, activations and states."""
    rng = np.random.default_rng(2)
    _, m = both(actuators)
    u, qd = 0.5 * rng.normal(size=len(m.actuators)), 0.3 * rng.normal(size=m.nv)
    errors = []
    for dt in (2e-3, 1e-3):
        mj_model, m = both(actuators, dt)
        data = at(mj_model, m, m.neutral(), qd, u)
        for _ in range(round(0.1 / dt)):
            mujoco.mj_step(mj_model, data)
        mujoco.mj_forward(mj_model, data)
        found = kt.simulate(m, m.neutral(), qd, duration=0.1, dt=dt, controls=u, integrator="rk4")
        apart = m.difference(found.q[-1], M.from_q(m, mj_model, data.qpos))
        theirs = M.from_tau(m, mj_model, data.qpos, data.qfrc_actuator)
        errors.append([np.abs(apart).max(), np.abs(found.tau[-1] - theirs).max()])
        if found.activation is not None:
            errors[-1].append(np.abs(found.activation[-1] - data.act).max())
    errors = np.array(errors)
    assert np.all(errors[1] < 1e-7), errors
    assert np.all(errors[1] < np.maximum(errors[0] / 1.8, 1e-10)), errors


def test_activations_of_an_exact_filter_are_those_of_mujoco():
    text = TEXT.format(actuators=STATEFUL, dt=1e-3).replace("RK4", "Euler")
    mj_model, m = mujoco.MjModel.from_xml_string(text), loaded(text)
    data = at(mj_model, m, m.neutral(), np.zeros(m.nv), 0.3)
    for _ in range(50):
        mujoco.mj_step(mj_model, data)
    found = kt.simulate(m, m.neutral(), duration=0.05, controls=[0.3] * 5)
    exact = [0, 3, 4]  # integrators, and the exact filter
    np.testing.assert_allclose(found.activation[-1, exact], data.act[exact], atol=1e-14)


ARM = """<mujoco><compiler angle="radian"/><option timestep="{dt}" integrator="RK4"/>
<worldbody><body><joint name="j1" axis="0 1 0" damping=".1"/>
  <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1"/>
  <body pos=".4 0 0"><joint name="j2" axis="0 1 0" damping=".1"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass=".7"/></body></body></worldbody>
<actuator><position name="s1" joint="j1" kp="40" kv="3"/>
  <position name="s2" joint="j2" kp="20" kv="1" forcerange="-4 4"/></actuator>
<keyframe><key name="home" qpos=".6 -.5" ctrl=".5 -.7"/></keyframe></mujoco>"""


@pytest.mark.parametrize("how", ["numbers", "posture", "rollout"])
def test_an_arm_is_held_where_mujoco_holds_it(how):
    errors, moved = [], []
    for dt in (4e-3, 2e-3):
        text = ARM.format(dt=5e-4)
        mj_model, m = mujoco.MjModel.from_xml_string(text), loaded(text)
        data = mujoco.MjData(mj_model)
        mujoco.mj_resetDataKeyframe(mj_model, data, 0)
        for _ in range(2000):
            mujoco.mj_step(mj_model, data)
        home = m.posture("home")
        if how == "rollout":
            steps = round(1 / dt)
            found = kt.rollout(m, home.q, controls=home, steps=steps, dt=dt, integrator="rk4")
        else:
            controls = home.controls if how == "numbers" else "home"
            found = kt.simulate(m, home.q, duration=1.0, dt=dt, controls=controls, integrator="rk4")
        errors.append(np.abs(found.q[-1] - data.qpos).max())
        moved.append(np.abs(data.qpos - home.q).max())
    assert errors[1] < 1e-8
    assert errors[1] < errors[0] / 8  # fourth order, but where the force range begins
    assert moved[0] > 0.1
