"""Forces that it took to move joints as told, along a motion."""

import numpy as np

from kinetree.functional.kernel import kernel

__all__ = ["drive_forces"]


@kernel
def _drive_force(model, t, q, qd, tau, *, field):
    return field.drive_force(model, t, q, qd, tau)


def drive_forces(stepper, arrays) -> np.ndarray:
    """Joint forces of the controller, and of the drives where it has no say, (T, ..., nv).

    Args:
        stepper: what took the steps.
        arrays: what was stored, by name.
    """
    if hasattr(stepper, "drive_forces"):
        return stepper.drive_forces(arrays)
    model, field = stepper.model, stepper.field
    field_at = getattr(stepper, "field_at", lambda t: field)
    t, q, qd, tau = (arrays[name] for name in ("t", "q", "qd", "tau"))
    if stepper.compiled and not hasattr(stepper, "field_at"):
        times = t.reshape(-1, *[1] * (qd.ndim - 2))
        neutral, zero = model.neutral(), np.zeros(model.nv)
        compiled = _drive_force.compiled(model, 0.0, neutral, zero, zero, field=field)
        return compiled.call(times, q, qd, tau)
    each = zip(t, q, qd, tau, strict=True)
    return np.array([field_at(now[0]).drive_force(model, *now) for now in each])
