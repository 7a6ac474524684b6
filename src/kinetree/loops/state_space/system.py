"""Equations of motion with constraints: ``M vdot = F - Gᵀ lam``, ``g = 0`` — Spencer §2.1.

A ``ConstrainedSystem`` is what the local state-space forms and the null-space forms work on. Its
terms are functions of the user's own (bodies in Cartesian coordinates, say), or come from a model
with loops and couplings, whose terms are compiled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.scaling import Scaling
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, TraceError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp
from kinetree.loops.kinematics.constraint import independent_rows
from kinetree.loops.kinematics.space import Space, VectorSpace


class ConstraintTerms(NamedTuple):
    """The constraint at one state."""

    g: np.ndarray
    """Position error, (m,)."""
    G: np.ndarray
    """Its Jacobian, (m, n)."""
    Gdot_v: np.ndarray
    """Velocity products of the acceleration constraint ``G vdot + Gdot v = 0``, (m,)."""


@dataclass(frozen=True)
class ConstrainedSystem:
    """``M(q) vdot = F(t, q, v) - G(q)ᵀ lam`` under ``g(q) = 0`` — Spencer (2.1).

    Constraints do not depend on time. Of ``dG/dt`` only the product with ``v`` is needed.
    Make one from functions (``G`` and ``Gdot_v`` follow from ``g`` with ``from_functions``), or
    from a model with ``kt.loops.system_of``.

    Attributes:
        n: number of velocities.
        m: number of constraints.
        M: function of ``q``: inertia, (n, n), symmetric and positive definite.
        F: function of ``t, q, v``: all forces but those of the constraints, with Coriolis and
            centrifugal terms, (n,).
        g: function of ``q``: position errors, (m,).
        G: function of ``q``: their derivatives, (m, n).
        Gdot_v: function of ``q, v``: the product ``Gdot v``, (m,).
        energy: function of ``q, v``: total energy [J], if the system is conservative.
        energy_gradient: function of ``q, v``: its derivative with respect to both, (2n,).
        weights: inverse sizes of the errors, in which they are compared, (m,); 1 by default.
        terms: function of ``q, v`` that returns ``ConstraintTerms`` at once, where that is cheaper.
        rate_gradient: function of ``q, v``: derivative of ``G v`` along ``q``, (m, n); from
            ``Gdot_v`` by default.
        derivatives: function of ``t, q, v, vdot, lam``: derivatives of the equations
            ``(M vdot - F + Gᵀ lam, G vdot + Gdot v)`` along ``q`` and by ``v``, (n + m, n) each; by
            differences of the functions above where it is None.
        coordinate_weights: inverse sizes of the coordinates, in which errors of states are
            measured, (n,); those of ``scaling`` by default, or 1.
        space: configuration space of ``q``; a vector space by default.
        scaling: units for decisions about ranks; None if all units are the same.
    """

    n: int
    m: int
    M: Callable
    F: Callable
    g: Callable
    G: Callable
    Gdot_v: Callable
    energy: Callable | None = None
    energy_gradient: Callable | None = None
    weights: Any = None
    terms: Callable | None = None
    rate_gradient: Callable | None = None
    derivatives: Callable | None = None
    coordinate_weights: Any = None
    space: Space = field(default_factory=VectorSpace)
    scaling: Scaling | None = None

    @classmethod
    def from_functions(
        cls,
        *,
        n: int,
        M: Callable,
        F: Callable,
        g: Callable,
        energy: Callable | None = None,
        **others: Any,
    ) -> "ConstrainedSystem":
        """``ConstrainedSystem`` whose ``G`` and ``Gdot_v`` are derived exactly from ``g``.

        Linear models take the derivatives of ``M`` and ``F`` as well, exactly where these are
        written as for ``@kt.kernel``, else by differences.

        Args:
            n: number of coordinates.
            M: function of ``q``.
            F: function of ``t, q, v``.
            g: function of ``q``, written as for ``@kt.kernel``.
            energy: function of ``q, v``, written likewise, if the system is conservative.
            **others: further attributes.
        """
        g, G, Gdot_v = derived_constraint(g)
        m = len(g(np.zeros(n)))
        if energy is not None:
            others = {"energy": energy, "energy_gradient": derived_gradient(energy), **others}
        others = {"derivatives": derived_equations(M, F, G, Gdot_v), **others}
        return cls(n=n, m=m, M=M, F=F, g=g, G=G, Gdot_v=Gdot_v, **others)

    def constraint(self, q: ArrayLike, v: ArrayLike) -> ConstraintTerms:
        """``ConstraintTerms``: ``g``, ``G`` and ``Gdot v`` at one state."""
        if self.terms is not None:
            return self.terms(q, v)
        return ConstraintTerms(self.g(q), self.G(q), self.Gdot_v(q, v))

    def check(self, q: ArrayLike, v: ArrayLike) -> None:
        """Raise ShapeError unless all terms have consistent sizes and derivatives.

        Derivatives are compared with differences along ``v``, which must not be zero for that:
        ``G`` with those of ``g``, ``Gdot_v`` with those of ``G v``, gradients with those of the
        energy and of ``G v``. This finds wrong signs and factors, but not small errors.
        """
        shapes = {
            "M(q)": (self.M(q), (self.n, self.n)), "F(t, q, v)": (self.F(0.0, q, v), (self.n,)),
            "g(q)": (self.g(q), (self.m,)), "G(q)": (self.G(q), (self.m, self.n)),
            "Gdot_v(q, v)": (self.Gdot_v(q, v), (self.m,)),
        }  # fmt: skip
        for name, (value, expected) in shapes.items():
            if np.shape(value) != expected:
                raise ShapeError(
                    f"{name} has shape {np.shape(value)}, expected {expected} for a constrained "
                    f"system of n = {self.n} velocities and m = {self.m} constraints"
                )
        self._check_derivatives(np.asarray(q, dtype=float), np.asarray(v, dtype=float))

    def _check_derivatives(self, q, v):
        """Raise ShapeError if a derivative does not match its function along ``v``."""
        move, terms = self.space.move, self.constraint(q, v)
        G, rate, energy = self.G, self.rate_gradient, self.energy
        claims = [
            ("G(q) @ v", "g(q)", self.g, G(q) @ v),
            ("Gdot_v(q, v)", "G(q) @ v", lambda q: G(q) @ v, self.Gdot_v(q, v)),
            ("g of terms(q, v)", "g(q)", None, (terms.g, self.g(q))),
            ("G of terms(q, v)", "G(q)", None, (terms.G, G(q))),
            ("Gdot_v of terms(q, v)", "G(q) @ v", lambda q: G(q) @ v, terms.Gdot_v),
        ]
        if rate is not None:
            claim = rate(q, v) @ v
            claims.append(("rate_gradient(q, v) @ v", "G(q) @ v", lambda q: G(q) @ v, claim))
        for name, of, function, claim in claims:
            if function is None:
                _require_equal(name, of, *claim)
            else:
                _require_derivative(name, of, lambda h, f=function: f(move(q, h * v)), claim)
        if energy is not None and self.energy_gradient is not None:
            claim = self.energy_gradient(q, v) @ np.concatenate([v, v])
            _require_derivative(
                "energy_gradient(q, v) along (v, v)",
                "energy(q, v)",
                lambda h: energy(move(q, h * v), (1 + h) * v),
                claim,
            )

    def independent(self, q: ArrayLike, *, tolerance: float | None = None) -> "ConstrainedSystem":
        """System with only constraints that are independent at ``q``."""
        rows = independent_rows(self.G(q), self.scaling, tolerance=tolerance)
        return self if len(rows) == self.m else self.with_rows(rows)

    def with_rows(self, rows: Sequence[int] | ArrayLike) -> "ConstrainedSystem":
        """System with only the constraints of these row numbers."""
        gradient, scaling = self.rate_gradient, self.scaling
        derivatives: Any = self.derivatives
        all_rows = [*range(self.n), *(self.n + np.arange(self.m)[rows])]

        def of_rows(t, q, v, vdot, lam):
            every = np.zeros(self.m)
            every[rows] = lam
            return tuple(d[all_rows] for d in derivatives(t, q, v, vdot, every))

        def terms(q, v):
            return ConstraintTerms(*(term[rows] for term in self.constraint(q, v)))

        return replace(
            self,
            m=len(rows),
            g=lambda q: self.g(q)[rows],
            G=lambda q: self.G(q)[rows],
            Gdot_v=lambda q, v: self.Gdot_v(q, v)[rows],
            weights=None if self.weights is None else np.asarray(self.weights)[rows],
            terms=terms,
            rate_gradient=None if gradient is None else lambda q, v: gradient(q, v)[rows],
            derivatives=None if derivatives is None else of_rows,
            scaling=scaling and scaling.part(rows),
        )


_STEP = 1e-4
"""Of differences, in the time that ``v`` counts by."""
_ALIKE = 1e-3
"""Relative difference that distinguishes a wrong derivative from an inexact difference."""


def _require_derivative(name, of, along, claim):
    """Raise ShapeError if ``claim`` is not the derivative of a function of time at 0.

    Differences with two steps show how exact they are: the claim need not be better.
    """
    wide, difference = ((along(h) - along(-h)) / (2 * h) for h in (2 * _STEP, _STEP))
    rounding = 4 * np.finfo(float).eps * np.max(np.abs(along(_STEP)), initial=0.0) / _STEP
    error = np.max(np.abs(wide - difference), initial=0.0) + rounding
    size = np.max(np.abs([difference, claim]), initial=0.0)
    missed = np.max(np.abs(difference - claim), initial=0.0)
    if not missed <= _ALIKE * size + 10 * error:
        raise ShapeError(
            f"{name} is not the rate of {of} along v: it is {_short_text(claim)}, and differences "
            f"give {_short_text(difference)}; look for a sign or a factor, or derive it from g by "
            f"ConstrainedSystem.from_functions"
        )


def _require_equal(name, of, found, expected):
    """Raise ShapeError if two results that should be equal differ."""
    size = np.max(np.abs([found, expected]), initial=0.0)
    if not np.max(np.abs(found - expected), initial=0.0) <= _ALIKE * size:
        raise ShapeError(f"{name} is {_short_text(found)}, and {of} is {_short_text(expected)}")


def _short_text(value):
    """Array as short text for error messages."""
    return np.array2string(np.asarray(value), precision=4, threshold=6)


# --- derivatives of user functions ---------------------------------------------------------------


def derived_constraint(g):
    """Compiled ``g``, ``G = dg/dq`` and ``Gdot v`` from a constraint function of ``q``."""
    g = _kernel(g)
    along = jvp(g, wrt="q")

    @kernel
    def rate(q, v):
        return along(q, tangents=v)

    acceleration = jvp(rate, wrt="q")
    return g, differentiate(g, wrt="q"), lambda q, v: acceleration(q, v, tangents=v)


def derived_equations(M, F, G, Gdot_v) -> Callable:
    """Function of the exact derivatives of the equations of motion; differences if needed.

    By differences, where ``M`` or ``F`` cannot be traced.
    """

    @kernel
    def equations(t, q, v, vdot, lam):
        J = G(q)
        motion = M(q) @ vdot - F(t, q, v) + J.T @ lam
        return np.concatenate([motion, J @ vdot + Gdot_v(q, v)])

    exact = differentiate(equations, wrt=("q", "v"))
    is_exact = True

    def derivatives(t, q, v, vdot, lam):
        nonlocal is_exact
        if is_exact:
            try:
                return exact(float(t), *(np.asarray(x, dtype=float) for x in (q, v, vdot, lam)))
            except TraceError:
                is_exact = False
        return differences_of_equations(M, F, G, Gdot_v)(t, q, v, vdot, lam)

    return derivatives


def differences_of_equations(M, F, G, Gdot_v, move=np.add) -> Callable:
    """Function of the equations' derivatives by central differences."""

    def derivatives(t, q, v, vdot, lam):
        def equations(q, v):
            J = G(q)
            motion = M(q) @ vdot - F(t, q, v) + J.T @ lam
            return np.concatenate([motion, J @ vdot + Gdot_v(q, v)])

        return central_differences(equations, q, v, move)

    return derivatives


