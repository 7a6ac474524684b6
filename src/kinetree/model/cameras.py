"""Cameras: parts of a model that ``kinetree.render`` takes pictures with."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError
from kinetree.model.names import number_of
from kinetree.model.parts import FrozenPart
from kinetree.spatial import Plucker
from kinetree.spelling import explains

MOST_PIXELS = 2**26
"""Of one picture; more is a mistake."""


@dataclass(frozen=True, eq=False)
class Camera(FrozenPart):
    """A camera on a frame: it looks along its -z axis, x is to the right in its picture, y upwards.

    Attributes:
        name: unique name, among the cameras.
        of: name of the frame or body that carries it; empty for the base.
        placement: from the coordinates of that frame to those of the camera.
        angle: of view, from the bottom to the top of the picture [rad].
        size: columns and rows of the picture.
        near: depth of what is nearest [m]; what is nearer is not seen.
    """

    name: str = "camera"
    of: str = ""
    placement: Plucker = field(default_factory=Plucker.identity)
    angle: float = np.pi / 4
    size: tuple[int, int] = (320, 240)
    near: float = 0.01

    def rename(self, name: Callable[[str], str]) -> "Camera":
        """Copy of the camera with the function ``name`` applied to every name in it."""
        named = {k: name(getattr(self, k)) for k in ("name", "of") if getattr(self, k)}
        return replace(self, **named)


@explains
def camera(
    position: ArrayLike = (0.0, 0.0, 0.0),
    target: ArrayLike = (1.0, 0.0, 0.0),
    *,
    name: str = "camera",
    of: str = "",
    up: ArrayLike = (0.0, 0.0, 1.0),
    angle: float = np.pi / 4,
    size: tuple[int, int] = (320, 240),
    near: float = 0.01,
) -> Camera:
    """Camera that looks from ``position`` to ``target``, in the coordinates of its body.

    Args:
        position: of the eye [m], (3,).
        target: a point in the middle of the picture [m], (3,).
        name: of the camera.
        of: name of the frame or body that carries it; empty for the base.
        up: what is upwards in the picture, (3,).
        angle: of view, from the bottom to the top of the picture [rad].
        size: columns and rows of the picture.
        near: depth of what is nearest [m].
    """
    eye, middle, above = (np.asarray(x, dtype=float) for x in (position, target, up))
    for what, x in (("position", eye), ("target", middle), ("up", above)):
        if x.shape != (3,) or not np.all(np.isfinite(x)):
            raise ModelError(f"{what} of camera {name!r} must be three numbers, got {x!r}")
    back = eye - middle
    right = np.cross(above, back)
    if not np.linalg.norm(right) > 1e-9 * np.linalg.norm(above) * np.linalg.norm(back):
        raise ModelError(
            f"camera {name!r} must look from its position to another point, and not along up; got "
            f"position {eye.tolist()}, target {middle.tolist()} and up {above.tolist()}"
        )
    z, x = back / np.linalg.norm(back), right / np.linalg.norm(right)
    placement = Plucker(np.array([x, np.cross(z, x), z]), eye)
    return Camera(name, of, placement, angle, size, near)


def check_cameras(model):
    """Raise ModelError for a camera on an unknown body or frame, or with a wrong picture size."""
    known = [*model.frame_names, *model.body_names]
    for c in model.cameras:
        check_camera(c)
        if c.of:
            number_of(c.of, known, f"what carries camera {c.name!r}", "model")


def check_camera(c):
    """Raise ModelError unless a camera's angle and picture size are valid."""
    what = f"camera {c.name!r}"
    size = tuple(c.size)
    whole = len(size) == 2 and all(isinstance(n, (int, np.integer)) and n > 0 for n in size)
    if not whole or int(size[0]) * int(size[1]) > MOST_PIXELS:
        raise ModelError(
            f"size of {what} must be columns and rows, positive integers with at most "
            f"{MOST_PIXELS} pixels, got {c.size!r}"
        )
    if not 0 < c.angle < np.pi:
        raise ModelError(
            f"angle of {what} must be an angle of view between 0 and pi [rad], got {c.angle!r}"
        )
    if not 0 < c.near < np.inf:
        raise ModelError(f"near of {what} must be a positive length [m], got {c.near!r}")


def for_constructor(fields) -> dict:
    """Model fields as the constructor takes them: cameras with sensors, fluids with weights."""
    found = dict(fields)
    for kind, among in (("cameras", "sensors"), ("fluid_forces", "gravity_compensation")):
        found[among] = (*found.get(among, ()), *found.pop(kind, ()))
    return found


def cameras_among(cameras, parts) -> tuple:
    """Cameras whose body or frame exists among the fields of a model."""
    if not cameras:
        return ()
    names = {f.name for f in parts["frames"]} | {b.name for b in parts["bodies"]}
    names |= {"", parts["base_name"]}
    return tuple(c for c in cameras if c.of in names)


def mounted_cameras(other, prefix, on, at) -> list[Camera]:
    """Cameras of a model mounted on another, with a prefix to their names.

    Args:
        other: the model.
        prefix: of its names.
        on: name of the frame that carries its base.
        at: from that frame to the base.
    """
    found = []
    for c in other.cameras:
        new = c.rename(lambda name: prefix + name)
        if c.of in ("", other.base_name):
            new = replace(new, of=on, placement=c.placement @ at)
        found.append(new)
    return found
