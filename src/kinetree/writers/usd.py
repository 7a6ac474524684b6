"""``to_usd``: a model as the text of a USD file (usda), with the schemas of UsdPhysics.

USD keeps masses, places and limits in single precision. Beside each such attribute stands one of
kinetree in double precision, ``kinetree:physics:mass`` and so on, which is read where the standard
one has not been changed since.
"""

import math
from dataclasses import astuple, fields
from typing import Any

import numpy as np

from kinetree import joints
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import InteropError, ModelWarning, need, warn
from kinetree.model.arrays import as_model
from kinetree.model.constraint_function import require_none_written
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Mesh,
    Plane,
    Sphere,
    Surface,
)
from kinetree.model.triangles import read_triangles
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import quaternion_from_rotation, rotation_about
from kinetree.writers.sdf import INITIAL
from kinetree.writers.urdf import forward

DOFS = ("rotX", "rotY", "rotZ", "transX", "transY", "transZ")
"""Degrees of freedom of a general joint, in the order of spatial vectors."""
OWN = "kinetree"
NONE = (0.0, 0.0, 0.0)
_AXES = {"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}
_HINTS = "save it as kinetree's TOML (.toml), which has every joint"


def to_usd(model) -> str:
    """USD text of a model: rigid bodies, joints, drives, colliders and materials.

    Bodies stand side by side below the robot, in the posture ``"initial"`` if there is one, else
    in the neutral one. Joints that close loops are left out of the articulation. Other joints than
    revolute, prismatic, spherical and fixed ones are general ones with locked axes.

    Raises:
        InteropError: for joints and couplings that USD does not have.

    Warns:
        ModelWarning: for what else it cannot hold, such as tendons and sensors.
    """
    require_none_written(as_model(model), "a USD")
    if model.scalar_type().hasobject:
        raise InteropError(
            f"USD holds numbers, and model {model.name!r} has formulas; give its parameters values"
        )
    if model.couplings:
        names = ", ".join(repr(c.name) for c in model.couplings[:4])
        raise InteropError(f"USD has no coupling of joints such as {names}; {_HINTS}")
    return _Writer(model).text()


def pose_rows(X) -> list[list[float]]:
    """Pose matrix of a frame in USD's convention of row vectors, (4, 4)."""
    rows = np.eye(4)
    rows[:3, :3] = np.asarray(X.E, dtype=float)
    rows[3, :3] = np.asarray(X.r, dtype=float)
    return rows.tolist()


class _Writer:
    def __init__(self, model):
        self.usd, self.geom, self.physics, self.gf, self.sdf, self.shade, self.tf, self.vt = (
            need(f"pxr.{name}", "writing USD files", "usd")
            for name in ("Usd", "UsdGeom", "UsdPhysics", "Gf", "Sdf", "UsdShade", "Tf", "Vt")
        )
        self.model, self.lost = model, []
        self.stage = self.usd.Stage.CreateInMemory()
        self.geom.SetStageMetersPerUnit(self.stage, 1.0)
        self.geom.SetStageUpAxis(self.stage, self.geom.Tokens.z)
        self.physics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.taken: set[str] = set()
        self.materials: dict[tuple, Any] = {}
        self.root = self.define(self.geom.Xform, "", model.name or "robot")
        self.stage.SetDefaultPrim(self.root.GetPrim())
        self.at: dict[str, Any] = {}  # prims of bodies, frames and shapes, by name

    def text(self) -> str:
        """USD text of the whole stage."""
        model = self.model
        self.write_gravity()
        self.write_bodies()
        for k, body in enumerate(model.bodies, start=1):
            self.write_joint(k, body)
        for loop in model.loops:
            X_P, X_S = loop.predecessor_placement, loop.successor_placement
            prim = self.joint(loop.name, loop.joint, (loop.predecessor, loop.successor), (X_P, X_S))
            prim.GetAttribute("physics:excludeFromArticulation").Set(True)
            self.write_limits(prim, loop)
            self.write_dynamics(prim, loop)
        self.write_actuators()
        self.write_pairs()
        self.warn()
        return self.stage.GetRootLayer().ExportToString()

    # --- prims and attributes ----------------------------------------------------------------

    def define(self, schema, above: str, name: str):
        """New prim with a valid name; the original name is kept as custom data."""
        valid = self.tf.MakeValidIdentifier(name) if name else "shape"
        path, k = f"{above}/{valid}", 2
        while path in self.taken:
            path, k = f"{above}/{valid}_{k}", k + 1
        self.taken.add(path)
        defined = schema.Define(self.stage, path)
        if path.rpartition("/")[2] != name:
            defined.GetPrim().SetCustomDataByKey(f"{OWN}:name", name)
        return defined

    def put(self, prim, name, value, kind=None):
        """Set an attribute of a prim, with an exact copy if single precision loses digits."""
        types, size = self.sdf.ValueTypeNames, np.size(value)
        numbers = [float(x) for x in np.ravel(value)]
        attribute = prim.GetAttribute(name)
        if not attribute:
            attribute = prim.CreateAttribute(name, kind or types.Float)
        single = {1: float, 3: self.gf.Vec3f, 4: self.gf.Quatf}[size]
        attribute.Set(single(*numbers))
        if any(float(np.float32(x)) != x for x in numbers):
            double = {1: types.Double, 3: types.Double3, 4: types.Quatd}[size]
            exact = {1: float, 3: self.gf.Vec3d, 4: self.gf.Quatd}[size]
            prim.CreateAttribute(f"{OWN}:{name}", double).Set(exact(*numbers))

    def own(self, prim, name, values):
        """Set a list of numbers that USD has no attribute for."""
        if len(values):
            kind = self.sdf.ValueTypeNames.DoubleArray
            prim.CreateAttribute(f"{OWN}:{name}", kind).Set([float(x) for x in values])

    def place(self, xformable, X):
        """Set the transform of a prim relative to its parent."""
        xformable.AddTransformOp().Set(self.gf.Matrix4d(pose_rows(X)))

    # --- bodies ------------------------------------------------------------------------------

    def write_gravity(self):
        """Write gravity as a physics scene in USD."""
        scene = self.define(self.physics.Scene, str(self.root.GetPath()), "physics").GetPrim()
        gravity = np.asarray(self.model.gravity, dtype=float)
        size = float(np.linalg.norm(gravity))
        self.put(scene, "physics:gravityDirection", gravity / size if size else (0, 0, -1))
        self.put(scene, "physics:gravityMagnitude", size)

    def write_bodies(self):
        """Write all bodies with inertias and poses in USD."""
        model, above = self.model, str(self.root.GetPath())
        q, own = np.array(model.neutral(), dtype=float), f"{OWN}:base"
        for posture in model.postures:
            if posture.name == INITIAL:
                q = np.array(posture.q, dtype=float)
        poses = base_transforms(model, joint_transforms(model, q)[0])
        for k, name in enumerate(model.body_names):
            body = self.define(self.geom.Xform, above, name)
            prim = self.at[name] = body.GetPrim()
            self.place(body, poses[k])
            if k:
                self.physics.RigidBodyAPI.Apply(prim)
                self.write_mass(prim, model.inertia[k], name)
            else:
                prim.SetCustomDataByKey(own, True)
            for frame in model.frames:
                if frame.body == k:
                    part = self.define(self.geom.Xform, str(body.GetPath()), frame.name)
                    part.GetPrim().SetCustomDataByKey(f"{OWN}:frame", True)
                    self.place(part, frame.placement)
                    self.at[frame.name] = part.GetPrim()
            for g in model.geometry:
                if g.body == k:
                    self.write_shape(prim, g)

    def write_mass(self, prim, inertia, name):
        """Write the inertia of a body in USD."""
        self.physics.MassAPI.Apply(prim)
        mass = float(inertia.mass)
        if mass <= 0:
            if np.any(inertia.parameters()):
                raise InteropError(
                    f"body {name!r} has inertia without a mass, which USD cannot express; {_HINTS}"
                )
            prim.SetCustomDataByKey(f"{OWN}:massless", True)
            return
        moments, axes = np.linalg.eigh(np.asarray(inertia.rotational_at_center, dtype=float))
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        self.put(prim, "physics:mass", mass)
        self.put(prim, "physics:centerOfMass", inertia.center_of_mass)
        self.put(prim, "physics:diagonalInertia", moments)
        self.put(prim, "physics:principalAxes", quaternion_from_rotation(axes.T))

    # --- shapes ------------------------------------------------------------------------------

    def write_shape(self, above, g):
        """Write a shape below its body in USD."""
        written = self.solid(str(above.GetPath()), g)
        if written is None:
            return
        shape, X = written
        self.place(shape, X)
        prim = shape.GetPrim()
        if g.name:
            self.at.setdefault(g.name, prim)
        if g.link:
            prim.SetCustomDataByKey(f"{OWN}:link", g.link)
        if isinstance(g.shape, Ellipsoid):
            shape.AddScaleOp(precision=self.geom.XformOp.PrecisionDouble).Set(
                self.gf.Vec3d(*g.shape.radii)
            )
        elif isinstance(g.shape, Box):
            shape.AddScaleOp(precision=self.geom.XformOp.PrecisionDouble).Set(
                self.gf.Vec3d(*g.shape.size)
            )
        if g.color is not None:
            shape.CreateDisplayColorAttr([self.gf.Vec3f(*map(float, g.color[:3]))])
            shape.CreateDisplayOpacityAttr([float(g.color[3])])
            self.own(prim, "color", g.color)
        if not g.visual:
            shape.CreatePurposeAttr(self.geom.Tokens.guide)
        if g.collision:
            self.physics.CollisionAPI.Apply(prim)
            if isinstance(g.shape, Mesh):
                kind = "convexHull" if g.shape.convex else "none"
                self.physics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(kind)
            self.write_surface(prim, g)

    def solid(self, above, g):
        """Prim and placement of a solid; None for shapes that USD does not have."""
        geom, s, X = self.geom, g.shape, g.placement
        name = g.name or type(s).__name__.lower()
        if isinstance(s, Box):
            shape = self.define(geom.Cube, above, name)
            shape.CreateSizeAttr(1.0)
        elif isinstance(s, (Sphere, Ellipsoid)):
            shape = self.define(geom.Sphere, above, name)
            shape.CreateRadiusAttr(float(s.radius) if isinstance(s, Sphere) else 1.0)
        elif isinstance(s, (Cylinder, Capsule, Cone)):
            shape = self.define(getattr(geom, type(s).__name__), above, name)
            shape.CreateRadiusAttr(float(s.radius))
            shape.CreateHeightAttr(float(s.length))
            shape.CreateAxisAttr(geom.Tokens.z)
        elif isinstance(s, Plane):
            shape = self.define(geom.Plane, above, name)
            shape.CreateAxisAttr(geom.Tokens.z)
        elif isinstance(s, Mesh):
            shape = self.mesh(above, name, s)
        else:
            self.lost.append(f"shape {g.name!r}, a {type(s).__name__}")
            return None
        if not g.name:
            shape.GetPrim().SetCustomDataByKey(f"{OWN}:name", "")
        return shape, X

    def mesh(self, above, name, s):
        """Write a mesh as triangles in USD."""
        triangles = read_triangles(s.path, s.scale)
        shape = self.define(self.geom.Mesh, above, name)
        shape.CreatePointsAttr([self.gf.Vec3f(*map(float, p)) for p in triangles.vertices])
        shape.CreateFaceVertexCountsAttr([3] * len(triangles.faces))
        shape.CreateFaceVertexIndicesAttr(np.ravel(triangles.faces).tolist())
        shape.CreateSubdivisionSchemeAttr("none")
        return shape

    def write_surface(self, prim, g):
        """Write contact properties of a shape as a material in USD."""
        if g.surface is None:
            return
        s, key = g.surface, (g.surface.friction, g.surface.restitution)
        if astuple(s) != astuple(Surface(friction=s.friction, restitution=s.restitution)):
            self.lost.append(f"what the surface of {g.name!r} has beside friction and restitution")
        if key not in self.materials:
            above = str(self.root.GetPath())
            material = self.define(self.shade.Material, above, f"surface_{len(self.materials)}")
            self.physics.MaterialAPI.Apply(material.GetPrim())
            if s.friction is not None:
                for kind in ("static", "dynamic"):
                    self.put(material.GetPrim(), f"physics:{kind}Friction", s.friction)
            if s.restitution is not None:
                self.put(material.GetPrim(), "physics:restitution", s.restitution)
            self.materials[key] = material
        binding = self.shade.MaterialBindingAPI.Apply(prim)
        strength = self.shade.Tokens.fallbackStrength
        binding.Bind(self.materials[key], strength, "physics")

    # --- joints ------------------------------------------------------------------------------

    def write_joint(self, k, body):
        """Write the joint of body ``k`` in USD."""
        joint = forward(body.joint)
        free = isinstance(joint, joints.Free) and joint.translation == "parent"
        if free and body.parent == 0 and _is_identity(body.placement):
            self.at[body.name].SetCustomDataByKey(f"{OWN}:joint", body.joint_name)
            if body.dynamics or body.limits:
                self.lost.append(f"dynamics and limits of the free joint {body.joint_name!r}")
            return
        places = (body.placement, Plucker.identity())
        prim = self.joint(body.joint_name, joint, (body.parent, k), places)
        self.write_limits(prim, body)
        self.write_dynamics(prim, body)

    def joint(self, name, joint, ends, places):
        """New prim of a joint between two bodies, with its frames on both."""
        if isinstance(joint, joints.Reversed):
            return self.joint(name, joint.joint, ends[::-1], places[::-1])
        schema, axis = self.kind_of(name, joint)
        prim = self.define(schema, str(self.root.GetPath()), name).GetPrim()
        prim.SetCustomDataByKey(f"{OWN}:drives", "actuators")
        if axis is not None:
            token, turn = _axis(axis)
            places = [turn @ X for X in places]
            if prim.GetAttribute("physics:axis"):
                prim.GetAttribute("physics:axis").Set(token)
        for k, (end, X) in enumerate(zip(ends, places, strict=True)):
            body = self.model.body_names[end]
            if end or self.base_is_used():
                prim.GetRelationship(f"physics:body{k}").SetTargets([self.at[body].GetPath()])
            self.put(prim, f"physics:localPos{k}", X.r)
            self.put(prim, f"physics:localRot{k}", quaternion_from_rotation(X.E))
        if schema is self.physics.Joint:
            free = free_dofs(joint) or ()
            if isinstance(joint, joints.Universal):
                prim.SetCustomDataByKey(f"{OWN}:axes", joint.axes)
            for dof in DOFS:
                if dof not in free:
                    limit = self.physics.LimitAPI.Apply(prim, dof)
                    limit.CreateLowAttr(1.0)
                    limit.CreateHighAttr(-1.0)
        return prim

    def base_is_used(self):
        """Always False: joints to the world name no body, as simulators expect."""
        return False

    def kind_of(self, name, joint):
        """USD schema of a joint, and its axis token."""
        physics = self.physics
        if isinstance(joint, joints.Revolute):
            return physics.RevoluteJoint, joint.axis
        if isinstance(joint, joints.Prismatic):
            return physics.PrismaticJoint, joint.axis
        if isinstance(joint, joints.Spherical):
            return physics.SphericalJoint, None
        if isinstance(joint, joints.Fixed):
            return physics.FixedJoint, None
        if free_dofs(joint) is None:
            raise InteropError(
                f"joint {name!r} is {joint!r}, which USD cannot express: it has joints that turn "
                f"about or slide along axes of their frame; {_HINTS}"
            )
        return physics.Joint, None

    def write_limits(self, prim, part):
        """Write the limits of a joint in USD."""
        limits, joint = part.limits, part.joint
        if limits is None:
            return
        for field in fields(limits):
            if joint.nv != 1 or field.name.startswith("effort_"):
                self.own(prim, f"limits:{field.name}", getattr(limits, field.name))
        if joint.nv != 1:
            return
        turns = isinstance(forward(joint), joints.Revolute)
        unit = 180 / math.pi if turns else 1.0
        for bound in ("lower", "upper"):
            values = getattr(limits, bound)
            if len(values) and math.isfinite(values[0]):
                self.put(prim, f"physics:{bound}Limit", values[0] * unit)
        if len(limits.velocity) and math.isfinite(limits.velocity[0]):
            self.put(prim, "physxJoint:maxJointVelocity", limits.velocity[0] * unit)
        if len(limits.effort) and math.isfinite(limits.effort[0]):
            self.put(self.drive(prim, joint), self.in_drive(joint, "maxForce"), limits.effort[0])

    def write_dynamics(self, prim, part):
        """Write springs, damping, friction and drives of a joint."""
        d, joint = part.dynamics, part.joint
        if d is None:
            return
        if d.drive:
            self.lost.append(f"where drives push, of joint {prim.GetName()!r}")
        single = joint.nv == 1
        for name in ("friction", "stiffness", "rest", *([] if single else ["armature", "damping"])):
            self.own(prim, f"dynamics:{name}", getattr(d, name))
        if single and len(d.armature):
            self.put(prim, "physxJoint:armature", d.armature[0])
        if single and len(d.damping):
            unit = math.pi / 180 if isinstance(forward(joint), joints.Revolute) else 1.0
            value = d.damping[0] * unit
            self.put(self.drive(prim, joint), self.in_drive(joint, "damping"), value)

    def in_drive(self, joint, name):
        """Attribute name of a one-variable joint's drive."""
        turns = isinstance(forward(joint), joints.Revolute)
        return f"drive:{'angular' if turns else 'linear'}:physics:{name}"

    def drive(self, prim, joint):
        """Prim of a joint with a drive of zero stiffness and damping."""
        kind = "angular" if isinstance(forward(joint), joints.Revolute) else "linear"
        self.physics.DriveAPI.Apply(prim, kind)
        return prim

    def write_actuators(self):
        """Write actuators as drives of joints in USD."""
        model = self.model
        prims = {_name(p): p for p in self.stage.Traverse() if p.IsA(self.physics.Joint)}
        for a in model.actuators:
            prim, joint = prims.get(model.driven_joint(a)), model.joint[a.joint]
            plain = a.joint and not a.activation and len(a.gear) == 1 and joint.nv == 1
            if prim is None or not plain or a.kind not in ("motor", "position", "velocity"):
                self.lost.append(f"actuator {a.name!r}")
                continue
            names = [*(prim.GetCustomDataByKey(f"{OWN}:actuators") or ()), a.name]
            prim.SetCustomDataByKey(f"{OWN}:actuators", self.vt.StringArray(names))
            for key in ("gear", "control", "effort", "gain", "bias"):
                self.own(prim, f"actuator_{len(names)}:{key}", getattr(a, key))
            if a.kind != "motor":
                turns = isinstance(forward(joint), joints.Revolute)
                unit = a.gear[0] ** 2 * (math.pi / 180 if turns else 1.0)
                self.drive(prim, joint)
                stiff, damp = (self.in_drive(joint, x) for x in ("stiffness", "damping"))
                prim.CreateAttribute(stiff, self.sdf.ValueTypeNames.Float).Set(-a.bias[1] * unit)
                prim.CreateAttribute(damp, self.sdf.ValueTypeNames.Float).Set(-a.bias[2] * unit)

    # --- the rest ----------------------------------------------------------------------------

    def write_pairs(self):
        """Write excluded contact pairs of bodies in USD."""
        for pair in self.model.contact_pairs:
            ends = [self.at.get(name) for name in (pair.first, pair.second)]
            if pair.touch or ends[0] is None or ends[1] is None:
                self.lost.append(f"contact pair of {pair.first!r} and {pair.second!r}")
                continue
            filtered = self.physics.FilteredPairsAPI.Apply(ends[0])
            filtered.CreateFilteredPairsRel().AddTarget(ends[1].GetPath())

    def warn(self):
        """Warn about everything in the model that USD cannot hold."""
        model = self.model
        for what in (
            "tendons",
            "sensors",
            "cameras",
            "groups",
            "gravity_compensation",
            "fluid_forces",
        ):
            if count := len(getattr(model, what)):
                self.lost.append(f"{count} {what.replace('_', ' ')}")
        self.lost += [f"posture {p.name!r}" for p in model.postures if p.name != INITIAL]
        if self.lost:
            shown = "; ".join(dict.fromkeys(self.lost[:6]))
            more = f" and {len(self.lost) - 6} more" * (len(self.lost) > 6)
            warn(f"model {model.name!r}: not in the USD: {shown}{more}", ModelWarning)


def _name(prim) -> str:
    """Original name of a prim in the model."""
    return prim.GetCustomDataByKey(f"{OWN}:name") or prim.GetName()


def _is_identity(X):
    """Whether a placement is the identity."""
    return np.array_equal(X.E, np.eye(3)) and not np.any(X.r)


def _axis(axis):
    """USD token of an axis, and the rotation of the joint frame to it."""
    axis = np.asarray(axis, dtype=float)
    for token, unit in _AXES.items():
        if np.array_equal(axis, unit):
            return token, Plucker.identity()
    z = np.array((0.0, 0.0, 1.0))
    across = np.cross(z, axis)
    s, c = float(np.linalg.norm(across)), float(axis[2])
    about = across / s if s else np.array((1.0, 0.0, 0.0))
    return "Z", Plucker(np.asarray(rotation_about(about, c, s)), np.zeros(3))


def free_dofs(joint) -> tuple[str, ...] | None:
    """Degrees of freedom of a joint by USD's names, in the order of its variables.

    None where a variable does not stand for one of them alone, whatever the configuration.
    """
    known = (joints.Cylindrical, joints.Planar, joints.SphereInCylinder, joints.Translation)
    if type(joint) not in (*known, joints.Universal, joints.Free, joints.Spherical):
        return None
    if getattr(joint, "translation", "parent") != "parent":
        return None
    S = np.asarray(joint.motion_subspace(np.asarray(joint.neutral())).to_array(), dtype=float)
    found = []
    for column in S.T:
        where = np.flatnonzero(column)
        if len(where) != 1 or column[where[0]] != 1:
            return None
        found.append(DOFS[where[0]])
    return tuple(found)
