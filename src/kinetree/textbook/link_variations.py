"""The Newton–Euler recursion over all links, differentiated along a motion — Spencer 4.3, 4.4.

A direction ``(dq̂, dv̂, dv̇̂)`` moves all joints, those of virtual links too (``links``). One sweep
outwards gives how links are displaced, ``ξ``, and how velocities and accelerations change in their
own coordinates; one inwards how joint forces do. With ``σ = S dq`` of a joint,

    ξ  = X ξ_P + σ
    δv = X δv_P - σ × X v_P + δv_J
    δa = X δa_P - σ × X a_P + δ(S v̇ + c_J) + δv × v_J + v × δv_J
    δf = I δa + δv ×* I v + v ×* I δv + Σ X_cᵀ (δf_c + σ_c ×* f_c)

For joints of every kind: what their own axes do, ``δv_J`` and ``δS``, comes from dual numbers. A
virtual link carries the loop force ``φ``, constant in its coordinates, and the body that it meets
the opposite one, so that forces of virtual joints vanish and those of real ones are the motors'.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.closed.links import ClosedChain, closed_rows, link_states
from kinetree.algorithms.coupled import Expansion
from kinetree.algorithms.dual import duals, rate_of, value_of
from kinetree.spatial import Force, Motion, crf, crm


class LinkVariation(NamedTuple):
    """Changes along a direction; six rows for each loop."""

    gap: np.ndarray
    """Displacement of virtual links from the bodies that they meet: ``Ĝ dq̂``."""
    rate: np.ndarray
    """Their relative velocity."""
    acceleration: np.ndarray
    """Their relative acceleration."""
    forces: np.ndarray
    """Forces of all joints, those of virtual ones last, without springs, dampers and friction."""


def link_variation(model, state, direction, phi=None, f_ext=None) -> LinkVariation:
    """``LinkVariation`` of a closed chain along one direction of the motion.

    Args:
        model: the mechanism.
        state: ``q, qd, qdd``: positions that close the loops, (nq,), velocities and accelerations
            that keep them closed, (nv,) each.
        direction: ``dq, dv, da`` of the positions of all joints, virtual ones last, of their
            velocities and of their accelerations.
        phi: forces of the loops, six for each, in coordinates of the virtual links; None for none.
        f_ext: external force on each body in base coordinates, entry 0 unused.
    """
    if not model.couplings:
        return _variation(model, state, direction, phi, f_ext)[0]
    n = model.nv
    moved = {
        name: duals(x, d[:n]) if name != "q" else duals(x, _flow(model, x, d))
        for name, x, d in zip(("q", "qd", "qdd"), state, direction, strict=True)
    }
    leaders = Expansion(model, moved, {})
    state = [value_of(leaders.state[name]) for name in ("q", "qd", "qdd")]
    G = value_of(leaders.G)
    all_joints = (G @ direction[0][:n], rate_of(leaders.state["qd"]), rate_of(leaders.state["qdd"]))
    columns = [np.concatenate([real, d[n:]]) for real, d in zip(all_joints, direction, strict=True)]
    full = model.uncoupled
    found, forces = _variation(full, state, columns, phi, f_ext)
    real = G.T @ found.forces[: full.nv] + rate_of(leaders.G).T @ forces[: full.nv]
    return found._replace(forces=np.concatenate([real, found.forces[full.nv :]]))


def _flow(model, q, dq):
    """Coordinate rates ``dq/dt`` (nq,) for velocities ``dq``."""
    parts = [q[:0]]
    for i in range(1, model.body_count + 1):
        joint, at = model.joint[i], model.v_slice[i]
        parts.append(joint.configuration_rate(q[model.q_slice[i]], dq[at]))
    return np.concatenate(parts)


class _Joint(NamedTuple):
    """Axes, velocity and velocity product of a joint."""

    S: Motion
    v: Motion
    c: Motion


def _variation(model, state, direction, phi, f_ext):
    """``LinkVariation`` of a chain without couplings, and the forces of all joints."""
    chain, (dq, dv, da) = ClosedChain(model), direction
    X, _, v_hat, a_hat, q_v = link_states(chain, *state)
    positions = _positions(chain, state[0], q_v)
    still = model.zero_motion
    v, a, xi, dvel, dacc = [still], [-model.a_g], [still], [still], [still]
    sigma: list[Any] = [None]
    joints: list[Any] = [None]
    rates: list[Any] = [None]
    for i in chain.links:
        P, at, joint = chain.parent[i], chain.v_slice[i], chain.joint[i]
        flow = joint.configuration_rate(positions[i], dq[at])
        _, *moved = joint.jcalc(duals(positions[i], flow), duals(v_hat[at], dv[at]))
        J, dJ = _Joint(*map(_value, moved)), _Joint(*map(_rate, moved))
        s, X_v, X_a = J.S @ dq[at], X[i] @ v[P], X[i] @ a[P]
        v.append(X_v + J.v)
        a.append(X_a + J.S @ a_hat[at] + J.c + crm(v[i], J.v))
        xi.append(X[i] @ xi[P] + s)
        dvel.append(X[i] @ dvel[P] - crm(s, X_v) + dJ.v)
        own = J.S @ da[at] + dJ.S @ a_hat[at] + dJ.c
        dacc.append(X[i] @ dacc[P] - crm(s, X_a) + own + crm(dvel[i], J.v) + crm(v[i], dJ.v))
        sigma.append(s)
        joints.append(J)
        rates.append(dJ)

    f, df = _link_forces(chain, X, (v, a), (xi, dvel, dacc), phi, f_ext)
    tau, dtau = [], []
    for i in reversed(chain.links):
        P = chain.parent[i]
        tau.append(joints[i].S.T @ f[i])
        dtau.append(joints[i].S.T @ df[i] + rates[i].S.T @ f[i])
        f[P] = f[P] + X[i].T @ f[i]
        df[P] = df[P] + X[i].T @ (df[i] + crf(sigma[i], f[i]))
    n = model.nv
    tau, dtau = (np.concatenate([model.zero_velocity[:0], *parts[::-1]]) for parts in (tau, dtau))
    tau[:n], dtau[:n] = (
        armature.forces(model, x[:n], y[:n]) for x, y in ((tau, a_hat), (dtau, da))
    )
    gap, rate, acceleration = (closed_rows(chain, part) for part in (xi, dvel, dacc))
    return LinkVariation(gap, rate, acceleration, dtau), tau


def _link_forces(chain, X, motion, variation, phi, f_ext):
    """Forces on all links and their changes along a direction, without those from child links."""
    model, (v, a), (xi, dvel, dacc) = chain.model, motion, variation
    none = Force(*(0 * part for part in (model.zero_motion.angular, model.zero_motion.linear)))
    f, df, X_0 = [none], [none], [model.identity_transform]
    for i in chain.links:
        X_0.append(X[i] @ X_0[chain.parent[i]])
        if i > chain.real:
            f.append(none)
            df.append(none)
            continue
        I = model.inertia[i]
        momentum = I @ v[i]
        f.append(I @ a[i] + crf(v[i], momentum))
        df.append(I @ dacc[i] + crf(dvel[i], momentum) + crf(v[i], I @ dvel[i]))
        if f_ext is not None:  # stays what it is in base coordinates
            outer = X_0[i].star @ f_ext[i]
            f[i], df[i] = f[i] - outer, df[i] + crf(xi[i], outer)
    if phi is not None:
        for k, (i, loop) in enumerate(zip(chain.virtual, model.loops, strict=True)):
            force = Force(phi[6 * k : 6 * k + 3], phi[6 * k + 3 : 6 * k + 6])
            f[i] = -force
            f[loop.successor] = f[loop.successor] + loop.successor_placement.T @ force
    return f, df


def _positions(chain, q, q_v):
    """Position variables of each link's joint, by link."""
    model, found, at = chain.model, [None], 0
    for i in range(1, chain.real + 1):
        found.append(q[model.q_slice[i]])
    for loop in model.loops:
        found.append(q_v[at : at + loop.joint.nq])
        at += loop.joint.nq
    return found


def _value(x):
    """Value part of a spatial motion of dual numbers."""
    return Motion(value_of(x.angular), value_of(x.linear))


def _rate(x):
    """Rate part of a spatial motion of dual numbers."""
    return Motion(rate_of(x.angular), rate_of(x.linear))
