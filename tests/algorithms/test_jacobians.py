"""Poses, Jacobians, their rates, velocities and accelerations of frames, in three references."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import STEP, Arm, assert_printed, random_state, rate, two_link_arm

from kinetree.algorithms import crba, rnea
from kinetree.algorithms import jacobians as jac
from kinetree.algorithms import kinematics as kin
from kinetree.algorithms.jacobians import RelativeFrame
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.joints import Euler, Exponential, Revolute, Spherical
from kinetree.model import Frame, ModelBuilder
from kinetree.samples import random_placement
from kinetree.spatial import Force, Plucker, displacement_velocity, rotx, xlt

REFERENCES = ("world", "body", "aligned")
POINTS = {"world": None, "body": (0.3, -0.2, 0.5), "aligned": (0.1, 0.4, -0.6)}


def random_frame(rng, model):
    return Frame("tool", int(rng.integers(1, model.body_count + 1)), random_placement(rng))


def norm(x):
    return 10 + np.max(np.abs(x), initial=0.0)


@pytest.mark.covers("RBDA 4.2", "6-D Guide 2: Kinematics", by=jac.frame_pose)
def test_pose_maps_points_of_the_frame_to_the_base(rng):
    m, q, *_ = random_state(rng)
    frame = random_frame(rng, m)
    X_0 = kin.base_transforms(m, kin.joint_transforms(m, q)[0])
    point = rng.standard_normal(3)
    in_body = frame.placement.inverse().point(point)
    in_base = X_0[frame.body].inverse().point(in_body)
    assert_close(jac.frame_pose(m, q, frame) @ [*point, 1], [*in_base, 1])


@pytest.mark.covers(
    "RBDA Example 4.2", "6-D Guide 2: Jacobians", "Lynch & Park 9.4", by=jac.body_jacobian
)
def test_body_jacobian_holds_the_axes_of_the_supporting_joints(rng):
    m, q, qd, *_ = random_state(rng)
    X_0, v = kin.base_velocities(m, q, qd)
    for i in range(1, m.body_count + 1):
        J = jac.body_jacobian(m, q, i)
        assert_close((J @ qd).to_array(), v[i].to_array(), scale=norm(v[i].to_array()))
        for j in range(1, m.body_count + 1):
            part = J[m.v_slice[j]].to_array()
            S = X_0[j].inv_apply(m.joint[j].motion_subspace(q[m.q_slice[j]])).to_array()
            assert_close(part, S if j in m.support[i] else 0 * S)


@pytest.mark.covers(
    "RBDA Example 4.2", "Lynch & Park 9.6", by=(jac.frame_jacobian, jac.frame_velocity)
)
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("shifted", [False, True])
def test_velocity_is_jacobian_times_joint_velocity(reference, shifted, rng):
    m, q, qd, *_ = random_state(rng)
    frame, point = random_frame(rng, m), POINTS[reference] if shifted else None
    J = jac.frame_jacobian(m, q, frame, reference, point)
    v = jac.frame_velocity(m, q, qd, frame, reference, point)
    assert J.shape == (6, m.nv)
    assert_close(J @ qd, v, scale=norm(v))


@pytest.mark.covers("Lynch & Park 9.4", "6-D Guide 2: Jacobians", by=jac.frame_velocity)
@pytest.mark.parametrize("n", range(3))
def test_velocity_is_the_derivative_of_the_pose(n, rng):
    """``T⁻¹ dT/dt`` in body, ``dT/dt T⁻¹`` in world coordinates; ``dr/dt`` of a point, aligned."""
    m, q, qd, *_ = random_state(rng)
    frame, point = random_frame(rng, m), np.array(POINTS["aligned"])
    T = jac.frame_pose(m, q, frame)
    Td = rate(lambda q: jac.frame_pose(m, q, frame), m, q, qd)
    body, world = np.linalg.solve(T, Td), Td @ np.linalg.inv(T)
    for matrix, reference in ((body, "body"), (world, "world")):
        W = matrix[:3, :3]
        v = jac.frame_velocity(m, q, qd, frame, reference)
        assert_close([W[2, 1], W[0, 2], W[1, 0], *matrix[:3, 3]], v, scale=norm(v))
    v = jac.frame_velocity(m, q, qd, frame, "aligned", point)
    assert_close(v[3:], (Td @ [*point, 1])[:3], scale=norm(v))


@pytest.mark.covers("6-D Guide 2: Jacobians", by=jac.frame_jacobian)
def test_references_differ_by_plucker_transforms(rng):
    m, q, *_ = random_state(rng)
    frame, point = random_frame(rng, m), np.array(POINTS["aligned"])
    X = Plucker.from_pose(jac.frame_pose(m, q, frame))
    J = {r: jac.frame_jacobian(m, q, frame, r) for r in REFERENCES}
    assert_close(J["body"], X.to_matrix() @ J["world"], scale=norm(J["world"]))
    assert_close(J["aligned"], xlt(X.r).to_matrix() @ J["world"], scale=norm(J["world"]))
    at_point = jac.frame_jacobian(m, q, frame, "aligned", point)
    r = X.inverse().point(point)
    assert_close(at_point, xlt(r).to_matrix() @ J["world"], scale=norm(J["world"]))


@pytest.mark.covers("6-D Guide 2: Jacobians", by=jac.frame_velocity)
def test_linear_part_in_world_coordinates_is_not_the_velocity_of_the_tool(rng):
    """The trap of 6-D guide 2, (26): they differ by ``w × p``."""
    m, q, qd, *_ = random_state(rng, joints=[Revolute("x"), Revolute("z")])
    frame = random_frame(rng, m)
    p = jac.frame_pose(m, q, frame)[:3, 3]
    world = jac.frame_velocity(m, q, qd, frame, "world")
    tool = jac.frame_velocity(m, q, qd, frame, "aligned")
    assert_close(world[:3], tool[:3], scale=norm(world))
    assert_close(tool[3:] - world[3:], np.cross(world[:3], p), scale=norm(world))
    assert np.linalg.norm(np.cross(world[:3], p)) > 1e-3


@pytest.mark.covers(
    "RBDA 2.10", "6-D Guide 2: Acceleration", "Tutorial 4", by=jac.frame_jacobian_rate
)
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("n", range(3))
def test_jacobian_rate_is_the_derivative_of_every_entry(reference, shifted, n, rng):
    m, q, qd, *_ = random_state(rng)
    frame, point = random_frame(rng, m), POINTS[reference] if shifted else None
    actual = jac.frame_jacobian_rate(m, q, qd, frame, reference, point)
    expected = rate(lambda q: jac.frame_jacobian(m, q, frame, reference, point), m, q, qd)
    assert_close(actual, expected, scale=norm(expected))


@pytest.mark.covers(
    "RBDA 2.11", "RBDA Example 2.5", "Lynch & Park 9.6", "6-D Guide 2: Acceleration",
    by=jac.frame_acceleration,
)  # fmt: skip
@pytest.mark.parametrize("reference", REFERENCES)
def test_acceleration_is_jacobian_times_qdd_plus_velocity_product(reference, rng):
    """Spatial in coordinates at rest or fixed to the body; classical where they do not turn."""
    m, q, qd, qdd, _ = random_state(rng)
    frame, point = random_frame(rng, m), POINTS[reference]
    J = jac.frame_jacobian(m, q, frame, reference, point)
    Jd = jac.frame_jacobian_rate(m, q, qd, frame, reference, point)
    kind = "classical" if reference == "aligned" else "spatial"
    a = jac.frame_acceleration(m, q, qd, qdd, frame, reference, kind, point)
    assert_close(J @ qdd + Jd @ qd, a, scale=norm(a))
    product = jac.frame_acceleration(m, q, qd, m.zero_velocity, frame, reference, kind, point)
    assert_close(Jd @ qd, product, scale=norm(a))


@pytest.mark.covers("RBDA 2.11", by=jac.frame_acceleration)
def test_classical_acceleration_is_the_second_derivative_of_a_point(rng):
    m, q, qd, qdd, _ = random_state(rng)
    frame, point = random_frame(rng, m), POINTS["aligned"]
    qdot = m.configuration_rate(q, qd)
    moved = q + 1j * STEP * qdot, qd + 1j * STEP * qdd
    v = jac.frame_velocity(m, *moved, frame, "aligned", point)
    a = jac.frame_acceleration(m, q, qd, qdd, frame, "aligned", "classical", point)
    assert_close(a, v.imag / STEP, scale=norm(a))
    turned = jac.frame_acceleration(m, q, qd, qdd, frame, "body", "classical", point)
    R = jac.frame_pose(m, q, frame)[:3, :3]
    assert_close(np.concatenate([R @ turned[:3], R @ turned[3:]]), a, scale=norm(a))


@pytest.mark.covers("RBDA 2.11", by=jac.frame_acceleration)
def test_spatial_acceleration_of_uniform_rotation_is_zero():
    """6-D guide 1 and RBDA §2.11: about an axis through (1, 0, 0), seen at the origin."""
    m = ModelBuilder("spin").body("disc", joint=Revolute("z"), at=(1.0, 0.0, 0.0)).build()
    state = np.array([0.0]), np.array([2.0]), np.array([0.0])
    frame = m.frame("disc")
    assert_close(jac.frame_velocity(m, *state[:2], frame), [0, 0, 2, 0, -2, 0])
    assert np.all(jac.frame_acceleration(m, *state, frame) == 0)
    classical = jac.frame_acceleration(m, *state, frame, kind="classical")
    assert_close(classical, [0, 0, 0, 4, 0, 0])


def test_accelerations_are_true_ones_without_gravity(rng):
    m, q, *_ = random_state(rng)
    frame, rest = random_frame(rng, m), m.zero_velocity
    assert np.all(jac.frame_acceleration(m, q, rest, rest, frame) == 0)


@pytest.mark.covers("6-D Guide 2: Jacobians", "Lynch & Park 9.4", by=jac.frame_jacobian)
@pytest.mark.parametrize("reference", REFERENCES)
def test_transposed_jacobian_turns_forces_into_joint_forces(reference, rng):
    """Same power from a force on the body and from the joint forces it is worth."""
    m, q, qd, *_ = random_state(rng)
    frame, f = random_frame(rng, m), rng.standard_normal(6)
    tau = jac.frame_jacobian(m, q, frame, reference).T @ f
    power = f @ jac.frame_velocity(m, q, qd, frame, reference)
    assert_close(tau @ qd, power, scale=norm(power))
    if reference == "world":
        on_body = [Force.zero()] * (m.body_count + 1)
        on_body[frame.body] = Force.from_array(f)
        rest = m.zero_velocity
        saved = rnea.gravity_force(m, q) - rnea.inverse_dynamics(m, q, rest, rest, on_body)
        assert_close(saved, tau, scale=norm(rnea.gravity_force(m, q)))


def test_frames_of_the_base_do_not_move(rng):
    m, q, qd, qdd, _ = random_state(rng)
    frame = Frame("floor", 0, random_placement(rng))
    assert_close(jac.frame_pose(m, q, frame), frame.placement.to_pose(), ulps=0)
    for reference in REFERENCES:
        assert np.array_equal(jac.frame_jacobian(m, q, frame, reference), np.zeros((6, m.nv)))
        rates = jac.frame_jacobian_rate(m, q, qd, frame, reference)
        assert np.array_equal(rates, np.zeros((6, m.nv)))
        assert not np.any(jac.frame_velocity(m, q, qd, frame, reference))
        assert not np.any(jac.frame_acceleration(m, q, qd, qdd, frame, reference))


def test_far_from_the_base_nothing_is_lost():
    """An arm a million metres away: local Jacobians keep all digits."""
    here, there = two_link_arm(), two_link_arm()
    there = there.replace(placement={"upper_joint": xlt(1e6, -2e6, 3e6)})
    tip = here.frame("tip")
    for reference in ("body", "aligned"):
        near, far = (jac.frame_jacobian(m, Arm.q, tip, reference) for m in (here, there))
        tolerance = 1e-9 if reference == "aligned" else 0.0  # the lever arm itself is rounded
        np.testing.assert_allclose(far, near, rtol=0, atol=tolerance)


# --- published numbers ---------------------------------------------------------------------------


@pytest.mark.covers(
    "Lynch & Park 9.6", "Lynch & Park 9.1", by=(jac.frame_jacobian, jac.frame_jacobian_rate)
)
def test_task_space_dynamics_of_the_planar_arm():
    m, q, qd, qdd = two_link_arm(), Arm.q, Arm.qd, Arm.qdd
    tip = m.frame("tip")
    J = jac.frame_jacobian(m, q, tip, "aligned")[3:5]
    Jd = jac.frame_jacobian_rate(m, q, qd, tip, "aligned")[3:5]
    expected = [[-0.10081103550701, 0.19470917115433], [1.41586698612705, 0.46053049700144]]
    assert_printed(J, expected, 14)
    assert_printed(np.linalg.det(J), -0.322108843618846, 15)
    inverse = np.linalg.inv(J)
    Lambda = inverse.T @ crba.joint_space_inertia(m, q) @ inverse
    coefficients = [
        [5.08828805952496, -1.72850046781535],
        [-1.72850046781535, 1.73079827637807],
    ]
    assert_printed(Lambda, coefficients, 13)
    eta = inverse.T @ rnea.bias_force(m, q, qd) - Lambda @ Jd @ qd
    assert_printed(eta, (-24.8623431121, 20.3216300697), 10)
    F = Lambda @ (J @ qdd + Jd @ qd) + eta
    assert_printed(F, (-29.339195027, 23.9524293341), 9)
    assert_close(J.T @ F, Arm.tau)


@pytest.mark.covers("6-D Guide 2: Kinematics", "6-D Guide 2: Jacobians", by=jac.body_jacobian)
def test_inverse_kinematics_of_a_six_axis_arm():
    """Newton's iteration of 6-D guide 2, Fig. 6."""
    placements = (
        None,
        rotx(np.pi / 2) @ xlt(0, 0, 0.4),
        xlt(0.4, 0, 0),
        rotx(-np.pi / 2) @ xlt(0.05, 0.35, 0),
        rotx(np.pi / 2),
        rotx(-np.pi / 2) @ xlt(0, 0.1, 0),
    )
    builder, on = ModelBuilder("6R"), None
    for i, at in enumerate(placements):
        builder.body(f"link{i}", on=on, joint=Revolute("z"), at=at)
        on = f"link{i}"
    m = builder.build()
    target = np.array([0.3, -0.4, 0.5, 0.6, -0.7, 0.8])
    q = target + 0.1 * np.array([1, -1, 1, -1, 1, -1])

    def pose(q):
        return kin.base_transforms(m, kin.joint_transforms(m, q)[0])[6]

    X_d, residuals = pose(target), []
    for _ in range(5):
        X = pose(q)
        dp = displacement_velocity(X_d @ X.inverse())
        residuals.append(np.linalg.norm(dp.to_array()))
        J = X.to_matrix() @ jac.body_jacobian(m, q, 6).to_array()
        q = q + J.T @ np.linalg.solve(J @ J.T, dp.to_array())
    for actual, printed in zip(residuals, (1.5e-1, 1.1e-2, 4.8e-4, 1.7e-7), strict=False):
        assert f"{actual:.1e}" == f"{printed:.1e}"
    assert residuals[4] < 1e-10
    assert_close(q, target, condition=np.linalg.cond(J))


