"""Steps on arrays of mechanisms with loops, see ``kinetree.integration.on_arrays``.

Constraint equations are one short kernel, the rest is general code of the spanning tree, and
NumPy's linear algebra.

With the chosen equations ``K qdd = k``, accelerations and forces of the loops are

    [ H  Kᵀ ] [ qdd ]   [ tau - C ]
    [ K  0  ] [ -λ  ] = [    k    ]

whose matrix is symmetric, so that the same factors serve gradients.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.tiers import TierChoice
from kinetree.functional.products import vjp
from kinetree.integration.field import times
from kinetree.integration.manifold import move
from kinetree.integration.on_arrays import (
    FieldOnArrays,
    motion_derivatives,
    solve_each,
    transposed_times,
)
from kinetree.integration.on_arrays import choose_arrays as chosen_on_arrays
from kinetree.loops.kinematics.constraint import equations
from kinetree.model.memo import remember
from kinetree.quantities import dynamics

_pull = vjp(equations, wrt=("q", "qd"))


LARGE = 16
"""Velocity variables from which the steps of a simulation run on arrays."""
REPAID = 10
"""Steps of a simulation that repay compiling them, for each velocity variable: single motions gain
more than the batches of rollouts do."""


def are_few(model, method, field) -> bool:
    """Whether a simulation is short enough that vectorised array steps beat compilation."""
    if model.nv < LARGE:
        return False
    key = "simulated on arrays", method
    choice = remember(model, key, lambda: TierChoice(REPAID * model.nv))
    return choice.tier_for(0) == "general" and chosen_on_arrays(model, method, field)


class ChosenEquations(NamedTuple):
    """The chosen equations in some states."""

    K: Any
    k: Any
    error: Any
    rate: Any
    errors: Any
    """Position errors of all equations, chosen or not."""
    rates: Any


class ConstrainedOnArrays(FieldOnArrays):
    """A ``Constrained`` field on arrays with any batch axes.

    Args:
        model: the mechanism.
        field: of the spanning tree.
        chosen: which equations are solved.
    """

    def __init__(self, model, field, chosen):
        super().__init__(model, field)
        self.chosen, self.tree = chosen, model.spanning_tree
        self.units, self.rows = np.array(chosen.units), list(chosen.rows)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        total = self.joint_force(model, t, q, qd, tau)
        return self._accelerations(q, qd, total)[0], (total * qd).sum(-1)

    def choosing(self, chosen) -> "ConstrainedOnArrays":
        """Copy of the field that solves other chosen equations."""
        return ConstrainedOnArrays(self._model, self._field, chosen)

    def response(self, model, q, M):
        """Function of constrained accelerations per force; see ``Constrained.response``."""
        K = self._equations_at(q, np.zeros((*q.shape[:-1], model.nv))).K
        matrix = _matrix(M, K)

        def of(f, given):
            right = np.concatenate([f, times(K, given)], axis=-1)
            return solve_each(matrix, right)[..., : model.nv]

        return of

    def _accelerations(self, q, qd, total):
        """Accelerations, loop forces, and their joint coefficient matrix."""
        found = self._equations_at(q, qd)
        right = total - dynamics.bias_force(self.tree, q, qd), found.k
        matrix = _matrix(dynamics.mass_matrix(self.tree, q), found.K)
        both = solve_each(matrix, np.concatenate(right, axis=-1))
        n = self.tree.nv
        return both[..., :n], -both[..., n:], matrix

    def _equations_at(self, q, qd):
        """``ChosenEquations`` at some states, with all constraint errors."""
        K, k, error, rate = _by_sample(self._equations, q, qd)
        at, units = self.rows, self.units
        k, off, torn = (x[..., at] * units for x in (k, error, rate))
        return ChosenEquations(K[..., at, :] * units[:, None], k, off, torn, error, rate)

    def close_loops(self, model, q, qd, *, chosen, iterations):
        """State with loops closed near one with small errors, vectorised."""
        H, n = dynamics.mass_matrix(self.tree, q), self.tree.nv
        L, kick = np.linalg.cholesky(H), 0 * qd
        position = velocity = health = 0.0
        for _ in range(iterations):
            found = self._equations_at(q, qd)
            zero, matrix = 0 * qd, _matrix(H, found.K)
            dq, dqd = (
                -solve_each(matrix, np.concatenate([zero, x], axis=-1))[..., :n]
                for x in (found.error, found.rate)
            )
            position, velocity = (chosen.largest_errors(x) for x in (found.errors, found.rates))
            health, kick = _health(L, found.K), kick + dqd
            q, qd = move(model, q, dq), qd + dqd
        energy = (kick * times(H, kick)).sum(-1) / 2
        return q, qd, position, velocity, energy, health

    # --- gradients ---------------------------------------------------------------------------

    def pulled_back(self, state, qdd, weight):
        """Reverse mode of the accelerations: gradients by force and state."""
        t, q, qd, tau = state
        total = self.joint_force(self._model, t, q, qd, tau)
        qdd, forces, matrix = self._accelerations(q, qd, total)
        n, rows = self.tree.nv, len(self.rows)
        none = np.zeros((*weight.shape[:-1], rows))
        both = solve_each(matrix, np.concatenate([weight, none], axis=-1))
        w, m = both[..., :n], both[..., n:]
        F_q, F_v, _, _ = motion_derivatives(self, self.tree, t, q, qd, qdd, tau)
        by_K = forces[..., None] * w[..., None, :] - m[..., None] * qdd[..., None, :]
        by_q, by_v = self._pull_back(q, qd, by_K, m, 0 * m)
        return w, by_q - transposed_times(F_q, w), by_v - transposed_times(F_v, w)

    def through_projection(self, q, qd, p_q, p_v) -> tuple[Any, Any]:
        """Gradients at a state before its projection onto the constraints.

        Errors themselves, and so changes of the metric, are left out: they are those of a step.

        Args:
            q: positions without errors.
            qd: velocities without errors.
            p_q: gradients by these positions, along tangents.
            p_v: gradients by these velocities.
        """
        found, n = self._equations_at(q, qd), self.tree.nv
        matrix = _matrix(dynamics.mass_matrix(self.tree, q), found.K)

        def forces(p):
            none = np.zeros((*p.shape[:-1], len(self.rows)))
            return solve_each(matrix, np.concatenate([p, none], axis=-1))[..., n:]

        y = forces(p_v)
        by_q, _ = self._pull_back(q, qd, np.zeros((*y.shape, n)), 0 * y, y)
        p_q = p_q - by_q
        return p_q - transposed_times(found.K, forces(p_q)), p_v - transposed_times(found.K, y)

    def _pull_back(self, q, qd, by_K, by_k, by_rate):
        """Gradients by positions and velocities from those by the chosen equations."""
        every, at, units = len(self.chosen.every), self.rows, self.units
        shape, n = by_k.shape[:-1], self.tree.nv
        K, (k, rate, none) = np.zeros((*shape, every, n)), np.zeros((3, *shape, every))
        K[..., at, :], k[..., at] = by_K * units[:, None], by_k * units
        rate[..., at] = by_rate * units
        q, qd = (np.broadcast_to(x, (*shape, x.shape[-1])) for x in (q, qd))
        return _by_sample(self._gradients, q, qd, K, k, none, rate)

    # --- compiled, of the loops alone --------------------------------------------------------

    @cached_property
    def _equations(self):
        """Compiled kernel of the constraint equations."""
        return equations.compiled(*self._state(), coordinates="loop")

    @cached_property
    def _gradients(self):
        """Compiled reverse mode of the constraint equations."""
        every, n = len(self.chosen.every), self.tree.nv
        zeros = [np.zeros(shape) for shape in ((every, n), every, every, every)]
        call = _pull.bind(*self._state(), coordinates="loop", cotangent=tuple(zeros))
        return _pull.prepare_call(call).kernel

    def _state(self):
        """Example arguments with which kernels are traced."""
        return self._model, self._model.neutral(), np.zeros(self._model.nv)


def _matrix(H, K):
    """Block matrix ``[[H, Kᵀ], [K, 0]]`` of accelerations and loop forces."""
    rows = K.shape[-2]
    zero = np.zeros((*K.shape[:-2], rows, rows))
    return np.block([[H, np.swapaxes(K, -1, -2)], [K, zero]])


def _health(L, K):
    """Smallest squared pivot of whitened constraints over the mean; 0 if singular."""
    Y = np.linalg.solve(L, np.swapaxes(K, -1, -2))
    R = np.linalg.qr(Y, mode="r")
    new = np.diagonal(R, axis1=-2, axis2=-1) ** 2
    return np.min(new, axis=-1) / ((Y * Y).sum((-2, -1)) / K.shape[-2] + 1e-200)


def _by_sample(kernel, *arrays):
    """Results of a kernel's single-sample variant, which compiles faster."""
    lead = arrays[0].shape[: arrays[0].ndim - len(kernel.inputs[0].shape)]
    variant = kernel.variant("float64", wide=False, samples=int(np.prod(lead)))
    before = variant.status.value
    with np.errstate(all="ignore"):
        found = variant.ufunc(*arrays)
    return found if variant.status.value == before else kernel.full(*arrays)  # says what is wrong


def energies(model, q, qd) -> tuple[Any, Any]:
    """Kinetic, and kinetic plus gravitational potential energy [J], by general code."""
    kinetic = np.asarray(dynamics.kinetic_energy(model, q, qd))
    return kinetic, kinetic + np.asarray(dynamics.potential_energy(model, q))
