"""How one frame is seen from another: coordinates to put its motion in — RBDA §2.8, §4.2.

Six coordinates of a frame's velocity, angular first, can mean three things; ``reference`` says
which, and no function mixes them (6-D guide 2, "Jacobians"):

- ``"world"``: spatial velocity in base coordinates. Its linear part is the velocity of the point
  of the body that passes through the origin of the *base*.
- ``"body"``: spatial velocity in the frame's own coordinates.
- ``"aligned"``: angular velocity, and velocity of the frame's origin, along the axes of the base:
  the textbook geometric Jacobian.

A ``point`` (3,) [m], given in frame coordinates, takes the place of the frame's origin in the
latter two. An *observer*, another frame, takes the place of the base in all three: what is computed
is what somebody sees who rides on it. Only joints between the two frames matter then.
"""

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.spatial import Motion, Plucker, xlt
from kinetree.spatial.vector3 import as_vector3

__all__ = ["Sighting"]


class Sighting:
    """A frame, who looks at it, and the coordinates that the motion is put in.

    Attributes:
        root: the nearest body that carries both frames; it counts as at rest.
        near: bodies from there to the frame, parents first.
        far: bodies from there to the observer, parents first.
    """

    def __init__(self, model, frame, reference="world", point=None, observer=None):
        if reference not in ("world", "body", "aligned"):
            raise UnknownNameError(
                f"reference must be 'world', 'body' or 'aligned', got {reference!r}"
            )
        if point is not None and reference == "world":
            raise ShapeError(
                "velocities in world coordinates do not depend on the point; leave it out, or use "
                "reference 'aligned' for the velocity of the point"
            )
        self.model, self.frame, self.reference, self.observer = model, frame, reference, observer
        self.placement = frame.placement
        if point is not None:
            self.placement = xlt(as_vector3(point, "the point")) @ frame.placement
        ours, theirs = model.support[frame.body], model.support[observer.body] if observer else ()
        shared = [i for i in ours if i in theirs]
        self.root = shared[-1] if shared else 0
        self.near = tuple(i for i in ours if i not in shared)
        self.far = tuple(i for i in theirs if i not in shared)

    @property
    def bodies(self):
        """All bodies that move one frame against the other, parents first."""
        return (*self.near, *self.far)

    def signs(self):
        """Of every such body, whether its joint moves the frame (+1) or the observer (-1)."""
        return dict.fromkeys(self.near, 1) | dict.fromkeys(self.far, -1)

    def carriers(self, X):
        """For every body, the map of motions from its coordinates to the reference coordinates.

        Args:
            X: transforms from parent to body, for ``bodies``.
        """
        if self.reference == "body":
            up, down = self._transforms(X, self.placement, self.near, self.far)
        else:
            up, down = self._from_observer(X)
        if self.reference == "aligned":
            origin = self._seen(up, down).r
            up = {i: xlt(origin) @ X_i for i, X_i in up.items()}
            down = {i: Plucker(X_i.E, X_i.r - origin) for i, X_i in down.items()}
        carry = {i: X_i.inv_apply for i, X_i in down.items()}
        return carry | {i: X_i.apply for i, X_i in up.items()}

    def transform(self, X):
        """From observer to frame coordinates."""
        return self._seen(*self._from_observer(X))

    def coordinate_velocity(self, carry, v):
        """Velocity of the reference coordinates when the bodies have velocities ``v``."""
        if self.reference == "body":
            return carry[self.frame.body](v[self.frame.body])
        turning = (
            Motion.zero()
            if self.observer is None
            else carry[self.observer.body](v[self.observer.body])
        )
        if self.reference == "world":
            return turning
        return Motion(turning.angular, carry[self.frame.body](v[self.frame.body]).linear)

    def _from_observer(self, X):
        placement = Plucker.identity() if self.observer is None else self.observer.placement
        return self._transforms(X, placement, self.far, self.near)

    def _seen(self, up, down):
        b = self.frame.body
        return self.placement @ (down[b] if b in down else up[b].inverse())

    def _transforms(self, X, placement, here, there):
        """From bodies on the way up to the coordinates of one end; from these to the others."""
        up, C_X_i = {}, placement
        for i in reversed(here):
            up[i] = C_X_i
            C_X_i = C_X_i @ X[i]
        down = {self.root: C_X_i.inverse()}
        for i in there:
            down[i] = X[i] @ down[self.model.parent[i]]
        return up, down
