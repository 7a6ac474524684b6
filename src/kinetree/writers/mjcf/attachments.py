"""Frames, loops, couplings, actuators, sensors and postures as MJCF."""

from dataclasses import replace

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError
from kinetree.joints import Fixed, Free, Planar, Revolute, Spherical
from kinetree.loaders.mjcf.joints import map_of
from kinetree.model.actuator import ACTIVATIONS, UNBOUNDED
from kinetree.model.limits import has_dynamics
from kinetree.model.parts import is_identity
from kinetree.model.sensors import KINDS, Sensor
from kinetree.spatial import xlt
from kinetree.writers.mjcf.elements import (
    element,
    numbers,
    parts_of,
    pose_attributes,
    range_attributes,
)
from kinetree.writers.mjcf.geoms import links_of, shape_attributes
from kinetree.writers.mjcf.sites import Sites
from kinetree.writers.mjcf.tendons import write_fixed_tendon


def write_frames(model, elements):
    """Write frames as sites, except those that are links."""
    links = links_of(model)
    for frame in model.frames:
        if frame.name in links:
            continue
        element(elements[frame.body], "site", name=frame.name, **pose_attributes(frame.placement))


def write_constraints(model, elements, root):
    """Write loops as connections between sites, couplings as equalities."""
    if not model.loops and not model.couplings:
        return
    equality = etree.SubElement(root, "equality")
    names = Sites(model, elements)
    for loop in model.loops:
        _check_without_dynamics(loop)
        ends = (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        )
        if isinstance(loop.joint, Fixed):
            _close(equality, "weld", loop.name, names, ends)
        elif isinstance(loop.joint, Spherical):
            _close(equality, "connect", loop.name, names, ends)
        elif isinstance(loop.joint, Revolute):  # two points of the axis
            for k in (0, 1):
                moved = [(b, xlt(k * np.array(loop.joint.axis, float)) @ X) for b, X in ends]
                _close(equality, "connect", f"{loop.name}_{k + 1}", names, moved)
        else:
            raise InteropError(
                f"loop joint {loop.name!r} is {loop.joint!r}; MJCF can close loops with Fixed, "
                f"Spherical and Revolute joints"
            )
    for c in model.couplings:
        if c.function is not None:
            raise InteropError(
                f"coupling {c.name!r} follows a function; an equality of MJCF is a polynomial"
            )
        if len(c.coefficients) > 5:
            raise InteropError(
                f"coupling {c.name!r} has degree {len(c.coefficients) - 1}; MJCF has up to 4"
            )
        polynomial = [*c.coefficients, *[0.0] * (5 - len(c.coefficients))]
        names = [model.joint_names[i - 1] for i in (c.joint, *c.leaders)]
        if len(names) < 3 and c.shares in ((), (1.0,)):
            ends = {"joint1": names[0], "joint2": names[1] if c.leaders else None}
            element(equality, "joint", name=c.name, **ends, polycoef=polynomial)
        else:  # of the lengths of two tendons, which do nothing else
            ends = {"tendon1": f"{c.name}_follower", "tendon2": f"{c.name}_leaders"}
            element(equality, "tendon", name=c.name, **ends, polycoef=polynomial)
            for tendon, terms in zip(
                ends.values(),
                ([(names[0], 1.0)], zip(names[1:], c.shares, strict=True)),
                strict=True,
            ):
                write_fixed_tendon(root, tendon, terms)


def write_gravity_compensation(model, elements, left_out):
    """Write gravity compensation at a body's mass centre as a fraction of its weight in MJCF."""
    for i in sorted({g.body for g in model.gravity_compensation}):
        parts = [g for g in model.gravity_compensation if g.body == i]
        mass, I = sum(g.mass for g in parts), model.inertia[i]
        moment = np.sum([g.mass * np.array(g.center) for g in parts], axis=0)
        share = mass / I.mass if i in elements and I.mass else 0
        error, size = moment - share * I.first_moment, np.max(np.abs([*I.first_moment, *moment]))
        if share and np.max(np.abs(error)) <= 1e-12 * size:
            elements[i].set("gravcomp", numbers([share]))
        else:
            left_out.append(
                f"gravity compensation of body {model.body_names[i]!r}, which is not a part of its "
                f"own weight"
            )


