"""Colours: light on surfaces, shadows, lines on the ground, the sky."""

from math import floor

from kinetree.codegen.procedures import local, procedure, sqrt, vector
from kinetree.rendering.tables import (
    DEPTH,
    NODE,
    PIXELS,
    TILE,
    VERTEX,
    Shot,
    Surfaces,
)

SKY = (0.965, 0.972, 0.98)
FAINT = 0.36  # of a shadow on the ground
_WHOLE = 1.5 * 2**52  # numbers of this size are whole


@procedure(inline=True)
def nearest(x: float) -> float:
    """The nearest integer as a float, below 2**51: integers would be made one by one."""
    return (x + _WHOLE) - _WHOLE


@procedure(inline=True)
def whole(x: float) -> float:
    """A number below 2**51 rounded down."""
    y = nearest(x)
    return y - 1.0 if y > x else y


@procedure
def sunlight(shot: Shot, x: float, y: float, z: float, slope: float) -> float:
    """How much of the sun reaches a point: 1 in its light, less in a shadow.

    The map of shadows is compared at the four texels around, and the answers are blended.

    Args:
        shot: has the map.
        x: of the point [m].
        y: of the point [m].
        z: of the point [m].
        slope: cosine of the angle between the surface's normal and the sun.
    """
    light = shot.light
    sun = shot.sun
    if light.shadow == 0.0:
        return 1.0
    A = sun.axes
    px = x - sun.eye[0]
    py = y - sun.eye[1]
    pz = z - sun.eye[2]
    size = light.size
    u = (A[0, 0] * px + A[0, 1] * py + A[0, 2] * pz) * light.scale + (0.5 * size - 0.5)
    v = (0.5 * size - 0.5) - (A[1, 0] * px + A[1, 1] * py + A[1, 2] * pz) * light.scale
    if not (u >= 0.0 and u < size - 1.0 and v >= 0.0 and v < size - 1.0):
        return 1.0
    i = floor(u)
    j = floor(v)
    near = sun.near + (A[2, 0] * px + A[2, 1] * py + A[2, 2] * pz)
    near = max(near + light.bias * (7.0 - 6.0 * slope), 0.0)  # where nothing is, the map is 0
    k = j * size + i
    a = 1.0 if light.map[k] > near else 0.0
    b = 1.0 if light.map[k + 1] > near else 0.0
    c = 1.0 if light.map[k + size] > near else 0.0
    d = 1.0 if light.map[k + size + 1] > near else 0.0
    s = u - i
    t = v - j
    dark = (1 - t) * ((1 - s) * a + s * b) + t * ((1 - s) * c + s * d)
    return 1.0 - light.shadow * dark


@procedure
def smooth_normal(shot: Shot, k: int, i: float, j: float, n: "float[3]") -> None:
    """The unit normal of a triangle at a sample, between those of its corners, in the base."""
    s = shot.surfaces
    f = shot.work.linear[k]
    face = shot.work.face[k]
    m = local("float", 3)
    if face < 0:
        part = -1 - face
        at = s.part[part, VERTEX]
        m[:] = s.normal[at]
    else:
        part = s.owner[face]
        a = max(f[0] * i + f[1] * j + f[2], 0.0)
        b = max(f[3] * i + f[4] * j + f[5], 0.0)
        c = max(f[6] * i + f[7] * j + f[8], 0.0)
        p = s.normal[s.face[face, 0]]
        q = s.normal[s.face[face, 1]]
        r = s.normal[s.face[face, 2]]
        for x in range(3):
            m[x] = a * p[x] + b * q[x] + c * r[x]
    P = shot.poses[s.part[part, NODE]]
    n[0] = P[0] * m[0] + P[1] * m[1] + P[2] * m[2]
    n[1] = P[4] * m[0] + P[5] * m[1] + P[6] * m[2]
    n[2] = P[8] * m[0] + P[9] * m[1] + P[10] * m[2]
    size = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])
    e = 1 / size if size > 0.0 else 0.0
    n[:] = n * e


@procedure
def grid_lines(x: float, y: float, step: float, width: float) -> float:
    """How much of a pixel is line, on ground with lines in two directions.

    Args:
        x: coordinate in the ground [m].
        y: the other.
        step: distance of the lines [m].
        width: of a pixel on the ground, in units of the step.
    """
    u = x / step
    v = y / step
    near = min(abs(u - floor(u + 0.5)), abs(v - floor(v + 0.5)))
    return min(max(1.2 - near / (0.7 * width), 0.0), 1.0)


