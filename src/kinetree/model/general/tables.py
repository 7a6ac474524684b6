"""One robot as data for code that serves every robot: columns of integers and tables of numbers.

Another mass, placement, gravity or parameter of a joint is another number here; only another kind
of joint needs other code.
"""

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.loops.data import BODIES, SINGLE, Data, Rows
from kinetree.model.define import kept
from kinetree.model.general.kinds import joints_of

COLUMNS = {"parent": BODIES, "q": "q", "v": "v", "b": "b", "p": "p"}
"""Columns of bodies, and what they refer to."""

VARIABLES = "variables"

NUMBERS = {"placement": 12, "inertia": 10, "armature": 6, "joint": 20, "first": 1, "dynamics": 25}
"""Numbers of a body: ``E`` and ``r`` of its placement, ten of its inertia, of its joint, the number
of its first velocity variable; stiffness, damping, friction of the joint, and where its spring
rests."""


WORLD = {"gravity": 3}
"""Numbers that all bodies share."""


def data_of(model) -> Data | None:
    """A robot as data, kept with the model; None where general code cannot serve it."""
    return kept(model, ("general.data_of",), lambda: (_data_of(model),))[0]


def _data_of(model):
    if not model.bodies or model.couplings or model.scalar_type().kind not in "fi":
        return None  # joints that follow others, numbers that are traced or exact
    joints = joints_of(model)
    if joints is None or max(map(len, joints.parameters), default=0) > NUMBERS["joint"]:
        return None
    n = model.body_count
    columns = {
        "parent": np.array(model.parent[1:], dtype=np.int64) - 1,  # NO_ROW for the base
        "q": np.array([s.start for s in model.q_slice[1:]], dtype=np.int64),
        "v": np.array([s.start for s in model.v_slice[1:]], dtype=np.int64),
        "b": np.arange(n, dtype=np.int64),
        "p": 10 * np.arange(n, dtype=np.int64),
    }
    kind = np.array(joints.of_body, dtype=np.int64)
    bodies = Rows(n, columns, tuple(joints.kinds), kind)
    numbers = {
        "placement": placements(model.tree_transform[1:]),
        "inertia": _inertias(model.inertia[1:]),
        "armature": _armature(model),
        "joint": _filled_up(joints.parameters, NUMBERS["joint"]),
        "first": columns["v"][:, None].astype(float),
        "dynamics": _dynamics(model, joints),
    }
    world = {"gravity": np.array([model.gravity], dtype=float)}
    lengths = {"q": model.nq, "v": model.nv, "b": n, "p": 10 * n}
    variables = Rows(model.nv, {"v": np.arange(model.nv, dtype=np.int64)})
    return Data(
        {BODIES: bodies, VARIABLES: variables, SINGLE: Rows(1)},
        lengths,
        {BODIES: numbers, VARIABLES: {"number": np.arange(model.nv)[:, None] * 1.0}, SINGLE: world},
    )


def placements(transforms) -> Array:
    """Transforms as rows: ``E`` by rows, then ``r``."""
    found = np.zeros((len(transforms), 12))
    found[:, :9] = np.array([X.E for X in transforms], dtype=float).reshape(-1, 9)
    found[:, 9:] = np.array([X.r for X in transforms], dtype=float).reshape(-1, 3)
    return found


def _inertias(inertias):
    """As ``Inertia.parameters``: mass, first moment, and the moments of inertia."""
    found = np.zeros((len(inertias), 10))
    found[:, 0] = [I.mass for I in inertias]
    found[:, 1:4] = np.array([I.first_moment for I in inertias], dtype=float).reshape(-1, 3)
    moments = np.array([I.rotational for I in inertias], dtype=float).reshape(-1, 3, 3)
    rows, columns = np.tril_indices(3)
    found[:, 4:] = moments[:, rows, columns]
    return found


def _armature(model):
    """Armature of each joint's variables, and zeros."""
    found = np.zeros((model.body_count, NUMBERS["armature"]))
    for i in model.armature_joints:
        at = model.v_slice[i]
        found[i - 1, : at.stop - at.start] = model.armature[at]
    return found


def _dynamics(model, joints):
    """Stiffness, damping and friction, six each, and the rest position; zeros behind."""
    found = np.zeros((model.body_count, NUMBERS["dynamics"]))
    for k, kind in enumerate(joints.kinds):
        found[np.array(joints.of_body) == k, 18 : 18 + kind.joint.nq] = kind.joint.neutral()[:7]
    for row, body in zip(found, model.bodies, strict=True):
        if body.dynamics is not None:
            law = body.dynamics
            for at, x in enumerate((law.stiffness, law.damping, law.friction, law.rest)):
                row[6 * at : 6 * at + len(x[:7])] = x[:7]
    return found


def _filled_up(rows, size):
    """Rows of different lengths, with zeros behind."""
    found = np.zeros((len(rows), size))
    for k, row in enumerate(rows):
        if row:
            found[k, : len(row)] = row
    return found
