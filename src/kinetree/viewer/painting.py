"""Images and films of a scene: its parts and arrows, the ground, and the point of view."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import KinetreeError, UnknownNameError, need
from kinetree.files import replacing
from kinetree.rendering.renderer import (
    GROUND,
    LINES,
    SMOOTH,
    Ground,
    Renderer,
    Sky,
    SurfacePiece,
    Viewpoint,
)
from kinetree.viewer.scenes.description import LAYERS, SHOWN
from kinetree.viewer.scenes.places import (
    PointOfView,
    arrow_poses,
    at_time,
    between,
    framing,
    rotations,
    shaft_and_head,
)

_SUN = np.array([0.42, 0.62, 0.66])  # to the right, upwards, towards the eye
_SHINE = 0.35  # of arrows inside a body, through it
_INSIDE = 0.3  # opacity of bodies while something inside them is shown


class Painter:
    """Draws a scene, any number of times.

    Args:
        scene: what to draw.
        size: columns and rows of the images.
        layers: names of those to draw; by default bodies, ghost, contacts and loops.
        camera: from where; by default everything is in view.
        smoothing: samples along each side of a pixel.
        follow: let the camera keep up with the centre of mass; by default where it goes away.
    """

    def __init__(
        self, scene, size=(960, 720), *, layers=SHOWN, camera=None, smoothing=SMOOTH, follow=None
    ):
        self.scene, self.size, self.smoothing = scene, size, smoothing
        self.follow = scene.goes_away if follow is None else follow
        self.camera = framing(scene) if camera is None else camera
        self.sun = _SUN @ self.camera.axes()
        see_through = _INSIDE if {"inertias", "center"} & set(layers) else 1.0
        opacity = {p: p.opacity * (see_through if p.layer == "bodies" else 1) for p in scene.parts}
        chosen = [p for p in scene.parts if p.layer in layers]
        self.arrows = [a for a in scene.arrows if a.layer in layers]
        pieces = [
            SurfacePiece(p.surface, p.node, p.color, opacity[p], _casts_shadow(p)) for p in chosen
        ]
        pointing = self._arrow_pieces(len(scene.nodes))
        shining = [p._replace(opacity=_SHINE, shines=True) for p in pointing]
        self.renderer = Renderer(
            [
                *(p for p in pieces if p.opacity >= 1),
                *pointing,
                *shining,
                *(p for p in pieces if p.opacity < 1),
            ]
        )

    def image(self, t=0.0):
        """Image of the scene at time ``t`` [s], (rows, columns, 3) of bytes."""
        positions, turns = between(self.scene, t)
        camera = self.camera
        if self.follow:
            at = self.scene.center
            camera = camera.shift(positions[at] - self.scene.positions[0, at])
        width, height = self.size
        pixel = 2 * camera.half_height(width / height) / height
        view = Viewpoint(camera.position, camera.axes(), self.size, pixel)
        poses = np.concatenate([rotations(turns), positions[:, :, None]], axis=2)
        poses = np.concatenate([poses, *self._arrow_poses(t)]).reshape(-1, 12)
        sky = Sky(self.sun, np.asarray(self.scene.up, dtype=float))
        return self.renderer.paint(poses, view, sky, self._ground(camera), self.smoothing)

    def _arrow_pieces(self, node):
        """Surface pieces of all arrows' shafts and heads, each on its own node."""
        shaft, head = shaft_and_head()
        pieces = []
        for arrows in self.arrows:
            for _ in range(arrows.origins.shape[1]):
                pieces.append(SurfacePiece(shaft, node, arrows.color, casts=False))
                pieces.append(SurfacePiece(head, node + 1, arrows.color, casts=False))
                node += 2
        return pieces

    def _arrow_poses(self, t):
        """Poses (n, 3, 4) of all arrows' shafts and heads at time ``t``."""
        k, s = at_time(self.scene, t)
        k = min(k + (s > 0.5), len(self.scene.times) - 1)
        return [arrow_poses(arrows, k, self.scene.size) for arrows in self.arrows]

    def _ground(self, camera):
        """``Ground`` below the scene, with lines fading around the camera's target."""
        scene, up = self.scene, np.asarray(self.scene.up, dtype=float)
        a = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
        a = a / np.linalg.norm(a)
        return Ground(
            drawn=True,
            normal=up,
            color=GROUND,
            lines=LINES,
            height=scene.floor,
            along=np.stack([a, np.cross(up, a)]),
            step=scene.grid_step,
            reach=3.0 * scene.size,
            middle=camera.target - (camera.target @ up - scene.floor) * up,
        )


def _casts_shadow(part):
    """Whether a part casts a shadow: opaque parts of bodies do."""
    return part.layer == "bodies" and part.opacity >= 1