@procedure
def shade(shot: Shot, k: int, i: float, j: float, out: "float[3]") -> None:
    """The colour of a triangle at a sample.

    Args:
        shot: the picture.
        k: number of the triangle.
        i: column of the sample.
        j: row of the sample.
        out: red, green, blue.
    """
    view = shot.view
    f = shot.work.linear[k]
    face = shot.work.face[k]
    n, ray, at = local("float", 3, 3)
    smooth_normal(shot, k, i, j, n)
    step = view.pixel / view.samples
    x = (i + 0.5 - 0.5 * view.width * view.samples) * step
    y = (0.5 * view.height * view.samples - j - 0.5) * step
    A = view.axes
    ray[:] = A[0] * x + A[1] * y - A[2]
    if n @ ray > 0.0:  # both sides are lit
        n[:] = -n
    depth = 1 / max(f[DEPTH] * i + f[DEPTH + 1] * j + f[DEPTH + 2], 1e-30)
    at[:] = view.eye + depth * ray
    slope = n @ shot.light.sun
    reached = sunlight(shot, at[0], at[1], at[2], slope) if slope > 0.02 else 1.0
    if face < 0:
        fall = min(max(-(n @ ray), 0.05), 1.0)
        shade_plane(shot, -1 - face, at, depth, fall, 1 - FAINT * (1 - reached), out)
        fade = fade_of(shot.surfaces, -1 - face, depth * sqrt(ray @ ray))
        for c in range(3):
            out[c] = SKY[c] + fade * (out[c] - SKY[c])
    else:
        shade_surface(shot, shot.surfaces.owner[face], n, slope, reached, out)


@procedure
def shade_surface(
    shot: Shot, part: int, n: "float[3]", slope: float, reached: float, out: "float[3]"
) -> None:
    """The colour of a part with a normal, in light of which a share reaches it."""
    light = shot.light
    level = 0.44 + 0.14 * (n @ light.up)
    shine = 0.0
    if slope > 0.0:
        level += 0.52 * slope * reached
        h = max(n @ light.shine, 0.0)
        h2 = h * h
        h4 = h2 * h2
        h8 = h4 * h4
        h16 = h8 * h8
        shine = 0.16 * (h16 * h16 * h8) * reached  # the power 40
    for c in range(3):
        out[c] = min(max(shot.surfaces.color[part, c] * level + shine, 0.0), 1.0)


@procedure
def fade_of(s: Surfaces, part: int, distance: float) -> float:
    """How much of a plane is seen at a distance from the eye: there is haze."""
    x = distance / s.grid[part, 1]
    return 1 / (1 + x * x)


@procedure
def shade_plane(
    shot: Shot, part: int, at: "float[3]", depth: float, fall: float, lit: float, out: "float[3]"
) -> None:
    """The colour of a plane with lines.

    Args:
        shot: the picture.
        part: number of the plane.
        at: point on it [m].
        depth: of the point [m].
        fall: cosine between its normal and the ray, at least a small one.
        lit: share of the light.
        out: red, green, blue.
    """
    s = shot.surfaces
    P = shot.poses[s.part[part, NODE]]
    away, inside = local("float", 2, 3)
    away[:] = vector(at[0] - P[3], at[1] - P[7], at[2] - P[11])
    for c in range(3):
        inside[c] = P[c] * away[0] + P[4 + c] * away[1] + P[8 + c] * away[2]
    v = s.part[part, VERTEX]
    origin = s.vertex[v]
    u = (s.vertex[v + 1] - origin) @ (inside - origin)
    w = (s.vertex[v + 2] - origin) @ (inside - origin)
    step = s.grid[part, 0]
    wide = max(0.75 * shot.view.pixel * depth / step, 1e-6) / fall
    line = grid_lines(u, w, step, wide) * min(1.0, 0.25 / wide)
    for c in range(3):
        out[c] = s.color[part, c] * (1 - 0.23 * line) * lit


@procedure(inline=True)
def ground_in_row(shot: Shot, y: float, g: "float[14]") -> None:
    """Numbers of the ground along a row of pixels ``y`` at unit distance, for ``ground_at``.

    Coordinates in the ground, from its middle, are those of the eye plus depth times others.
    """
    view = shot.view
    ground = shot.ground
    A = view.axes
    up = ground.normal
    a = ground.along
    e = view.eye
    g[0] = A[0] @ up
    g[1] = (A[1] @ up) * y - A[2] @ up
    g[2] = e @ up - ground.height
    for c in range(2):
        g[3 + 4 * c] = a[c] @ e
        g[4 + 4 * c] = a[c] @ A[0]
        g[5 + 4 * c] = (a[c] @ A[1]) * y - a[c] @ A[2]
        g[6 + 4 * c] = a[c] @ ground.middle
    g[11] = 1 / ground.step
    g[12] = 1 / ground.reach
    wide = 0.525 * view.pixel * g[11] * max(g[2], 1e-30)
    g[13] = 1 / wide  # of a line at depth 1, in units of the step; it is wider where seen flatly