@pytest.mark.covers("Tutorial 5", by=(jac.frame_jacobian, jac.frame_jacobian_rate))
@pytest.mark.parametrize("n", range(3))
def test_articulated_equations_of_the_tutorial(n, rng):
    """Tutorial (59): mass-centre Jacobians of all links, in world axes, and their rates."""
    m, q, qd, qdd, _ = random_state(rng)
    M, C, Q = np.zeros((m.nv, m.nv)), np.zeros(m.nv), np.zeros(m.nv)
    for k in range(1, m.body_count + 1):
        I, frame = m.inertia[k], m.frame(m.body_names[k])
        where = (frame, "aligned", I.center_of_mass)
        J, Jd = jac.frame_jacobian(m, q, *where), jac.frame_jacobian_rate(m, q, qd, *where)
        R = jac.frame_pose(m, q, frame)[:3, :3]
        I_c = R @ I.rotational_at_center @ R.T
        M_c = np.block([[I_c, np.zeros((3, 3))], [np.zeros((3, 3)), I.mass * np.eye(3)]])
        w = J[:3] @ qd
        M += J.T @ M_c @ J
        C += J.T @ M_c @ (Jd @ qd) + J[:3].T @ np.cross(w, I_c @ w)
        Q += I.mass * J[3:].T @ m.gravity
    tau = rnea.inverse_dynamics(m, q, qd, qdd)
    assert_close(M, crba.joint_space_inertia(m, q))
    assert_close(C, rnea.coriolis_force(m, q, qd), scale=norm(tau))
    assert_close(M @ qdd + C - Q, tau, scale=norm(tau))


