"""Small Pinocchio models for tests: one for every kind of joint."""

import numpy as np
import pinocchio as pin

from kinetree import samples
from kinetree.algorithms import aba, crba, jacobians, rnea
from kinetree.interop import pinocchio as P
from kinetree.joints import (
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
)
from support.closeness import assert_close

AXIS = np.array([2.0, -1.0, 2.0]) / 3
TILTED = np.array([3.0, 0.0, 4.0]) / 5


def _composite(*joints):
    rng = np.random.default_rng(7)
    result = pin.JointModelComposite()
    for joint in joints:
        result.addJoint(joint, random_se3(rng))
    return result


KINDS = {
    "RX": pin.JointModelRX,
    "RY": pin.JointModelRY,
    "RZ": pin.JointModelRZ,
    "RevoluteUnaligned": lambda: pin.JointModelRevoluteUnaligned(AXIS),
    "RevoluteBackwards": lambda: pin.JointModelRevoluteUnaligned(np.array([0.0, -1.0, 0.0])),
    "RUBX": pin.JointModelRUBX,
    "RUBY": pin.JointModelRUBY,
    "RUBZ": pin.JointModelRUBZ,
    "RevoluteUnboundedUnaligned": lambda: _unbounded(AXIS),
    "PX": pin.JointModelPX,
    "PY": pin.JointModelPY,
    "PZ": pin.JointModelPZ,
    "PrismaticUnaligned": lambda: pin.JointModelPrismaticUnaligned(AXIS),
    "HX": lambda: pin.JointModelHX(0.2),
    "HY": lambda: pin.JointModelHY(-0.3),
    "HZ": lambda: pin.JointModelHZ(0.1),
    "HelicalUnaligned": lambda: pin.JointModelHelicalUnaligned(AXIS, 0.25),
    "Universal": lambda: pin.JointModelUniversal(np.eye(3)[2], np.eye(3)[0]),
    "UniversalUnaligned": lambda: pin.JointModelUniversal(AXIS, TILTED),
    "Spherical": pin.JointModelSpherical,
    "SphericalZYX": pin.JointModelSphericalZYX,
    "Translation": pin.JointModelTranslation,
    "Planar": pin.JointModelPlanar,
    "FreeFlyer": pin.JointModelFreeFlyer,
    "Composite": lambda: _composite(pin.JointModelRX(), pin.JointModelRY(), pin.JointModelPZ()),
    "CompositeOfManifolds": lambda: _composite(pin.JointModelRUBX(), pin.JointModelPlanar()),
    "CompositeOfOne": lambda: _composite(pin.JointModelFreeFlyer()),
    "CompositeOfComposite": lambda: _composite(
        pin.JointModelRZ(), _composite(pin.JointModelPX(), pin.JointModelSpherical())
    ),
}


SHARED = (
    *(Revolute(axis) for axis in ("x", "-y", (1.0, 2.0, -3.0))),
    *(Prismatic(axis) for axis in ("z", "-x", (2.0, -1.0, 2.0))),
    Helical("y", pitch=0.1),
    Universal("zy"),
    Spherical(),
    Translation(),
    Planar(),
    Free(),
    Fixed(),
)
"""Joints of ours that Pinocchio has too, Euler angles left out for their singularity."""


def random_se3(rng):
    """A random placement, from a NumPy generator."""
    X = samples.random_placement(rng)
    return pin.SE3(X.E.T, X.r)


def random_body(rng):
    """A random inertia, from a NumPy generator."""
    I = samples.random_inertia(rng)
    return pin.Inertia(I.mass, I.center_of_mass, I.rotational_at_center)


def mechanism(kind, rng):
    """A tree of four joints in which the joint called ``joint`` is of the given kind."""
    model = pin.Model()
    model.name = kind
    add(model, 0, pin.JointModelRZ(), "shoulder", rng)
    add(model, 1, KINDS[kind](), "joint", rng)
    add(model, 2, pin.JointModelRevoluteUnaligned(TILTED), "wrist", rng)
    add(model, 1, pin.JointModelPY(), "slider", rng)
    return model


def add(model, parent, joint, name, rng, placement=None):
    """Add a joint with a body."""
    placement = random_se3(rng) if placement is None else placement
    number = model.addJoint(parent, joint, placement, name)
    model.addJointFrame(number)
    model.appendBodyToJoint(number, random_body(rng), pin.SE3.Identity())
    return number


def random_state(model, rng):
    """Pinocchio's q, v and a; the position away from the singularity of Euler angles."""
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-1.2, 1.2, model.nv))
    return q, rng.standard_normal(model.nv), rng.standard_normal(model.nv)


def assert_same_dynamics(ours, theirs, q, v, a):
    """Placements, inverse dynamics, inertia and forward dynamics at a state of Pinocchio's."""
    data, there = theirs.createData(), (ours, theirs, q)
    p, qd, qdd = P.from_q(*there), P.from_v(*there, v), P.from_a(*there, v, a)

    pin.framesForwardKinematics(theirs, data, q)
    for name in ours.frame_names:
        number = theirs.getFrameId(name)
        pose = jacobians.frame_pose(ours, p, ours.frame(name))
        assert_close(pose, data.oMf[number].homogeneous)
    tau = rnea.inverse_dynamics(ours, p, qd, qdd)
    assert_close(tau, P.from_tau(*there, pin.rnea(theirs, data, q, v, a)))
    A = P.from_v(ours, theirs, q, np.eye(theirs.nv))  # rows: ours for each unit velocity of theirs
    H = pin.crba(theirs, data, q)
    H = np.triu(H) + np.triu(H, 1).T
    assert_close(crba.joint_space_inertia(ours, p), A.T @ H @ A)
    back = aba.forward_dynamics(ours, p, qd, tau)
    assert_close(back, qdd, condition=np.linalg.cond(H))


def _unbounded(axis):
    """Pinocchio's Python cannot set the axis of this kind; its URDF reader can."""
    xyz = " ".join(map(repr, axis.tolist()))
    model = pin.buildModelFromXML(
        f'<robot name="wheel"><link name="base"/><link name="wheel"><inertial><mass value="1"/>'
        f'<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="axle" type="continuous"><parent link="base"/><child link="wheel"/>'
        f'<axis xyz="{xyz}"/></joint></robot>'
    )
    return model.joints[1].extract()
