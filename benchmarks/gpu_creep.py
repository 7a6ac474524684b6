"""A quadruped stands for a minute on a GPU in float32, beside MuJoCo Warp: creep and energy.

    python benchmarks/gpu_creep.py                  # on a CUDA device, with CuPy and mujoco_warp
    python benchmarks/gpu_creep.py --step 0.001     # steps of 1 ms in place of 2 ms
    python benchmarks/gpu_creep.py --only kinetree  # without MuJoCo Warp; or --only warp
    python benchmarks/gpu_creep.py --on-cpu --worlds 2 --seconds 3    # both on the CPU; minutes

The sample quadruped, four feet on a plane, friction 0.8, starts from small random states just above
the ground. Its joints are held by springs and dampers of a controller. Steps of 2 ms are too long
for explicit dampers, so they are implicit in both: here by ``TimeStepping(damping=...)``, in MuJoCo
as dampers of the joints. What follows two seconds of settling counts, measured in the same way for
both, in double precision, from states stored every quarter of a second; the residual is that of all
steps. Every entry is the median of the worlds and the worst. Creep is the largest distance from
where the robot stood after settling: of the trunk, of the foot that moves most, and of that foot in
the second half alone; yaw is that of the trunk and of the pattern of the feet. Energy is kinetic,
of gravity and of the controller's springs.

MuJoCo Warp has its defaults (Newton, pyramidal cones, at most 100 iterations, tolerance 1e-6,
Euler's method, which corrects velocities for implicit dampers after contact forces are known); then
the integrator ``discrete``, which solves for both together; then Euler's method with elliptic cones
and ``impratio`` 100; then with elliptic cones and ten iterations without slip. Its first step is
cold in the first of these only.
"""

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
from gpu_checks import contact
from gpu_checks.agreement import use_shim
from gpu_checks.definition import compute_by_definition
from gpu_checks.report import Report

import kinetree as kt
from kinetree.interop import mujoco as states
from kinetree.writers.mjcf import to_mjcf

SETTLING, FRAME = 2.0, 0.25  # [s]; states are stored once a frame
GAINS, FRICTION = contact.GAINS, 0.8
WARP = {
    "MuJoCo Warp, defaults": {},
    "MuJoCo Warp, discrete": {"integrator": "mjINT_DISCRETE"},
    "MuJoCo Warp, elliptic, impratio 100": {"cone": "mjCONE_ELLIPTIC", "impratio": 100.0},
    "MuJoCo Warp, elliptic, no slip": {
        "cone": "mjCONE_ELLIPTIC",
        "noslip_iterations": 10,
        "noslip_tolerance": 0.0,
    },
}


def quadruped():
    """The quadruped of the checks, with the controller's dampers taken implicitly."""
    dog = contact.quadruped()
    held = {"stiffness": GAINS[0], "damping": GAINS[1]}
    implicit = {name: np.r_[np.zeros(6), np.full(12, gain)] for name, gain in held.items()}
    rigid = kt.contact.TimeStepping(dog.contact.scene, **implicit)
    return contact.Case(dog.model, rigid, dog.options, dog.q)


# --- motions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Motion:
    """Motion after settling.

    Attributes:
        q, qd: stored states in kinetree's variables, (T, worlds, nq) and (T, worlds, nv).
        first: seconds until the first step was taken.
        seconds: for all steps.
        lost: number of worlds that failed or were not finite.
        residual: largest error of a velocity at a contact of any step, (worlds,) [m/s], or None.
    """

    q: np.ndarray
    qd: np.ndarray
    first: float
    seconds: float
    lost: int
    residual: np.ndarray | None = None


