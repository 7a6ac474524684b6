"""Accelerations under constraints, and projection onto them, as kernels of a simulation.

Constraint equations are solved in coordinates in which the inertia matrix is the identity. With
``H = LᵀDL`` and ``x = √D L a``, the smallest ``a`` in the metric of ``H`` that satisfies
``K a = t`` is the smallest ``x`` that satisfies ``Y x = t``, where ``Yᵀ = D^(-1/2) L⁻ᵀ Kᵀ``. Rows
of ``Y`` are made orthogonal one by one (Gram and Schmidt, modified): the condition of this is the
distance from a singular configuration, while that of ``K H⁻¹ Kᵀ`` is its square. A row that is
nothing new, as one is in a singular configuration, is damped away.

``H`` of the spanning tree is singular where bodies without inertia are carried along by others.
Then ``H + w KᵀK`` takes its place, which is positive definite if every motion that the constraints
allow moves inertia. It gives the same motion: what it adds is a force ``Kᵀ w K a``, which is one
more force of the constraints.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba, ltl, rnea
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel, one_copy_of_general_code, select
from kinetree.quantities import dynamics
from kinetree.spatial.ops import sqrt


@dataclass(frozen=True)
class Chosen:
    """Choice of the constraint equations that are solved; the others follow from them."""

    rows: tuple[int, ...]
    """Their numbers."""
    units: tuple[float, ...]
    """Factor of each that makes it a pure number."""
    prescribed: tuple[int, ...] = ()
    """Velocity variables of prescribed joints. Their motions are more equations, in front of the
    others: with them ``K1 qdd1 = k - K2 qdd2`` for the other joints."""
    prescribed_units: tuple[float, ...] = ()
    """Factor of each that makes it a pure number."""
    weight: float = 0.0
    """Of the equations in ``H + weight KᵀK`` [kg·m²], which stands for ``H`` where that of the tree
    is singular; zero where it is not."""
    every: tuple[float, ...] = ()
    """Factors that make all equations, chosen or not, pure numbers."""
    slack: float = 0.0
    """Error, in pure numbers, of equations that are not chosen: the misalignment of nearly
    redundant ones, see ``algorithms.closed.rank``."""

    def __call__(self, equations):
        """The chosen ones of all equations, (nc, ...)."""
        return (equations[list(self.rows)].T * np.array(self.units)).T

    def largest_error(self, error):
        """The largest of all errors, in pure numbers, less the slack of those not chosen."""
        pure = error * np.array(self.every)
        if not self.slack:
            return largest(pure)
        others = [k for k in range(len(self.every)) if k not in self.rows]
        within = [select(abs(x) < self.slack, 0 * x, abs(x) - self.slack) for x in pure[others]]
        return largest([*pure[list(self.rows)], *within])

    def matrix(self, K):
        """All equations that are solved, (r, nv)."""
        K = self(K)
        if not self.prescribed:
            return K
        unit = np.eye(K.shape[-1], dtype=int)[list(self.prescribed)]
        return np.concatenate([(unit.T * np.array(self.prescribed_units)).T, K])

    def right(self, k, prescribed=None):
        """Their right-hand sides, (r,); ``prescribed`` has those of prescribed variables, (nv,).

        None stands for zeros.
        """
        k = self(k)
        if not self.prescribed:
            return k
        units = np.array(self.prescribed_units)
        first = 0 * units if prescribed is None else prescribed[list(self.prescribed)] * units
        return np.concatenate([first, k])

    def others(self, x):
        """``x``, (nv,), with zeros for prescribed variables."""
        if not self.prescribed:
            return x
        free = np.ones(len(x), dtype=int)
        free[list(self.prescribed)] = 0
        return x * free


class Closed(NamedTuple):
    """A state from which the errors of loops and couplings were taken away.

    Attributes:
        q, qd: the state.
        position: largest position error, in any equation, in pure numbers.
        velocity: largest velocity error, likewise [1/s].
        kick: half the square of the change of the velocities, in the metric of ``H`` [J].
        health: square of what is new in the equation that says least, relative to the mean: zero
            where the mechanism is singular.
    """

    q: Any
    qd: Any
    position: Any
    velocity: Any
    kick: Any
    health: Any


@dataclass(frozen=True)
class Regularization:
    """Sequential regularisation of the constraint equations — Ascher and Lin; Spencer [22, 23].

    With ``K a = k`` and forces ``l`` of the last round, ``(H + w KᵀK) a = f + Kᵀ (l + w k)``, then
    ``l += w (k - K a)``: positive definite whatever the rank of ``K``. Every round leaves a share
    of the error of about ``epsilon``, more near singular configurations.
    """

    epsilon: float
    """Mean inertia over ``w``, the equations being pure numbers."""
    rounds: int
    """How often forces are improved."""

    def __call__(self, model, H, f, K, k):
        """``a`` and ``l``."""
        lam = ltl.dense(model.nv)
        w = sum(H[i, i] for i in range(model.nv)) / (model.nv * self.epsilon)
        L = ltl.ltdl(H + w * (K.T @ K), lam, lambda _: no_inertia(model))
        a, forces = 0 * f, 0 * k
        for _ in range(self.rounds):
            a = ltl.solve_ltdl(L, lam, f + K.T @ (forces + w * k))
            forces = forces + w * (k - K @ a)
        return a, forces


@kernel
def acceleration(model, q, qd, tau, chosen, time_constant=None, regularization=None):
    """Joint accelerations under the joint forces ``tau`` and the constraints, (..., nv).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        tau: all joint forces, (..., nv).
        chosen: equations that are solved.
        time_constant: with which errors decay [s]; None for none — RBDA (8.22).
        regularization: how nearly dependent equations are solved; None for least squares.
    """
    return _accelerations(model, q, qd, tau, None, chosen, time_constant, regularization)[0]


@kernel
def driven_acceleration(model, q, qd, tau, qdd, chosen, time_constant=None, regularization=None):
    """Joint accelerations with prescribed joints, and the forces that these take, (..., nv).

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        tau: all other joint forces, (..., nv).
        qdd: accelerations, (..., nv), of which those of the prescribed joints are read.
        chosen: equations that are solved.
        time_constant: as above.
        regularization: as above.
    """
    a, forces = _accelerations(model, q, qd, tau, qdd, chosen, time_constant, regularization)
    prescribed = list(chosen.prescribed)
    forces = forces[: len(prescribed)] * np.array(chosen.prescribed_units)
    return chosen.others(a) + (qdd - chosen.others(qdd)), _at(model.nv, prescribed, forces)


def _accelerations(model, q, qd, tau, qdd, chosen, time_constant, regularization):
    """Accelerations, and the forces of all equations."""
    f = tau - rnea.bias_force(model, q, qd)
    if regularization is not None:
        c, H = loop_constraints(model, q, qd), crba.joint_space_inertia(model, q)
        k = c.k if time_constant is None else c.with_stabilization(time_constant)
        return regularization(model, H, f, chosen.matrix(c.K), chosen.right(k, qdd))
    K = chosen.matrix(loop_constraints(model, q, qd).K) if chosen.weight else None
    inertia = whitening(model, q, K, chosen.weight)
    x = inertia.forces(f)
    found = _solve(model, q, qd, inertia, x, qdd, chosen, time_constant)
    return inertia.motion(found.x), found.forces


class ConstraintSolution(NamedTuple):
    """Solution of the constraint equations at a state; vectors are whitened.

    Attributes:
        x: accelerations that obey them, next to given ones.
        forces: of the equations, which that takes.
        dx, dv: corrections of positions and velocities.
        error, rate: position and velocity errors.
        health: of each equation, see ``OrthogonalRows``.
    """

    x: Any
    forces: Any
    dx: Any
    dv: Any
    error: Any
    rate: Any
    health: Any


def _solve(model, q, qd, inertia, x, qdd, chosen, time_constant=None) -> ConstraintSolution:
    """Solve the equations at a state; ``x`` are accelerations without them, whitened."""
    places = [(i, j) for i in range(model.nv) for j in ltl.ancestors(inertia.lam, i)]
    factors = np.array([*(inertia.L[at] for at in places), *inertia.root])
    given = (q, qd, 0 * qd if qdd is None else qdd, factors, x)
    solve = _equations if np.asarray(q).dtype == object else _equations.function
    return ConstraintSolution(*solve(model, *given, chosen=chosen, time_constant=time_constant))


@one_copy_of_general_code
@kernel
def _equations(model, q, qd, qdd, factors, x, *, chosen, time_constant):
    """Values of a ``ConstraintSolution``; ``factors`` of the inertia end with the diagonal."""
    lam, L = _sparsity(model, chosen), np.zeros((model.nv, model.nv), dtype=object)
    root, below = factors[len(factors) - model.nv :], iter(factors)
    for i in range(model.nv):
        for j in ltl.ancestors(lam, i):
            L[i, j] = next(below)
    c = loop_constraints(model, q, qd)
    rows = orthogonal(FactoredInertia(L, root, lam), chosen.matrix(c.K))
    k = chosen.right(c.k if time_constant is None else c.with_stabilization(time_constant), qdd)
    forces: Any = 0 * k
    for _ in range(2):  # the second removes what damping and rounding left of the first
        rest = k - rows.apply(x)
        x = x + smallest(rows, rest)
        if chosen.prescribed:
            forces = forces + multipliers(rows, rest)
    forces = forces - chosen.weight * k if chosen.weight else forces
    dx = -smallest(rows, chosen.right(c.error))
    dv = -smallest(rows, chosen.right(c.rate))
    return x, forces, dx, dv, c.error, c.rate, np.array(rows.health)


def constrained_response(model, q, M, chosen):
    """A function ``(f, given)`` to ``a``, (..., nv): ``M a = f + Kᵀ l`` and ``K a = K given``."""
    if q.ndim > 1:
        of_sample = {
            n: constrained_response(model, q[n], M[n], chosen) for n in np.ndindex(q.shape[:-1])
        }

        def each(f, given):
            a = np.zeros(f.shape)
            for n, response in of_sample.items():
                a[n] = response(f[n], given[n])
            return a

        return each
    K = chosen.matrix(loop_constraints(model, q, model.zero_velocity).K)
    inertia = factorize(model, M + chosen.weight * (K.T @ K) if chosen.weight else M)
    equations = orthogonal(inertia, K)

    def response(f, given):
        x, k = inertia.forces(f), K @ given
        for _ in range(2):
            x = x + smallest(equations, k - equations.apply(x))
        return inertia.motion(x)

    return response


def _at(size, variables, values):
    """``values`` of some variables, and zeros."""
    found = np.zeros(size, dtype=np.asarray(values).dtype)
    found[variables] = values
    return found


@kernel
def constraint_health(model, t, q, chosen):
    """``Closed.health`` of a configuration at a time."""
    K = chosen.matrix(loop_constraints(model.at(t), q, model.zero_velocity).K)
    return _least(orthogonal(whitening(model, q, K, chosen.weight), K).health)


@kernel
def post_stabilized(model, q, qd, share, chosen, *, repeats):
    """The state moved by a share of ``F h`` towards ``h = (error, rate) = 0``, several times.

    ``F`` is the inverse of ``K`` that is smallest in the metric of ``H``, for positions and
    velocities alike — Ascher, Chin, Petzold and Reich; Spencer [20].
    """
    K = chosen.matrix(loop_constraints(model, q, qd).K) if chosen.weight else None
    inertia = whitening(model, q, K, chosen.weight)

    def correct(state):
        q, qd = state
        found = _solve(model, q, qd, inertia, 0 * qd, None, chosen)
        dq, dqd = (chosen.others(inertia.motion(share * y)) for y in (found.dx, found.dv))
        return model.integrate(q, dq), qd + dqd

    return repeat(correct, (q, qd), repeats)


def _least(values):
    """Smallest of traced or plain numbers."""
    least = values[0]
    for value in values[1:]:
        least = select(value < least, value, least)
    return least


@kernel
def closed(model, q, qd, chosen, *, iterations=3):
    """The state without errors next to one with small errors, in the metric of ``H``.

    Newton's method for the positions, with the inertia matrix of the first guess; velocities obey
    the linear equations of the last but one position. Returns the values of a ``Closed``, whose
    errors are those before the last of the steps.
    """
    K = chosen.matrix(loop_constraints(model, q, qd).K) if chosen.weight else None
    inertia = whitening(model, q, K, chosen.weight)

    def improve(state):
        q, qd, x = state[:3]
        found = _solve(model, q, qd, inertia, 0 * qd, None, chosen)
        errors = chosen.largest_error(found.error), chosen.largest_error(found.rate)
        dq, dqd = (chosen.others(inertia.motion(y)) for y in (found.dx, found.dv))
        return model.integrate(q, dq), qd + dqd, x + found.dv, *errors, _least(found.health)

    none = 0 * q[0]
    state = (q, qd, 0 * qd, none, none, none)
    q, qd, x, position, velocity, health = repeat(improve, state, iterations)
    return q, qd, position, velocity, x @ x / 2, health


@kernel
def constrained_energy(model, q, qd):
    """Kinetic energy, and the sum of kinetic and potential energy in the gravity field [J]."""
    kinetic = dynamics.kinetic_energy(model, q, qd)
    return kinetic, kinetic + dynamics.potential_energy(model, q)


def largest(values):
    """The largest absolute value."""
    largest = abs(values[0])
    for value in values[1:]:
        largest = select(largest < abs(value), abs(value), largest)
    return largest


# --- whitened equations -------------------------------------------------------------------------

_DAMPING = 1e-16  # of the mean square of all rows: a row with less that is new is damped away
_TINY = 1e-200


class FactoredInertia(NamedTuple):
    """Factors of ``H``."""

    L: Any
    root: Any
    """``√D``."""
    lam: tuple

    def forces(self, f):
        """From joint forces ``f``, (nv,) or (nv, n), to whitened ones."""
        y = ltl.solve_lt(self.L, self.lam, f, unit=True)
        return (y.T / self.root).T

    def motion(self, x):
        """From a whitened vector to velocities or accelerations ``a``."""
        return ltl.solve_l(self.L, self.lam, x / self.root, unit=True)


class OrthogonalRows(NamedTuple):
    """Rows of ``Y``, orthogonal."""

    Y: list
    w: list
    """What is new in each row."""
    weight: list
    """One over its square, damped."""
    c: list
    """How much of the rows before is in each."""
    health: list
    """Square of what is new in each, relative to the mean square: 0 in a singular position."""

    def apply(self, x):
        """``Y x``."""
        return np.array([y @ x for y in self.Y])


def whitening(model, q, K=None, weight=0.0) -> FactoredInertia:
    """Factors of the inertia matrix; with a weight, of ``H + weight KᵀK``."""
    if weight and K is not None:
        return factorize(model, crba.joint_space_inertia(model, q) + weight * (K.T @ K))
    return _with_root(model, crba.inertia_factors(model, q), model.expanded_parent)


def _sparsity(model, chosen):
    """``lam`` of the factors of ``whitening``."""
    return ltl.dense(model.nv) if chosen.weight else model.expanded_parent


def factorize(model, M) -> FactoredInertia:
    """Factors of a full matrix."""
    lam = ltl.dense(model.nv)
    return _with_root(model, ltl.ltdl(M, lam, lambda _: no_inertia(model)), lam)


def _with_root(model, L, lam):
    root = np.array([sqrt(L[k, k]) for k in range(model.nv)])
    return FactoredInertia(L, root, lam)


def no_inertia(model):
    """Message for a mechanism with a motion that nothing resists."""
    return (
        f"the equation of motion of model {model.name!r} is singular: some motion that its loops "
        f"allow moves no inertia; give mass to the bodies that take part in it, or constrain it"
    )


def orthogonal(inertia: FactoredInertia, K) -> OrthogonalRows:
    """The constraint matrix ``K`` (r, nv), whitened, its rows made orthogonal.

    Rows are compared with each other, so they should be pure numbers, lengths being measured in
    lengths of the mechanism.
    """
    Y = list(inertia.forces(K.T).T)
    usual = sum(y @ y for y in Y) / len(Y) + _TINY
    w, weight, c, health = [], [], [], []
    for y in Y:
        rest, part = y, []
        for u, one_over in zip(w, weight, strict=True):
            part.append((rest @ u) * one_over)
            rest = rest - part[-1] * u
        square = rest @ rest
        w.append(rest)
        c.append(part)
        weight.append(1 / (square + _DAMPING * usual))
        health.append(square / usual)
    return OrthogonalRows(Y, w, weight, c, health)


def smallest(rows: OrthogonalRows, t):
    """The smallest ``x`` with ``Y x = t``."""
    return sum(w * s for w, s in zip(rows.w, _parts(rows, t), strict=True))


def multipliers(rows: OrthogonalRows, t):
    """Multipliers ``l``, (r,), of the smallest ``x = Yᵀ l``."""
    parts, found = _parts(rows, t), []
    for i in range(len(parts) - 1, -1, -1):  # Y = (1 + c) w
        later = zip(range(len(parts) - 1, i, -1), found, strict=True)
        found.append(parts[i] - sum(rows.c[j][i] * l_j for j, l_j in later))
    return np.array(found[::-1])


def _parts(rows: OrthogonalRows, t):
    """How much of each orthogonal row is in the smallest ``x`` with ``Y x = t``."""
    wanted: list = []
    for t_i, part in zip(t, rows.c, strict=True):
        wanted.append(t_i - sum(c * a for c, a in zip(part, wanted, strict=True)))
    return [weight * a for weight, a in zip(rows.weight, wanted, strict=True)]
