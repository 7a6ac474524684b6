"""The conformance suite: every built-in joint passes, every broken one is caught by name."""

from dataclasses import dataclass

import numpy as np
import pytest

from kinetree.errors import JointError
from kinetree.joints import (
    REPRESENTATIVES,
    AbstractJoint,
    Euler,
    Planar,
    RackAndPinion,
    Revolute,
    Screw,
    Universal,
    check_joint,
)
from kinetree.spatial import Motion, Plucker, rotz

SEQUENCES = [a + b + c for a in "xyz" for b in "xyz" for c in "xyz" if a != b != c]


@pytest.mark.covers(
    "RBDA 3.5", "RBDA 4.4", "RBDA Table 4.1", "6-D Guide 2: Joint Models",
    "6-D Guide 1: Motion Constraints", by=(check_joint, AbstractJoint),
)  # fmt: skip
@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=str)
def test_built_in_joint_keeps_the_contract(joint, rng):
    check_joint(joint, rng)


@pytest.mark.covers("RBDA 4.5", "Tutorial 5", by=Euler)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_all_twelve_euler_sequences_keep_the_contract(sequence, rng):
    assert len(SEQUENCES) == 12
    check_joint(Euler(sequence), rng)


@pytest.mark.parametrize("axes", [a + b for a in "xyz" for b in "xyz" if a != b])
def test_all_six_universal_joints_keep_the_contract(axes, rng):
    check_joint(Universal(axes), rng)


@pytest.mark.parametrize("joint", [RackAndPinion(0), RackAndPinion(-0.1), RackAndPinion(2e-3)])
def test_any_radius_keeps_the_contract(joint, rng):
    check_joint(joint, rng)


@pytest.mark.parametrize("axis", ["x", "y", "-z", (3, 1, 2)])
@pytest.mark.parametrize("pitch", [0.0, 0.4, -2.0, np.inf])
def test_screws_about_any_line_keep_the_contract(axis, pitch, rng):
    check_joint(Screw.about(axis, rng.standard_normal(3), pitch), rng)


def broken(base=Revolute, **changes):
    """An instance of ``base`` with some attributes replaced."""
    return dataclass(frozen=True)(type("Broken", (base,), changes))()


def turn_of(q):
    return np.array([0.5 * q[0]])


def doubled(self, q, qd):
    X_J, S, v_J, c_J = Revolute.jcalc(self, q, qd)
    return X_J, S, v_J * 2, c_J


def backwards(self, q, qd):
    X_J, S, v_J, c_J = Revolute.jcalc(self, q, qd)
    return X_J, -S, -v_J, c_J


def mirrored(self, q, qd):
    X_J, *rest = Revolute.jcalc(self, q, qd)
    return Plucker(-X_J.E, X_J.r), *rest


def stretched(self, q, qd):
    X_J, *rest = Revolute.jcalc(self, q, qd)
    return Plucker(1.1 * X_J.E, X_J.r), *rest


def without_bias(self, q, qd):
    return (*Universal.jcalc(self, q, qd)[:3], Motion.zero())


class TwiceTheSame(Revolute):
    """Two variables for one freedom."""

    nq = nv = 2

    def jcalc(self, q, qd):
        S = Motion.from_array(np.array([[0, 0, 1, 0, 0, 0]] * 2).T)
        return rotz(q[0] + q[1]), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q):
        return super().constraint_subspace(q)[:4]

    def active_subspace(self, q):
        return AbstractJoint.active_subspace(self, q)

    def coordinates(self, X):
        return np.array([*super().coordinates(X), 0.0])

    def loop_error(self, X):
        return super().loop_error(X)[:4]

    def random(self, rng):
        return rng.uniform(-1, 1, 2)


class WithCounter(Revolute):
    """A second position variable that nothing depends on, growing with the speed."""

    nq = 2
    rates_are_velocities = False

    def coordinates(self, X):
        return np.array([*super().coordinates(X), 0.0])

    def configuration_rate(self, q, qd):
        return np.array([qd[0], abs(qd[0])])

    def integrate(self, q, dv):
        return q + self.configuration_rate(q, dv)

    def difference(self, q0, q1):
        return q1[:1] - q0[:1]

    def random(self, rng):
        return rng.uniform(-1, 1, 2)


