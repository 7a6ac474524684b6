"""Drops and piles: overlaps, and times beside MuJoCo."""

import numpy as np

from kinetree.model import geometry as g
from truth.judge import Judge
from truth.registry import mesh_file, row, turned
from truth.scene import Scene, Thing
from truth.solids import Solid
from truth.verdict import Limits, Result, judged, limits_of, timed_scene


def plate_drop(seed) -> Scene:
    """A plate that tumbles onto another, from 0.4 m."""
    rng = np.random.default_rng(seed)
    plate = g.Box((0.16, 0.12, 0.01))
    lower = Thing("lower", plate, 0.5, (0, 0, 0.005))
    upper = Thing(
        "upper",
        plate,
        0.5,
        (*rng.uniform(-0.03, 0.03, 2), 0.4),
        turned(rng),
        spin=tuple(rng.normal(scale=8, size=3)),
    )
    return Scene((lower, upper), steps=250)


@row("plate drops")
def plate_drops(seeds=30) -> Result:
    """Plates that tumble onto plates."""
    result, deep = Result("plate drops"), 0
    for seed in range(seeds):
        judge = Judge(plate_drop(seed))
        steps = judge.run()
        deep += max(s.overlap for s in steps) > 1e-5
        result.add(judge, steps, limits_of(judge.scene), f"seed {seed}")
    result.figure = f"{deep} of {seeds} drops overlap by more than 1e-5 m"
    result.fine = not deep or not result.silent
    return result


def boxes_dropped(seed=0) -> Scene:
    """Eight boxes."""
    rng = np.random.default_rng(seed)
    things = [
        Thing(
            f"box{k}",
            g.Box(tuple(rng.uniform(0.1, 0.25, 3))),
            1.0,
            (*rng.uniform(-0.1, 0.1, 2), 0.3 + 0.35 * k),
            turned(rng),
        )
        for k in range(8)
    ]
    return Scene(tuple(things), steps=700)


@row("8 boxes")
def eight_boxes() -> Result:
    """Eight boxes dropped on each other."""
    return judged("8 boxes", boxes_dropped())


def bin_of(half, height=0.6, thick=0.05) -> list[Thing]:
    """Four walls around a square."""
    sizes = (thick, 2 * (half + thick), height), (2 * half, thick, height)
    away = half + thick / 2
    places = ((away, 0), (-away, 0), (0, away), (0, -away))
    return [
        Thing(f"wall{k}", g.Box(sizes[k // 2]), at=(*xy, height / 2)) for k, xy in enumerate(places)
    ]


def poured(shapes, mass, half, steps) -> Scene:
    """Things that fall into a bin, one after the other from the heights at which they start."""
    rng = np.random.default_rng(0)
    radius = max(Solid(s).radius for s in shapes)
    free = half - radius
    things = [
        Thing(f"t{k}", s, mass, (*rng.uniform(-free, free, 2), 2 * radius * (0.6 + k)), turned(rng))
        for k, s in enumerate(shapes)
    ]
    return Scene((*bin_of(half), *things), friction=0.8, steps=steps)


def plates(n=40, steps=1200) -> Scene:
    """Plates that fall onto a pile."""
    return poured([g.Box((0.16, 0.12, 0.01))] * n, 0.3, 0.14, steps)


@row("40 plates")
def forty_plates() -> Result:
    """A pile of plates: overlaps, and time."""
    scene = plates()
    result = judged("40 plates", scene, every=5)
    return with_ratio(result, scene)


def with_ratio(result, scene, last=200) -> Result:
    """Add the time ratio of the last steps."""
    t = timed_scene(scene, last)
    result.numbers |= {"ratio": t.ratio, "ours": t.ours, "first": t.first, "built": t.built}
    result.figure = f"last {last} steps {t.ratio:.2f} times mj_step ({1e6 * t.ours:.0f} µs)"
    result.fine = t.ratio <= 2.0
    return result


def cylinders(n=40, steps=1500) -> Scene:
    """Cylinders that fall onto a pile."""
    return poured([g.Cylinder(0.04, 0.12)] * n, 0.5, 0.17, steps)


@row("40 cylinders")
def forty_cylinders() -> Result:
    """A pile of cylinders: overlaps, and time."""
    return with_ratio(judged("40 cylinders", cylinders(), every=10), cylinders())


def mixed(n=25, steps=1500) -> Scene:
    """Boxes, balls, cylinders, capsules and meshes that fall onto a pile."""
    shapes = (
        g.Box((0.12, 0.1, 0.08)),
        g.Sphere(0.06),
        g.Cylinder(0.05, 0.1),
        g.Capsule(0.04, 0.1),
        g.Mesh(mesh_file("pebble"), scale=(0.6, 0.6, 0.6)),
    )
    return poured([shapes[k % 5] for k in range(n)], 0.5, 0.17, steps)


@row("25 mixed")
def twenty_five_mixed() -> Result:
    """A pile of different shapes: overlaps, and time."""
    return with_ratio(judged("25 mixed", mixed(), every=10), mixed())


def mesh_cubes(n=20, steps=1200) -> Scene:
    """Cubes as meshes that fall onto a pile."""
    return poured([g.Mesh(mesh_file("cube"), scale=(0.5, 0.5, 0.5))] * n, 0.5, 0.15, steps)


@row("20 mesh cubes")
def twenty_mesh_cubes() -> Result:
    """A pile of meshes: overlaps, and time."""
    return with_ratio(judged("20 mesh cubes", mesh_cubes(), every=10), mesh_cubes())


def balls(seed=0, n=50, steps=1500) -> Scene:
    """Balls of 1 kg that fall into a box of 1 m with walls of 5 cm."""
    rng = np.random.default_rng(seed)
    things = [
        Thing(f"ball{k}", g.Sphere(0.1), 1.0, (*rng.uniform(-0.38, 0.38, 2), 0.15 + 0.21 * k))
        for k in range(n)
    ]
    return Scene((*bin_of(0.5, 1.0), *things), friction=0.8, steps=steps)


def balls_of(seed, every=10) -> Result:
    """Balls in a box, of one seed."""
    judge, limits = Judge(balls(seed), every=every), Limits()
    found = Result(f"50 balls, seed {seed}").add(judge, judge.run(), limits, f"seed {seed}")
    t = timed_scene(balls(seed), 1500)
    found.numbers = {"ratio": t.ratio, "ours": t.ours, "theirs": t.theirs, "slowest": t.worst}
    found.figure = f"{t.ratio:.2f} times mj_step, slowest step {1e3 * t.worst:.0f} ms"
    found.fine = bool(found.velocity < 1e-4 and t.ratio <= 1.5)
    return found


@row("50 balls")
def fifty_balls(seeds=2) -> Result:
    """Balls in a box, of two seeds."""
    result = Result("50 balls")
    for found in map(balls_of, range(seeds)):
        result.include(found)
    ratio = np.mean([x["ratio"] for x in result.numbers.values()])
    slowest = max(x["slowest"] for x in result.numbers.values())
    result.figure = f"{ratio:.2f} times mj_step, slowest step {1e3 * slowest:.0f} ms"
    result.fine = bool(result.velocity < 1e-4 and ratio <= 1.5)
    return result
