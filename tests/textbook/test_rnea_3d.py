"""The 3-D algorithms: Table 5.2 and the recursion of the tutorial, against the spatial one."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import STEP, Arm, Figure1, figure_1_tree, random_state, two_link_arm

from kinetree.algorithms import aba, rnea
from kinetree.errors import JointError
from kinetree.joints import Fixed, Prismatic, Revolute, Spherical, Translation
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial import Inertia
from kinetree.textbook import rnea_3d

SIMPLE = (
    Revolute("x"), Revolute("z"), Revolute((1.0, -2.0, 2.0)),
    Prismatic("y"), Prismatic("-x"), Prismatic((1.0, 1.0, 0.5)), Fixed(),
)  # fmt: skip


@pytest.mark.covers("RBDA Table 5.2", "RBDA 5.4", by=rnea_3d.inverse_dynamics)
@pytest.mark.parametrize("n", range(5))
def test_original_algorithm_gives_the_same_joint_forces(n, rng):
    m, q, qd, qdd, f_ext = random_state(rng, joints=SIMPLE)
    for forces in (None, f_ext):
        actual = rnea_3d.inverse_dynamics(m, q, qd, qdd, forces)
        assert_close(actual, rnea.inverse_dynamics(m, q, qd, qdd, forces))


@pytest.mark.covers("RBDA Table 5.2", "RBDA 5.4", by=rnea_3d.newton_euler)
@pytest.mark.parametrize("n", range(3))
def test_correspondence_of_intermediate_results(n, rng):
    """They differ in two places: linear acceleration, and the moment of the net force."""
    m, q, qd, qdd, _ = random_state(rng, joints=SIMPLE)
    old, new = rnea_3d.newton_euler(m, q, qd, qdd), rnea.newton_euler(m, q, qd, qdd)
    for i in range(1, m.body_count + 1):
        c, v = m.inertia[i].center_of_mass, new.v[i]
        scale = 10 + np.max(np.abs(new.f[i].to_array()))
        assert_close(old.w[i], v.angular, scale=scale)
        assert_close(old.wd[i], new.a[i].angular, scale=scale)
        assert_close(old.vd[i] - np.cross(v.angular, v.linear), new.a[i].linear, scale=scale)
        momentum = m.inertia[i] @ v
        net = m.inertia[i] @ new.a[i] + v.cross(momentum)
        assert_close(old.F[i], net.linear, scale=scale)
        assert_close(old.N[i] + np.cross(c, old.F[i]), net.angular, scale=scale)
        assert_close(old.f[i], new.f[i].linear, scale=scale)
        assert_close(old.n[i], new.f[i].angular, scale=scale)


@pytest.mark.covers("RBDA 5.4", by=rnea_3d.newton_euler)
def test_slider_on_a_turntable_feels_centripetal_and_coriolis_acceleration():
    w, x, xd = 2.0, 0.3, 0.7
    mass = Inertia.from_mass_center(1.5, (0, 0, 0), np.zeros((3, 3)))
    m = (
        ModelBuilder("turntable", gravity=(0, 0, 0))
        .body("table", joint=Revolute("z"))
        .body("slider", on="table", joint=Prismatic("x"), inertia=mass)
        .build()
    )
    result = rnea_3d.newton_euler(m, np.array([0.4, x]), np.array([w, xd]), np.zeros(2))
    assert_close(result.vd[2], [-(w**2) * x, 2 * w * xd, 0])
    assert_close(result.tau, [1.5 * x * 2 * w * xd, -1.5 * w**2 * x])


@pytest.mark.covers("Lynch & Park 9.1", "RBDA 5.4", by=rnea_3d.inverse_dynamics)
def test_planar_arm_of_lynch_and_park():
    assert_close(rnea_3d.inverse_dynamics(two_link_arm(), Arm.q, Arm.qd, Arm.qdd), Arm.tau, ulps=8)


def test_massless_bodies_are_allowed(rng):
    builder = ModelBuilder("universal").body("cross", joint=Revolute("x"))
    m = builder.body("arm", on="cross", joint=Revolute("y"), inertia=random_inertia(rng)).build()
    q, qd, qdd = rng.standard_normal((3, 2))
    assert_close(rnea_3d.inverse_dynamics(m, q, qd, qdd), rnea.inverse_dynamics(m, q, qd, qdd))


def test_other_joints_are_rejected_by_name():
    m = ModelBuilder("ball").body("b", joint=Spherical(), joint_name="hip").build()
    message = "revolute, prismatic and fixed joints only, but joint 'hip' is a Spherical"
    with pytest.raises(JointError, match=message):
        rnea_3d.inverse_dynamics(m, m.neutral(), np.zeros(3), np.zeros(3))


# --- the tutorial's recursion: any rotational joint by its Jacobian, classical accelerations -----


def tutorial_inverse_dynamics(model, q, qd, qdd):
    """Tutorial (72)–(85), with its two gaps filled: the rate of the joint Jacobian, and (84).

    Velocities and accelerations of the mass centres and moments about the joints, in link frames.
    Joints are rotational, given by ``R`` and ``Jhat`` in the parent frame, or translations.
    """
    NB, lam, at = model.body_count, model.parent, model.v_slice
    w, wd, vd, f, n, R, c, d = ([None] * (NB + 1) for _ in range(8))
    Q = np.zeros(model.nv)
    w[0], wd[0], vd[0], c[0] = np.zeros(3), np.zeros(3), -model.gravity, np.zeros(3)
    for k in range(1, NB + 1):
        p, joint, place = lam[k], model.joint[k], model.tree_transform[k]
        assert np.array_equal(place.E, np.eye(3))
        x, xd, xdd = q[model.q_slice[k]], qd[at[k]], qdd[at[k]]
        c[k] = model.inertia[k].center_of_mass
        if isinstance(joint, Translation):
            R[k], d[k] = np.eye(3), place.r + x
            w[k], wd[k] = w[p], wd[p]
            slide = 2 * np.cross(w[p], xd) + xdd
        else:
            R[k], d[k] = joint.transform(x).E.T, place.r
            what, whatd = _joint_rates(joint, x, xd, xdd)
            w[k] = R[k].T @ (w[p] + what)
            wd[k] = R[k].T @ (wd[p] + whatd + np.cross(w[p], what))
            slide = 0
        arm = d[k] - c[p]
        at_joint = vd[p] + np.cross(wd[p], arm) + np.cross(w[p], np.cross(w[p], arm)) + slide
        turned = np.cross(w[k], np.cross(w[k], c[k])) + np.cross(wd[k], c[k])
        vd[k] = R[k].T @ at_joint + turned
    for k in range(NB, 0, -1):
        I, m = model.inertia[k].rotational_at_center, model.inertia[k].mass
        f[k] = m * vd[k] + sum(R[i] @ f[i] for i in model.children[k])
        n[k] = I @ wd[k] + np.cross(w[k], I @ w[k]) + np.cross(c[k], f[k])
        for i in model.children[k]:
            n[k] = n[k] + R[i] @ n[i] + np.cross(d[i] - c[k], R[i] @ f[i])
        if isinstance(model.joint[k], Translation):
            Q[at[k]] = f[k]
        else:
            Q[at[k]] = _joint_jacobian(model.joint[k], q[model.q_slice[k]]).T @ R[k] @ n[k]
    return Q


def _joint_jacobian(joint, x):
    """``Jhat``: columns from the skew matrices ``dR/dq_j Rᵀ``, in the parent frame — (29), (50)."""
    R = joint.transform(x).E.T
    columns = []
    for e in np.eye(joint.nq):
        dR = joint.transform(x + 1j * STEP * e).E.T.imag / STEP
        W = dR @ R.T
        assert_close(W, -W.T, scale=1)
        columns.append([W[2, 1], W[0, 2], W[1, 0]])
    return np.array(columns).T


def _joint_rates(joint, x, xd, xdd):
    J, h = _joint_jacobian(joint, x), 1e-5
    if joint.nq == 1:  # a hinge: the axis is fixed in the parent
        return J @ xd, J @ xdd
    ahead, behind = (_joint_jacobian(joint, x + s * h * xd) for s in (1, -1))
    return J @ xd, J @ xdd + (ahead - behind) @ xd / (2 * h)


@pytest.mark.covers("Tutorial 7", "Tutorial 5", by=rnea.inverse_dynamics)
@pytest.mark.parametrize("numbers", [Figure1.euler, Figure1.exponential], ids=["euler", "exp"])
def test_recursion_of_the_tutorial(numbers):
    m = figure_1_tree(numbers["joint"])
    Q = tutorial_inverse_dynamics(m, Figure1.q, Figure1.qd, Figure1.qdd)
    np.testing.assert_allclose(Q, numbers["Q"], rtol=0, atol=2e-8)
    tau = rnea.inverse_dynamics(m, Figure1.q, Figure1.qd, Figure1.qdd)
    np.testing.assert_allclose(Q, tau, rtol=0, atol=1e-9)  # central difference of Jhat


@pytest.mark.covers("Tutorial 7", by=rnea.inverse_dynamics)
def test_recursion_of_the_tutorial_with_translations(rng):
    """Hinges only otherwise, so that Jhat is constant and no difference is taken."""
    builder = ModelBuilder("crane")
    joints = (Translation(), Revolute("z"), Translation(), Revolute("x"))
    parents = ("base", "a", "b", "b")
    for name, on, joint in zip("abcd", parents, joints, strict=True):
        at, inertia = rng.standard_normal(3), random_inertia(rng)
        builder.body(name, on=on, joint=joint, at=at, inertia=inertia)
    m = builder.build()
    q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    assert_close(tutorial_inverse_dynamics(m, q, qd, qdd), rnea.inverse_dynamics(m, q, qd, qdd))


@pytest.mark.covers("Lynch & Park 9.1", "Tutorial 7", by=rnea.inverse_dynamics)
def test_planar_arm_by_the_recursion_of_the_tutorial():
    arm = two_link_arm()
    assert_close(tutorial_inverse_dynamics(arm, Arm.q, Arm.qd, Arm.qdd), Arm.tau)
    assert_close(rnea.inverse_dynamics(arm, Arm.q, Arm.qd, Arm.qdd), Arm.tau)


@pytest.mark.covers("Tutorial 7", by=rnea.newton_euler)
def test_hanging_chain_transmits_the_whole_weight_and_a_ballistic_root_nothing(rng):
    m, q, qd, *_ = random_state(rng, bodies=5, floating_base=True)
    qdd = aba.forward_dynamics(m, q, qd, np.zeros(m.nv))
    free = rnea.newton_euler(m, q, qd, qdd)
    roots = [i for i in range(1, m.body_count + 1) if m.parent[i] == 0]
    assert_close(free.tau[m.v_slice[1]], np.zeros(6), scale=1e3)
    hanging = rnea.newton_euler(m, q, np.zeros(m.nv), np.zeros(m.nv))
    total = sum(hanging.X[i].E.T @ hanging.f[i].linear for i in roots)
    weight = -m.gravity * sum(I.mass for I in m.inertia[1:])
    assert_close(total, weight)
