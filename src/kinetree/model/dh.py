"""Denavit–Hartenberg parameters: tables to models — RBDA §4.3, Figure 4.8.

``modified``, the default, is the convention of the book, the Springer Handbook and Craig: ``a_i``
and ``alpha_i`` belong to ``x_{i-1}``, and frame ``i`` sits on the axis of joint ``i``.
``standard``, the older one, has them belong to ``x_i``: frame ``i`` sits on the axis of joint
``i + 1``. ``dh_extraction`` finds the parameters of given axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, names_itself
from kinetree.joints import Cylindrical, Helical, Prismatic, Revolute
from kinetree.model.builder import ModelBuilder
from kinetree.model.model import STANDARD_GRAVITY, Model
from kinetree.model.parts import Limits, as_placement
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.axial_screw import dh_step, scrx, scrz
from kinetree.spelling import explains

if TYPE_CHECKING:
    from kinetree.joints.base import AbstractJoint


_KINDS: dict[str, Any] = {
    kind.spelling: kind for kind in (Revolute, Prismatic, Cylindrical, Helical)
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
    def joint(self) -> "AbstractJoint":
        """Joint about or along the z axis, by the row's kind."""
        return Helical("z", pitch=self.pitch) if self.kind == "helical" else _KINDS[self.kind]("z")

    @property
    def along_x(self) -> Plucker:
        """Screw transform by ``alpha`` about and ``a`` along x."""
        return scrx(self.alpha, self.a).to_plucker()

    @property
    def along_z(self) -> Plucker:
        """Screw transform by the constant ``theta`` about and ``d`` along z."""
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
        """Number of parameters, ``4n + 6``, joint variables and tool included."""
        return len(self.base) + 4 * len(self.rows) + len(self.tool)

    @property
    def variable_count(self) -> int:
        """Number of parameters that are joint variables: at least one for each joint."""
        return sum(row.joint.nv for row in self.rows)

    def to_model(self, name: str = "arm", **options: Any) -> Model:
        """Model of the arm."""
        return from_dh(self.rows, base=self.base, tool=self.tool, name=name, **options)