# --- second derivatives, all bodies, observers ---------------------------------------------------


@pytest.mark.covers("6-D Guide 2: Jacobians", "Tutorial 4", by=jac.frame_hessian)
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("watched", [False, True])
def test_hessian_is_the_derivative_of_every_entry_of_the_jacobian(reference, shifted, watched, rng):
    m, q, qd, *_ = random_state(rng)
    frame, point = random_frame(rng, m), POINTS[reference] if shifted else None
    where = (frame, reference, point, random_frame(rng, m) if watched else None)
    actual = jac.frame_hessian(m, q, *where)
    columns = [rate(lambda q: jac.frame_jacobian(m, q, *where), m, q, e) for e in np.eye(m.nv)]
    expected = np.stack(columns, axis=-1)
    assert_close(actual, expected, scale=norm(expected))
    Jd = jac.frame_jacobian_rate(m, q, qd, *where)
    assert_close(actual @ qd, Jd, scale=norm(Jd))


@pytest.mark.covers("Tutorial 4", by=jac.frame_hessian)
@pytest.mark.parametrize("joint", [Euler("xyz"), Exponential(), Spherical()], ids=str)
def test_angular_columns_of_a_rotation_do_not_commute(joint, rng):
    """Tutorial (43): ``∂j_j/∂q_k - ∂j_k/∂q_j = j_k × j_j``; twice that along body-fixed axes."""
    m = ModelBuilder("ball").body("ball", joint=joint).build()
    q = m.random_configuration(rng)
    J, H = jac.frame_jacobian(m, q, m.frame("ball")), jac.frame_hessian(m, q, m.frame("ball"))
    for j in range(3):
        for k in range(3):
            bracket = np.cross(J[:3, k], J[:3, j])
            times = 2 if isinstance(joint, Spherical) else 1
            assert_close(H[:3, j, k] - H[:3, k, j], times * bracket, scale=10)


