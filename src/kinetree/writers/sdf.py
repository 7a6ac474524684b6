"""``to_sdf``: a model as the text of an SDF file."""

import math
from os.path import isabs
from urllib.parse import quote

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree import joints
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import InteropError, ModelWarning, warn
from kinetree.model.arrays import as_model
from kinetree.model.constraint_function import require_none_written
from kinetree.model.geometry import SHAPES, Mesh
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.model.rotors import without_rotors
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import euler_angles
from kinetree.writers.gazebo import GazeboSensors
from kinetree.writers.urdf import forward

VERSION = "1.11"  # the first with <mimic>
WORLD = "world"
INITIAL = "initial"  # the posture that the poses of floating links are
_APART = "::"
_CLOSED = 1e-9  # fraction of the size of a loop
_IN_TOML = "save it as kinetree's TOML (.toml), which holds everything"


def to_sdf(model) -> str:
    """SDF text of a model.

    Frames stay frames, and shapes on the base go to a link that is fixed to the world. Bodies
    called ``robot::link`` go into a ``<model name="robot">``; where all are in models, the file is
    a ``<world>``. The posture ``"initial"`` becomes the pose of the links that float.

    Raises:
        InteropError: for joints, loops and couplings that SDF does not have.

    Warns:
        ModelWarning: for what else it cannot hold, such as actuators and armature.
    """
    require_none_written(as_model(model), "an SDF")
    model, rotors = without_rotors(model)
    writer = _Writer(model)
    writer.lost += [f"armature of tendon {name!r}" for name in rotors]
    return writer.text()


def _free_joint_names(model) -> dict[str, str]:
    """New names of joints that have the name of a link or frame, which SDF forbids."""
    names = [*model.joint_names, *(loop.name for loop in model.loops)]
    others = {WORLD, *(b.name for b in model.bodies), *(f.name for f in model.frames)}
    taken, found = {*others, *names}, {}
    for name in names:
        if name in others:
            found[name] = f"{name}_joint"
            while found[name] in taken:
                found[name] += "_"
            taken.add(found[name])
    return found


