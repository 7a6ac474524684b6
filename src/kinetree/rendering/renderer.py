"""``Renderer``: pictures of surfaces on nodes, from any view, on all threads."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.rendering import painting
from kinetree.rendering.shadows import cast_shadows
from kinetree.rendering.surfaces import Surface, normals
from kinetree.rendering.tables import (
    CLOSED,
    OPEN,
    PIXELS,
    PLANE,
    TILE,
    Ground,
    Images,
    Light,
    Shot,
    Surfaces,
    TileMemory,
    TileWork,
    View,
)
from kinetree.rendering.triangles import ROOM

SMOOTH = 2  # samples along each side of a pixel
GROUND, LINES = (np.array(c) for c in ((0.90, 0.91, 0.925), (0.70, 0.72, 0.745)))
"""Colours of the ground, and of the lines on it."""
_SHADOW = 0.85  # of the sun, that a shadow takes away
_TILES_PER_THREAD = 16  # at least
_MOST_TEXELS = 1024  # along a side of the map of shadows
_NO_NUMBERS, _NO_DEPTHS = np.zeros(0, dtype=np.int64), np.zeros(0)


class SurfacePiece(NamedTuple):
    """A surface of one colour on a node.

    Attributes:
        surface: in the coordinates of the node; of a plane ``PLANE_SURFACE``, placed.
        node: its number.
        color: red, green, blue, from 0 to 1.
        opacity: from 0 to 1.
        casts: whether it casts a shadow.
        shines: whether it is seen through what is in front, as strongly as ``opacity`` says.
        grid: of a plane: distance of its lines, and distance at which it fades [m].
    """

    surface: Surface
    node: int
    color: Sequence[float]
    opacity: float = 1.0
    casts: bool = True
    shines: bool = False
    grid: tuple[float, float] = (1.0, 100.0)


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """An eye, and the picture that it sees.

    Attributes:
        eye: its position [m], (3,).
        axes: rows: to the right, upwards, towards the eye, (3, 3).
        size: columns and rows.
        pixel: side of a pixel at unit distance.
        near: distance of what is nearest [m].
    """

    eye: np.ndarray
    axes: np.ndarray
    size: tuple[int, int]
    pixel: float
    near: float = 1e-3

    def record(self, samples: int) -> View:
        """``View`` record for compiled code, with ``samples`` per pixel side."""
        return self.fill(View(), samples)

    def fill(self, view: View, samples: int) -> View:
        """Fill in a ``View`` record for compiled code."""
        view.eye[:], view.axes[:] = self.eye, self.axes
        view.width, view.height = self.size
        view.samples, view.pixel, view.near = samples, self.pixel, self.near
        return view


class Sky(NamedTuple):
    """Light of a picture.

    Attributes:
        sun: direction towards the sun, (3,).
        up: away from the ground, (3,).
        shadows: whether there are any.
    """

    sun: np.ndarray
    up: np.ndarray
    shadows: bool = True


class _Memory:
    """Memory for one picture, for a number of threads; records are filled in for each picture.

    Attributes:
        shot: all that compiled code needs.
        nothing: the ground where there is none.
        tiles: of each thread.
        color: words of colours, where the picture cannot be written into directly.
    """

    def __init__(self, surfaces, triangles):
        n = triangles + 1
        self.tiles: list[TileMemory] = []
        self.color, self.nothing = np.zeros(0, dtype=np.int64), Ground()
        work = TileWork(
            face=np.zeros(n, dtype=np.int64),
            linear=np.zeros((n, 12)),
            bounds=np.zeros((n, 4), dtype=np.int64),
            tiles=np.zeros((n, 4), dtype=np.int64),
            corner=np.zeros((len(surfaces.vertex), 3)),
        )
        _enlarge(work, 2 * n)
        views = {"view": View(), "sun": View(parallel=True, samples=1)}
        places = {"light": Light(), "ground": self.nothing, "images": Images()}
        self.shot = Shot(surfaces=surfaces, work=work, **views, **places)

    def pixels(self, count, words=None):
        """Array for the colours of a picture: ``words``, or reusable memory."""
        if words is not None:
            return words
        if len(self.color) != count:
            self.color = np.zeros(count, dtype=np.int64)
        return self.color

    def shine(self, view, sky):
        """Set the light, and a shadow-map view about as fine as the picture."""
        light, sun = self.shot.light, self.shot.sun
        size = min(_MOST_TEXELS, int(np.ceil(0.8 * max(view.size) / TILE)) * TILE)
        towards, up, across, other = _directions(*(tuple(map(float, x)) for x in sky[:2]))
        half_way = towards + view.axes[2]
        light.sun[:], light.up[:] = towards, up
        light.shine[:] = half_way / max(np.linalg.norm(half_way), 1e-9)
        light.shadow, light.size = _SHADOW if sky.shadows else 0.0, size
        if len(light.map) < size * size:
            light.map = np.zeros(size * size)
            light.face = np.zeros(size * size, dtype=np.int64)
        sun.axes[:] = across, other, towards
        sun.width = sun.height = size

    def tile(self, k, samples):
        """Tile memory of thread ``k`` with room for the samples."""
        count = PIXELS * samples**2
        while len(self.tiles) <= k:
            self.tiles.append(TileMemory())
        tile = self.tiles[k]
        if len(tile.near) < count:
            tile.near, tile.near_clear = np.zeros((2, count))
            tile.face, tile.face_clear = np.zeros((2, count), dtype=np.int64)
        return tile


class Renderer:
    """Draws pieces on nodes that move, any number of times.

    Args:
        pieces: what there is, in the order in which translucent ones are put over each other.
    """

    def __init__(self, pieces: Sequence[SurfacePiece]):
        self.pieces = list(pieces)
        self.surfaces = _tables(self.pieces)
        self.triangles = len(self.surfaces.face) + len(self.pieces)
        self._idle: list[_Memory] = []

    def paint(
        self,
        poses: np.ndarray,
        view: Viewpoint,
        sky: Sky,
        ground: Ground | None = None,
        samples: int = SMOOTH,
        most: int | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Colour image (rows, columns, 3) of the placed pieces, in bytes.

        Args:
            poses: of the nodes, (N, 12): rows of their pose (3, 4); NaN hides what is on them.
            view: from where.
            sky: the light.
            ground: a ``Ground`` that is drawn behind everything, if any; a plane of it is the first
                piece.
            samples: along each side of a pixel.
            most: number of threads at most; by default all.
            out: the array that is filled; by default a new one.
        """
        memory = self._take()
        width, height = view.size
        if out is None:
            out = np.empty((height, width, 3), dtype=np.uint8)
        words = _words_of(out)
        shot = memory.shot
        shot.poses = np.ascontiguousarray(poses, dtype=float)
        shot.ground = memory.nothing if ground is None else ground
        shot.images.color = color = memory.pixels(_row_of_words(width) * height, words)
        view.fill(shot.view, samples)
        memory.shine(view, sky)
        cast_shadows(shot)
        self._draw(memory, painting.paint_tiles, most)
        if words is None:
            out[:] = _bytes_of(color, width, height)
        self._give_back(memory)
        return out

    def measure(
        self,
        poses: np.ndarray,
        view: Viewpoint,
        most: int | None = None,
        depth: np.ndarray | None = None,
        wants_parts: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Depth image [m] and part numbers of the placed pieces, (rows, columns) each.

        Args:
            poses: as in ``paint``.
            view: from where.
            most: number of threads at most; by default all.
            depth: the array that is filled; by default a new one.
            wants_parts: whether numbers are wanted; they are an empty array otherwise.

        Returns:
            (rows, columns) each; infinite and -1 where nothing is.
        """
        memory = self._take()
        width, height = view.size
        if depth is None:
            depth = np.empty((height, width))
        part = np.empty((height, width) if wants_parts else (0, 0), dtype=np.int64)
        shot = memory.shot
        shot.poses = np.ascontiguousarray(poses, dtype=float)
        shot.images.depth, shot.images.part = depth.reshape(-1), part.reshape(-1)
        shot.images.wants_parts = wants_parts
        view.fill(shot.view, 1)
        self._draw(memory, painting.measure_tiles, most)
        self._give_back(memory)
        return depth, part

    def _draw(self, memory, tiles, most):
        """Draw all tiles of a shot on several threads."""
        shot, view = memory.shot, memory.shot.view
        _with_room(shot)
        count = max(1, min(most or threads(), tiles_of(view) // _TILES_PER_THREAD))
        own = [memory.tile(k, view.samples) for k in range(count)]
        on_threads(lambda k: tiles(shot, own[k], k, count), count)

    def _take(self):
        """Picture memory from the pool that no other thread uses, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return _Memory(self.surfaces, self.triangles)

    def _give_back(self, memory):
        """Return picture memory for reuse, without references to the caller's images."""
        images = memory.shot.images
        images.color = images.part = _NO_NUMBERS
        images.depth = _NO_DEPTHS
        self._idle.append(memory)


def _row_of_words(width):
    """Number of 64-bit words in a row of colours, padded to whole tiles."""
    return -(-width // TILE) * (TILE * 3 // 8)


def _words_of(image):
    """Image bytes viewed as 64-bit words; None if rows do not consist of whole tiles."""
    fits = image.shape[1] % TILE == 0 and image.flags.c_contiguous and image.size
    if not fits or sys.byteorder != "little":
        return None
    words = image.reshape(-1).view(np.int64)
    return words if words.flags.aligned else None


def _bytes_of(color, width, height):
    """Packed colours as bytes, (height, width, 3)."""
    bytes_ = color.astype("<i8", copy=False).view(np.uint8).reshape(height, -1, 3)
    return bytes_[:, :width]


def tiles_of(view: View) -> int:
    """Number of picture tiles that a view consists of."""
    return -(-view.width // TILE) * -(-view.height // TILE)


@lru_cache(maxsize=16)
def _directions(sun, up):
    """Unit vectors to the sun, upwards, and two across the sun's rays."""
    sun = np.array(sun) / np.linalg.norm(sun)
    across = np.cross(np.eye(3)[np.argmin(np.abs(sun))], sun)
    across = across / np.linalg.norm(across)
    return sun, np.array(up), across, np.cross(sun, across)


def _with_room(shot):
    """Collect a shot's triangles, enlarging the tile lists until they fit."""
    work, tiles = shot.work, tiles_of(shot.view)
    if len(work.first) < tiles + 1:
        work.first = np.zeros(tiles + 1, dtype=np.int64)
    while painting.look(shot) == ROOM:
        _enlarge(work, int(work.first[tiles]) + 1)


def _enlarge(work, room):
    """Replace the tiles' triangle list by a larger one."""
    work.entry, work.room = np.zeros(room, dtype=np.int64), room


def _tables(pieces) -> Surfaces:
    """``Surfaces`` record of pieces, opaque ones as group 0, each other one a group."""
    count = len(pieces)
    part, casts = np.zeros((count, 7), dtype=np.int64), np.zeros(count, dtype=np.int64)
    color, grid, box = np.zeros((count, 3)), np.zeros((count, 2)), np.zeros((count, 6))
    vertex, normal, face, owner = [], [], [], []
    opacity, shines, at, faces = [1.0], [0], 0, 0
    last = None
    for k, p in enumerate(pieces):
        surface = p.surface
        if p.opacity >= 1 and not p.shines:
            group = 0
        elif p.shines and last is not None and last.shines and last.opacity == p.opacity:
            group = len(opacity) - 1
        else:
            group = len(opacity)
            opacity.append(float(p.opacity))
            shines.append(int(p.shines))
        last = p
        kind = PLANE if not len(surface.faces) else CLOSED if surface.closed else OPEN
        part[k] = p.node, at, len(surface.vertices), faces, len(surface.faces), kind, group
        casts[k] = p.casts and kind != PLANE
        color[k], grid[k] = p.color, p.grid
        box[k] = *surface.vertices.min(axis=0), *surface.vertices.max(axis=0)
        vertex.append(surface.vertices)
        normal.append(_plane_normals(surface) if kind == PLANE else normals(surface))
        face.append(surface.faces + at)
        owner.append(np.full(len(surface.faces), k))
        at, faces = at + len(surface.vertices), faces + len(surface.faces)
    of_parts = {"part": part, "casts": casts, "color": color, "grid": grid, "box": box}
    of_groups = {"opacity": np.array(opacity), "shines": np.array(shines, dtype=np.int64)}
    return Surfaces(
        parts=count,
        groups=len(opacity),
        vertex=np.concatenate([np.zeros((0, 3)), *vertex]),
        normal=np.concatenate([np.zeros((0, 3)), *normal]),
        face=np.concatenate([np.zeros((0, 3), dtype=np.int64), *face]),
        owner=np.concatenate([np.zeros(0, dtype=np.int64), *owner]),
        **of_parts,
        **of_groups,
    )


def _plane_normals(surface):
    """Normals (3, 3) at the three points of a plane."""
    origin, x, y = surface.vertices
    return np.tile(np.cross(x - origin, y - origin), (3, 1))


PLANE_SURFACE = Surface(
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.zeros((0, 3), dtype=np.int64)
)
"""A plane without end: its origin, and the ends of unit vectors along its x and y axes."""
