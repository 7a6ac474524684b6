"""Drops and piles: overlaps, and times beside MuJoCo."""

import numpy as np

from kinetree.model import geometry as g
from truth.judge import Judge
from truth.registry import mesh_file, row, turned, turned_little
from truth.scene import Scene, Thing
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


def plates(n=40) -> Scene:
    """Plates that fall onto a pile."""
    rng = np.random.default_rng(0)
    shape = g.Box((0.16, 0.12, 0.01))
    things = [
        Thing(
            f"plate{k}",
            shape,
            0.3,
            (*rng.uniform(-0.03, 0.03, 2), 0.05 + 0.05 * k),
            turned_little(rng, 0.5),
        )
        for k in range(n)
    ]
    return Scene(tuple(things), steps=700)


@row("40 plates")
def forty_plates() -> Result:
    """A pile of plates: overlaps, and time."""
    scene = plates()
    result = judged("40 plates", scene, every=2)
    return with_ratio(result, scene)


def with_ratio(result, scene, last=200) -> Result:
    """Add the time ratio of the last steps."""
    t = timed_scene(scene, last)
    result.numbers |= {"ratio": t.ratio, "ours": t.ours, "first": t.first, "built": t.built}
    result.figure = f"last {last} steps {t.ratio:.2f} times mj_step ({1e6 * t.ours:.0f} µs)"
    result.fine = t.ratio <= 2.0
    return result


def cylinders(n=40) -> Scene:
    """Cylinders that fall onto a pile."""
    rng = np.random.default_rng(0)
    things = [
        Thing(
            f"c{k}",
            g.Cylinder(0.04, 0.12),
            0.5,
            (*rng.uniform(-0.08, 0.08, 2), 0.1 + 0.12 * (k // 2)),
            turned(rng),
        )
        for k in range(n)
    ]
    spread = [
        t if k % 2 else Thing(t.name, t.shape, t.mass, (t.at[0] + 0.25, *t.at[1:]), t.turn)
        for k, t in enumerate(things)
    ]
    return Scene(tuple(spread), steps=1200)


@row("40 cylinders")
def forty_cylinders() -> Result:
    """A pile of cylinders: overlaps, and time."""
    return with_ratio(judged("40 cylinders", cylinders(), every=10), cylinders())


def mixed(n=25) -> Scene:
    """Boxes, balls, cylinders, capsules and meshes that fall onto a pile."""
    rng = np.random.default_rng(0)
    shapes = (
        g.Box((0.12, 0.1, 0.08)),
        g.Sphere(0.06),
        g.Cylinder(0.05, 0.1),
        g.Capsule(0.04, 0.1),
        g.Mesh(mesh_file("pebble"), scale=(0.6, 0.6, 0.6)),
    )
    things = [
        Thing(
            f"t{k}", shapes[k % 5], 0.5, (*rng.uniform(-0.06, 0.06, 2), 0.1 + 0.16 * k), turned(rng)
        )
        for k in range(n)
    ]
    return Scene(tuple(things), steps=1000)


@row("25 mixed")
def twenty_five_mixed() -> Result:
    """A pile of different shapes: overlaps, and time."""
    return with_ratio(judged("25 mixed", mixed(), every=10), mixed())


def mesh_cubes(n=20) -> Scene:
    """Cubes as meshes that fall onto a pile."""
    rng = np.random.default_rng(0)
    cube = g.Mesh(mesh_file("cube"), scale=(0.5, 0.5, 0.5))
    things = [
        Thing(f"m{k}", cube, 0.5, (*rng.uniform(-0.05, 0.05, 2), 0.1 + 0.18 * k), turned(rng))
        for k in range(n)
    ]
    return Scene(tuple(things), steps=1000)


@row("20 mesh cubes")
def twenty_mesh_cubes() -> Result:
    """A pile of meshes: overlaps, and time."""
    return with_ratio(judged("20 mesh cubes", mesh_cubes(), every=10), mesh_cubes())


def balls(seed=0, n=50, steps=1500) -> Scene:
    """Balls of 1 kg that fall into a box of 1 m with walls of 5 cm."""
    rng = np.random.default_rng(seed)
    walls = [
        Thing(f"wall{k}", g.Box((0.05, 1.1, 1.0) if k < 2 else (1.0, 0.05, 1.0)), 0.0, at)
        for k, at in enumerate(
            [(0.525, 0, 0.5), (-0.525, 0, 0.5), (0, 0.525, 0.5), (0, -0.525, 0.5)]
        )
    ]
    spots = [(x, y) for x in (-0.25, 0.0, 0.25) for y in (-0.25, 0.0, 0.25)]
    things = [
        Thing(
            f"ball{k}",
            g.Sphere(0.1),
            1.0,
            (*(np.array(spots[k % 9]) + rng.uniform(-0.02, 0.02, 2)), 0.15 + 0.23 * (k // 9)),
        )
        for k in range(n)
    ]
    return Scene((*walls, *things), steps=steps)


@row("50 balls")
def fifty_balls(seeds=2) -> Result:
    """Balls in a box."""
    result, ratios, worst = Result("50 balls"), [], 0.0
    for seed in range(seeds):
        judge = Judge(balls(seed), every=10)
        result.add(judge, judge.run(), Limits(cone=1e-4), f"seed {seed}")
        t = timed_scene(balls(seed), 1500)
        ratios.append(t.ratio)
        worst = max(worst, t.worst)
    result.numbers |= {"ratio": float(np.mean(ratios)), "slowest": worst}
    result.figure = f"{np.mean(ratios):.2f} times mj_step, slowest step {1e3 * worst:.0f} ms"
    result.fine = result.velocity < 1e-4 and np.mean(ratios) <= 1.5
    return result
