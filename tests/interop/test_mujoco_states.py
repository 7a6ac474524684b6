"""States go to MuJoCo and come back, and mean the same there."""

import mujoco
import numpy as np
import pytest
from support.closeness import assert_close
from support.mujoco_mechanisms import TREES, peer, random_state

import kinetree as kt
from kinetree.errors import InteropError, ModelWarning, ShapeError, UnknownNameError
from kinetree.interop import mujoco as M

pytestmark = pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
KINDS = [
    "hinge",
    "slide",
    "ball",
    "free",
    "several joints",
    "slides and ball",
    "reference position",
]
every_kind = pytest.mark.parametrize("kind", KINDS)


def twins(kind):
    """The same mechanism in both libraries."""
    theirs = peer(TREES[kind])[0]
    return M.from_model(theirs), theirs


@every_kind
def test_states_come_back(kind, rng):
    ours, theirs = twins(kind)
    qpos, qvel, qacc = random_state(theirs, rng)
    q = M.from_q(ours, theirs, qpos)
    qd, qdd = M.from_v(ours, theirs, qpos, qvel), M.from_a(ours, theirs, qpos, qvel, qacc)
    assert_close(M.to_q(ours, theirs, q), qpos, ulps=4)
    assert_close(M.to_v(ours, theirs, q, qd), qvel)
    assert_close(M.to_a(ours, theirs, q, qd, qdd), qacc)
    assert_close(M.to_tau(ours, theirs, q, M.from_tau(ours, theirs, qpos, qacc)), qacc)


@every_kind
def test_to_v_is_the_tangent_map_of_to_q(kind, rng):
    ours, theirs = twins(kind)
    q = M.from_q(ours, theirs, random_state(theirs, rng)[0])
    qd, dt = rng.standard_normal(ours.nv), 1e-6
    moved = M.to_q(ours, theirs, q)
    mujoco.mj_integratePos(theirs, moved, M.to_v(ours, theirs, q, qd), dt)
    here = M.to_q(ours, theirs, ours.integrate(q, dt * qd))
    difference = np.zeros(theirs.nv)
    mujoco.mj_differentiatePos(theirs, difference, 1.0, moved, here)
    assert np.max(np.abs(difference)) < 1e-10  # of second order in dt


@every_kind
def test_to_a_is_the_rate_of_to_v(kind, rng):
    ours, theirs = twins(kind)
    q = M.from_q(ours, theirs, random_state(theirs, rng)[0])
    qd, qdd, dt = *rng.standard_normal((2, ours.nv)), 1e-6
    after, before = (
        M.to_v(ours, theirs, ours.integrate(q, s * qd), qd + s * qdd) for s in (dt, -dt)
    )
    np.testing.assert_allclose(
        M.to_a(ours, theirs, q, qd, qdd), (after - before) / (2 * dt), rtol=0, atol=1e-8
    )


@every_kind
def test_power_is_the_same(kind, rng):
    ours, theirs = twins(kind)
    qpos, qvel, tau = random_state(theirs, rng)
    power = M.from_tau(ours, theirs, qpos, tau) @ M.from_v(ours, theirs, qpos, qvel)
    assert_close(power, tau @ qvel, scale=np.abs(tau) @ np.abs(qvel))


def test_conventions_of_the_free_joint():
    ours, theirs = twins("free")
    q = np.zeros(ours.nq)
    q[:7] = 1, 2, 3, np.sqrt(0.5), 0, 0, np.sqrt(0.5)  # a quarter turn about z
    assert_close(M.to_q(ours, theirs, q)[:7], q[:7])
    qd = np.zeros(ours.nv)
    qd[:6] = 1, 2, 3, 4, 5, 6
    assert_close(M.to_v(ours, theirs, q, qd)[:6], [-5, 4, 6, 1, 2, 3])


def test_a_batch_is_its_samples_and_broadcasts(rng):
    ours, theirs = twins("free")
    states = [random_state(theirs, rng) for _ in range(6)]
    qpos, qvel, qacc = (np.reshape(x, (2, 3, -1)) for x in zip(*states, strict=True))
    q, qd = M.from_q(ours, theirs, qpos), M.from_v(ours, theirs, qpos, qvel)
    qdd = M.from_a(ours, theirs, qpos, qvel, qacc)
    for n in np.ndindex(2, 3):
        assert_close(qdd[n], M.from_a(ours, theirs, qpos[n], qvel[n], qacc[n]))
        assert_close(M.to_a(ours, theirs, q, qd, qdd)[n], qacc[n])
    assert M.to_v(ours, theirs, q[0, 0], qd[:, :1]).shape == (2, 1, theirs.nv)


def test_single_precision_stays_single(rng):
    ours, theirs = twins("free")
    q = ours.random_configuration(rng).astype(np.float32)
    assert M.to_q(ours, theirs, q).dtype == np.float32
    assert M.to_v(ours, theirs, q, np.zeros(ours.nv, np.float32)).dtype == np.float32


