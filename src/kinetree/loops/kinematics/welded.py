"""Loops that are all closed by welds: every loop joint becomes a tree joint — RBDA §8.3.

A zero-DoF joint can close any loop, if the joint that did so before moves into the tree together
with a massless body. That makes joint variables of the loop joints and needs one kind of loop
joint only. The price is six constraints for every loop, and an inertia matrix that is singular:
methods that factorise it fail, the null-space and KKT methods do not.
"""

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.joints import Fixed
from kinetree.loops.dynamics.loop_joints import loop_positions, loop_velocities
from kinetree.model import Body, Loop, Model
from kinetree.spatial import Inertia

__all__ = ["weld_loops", "welded_state"]


def weld_loops(model) -> Model:
    """The same mechanism with every loop closed by a ``Fixed`` joint.

    Each loop joint is now the joint of a massless body of its own, after all others, and keeps its
    name, limits and dynamics; the weld is called after it. Actuators of loop joints are left out.
    """
    nothing = Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    bodies, loops = list(model.bodies), []
    for loop in model.loops:
        bodies.append(
            Body(
                name=f"{loop.name} frame",
                parent=loop.predecessor,
                joint=loop.joint,
                placement=loop.predecessor_placement,
                inertia=nothing,
                joint_name=loop.name,
                limits=loop.limits,
                dynamics=loop.dynamics,
            )
        )
        loops.append(
            Loop(
                name=f"{loop.name} weld",
                predecessor=len(bodies),
                successor=loop.successor,
                joint=Fixed(),
                successor_placement=loop.successor_placement,
            )
        )
    actuators = tuple(a for a in model.actuators if not a.loop)
    return model.replace(bodies=tuple(bodies), loops=tuple(loops), actuators=actuators, postures=())


@on_host
def welded_state(model, q, qd):
    """``q`` and ``qd`` of ``weld_loops(model)`` for a state of ``model`` with closed loops."""
    where, moving = loop_positions(model, q), loop_velocities(model, q, qd)
    return (
        np.concatenate([q, *where.values()], axis=-1),
        np.concatenate([qd, *moving.values()], axis=-1),
    )
