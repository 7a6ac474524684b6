"""Robots in contact beside MuJoCo: one run, one thread, the same mechanisms and steps of 1 ms.

    python benchmarks/contact.py              all, a minute of motion each
    python benchmarks/contact.py --quick      ten seconds of each, one measurement

A quadruped whose 12 joints are held by position and speed (PD) stands on flat ground and on a
slope, and trots; two fingers hold a cube; a ball bounces. MuJoCo runs in its own C loops, with the
PD as actuators, only feet and ground in contact, no joint limits; with default settings and with
its no-slip option: elliptic cones, ten iterations, none left out. Here the PD is a kernel and part
of the compiled step.

Every motion of kinetree is checked: creep and penetration below 1e-9 m, all residuals below 1e-9.
Speeds are of CPU time of the process, taken in turn. Time stepping and PD differ in the first order
of the step, so motions are compared by where the robot comes to rest.
"""

import json
import platform
import sys
import time
import warnings
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
from contact_scenes import GAINS, Gait, gripper, quadruped
from rich.console import Console
from rich.table import Table

import kinetree as kt
from kinetree.benchmark import at_full_speed
from kinetree.writers.mjcf import to_mjcf

at_full_speed()

HERE = Path(__file__).parent
DT = 1e-3
SLOPES = {"flat": 0.0, "slope of 0.2 rad": 0.2}
NO_SLIP = 10
SETTLING = 10.0  # [s], before creep counts
BATCH, PEER_BATCH, BATCH_STEPS = 256, 16, 300
GOOD = 1e-9


def main():
    quick = "--quick" in sys.argv
    duration, repeats = (10.0, 1) if quick else (60.0, 7)
    kt.set_threads(1)
    warnings.simplefilter("ignore", kt.ModelWarning)
    warnings.simplefilter("ignore", kt.SimulationWarning)
    held = [row for name, slope in SLOPES.items() for row in standing(name, slope, duration)]
    held += [*walking(duration), *grasping(duration)]
    report = {
        "machine": platform.machine(),
        "mujoco": mujoco.__version__,
        "motions": held,
        "speed": [single(repeats), *batched(repeats)],
        "tenth bounce": bouncing(),
    }
    show("A minute of contact, steps of 1 ms", report["motions"])
    show("Steps per second on one thread", report["speed"])
    show("Time of the tenth bounce, restitution 0.8", report["tenth bounce"])
    if not quick:
        path = HERE / "contact.json"
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}")


# --- motions -------------------------------------------------------------------------------------


def standing(name, slope, duration):
    """Creep after a time to settle, ours and MuJoCo's."""
    dog = quadruped(slope)
    motion = kt.simulate(
        dog.model, dog.q, duration=SETTLING + duration, dt=DT, contact=dog.contact, limits=None,
        forces=(dog.hold,), store_every=1000,
    )  # fmt: skip
    creep = farthest(motion.q[motion.t >= SETTLING - DT / 2])
    worst = checked(motion, creep)
    yield {"motion": f"stands, {name}", "by": "kinetree", "creep [m, rad]": creep, **worst}
    for option, noslip in (("MuJoCo, defaults", 0), ("MuJoCo, no slip", NO_SLIP)):
        mj = peer(dog, noslip)
        data = at_start(mj, dog)
        data.ctrl = dog.q[7:]
        mujoco.mj_step(mj, data, nstep=round(SETTLING / DT))
        start, seen = data.qpos.copy(), []
        for _ in range(round(duration)):
            mujoco.mj_step(mj, data, nstep=round(1 / DT))
            seen.append(data.qpos - start)
        yield {
            "motion": f"stands, {name}", "by": option,
            "creep [m, rad]": float(np.abs(seen).max()), "penetration [m]": deepest(data),
        }  # fmt: skip


def walking(duration):
    """A trot on flat ground: how far it goes."""
    dog = quadruped(0.0)
    motion = kt.simulate(
        dog.model, dog.q, duration=duration, dt=DT, contact=dog.contact, limits=None,
        forces=(Gait(dog.q).force,), store_every=10,
    )  # fmt: skip
    height = motion.q[:, 2]
    assert height.min() > 0.2, "it fell"
    assert height.max() < 0.4, "it flew"
    distance = float(np.linalg.norm(motion.q[-1, :2] - motion.q[0, :2]))
    yield {"motion": "trots", "by": "kinetree", "goes [m]": distance, **checked(motion)}


