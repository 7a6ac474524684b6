"""Constrained systems to first order: along the manifold, and in any coordinates — Spencer §4.1.

The motion is ``xdot = f(x)`` for ``x = (q, v)``. Columns ``dx = Dψ dy`` of the tangent space change
``vdot`` and ``lam`` by what solves

    [M  Gᵀ] [dvdot]     [∂(M vdot - F + Gᵀ lam)]
    [G  0 ] [ dlam] = - [∂(G vdot + Gdot v)    ] dx

so that only ``P`` columns are needed, none of which leaves the manifold. For coordinates
``y = R x`` the linear model in all variables is ``A = [Df] Dψ R``, that of the coordinates
``R [Df] Dψ`` — (4.2)–(4.4).
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import LoopError, ShapeError, SingularError, UnknownNameError
from kinetree.loops.state_space import charts
from kinetree.loops.state_space.invariants import invariant_gradient
from kinetree.loops.state_space.system import ConstrainedSystem, differences_of_equations
from kinetree.textbook.state_chart import linear_state

METHODS = ("equations", "differences", "forward differences")
_STEP = {"differences": 6e-6, "forward differences": 1.5e-8}
"""Of coordinates: where truncation and rounding are alike."""


def acceleration_along(system, t, q, v, dq, dv):
    """Changes of ``vdot`` along tangent columns of ``q`` and ``v``, (n, columns).

    The constraints of the system must be independent.
    """
    vdot, lam, matrix = _motion(system, t, q, v)
    derivatives = system.derivatives or differences_of_equations(
        system.M, system.F, system.G, system.Gdot_v, system.space.move
    )
    by_q, by_v = derivatives(t, q, v, vdot, lam)
    return np.linalg.solve(matrix, -(by_q @ dq + by_v @ dv))[: system.n]


def _motion(system, t, q, v):
    """Acceleration, multipliers and KKT matrix of a constrained system."""
    _, G, Gdot_v = system.constraint(q, v)
    matrix = np.block([[system.M(q), G.T], [G, np.zeros((system.m, system.m))]])
    try:
        found = np.linalg.solve(matrix, np.concatenate([system.F(t, q, v), -Gdot_v]))
    except np.linalg.LinAlgError:
        raise SingularError(
            "some motion that the constraints allow moves no inertia: give mass to the bodies that "
            "take part in it, or constrain it"
        ) from None
    return found[: system.n], found[system.n :], matrix


class ChartLinearization(NamedTuple):
    """``d(dy)/dt = A dy`` near a state, in the coordinates of a chart."""

    A: np.ndarray
    """Derivative of ``dy/dt`` with respect to ``y``, (P, P)."""
    rate: np.ndarray
    """``dy/dt`` at the state itself, (P,)."""
    field: np.ndarray
    """``[Df] Dψ``: how ``f(x)`` changes with the coordinates, (2n, P)."""
    tangent: np.ndarray
    """``Dψ``, (2n, P)."""


def linearize_chart(chart, t, y, method="equations") -> ChartLinearization:
    """Linear model of the motion in chart coordinates; see ``AbstractChart.linearize``."""
    if method not in METHODS:
        raise UnknownNameError(f"a chart has no method {method!r}; use one of {list(METHODS)}")
    system, y = chart.system, np.asarray(y, dtype=float)
    q, v = chart.state(y)
    tangent, rate = chart.derivative(q, v), chart.rate(t, y)
    n, turning = system.n, system.space.brackets(q, v)
    if method == "equations":
        dq, dv = tangent[:n], tangent[n:]
        change = np.concatenate([dv, acceleration_along(system, t, q, v, dq, dv)])
        A = chart.inverse_derivative(q, v) @ change + _curvature(chart, t, y, q, v)
    else:
        step, forward = _STEP[method], method == "forward differences"
        f, start = (lambda y: _field(chart, t, y)), (q, v)
        columns = []
        for e in step * np.eye(len(y)):
            chart.state(y, start)  # every search from here
            ahead = f(y + e)
            chart.state(y, start)
            columns.append((ahead - f(y)) / step if forward else (ahead - f(y - e)) / (2 * step))
        both = np.stack(columns, axis=-1)
        change, A = both[: 2 * n], both[2 * n :]
        chart.state(y, start)
    field = change + np.concatenate([turning @ tangent[:n], np.zeros_like(tangent[n:])])
    return ChartLinearization(A, rate, field, tangent)


def _field(chart, t, y):
    """Concatenated state derivative ``f(ψ(y))`` and chart rate ``dy/dt`` at coordinates ``y``."""
    q, v = chart.state(y)
    vdot = _motion(chart.system, t, q, v)[0]
    return np.concatenate([v, vdot, chart.rate(t, y)])


def _curvature(chart, t, y, q, v):
    """Term ``∂(Dψ⁻¹)/∂y f`` of a chart's linearisation: zero for linear charts."""
    if chart.is_linear:
        return 0.0
    f = np.concatenate([v, _motion(chart.system, t, q, v)[0]])
    step, columns = _STEP["differences"], []
    for e in step * np.eye(len(y)):
        ahead, behind = (chart.inverse_derivative(*chart.state(x, (q, v))) for x in (y + e, y - e))
        columns.append((ahead - behind) @ f / (2 * step))
    chart.state(y, (q, v))
    return np.stack(columns, axis=-1)


