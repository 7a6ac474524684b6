"""``kinetree.render``: what a camera of a model sees: colours, depths, shapes and bodies."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.device.callers import OnGpu, gpu_of
from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.errors import (
    ModelError,
    ModelWarning,
    ShapeError,
    UnknownNameError,
    calling,
    warn,
)
from kinetree.model import Model
from kinetree.model.arrays import as_configuration
from kinetree.model.cameras import Camera, check_camera
from kinetree.model.geometry import Plane
from kinetree.model.memo import remember
from kinetree.model.names import number_of
from kinetree.quantities import kinematics
from kinetree.rendering.bodies import drawn_pieces, round_number, shapes_seen
from kinetree.rendering.on_device import ManyPictures, draw_small
from kinetree.rendering.renderer import (
    GROUND,
    LINES,
    PLANE_SURFACE,
    Ground,
    Renderer,
    Sky,
    SurfacePiece,
    Viewpoint,
)
from kinetree.spelling import did_you_mean, explains, name_here

__all__ = ["render"]

KINDS = ("color", "depth", "shape", "body")
"""Kinds of images."""
_ELSEWHERE = {"distance": "depth", "image": "color", "rgb": "color", "segmentation": "body"}
"""What they are called elsewhere."""
_SMALL = 64 * 64  # pixels of pictures that are drawn all in one call
_HAZE = 60.0  # lengths of lines on the ground after which it fades


@explains
def render(
    model: Model,
    q: ArrayLike | None = None,
    camera: str | Camera | None = None,
    what: str | Sequence[str] = "color",
    *,
    collision: bool = False,
    shadows: bool = True,
) -> Array | dict[str, Array]:
    """Camera image of a model in one configuration or many: colour, depth or labels.

    - ``"color"``: bytes of red, green and blue, (..., rows, columns, 3), with shadows and smooth
      edges.
    - ``"depth"``: distance of what is seen from the plane of the eye, along the axis of the camera
      [m], (..., rows, columns), at the middles of the pixels; infinite where nothing is.
    - ``"shape"`` and ``"body"``: numbers of what is seen in ``model.geometry`` and
      ``model.body_names``, (..., rows, columns); -1 where nothing is.

    Solids and meshes are drawn as triangles, planes have no end. Of joint positions on a GPU, of
    CuPy or torch, depths, shapes and bodies are drawn there and stay there; colours are drawn on
    the CPU.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq); by default the neutral ones.
        camera: a ``Camera`` or the name of one of the model; by default its first one.
        what: a kind of images, or several.
        collision: draw the shapes that can touch instead of those to be seen.
        shadows: whether there are shadows in colours.

    Returns:
        An array for one kind, a dictionary of arrays for several.
    """
    several = not isinstance(what, str)
    kinds = tuple(what) if several else (what,)
    for kind in kinds:
        if kind not in KINDS:
            meant = name_here(str(kind), _ELSEWHERE) or kind
            raise UnknownNameError(
                f"a camera has no images of kind {kind!r}; {did_you_mean(meant, KINDS)}"
            )
    camera = chosen_camera(model, camera)
    stage = remember(model, ("render", bool(collision)), lambda: ShapeStage(model, collision))
    with calling("render"):
        gpu = None if "color" in kinds else gpu_of(q)
        if gpu is None:
            images = _on_cpu(stage, model.neutral() if q is None else q, camera, kinds, shadows)
        else:
            with OnGpu(gpu, q) as place:
                images = images_on(gpu, stage, place.take(q), camera, kinds)
                images = {kind: place.as_given(x) for kind, x in images.items()}
    return images if several else images[kinds[0]]


@on_host
def _on_cpu(stage, q, camera, kinds, shadows):
    """Images by kind on the CPU, for configurations (..., nq)."""
    model = stage.model
    q = as_configuration(model, q)
    batch = q.shape[:-1]
    poses = _poses(model, q.reshape(math.prod(batch), model.nq))
    found = stage.images(poses, camera, kinds, shadows)
    return {kind: x.reshape(*batch, *x.shape[1:]) for kind, x in found.items()}


def images_on(
    on: Any, stage: "ShapeStage", q: Array, camera: Camera, kinds: Sequence[str]
) -> dict[str, Array]:
    """Images by kind (no colours) on the device where ``q`` is.

    Args:
        on: ``Gpu`` or ``Processor``.
        stage: the shapes of a model.
        q: joint positions, (..., nq), float64.
        camera: what sees them.
        kinds: ``"depth"``, ``"shape"``, ``"body"``.
    """
    model, xp = stage.model, on.xp
    if q.ndim < 1 or q.shape[-1] != model.nq:
        raise ShapeError(f"q must have shape (..., {model.nq}), got {tuple(q.shape)}")
    batch = q.shape[:-1]
    poses = _poses(model, q.reshape(math.prod(batch), model.nq), xp)
    found = stage.measure_all(poses, camera, kinds, stage.many(on).measure, xp)
    return {kind: x.reshape(*batch, *x.shape[1:]) for kind, x in found.items()}


def chosen_camera(model, camera) -> Camera:
    """Camera of a model by its name, or its first one."""
    if isinstance(camera, Camera):
        check_camera(camera)
        return camera
    names = [c.name for c in model.cameras]
    if camera is None:
        if not names:
            raise ModelError(
                f"model {model.name!r} has no cameras: give one, such as "
                f"camera=kinetree.camera(position=(2, -2, 1), target=(0, 0, 0.5))"
            )
        return model.cameras[0]
    return model.cameras[number_of(camera, names, "camera", f"model {model.name!r}")]


def _poses(model, q, xp=np):
    """Poses of the base and all bodies, (n, NB + 1, 4, 4)."""
    poses = xp.tile(xp.eye(4), (len(q), model.body_count + 1, 1, 1))
    if model.body_count:
        poses[:, 1:] = kinematics.poses(model, q)
    return poses


class _Plain(NamedTuple):
    """A piece with the numbers of its shape and body."""

    piece: SurfacePiece
    shape: int
    body: int


class _GroundPlane(NamedTuple):
    """Numbers of the plane that is drawn as ground, as of ``Ground``."""

    origin: np.ndarray
    along: np.ndarray
    normal: np.ndarray
    height: float
    color: np.ndarray
    lines: np.ndarray
    step: float
    reach: float

    @classmethod
    def of(cls, piece):
        """``_GroundPlane`` with origin, axes and colours of a plane's piece."""
        origin, x, y = piece.surface.vertices
        along = np.array([x - origin, y - origin])
        normal, color = np.cross(*along), np.array(piece.color, dtype=float)
        height = float(normal @ origin)
        return cls(origin, along, normal, height, color, color * LINES / GROUND, *piece.grid)


