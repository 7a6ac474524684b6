"""Robots with legs, one in the shape of a person: a floating base and simple shapes.

x is forward, y left, z up.
"""

from math import cos

from kinetree.joints import Free, Planar, Prismatic, Revolute
from kinetree.model import JointDynamics, Limits, Model, ModelBuilder, geometry
from kinetree.samples.solids import (
    BLUE,
    DARK,
    GOLD,
    ORANGE,
    STEEL,
    WHITE,
    add_body,
    box,
    capsule,
    cylinder,
    ellipsoid,
    sphere,
    with_motors,
)


def quadruped() -> Model:
    """A dog-sized robot: three joints in each leg, 12 kg, feet 0.4 m below the trunk.

    Dimensions, mass and limits rounded from those published for the Unitree A1. Inertias are those
    of the shapes.

    Joints ``root``, then ``<leg>_hip_joint``, ``<leg>_thigh_joint`` and ``<leg>_shank_joint`` for
    the legs ``front_left``, ``front_right``, ``rear_left``, ``rear_right``; frames ``<leg>_foot``;
    posture ``home``: standing on the ground with its knees bent. At q = 0 the legs are stretched
    out, which the knees' limits do not allow.
    """
    robot = ModelBuilder("quadruped")
    add_body(
        robot,
        "trunk",
        box(0.38, 0.16, 0.12, mass=6.0, color=WHITE),
        box(0.05, 0.12, 0.08, at=(0.21, 0, 0.01), color=DARK),
        joint=Free(),
        joint_name="root",
    )
    for end, x in (("front", 0.18), ("rear", -0.18)):
        for side, y in (("left", 1), ("right", -1)):
            _dog_leg(robot, f"{end}_{side}", x, y)
    legs = [f"{end}_{side}" for end in ("front", "rear") for side in ("left", "right")]
    home = {f"{leg}_thigh_joint": 0.8 for leg in legs}
    home |= {f"{leg}_shank_joint": -1.6 for leg in legs}
    height = 0.4 * cos(0.8) + 0.02
    robot.posture("home", q={"root": (0, 0, height, 1, 0, 0, 0), **home})
    return with_motors(robot.build())


def _dog_leg(robot, leg, x, y):
    """Add a leg of three joints to a quadruped."""
    add_body(
        robot,
        f"{leg}_hip",
        cylinder(0.04, 0.06, mass=0.6, at=(0, 0.02 * y, 0), axis="y", color=DARK),
        on="trunk",
        joint=Revolute("x"),
        at=(x, 0.05 * y, 0),
        limits=Limits(-0.8, 0.8, 21, 33.5),
    )
    add_body(
        robot,
        f"{leg}_thigh",
        box(0.04, 0.03, 0.22, mass=0.75, at=(0, 0, -0.09), color=ORANGE),
        cylinder(0.04, 0.04, axis="y", color=ORANGE),
        on=f"{leg}_hip",
        joint=Revolute("y"),
        at=(0, 0.08 * y, 0),
        limits=Limits(-1.0, 4.2, 21, 33.5),
    )
    add_body(
        robot,
        f"{leg}_shank",
        capsule(0.012, 0.2, mass=0.15, at=(0, 0, -0.1)),
        on=f"{leg}_thigh",
        joint=Revolute("y"),
        at=(0, 0, -0.2),
        limits=Limits(-2.7, -0.9, 21, 33.5),
    )
    robot.geometry(geometry.Sphere(0.02), on=f"{leg}_shank", at=(0, 0, -0.2), color=DARK)
    robot.frame(f"{leg}_foot", on=f"{leg}_shank", at=(0, 0, -0.2))


