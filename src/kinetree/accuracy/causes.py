"""What makes rounding errors large, and what to do — the four causes of RBDA §10.1."""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.crba import joint_space_inertia
from kinetree.algorithms.jacobians import all_poses
from kinetree.algorithms.kinematics import base_velocities

__all__ = [
    "Cause", "far_frames", "far_from_origin", "fast_flight", "frame_distance",
    "inertia_ratios", "sensitive_chain", "singular_motion", "singular_variables", "unexplained",
]  # fmt: skip

FAR = 20.0  # radii of gyration
FAST = 1e3
UNLIKE = 1e5
SENSITIVE = 1e4
SINGULAR = 1e-3
MANY_DIGITS = 8.0


class Cause(NamedTuple):
    """Something that costs digits."""

    what: str
    """What was found, with its number."""
    advice: str
    """What to do about it."""

    def __str__(self):
        return f"{self.what}; {self.advice}"


def far_frames(model):
    """Bodies whose frame is more than ``FAR`` radii of gyration away from their mass centre.

    Rounding errors of an inertia grow with the square of that distance, beginning at about two
    radii — RBDA Fig. 10.2. At ten times as far they have cost two digits; links of robots whose
    numbers are fine come to a dozen radii.
    """
    found = []
    for name, I in zip(model.body_names[1:], model.inertia[1:], strict=True):
        ratio = frame_distance(I)
        if ratio > FAR:
            found.append((ratio, name))
    return [
        Cause(
            f"the mass centre of body {name!r} is {ratio:.3g} radii of gyration from its frame",
            "put the joint, and with it the frame, closer to the body, or check the units",
        )
        for ratio, name in sorted(found, reverse=True)[:3]
    ]


def frame_distance(I) -> float:
    """Distance of a mass centre from the origin of its frame, in radii of gyration."""
    if not I.mass > 0:
        return 0.0
    distance = float(np.linalg.norm(np.asarray(I.first_moment, float))) / I.mass
    spread = float(np.trace(np.asarray(I.rotational_at_center, float))) / (2 * I.mass)
    if distance == 0 or spread <= 0:  # a particle has no size to compare with
        return 0.0
    return distance / float(np.sqrt(spread))


def far_from_origin(model, q):
    """A mechanism far from the origin of its base: what is computed in base coordinates suffers."""
    if not model.body_count:
        return []
    places = np.asarray(all_poses(model, q))[:, :3, 3]
    distance = float(np.linalg.norm(places.mean(axis=0)))
    size = float(np.max(np.linalg.norm(places - places.mean(axis=0), axis=-1), initial=0.0))
    if distance < 1e3 * max(size, 1e-3):
        return []
    digits = 2 * np.log10(distance / max(size, 1e-3))
    return [
        Cause(
            f"the mechanism is {distance:.3g} m from the origin and {size:.3g} m large",
            f"quantities in base coordinates lose up to {min(digits, 16):.0f} digits: move the "
            f"origin near it, or use those in coordinates of a body (frame='body')",
        )
    ]


def fast_flight(model, q, qd):
    """All bodies moving much faster than against each other."""
    if not model.body_count or not np.any(qd):
        return []
    X_0, v = base_velocities(model, q, qd)
    v = np.array([at.linear + np.cross(at.angular, X.r) for X, at in zip(X_0, v, strict=True)][1:])
    mean = float(np.linalg.norm(v.mean(axis=0)))
    relative = float(np.max(np.linalg.norm(v - v.mean(axis=0), axis=-1), initial=0.0))
    if mean < FAST * max(relative, 1e-3):
        return []
    return [
        Cause(
            f"all bodies fly at about {mean:.3g} m/s, and at {relative:.3g} m/s against each other",
            "describe the motion in a frame that flies with them",
        )
    ]


def inertia_ratios(model):
    """A heavy body behind a light one: the heavy one decides, and the light one drowns in it."""
    mass = [float(I.mass) if I is not None else 0.0 for I in model.inertia]
    pairs = [(mass[i], mass[p], i, p) for i, p in enumerate(model.parent) if i and p]
    worst = [(m / M, i, p) for m, M, i, p in pairs if M > 0 and m / M > UNLIKE]
    names = model.body_names
    return [
        Cause(
            f"body {names[i]!r} is {ratio:.3g} times as heavy as {names[p]!r}, which carries it",
            "join bodies that are too light to matter to their neighbours (edit.lump_fixed)",
        )
        for ratio, i, p in sorted(worst, reverse=True)[:3]
    ]


def singular_variables(model, q):
    """Joints close to where their position variables are singular: gimbal lock, a full turn."""
    found = []
    for name, joint, at in zip(model.joint_names, model.joint[1:], model.q_slice[1:], strict=True):
        distance = abs(float(joint.singularity(q[at])))
        if distance < SINGULAR:
            found.append(
                Cause(
                    f"the variables of joint {name!r} ({type(joint).__name__}) are close to "
                    f"singular: the determinant of its motion subspace is {distance:.2g} of what "
                    f"it can be",
                    "rates of the variables become as large as this is small; take other variables "
                    "for the same state (joint.reparameterize), or a Spherical joint",
                )
            )
    return found


def unexplained(digits):
    """Digits that forward dynamics lost for another reason."""
    return Cause(
        f"rounding takes {digits:.1f} decimal digits from forward dynamics",
        "inertias of the joints differ widely: look at units, and at bodies that hardly matter",
    )


def singular_motion(error):
    """No forward dynamics at all at this state."""
    return Cause(str(error), "no accelerations can be computed at this state")


def sensitive_chain(model, q, condition):
    """Accelerations that depend on small differences of forces.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        condition: scaled condition number of the inertia matrix.
    """
    if condition < SENSITIVE:
        return []
    H = joint_space_inertia(model, q)
    if not np.all(np.diagonal(H) > 0):  # then nothing moves as it should, see ``singular_motion``
        return []
    d = np.sqrt(np.diagonal(H))
    _, shapes = np.linalg.eigh(H / np.outer(d, d))
    joint = model.joint_names[_owner(model, int(np.argmax(np.abs(shapes[:, 0] / d)))) - 1]
    depth = max(len(s) for s in model.support)
    return [
        Cause(
            f"{depth} bodies in line give the inertia matrix the condition number {condition:.3g}, "
            f"felt most at joint {joint!r}",
            "errors of forces may grow by as much in accelerations; a spanning tree of less depth, "
            "or armature that the real joints have, lowers it",
        )
    ]


def _owner(model, k):
    return next(i for i, at in enumerate(model.v_slice) if at.start <= k < at.stop)
