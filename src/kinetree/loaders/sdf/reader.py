"""``read_sdf``: a model from an SDF file, couplings included."""

import os
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np

from kinetree.errors import KinetreeError, LoadError, MissingPackageError, ModelWarning
from kinetree.joints import Fixed, Free, Prismatic, Revolute
from kinetree.joints.reversed import Reversed
from kinetree.loaders import gazebo
from kinetree.loaders.gazebo import MAGNETIC_FIELD
from kinetree.loaders.report import Effect
from kinetree.loaders.sdf.description import Description, Includes, version_of
from kinetree.loaders.sdf.frames import WORLD, pose_in
from kinetree.loaders.sdf.joints import Joint
from kinetree.loaders.sdf.mechanism import Connections, SdfArc, arcs_of, axis_in_joint
from kinetree.loaders.xml import Node, parse
from kinetree.model import MechanismGraph, Model, lump_fixed
from kinetree.model.decomposition import in_pieces
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.rotation import quaternion_from_rotation

_GRAVITY = (0.0, 0.0, -9.8)  # of a world that does not say, by the standard
EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(
        ("visual", "light", "gui", "scene", "audio", "projector", "particle_emitter", "road",
         "actor", "laser_retro", "audio_sink", "audio_source"), "picture",
    ),
    **dict.fromkeys(("collision",), "contact"),
    **dict.fromkeys(("sensor", "plugin", "battery", "gripper"), "control"),
    **dict.fromkeys(
        ("sdf", "physics", "atmosphere", "magnetic_field", "spherical_coordinates",
         "allow_auto_disable", "must_be_base_link", "self_collide", "description", "author"),
        "setting",
    ),
    **dict.fromkeys(("model", "world"), "motion"),
}  # fmt: skip
"""What is different without an SDF element of SDF, and without what is inside it."""


def _step_of(element) -> dict:
    """Time step [s] of the first <physics>, or None."""
    found = element.find(".//{*}physics/{*}max_step_size")
    try:
        step = float(found.text) if found is not None else 0.0
    except (TypeError, ValueError):
        return {}
    return {"timestep": step} if 0 < step < np.inf else {}


def read_sdf(source, report, folders, options) -> Model:
    """Model from an SDF text: one model, or all models of a world.

    What nothing connects to the world flies on a free joint, as in Gazebo, unless its model is
    static. See ``kinetree.loaders.load`` for the arguments.
    """
    report.effects, report.first_counts = EFFECTS, True
    element = parse(source, report.path)
    root = Node(element, report)
    report.settings |= _step_of(element)
    if root.tag != "sdf":
        raise root.error("the root element of an SDF file is <sdf>")
    version = version_of(root)
    report.check_bodies(sum(1 for _ in element.iter("{*}link")))
    includes = Includes(report, folders.extra)
    description = Description(includes)
    name, *fields = _read(root, description, folders, version)
    if not description.links:
        raise root.error("the file has no <link>")
    description.frames.resolve()
    model = _Assembly(description, name, fields, options, report).model()
    report.note_unused(element)
    includes.finish()
    return _in_pieces(model, report)


def _in_pieces(model, report):
    """Model with convex pieces for meshes that request decomposition."""
    try:
        return in_pieces(model, lambda mesh: not mesh.convex and os.path.isfile(mesh.path))
    except MissingPackageError as error:
        why = f"the meshes touch with their triangles: {error}"
        report.ignore(None, "optimization='convex_decomposition' of <mesh>", why, "contact")
        return model


def _read(root, description, folders, version):
    """Description and version of the first world or model in a file."""
    worlds, models = root.all("world"), root.all("model")
    if worlds:
        for world in worlds[1:]:
            world.ignore("only the first world of a file is read")
        world = worlds[0]
        description.add_world(world, folders, version)
        given = {tag: world.one(tag) for tag in ("gravity", "magnetic_field")}
        usual = {"gravity": _GRAVITY, "magnetic_field": MAGNETIC_FIELD}
        fields = (usual[k] if n is None else n.text_numbers(3) for k, n in given.items())
        return world.get("name") or WORLD, *fields
    if not models:
        raise root.error("the file has neither a <world> nor a <model>")
    scope = description.add_world(root, folders, version)
    for model in models:
        alone = len(models) == 1
        description.add_model(model, scope, folders, version, alone=alone)
    return models[0].get("name"), STANDARD_GRAVITY, MAGNETIC_FIELD


