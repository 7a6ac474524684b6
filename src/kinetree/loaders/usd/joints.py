"""Joints of USD with limits, drives and dynamics."""

import math
from dataclasses import fields

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints import (
    Cylindrical,
    Fixed,
    Free,
    Planar,
    Prismatic,
    Revolute,
    SphereInCylinder,
    Spherical,
    Translation,
    Universal,
)
from kinetree.joints.axis import as_axis
from kinetree.loaders.usd.stage import name_of, own, pxr, tag, value_of
from kinetree.model import JointDynamics, Limits
from kinetree.spatial import Plucker

_DOFS = ("rotX", "rotY", "rotZ", "transX", "transY", "transZ")
_AXES = {"X": (1.0, 0, 0), "Y": (0, 1.0, 0), "Z": (0, 0, 1.0)}
_LETTERS = "XYZ"
_UNLIMITED = 3e38  # what simulators write for no limit


def joint_of_dofs(free: tuple[str, ...]):
    """Joint class for a set of free degrees of freedom; None if there is none."""
    turns = "".join(x[3:] for x in free if x.startswith("rot"))
    slides = "".join(x[5:] for x in free if x.startswith("trans"))
    axis = {a: _AXES[a] for a in _LETTERS}
    missing = "".join(a for a in _LETTERS if a not in slides)
    match len(turns), len(slides):
        case 0, 0:
            return Fixed()
        case 1, 0:
            return Revolute(axis[turns])
        case 0, 1:
            return Prismatic(axis[slides])
        case 1, 1 if turns == slides:
            return Cylindrical(axis[turns])
        case 2, 0:
            return Universal(turns.lower())
        case 3, 0:
            return Spherical()
        case 0, 3:
            return Translation()
        case 1, 2 if turns == missing:
            return Planar(axis[turns])
        case 3, 1:
            return SphereInCylinder(axis[slides])
        case 3, 3:
            return Free()
    return None


