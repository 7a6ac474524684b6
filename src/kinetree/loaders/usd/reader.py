"""``read_usd``: a model from a USD stage with the schemas of UsdPhysics."""

import math
from typing import Any

import numpy as np

from kinetree.errors import KinetreeError
from kinetree.joints import Free
from kinetree.loaders.meshes import mesh_inertia
from kinetree.loaders.usd.joints import JointReader
from kinetree.loaders.usd.shapes import ShapeReader, is_frame
from kinetree.loaders.usd.stage import (
    frame_of,
    name_of,
    open_stage,
    placement,
    pxr,
    tag,
    value_of,
)
from kinetree.model import MechanismGraph, Model, lump_fixed
from kinetree.model.geometry import HeightField, Mesh, Plane
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.rotation import quaternion_from_rotation, rotation_from_quaternion

_GRAVITY = 9.81  # of a scene that does not say
_DENSITY = 1000.0  # of shapes that do not say, by the standard
_INITIAL = "initial"
_UPS = {"X": (-1.0, 0.0, 0.0), "Y": (0.0, -1.0, 0.0), "Z": (0.0, 0.0, -1.0)}


def read_usd(source, report, folders, options) -> Model:
    """Model of the mechanism on a USD stage.

    Bodies without a joint float, as in simulators. See ``kinetree.loaders.load`` for the arguments.
    """
    return _Reader(open_stage(source, report, folders), report, options).model()


