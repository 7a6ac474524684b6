"""Building a model, body by body."""

import numpy as np

from kinetree.errors import ModelError, UnknownNameError
from kinetree.joints import AbstractJoint, Fixed
from kinetree.model.model import STANDARD_GRAVITY, Model
from kinetree.model.parts import Body, Frame, Limits, Loop
from kinetree.spatial import Inertia, Plucker, xlt

__all__ = ["ModelBuilder"]


class ModelBuilder:
    """Collects bodies, frames and loops, then builds the model. Every call returns the builder.

        arm = (
            kt.ModelBuilder("arm")
            .body("upper", on="base", joint=kt.Revolute("y"), at=(0, 0, 0.4), inertia=...)
            .body("fore", on="upper", joint=kt.Revolute("y"), at=(0, 0, 0.3), inertia=...)
            .frame("tool", on="fore", at=(0, 0, 0.25))
            .build()
        )
    """

    def __init__(self, name="mechanism", *, gravity=STANDARD_GRAVITY, base_name="base"):
        self._name, self._gravity, self._base_name = name, gravity, base_name
        self._bodies: list[Body] = []
        self._frames: list[Frame] = []
        self._loops: list[Loop] = []

    def body(
        self,
        name: str,
        *,
        joint: AbstractJoint,
        on: str | None = None,
        at=None,
        inertia: Inertia | None = None,
        joint_name: str | None = None,
        limits: Limits | None = None,
    ):
        """Add a body that ``joint`` connects to the body ``on``.

        Args:
            name: unique name of the body.
            joint: the joint between the two; the body's frame is the far side of it.
            on: name of the parent body; the base by default.
            at: where the joint sits on the parent: a position (3,) [m] or a ``Plucker``.
            inertia: inertia in body coordinates; massless by default.
            joint_name: name of the joint; by default that of the body followed by ``_joint``.
            limits: bounds of the joint.
        """
        self._bodies.append(
            Body(
                name=name,
                parent=self._number(on, f"parent of body {name!r}"),
                joint=joint,
                placement=_placement(at),
                inertia=Inertia.zero() if inertia is None else inertia,
                joint_name=f"{name}_joint" if joint_name is None else joint_name,
                limits=limits,
            )
        )
        return self

    def frame(self, name: str, *, on: str | None = None, at=None):
        """Add a named frame, fixed to the body ``on`` at a position (3,) or ``Plucker``."""
        body = self._number(on, f"body of frame {name!r}")
        self._frames.append(Frame(name, body, _placement(at)))
        return self

    def loop(
        self, name: str, *, predecessor: str, successor: str, joint=None, at=None, successor_at=None
    ):
        """Close a loop with a joint between two bodies that are already there.

        Args:
            name: unique name, among the joints.
            predecessor: body on the near side, carrying the joint's predecessor frame at ``at``.
            successor: body on the far side, carrying the successor frame at ``successor_at``.
            joint: any joint; fixed by default.
            at: position (3,) or ``Plucker`` on the predecessor.
            successor_at: position (3,) or ``Plucker`` on the successor.
        """
        self._loops.append(
            Loop(
                name,
                self._number(predecessor, f"predecessor of loop {name!r}"),
                self._number(successor, f"successor of loop {name!r}"),
                Fixed() if joint is None else joint,
                _placement(at),
                _placement(successor_at),
            )
        )
        return self

    def build(self, *, strict: bool = True) -> Model:
        """The finished, validated model."""
        return Model(
            tuple(self._bodies),
            frames=tuple(self._frames),
            loops=tuple(self._loops),
            gravity=self._gravity,
            name=self._name,
            base_name=self._base_name,
            strict=strict,
        )

    def _number(self, name, role):
        names = [self._base_name, *(b.name for b in self._bodies)]
        if name is None:
            return 0
        if name not in names:
            raise UnknownNameError(f"{role} is {name!r}, which is not there yet; known: {names}")
        return names.index(name)


def _placement(at) -> Plucker:
    if at is None:
        return Plucker.identity()
    if isinstance(at, Plucker):
        return at
    if np.shape(at) != (3,):
        raise ModelError(
            f"'at' must be a position of 3 numbers or a Plücker transform, got {at!r}"
        )
    return xlt(np.asarray(at))