FILMS = (".mp4", ".gif")
PICTURES = (".png", ".jpg")


@dataclass(frozen=True)
class PictureLook:
    """How a scene is drawn: the same in a picture and in all images of a film.

    Attributes:
        size: columns and rows; even numbers for ``.mp4``.
        show: names of the layers to draw.
        camera: from where.
        direction: from the mechanism to the eye, in place of ``camera``.
        zoom: how much closer.
    """

    size: tuple[int, int] = (960, 720)
    show: str | Sequence[str] = SHOWN
    camera: PointOfView | None = None
    direction: ArrayLike | None = None
    zoom: float = 1.0

    def painter(self, scene) -> Painter:
        """``Painter`` of a scene with this look."""
        camera = self.camera
        if camera is None:
            camera = framing(scene, self.direction, self.zoom)
        return Painter(scene, self.size, layers=check_layers(self.show), camera=camera)


def picture(scene, path=None, *, t=None, **look):
    """Picture of a scene, (rows, columns, 3) of bytes, also written to a file if given.

    Args:
        scene: what to draw.
        path: a ``.png`` or ``.jpg`` file.
        t: the time [s]; the beginning unless given.
        **look: the attributes of a ``PictureLook``.
    """
    if path is not None:
        _suffix(path, PICTURES)
    painter = PictureLook(**look).painter(scene)
    image = painter.image(scene.times[0] if t is None else t)
    if path is not None:
        write_picture(path, image)
    return image


def write_picture(path, image) -> Path:
    """Write an image, (rows, columns, 3) of bytes, to a file; returns the path."""
    imageio = need("imageio.v3", "writing pictures", "view")
    with replacing(path) as part:
        imageio.imwrite(part, image)
    return Path(path)


def film(scene, path, *, rate: float = 30, speed=1.0, progress=None, **look) -> Path:
    """Film of a scene as ``.mp4`` or ``.gif``, drawn without a browser; returns the path.

    Args:
        scene: what to draw.
        path: where to.
        rate: images a second.
        speed: how much faster than it was.
        progress: called with the time that is drawn [s].
        **look: the attributes of a ``PictureLook``.
    """
    painter = PictureLook(**look).painter(scene)
    dense = images_per_second(rate, speed)
    times = scene.times[0] + np.arange(int(scene.duration * dense + 1e-6) + 1) / dense

    def images():
        for t in times:
            yield painter.image(t)
            if progress is not None:
                progress(float(t - scene.times[0]))

    return write_film(path, images(), rate)


def images_per_second(rate, speed) -> float:
    """Images per second of motion for a film of this rate and speed."""
    if not (speed > 0 and rate > 0):
        raise KinetreeError(f"speed and rate of a film must be positive, got {speed} and {rate}")
    return rate / speed


def write_film(path, images, rate) -> Path:
    """Write images as a film; returns the path."""
    path = Path(path)
    kind = _suffix(path, FILMS)
    imageio = need("imageio.v2", "recording", "view")
    if kind == ".mp4":
        need("imageio_ffmpeg", "recording .mp4", "view")
        settings = {"fps": rate, "macro_block_size": 2, "quality": 7, "ffmpeg_log_level": "error"}
    else:
        settings = {"duration": 1000 / rate, "loop": 0}
    with replacing(path) as part:
        with imageio.get_writer(part, **settings) as writer:
            for image in images:
                writer.append_data(image)
        if kind == ".mp4":
            _require_whole_mp4(part)
    return path


def _require_whole_mp4(path):
    """Raise OSError if an MP4 file is incomplete.

    The file is a sequence of boxes, each with its length and its kind; the last one that an encoder
    writes describes all images.
    """
    kinds, place, size = [], 0, path.stat().st_size
    with open(path, "rb") as file:
        while place < size:
            file.seek(place)
            head = file.read(16)
            length, kinds = int.from_bytes(head[:4], "big"), [*kinds, head[4:8]]
            length = int.from_bytes(head[8:16], "big") if length == 1 else length
            if length < 8:
                break
            place += length
    if place != size or b"moov" not in kinds:
        raise OSError(f"the encoder stopped after {size} bytes; is the disk full?")


def check_layers(show):
    """Tuple of layer names; UnknownNameError for an unknown one."""
    show = (show,) if isinstance(show, str) else tuple(show)
    for name in show:
        if name not in LAYERS:
            raise UnknownNameError(f"there is no layer {name!r}; there are {', '.join(LAYERS)}")
    return show


def _suffix(path, known):
    """Suffix of a path; UnknownNameError if it is not a known format."""
    kind = Path(path).suffix.lower()
    if kind not in known:
        raise UnknownNameError(f"{path} must end in {' or '.join(known)}")
    return kind
