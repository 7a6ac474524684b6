"""Texts for trees, in the variables that follow nothing: gears and mimic joints — RBDA §9.6.

A text ignores couplings. Its decorator says by which rule it serves a model that has some:
the text runs on ``model.uncoupled`` in the state of all joints (``q = γ(y)``, ``qd = G yd``,
``qdd = G ydd + g``), and the rule takes the result to the variables ``y``. A model without
couplings goes straight to the text.

    forces             Gᵀ tau                 what the joints of a gear share
    inertias           GᵀHG                   (9.26); where G has one number in a row, as cheap as
                                              the book's (9.27): zeros and ones cost nothing
    columns            J G                    Jacobians, momentum matrices
    rates of columns   Jd G + J Gd
    Coriolis matrices  Gᵀ(C G + H Gd)

Texts that only call others need no rule: with ``GᵀHG`` and ``Gᵀ(C + Hg)`` in place of ``H`` and
``C``, and ``λ′`` with the branches of the former, they are right as they stand.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.propagation import has_full_inertia
from kinetree.model.define import called, kernel_of
from kinetree.model.gearing import Gearing

Text = TypeVar("Text", bound=Callable[..., Any])
_STATE = ("q", "qd", "qdd")


class Expansion(Gearing):
    """The state of all joints, and what a text was called with beside it."""

    def __init__(self, model, state, others):
        super().__init__(model, state["q"], state.get("qd"))
        self.model, self.others = model.uncoupled, others
        full = {"q": self.q, "qd": self.qd}
        if "qdd" in state:
            full["qdd"] = self.G @ np.asarray(state["qdd"]) + self.g
        self.state = {name: full[name] for name in state}

    def call(self, text, **state):
        """A text for this state, or another one, of all joints."""
        return text(self.model, **(state or self.state), **self.others)


def for_all_joints(rule: Callable[..., Any] | None = None):
    """Let a text serve models with couplings, by a rule from its result and the expansion.

    Without a rule the result is about bodies and stays as it is.
    """

    def decorate(text: Text) -> Text:
        names = _names(text)

        @wraps(text)
        def of_model(model, *arrays, **options):
            if not model.couplings:
                return text(model, *arrays, **options)
            given = dict(zip(names, arrays, strict=False)) | options
            state = {name: given.pop(name) for name in _STATE if name in given}
            expansion = Expansion(model, state, given)
            result = expansion.call(text)
            return result if rule is None else rule(result, expansion)

        return cast(Text, of_model)

    return decorate


def instead(other: Callable[..., Any]):
    """Let another text serve models with couplings: one that knows only ``H`` and ``C``."""

    def decorate(text: Text) -> Text:
        @wraps(text)
        def of_model(model, *arrays, **options):
            return (other if model.couplings else text)(model, *arrays, **options)

        return cast(Text, of_model)

    return decorate


def _names(text):
    """Names of what follows the model."""
    parameters = list(signature(text).parameters.values())[1:]
    plain = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    assert all(p.kind in plain for p in parameters), text
    return [p.name for p in parameters]


# --- rules ---------------------------------------------------------------------------------------


def force(tau, at):
    """``Gᵀ tau``, of a vector or of columns."""
    return at.G.T @ tau


def columns(J, at):
    """``J G``, of an array or of motions whose last axis counts velocity variables."""
    return J @ at.G


def congruent(H, at):
    """``GᵀHG``, symmetric to the last digit."""
    F = H @ at.G
    result = np.zeros((len(at.G.T),) * 2, dtype=F.dtype)
    for i, column in enumerate(at.G.T):
        result[i, : i + 1] = result[: i + 1, i] = column @ F[:, : i + 1]
    return result


def rates_of(text):
    """The rule ``Jd G + J Gd`` for rates of the columns ``J`` that ``text`` computes."""

    def rule(rate, at):
        rate = columns(rate, at)
        return rate + at.call(text, q=at.q) @ at.G_rate if at.second else rate

    return rule


def curved(text):
    """The rule for second derivatives, (..., nv, nv), of which ``text`` computes the first."""

    def rule(second, at):
        second = np.swapaxes(np.swapaxes(second @ at.G, -1, -2) @ at.G, -1, -2)
        if at.second:
            J = at.call(text, q=at.q)
            for row, bend in at.second.items():
                second = second + J[..., row, None, None] * bend
        return second

    return rule


# --- The same by calls of general code for the model without couplings ---------------------------


def for_couplings(algorithm: Callable[..., Any]) -> Callable[..., Any]:
    """Let an algorithm that calls code of all joints serve models with couplings, and no others.

    Bodies must resist every motion: pivots are held against the diagonal alone.
    """

    def by_model(model):
        suits = model.couplings and all(map(has_full_inertia, model.inertia[1:]))
        return algorithm if suits else None

    return by_model


def _called(quantity, model, *arrays, f_ext=None):
    """A quantity of the model without couplings, called where a program is traced."""
    extra = () if f_ext is None else ("f_ext",)
    forces = [] if f_ext is None else [np.array([f.to_array() for f in f_ext[1:]])]
    return called(kernel_of(model, quantity, extra), (*arrays, *forces))


@for_couplings
def called_inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """``Gᵀ tau``."""
    at = Expansion(model, {"q": q, "qd": qd, "qdd": qdd}, {})
    return force(_called("inverse_dynamics", at.model, *at.state.values(), f_ext=f_ext), at)


@for_couplings
def called_bias_force(model, q, qd, f_ext=None):
    """``Gᵀ(C + H g)``."""
    at = Expansion(model, {"q": q, "qd": qd, "qdd": model.zero_velocity}, {})
    return force(_called("inverse_dynamics", at.model, *at.state.values(), f_ext=f_ext), at)


@for_couplings
def called_gravity_force(model, q):
    """``Gᵀ`` times the forces that hold all joints."""
    at = Expansion(model, {"q": q}, {})
    return force(_called("gravity_force", at.model, at.q), at)


@for_couplings
def called_inertia(model, q):
    """``GᵀHG``."""
    at = Expansion(model, {"q": q}, {})
    return congruent(_called("mass_matrix", at.model, at.q), at)


@for_couplings
def called_forward_dynamics(model, q, qd, tau, f_ext=None):
    """``qdd`` from ``GᵀHG qdd = tau - Gᵀ(C + H g)``."""
    at = Expansion(model, {"q": q, "qd": qd, "qdd": model.zero_velocity}, {})
    C = force(_called("inverse_dynamics", at.model, *at.state.values(), f_ext=f_ext), at)
    H = congruent(_called("mass_matrix", at.model, at.q), at)
    lam = model.expanded_parent
    return ltl.solve_ltdl(ltl.ltdl(H, lam), lam, tau - C)


# --- Couplings as constraints among all joints: an equation for each follower — RBDA §3.2 --------
# A joint that follows others by ``q_f = p(q_1, q_2, ...)`` satisfies
#
#     K qdd = k        K = e_f - Σ ∂p/∂q_i e_i        k = Σ ∂²p/∂q_i∂q_j qd_i qd_j
#
# Methods that take all joints as they are use these rows; others have no variable for a follower,
# see ``coupled``.


class CouplingRows(NamedTuple):
    """``K qdd = k``, one row for each coupling."""

    K: np.ndarray
    """Constraint matrix, (n_c, nv) of all joints."""
    k: np.ndarray
    """Right-hand side, (n_c,)."""


class AllJoints(NamedTuple):
    """The state of all joints of a model, and the forces on those that follow nothing."""

    model: Any
    """The model without its couplings."""
    q: Any
    qd: Any
    tau: Any
    """Joint forces; followers have none, as ``tau_y = Gᵀ tau`` leaves a choice."""
    rows: CouplingRows
    """The couplings that are left out of the model."""


def all_joints(model, q, qd, tau) -> AllJoints:
    """A model, with or without couplings, as one without and rows that stand for them."""
    if not model.couplings:
        none = CouplingRows(np.zeros((0, model.nv)), np.zeros(0))
        return AllJoints(model, q, qd, tau, none)
    at = Gearing(model, q, qd)
    forces = np.zeros(model.uncoupled.nv, np.asarray(tau).dtype)
    forces[model.independent_variables[1]] = tau
    return AllJoints(model.uncoupled, at.q, at.qd, forces, coupling_rows(model, at.q, at.qd))


def coupling_rows(model, q, qd) -> CouplingRows:
    """The couplings of a model as equations.

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
