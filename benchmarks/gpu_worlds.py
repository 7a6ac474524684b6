"""Worlds on a GPU: steps a second of contact between moving bodies, and their accuracy.

    python benchmarks/gpu_worlds.py --write FOLDER    writes the scenes (needs MuJoCo, no GPU)
    python benchmarks/gpu_worlds.py FOLDER            measures them
    python benchmarks/gpu_worlds.py FOLDER --only stack --limit 60
    python benchmarks/gpu_worlds.py FOLDER --rollouts    rollouts in float32, by slots for contacts

Each scene runs with all worlds alike and with velocities that differ by a little from world to
world. Columns: million steps a second over the first steps (which include falling and landing) and
at their end, the deepest penetration [m] and the largest error of a velocity at a contact [m/s] of
the same steps, and how many of 64 worlds have the bits of the CPU after as many steps.
"""

import argparse
import fcntl
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import kinetree as kt

STEPS = {"stack": 40, "balls": 60, "quadrupeds": 200, "arm": 60, "hand": 40, "humanoid": 150}
"""Steps before those that are timed at the end."""
GRASP = np.array([0, 1.3, 1.0, 0.8] * 3 + [1.3, 0.3, 0.5, 0.7])
"""Positions that the hand's joints are sent to."""
SLOTS = {"stack": 48, "balls": 64, "quadrupeds": 48, "arm": 32, "hand": 48, "humanoid": 32}
"""Contacts that may act at once in rollouts."""
DIFFERENCE = 1e-3
"""Deviation of the velocities of worlds that differ [m/s, rad/s]."""


def write(folder: Path) -> None:
    """Write all scenes, with steps of 2 ms."""
    import worlds  # of this folder; it reads MJCF

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("stack", worlds.stack(10)), ("balls", worlds.balls(20))):
        file = folder / f"{name}.xml"
        file.write_text(text)
        kt.World.from_file(file).save(folder / f"{name}.npz")
    (folder / "hand").mkdir(exist_ok=True)
    kt.World.from_file(worlds.hand(folder / "hand")).save(folder / "hand.npz")
    robots = {
        "quadrupeds": [
            (kt.samples.quadruped(), (0, 0, 0.6)),
            (kt.samples.quadruped(), (0.9, 0, 0.6)),
        ],
        "humanoid": [(kt.samples.humanoid(), (0, 0, 1.4))],
        "arm": [(kt.samples.panda(), (0, 0, 0)), (kt.geometry.Box((0.1,) * 3), (0.45, 0, 0.05))],
    }
    for name, parts in robots.items():
        world = kt.World(timestep=2e-3)
        world.add_ground(friction=0.8)
        for k, (part, at) in enumerate(parts):
            mass = {} if isinstance(part, kt.Model) else {"mass": 0.5}
            world.add(part, at=at, name=f"part{k}", **mass)
        world.save(folder / f"{name}.npz")


def inputs(name: str, world: kt.World) -> dict:
    """Forces that act in a scene."""
    if name == "hand":
        return {"control": GRASP}
    if name == "arm":
        tau = np.zeros(world.model.nv)
        tau[:7] = 0, 20, 0, -10, 0, 2, 0
        return {"tau": tau}
    return {}


def deviations(world: kt.World, n: int, size: float) -> np.ndarray:
    """Velocities of all worlds."""
    return size * np.random.default_rng(0).standard_normal((n, world.model.nv))


def equal_bits(name: str, world: kt.World, n: int = 64) -> int:
    """How many worlds have the bits of the CPU after the steps of a scene."""
    ours, theirs = world.batch(n, device="cuda", arrays="numpy"), world.batch(n)
    for worlds in (ours, theirs):
        worlds.qd = deviations(world, n, DIFFERENCE)
        worlds.step(STEPS[name], **inputs(name, world))
    return int((ours.q == theirs.q).all(axis=1).sum())


