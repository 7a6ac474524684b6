"""Grasps: two fingers on slides hold a box."""

from itertools import product

import numpy as np

from kinetree.model import geometry as g
from truth.judge import Judge
from truth.registry import G, mesh_file, row
from truth.scene import Scene, Thing
from truth.verdict import Result, limits_of

FINGERS = {
    "flat": lambda: g.Box((0.1, 0.1, 0.1)),
    "ball": lambda: g.Sphere(0.05),
    "cylinder": lambda: g.Cylinder(0.05, 0.1),
    "mesh": lambda: g.Mesh(mesh_file("finger")),
}


def gripper(kind, mu, over, steps=500) -> Scene:
    """Two fingers on slides hold a box of 1 kg, each with ``over`` times the least force."""
    force, shape = over * G / (2 * mu), FINGERS[kind]()
    fingers = [
        Thing(name, shape, 1.0, (-s * 0.15, 0, 1), slide=(s, 0, 0), push=force)
        for name, s in (("left", 1.0), ("right", -1.0))
    ]
    box = Thing("box", g.Box((0.2, 0.08, 0.08)), 1.0, (0, 0, 1))
    return Scene((*fingers, box), friction=mu, ground=False, steps=steps)


def slip(scene) -> tuple:
    """How far the box of a gripper falls [m], by how much it turns [rad], and the judge's steps."""
    judge = Judge(scene)
    start = judge.bodies.poses(judge.world.q)[-1]
    steps = judge.run()
    end = judge.bodies.poses(judge.world.q)[-1]
    angle = np.arccos(np.clip((np.trace(start[:3, :3].T @ end[:3, :3]) - 1) / 2, -1, 1))
    return float(start[2, 3] - end[2, 3]), float(angle), judge, steps


def grasps(kind, name, steps=500) -> Result:
    """Worst slip above the limit, and whether it slips below."""
    result, held, fell = Result(name), (0.0, 0.0, 0.0), []
    for mu, over in product((0.2, 0.3, 0.5, 1.0, 1.5), (0.98, 0.999, 1.001, 1.02, 1.1, 1.3)):
        scene = gripper(kind, mu, over, steps)
        down, _, judge, found = slip(scene)
        result.add(judge, found, limits_of(scene), f"mu {mu} over {over}")
        result.numbers[f"{mu} {over}"] = down
        t = steps * scene.timestep
        if over < 1:
            fell.append(down / (G * (1 - over) * t * t / 2))  # 1: Coulomb's law
        else:
            held = max(held, (abs(down), mu, over))
    result.fine = held[0] < 1e-6 and min(fell) > 0.9 and max(fell) < 1.1
    result.figure = (
        f"slip above the limit in {steps * 2e-3:g} s up to {held[0]:.1e} m (friction {held[1]}, "
        f"{held[2]} times the limit); below it {min(fell):.2f} to {max(fell):.2f} of the expected"
    )
    return result


for _kind in FINGERS:
    row(f"gripper {_kind}")(lambda kind=_kind: grasps(kind, f"gripper {kind}"))