def grasping(duration):
    """Two fingers and a cube: how far it slips."""
    hand = gripper()
    motion = kt.simulate(
        hand.model, hand.q, duration=duration, dt=DT, contact=hand.contact, limits=None,
        forces=(hand.hold,), store_every=100,
    )  # fmt: skip
    creep = farthest(motion.q[1:])
    yield {
        "motion": "holds a cube", "by": "kinetree", "creep [m, rad]": creep,
        **checked(motion, creep),
    }  # fmt: skip
    for option, noslip in (("MuJoCo, defaults", 0), ("MuJoCo, no slip", NO_SLIP)):
        mj = peer(hand, noslip)
        data = at_start(mj, hand)
        data.qfrc_applied = kt.interop.mujoco.to_v(hand.model, mj, hand.q, hand.force)
        cube = slice(mj.nq - 7, mj.nq - 4)
        start, dropped = data.qpos[cube].copy(), None
        for k in range(round(duration / DT)):
            mujoco.mj_step(mj, data)
            if dropped is None and data.ncon == 0:
                dropped = k * DT
        slip = float(np.abs(data.qpos[cube] - start).max())
        row = {"motion": "holds a cube", "by": option}
        yield {**row, "dropped at [s]": dropped} if dropped else {**row, "creep [m, rad]": slip}


def checked(motion, creep=0.0):
    """Residuals of a motion, all of them as small as they must be."""
    worst = motion.report.contact
    laws = max(worst.velocity, worst.cone, worst.complementarity)
    assert max(creep, laws, worst.penetration) < GOOD, (creep, worst)
    return {"penetration [m]": worst.penetration, "residuals": laws}


def farthest(q):
    return float(np.abs(q - q[0]).max())


def deepest(data):
    return float(max((-c.dist for c in data.contact[: data.ncon]), default=0.0))


# --- speed ---------------------------------------------------------------------------------------


def single(repeats, steps=5000):
    """One simulation of the standing quadruped beside MuJoCo's no-slip option."""
    dog, mj = quadruped(0.2), None
    mj = peer(dog, NO_SLIP)
    data = at_start(mj, dog)
    data.ctrl = dog.q[7:]
    mujoco.mj_step(mj, data, nstep=2000)
    first = run_ours(dog, dog.q, None, 2000)
    q, qd = first.q[-1], first.qd[-1]

    def ours():
        checked(run_ours(dog, q, qd, steps))

    def theirs():
        mujoco.mj_step(mj, data, nstep=steps)

    times = in_turn(ours, theirs, repeats) / steps
    return speed("one simulation, stands", "mj_step, no slip", times)