def _check_without_dynamics(loop):
    """Raise an error if a loop joint has springs, damping or friction."""
    for what in ("stiffness", "damping", "friction"):
        if has_dynamics(loop, what):
            raise InteropError(
                f"loop joint {loop.name!r} has {what}, which an equality of MJCF cannot have; make "
                f"it a joint of the tree (MechanismGraph.to_model(tree_joints=...))"
            )


def _close(equality, tag, name, sites, ends):
    """Write an equality between two sites in MJCF."""
    one, other = (sites.at(f"{name}_{k}", *end) for k, end in zip("ab", ends, strict=True))
    element(equality, tag, name=name, site1=one, site2=other)


def write_actuators(model, elements, root):
    """Write actuators as motors, position and velocity servos, or general ones."""
    if not model.actuators:
        return
    section = etree.SubElement(root, "actuator")
    written, sites = {e.get("name"): e for e in root.iter("joint")}, Sites(model, elements)
    for a in model.actuators:
        tag, law = _law(_shift(model, a))
        element(
            section,
            tag,
            name=a.name,
            **_end(model, a, written, sites),
            **law,
            **range_attributes("ctrlrange", a.control, "ctrllimited"),
            **range_attributes("forcerange", a.effort, "forcelimited"),
            **range_attributes("actrange", a.activation_range, "actlimited"),
        )


def _shift(model, a):
    """Actuator shifted to MuJoCo's tendon length, which is zero in the zero configuration."""
    offset = next((t.offset for t in model.tendons if t.name == a.tendon), 0.0) * a.gear[0]
    laws = {"gain": a.gain, "bias": a.bias}
    shifted = {k: (c[0] + c[1] * offset, *c[1:]) for k, c in laws.items()}
    if a.integral:
        shifted["integral_zero"] = a.integral_zero + offset
    return replace(a, **shifted)


def _law(a):
    """MJCF tag and attributes of an actuator's gain, bias and activation."""
    gain, bias = a.gain, a.bias
    if a.kind == "pid":
        return "pid", _pid(a)
    plain = not a.activation and not bias[0]
    if plain and a.kind == "motor" and gain[0] == 1:
        return "motor", {}
    if plain and a.kind == "position" and gain[0] > 0:
        return "position", {"kp": [gain[0]], "kv": [-bias[2]] if bias[2] else None}
    if plain and a.kind == "velocity" and gain[0] > 0:
        return "velocity", {"kv": [gain[0]]}
    if a.muscle is not None:
        return "general", _muscle_law(a) | _state(a)
    law = {"gainprm": gain if any(gain[1:]) else gain[:1], "biasprm": bias if any(bias) else None}
    law["gaintype"] = "affine" if any(gain[1:]) else None
    law["biastype"] = "affine" if any(bias) else None
    return "general", law | _state(a)


def _pid(a):
    """MJCF attributes of a servo with integral action or rate limit."""
    (g0, *g), (b0, b1, b2), bounds = a.gain, a.bias, a.integral_range
    servo = g0 == -b1 and not any(g) and not b0 and not a.integral_zero
    even = bounds[0] == -bounds[1] and tuple(a.activation_range) == UNBOUNDED
    if not (servo and even and a.activation in ("", "ramp")):
        raise InteropError(
            f"actuator {a.name!r} has integral action or a ramp, and a law that <pid> of MJCF has "
            f"not: kp (u - l) - kv l' + ki z, with z within ±imax and lengths from zero; write "
            f"TOML or JSON"
        )
    law = {"kp": [g0], "kv": [-b2] if b2 else None, "ki": [a.integral] if a.integral else None}
    law["imax"] = [bounds[1]] if np.isfinite(bounds[1]) else None
    law["slewmax"] = [1 / a.time_constant] if a.activation else None
    return law | {"input": "pos"}