@explains
def from_dh(
    rows: Sequence,
    *,
    convention: str = "modified",
    base: ArrayLike | Plucker = (0, 0),
    tool: ArrayLike | Plucker = (0, 0, 0, 0),
    name: str = "arm",
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> Model:
    """Model of a serial chain from a table of Denavit–Hartenberg parameters.

    Body frames lie on the joint axes. In the modified convention they are those of the table; the
    standard convention adds its frames as ``dh1`` … ``dhn``. The end-effector frame is ``tool``.

    Args:
        rows: ``DHRow`` objects, or tuples ``(a, alpha, d, theta)`` for revolute joints.
        convention: ``"modified"`` or ``"standard"``.
        base: ``(theta_0, d_0)``, or the place of frame 0 in the base frame: pose (4, 4) or
            ``Plucker``.
        tool: ``(a, alpha, d, theta)``, or the place of the tool frame in the last frame: pose
            (4, 4) or ``Plucker``.
        name: of the model.
        gravity: uniform gravitational acceleration [m/s²] in base coordinates, (3,).
    """
    if convention not in ("modified", "standard"):
        raise ModelError(f"DH convention must be 'modified' or 'standard', got {convention!r}")
    rows = [_as_row(row, i) for i, row in enumerate(rows, start=1)]
    modified = convention == "modified"
    builder = ModelBuilder(name, gravity=gravity)
    on, X_T = None, _end("base (theta_0, d_0)", base, 2, scrz)
    step = _end("tool (a, alpha, d, theta)", tool, 4, dh_step)
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
    return builder.frame("tool", on=on, at=step @ X_T).build()


def _end(what, given, size, of_numbers):
    """Transform at an end of the chain, from its parameters or a given placement."""
    if isinstance(given, Plucker) or np.shape(given) == (4, 4):
        return as_placement(given)
    if np.shape(given) != (size,):
        raise ModelError(
            f"DH {what} must be {size} numbers or a Plucker or 4x4 pose, got {given!r}"
        )
    return of_numbers(*given).to_plucker()


def _as_row(row, i):
    """Row ``i`` of a Denavit–Hartenberg table as a ``DHRow``."""
    if isinstance(row, DHRow):
        return row
    if np.shape(row) != (4,):
        raise ModelError(f"DH row {i} must be a DHRow or (a, alpha, d, theta), got {row!r}")
    return DHRow(*row)


# --- Denavit–Hartenberg parameters of given joint axes — RBDA §4.3, rules 1–4 --------------------
# Works on floats: whether two axes are parallel, or meet, is a decision with a tolerance.


def dh_from_axes(
    axes: Sequence,
    *,
    tool: ArrayLike | Plucker | None = None,
    kinds: Sequence[str] | None = None,
    pitches: Sequence[float] | None = None,
    tolerance: float = 1e-9,
) -> DHTable:
    """Denavit–Hartenberg table for given joint axes in the zero configuration.

    Where the rules leave a choice: the common perpendicular of parallel axes is the one that meets
    the one before it, that of intersecting axes turns less than a right angle from it, and a
    prismatic axis is moved so that it meets the axis before it.

    Args:
        axes: a point (3,) and a direction (3,) for each joint, in base coordinates.
        tool: place of the end-effector frame in the base, pose (4, 4) or ``Plucker``; by
            default that of the last link.
        kinds: ``"revolute"`` and so on for each joint; all revolute by default.
        pitches: pitch of each joint [m/rad], for helical ones.
        tolerance: below which sine [rad] axes are parallel, and below which distance [m] they meet.
    """
    n = len(axes)
    kinds = ["revolute"] * n if kinds is None else list(kinds)
    pitches = [0.0] * n if pitches is None else list(pitches)
    points = [np.zeros(3), *(np.asarray(p, dtype=float) for p, _ in axes)]
    z = [np.array([0.0, 0.0, 1.0]), *(_unit(direction) for _, direction in axes)]
    if tool is not None:
        tool = as_placement(tool)
        points.append(np.asarray(tool.r, dtype=float))
        z.append(np.asarray(tool.E[2], dtype=float))

    # o[i]: where x_i leaves z_i. foot: where the perpendicular before it arrived on z_i.
    x, foot = np.array([1.0, 0.0, 0.0]), points[0]
    steps_x, steps_z = [], []
    for i in range(len(z) - 1):
        if i < n and kinds[i] == "prismatic":
            points[i + 1] = foot
        axis, next_axis = (points[i], z[i]), (points[i + 1], z[i + 1])
        o, x_new, arrival = _perpendicular(axis, next_axis, x, foot, tolerance)
        steps_z.append((_angle(x, x_new, z[i]), (o - foot) @ z[i]))
        steps_x.append(((arrival - o) @ x_new, _angle(z[i], z[i + 1], x_new)))
        x, foot = x_new, arrival
    if tool is None:  # the last link takes its x axis from the one before
        steps_z.append((0.0, 0.0))
        steps_x.append((0.0, 0.0))
        steps_z.append((0.0, 0.0))
    else:
        steps_z.append((_angle(x, tool.E[0], z[-1]), (points[-1] - foot) @ z[-1]))

    rows = tuple(
        DHRow(a, alpha, d, theta, kind, pitch)
        for (a, alpha), (theta, d), kind, pitch in zip(
            steps_x[:n], steps_z[1 : n + 1], kinds, pitches, strict=True
        )
    )
    (theta, d), (a, alpha) = steps_z[n + 1], steps_x[n]
    return DHTable(rows, steps_z[0], (a, alpha, d, theta))


@names_itself
def dh_from_model(model: Model, *, tool: str | None = None, tolerance: float = 1e-9) -> DHTable:
    """Denavit–Hartenberg table of an unbranched model; inertias are left out.

    A loop that closes such a chain is left out, too: the table is that of the spanning tree.

    Args:
        model: a chain of revolute, prismatic, cylindrical and helical joints.
        tool: name of the end-effector frame.
        tolerance: see ``dh_from_axes``.
    """
    X, axes, kinds, pitches = [Plucker.identity()], [], [], []
    for i, (body, name) in enumerate(zip(model.bodies, model.joint_names, strict=True), start=1):
        joint: Any = body.joint
        if joint.spelling not in _KINDS or body.parent != i - 1:
            raise ModelError(
                f"DH parameters need an unbranched chain of joints with an axis; joint {name!r} "
                f"is {type(joint).__name__} on body {model.body_names[body.parent]!r}"
            )
        X.append(body.placement @ X[body.parent])
        axes.append((X[i].r, X[i].E.T @ np.array(joint.axis)))
        kinds.append(joint.spelling)
        pitches.append(getattr(joint, "pitch", 0.0))
    end = None
    if tool is not None:
        frame = model.frame(tool)
        end = frame.placement @ X[frame.body]
    return dh_from_axes(axes, tool=end, kinds=kinds, pitches=pitches, tolerance=tolerance)


def _perpendicular(axis, next_axis, x, foot, tolerance):
    """Common perpendicular of two axes: start point, direction and end point."""
    (p, z), (p_next, z_next) = axis, next_axis
    normal = np.cross(z, z_next)
    if np.linalg.norm(normal) < tolerance:  # parallel: through the foot of the one before
        gap = p_next - foot
        gap = gap - (gap @ z) * z
        distance = np.linalg.norm(gap)
        return foot, (gap / distance if distance > tolerance else x), foot + gap
    s, t = np.linalg.lstsq(np.column_stack([z, -z_next]), p_next - p, rcond=None)[0]
    o, arrival = p + s * z, p_next + t * z_next
    distance = np.linalg.norm(arrival - o)
    if distance > tolerance:
        return o, (arrival - o) / distance, arrival
    direction = normal / np.linalg.norm(normal)
    return o, (direction if direction @ x >= 0 else -direction), arrival


def _angle(a, b, about):
    """Signed angle [rad] from one vector to another about an axis."""
    return float(np.arctan2(np.cross(a, b) @ about, a @ b))


def _unit(direction):
    """Unit vector along a direction; an error for the zero vector."""
    v = np.asarray(direction, dtype=float)
    size = np.linalg.norm(v)
    if v.shape != (3,) or not size > 0:
        raise ModelError(
            f"an axis needs a direction of three numbers, not all zero, got {direction!r}"
        )
    return v / size
