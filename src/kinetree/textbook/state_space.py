"""First-order form of the equation of motion, for integrators — RBDA §3.1.

The state is ``x = (q, alpha)``. The velocity variables ``alpha`` need not be the derivatives of the
position variables ``q``, nor as many: ``dq/dt = Q(q) alpha``. Elsewhere in the package ``alpha``
goes by the name ``qd``.
"""

import numpy as np

from kinetree.algorithms import aba
from kinetree.algorithms.closed import joint_space

__all__ = [
    "configuration_rate",
    "configuration_rate_matrix",
    "join_state",
    "split_state",
    "state_derivative",
]


def configuration_rate_matrix(model, q):
    """``Q(q)`` with ``dq/dt = Q alpha``, (nq, nv), block diagonal — RBDA (3.6)."""
    Q = np.zeros((model.nq, model.nv), dtype=model.scalar_type(q))
    for i in range(1, model.body_count + 1):
        q_i = q[model.q_slice[i]]
        Q[model.q_slice[i], model.v_slice[i]] = model.joint[i].rate_matrix(q_i)
    return Q


def configuration_rate(model, q, alpha):
    """``dq/dt`` without forming ``Q``; the book's ``qdfn`` — RBDA (3.7).

    Takes any numbers, unlike ``model.configuration_rate``, which checks them: the intermediate
    points of an integrator lie off the manifold.
    """
    at, of = model.q_slice, model.v_slice
    rates = [
        model.joint[i].configuration_rate(q[at[i]], alpha[of[i]])
        for i in range(1, model.body_count + 1)
    ]
    return np.concatenate(rates) if rates else np.zeros(0)


def state_derivative(model, x, tau, f_ext=None, *, stabilization=None):
    """``dx/dt`` of the state ``x = (q, alpha)``; the book's ``FDx`` — RBDA (3.8), (3.9).

    Args:
        model: the mechanism; its loops and couplings are honoured.
        x: the state, (nq + nv,).
        tau: joint forces [N or N·m], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which loop errors decay; None lets them grow at the
            pace of the integrator.
    """
    q, alpha = split_state(model, x)
    if model.loops:
        # The intermediate points of an integrator do not close the loops; that is not an error.
        options = {"stabilization": stabilization, "closure_tolerance": np.inf}
        alpha_d = joint_space.forward_dynamics(model, q, alpha, tau, f_ext, **options)
    else:
        alpha_d = aba.forward_dynamics(model, q, alpha, tau, f_ext)
    return np.concatenate([configuration_rate(model, q, alpha), alpha_d])


def split_state(model, x):
    """``q`` and ``alpha`` of a state (nq + nv,)."""
    return x[: model.nq], x[model.nq :]


def join_state(q, alpha):
    """The state of ``q`` and ``alpha``."""
    return np.concatenate([q, alpha])