def ours(dog, start, frames, dt, cupy, wait) -> Motion:
    """By ``kt.rollout``, in one launch."""
    state, begin = [cupy.asarray(x) for x in start], time.perf_counter()
    dog.rollout(*state, steps=1, dt=dt)
    wait()
    first, steps = time.perf_counter() - begin, round(SETTLING / dt)
    settled = dog.rollout(*state, steps=steps, dt=dt, store_every=steps)
    wait()
    every, state = round(FRAME / dt), (settled.q[-1], settled.qd[-1])
    begin = time.perf_counter()
    found = dog.rollout(*state, steps=frames * every, dt=dt, store_every=every)
    wait()
    seconds = time.perf_counter() - begin
    q, qd, residuals = (
        np.asarray(cupy.asnumpy(x), float) for x in (found.q, found.qd, found.residuals)
    )
    lost = int((cupy.asnumpy(found.failed) | cupy.asnumpy(settled.failed)).sum())
    return Motion(q, qd, first, seconds, lost, residuals[:, 0])


def theirs(dog, start, frames, dt, options) -> Motion:
    """By MuJoCo Warp; on a GPU, a graph of one step is launched again and again."""
    import mujoco
    import mujoco_warp
    import warp

    mj = peer(dog.model, {"timestep": dt, **options})
    model = mujoco_warp.put_model(mj)
    data = mujoco_warp.put_data(mj, mujoco.MjData(mj), nworld=len(start[0]), nconmax=8, njmax=48)
    q, qd = states.to_q(dog.model, mj, start[0]), states.to_v(dog.model, mj, *start)
    for array, values in zip((data.qpos, data.qvel, data.ctrl), (q, qd, dog.q[7:]), strict=True):
        array.assign(np.broadcast_to(values, array.shape).astype(np.float32))
    begin = time.perf_counter()
    mujoco_warp.step(model, data)
    warp.synchronize()
    first = time.perf_counter() - begin
    step = partial(mujoco_warp.step, model, data)
    if warp.get_device().is_cuda:
        with warp.ScopedCapture() as capture:
            step()
        step = partial(warp.capture_launch, capture.graph)
    for _ in range(round(SETTLING / dt) - 1):
        step()
    stored = [(data.qpos.numpy().copy(), data.qvel.numpy().copy())]
    begin = time.perf_counter()
    for _ in range(frames):
        for _ in range(round(FRAME / dt)):
            step()
        stored.append((data.qpos.numpy().copy(), data.qvel.numpy().copy()))  # waits
    seconds = time.perf_counter() - begin
    qpos, qvel = (np.array(x, float) for x in zip(*stored, strict=True))
    lost = int((~np.isfinite(qpos).all(axis=(0, 2))).sum())
    q = states.from_q(dog.model, mj, qpos)
    return Motion(q, states.from_v(dog.model, mj, qpos, qvel), first, seconds, lost)


def peer(model, options):
    """The mechanism in MuJoCo: feet touch the ground, nothing else does."""
    import mujoco

    spec = mujoco.MjSpec.from_string(to_mjcf(model))
    for geom in spec.geoms:
        geom.contype = int(geom.type == mujoco.mjtGeom.mjGEOM_SPHERE)
        geom.conaffinity = int(geom.type == mujoco.mjtGeom.mjGEOM_PLANE)
        geom.friction = [FRICTION, 0.005, 0.0001]
    for actuator in spec.actuators:
        actuator.gainprm[0], actuator.biasprm[1] = GAINS[0], -GAINS[0]
        actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        actuator.ctrllimited = actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_FALSE
    mj = spec.compile()
    mj.dof_damping[6:] = GAINS[1]
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    kinds = {"integrator": mujoco.mjtIntegrator, "cone": mujoco.mjtCone}
    for name, value in options.items():
        setattr(mj.opt, name, getattr(kinds[name], value) if name in kinds else value)
    return mj


# --- measurements --------------------------------------------------------------------------------