def _state(a):
    """MJCF attributes of an activation."""
    if not a.activation:
        return {}
    activation = ACTIVATIONS[a.activation]
    if not activation.dyntype:
        raise InteropError(
            f"actuator {a.name!r} has the activation {a.activation!r}, which MJCF does not "
            f"have; write TOML or JSON, or give it another one (kinetree.edit)"
        )
    times = [a.time_constant] * activation.has_time_constant
    times += [a.deactivation_time, 0.0] * activation.falls
    return {"dyntype": activation.dyntype[0], "dynprm": times or None}


def _muscle_law(a):
    """MJCF attributes of a muscle's curves."""
    m = a.muscle
    curves = [*m.range, m.force, 1.0, m.lmin, m.lmax, m.vmax, m.fpmax, m.fvmax]
    kinds = {"gaintype": "muscle", "biastype": "muscle"}
    return {**kinds, "gainprm": curves, "biasprm": curves, "lengthrange": m.length_range}


def _end(model, a, written, sites):
    """MJCF attributes of what an actuator drives, and its gear."""
    if a.tendon:
        return {"tendon": a.tendon, "gear": a.gear}
    if a.adhesion:
        return {"body": a.frame, "gear": a.gear}
    if a.frame:
        ends = {"site": a.frame, "refsite": a.reference}
        frames = {k: model.frame(name) for k, name in ends.items() if name}
        names = {k: sites.at(f"{f.name}_site", f.body, f.placement) for k, f in frames.items()}
        if a.crank:
            of_crank = {"cranksite": names["site"], "slidersite": names["refsite"]}
            return {**of_crank, "cranklength": [a.crank], "gear": a.gear}
        return {**names, "gear": [*a.gear[3:], *a.gear[:3]]}
    if a.loop:
        raise InteropError(
            f"actuator {a.name!r} drives {model.driven_joint(a)!r}, which closes a loop; a "
            f"motor of MJCF drives joints of the tree "
            f"(MechanismGraph.to_model(tree_joints=...) chooses them)"
        )
    joint, gear = model.joint[a.joint], np.array(a.gear)
    name = model.joint_names[a.joint - 1]
    parts = parts_of(joint, name)
    driven = [p for p in parts if np.any(gear[p.v])] or list(parts[-1:])
    pushes = isinstance(joint, (Free, Planar)) and any(p.kind == "slide" for p in driven)
    if len(driven) != 1 or pushes:
        raise InteropError(
            f"actuator {a.name!r} has gear {list(a.gear)} on joint {name!r}, a "
            f"{type(joint).__name__}: a motor of MJCF acts along one variable of a joint, or "
            f"turns a ball or free joint"
        )
    gear = gear[driven[0].v]
    if isinstance(joint, Free) and name in written:
        return {"joint": name, "gear": [0, 0, 0, *gear]}
    return {"joint": driven[0].name, "gear": gear}


def write_postures(model, root, postures):
    """Write postures as keyframes, in MuJoCo's variables."""
    if not postures:
        return
    section = etree.SubElement(root, "keyframe")
    order = [e.get("name") for e in root.iter("joint") if e.getparent().tag == "body"]
    for p in postures:
        q, v, qd = {}, {}, p.qd if p.moves else np.zeros(model.nv)
        for i, joint in enumerate(model.joint[1:], start=1):
            ours, name = p.q[model.q_slice[i]], model.joint_names[i - 1]
            position = map_of(joint).to_position(ours).tolist()
            velocity = map_of(joint).to_velocity(ours, qd[model.v_slice[i]]).tolist()
            names = [name] if name in order else [x.name for x in parts_of(joint, name)]
            for k, part in enumerate(names):
                at = slice(k, k + 1 if k < len(names) - 1 else None)
                q[part], v[part] = position[at], velocity[at]
        qpos, qvel = ([x for name in order for x in part[name]] for part in (q, v))
        commands = {"ctrl": p.controls, "act": p.activation}
        element(
            section,
            "key",
            name=p.name,
            qpos=qpos,
            qvel=qvel if any(qvel) else None,
            **{k: x if x.size else None for k, x in commands.items()},
        )


def write_cameras(model, elements):
    """Write cameras on the bodies that carry them in MJCF."""
    for c in model.cameras:
        frame = model.frame(c.of or model.base_name)
        pose = pose_attributes(c.placement @ frame.placement)
        sizes = {"fovy": float(np.degrees(c.angle)), "resolution": [float(n) for n in c.size]}
        element(elements[frame.body], "camera", name=c.name, **pose, **sizes)


