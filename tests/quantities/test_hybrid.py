"""Hybrid dynamics: accelerations of some joints are given, forces at the others."""

import numpy as np
import pytest
from hypothesis import settings
from support.closeness import assert_close
from support.states import conditioning, random_external_forces, random_state

import kinetree as kt
from kinetree.algorithms import crba, hybrid, rnea
from kinetree.joints import PrescribedInstant
from kinetree.quantities.hybrid import free_joints, hybrid_dynamics, hybrid_response
from kinetree.samples import random_tree
from kinetree.spatial import Force
from kinetree.textbook import tree_matrices

MECHANISMS = 10_000 if settings.default.max_examples > 1000 else 500


def binary_tree():
    """Seven bodies, each with two children: RBDA Fig. 9.1."""
    builder = kt.ModelBuilder("binary tree")
    for i, parent in enumerate((0, 1, 1, 2, 2, 3, 3), start=1):
        on = f"b{parent}" if parent else None
        at = {} if on is None else {"on": on, "at": (0.3, 0.1 * i, 0.2)}
        inertia = kt.shapes.box(0.2, 0.3, 0.5, mass=1.0 + 0.1 * i, at=(0.1, 0.0, 0.25))
        builder.body(f"b{i}", joint=kt.Revolute("xyz"[i % 3]), inertia=inertia, **at)
    return builder.build()


def partition(model, rng):
    """Free joints drawn at random: none, about half of them, or all."""
    share = rng.choice([0.0, 0.5, 0.5, 0.5, 1.0])
    return tuple(i for i in range(1, model.body_count + 1) if rng.random() < share)


def partitioned_solve(model, q, qd, tau, qdd, free, f_ext=None):
    """(9.3), solved with NumPy."""
    H, C = crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd, f_ext)
    at = hybrid.variables(model, free)
    rest = np.setdiff1d(np.arange(model.nv), at)
    qdd = qdd.copy()
    b = tau[at] - C[at] - H[np.ix_(at, rest)] @ qdd[rest]
    qdd[at] = np.linalg.solve(H[np.ix_(at, at)], b) if len(at) else b
    return np.stack([H @ qdd + C, qdd])


