"""Denavit–Hartenberg parameters: tables to models — RBDA §4.3, Figure 4.8.

``modified``, the default, is the convention of the book, the Springer Handbook and Craig: ``a_i``
and ``alpha_i`` belong to ``x_{i-1}``, and frame ``i`` sits on the axis of joint ``i``.
``standard``, the older one, has them belong to ``x_i``: frame ``i`` sits on the axis of joint
``i + 1``. ``dh_extraction`` finds the parameters of given axes.
"""

from dataclasses import dataclass, field

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints import Cylindrical, Helical, Prismatic, Revolute
from kinetree.model.builder import ModelBuilder
from kinetree.model.model import STANDARD_GRAVITY, Model
from kinetree.model.parts import Limits
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.axial_screw import dh_step, scrx, scrz

__all__ = ["DHRow", "DHTable", "from_dh"]

_KINDS = {
    "revolute": Revolute,
    "prismatic": Prismatic,
    "cylindrical": Cylindrical,
    "helical": Helical,
}


@dataclass(frozen=True)
class DHRow:
    """One joint and link of a table.

    Attributes:
        a: distance along x [m].
        alpha: angle about x [rad].
        d: distance along z [m]; what the variable of a prismatic joint adds to.
        theta: angle about z [rad]; what the variable of a revolute joint adds to.
        kind: ``"revolute"``, ``"prismatic"``, ``"cylindrical"`` or ``"helical"``.
        pitch: advance of a helical joint [m/rad].
        inertia: of the link, in coordinates of frame ``i`` of the convention; massless if None.
        name: of the link; ``link<i>`` if None.
        limits: bounds of the joint.
    """

    a: float = 0
    alpha: float = 0
    d: float = 0
    theta: float = 0
    kind: str = "revolute"
    pitch: float = 0.0
    inertia: Inertia | None = field(default=None, compare=False)
    name: str | None = None
    limits: Limits | None = None

    def __post_init__(self):
        if self.kind not in _KINDS:
            raise ModelError(f"DH joint kind must be one of {sorted(_KINDS)}, got {self.kind!r}")

    @property
    def joint(self):
        """The joint about the z axis."""
        return Helical("z", pitch=self.pitch) if self.kind == "helical" else _KINDS[self.kind]("z")

    @property
    def along_x(self) -> Plucker:
        """The step of ``alpha`` about and ``a`` along x."""
        return scrx(self.alpha, self.a).to_plucker()

    @property
    def along_z(self) -> Plucker:
        """The constant part of the step about and along z."""
        return scrz(self.theta, self.d).to_plucker()


@dataclass(frozen=True)
class DHTable:
    """A whole arm in the modified convention: ``4n + 6`` parameters for ``n`` joints.

    Attributes:
        rows: one for each joint.
        base: ``(theta_0, d_0)``, which put ``x_0`` into place on the z axis of the base frame.
        tool: ``(a, alpha, d, theta)`` of the end-effector frame.
    """

    rows: tuple[DHRow, ...]
    base: tuple = (0, 0)
    tool: tuple = (0, 0, 0, 0)

    @property
    def parameter_count(self) -> int:
        """``4n + 6``, joint variables included. Four of them serve the end-effector alone."""
        return len(self.base) + 4 * len(self.rows) + len(self.tool)

    @property
    def variable_count(self) -> int:
        """How many of the parameters are joint variables: at least one for each joint."""
        return sum(row.joint.nv for row in self.rows)

    def to_model(self, name="arm", **options) -> Model:
        """The arm as a model."""
        return from_dh(self.rows, base=self.base, tool=self.tool, name=name, **options)


def from_dh(
    rows,
    *,
    convention="modified",
    base=(0, 0),
    tool=(0, 0, 0, 0),
    name="arm",
    gravity=STANDARD_GRAVITY,
) -> Model:
    """A chain of links from a table of Denavit–Hartenberg parameters.

    Body frames lie on the joint axes. In the modified convention they are its frames; those of
    the standard one are there by the names ``dh1`` … ``dhn``. The end-effector frame is ``tool``.

    Args:
        rows: ``DHRow`` objects, or tuples ``(a, alpha, d, theta)`` for revolute joints.
        convention: ``"modified"`` or ``"standard"``.
        base: ``(theta_0, d_0)`` or a ``Plucker`` from the base frame to frame 0.
        tool: ``(a, alpha, d, theta)`` or a ``Plucker`` from the last frame to the tool frame.
        name: of the model.
        gravity: uniform gravitational acceleration [m/s²] in base coordinates, (3,).
    """
    if convention not in ("modified", "standard"):
        raise ModelError(f"DH convention must be 'modified' or 'standard', got {convention!r}")
    rows = [_as_row(row, i) for i, row in enumerate(rows, start=1)]
    modified = convention == "modified"
    builder = ModelBuilder(name, gravity=gravity)
    for what, given, size in (
        ("base (theta_0, d_0)", base, 2),
        ("tool (a, alpha, d, theta)", tool, 4),
    ):
        if not isinstance(given, Plucker) and np.shape(given) != (size,):
            raise ModelError(f"DH {what} must be {size} numbers or a Plucker, got {given!r}")
    on, X_T = None, base if isinstance(base, Plucker) else scrz(*base).to_plucker()
    for i, row in enumerate(rows, start=1):
        # From the body frame, which is on the joint axis, to the frame of the convention.
        to_frame = Plucker.identity() if modified else row.along_x
        X_T = row.along_z @ row.along_x @ X_T if modified else row.along_z @ X_T
        inertia = row.inertia and row.inertia.inverse_transformed(to_frame)
        link = f"link{i}" if row.name is None else row.name
        builder.body(link, on=on, joint=row.joint, at=X_T, inertia=inertia, limits=row.limits)
        if not modified:
            builder.frame(f"dh{i}", on=link, at=to_frame)
        on, X_T = link, to_frame
    step = tool if isinstance(tool, Plucker) else dh_step(*tool).to_plucker()
    return builder.frame("tool", on=on, at=step @ X_T).build()


def _as_row(row, i):
    if isinstance(row, DHRow):
        return row
    if np.shape(row) != (4,):
        raise ModelError(f"DH row {i} must be a DHRow or (a, alpha, d, theta), got {row!r}")
    return DHRow(*row)
