"""Contacts without friction: three forms of one problem — RBDA §11.5.

As a linear complementarity problem, RBDA (11.42); as a quadratic program in the forces, (11.43),
whose optimality conditions are the former; and as one in the accelerations, (11.44): of all motions
that the contacts allow, the nearest to the free one, as Gauss put it. With ``A = B Bᵀ`` and
``qdd = a + B x`` its metric is that of the unit matrix.
"""

import numpy as np

from kinetree.contact.complementarity import lcp, quadratic
from kinetree.contact.rigid.refusals import require_solution
from kinetree.errors import UnknownNameError
from kinetree.spelling import did_you_mean

__all__ = ["METHODS", "require_method", "solve"]

METHODS = ("auto", "lcp", "lemke", "forces", "accelerations")
"""Names of the methods: principal pivoting and Lemke's for the complementarity problem, and the two
quadratic programs."""


def require_method(method):
    """Raise UnknownNameError for what is not a method."""
    if method not in METHODS:
        raise UnknownNameError(
            f"there is no method {method!r} for contact forces; "
            + did_you_mean(method, METHODS, f"use one of {', '.join(METHODS)}")
        )


def solve(problem, method="auto"):
    """Forces along the normals of a ``Problem``, (n,), a basic solution.

    Raises:
        InfeasibleContactError: there are none.
    """
    normal = np.arange(problem.size) * 3
    M, d = problem.M[np.ix_(normal, normal)], problem.d[normal]
    if method == "accelerations":
        values, vectors = np.linalg.eigh((problem.A + problem.A.T) / 2)
        B = vectors * np.sqrt(np.maximum(values, 0.0))
        kept = values > 1e-14 * np.max(values, initial=0.0)
        B = B[:, kept]
        still = np.zeros(B.shape[1])
        found = quadratic.in_accelerations(np.eye(len(still)), still, problem.J[:, 0] @ B, d).forces
    else:
        solvers = {"lemke": lcp.lemke, "forces": quadratic.in_forces}
        found = solvers.get(method, lcp.pivoting)(M, d)
    require_solution(found, problem.names)
    return found.lam
