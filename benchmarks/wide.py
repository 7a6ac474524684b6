"""One large world on several threads: heaps, spheres, a pyramid, beside MuJoCo's step on one.

    python benchmarks/wide.py                                  all scenes, 1 thread and all
    python benchmarks/wide.py --threads 1,2,4,8,16 --only heap
    python benchmarks/wide.py --only 1,000 --start 180 --steps 60 --seconds 40

Worlds of each number of threads take the same step one after the other, and ``mj_step`` takes one
of its own motion, so that other work of the machine counts alike for all. Motions are compared to
the bit at the end. Columns: mean and median wall time of a step [ms], processor time of all threads
[ms], the ratio of one thread's wall time to it, and of it to ``mj_step``'s.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

import kinetree as kt
from kinetree.benchmark import at_full_speed
from kinetree.codegen.procedures.improving import improve_now
from kinetree.codegen.runtime.threads import threads as all_threads
from kinetree.model.geometry import Box, Sphere

STEP = 2e-3
DENSITY = 1000.0


@dataclass
class Scene:
    """Boxes or balls with walls around them, for both.

    Attributes:
        start: steps before those that are measured;  steps: of these.
        parts: size, place and turns about x, y and z [degrees] of each;  walls: sizes and places.
    """

    start: int
    steps: int
    friction: float
    parts: list[tuple]
    walls: list[tuple] = field(default_factory=list)

    def world(self) -> kt.World:
        """The scene for kinetree."""
        world = kt.World(timestep=STEP)
        world.add_ground(friction=self.friction)
        for k, (size, at) in enumerate(self.walls):
            wall = Box(tuple(2.0 * np.array(size)))
            world.add(wall, name=f"wall{k}", at=at, fixed=True, friction=self.friction)
        for k, (size, at, turns) in enumerate(self.parts):
            turn = kt.rotz(turns[2]) @ kt.roty(turns[1]) @ kt.rotx(turns[0])
            ball = isinstance(size, float)
            shape = Sphere(size) if ball else Box(tuple(2.0 * np.array(size)))
            volume = 4 / 3 * np.pi * size**3 if ball else 8 * np.prod(size)
            mass = float(DENSITY * volume)
            place = turn @ kt.xlt(at)
            world.add(shape, mass=mass, name=f"part{k}", at=place, friction=self.friction)
        return world

    def mjcf(self) -> str:
        """The scene for MuJoCo."""

        def geom(size):
            sizes = [size] if isinstance(size, float) else size
            kind = "sphere" if isinstance(size, float) else "box"
            return f'type="{kind}" size="{" ".join(map(str, sizes))}" density="{DENSITY}"'

        lines = [f'<geom {geom(size)} pos="{_text(at)}"/>' for size, at in self.walls]
        for size, at, turns in self.parts:
            turn = _text(np.rad2deg(turns))
            lines.append(f'<body pos="{_text(at)}" euler="{turn}"><freejoint/>'
                         f"<geom {geom(size)}/></body>")  # fmt: skip
        return (
            f'<mujoco><compiler eulerseq="XYZ"/><option timestep="{STEP}"/>'
            f'<size memory="2G"/><default><geom friction="{self.friction} 0.005 0.0001"/></default>'
            f'<worldbody><geom type="plane" size="20 20 1"/>{"".join(lines)}</worldbody></mujoco>'
        )


def _text(numbers):
    return " ".join(f"{x:.9g}" for x in numbers)


def heap(n, seed=1) -> Scene:
    """Boxes that fall onto a heap between low walls: ``heap`` of ``worlds.py``."""
    rng, parts = np.random.default_rng(seed), []
    for k in range(n):
        i, j, level = k % 10, k // 10 % 10, k // 100
        x = 0.26 * (i - 4.5) + rng.uniform(-0.02, 0.02)
        y = 0.26 * (j - 4.5) + rng.uniform(-0.02, 0.02)
        turns = np.deg2rad(rng.uniform(-20, 20, 3))
        parts.append(((0.08, 0.08, 0.08), (x, y, 0.15 + 0.26 * level), turns))
    walls = [
        ((0.1, 1.7, 0.6), (1.6, 0, 0.6)), ((0.1, 1.7, 0.6), (-1.6, 0, 0.6)),
        ((1.5, 0.1, 0.6), (0, 1.6, 0.6)), ((1.5, 0.1, 0.6), (0, -1.6, 0.6)),
    ]  # fmt: skip
    return Scene(250 if n > 1000 else 100, 200, 0.6, parts, walls)


def spheres(n=10_000) -> Scene:
    """Spheres that fall onto each other, in columns of four."""
    rng, side, parts = np.random.default_rng(0), round((n / 4) ** 0.5), []
    for k in range(n):
        at = np.array([0.12 * (k % side), 0.12 * (k // side % side), 0.06 + 0.11 * (k // side**2)])
        at[:2] += rng.uniform(-0.005, 0.005, 2) - 0.06 * side
        parts.append((0.05, tuple(at), (0.0, 0.0, 0.0)))
    return Scene(20, 60, 0.5, parts)


def pyramid(layers) -> Scene:
    """A pyramid of boxes: one island, which nobody can share."""
    half, parts = (0.1, 0.1, 0.1), []
    for level in range(layers):
        for k in range(layers - level):
            x = 0.205 * (k - (layers - level - 1) / 2)
            parts.append((half, (x, 0.0, 0.1 + 0.2 * level), (0.0, 0.0, 0.0)))
    return Scene(50, 100, 0.8, parts)


class Humanoids(Scene):
    """Humanoids that fall beside each other, for kinetree alone."""

    def world(self) -> kt.World:
        """The scene for kinetree."""
        world = kt.World(timestep=STEP)
        world.add_ground(friction=self.friction)
        model = kt.samples.humanoid()
        for k, (_, at, turns) in enumerate(self.parts):
            world.add(model, name=f"robot{k}", at=kt.rotz(turns[2]) @ kt.xlt(at))
        return world


def humanoids(n) -> Scene:
    """Some humanoids from the package, turned at random."""
    rng = np.random.default_rng(0)
    places = [(1.5 * (k % 4), 1.5 * (k // 4), 0.02) for k in range(n)]
    return Humanoids(150, 200, 0.8, [(0.1, at, rng.uniform(-3, 3, 3)) for at in places])


def stack(n) -> Scene:
    """A stack of boxes, too few for other threads."""
    half = (0.1, 0.1, 0.1)
    return Scene(200, 2000, 0.8, [(half, (0, 0, 0.1 + 0.2 * k), (0.0, 0.0, 0.0)) for k in range(n)])


SCENES: dict[str, Callable[[], Scene]] = {
    "heap of 1,000 boxes": lambda: heap(1000),
    "heap of 200 boxes": lambda: heap(200),
    "heap of 4,000 boxes": lambda: heap(4000),
    "10,000 spheres": spheres,
    "pyramid of 30 layers": lambda: pyramid(30),
    "10 humanoids": lambda: humanoids(10),
    "10 boxes stacked": lambda: stack(10),
}


class Theirs:
    """Steps of MuJoCo, where it is installed."""

    def __init__(self, scene: Scene):
        self.times: list[float] = []
        self.step = lambda timed: None
        if isinstance(scene, Humanoids):
            return
        try:
            import mujoco
        except ImportError:
            return
        model = mujoco.MjModel.from_xml_string(scene.mjcf())
        data = mujoco.MjData(model)

        def step(timed):
            start = time.perf_counter()
            mujoco.mj_step(model, data)
            if timed:
                self.times.append(time.perf_counter() - start)

        self.step = step


def measure(scene: Scene, threads: list[int], seconds: float, theirs: bool = True) -> list[dict]:
    """Times of the steps of a scene: a row for each number of threads."""
    other = Theirs(scene) if theirs else None
    first = scene.world()
    kt.set_threads(1)
    start = first.state
    first.step(max(scene.start, 40))
    improve_now()
    if not scene.start:
        first.set_state(start)
    first.step(2)
    for _ in range(scene.start + 2 if other else 0):
        other.step(False)
    worlds = [first, *(first.with_model(first.model) for _ in threads[1:])]
    for world in worlds:
        world.set_state(first.state)
    for number, world in zip(threads, worlds, strict=True):  # lists and threads are there
        kt.set_threads(number)
        world.step(1)
    if other:
        other.step(False)
    wall, spent = np.zeros((2, len(threads), scene.steps))
    end, done = time.perf_counter() + seconds, 0
    while done < scene.steps and time.perf_counter() < end:
        for k, (number, world) in enumerate(zip(threads, worlds, strict=True)):
            kt.set_threads(number)
            begin, used = time.perf_counter(), time.process_time()
            world.step()
            wall[k, done] = time.perf_counter() - begin
            spent[k, done] = time.process_time() - used
        if other:
            other.step(True)
        done += 1
    for world in worlds[1:]:
        assert np.array_equal(world.q, first.q), "motions differ"
    wall, spent = 1e3 * wall[:, :done], 1e3 * spent[:, :done]
    reference = 1e3 * float(np.mean(other.times)) if other and other.times else float("nan")
    return [
        {
            "threads": number, "steps": done, "mean": wall[k].mean(), "median": np.median(wall[k]),
            "processor": spent[k].mean(), "gain": wall[0].mean() / wall[k].mean(),
            "theirs": wall[k].mean() / reference,
        }
        for k, number in enumerate(threads)
    ]  # fmt: skip


def show(name: str, rows: list[dict]) -> None:
    """Print the rows of a scene."""
    for row in rows:
        print(
            f"{name:22s} {row['threads']:3d} threads  {row['mean']:8.3f} {row['median']:8.3f} "
            f"{row['processor']:8.3f} ms  gain {row['gain']:5.2f}  {row['theirs']:5.2f} x mj_step  "
            f"({row['steps']} steps)",
            flush=True,
        )


def show_heaps(seeds: Iterable[int], seconds: float = 1e9) -> None:
    """Print times of heaps of 1,000 boxes: whole motions on one thread and on all."""
    at_full_speed()
    warnings.simplefilter("ignore")
    for seed in seeds:
        scene = heap(1000, seed)
        scene.start, scene.steps = 0, 300
        show(f"heap, seed {seed}", measure(scene, sorted({1, all_threads()}), seconds))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="scenes whose name contains this")
    parser.add_argument("--threads", default="", help="numbers, such as 1,2,4; 1 and all if none")
    parser.add_argument("--start", type=int, default=0, help="steps before the others")
    parser.add_argument("--steps", type=int, default=0, help="steps that are measured")
    parser.add_argument("--seconds", type=float, default=1e9, help="of each scene, at most")
    args = parser.parse_args()
    at_full_speed()
    warnings.simplefilter("ignore")
    every = all_threads()
    threads = [int(x) for x in args.threads.split(",") if x] or sorted({1, every})
    for name, make in SCENES.items():
        if args.only.lower() in name.lower():
            scene = make()
            scene.start, scene.steps = args.start or scene.start, args.steps or scene.steps
            show(name, measure(scene, threads, args.seconds))


if __name__ == "__main__":
    main()
