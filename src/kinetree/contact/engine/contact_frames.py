"""Frames of contacts: axes, scales of their rows, and velocities of bodies along them."""

from kinetree.codegen.procedures import dot, local, procedure, vector
from kinetree.contact.collision.sweep import velocity_at
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.row_tables import Rows

JUMP = -0.5  # of the tangents: see ``contacts.contact_axes``

LEAST = 1e-9  # of a coefficient of friction relative to that of sliding, so that rows are not zero


@procedure
def contact_frame(n: "float[3]", axes: "float[3, 3]"):
    """Write a contact's orthonormal axes as rows: the unit normal and two tangents."""
    x, y, z = n[0], n[1], n[2]
    s = -1.0 if z < JUMP else 1.0
    a = -1.0 / (s + z)
    b = x * y * a
    axes[0] = n
    axes[1] = vector(1.0 + s * x * x * a, s * b, -s * x)
    axes[2] = vector(b, s + y * y * a, -y)


@procedure
def point_velocity(m: Mechanism, twist: "float[:, 6]", i: int, x: "float[3]", out: "float[3]"):
    """Velocity of the point of body ``i`` at the world position ``x``; zero for the base."""
    if i == 0:
        out[:] = 0.0
    else:
        velocity_at(twist[i], x - m.pose[m.root[i], 3::4], out)


@procedure
def relative_velocity(m: Mechanism, f: Found, c: int, twist: "float[:, 6]", w: "float[3]"):
    """Velocity of the second body relative to the first at contact ``c``, in the world."""
    u = local("float", 3)
    point_velocity(m, twist, f.bodies[c, 0], f.point[c], u)
    point_velocity(m, twist, f.bodies[c, 1], f.point[c], w)
    w[:] -= u


@procedure
def normal_velocity(m: Mechanism, f: Found, c: int, twist: "float[:, 6]") -> float:
    """Velocity at which contact ``c`` opens along its normal [m/s]."""
    w = local("float", 3)
    relative_velocity(m, f, c, twist, w)
    return dot(f.normal[c], w)


@procedure
def slips(m: Mechanism, rows: Rows, f: Found, twist: "float[:, 6]"):
    """Write contact velocities along normal and tangents of all contacts with rows to ``slip``."""
    w = local("float", 3)
    for g in range(rows.contacts):
        relative_velocity(m, f, rows.contact[g], twist, w)
        rows.slip[g] = rows.axes[g] @ w + rows.bend[g]


@procedure
def scaled_rows(rows: Rows, f: Found, c: int, g: int) -> "(int, float)":
    """Write axes and row scales of contact ``c`` for group ``g``; rows and friction."""
    mu = f.friction[c]
    dim = f.dim[c]
    slide = mu[0]
    if slide <= 0.0 and dim > 1:
        slide = max(mu[1], mu[2]) if dim > 3 else 0.0
    if slide <= 0.0:
        dim = 1
    if dim > 3 and mu[1] <= 0.0 and mu[2] <= 0.0:
        dim = 3
    contact_frame(f.normal[c], rows.axes[g])
    scale = rows.scale[g]
    scale[0] = 1.0
    for r in range(1, dim):
        n = 0 if r < 3 else (1 if r == 3 else 2)
        scale[r] = max(mu[n] / slide, LEAST)
    return dim, slide