@pytest.mark.covers(
    "RBDA 9.1", "RBDA 9.2", "RBDA Table 9.2", "RBDA Table 9.3",
    by=(hybrid.hybrid_dynamics, hybrid.hybrid_dynamics_by_articulated_bodies),
)  # fmt: skip
@pytest.mark.parametrize("seed", range(10))
def test_both_methods_equal_the_partitioned_solve_for_random_partitions(seed):
    rng = np.random.default_rng(seed)
    for _ in range(MECHANISMS // 10):
        model = random_tree(int(rng.integers(1, 8)), rng)
        if not model.nv:
            continue
        (q, qd, tau), qdd = random_state(model, rng), rng.standard_normal(model.nv)
        f_ext = random_external_forces(model, rng) if rng.random() < 0.3 else None
        free = partition(model, rng)
        expected = partitioned_solve(model, q, qd, tau, qdd, free, f_ext)
        for method in (hybrid.hybrid_dynamics, hybrid.hybrid_dynamics_by_articulated_bodies):
            found = method(model, q, qd, tau, qdd, f_ext, free=free)
            scale = float(np.max(np.abs(expected)))
            assert_close(found, expected, condition=conditioning(model, q), scale=scale)


def test_all_free_is_forward_dynamics_and_all_prescribed_is_inverse_dynamics(rng):
    model = kt.samples.panda()
    (q, qd, tau), qdd = random_state(model, rng), rng.standard_normal(model.nv)
    forward = hybrid_dynamics(model, q, qd, tau, qdd)
    assert_close(forward.qdd, kt.forward_dynamics(model, q, qd, tau), condition=1e3)
    assert_close(forward.tau, tau, scale=np.max(np.abs(tau)) * 1e2, condition=1e2)
    inverse = hybrid_dynamics(model, q, qd, tau, qdd, given=model.joint_names)
    assert_close(inverse.tau, kt.inverse_dynamics(model, q, qd, qdd), condition=10)
    np.testing.assert_array_equal(inverse.qdd, qdd)


@pytest.mark.parametrize("method", [None, "aba", "crba"])
def test_compiled_batches_equal_the_texts(method, rng):
    model = kt.samples.quadruped()
    given = [name for name in model.joint_names if "knee" in name] or list(model.joint_names[3:6])
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    qd, tau, qdd = rng.standard_normal((3, 5, model.nv))
    f = rng.standard_normal((5, model.body_count, 6))
    free = free_joints(model, given)
    found = hybrid_dynamics(model, q, qd, tau, qdd, given, f, method)
    for k in range(5):
        forces = [None, *(Force.from_array(row) for row in f[k])]
        expected = hybrid.hybrid_dynamics(model, q[k], qd[k], tau[k], qdd[k], forces, free=free)
        scale = float(np.max(np.abs(expected)))
        assert_close(found.tau[k], expected[0], scale=scale, condition=conditioning(model, q[k]))
        assert_close(found.qdd[k], expected[1], scale=scale, condition=conditioning(model, q[k]))


def test_entries_that_follow_are_not_read(rng):
    model = binary_tree()
    (q, qd, tau), qdd = random_state(model, rng), rng.standard_normal(model.nv)
    given = ("b2", "b7")
    given = tuple(model.joint_names[model.body_names.index(b) - 1] for b in given)
    first = hybrid_dynamics(model, q, qd, tau, qdd, given)
    free = hybrid.variables(model, free_joints(model, given))
    prescribed = np.setdiff1d(np.arange(model.nv), free)
    tau[prescribed], qdd[free] = 1e3, -1e3
    again = hybrid_dynamics(model, q, qd, tau, qdd, given)
    np.testing.assert_array_equal(first.tau, again.tau)
    np.testing.assert_array_equal(first.qdd, again.qdd)


def test_the_first_step_gives_the_forces_of_a_coasting_mechanism(rng):
    """C' = C + H (0, qdd_2): the printed equation has velocities in place of accelerations."""
    model = binary_tree()
    (q, qd, tau), qdd = random_state(model, rng), rng.standard_normal(model.nv)
    free = (1, 4, 6)
    _, coasting = hybrid.given_forces_and_accelerations(model, tau, qdd, free)
    H, C = crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd)
    assert_close(rnea.inverse_dynamics(model, q, qd, coasting), C + H @ coasting, condition=10)


@pytest.mark.covers(
    "RBDA Table 9.1",
    by=(hybrid.free_joint_inertia, hybrid.moved_bodies, tree_matrices.reduced_parent),
)
def test_the_binary_tree_of_the_book_has_its_reduced_tree(rng):
    model = binary_tree()
    assert hybrid.moved_bodies(model, (3, 4, 5, 6, 7)) == [False] * 3 + [True] * 5
    parent, nodes = tree_matrices.reduced_parent(model, (3, 4, 5, 6, 7))
    assert parent[1:] == [0, 0, 0, 1, 1]
    assert nodes == [0, 0, 0, 1, 2, 3, 4, 5]
    assert tree_matrices.reduced_parent(model, (1, 4, 6))[0][1:] == [0, 1, 1]
    q = model.random_configuration(rng)
    H = crba.joint_space_inertia(model, q)
    for free in ((3, 4, 5, 6, 7), (1, 4, 6), (), (2,), tuple(range(1, 8))):
        at = hybrid.variables(model, free)
        assert_close(hybrid.free_joint_inertia(model, q, free), H[np.ix_(at, at)])


@pytest.mark.covers("RBDA Example 9.1", by=hybrid.response)
def test_the_response_is_the_derivative_of_what_follows(rng):
    model = random_tree(6, rng, joints=[kt.Revolute("x"), kt.Spherical(), kt.Prismatic("y")])
    q, qd, tau = random_state(model, rng)
    qdd = rng.standard_normal(model.nv)
    given = model.joint_names[1:4]
    at = hybrid.variables(model, free_joints(model, given))
    rest = np.setdiff1d(np.arange(model.nv), at)
    derivatives = kt.differentiate(hybrid_dynamics, wrt=("tau", "qdd"))(
        model, q, qd, tau, qdd, given
    )
    (tau_tau, tau_qdd), (qdd_tau, qdd_qdd) = derivatives
    R, condition = hybrid_response(model, q, given), conditioning(model, q)
    scale = float(np.max(np.abs(R)))
    for rows, columns, derivative in (
        (at, at, qdd_tau), (at, rest, qdd_qdd), (rest, at, tau_tau), (rest, rest, tau_qdd),
    ):  # fmt: skip
        part = np.ix_(rows, columns)
        assert_close(derivative[part], R[part], scale=scale, condition=condition)
    assert_close(hybrid_response(model, q), kt.inverse_mass_matrix(model, q), condition=condition)
    all_given = hybrid_response(model, q, model.joint_names)
    assert_close(all_given, kt.mass_matrix(model, q), condition=10)