class _Writer:
    def __init__(self, model):
        self.model, self.lost = model, []
        self.root = etree.Element("sdf", version=VERSION)
        alone = any(_APART not in b.name for b in model.bodies) or not model.bodies
        top = etree.SubElement(self.root, "model" if alone else WORLD)
        _set_name(top, model.name)
        self.scopes, self.is_world = {"": top}, not alone
        self.base_link = ""  # the frame that is written as a link, to carry shapes of the base
        self.link_names = [WORLD, *(b.name for b in model.bodies)]
        self.X_0 = self._poses()
        self.joint_names = _free_joint_names(model)
        self.links, self.joints = {}, {}  # elements by number of the body

    def text(self) -> str:
        """SDF text of the whole file."""
        model = self.model
        if self.is_world:
            _put(self.scopes[""], "gravity", model.gravity)
        elif not np.array_equal(model.gravity, STANDARD_GRAVITY):
            self.lost.append(
                f"gravity {np.asarray(model.gravity).tolist()}, which SDF has in worlds"
            )
        self._write_base()
        if not (model.bodies or any(g.body == 0 for g in model.geometry)):
            raise InteropError(
                f"model {model.name!r} has no bodies and no shapes, and SDF cannot express a model "
                f"without links; {_IN_TOML}"
            )
        for i in range(1, model.body_count + 1):
            self._write_link(i)
        for i, body in enumerate(model.bodies, start=1):
            self._write_joint(i, body)
        for loop in model.loops:
            self._write_loop(loop)
        self._write_frames()
        self._write_sensors()
        self._refuse_couplings()
        self._warn()
        etree.indent(self.root)
        declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
        return declaration + etree.tostring(self.root, encoding="unicode") + "\n"

    def _poses(self):
        """Transforms of all bodies in the pose that the file shows: joints at zero."""
        model = self.model.uncoupled
        q = np.array(model.neutral(), dtype=float)
        initial = next((p for p in model.postures if p.name == INITIAL), None)
        for i, body in enumerate(model.bodies, start=1):
            if initial is not None and isinstance(body.joint, joints.Free):
                q[model.q_slice[i]] = initial.q[model.q_slice[i]]
        return base_transforms(model, joint_transforms(model, q)[0])

    # --- scopes ------------------------------------------------------------------------------

    def _scope(self, name):
        """XML element of the (nested) model that a name belongs to, and its name there."""
        prefix, _, own = name.rpartition(_APART)
        if prefix not in self.scopes:
            outer, inner = self._scope(prefix)
            self.scopes[prefix] = etree.SubElement(outer, "model")
            _set_name(self.scopes[prefix], inner)
        return self.scopes[prefix], own

    def _scoped_name(self, name, scope, what):
        """Name of a link relative to the nested model ``scope``."""
        prefix = scope.rpartition(_APART)[0]
        if name == WORLD or not prefix:
            return name
        if not name.startswith(prefix + _APART):
            raise InteropError(
                f"{what} is in model {prefix!r}, from where SDF cannot refer to {name!r}: name it "
                f"without the prefix; or {_IN_TOML}"
            )
        return name[len(prefix) + len(_APART) :]

    # --- links and frames --------------------------------------------------------------------

    def _write_base(self):
        """Write shapes on the base as a link fixed to the world in SDF."""
        model = self.model
        shapes = [g for g in model.geometry if g.body == 0]
        if not shapes:
            return
        name = next((f.name for f in model.frames if f.body == 0 and _is_identity(f.placement)), "")
        self.base_link = name
        if not name:
            taken = {*self.link_names, *model.joint_names, *(f.name for f in model.frames)}
            name = model.base_name if model.base_name != WORLD else "ground_link"
            while name in taken:
                name += "_"
            prefix = self.link_names[1].rpartition(_APART)[0] if self.is_world else ""
            name = f"{prefix}{_APART}{name}" if prefix else name
        scope, own = self._scope(name)
        link = _named_element(scope, "link", own)
        self._write_shapes(link, shapes)
        joint = _named_element(scope, "joint", f"{own}_fixed", type="fixed")
        _put(joint, "parent", WORLD)
        _put(joint, "child", own)

    def _write_link(self, i):
        """Write body ``i`` as a link in SDF."""
        body = self.model.bodies[i - 1]
        if body.name == WORLD:
            raise InteropError(
                "body 'world': in SDF this name stands for the world; rename the body"
            )
        scope, own = self._scope(body.name)
        link = self.links[i] = _named_element(scope, "link", own)
        parent = self.link_names[body.parent]
        same = parent.rpartition(_APART)[0] == body.name.rpartition(_APART)[0]
        if body.parent and same:
            _put_pose(link, body.placement, parent.rpartition(_APART)[2])
        else:
            _put_pose(link, self.X_0[i])
        self._write_inertia(link, body)
        self._write_shapes(link, [g for g in self.model.geometry if g.body == i])

    def _write_inertia(self, link, body):
        """Write the inertia of a link in SDF."""
        I = body.inertia
        if I.mass == 0 and np.any(I.first_moment):
            raise InteropError(
                f"body {body.name!r} has a first moment without a mass, which is impossible and "
                f"which SDF cannot express; change it with model.replace(inertia=...)"
            )
        if I.mass == 0:
            self.lost.append(f"body {body.name!r} has no mass, which other programs reject")
        inertial = etree.SubElement(link, "inertial")
        if I.mass != 0:
            _put_pose(inertial, Plucker(np.eye(3), I.center_of_mass))
        _put(inertial, "mass", I.mass)
        about = I.rotational if I.mass == 0 else I.rotational_at_center
        moments = etree.SubElement(inertial, "inertia")
        for k, tag in enumerate(("ixx", "ixy", "ixz", "iyy", "iyz", "izz")):
            row, column = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))[k]
            _put(moments, tag, about[row, column])

    def _write_shapes(self, link, shapes):
        """Write shapes of a link as collisions and visuals in SDF."""
        taken: set = set()
        for g in shapes:
            if type(g.shape) not in _SHAPES:
                self.lost.append(
                    f"shape {g.name!r}: SDF has no {type(g.shape).__name__} of numbers"
                )
                continue
            for kind in ("visual", "collision"):
                if getattr(g, kind):
                    name = g.name or kind
                    while (kind, name) in taken:
                        name += "_"
                    taken.add((kind, name))
                    element = _named_element(link, kind, name)
                    _put_pose(element, g.placement)
                    _SHAPES[type(g.shape)](etree.SubElement(element, "geometry"), g.shape)
                    if kind == "visual" and g.color is not None:
                        material = etree.SubElement(element, "material")
                        _put(material, "ambient", g.color)
                        _put(material, "diffuse", g.color)
                    if kind == "collision" and g.surface is not None:
                        _put_surface(element, g.surface)

    def _write_frames(self):
        """Write frames that are not links in SDF."""
        for frame in self.model.frames:
            if frame.name == self.base_link:
                continue
            scope, own = self._scope(frame.name)
            element = _named_element(scope, "frame", own)
            on = self.link_names[frame.body]
            element.set("attached_to", self._scoped_name(on, frame.name, f"frame {frame.name!r}"))
            _put_pose(element, frame.placement)

    # --- joints ------------------------------------------------------------------------------

    def _write_joint(self, i, body):
        """Write the joint of body ``i`` in SDF."""
        what = f"joint {body.joint_name!r}"
        if isinstance(body.joint, joints.Free):
            if body.parent or not _is_identity(body.placement) or body.joint != joints.Free():
                raise InteropError(
                    f"{what} is {body.joint!r} on {self.link_names[body.parent]!r}: links of SDF "
                    f"float in the world from its origin, or not at all; {_IN_TOML}"
                )
            if body.joint_name != f"{body.name}_floating":
                self.lost.append(f"the name of {what}, which SDF does not name")
            return
        joint, ends = forward(body.joint), (self.link_names[body.parent], body.name)
        if isinstance(joint, joints.Reversed):
            joint, ends = joint.joint, ends[::-1]
        if ends[1] == WORLD:
            raise InteropError(
                f"{what} is {body.joint!r}, and SDF has no child 'world'; {_IN_TOML}"
            )
        element = self._joint(body.joint_name, joint, ends, body)
        if ends[1] == body.name:
            self.joints[i] = element
        else:  # reversed: the joint sits where the frame of our body is
            _put_pose(
                element, Plucker.identity(), self._scoped_name(body.name, body.joint_name, what)
            )
        for coupling in self.model.couplings:
            if coupling.joint == i and coupling.is_mimic:
                source = self.model.joint_names[coupling.source - 1]
                mimic = etree.SubElement(element.find("axis"), "mimic")
                source = self.joint_names.get(source, source)
                mimic.set("joint", self._scoped_name(source, body.joint_name, what))
                mimic.set("axis", "axis")
                offset, multiplier = coupling.coefficients
                _put(mimic, "multiplier", multiplier)
                _put(mimic, "offset", offset)
                _put(mimic, "reference", 0.0)

    def _write_loop(self, loop):
        """Write a loop joint in SDF."""
        what, joint = f"loop joint {loop.name!r}", loop.joint
        p, s = loop.predecessor, loop.successor
        X_p, X_s = loop.predecessor_placement, loop.successor_placement
        if isinstance(joint, joints.Reversed):
            joint, p, s, X_p, X_s = joint.joint, s, p, X_s, X_p
        if s == 0:  # the world is a parent only
            joint, p, s, X_p, X_s = forward(joints.Reversed(joint)), s, p, X_s, X_p
        X_P, X_S = X_p @ self.X_0[p], X_s @ self.X_0[s]
        turned, moved = np.max(np.abs(X_P.E - X_S.E)), np.linalg.norm(X_P.r - X_S.r)
        size = max(float(np.linalg.norm(X.r)) for X in (X_P, X_S, X_p, X_s))
        if turned > _CLOSED or moved > _CLOSED * size:
            raise InteropError(
                f"{what} is open by {moved:.3g} m and {turned:.3g} rad where all joints are at "
                f"zero, which is how SDF shows a mechanism; {_IN_TOML}"
            )
        element = self._joint(loop.name, joint, (self.link_names[p], self.link_names[s]), loop)
        _put_pose(element, X_s)

    def _joint(self, name, joint, ends, part):
        """Write a joint; an error if SDF has no such type."""
        kind, what = _TYPES.get(type(joint)), f"joint {name!r}"
        if kind is None:
            raise InteropError(
                f"{what} is {joint!r}, which SDF cannot express; it has revolute, prismatic, "
                f"screw, ball, universal and fixed joints; {_IN_TOML}"
            )
        limits = part.limits
        unbounded = limits is None or not np.any(np.isfinite((*limits.lower, *limits.upper)))
        kind = "continuous" if kind == "revolute" and unbounded else kind
        called = self.joint_names.get(name, name)
        if called != name:
            self.lost.append(f"{what} is called {called!r}: a link or frame has its name")
        scope, own = self._scope(called)
        element = _named_element(scope, "joint", own, type=kind)
        for tag, end in zip(("parent", "child"), ends, strict=True):
            _put(element, tag, self._scoped_name(end, name, what))
        if isinstance(joint, joints.Helical):
            _put(element, "screw_thread_pitch", 2 * math.pi * float(joint.pitch))
        for k, axis in enumerate(_axes(joint)):
            self._write_axis(element, ("axis", "axis2")[k], axis, k, part)
        if not _axes(joint) and (part.limits is not None or part.dynamics is not None):
            self.lost.append(f"limits and dynamics of {what}: SDF has them along axes")
        return element

    def _write_axis(self, joint, tag, xyz, k, part):
        """Write an axis of a joint with its limits and dynamics in SDF."""
        axis = etree.SubElement(joint, tag)
        _put(axis, "xyz", xyz)
        limits, dynamics = part.limits, part.dynamics
        if limits is not None:
            found = {n: getattr(limits, n) for n in ("lower", "upper", "effort", "velocity")}
            found = {n: x[k] for n, x in found.items() if x and np.isfinite(x[k])}
            if limits.effort_lower or limits.effort_upper or any(limits.effort_compensation):
                self.lost.append(
                    f"what limits the effort of joint {joint.get('name')!r} beside its size: "
                    f"different bounds in the two directions, or gravity compensation"
                )
            element = etree.SubElement(axis, "limit") if found else None
            for name, x in found.items():
                _put(element, name, x)
        if dynamics is None:
            return
        tags = {
            "damping": "damping", "friction": "friction", "rest": "spring_reference",
            "stiffness": "spring_stiffness",
        }  # fmt: skip
        element = etree.SubElement(axis, "dynamics")
        for name, tag in tags.items():
            if getattr(dynamics, name):
                _put(element, tag, getattr(dynamics, name)[k])
        if any(dynamics.armature) or dynamics.drive:
            self.lost.append(f"armature or drive of joint {joint.get('name')!r}")

    def _write_sensors(self):
        """Write the sensors that Gazebo has in SDF."""
        writes = (_named_element, _put, _put_pose)
        sensors = GazeboSensors(self.model, self.links, self.joints, writes, self.is_world)
        sensors.write()
        if self.is_world and sensors.field is not None:
            _put(self.scopes[""], "magnetic_field", sensors.field)
        left = list(sensors.left)
        if left:
            self.lost.append(f"sensors {', '.join(left[:4])}" + ", ..." * (len(left) > 4))

    def _refuse_couplings(self):
        """Raise an error for couplings that SDF cannot express."""
        for coupling in self.model.couplings:
            if not coupling.is_mimic:
                raise InteropError(
                    f"coupling {coupling.name!r} is not one joint that follows another by a factor "
                    f"and an offset, which is all that <mimic> of SDF can say; {_IN_TOML}"
                )

    def _warn(self):
        """Warn about everything in the model that SDF cannot hold."""
        whats = (
            "actuators",
            "tendons",
            "gravity_compensation",
            "fluid_forces",
            "contact_pairs",
            "groups",
        )
        for what in whats:
            if getattr(self.model, what, ()):
                self.lost.append(f"{len(getattr(self.model, what))} {what.replace('_', ' ')}")
        others = [p.name for p in self.model.postures if p.name != INITIAL]
        if others:
            self.lost.append(f"postures {', '.join(others)}")
        if self.joint_names:
            renamed = [f"{old} is {new}" for old, new in self.joint_names.items()]
            more = f" and {len(renamed) - 4} more" if len(renamed) > 4 else ""
            what = f"{', '.join(renamed[:4])}{more}"
            self.lost.append(f"names of joints that are also those of links or frames ({what})")
        if self.lost:
            warn(
                f"model {self.model.name!r}: not written, since SDF cannot hold it: "
                f"{'; '.join(dict.fromkeys(self.lost))}",
                ModelWarning,
            )


