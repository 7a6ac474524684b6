"""Closed forms of loop-closure functions for mechanisms that have one — RBDA §8.11.

A rule solves one loop: it gives the variables of some joints as functions of others, and reads all
dimensions from the model. ``closure`` puts the rules of a mechanism together; the variables that
none of them determines are ``y``.

    closure(m, triangle(m, "rod_eye"))                          an excavator's arm
    closure(m, four_bar(m, "pin", branch=-1))                   the other assembly of a four-bar
    closure(m, *(leg(m, f"leg{i}_ball") for i in range(1, 7)))  a Stewart-Gough platform

Angles come out within half a turn.
"""

import numpy as np

from kinetree.arguments import guard_module
from kinetree.errors import LoopError
from kinetree.model import Model
from kinetree.spatial.ops import atan2, cos, sin, sqrt
from kinetree.textbook.closure_functions import Rule, closure, loop_chains

__all__ = ["Rule", "closure", "four_bar", "leg", "parallelogram", "triangle"]


def triangle(model: Model, loop: str) -> Rule:
    """Closure rule of a linear actuator between two pivots (RBDA Figure 8.3).

    The loop runs through three parallel hinges, of which the loop joint is one, and a slide whose
    line passes through two of them. The arm's angle gives the angle and the length of the actuator.
    """
    chains = loop_chains(model, loop, (("R", "RP"),))
    (arm,), (barrel, rod), ends = chains
    plane = HingePlane(model, loop, (arm, barrel))
    pivot, base, eye = plane.point(arm), plane.point(barrel), plane.along(arm, ends[0])
    slide, offset = (
        plane.axis(rod),
        plane.along(barrel, plane.place(rod)) + plane.along(rod, ends[1]),
    )
    across = slide[0] * offset[1] - slide[1] * offset[0]
    if abs(slide @ slide - 1) > 1e-9 or abs(across) > 1e-9:
        raise LoopError(
            f"loop {loop!r} of model {model.name!r} is not a triangle: the line of slide "
            f"{model.joint_names[rod - 1]!r} must pass through both of its pivots"
        )
    start = slide @ offset

    def reach(q):
        return pivot + plane.rotate(eye, arm, q) - base

    def solve(q):
        to = reach(q)
        length = sqrt(to[0] * to[0] + to[1] * to[1])
        return [plane.sign(barrel) * direction_angle(slide, to), length - start]

    return Rule((barrel, rod), solve, lambda q: [float(reach(q) @ reach(q))])


def four_bar(model: Model, loop: str, *, branch: int = 1) -> Rule:
    """Closure rule of a four-bar linkage on parallel hinges, by intersecting circles.

    Args:
        model: the mechanism.
        loop: name of the loop joint, the hinge between coupler and rocker.
        branch: 1 for the assembly in which the pin lies to the left of the line from the crank's
            end to the rocker's pivot, seen against the crank's axis; -1 for the other one.
    """
    if branch not in (1, -1):
        raise LoopError(f"branch must be 1 or -1, got {branch!r}")
    (rocker,), (crank, coupler), ends = loop_chains(model, loop, (("R", "RR"),))
    plane = HingePlane(model, loop, (crank, coupler, rocker))
    A, D = plane.point(crank), plane.point(rocker)
    b, d = plane.along(crank, plane.place(coupler)), plane.along(rocker, ends[0])
    c = plane.along(coupler, ends[1])
    r, s = c @ c, d @ d

    def diagonal(q):
        to = D - A - plane.rotate(b, crank, q)
        return to, to[0] * to[0] + to[1] * to[1]

    def solve(q):
        to, square = diagonal(q)
        along = (square + r - s) / (2 * square)
        side = branch * sqrt(r / square - along * along)
        arm = np.array([along * to[0] - side * to[1], along * to[1] + side * to[0]])
        return [
            plane.sign(coupler) * direction_angle(plane.rotate(c, crank, q), arm),
            plane.sign(rocker) * direction_angle(d, arm - to),
        ]

    def margins(q):
        square = float(diagonal(q)[1])
        longest, shortest = (sqrt(r) + sqrt(s)) ** 2, (sqrt(r) - sqrt(s)) ** 2
        return [longest - square, square - shortest, square]

    return Rule((coupler, rocker), solve, margins)


def parallelogram(model: Model, loop: str) -> Rule:
    """Closure rule of a four-bar with equal opposite sides, whose coupler does not rotate.

    Unlike ``four_bar`` it passes the positions in which all bars lie on one line, and stays a
    parallelogram there.
    """
    (rocker,), (crank, coupler), ends = loop_chains(model, loop, (("R", "RR"),))
    plane = HingePlane(model, loop, (crank, coupler, rocker))
    b, d = plane.along(crank, plane.place(coupler)), plane.along(rocker, ends[0])
    c, ground = plane.along(coupler, ends[1]), plane.point(rocker) - plane.point(crank)
    if max(np.abs(b - d).max(), np.abs(c - ground).max()) > 1e-9:
        raise LoopError(
            f"loop {loop!r} of model {model.name!r} is not a parallelogram at q = 0: its sides are "
            f"{b}, {c}, {d} and {ground}"
        )

    def solve(q):
        turn = plane.sign(crank) * q[model.q_slice[crank]][0]
        return [-plane.sign(coupler) * turn, plane.sign(rocker) * turn]

    return Rule((coupler, rocker), solve, lambda q: [])