@procedure(inline=True)
def ground_at(g: "float[14]", x: float) -> "(float, float, float)":
    """Ground of a row at a column: its depth [m], how much is line, and is seen, from 0 to 1."""
    down = -(g[0] * x + g[1])
    z = g[2] / max(down, 1e-9)
    u = g[3] + z * (g[4] * x + g[5])
    w = g[7] + z * (g[8] * x + g[9])
    du = u - g[6]
    dw = w - g[10]
    away = max(1 - sqrt(du * du + dw * dw) * g[12], 0.0)
    p = u * g[11]
    q = w * g[11]
    near = min(abs(p - nearest(p)), abs(q - nearest(q)))
    sharp = g[13] * down * min(max(down, 0.05), 1.0)
    line = min(max(1.2 - near * sharp, 0.0), 0.8)
    fade = away * sqrt(away) if down > 1e-9 else 0.0
    return z, line, fade


@procedure
def may_be_shaded(shot: Shot, x0: float, x1: float, y: float, z0: float, z1: float) -> bool:
    """Whether points between two on a line may be in the map of shadows."""
    light = shot.light
    view = shot.view
    sun = shot.sun
    if light.shadow == 0.0:
        return False
    A = view.axes
    B = sun.axes
    half = 0.5 * light.size * sun.pixel
    p = view.eye + (A[0] * x0 + A[1] * y - A[2]) * z0 - sun.eye
    q = view.eye + (A[0] * x1 + A[1] * y - A[2]) * z1 - sun.eye
    for c in range(2):
        a = B[c] @ p
        b = B[c] @ q
        if max(a, b) < -half or min(a, b) > half:
            return False
    return True


@procedure
def backdrop(
    shot: Shot, left: int, top: int, right: int, bottom: int, color: "float[3, PIXELS]"
) -> None:
    """Sky, and a ground with lines that fade into it.

    Args:
        shot: the picture.
        left: first column of the tile.
        top: first row.
        right: end of the columns.
        bottom: end of the rows.
        color: of the pixels.
    """
    view = shot.view
    count = right - left
    g = local("float", 14)
    low, span = local("float", 2, 3)
    ground = shot.ground
    for c in range(3):
        low[c] = ground.color[c]
        span[c] = ground.lines[c] - low[c]
    for j in range(top, bottom):
        y = (0.5 * view.height - j - 0.5) * view.pixel
        at = (j - top) * TILE
        if ground.drawn:
            ground_in_row(shot, y, g)
        first = (left + 0.5 - 0.5 * view.width) * view.pixel
        last = (left + count - 0.5 - 0.5 * view.width) * view.pixel
        down = max(-(g[0] * first + g[1]), -(g[0] * last + g[1]))
        if not ground.drawn or not (g[2] > 0.0 and down > 1e-9):
            for c in range(3):
                for i in range(count):
                    color[c, at + i] = SKY[c]
            continue
        for i in range(count):
            x = (left + i + 0.5 - 0.5 * view.width) * view.pixel
            _, line, fade = ground_at(g, x)
            color[0, at + i] = SKY[0] + fade * (low[0] + line * span[0] - SKY[0])
            color[1, at + i] = SKY[1] + fade * (low[1] + line * span[1] - SKY[1])
            color[2, at + i] = SKY[2] + fade * (low[2] + line * span[2] - SKY[2])
        shade_ground(shot, y, left, count, g, at, color)


@procedure
def shade_ground(
    shot: Shot,
    y: float,
    left: int,
    count: int,
    g: "float[14]",
    at: int,
    color: "float[3, PIXELS]",
) -> None:
    """Darken a row of ground in the shadow.

    Args:
        shot: the picture.
        y: of the row, at unit distance.
        left: first column.
        count: of columns.
        g: numbers of the row.
        at: its first pixel in the tile.
        color: of the pixels.
    """
    view = shot.view
    ground = shot.ground
    A = view.axes
    first = (left + 0.5 - 0.5 * view.width) * view.pixel
    last = first + (count - 1) * view.pixel
    near = g[2] / max(-(g[0] * first + g[1]), 1e-9)
    far = g[2] / max(-(g[0] * last + g[1]), 1e-9)
    if not may_be_shaded(shot, first, last, y, near, far):
        return
    slope = ground.normal @ shot.light.sun
    for i in range(count):
        x = first + i * view.pixel
        z, line, fade = ground_at(g, (left + i + 0.5 - 0.5 * view.width) * view.pixel)
        if fade > 0.0:
            px = view.eye[0] + z * (A[0, 0] * x + A[1, 0] * y - A[2, 0])
            py = view.eye[1] + z * (A[0, 1] * x + A[1, 1] * y - A[2, 1])
            pz = view.eye[2] + z * (A[0, 2] * x + A[1, 2] * y - A[2, 2])
            dark = FAINT * (1 - sunlight(shot, px, py, pz, slope))
            if dark > 0.0:
                for c in range(3):
                    tint = ground.color[c] + line * (ground.lines[c] - ground.color[c])
                    color[c, at + i] -= fade * tint * dark
