"""Samples of a tile: which triangle is in front at each."""

from kinetree.codegen.procedures import procedure
from kinetree.rendering.tables import (
    BOTTOM,
    GROUP,
    LEFT,
    RIGHT,
    TILE,
    TOP,
    Shot,
    Surfaces,
    TileMemory,
    TileWork,
)

_ABREAST = 8  # samples: most triangles are smaller, and loops of fixed length become vectors


@procedure
def fill(
    work: TileWork,
    k: int,
    left: int,
    top: int,
    side: int,
    most: float,
    near: "float[:]",
    face: "int[:]",
) -> None:
    """Rasterise a triangle into a tile's samples where it is nearest.

    Args:
        work: what is seen.
        k: number of the triangle.
        left: first column of the tile.
        top: first row.
        side: of the tile in samples.
        most: largest inverse depth that is seen.
        near: inverse depths of the samples.
        face: numbers of triangles of the samples.
    """
    f = work.linear[k]
    bounds = work.bounds[k]
    i0 = max(bounds[LEFT], left) - left
    i1 = min(bounds[RIGHT], left + side - 1) - left + 1
    ax = f[0]
    bx = f[3]
    cx = f[6]
    dx = f[9]
    for j in range(max(bounds[TOP], top), min(bounds[BOTTOM], top + side - 1) + 1):
        a = ax * left + f[1] * j + f[2]
        b = bx * left + f[4] * j + f[5]
        c = cx * left + f[7] * j + f[8]
        d = dx * left + f[10] * j + f[11]
        for m in range((i1 - i0 + _ABREAST - 1) // _ABREAST):
            first = min(i0 + m * _ABREAST, side - _ABREAST)
            row = (j - top) * side + first
            x = float(first)
            for n in range(_ABREAST):  # beyond its bounds a triangle covers nothing
                i = x + n
                w = dx * i + d
                w0 = near[row + n]
                k0 = face[row + n]
                inside = min(ax * i + a, bx * i + b, cx * i + c) >= 0.0
                front = inside & (w > w0) & (w <= most)
                near[row + n] = w if front else w0
                face[row + n] = k if front else k0


@procedure
def may_cover(work: TileWork, k: int, left: int, top: int, side: int) -> bool:
    """Whether a triangle may cover samples of a tile, by its edge functions."""
    bounds = work.bounds[k]
    inside = (bounds[LEFT] >= left) & (bounds[RIGHT] < left + side)
    if inside & (bounds[TOP] >= top) & (bounds[BOTTOM] < top + side):
        return True
    f = work.linear[k]
    for e in range(3):
        a = f[3 * e]
        b = f[3 * e + 1]
        most = a * (left + side - 1 if a > 0.0 else left) + f[3 * e + 2]
        most += b * (top + side - 1 if b > 0.0 else top)
        if most < 0.0:
            return False
    return True


@procedure
def empty_tile(side: int, near: "float[:]", face: "int[:]") -> None:
    """Clear the depths and faces of a tile's samples."""
    for k in range(side * side):
        near[k] = 0.0
    for k in range(side * side):
        face[k] = -1


@procedure
def group_of(s: Surfaces, work: TileWork, k: int) -> int:
    """Group number (opaque 0, or translucent) of a triangle."""
    face = work.face[k]
    return s.part[-1 - face if face < 0 else s.owner[face], GROUP]


@procedure
def hide(work: TileWork, k: int, left: int, top: int, side: int, near: "float[:]") -> None:
    """Fill an empty tile's depths with those of a plane, which hides but is not drawn."""
    f = work.linear[k]
    for j in range(side):
        d = f[9] * left + f[10] * (top + j) + f[11]
        for i in range(side):
            near[j * side + i] = max(f[9] * i + d, 0.0)


@procedure
def fill_tile(shot: Shot, t: int, left: int, top: int, tile: TileMemory, ground: int) -> int:
    """Rasterise a tile's opaque triangles; list index where translucent ones begin.

    Args:
        shot: the picture.
        t: number of the tile.
        left: first column of its samples.
        top: first row.
        tile: memory.
        ground: the plane that is drawn behind everything, the first part; -1 for none.
    """
    s = shot.surfaces
    view = shot.view
    work = shot.work
    side = TILE * view.samples
    empty_tile(side, tile.near, tile.face)
    most = 1 / view.near
    for at in range(work.first[t], work.first[t + 1]):
        k = work.entry[at]
        if s.groups > 1 and group_of(s, work, k) != 0:
            return at
        if ground >= 0 and work.face[k] == -1 - ground:
            hide(work, k, left, top, side, tile.near)
        elif may_cover(work, k, left, top, side):
            fill(work, k, left, top, side, most, tile.near, tile.face)
    return work.first[t + 1]
