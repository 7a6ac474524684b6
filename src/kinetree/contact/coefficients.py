"""Coefficients of friction and restitution, as a caller gives them."""

import numpy as np

from kinetree.errors import ShapeError

__all__ = ["coefficients_of"]


def coefficients_of(given, own, n, name, most=np.inf):
    """Coefficients of ``n`` contacts, (n,).

    Args:
        given: a number, or one for each; None: those of the contacts.
        own: those of the contacts; None: zero.
        n: number of contacts.
        name: what to call them.
        most: the largest that there may be.
    """
    given = (0.0 if own is None else own) if given is None else given
    values = np.asarray(given, dtype=float)
    if values.shape not in ((), (n,)) or not np.all((values >= 0) & (values <= most)):
        bounds = "from 0 to 1" if most == 1 else "finite, not negative"
        bounds = "not negative" if most == np.inf else bounds
        raise ShapeError(f"{name} must be a number or {n} numbers, {bounds}; got {given!r}")
    return np.array(np.broadcast_to(values, (n,)))
