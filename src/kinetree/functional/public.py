"""Which functions can be taken apart: those of the library, and kernels of the user's."""

from kinetree.quantities import (
    cartesian,
    centroidal,
    dynamics,
    hybrid,
    kinematics,
    lagrangian,
    regressors,
    task_space,
)

__all__ = ["PUBLIC", "is_public", "require_traceable"]

PUBLIC = (dynamics, hybrid, kinematics, centroidal, lagrangian, task_space, cartesian, regressors)
"""The modules whose functions are compiled quantities."""


def is_public(function) -> bool:
    """Whether this is one of the functions of ``kinetree.quantities.dynamics`` and its like."""
    name = getattr(function, "__name__", "")
    return any(name in m.__all__ and getattr(m, name) is function for m in PUBLIC)


def require_traceable(function, what):
    """Raise TypeError for a function that cannot be taken apart."""
    if not is_public(function) and not hasattr(function, "bind"):
        raise TypeError(
            f"{what} takes a function of kinetree such as kinetree.inverse_dynamics, or one of "
            f"your own under @kinetree.kernel; got {function!r}"
        )
