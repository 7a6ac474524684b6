"""Checking the parameters of a joint."""

import numbers

import numpy as np

from kinetree.errors import JointError

__all__ = ["as_choice", "as_number"]


def as_number(value, what, remedy=""):
    """``value`` if it is one finite number of any kind, else an error that names it."""
    refused = isinstance(value, (bool, str, bytes)) or value is None or np.shape(value) != ()
    if refused or (isinstance(value, numbers.Complex) and not np.isfinite(complex(value))):
        raise JointError(f"{what} must be a finite number, got {value!r}{remedy}")
    return value


def as_choice(value, what, choices):
    """``value`` if it is one of ``choices``, else an error that lists them."""
    if value not in choices:
        raise JointError(f"{what} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
