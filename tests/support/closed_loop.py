"""A mechanism under a controller, for tests: Runge–Kutta steps on the manifold."""

import numpy as np

import kinetree as kt


def simulate(model, controller, q, qd, duration, dt, *, hold=False):
    """States at every step, (steps + 1, ...), for forces of a controller of ``t, q, qd``.

    With ``hold`` the forces stay the same over each step, as those of a sampled controller.
    """
    qs, qds, t = [np.asarray(q)], [np.asarray(qd)], 0.0
    for _ in range(round(duration / dt)):
        q, qd = step(model, controller, t, q, qd, dt, hold)
        qs.append(q)
        qds.append(qd)
        t += dt
    return np.stack(qs), np.stack(qds)


def step(model, controller, t, q, qd, dt, hold=False):
    """One step; stages are compared in the tangent space of its start."""
    if hold:
        held = controller(t, q, qd)

        def controller(t, q, qd):
            return held

    def slope(t, dq, v):
        here = model.integrate(q, dq)
        return v, kt.forward_dynamics(model, here, v, controller(t, here, v))

    h, zero = dt / 2, np.zeros_like(qd)
    v1, a1 = slope(t, zero, qd)
    v2, a2 = slope(t + h, h * v1, qd + h * a1)
    v3, a3 = slope(t + h, h * v2, qd + h * a2)
    v4, a4 = slope(t + dt, dt * v3, qd + dt * a3)
    dq, dv = (v1 + 2 * v2 + 2 * v3 + v4) / 6, (a1 + 2 * a2 + 2 * a3 + a4) / 6
    return model.integrate(q, dt * dq), qd + dt * dv
