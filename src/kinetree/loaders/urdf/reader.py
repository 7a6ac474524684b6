"""``read_urdf``: a model from a URDF file."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from kinetree.errors import ModelWarning
from kinetree.joints import Fixed, Free
from kinetree.loaders.gazebo import camera_on_link, named_apart, on_joint, on_link
from kinetree.loaders.report import EFFECTS as IN_ORDER
from kinetree.loaders.report import Effect, Report, tag_of
from kinetree.loaders.srdf import Semantics, merged_states, read_srdf
from kinetree.loaders.urdf.drives import FileDrives, read_drives
from kinetree.loaders.urdf.elements import joint_dynamics, joint_limits, loop_ends, loop_joint
from kinetree.loaders.urdf.joints import Joint, Tree, find, leaders, read_joints
from kinetree.loaders.urdf.links import is_friction_alone, read_links
from kinetree.loaders.xml import Node, parse
from kinetree.model import (
    Body,
    Coupling,
    Frame,
    JointDynamics,
    Loop,
    Model,
    Posture,
    Pulley,
    Tendon,
    Wrap,
    lump_fixed,
)
from kinetree.model.actuator import command_vectors
from kinetree.model.gearing import FOLLOWING_TOLERANCE
from kinetree.model.geometry import Geometry
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.model.rotors import with_rotors
from kinetree.spatial import Plucker

EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(("visual", "material", "texture"), "picture"),
    **dict.fromkeys(("collision", "contact", "collision_checking", "surface"), "contact"),
    **dict.fromkeys(
        ("transmission", "ros2_control", "safety_controller", "calibration", "sensor"), "control"
    ),
    **dict.fromkeys(
        ("robot", "gazebo", "self_filter", "self_collision_checking", "@type", "@dont_collapse"),
        "setting",
    ),
    **dict.fromkeys(
        (
            "@command_effort",
            "@current",
            "@gear_velocity",
            "@acceleration",
            "@deceleration",
            "@jerk",
        ),
        "control",
    ),
    **dict.fromkeys(("link", "joint"), "motion"),
}
"""What is different without a URDF element of URDF, and without what is inside it."""


def read_urdf(source, report, folders, options) -> Model:
    """Model from a URDF text.

    The root link is the base, or with ``options.floating_base`` a body on a free joint called
    ``root_joint``. See ``kinetree.loaders.load`` for the arguments.
    """
    report.effects, report.first_counts = EFFECTS, True
    element = parse(source, report.path)
    refuse_xacro(element, report)
    robot = Node(element, report)
    if robot.tag != "robot":
        raise robot.error("the root element of a URDF file is <robot>")
    robot.get("version")
    report.check_bodies(len(element.findall("{*}link")))
    assembly = _Assembly(robot, folders, options)
    model = assembly.model()
    for node in robot.all("gazebo"):
        alone = {tag_of(e) for e in node.element.findall("*")} == {"sensor"}
        if not is_friction_alone(node) and not alone:
            _note_gazebo(node)
    report.note_unused(element)
    if assembly.srdf is not None:
        report.notices += assembly.srdf.notices
    return model


_GAZEBO: dict[str, Effect] = {
    **dict.fromkeys(("turnGravityOff", "static", "kinematic"), "motion"),
    **dict.fromkeys(("mu", "fdir1"), "contact"),
    "plugin": "control",
    **dict.fromkeys(("material", "visual"), "picture"),
}  # fmt: skip


def _note_gazebo(node):
    """Add notices about Gazebo settings that are left out, the important ones by name."""
    given = [e for e in node.element.iterfind("*") if (e.text or "").strip() not in ("false", "0")]
    tags = list(dict.fromkeys(tag_of(e) for e in given))
    tags = [tag for tag in tags if tag not in ("mu1", "mu2", "sensor")] or tags
    effects = {tag: _GAZEBO.get(tag, "setting") for tag in tags}
    effect = min(effects.values(), key=IN_ORDER.index, default="setting")
    listed = ", ".join([tag for tag in tags if effects[tag] == effect][:6])
    node.ignore("settings of a simulator" + (f": {listed}" if listed else ""), effect=effect)


class _Assembly:
    """Puts numbers to names."""

    def __init__(self, robot, folders, options):
        self.robot, self.options = robot, options
        self.links = read_links(robot, folders)
        self.joints = read_joints(robot)
        freedoms = {name: j.joint.nv for name, j in self.joints.items()}
        freedoms |= {n.need("name"): loop_joint(n).nv for n in robot.all("kinetree:loop")}
        self.drives = read_drives(robot, freedoms)
        self.joints |= _with_drives(self.joints, self.drives)
        self.tree = Tree(robot, self.links, self.joints)
        self.base = self.tree.root
        self.bodies, self.body = [], {}  # and the number of each link, and of each joint
        self.srdf, self.means = None, Semantics(root=Free if options.floating_base else None)
        if options.srdf is not None:
            about = (self.links, self.joints, self.tree.root, robot.get("name"))
            self.means, self.srdf = read_srdf(options.srdf, *about, options.floating_base)
        if self.means.root not in (None, Fixed):
            self.base = _free_name(self.means.world, "universe", self.links)
            root, joint = self.links[self.tree.root], self.means.root()
            name = _free_name(self.means.root_name, "root_joint_1", self.joints)
            self._add(Body(root.name, 0, joint, Plucker.identity(), root.inertia, name))
        else:
            self.body[self.tree.root] = 0
        for j in self.tree.joints:
            inertia = self.links[j.child].inertia
            parent = self.body[j.parent]
            rest = (j.name, j.limits, j.dynamics)
            self._add(Body(j.child, parent, j.joint, j.placement, inertia, *rest))
        self.number = {b.joint_name: i for i, b in enumerate(self.bodies, start=1)}

    def _add(self, body):
        """Append a body and register its number."""
        self.bodies.append(body)
        self.body[body.name] = len(self.bodies)

    def model(self):
        """Model of everything in the URDF file."""
        loops = self._loops()
        with warnings.catch_warnings():
            # Said already, one by one and with the line.
            warnings.filterwarnings("ignore", ".*(physically impossible|negative)", ModelWarning)
            model = Model(
                tuple(self.bodies),
                frames=self._frames(),
                loops=loops,
                couplings=self._couplings(loops),
                geometry=self._geometry(),
                actuators=self._actuators(loops),
                tendons=self._tendons(),
                gravity=self._gravity(),
                name=self.robot.get("name") or "robot",
                base_name=self.base,
                strict=self._is_possible(),
                sensors=(*self._sensors(), *self._cameras()),
                contact_pairs=self.means.pairs,
                groups=self.means.groups,
            )
            model = with_rotors(model, self._armature_of_tendons())
            if self.options.lump and any(isinstance(b.joint, Fixed) for b in self.bodies):
                model = lump_fixed(model)
            return self._with_postures(model)

    def _sensors(self):
        """Sensors of links and joints in ``<gazebo>`` elements."""
        found = []
        for gazebo in self.robot.all("gazebo"):
            name = gazebo.get("reference")
            for node in gazebo.all("sensor"):
                found += node.tolerate(partial(self._sensors_of, node, name), [])
        return tuple(named_apart(found, set()))

    def _cameras(self):
        """Cameras of links in ``<gazebo>`` elements."""
        found = []
        for gazebo in self.robot.all("gazebo"):
            name = gazebo.get("reference")
            for node in gazebo.all("sensor") if name in self.links else ():
                camera = node.tolerate(partial(self._camera_of, node, name), None)
                if camera is not None:
                    found.append(camera)
        return tuple(named_apart(found, set()))

    @staticmethod
    def _camera_of(node, name):
        """Camera on a link."""
        from kinetree.loaders.sdf.frames import pose_in  # whose package reads URDF, too

        return camera_on_link(node, name, pose_in(node).placement)

    def _sensors_of(self, node, name):
        """Sensors on the link or joint with a name."""
        from kinetree.loaders.sdf.frames import pose_in  # whose package reads URDF, too

        pose = pose_in(node).placement
        if name in self.links:
            return on_link(node, name, pose)
        if name in self.joints:
            return on_joint(node, self.joints[name].child, Plucker.identity(), pose)
        node.ignore(f"there is no link or joint {name!r}", effect="control")
        return []

    def _is_possible(self):
        """Whether all inertias and joint dynamics are physically possible."""
        dynamics = [j.dynamics for j in self.tree.joints if j.dynamics is not None]
        smallest = (
            min((*d.armature, *d.damping, *d.friction, *d.stiffness, 0.0)) for d in dynamics
        )
        return all(link.possible for link in self.links.values()) and not any(
            x < 0 for x in smallest
        )

    def _frames(self):
        """Frames for lumped fixed joints (unless a link has the name), and end effectors.

        Those are the end effectors of an SRDF file, and its name for the world.
        """
        lumped = self.tree.joints if self.options.lump else ()
        fixed = [j for j in lumped if isinstance(j.joint, Fixed)]
        taken = {*self.links, self.base}
        taken |= {j.name for j in fixed if j.node.one("kinetree:frame") is not None}
        ends = [(j.name, j.child) for j in fixed if j.name not in taken]
        if self.means.root is Fixed:
            ends.append((self.means.world, self.tree.root))
        for name, link, node in self.means.frames:
            if name in (self.base, *dict(ends)):
                node.note(f"end effector {name!r}", f"a frame has that name; use {link!r}")
            else:
                ends.append((name, link))
        return tuple(Frame(name, self.body[link]) for name, link in ends if name not in taken)

    def _loops(self):
        """Loop joints by name, from ``<kinetree:loop>``."""
        loops: dict[str, Loop] = {}
        for node in self.robot.all("kinetree:loop"):
            name = node.need("name")
            if name in self.joints or name in loops:
                raise node.error(f"the name {name!r} is taken by another joint; rename one")
            p, s = loop_ends(node)
            for end in (p, s):
                find(end.link, self.links, end.node, "link")
            bodies = self.body[p.link], self.body[s.link]
            joint = loop_joint(node)
            loops[name] = Loop(
                name,
                *bodies,
                joint,
                p.placement,
                s.placement,
                joint_limits(node, joint),
                joint_dynamics(node, joint),
                None if node.get("misalignment") is None else node.number("misalignment"),
            )
        return tuple(loops.values())

    def _couplings(self, loops):
        """Couplings of all joints that mimic others."""
        taken, couplings = {*self.joints, *(loop.name for loop in loops)}, []
        for joint, mimic in leaders(self.joints).items():
            name = f"{joint}_mimic"
            while name in taken:
                name += "_"
            taken.add(name)
            leads = self.joints[mimic.source].joint.nv == 1
            source = self.number[mimic.source] if leads else 0
            coefficients = (mimic.offset, mimic.multiplier) if leads else (mimic.offset,)
            couplings.append(Coupling(name, self.number[joint], source, coefficients))
        for node in self.robot.all("kinetree:coupling"):
            leader = node.get("source")
            joint = find(node.need("joint"), self.number, node, "joint")
            if node.get("tendon"):
                follower = Coupling(node.need("name"), joint, tendon=node.need("tendon"))
                couplings.append(follower)
                continue
            source = 0 if leader is None else find(leader, self.number, node, "joint")
            names = (node.get("sources") or "").split()
            sources = tuple(find(name, self.number, node, "joint") for name in names)
            weights = node.numbers("weights", None) if sources else ()
            law = node.numbers("coefficients", None), sources, weights
            couplings.append(Coupling(node.need("name"), joint, source, *law))
        return tuple(couplings)

    def _geometry(self):
        """Shapes of all links with their bodies' numbers."""
        return tuple(
            Geometry(
                self.body[link.name],
                look.shape,
                look.placement,
                look.name,
                look.visual,
                not look.visual,
                look.color,
                look.surface,
            )
            for link in self.links.values()
            for look in link.looks
        )

    def _actuators(self, loops):
        """Actuators of all transmissions and drives."""
        number = {loop.name: k for k, loop in enumerate(loops, start=1)}
        return tuple(
            replace(d.actuator, joint=self.number.get(d.joint, 0), loop=number.get(d.joint, 0))
            for d in self._driving()
        )

    def _driving(self):
        """Drives of joints, except those that an SRDF file calls passive."""
        for d in self.drives.drives:
            if d.joint in self.means.passive:
                why = f"joint {d.joint!r} is passive: the model has no such actuator"
                self.means.passive[d.joint].note(f"transmission {d.actuator.name!r}", why)
            else:
                yield d

    def _tendons(self):
        """Tendons of differential transmissions, and those in kinetree's extension."""
        found = [
            Tendon(name, tuple(self.number[joint] for joint in over), tuple(over.values()))
            for name, over in self.drives.tendons.items()
        ]
        for node in self.robot.all("kinetree:tendon"):
            names = (node.get("joints") or "").split()
            joints = tuple(find(name, self.number, node, "joint") for name in names)
            usual, options = Tendon("", (), ()), {}
            for key in ("offset", "lower", "upper", "stiffness", "damping", "friction"):
                options[key] = node.number(key, getattr(usual, key), finite=False)
            options["rest"] = node.numbers("rest", 2, usual.rest)
            coefficients = node.numbers("coefficients", len(joints)) if joints else ()
            options["path"] = tuple(map(_part_of_path, node.all("through", "wrap", "pulley")))
            found.append(Tendon(node.need("name"), joints, coefficients, **options))
        return tuple(found)

    def _armature_of_tendons(self):
        """Inertia along tendons, by name."""
        nodes = self.robot.all("kinetree:tendon")
        found = {node.need("name"): node.number("armature", 0.0) for node in nodes}
        return {name: x for name, x in found.items() if x}

    def _gravity(self):
        """Gravity vector of the file, or the standard one."""
        node = self.robot.one("kinetree:gravity")
        return STANDARD_GRAVITY if node is None else node.numbers("xyz", 3)

    def _with_postures(self, model):
        """Model with named states as postures."""
        number, postures = {name: i for i, name in enumerate(model.joint_names, start=1)}, []
        full = model.uncoupled
        for node in self.robot.all("kinetree:posture"):
            q, qd = full.neutral(), full.zero_velocity.copy()
            for part in node.all("joint"):
                name = part.need("name")
                find(name, self.number, part, "joint")
                if name not in number:
                    continue  # fixed, and merged
                i = number[name]
                for x, at, key in ((q, full.q_slice[i], "q"), (qd, full.v_slice[i], "qd")):
                    x[at] = part.numbers(key, at.stop - at.start, tuple(x[at]))
            moves = any(part.get("qd") is not None for part in node.all("joint"))
            commands = {
                what: {part.need("name"): part.number("value") for part in parts}
                for what, parts in (
                    ("controls", node.all("control")),
                    ("activation", node.all("activation")),
                )
            }
            commands = command_vectors(commands, model.actuators)
            postures.append(Posture(node.need("name"), q, qd if moves else (), **commands))
        postures += self._states(model, {p.name: p.q for p in postures})
        return model.replace(postures=postures) if postures else model

    def _states(self, model, taken):
        """Group states of an SRDF file as postures; other joints are neutral."""
        full, independent = model.uncoupled, model.independent_variables[0]
        for name, (positions, node) in merged_states(self.means.states).items():
            q = full.neutral()
            moving = {j: x for j, x in positions.items() if j in model.joint_names}
            for joint, x in moving.items():
                q[full.q_slice[model.joint_index(joint)]] = x
            if name in taken:
                if not np.allclose(taken[name], q, atol=FOLLOWING_TOLERANCE):
                    node.note(f"state {name!r}", "the URDF file has another posture of that name")
                continue
            lead = q[independent]
            for joint, x in moving.items():
                at = full.q_slice[model.joint_index(joint)]
                belongs = np.asarray(model.expand(lead))[at]
                if np.any(np.abs(belongs - x) > FOLLOWING_TOLERANCE * (1 + np.abs(belongs))):
                    why = f"it follows another joint, which puts it at {belongs[0]:.6g}"
                    node.note(f"joint {joint!r} of state {name!r} at {x[0]:.6g}", why)
            yield Posture(name, lead)