def hopping_leg() -> Model:
    """A body on one springy leg, which hops in the x-z plane.

    After M. H. Raibert, "Hopping in legged systems: modeling and simulation for the
    two-dimensional one-legged case" (1984): body of 10 kg and about 10 kg·m², its mass centre 0.4 m
    above the hip, leg of 1 m and 1 kg with a spring of 1 kN/m. Here the leg is a sleeve and a rod
    of uniform density, and the spring has a little damping.

    Joints ``root`` (pitch, height, distance), ``hip``, ``leg`` (longer is positive); motors on the
    latter two; frame ``foot``; posture ``home``: standing with the spring slack.
    """
    robot = ModelBuilder("hopping leg")
    add_body(
        robot,
        "body",
        box(2.14, 0.12, 0.1, mass=2.0, at=(0, 0, 0.4), color=BLUE),
        sphere(0.12, mass=4.0, at=(1.07, 0, 0.4), color=GOLD),
        sphere(0.12, mass=4.0, at=(-1.07, 0, 0.4), color=GOLD),
        box(0.1, 0.06, 0.4, at=(0, 0, 0.2), color=BLUE),
        joint=Planar("y"),
        joint_name="root",
    )
    add_body(
        robot,
        "sleeve",
        cylinder(0.04, 0.5, mass=0.4, at=(0, 0, -0.25), color=ORANGE),
        sphere(0.07, color=DARK),
        on="body",
        joint=Revolute("y"),
        joint_name="hip",
        limits=Limits(-0.8, 0.8, 20, 200),
    )
    add_body(
        robot,
        "rod",
        cylinder(0.02, 0.6, mass=0.5, at=(0, 0, -0.67)),
        sphere(0.03, mass=0.1, at=(0, 0, -0.97), color=DARK),
        on="sleeve",
        joint=Prismatic("-z"),
        joint_name="leg",
        limits=Limits(-0.45, 0.1, 10, 1000),
        dynamics=JointDynamics(stiffness=1000.0, damping=5.0),
    )
    robot.frame("foot", on="rod", at=(0, 0, -1.0))
    robot.posture("home", q={"root": (0, 1.0, 0)})
    return with_motors(robot.build())


# Lengths [m] and shares of the body mass of the average man in P. de Leva, "Adjustments to
# Zatsiorsky–Seluyanov's segment inertia parameters" (1996): 1.741 m and 73 kg.
_MASS = 73.0
_TRUNK, _UPPER_ARM, _FOREARM, _THIGH, _SHANK, _FOOT = 0.5155, 0.2817, 0.2689, 0.4222, 0.434, 0.2581
_ANKLE, _HIP = 0.07, 0.08  # ankle above the sole, pelvis above the hips


def humanoid() -> Model:
    """A robot in the shape of a person, 73 kg and 1.74 m, with 30 joints.

    Twelve joints are in the legs, fourteen in the arms, two each in waist and neck.
    Lengths and masses of the limbs are those of the average man in P. de Leva, "Adjustments to
    Zatsiorsky–Seluyanov's segment inertia parameters" (1996); inertias are those of the shapes,
    limits typical of electric humanoids.

    Every joint turns about x (``roll``), y (``pitch``) or z (``yaw``) and is called after the body
    part and the turn, such as ``left_hip_roll``. Positive roll and yaw mean opposite things left
    and right. Frames ``left_sole``, ``right_sole``, ``left_hand_center``, ``right_hand_center``,
    ``eyes``; posture ``home``: standing on the ground, knees a little bent.
    """
    robot = ModelBuilder("humanoid")
    _trunk(robot)
    _head(robot)
    for side, y in (("left", 1), ("right", -1)):
        _arm(robot, side, y)
        _hand(robot, side)
        _leg(robot, side, y)
    bend = 0.3
    home = {"root": (0, 0, _HIP + (_THIGH + _SHANK) * cos(bend) + _ANKLE, 1, 0, 0, 0)}
    for side, y in (("left", 1), ("right", -1)):
        home |= {f"{side}_hip_pitch": -bend, f"{side}_knee_pitch": 2 * bend}
        home |= {f"{side}_ankle_pitch": -bend, f"{side}_elbow_pitch": -0.5}
        home |= {f"{side}_shoulder_roll": 0.15 * y}
    return with_motors(robot.posture("home", q=home).build())


