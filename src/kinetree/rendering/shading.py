"""Light of the sun with its shadows, and colours of planes."""

from math import floor

from kinetree.codegen.procedures import local, procedure, sqrt, vector
from kinetree.rendering.tables import (
    DEPTH,
    NODE,
    VERTEX,
    Light,
    Shot,
    Surfaces,
)

SKY = (0.965, 0.972, 0.98)
FAINT = 0.36  # of a shadow on the ground
GLANCING = 0.02  # cosine between normal and sun below which a surface has no shadows on it
_WHOLE = 1.5 * 2**52  # numbers of this size are whole


@procedure(inline=True)
def nearest(x: float) -> float:
    """Nearest integer of a number below 2**51, as a float."""
    return (x + _WHOLE) - _WHOLE


@procedure(inline=True)
def whole(x: float) -> float:
    """Number below 2**51 rounded down, as a float."""
    y = nearest(x)
    return y - 1.0 if y > x else y


@procedure
def sunlight(shot: Shot, x: float, y: float, z: float, slope: float) -> float:
    """Share of sunlight at a point, 1 if lit, by the four nearest shadow-map texels.

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
    half = 0.5 * light.size - 0.5
    u = (A[0, 0] * px + A[0, 1] * py + A[0, 2] * pz) * light.scale + half
    v = half - (A[1, 0] * px + A[1, 1] * py + A[1, 2] * pz) * light.scale
    near = sun.near + (A[2, 0] * px + A[2, 1] * py + A[2, 2] * pz)
    return lit_texels(light, u, v, near + light.bias * (7.0 - 6.0 * slope))


@procedure
def lit_texels(light: Light, u: float, v: float, near: float) -> float:
    """Share of sunlight at shadow-map coordinates, blended over four texels.

    Args:
        light: has the map.
        u: column.
        v: row.
        near: nearness to the sun.
    """
    size = light.size
    if not (u >= 0.0 and u < size - 1.0 and v >= 0.0 and v < size - 1.0):
        return 1.0
    i = floor(u)
    j = floor(v)
    near = max(near, 0.0)  # where nothing is, the map is 0
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
def grid_lines(x: float, y: float, step: float, width: float) -> float:
    """Share of a pixel that is covered by grid lines on the ground.

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
def shade_plane(shot: Shot, k: int, i: float, j: float, out: "float[3]") -> None:
    """Write the colour of a drawn plane at one sample of the picture.

    Args:
        shot: the picture.
        k: number of the plane among the triangles.
        i: column of the sample.
        j: row of the sample.
        out: red, green, blue.
    """
    s = shot.surfaces
    view = shot.view
    f = shot.work.linear[k]
    part = -1 - shot.work.face[k]
    n, ray, at = local("float", 3, 3)
    plane_normal(shot, part, n)
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
    reached = sunlight(shot, at[0], at[1], at[2], slope) if slope > GLANCING else 1.0
    fall = min(max(-(n @ ray), 0.05), 1.0)
    draw_lines(shot, part, at, depth, fall, 1 - FAINT * (1 - reached), out)
    fade = fade_of(s, part, depth * sqrt(ray @ ray))
    for c in range(3):
        out[c] = SKY[c] + fade * (out[c] - SKY[c])


@procedure
def plane_normal(shot: Shot, part: int, n: "float[3]") -> None:
    """Write the unit normal of a plane in base coordinates."""
    s = shot.surfaces
    m = s.normal[s.part[part, VERTEX]]
    P = shot.poses[s.part[part, NODE]]
    for c in range(3):
        n[c] = P[4 * c] * m[0] + P[4 * c + 1] * m[1] + P[4 * c + 2] * m[2]
    size = sqrt(n @ n)
    e = 1 / size if size > 0.0 else 0.0
    n[:] = n * e


@procedure
def fade_of(s: Surfaces, part: int, distance: float) -> float:
    """Visibility of a plane at a distance from the eye, decreasing with haze."""
    x = distance / s.grid[part, 1]
    return 1 / (1 + x * x)


@procedure
def draw_lines(
    shot: Shot, part: int, at: "float[3]", depth: float, fall: float, lit: float, out: "float[3]"
) -> None:
    """Write the colour of a plane with grid lines at a point.

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
