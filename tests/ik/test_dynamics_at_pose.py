"""Dynamics of a task as functions of its pose — Lynch & Park, end of section 9.6."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import UnreachableError


@pytest.mark.covers("Lynch & Park 9.6", by=kt.ik.dynamics_at_pose)
@pytest.mark.parametrize("frame", ["body", "aligned"])
def test_lambda_and_eta_of_a_pose_are_those_of_its_configuration(frame, rng):
    """LP-65: q is found from X, qd from V; and J⁻ᵀ H J⁻¹ of the text, for six joints."""
    model = kt.samples.ur5()
    q, qd = rng.uniform(-1.2, -0.4, (3, 6)), rng.standard_normal((3, 6))
    X, V = kt.pose(model, q, "tool"), kt.velocity(model, q, qd, "tool", frame=frame)
    found = kt.ik.dynamics_at_pose(model, "tool", X, V, q + 0.02, frame=frame, tolerance=1e-12)
    J = kt.jacobian(model, q, "tool", frame=frame)
    condition = float(np.max(np.linalg.cond(J)))
    np.testing.assert_allclose(found.q, q, atol=1e-10 * condition)
    np.testing.assert_allclose(found.qd, qd, atol=1e-9 * condition)
    inverse = np.linalg.inv(J)
    Lambda = np.swapaxes(inverse, -1, -2) @ kt.mass_matrix(model, q) @ inverse
    scale = float(np.max(np.abs(Lambda)) * condition)
    np.testing.assert_allclose(found.inertia, Lambda, atol=1e-9 * scale)
    Jd = kt.jacobian_rate(model, q, qd, "tool", frame=frame)
    bias = np.swapaxes(inverse, -1, -2) @ kt.bias_force(model, q, qd)[..., None]
    eta = bias - Lambda @ (Jd @ qd[..., None])
    np.testing.assert_allclose(found.coriolis + found.gravity, eta[..., 0], atol=1e-8 * scale)


def test_poses_out_of_reach_and_singular_ones_are_named():
    model = kt.samples.ur5()
    X = np.eye(4)
    X[:3, 3] = 5.0
    with pytest.raises(UnreachableError, match="out of reach"):
        kt.ik.dynamics_at_pose(model, "tool", X, np.zeros(6))
    straight = np.array([0.1, -0.5, 0.0, 0.3, 0.7, 0.2])
    with pytest.raises(kt.SingularError, match="the Jacobian of 'tool' is singular"):
        kt.ik.dynamics_at_pose(
            model, "tool", kt.pose(model, straight, "tool"), np.ones(6), straight
        )
    with pytest.raises(kt.ShapeError, match="pose must be"):
        kt.ik.dynamics_at_pose(model, "tool", np.zeros(3), np.zeros(6))
    X = kt.pose(model, straight - 0.3, "tool")
    single = kt.ik.dynamics_at_pose(model, "tool", X, np.ones(6))
    assert_close(kt.velocity(model, single.q, single.qd, "tool"), np.ones(6), condition=1e3)