def measure(name: str, world: kt.World, n: int, size: float) -> dict:
    """Speeds [M steps/s] and accuracy of ``n`` worlds."""
    import cupy

    worlds, given = world.batch(n, device="cuda"), inputs(name, world)
    worlds.qd = deviations(world, n, size)
    found = {}
    for key, steps in (("first", STEPS[name]), ("end", 10)):
        start = time.perf_counter()
        worlds.step(steps, **given)
        cupy.cuda.Device().synchronize()
        found[key] = n * steps / (time.perf_counter() - start) / 1e6
    residuals = worlds.residuals
    found |= {"penetration": float(residuals[:, 3].max()), "error": float(residuals[:, 0].max())}
    return found | {"failed": int(worlds.failed.sum())}


@contextmanager
def on_quiet_device() -> Iterator[None]:
    """Wait until no other process of these benchmarks measures; they may compile meanwhile."""
    with (Path(tempfile.gettempdir()) / "kinetree-gpu-worlds").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measure_rollouts(name: str, world: kt.World, n: int, launches: int = 4) -> None:
    """Print speeds and accuracy of rollouts of ``n`` worlds that differ, launch by launch."""
    import cupy

    scene = kt.contact.Scene(world.model)
    contact = kt.contact.TimeStepping(scene, slots=SLOTS[name])
    given = {key: cupy.asarray(x, dtype="float32") for key, x in inputs(name, world).items()}
    if "control" in given:
        given["controls"] = given.pop("control")
    options = {"dt": world.timestep, "contact": contact, "limits": "stiff", "friction": "smooth"}
    q = cupy.asarray(np.tile(world.q, (n, 1)), dtype="float32")
    qd = cupy.asarray(deviations(world, n, DIFFERENCE), dtype="float32")
    begin, steps, parts = time.perf_counter(), STEPS[name], []
    kt.rollout(world.model, q, qd, steps=1, **options, **given)
    cupy.cuda.Device().synchronize()
    made = time.perf_counter() - begin
    with on_quiet_device():
        for _ in range(launches):
            begin = time.perf_counter()
            found = kt.rollout(
                world.model, q, qd, steps=steps, store_every=steps, **options, **given
            )
            cupy.cuda.Device().synchronize()
            rate = n * steps / (time.perf_counter() - begin) / 1e6
            residuals = cupy.asnumpy(found.residuals).astype(float)
            errors = ", ".join(f"{x:.0e}" for x in np.percentile(residuals[:, 0], [50, 99, 100]))
            failed = int(cupy.asnumpy(found.failed).sum())
            parts.append(f"{rate:.2f} M/s ({errors} m/s, {residuals[:, 3].max():.0e} m, {failed})")
            q, qd = found.q[-1], found.qd[-1]
    print(f"{name} {n:6} worlds, made {made:.1f} s: {'; '.join(parts)} failed", flush=True)


def main() -> None:
    """Measure all scenes, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--worlds", type=int, nargs="+", default=[2048, 8192])
    parser.add_argument("--rollouts", action="store_true")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds, after which it ends")
    options = parser.parse_args()
    if options.write:
        write(options.folder)
        return
    begin = time.perf_counter()
    warnings.simplefilter("ignore")
    for name in (x for x in STEPS if options.only in x):
        world = kt.World.load(options.folder / f"{name}.npz")
        if options.rollouts:
            for n in options.worlds:
                measure_rollouts(name, world, n)
            continue
        start = time.perf_counter()
        world.batch(64, device="cuda").step(1, **inputs(name, world))
        made = time.perf_counter() - start
        print(
            f"{name}: made and one step {made:.2f} s, {equal_bits(name, world)} of 64 equal",
            flush=True,
        )
        for n in options.worlds:
            for size in (0.0, DIFFERENCE):
                if time.perf_counter() - begin > options.limit:
                    return
                x = measure(name, world, n, size)
                print(
                    f"  {n:6} worlds, {'alike' if size == 0 else 'other'}: first {x['first']:.3f}, "
                    f"end {x['end']:.3f} M/s, {x['penetration']:.1e} m, {x['error']:.1e} m/s, "
                    f"{x['failed']} failed",
                    flush=True,
                )


if __name__ == "__main__":
    main()
