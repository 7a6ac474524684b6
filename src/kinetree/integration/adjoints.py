"""Steps on arrays backwards: from gradients at the end of a step to those at its start.

All gradients are along tangents, (..., nv), with the batch axes of the state and any axes before
them. What a step needs of a mechanism are derivatives of the equation of motion, which are general
code; ``on_arrays`` says why that pays.

A change ``δq`` of where a step begins and ``δu`` of the local coordinates change ``q ⊕ u`` by
``e⁻ᵃ δq + E δu``, with ``a`` the bracket with ``u`` and ``E`` the ``dexp`` of ``manifold``, for
which ``e⁻ᵃ = 1 - a E``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.integration.explicit import ExplicitRungeKutta, SemiImplicitEuler
from kinetree.integration.field import times
from kinetree.integration.implicit import ImplicitMidpoint
from kinetree.integration.manifold import (
    bracket_matrix,
    dexp,
    is_flat,
    move,
    series,
    turns_over,
)
from kinetree.integration.on_arrays import (
    inverse_dynamics_derivatives,
    motion_derivatives,
    move_derivative,
    of_each,
    solve_each,
    transposed_times,
    turning_joints,
)
from kinetree.integration.rosenbrock import RosenbrockW


class Gradients(NamedTuple):
    """Gradients of a cost at the start of a step, (..., nv) each."""

    q: Any
    qd: Any
    tau: Any


def has_adjoint(model, method, field) -> bool:
    """Whether ``pulled_back`` supports the steps of an integrator on this model and field."""
    known = type(method) in ADJOINTS and field.drive is None and field.actuators is None
    known = known and not (type(method) is RosenbrockW and model.is_constrained)
    inner = getattr(method, "inner", None)
    return known and not turns_over(model) and (inner is None or has_adjoint(model, inner, field))


def pulled_back(method, field, model, state, p_q, p_v) -> Gradients:
    """Reverse mode of one step: gradients at its start from those at its end.

    Args:
        method: the integrator, for which ``has_adjoint`` holds.
        field: a ``FieldOnArrays``.
        model: the mechanism.
        state: ``t, h, q, qd, tau`` of the step, arrays with one batch axis.
        p_q: gradient with respect to the positions at its end, along tangents.
        p_v: gradient with respect to the velocities there.
    """
    return ADJOINTS[type(method)](method, field, model, state, p_q, p_v)


def _through_stages(method, field, model, state, p_q, p_v):
    """Reverse mode of an explicit Runge-Kutta step, from the last stage to the first."""
    (t, h, q, qd, tau), table, order = state, method.tableau, method.order
    k_u, k_v, _ = method._rates(field, model, t, h, q, qd, tau)
    end = _Moved(model, h * _sum(table.b, k_u))
    by_q, by_v, by_tau, by_u = end.back(p_q), p_v, 0 * p_v, end.along(p_q)
    b_u = [h * b * by_u for b in table.b]
    b_v = [h * b * p_v for b in table.b]
    for i in reversed(range(len(table.b))):
        a = table.a[i]
        u, v = h * _sum(a, k_u[:i], 0 * qd), qd + h * _sum(a, k_v[:i], 0 * qd)
        at = _Moved(model, u)
        now = t + table.c[i] * h, move(model, q, u), v, tau
        w, at_q, at_v = field.pulled_back(now, k_v[i], b_v[i])
        rate_u, rate_v = at.through_rate(v, b_u[i], order)
        at_v, at_u = at_v + rate_v, at.along(at_q) + rate_u
        by_q, by_v, by_tau = by_q + at.back(at_q), by_v + at_v, by_tau + w
        for j, weight in enumerate(a):
            b_u[j], b_v[j] = b_u[j] + h * weight * at_u, b_v[j] + h * weight * at_v
    return Gradients(by_q, by_v, by_tau)


def _through_euler(method, field, model, state, p_q, p_v):
    """Reverse mode of a semi-implicit Euler step."""
    t, h, q, qd, tau = state
    qdd, _ = field(model, t, q, qd, tau)
    end = _Moved(model, h * (qd + h * qdd))
    by_v = p_v + h * end.along(p_q)
    w, at_q, at_v = field.pulled_back((t, q, qd, tau), qdd, h * by_v)
    return Gradients(end.back(p_q) + at_q, by_v + at_v, w)


def _through_midpoint(method, field, model, state, p_q, p_v):
    """Reverse mode of an implicit midpoint step, by the implicit function theorem."""
    t, h, q, qd, tau = state
    after = method.step(field, model, *state)
    v = (after.qd + qd) / 2
    half, end, qdd = _Moved(model, h / 2 * v), _Moved(model, h * v), (v - qd) * (2 / h)
    middle = move(model, q, h / 2 * v)
    F_q, F_v, H, _ = motion_derivatives(field, model, t + h / 2, middle, v, qdd, tau)
    E = move_derivative(model, h / 2 * v)
    A = h / 2 * ((F_q @ E if np.ndim(E) else F_q * E) * (h / 2) + F_v) + H
    y = solve_each(np.swapaxes(A, -1, -2), h * end.along(p_q) + 2 * p_v)
    by_q = end.back(p_q) - h / 2 * half.back(transposed_times(F_q, y))
    return Gradients(by_q, transposed_times(H, y) - p_v, h / 2 * y)


def _through_w_stages(method, field, model, state, p_q, p_v):
    """Reverse mode of a Rosenbrock-W step, its matrix ``M = σ H + D + K/σ`` included."""
    (t, h, q, _, tau), table = state, method.tableau
    sigma, count = 1 / (table.gamma * h), len(table.m)
    stages, of_start = method.stages(field, model, *state)
    end = _Moved(model, _sum(table.m, [x.k_u for x in stages]))
    by_q, by_v, by_tau, by_u = end.back(p_q), p_v, 0 * p_v, end.along(p_q)
    b_u, b_v = [m * by_u for m in table.m], [m * p_v for m in table.m]
    weights = []
    for i in reversed(range(count)):
        x, a, c = stages[i], (*table.a[i], *(0.0,) * i), (*table.c[i], *(0.0,) * i)
        y = solve_each(of_start.M, b_v[i] + b_u[i] / sigma)
        by_r = b_u[i] / sigma - times(of_start.K, y) / sigma
        by_s = times(of_start.H, y)
        weights.append((y, x))
        at = _Moved(model, x.u)
        now = t + table.alpha[i] * h, move(model, q, x.u), x.v, tau
        w, at_q, at_v = field.pulled_back(now, x.qdd, by_s)
        rate_u, rate_v = at.through_rate(x.v, by_r, method.order)
        at_v, at_u = at_v + rate_v, at.along(at_q) + rate_u
        by_q, by_v, by_tau = by_q + at.back(at_q), by_v + at_v, by_tau + w
        for j in range(i):
            b_u[j] = b_u[j] + a[j] * at_u + c[j] / h * by_r
            b_v[j] = b_v[j] + a[j] * at_v + c[j] / h * by_s
    for_q, for_v = _through_w_matrix(field, model, state, sigma, weights)
    return Gradients(by_q + for_q, by_v + for_v, by_tau)


def _through_w_matrix(field, model, state, sigma, weights):
    """Gradients through ``H``, ``K``, ``D`` at the start of a Rosenbrock-W step."""
    t, _, q, qd, tau = state
    rest, by_q, by_K, by_D = 0 * qd, 0.0, 0.0, 0.0
    gravity, _ = inverse_dynamics_derivatives(model, q, rest, rest)
    for y, x in weights:
        D_q, _ = inverse_dynamics_derivatives(model, q, rest, x.s - sigma * x.k_v)
        by_q = by_q + transposed_times(D_q - gravity, y)
        by_K = by_K - y[..., :, None] * x.k_u[..., None, :]
        by_D = by_D - y[..., :, None] * x.k_v[..., None, :]
    for_q, for_v = field.of_joints.through_derivatives((t, q, qd, tau), (by_K, by_D))
    return by_q + for_q, for_v


ADJOINTS = {
    ExplicitRungeKutta: _through_stages,
    RosenbrockW: _through_w_stages,
    SemiImplicitEuler: _through_euler,
    ImplicitMidpoint: _through_midpoint,
}
"""By class of the integrator; those of steps with loops are added where these are."""


def _sum(weights, terms, none=0.0):
    """Weighted sum of terms that may be missing."""
    return sum((w * k for w, k in zip(weights, terms, strict=True)), none)


class _Moved:
    """``q ⊕ u`` and what its changes follow from, for joints whose variables turn.

    Args:
        model: the mechanism.
        u: local coordinates, (..., nv).
    """

    def __init__(self, model, u):
        self.u, self.joints = u, [] if is_flat(model) else turning_joints(model)
        self.E = [of_each(dexp, joint, u[..., at]) for joint, at in self.joints]

    def along(self, p):
        """Gradients by the displacement ``u`` from those by ``q ⊕ u``."""
        return self._through(p, self.E)

    def back(self, p):
        """Gradients by ``q`` from those by ``q ⊕ u``."""
        a = [of_each(bracket_matrix, joint, self.u[..., at]) for joint, at in self.joints]
        turned = [np.eye(x.shape[-1]) - x @ E for x, E in zip(a, self.E, strict=True)]
        return self._through(p, turned)

    def through_rate(self, v, p, order):
        """Gradients by ``u`` and ``v`` from those by ``local_rate``."""
        u = self.u
        pairs = [
            of_each(_rate_matrices, joint, u[..., at], v[..., at], order=order)
            for joint, at in self.joints
        ]
        by_u = np.zeros_like(p)
        for (_, at), both in zip(self.joints, pairs, strict=True):
            by_u[..., at] = transposed_times(both[..., 0, :, :], p[..., at])
        return by_u, self._through(p, [both[..., 1, :, :] for both in pairs])

    def _through(self, p, matrices):
        """Gradients multiplied by the transposed tangent map of every joint."""
        p = p.copy()
        for (_, at), matrix in zip(self.joints, matrices, strict=True):
            p[..., at] = transposed_times(matrix, p[..., at])
        return p


def _rate_matrices(joint, u, v, order):
    """Derivatives of ``manifold.joint_rate`` by ``u`` and ``v``, term by term of its series."""
    a: Any = bracket_matrix(joint, u)
    one = np.eye(joint.nv)
    d_term: Any = 0 * one
    by_u, by_v, term, power, done = 0 * one, one, v, one, 0
    for brackets, coefficient in series(order):
        while done < brackets:
            bracket: Any = bracket_matrix(joint, term)
            d_term = a @ d_term - bracket
            term, power, done = a @ term, a @ power, done + 1
        by_u, by_v = by_u + coefficient * d_term, by_v + coefficient * power
    return np.array([by_u, by_v], dtype=float)