class JointReader:
    """Adds joints of a stage to a graph of bodies."""

    def __init__(self, stage, meters, report, graph):
        self.stage, self.meters, self.report, self.graph = stage, meters, report, graph
        self.physics = pxr("UsdPhysics")

    def add(self, prim, ends, places) -> str | None:
        """Add a joint between two bodies; its name, or None if it is left out."""
        joint = self.joint(prim)
        if joint is None:
            return None
        name, k = name_of(prim), 2
        while name in self.graph.joint_names:
            name, k = f"{name_of(prim)}_{k}", k + 1
        joint, places = align(joint, places)
        self.graph.joint(
            name,
            joint,
            predecessor=ends[0],
            successor=ends[1],
            at=places[0],
            successor_at=places[1],
            limits=self.limits(prim, joint),
            dynamics=self.dynamics(prim, joint),
        )
        self.actuators(prim, name, joint)
        return name

    def joint(self, prim):
        """Joint object for a USD prim; None, with a notice, for distance constraints."""
        kind = prim.GetTypeName()
        axis = _AXES.get(str(prim.GetAttribute("physics:axis").Get() or "X"), _AXES["X"])
        plain = {
            "PhysicsRevoluteJoint": lambda: Revolute(axis),
            "PhysicsPrismaticJoint": lambda: Prismatic(axis),
            "PhysicsFixedJoint": Fixed,
        }
        if kind in plain:
            return plain[kind]()
        if kind == "PhysicsSphericalJoint":
            if any(value_of(prim, f"physics:coneAngle{k}Limit", -1.0) >= 0 for k in (0, 1)):
                why = "the cone that limits the joint is left out"
                self.report.ignore(None, str(prim.GetPath()), why)
            return Spherical()
        if kind != "PhysicsJoint":
            why = f"kinetree has no joint like a {kind}"
            self.report.ignore(None, str(prim.GetPath()), why)
            return None
        free = tuple(dof for dof in _DOFS if not self.is_locked(prim, dof))
        found = joint_of_dofs(free)
        if found is None:
            shown = ", ".join(free)
            raise self.report.error(None, f"{prim.GetPath()}: no joint leaves {shown} free")
        axes = str(tag(prim, "axes", ""))
        if isinstance(found, Universal) and axes[::-1] == found.axes:
            return Universal(axes)  # the other one first, of which USD says nothing
        return found

    @staticmethod
    def is_locked(prim, dof):
        """Whether a degree of freedom of a general joint is locked (lower limit above upper)."""
        low = value_of(prim, f"limit:{dof}:physics:low", -math.inf)
        return low > value_of(prim, f"limit:{dof}:physics:high", math.inf)

    def unit(self, joint):
        """Factor from the file's position unit to radians or metres."""
        return math.pi / 180 if isinstance(joint, Revolute) else self.meters

    @staticmethod
    def drive(joint, name):
        """Attribute name of a one-variable joint's drive."""
        kind = "angular" if isinstance(joint, Revolute) else "linear"
        return f"drive:{kind}:physics:{name}"

    def limits(self, prim, joint):
        """Position limits of a joint, or None."""
        given = {f.name: own(prim, f"limits:{f.name}") for f in fields(Limits)}
        given = {key: x for key, x in given.items() if x is not None}
        if joint.nv != 1:
            return Limits(**given) if given else None
        unit = self.unit(joint)
        names = {"lower": "physics:lowerLimit", "upper": "physics:upperLimit"}
        names |= {
            "velocity": "physxJoint:maxJointVelocity",
            "effort": self.drive(joint, "maxForce"),
        }
        usual = {"lower": -math.inf}
        bounds = {}
        for key, name in names.items():
            value = value_of(prim, name, usual.get(key, math.inf))
            scale = unit if key != "effort" else 1.0
            bounds[key] = value * scale if abs(value) < _UNLIMITED else usual.get(key, math.inf)
        if bounds["lower"] > bounds["upper"]:
            self.report.ignore(None, f"limits of {prim.GetPath()}", "the lower is above the upper")
            bounds |= {"lower": -math.inf, "upper": math.inf}
        ranged = any(math.isfinite(bounds[key]) for key in ("lower", "upper"))
        kept = {
            key: (x,)
            for key, x in bounds.items()
            if math.isfinite(x) or (ranged and key in ("lower", "upper"))
        }
        kept |= given
        return Limits(**kept) if kept else None

    def dynamics(self, prim, joint):
        """Armature, damping, friction and spring of a joint, or None."""
        names = ("armature", "damping", "friction", "stiffness", "rest")
        found = {key: own(prim, f"dynamics:{key}") for key in names}
        if joint.nv == 1:
            armature = value_of(prim, "physxJoint:armature")
            found["armature"] = None if armature is None else (armature,)
            damping = value_of(prim, self.drive(joint, "damping"))
            if damping is not None and not self.is_servo(prim, joint):
                found["damping"] = (damping / self.unit(joint),)
        found = {key: x for key, x in found.items() if x is not None}
        try:
            return JointDynamics(**found) if found else None
        except ModelError as error:
            raise self.report.error(None, f"{prim.GetPath()}: {error}") from None

    def is_servo(self, prim, joint):
        """Whether a joint's drive has a target, not only damping."""
        stiffness = value_of(prim, self.drive(joint, "stiffness"), 0.0)
        goal = prim.GetAttribute(self.drive(joint, "targetVelocity"))
        moved = bool(goal) and goal.HasAuthoredValue()
        mine = tag(prim, "actuators")
        return (stiffness > 0 or moved) and not mine

    def actuators(self, prim, name, joint):
        """Actuators of a USD joint, from kinetree's attributes or the joint's drive."""
        mine = tag(prim, "actuators")
        for k, label in enumerate(mine or (), start=1):
            keys = ("gear", "control", "effort", "gain", "bias")
            law = {key: own(prim, f"actuator_{k}:{key}") for key in keys}
            self.graph.actuator(str(label), joint=name, **law)
        if mine or joint.nv != 1 or not prim.HasAPI(self.physics.DriveAPI):
            return
        unit = self.unit(joint)
        gains = [value_of(prim, self.drive(joint, x), 0.0) for x in ("stiffness", "damping")]
        most = value_of(prim, self.drive(joint, "maxForce"), math.inf)
        effort = (-most, most) if most < _UNLIMITED else (-math.inf, math.inf)
        kp, kv = (x / unit for x in gains)
        label = f"{name}_drive"
        if kp > 0:
            self.graph.actuator(label, joint=name, kp=kp, kv=kv, effort=effort)
        elif self.is_servo(prim, joint):
            self.graph.actuator(label, joint=name, kv=kv, effort=effort)
        elif kv == 0 and most > 0 and not tag(prim, "drives"):
            self.graph.actuator(label, joint=name, effort=effort)


def align(joint, places):
    """Joint about an axis in body coordinates, so that placements need no rotation.

    A joint with one axis, or that does not depend on the axes of its frame, may have any turn of
    both of its frames: that which gives the frame on the successor the axes of that body.
    """
    X_P, X_S = places
    E = np.asarray(X_S.E, dtype=float)
    if np.array_equal(E, np.eye(3)):
        return joint, places
    if isinstance(joint, (Revolute, Prismatic, Cylindrical, SphereInCylinder)):
        axis = E.T @ np.asarray(joint.axis, dtype=float)
        axis[np.abs(axis) < 1e-15] = 0.0
        joint = type(joint)(as_axis(axis))
    elif not isinstance(joint, (Fixed, Spherical)):
        return joint, places
    back = Plucker(E.T, np.zeros(3))
    return joint, (back @ X_P, Plucker(np.eye(3), X_S.r))
