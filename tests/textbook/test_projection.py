"""Articulated-body inertias by projection: operational-space inertias — RBDA §7.2.1."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.states import (
    aligned_chain,
    conditioning,
    floating_tree,
    random_external_forces,
    random_state,
)

import kinetree as kt
from kinetree import samples
from kinetree.algorithms import aba, crba, rnea
from kinetree.algorithms.closed.divide_and_conquer import as_handle_sets, join
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.algorithms.closed.systems import block_diagonal
from kinetree.algorithms.jacobians import frame_acceleration, frame_jacobian_rate, frame_velocity
from kinetree.algorithms.kinematics import base_transforms
from kinetree.errors import SingularError, UnknownNameError
from kinetree.joints import REPRESENTATIVES, Revolute
from kinetree.model import Frame, ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial import Force, Inertia, Plucker, skew
from kinetree.textbook import projection as pr
from kinetree.textbook.aba_variants import true_accelerations


def six_axis_arm(rng):
    arm = aligned_chain(rng)
    hand = arm.body_names[-1]
    return arm, hand


@pytest.mark.covers("RBDA 7.2", by=(pr.operational_space_dynamics, pr.handle_response))
def test_projection_on_the_root_of_a_floating_tree_is_its_articulated_body(rng):
    model = floating_tree(rng, 7, REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    tau[:6] = 0
    f_ext = random_external_forces(model, rng)
    bodies = aba.articulated_bodies(model, q, qd, tau, f_ext)
    IA, pA = pr.operational_space_dynamics(model, q, qd, tau, "body1", f_ext)
    cond, expected = conditioning(model, q), bodies.IA[1].to_matrix()
    assert_close(IA, expected, condition=cond)
    gravity = base_transforms(model, bodies.X)[1] @ model.a_g  # bodies.a is minus gravity
    size = np.abs(expected).max() * 10
    bias = bodies.pA[1] - bodies.IA[1] @ gravity
    assert_close(pA, bias.to_array(), condition=cond, scale=size)
    Phi, b = pr.handle_response(model, q, qd, tau, "body1", f_ext)
    assert_close(Phi @ expected, np.eye(6), condition=cond, scale=size * np.abs(Phi).max())
    a = true_accelerations(model, bodies)[1].to_array()
    assert_close(b, a, condition=cond, scale=np.abs(bodies.qdd).max())


@pytest.mark.covers("RBDA 7.1", by=pr.handle_response)
def test_pushing_any_handle_of_a_grounded_tree_obeys_its_response(rng):
    model = samples.random_tree(7, rng, joints=REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    placement, i = samples.random_placement(rng), 5
    frame = Frame("grip", i, placement)
    Phi, b = pr.handle_response(model, q, qd, tau, frame)
    X_0 = base_transforms(model, aba.articulated_bodies(model, q, qd, tau).X)
    for _ in range(4):
        f = rng.standard_normal(6)
        f_ext = [None] + [Force.zero()] * 7
        f_ext[i] = (placement @ X_0[i]).T @ Force.from_array(f)
        qdd = aba.forward_dynamics(model, q, qd, tau, f_ext)
        a = frame_acceleration(model, q, qd, qdd, frame, "body")
        cond = conditioning(model, q)
        assert_close(Phi @ f + b, a, condition=cond, scale=10 + np.abs(qdd).max())


@pytest.mark.covers("RBDA 7.2", by=(pr.inverse_inertia, pr.handle_freedom))
def test_rank_range_and_null_space_are_those_of_the_jacobian(rng):
    for n in range(1, 9):
        model = samples.chain(n)
        q = model.random_configuration(rng)
        name = f"link{n}"
        J, Phi = pr.handle_jacobian(model, q, name), pr.inverse_inertia(model, q, name)
        rank, condition = pr.handle_freedom(model, q, name)
        size, cond = np.abs(Phi).max(), conditioning(model, q)
        assert rank == min(n, 6) == np.linalg.matrix_rank(J)
        assert rank == np.linalg.matrix_rank(Phi, tol=1e-10 * size)
        assert (condition < np.inf) == (n >= 6)
        assert_close(Phi, Phi.T)
        assert np.linalg.eigvalsh(Phi)[0] > -1e-12 * np.abs(Phi).max()
        left = np.linalg.svd(J)[0][:, rank:]  # null(Jᵀ)
        assert_close(Phi @ left, 0 * left, scale=size, condition=cond)
        column_space = np.linalg.svd(J)[0][:, :rank]
        outside = Phi - column_space @ (column_space.T @ Phi)
        assert_close(outside, 0 * Phi, scale=size, condition=cond)


@pytest.mark.covers("RBDA 7.1", "RBDA 7.2", by=pr.inverse_inertia)
def test_several_handles_stack(rng):
    model = floating_tree(rng, 6, REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    names = ["body1", "body4", "body6"]
    Phi, b = pr.handle_response(model, q, qd, tau, names)
    H_inv = np.linalg.inv(crba.joint_space_inertia(model, q))
    J = [pr.handle_jacobian(model, q, name) for name in names]
    cond = conditioning(model, q)
    for m, one in enumerate(names):
        at = slice(6 * m, 6 * m + 6)
        alone = pr.handle_response(model, q, qd, tau, one)
        assert_close(Phi[at, at], alone.Phi, condition=cond)
        assert_close(b[at], alone.b, condition=cond)
        for n in range(3):
            coupling = J[m] @ H_inv @ J[n].T
            assert_close(
                Phi[at, 6 * n : 6 * n + 6], coupling, condition=cond, scale=np.abs(Phi).max()
            )
    rank, _ = pr.handle_freedom(model, q, names)
    assert rank == np.linalg.matrix_rank(np.vstack(J))


def test_two_handles_that_share_freedoms_have_no_inertia_together(rng):
    model = samples.chain(9)
    q = model.random_configuration(rng)
    assert pr.operational_space_inertia(model, q, "link8").shape == (6, 6)
    with pytest.raises(SingularError) as error:
        pr.operational_space_inertia(model, q, ["link8", "link9"])
    assert str(error.value) == (
        "the operational-space inertia of 'link8', 'link9' does not exist in this configuration "
        "of model 'chain(9)': its Jacobian has 12 rows but rank 7, so some accelerations are "
        "impossible. Keep fewer coordinates (rows=...), move away from the singularity, or use "
        "projection.inverse_inertia, which always exists"
    )


def test_a_singular_configuration_is_noticed_and_its_neighbourhood_is_not(rng):
    """Axes 4 and 6 of the wrist in line: rounding leaves no pivot exactly zero."""
    builder = ModelBuilder()
    for i, (axis, at) in enumerate(
        [("z", (0, 0, 0.4)), ("y", (0, 0, 0.3)), ("y", (0, 0, 0.3)), ("z", (0, 0, 0.2)),
         ("y", (0, 0, 0.2)), ("z", (0, 0, 0.1))]
    ):  # fmt: skip
        on = f"link{i - 1}" if i else None
        inertia = samples.random_inertia(rng)
        builder.body(f"link{i}", on=on, joint=Revolute(axis), at=at, inertia=inertia)
    arm = builder.build()
    q = np.array([0.3, -0.4, 0.9, 0.7, 0.0, -0.2])
    with pytest.raises(SingularError, match="has 6 rows but rank 5"):
        pr.operational_space_inertia(arm, q, "link5")
    assert pr.handle_freedom(arm, q, "link5") == (5, np.inf)
    q[4] = 1e-5
    IA = pr.operational_space_inertia(arm, q, "link5")
    J = pr.handle_jacobian(arm, q, "link5")
    J_inv = np.linalg.inv(J)
    expected = J_inv.T @ crba.joint_space_inertia(arm, q) @ J_inv
    rank, condition = pr.handle_freedom(arm, q, "link5")
    assert rank == 6
    assert 1e4 < condition < 1e8
    assert_close(IA, expected, condition=condition * conditioning(arm, q))


@pytest.mark.covers("Lynch & Park 9.6", by=pr.operational_space_dynamics)
def test_six_axis_arm_has_the_textbook_operational_space_dynamics(rng):
    """Lambda = J⁻ᵀ M J⁻¹ and eta = J⁻ᵀ b - Lambda Jd qd; Jᵀ F is the joint force."""
    model, hand = six_axis_arm(rng)
    q, qd, qdd = random_state(model, rng)
    frame = model.frame(hand)
    Lambda, eta = pr.operational_space_dynamics(model, q, qd, np.zeros(6), hand)
    J, Jd = pr.handle_jacobian(model, q, hand), frame_jacobian_rate(model, q, qd, frame, "body")
    J_inv = np.linalg.inv(J)
    M, b = crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd)
    cond = np.linalg.cond(J) ** 2 * conditioning(model, q)
    assert_close(Lambda, J_inv.T @ M @ J_inv, condition=cond)
    assert_close(eta, J_inv.T @ b - Lambda @ Jd @ qd, condition=cond)
    acceleration = J @ qdd + Jd @ qd
    F = Lambda @ acceleration + eta
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(J.T @ F, tau, condition=cond)


@pytest.mark.covers("Lynch & Park 9.6", by=pr.operational_space_dynamics)
def test_planar_two_joint_arm_gives_its_reference_numbers():
    def bead(m, x):
        return Inertia.from_mass_center(m, (x, 0, 0), np.zeros((3, 3)))

    arm = (
        ModelBuilder(gravity=(0, -9.81, 0))
        .body("upper", joint=Revolute("z"), inertia=bead(2.0, 1.0))
        .body("fore", on="upper", joint=Revolute("z"), at=(1.0, 0, 0), inertia=bead(1.0, 0.5))
        .frame("tip", on="fore", at=(0.5, 0, 0))
        .build()
    )
    q, qd, qdd = np.array([0.3, -0.7]), np.array([0.5, -1.2]), np.array([0.8, 1.5])
    tip = arm.frame("tip")
    Lambda, eta = pr.operational_space_dynamics(arm, q, qd, np.zeros(2), "tip", rows=(3, 4))
    # The numbers are for the axes of the base and the acceleration of the point.
    c, s = np.cos(q.sum()), np.sin(q.sum())
    R = np.array([[c, -s], [s, c]])
    v = frame_velocity(arm, q, qd, tip, "body")
    eta = eta - Lambda @ np.cross(v[:3], v[3:])[:2]
    expected = [[5.08828805952496, -1.72850046781535], [-1.72850046781535, 1.73079827637807]]
    assert np.max(np.abs(R @ Lambda @ R.T - expected)) < 1e-13
    assert np.max(np.abs(R @ eta - [-24.8623431121, 20.3216300697])) < 1e-9
    a = frame_acceleration(arm, q, qd, qdd, tip, "aligned", "classical")[3:5]
    F = R @ Lambda @ R.T @ a + R @ eta
    assert np.max(np.abs(F - [-29.339195027, 23.9524293341])) < 1e-9


def test_runs_on_complex_and_multiprecision_numbers(rng):
    model, hand = six_axis_arm(rng)
    q, dq, _ = random_state(model, rng)
    IA = pr.operational_space_inertia(model, q + 1e-30j * dq, hand)
    Phi = pr.inverse_inertia(model, q + 1e-30j * dq, hand)
    cond = pr.handle_freedom(model, q, hand)[1] ** 2 * conditioning(model, q)
    expected = -IA.real @ (Phi.imag / 1e-30) @ IA.real
    scale = np.abs(IA.real).max() ** 2 * np.abs(Phi.imag / 1e-30).max()
    assert_close(IA.imag / 1e-30, expected, condition=cond, scale=scale)
    with mpmath.workdps(40):
        precise, q = model.map_numbers(mpmath.mpf), np.array([mpmath.mpf(x) for x in q])
        product = pr.operational_space_inertia(precise, q, hand) @ pr.inverse_inertia(
            precise, q, hand
        )
        error = max(abs(x) for x in (product - np.eye(6, dtype=int)).ravel())
        assert error < mpmath.mpf(10) ** -30


def test_an_unknown_handle_is_rejected(rng):
    model = samples.chain(3)
    with pytest.raises(UnknownNameError, match="no frame or body 'hand'"):
        pr.inverse_inertia(model, np.zeros(3), ["link1", "hand"])


# --- loops: A7 of RBDA §7.2.1 against the assembly of §7.5 ---------------------------------------


def in_base(model, q, frames, Phi, b):
    """The response of handles, each in its own coordinates, in those of the base."""
    X = [Plucker(T[:3, :3].T, T[:3, 3]) for T in (kt.pose(model, q, name) for name in frames)]
    back = block_diagonal([x.inverse().to_matrix() for x in X])
    return back @ Phi @ back.T, back @ b


def triangle(rng):
    """Three bodies in a row, afloat, and a strut from the last to the first; with the parts of it.

    Returns:
        The closed model, the row of bodies and the strut, each with a configuration, and the points
        at which balls join the strut to the others.
    """
    inertia = [random_inertia(rng) for _ in range(4)]

    def row_of_bodies(there=(0.0, 0.0, 0.0)):
        b = kt.ModelBuilder("row", gravity=(0.4, -1.0, -9.0))
        b.body("a", joint=kt.Free(), inertia=inertia[0])
        b.body("b", on="a", joint=kt.Revolute("z"), at=(0.5, 0.1, 0), inertia=inertia[1])
        b.body("c", on="b", joint=kt.Revolute("y"), at=(0.4, 0, 0.2), inertia=inertia[2])
        b.frame("tip", on="b", at=(0.1, 0.2, 0.3))
        b.frame("end", on="c", at=(0.3, 0.1, 0))
        b.frame("start", on="a", at=there)
        return b

    row = row_of_bodies().build()
    q = row.random_configuration(rng)
    far = rng.standard_normal(3)  # the other end of the strut
    T = {name: kt.pose(row, q, name) for name in ("a", "end")}
    there = (np.linalg.inv(T["a"]) @ T["end"] @ np.append(far, 1.0))[:3]
    b = row_of_bodies(there)
    row = b.build()
    b.body("strut", on="c", joint=kt.Spherical(), at=(0.3, 0.1, 0), inertia=inertia[3])
    b.frame("middle", on="strut", at=far / 2)
    b.loop("ball", predecessor="a", successor="strut", joint=kt.Spherical(), at=there,
           successor_at=far)  # fmt: skip
    closed = b.build()
    b = kt.ModelBuilder("strut", gravity=row.gravity)
    b.body("strut", joint=kt.Free(), inertia=inertia[3])
    b.frame("middle", on="strut", at=far / 2)
    b.frame("near", on="strut", at=(0, 0, 0))
    b.frame("far", on="strut", at=far)
    strut, R = b.build(), T["end"][:3, :3]
    w = np.sqrt(max(0.0, 1 + np.trace(R))) / 2
    v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w)
    points = T["end"][:3, 3], (T["end"] @ np.append(far, 1.0))[:3]
    q_strut = np.concatenate([points[0], [w], v])
    return closed, np.concatenate([q, [1.0, 0, 0, 0]]), (row, q), (strut, q_strut), points


@pytest.mark.covers("RBDA 7.1", "RBDA 7.2", by=(pr.handle_response, pr.inverse_inertia))
@pytest.mark.covers("RBDA 7.5", by=join)
def test_handles_of_a_closed_mechanism_are_those_of_its_parts_joined_by_two_joints(rng):
    closed, q, (row, q_row), (strut, q_strut), points = triangle(rng)
    rest = [np.zeros(m.nv) for m in (closed, row, strut)]
    tau = np.concatenate([np.zeros(6), [0.7, -1.1], np.zeros(3)])  # of the hinges in the row
    kept = ["tip", "middle"]
    response = pr.handle_response(closed, q, rest[0], tau, kept)
    Phi, b = in_base(closed, q, kept, *response)

    parts = []
    for model, at, still, push, frames in (
        (row, q_row, rest[1], tau[:8], ["tip", "end", "start"]),
        (strut, q_strut, rest[2], rest[2], ["middle", "near", "far"]),
    ):
        found = pr.handle_response(model, at, still, push, frames)
        parts.append(as_handle_sets(*in_base(model, at, frames, *found), [0], [1, 2]))
    T = block_diagonal([np.concatenate([skew(p), np.eye(3)]) for p in points])
    joined = join(*parts, T, np.zeros(12))
    size = float(np.max(np.abs(joined.Phi)))
    assert_close(Phi, joined.Phi, scale=size, condition=1e6)
    assert_close(b, joined.b, scale=max(float(np.max(np.abs(joined.b))), size), condition=1e6)
    rank, _ = pr.handle_freedom(closed, q, kept)
    assert rank == np.linalg.matrix_rank(Phi, tol=1e-9 * size)


def test_an_articulated_body_inertia_of_a_linkage_is_what_a_hand_feels(rng):
    model = kt.samples.five_bar()
    q = closed_configurations(model)[0]
    qd = kt.loops.project_velocity(model, q, rng.standard_normal(model.nv))
    IA, pA = pr.operational_space_dynamics(model, q, qd, np.zeros(model.nv), "link3", rows=(3, 5))
    assert_close(IA, kt.operational_space_inertia(model, q, "link3", frame="body",
                                                  rows=("x", "z")), condition=1e4)  # fmt: skip
    eta = kt.operational_space_bias(model, q, qd, "link3", frame="body", rows=("x", "z"))
    assert_close(pA, eta, condition=1e4)
