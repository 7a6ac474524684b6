"""Models from the arrays of the 6-D guide: parent, Xtree, pitch, inertia — 6-D guide 2."""

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints import Helical, Prismatic, Revolute
from kinetree.model.model import STANDARD_GRAVITY, Model
from kinetree.model.parts import Body

__all__ = ["from_arrays"]


def from_arrays(
    parent, X_T, pitch, inertia, *, name="mechanism", gravity=STANDARD_GRAVITY
) -> Model:
    """A tree of revolute, prismatic and helical joints about their z axes.

    Bodies are called ``body1`` … ``bodyN``.

    Args:
        parent: parent of bodies 1 … N; 0 is the base.
        X_T: transform from each parent to the joint's frame on it.
        pitch: of each joint [m/rad]; 0 makes it revolute, infinity prismatic.
        inertia: of each body.
        name: of the model.
        gravity: uniform gravitational acceleration [m/s²] in base coordinates, (3,).
    """
    sizes = [len(parent), len(X_T), len(pitch), len(inertia)]
    if len(set(sizes)) > 1:
        raise ModelError(
            f"parent, X_T, pitch and inertia must have one entry for each body, got {sizes}"
        )
    bodies = [
        Body(f"body{i}", p, _joint(h), X, I, f"body{i}_joint")
        for i, (p, X, h, I) in enumerate(zip(parent, X_T, pitch, inertia, strict=True), start=1)
    ]
    return Model(tuple(bodies), name=name, gravity=gravity)


def _joint(pitch):
    if np.isinf(pitch):
        return Prismatic("z")
    return Helical("z", pitch=pitch) if pitch else Revolute("z")