_TYPES = {
    joints.Revolute: "revolute", joints.Prismatic: "prismatic", joints.Helical: "screw",
    joints.Spherical: "ball", joints.Universal: "universal", joints.Fixed: "fixed",
}  # fmt: skip


def _axes(joint):
    """Axes of a joint, (k, 3)."""
    if isinstance(joint, joints.Universal):
        return [np.eye(3)["xyz".index(letter)] for letter in joint.axes]
    return [joint.axis] if hasattr(joint, "axis") else []


# --- Elements ------------------------------------------------------------------------------------


def _set_name(element, name):
    """Set an element's name; an error for characters that XML forbids."""
    try:
        element.set("name", name)
    except ValueError:
        raise InteropError(
            f"{name!r} holds characters that XML cannot; rename it before writing SDF"
        ) from None


def _named_element(parent, tag, name, **attributes):
    """New XML element with a name and attributes."""
    element = etree.SubElement(parent, tag)
    _set_name(element, name)
    for key, value in attributes.items():
        element.set(key, value)
    return element


def _put(parent, tag, value):
    """Append a child with text, numbers in full precision."""
    element = etree.SubElement(parent, tag)
    element.text = value if isinstance(value, str) else _numbers(value, tag)
    return element


def _numbers(values, what):
    """Numbers as text; an error for symbols."""
    try:
        numbers = [float(x) for x in np.ravel(np.asarray(values))]
    except (TypeError, ValueError):
        raise InteropError(
            f"<{what}> is {values!r}, and SDF only holds numbers; put values in place of symbols "
            f"first"
        ) from None
    return " ".join(str(int(x)) if x.is_integer() and abs(x) < 1e15 else repr(x) for x in numbers)


