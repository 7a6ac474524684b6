"""Pictures, tile by tile: samples of depth, then colours of pixels."""

from math import inf

from kinetree.codegen.procedures import isfinite, local, procedure
from kinetree.rendering.shading import backdrop, shade
from kinetree.rendering.tables import (
    BOTTOM,
    GROUP,
    LEFT,
    NODE,
    PIXELS,
    RIGHT,
    TILE,
    TOP,
    Ground,
    Images,
    Light,
    Surfaces,
    Tile,
    View,
    Work,
)
from kinetree.rendering.triangles import fill, move, pose_in_view, see_triangles, sort_into_tiles

_ALIKE = 0.9  # cosine between normals of triangles that share a colour within a pixel


@procedure
def misses(f: "float[12]", left: int, top: int, side: int) -> bool:
    """Whether a tile lies beyond one edge of a triangle."""
    for e in range(3):
        a = f[3 * e]
        b = f[3 * e + 1]
        most = a * (left + side - 1 if a > 0.0 else left) + f[3 * e + 2]
        most += b * (top + side - 1 if b > 0.0 else top)
        if most < 0.0:
            return True
    return False


@procedure
def empty_tile(side: int, near: "float[:]", face: "int[:]") -> None:
    """Forget what a tile was filled with."""
    for k in range(side * side):
        near[k] = 0.0
    for k in range(side * side):
        face[k] = -1


@procedure
def group_of(s: Surfaces, work: Work, k: int) -> int:
    """The group of a triangle."""
    face = work.face[k]
    return s.part[-1 - face if face < 0 else s.owner[face], GROUP]


@procedure
def fill_tile(s: Surfaces, view: View, work: Work, t: int, left: int, top: int, tile: Tile) -> int:
    """Fill a tile with the opaque triangles; where the others begin in the list."""
    side = TILE * view.samples
    empty_tile(side, tile.near, tile.face)
    most = 1 / view.near if not view.parallel else 1e300
    for at in range(work.first[t], work.first[t + 1]):
        k = work.entry[at]
        if s.groups > 1 and not view.parallel and group_of(s, work, k) != 0:
            return at
        b = work.bounds[k]
        f = work.linear[k]
        inside = (b[LEFT] >= left) & (b[RIGHT] < left + side)
        inside = inside & (b[TOP] >= top) & (b[BOTTOM] < top + side)
        if inside or not misses(f, left, top, side):
            fill(f, b, k, left, top, side, most, tile.near, tile.face)
    return work.first[t + 1]


@procedure
def looks_alike(s: Surfaces, work: Work, k: int, m: int) -> bool:
    """Whether two triangles are of the same part, and face nearly the same way."""
    a = work.face[k]
    b = work.face[m]
    if a < 0 or b < 0 or s.owner[a] != s.owner[b]:
        return False
    return s.normal[s.face[a, 0]] @ s.normal[s.face[b, 0]] > _ALIKE


@procedure
def mix(
    s: Surfaces, poses: "float[:, 12]", view: View, light: Light, sun: View, work: Work,
    face: "int[:]", i: int, j: int, left: int, top: int, sum: "float[3]",
) -> int:  # fmt: skip
    """The sum of the colours of a pixel's samples, and how many show a triangle.

    Args:
        s: the surfaces.
        poses: of the nodes.
        view: the camera.
        light: the sun.
        sun: view of the map of shadows.
        work: what is seen.
        face: triangle of each sample of the tile.
        i: column of the pixel in the tile.
        j: its row.
        left: first column of the tile's samples.
        top: first row.
        sum: red, green, blue.
    """
    n = view.samples
    side = TILE * n
    first = face[j * n * side + i * n]
    alike = True
    for b in range(n):
        for a in range(n):
            alike = alike & (face[(j * n + b) * side + i * n + a] == first)
    for c in range(3):
        sum[c] = 0.0
    if alike and first < 0:
        return 0
    one = local("float", 3)
    middle = 0.5 * (n - 1)
    if alike:
        shade(
            s,
            poses,
            view,
            light,
            sun,
            work,
            first,
            left + i * n + middle,
            top + j * n + middle,
            one,
        )
        for c in range(3):
            sum[c] = one[c] * (n * n)
        return n * n
    count = 0
    last = -1
    for b in range(n):
        for a in range(n):
            k = face[(j * n + b) * side + i * n + a]
            if k < 0:
                continue
            if k != last and not (last >= 0 and looks_alike(s, work, k, last)):
                x = float(left + i * n + a)
                y = float(top + j * n + b)
                shade(s, poses, view, light, sun, work, k, x, y, one)
            last = k
            for c in range(3):
                sum[c] += one[c]
            count += 1
    return count


