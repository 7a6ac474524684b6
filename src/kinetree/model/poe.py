"""Models from products of exponentials — Lynch & Park (9.35)–(9.40), (9.49)–(9.51).

A chain of links is given by the screws ``S_i`` of its joints and the poses ``M_i`` of its link
frames, both in space coordinates with all joint variables zero. The text writes the screw of a
joint in the link frame once as ``Ad(M_i⁻¹) S_i`` (9.40) and once with ``M_{i-1}`` (9.51); the
former is right.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, names_itself
from kinetree.joints import Screw
from kinetree.model.builder import ModelBuilder
from kinetree.model.model import STANDARD_GRAVITY, Model
from kinetree.model.parts import as_placement
from kinetree.spatial import Motion, Plucker, exp
from kinetree.spelling import explains

if TYPE_CHECKING:
    from kinetree.spatial import Inertia


@explains
def from_poe(
    screws: Sequence,
    home: Sequence,
    inertias: "Sequence[Inertia]",
    *,
    tool: ArrayLike | Plucker | None = None,
    name: str = "arm",
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> Model:
    """Model of a serial chain from screw axes and home poses of its links.

    Args:
        screws: ``S_i`` as six numbers each, angular part first, in space coordinates. The angular
            part has length 1; or it is zero and the linear part has length 1.
        home: ``M_i``, pose of link frame ``i`` in space as a 4×4 matrix.
        inertias: of each link, in its frame.
        tool: pose of the end-effector frame in space at the home position, 4×4.
        name: of the model.
        gravity: uniform gravitational acceleration [m/s²], (3,).
    """
    if not len(screws) == len(home) == len(inertias):
        raise ModelError(
            f"a chain needs as many screws as home poses and inertias, got {len(screws)}, "
            f"{len(home)} and {len(inertias)}"
        )
    X = [Plucker.identity(), *map(as_placement, home)]
    builder, on = ModelBuilder(name, gravity=gravity), None
    for i, A in enumerate(link_screws(screws, home), start=1):
        at = X[i] @ X[i - 1].inverse()  # M_{i-1,i} = M_{i-1}⁻¹ M_i, (9.39)
        builder.body(f"link{i}", on=on, joint=Screw(tuple(A)), at=at, inertia=inertias[i - 1])
        on = f"link{i}"
    if tool is not None:
        builder.frame("tool", on=on, at=as_placement(tool) @ X[-1].inverse())
    return builder.build()


def link_screws(screws, home):
    """Screw axes in link frames, ``A_i = Ad(M_i⁻¹) S_i``, (6,) — Lynch & Park (9.40)."""
    return [
        Plucker.from_pose(M).to_matrix() @ _screw(S, i).to_array()
        for i, (S, M) in enumerate(zip(screws, home, strict=True), start=1)
    ]


def link_poses(screws, home, q):
    """Link poses ``exp([S_1] q_1) … exp([S_i] q_i) M_i``, (4, 4) each — Lynch & Park (9.37)."""
    poses, product = [], np.eye(4, dtype=int)
    for i, (S, M, angle) in enumerate(zip(screws, home, q, strict=True), start=1):
        product = product @ exp(_screw(S, i) * angle).to_pose()
        poses.append(product @ np.asarray(M))
    return poses


@names_itself
def to_poe(model: Model) -> tuple:
    """Screw axes and home poses of a model with one variable per joint.

    The screws are columns in space coordinates at the neutral position, (6,) each; the home poses
    are those of the body frames. Branched trees are allowed; body ``i`` then depends on
    ``model.support[i]``, not on all joints before it.
    """
    q, X_0, screws = model.neutral(), [Plucker.identity()], []
    for i in range(1, model.body_count + 1):
        if model.joint[i].nv != 1:
            raise ModelError(
                f"a product of exponentials needs one freedom per joint, but joint "
                f"{model.joint_names[i - 1]!r} has {model.joint[i].nv}"
            )
        X_J, S, _, _ = model.jcalc(i, q, model.zero_velocity)
        X_0.append(X_J @ model.tree_transform[i] @ X_0[model.parent[i]])
        screws.append((X_0[i].inverse() @ S).to_array()[:, 0])
    return screws, [X.to_pose() for X in X_0[1:]]


def _screw(S, i):
    """Screw axis ``i`` as a motion; an error unless it has unit length."""
    s = np.asarray(S)
    if s.shape != (6,):
        raise ModelError(f"screw {i} must be six numbers, angular part first, got shape {s.shape}")
    if s.dtype != object:
        w, v = np.linalg.norm(s[:3]), np.linalg.norm(s[3:])
        size = w if w > 1e-12 else v
        if abs(size - 1) > 1e-9:
            raise ModelError(
                f"screw {i} must have an angular part of length 1, or none and a linear part of "
                f"length 1; got lengths {w:.6g} and {v:.6g}"
            )
    return Motion.from_array(s)
