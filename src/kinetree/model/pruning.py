"""Models without some of their bodies: the complement of ``edit.extract``."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from kinetree.model.model import Model
from kinetree.model.transfer import inside, transfer_parts, transferred_postures
from kinetree.spatial import Plucker


def without_bodies(model: Model, gone: Collection[int]) -> Model:
    """Model without some bodies, their subtrees and what is attached to them.

    Loops, couplings and tendons between what stays and what goes raise an error.

    Args:
        model: the model.
        gone: numbers of bodies, with those of all that they carry.
    """
    if not gone:
        return model
    stays = [i for i in range(1, model.body_count + 1) if i not in gone]
    number: list[Any] = [0] + [None] * model.body_count
    for new, old in enumerate(stays, start=1):
        number[old] = new
    names = {model.body_names[i] for i in gone} | {model.joint_names[i - 1] for i in gone}
    sensors = [s for s in model.sensors if not names & {s.of, s.reference}]
    cameras = [c for c in model.cameras if c.of not in names]
    model = model.replace(sensors=sensors, cameras=cameras)
    part = inside(model, (0, *stays), model.body_names[min(gone)])
    parts = transfer_parts(part, number, [Plucker.identity()] * len(number))
    bodies = [replace(model.bodies[k - 1], parent=number[model.parent[k]]) for k in stays]
    postures = transferred_postures([b.joint for b in bodies], (stays, model), parts["actuators"])
    return part.replace(bodies=bodies, **parts, postures=postures)
