"""A complementarity problem as equations: by how much forces miss what the laws make of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.contact.complementarity.residuals import relative_error
from kinetree.contact.complementarity.rows import Rows, obeyed

__all__ = ["Equations"]


@dataclass(frozen=True)
class Equations:
    """``lam`` and ``w = A lam + b`` under the laws of ``rows``, in comparable units.

    Attributes:
        A: motion per force, (n, n).
        b: motion without forces, (n,).
        rows: cones and bounds.
    """

    A: Any
    b: Any
    rows: Rows

    def missing(self, lam):
        """Errors of forces, (n,); zero where they obey."""
        return lam - obeyed(self.rows, lam, self.A @ lam + self.b)

    def merit(self, lam):
        """Sum of the squared errors."""
        return float(np.sum(self.missing(lam) ** 2))

    def error(self, lam):
        """Largest error, in units of the largest ``b``."""
        return relative_error(self.rows, self.A, self.b, lam)