def test_derivatives_equal_the_complex_step(rng):
    model = binary_tree()
    (q, qd, tau), qdd = random_state(model, rng), rng.standard_normal(model.nv)
    given = model.joint_names[2:4]
    free = free_joints(model, given)
    derivatives = kt.differentiate(hybrid_dynamics, wrt="q")(model, q, qd, tau, qdd, given)
    h = 1e-30
    for k, e in enumerate(np.eye(model.nv)):
        step = hybrid.hybrid_dynamics(model, q + 1j * h * e, qd, tau, qdd, free=free).imag / h
        scale = float(np.max(np.abs(step)))
        assert_close(derivatives[0][:, k], step[0], scale=scale, condition=1e3)
        assert_close(derivatives[1][:, k], step[1], scale=scale, condition=1e3)


def test_work_of_a_joint_that_moves_as_prescribed_balances_the_energy(rng):
    model = binary_tree()
    (q, qd, tau), qdd = random_state(model, rng), rng.standard_normal(model.nv)
    found = hybrid_dynamics(model, q, qd, tau, qdd, given=model.joint_names[:2])
    rate = kt.kinetic_energy_rate(model, q, qd, found.qdd) + kt.potential_energy_rate(model, q, qd)
    assert_close(rate, found.tau @ qd, scale=np.abs(found.tau) @ np.abs(qd), condition=1e2)


def test_a_joint_without_inertia_may_move_as_prescribed(rng):
    """A thin rod on its own axis cannot be pushed; a given acceleration turns it."""
    rod = kt.shapes.rod(1.0, mass=1.0, axis="x")
    model = (
        kt.ModelBuilder("idle hinge")
        .body("arm", joint=kt.Revolute("z"), inertia=kt.shapes.box(1.0, 0.1, 0.1, mass=1.0))
        .body("pin", on="arm", joint=kt.Revolute("x"), inertia=rod)
        .build()
    )  # fmt: skip
    q, qd, tau = random_state(model, rng)
    found = hybrid_dynamics(model, q, qd, tau, np.ones(2), given=[model.joint_names[1]])
    assert np.all(np.isfinite(found.qdd))
    with pytest.raises(kt.SingularError, match="pin"):
        hybrid_dynamics(model, q, qd, tau, np.ones(2))


def test_names_that_are_not_known_are_reported(rng):
    model = binary_tree()
    state = (*random_state(model, rng), np.zeros(model.nv))
    with pytest.raises(kt.UnknownNameError, match="no joint 'b9'"):
        hybrid_dynamics(model, *state, given=["b9"])
    with pytest.raises(kt.UnknownNameError, match="no method 'magic'; use one of"):
        hybrid_dynamics(model, *state, method="magic")


def test_joints_that_time_moves_count_once(rng):
    """Forces of a plain tree in the same state, of which one joint is prescribed."""
    plain = binary_tree()
    prescribed = PrescribedInstant(plain.joint[2], (0.3,), (0.7,), (-0.4,))
    model = plain.replace(joint={plain.joint_names[1]: prescribed})
    others = np.delete(np.arange(7), 1)
    q, qd, tau, qdd = rng.standard_normal((4, 6))
    full = [np.insert(x, 1, value) for x, value in ((q, 0.3), (qd, 0.7), (qdd, -0.4))]
    given = [model.joint_names[i] for i in (0, 3)]
    expected = partitioned_solve(
        plain, *full[:2], np.insert(tau, 1, 0.0), full[2],
        free=tuple(i for i in free_joints(model, given) if i != 2),
    )[:, others]  # fmt: skip
    found = hybrid_dynamics(model, q, qd, tau, qdd, given=given)
    assert_close(np.stack(found), expected, condition=1e3)
    H = crba.joint_space_inertia(plain, full[0])[np.ix_(others, others)]
    assert_close(hybrid_response(model, q, given=model.joint_names), H, condition=1e3)