def batched(repeats):
    """Many quadrupeds that land from random states, beside MuJoCo's defaults."""
    dog = quadruped(0.2)
    rng = np.random.default_rng(0)
    mj = peer(dog, 0)
    n = mujoco.mj_stateSize(mj, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = np.broadcast_to(dog.q[7:], (PEER_BATCH, BATCH_STEPS, mj.nu)).copy()
    found = np.zeros((PEER_BATCH, BATCH_STEPS, n))
    for name, spread in (("batch, stands", 0.0), ("batch, lands", 0.3)):
        q, qd = dog.scattered(rng, BATCH, spread)
        states = np.zeros((PEER_BATCH, n))
        few = q[:PEER_BATCH], qd[:PEER_BATCH]
        states[:, 1 : 1 + mj.nq] = kt.interop.mujoco.to_q(dog.model, mj, few[0])
        states[:, 1 + mj.nq : 1 + mj.nq + mj.nv] = kt.interop.mujoco.to_v(dog.model, mj, *few)
        data = mujoco.MjData(mj)

        def ours(q=q, qd=qd):
            checked(run_ours(dog, q, qd, BATCH_STEPS))

        def theirs(states=states, data=data):
            mujoco.rollout.rollout(mj, [data], states, control, nstep=BATCH_STEPS, state=found)

        ours()
        times = in_turn(ours, theirs, repeats)
        times /= np.array([BATCH, PEER_BATCH]) * BATCH_STEPS
        yield speed(name, "mujoco.rollout, defaults", times)


def run_ours(dog, q, qd, steps):
    return kt.simulate(
        dog.model, q, qd, duration=steps * DT, dt=DT, contact=dog.contact, limits=None,
        forces=(dog.hold,), store_every=steps,
    )  # fmt: skip


def in_turn(ours, theirs, repeats):
    """CPU seconds of both, (repeats, 2)."""
    return np.array([[seconds(ours), seconds(theirs)] for _ in range(repeats)])


def seconds(run):
    begin = time.process_time()
    run()
    return time.process_time() - begin


def speed(task, beside, times):
    ratios = times[:, 1] / times[:, 0]
    mine, theirs = map(float, np.median(times, axis=0))
    return {
        "task": task, "beside": beside, "kinetree [1/s]": 1 / mine, "MuJoCo [1/s]": 1 / theirs,
        "times faster": float(np.median(ratios)), "range": [*map(float, np.sort(ratios)[[0, -1]])],
    }  # fmt: skip


# --- a ball --------------------------------------------------------------------------------------


def bouncing(restitution=0.8, g=9.81):
    """Error of the time of the tenth bounce; MuJoCo with the best of many settings."""
    ball = kt.ModelBuilder("ball", gravity=(0, 0, -g)).body(
        "ball", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    shape = kt.geometry.Geometry(1, kt.geometry.Sphere(0.1), name="ball")
    model = kt.contact.with_ground(ball.build().replace(geometry=[shape]))
    scene = kt.contact.Scene(model, restitution=restitution)
    fall = np.sqrt(2 / g)  # from a height of 1 m
    exact = fall * (1 + 2 * np.sum(restitution ** np.arange(1, 10)))
    motion = kt.simulate(
        model, [1.1], duration=exact + 0.05, dt=0.02, contact=kt.contact.EventDriven(scene)
    )
    error = abs(motion.events[9].t - exact)
    assert error < GOOD
    grid = [(k, z) for k in np.logspace(4, 7, 31) for z in np.linspace(0.0, 0.12, 25)]
    found = [mujoco_bounce(model, stiffness, damping, exact) for stiffness, damping in grid]
    best = float(np.min(found))
    return [
        {"by": "kinetree, event-driven", "error [s]": float(error)},
        {
            "by": f"MuJoCo, best of {len(grid)} settings, chosen afterwards",
            "error [s]": best,
        },
    ]


def mujoco_bounce(model, stiffness, damping, exact):
    """Error of the tenth bounce, where velocity turns round; infinite where it has none."""
    spec = mujoco.MjSpec.from_string(to_mjcf(model))
    for geom in spec.geoms:
        geom.solref = [-stiffness, -2 * damping * np.sqrt(stiffness)]
        geom.solimp = [0.99, 0.99, 1e-3, 0.5, 2]
    mj = spec.compile()
    mj.opt.timestep = DT
    data = mujoco.MjData(mj)
    data.qpos[0] = 1.1
    bounces, speed_before = [], 0.0
    while data.time < exact + 0.2 and len(bounces) < 10:
        mujoco.mj_step(mj, data)
        if speed_before < 0 <= data.qvel[0]:
            bounces.append(data.time)
        speed_before = data.qvel[0]
    return abs(bounces[9] - exact) if len(bounces) == 10 else np.inf


# --- MuJoCo --------------------------------------------------------------------------------------


def peer(scene, noslip):
    """The mechanism in MuJoCo: contact of the same pairs, PD as actuators."""
    spec = mujoco.MjSpec.from_string(to_mjcf(scene.model))
    first, second = scene.touching
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = int(geom.type == first), int(geom.type == second)
        geom.friction = [scene.friction, 0.005, 0.0001]
    for actuator in spec.actuators:
        actuator.gainprm[0] = GAINS[0]
        actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        actuator.biasprm[1:3] = [-g for g in GAINS]
        actuator.ctrllimited = actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_FALSE
    mj = spec.compile()
    mj.opt.timestep = DT
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    if noslip:
        mj.opt.noslip_iterations, mj.opt.noslip_tolerance = noslip, 0.0
        mj.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    return mj


def at_start(mj, scene):
    data = mujoco.MjData(mj)
    data.qpos = kt.interop.mujoco.to_q(scene.model, mj, scene.q)
    return data


def show(title, rows):
    """A table; columns in the order in which they come up."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(title=title)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(shown(row.get(column)) for column in columns))
    Console(width=140).print(table)


def shown(value):
    if isinstance(value, list):
        return " to ".join(map(shown, value))
    if not isinstance(value, float):
        return "" if value is None else str(value)
    return f"{value:,.0f}" if value > 1000 else f"{value:.2g}"


if __name__ == "__main__":
    main()
