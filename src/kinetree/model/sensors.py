"""Sensors: what a mechanism measures of itself, in the words of MJCF.

A sensor names what it measures: a joint, a tendon, an actuator, a frame or body, a shape. Names
hold when a model is edited, so that sensors go along unchanged; those whose object is gone go, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kinetree.errors import ModelError
from kinetree.joints import Fixed
from kinetree.model.geometry import Shape
from kinetree.model.names import number_of
from kinetree.model.parts import FrozenPart
from kinetree.spatial import Inertia, Plucker
from kinetree.spelling import did_you_mean


class SensorKind(NamedTuple):
    """Common properties of sensors of a kind."""

    of: str
    """What it is a sensor of: "joint", "tendon", "actuator", "frame", "shape"; empty for all."""
    size: int
    """Numbers of a reading; 0 for as many as the joint has variables."""
    unit: str
    """Unit of the reading; that of joints is of one that turns."""
    needs: str
    """What it depends on besides q: "", "qd", "qdd", "controls" or "t".

    "contact" for those that are computed in Python, from contacts or shapes.
    """
    data: str = "real"
    """How ``cutoff`` clips readings: "real" both ways, "positive" from above, "" not at all."""
    relative: bool = False
    """Whether it can be measured with respect to a reference frame."""


KINDS = {
    "jointpos": SensorKind("joint", 0, "rad", ""), "jointvel": SensorKind("joint", 0, "rad/s",
    "qd"), "jointlimitpos": SensorKind("joint", 1, "rad", ""), "jointlimitvel": SensorKind("joint",
    1, "rad/s", "qd"), "jointactuatorfrc": SensorKind("joint", 0, "N·m", "controls"),
    "ballquat": SensorKind("joint", 4, "", "", ""), "ballangvel": SensorKind("joint", 3, "rad/s",
    "qd"), "tendonpos": SensorKind("tendon", 1, "m", ""), "tendonvel": SensorKind("tendon", 1,
    "m/s", "qd"), "tendonlimitpos": SensorKind("tendon", 1, "m", ""), "tendonlimitvel":
    SensorKind("tendon", 1, "m/s", "qd"), "tendonactuatorfrc": SensorKind("tendon", 1, "N",
    "controls"), "actuatorpos": SensorKind("actuator", 1, "rad", ""),
    "actuatorvel": SensorKind("actuator", 1, "rad/s", "qd"),
    "actuatorfrc": SensorKind("actuator", 1, "N", "controls"),
    "framepos": SensorKind("frame", 3, "m", "", relative=True),
    "framequat": SensorKind("frame", 4, "", "", "", relative=True),
    "framexaxis": SensorKind("frame", 3, "", "", "", relative=True),
    "frameyaxis": SensorKind("frame", 3, "", "", "", relative=True),
    "framezaxis": SensorKind("frame", 3, "", "", "", relative=True),
    "framelinvel": SensorKind("frame", 3, "m/s", "qd", relative=True),
    "frameangvel": SensorKind("frame", 3, "rad/s", "qd", relative=True),
    "framelinacc": SensorKind("frame", 3, "m/s²", "qdd"),
    "frameangacc": SensorKind("frame", 3, "rad/s²", "qdd"),
    "accelerometer": SensorKind("frame", 3, "m/s²", "qdd"), "gyro": SensorKind("frame", 3, "rad/s",
    "qd"), "velocimeter": SensorKind("frame", 3, "m/s", "qd"), "magnetometer": SensorKind("frame",
    3, "T", ""), "force": SensorKind("frame", 3, "N", "qdd"), "torque": SensorKind("frame", 3,
    "N·m", "qdd"), "touch": SensorKind("frame", 1, "N", "contact", "positive"),
    "rangefinder": SensorKind("frame", 1, "m", "contact"),
    "distance": SensorKind("shape", 1, "m", "contact", "", relative=True),
    "normal": SensorKind("shape", 3, "", "contact", "", relative=True),
    "fromto": SensorKind("shape", 6, "m", "contact", "", relative=True),
    "subtreecom": SensorKind("frame", 3, "m", ""), "subtreelinvel": SensorKind("frame", 3, "m/s",
    "qd"), "subtreeangmom": SensorKind("frame", 3, "N·m·s", "qd"), "e_potential": SensorKind("", 1,
    "J", ""), "e_kinetic": SensorKind("", 1, "J", "qd"), "clock": SensorKind("", 1, "s", "t"),
}  # fmt: skip
"""Kinds of sensors by name, which are those of MJCF."""

PARTIAL = ("force", "torque", "subtreecom", "subtreelinvel", "subtreeangmom")
"""Kinds that are about a body with all that it carries."""


@dataclass(frozen=True, eq=False)
class Sensor(FrozenPart):
    """A sensor; ``kinetree.sensors`` computes its readings.

    Attributes:
        name: unique name, among the sensors.
        kind: what it measures, one of ``kinetree.model.sensors.KINDS``, such as "gyro".
        of: name of the joint, tendon, actuator, frame, body or shape that it measures; empty for
            sensors of the whole mechanism.
        reference: name of the frame or body that a frame is measured with respect to, the base by
            default; of the other shape for distances.
        placement: from the coordinates of the frame ``of`` to those of the sensor.
        reference_placement: from the coordinates of ``reference`` to those of the reference frame.
        cutoff: readings beyond it, in either direction, are clipped; 0 for none.
        noise: standard deviation of the noise, in units of the reading; for information only, such
            as for filters: readings are exact.
        offset: added to the reading: for a joint, its reading where kinetree's variables are zero.
        data: numbers that the kind needs: of "magnetometer" the magnetic field in base
            coordinates, (3,); of "force" and "torque" a factor, -1 for what the child exerts on
            the parent; of limits the margin within which they count as reached.
        shape: volume around the frame in which "touch" feels contact.
        inertia: for forces and subtrees of a link that was merged into a body: inertia of the link,
            in sensor coordinates.
        beyond: names of the bodies that this link carries.
    """

    name: str
    kind: str
    of: str = ""
    reference: str = ""
    placement: Plucker = field(default_factory=Plucker.identity)
    reference_placement: Plucker = field(default_factory=Plucker.identity)
    cutoff: float = 0.0
    noise: float = 0.0
    offset: float = 0.0
    data: tuple[float, ...] = ()
    shape: Shape | None = None
    inertia: Inertia | None = None
    beyond: tuple[str, ...] = ()

    def rename(self, name: Callable[[str], str]) -> "Sensor":
        """Copy of the sensor with the function ``name`` applied to every name in it."""
        named = {k: name(getattr(self, k)) for k in ("name", "of", "reference") if getattr(self, k)}
        return replace(self, **named, beyond=tuple(map(name, self.beyond)))


def known_names(parts) -> dict:
    """Names that sensors can refer to, by kind of object (joint, tendon, ...).

    Args:
        parts: fields of a model by name: bodies, frames, actuators, tendons, geometry, base_name.
    """
    bodies = [b.name for b in parts["bodies"]]
    frames = [*(f.name for f in parts["frames"]), parts["base_name"], *bodies]
    shapes = dict.fromkeys(g.name for g in parts["geometry"] if g.name)
    return {
        "joint": [b.joint_name for b in parts["bodies"] if b.joint.nq],
        "tendon": [t.name for t in parts.get("tendons", ())],
        "actuator": [a.name for a in parts["actuators"]],
        "frame": frames,
        "shape": [*shapes, *(name for name in frames if name not in shapes)],
        "body": bodies,
    }


def measurable(sensors, parts) -> tuple:
    """Sensors whose object exists among the fields of a model."""
    if not sensors:
        return ()
    known = {kind: set(names) for kind, names in known_names(parts).items()}

    def has(s):
        kind = KINDS[s.kind].of
        return (
            (not kind or s.of in known[kind])
            and (not s.reference or s.reference in known[kind])
            and all(b in known["body"] for b in s.beyond)
        )

    return tuple(filter(has, sensors))


def check_sensors(model):
    """Raise ModelError for a sensor of an unknown kind or object."""
    if not model.sensors:
        return
    known = known_names(vars(model))
    for s in model.sensors:
        what = f"sensor {s.name!r}"
        if s.kind not in KINDS:
            raise ModelError(
                f"{what} has kind {s.kind!r}, which is not one of the kinds of sensors; "
                f"{did_you_mean(s.kind, KINDS, most=3)}"
            )
        _check_object(model, s, KINDS[s.kind], what, known)
        for name in ("cutoff", "noise"):
            if not getattr(s, name) >= 0:
                raise ModelError(f"{name} of {what} must not be negative, got {getattr(s, name)}")
        if s.kind == "magnetometer" and len(s.data) != 3:
            raise ModelError(
                f"{what} needs the magnetic field in base coordinates, data=(x, y, z) [T], got "
                f"{s.data!r}"
            )


def _check_object(model, s, kind, what, known):
    """Raise ModelError unless a sensor's object and reference suit its kind."""
    role = f"what {what} ({s.kind}) is of"
    if not kind.of:
        if s.of or s.reference:
            raise ModelError(f"{what} ({s.kind}) is of the whole mechanism, got of={s.of!r}")
        return
    number_of(s.of, known[kind.of], f"{role}, a {kind.of},", "model")
    if s.reference and not kind.relative:
        raise ModelError(f"{what} ({s.kind}) has no reference, got reference={s.reference!r}")
    if kind.of == "shape" or s.reference:
        number_of(s.reference, known[kind.of], f"the reference of {what}", "model")
    for body in s.beyond:
        number_of(body, known["body"], f"a body beyond {what}", "model")
    if kind.of == "joint":
        joint = model.bodies[model.joint_index(s.of) - 1].joint
        wrong = (
            (joint.nq, joint.nv) != (4, 3)
            if s.kind.startswith("ball")
            else "limit" in s.kind and joint.nv != 1
        )
        if wrong:
            need = "a ball joint" if s.kind.startswith("ball") else "a joint of one variable"
            raise ModelError(f"{role} must be {need}; {s.of!r} is a {type(joint).__name__}")


