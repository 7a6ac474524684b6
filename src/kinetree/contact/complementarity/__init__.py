"""Complementarity problems of contact, as matrices and vectors, and their solvers.

``lcp`` is frictionless contact, RBDA (11.42); ``cones`` has friction, loops, limits and dry joint
friction in one problem. ``polyhedral``, the same with flat-sided cones, and ``quadratic``, the
programs of RBDA (11.43) and (11.44), are texts of ``kinetree.textbook``, imported on first use.
Every solution comes with its residuals; where there is none, with a proof.
"""

from typing import TYPE_CHECKING

from kinetree.arguments import text_getter
from kinetree.contact.complementarity import cones, lcp

if TYPE_CHECKING:
    from kinetree.textbook import polyhedral_friction as polyhedral
    from kinetree.textbook import quadratic_programs as quadratic

__all__ = ["cones", "lcp", "polyhedral", "quadratic"]

__getattr__ = text_getter(
    __name__, {"polyhedral_friction": "polyhedral", "quadratic_programs": "quadratic"}
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
