"""Targets of the rows of a step: gaps that close no farther, bounces, rest."""

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.parts import StepState
from kinetree.contact.engine.row_tables import Rows, moment_of
from kinetree.contact.newton.problem import Problem
from kinetree.contact.newton.problem import row_velocity as velocities_of_rows


@procedure
def restitution_of(rows: Rows, f: Found, g: int) -> float:
    """Coefficient of restitution of a group: a contact or joint stop, else 0."""
    k = rows.contact[g]
    if g < rows.contacts:
        return f.restitution[k]
    return rows.stop_bounce[k] if k < rows.stops else 0.0


@procedure
def arrival(gap: float, w: float, c: float, tau: float, h: float) -> float:
    """Time in the step at which a gap closes [s]; 2h if it stays open.

    ``w`` is its velocity at the start, ``c`` the change of that within the step.
    """
    start = gap - tau * w - c * tau * tau / (2.0 * h)
    if start <= 0.0:
        return 0.0
    root = w * w - 2.0 * start * c / h
    if root < 0.0 or (w >= 0.0 and c >= 0.0):
        return 2.0 * h
    t = 2.0 * start / (sqrt(root) - w)
    return t if t <= h else 2.0 * h


@procedure
def bounce(
    p: Problem, rows: Rows, g: int, e: float, gap: float, tau: float, h: float, change: "float[:]"
) -> float:
    """Addition to a group's normal velocity target for an impact with restitution ``e``.

    Before it has arrived it must not be inside at the end of the step, and no more. Friction that
    holds it holds it when it arrives.
    """
    w = local("float", 6)
    velocities_of_rows(p, g, change, w)
    c = row_velocity(p, rows, g, change)
    if moment_of(p, rows, g) < 0.0:  # bodies have come there without the change
        gap += c * tau * tau / (2.0 * h)
    t = arrival(gap, rows.before[g], c, tau, h)
    if t > h:
        return gap / max(h - tau, 1e-3 * h)
    rows.left[g] = (h - t) / h
    for r in range(1, p.dim[g]):
        p.target[p.row_first[g] + r] -= rows.left[g] * w[r]
    return e * (rows.before[g] + c * t / h) - rows.left[g] * c


@procedure
def targets(s: StepState, p: Problem, rows: Rows, f: Found, first: int):
    """Set the velocity targets of groups from ``first`` on, from gaps and restitution.

    A gap that is open at the middle of the step closes by the middle of the next one at most:
    ``w_n + gap / h ≥ 0``. One that arrives faster than ``rest`` bounces: ``w_n ≥ -e w_n⁻``,
    Newton's law in the form of Moreau, as soon as it arrives. Penetration up to ``deep`` is
    rounding error, which velocities take out. Contacts that go on want to be at rest in the middle
    of the step, see ``bending``.
    """
    h = s.h
    for g in range(first, p.groups):
        row = p.row_first[g]
        k = rows.contact[g]
        gap = rows.gap[g]
        rows.left[g] = 0.0
        if g < rows.contacts or k < rows.stops:
            e = restitution_of(rows, f, g)
            tau = moment_of(p, rows, g)
            add = max(gap, -s.deep) / (h if tau < 0.0 else 1.5 * h - tau)
            add += rows.bend[g, 0]
            if g < rows.contacts:
                for r in range(1, min(p.dim[g], 3)):
                    p.target[row + r] += rows.scale[g, r] * rows.bend[g, r]
            if e > 0.0 and rows.before[g] < -s.rest:
                add = bounce(p, rows, g, e, gap, s.alpha * h if tau < 0.0 else tau, h, s.change)
            p.target[row] += add
        elif k >= rows.stops + rows.dry:
            p.target[row] += min(max(gap, -s.deep), s.deep) / h + rows.bend[g, 0]


@procedure
def row_velocity(p: Problem, rows: Rows, g: int, v: "float[:]") -> float:
    """Velocity ``J v`` of a group's first row, prescribed variables included."""
    w = 0.0
    for n in range(p.entry_first[g], p.entry_first[g + 1]):
        a = p.entry_node[n]
        at = p.entry_at[n]
        for j in range(p.node_count[a]):
            w += (p.J[at + j] + rows.fixed[at + j]) * v[p.node_first[a] + j]
    return w


@procedure
def gap_at_end(p: Problem, rows: Rows, g: int, beta: float, v: "float[:]") -> float:
    """Gap of a contact or stop after the last ``beta`` seconds of the step."""
    return rows.gap[g] + beta * (row_velocity(p, rows, g, v) + rows.bend[g, 0])