def _is_identity(X):
    """Whether a placement is the identity."""
    return np.array_equal(X.E, np.eye(3)) and not np.any(X.r)


def _put_pose(parent, X, relative_to=None):
    """Write a ``<pose>``, unless it is the default."""
    E, r = np.asarray(X.E, dtype=float), np.asarray(X.r, dtype=float)
    plain = np.array_equal(E, np.eye(3))
    if plain and not np.any(r) and relative_to is None:
        return
    yaw, pitch, roll = (0.0, 0.0, 0.0) if plain else euler_angles("zyx", E)
    pose = _put(parent, "pose", (*r, roll, pitch, yaw))
    if relative_to is not None:
        pose.set("relative_to", relative_to)


def _put_surface(collision, surface):
    """Write friction, restitution and collide mask of a surface."""
    parts = {
        ("friction", "ode"): {"mu": surface.friction, "mu2": surface.friction},
        ("bounce",): {"restitution_coefficient": surface.restitution},
    }
    if surface.contype == surface.conaffinity != 1:
        parts["contact",] = {"collide_bitmask": surface.contype & 0xFFFF}
    element = etree.SubElement(collision, "surface")
    for place, values in parts.items():
        if None not in values.values():
            inner = element
            for tag in place:
                inner = etree.SubElement(inner, tag)
            for tag, value in values.items():
                _put(inner, tag, value)


def _solid(parent, shape):
    """Write a solid with its sizes in SDF."""
    element = etree.SubElement(parent, shape.spelling())
    for name in shape.counts():
        _put(element, name, getattr(shape, name))


def _mesh(parent, mesh):
    """Write a mesh with its file and scale in SDF."""
    element = etree.SubElement(parent, "mesh")
    _put(element, "uri", "file://" + quote(mesh.path) if isabs(mesh.path) else mesh.path)
    _put(element, "scale", mesh.scale)


_SHAPES = {kind: _solid for kind in SHAPES if "sdf" in kind.formats} | {Mesh: _mesh}
