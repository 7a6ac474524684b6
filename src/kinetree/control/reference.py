"""What a controller follows, and how hard: references and gains."""

import numpy as np

from kinetree.errors import ShapeError
from kinetree.functional.kernel import kernel
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

__all__ = ["Gain", "as_reference", "configuration_error", "damping_for"]


@kernel
def configuration_error(m, q, target):
    """The velocity that brings ``q`` to ``target`` in one second, (..., nv)."""
    return m.difference(q, target)


def as_reference(model, reference):
    """A function of time that returns ``q, qd, qdd``.

    Args:
        model: the mechanism.
        reference: such a function, or a configuration (..., nq) to stay at.
    """
    zero = np.zeros(as_model(model).nv)
    if not callable(reference):
        q = as_configuration(model, reference, "reference")
        return lambda t: (q, zero, zero)

    def checked(t):
        found = reference(t)
        if not isinstance(found, (tuple, list)) or len(found) != 3:
            raise ShapeError(
                f"the reference must return (q, qd, qdd) for a time, got "
                f"{type(found).__name__} at t = {t:g}"
            )
        q, qd, qdd = found
        return (
            as_configuration(model, q, "reference q"),
            as_joint_vector(model, qd, "reference qd"),
            as_joint_vector(model, qdd, "reference qdd"),
        )

    return checked


class Gain:
    """A factor for vectors with ``size`` entries: one number, one for each entry, or a matrix."""

    def __init__(self, value, size, name):
        self.value = np.asarray(value, dtype=float)
        if self.value.shape not in ((), (size,), (size, size)):
            raise ShapeError(
                f"{name} must be a number, ({size},) or ({size}, {size}), got shape "
                f"{self.value.shape}"
            )
        if not np.all(np.isfinite(self.value)):
            raise ShapeError(f"{name} must be finite")

    def __call__(self, x):
        """The product with vectors, (..., size)."""
        return x @ self.value.T if self.value.ndim == 2 else self.value * x

    def __repr__(self):
        return f"Gain({self.value.tolist()})"


def damping_for(kp, kd, name="kd"):
    """``kd``, or the critical damping ``2 √kp`` of a unit mass where it is left out."""
    if kd is not None:
        return kd
    kp = np.asarray(kp, dtype=float)
    if kp.ndim == 2 or np.any(kp < 0):
        raise ShapeError(
            f"give {name}: critical damping is known for gains of one or two axes only"
        )
    return 2 * np.sqrt(kp)