@procedure
def blend(
    s: Surfaces, poses: "float[:, 12]", view: View, light: Light, sun: View, work: Work,
    face: "int[:]", left: int, top: int, opacity: float, color: "float[3, PIXELS]",
) -> None:  # fmt: skip
    """Put the samples of a tile over the colours of its pixels; the arguments are those of ``mix``.

    Args:
        s: the surfaces.
        poses: of the nodes.
        view: the camera.
        light: the sun.
        sun: view of the map of shadows.
        work: what is seen.
        face: triangle of each sample of the tile.
        left: first column of the tile's pixels.
        top: first row.
        opacity: of the surfaces.
        color: of the pixels.
    """
    n = view.samples
    sum = local("float", 3)
    share = opacity / (n * n)
    for j in range(min(TILE, view.height - top)):
        for i in range(min(TILE, view.width - left)):
            count = mix(s, poses, view, light, sun, work, face, i, j, left * n, top * n, sum)
            if count > 0:
                k = j * TILE + i
                rest = 1 - share * count
                for c in range(3):
                    color[c, k] = rest * color[c, k] + share * sum[c]


@procedure
def blend_groups(
    s: Surfaces, poses: "float[:, 12]", view: View, light: Light, sun: View, work: Work,
    tile: Tile, at: int, end: int, left: int, top: int,
) -> None:  # fmt: skip
    """Put the translucent groups of a tile over its colours, one after the other.

    Args:
        s: the surfaces.
        poses: of the nodes.
        view: the camera.
        light: the sun.
        sun: view of the map of shadows.
        work: what is seen.
        tile: filled with what is opaque.
        at: where the first of them begins in the list.
        end: of the list.
        left: first column of the tile's pixels.
        top: first row.
    """
    side = TILE * view.samples
    while at < end:
        group = group_of(s, work, work.entry[at])
        for k in range(side * side):
            tile.near_clear[k] = 0.0 if s.shines[group] != 0 else tile.near[k]
        for k in range(side * side):
            tile.face_clear[k] = -1
        while at < end and group_of(s, work, work.entry[at]) == group:
            k = work.entry[at]
            fill(
                work.linear[k], work.bounds[k], k, left * view.samples, top * view.samples, side,
                1 / view.near, tile.near_clear, tile.face_clear,
            )  # fmt: skip
            at += 1
        blend(
            s, poses, view, light, sun, work, tile.face_clear, left, top, s.opacity[group],
            tile.color,
        )  # fmt: skip


@procedure
def pack(
    color: "float[3, PIXELS]", left: int, top: int, right: int, bottom: int, width: int,
    out: "int[:]",
) -> None:  # fmt: skip
    """Colours of a tile as bytes."""
    for j in range(top, bottom):
        at = (j - top) * TILE - left
        row = j * width
        for i in range(left, right):
            r = int(255 * color[0, at + i] + 0.5)
            g = int(255 * color[1, at + i] + 0.5)
            b = int(255 * color[2, at + i] + 0.5)
            out[row + i] = r | (g << 8) | (b << 16)


