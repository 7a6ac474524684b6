"""States go to Pinocchio and come back, and mean the same there."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.closeness import assert_close
from support.pinocchio_mechanisms import KINDS, SHARED, mechanism, random_state

from kinetree import samples
from kinetree.errors import InteropError, ShapeError
from kinetree.interop import pinocchio as P
from kinetree.joints import Free, Planar, Revolute, Spherical
from kinetree.model import ModelBuilder
from kinetree.spatial import Inertia

every_kind = pytest.mark.parametrize("kind", KINDS)


def twins(kind, seed=1):
    """The same mechanism in both libraries."""
    theirs = mechanism(kind, np.random.default_rng(seed))
    return P.from_model(theirs), theirs


@every_kind
def test_positions_come_back(kind, rng):
    ours, theirs = twins(kind)
    q = random_state(theirs, rng)[0]
    assert_close(P.to_q(ours, theirs, P.from_q(ours, theirs, q)), q, ulps=4)


@every_kind
def test_velocities_accelerations_and_forces_come_back(kind, rng):
    ours, theirs = twins(kind)
    q, v, a = random_state(theirs, rng)
    p = P.from_q(ours, theirs, q)
    qd, qdd = P.from_v(ours, theirs, q, v), P.from_a(ours, theirs, q, v, a)
    np.testing.assert_array_equal(P.to_v(ours, theirs, p, qd), v)
    np.testing.assert_array_equal(P.to_a(ours, theirs, p, qd, qdd), a)
    tau = P.from_tau(ours, theirs, q, a)
    np.testing.assert_array_equal(P.to_tau(ours, theirs, p, tau), a)


@every_kind
def test_to_v_is_the_tangent_map_of_to_q(kind, rng):
    ours, theirs = twins(kind)
    q = P.from_q(ours, theirs, random_state(theirs, rng)[0])
    dv = rng.uniform(-0.5, 0.5, ours.nv)
    moved_there = pin.integrate(theirs, P.to_q(ours, theirs, q), P.to_v(ours, theirs, q, dv))
    moved_here = P.to_q(ours, theirs, ours.integrate(q, dv))
    assert_close(pin.difference(theirs, moved_here, moved_there), np.zeros(ours.nv), scale=1)


@every_kind
def test_power_is_the_same(kind, rng):
    ours, theirs = twins(kind)
    q, v, tau = random_state(theirs, rng)
    power = P.from_tau(ours, theirs, q, tau) @ P.from_v(ours, theirs, q, v)
    assert_close(power, tau @ v, scale=np.abs(tau) @ np.abs(v))


def _small(*shape):
    return hnp.arrays(float, shape, elements=st.floats(-3.0, 3.0, width=32))


SEVERAL = tuple(joint for joint in SHARED if not isinstance(joint, Planar))  # planar wraps
humanoid = samples.random_tree(12, 5, joints=SEVERAL, floating_base=True)
humanoid_there = P.to_model(humanoid)


@given(dv=_small(humanoid.nv), qd=_small(2, 3, humanoid.nv))
def test_any_state_of_a_tree_comes_back(dv, qd):
    m, there = humanoid, humanoid_there
    q = m.integrate(m.neutral(), dv)
    x = P.to_q(m, there, q)
    np.testing.assert_array_equal(P.from_q(m, there, x), q)
    np.testing.assert_array_equal(P.from_v(m, there, x, P.to_v(m, there, q, qd)), qd)
    np.testing.assert_array_equal(P.from_a(m, there, x, qd, P.to_a(m, there, q, qd, qd)), qd)
    np.testing.assert_array_equal(P.from_tau(m, there, x, P.to_tau(m, there, q, qd)), qd)


@given(q=_small(5, 3))
def test_angles_come_back_from_cosine_and_sine_in_one_turn(q):
    theirs = pin.Model()
    for k, joint in enumerate((pin.JointModelRUBX, pin.JointModelRUBY, pin.JointModelRUBZ)):
        theirs.addJoint(k, joint(), pin.SE3.Identity(), f"joint{k}")
    ours = P.from_model(theirs)
    x = P.to_q(ours, theirs, q)
    assert x.shape == (5, 6)
    assert_close(P.from_q(ours, theirs, x), q, scale=np.pi, ulps=4)


@pytest.mark.parametrize("kind", ["FreeFlyer", "Planar", "RUBX", "CompositeOfManifolds"])
def test_a_batch_is_its_samples(kind, rng):
    ours, theirs = twins(kind)
    states = [random_state(theirs, rng) for _ in range(6)]
    q, v, a = (np.reshape(x, (2, 3, -1)) for x in zip(*states, strict=True))
    p = P.from_q(ours, theirs, q)
    results = {
        "from_q": (p, lambda n: P.from_q(ours, theirs, q[n])),
        "from_v": (P.from_v(ours, theirs, q, v), lambda n: P.from_v(ours, theirs, q[n], v[n])),
        "to_q": (P.to_q(ours, theirs, p), lambda n: P.to_q(ours, theirs, p[n])),
        "to_a": (
            P.to_a(ours, theirs, p, v, a),
            lambda n: P.to_a(ours, theirs, p[n], v[n], a[n]),
        ),
    }
    for batch, one in results.values():
        assert batch.shape[:2] == (2, 3)
        for n in np.ndindex(2, 3):
            np.testing.assert_array_equal(batch[n], one(n))


def test_batch_axes_broadcast(rng):
    ours, theirs = twins("FreeFlyer")
    q, qd = ours.random_configuration(rng), rng.standard_normal((4, 1, ours.nv))
    qdd = rng.standard_normal((3, ours.nv))
    assert P.to_v(ours, theirs, q, qd).shape == (4, 1, theirs.nv)
    assert P.to_a(ours, theirs, q, qd, qdd).shape == (4, 3, theirs.nv)
    assert P.from_v(ours, theirs, np.tile(P.to_q(ours, theirs, q), (5, 1)), qdd[0]).shape == (
        5,
        ours.nv,
    )


def test_single_precision_stays_single(rng):
    ours, theirs = twins("Planar")
    q = ours.random_configuration(rng).astype(np.float32)
    qd = rng.standard_normal(ours.nv).astype(np.float32)
    x = P.to_q(ours, theirs, q)
    assert x.dtype == P.to_v(ours, theirs, q, qd).dtype == np.float32
    assert P.from_q(ours, theirs, x).dtype == np.float32


def test_joints_are_matched_by_name_whatever_their_numbers(rng):
    """Two branches, listed breadth first here and depth first there."""
    builder = ModelBuilder()
    for name, parent in (("a", None), ("b", None), ("c", "a"), ("d", "b"), ("e", "a")):
        inertia = samples.random_inertia(rng)
        builder.body(name, on=parent, joint=Revolute("z"), inertia=inertia, joint_name=name)
    ours = builder.build()
    theirs = P.to_model(ours)
    assert list(theirs.names) == ["universe", "a", "c", "e", "b", "d"]
    q = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(P.to_q(ours, theirs, q), [1, 3, 5, 2, 4])


def test_conventions_of_the_free_joint():
    ours, theirs = twins("FreeFlyer")
    q = np.zeros(ours.nq)
    q[ours.q_slice[2]] = 1, 2, 3, 0.1, 0.5, 0.7, 0.5
    at = slice(theirs.idx_qs[2], theirs.idx_qs[2] + 7)
    np.testing.assert_array_equal(P.to_q(ours, theirs, q)[at], [1, 2, 3, 0.5, 0.7, 0.5, 0.1])
    qd = np.zeros(ours.nv)
    qd[ours.v_slice[2]] = 1, 2, 3, 4, 5, 6
    at = slice(theirs.idx_vs[2], theirs.idx_vs[2] + 6)
    np.testing.assert_array_equal(P.to_v(ours, theirs, q, qd)[at], [4, 5, 6, 1, 2, 3])


def test_conventions_of_the_planar_joint():
    ours, theirs = twins("Planar")
    q = np.zeros(ours.nq)
    q[ours.q_slice[2]] = np.pi / 2, 1, 2
    at = slice(theirs.idx_qs[2], theirs.idx_qs[2] + 4)
    assert_close(P.to_q(ours, theirs, q)[at], [1, 2, 0, 1], ulps=1)


# --- messages --------------------------------------------------------------------------------


def _one_joint(joint, name="elbow"):
    inertia = Inertia.from_mass_center(1.0, np.zeros(3), np.eye(3))
    return ModelBuilder("arm").body("b", joint=joint, inertia=inertia, joint_name=name).build()


def test_a_joint_missing_there_is_named():
    ours, theirs = _one_joint(Revolute("z")), P.to_model(_one_joint(Revolute("z"), "ellbow"))
    with pytest.raises(InteropError, match=r"Pinocchio's model 'arm' has no joint 'elbow'"):
        P.to_q(ours, theirs, [0.0])


def test_a_joint_missing_here_is_named():
    theirs = P.to_model(_one_joint(Revolute("z")))
    theirs.addJoint(1, pin.JointModelRX(), pin.SE3.Identity(), "wrist")
    with pytest.raises(InteropError, match=r"model 'arm' has no joint 'wrist', which Pinocchio's"):
        P.from_q(_one_joint(Revolute("z")), theirs, [0.0, 0.0])


def test_joints_that_share_a_name_are_named():
    theirs = P.to_model(_one_joint(Revolute("z")))
    theirs.addJoint(1, pin.JointModelRX(), pin.SE3.Identity(), "elbow")
    with pytest.raises(InteropError, match=r"model 'arm' has several joints called 'elbow'"):
        P.to_q(_one_joint(Revolute("z")), theirs, [0.0])


@pytest.mark.parametrize("other", [Revolute("-z"), Revolute("x"), Spherical(), Free()])
def test_joints_that_differ_are_not_taken_for_each_other(other):
    ours, theirs = _one_joint(other), P.to_model(_one_joint(Revolute("z")))
    expected = (
        r"joint 'elbow' is .* but Pinocchio's JointModelRZ corresponds to Revolute\(.*: the two "
        r"models do not describe the same mechanism"
    )
    with pytest.raises(InteropError, match=expected):
        P.to_v(ours, theirs, ours.neutral(), np.zeros(ours.nv))


def test_shapes_and_values_are_checked_on_both_sides():
    ours, theirs = twins("FreeFlyer")
    with pytest.raises(ShapeError, match=r"q must have shape \(\.\.\., nq\) with nq = 10"):
        P.to_q(ours, theirs, np.zeros(9))
    with pytest.raises(ShapeError, match=r"qd must have shape"):
        P.to_a(ours, theirs, ours.neutral(), np.zeros(3), np.zeros(ours.nv))
    with pytest.raises(ShapeError, match=r"Pinocchio's q must have shape \(\.\.\., 10\) .* \(9,\)"):
        P.from_q(ours, theirs, np.zeros(9))
    with pytest.raises(ShapeError, match=r"Pinocchio's v must be finite, got nan"):
        P.from_v(ours, theirs, pin.neutral(theirs), np.full(theirs.nv, np.nan))


@pytest.mark.parametrize("kind", ["FreeFlyer", "Spherical"])
def test_quaternions_of_all_zeros_are_rejected(kind):
    ours, theirs = twins(kind)
    with pytest.raises(ShapeError, match=r"q from Pinocchio, joint 'joint': quaternion .* unit"):
        P.from_q(ours, theirs, np.zeros(theirs.nq))


@pytest.mark.parametrize("kind", ["RUBZ", "Planar", "RevoluteUnboundedUnaligned"])
def test_cosine_and_sine_of_no_angle_are_rejected(kind):
    ours, theirs = twins(kind)
    with pytest.raises(ShapeError, match=r"joint 'joint': cosine and sine must be those of an"):
        P.from_q(ours, theirs, np.zeros(theirs.nq))


def test_the_first_wrong_sample_of_a_batch_is_named():
    ours, theirs = twins("RUBZ")
    q = np.tile(pin.neutral(theirs), (2, 3, 1))
    q[1, 2] = 0.5
    with pytest.raises(
        ShapeError, match=r"Pinocchio's q of sample \(1, 2\), joint 'joint': .* 0\.5"
    ):
        P.from_q(ours, theirs, q)
    q[0, 1] = np.inf
    with pytest.raises(
        ShapeError, match=r"Pinocchio's q must be finite, got inf at index 0 of sample \(0, 1\)"
    ):
        P.from_q(ours, theirs, q)


def test_integers_are_numbers_too():
    ours, theirs = twins("RX")
    assert P.from_v(ours, theirs, [0, 0, 0, 0], [1, 2, 3, 4]).tolist() == [1.0, 2.0, 3.0, 4.0]