BROKEN = {
    "nq must be a count, got -1": broken(nq=-1),
    "nv must be a count, got None": broken(nv=None),
    "need nv <= 6 and nq >= nv, got nq = 1, nv = 2": broken(nv=2),
    "random must have shape \\(1,\\), got \\(2,\\)": broken(random=lambda s, rng: np.zeros(2)),
    "neutral must have shape \\(1,\\), got \\(3,\\)": broken(neutral=lambda s: np.zeros(3)),
    "jcalc must return \\(X_J, S, v_J, c_J\\), got": broken(jcalc=lambda s, q, qd: (1, 2, 3)),
    "jcalc must return \\(X_J, S, v_J, c_J\\), got \\[": broken(
        jcalc=lambda s, q, qd: list(Revolute.jcalc(s, q, qd))
    ),
    "X_J of jcalc must be a Plucker, got ndarray": broken(
        jcalc=lambda s, q, qd: (np.eye(6), *Revolute.jcalc(s, q, qd)[1:])
    ),
    "S must have shape \\(6, 1\\), got \\(6, 2\\)": broken(
        jcalc=lambda s, q, qd: (
            rotz(q[0]), Motion(np.eye(3)[:, :2], np.eye(3)[:, :2]), *Revolute.jcalc(s, q, qd)[2:]
        )
    ),
    "constraint_subspace must be a Force, got Motion": broken(
        constraint_subspace=lambda s, q: s.motion_subspace(q)
    ),
    "constraint_subspace must have shape \\(6, 5\\), got \\(6, 1\\)": broken(
        constraint_subspace=lambda s, q: s.active_subspace(q)
    ),
    "loop_error must have shape \\(5,\\), got \\(0,\\)": broken(
        loop_error=lambda s, X: np.zeros(0)
    ),
    "defect complains about a random position: odd": broken(defect=lambda s, q: "odd"),
    "not a proper rotation: det E is not 1": broken(jcalc=mirrored),
    "E of X_J is not a rotation: E E\\^T differs from 1": broken(jcalc=stretched),
    "X_J at neutral\\(\\) is not the identity": broken(neutral=lambda s: np.ones(1)),
    "v_J is not S qd": broken(jcalc=doubled),
    "v_J is not the velocity of X_J along configuration_rate for qd = \\[1.0\\]": broken(
        jcalc=backwards
    ),
    "c_J is not the rate of v_J at constant qd": broken(Universal, jcalc=without_bias),
    "S has linearly dependent columns": TwiceTheSame(),
    "T has linearly dependent columns": broken(
        constraint_subspace=lambda s, q: Revolute.constraint_subspace(s, q)[[0, 1, 2, 3, 3]]
    ),
    "T\\^T S is not zero": broken(
        constraint_subspace=lambda s, q: Revolute("x").constraint_subspace(q)
    ),
    "T_a\\^T S is not 1": broken(active_subspace=lambda s, q: Revolute.active_subspace(s, q) * 2),
    "constant_subspace is True, but S changes with q": broken(Universal, constant_subspace=True),
    "rates_are_velocities is True, but nq is not nv": broken(
        WithCounter, rates_are_velocities=True
    ),
    "rates_are_velocities is True, but dq/dt is not qd": broken(
        Planar, rates_are_velocities=True
    ),
    "rates_are_velocities is False, but dq/dt is qd": broken(rates_are_velocities=False),
    "configuration_rate is not linear in qd": WithCounter(),
    "integrate\\(q, 0\\) is not q": broken(integrate=lambda s, q, dv: q + dv + 1),
    "integrate does not start with configuration_rate": broken(
        integrate=lambda s, q, dv: q + 2 * dv
    ),
    "difference\\(q, integrate\\(q, dv\\)\\) is not dv": broken(
        difference=lambda s, q0, q1: q0 - q1
    ),
    "integrate\\(q0, difference\\(q0, q1\\)\\) is not q1": broken(
        difference=lambda s, q0, q1: np.clip(q1 - q0, -1, 1),
        random=lambda s, rng: rng.choice([-2, 2], 1) + rng.uniform(-0.1, 0.1, 1),
    ),
    "normalize\\(q\\) changes X_J": broken(normalize=lambda s, q: q + 0.1),
    "coordinates\\(X_J\\(q\\)\\) does not reproduce X_J": broken(
        coordinates=lambda s, X: turn_of(Revolute.coordinates(s, X))
    ),
    "loop_error is not zero on the manifold": broken(
        loop_error=lambda s, X: Revolute.loop_error(s, X) + 1
    ),
    "rate of loop_error is not T\\^T v_J": broken(
        loop_error=lambda s, X: -Revolute.loop_error(s, X)
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", BROKEN)
def test_broken_joint_is_caught_with_the_right_message(message):
    with pytest.raises(JointError, match=message) as error:
        check_joint(BROKEN[message], np.random.default_rng(1))
    assert type(BROKEN[message]).__name__ in str(error.value)


def test_something_that_is_not_a_joint_is_caught():
    with pytest.raises(JointError, match="must be an instance of AbstractJoint, got 'z'"):
        check_joint("z")


def test_unhashable_joint_is_caught():
    @dataclass
    class Mutable(AbstractJoint):
        nq = nv = 1
        jcalc, constraint_subspace = Revolute.jcalc, Revolute.constraint_subspace
        coordinates = Revolute.coordinates

    with pytest.raises(JointError, match="must be hashable"):
        check_joint(Mutable())


def test_joint_that_differs_from_its_copy_is_caught():
    class ByIdentity(Revolute):
        __eq__ = object.__eq__
        __hash__ = object.__hash__

    with pytest.raises(JointError, match="must equal its copy and hash alike"):
        check_joint(ByIdentity())
