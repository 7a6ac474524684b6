"""Contact problems without an answer, named."""

import numpy as np

from kinetree.errors import InfeasibleContactError

__all__ = ["require_no_closing", "require_solution"]


def require_solution(found, names):
    """Raise InfeasibleContactError for a complementarity problem that was not solved.

    Args:
        found: a solution from ``complementarity``.
        names: what to call the rows.
    """
    if getattr(found, "solved", getattr(found, "converged", True)):
        return
    proof = found.certificate
    if proof is None:
        raise InfeasibleContactError(
            f"no contact forces were found: the best miss the laws by {found.residuals.scaled:.3g} "
            f"of the motion without them",
            residuals=found.residuals,
        )
    rows = np.flatnonzero(np.abs(proof.forces) > 1e-9)
    jammed = tuple(dict.fromkeys(names[k] for k in rows))
    raise InfeasibleContactError(
        f"no contact forces keep {', '.join(map(repr, jammed))} from closing: they would cancel "
        f"each other, as on a disc that moves into the narrow end of a slot. Give the normals a "
        f"tilt, as a slight penetration does, or let an impact stop the motion first",
        contacts=jammed,
        certificate=proof,
        residuals=found.residuals,
    )


def require_no_closing(problem, stiff):
    """Raise InfeasibleContactError for a contact that closes while both sides move as told.

    Args:
        problem: a ``Problem``.
        stiff: which of its contacts no force moves, (n,).
    """
    d = problem.d[::3]
    for k in np.flatnonzero(stiff & (d < -1e-9 * problem.scale)):
        raise InfeasibleContactError(
            f"contact {problem.names[k]!r} closes at {-d[k]:.6g} m/s², and no force keeps it from "
            f"that: nothing on either side is free to move",
            contacts=(problem.names[k],),
        )
