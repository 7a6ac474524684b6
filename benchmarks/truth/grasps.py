"""Grasps: two fingers on slides hold a box."""

from itertools import product

import numpy as np

import kinetree as kt
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


def falling(over, most) -> int:
    """Steps in which an object that is held too weakly falls by 5 mm, at most ``most``."""
    return min(most, int(np.sqrt(2 * 5e-3 / (G * (1 - over))) / 2e-3))


def grasps(kind, name, steps=500) -> Result:
    """Worst slip above the limit, and whether it slips below."""
    result, held, fell = Result(name), (0.0, 0.0, 0.0), []
    for mu, over in product((0.2, 0.3, 0.5, 1.0, 1.5), (0.98, 0.999, 1.001, 1.02, 1.1, 1.3)):
        scene = gripper(kind, mu, over, steps if over > 1 else falling(over, steps))
        down, _, judge, found = slip(scene)
        result.add(judge, found, limits_of(scene), f"mu {mu} over {over}")
        result.numbers[f"{mu} {over}"] = down
        if over < 1:
            t = scene.steps * scene.timestep
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


# --- hands ---------------------------------------------------------------------------------------

HANDS = {
    "three": (np.radians([0, 120, 240]), np.ones(3)),
    "five": (
        np.radians([0, 120, 160, 200, 240]),
        np.array([2 * np.cos(np.radians(20)) + 1, 1, 1, 1, 1]),
    ),
}
"""Directions of fingers about an object, and their forces in proportion, which balance."""


def hand(name, mu, over, steps=500) -> Scene:
    """Fingertips on slides around a cylinder of 1 kg, in ``over`` times the least force."""
    angles, share = HANDS[name]
    force = over * G / (mu * share.sum()) * share
    tips = [
        Thing(
            f"finger{k}",
            g.Sphere(0.02),
            0.2,
            (0.07 * np.cos(a), 0.07 * np.sin(a), 1.0),
            slide=(-np.cos(a), -np.sin(a), 0.0),
            push=float(force[k]),
        )
        for k, a in enumerate(angles)
    ]
    held = Thing("object", g.Cylinder(0.05, 0.12), 1.0, (0, 0, 1.0))
    return Scene((*tips, held), friction=mu, ground=False, steps=steps)


def predicted(scene) -> float:
    """Acceleration with which an object falls, by forward dynamics of the start [m/s²]."""
    world = scene.world()
    motion = kt.contact.forward_dynamics(
        world.model, world.q, world.qd, scene.forces(world), world.scene
    )
    free = world["object"].v_indices
    return float(-motion.qdd[free[5]])


@row("hands")
def hands(steps=500) -> Result:
    """Hands of three and five fingers hold what forward dynamics predicts."""
    result, worst = Result("hands"), 0.0
    for name, mu, over in product(HANDS, (0.2, 0.5, 1.0, 1.5), (0.98, 0.999, 1.001, 1.1)):
        scene = hand(name, mu, over, steps if over > 1 else falling(over, steps))
        expected = predicted(scene) * (scene.steps * scene.timestep) ** 2 / 2
        down, _, judge, found = slip(scene)
        result.add(judge, found, limits_of(scene), f"{name} mu {mu} over {over}")
        worst = max(worst, abs(down - expected))
        result.numbers[f"{name} {mu} {over}"] = down
    result.fine = worst < 1e-6
    result.figure = f"falls off the prediction of forward dynamics by up to {worst:.1e} m"
    return result