class ShapeStage:
    """The shapes of a model, to be drawn in any configuration."""

    def __init__(self, model, collision):
        shapes = shapes_seen(model, collision=collision)
        number = {id(g): k for k, g in enumerate(model.geometry)}
        solid = [g for g in shapes if not isinstance(g.shape, Plane)]
        drawn, notices = drawn_pieces(model, solid)
        for notice in notices:
            warn(notice, ModelWarning)
        found = [
            _Plain(SurfacePiece(d.surface, d.body, d.color, d.opacity), number[id(d.shape)], d.body)
            for d in drawn
        ]
        sizes = [float(np.ptp(d.surface.vertices, axis=0).max()) for d in drawn if d.body]
        step = round_number(max([*sizes, 0.05]))
        planes = [g for g in shapes if isinstance(g.shape, Plane)]
        planes.sort(key=lambda g: g.body > 0)  # one that stands still comes first
        pieces = [_plane(g, (step, _HAZE * step)) for g in planes]
        ours = zip(pieces, planes, strict=True)
        found = [*(_Plain(piece, number[id(g)], g.body) for piece, g in ours), *found]
        self._plane = _GroundPlane.of(pieces[0]) if planes and not planes[0].body else None
        self.model = model
        self.renderer = Renderer([x.piece for x in found])
        self.numbers = {
            "shape": np.array([*(x.shape for x in found), -1]),
            "body": np.array([*(x.body for x in found), -1]),
        }
        # What is seen through has no depth; a plane that is, is drawn as a solid one.
        self.sky = _light(model)
        self._many: dict[Any, ManyPictures] = {}
        self._mount: Any = (None, 0, np.eye(4))  # of the last camera

    def eyes(self, poses: Array, camera: Camera, xp: Any = np) -> tuple[Array, Array]:
        """Positions (n, 3) and axes (n, 3, 3) of a camera in every configuration."""
        known, body, on = self._mount
        if known is not camera:
            frame = self.model.frame(camera.of or self.model.base_name)
            on = (frame.placement.to_pose() @ camera.placement.to_pose()).astype(float)
            self._mount, body = (camera, frame.body, on), frame.body
        pose = poses[:, body] @ xp.asarray(on)
        return pose[:, :3, 3], pose[:, :3, :3].swapaxes(1, 2)

    def many(self, on) -> ManyPictures:
        """``ManyPictures`` renderer for a device, made once."""
        key = type(on), getattr(on, "device", None)
        if key not in self._many:
            self._many[key] = ManyPictures(self.renderer, on)
        return self._many[key]

    def _behind(self, view):
        """Ground drawn behind everything: the first plane if seen from above, else None."""
        plane = self._plane
        if plane is None:
            return None
        above = plane.normal @ (view.eye - plane.origin)
        if not above > 0:
            return None
        return Ground(
            drawn=True,
            part=0,
            normal=plane.normal,
            color=plane.color,
            lines=plane.lines,
            height=plane.height,
            along=plane.along,
            step=plane.step,
            reach=plane.reach + 4 * above,
            middle=view.eye - above * plane.normal,
        )

    def measure_all(
        self, poses: Array, camera: Camera, kinds: Sequence[str], measure: Any, xp: Any = np
    ) -> dict[str, Array]:
        """Depth and label images of all configurations by one call of ``measure``."""
        eye, axes = self.eyes(poses, camera, xp)
        rows = xp.ascontiguousarray(poses[:, :, :3]).reshape(len(poses), -1, 12)
        eyes = xp.concatenate([eye, axes.reshape(-1, 9)], axis=1)
        view = _view(camera, np.zeros(3), np.eye(3))
        depth, part = measure(rows, eyes, view, {*kinds} != {"depth"})
        numbers = {kind: xp.asarray(x) for kind, x in self.numbers.items()}
        return {kind: depth if kind == "depth" else numbers[kind][part] for kind in kinds}

    def images(self, poses, camera, kinds, shadows):
        """Images by kind of every configuration, on all threads."""
        count, (width, height) = len(poses), map(int, camera.size)
        if count > 1 and width * height <= _SMALL and "color" not in kinds:
            return self.measure_all(poses, camera, kinds, partial(draw_small, self.renderer))
        shape = (count, height, width)
        found = {kind: np.empty(shape, dtype=np.int64) for kind in kinds}
        found |= {"color": np.empty((*shape, 3), dtype=np.uint8)} if "color" in found else {}
        found |= {"depth": np.empty(shape)} if "depth" in found else {}
        seen = zip(*self.eyes(poses, camera), strict=True)
        views = [_view(camera, eye, axes) for eye, axes in seen]
        sky = self.sky._replace(shadows=bool(shadows))
        rows = np.ascontiguousarray(poses[:, :, :3].reshape(count, -1, 12))

        def draw(k, most):
            if "color" in found:
                behind, out = self._behind(views[k]), found["color"][k]
                self.renderer.paint(rows[k], views[k], sky, behind, most=most, out=out)
            if {*found} - {"color"}:
                depth = found["depth"][k] if "depth" in found else None
                numbered = {*found} & {*self.numbers}
                _, part = self.renderer.measure(rows[k], views[k], most, depth, bool(numbered))
                for kind in numbered:
                    found[kind][k] = self.numbers[kind][part]

        workers = min(threads(), count)
        if workers < 2:
            for k in range(count):
                draw(k, None)
        else:
            on_threads(
                lambda first: [draw(k, 1) for k in range(first, count, workers)] and None, workers
            )
        return found


def _plane(g, grid):
    """Surface piece of a plane, with a grid of lines."""
    pose = g.placement.to_pose().astype(float)
    surface = PLANE_SURFACE.place(pose[:3, :3], pose[:3, 3])
    color = GROUND if g.color is None else g.color[:3]
    return SurfacePiece(surface, g.body, color, casts=False, grid=grid)


def _view(camera, eye, axes):
    """``Viewpoint`` of a camera at a position with given axes."""
    size = (int(camera.size[0]), int(camera.size[1]))
    pixel = 2 * np.tan(camera.angle / 2) / size[1]
    return Viewpoint(eye, axes, size, float(pixel), float(camera.near))


def _light(model):
    """Sun direction and up vector for drawing a model, from gravity."""
    gravity = np.asarray(model.gravity, dtype=float)
    length = np.linalg.norm(gravity)
    up = -gravity / length if length > 0 else np.array([0.0, 0.0, 1.0])
    a = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
    a = a / np.linalg.norm(a)
    return Sky(0.8 * up - 0.5 * a - 0.35 * np.cross(up, a), up)


guard_module(__name__)
