"""Images and films of a scene, drawn by NumPy: light, ground, translucent parts, depth buffer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import KinetreeError, UnknownNameError, need
from kinetree.files import replacing
from kinetree.viewer.scenes.description import LAYERS, SHOWN, Surface
from kinetree.viewer.scenes.places import Camera, arrow_pieces, at_time, between, framing, rotations
from kinetree.viewer.scenes.surfaces import normals

_SKY, _GROUND, _LINE = (
    np.array(c) for c in ((0.965, 0.972, 0.98), (0.90, 0.91, 0.925), (0.70, 0.72, 0.745))
)
_SUN = np.array([0.42, 0.62, 0.66])  # to the right, upwards, towards the eye
_BETWEEN = np.array([0.23, 0.34, 0.91])  # sun and eye
_SHINE = 0.35  # of arrows inside a body, through it


class Painter:
    """Draws a scene, any number of times.

    Args:
        scene: what to draw.
        size: columns and rows of the images.
        layers: names of those to draw; by default bodies, ghost, contacts and loops.
        camera: from where; by default everything is in view.
        smoothing: points looked at along each side of a pixel.
        follow: let the camera keep up with the centre of mass; by default where it goes away.
    """

    def __init__(
        self, scene, size=(960, 720), *, layers=SHOWN, camera=None, smoothing=2, follow=None
    ):
        self.scene, self.size, self.smoothing = scene, size, smoothing
        self.follow = scene.goes_away if follow is None else follow
        self.camera = framing(scene) if camera is None else camera
        see_through = 0.3 if {"inertias", "center"} & set(layers) else 1.0
        opacity = {p: p.opacity * (see_through if p.layer == "bodies" else 1) for p in scene.parts}
        chosen = [p for p in scene.parts if p.layer in layers]
        self.opaque = _Batch([p for p in chosen if opacity[p] >= 1])
        self.clear = [(opacity[p], _Batch([p])) for p in chosen if opacity[p] < 1]
        self.arrows = [a for a in scene.arrows if a.layer in layers]
        self._behind: Any = None

    def image(self, t=0.0):
        """The scene at the time ``t`` [s], as (rows, columns, 3) of bytes."""
        positions, turns = between(self.scene, t)
        R, s = rotations(turns), self.smoothing
        camera = self.camera
        if self.follow:
            at = self.scene.center
            camera = camera.moved(positions[at] - self.scene.positions[0, at])
        width, height = self.size[0] * s, self.size[1] * s
        view = _View(camera, width, height)
        color = self._backdrop(view)
        depth = np.full((height, width), np.inf)
        pointing = list(self._pointing(t))
        _paint(view, color, depth, [self.opaque.placed(positions, R), *pointing], 1.0)
        _paint(view, color, np.full_like(depth, np.inf), pointing, _SHINE)
        for opacity, batch in self.clear:
            _paint(view, color, depth, [batch.placed(positions, R)], opacity)
        small = sum(color[i::s, j::s] for i in range(s) for j in range(s)) / s**2
        return np.clip(np.round(255 * small), 0, 255).astype(np.uint8)

    def _pointing(self, t):
        k, s = at_time(self.scene, t)
        k = min(k + (s > 0.5), len(self.scene.times) - 1)
        for arrows in self.arrows:
            for vertices, faces in arrow_pieces(arrows, k, self.scene.size):
                yield vertices, faces, np.tile(arrows.color, (len(faces), 1)), None

    def _backdrop(self, view):
        """Sky, and a ground with lines that fade into it; the ground hides nothing."""
        if self._behind is None or self._behind[0] is not view.camera:
            self._behind = view.camera, self._ground(view).astype(np.float32)
        return self._behind[1].copy()

    def _ground(self, view):
        up, floor, step = np.asarray(self.scene.up), self.scene.floor, self.scene.grid_step
        rays = view.rays()
        fall = rays @ up
        with np.errstate(divide="ignore", invalid="ignore"):
            far = (floor - view.camera.position @ up) / fall
        hit = np.isfinite(far) & (far > 0)
        at = view.camera.position + np.where(hit, far, 0.0)[..., None] * rays
        a = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
        across = np.stack([a / np.linalg.norm(a), np.cross(up, a / np.linalg.norm(a))])
        flat = at @ across.T / step
        width = np.maximum(1.5 * view.pixel * np.where(hit, far, 1.0) / step, 1e-6)[..., None]
        slant = np.clip(-fall, 0.05, 1.0)[..., None]
        line = np.clip(1.2 - np.abs(flat - np.round(flat)) / (0.7 * width / slant), 0, 1).max(-1)
        middle = view.camera.target - (view.camera.target @ up - floor) * up
        away = np.linalg.norm(at - middle, axis=-1) / (3.0 * self.scene.size)
        fade = np.where(hit & (fall < 0), np.clip(1 - away, 0, 1) ** 1.5, 0.0)[..., None]
        ground = (1 - line[..., None]) * _GROUND + line[..., None] * _LINE
        return (1 - fade) * _SKY + fade * ground


class _Batch:
    """Parts as one set of triangles, with normals at their corners."""

    def __init__(self, parts):
        vertices = [p.surface.vertices for p in parts]
        counts = [len(v) for v in vertices]
        starts = np.cumsum([0, *counts])[:-1]
        self.vertices = np.concatenate([np.zeros((0, 3)), *vertices])
        self.normals = np.concatenate([np.zeros((0, 3)), *(normals(p.surface) for p in parts)])
        self.nodes = np.repeat([p.node for p in parts], counts).astype(int)
        faces = [p.surface.faces + start for p, start in zip(parts, starts, strict=True)]
        self.faces = np.concatenate([np.zeros((0, 3), dtype=int), *faces])
        colors = [np.tile(p.color, (len(p.surface.faces), 1)) for p in parts]
        self.colors = np.concatenate([np.zeros((0, 3)), *colors])

    def placed(self, positions, R):
        """Vertices, faces, colours and normals, in the base."""
        turn = R[self.nodes]
        vertices = np.einsum("nij,nj->ni", turn, self.vertices) + positions[self.nodes]
        gone = np.any(np.isnan(vertices[self.faces]), axis=(1, 2))
        normal = np.einsum("nij,nj->ni", turn, self.normals)
        return np.nan_to_num(vertices), self.faces[~gone], self.colors[~gone], normal


class _View:
    """From the base to pixels."""

    def __init__(self, camera: Camera, width, height):
        self.camera, self.width, self.height = camera, width, height
        self.axes = camera.axes()
        self.pixel = 2 * camera.half_height(width / height) / height  # at unit distance

    def project(self, points):
        """Columns, rows [pixel] and depths."""
        local = (points - self.camera.position) @ self.axes.T
        depth = np.where(-local[:, 2] > 1e-6, -local[:, 2], 1e-9)
        x = local[:, 0] / depth / self.pixel + self.width / 2
        return np.column_stack([x, self.height / 2 - local[:, 1] / depth / self.pixel, depth])

    def rays(self):
        """Directions through the pixels, (height, width, 3), of unit depth."""
        x = (np.arange(self.width) + 0.5 - self.width / 2) * self.pixel
        y = (self.height / 2 - np.arange(self.height) - 0.5) * self.pixel
        right, up, back = self.axes
        return x[None, :, None] * right + y[:, None, None] * up - back


def _paint(view, color, depth, pieces, opacity):
    """Put surfaces over what is there, lit from the right and above."""
    pieces = [p for p in pieces if len(p[1])]
    if not pieces:
        return
    starts = np.cumsum([0, *(len(p[0]) for p in pieces)])[:-1]
    vertices = np.concatenate([p[0] for p in pieces])
    faces = np.concatenate([p[1] + start for p, start in zip(pieces, starts, strict=True)])
    tints = np.concatenate([p[2] for p in pieces])
    owner, z = rasterize(view.project(vertices), faces, view.width, view.height)
    front = (owner >= 0) & (z < depth)
    rows, columns = np.nonzero(front)
    face = owner[rows, columns]
    local = np.concatenate([_normals(p) for p in pieces])
    normal = _interpolate(view, vertices, faces[face], local, rows, columns) @ view.axes.T
    normal *= np.where(normal[:, 2:] < 0, -1.0, 1.0)  # both sides are lit
    length = np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    normal = normal / length
    sun = np.clip(normal @ _SUN, 0, 1)
    shine = np.clip(normal @ _BETWEEN, 0, 1) ** 40
    light = 0.44 + 0.14 * normal[:, 1] + 0.52 * sun
    lit = tints[face] * light[:, None] + 0.16 * shine[:, None]
    color[rows, columns] = (1 - opacity) * color[rows, columns] + opacity * np.clip(lit, 0, 1)
    if opacity >= 1:
        depth[rows, columns] = z[rows, columns]


def _normals(piece):
    vertices, faces, _, normal = piece
    if normal is not None:
        return normal
    return normals(Surface(vertices, faces))


def _interpolate(view, vertices, faces, normal, rows, columns):
    """Normals at the pixels, between those of the corners, by where the rays meet the planes."""
    ray = np.column_stack(
        [
            (columns + 0.5 - view.width / 2) * view.pixel,
            (view.height / 2 - rows - 0.5) * view.pixel,
            -np.ones(len(rows)),
        ]
    )
    local = (vertices - view.camera.position) @ view.axes.T
    a, b, c = (local[faces[:, k]] for k in range(3))
    weights = np.stack(
        [np.einsum("ni,ni->n", ray, np.cross(p, q)) for p, q in ((b, c), (c, a), (a, b))], axis=1
    )
    total = weights.sum(axis=1, keepdims=True)
    weights = np.clip(weights / np.where(np.abs(total) < 1e-30, 1.0, total), 0, 1)
    return np.einsum("nk,nki->ni", weights, normal[faces])


# --- Depth buffer: triangles into pixels ---------------------------------------------------------
# Triangles are sorted by the size of the square of pixels that they lie in, and all of one size
# are looked at together: which pixel centres are inside, and how deep. Of large squares, only
# those tiles are looked at that the triangle can be in.

_NEAR = 1e-3
_AT_ONCE = 4_000_000  # pixels looked at together
_TILE = 8  # pixels along a side


def rasterize(points, faces, width, height):
    """The triangle in front at every pixel, and its depth there.

    Args:
        points: corners in the picture: columns, rows [pixel], and depth, larger is farther, (n, 3).
        faces: triangles, (m, 3).
        width: of the picture [pixel].
        height: of the picture [pixel].

    Returns:
        Numbers of triangles, (height, width), -1 for none; and depths, infinite for none.
    """
    depth, owner = np.full(width * height, np.inf), np.full(width * height, -1)
    corners = points[faces]
    low = np.ceil(corners[..., :2].min(axis=1) - 0.5)
    high = np.floor(corners[..., :2].max(axis=1) - 0.5)
    seen = np.all(corners[..., 2] > _NEAR, axis=1) & np.all(high >= low, axis=1)
    seen &= np.all(high >= 0, axis=1) & (low[:, 0] < width) & (low[:, 1] < height)
    low = np.clip(low, 0, [width - 1, height - 1])
    high = np.clip(high, 0, [width - 1, height - 1])
    side = np.where(seen, np.max(high - low, axis=1, initial=0) + 1, 0).astype(int)
    size = 2 ** np.ceil(np.log2(np.maximum(side, 1))).astype(int)
    for cell in np.unique(size[seen]):
        which = np.flatnonzero(seen & (size == cell))
        step = max(1, _AT_ONCE // cell**2)
        for start in range(0, len(which), step):
            some, at, side = (
                which[start : start + step],
                low[which[start : start + step]],
                int(cell),
            )
            if side > _TILE:
                in_tile, at = _tiles(corners[some], at, side)
                some, side = some[in_tile], _TILE
            _fill(corners[some], at, some, side, width, height, depth, owner)
    return owner.reshape(height, width), depth.reshape(height, width)


def _fill(corners, low, numbers, cell, width, height, depth, owner):
    """Put those pixels of some triangles into the picture that are in front of what is there."""
    steps = np.arange(cell, dtype=np.float32)
    weights = []
    for start, right, down in _weights(corners, low + 0.5):
        across = start[:, None] + right[:, None] * steps
        along = (down[:, None] * steps)[:, :, None]
        weights.append(across.astype(np.float32)[:, None, :] + along.astype(np.float32))
    inside = (weights[0] >= 0) & (weights[1] >= 0) & (weights[2] >= 0)
    n, row, column = np.nonzero(inside)
    x, y = low[n, 0].astype(int) + column, low[n, 1].astype(int) + row
    kept = (x < width) & (y < height)
    n, row, column, at = n[kept], row[kept], column[kept], (y * width + x)[kept]
    # Depth is linear in its inverse.
    shares = np.stack([w[n, row, column] for w in weights], axis=1)
    z = 1 / np.sum(shares / corners[n, :, 2], axis=1)
    who = numbers[n]
    order = np.lexsort((z, at))
    at, z, who = at[order], z[order], who[order]
    first = np.concatenate([[True], at[1:] != at[:-1]]) if len(at) else np.zeros(0, bool)
    at, z, who = at[first], z[first], who[first]
    nearer = z < depth[at]
    depth[at[nearer]], owner[at[nearer]] = z[nearer], who[nearer]


def _tiles(corners, low, cell):
    """Tiles of squares that a triangle may be in: of which square, and where they begin.

    Most of the square around a long thin triangle is empty.
    """
    half = (_TILE - 1) / 2
    steps = np.arange(0, cell, _TILE)
    possible = np.ones((len(low), len(steps), len(steps)), dtype=bool)
    for start, right, down in _weights(corners, low + 0.5 + half):
        largest = start + half * (np.abs(right) + np.abs(down)) + 1e-5
        possible &= (
            largest[:, None, None]
            + right[:, None, None] * steps
            + down[:, None, None] * steps[:, None]
            >= 0
        )
    n, row, column = np.nonzero(possible)
    return n, low[n] + _TILE * np.stack([column, row], axis=1)


def _weights(corners, origin):
    """Weights of each corner at a point, and how they grow to the right and downwards: linear."""
    a, b, c = (corners[:, k, :2] - origin for k in range(3))
    area = _turn(b - a, c - a)
    area = np.where(np.abs(area) < 1e-12, np.inf, area)
    for p, r in ((b, c), (c, a), (a, b)):
        yield _turn(p, r) / area, (p - r)[:, 1] / area, (r - p)[:, 0] / area


def _turn(p, r):
    """The cross product of vectors in the plane, (n, 2) each."""
    return p[:, 0] * r[:, 1] - p[:, 1] * r[:, 0]


FILMS = (".mp4", ".gif")
PICTURES = (".png", ".jpg")


@dataclass(frozen=True)
class Look:
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
    camera: Camera | None = None
    direction: ArrayLike | None = None
    zoom: float = 1.0

    def painter(self, scene) -> Painter:
        """The painter of a scene with this look."""
        camera = self.camera
        if camera is None:
            camera = framing(scene, self.direction, self.zoom)
        return Painter(scene, self.size, layers=check_layers(self.show), camera=camera)


def picture(scene, path=None, *, t=None, **look):
    """A picture of a scene, (rows, columns, 3) of bytes; also written to a file, if given.

    Args:
        scene: what to draw.
        path: a ``.png`` or ``.jpg`` file.
        t: the time [s]; the beginning unless given.
        **look: the attributes of a ``Look``.
    """
    if path is not None:
        _suffix(path, PICTURES)
    painter = Look(**look).painter(scene)
    image = painter.image(scene.times[0] if t is None else t)
    if path is not None:
        write_picture(path, image)
    return image


def write_picture(path, image) -> Path:
    """Write an image, (rows, columns, 3) of bytes; its path."""
    imageio = need("imageio.v3", "writing pictures", "view")
    with replacing(path) as part:
        imageio.imwrite(part, image)
    return Path(path)


def film(scene, path, *, rate: float = 30, speed=1.0, progress=None, **look) -> Path:
    """A film of a scene, drawn without a browser: ``.mp4`` or ``.gif``; its path.

    Args:
        scene: what to draw.
        path: where to.
        rate: images a second.
        speed: how much faster than it was.
        progress: called with the time that is drawn [s].
        **look: the attributes of a ``Look``.
    """
    painter = Look(**look).painter(scene)
    dense = images_per_second(rate, speed)
    times = scene.times[0] + np.arange(int(scene.duration * dense + 1e-6) + 1) / dense

    def images():
        for t in times:
            yield painter.image(t)
            if progress is not None:
                progress(float(t - scene.times[0]))

    return write_film(path, images(), rate)


def images_per_second(rate, speed) -> float:
    """Images per second of the motion, in a film of ``rate`` a second, ``speed`` times as fast."""
    if not (speed > 0 and rate > 0):
        raise KinetreeError(f"speed and rate of a film must be positive, got {speed} and {rate}")
    return rate / speed


def write_film(path, images, rate) -> Path:
    """Images, one after another, as a film; its path."""
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
    """OSError for a film whose encoder stopped early, of which imageio says nothing.

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
    """The names of layers, or an error for an unknown one."""
    show = (show,) if isinstance(show, str) else tuple(show)
    for name in show:
        if name not in LAYERS:
            raise UnknownNameError(f"there is no layer {name!r}; there are {', '.join(LAYERS)}")
    return show


def _suffix(path, known):
    kind = Path(path).suffix.lower()
    if kind not in known:
        raise UnknownNameError(f"{path} must end in {' or '.join(known)}")
    return kind