def leg(model: Model, loop: str) -> Rule:
    """Closure rule of a platform's leg: universal joint, slide, and loop-closing ball joint.

    The line of the slide passes through the centres of both joints, and is perpendicular to the
    axes of the universal joint where that is at zero. The pose of the platform gives its angles and
    its length.
    """
    chain, (foot, slide), ends = loop_chains(model, loop, (("*", "UP"),))
    i, j = ("xyz".index(axis) for axis in model.joint[foot].axes)
    k, sign = 3 - i - j, 1 if (j - i) % 3 == 1 else -1
    X_T = model.tree_transform[slide]
    line = X_T.E.T @ np.array(model.joint[slide].axis, dtype=float)
    start = X_T.r + X_T.E.T @ ends[1]
    side = line[k]
    if abs(abs(side) - 1) > 1e-9 or np.abs(np.cross(line, start)).max() > 1e-9:
        raise LoopError(
            f"loop {loop!r} of model {model.name!r} is not a leg: the line of slide "
            f"{model.joint_names[slide - 1]!r} must pass through the centre of the universal joint "
            f"and through the ball, and stand on both axes of the former"
        )

    def target(q):
        return model.tree_transform[foot].E @ (
            _place_of(model, chain, q, ends[0]) - model.tree_transform[foot].r
        )

    def solve(q):
        t = side * target(q)
        flat = sqrt(t[j] * t[j] + t[k] * t[k])
        length = sqrt(t[i] * t[i] + flat * flat)
        return [atan2(-sign * t[j], t[k]), atan2(sign * t[i], flat), length - line @ start]

    def margins(q):
        t = target(q)
        return [float(t[j] * t[j] + t[k] * t[k])]

    return Rule((foot, slide), solve, margins)


def _place_of(model, chain, q, point):
    """Point of a chain's last body in coordinates of the first joint's parent."""
    for j in reversed(chain):
        X = model.joint[j].transform(q[model.q_slice[j]]) @ model.tree_transform[j]
        point = X.r + X.E.T @ point
    return point


# --- planar geometry -----------------------------------------------------------------------------


class HingePlane:
    """The plane perpendicular to parallel hinges, in coordinates of the root of a loop at q = 0.

    Args:
        model: the mechanism.
        loop: name of the loop joint, for messages.
        hinges: numbers of the revolute joints; the first is on the root of the loop, and its axis
            is the normal of the plane.
    """

    def __init__(self, model, loop, hinges):
        self.model, self.root = model, model.parent[hinges[0]]
        axes = {j: self._rotation(j).T @ np.array(model.joint[j].axis, float) for j in hinges}
        normal = axes[hinges[0]]
        self.signs = {j: float(np.round(axis @ normal, 9)) for j, axis in axes.items()}
        if any(abs(sign) != 1 for sign in self.signs.values()):
            names = ", ".join(repr(model.joint_names[j - 1]) for j in hinges)
            raise LoopError(
                f"loop {loop!r} of model {model.name!r} is not planar: the axes of joints {names} "
                f"are not parallel"
            )
        first = np.eye(3)[int(np.argmin(np.abs(normal)))]
        first = first - normal * (normal @ first)
        first = first / np.linalg.norm(first)
        self.basis = np.array([first, np.cross(normal, first)])

    def sign(self, hinge):
        """Rotation sense of a hinge about the plane's normal: 1 or -1."""
        return self.signs[hinge]

    def point(self, joint):
        """Position of a joint on the root body, in plane coordinates (2,)."""
        return self.basis @ np.asarray(self.model.tree_transform[joint].r, float)

    def place(self, joint):
        """Position of a joint on its parent body, in body coordinates (3,)."""
        return np.asarray(self.model.tree_transform[joint].r, float)

    def along(self, joint, vector):
        """Plane components (2,), at q = 0, of a vector fixed to a joint's body."""
        return self.basis @ (self._rotation(joint).T @ np.asarray(vector, float))

    def axis(self, slide):
        """Direction (2,) of a slide in the plane at q = 0."""
        return self.along(slide, self.model.joint[slide].axis)

    def rotate(self, vector, hinge, q):
        """Plane vector on a hinge's body, rotated by the hinge angle in ``q``."""
        angle = self.signs[hinge] * q[self.model.q_slice[hinge]][0]
        c, s = cos(angle), sin(angle)
        return np.array([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]])

    def _rotation(self, joint):
        """Rotation from root to body coordinates at q = 0, (3, 3)."""
        E = np.eye(3)
        while joint != self.root:
            E = E @ np.asarray(self.model.tree_transform[joint].E, float)
            joint = self.model.parent[joint]
        return E


def direction_angle(a, b):
    """Angle from direction ``a`` to ``b`` in the plane, from -π to π [rad]."""
    return atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1])


guard_module(__name__)
