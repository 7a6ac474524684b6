"""The public kinematic functions: observers, options, batches, messages."""

import inspect

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt

PANDA = kt.samples.panda()
POINT = (0.1, -0.2, 0.3)


@pytest.fixture
def state(rng):
    q = np.array([PANDA.random_configuration(rng) for _ in range(3)])
    return q, *rng.standard_normal((2, 3, PANDA.nv))


@pytest.mark.covers("6-D Guide 2: Jacobians", by=(kt.jacobian, kt.bias_acceleration, kt.hessian))
@pytest.mark.parametrize("other", [None, "link3"])
def test_velocity_and_acceleration_follow_the_jacobian_and_its_rate(other, state):
    q, qd, qdd = state
    for frame, point in (("world", None), ("body", POINT), ("aligned", POINT)):
        where = {"frame": frame, "point": point, "relative_to": other}
        kind = "classical" if frame == "aligned" else "spatial"
        J = kt.jacobian(PANDA, q, "tool", **where)
        Jd = kt.jacobian_rate(PANDA, q, qd, "tool", **where)
        H = kt.hessian(PANDA, q, "tool", **where)
        assert J.shape == (3, 6, PANDA.nv)
        assert H.shape == (3, 6, PANDA.nv, PANDA.nv)
        product = (Jd @ qd[..., None])[..., 0]
        assert_close((H @ qd[:, None, :, None])[..., 0], Jd, scale=30)
        v = kt.velocity(PANDA, q, qd, "tool", **where)
        assert_close((J @ qd[..., None])[..., 0], v, scale=30)
        a = kt.acceleration(PANDA, q, qd, qdd, "tool", kind=kind, **where)
        assert_close((J @ qdd[..., None])[..., 0] + product, a, scale=100)
        bias = kt.bias_acceleration(PANDA, q, qd, "tool", kind=kind, **where)
        assert_close(bias, product, scale=100)


@pytest.mark.covers("RBDA 4.2", by=kt.pose)
def test_relative_poses_chain(state):
    q = state[0]
    chained = kt.pose(PANDA, q, "link3") @ kt.pose(PANDA, q, "tool", relative_to="link3")
    assert_close(chained, kt.pose(PANDA, q, "tool"))
    there, back = (
        kt.pose(PANDA, q, a, relative_to=b) for a, b in (("tool", "link3"), ("link3", "tool"))
    )
    assert_close(there @ back, np.broadcast_to(np.eye(4), (3, 4, 4)))
    assert_close(kt.pose(PANDA, q, "tool", relative_to="base"), kt.pose(PANDA, q, "tool"))


def test_derivative_of_a_relative_pose_and_hessian_of_a_jacobian(state):
    q = state[0][0]
    options = {"frame": "aligned", "relative_to": "link3"}
    J = kt.jacobian(PANDA, q, "tool", **options)
    derivative = kt.differentiate(kt.pose, wrt="q")(PANDA, q, "tool", relative_to="link3")
    assert_close(derivative[:3, 3], J[3:], scale=1)
    H = kt.differentiate(kt.jacobian, wrt="q")(PANDA, q, "tool", **options)
    assert_close(H, kt.hessian(PANDA, q, "tool", **options), scale=1)


def test_all_bodies_in_batches(state):
    q = state[0]
    T = kt.poses(PANDA, q)
    for frame in ("world", "body", "aligned"):
        J = kt.jacobians(PANDA, q, frame=frame)
        for k, name in enumerate(PANDA.body_names[1:]):
            assert_close(J[:, k], kt.jacobian(PANDA, q, name, frame=frame), scale=10)
            assert_close(T[:, k], kt.pose(PANDA, q, name))


def test_every_function_of_a_frame_has_the_same_default(state):
    defaults = {}
    for name in kt.__all__:
        function = getattr(kt, name)
        parameter = (
            inspect.signature(function).parameters.get("frame")
            if inspect.isfunction(function)
            else None
        )
        of_joints = name in ("joint_reactions", "unique_reactions")  # in frames of the joints
        if parameter is not None and parameter.kind is parameter.KEYWORD_ONLY and not of_joints:
            defaults[name] = parameter.default
    assert len(defaults) >= 18, defaults
    assert set(defaults.values()) == {"world"}, defaults

    q, qd, qdd = (x[0] for x in state)
    J = kt.jacobian(PANDA, q, "tool")
    Jd = kt.jacobian_rate(PANDA, q, qd, "tool")
    assert_close(J @ qd, kt.velocity(PANDA, q, qd, "tool"), scale=30)
    assert_close(J @ qdd + Jd @ qd, kt.acceleration(PANDA, q, qd, qdd, "tool"), scale=100)
    assert_close(Jd @ qd, kt.bias_acceleration(PANDA, q, qd, "tool"), scale=100)
    assert_close(kt.hessian(PANDA, q, "tool") @ qd, Jd, scale=30)
    V = kt.jacobians(PANDA, q) @ qd
    assert_close(V[-1], kt.velocity(PANDA, q, qd, PANDA.body_names[-1]), scale=30)
    found = kt.generalized_velocity(PANDA, q, V)
    assert_close(found.qd, qd, scale=30, condition=np.linalg.cond(J))
    H = kt.mass_matrix(PANDA, q)
    mobility = J @ np.linalg.solve(H, J.T)
    assert_close(
        kt.inverse_operational_space_inertia(PANDA, q, "tool"), mobility,
        scale=np.abs(mobility).max(), condition=np.linalg.cond(H),
    )  # fmt: skip


def test_messages():
    q = PANDA.neutral()
    with pytest.raises(kt.UnknownNameError, match="'hand'"):
        kt.jacobian(PANDA, q, "tool", frame="body", relative_to="hand")
    with pytest.raises(kt.UnknownNameError, match="'spatial' or 'classical'"):
        kt.bias_acceleration(PANDA, q, q, "tool", kind="felt")
    with pytest.raises(kt.UnknownNameError, match="frame must be 'world', 'body' or 'aligned'"):
        kt.jacobians(PANDA, q, frame="local")
    with pytest.raises(kt.ShapeError, match="use frame='aligned' for the velocity of a point"):
        kt.hessian(PANDA, q, "tool", frame="world", point=POINT)
