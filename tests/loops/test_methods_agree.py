"""All methods of forward dynamics agree, on 300 random closed mechanisms and on a recut one."""

import numpy as np
import pytest

from kinetree.algorithms.kinematics import base_velocities, body_accelerations
from kinetree.joints import Revolute
from kinetree.loops.dynamics import methods
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.loops.dynamics.solution import solve
from kinetree.model import MechanismGraph
from kinetree.samples import random_closed_mechanism
from kinetree.textbook import loop_methods, sparse_maximal

OTHERS = {
    "kkt": loop_methods.solve_kkt,
    "range_space": loop_methods.solve_range_space,
    "articulated": loop_methods.solve_articulated,
    "sparse": sparse_maximal.solve,
}


@pytest.mark.covers("RBDA 8.5", by=(loop_methods.solve_kkt, loop_methods.solve_range_space))
@pytest.mark.covers("RBDA 8.5", by=methods.solve_null_space)
@pytest.mark.covers("RBDA 8.13", by=sparse_maximal.solve)
@pytest.mark.covers("RBDA 7.5", by=loop_methods.solve_articulated)
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_every_method_moves_random_mechanisms_alike(first):
    kinds = set()
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        model, q, qd = random_closed_mechanism(rng, bodies=None if seed % 3 == 0 else 3)
        instant = ConstrainedEquations(model, q, qd, rng.standard_normal(model.nv))
        qdd = methods.solve_null_space(instant).qdd
        size = 1 + np.abs(qdd).max()
        assert np.abs(instant.K @ qdd - instant.k).max() < 1e-10 * size
        kinds.add(len(instant.K) > instant.rank)
        for name, method in OTHERS.items():
            found = method(instant)
            error = np.abs(found.qdd - qdd).max()
            assert error < 1e-9 * size, f"{name}, seed {seed}: {error:.3g}"
            tau_c = instant.H @ qdd - instant.force
            assert np.abs(instant.K.T @ found.lam - tau_c).max() < 1e-8 * (1 + np.abs(tau_c).max())
    assert kinds == {True, False}  # with redundant constraints and without


def recut(model, q, qd, tree_joints):
    """The same mechanism in the same state, with another spanning tree."""
    X_0, v = base_velocities(model, q, qd)
    other = MechanismGraph.from_model(model).to_model(tree_joints)
    X_new, v_new = [X_0[0]], [v[0]]
    for i in range(1, other.body_count + 1):
        name = other.body_names[i]
        moved = [f.placement for f in other.frames if f.name == f"{name}_link"]
        X_new.append(moved[0].inverse() @ X_0[model.body_index(name)] if moved
                     else X_0[model.body_index(name)])  # fmt: skip
        v_new.append(v[model.body_index(name)])
    q_new, qd_new = [], []
    for i, body in enumerate(other.bodies, start=1):
        X_J = X_new[i] @ (body.placement @ X_new[body.parent]).inverse()
        q_new.append(body.joint.coordinates(X_J))
        v_J = X_new[i] @ (v_new[i] - v_new[body.parent])
        qd_new.append(body.joint.velocity_variables(q_new[-1], v_J))
    return other, np.concatenate(q_new), np.concatenate(qd_new)


def accelerations_in_base(model, q, qd, qdd):
    """True accelerations of the bodies in base coordinates, by name."""
    X_0, _ = base_velocities(model, q, qd)
    _, _, a = body_accelerations(model, q, qd, qdd)
    return {name: X_0[i].inv_apply(a[i]).to_array() for i, name in enumerate(model.body_names)}


@pytest.mark.covers("RBDA 8.6", "RBDA 8.10", by=solve)
@pytest.mark.parametrize("seed", range(6))
def test_a_mechanism_closed_by_a_hinge_moves_alike_wherever_it_is_cut(seed):
    rng = np.random.default_rng(seed)
    model, q, qd = random_closed_mechanism(
        rng, kind="spatial" if seed % 2 else "planar", bodies=6, loops=1,
        loop_joints=(Revolute("z"),),
    )  # fmt: skip
    f_ext = rng.standard_normal((model.body_count, 6))
    expected = accelerations_in_base(
        model, q, qd, solve(model, q, qd, np.zeros(model.nv), f_ext).qdd
    )
    graph = MechanismGraph.from_model(model)
    loop = model.loops[0]
    in_loop = {*model.support[loop.predecessor]} ^ {*model.support[loop.successor]}
    for cut in sorted(in_loop)[:3]:
        keep = [name for name in graph.joint_names if name != model.joint_names[cut - 1]]
        other, q2, qd2 = recut(model, q, qd, keep)
        assert len(other.loops) == 1
        assert other.loops[0].name != loop.name
        forces = {name: f_ext[model.body_index(name) - 1] for name in other.body_names[1:]}
        found = solve(other, q2, qd2, np.zeros(other.nv), forces)
        for name, a in accelerations_in_base(other, q2, qd2, found.qdd).items():
            assert np.abs(a - expected[name]).max() < 1e-9 * (1 + np.abs(expected[name]).max())
