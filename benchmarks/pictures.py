"""Pictures on one core: the sample humanoid in a world, 480 x 360 pixels.

    python benchmarks/pictures.py

Processor time of one thread, least and median of 60 calls in turns; optimised code from the start.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

os.environ["KINETREE_OPTIMIZATION"] = "1"  # before kinetree is imported

import kinetree as kt
from kinetree.viewer.painting import Painter

SIZE = (480, 360)
NEAR, FAR = (
    kt.camera(at, target=target, size=SIZE)
    for at, target in (((2.2, -2.0, 1.4), (0.3, 0.0, 0.7)), ((2.8, -2.2, 1.6), (0.0, 0.0, 0.9)))
)
SMALL = kt.camera((2.2, -2.0, 1.4), target=(0.3, 0.0, 0.7), size=(64, 64))


def calls(world: kt.World) -> dict[str, Callable[[], object]]:
    """Pictures by name."""
    painter = Painter(kt.viewer.scene(world.model, world.q), SIZE)
    many = np.tile(world.q, (256, 1))
    many[:, 7:] += 0.2 * np.random.default_rng(0).standard_normal((256, world.model.nq - 7))
    return {
        "world.render, colours": lambda: world.render(NEAR),
        "the same from farther away": lambda: world.render(FAR),
        "the same without shadows": lambda: world.render(FAR, shadows=False),
        "world.render, depths": lambda: world.render(NEAR, "depth"),
        "world.render, depths, 64 x 64": lambda: world.render(SMALL, "depth"),
        "256 depths, 64 x 64": lambda: kt.render(world.model, many, SMALL, "depth"),
        "next image of a film": painter.image,
    }


def measured(found: dict[str, Callable[[], object]], count: int = 60) -> dict[str, np.ndarray]:
    """Times of all calls by name [ms], taken in turns."""
    times = {name: np.empty(count) for name in found}
    for k in range(-2, count):
        for name, call in found.items():
            start = time.process_time()
            call()
            if k >= 0:
                times[name][k] = 1e3 * (time.process_time() - start)
    return times


def main() -> None:
    """Measure pictures and a film."""
    kt.set_threads(1)
    world = kt.World()
    world.add_ground()
    world.add("humanoid", name="robot", on="ground")
    for name, times in measured(calls(world)).items():
        print(f"{name:32s} {times.min():7.2f} ms, median {np.median(times):.2f}", flush=True)
    motion = kt.simulate(world, duration=1.0)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "film.gif"
        start = time.process_time()
        kt.viewer.record(motion, path, size=SIZE, rate=30)
        print(f"GIF of 30 images: {time.process_time() - start:.2f} s")


if __name__ == "__main__":
    main()
