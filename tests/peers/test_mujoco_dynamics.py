"""Models read from MJCF move as they do in MuJoCo, whatever feature of MJCF they use."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import (
    CLOSED,
    TREES,
    forward,
    loaded,
    mass_matrix,
    peer,
    random_state,
)

import kinetree as kt
from kinetree.algorithms import crba, energy, jacobians, passive, reactions, rnea
from kinetree.interop import mujoco as M
from kinetree.spatial import Force

TEXTS = TREES | CLOSED
every_mechanism = pytest.mark.parametrize("name", TEXTS)


def pair(name, rng):
    """Both models, MuJoCo's data at a random state, and the same state here.

    MuJoCo's couplings are soft, and it has a variable for every joint.
    """
    model, (mj_model, data) = loaded(TEXTS[name]).uncoupled, peer(TEXTS[name])
    qpos, qvel, qacc = random_state(mj_model, rng)
    forward(mj_model, data, qpos, qvel, qacc)
    return model, mj_model, data, M.from_q(model, mj_model, qpos), _velocity(model, mj_model, data)


def _velocity(model, mj_model, data):
    return M.from_v(model, mj_model, data.qpos, data.qvel)


def assert_same(ours, theirs):
    scale = max(np.max(np.abs(theirs), initial=0.0), 1.0)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * scale)


@every_mechanism
def test_inertia_matrix_is_that_of_mj_fullM(name, rng):
    model, mj_model, data, q, _ = pair(name, rng)
    rows = M.from_tau(model, mj_model, data.qpos, mass_matrix(mj_model, data))
    expected = M.from_tau(model, mj_model, data.qpos, rows.T)
    assert_same(crba.joint_space_inertia(model, q), expected)


@pytest.mark.parametrize("name", ["joint", "joint held"])
def test_hard_couplings_reduce_mujocos_inertia_matrix(name, rng):
    model, (mj_model, data) = loaded(TEXTS[name]), peer(TEXTS[name])
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    assert model.nv == mj_model.nv - 1
    forward(mj_model, data, M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd))
    rows = M.from_tau(model, mj_model, data.qpos, mass_matrix(mj_model, data))
    expected = M.from_tau(model, mj_model, data.qpos, rows.T)
    assert_same(crba.joint_space_inertia(model, q), expected)


@every_mechanism
def test_bias_force_is_qfrc_bias(name, rng):
    """At zero acceleration of MuJoCo's variables, which for free joints is not zero of ours."""
    model, mj_model, data, q, qd = pair(name, rng)
    qdd = M.from_a(model, mj_model, data.qpos, data.qvel, np.zeros(mj_model.nv))
    expected = M.from_tau(model, mj_model, data.qpos, data.qfrc_bias)
    assert_same(rnea.inverse_dynamics(model, q, qd, qdd), expected)


@pytest.mark.parametrize("name", TREES)
def test_reactions_are_cfrc_int(name, rng):
    """What a body gets from its parent, about the mass centre of the tree that it is in."""
    model, mj_model, data, q, qd = pair(name, rng)
    mujoco.mj_rnePostConstraint(mj_model, data)
    qdd = M.from_a(model, mj_model, data.qpos, data.qvel, data.qacc)
    joints = range(1, model.body_count + 1)
    f = reactions.joint_reactions(model, q, qd, qdd, joints=joints, frame="world")
    for i in range(1, mj_model.nbody):
        body = mj_model.body(i).name
        if body in model.body_names[1:]:
            n, force = np.split(f[model.body_index(body) - 1], 2)
            center = data.subtree_com[mj_model.body_rootid[i]]
            assert_same([*(n - np.cross(center, force)), *force], data.cfrc_int[i])


@every_mechanism
def test_inverse_dynamics_less_passive_force_is_mj_inverse(name, rng):
    model, mj_model, data, q, qd = pair(name, rng)
    qdd = M.from_a(model, mj_model, data.qpos, data.qvel, data.qacc)
    tau = rnea.inverse_dynamics(model, q, qd, qdd) - passive_without_friction(model, q, qd)
    assert_same(M.to_tau(model, mj_model, q, tau), data.qfrc_inverse)


@every_mechanism
def test_springs_and_dampers_are_qfrc_passive(name, rng):
    model, mj_model, data, q, qd = pair(name, rng)
    tau = passive_without_friction(model, q, qd)
    assert_same(M.to_tau(model, mj_model, q, tau), data.qfrc_passive)


