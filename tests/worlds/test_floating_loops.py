"""Loops in worlds that say the same thing several times: planar, spherical and skew linkages.

Rows that repeat others, or say nothing, differ from that by rounding errors where bodies are turned
in space. Accelerations are those of the closed-loop forward dynamics.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.linkages import allowed_velocity

import kinetree as kt
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.model.parts import Loop
from kinetree.samples import random_placement
from kinetree.spatial import Plucker


def hinged(rng, axes, points, cut, size):
    """A chain of hinges whose end a joint ties to the base, and positions that close it.

    Args:
        rng: of places, masses and the frames of all bodies.
        axes: of the hinges in the world, in the zero position, (n + 1, 3); the last of the cut.
        points: on them, (n + 1, 3).
        cut: type of the joint that closes the loop.
        size: of the mechanism [m].
    """
    frames = [np.eye(3), *(random_placement(rng).E for _ in axes)]
    places = [np.zeros(3), *(size * np.asarray(p) for p in points)]
    builder = kt.ModelBuilder("linkage", gravity=(1.0, -3.0, -9.0))
    X = [Plucker(E, r) for E, r in zip(frames, places, strict=True)]
    for k in range(len(axes) - 1):
        ball = kt.shapes.sphere(
            0.3 * size, mass=rng.uniform(0.5, 2.0), at=size * rng.normal(size=3)
        )
        builder.body(
            f"b{k}", on=f"b{k - 1}" if k else None, joint=kt.Revolute(frames[k + 1] @ axes[k]),
            at=X[k + 1] @ X[k].inverse(), inertia=ball,
        )  # fmt: skip
    tree = builder.build()
    joint = cut(frames[-1] @ axes[-1]) if cut in (kt.Revolute, kt.Cylindrical) else cut()
    loop = Loop("cut", 0, tree.body_count, joint, X[-1], X[-1] @ X[-2].inverse())
    return tree.replace(loops=(loop,)), np.zeros(tree.nq)


def planar(rng, cut, size=1.0, bars=3):
    """Hinges about one direction anywhere in space, at any height along it."""
    axis = rng.normal(size=3)
    axes = np.tile(axis / np.linalg.norm(axis), (bars + 1, 1))
    return hinged(rng, axes, rng.normal(size=(bars + 1, 3)), cut, size)


def spherical(rng, cut, size=1.0):
    """Hinges whose axes meet in one point."""
    axes = rng.normal(size=(4, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    return hinged(rng, axes, rng.normal(size=3) + axes * rng.normal(size=(4, 1)), cut, size)


def skew(rng, cut, size=1.0):
    """Seven hinges anywhere: nothing is redundant."""
    axes = rng.normal(size=(7, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    return hinged(rng, axes, rng.normal(size=(7, 3)), cut, size)


def bennett(rng, cut, size=1.0):
    """Bennett's linkage: no two axes are parallel or meet, and three rows are redundant."""
    model = kt.samples.bennett().replace(geometry=(), actuators=())
    return model, np.zeros(3)


KINDS = {
    "planar": (planar, kt.Revolute, 2),
    "planar, with a ball": (planar, kt.Spherical, 2),
    "planar, with a sleeve": (planar, kt.Cylindrical, 2),
    "planar, small": (lambda rng, cut: planar(rng, cut, 0.01), kt.Revolute, 2),
    "planar, welded": (lambda rng, cut: planar(rng, cut, 1.0, 4), kt.Fixed, 3),
    "spherical": (spherical, kt.Revolute, 2),
    "Bennett's": (bennett, kt.Revolute, 2),
    "skew": (skew, kt.Revolute, 5),
}
"""Of linkages: how they are made, the joint that closes them, and their number of constraints."""


def released(kind, seed, floats):
    """A linkage in motion, on a free joint or not: model, positions and velocities."""
    rng = np.random.default_rng(seed)
    make, cut, rank = KINDS[kind]
    model, q = make(rng, cut)
    K = np.asarray(loop_constraints(model, q, np.zeros(model.nv)).K, dtype=float)
    assert np.linalg.matrix_rank(K, 1e-9) == rank
    if floats:
        model = kt.edit.floating(model, inertia=kt.samples.random_inertia(rng))
        q = np.concatenate([kt.Free().coordinates(random_placement(rng)), q])
    return model, q, allowed_velocity(model, q, rng)


@pytest.mark.parametrize("floats", [True, False], ids=["floating", "fixed"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_step_is_that_of_the_forward_dynamics(kind, floats):
    h = 1e-5
    for seed in range(3):
        model, q, qd = released(kind, seed, floats)
        world = kt.World(timestep=h, gravity=model.gravity)
        world.add(model, q=q, qd=qd)
        world.step()
        expected = kt.forward_dynamics(model, q, qd, np.zeros(model.nv))
        found = (world.qd - qd) / h
        assert np.abs(found - expected).max() <= 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_bounds_beside_them_change_nothing(kind):
    """Newton's method has these, not one linear system."""
    h = 1e-5
    model, q, qd = released(kind, 7, floats=True)
    rubbing = kt.JointDynamics(friction=1e-9)
    model = model.replace(bodies=[*model.bodies[:-1], replace(model.bodies[-1], dynamics=rubbing)])
    world = kt.World(timestep=h, gravity=model.gravity)
    world.add(model, q=q, qd=qd)
    world.step()
    expected = kt.forward_dynamics(model, q, qd, np.zeros(model.nv))
    assert np.abs((world.qd - qd) / h - expected).max() <= 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("kind", KINDS)
def test_motions_are_those_without_contact(kind):
    """Of second order: a step of half the length leaves a quarter of the difference."""
    model, q, qd = released(kind, 11, floats=True)
    T = 0.05
    expected = kt.simulate(model, q, qd, duration=T, dt=T / 100).qd[-1]
    off = []
    for steps in (10, 20):
        world = kt.World(timestep=T / steps, gravity=model.gravity)
        world.add(model, q=q, qd=qd)
        world.step(steps)
        off.append(np.abs(world.qd - expected).max())
    assert off[0] <= 0.01 * np.abs(expected).max()
    assert off[1] <= 0.3 * off[0]