def _trunk(robot):
    """Add pelvis, waist and torso."""
    add_body(
        robot,
        "pelvis",
        box(0.16, 0.26, 0.15, mass=0.1117 * _MASS, color=DARK),
        joint=Free(),
        joint_name="root",
    )
    waist, torso = 2.0, (0.1596 + 0.1633) * _MASS - 2.0
    _link(
        robot,
        "waist",
        cylinder(0.08, 0.09, mass=waist, at=(0, 0, 0.02), color=STEEL),
        on="pelvis",
        joint="waist_yaw",
        at=(0, 0, 0.1),
        limits=(-1.2, 1.2, 8, 150),
    )
    _link(
        robot,
        "torso",
        box(0.19, 0.32, 0.3, mass=torso, at=(0, 0, 0.18), color=WHITE),
        cylinder(0.07, 0.2, axis="y", color=STEEL),
        on="waist",
        joint="waist_pitch",
        at=(0, 0, 0.06),
        limits=(-0.4, 1.0, 8, 200),
    )


def _head(robot):
    """Add neck and head."""
    _link(
        robot,
        "neck",
        cylinder(0.045, 0.05, mass=0.8, at=(0, 0, 0.025), color=STEEL),
        on="torso",
        joint="neck_yaw",
        at=(0, 0, 0.33),
        limits=(-1.4, 1.4, 6, 20),
    )
    _link(
        robot,
        "head",
        ellipsoid(0.095, 0.075, 0.105, mass=0.0694 * _MASS - 0.8, at=(0.01, 0, 0.09), color=WHITE),
        box(0.02, 0.1, 0.035, at=(0.09, 0, 0.11), color=DARK),
        on="neck",
        joint="neck_pitch",
        at=(0, 0, 0.05),
        limits=(-0.7, 0.9, 6, 20),
    )
    robot.frame("eyes", on="head", at=(0.1, 0, 0.11))


def _arm(robot, side, y):
    """Add an arm on one side."""
    shoulder = (0, 0.19 * y, _TRUNK - _HIP - 0.16)  # the waist is 0.16 m above the pelvis
    upper = 0.0271 * _MASS
    _link(
        robot,
        f"{side}_shoulder",
        sphere(0.05, mass=0.25 * upper, at=(0, 0.01 * y, 0), color=DARK),
        on="torso",
        joint=f"{side}_shoulder_pitch",
        at=shoulder,
        limits=(-3.0, 1.5, 8, 80),
    )
    _link(
        robot,
        f"{side}_upper_arm",
        cylinder(0.04, 0.1, mass=0.25 * upper, at=(0, 0, -0.06), color=STEEL),
        on=f"{side}_shoulder",
        joint=f"{side}_shoulder_roll",
        at=(0, 0.045 * y, 0),
        limits=_mirror(-0.3, 2.6, y, 8, 80),
    )
    _link(
        robot,
        f"{side}_lower_arm",
        capsule(0.038, 0.12, mass=0.5 * upper, at=(0, 0, -0.08), color=ORANGE),
        on=f"{side}_upper_arm",
        joint=f"{side}_shoulder_yaw",
        at=(0, 0, -0.12),
        limits=(-1.6, 1.6, 8, 50),
    )


