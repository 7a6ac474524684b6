"""Wedges face to face, and uneven ground."""

import numpy as np

from kinetree.model import geometry as g
from truth.judge import Judge
from truth.registry import coordinates, mesh_file, row, turned
from truth.scene import Scene, Thing
from truth.solids import Solid, overlap
from truth.verdict import Limits, Result, judged


@row("wedges")
def wedges(poses=2001) -> Result:
    """Two wedges face to face at gaps of ±5e-9 m: gap and normal, by all ways to ask for them."""
    result = Result("wedges")
    mesh = g.Mesh(mesh_file("wedge"))
    a, solid = np.eye(4), Solid(mesh)
    back = np.diag([-1.0, -1.0, 1.0, 1.0])
    rng = np.random.default_rng(0)
    scene = Scene(
        (Thing("a", mesh, 1.0), Thing("b", mesh, 1.0, (-1.0, 0, 0), back[:3, :3])),
        ground=False,
        gravity=0.0,
        steps=1,
    )
    world = scene.world()
    bad, worst = 0, 0.0
    for _ in range(poses):
        whole, gap = np.eye(4), rng.uniform(-5e-9, 5e-9)
        whole[:3, :3], whole[:3, 3] = turned(rng), rng.normal(size=3)
        B = back.copy()
        B[:3, 3] = (-gap, *rng.uniform(-0.1, 0.1, 2))
        q = np.concatenate([coordinates(whole @ a), coordinates(whole @ B)])
        found = world.scene.contacts(q, margin=1e-3)
        if not len(found.gap):
            continue
        true = -overlap(solid, whole, solid, whole @ B)[0]
        error = np.abs(np.asarray(found.gap) - true).max()
        side = np.where(found.predecessor == 1, -1.0, 1.0)  # from a to b: along -x of the whole
        cosine = side * (np.asarray(found.normal) @ whole[:3, 0])
        bad += bool(error > 1e-8 or (cosine < 1 - 1e-6).any())
        worst = max(worst, error)
    result.numbers = {"bad": bad, "error": worst}
    result.figure = f"{bad} of {poses} poses wrong, gap off by up to {worst:.1e} m"
    result.fine = bad == 0
    judge = Judge(
        Scene(
            (Thing("a", mesh, 1.0), Thing("b", mesh, 1.0, (2e-9, 0.01, 0.02), back[:3, :3])),
            ground=False,
            gravity=0.0,
            steps=5,
        )
    )
    return result.add(judge, judge.run(), Limits(), "at rest")


def field(rim=False) -> Scene:
    """Balls and boxes on uneven ground, or on its rim."""
    rng = np.random.default_rng(3)
    heights = g.HeightField(tuple(map(tuple, 0.15 * rng.random((9, 9)))), (2.0, 2.0))
    x = 1.0 if rim else 0.0
    things = [
        Thing("field", heights),
        Thing("ball", g.Sphere(0.1), 1.0, (x, 0.1, 0.5), velocity=(0.3, 0.2, 0)),
        Thing(
            "box", g.Box((0.2, 0.15, 0.1)), 1.0, (x, -0.4, 0.5), turned(rng), velocity=(0.2, 0, 0)
        ),
    ]
    return Scene(tuple(things), ground=False, steps=600)


@row("height field")
def height_field() -> Result:
    """A ball and a box on uneven ground."""
    return judged("height field", field())


@row("rim of a height field")
def field_rim() -> Result:
    """A ball and a box where uneven ground ends."""
    return judged("rim of a height field", field(rim=True))
