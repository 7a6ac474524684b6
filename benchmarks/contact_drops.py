"""10,000 random drops of random articulated chains: contact never adds energy.

    python benchmarks/contact_drops.py              all
    python benchmarks/contact_drops.py --quick      400
    python benchmarks/contact_drops.py --peer       and 200 in MuJoCo

A chain is two to four capsules of random size and mass, the first one free, the others on hinges
or ball joints. Each falls 1 to 10 cm, spinning, onto a plane of random friction, and tumbles for
0.4 s in steps of 1 ms. In every step with contact the energy must not rise by more than 1e-9 of
that at the start; in flight it may change by what the integrator's error is, below 1e-6 in all.
Energies are those of the states, kinetic and potential, computed afterwards, not those that the
steps say about themselves.
"""

import sys
import time
import warnings

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import track

import kinetree as kt
from kinetree import geometry
from kinetree.writers.mjcf import to_mjcf

DT, DURATION = 1e-3, 0.4
CHAINS = {2: 10, 3: 7, 4: 3}  # number of chains by number of bodies
EACH = 500  # drops of each chain
PEER_CHAINS, PEER_EACH = 4, 50


def main():
    kt.set_threads(1)
    warnings.simplefilter("ignore", kt.SimulationWarning)
    each = 20 if "--quick" in sys.argv else EACH
    rng = np.random.default_rng(0)
    kinds = [n for n, count in CHAINS.items() for _ in range(count)]
    begin, found = time.perf_counter(), []
    for bodies in track(kinds, description="chains", console=Console(stderr=True)):
        found.append(dropped(rng, bodies, each))
    drops = len(kinds) * each
    worst = {name: max(each[name] for each in found) for name in found[0]}
    seconds = time.perf_counter() - begin
    steps = drops * round(DURATION / DT)
    print(f"{drops:,} drops of {len(kinds)} chains, {steps:,} steps, {seconds:.0f} s")
    for name, value in worst.items():
        print(f"  {name:52s} {value:.2g}")
    assert worst["rise of energy in a step with contact, of the start"] < 1e-9
    assert worst["change of energy in flight, of the start"] < 1e-6
    assert worst["penetration [m]"] < 1e-9
    assert worst["error of velocities [m/s]"] < 1e-9
    if "--peer" in sys.argv:
        beside_mujoco(rng)


def chain(rng, bodies):
    """Capsules end to end, the first one free, above a plane."""
    builder, last, end = kt.ModelBuilder("chain"), "base", 0.0
    kinds = (kt.Revolute("x"), kt.Revolute("y"), kt.Spherical())
    for i in range(bodies):
        length, radius = rng.uniform(0.1, 0.4), rng.uniform(0.02, 0.06)
        joint = kinds[rng.integers(3)] if i else kt.Free()
        inertia = kt.shapes.capsule(radius, length, mass=rng.uniform(0.2, 3.0))
        builder.body(f"link{i}", on=last, joint=joint, at=(0, 0, end), inertia=inertia)
        builder.geometry(geometry.Capsule(radius, length), on=f"link{i}")
        last, end = f"link{i}", length / 2 + 0.06
    model = kt.contact.with_ground(builder.build())
    return model, kt.contact.Scene(model, "base", friction=rng.uniform(0.1, 1.0))


def starts(rng, model, scene, count):
    """Random configurations 1 to 10 cm above the ground, and spins."""
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    q[:, 2] = 2.0
    lowest = scene.candidate_positions(model, q)[0].min(axis=-1)
    q[:, 2] -= lowest - rng.uniform(0.01, 0.1, count)
    qd = 2 * rng.standard_normal((count, model.nv))
    qd[:, 3:6] = 0
    return q, qd


def dropped(rng, bodies, count):
    """The worst numbers of some drops of one chain."""
    model, scene = chain(rng, bodies)
    q, qd = starts(rng, model, scene, count)
    motion = kt.simulate(
        model, q, qd, duration=DURATION, dt=DT, contact=kt.contact.TimeStepping(scene)
    )
    touching = motion.contact.residuals[1:, :, 9] > 0
    rise = np.diff(motion.energy, axis=0) / motion.energy[0]
    flight = np.where(touching, 0.0, rise)
    worst = motion.report.contact
    return {
        "rise of energy in a step with contact, of the start": np.where(touching, rise, 0.0).max(),
        "change of energy in flight, of the start": np.abs(flight.cumsum(axis=0)).max(),
        "penetration [m]": worst.penetration,
        "error of velocities [m/s]": worst.velocity,
        "friction beyond its cone [N s]": worst.cone,
        "speed at the end [m/s or rad/s]": np.abs(motion.qd[-1]).max(),
        "drops that never touched": float(np.sum(~touching.any(axis=0))),
    }


def beside_mujoco(rng):
    """Rise of energy in MuJoCo with default settings, in all of a drop and in one step."""
    rises, diverged = [], 0
    for _ in range(PEER_CHAINS):
        model, scene = chain(rng, 3)
        q, qd = starts(rng, model, scene, PEER_EACH)
        spec = mujoco.MjSpec.from_string(to_mjcf(model))
        for geom in spec.geoms:
            ground = geom.type == mujoco.mjtGeom.mjGEOM_PLANE
            geom.contype, geom.conaffinity = int(ground), int(not ground)
        mj = spec.compile()
        mj.opt.timestep = DT
        mj.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        data = mujoco.MjData(mj)
        pq = kt.interop.mujoco.to_q(model, mj, q)
        pv = kt.interop.mujoco.to_v(model, mj, q, qd)
        for k in range(PEER_EACH):
            mujoco.mj_resetData(mj, data)
            data.qpos, data.qvel = pq[k], pv[k]
            mujoco.mj_forward(mj, data)
            energy = [data.energy.sum()]
            for _ in range(round(DURATION / DT)):
                mujoco.mj_step(mj, data)
                mujoco.mj_energyPos(mj, data)
                mujoco.mj_energyVel(mj, data)
                energy.append(data.energy.sum())
            diverged += bool(data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number)
            rises.append(np.max(np.diff(energy)) / energy[0])
    print(
        f"MuJoCo, {len(rises)} drops: largest rise in a step of the start energy, median "
        f"{np.median(rises):.2g}, largest {np.max(rises):.2g}; {diverged} diverged"
    )


if __name__ == "__main__":
    main()