def passive_without_friction(model, q, qd):
    """MuJoCo's friction is a constraint, which is switched off here."""
    tau = passive.passive_force(model, q, qd)
    for i, body in enumerate(model.bodies, start=1):
        if body.dynamics is not None and body.dynamics.friction:
            at = model.v_slice[i]
            tau[at] = tau[at] + np.array(body.dynamics.friction) * np.sign(qd[at])
    return tau


@every_mechanism
def test_energies_are_those_of_mujoco(name, rng):
    """Potential energy up to a constant, that of what stands still, and without springs."""
    model, mj_model, data, q, qd = pair(name, rng)
    assert_same(energy.kinetic_energy(model, q, qd), data.energy[1])
    found = []
    for _ in range(2):
        forward(mj_model, data, *random_state(mj_model, rng)[:2])
        q = M.from_q(model, mj_model, data.qpos)
        found.append(energy.potential_energy(model, q) - (data.energy[0] - springs(model, q)))
    assert_same(found[0], found[1])


def springs(model, q):
    """Energy stored in springs, which MuJoCo counts as potential."""
    total = 0.0
    for i, body in enumerate(model.bodies, start=1):
        if body.dynamics is not None and body.dynamics.stiffness:
            rest = body.dynamics.rest or body.joint.neutral()
            stretch = body.joint.difference(np.array(rest), q[model.q_slice[i]])
            total += np.array(body.dynamics.stiffness) @ stretch**2 / 2
    for t, L in zip(model.tendons, kt.tendon_lengths(model, q), strict=True):
        total += t.stiffness * (L - np.clip(L, *t.rest)) ** 2 / 2
    return total


def test_lengths_of_tendons_are_ten_length(rng):
    model, _, data, q, _ = pair("fixed tendons", rng)
    assert_same(kt.tendon_lengths(model, q), data.ten_length)


def test_carried_weight_is_qfrc_gravcomp(rng):
    model, mj_model, data, q, qd = pair("gravity compensation", rng)
    tau = M.to_tau(model, mj_model, q, passive.passive_force(model, q, qd))
    scale = np.max(np.abs(data.qfrc_gravcomp))
    np.testing.assert_allclose(tau, data.qfrc_gravcomp, rtol=0, atol=1e-13 * scale)


@every_mechanism
def test_bodies_and_sites_are_where_mujoco_has_them(name, rng):
    model, mj_model, data, q, _ = pair(name, rng)
    for frame, thing, _ in _frames(model, mj_model, data):
        pose = jacobians.frame_pose(model, q, frame)
        assert_same(pose, M.from_pose(thing.xpos, thing.xmat))


@every_mechanism
def test_jacobians_are_those_of_mj_jac(name, rng):
    model, mj_model, data, q, _ = pair(name, rng)
    jacp, jacr = np.zeros((2, 3, mj_model.nv))
    for frame, thing, jac in _frames(model, mj_model, data):
        jac(mj_model, data, jacp, jacr, thing.id)
        J = jacobians.frame_jacobian(model, q, frame, "aligned")
        assert_same(J, M.from_jacobian(model, mj_model, data.qpos, jacp, jacr))
        for ours, theirs in zip(M.to_jacobian(model, mj_model, q, J), (jacp, jacr), strict=True):
            assert_same(ours, theirs)


def _frames(model, mj_model, data):
    """Our frame, MuJoCo's data of it, and the function for its Jacobian."""
    for b in range(1, mj_model.nbody):
        if name := mj_model.body(b).name:
            yield model.frame(M.frame_name(model, mj_model, name)), data.body(b), mujoco.mj_jacBody
    for s in range(mj_model.nsite):
        if name := mj_model.site(s).name:
            frame = model.frame(M.frame_name(model, mj_model, name, "site"))
            yield frame, data.site(s), mujoco.mj_jacSite


@every_mechanism
def test_forces_on_bodies_are_xfrc_applied(name, rng):
    model, mj_model, data, q, qd = pair(name, rng)
    before = data.qfrc_smooth.copy()
    data.xfrc_applied[1:] = rng.standard_normal((mj_model.nbody - 1, 6))
    mujoco.mj_forward(mj_model, data)
    f_ext = M.from_f_ext(model, mj_model, data.qpos, data.xfrc_applied)
    forces = [None, *map(Force.from_array, f_ext)]
    tau = rnea.bias_force(model, q, qd) - rnea.bias_force(model, q, qd, forces)
    assert_same(M.to_tau(model, mj_model, q, tau), data.qfrc_smooth - before)
