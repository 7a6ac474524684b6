"""Jacobians of all links and their derivatives, by complex steps of the definitions."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import allowed_velocity, parallel_four_bar, parallelogram, spatial_chain

import kinetree as kt
from kinetree.algorithms.closed import joint_space as implicit
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.links import (
    ClosedChain,
    closure_derivatives,
    jacobian_derivatives,
    jacobian_rates,
    jacobians,
    link_states,
)
from kinetree.algorithms.kinematics import body_velocities
from kinetree.samples.earthmovers import loader

H = 1e-30


def spatial(rng, cut):
    """Joints with one and two variables, whose axes are fixed."""
    joints = (
        kt.Revolute((1, 2, 2)), kt.Cylindrical("x"), kt.Helical("y", pitch=0.3), kt.Prismatic("z"),
        kt.Revolute("x"), kt.Revolute("y"),
    )  # fmt: skip
    return spatial_chain(rng, *joints, cut=cut)


CHAINS = {
    "parallel four-bar": lambda rng: (parallel_four_bar(), parallelogram(0.9, 0.35)),
    "loader": lambda rng: (loader(), np.zeros(8)),
    "bennett": lambda rng: (kt.samples.bennett(), np.zeros(3)),
    "spatial, revolute cut": lambda rng: spatial(rng, kt.Revolute("z")),
    "spatial, cylindrical cut": lambda rng: spatial(rng, kt.Cylindrical("y")),
    "spatial, fixed cut": lambda rng: spatial(rng, kt.Fixed()),
}


@pytest.fixture(params=CHAINS)
def chain_and_state(request, rng):
    model, q = CHAINS[request.param](rng)
    return ClosedChain(model), q, allowed_velocity(model, q, rng)


def at(chain, q_hat):
    """Transforms and axes of all links for any positions of their joints, open or not."""
    model, X, S = chain.model, [None], [None]
    placements = [*model.tree_transform[1:], *(loop.predecessor_placement for loop in model.loops)]
    for i, placement in zip(chain.links, placements, strict=True):
        q_i = q_hat[chain.v_slice[i]]
        X_J, S_i, _, _ = chain.joint[i].jcalc(q_i, 0 * q_i)
        X.append(X_J @ placement)
        S.append(S_i)
    return X, S


def arrays(motions):
    return np.array([m.to_array() for m in motions[1:]])


@pytest.mark.covers("Spencer 4.4", by=jacobians)
def test_velocities_of_all_links_are_their_jacobians_times_the_rates(chain_and_state):
    chain, q, qd = chain_and_state
    X, S, v, *_ = link_states(chain, q, qd, 0 * qd)
    V = [(J @ v).to_array() for J in jacobians(chain, X, S)[1:]]
    _, expected = body_velocities(chain.model, q, qd)
    for i in range(1, chain.real + 1):
        assert_close(V[i - 1], expected[i].to_array().astype(float), scale=10)
    for i, loop in zip(chain.virtual, chain.model.loops, strict=True):
        there = loop.successor_placement @ expected[loop.successor]
        assert_close(V[i - 1], there.to_array().astype(float), ulps=1e4, scale=1)


@pytest.mark.covers("Spencer 4.4", by=jacobian_derivatives)
def test_derivatives_by_every_joint(chain_and_state, rng):
    chain, *_ = chain_and_state
    q_hat = rng.standard_normal(chain.nv)
    X, S = at(chain, q_hat)
    dJ = jacobian_derivatives(chain, X, S, jacobians(chain, X, S))
    for j, e in enumerate(np.eye(chain.nv)):
        step = arrays(jacobians(chain, *at(chain, q_hat + 1j * H * e))).imag / H
        assert_close(arrays(dJ[j]), step, ulps=1000, scale=1 + np.abs(step).max())


@pytest.mark.covers("Spencer 4.4", by=jacobian_rates)
def test_rates_and_their_rates_along_a_motion(chain_and_state, rng):
    chain, *_ = chain_and_state
    q_hat, v, vdot = rng.standard_normal((3, chain.nv))

    def rates(q_hat, v):
        X, S = at(chain, q_hat)
        return jacobian_rates(chain, X, S, jacobians(chain, X, S), v, vdot)

    Jdot, Jddot = rates(q_hat, v)
    step = arrays(jacobians(chain, *at(chain, q_hat + 1j * H * v))).imag / H
    assert_close(arrays(Jdot), step, ulps=1e4, scale=1 + np.abs(step).max())
    step = arrays(rates(q_hat + 1j * H * v, v + 1j * H * vdot)[0]).imag / H
    assert_close(arrays(Jddot), step, ulps=1e4, scale=1 + np.abs(step).max())


@pytest.mark.covers("Spencer A.3", by=closure_derivatives)
def test_closed_motions_satisfy_the_closure(chain_and_state):
    chain, q, qd = chain_and_state
    model = chain.model
    qdd = implicit.forward_dynamics(model, q, qd, np.zeros(model.nv))
    G, dG, Gdot, Gddot = closure_derivatives(model, q, qd, qdd)
    states = link_states(chain, q, qd, qdd)
    size = 1 + np.abs(states.vdot).max() + np.abs(qd).max() ** 2
    assert_close(G @ states.v, np.zeros(len(G)), ulps=1e4, scale=size)
    assert_close(G @ states.vdot + Gdot @ states.v, np.zeros(len(G)), ulps=1e5, scale=size)
    along = np.einsum("abj,j->ab", dG, states.v)
    assert_close(along, Gdot, ulps=1e4, scale=1 + np.abs(Gdot).max())
    assert Gddot.shape == G.shape


@pytest.mark.covers("Spencer A.3", by=closure_derivatives)
def test_the_usual_jacobian_by_elimination_of_the_virtual_coordinates(chain_and_state):
    """Rows along ``T_a`` give the virtual rates, rows along ``T`` are free of them — (A.12)."""
    chain, q, qd = chain_and_state
    model = chain.model
    G = closure_derivatives(model, q, qd, 0 * qd).G
    q_v = link_states(chain, q, qd, 0 * qd).q_v
    rows = []
    for n, (i, loop) in enumerate(zip(chain.virtual, model.loops, strict=True)):
        at_i = slice(chain.v_slice[i].start - model.nv, chain.v_slice[i].stop - model.nv)
        T = loop.joint.constraint_subspace(q_v[at_i]).to_array().astype(float)
        T_a = loop.joint.active_subspace(q_v[at_i]).to_array().astype(float)
        part = G[6 * n : 6 * n + 6].astype(float)
        assert_close(T_a.T @ part[:, chain.v_slice[i]], np.eye(loop.joint.nv))
        assert np.max(np.abs(T.T @ part[:, model.nv :]), initial=0) < 1e-14
        rows.append(-T.T @ part[:, : model.nv])
    K = loop_constraints(model, q, qd).K.astype(float)
    assert_close(np.concatenate(rows), K, ulps=1e4, scale=10)
