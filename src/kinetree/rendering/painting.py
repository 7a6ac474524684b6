"""Pictures, tile by tile: samples of depth, then colours of pixels."""

from math import inf

from kinetree.codegen.procedures import local, procedure
from kinetree.rendering.shading import backdrop, shade
from kinetree.rendering.tables import PIXELS, TILE, Shot, Tile
from kinetree.rendering.tiles import fill, fill_tile, group_of
from kinetree.rendering.triangles import see_triangles, sort_into_tiles

_ALIKE = 0.9  # cosine between normals of triangles that share a colour within a pixel


@procedure
def looks_alike(shot: Shot, k: int, m: int) -> bool:
    """Whether two triangles are of the same part, and face nearly the same way."""
    s = shot.surfaces
    a = shot.work.face[k]
    b = shot.work.face[m]
    if a < 0 or b < 0 or s.owner[a] != s.owner[b]:
        return False
    return s.normal[s.face[a, 0]] @ s.normal[s.face[b, 0]] > _ALIKE


@procedure
def mix(shot: Shot, face: "int[:]", i: int, j: int, left: int, top: int, sum: "float[3]") -> int:
    """The sum of the colours of a pixel's samples, and how many show a triangle.

    Args:
        shot: the picture.
        face: triangle of each sample of the tile.
        i: column of the pixel in the tile.
        j: its row.
        left: first column of the tile's samples.
        top: first row.
        sum: red, green, blue.
    """
    n = shot.view.samples
    side = TILE * n
    start = j * n * side + i * n
    first = face[start]
    alike = True
    for b in range(n):
        for a in range(n):
            alike = alike & (face[start + b * side + a] == first)
    for c in range(3):
        sum[c] = 0.0
    if alike and first < 0:
        return 0
    one = local("float", 3)
    middle = 0.5 * (n - 1)
    if alike:
        shade(shot, first, left + i * n + middle, top + j * n + middle, one)
        for c in range(3):
            sum[c] = one[c] * (n * n)
        return n * n
    count = 0
    last = -1
    for b in range(n):
        for a in range(n):
            k = face[start + b * side + a]
            if k < 0:
                continue
            if k != last and not (last >= 0 and looks_alike(shot, k, last)):
                shade(shot, k, float(left + i * n + a), float(top + j * n + b), one)
            last = k
            for c in range(3):
                sum[c] += one[c]
            count += 1
    return count


@procedure
def blend(
    shot: Shot, face: "int[:]", left: int, top: int, opacity: float, color: "float[3, PIXELS]"
) -> None:
    """Put the samples of a tile over the colours of its pixels; the arguments are those of ``mix``.

    Args:
        shot: the picture.
        face: triangle of each sample of the tile.
        left: first column of the tile's pixels.
        top: first row.
        opacity: of the surfaces.
        color: of the pixels.
    """
    view = shot.view
    n = view.samples
    sum = local("float", 3)
    share = opacity / (n * n)
    for j in range(min(TILE, view.height - top)):
        for i in range(min(TILE, view.width - left)):
            count = mix(shot, face, i, j, left * n, top * n, sum)
            if count > 0:
                k = j * TILE + i
                rest = 1 - share * count
                for c in range(3):
                    color[c, k] = rest * color[c, k] + share * sum[c]


@procedure
def blend_groups(shot: Shot, tile: Tile, at: int, end: int, left: int, top: int) -> None:
    """Put the translucent groups of a tile over its colours, one after the other.

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
    """A value of so many bits as the highest ones of a word, which has a sign."""
    return (value - (1 << bits) if value >> (bits - 1) else value) << (64 - bits)


@procedure
def pack(shot: Shot, tile: Tile, left: int, top: int, bottom: int) -> None:
    """Write the colours of a tile as bytes: red, green, blue, eight pixels in three words."""
    color = tile.color
    out = shot.images.color
    p = local("int", TILE)
    words = (shot.view.width + TILE - 1) // TILE * (TILE * 3 // 8)
    for j in range(top, bottom):
        at = (j - top) * TILE
        for i in range(TILE):
            r = int(255 * color[0, at + i] + 0.5)
            g = int(255 * color[1, at + i] + 0.5)
            b = int(255 * color[2, at + i] + 0.5)
            p[i] = r | (g << 8) | (b << 16)
        w = j * words + left * 3 // 8
        for m in range(TILE // 8):
            k = 8 * m
            out[w] = p[k] | (p[k + 1] << 24) | in_front(p[k + 2] & 65535, 16)
            out[w + 1] = (p[k + 2] >> 16) | (p[k + 3] << 8) | (p[k + 4] << 32)
            out[w + 1] = out[w + 1] | in_front(p[k + 5] & 255, 8)
            out[w + 2] = (p[k + 5] >> 8) | (p[k + 6] << 16) | in_front(p[k + 7], 24)
            w += 3


@procedure
def paint_tiles(shot: Shot, tile: Tile, start: int, step: int) -> None:
    """Write the colours of every ``step``-th tile of a picture.

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
def measure_tiles(shot: Shot, tile: Tile, start: int, step: int) -> None:
    """Write depths and parts of every ``step``-th tile, at the middles of pixels."""
    s = shot.surfaces
    view = shot.view
    images = shot.images
    across = (view.width + TILE - 1) // TILE
    tiles = across * ((view.height + TILE - 1) // TILE)
    for turn in range((tiles - start + step - 1) // step):
        t = start + turn * step
        left = t % across * TILE
        top = t // across * TILE
        fill_tile(shot, t, left, top, tile, -1)
        for j in range(top, min(top + TILE, view.height)):
            for i in range(left, min(left + TILE, view.width)):
                k = (j - top) * TILE + i - left
                at = tile.face[k]
                part = -1
                if at >= 0:
                    face = shot.work.face[at]
                    part = -1 - face if face < 0 else s.owner[face]
                near = tile.near[k]
                images.depth[j * view.width + i] = 1 / near if near > 0.0 else inf
                images.part[j * view.width + i] = part


@procedure
def look(shot: Shot) -> int:
    """Collect the triangles that a view sees, by tiles; a code if there was no room."""
    see_triangles(shot, shot.view, False)
    return sort_into_tiles(shot.view, shot.work)