def size_of(model, sensor) -> int:
    """Number of scalars in a sensor's reading."""
    size = KINDS[sensor.kind].size
    if size:
        return size
    joint = model.bodies[model.joint_index(sensor.of) - 1].joint
    return joint.nq if sensor.kind == "jointpos" else joint.nv


# --- sensors of bodies that become part of others -------------------------------------------------


def lump_sensors(model) -> list[Sensor]:
    """Sensors of a model after bodies on fixed joints are merged into their parents.

    What a body carries is then a part of the new body, and of what that carries.
    """
    return [_lump(model, s) if s.kind in PARTIAL else s for s in model.sensors]


def _lump(model, s):
    """Sensor moved to the body that remains when fixed joints are lumped."""
    frame = model.frame(s.of)

    def is_merged(i):
        return i == 0 or isinstance(model.joint[i], Fixed)

    if s.inertia is None and not is_merged(frame.body):
        return s
    inertia = Inertia.zero() if s.inertia is None else s.inertia
    roots = [frame.body] if s.inertia is None else [model.body_index(b) for b in s.beyond]
    to_sensor, beyond = s.placement @ frame.placement, []
    X = {frame.body: Plucker.identity()}  # from the body of the sensor to each that is one with it
    waiting = roots[::-1]
    while waiting:
        i = waiting.pop()
        if not is_merged(i):
            beyond.append(model.body_names[i])
            continue
        if i != frame.body:
            X[i] = model.tree_transform[i] @ _between(model, X, i)
        if i:
            inertia = inertia + model.inertia[i].inverse_transformed(X[i]).transformed(to_sensor)
        waiting += model.children[i][::-1]
    return replace(s, inertia=inertia, beyond=tuple(beyond))


def _between(model, X, i):
    """Transform from a sensor's body to the parent of ``i``, across fixed joints."""
    p = model.parent[i]
    return X[p] if p in X else model.tree_transform[p] @ _between(model, X, p)


def mount_sensors(other, prefix, taken_by, at) -> list[Sensor]:
    """Sensors of a model mounted on another, with a prefix to all names.

    Args:
        other: the model.
        prefix: of its names.
        taken_by: name of the frame that carries its base, if the name of the base, with the prefix,
            is that of something else there; else empty.
        at: from that frame to the base.
    """
    found = []
    for s in other.sensors:
        new = s.rename(lambda name: prefix + name)
        if KINDS[s.kind].of == "frame":
            if s.kind in PARTIAL and s.inertia is None and other.frame(s.of).body == 0:
                carried = tuple(prefix + other.body_names[i] for i in other.children[0])
                new = replace(new, inertia=Inertia.zero(), beyond=carried)
            if taken_by and s.of == other.base_name:
                new = replace(new, of=taken_by, placement=s.placement @ at)
            if taken_by and s.reference == other.base_name:
                X = s.reference_placement @ at
                new = replace(new, reference=taken_by, reference_placement=X)
        found.append(new)
    return found
