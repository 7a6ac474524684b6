"""Motions: of bodies, of mechanisms under controllers, and what every simulation satisfies."""

import numpy as np

import kinetree as kt
from kinetree.algorithms.aba import forward_dynamics
from kinetree.algorithms.kinematics import base_transforms, body_accelerations

# --- How the bodies of a mechanism move, in base coordinates: what no change of model may change -


def body_motions(model, q, qd, qdd=None, tau=None):
    """Velocity and acceleration (12,) of each body by name.

    Unless given, ``qdd`` is from ABA, of the spanning tree: random states do not close loops.
    """
    if qdd is None:
        tau, tree = np.zeros(model.nv) if tau is None else tau, model.replace(loops=())
        qdd = forward_dynamics(tree, q, qd, tau)
    X, v, a = body_accelerations(model, q, qd, qdd)
    X_0 = base_transforms(model, X)
    return {
        name: np.concatenate([X_0[i].inv_apply(v[i]).to_array(), X_0[i].inv_apply(a[i]).to_array()])
        for i, name in enumerate(model.body_names)
        if i > 0
    }


def frame_pose(model, q, name):
    """The 4x4 pose of a frame or body in the base."""
    frame = model.frame(name)
    X, _, _ = body_accelerations(model, q, model.zero_velocity, model.zero_velocity)
    return (frame.placement @ base_transforms(model, X)[frame.body]).to_pose().astype(float)


def carried_over(source, target, values, kind):
    """Joint vector of ``target`` with the values of joints of the same name in ``source``."""
    slices = {"q": "q_slice", "v": "v_slice"}[kind]
    result = target.neutral() if kind == "q" else np.zeros(target.nv)
    for name in target.joint_names:
        if name in source.joint_names:
            here = getattr(target, slices)[target.joint_index(name)]
            there = getattr(source, slices)[source.joint_index(name)]
            if here.stop - here.start == there.stop - there.start:
                result[here] = values[there]
    return result


# --- A mechanism under a controller, for tests: Runge–Kutta steps on the manifold ----------------


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

    def rates(t, dq, v):
        here = model.integrate(q, dq)
        return v, kt.forward_dynamics(model, here, v, controller(t, here, v))

    h, zero = dt / 2, np.zeros_like(qd)
    v1, a1 = rates(t, zero, qd)
    v2, a2 = rates(t + h, h * v1, qd + h * a1)
    v3, a3 = rates(t + h, h * v2, qd + h * a2)
    v4, a4 = rates(t + dt, dt * v3, qd + dt * a3)
    dq, dv = (v1 + 2 * v2 + 2 * v3 + v4) / 6, (a1 + 2 * a2 + 2 * a3 + a4) / 6
    return model.integrate(q, dt * dq), qd + dt * dv


# --- What every simulation in the tests has to satisfy -------------------------------------------


def assert_trusted(trajectory, *, energy, momentum=None, loops=1e-9):
    """Energy balance, momentum of what floats freely, and closed loops, within bounds."""
    report = trajectory.report
    assert report.energy_error <= energy, f"energy error {report.energy_error:.3g}"
    if report.momentum_error is not None:
        bound = energy if momentum is None else momentum
        assert report.momentum_error <= bound, f"momentum error {report.momentum_error:.3g}"
    assert report.loop_error <= loops, f"loop error {report.loop_error:.3g}"
    assert np.max(trajectory.loop_error, initial=0.0) == report.loop_error
    model, at = trajectory.model, trajectory.model.q_slice
    first = (0,) * (trajectory.q.ndim - 2)
    for q in (trajectory.q[(0, *first)], trajectory.q[(-1, *first)]):
        for i, body in enumerate(model.bodies, start=1):
            assert body.joint.defect(q[at[i]]) is None
