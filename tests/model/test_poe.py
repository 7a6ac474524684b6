"""Products of exponentials — Lynch & Park 9.3."""

import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import assert_close
from support.motions import frame_pose

from kinetree.algorithms import rnea
from kinetree.algorithms.jacobians import frame_jacobian
from kinetree.errors import ModelError
from kinetree.joints import Free, PrescribedInstant, Screw
from kinetree.model import ModelBuilder, attach, from_poe, to_poe
from kinetree.model.poe import link_poses, link_screws
from kinetree.samples import arm, chain, humanoid, random_inertia, random_placement, scara
from kinetree.spatial import Force, Inertia, Plucker, skew


def bracket(S):
    """[S], the 4x4 matrix of a twist."""
    return np.block([[skew(S[:3]), np.array(S[3:])[:, None]], [np.zeros((1, 4))]])


def adjoint(T):
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def random_screw(rng, kind):
    w = rng.standard_normal(3)
    w /= np.linalg.norm(w)
    if kind == "prismatic":
        return np.concatenate([np.zeros(3), w])
    pitch = 0.2 if kind == "helical" else 0.0
    return np.concatenate([w, pitch * w - np.cross(w, rng.standard_normal(3))])


def random_arm(rng, kinds=("revolute", "prismatic", "helical", "revolute", "revolute", "revolute")):
    screws = [random_screw(rng, kind) for kind in kinds]
    home = [random_placement(rng).to_pose() for _ in kinds]
    inertias = []
    for _ in kinds:
        I = random_inertia(rng)
        inertias.append(Inertia.from_mass_center(I.mass, np.zeros(3), I.rotational_at_center))
    return screws, home, inertias


@pytest.mark.covers("Lynch & Park 9.3", by=(from_poe, link_poses))
def test_forward_kinematics_is_the_product_of_matrix_exponentials(rng):
    screws, home, inertias = random_arm(rng)
    tool = random_placement(rng).to_pose()
    model = from_poe(screws, home, inertias, tool=tool)
    q = rng.uniform(-2, 2, len(screws))
    poses, moved = link_poses(screws, home, q), np.eye(4)
    for i, S in enumerate(screws):
        moved = moved @ expm(bracket(S) * q[i])
        assert_close(frame_pose(model, q, f"link{i + 1}"), moved @ home[i], ulps=1e3)
        assert_close(poses[i], moved @ home[i], ulps=1e3)
    assert_close(frame_pose(model, q, "tool"), moved @ tool, ulps=1e3)


@pytest.mark.covers("Lynch & Park 9.3", by=link_screws)
def test_link_to_link_transforms_use_the_screw_in_the_link_frame(rng):
    screws, home, inertias = random_arm(rng)
    A = link_screws(screws, home)
    q = rng.uniform(-2, 2, len(screws))
    T = np.eye(4)
    for i in range(len(screws)):
        assert_close(A[i], adjoint(np.linalg.inv(home[i])) @ screws[i], ulps=1e3)
        before = home[i - 1] if i else np.eye(4)
        T = T @ np.linalg.inv(before) @ home[i] @ expm(bracket(A[i]) * q[i])
        assert_close(T, link_poses(screws, home, q)[i], ulps=1e3)
    assert isinstance(from_poe(screws, home, inertias).joint[1], Screw)


def recursion(screws, home, inertias, state, *, V_0, Vd_0, F_tip, tool):
    """(9.52)–(9.57) in plain matrices, with frames at the mass centres; signs as derived."""
    n, (q, qd, qdd) = len(screws), state
    A = [adjoint(np.linalg.inv(M)) @ S for S, M in zip(screws, home, strict=True)]
    V, Vd, Ad = [V_0], [Vd_0], []
    for i in range(n):
        before = home[i - 1] if i else np.eye(4)
        T = expm(-bracket(A[i]) * q[i]) @ np.linalg.inv(home[i]) @ before
        Ad.append(adjoint(T))
        V.append(A[i] * qd[i] + Ad[i] @ V[i])
        lie = np.concatenate(
            [
                np.cross(V[-1][:3], A[i][:3]),
                np.cross(V[-1][3:], A[i][:3]) + np.cross(V[-1][:3], A[i][3:]),
            ]
        )
        Vd.append(Ad[i] @ Vd[i] + lie * qd[i] + A[i] * qdd[i])
    Ad.append(adjoint(np.linalg.inv(tool) @ home[-1]))
    F, tau = F_tip, np.zeros(n)
    for i in reversed(range(n)):
        G = inertias[i].to_matrix()
        w, v = V[i + 1][:3], V[i + 1][3:]
        ad = np.block([[skew(w), np.zeros((3, 3))], [skew(v), skew(w)]])
        F = Ad[i + 1].T @ F + G @ Vd[i + 1] - ad.T @ (G @ V[i + 1])
        tau[i] = F @ A[i]
    return tau


