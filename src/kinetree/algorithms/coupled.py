"""Tree algorithms for models with gears and mimic joints, in independent variables — RBDA §9.6.

The functions for trees ignore couplings. A decorator extends each of them to models with couplings:
the function runs on ``model.uncoupled`` in the state of all joints (``q = γ(y)``, ``qd = G yd``,
``qdd = G ydd + g``), and a rule converts its result to the independent variables ``y``. Models
without couplings are passed to the function directly.

    forces             Gᵀ tau                 sums over the joints of a gear
    inertias           GᵀHG                   (9.26); where G has one number in a row, as cheap as
                                              the book's (9.27): zeros and ones cost nothing
    columns            J G                    Jacobians, momentum matrices
    rates of columns   Jd G + J Gd
    Coriolis matrices  Gᵀ(C G + H Gd)

Functions that only call others need no rule: they are correct with ``GᵀHG`` and ``Gᵀ(C + Hg)`` for
``H`` and ``C``, and with the ``λ′`` of the branches of ``GᵀHG``.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.propagation import has_full_inertia
from kinetree.model.define import kernel_of
from kinetree.model.gearing import Gearing
from kinetree.model.kernels import call_in_trace

Function = TypeVar("Function", bound=Callable[..., Any])
_STATE = ("q", "qd", "qdd")


class Expansion(Gearing):
    """The state of all joints, and the other arguments of a function."""

    def __init__(self, model, state, others):
        super().__init__(model, state["q"], state.get("qd"))
        self.model, self.others = model.uncoupled, others
        full = {"q": self.q, "qd": self.qd}
        if "qdd" in state:
            full["qdd"] = self.G @ np.asarray(state["qdd"]) + self.g
        self.state = {name: full[name] for name in state}

    def call(self, function, **state):
        """Result of a function for all joints, in this state or another one."""
        return function(self.model, **(state or self.state), **self.others)


def for_all_joints(rule: Callable[..., Any] | None = None):
    """Decorator: evaluate a function for all joints of a coupled model, and reduce by a rule.

    Without a rule the result describes bodies and is returned unchanged.
    """

    def decorate(function: Function) -> Function:
        names = _names(function)

        @wraps(function)
        def of_model(model, *arrays, **options):
            if not model.couplings:
                return function(model, *arrays, **options)
            given = dict(zip(names, arrays, strict=False)) | options
            state = {name: given.pop(name) for name in _STATE if name in given}
            expansion = Expansion(model, state, given)
            result = expansion.call(function)
            return result if rule is None else rule(result, expansion)

        return cast(Function, of_model)

    return decorate


def instead(other: Callable[..., Any]):
    """Decorator: call another function instead for models with couplings."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def of_model(model, *arrays, **options):
            return (other if model.couplings else function)(model, *arrays, **options)

        return cast(Function, of_model)

    return decorate


def _names(function):
    """Names of a function's parameters after the model."""
    parameters = list(signature(function).parameters.values())[1:]
    plain = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    assert all(p.kind in plain for p in parameters), function
    return [p.name for p in parameters]


# --- rules ---------------------------------------------------------------------------------------


def force(tau, at):
    """Joint forces in the independent variables, ``Gᵀ tau``, of a vector or columns."""
    return at.G.T @ tau


def columns(J, at):
    """Jacobian in the independent variables, ``J G``."""
    return J @ at.G


def congruent(H, at):
    """Inertia matrix in the independent variables, ``GᵀHG``, exactly symmetric."""
    F = H @ at.G
    result = np.zeros((len(at.G.T),) * 2, dtype=F.dtype)
    for i, column in enumerate(at.G.T):
        result[i, : i + 1] = result[: i + 1, i] = column @ F[:, : i + 1]
    return result


def rates_of(function):
    """Rule ``Jd G + J Gd`` for rates of a Jacobian ``J``, which ``function`` computes."""

    def rule(rate, at):
        rate = columns(rate, at)
        return rate + at.call(function, q=at.q) @ at.G_rate if at.second else rate

    return rule


def second_derivative_rule(function):
    """Rule for second derivatives (..., nv, nv) with couplings; ``function`` computes the first."""

    def rule(second, at):
        second = np.swapaxes(np.swapaxes(second @ at.G, -1, -2) @ at.G, -1, -2)
        if at.second:
            J = at.call(function, q=at.q)
            for row, bend in at.second.items():
                second = second + J[..., row, None, None] * bend
        return second

    return rule


# --- The same by calling general code of the model without couplings -- ---------------------------


def for_couplings(algorithm: Callable[..., Any]) -> Callable[..., Any]:
    """Selector of an algorithm that suits coupled models whose bodies have full inertia.

    All bodies must have full inertia, because pivots are compared with the diagonal only.
    """

    def by_model(model):
        suits = model.couplings and all(map(has_full_inertia, model.inertia[1:]))
        return algorithm if suits else None

    return by_model