def central_differences(f, q, v, move=np.add):
    """Derivatives of ``f(q, v)`` along ``q`` and by ``v``, to about nine digits."""
    step = 6e-6  # where truncation and rounding are alike
    steps = step * np.eye(len(v))
    by_q = [(f(move(q, e), v) - f(move(q, -e), v)) / (2 * step) for e in steps]
    by_v = [(f(q, v + e) - f(q, v - e)) / (2 * step) for e in steps]
    return np.stack(by_q, axis=-1), np.stack(by_v, axis=-1)


def derived_gradient(energy) -> Callable:
    """Function of the gradient (2n,) of an energy with respect to ``q`` and ``v``."""
    gradients = differentiate(_kernel(energy), wrt=("q", "v"))
    return lambda q, v: np.concatenate(gradients(q, v))


class Relation(NamedTuple):
    """A function ``R(x, y)`` with the derivatives that a chart needs."""

    value: Callable
    """``R``, a function of ``x, y``."""
    first: Callable
    """Its derivative with respect to ``x``."""
    second: Callable
    """Its derivative with respect to ``y``."""
    cross: Callable
    """Function of ``x, y, v, w, dx, dy``: the rate of ``first v + second w`` along ``dx, dy``."""


def derived_relation(R, model=None, x="q") -> Relation:
    """``Relation`` with derivatives from a traceable function of ``x`` and ``y``.

    Args:
        R: function of ``(q, y)``, or of ``(model, q, y)`` if a model is given.
        model: what the function takes first.
        x: name of its first array.
    """
    R = _kernel(R)
    lead = () if model is None else (model,)
    first, second, along = differentiate(R, wrt=x), differentiate(R, wrt="y"), jvp(R, wrt=(x, "y"))

    if model is None:
        rate = kernel(lambda q, y, v, w: along(q, y, tangents=(v, w)))
    else:
        rate = kernel(lambda model, q, y, v, w: along(model, q, y, tangents=(v, w)))
    cross = jvp(rate, wrt=("q", "y"))
    return Relation(
        lambda q, y: R(*lead, q, y),
        lambda q, y: first(*lead, q, y),
        lambda q, y: second(*lead, q, y),
        lambda q, y, v, w, dq, dy: cross(*lead, q, y, v, w, tangents=(dq, dy)),
    )


def given_relation(R, first, second, bias) -> Relation:
    """``Relation`` from untraceable functions and their derivatives.

    Args:
        R: the relation.
        first: its derivative with respect to ``x``.
        second: its derivative with respect to ``y``.
        bias: function of ``x, y, v, w``: the second derivative of ``R`` along ``(v, w)``, zero
            where ``R`` is linear. Being a quadratic form, it gives the bilinear one.
    """

    def cross(x, y, v, w, dx, dy):
        return (bias(x, y, v + dx, w + dy) - bias(x, y, v - dx, w - dy)) / 4

    return Relation(R, first, second, cross)


def _kernel(function):
    """Function as a kernel, unless it is one already."""
    return function if hasattr(function, "bind") else kernel(function)