class _Reader:
    def __init__(self, stage, report, options):
        self.stage, self.report, self.options = stage, report, options
        self.geom, self.physics = pxr("UsdGeom"), pxr("UsdPhysics")
        self.meters = float(self.geom.GetStageMetersPerUnit(stage))
        self.kilograms = float(self.physics.GetStageKilogramsPerUnit(stage))
        self.prims = list(stage.Traverse())
        self.bodies: dict[Any, str] = {}  # names, by path
        self.frames: dict[Any, tuple[Plucker, np.ndarray]] = {}  # places in the world, and scales
        self.shapes: dict[str, list] = {}  # by body: prim, shape, place, properties
        self.cache = self.geom.XformCache()
        self.shape_reader = ShapeReader(self.meters, report)
        self.base = next((p for p in self.prims if tag(p, "base")), None)
        base_name = name_of(self.base) if self.base else "world"
        top = stage.GetDefaultPrim() or next(iter(stage.GetPseudoRoot().GetChildren()), None)
        name = name_of(top) if top else "robot"
        self.graph = MechanismGraph(name, gravity=self.gravity(), base_name=base_name)

    def model(self) -> Model:
        """Model of the mechanism on the stage."""
        self.find_bodies()
        self.find_shapes()
        for path, name in self.bodies.items():
            self.graph.body(name, inertia=self.inertia(self.stage.GetPrimAtPath(path), name))
        tree = self.read_joints()
        for name, found in self.shapes.items():
            on = None if name == self.graph.base_name else name
            for prim, shape, X, properties in found:
                del prim
                self.graph.geometry(shape, on=on, at=X, **properties)
        self.read_frames()
        self.read_pairs()
        start = self.let_fly()
        if start:
            self.graph.posture(_INITIAL, q=start)
        tree = [*tree, *(f"{name}" for name in self.free_joints)] if tree is not None else None
        model = self.graph.to_model(tree, strict=self.options.strict)
        return lump_fixed(model) if self.options.lump else model

    def gravity(self):
        """Gravity vector of the first physics scene; downwards at 9.81 m/s² without one."""
        down = np.array(_UPS.get(str(self.geom.GetStageUpAxis(self.stage)), _UPS["Z"]))
        scenes = [p for p in self.prims if p.IsA(self.physics.Scene)]
        if not scenes:
            return down * _GRAVITY
        for scene in scenes[1:]:
            self.report.ignore(None, str(scene.GetPath()), "only the first scene is read")
        direction = np.array(value_of(scenes[0], "physics:gravityDirection", (0.0, 0.0, 0.0)))
        size = value_of(scenes[0], "physics:gravityMagnitude", -math.inf)
        size = _GRAVITY if size < 0 or not math.isfinite(size) else size * self.meters
        length = float(np.linalg.norm(direction))
        return size * (direction / length if length > 0 else down)

    # --- bodies ------------------------------------------------------------------------------

    def find_bodies(self):
        """Find the rigid bodies on the stage and name them."""
        taken = {self.graph.base_name}
        for prim in self.prims:
            enabled = prim.GetAttribute("physics:rigidBodyEnabled")
            if not prim.HasAPI(self.physics.RigidBodyAPI) or (enabled and not enabled.Get()):
                continue
            name = name_of(prim)
            if name in taken:  # of another robot on the stage
                name = str(prim.GetPath()).strip("/").replace("/", "::")
            taken.add(name)
            self.bodies[prim.GetPath()] = name
            self.frames[prim.GetPath()] = self.world_frame(prim)
            kinematic = prim.GetAttribute("physics:kinematicEnabled")
            if kinematic and kinematic.Get():
                why = "a kinematic body moves by a prescription, which is not read; it floats"
                self.report.ignore(None, str(prim.GetPath()), why)
        self.report.check_bodies(len(self.bodies))

    def world_frame(self, prim):
        """Placement of a USD prim in the world [m], and its scale."""
        try:
            X, scale = frame_of(self.cache.GetLocalToWorldTransform(prim))
        except ValueError as error:
            raise self.report.error(None, f"{prim.GetPath()}: {error}") from None
        return Plucker(X.E, X.r * self.meters), scale

    def body_of(self, prim):
        """Path of the rigid body that a USD prim belongs to; None for the base."""
        while prim and prim.GetPath() not in self.bodies:
            prim = prim.GetParent()
        return prim.GetPath() if prim else None

    def name_of_body(self, path):
        """Name of the body with a path; the base's for None."""
        return self.graph.base_name if path is None else self.bodies[path]

    def in_body(self, prim, path):
        """Matrix from a USD prim's coordinates to its body's, scaled to metres."""
        rows = np.array(self.cache.GetLocalToWorldTransform(prim), dtype=float)
        rows[3, :3] *= self.meters
        if path is None:
            return rows
        X, _ = self.frames[path]
        inside = rows.copy()
        inside[:3, :3] = rows[:3, :3] @ X.E.T
        inside[3, :3] = X.E @ (rows[3, :3] - X.r)
        return inside

    def find_shapes(self):
        """Find the shapes on the stage, by body."""
        for prim in self.prims:
            if prim.IsA(self.geom.Gprim):
                path = self.body_of(prim)
                found = self.shape_reader.read(prim, self.in_body(prim, path))
                if found is not None:
                    self.shapes.setdefault(self.name_of_body(path), []).append((prim, *found))

    def inertia(self, prim, name) -> Inertia:
        """Inertia of a body: given, or from its shapes with its mass or their densities."""
        if tag(prim, "massless"):
            return Inertia.zero()
        units = self.kilograms, self.meters
        mass = value_of(prim, "physics:mass", 0.0) * units[0]
        diagonal = np.array(value_of(prim, "physics:diagonalInertia", (0.0, 0.0, 0.0)))
        center = np.array(value_of(prim, "physics:centerOfMass", (-math.inf,) * 3))
        _, scale = self.frames[prim.GetPath()]
        if mass > 0 and np.any(diagonal):
            turn = value_of(prim, "physics:principalAxes", (1.0, 0.0, 0.0, 0.0))
            size = float(np.linalg.norm(turn))
            axes = np.array([1.0, 0, 0, 0]) if size == 0 else np.array(turn) / size
            R = self.rotation(axes)
            moments = R @ np.diag(diagonal * units[0] * units[1] ** 2) @ R.T
            c = np.zeros(3) if np.any(np.isinf(center)) else center * scale * units[1]
            return Inertia.from_mass_center(mass, c, (moments + moments.T) / 2)
        return self.inertia_of_shapes(prim, name, mass, center * scale * units[1])

    @staticmethod
    def rotation(p):
        """Rotation matrix of a USD quaternion."""
        return np.asarray(rotation_from_quaternion(p), dtype=float).T

    def inertia_of_shapes(self, prim, name, mass, center):
        """Inertia of a body's collision shapes, scaled to its mass if given."""
        total = Inertia.zero()
        of_body = value_of(prim, "physics:density", 0.0)
        for part, shape, X, properties in self.shapes.get(name, ()):
            if not properties["collision"]:
                continue
            density = of_body or self.shape_reader.density(part)
            density = density * self.kilograms / self.meters**3 if density else _DENSITY
            if isinstance(shape, (HeightField, Plane)):  # without volume
                continue
            try:
                solid = self.solid_inertia(shape, density, X)
            except KinetreeError as error:
                why = f"the inertia of {name!r} is without this shape: {error}"
                self.report.ignore(None, str(part.GetPath()), why, "motion")
                continue
            own_mass = value_of(part, "physics:mass", 0.0) * self.kilograms
            total = total + (solid * (own_mass / solid.mass) if own_mass else solid)
        if total.mass and mass:
            total = total * (mass / total.mass)
        elif mass:
            why = "it has a mass, but neither inertia nor shapes: a point mass"
            self.report.ignore(None, str(prim.GetPath()), why)
            c = np.where(np.isinf(center), 0.0, center)
            return Inertia.from_mass_center(mass, c, np.zeros((3, 3)))
        if total.mass and not np.any(np.isinf(center)):
            about = np.asarray(total.rotational_at_center)
            return Inertia.from_mass_center(total.mass, center, about)
        return total

    @staticmethod
    def solid_inertia(shape, density, X):
        """Inertia of a shape of uniform density, in body coordinates."""
        if isinstance(shape, Mesh):
            solid = mesh_inertia(shape.path, density=density, hull=shape.convex)
            return solid.inverse_transformed(X)
        return shape.inertia(density, X)

    # --- joints and the rest -----------------------------------------------------------------

    def read_joints(self):
        """Add all joints to the graph; names of tree joints, or None if the file has none."""
        reader = JointReader(self.stage, self.meters, self.report, self.graph)
        tree, cut = [], False
        self.connected: set[str] = set()
        for prim in self.prims:
            enabled = prim.GetAttribute("physics:jointEnabled")
            if not prim.IsA(self.physics.Joint) or (enabled and not enabled.Get()):
                continue
            ends, places = zip(*(self.end(prim, k) for k in (0, 1)), strict=True)
            if ends[0] == ends[1]:
                why = f"both ends are on {ends[0]!r}"
                self.report.ignore(None, str(prim.GetPath()), why)
                continue
            name = reader.add(prim, ends, places)
            if name is None:
                continue
            outside = prim.GetAttribute("physics:excludeFromArticulation")
            if outside and outside.Get():
                cut = True
            else:
                tree.append(name)
        return tree if cut else None

    def end(self, prim, k):
        """Name of the body at an end of a joint, and the joint's frame on it."""
        targets = prim.GetRelationship(f"physics:body{k}").GetTargets()
        target = self.stage.GetPrimAtPath(targets[0]) if targets else None
        if targets and not target:
            raise self.report.error(None, f"{prim.GetPath()}: there is no body {targets[0]}")
        path = self.body_of(target) if target else None
        position = np.array(value_of(prim, f"physics:localPos{k}", (0.0, 0.0, 0.0)))
        turn = value_of(prim, f"physics:localRot{k}", (1.0, 0.0, 0.0, 0.0))
        if target is None:
            return self.graph.base_name, placement(position * self.meters, turn)
        X, scale = self.place_on(target, path)
        return self.name_of_body(path), placement(position * scale * self.meters, turn) @ X

    def place_on(self, prim, path):
        """Placement of a USD prim on its body, and its scale."""
        if prim.GetPath() == path:
            return Plucker.identity(), self.frames[path][1]
        try:
            X, _ = frame_of(self.in_body(prim, path))
        except ValueError as error:
            raise self.report.error(None, f"{prim.GetPath()}: {error}") from None
        return X, self.world_frame(prim)[1]

    def read_frames(self):
        """Read frames: prims that are neither bodies nor shapes."""
        taken = set()
        for prim in self.prims:
            path = self.body_of(prim)
            if prim.GetPath() in self.bodies or prim == self.base or not is_frame(prim):
                continue
            inside = path is not None or (self.base and prim.GetParent() == self.base)
            name = name_of(prim)
            if inside and name not in taken and name not in self.bodies.values():
                taken.add(name)
                X, _ = self.place_on(prim, path)
                self.graph.frame(name, on=self.name_of_body(path), at=X)

    def read_pairs(self):
        """Read pairs of bodies that are excluded from contact."""
        for prim in self.prims:
            if prim.HasAPI(self.physics.FilteredPairsAPI):
                for target in prim.GetRelationship("physics:filteredPairs").GetTargets():
                    other = self.stage.GetPrimAtPath(target)
                    names = [self.end_of_pair(p) or "" for p in (prim, other) if p]
                    if len(names) == 2 and all(names):
                        self.graph.exclude(*names)

    def end_of_pair(self, prim):
        """Name of a body, or named shape; None for other prims."""
        if prim.GetPath() in self.bodies:
            return self.bodies[prim.GetPath()]
        if prim.IsA(self.geom.Gprim):
            return name_of(prim) or None
        return None

    def let_fly(self) -> dict:
        """Add free joints for unconnected bodies; their initial poses by name."""
        self.free_joints, start = [], {}
        path_of = {name: path for path, name in self.bodies.items()}
        graph = self.graph.connectivity()
        for part in graph.components()[1:]:
            names = [self.graph.body_names[k] for k in part]
            flying = [n for n in names if self.joint_note(path_of[n])]
            name = flying[0] if flying else names[0]
            joint = self.joint_note(path_of[name]) or f"{name}_joint"
            if joint in self.graph.joint_names:
                joint = f"{name}_floating"
            X, _ = self.frames[path_of[name]]
            self.free_joints.append(joint)
            self.add_free(joint, name)
            if not np.array_equal(X.E, np.eye(3)) or np.any(X.r):
                start[joint] = [*X.r, *quaternion_from_rotation(X.E)]
        return start

    def joint_note(self, path):
        """Name of a joint for messages."""
        return tag(self.stage.GetPrimAtPath(path), "joint")

    def add_free(self, joint, name):
        """Add a free joint between the base and a body."""
        self.graph.joint(joint, Free(), predecessor=self.graph.base_name, successor=name)