@pytest.mark.covers("Lynch & Park 9.3", by=from_poe)
def test_inverse_dynamics_is_the_recursion_of_the_source(rng):
    """With a wrench that the end-effector exerts on its surroundings, in its own frame."""
    screws, home, inertias = random_arm(rng)
    n, g = len(screws), np.array([0.3, -0.2, -9.81])
    q, qd, qdd = rng.standard_normal((3, n))
    tool = random_placement(rng).to_pose()
    model = from_poe(screws, home, inertias, gravity=g, tool=tool)
    base = {"V_0": np.zeros(6), "Vd_0": np.concatenate([np.zeros(3), -g]), "tool": tool}
    F_tip = rng.standard_normal(6)
    for F in (np.zeros(6), F_tip):
        X_tool = Plucker.from_pose(frame_pose(model, q, "tool"))
        f_ext = [None] + [Force.zero()] * (n - 1) + [-(X_tool.T @ Force.from_array(F))]
        tau = recursion(screws, home, inertias, (q, qd, qdd), F_tip=F, **base)
        assert_close(rnea.inverse_dynamics(model, q, qd, qdd, f_ext), tau, ulps=1e4)
    J = frame_jacobian(model, q, model.frame("tool"), "body")
    assert_close(tau - rnea.inverse_dynamics(model, q, qd, qdd), J.T @ F_tip, ulps=1e4, scale=100)


@pytest.mark.covers("Lynch & Park 9.3", by=from_poe)
def test_a_moving_base_starts_the_recursion_with_its_velocity(rng):
    """``V_0`` and ``V̇_0`` of a prescribed base; its position is where it passes the origin."""
    screws, home, inertias = random_arm(rng)
    g, tool = np.array([0.3, -0.2, -9.81]), np.eye(4)
    state = rng.standard_normal((3, len(screws)))
    V_0, Vd_0 = rng.standard_normal((2, 6))
    arm = from_poe(screws, home, inertias, gravity=g)
    here = Free().neutral()
    mounted = attach(
        ModelBuilder(gravity=g)
        .body("cart", joint=PrescribedInstant(Free(), tuple(here), tuple(V_0), tuple(Vd_0)))
        .build(),
        arm,
        on="cart",
    )
    tau = recursion(
        screws, home, inertias, state, tool=tool, F_tip=np.zeros(6),
        V_0=V_0, Vd_0=Vd_0 + np.concatenate([np.zeros(3), -g]),
    )  # fmt: skip
    assert_close(rnea.inverse_dynamics(mounted, *state), tau, ulps=1e4)


@pytest.mark.parametrize("model", [arm(), scara(), chain(6)], ids=lambda m: m.name)
def test_a_model_and_its_product_of_exponentials_have_the_same_dynamics(model, rng):
    screws, home = to_poe(model)
    again = from_poe(screws, home, model.inertia[1:], gravity=model.gravity)
    q, qd, qdd = rng.standard_normal((3, model.nv))
    expected = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(rnea.inverse_dynamics(again, q, qd, qdd), expected, ulps=1e3)
    for name, new in zip(model.body_names[1:], again.body_names[1:], strict=True):
        assert_close(frame_pose(again, q, new), frame_pose(model, q, name), ulps=1e3)


def test_messages(rng):
    screws, home, inertias = random_arm(rng, ("revolute", "revolute"))
    with pytest.raises(
        ModelError, match="as many screws as home poses and inertias, got 2, 1 and 2"
    ):
        from_poe(screws, home[:1], inertias)
    with pytest.raises(ModelError, match=r"screw 2 must have an angular part of length 1.*2 and"):
        from_poe([screws[0], 2 * screws[1]], home, inertias)
    with pytest.raises(ModelError, match=r"screw 1 must be six numbers.*got shape \(3,\)"):
        from_poe([screws[0][:3], screws[1]], home, inertias)
    with pytest.raises(ModelError, match="one freedom per joint, but joint 'root' has 6"):
        to_poe(humanoid())
