"""The motion of all joints from that of the independent coordinates — Spencer (4.8)–(4.10)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import (
    LoopError,
    ShapeError,
    SimulationError,
    UnknownNameError,
    UnreachableError,
)
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.linearization import linearize_in_coordinates
from kinetree.loops.linear.velocity_basis import (
    closed_where,
    coordinate_accelerations,
    coordinate_rates,
    coordinate_values,
    moved,
    require_loops,
    velocity_basis,
)
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model


class CoordinateMotion(NamedTuple):
    """A motion of all joints that keeps loops closed."""

    q: Any
    """(..., nq)"""
    qd: Any
    """(..., nv)"""
    qdd: Any
    """(..., nv)"""


@on_host
def coordinate_motion(
    model: Model,
    q0: ArrayLike,
    y: ArrayLike,
    yd: ArrayLike,
    ydd: ArrayLike,
    *,
    independent: Sequence[str],
) -> CoordinateMotion:
    """All joints of a closed mechanism, for a motion of its independent coordinates.

    Args:
        model: the mechanism, with loops or couplings.
        q0: a closed configuration near the first ``y``, which selects the assembly, (nq,).
        y: values of the coordinates [m or rad], (p,), or (samples, p) along a motion; of a free or
            ball joint what leads there from its neutral position,
            ``joint.difference(joint.neutral(), q)``.
        yd: their velocity variables, like ``y``: rates of ``y``, except for free and ball joints.
        ydd: the rates of these, like ``y``.
        independent: names of the joints whose variables are the coordinates.

    Raises:
        LoopError: some variables of a free or ball joint are coordinates, and others are not.
    """
    q0 = as_configuration(as_model(model), q0)
    require_loops(model, "the variables of all its joints are independent")
    given = [np.asarray(a, dtype=float) for a in (y, yd, ydd)]
    try:
        y, yd, ydd = np.broadcast_arrays(*given)
    except ValueError:
        raise ShapeError(
            f"y, yd and ydd must have one shape, (p,) or (samples, p), got "
            f"{', '.join(str(a.shape) for a in given)}"
        ) from None
    chosen = coordinates(model, constraint(model, q0, np.zeros(model.nv)).K, independent)
    if y.ndim not in (1, 2) or y.shape[-1] != len(chosen.names):
        raise ShapeError(
            f"y must have shape ({len(chosen.names)},) or (samples, {len(chosen.names)}) for the "
            f"coordinates {', '.join(map(repr, chosen.names))}, got {y.shape}"
        )
    positions, q = [], q0
    for sample in y.reshape(-1, y.shape[-1]):
        q = _with_values(model, q, sample, chosen)
        positions.append(q)
    q = np.array(positions).reshape(*y.shape[:-1], model.nq)
    K = constraint(model, q, np.zeros(model.nv)).K
    basis = velocity_basis(model, q, K, chosen)
    qd = np.einsum("...np,...p->...n", basis.G, yd)
    products = coordinate_accelerations(model, q, qd, np.zeros(model.nv), chosen)
    wanted = np.concatenate([ydd - products, constraint(model, q, qd).k], axis=-1)
    return CoordinateMotion(q, qd, np.einsum("...nc,...c->...n", basis.inverse, wanted))


def _with_values(model, q, y, chosen):
    """The closed configuration near ``q`` whose coordinates have the values ``y``, (nq,)."""
    if chosen.flat:
        return moved(model, q, y - coordinate_values(model, q, chosen), chosen)
    taken, target = np.any(chosen.rows, axis=0), {}
    for i in range(1, model.body_count + 1):
        joint, at = model.joint[i], model.v_slice[i]
        if not np.any(taken[at]) or joint.rates_are_velocities:
            continue
        if not np.all(taken[at]):
            raise LoopError(
                f"coordinate_motion takes all variables of joint {model.joint_names[i - 1]!r} of "
                f"model {model.name!r} as coordinates, or none: those of a free or ball joint "
                f"have no values of their own, since their rates are not independent"
            )
        target[i] = joint.integrate(joint.neutral(), chosen.rows[:, at].T @ y)

    def lacking(q):
        """By a free or ball joint, the way to its position from where it is."""
        dy = y - coordinate_values(model, q, chosen)
        for i, position in target.items():
            rows, way = chosen.rows[:, model.v_slice[i]], q[model.q_slice[i]]
            mine = np.any(rows, axis=1)
            dy[mine] = (rows @ model.joint[i].difference(way, position))[mine]
        return dy

    found = closed_where(model, q, lacking, chosen)
    if found is not None:
        return found
    raise UnreachableError(
        f"model {model.name!r} finds no closed configuration with {', '.join(chosen.names)} at "
        f"{np.asarray(y)}: start nearer, or choose other independent joints"
    )


# --- implicit steps on a chart: Spencer 4.6 ------------------------------------------------------
# In independent coordinates ``z = (y, yd)`` the motion is an ordinary differential equation
# ``dz/dt = f(z)``, and an implicit step solves
#
#     backward Euler:   z1 - z0 - h f(z1) = 0                        matrix  1 - h A
#     trapezoid:        z1 - z0 - h/2 (f(z0) + f(z1)) = 0            matrix  1 - h/2 A
#
# by Newton's method, whose iteration matrix is made of ``A`` of ``linearize_in_coordinates``: no
# differences, and quadratic convergence. All iterates are closed configurations. For stiff
# mechanisms, whose springs and dampers are those of the joints.
#
# Of free and ball joints ``y1 - y0`` is ``difference(q0, q1)``, so that the step is a method on the
# group: the mean of two velocities leads from one position to the other, which is of second order,
# too. ``A`` then leaves out terms of the size ``h yd``, and convergence is linear in these.

_WEIGHTS = {"backward_euler": 1.0, "trapezoid": 0.5}
_ITERATIONS = 30


class ImplicitStep(NamedTuple):
    """Where a step ends."""

    q: Any
    """(nq,)"""
    qd: Any
    """(nv,)"""
    corrections: tuple
    """Largest change of ``z`` in each iteration of Newton's method."""


