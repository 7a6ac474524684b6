"""Largest values and sums of what steps have stored, for reports: one pass over the record."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.engine.motions import Storage

WIDE = 16
"""Numbers of a motion in a summary: ten residuals, and those that follow here."""
WORK_OF_CONTACTS, TAKEN, TOUCHING = 5, 7, 9
"""Residuals that are sums over steps, the first two with what is between them; of the others the
largest counts."""
FASTEST, KINETIC, LOWEST, HIGHEST, WORK, UNBALANCED = range(10, WIDE)
"""Largest speed of a variable and kinetic energy, range of the potential energy, largest work,
largest change of energy that is not work."""


@procedure
def summarise(
    x: Storage, times: int, worlds: int, nv: int, some: "int[:]", count: int, out: "float[:, 16]"
):
    """Write each motion's largest residuals, energies and speeds over all stored times."""
    for w in range(worlds):
        y = out[w]
        y[:10] = x.residuals[w]
        first = x.kinetic[w] + x.potential[w]
        y[FASTEST] = y[KINETIC] = y[WORK] = y[UNBALANCED] = 0.0
        y[LOWEST] = y[HIGHEST] = x.potential[w]
        for t in range(times):
            k = t * worlds + w
            for i in range(10 if t > 0 else 0):
                summed = WORK_OF_CONTACTS <= i <= TAKEN or i == TOUCHING
                z = x.residuals[k, i]
                y[i] = y[i] + z if summed else max(y[i], z)
            for i in range(count):
                y[FASTEST] = max(y[FASTEST], abs(x.v[k * nv + some[i]]))
            y[KINETIC] = max(y[KINETIC], x.kinetic[k])
            y[LOWEST] = min(y[LOWEST], x.potential[k])
            y[HIGHEST] = max(y[HIGHEST], x.potential[k])
            y[WORK] = max(y[WORK], abs(x.work[k]))
            off = x.kinetic[k] + x.potential[k] - first - x.work[k]
            y[UNBALANCED] = max(y[UNBALANCED], abs(off))
