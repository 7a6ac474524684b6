"""What a direction changes in a closed chain, against differences of the chain cut open."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import spatial_chain
from support.mechanisms import with_armature

import kinetree as kt
from kinetree.algorithms import rnea
from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.links import ClosedChain, link_states
from kinetree.algorithms.kinematics import base_transforms, body_accelerations, joint_transforms
from kinetree.model import Coupling
from kinetree.samples import random_placement
from kinetree.samples.random_mechanisms import closed_loop
from kinetree.spatial import Force, Inertia
from kinetree.textbook.link_variations import link_variation

STEP = 1e-3  # of differences of sixth order


def difference(function):
    """Derivative at zero of a function with arrays as results."""
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    at = {k: function(k * STEP) for n in weights for k in (-n, n)}
    return [
        sum(w * (at[n][part] - at[-n][part]) for n, w in weights.items()) / STEP
        for part in range(len(at[1]))
    ]


def cut_open(model):
    """The tree of a closed chain, with virtual links as bodies without mass."""
    nothing = Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    virtual = [
        replace(
            model.bodies[0], name=f"{loop.name} link", joint_name=f"{loop.name} joint",
            parent=loop.predecessor, joint=loop.joint, placement=loop.predecessor_placement,
            inertia=nothing, dynamics=None,
        )
        for loop in model.loops
    ]  # fmt: skip
    return model.replace(loops=(), bodies=[*model.bodies, *virtual])


def of_the_tree(tree, model, q, v, a, phi, f_ext):
    """Velocities and accelerations across the cuts, and joint forces."""
    X, vel, acc = body_accelerations(tree, q, v, a, a_0=-tree.a_g)
    X_0, NB = base_transforms(tree, X), model.body_count
    acting = [Force.zero() for _ in X_0]
    acting[1 : NB + 1] = f_ext[1:]
    rows = []
    for k, loop in enumerate(model.loops):
        i, s, P = NB + 1 + k, loop.successor, loop.successor_placement
        force = Force.from_array(phi[6 * k : 6 * k + 6])
        acting[i] = X_0[i].T @ force
        acting[s] = acting[s] - X_0[s].T @ (P.T @ force)
        rows.append([(x[i] - P @ x[s]).to_array() for x in (vel, acc)])
    rates, accelerations = (np.concatenate(part) for part in zip(*rows, strict=True))
    return rates, accelerations, rnea.inverse_dynamics(tree, q, v, a, acting)


@pytest.mark.covers("Spencer 4.3", by=link_variation)
@pytest.mark.parametrize(
    "cut",
    [
        kt.Revolute("z"),
        kt.Cylindrical("y"),
        kt.Universal("xz"),
        kt.Spherical(),
        kt.Helical("x", pitch=0.2),
    ],
    ids=repr,
)
def test_variations_are_derivatives_of_the_chain_cut_open(cut, rng):
    joints = (kt.Spherical(), kt.Revolute((1, 2, 2)), kt.Universal("xy"), kt.Cylindrical("z"))
    model, q = spatial_chain(rng, *joints, cut=cut)
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    tie = closed_loop(X_0, "tie", (3, 1), kt.Free(), kt.Free().random(rng), random_placement(rng))
    model = with_armature(model, rng)
    model = model.replace(gravity=rng.standard_normal(3), loops=(*model.loops, tie))
    qd = kt.loops.project_velocity(model, q, rng.standard_normal(model.nv))
    qdd = joint_space.forward_dynamics(model, q, qd, rng.standard_normal(model.nv))
    states = link_states(ClosedChain(model), q, qd, qdd)
    tree, q_hat = cut_open(model), np.concatenate([q, states.q_v])
    dq, dv, da = rng.standard_normal((3, tree.nv))
    phi = rng.standard_normal(12)
    f_ext = [None, *map(Force.from_array, rng.standard_normal((4, 6)))]

    def moved(h):
        at = (tree.integrate(q_hat, h * dq), states.v + h * dv, states.vdot + h * da)
        return of_the_tree(tree, model, *at, phi, f_ext)

    found = link_variation(model, (q, qd, qdd), (dq, dv, da), phi, f_ext)
    rate, acceleration, forces = difference(moved)
    for actual, expected in (
        (found.rate, rate), (found.acceleration, acceleration), (found.forces, forces),
    ):  # fmt: skip
        assert_close(actual, expected, ulps=1e8)
    # the displacement is the velocity at the rates dq
    gap = of_the_tree(tree, model, q_hat, dq, 0 * dq, phi, f_ext)[0]
    assert_close(found.gap, gap, ulps=1e4)
    # without forces of the loop and from outside
    none = [None, *(Force.zero() for _ in range(4))]

    def unloaded(h):
        at = (tree.integrate(q_hat, h * dq), states.v + h * dv, states.vdot + h * da)
        return of_the_tree(tree, model, *at, 0 * phi, none)

    alone = link_variation(model, (q, qd, qdd), (dq, dv, da))
    assert_close(alone.forces, difference(unloaded)[2], ulps=1e8)


def test_followers_move_and_push_with_their_leaders(rng):
    """A chain with a gear in it: forces and gaps of all joints, gathered at the leaders."""
    joints = (kt.Spherical(), kt.Revolute("y"), kt.Revolute("z"), kt.Spherical())
    free, q_all = spatial_chain(rng, *joints, cut=kt.Cylindrical("y"))
    free = free.replace(gravity=rng.standard_normal(3))
    at = free.q_slice
    lead, follow = q_all[at[2]][0], q_all[at[3]][0]
    gear = (follow - 0.4 * lead + 0.3 * lead**2, 0.4, -0.3)
    model = free.replace(couplings=(Coupling("gear", 3, 2, gear),))
    q = np.delete(q_all, at[3])
    qd = kt.loops.project_velocity(model, q, rng.standard_normal(model.nv))
    qdd = joint_space.forward_dynamics(model, q, qd, rng.standard_normal(model.nv))
    n, nv = model.nv, free.nv
    dq, dv, da = rng.standard_normal((3, n + 2))
    phi, f_ext = rng.standard_normal(6), [None, *map(Force.from_array, rng.standard_normal((4, 6)))]
    found = link_variation(model, (q, qd, qdd), (dq, dv, da), phi, f_ext)
    tree, k, i = cut_open(free), free.v_slice[3].start, free.v_slice[2].start

    def everywhere(q, v, a):
        """State of all joints of the tree, from that of leaders."""
        x, xd, xdd = q[at[2]][0], v[i], a[i]
        y = gear[0] + gear[1] * x + gear[2] * x**2
        slope, bend = gear[1] + 2 * gear[2] * x, 2 * gear[2]
        new = slope * xd, slope * xdd + bend * xd**2
        return np.insert(q, at[3].start, y), *(
            np.insert(part, k, value) for part, value in zip((v, a), new, strict=True)
        )

    states = link_states(ClosedChain(free), *everywhere(q, qd, qdd))

    def moved(h):
        state = model.integrate(q, h * dq[:n]), qd + h * dv[:n], qdd + h * da[:n]
        q_h, v_h, a_h = everywhere(*state)
        q_v = states.q_v + h * dq[n:]
        v_h, a_h = (
            np.concatenate([part, virtual[nv:] + h * d[n:]])
            for part, virtual, d in ((v_h, states.v, dv), (a_h, states.vdot, da))
        )
        q_h = np.concatenate([q_h, q_v])
        rate, acceleration, tau = of_the_tree(tree, free, q_h, v_h, a_h, phi, f_ext)
        slope = gear[1] + 2 * gear[2] * state[0][at[2]][0]
        tau[i] += slope * tau[k]
        return rate, acceleration, np.delete(tau, k)

    for actual, expected in zip(found[1:], difference(moved), strict=True):
        assert_close(actual, expected, ulps=1e8)