@on_host
def implicit_step(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    dt: float,
    f_ext: ArrayLike | dict | None = None,
    *,
    scheme: str = "trapezoid",
    independent: Sequence[str] | str | ArrayLike | None = None,
    tolerance: float = 1e-12,
    linearization: str = "equations",
) -> ImplicitStep:
    """One implicit step of a closed mechanism, which stays closed.

    Args:
        model: the mechanism, with loops or couplings.
        q: joint positions that close the loops, (nq,).
        qd: joint velocities that keep them closed, (nv,).
        tau: forces of the motors, held over the step, (nv,).
        dt: length of the step [s].
        f_ext: forces acting on bodies, held over the step.
        scheme: ``"trapezoid"``, of second order; ``"backward_euler"``, of first order, damps.
        independent: coordinates, as in ``linearize_in_coordinates``.
        tolerance: correction of ``z`` relative to its size at which iterations end.
        linearization: method of ``linearize_in_coordinates`` for the iteration matrix.

    Raises:
        SimulationError: Newton's method does not converge; take a shorter step.
    """
    if scheme not in _WEIGHTS:
        raise UnknownNameError(
            f"implicit_step has no scheme {scheme!r}; use one of {list(_WEIGHTS)}"
        )
    weight, corrections = dt * _WEIGHTS[scheme], []
    start = linearize_in_coordinates(model, q, qd, tau, f_ext, independent=independent)
    chosen, p = start.chosen, len(start.coordinates)
    known = dt * start.rate - weight * start.rate  # the explicit part of the step
    change, here = dt * start.rate, start  # of z, and the linear model there
    yd = coordinate_rates(model, q, qd, chosen)
    at_q, at_qd = q, qd
    for _ in range(_ITERATIONS):
        at_q, at_qd = _state(model, at_q, q, change, yd, chosen)
        here = linearize_in_coordinates(
            model, at_q, at_qd, tau, f_ext, independent=independent, method=linearization
        )
        residual = change - known - weight * here.rate
        step = np.linalg.solve(np.eye(2 * p) - weight * here.A, -residual)
        change = change + step
        corrections.append(float(np.max(np.abs(step))))
        if corrections[-1] <= tolerance * max(1.0, float(np.max(np.abs(change)))):
            return ImplicitStep(*_state(model, at_q, q, change, yd, chosen), tuple(corrections))
        if not np.isfinite(corrections[-1]):
            break
    raise SimulationError(
        f"an implicit step of {dt:.3g} s does not converge for model {model.name!r}: corrections "
        f"{', '.join(f'{c:.2g}' for c in corrections[-3:])}; take shorter steps"
    )


def _state(model, near, q, change, yd, chosen):
    """The closed state whose coordinates differ by ``change`` from ``(q, yd)``."""
    p = len(yd)
    q = moved(model, q, change[:p], chosen, near)
    K = constraint(model, q, np.zeros(model.nv)).K
    return q, velocity_basis(model, q, K, chosen).G @ (yd + change[p:])