def _with_drives(joints, drives: FileDrives) -> dict[str, Joint]:
    """Joints with reflected rotor inertias and mimic laws from ros2_control."""
    found = {}
    for name, armature in drives.armature.items():
        j = joints[name]
        own = j.dynamics or JointDynamics()
        armature += own.armature[0] if own.armature else 0.0
        found[name] = j._replace(dynamics=replace(own, armature=armature))
    for name, mimic in drives.mimics.items():
        if name not in joints or mimic.source not in joints:
            missing = name if name not in joints else mimic.source
            mimic.node.ignore(f"the joint {missing!r} does not exist")
        elif joints[name].mimic is None:
            found[name] = found.get(name, joints[name])._replace(mimic=mimic)
    return found


def _free_name(name, instead, taken):
    """Unused name: ``name``, or ``instead`` with underscores if it is taken."""
    while name in taken:
        name, instead = instead, instead + "_"
    return name


# --- Xacro is not URDF: it is a program that writes URDF -----------------------------------------

_PROGRAM = {f"xacro:{word}" for word in ("macro", "property", "include", "arg", "if", "unless")}


def refuse_xacro(root, report: Report):
    """Raise LoadError with advice if the file is an unexpanded xacro file."""
    for element in root.iter("*"):
        found = tag_of(element) if tag_of(element) in _PROGRAM else None
        for value in element.attrib.values():
            if "${" in value or "$(" in value:
                found = value[:40]
        if found:
            raise report.error(
                element,
                f"{found!r} is xacro, a language that writes URDF. Expand the file first: "
                f"pip install xacro; xacro robot.urdf.xacro > robot.urdf",
            )


def _part_of_path(node):
    """Element of a tendon's path: frame, wrap or pulley."""
    if node.tag == "pulley":
        return Pulley(node.number("divisor"))
    if node.tag == "wrap":
        radius, side = node.number("radius"), node.get("side") or ""
        return Wrap(node.need("frame"), node.need("shape"), radius, side)
    return node.need("frame")
