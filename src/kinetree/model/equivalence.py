"""Inertias that cannot be told apart by the motion of the joints — RBDA §9.7.

Part of a body's inertia can move to its parent without any change in the equation of motion: what
the joint cannot accelerate by itself (``I_Δ S = 0``) and what looks the same from the parent in
every position of the joint. ``condensed`` moves as much as possible towards the base. The zeros it
leaves behind make generated code shorter; forces inside the mechanism and inertias of single
bodies are no longer the real ones.
"""

import os

from kinetree.model.views import ModelView, snapped
from kinetree.spatial import Inertia

__all__ = ["LUMPING", "code_key", "condensed", "lumped_inertias", "uncondensed"]

LUMPING = os.environ.get("KINETREE_LUMPING", "1") != "0"
"""Whether generated code may compute with a lumped model; the environment can forbid it."""


def code_key(model):
    """What generated code for a model depends on."""
    return model.fingerprint if LUMPING else (model.fingerprint, "inertias as they are")


def condensed(model) -> ModelView:
    """The model with inertia moved from bodies to their parents wherever that changes nothing.

    Entry 0 of its ``inertia`` is what has come to rest in the base.
    """
    if isinstance(model, _WithInertia) or not LUMPING:
        return uncondensed(model)
    return _WithInertia(model, lumped_inertias(model))


def uncondensed(model) -> ModelView:
    """The model as it is, in a form that ``condensed`` leaves alone.

    Where many numbers are zero from the start, moving inertia can cost operations.
    """
    if isinstance(model, _WithInertia):
        return model
    return _WithInertia(model, [Inertia.zero(), *model.inertia[1:]])


def lumped_inertias(model):
    """Inertias of base and bodies after the sweep from the leaves to the root — RBDA §9.7.

    ``joint.movable_inertia`` is in the joint's coordinates and goes to the parent by ``X_T``,
    which the printed loop leaves out.
    """
    inertia = list(model.inertia)
    inertia[0] = Inertia.zero()
    for i in range(model.body_count, 0, -1):
        part = model.bodies[i - 1].joint.movable_inertia(inertia[i])
        if part is None:
            continue
        p, X_T = model.parent[i], model.tree_transform[i]
        inertia[i] = inertia[i] - part
        inertia[p] = inertia[p] + X_T.inv_apply(part)
    return inertia


class _WithInertia(ModelView):
    """A model with other inertias, and placements free of rounding errors."""

    def __init__(self, model, inertia):
        super().__init__(model, lambda x: x)
        self.inertia = tuple(inertia)
        self.tree_transform = (None, *map(snapped, model.tree_transform[1:]))
