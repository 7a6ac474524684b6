"""Motions beside those of MuJoCo, on models that both can express; stiff ones, and real robots."""

import warnings

import mujoco
import numpy as np
import pytest
from support.example_robots import ROOT
from support.motions import assert_trusted
from support.mujoco_mechanisms import CLOSED, TREES, loaded

import kinetree as kt
from kinetree.interop import mujoco as M

NAMES = ("hinge", "slide", "ball", "free", "fixed tendons", "gravity compensation")
DT, STEPS = 5e-4, 1000


def peer(text):
    """MuJoCo's model without contacts, limits and friction, with its Runge–Kutta integrator."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = DT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("name", NAMES)
def test_motions_agree_with_those_of_mujoco(name, rng):
    model, (mj_model, data) = loaded(TREES[name]), peer(TREES[name])
    q, qd = model.random_configuration(rng), rng.uniform(-1, 1, model.nv)
    data.qpos[:] = M.to_q(model, mj_model, q)
    data.qvel[:] = M.to_v(model, mj_model, q, qd)
    mujoco.mj_step(mj_model, data, STEPS)
    motion = kt.simulate(model, q, qd, duration=DT * STEPS, dt=DT, store_every=100, limits=None)
    assert_trusted(motion, energy=1e-8)
    end = M.from_q(model, mj_model, data.qpos)
    np.testing.assert_allclose(model.difference(end, motion.q[-1]), 0, atol=1e-8)
    theirs = M.from_v(model, mj_model, data.qpos, data.qvel)
    np.testing.assert_allclose(motion.qd[-1], theirs, atol=1e-7)


@pytest.mark.parametrize("name", CLOSED)
def test_exact_constraints_are_what_stiff_ones_of_mujoco_tend_to(name):
    """Loops, gears and equal tendons: the distance goes down with the square of the softness."""
    model = loaded(CLOSED[name])
    coarse, fine = (_stiff_distance(model, CLOSED[name], dt) for dt in (4e-4, 2e-4))
    assert fine < 1e-6
    assert 3.5 < coarse / fine < 4.5


def _stiff_distance(model, text, dt, duration=0.3):
    mj_model = mujoco.MjModel.from_xml_string(text)
    mj_model.opt.integrator, mj_model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, dt
    mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mj_model.opt.tolerance, mj_model.opt.iterations = 1e-14, 200
    mj_model.eq_solref[:], mj_model.eq_solimp[:] = [5 * dt, 1], [0.9999, 0.9999, 1e-3, 0.5, 2]
    q = model.neutral() if model.couplings else M.from_q(model, mj_model, mj_model.qpos0)
    qd = np.zeros(model.nv) if model.loops else np.linspace(-1, 1, model.nv)
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    mujoco.mj_step(mj_model, data, round(duration / dt))
    motion = kt.simulate(model, q, qd, duration=duration, dt=dt, limits=None)
    end = M.to_q(model, mj_model, motion.q[-1])
    return np.max(np.abs(end - data.qpos))


# --- dampers and servos that explicit steps do not survive ---------------------------------------

_LINK = '<geom type="capsule" size=".006" fromto="0 0 0 .03 0 .01" density="900"/>'


def _finger(name, inside="", joint=""):
    return (
        f'<body name="{name}" pos=".03 .002 .01"><joint name="{name}" axis="0 1 .2" damping=".05" '
        f"{joint}/>{_LINK}{inside}</body>"
    )


def _hand(after="", first="", joint=""):
    """A palm that swings, with two fingers of two links: microseconds of damping."""
    fingers = _finger("f1", _finger("f2", joint=joint)) + _finger("t1", _finger("t2"), joint)
    return (
        f'<mujoco><worldbody><body><joint name="palm" axis="1 0 0"/>{first}'
        f'<geom type="box" size=".03 .04 .02"/>{fingers}</body></worldbody>{after}</mujoco>'
    )


_TENDON = (
    '<tendon><fixed name="t" stiffness=".1" damping="{damping}" springlength="0.2">'
    '<joint joint="f1" coef="1"/><joint joint="t2" coef="-.5"/></fixed></tendon>'
)
STIFF = {
    "dampers": _hand(),
    "dampers and springs": _hand(joint='stiffness=".1" springref="30"'),
    "free hand": _hand(first='<joint name="slide" type="slide" axis="0 0 1"/>'),
    "ball": _hand().replace('name="f1" axis="0 1 .2"', 'name="f1" type="ball"'),
    "tendon": _hand(_TENDON.format(damping=0.1)),
    "servos": _hand(
        _TENDON.format(damping=0)
        + '<actuator><position joint="f1" kp=".5" kv=".02"/><velocity joint="t1" kv=".05"/>'
        '<position tendon="t" kp=".2" kv=".01"/></actuator>'
    ),
}


def implicit_end(mj_model, start, ctrl, duration, dt):
    """Where MuJoCo's implicit integrator, of order one, ends."""
    mj_model.opt.integrator, mj_model.opt.timestep = mujoco.mjtIntegrator.mjINT_IMPLICIT, dt
    mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.ctrl[:] = start, ctrl
    mujoco.mj_step(mj_model, data, round(duration / dt))
    return data.qpos.copy()


