"""Armature, damping, friction and mimic joints, to Pinocchio and back."""

import subprocess
import sys

import numpy as np
import pinocchio as pin
import pytest
from support.closeness import assert_close
from support.pinocchio_mechanisms import KINDS, add, assert_same_dynamics, mechanism, random_state

import kinetree as kt
from kinetree.algorithms import crba, rnea
from kinetree.errors import InteropError
from kinetree.interop import pinocchio as P
from kinetree.interop.pinocchio.kinds import same_joint
from kinetree.joints import Helical, Prismatic, Revolute
from kinetree.model import Coupling, JointDynamics, ModelBuilder
from kinetree.samples import random_inertia, random_placement

GRIPPER = """<robot name="gripper"><link name="base"/>{links}
<joint name="lead" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0.6 0.8"/>
<limit lower="-1" upper="1" effort="10" velocity="5"/>
<dynamics damping="0.3" friction="0.2"/></joint>
<joint name="follow" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0.1 0 0.5"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="5"/>
<mimic joint="lead" multiplier="-2" offset="0.1"/></joint>
<joint name="slide" type="prismatic"><parent link="b"/><child link="c"/><origin rpy="0.3 0.2 0.1"/>
<axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="10" velocity="5"/>
<mimic joint="lead" multiplier="0.5"/></joint>
<joint name="free" type="continuous"><parent link="b"/><child link="d"/><axis xyz="0 0 1"/></joint>
</robot>"""
LINK = """<link name="{name}"><inertial><mass value="{mass}"/><origin xyz="0.1 0.2 0.{n}"/>
<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0" iyz="0.02"/></inertial></link>"""


def gripper():
    """Pinocchio's model of a robot with two joints that follow a third."""
    links = "".join(LINK.format(name=x, mass=n + 1, n=n) for n, x in enumerate("abcd"))
    return pin.buildModelFromXML(GRIPPER.format(links=links), mimic=True)


@pytest.mark.parametrize("kind", KINDS)
def test_armature_damping_and_friction_go_both_ways(kind, rng):
    theirs = mechanism(kind, rng)
    theirs.armature[:] = rng.uniform(0.1, 2.0, theirs.nv)
    theirs.damping[:] = rng.uniform(0.1, 2.0, theirs.nv)
    theirs.upperDryFrictionLimit[:] = rng.uniform(0.1, 2.0, theirs.nv)
    theirs.lowerDryFrictionLimit[:] = -theirs.upperDryFrictionLimit
    m = P.from_model(theirs)
    q, v, a = random_state(theirs, rng)
    assert_same_dynamics(m, theirs, q, v, a)
    back = P.to_model(m)
    for name in ("armature", "damping", "upperDryFrictionLimit", "lowerDryFrictionLimit"):
        assert np.array_equal(getattr(back, name), getattr(theirs, name))


def test_mimic_joints_become_couplings_with_the_same_reduced_dynamics(rng):
    """Pinocchio's inertia matrix, forces and accelerations are ours."""
    theirs = gripper()
    theirs.armature[:] = [0.3, 0.4]
    m = P.from_model(theirs)
    assert [(c.name, c.coefficients) for c in m.couplings] == [
        ("follow_mimic", (0.1, -2.0)), ("slide_mimic", (0.0, 0.5)),
    ]  # fmt: skip
    kinds = {b.joint_name: type(b.joint) for b in m.bodies}
    assert kinds == {"lead": Revolute, "follow": Revolute, "free": Revolute, "slide": Prismatic}
    assert m.bodies[0].dynamics == JointDynamics(armature=0.3, damping=0.3, friction=0.2)
    for _ in range(3):
        data = theirs.createData()  # crba adds up mimic joints in it, call after call
        x, v, a = random_state(theirs, rng)
        here = (m, theirs, x)
        q, qd = P.from_q(*here), P.from_v(*here, v)
        assert_close(P.to_q(m, theirs, q), x)
        assert_close(P.to_v(m, theirs, q, qd), v)
        assert q.shape == qd.shape == (m.nv,) == (theirs.nv,)
        qdd = P.from_a(*here, v, a)
        H = pin.crba(theirs, data, x)
        H = np.triu(H) + np.triu(H, 1).T
        assert_close(crba.joint_space_inertia(m, q), H)
        tau = rnea.inverse_dynamics(m, q, qd, qdd)
        expected = pin.rnea(theirs, data, x, v, a)
        assert_close(P.to_tau(m, theirs, q, tau), expected)
        for forces in (tau, P.from_tau(*here, expected)):
            actual = kt.forward_dynamics(m, q, qd, forces)
            assert_close(actual, qdd, ulps=1000, condition=np.linalg.cond(H))
        pin.framesForwardKinematics(theirs, data, x)
        for name in "abcd":
            pose = data.oMf[theirs.getFrameId(name)].homogeneous
            assert_close(kt.pose(m, q, name), pose)


def test_couplings_become_mimic_joints(rng):
    theirs = gripper()
    m = P.from_model(theirs)
    back = P.to_model(m)
    assert list(back.mimicking_joints) == list(theirs.mimicking_joints)
    assert list(back.mimicked_joints) == list(theirs.mimicked_joints)
    x, v, a = random_state(theirs, rng)
    tau = pin.rnea(theirs, theirs.createData(), x, v, a)
    q = P.from_q(m, theirs, x)
    assert_close(pin.rnea(back, back.createData(), P.to_q(m, back, q), v, a), tau)


