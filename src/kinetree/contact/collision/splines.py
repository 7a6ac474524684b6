"""Height fields: bicubic B-splines over an even grid, with first and second derivatives."""

from kinetree.codegen.procedures import local, procedure
from kinetree.contact.collision.tables import Shapes


@procedure
def field_surface(shapes: Shapes, i: int, x: float, y: float, s: "float[6]") -> None:
    """Height of field i at (x, y) in its coordinates, and derivatives: h, hx, hy, hxx, hxy, hyy.

    Beyond its border the ground goes on level.
    """
    nx, ny, size = shapes.data[i, 1], shapes.data[i, 2], shapes.size[i]
    u, v = local("float", 3, 4), local("float", 3, 4)
    row = spline_weights(x, size[0], nx, u)
    column = spline_weights(y, size[1], ny, v)
    for k in range(6):
        s[k] = 0.0
    for a in range(4):
        first = shapes.data[i, 0] + (row + a) * ny + column
        h, hy, hyy = 0.0, 0.0, 0.0
        for b in range(4):
            c = shapes.height[first + b]
            h += v[0, b] * c
            hy += v[1, b] * c
            hyy += v[2, b] * c
        s[0] += u[0, a] * h
        s[1] += u[1, a] * h
        s[2] += u[0, a] * hy
        s[3] += u[2, a] * h
        s[4] += u[1, a] * hy
        s[5] += u[0, a] * hyy


@procedure
def spline_weights(x: float, half: float, count: int, w: "float[3, 4]") -> int:
    """Weights of four coefficients and of two derivatives; the number of the first of the four."""
    step = 2.0 * half / (count - 3)
    place = min(max((x + half) / step, 0.0), count - 3.0)
    first = min(int(place), count - 4)
    f = place - first
    g = 1.0 - f
    w[0, 0] = g * g * g / 6.0
    w[0, 1] = (4.0 - 6.0 * f * f + 3.0 * f * f * f) / 6.0
    w[0, 2] = (4.0 - 6.0 * g * g + 3.0 * g * g * g) / 6.0
    w[0, 3] = f * f * f / 6.0
    inside = 1.0 if abs(x) <= half else 0.0
    a, b = inside / (2.0 * step), inside / (step * step)
    w[1, 0] = -g * g * a
    w[1, 1] = (3.0 * f * f - 4.0 * f) * a
    w[1, 2] = (4.0 * g - 3.0 * g * g) * a
    w[1, 3] = f * f * a
    w[2, 0] = g * b
    w[2, 1] = (3.0 * f - 2.0) * b
    w[2, 2] = (3.0 * g - 2.0) * b
    w[2, 3] = f * b
    return first