@procedure
def paint_tiles(
    s: Surfaces, poses: "float[:, 12]", view: View, light: Light, sun: View, ground: Ground,
    work: Work, tile: Tile, images: Images, start: int, step: int,
) -> None:  # fmt: skip
    """Colours of every ``step``-th tile of a picture.

    Args:
        s: the surfaces.
        poses: of the nodes.
        view: the camera.
        light: the sun.
        sun: view of the map of shadows.
        ground: what is drawn of it.
        work: what is seen.
        tile: memory.
        images: results.
        start: the first tile.
        step: to the next.
    """
    across = (view.width + TILE - 1) // TILE
    tiles = across * ((view.height + TILE - 1) // TILE)
    for turn in range((tiles - start + step - 1) // step):
        t = start + turn * step
        left = t % across * TILE
        top = t // across * TILE
        right = min(left + TILE, view.width)
        bottom = min(top + TILE, view.height)
        backdrop(view, light, sun, ground, left, top, right, bottom, tile.color)
        if work.first[t + 1] > work.first[t]:
            n = view.samples
            rest = fill_tile(s, view, work, t, left * n, top * n, tile)
            if rest > work.first[t]:
                blend(s, poses, view, light, sun, work, tile.face, left, top, 1.0, tile.color)
            end = work.first[t + 1]
            blend_groups(s, poses, view, light, sun, work, tile, rest, end, left, top)
        pack(tile.color, left, top, right, bottom, view.width, images.color)


@procedure
def measure_tiles(
    s: Surfaces, view: View, work: Work, tile: Tile, images: Images, start: int, step: int
) -> None:
    """Depths and parts of every ``step``-th tile, at the middles of pixels."""
    across = (view.width + TILE - 1) // TILE
    tiles = across * ((view.height + TILE - 1) // TILE)
    for turn in range((tiles - start + step - 1) // step):
        t = start + turn * step
        left = t % across * TILE
        top = t // across * TILE
        fill_tile(s, view, work, t, left, top, tile)
        for j in range(top, min(top + TILE, view.height)):
            for i in range(left, min(left + TILE, view.width)):
                k = (j - top) * TILE + i - left
                face = tile.face[k]
                part = -1
                if face >= 0:
                    face = work.face[face]
                    part = -1 - face if face < 0 else s.owner[face]
                near = tile.near[k]
                images.depth[j * view.width + i] = 1 / near if near > 0.0 else inf
                images.part[j * view.width + i] = part


@procedure
def map_tiles(
    s: Surfaces, sun: View, work: Work, tile: Tile, light: Light, start: int, step: int
) -> None:
    """Nearness to the sun in every ``step``-th tile of the map of shadows."""
    across = sun.width // TILE
    tiles = across * across
    for turn in range((tiles - start + step - 1) // step):
        t = start + turn * step
        left = t % across * TILE
        top = t // across * TILE
        if work.first[t + 1] > work.first[t]:
            fill_tile(s, sun, work, t, left, top, tile)
            for j in range(TILE):
                for i in range(TILE):
                    light.map[(top + j) * sun.width + left + i] = tile.near[j * TILE + i]
        else:
            for j in range(TILE):
                for i in range(TILE):
                    light.map[(top + j) * sun.width + left + i] = 0.0


@procedure
def aim_sun(s: Surfaces, poses: "float[:, 12]", light: Light, sun: View) -> bool:
    """Let the map of shadows cover all parts that cast them; whether there are any."""
    low = local("float", 3)
    high = local("float", 3)
    for c in range(3):
        sun.eye[c] = 0.0
        low[c] = 1e300
        high[c] = -1e300
    A = sun.axes
    Q = local("float", 12)
    corner, at = local("float", 2, 3)
    for p in range(s.parts):
        P = poses[s.part[p, NODE]]
        if s.casts[p] == 0 or not isfinite(P[3]):
            continue
        pose_in_view(sun, P, Q)
        for v in range(8):
            corner[0] = s.box[p, 3 * (v & 1)]
            corner[1] = s.box[p, 1 + 3 * ((v >> 1) & 1)]
            corner[2] = s.box[p, 2 + 3 * (v >> 2)]
            move(Q, corner, at)
            for c in range(3):
                low[c] = min(low[c], at[c])
                high[c] = max(high[c], at[c])
    if not low[0] <= high[0]:
        return False
    wide = max(high[0] - low[0], high[1] - low[1], 1e-9)
    middle = local("float", 3)
    for c in range(3):
        middle[c] = 0.5 * (low[c] + high[c])
    for c in range(3):
        sun.eye[c] = A[0, c] * middle[0] + A[1, c] * middle[1] - A[2, c] * middle[2]
    sun.pixel = 1.04 * wide / light.size
    sun.near = 0.5 * (high[2] - low[2]) + 2 * wide
    light.scale = 1 / sun.pixel
    light.bias = 0.5 * sun.pixel
    return True


@procedure
def cast_shadows(
    s: Surfaces, poses: "float[:, 12]", light: Light, sun: View, work: Work, tile: Tile
) -> int:
    """Draw the map of shadows; a code if there was no room."""
    if light.shadow == 0.0:
        return 0
    if not aim_sun(s, poses, light, sun):
        light.shadow = 0.0
        return 0
    see_triangles(s, poses, sun, work, True)
    code = sort_into_tiles(sun, work)
    if code == 0:
        map_tiles(s, sun, work, tile, light, 0, 1)
    return code


@procedure
def look(s: Surfaces, poses: "float[:, 12]", view: View, work: Work) -> int:
    """Collect the triangles that a view sees, by tiles; a code if there was no room."""
    see_triangles(s, poses, view, work, False)
    return sort_into_tiles(view, work)