@pytest.mark.parametrize("name", STIFF)
def test_stiff_mechanisms_move_as_in_mujoco_at_defaults(name, rng):
    """MuJoCo's results with two steps are extrapolated; their difference says how good that is."""
    model, mj_model = loaded(STIFF[name]), mujoco.MjModel.from_xml_string(STIFF[name])
    q, duration = model.random_configuration(rng), 0.2
    ctrl = rng.uniform(-0.3, 0.3, mj_model.nu)
    options = {"controls": ctrl} if mj_model.nu else {}
    start = M.to_q(model, mj_model, q)
    ends = [
        M.from_q(model, mj_model, implicit_end(mj_model, start, ctrl, duration, dt))
        for dt in (1e-4, 5e-5)
    ]
    change = model.difference(*ends)
    motions = [
        kt.simulate(model, q, duration=duration, dt=dt, limits=None, **options)
        for dt in (1e-3, 2.5e-4)
    ]
    assert [motion.report.integrator for motion in motions] == ["rosenbrock_w"] * 2
    own = np.max(np.abs(model.difference(*(motion.q[-1] for motion in motions))))
    gap = model.difference(model.integrate(ends[1], change), motions[1].q[-1])
    assert own < 2e-3
    assert np.max(np.abs(gap)) < 0.02 * np.max(np.abs(change)) + own / 16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.SimulationWarning)
        with pytest.raises(kt.SimulationError, match=r"blew up|stopped in the step"):
            kt.simulate(model, q, duration=0.01, limits=None, integrator="rk4", **options)


ROBOTS = {  # the others: benchmarks/mujoco_motions.py
    "allegro_hand_description/urdf/allegro_right_hand.urdf": "rosenbrock_w",
    "z1_description/urdf/z1.urdf": "rosenbrock_w",
    "finger_edu_description/robots/finger_edu.urdf": "rk4",
}


@pytest.mark.parametrize("file", ROBOTS)
def test_robots_move_as_in_mujoco_at_defaults(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = kt.load(ROOT / file)
        model = whole.uncoupled.replace(geometry=())
        mj_model, q = M.to_model(model), model.neutral()
    motion = kt.simulate(model, q, duration=0.5, store_every=100, limits=None, friction=None)
    assert motion.report.integrator == ROBOTS[file]
    assert motion.report.trusted
    start = M.to_q(model, mj_model, q)
    ends = [
        M.from_q(model, mj_model, implicit_end(mj_model, start, 0.0, 0.5, dt))
        for dt in (1e-4, 5e-5)
    ]
    change = ends[1] - ends[0]
    assert np.max(np.abs(ends[1] + change - motion.q[-1])) < 0.02 * np.max(np.abs(change)) + 1e-9