def _call_quantity(quantity, model, *arrays, f_ext=None):
    """Traced call of a quantity of the model without couplings."""
    extra = () if f_ext is None else ("f_ext",)
    forces = [] if f_ext is None else [np.array([f.to_array() for f in f_ext[1:]])]
    return call_in_trace(kernel_of(model, quantity, extra), (*arrays, *forces))


@for_couplings
def called_inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces ``Gᵀ tau`` in the independent variables, by a call of general code."""
    at = Expansion(model, {"q": q, "qd": qd, "qdd": qdd}, {})
    return force(_call_quantity("inverse_dynamics", at.model, *at.state.values(), f_ext=f_ext), at)


@for_couplings
def called_bias_force(model, q, qd, f_ext=None):
    """Bias force ``Gᵀ(C + H g)`` in the independent variables, by a call of general code."""
    at = Expansion(model, {"q": q, "qd": qd, "qdd": model.zero_velocity}, {})
    return force(_call_quantity("inverse_dynamics", at.model, *at.state.values(), f_ext=f_ext), at)


@for_couplings
def called_gravity_force(model, q):
    """Gravity force in the independent variables, by a call of general code."""
    at = Expansion(model, {"q": q}, {})
    return force(_call_quantity("gravity_force", at.model, at.q), at)


@for_couplings
def called_inertia(model, q):
    """Inertia matrix ``GᵀHG`` in the independent variables, by a call of general code."""
    at = Expansion(model, {"q": q}, {})
    return congruent(_call_quantity("mass_matrix", at.model, at.q), at)


@for_couplings
def called_forward_dynamics(model, q, qd, tau, f_ext=None):
    """Accelerations from ``GᵀHG qdd = tau - Gᵀ(C + H g)``, by calls of general code."""
    at = Expansion(model, {"q": q, "qd": qd, "qdd": model.zero_velocity}, {})
    C = force(_call_quantity("inverse_dynamics", at.model, *at.state.values(), f_ext=f_ext), at)
    H = congruent(_call_quantity("mass_matrix", at.model, at.q), at)
    lam = model.expanded_parent
    return ltl.solve_ltdl(ltl.ltdl(H, lam), lam, tau - C)


# --- Couplings as constraints among all joints: an equation for each follower — RBDA §3.2 --------
# A joint that follows others by ``q_f = p(q_1, q_2, ...)`` satisfies
#
#     K qdd = k        K = e_f - Σ ∂p/∂q_i e_i        k = Σ ∂²p/∂q_i∂q_j qd_i qd_j
#
# Methods that keep the variables of all joints use these rows; the others have no variables for
# followers, see the rules above.


class CouplingRows(NamedTuple):
    """``K qdd = k``, one row for each coupling."""

    K: np.ndarray
    """Constraint matrix, (n_c, nv) of all joints."""
    k: np.ndarray
    """Right-hand side, (n_c,)."""


class AllJoints(NamedTuple):
    """The state of all joints of a model, and the forces on the independent ones."""

    model: Any
    """The model without its couplings."""
    q: Any
    qd: Any
    tau: Any
    """Joint forces; followers have none, as ``tau_y = Gᵀ tau`` leaves a choice."""
    rows: CouplingRows
    """The couplings that are left out of the model."""


def all_joints(model, q, qd, tau) -> AllJoints:
    """Model without couplings in the same state, with couplings as constraint rows."""
    if not model.couplings:
        none = CouplingRows(np.zeros((0, model.nv)), np.zeros(0))
        return AllJoints(model, q, qd, tau, none)
    at = Gearing(model, q, qd)
    forces = np.zeros(model.uncoupled.nv, np.asarray(tau).dtype)
    forces[model.independent_variables[1]] = tau
    return AllJoints(model.uncoupled, at.q, at.qd, forces, coupling_rows(model, at.q, at.qd))


def coupling_rows(model, q, qd) -> CouplingRows:
    """Couplings of a model as constraint equations ``K qdd = k``.

    Args:
        model: the mechanism.
        q: positions of all joints, (nq,) of ``model.uncoupled``.
        qd: velocities of all joints, (nv,) of ``model.uncoupled``.
    """
    full, n = model.uncoupled, len(model.couplings)
    dtype = model.scalar_type(q, qd)
    K, k = np.zeros((n, full.nv), dtype), np.zeros(n, dtype)
    for row, c in enumerate(model.couplings):
        leaders = [full.v_slice[i].start for i in c.leaders]
        first, second = c.derivatives([q[full.q_slice[i].start] for i in c.leaders])
        K[row, full.v_slice[c.joint].start] = 1
        for i, s in enumerate(leaders):
            K[row, s] = -first[i]
            for j, t in enumerate(leaders):
                k[row] = k[row] + second[i][j] * qd[s] * qd[t]
    return CouplingRows(K, k)