def _hand(robot, side):
    """Add forearm and hand on one side of the humanoid."""
    fore, hand = 0.0162 * _MASS, 0.0061 * _MASS
    _link(
        robot,
        f"{side}_elbow",
        capsule(0.036, 0.08, mass=0.6 * fore, at=(0, 0, -0.06), color=WHITE),
        on=f"{side}_lower_arm",
        joint=f"{side}_elbow_pitch",
        at=(0, 0, 0.12 - _UPPER_ARM),
        limits=(-2.4, 0, 8, 50),
    )
    _link(
        robot,
        f"{side}_forearm",
        capsule(0.03, 0.1, mass=0.4 * fore, at=(0, 0, -0.06), color=ORANGE),
        on=f"{side}_elbow",
        joint=f"{side}_forearm_yaw",
        at=(0, 0, -0.13),
        limits=(-1.6, 1.6, 8, 20),
    )
    _link(
        robot,
        f"{side}_wrist",
        sphere(0.028, mass=0.3 * hand, color=DARK),
        on=f"{side}_forearm",
        joint=f"{side}_wrist_roll",
        at=(0, 0, 0.13 - _FOREARM),
        limits=(-0.7, 0.7, 8, 10),
    )
    _link(
        robot,
        f"{side}_hand",
        box(0.08, 0.03, 0.14, mass=0.7 * hand, at=(0, 0, -0.09), color=WHITE),
        on=f"{side}_wrist",
        joint=f"{side}_wrist_pitch",
        limits=(-0.7, 0.7, 8, 10),
    )
    robot.frame(f"{side}_hand_center", on=f"{side}_hand", at=(0, 0, -0.0862))


def _leg(robot, side, y):
    """Add a leg on one side."""
    thigh, shank, foot = 0.1416 * _MASS, 0.0433 * _MASS, 0.0137 * _MASS
    _link(
        robot,
        f"{side}_hip",
        cylinder(0.055, 0.06, mass=0.15 * thigh, at=(0, 0, 0), color=STEEL),
        on="pelvis",
        joint=f"{side}_hip_yaw",
        at=(0, 0.09 * y, -_HIP),
        limits=_mirror(-0.6, 0.9, y, 10, 100),
        touches=False,  # the hip is inside pelvis and thigh
    )
    _link(
        robot,
        f"{side}_hip_yoke",
        cylinder(0.05, 0.12, mass=0.15 * thigh, axis="x", color=DARK),
        on=f"{side}_hip",
        joint=f"{side}_hip_roll",
        limits=_mirror(-0.4, 0.8, y, 10, 150),
        touches=False,
    )
    _link(
        robot,
        f"{side}_thigh",
        capsule(0.065, 0.26, mass=0.7 * thigh, at=(0, 0, -0.21), color=WHITE),
        on=f"{side}_hip_yoke",
        joint=f"{side}_hip_pitch",
        limits=(-2.0, 0.7, 12, 250),
    )
    _link(
        robot,
        f"{side}_shank",
        capsule(0.05, 0.29, mass=shank, at=(0, 0, -0.2), color=ORANGE),
        cylinder(0.055, 0.11, axis="y", color=DARK),
        on=f"{side}_thigh",
        joint=f"{side}_knee_pitch",
        at=(0, 0, -_THIGH),
        limits=(0, 2.3, 12, 250),
    )
    _link(
        robot,
        f"{side}_ankle",
        sphere(0.038, mass=0.25 * foot, color=DARK),
        on=f"{side}_shank",
        joint=f"{side}_ankle_pitch",
        at=(0, 0, -_SHANK),
        limits=(-0.9, 0.6, 12, 120),
    )
    _link(
        robot,
        f"{side}_foot",
        box(_FOOT, 0.09, 0.04, mass=0.75 * foot, at=(0.06, 0, 0.02 - _ANKLE), color=BLUE),
        on=f"{side}_ankle",
        joint=f"{side}_ankle_roll",
        limits=(-0.4, 0.4, 12, 60),
    )
    robot.frame(f"{side}_sole", on=f"{side}_foot", at=(0.06, 0, -_ANKLE))


_AXES = {"roll": "x", "pitch": "y", "yaw": "z"}


def _link(robot, name, *solids, on, joint, limits, at=None, touches=True):
    """Add a body on one revolute joint, named after body part and axis."""
    add_body(
        robot,
        name,
        *solids,
        on=on,
        joint=Revolute(_AXES[joint.rpartition("_")[2]]),
        at=at,
        joint_name=joint,
        limits=Limits(*limits),
        touches=touches,
    )


def _mirror(lower, upper, y, *others):
    """Joint limits of the left side, mirrored for the right."""
    return (lower, upper, *others) if y > 0 else (-upper, -lower, *others)