_AT_SITES = (
    "accelerometer", "gyro", "velocimeter", "magnetometer", "force", "torque", "touch",
    "rangefinder",
)  # fmt: skip


def write_sensors(model, elements, root, left_out):
    """Write sensors; ``left_out`` collects those that MJCF does not have."""
    if not model.sensors:
        return
    section, writer = etree.SubElement(root, "sensor"), _Writer(model, elements, root)
    for s in model.sensors:
        attributes = writer.attributes(s)
        if attributes is None:
            left_out.append(f"sensor {s.name!r} ({s.kind})")
            continue
        if s.offset:
            left_out.append(f"the offset {s.offset:.4g} of sensor {s.name!r}")
        numbers_of = {key: x for key in ("cutoff", "noise") if (x := getattr(s, key))}
        element(section, s.kind, name=s.name, **attributes, **numbers_of)
    if not len(section):
        root.remove(section)


class _Writer:
    def __init__(self, model, elements, root):
        self.model, self.elements, self.root = model, elements, root
        self.sites, self.links = Sites(model, elements), links_of(model)

    def attributes(self, s: Sensor):
        """MJCF attributes of a sensor's object; None if MJCF cannot express it."""
        of = KINDS[s.kind].of
        if s.inertia is not None or (s.data and s.kind != "magnetometer"):
            return None
        if of == "frame":
            if s.kind in _AT_SITES:
                return self._of_site(s)
            if s.kind.startswith("subtree"):
                return {"body": self._body(self.model.frame(s.of).body)}
            kind, name = self._frame(s, "of", s.placement)
            found = {"objtype": kind, "objname": name}
            if s.reference:
                kind, name = self._frame(s, "reference", s.reference_placement)
                found |= {"reftype": kind, "refname": name}
            return found
        if of == "joint":
            parts = parts_of(self.model.joint[self.model.joint_index(s.of)], s.of)
            return {"joint": parts[0].name} if len(parts) == 1 else None
        if of == "shape":
            ends = [end for end in (self._shape(s.of), self._shape(s.reference)) if end is not None]
            found = {f"{kind}{k}": name for k, (kind, name) in enumerate(ends, start=1)}
            return found if len(ends) == 2 else None
        return {of: s.of} if of else {}

    def _body(self, i):
        """MuJoCo's name of body ``i``."""
        return self.model.body_names[i] if i else "world"

    def _frame(self, s, which, placement):
        """MuJoCo's kind and name of a frame: a site or a body."""
        frame = self.model.frame(getattr(s, which))
        if is_identity(placement) and frame.name in self.model.body_names:
            return "xbody", self._body(frame.body)
        if is_identity(placement) and frame.name in self.links:
            return "xbody", frame.name
        if is_identity(placement):
            return "site", frame.name
        return "site", self.sites.at(f"{s.name}_{which}", frame.body, placement @ frame.placement)

    def _of_site(self, s):
        """MJCF attributes of a sensor on a frame, which becomes a site."""
        frame = self.model.frame(s.of)
        name = s.of
        if s.of in {*self.model.body_names, *self.links} or not is_identity(s.placement):
            name = self.sites.at(f"{s.name}_site", frame.body, s.placement @ frame.placement)
        if s.kind == "magnetometer":
            option = self.root.find("option")
            if option.get("magnetic", numbers(s.data)) != numbers(s.data):
                return None  # there is one field for all
            option.set("magnetic", numbers(s.data))
        if s.shape is not None:
            site = next(e for e in self.root.iter("site") if e.get("name") == name)
            shape = shape_attributes(s.shape)
            if site.get("type") not in (None, shape["type"]):
                return None
            site.attrib.update(shape)
        return {"site": name}

    def _shape(self, name):
        """MuJoCo's kind and name of a shape: a geom or a body."""
        if any(e.get("name") == name for e in self.root.iter("geom")):
            return "geom", name
        bodies = self.model.body_names
        return ("body", self._body(bodies.index(name))) if name in bodies else None