def measured(dog, motion, steps) -> dict:
    """Numbers of the table by name, each as text."""
    model, scene = dog.model, dog.contact.scene
    placed = [scene.candidate_positions(model, q)[:2] for q in motion.q]
    gaps, points = (np.array(x) for x in zip(*placed, strict=True))
    feet, trunk, half = points[..., :2], motion.q[..., :2], len(motion.q) // 2
    along = np.linalg.norm(feet - feet[0], axis=-1).max(axis=-1)  # of the foot that moves most
    late = np.linalg.norm(feet[half:] - feet[half], axis=-1).max(axis=(0, 2))
    w, x, y, z = np.moveaxis(motion.q[..., 3:7], -1, 0)
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    arms = feet - feet.mean(axis=-2, keepdims=True)
    arms = arms[..., 0] + 1j * arms[..., 1]
    turned = np.angle((arms * arms[0].conj()).sum(axis=-1))
    energy = np.array([total_energy(dog, *x) for x in zip(motion.q, motion.qd, strict=True)])
    values = {
        "creep of the trunk [m]": np.linalg.norm(trunk - trunk[0], axis=-1).max(axis=0),
        "of the feet [m]": along.max(axis=0),
        "of the feet, second half [m]": late,
        "yaw of the trunk [rad]": np.abs(yaw - yaw[0]).max(axis=0),
        "yaw of the feet [rad]": np.abs(turned).max(axis=0),
        "penetration [m]": np.maximum(-gaps, 0).max(axis=(0, 2)),
        "change of energy [J]": np.abs(energy - energy[0]).max(axis=0),
        "speed at the end [m/s, rad/s]": np.abs(motion.qd[-1]).max(axis=-1),
        "residual [m/s]": motion.residual,
    }
    found = {
        name: "–" if x is None else f"{np.median(x):.1e}, {x.max():.1e}"
        for name, x in values.items()
    }
    rate = steps * motion.q.shape[1] / motion.seconds / 1e6
    found |= {"million steps/s": f"{rate:.3g}", "first step [s]": f"{motion.first:.1f}"}
    assert not motion.lost, f"{motion.lost} worlds failed"
    return found


def total_energy(dog, q, qd):
    """Kinetic, of gravity, and of the springs of the controller [J], (worlds,)."""
    springs = 0.5 * GAINS[0] * ((q[:, 7:] - dog.q[7:]) ** 2).sum(axis=-1)
    return kt.kinetic_energy(dog.model, q, qd) + kt.potential_energy(dog.model, q) + springs


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--on-cpu", action="store_true", help="no device: the shim of the tests")
    parser.add_argument("--only", choices=("kinetree", "warp"), help="one of the two")
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--step", type=float, default=2e-3, help="length of a step [s]")
    parser.add_argument("--seconds", type=float, default=60.0, help="settling included")
    parser.add_argument("--limit", type=float, default=500.0, help="seconds for everything")
    given = parser.parse_args()
    warnings.simplefilter("ignore", kt.ModelWarning)  # MJCF has no limits of velocity
    report = Report(given.limit, verbose=True)
    compute_by_definition()
    if given.on_cpu:
        use_shim()
    dog, frames = quadruped(), max(1, round((given.seconds - SETTLING) / FRAME))
    start = dog.states(given.worlds, 0.1, 2e-3, np.random.default_rng(0))
    start = [x.astype(np.float32) for x in start]
    columns = {}

    def column(name, run, *options):
        motion = run(dog, start, frames, given.step, *options)
        columns[name] = measured(dog, motion, frames * round(FRAME / given.step))
        return ", ".join(f"{key} {value}" for key, value in columns[name].items())

    if given.only != "warp":
        import cupy

        wait = (lambda: None) if given.on_cpu else cupy.cuda.Device().synchronize
        report.run("kinetree", column, "kinetree", ours, cupy, wait)
    for name, options in WARP.items() if given.only != "kinetree" else ():
        report.run(name, column, name, theirs, options)
    words = f"{given.worlds} worlds, steps of {1e3 * given.step:g} ms"
    print(f"\n{words}, {SETTLING:g} s to settle, then {frames * FRAME:g} s\n")
    print("\n".join(table(columns)))
    return report.close()


def table(columns):
    """Lines in Markdown: a column for each run."""
    names = list(next(iter(columns.values()), {}))
    rows = [["median, worst", *columns], ["---"] * (1 + len(columns))]
    rows += [[name, *(column[name] for column in columns.values())] for name in names]
    return [f"| {' | '.join(row)} |" for row in rows]


if __name__ == "__main__":
    sys.exit(main())