class SystemLinearization(NamedTuple):
    """``d(dx)/dt = A dx`` for ``dx = (dq, dv)`` tangent to the manifold, and in coordinates."""

    A: np.ndarray
    """``[Df] Π``, (2n, 2n): about a state ``f(x0) + A dx``."""
    A_hat: np.ndarray
    """The same in the coordinates of the chart, (P, P)."""
    projector: np.ndarray
    """``Π``, (2n, 2n)."""
    tangent: np.ndarray
    """``Dψ``, (2n, P)."""
    invariants: np.ndarray
    """``H``, (2m, 2n)."""
    rate: np.ndarray
    """``f(x) = (v, vdot)``, (2n,)."""
    chart: Any
    """The chart of the coordinates."""

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the reduced state matrix ``A_hat``, (P,)."""
        return np.linalg.eigvals(self.A_hat)


@on_host
def linearize_system(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike,
    *,
    R: Any = None,
    t: float = 0.0,
    projector: str | None = None,
    method: str = "equations",
) -> SystemLinearization:
    """``SystemLinearization`` of a constrained system near a consistent state.

    Args:
        system: the constrained system; redundant constraints are left out.
        q: configuration, (nq,).
        v: velocity, (n,).
        R: the coordinates: a matrix (p, n) for ``y = (R q, R v)``, or (P, 2n) for ``y = R x``; a
            chart; orthonormal directions of the tangent space by default.
        t: time [s].
        projector: ``"orthogonal"``, ``Π = 1 - Hᵀ (H Hᵀ)⁻¹ H``, the default without ``R``;
            ``"coordinates"``, ``Π = Dψ R``, the default with it.
        method: ``"equations"``, from derivatives of the equations; ``"differences"``, by moving the
            coordinates both ways, ``"forward differences"``, one way, as in the thesis.
    """
    if projector not in (None, "orthogonal", "coordinates"):
        raise UnknownNameError(
            f"projector must be 'orthogonal' or 'coordinates', got {projector!r}"
        )
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    chart = _chart(system, q, v, R)
    if chart.size == 0:
        raise LoopError("the constrained system cannot move here: it has no degree of freedom")
    found = chart.linearize(t, chart.coordinates(q, v), method=method)
    orthogonal = projector == "orthogonal" if projector else R is None
    back = np.linalg.pinv(found.tangent) if orthogonal else chart.inverse_derivative(q, v)
    return SystemLinearization(
        A=found.field @ back,
        A_hat=found.A,
        projector=found.tangent @ back,
        tangent=found.tangent,
        invariants=invariant_gradient(chart.system, q, v),
        rate=np.concatenate([v, _motion(chart.system, t, q, v)[0]]),
        chart=chart,
    )


def _chart(system, q, v, R):
    """Chart from an argument: a chart, None, a matrix, or a relation."""
    if isinstance(R, charts.AbstractChart):
        return R
    if R is None:
        return charts.tangent(system, q, v)
    shape = np.shape(R)
    if len(shape) == 2 and shape[1] == system.n:
        return charts.linear(system, q, R, v=v)
    if len(shape) == 2 and shape[1] == 2 * system.n:
        return linear_state(system, q, v, R)
    raise ShapeError(
        f"R must be a matrix with n = {system.n} columns, or 2 n for coordinates of states, or a "
        f"chart; got {shape if shape else R!r}"
    )
