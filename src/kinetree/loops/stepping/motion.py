"""Accelerations under constraints, as kernels of a simulation.

They solve the constraint equations in the coordinates of ``loops.kinematics.whitening``, like the
projection that steps end with, ``loops.kinematics.compiled_projection``.
"""

from dataclasses import dataclass

import numpy as np

from kinetree.algorithms import crba, ltl, rnea
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.compiled_projection import least, solve_equations
from kinetree.loops.kinematics.whitening import (
    factorize,
    no_inertia,
    orthogonal,
    smallest,
    whitening,
)
from kinetree.quantities import dynamics


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
    """Joint accelerations (..., nv) under joint forces ``tau`` and the loop constraints.

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
    """Joint accelerations with prescribed joints, and the prescribed drives' forces, (..., nv).

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
    """Constrained accelerations, and the forces of all chosen equations."""
    f = tau - rnea.bias_force(model, q, qd)
    if regularization is not None:
        c, H = loop_constraints(model, q, qd), crba.joint_space_inertia(model, q)
        k = c.k if time_constant is None else c.with_stabilization(time_constant)
        return regularization(model, H, f, chosen.matrix(c.K), chosen.right(k, qdd))
    K = chosen.matrix(loop_constraints(model, q, qd).K) if chosen.weight else None
    inertia = whitening(model, q, K, chosen.weight)
    x = inertia.forces(f)
    found = solve_equations(model, q, qd, inertia, x, qdd, chosen, time_constant)
    return inertia.motion(found.x), found.forces


def constrained_response(model, q, M, chosen):
    """Function ``(f, given)`` of ``a`` (..., nv): ``M a = f + Kᵀ l`` with ``K a = K given``."""
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
    """Vector of length ``size`` with ``values`` at some variables, zero elsewhere."""
    found = np.zeros(size, dtype=np.asarray(values).dtype)
    found[variables] = values
    return found


@kernel
def constraint_health(model, t, q, chosen):
    """Smallest squared pivot of the chosen constraints over the mean, at a time."""
    K = chosen.matrix(loop_constraints(model.at(t), q, model.zero_velocity).K)
    return least(orthogonal(whitening(model, q, K, chosen.weight), K).health)


@kernel
def post_stabilized(model, q, qd, share, chosen, *, repeats):
    """State after repeated Ascher-Chin stabilisation steps by a share of the error.

    ``F`` is the inverse of ``K`` that is smallest in the metric of ``H``, for positions and
    velocities alike — Ascher, Chin, Petzold and Reich; Spencer [20].
    """
    K = chosen.matrix(loop_constraints(model, q, qd).K) if chosen.weight else None
    inertia = whitening(model, q, K, chosen.weight)

    def correct(state):
        q, qd = state
        found = solve_equations(model, q, qd, inertia, 0 * qd, None, chosen)
        dq, dqd = (chosen.others(inertia.motion(share * y)) for y in (found.dx, found.dv))
        return model.integrate(q, dq), qd + dqd

    return repeat(correct, (q, qd), repeats)


@kernel
def constrained_energy(model, q, qd):
    """Kinetic energy, and kinetic plus gravitational potential energy [J]."""
    kinetic = dynamics.kinetic_energy(model, q, qd)
    return kinetic, kinetic + dynamics.potential_energy(model, q)
