"""Points and angles of loops that move in a plane, whatever plane that is."""

import numpy as np

from kinetree.errors import LoopError
from kinetree.spatial.ops import atan2, cos, sin

__all__ = ["Plane", "direction_angle"]


class Plane:
    """The plane perpendicular to parallel hinges, as seen from the root of a loop at q = 0.

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
        """1 or -1: which way a hinge turns."""
        return self.signs[hinge]

    def point(self, joint):
        """Where a joint on the root is, (2,)."""
        return self.basis @ np.asarray(self.model.tree_transform[joint].r, float)

    def place(self, joint):
        """Where a joint is on its parent, in coordinates of that, (3,)."""
        return np.asarray(self.model.tree_transform[joint].r, float)

    def along(self, joint, vector):
        """A vector fixed to the body of a joint, at q = 0, (2,)."""
        return self.basis @ (self._rotation(joint).T @ np.asarray(vector, float))

    def axis(self, slide):
        """The direction of a slide at q = 0, (2,)."""
        return self.along(slide, self.model.joint[slide].axis)

    def turned(self, vector, hinge, q):
        """A vector of the body of a hinge on the root, where that stands now."""
        angle = self.signs[hinge] * q[self.model.q_slice[hinge]][0]
        c, s = cos(angle), sin(angle)
        return np.array([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]])

    def _rotation(self, joint):
        """From root to body coordinates at q = 0."""
        E = np.eye(3)
        while joint != self.root:
            E = E @ np.asarray(self.model.tree_transform[joint].E, float)
            joint = self.model.parent[joint]
        return E


def direction_angle(a, b):
    """The angle from one direction to another in the plane, within half a turn."""
    return atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1])