@pytest.mark.covers("Tutorial 5", by=(jac.all_jacobians, jac.all_poses))
@pytest.mark.parametrize("reference", REFERENCES)
def test_all_bodies_at_once(reference, rng):
    m, q, *_ = random_state(rng)
    J, T = jac.all_jacobians(m, q, reference), jac.all_poses(m, q)
    assert J.shape == (m.body_count, 6, m.nv)
    for i, name in enumerate(m.body_names[1:]):
        assert_close(J[i], jac.frame_jacobian(m, q, m.frame(name), reference), scale=10)
        assert_close(T[i], jac.frame_pose(m, q, m.frame(name)))


@pytest.mark.covers("RBDA 2.8", "RBDA 4.2", by=RelativeFrame)
@pytest.mark.parametrize("n", range(3))
def test_an_observer_sees_the_derivative_of_the_relative_pose(n, rng):
    m, q, qd, qdd, _ = random_state(rng)
    frame, observer = random_frame(rng, m), random_frame(rng, m)
    T = jac.frame_pose(m, q, frame, observer)
    expected = np.linalg.inv(jac.frame_pose(m, q, observer)) @ jac.frame_pose(m, q, frame)
    assert_close(T, expected, scale=norm(expected))
    Td = rate(lambda q: jac.frame_pose(m, q, frame, observer), m, q, qd)
    seen = {"observer": observer}
    for matrix, reference in ((np.linalg.solve(T, Td), "body"), (Td @ np.linalg.inv(T), "world")):
        W = matrix[:3, :3]
        v = jac.frame_velocity(m, q, qd, frame, reference, **seen)
        assert_close([W[2, 1], W[0, 2], W[1, 0], *matrix[:3, 3]], v, scale=norm(v))
    v = jac.frame_velocity(m, q, qd, frame, "aligned", **seen)
    assert_close(v[3:], Td[:3, 3], scale=norm(v))
    moved = q + 1j * STEP * m.configuration_rate(q, qd), qd + 1j * STEP * qdd
    for reference, kind in (("world", "spatial"), ("body", "spatial"), ("aligned", "classical")):
        J = jac.frame_jacobian(m, q, frame, reference, **seen)
        Jd = jac.frame_jacobian_rate(m, q, qd, frame, reference, **seen)
        v = jac.frame_velocity(m, q, qd, frame, reference, **seen)
        a = jac.frame_acceleration(m, q, qd, qdd, frame, reference, kind, **seen)
        vd = jac.frame_velocity(m, *moved, frame, reference, **seen).imag / STEP
        assert_close(J @ qd, v, scale=norm(v))
        assert_close(vd, a, scale=norm(a))
        assert_close(J @ qdd + Jd @ qd, a, scale=norm(a))
        entries = rate(lambda q, r=reference: jac.frame_jacobian(m, q, frame, r, **seen), m, q, qd)
        assert_close(Jd, entries, scale=norm(entries))
        bias = jac.frame_bias_acceleration(m, q, qd, frame, reference, kind, **seen)
        assert_close(bias, Jd @ qd, scale=norm(a))


