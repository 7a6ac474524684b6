"""Complementarity problems of contact, as matrices and vectors, and their solvers.

``lcp`` and ``quadratic`` are frictionless contact, RBDA (11.42) to (11.44); ``cones`` has friction,
loops, limits and dry joint friction in one problem, ``polyhedral`` the same with flat-sided cones.
Every solution comes with its residuals; where there is none, with a proof.
"""

from kinetree.contact.complementarity import cones, lcp, polyhedral, quadratic

__all__ = ["cones", "lcp", "polyhedral", "quadratic"]
