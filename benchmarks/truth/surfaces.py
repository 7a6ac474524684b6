"""Wedges face to face, and uneven ground."""

import numpy as np
from scipy.spatial import ConvexHull

from kinetree.model import geometry as g
from truth.registry import coordinates, mesh_file, row, turned
from truth.scene import Scene, Thing
from truth.solids import Solid
from truth.verdict import Result, judged


def face_to_face(hull, gap, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses of two copies of a hull with two faces a gap apart, and the normal between them."""
    A, B = np.eye(4), np.eye(4)
    A[:3, :3] = R = turned(rng)
    A[:3, 3] = rng.normal(size=3)
    i, j = rng.integers(len(hull.simplices), size=2)
    n, m = R @ hull.equations[i, :3], hull.equations[j, :3]
    x, y = (np.cross(v, rng.normal(size=3)) for v in (n, m))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    S = np.column_stack([-n, x, np.cross(-n, x)]) @ np.column_stack([m, y, np.cross(m, y)]).T
    p, q = (hull.points[hull.simplices[k]].mean(axis=0) for k in (i, j))
    B[:3, :3], B[:3, 3] = S, R @ p + A[:3, 3] + gap * n - S @ q
    return A, B, n


@row("wedges")
def wedges(poses=2001) -> Result:
    """Two wedges face to face at gaps of ±5e-9 m: gap and normal; and at rest."""
    result = Result("wedges")
    mesh = g.Mesh(mesh_file("wedge"))
    hull, rng = ConvexHull(Solid(mesh).vertices), np.random.default_rng(0)
    things = Thing("a", mesh, 1.0), Thing("b", mesh, 1.0, (5.0, 0, 0))
    scene = Scene(things, ground=False, gravity=0.0, steps=3)
    world, bad, worst, moved = scene.world(), 0, 0.0, 0.0
    for k in range(poses):
        gap = rng.uniform(-5e-9, 5e-9)
        A, B, n = face_to_face(hull, gap, rng)
        q = np.concatenate([coordinates(A), coordinates(B)])
        found = world.scene.contacts(q, margin=1e-3)
        error = np.abs(np.min(found.gap) - gap) if len(found.gap) else np.inf
        side = np.where(np.asarray(found.predecessor) == 1, 1.0, -1.0)
        cosine = side * (np.asarray(found.normal) @ n)
        bad += bool(error > 1e-9 or (cosine < 1 - 1e-9).any())
        worst = max(worst, error)
        if k % 20 == 0:
            world.q, world.qd = q, np.zeros(12)
            world.step(3)
            moved = max(moved, np.abs(world.q - q)[[0, 1, 2, 7, 8, 9]].max())
    result.numbers = {"bad": bad, "error": worst, "moved": moved}
    result.figure = (
        f"{bad} of {poses} poses wrong, gap off by up to {worst:.1e} m; at rest they move by up "
        f"to {moved:.0e} m"
    )
    result.fine = bool(bad == 0 and moved < 1e-8)
    return result


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