def test_only_the_joints_between_two_frames_matter():
    m = (
        ModelBuilder("hand")
        .body("arm", joint=Revolute("x"))
        .body("thumb", on="arm", joint=Revolute("y"), at=(0.1, 0, 0))
        .body("finger", on="arm", joint=Revolute("z"), at=(0, 0.1, 0))
        .build()
    )
    q = np.array([0.3, -0.5, 0.7])
    J = jac.frame_jacobian(m, q, m.frame("finger"), "body", observer=m.frame("thumb"))
    assert np.all(J[:, 0] == 0)
    assert np.all(np.any(J[:, 1:], axis=0))
    for frame, observer in (("arm", "finger"), ("finger", "arm")):  # one carries the other
        T = jac.frame_pose(m, q, m.frame(frame), m.frame(observer))
        back = jac.frame_pose(m, q, m.frame(observer), m.frame(frame))
        assert_close(T @ back, np.eye(4), scale=1.0)
        to_base = [jac.frame_pose(m, q, m.frame(name)) for name in (observer, frame)]
        assert_close(to_base[0] @ T, to_base[1], scale=1.0)
    still = jac.frame_jacobian(m, q, m.frame("finger"), "body", observer=m.frame("finger"))
    assert np.all(still == 0)


# --- errors --------------------------------------------------------------------------------------


def test_unknown_references_and_kinds_are_named():
    m, tip = two_link_arm(), two_link_arm().frame("tip")
    with pytest.raises(UnknownNameError, match="'world', 'body' or 'aligned', got 'local'"):
        jac.frame_jacobian(m, Arm.q, tip, "local")
    with pytest.raises(UnknownNameError, match="'spatial' or 'classical', got 'proper'"):
        jac.frame_acceleration(m, Arm.q, Arm.qd, Arm.qdd, tip, kind="proper")


def test_a_point_must_have_a_meaning():
    m, tip = two_link_arm(), two_link_arm().frame("tip")
    with pytest.raises(ShapeError, match="do not depend on the point; leave it out, or use"):
        jac.frame_jacobian(m, Arm.q, tip, "world", point=(0, 0, 1))
    with pytest.raises(ShapeError, match=r"the point must have 3 components, got shape \(2,\)"):
        jac.frame_jacobian(m, Arm.q, tip, "body", point=(0, 1))