def test_the_joint_with_the_smallest_number_leads_there(rng):
    """Chains of couplings and leaders that come last; armature is seen through the gear."""
    builder = ModelBuilder("train")
    for name in "abc":
        builder.body(
            name, on=chr(ord(name) - 1) if name != "a" else None, joint=Revolute("y"),
            at=random_placement(rng), inertia=random_inertia(rng), joint_name=name,
            dynamics=JointDynamics(armature=0.2, damping=0.1, friction=0.3),
        )  # fmt: skip
    builder.coupling("1", joint="a", source="b", coefficients=(0.1, 2.0))
    m = builder.coupling("2", joint="b", source="c", coefficients=(-0.2, -0.5)).build()
    theirs = P.to_model(m)
    assert (theirs.nq, theirs.nv) == (1, 1)
    x, v, a = random_state(theirs, rng)
    q, qd = P.from_q(m, theirs, x), P.from_v(m, theirs, x, v)
    assert q.shape == qd.shape == (1,)
    assert_close(m.expand(q)[0], x[0])
    tau = kt.inverse_dynamics(m, q, qd, P.from_a(m, theirs, x, v, a))
    expected = pin.rnea(theirs, theirs.createData(), x, v, a)
    assert_close(P.to_tau(m, theirs, q, tau), expected, ulps=1000)
    ratios = np.array([1.0, 0.5, -1.0])  # of a, b, c by a
    assert_close(theirs.armature, [0.2 * ratios @ ratios])
    assert_close(theirs.damping, [0.1 * ratios @ ratios])
    assert_close(theirs.upperDryFrictionLimit, [0.3 * np.abs(ratios).sum()])


@pytest.mark.parametrize("coefficients", [(0.0, 1.0, 0.5), (0.3, 0.0), (0.4,)])
def test_other_couplings_are_rejected_by_name(coefficients, rng):
    builder = ModelBuilder("m")
    for name in "ab":
        builder.body(name, joint=Revolute("y"), inertia=random_inertia(rng))
    source = 0 if len(coefficients) == 1 else 1
    m = builder.build().replace(couplings=[Coupling("cam", 2, source, coefficients)])
    with pytest.raises(InteropError, match="a factor and an offset; coupling 'cam' has"):
        P.to_model(m)


def test_a_follower_that_never_moves_is_rejected_by_name(rng):
    theirs = pin.Model()
    for name in ("leader", "follower"):
        add(theirs, theirs.njoints - 1, pin.JointModelRX(), name, rng)
    still = pin.transformJointIntoMimic(theirs, 1, 2, 0.0, 0.1)
    with pytest.raises(InteropError, match="joint 'follower' follows another by a factor of zero"):
        P.from_model(still)


def followed(leader, follower, rng):
    """Pinocchio's model of two joints, and one in which the second follows the first."""
    theirs = pin.Model()
    add(theirs, 0, leader, "leader", rng)
    add(theirs, 1, follower, "follower", rng)
    return theirs, pin.transformJointIntoMimic(theirs, 1, 2, -1.5, 0.1)


@pytest.mark.parametrize("kind", ["PY", "RevoluteUnaligned", "PrismaticUnaligned", "HX", "HZ"])
def test_kinds_of_joints_that_follow(kind, rng):
    independent, coupled = map(P.from_model, followed(pin.JointModelRX(), KINDS[kind](), rng))
    assert same_joint(coupled.bodies[1].joint, independent.bodies[1].joint)


@pytest.mark.parametrize("kind", ["RUBY", "RevoluteUnboundedUnaligned"])
def test_unbounded_joints_that_follow(kind, rng):
    """They have two variables there, cosine and sine."""
    independent, mimic = followed(pin.JointModelRUBX(), KINDS[kind](), rng)
    coupled = P.from_model(mimic)
    assert same_joint(coupled.bodies[1].joint, P.from_model(independent).bodies[1].joint)
    x = pin.integrate(mimic, pin.neutral(mimic), np.array([0.4]))
    data = mimic.createData()
    pin.forwardKinematics(mimic, data, x)
    pose = kt.pose(coupled, P.from_q(coupled, mimic, x), coupled.body_names[-1])
    assert_close(pose, data.oMi[2].homogeneous)


def test_a_helical_follower_about_a_general_axis_ends_no_process():
    """Pinocchio crashes when it computes with it, on x86-64, so this runs on its own."""
    code = """
import numpy as np, pinocchio as pin
from kinetree.errors import InteropError
from kinetree.interop import pinocchio as P
m = pin.Model()
for name, joint in (("leader", pin.JointModelRX()), ("follower",
        pin.JointModelHelicalUnaligned(np.array([0.6, 0.0, 0.8]), 0.3))):
    i = m.addJoint(m.njoints - 1, joint, pin.SE3.Identity(), name)
    m.appendBodyToJoint(i, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity())
try:
    P.from_model(pin.transformJointIntoMimic(m, 1, 2, -1.5, 0.1))
except InteropError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert "joint 'follower' follows another and is a JointModelHelicalUnaligned" in done.stdout
    assert "with which Pinocchio itself cannot compute; these can follow: " in done.stdout


@pytest.mark.parametrize("axis", ["z", (0.6, 0.0, 0.8)])
def test_helical_followers_are_not_handed_to_pinocchio(axis, rng):
    """It would compute without their pitch, or crash; leading is fine."""
    builder = ModelBuilder("screw")
    builder.body("a", joint=Revolute("y"), inertia=random_inertia(rng), joint_name="a")
    builder.body("b", joint=Helical(axis, pitch=0.1), inertia=random_inertia(rng), joint_name="b")
    m = builder.coupling("nut", joint="b", source="a", coefficients=(0.1, 2.0)).build()
    with pytest.raises(InteropError, match="joint 'b' is helical and follows another; Pinocchio"):
        P.to_model(m)
