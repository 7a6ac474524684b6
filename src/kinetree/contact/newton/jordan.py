"""Algebra of second-order cones: scalings, products, and the way to the boundary.

A cone is scaled after Nesterov and Todd (1997): a point ``q`` of its unit hyperboloid and a factor
``theta`` with ``G b = h``, ``G = theta (2 q q' - R)``, ``R = diag(1, -1, ...)``. The first number
of a vector is given apart where a group has no row for it.
"""

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.newton.cones import tangential

__all__ = ["add_product", "apply_scaling", "quotient", "scaling", "until", "until_cone"]


@procedure
def scaling(b0: float, b: "float[:]", h0: float, h: "float[:]", dim: int, q: "float[:]") -> float:
    """Nesterov-Todd scaling of a second-order cone pair: factor ``theta`` and unit vector ``q``."""
    bt = tangential(b, dim)
    ht = tangential(h, dim)
    sb = sqrt(max((b0 - bt) * (b0 + bt), 1e-300))
    sh = sqrt(max((h0 - ht) * (h0 + ht), 1e-300))
    dot = b0 * h0
    for r in range(1, dim):
        dot += b[r] * h[r]
    part = 0.5 / sqrt(max(0.5 + 0.5 * dot / (sb * sh), 0.5))
    q[0] = part * (h0 / sh + b0 / sb)
    q[1:dim] = part * (h[1:dim] / sh - b[1:dim] / sb)
    return sh / sb


@procedure
def apply_scaling(
    q: "float[:]", root: float, sign: float, x: "float[:]", dim: int, out: "float[:]"
):
    """Apply the Nesterov-Todd scaling of a cone, or its inverse for ``sign`` -1, to ``x``."""
    dot = (q[0] + 1.0) * x[0]
    for r in range(1, dim):
        dot += sign * q[r] * x[r]
    dot /= q[0] + 1.0
    f = root if sign > 0.0 else 1.0 / root
    out[0] = f * ((q[0] + 1.0) * dot - x[0])
    out[1:dim] = f * (sign * q[1:dim] * dot + x[1:dim])


@procedure
def add_product(
    q: "float[:]", root: float, h: "float[:]", b0: float, b: "float[:]", dim: int, out: "float[:]"
) -> None:
    """Subtract the Jordan product of scaled changes of a second-order cone pair from ``out``."""
    s = local("float", 6)
    apply_scaling(q, root, -1.0, h, dim, s)
    out[0] -= b0 * s[0]
    for r in range(1, dim):
        out[0] -= b[r] * s[r]
        out[r] -= b0 * s[r] + s[0] * b[r]


@procedure
def quotient(a: "float[:]", x: "float[:]", dim: int) -> None:
    """Solve ``a o y = x`` of the second-order cone's Jordan algebra, in place of ``x``."""
    length = tangential(a, dim)
    dot = a[0] * x[0]
    for r in range(1, dim):
        dot -= a[r] * x[r]
    x[0] = dot / max((a[0] - length) * (a[0] + length), 1e-300)
    x[1:dim] = (x[1:dim] - a[1:dim] * x[0]) / a[0]


@procedure
def until(t: float, x: float, dx: float) -> float:
    """Step length, at most ``t``, at which the positive number ``x + t dx`` becomes zero."""
    return min(t, -x / dx) if x + t * dx < 0.0 else t


@procedure
def until_cone(t: float, x0: float, x: "float[:]", dx0: float, dx: "float[:]", dim: int) -> float:
    """Step length, at most ``t``, at which ``(x0, x)`` leaves the second-order cone."""
    end = x0 + t * dx0
    rest = end * end
    for r in range(1, dim):
        y = x[r] + t * dx[r]
        rest -= y * y
    if end > 0.0 and rest > 0.0:  # as most do: the cone is convex
        return t
    length = tangential(x, dim)
    a = dx0 * dx0
    b = x0 * dx0
    c = max((x0 - length) * (x0 + length), 0.0)
    for r in range(1, dim):
        a -= dx[r] * dx[r]
        b -= x[r] * dx[r]
    least = until(t, x0, dx0)
    root = b * b - a * c  # of a t^2 + 2 b t + c
    if root >= 0.0:
        s = -b - sqrt(root) if b >= 0.0 else sqrt(root) - b
        if a != 0.0 and s / a > 0.0:
            least = min(least, s / a)
        if s != 0.0 and c / s > 0.0:
            least = min(least, c / s)
    return least