class _Assembly:
    """Collects what a ``MechanismGraph`` needs, and builds the model with it."""

    def __init__(self, description, name, fields, options, report):
        self.description, self.options, self.report = description, options, report
        self.name, (self.gravity, self.field) = name, fields
        self.measure_all: list[tuple] = []  # sensors of joints
        arcs = arcs_of(description)
        self.followers = followers_of(description, arcs)
        self.arcs = [*self._static_arcs(), *arcs]
        self.links = {key: link.inertia for key, link in description.links.items()}
        for arc in arcs:  # links between the two axes of a joint have no mass
            for key in (arc.predecessor, arc.successor):
                if key != WORLD:
                    self.links.setdefault(key, Inertia.zero())
        needed = {name for f in self.followers for name in (f.joint, f.source)}
        self.connections = Connections(list(self.links), self.arcs, needed)
        self.floating = []
        taken = {arc.name for arc in self.arcs}
        for part in self.connections.apart():
            self._let_fly(part, taken)

    def _static_arcs(self):
        """Fixed joints that hold static links to the world."""
        frames, one = self.description.frames, Plucker.identity()
        for key in self.description.links:
            if key in self.description.static:
                node = self.description.links[key].node
                X = frames.between(WORLD, key)
                yield SdfArc(f"{key}_static", Fixed(), WORLD, key, X, one, None, None, node)

    def _let_fly(self, part, taken):
        """Free joint for links that are not connected to the world, at the canonical link."""
        frames, links = self.description.frames, self.description.links
        models = self.description.canonical
        named = (
            frames.link_of(k, frames.entries[k].node)
            for k in models
            if frames.entries[k].fixed_to is not None
        )
        link = next((key for key in named if key in part), None)
        link = link or next(key for key in self.links if key in part)
        name = f"{link}_floating"
        while name in taken:
            name += "_"
        taken.add(name)
        one = Plucker.identity()
        node = links[link].node if link in links else self.arcs[0].node
        arc = SdfArc(name, Free(), WORLD, link, one, one, None, None, node)
        self.arcs.append(arc)
        self.connections.add(arc)
        self.floating.append(arc)

    def model(self) -> Model:
        """Model of everything in the SDF file."""
        tree, chords, still = self.connections.choose_joints()
        for arc in still:
            if not {arc.predecessor, arc.successor} <= self.description.static | {WORLD}:
                arc.node.ignore("fixed joints hold both of its links: it cannot move")
        graph = MechanismGraph(self.name, gravity=self.gravity, base_name=WORLD)
        for key, inertia in self.links.items():
            graph.body(key, inertia=inertia)
        closing = {arc.name for arc in chords}
        for arc in (*tree, *chords):
            own = {"limits": arc.limits, "dynamics": arc.dynamics}
            ends = {"predecessor": arc.predecessor, "successor": arc.successor}
            graph.joint(arc.name, arc.joint, **ends, at=arc.X_P, successor_at=arc.X_S, **own)
        self._attach(graph, closing)
        try:
            with warnings.catch_warnings():
                # Said already, link by link and with the line.
                warnings.filterwarnings("ignore", ".*physically impossible", ModelWarning)
                model = self._without_carried_sensors(
                    graph.to_model([arc.name for arc in tree], strict=False)
                )
                return lump_fixed(model) if self.options.lump else model
        except LoadError:
            raise
        except KinetreeError as error:
            raise LoadError(f"{self.report.path}: {error}") from error

    def _attach(self, graph, chords):
        """Add couplings, actuators and sensors to the graph."""
        frames = self.description.frames
        for follower in self.followers:
            if {follower.joint, follower.source} & chords:
                raise follower.node.error(
                    "couples joints that close loops, whose variables are not part of the model"
                )
            graph.coupling(
                follower.name,
                joint=follower.joint,
                source=follower.source,
                coefficients=follower.coefficients,
            )
        for key in self.description.named:
            link = frames.link_of(key, frames.entries[key].node)
            graph.frame(key, on=link, at=frames.between(link, key))
        for key, link in self.description.links.items():
            for look in link.looks:
                look.node.tolerate(partial(self._show, graph, key, look), None)
        self._sense(graph)
        self._place(graph)

    def _sense(self, graph):
        """Add sensors of links and joints to the graph."""
        frames, taken, cameras = self.description.frames, set(), set()

        def add(sensors):
            found = gazebo.named_apart(sensors, taken)
            for s in found:
                graph.add_sensor(s)
            return {s.name for s in found}

        def of_link(node, key):
            X = self._place_on_frame(pose_in(node), key, node)
            return gazebo.on_link(node, key, X, self.field), gazebo.camera_on_link(node, key, X)

        for key, link in self.description.links.items():
            for node in link.node.all("sensor"):
                sensors, camera = node.tolerate(partial(of_link, node, key), ([], None))
                add(sensors)
                if camera is not None:
                    for found in gazebo.named_apart([camera], cameras):
                        graph.add_camera(found)

        def of_joint(node, frame, child, X):
            pose = self._place_on_frame(pose_in(node), frame, node)
            return gazebo.on_joint(node, child, X, pose)

        for joint in self.description.joints:
            for node in joint.node.all("sensor"):
                child = frames.link_of(frames.find(joint.scope, joint.child, node, "link"), node)
                X = frames.between(child, joint.frame)
                names = add(node.tolerate(partial(of_joint, node, joint.frame, child, X), []))
                self.measure_all.append((node, joint.key, names))

    def _without_carried_sensors(self, model):
        """Model without joint sensors whose joint carries another link here."""
        for node, joint, names in self.measure_all:
            bodies = [b for b in model.bodies if b.joint_name == joint]
            if names and not (bodies and not isinstance(bodies[0].joint, Reversed)):
                node.ignore("the joint closes a loop, or is turned round", effect="control")
                kept = [s for s in model.sensors if s.name not in names]
                model = model.replace(sensors=kept)
        return model

    def _place_on_frame(self, pose, key, node):
        """Placement on a frame for a pose on a link or joint."""
        if pose.relative_to is None:
            return pose.placement
        frames = self.description.frames
        other = frames.find(frames.entries[key].scope, pose.relative_to, node)
        return pose.placement @ frames.between(key, other)

    def _show(self, graph, key, look):
        """Add a shape to the graph."""
        X = self._place_on_frame(look.pose, key, look.node)
        graph.geometry(
            look.shape,
            on=key,
            at=look.turn @ X,
            name=look.name,
            visual=look.visual,
            collision=not look.visual,
            color=look.color,
            surface=look.surface,
        )

    def _place(self, graph):
        """Add a posture with the poses of free models in the SDF file."""
        poses = {}
        for arc in self.floating:
            X = self.description.frames.between(WORLD, arc.successor)
            q = [*X.r.tolist(), *quaternion_from_rotation(X.E).tolist()]
            if q != [0, 0, 0, 1, 0, 0, 0]:
                poses[arc.name] = q
        if poses:
            graph.posture("initial", q=poses)


