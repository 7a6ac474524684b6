"""Pictures, tile by tile: samples of depth, then colours of pixels."""

from math import inf

from kinetree.codegen.procedures import local, procedure
from kinetree.rendering.ground import backdrop
from kinetree.rendering.samples import blend
from kinetree.rendering.shading import whole
from kinetree.rendering.tables import TILE, Shot, TileMemory
from kinetree.rendering.tiles import fill, fill_tile, group_of
from kinetree.rendering.triangles import see_triangles, sort_into_tiles

_PAIR = 16777216.0  # of the second of two pixels: 24 bits


@procedure
def blend_groups(shot: Shot, tile: TileMemory, at: int, end: int, left: int, top: int) -> None:
    """Blend the translucent groups of a tile over its colours, one after the other.

    Args:
        shot: the picture.
        tile: filled with what is opaque.
        at: where the first of them begins in the list.
        end: of the list.
        left: first column of the tile's pixels.
        top: first row.
    """
    s = shot.surfaces
    work = shot.work
    n = shot.view.samples
    side = TILE * n
    most = 1 / shot.view.near
    while at < end:
        group = group_of(s, work, work.entry[at])
        for k in range(side * side):
            tile.near_clear[k] = 0.0 if s.shines[group] != 0 else tile.near[k]
        for k in range(side * side):
            tile.face_clear[k] = -1
        while at < end and group_of(s, work, work.entry[at]) == group:
            k = work.entry[at]
            fill(work, k, left * n, top * n, side, most, tile.near_clear, tile.face_clear)
            at += 1
        blend(shot, tile.face_clear, left, top, s.opacity[group], tile.color)


@procedure
def in_front(value: int, bits: int) -> int:
    """Value shifted to the highest ``bits`` bits of a signed 64-bit word."""
    return (value - (1 << bits) if value >> (bits - 1) else value) << (64 - bits)


@procedure
def pack(shot: Shot, tile: TileMemory, left: int, top: int, bottom: int) -> None:
    """Write the colours of a tile as RGB bytes, eight pixels per three words.

    Two pixels are one number of 48 bits, because numbers become integers one by one.
    """
    color = tile.color
    out = shot.images.color
    p = local("float", TILE)
    words = (shot.view.width + TILE - 1) // TILE * (TILE * 3 // 8)
    for j in range(top, bottom):
        at = (j - top) * TILE
        for i in range(TILE):
            red = whole(255 * color[0, at + i] + 0.5)
            green = whole(255 * color[1, at + i] + 0.5)
            blue = whole(255 * color[2, at + i] + 0.5)
            p[i] = red + 256 * green + 65536 * blue
        w = j * words + left * 3 // 8
        for m in range(TILE // 8):
            k = 8 * m
            a = int(p[k] + _PAIR * p[k + 1])
            b = int(p[k + 2] + _PAIR * p[k + 3])
            c = int(p[k + 4] + _PAIR * p[k + 5])
            d = int(p[k + 6] + _PAIR * p[k + 7])
            out[w] = a | in_front(b & 0xFFFF, 16)
            out[w + 1] = (b >> 16) | in_front(c & 0xFFFFFFFF, 32)
            out[w + 2] = (c >> 32) | in_front(d, 48)
            w += 3


@procedure
def paint_tiles(shot: Shot, tile: TileMemory, start: int, step: int) -> None:
    """Draw the colours of every ``step``-th tile of a picture.

    Args:
        shot: the picture.
        tile: memory.
        start: the first tile.
        step: to the next.
    """
    view = shot.view
    work = shot.work
    first = work.first
    ground = shot.ground.part
    n = view.samples
    across = (view.width + TILE - 1) // TILE
    tiles = across * ((view.height + TILE - 1) // TILE)
    for turn in range((tiles - start + step - 1) // step):
        t = start + turn * step
        left = t % across * TILE
        top = t // across * TILE
        right = min(left + TILE, view.width)
        bottom = min(top + TILE, view.height)
        backdrop(shot, left, top, right, bottom, tile.color)
        count = first[t + 1] - first[t]
        if count == 1 and ground >= 0 and work.face[work.entry[first[t]]] == -1 - ground:
            count = 0
        if count > 0:
            rest = fill_tile(shot, t, left * n, top * n, tile, ground)
            if rest > first[t]:
                blend(shot, tile.face, left, top, 1.0, tile.color)
            blend_groups(shot, tile, rest, first[t + 1], left, top)
        pack(shot, tile, left, top, bottom)


@procedure
def name_parts(shot: Shot, tile: TileMemory, at: int, k: int, count: int) -> None:
    """Write the visible part numbers of ``count`` pixels in a tile's row."""
    s = shot.surfaces
    images = shot.images
    for n in range(count):
        part = -1
        seen = tile.face[k + n]
        if seen >= 0:
            face = shot.work.face[seen]
            part = -1 - face if face < 0 else s.owner[face]
        images.part[at + n] = part


@procedure
def measure_tiles(shot: Shot, tile: TileMemory, start: int, step: int) -> None:
    """Draw depths, and part numbers if wanted, of every ``step``-th tile."""
    view = shot.view
    images = shot.images
    across = (view.width + TILE - 1) // TILE
    tiles = across * ((view.height + TILE - 1) // TILE)
    for turn in range((tiles - start + step - 1) // step):
        t = start + turn * step
        left = t % across * TILE
        top = t // across * TILE
        fill_tile(shot, t, left, top, tile, -1)
        count = min(TILE, view.width - left)
        for j in range(min(TILE, view.height - top)):
            at = (top + j) * view.width + left
            for n in range(count):
                near = tile.near[j * TILE + n]
                images.depth[at + n] = 1 / near if near > 0.0 else inf
            if images.wants_parts:
                name_parts(shot, tile, at, j * TILE, count)


@procedure
def look(shot: Shot) -> int:
    """Collect a view's triangles into tiles; a code if there was no room."""
    see_triangles(shot, shot.view, False)
    return sort_into_tiles(shot.view, shot.work)
