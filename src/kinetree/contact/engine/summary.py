"""Largest values and sums of what steps have stored, for reports: one pass over the record."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.engine.motions import Storage

WIDE = 16
"""Numbers of a motion in a summary: ten residuals, and those that follow here."""
FASTEST, KINETIC, LOWEST, HIGHEST, WORK, UNBALANCED = range(10, WIDE)
"""Largest speed of a variable and kinetic energy, range of the potential energy, largest work,
largest change of energy that is not work."""


@procedure
def summarise(
    x: Storage, times: int, worlds: int, nv: int, some: "int[:]", count: int, out: "float[:, 16]"
):
    """Summaries of all motions over some times; ``some``, ``count``: variables that count."""
    for w in range(worlds):
        y = out[w]
        y[:10] = x.residuals[w]
        first = x.kinetic[w] + x.potential[w]
        y[10] = y[11] = y[14] = y[15] = 0.0
        y[12] = y[13] = x.potential[w]
        for t in range(times):
            k = t * worlds + w
            for i in range(10 if t > 0 else 0):
                summed = i == 5 or i == 6 or i == 7 or i == 9
                z = x.residuals[k, i]
                y[i] = y[i] + z if summed else max(y[i], z)
            for i in range(count):
                y[10] = max(y[10], abs(x.v[k * nv + some[i]]))
            y[11] = max(y[11], x.kinetic[k])
            y[12] = min(y[12], x.potential[k])
            y[13] = max(y[13], x.potential[k])
            y[14] = max(y[14], abs(x.work[k]))
            y[15] = max(y[15], abs(x.kinetic[k] + x.potential[k] - first - x.work[k]))
