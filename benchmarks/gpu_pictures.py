"""Depth images on a GPU: time, and pixels that differ from those of the CPU.

    python benchmarks/gpu_pictures.py               # on a CUDA device, with CuPy
    python benchmarks/gpu_pictures.py --learn       # and a policy that learns from them

The sample humanoid (14,252 triangles) and a box on ground, in configurations that all differ.
"""

import argparse
import runpy
import time
from pathlib import Path

import numpy as np

import kinetree as kt

TARGET = 20.0  # ms for 8,192 images of 64 x 64
EXAMPLE = Path(__file__).parents[1] / "examples" / "gallery" / "learning_from_depth.py"


def scene() -> kt.World:
    """A humanoid beside a box."""
    world = kt.World()
    world.add_ground()
    world.add(kt.samples.humanoid(), name="robot", at=(0, 0, 1.0))
    world.add(kt.geometry.Box((0.3, 0.3, 0.3)), mass=1.0, at=(1.0, 0.3, 0.15), name="box")
    return world


def configurations(world: kt.World, n: int) -> np.ndarray:
    """Joint positions around those of the world, (n, nq)."""
    q = np.tile(world.q, (n, 1))
    q[:, 7:-7] += 0.2 * np.random.default_rng(0).standard_normal((n, world.model.nq - 14))
    return q


def timed(call, count=10) -> float:
    """Least time of a call [ms], until the device is done."""
    import cupy

    least = np.inf
    for _ in range(count):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        least = min(least, time.perf_counter() - start)
    return 1e3 * least


def differing(world, q, camera) -> str:
    """Pixels that differ from those of the CPU, in words."""
    import cupy

    kinds = ("depth", "body")
    ours = kt.render(world.model, cupy.asarray(q), camera, kinds)
    theirs = kt.render(world.model, q, camera, kinds)
    body = (ours["body"].get() != theirs["body"]).mean()
    both = np.isfinite(theirs["depth"]) & np.isfinite(ours["depth"].get())
    error = np.abs(ours["depth"].get()[both] / theirs["depth"][both] - 1)
    return (
        f"{body:.1e} of the bodies differ, {(error > 1e-9).mean():.1e} of the depths by more than "
        f"1e-9, {(error > 0).mean():.2f} by a bit; median {np.median(error):.0e}"
    )


def main() -> None:
    """Measure images of several sizes, and learning."""
    import cupy

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="+", default=[1024, 8192])
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 32, 128])
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--worlds", type=int, default=0, help="also step so many worlds there")
    given = parser.parse_args()
    world = scene()
    for size in given.sizes:
        camera = kt.camera((2.2, -2.0, 1.4), target=(0.3, 0, 0.7), size=(size, size))
        for n in given.images:
            q = cupy.asarray(configurations(world, n))
            begin = time.perf_counter()
            kt.render(world.model, q, camera, "depth")
            cupy.cuda.Device().synchronize()
            first = time.perf_counter() - begin
            depth = timed(lambda q=q, camera=camera: kt.render(world.model, q, camera, "depth"))
            both = timed(
                lambda q=q, camera=camera: kt.render(world.model, q, camera, ("depth", "body"))
            )
            print(
                f"{n:6} images of {size} x {size}: depth {depth:.2f} ms, with bodies {both:.2f} ms "
                f"(first {first:.1f} s)",
                flush=True,
            )
        print(f"  {differing(world, configurations(world, 64), camera)}", flush=True)
    if given.learn:
        example = runpy.run_path(str(EXAMPLE), run_name="example")
        example["learn"]("cuda", worlds=256, iterations=1)
        start = time.perf_counter()
        _, rewards = example["learn"]("cuda", worlds=8192, iterations=30)
        took, miss = time.perf_counter() - start, np.sqrt(-np.array(rewards))
        print(
            f"learning from {30 * 25 * 8192 / 1e6:.1f} million depth images: {took:.1f} s, off by "
            f"{miss[0]:.3f} m before, {miss[-1]:.3f} m after",
            flush=True,
        )
    if given.worlds:
        worlds = world.batch(given.worlds, device="cuda")
        worlds.step(5)
        seen = worlds.render(camera, "depth")
        took = timed(lambda: worlds.render(camera, "depth"))
        print(f"worlds on the GPU: {type(seen).__module__} {seen.shape}, {took:.2f} ms")


if __name__ == "__main__":
    main()
