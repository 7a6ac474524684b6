"""First-order form of the equation of motion, for integrators — RBDA §3.1.

The state is ``x = (q, alpha)``. The velocity variables ``alpha`` need not be the derivatives of the
position variables ``q``, nor as many: ``dq/dt = Q(q) alpha``. Elsewhere in the package ``alpha``
goes by the name ``qd``.
"""

import numpy as np

from kinetree.algorithms import aba
from kinetree.algorithms.closed import joint_space
from kinetree.errors import ShapeError


def configuration_rate_matrix(model, q):
    """Block-diagonal matrix ``Q(q)`` with ``dq/dt = Q alpha``, (nq, nv) — RBDA (3.6)."""
    Q = np.zeros((model.nq, model.nv), dtype=model.scalar_type(q))
    for i in range(1, model.body_count + 1):
        q_i = q[model.q_slice[i]]
        Q[model.q_slice[i], model.v_slice[i]] = model.joint[i].rate_matrix(q_i)
    return Q


def configuration_rate(model, q, alpha):
    """Coordinate rates ``dq/dt = Q alpha`` without forming ``Q`` — RBDA (3.7), ``qdfn``.

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
    """Rate ``dx/dt`` of the state ``x = (q, alpha)`` — RBDA (3.8), (3.9), ``FDx``.

    Args:
        model: the mechanism; loops and couplings are supported.
        x: the state, (nq + nv,).
        tau: joint forces [N or N·m], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which loop errors decay; None lets them grow at the
            pace of the integrator.
    """
    q, alpha = split_state(model, x)
    if model.is_constrained:
        # The intermediate points of an integrator do not close the loops; that is not an error.
        options = {"stabilization": stabilization, "closure_tolerance": np.inf}
        alpha_d = joint_space.forward_dynamics(model, q, alpha, tau, f_ext, **options)
    else:
        alpha_d = aba.forward_dynamics(model, q, alpha, tau, f_ext)
    return np.concatenate([configuration_rate(model, q, alpha), alpha_d])


def euler_step(f, x, t, h, *, move=None):
    """State after one explicit Euler step, ``x + h f(x, t)`` (Lynch & Park §9.5).

    Its error grows with ``h²``, and that of a motion of many steps with ``h``. ``kt.simulate`` has
    better methods.

    Args:
        f: rates of the state, at a state and a time.
        x: the state: a number or an array of any shape.
        t: the time.
        h: the step, positive.
        move: where the state is not a vector, how to move from ``x`` along ``h f``: with
            ``model.integrate``, ``f`` gives velocity variables and quaternions keep their length.
    """
    if not h > 0:
        raise ShapeError(f"the step h must be positive, got {h!r}")
    dx = h * np.asarray(f(x, t))
    return x + dx if move is None else move(x, dx)


def euler_motion(f, x, t0, t_f, h, *, move=None):
    """Times and states of a motion by explicit Euler steps.

    The last of N steps is shorter, where ``t_f - t0`` is not a multiple of ``h``. The book's loop
    runs from 1 to N; it has to start at 0.
    """
    count = max(int(np.ceil((t_f - t0) / h - 1e-9)), 0)
    times, states = [float(t0)], [np.asarray(x)]
    for k in range(count):
        times.append(float(t0 + (k + 1) * h) if k < count - 1 else float(t_f))
        states.append(euler_step(f, states[-1], times[-2], times[-1] - times[-2], move=move))
    return np.array(times), np.array(states)


def split_state(model, x):
    """Parts ``q`` and ``alpha`` of a state (nq + nv,)."""
    return x[: model.nq], x[model.nq :]


def join_state(q, alpha):
    """State vector (nq + nv,) from ``q`` and ``alpha``."""
    return np.concatenate([q, alpha])
