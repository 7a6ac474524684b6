"""Nets of closed loops, and worlds of many bodies."""

import tempfile
import time
import warnings
from pathlib import Path

import mujoco

import kinetree as kt
from kinetree.model import geometry as g
from truth.nets import net
from truth.registry import row
from truth.verdict import Result, timed


def nets(rows, columns) -> Result:
    """A net that falls over a post: time, first step."""
    loops = rows * columns
    text = net(rows, columns)
    path = Path(tempfile.mkdtemp()) / "net.xml"
    path.write_text(text)
    result = Result(f"net of {loops} loops")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        world = kt.World.from_file(path)
        t = timed(world, mujoco.MjModel.from_xml_path(str(path)), 300, 200)
    result.warned = [str(w.message) for w in caught][:2]
    opening = float(world.report().residuals.opening)
    result.numbers = {"ratio": t.ratio, "first": t.first, "opening": opening}
    result.figure = (
        f"{t.ratio:.2f} times mj_step, first step {t.first:.2f} s, loops open {opening:.0e}"
    )
    result.fine = t.ratio <= 2 and t.first <= 1
    return result


row("net of 12 loops")(lambda: nets(3, 4))
row("net of 40 loops")(lambda: nets(5, 8))


@row("10,000 spheres")
def many_spheres(n=10_000) -> Result:
    """Time to build a world of many spheres, with its first step."""
    side = round(n ** (1 / 3) + 0.5)
    at = [
        (0.25 * (k % side), 0.25 * (k // side % side), 0.1 + 0.25 * (k // side**2))
        for k in range(n)
    ]
    start = time.perf_counter()
    world = kt.World()
    world.add_ground()
    world.add(g.Sphere(0.1), mass=1.0, at=at)
    world.step(1)
    built = time.perf_counter() - start
    start = time.perf_counter()
    world.step(3)
    each = (time.perf_counter() - start) / 3
    result = Result("10,000 spheres")
    result.numbers = {"built": built, "step": each}
    result.figure = f"{built:.1f} s to build and take a step, {1e3 * each:.0f} ms a step after that"
    result.fine = built < 5
    return result