# --- Couplings: ``<mimic>`` and gearboxes --------------------------------------------------------


class MimicJoint(NamedTuple):
    """``q = coefficients[0] + coefficients[1] q_source``, by names of joints."""

    name: str
    joint: str
    source: str
    coefficients: tuple[float, float]
    node: Node


def followers_of(description: Description, arcs: list[SdfArc]) -> list[MimicJoint]:
    """Couplings of a file: mimic joints and gearboxes."""
    by_name = {arc.name: arc for arc in arcs}
    followers = []
    for joint in description.joints:
        if joint.type == "gearbox":
            follower = _gearbox(description, joint, arcs)
        else:
            follower = _mimic(joint, by_name)
        if follower is not None:
            followers.append(follower)
    return followers


def _mimic(joint: Joint, by_name):
    """Coupling of a joint that mimics another, or None."""
    mimic = next((axis.mimic for axis in joint.axes if axis.mimic is not None), None)
    if mimic is None:
        return None
    source = joint.scope.key(mimic.source)
    if source not in by_name:
        mimic.node.ignore(f"there is no joint {mimic.source!r} to follow")
        return None
    for key in (joint.key, source):
        if by_name[key].joint.nv != 1:
            raise mimic.node.error(
                f"joint {key!r} has {by_name[key].joint.nv} degrees of freedom; only joints with "
                f"one can mimic or be mimicked"
            )
    coefficients = (mimic.offset, mimic.multiplier)
    return MimicJoint(f"{joint.key}_mimic", joint.key, source, coefficients, mimic.node)


def _gearbox(description: Description, gearbox: Joint, arcs):
    """Coupling of a gearbox, ``theta_2 = -ratio theta_1`` relative to the reference body."""
    one, two = (
        _angle(description, gearbox, link, axis, arcs)
        for link, axis in zip((gearbox.parent, gearbox.child), gearbox.axes, strict=True)
    )
    if one is None or two is None:
        gearbox.node.ignore(
            f"no revolute joint connects both of its links to {gearbox.reference!r}, so that no "
            f"two variables are coupled"
        )
        return None
    (leader, s1), (follower, s2) = one, two
    if leader == follower:
        raise gearbox.node.error("the gearbox couples a joint to itself")
    return MimicJoint(gearbox.key, follower, leader, (0.0, -gearbox.ratio * s1 / s2), gearbox.node)


def _angle(description, gearbox, link, axis, arcs):
    """Joint between a gearbox's reference body and a link, and the sign of its angle."""
    frames = description.frames
    ends = []
    for name in (gearbox.reference, link):
        key = WORLD if name == WORLD else frames.find(gearbox.scope, name, gearbox.node, "link")
        ends.append(frames.link_of(key, gearbox.node))
    for arc in arcs:
        if {arc.predecessor, arc.successor} == set(ends) and isinstance(
            arc.joint, (Revolute, Prismatic)
        ):
            # Both axes in the frame of the link that carries the gearbox.
            wanted = np.array(axis_in_joint(description, gearbox, axis), dtype=float)
            wanted = frames.between(gearbox.frame, arc.successor).E @ wanted
            along = float((arc.X_S.E.T @ np.array(arc.joint.axis, dtype=float)) @ wanted)
            if abs(along) < 0.99:
                gearbox.node.note(
                    f"axis of gearbox {gearbox.key!r}", f"it is not that of joint {arc.name!r}"
                )
            sign = 1.0 if along >= 0 else -1.0
            return arc.name, sign if arc.predecessor == ends[0] else -sign
    return None