def test_quaternions_of_any_length_are_taken_as_mujoco_takes_them():
    ours, theirs = twins("ball")
    qpos = theirs.qpos0.copy()
    at = int(theirs.joint("j").qposadr[0])
    qpos[at : at + 4] = 0, 3, 0, 4
    assert_close(M.from_q(ours, theirs, qpos)[at : at + 4], [0, 0.6, 0, 0.8])
    qpos[at : at + 4] = 0
    with pytest.raises(ShapeError, match=r"joint 'j': a quaternion of length zero"):
        M.from_q(ours, theirs, qpos)


def test_forces_on_bodies_come_back(rng):
    ours, theirs = twins("several joints")
    q = ours.random_configuration(rng)
    f_ext = {"arm": rng.standard_normal(6), "link": rng.standard_normal(6)}
    xfrc = M.to_f_ext(ours, theirs, q, f_ext)
    back = M.from_f_ext(ours, theirs, M.to_q(ours, theirs, q), xfrc)
    assert_close(back[ours.body_index("arm") - 1], f_ext["arm"])
    assert_close(back[ours.body_index("link") - 1], f_ext["link"])
    with pytest.raises(InteropError, match=r"body 'link_2', which is only a joint"):
        M.to_f_ext(ours, theirs, q, {"link_2": np.ones(6)})
    with pytest.raises(ShapeError, match=r"xfrc_applied must have shape \(\.\.\., 4, 6\)"):
        M.from_f_ext(ours, theirs, theirs.qpos0, np.ones((3, 6)))


def test_poses_come_back(rng):
    ours, theirs = twins("hinge")
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    T = M.from_pose(data.xpos, data.xmat)
    for there, back in zip((data.xpos, data.xmat), M.to_pose(T), strict=True):
        np.testing.assert_array_equal(back, there)
    with pytest.raises(ShapeError, match=r"xpos \(\.\.\., 3\) and xmat \(\.\.\., 9\)"):
        M.from_pose(data.xpos, data.xpos)
    with pytest.raises(ShapeError, match=r"\(\.\.\., 4, 4\)"):
        M.to_pose(data.xpos)
    assert M.frame_name(ours, theirs, "link") == "link_link"
    with pytest.raises(UnknownNameError, match=r"has no body 'lynk'"):
        M.frame_name(ours, theirs, "lynk")
    with pytest.raises(UnknownNameError, match=r"kind must be 'body' or 'site'"):
        M.frame_name(ours, theirs, "link", "geom")


# --- messages --------------------------------------------------------------------------------


def _one_joint(joint=None, name="elbow"):
    inertia = kt.shapes.sphere(0.1, mass=1.0)
    joint = kt.Revolute("z") if joint is None else joint
    return kt.ModelBuilder("arm").body("b", joint=joint, inertia=inertia, joint_name=name).build()


def test_joints_are_matched_by_name():
    ours, theirs = _one_joint(), M.to_model(_one_joint(name="ellbow"))
    with pytest.raises(InteropError, match=r"MuJoCo's model 'arm' has no joint 'elbow'"):
        M.to_q(ours, theirs, [0.0])
    empty = kt.ModelBuilder("empty").build()
    with pytest.raises(InteropError, match=r"model 'empty' has no joint 'ellbow', which MuJoCo's"):
        M.from_q(empty, theirs, [0.0])


def test_joints_that_differ_are_not_taken_for_each_other():
    ours, theirs = _one_joint(kt.Prismatic("z")), M.to_model(_one_joint())
    with pytest.raises(InteropError, match=r"joint 'elbow' is Prismatic.*, and a hinge joint in M"):
        M.to_v(ours, theirs, [0.0], [0.0])


def test_shapes_and_values_are_checked_on_both_sides():
    ours, theirs = twins("free")
    with pytest.raises(ShapeError, match=r"q must have shape \(\.\.\., nq\)"):
        M.to_q(ours, theirs, np.zeros(3))
    with pytest.raises(ShapeError, match=r"MuJoCo's qpos must have shape \(\.\.\., 8\) .* \(3,\)"):
        M.from_q(ours, theirs, np.zeros(3))
    with pytest.raises(ShapeError, match=r"MuJoCo's qvel must be finite, got nan"):
        M.from_v(ours, theirs, theirs.qpos0, np.full(theirs.nv, np.nan))


def test_models_and_specs_are_taken_and_nothing_else():
    spec = mujoco.MjSpec.from_string(TREES["hinge"])
    assert M.from_model(spec) == M.from_model(spec.compile())
    with pytest.raises(InteropError, match=r"needs a mujoco.MjModel or MjSpec, got MjData"):
        M.from_model(mujoco.MjData(spec.compile()))
    spec.worldbody.add_body().add_joint()
    with pytest.raises(InteropError, match=r"MuJoCo cannot compile the spec: .*mass"):
        M.from_model(spec)


def test_what_is_not_converted_is_a_warning():
    text = TREES["hinge"].replace(
        "</mujoco>", "<actuator><dcmotor joint='j' motorconst='1' resistance='1'/></actuator>"
        "<sensor><user dim='2'/></sensor></mujoco>",
    )  # fmt: skip
    with pytest.warns(ModelWarning, match=r"actuator: it is a DC motor .*; user: kinetree has no"):
        M.from_model(mujoco.MjModel.from_xml_string(text))
