"""Drives of the joints of a URDF file: ``<transmission>`` and ``<ros2_control>``.

The control of a motor is its force before the reduction. An interface for positions or velocities
is that of a servo, whose gains are seldom in the file: without them the actuator is a motor, too,
with a notice.
"""

from functools import partial
from typing import Any, NamedTuple

from kinetree.loaders.urdf.joints import Mimic
from kinetree.loaders.xml import Node, numbers_in
from kinetree.model import Actuator
from kinetree.model.actuator import UNBOUNDED, servo_law
from kinetree.model.muscle import Muscle

_OWN_NUMBERS = {
    "gain": 3, "bias": 3, "time_constant": 1, "deactivation_time": 1, "crank": 1, "integral": 1,
    "integral_zero": 1,
}  # fmt: skip
_OWN_TEXTS = ("activation", "tendon", "frame", "reference")
_FORCES = ("effort", "torque", "force")


class UrdfDrive(NamedTuple):
    """An actuator that drives a joint, or the tendon of its name."""

    joint: str
    actuator: Actuator


class FileDrives(NamedTuple):
    """Drives of a file."""

    drives: list[UrdfDrive]
    tendons: dict[str, dict[str, float]]
    """Coefficients by joint, of the tendons through which differentials act."""
    armature: dict[str, float]
    """Inertia of rotors seen through their gears, by joint."""
    mimics: dict[str, Mimic]
    """Joints that follow others by ``<ros2_control>`` alone."""


def read_drives(robot: Node, freedoms: dict[str, int]) -> FileDrives:
    """Actuators for transmissions and driven joints; notices for unsupported ones.

    Args:
        robot: the file.
        freedoms: degree of freedom of every joint, those that close loops included.
    """
    reader = _Reader(freedoms)
    for node in robot.all("transmission", "kinetree:actuator"):
        if node.tag == "transmission":
            node.tolerate(partial(reader.transmission, node), None)
        else:
            reader.add("", Actuator(node.need("name"), **_own_fields(node, None, (1.0,))))
    for node in robot.all("ros2_control"):
        reader.block(node)
    return FileDrives(reader.drives, reader.tendons, reader.armature, reader.mimics)


class _Reader:
    def __init__(self, freedoms):
        self.freedoms = freedoms
        self.drives: list[UrdfDrive] = []
        self.names: set[str] = set()
        self.tendons: dict = {}
        self.armature: dict = {}
        self.mimics: dict = {}

    def add(self, joint, actuator):
        """Add an actuator that drives a joint."""
        self.names.add(actuator.name)
        self.drives.append(UrdfDrive(joint, actuator))

    # --- transmissions -------------------------------------------------------------------------

    def transmission(self, node):
        """Add the actuators of a ROS transmission."""
        parts = _Parts.of(node)
        if not self._is_known(node, parts):
            return
        for name in (a.need("name") for a in parts.actuators):
            if name in self.names:
                node.ignore(f"another transmission has the actuator {name!r}")
                return
        if parts.kind == "differential":
            self._differential(node, parts)
        else:
            self._simple(parts)

    def _is_known(self, node, parts):
        """Whether a transmission is supported; adds a notice if not."""
        if parts.kind not in ("simple", "differential"):
            node.ignore(_unknown_transmission(parts))
            return False
        for name in parts.names:
            nv = self.freedoms.get(name)
            if not nv or (nv > 1 and len(parts.names) > 1):
                why = "does not exist" if nv is None else "does not move"
                why = "has several degrees of freedom" if nv else why
                node.ignore(f"the joint {name!r} that it drives {why}")
                return False
        return True

    def _simple(self, parts):
        """Add the actuator of a simple transmission."""
        actuator, (joint,) = parts.actuators[0], parts.names
        nv, own = self.freedoms[joint], actuator.one("kinetree:actuator")
        gear = (parts.reduction(actuator, parts.joints[0], parts.node),)
        fields: dict[str, Any] = {"gear": gear if nv == 1 else gear * nv}
        if own is not None:
            fields |= _own_fields(own, nv, fields["gear"])
        if own is None or not fields.keys() & {"gain", "bias"}:
            parts.note_interface()
        else:
            parts.interfaces()
        self._rotor(actuator, joint)
        self.add(joint, Actuator(actuator.need("name"), **fields))

    def _differential(self, node, parts):
        """Add differential actuators: ``tau_1 = n_1 (N_a f_a + N_b f_b)`` and its like."""
        parts.note_interface()
        one, other = (parts.reduction(j) for j in parts.joints)
        drives = [(a.need("name"), parts.reduction(a)) for a in parts.actuators]
        for (name, gear), sign in zip(drives, (1, -1), strict=True):
            self.tendons[name] = dict(zip(parts.names, (one, sign * other), strict=True))
            self.add("", Actuator(name, gear=(gear,), tendon=name))

    def _rotor(self, actuator, joint):
        """Reflected rotor inertia by Drake's extension: inertia times squared gear ratio."""
        inertia, ratio = (actuator.one(f"drake:{x}") for x in ("rotor_inertia", "gear_ratio"))
        if inertia is not None:
            n = 1.0 if ratio is None else ratio.number("value")
            found = inertia.number("value") * n**2
            self.armature[joint] = self.armature.get(joint, 0.0) + found

    # --- ros2_control --------------------------------------------------------------------------

    def block(self, node):
        """Add actuators for the joints that a ros2_control block commands."""
        for key in ("name", "type", "rw_rate", "is_async"):
            node.get(key)
        for tag, why in (
            ("hardware", "kinetree runs no drivers of hardware"),
            ("gpio", "inputs and outputs of the hardware"),
        ):
            for part in node.all(tag):
                part.ignore(why, effect="setting")
        for sensor in node.all("sensor"):
            sensor.ignore("a sensor of the hardware; sensors of a model are those of MJCF")
        through, done = {}, set()
        for part in node.all("transmission"):
            part.tolerate(partial(self._of_block, part, through, done), None)
        for part in node.all("joint"):
            part.tolerate(partial(self._read_commands, part, through, done), None)

    def _of_block(self, node, through, done):
        """Read a transmission of a ros2_control block: reductions, or a differential's tendons."""
        parts = _Parts.of(node)
        if not self._is_known(node, parts):
            return
        if parts.kind == "differential":
            if not self._has_drive(node, parts.names):
                self._differential(node, parts)
                done |= set(parts.names)
            return
        actuator = parts.actuators[0]
        n = parts.reduction(parts.joints[0], actuator, node)
        self._rotor(actuator, parts.names[0])
        through[parts.names[0]] = actuator.need("name"), n

    def _has_drive(self, node, names):
        """Whether one of the joints has an actuator already, with a notice."""
        taken = {d.joint for d in self.drives} | {j for t in self.tendons.values() for j in t}
        name = next((name for name in names if name in taken), None)
        if name is not None:
            node.ignore(f"joint {name!r} has an actuator already", effect="setting")
        return name is not None

    def _read_commands(self, node, through, done):
        """Add actuators for the command interfaces of a joint in a ros2_control block."""
        name = node.need("name")
        node.get("mimic")
        params = _params(node)
        commands = {c.need("name"): (c, _params(c)) for c in node.all("command_interface")}
        for state in node.all("state_interface"):
            state.need("name")
            _params(state)
        if "mimic" in params:
            ratio, offset = (
                _number(node, params, key, x) for key, x in (("multiplier", 1), ("offset", 0))
            )
            self.mimics[name] = Mimic(params["mimic"], ratio, offset, node)
        elif commands and name not in done and not self._has_drive(node, [name]):
            nv = self.freedoms.get(name)
            if not nv:
                why = "does not exist" if nv is None else "does not move"
                node.ignore(f"the joint {name!r} that it drives {why}")
                return
            label, n = through.get(name, (name, 1.0))
            label = name if label in self.names else label
            while label in self.names:
                label += "_"
            self.add(name, _servo(node, label, nv, n, params, commands))


# --- the parts of a transmission -----------------------------------------------------------------


class _Parts(NamedTuple):
    node: Node
    kind: str
    actuators: list[Node]
    joints: list[Node]
    names: list[str]

    @classmethod
    def of(cls, node):
        """Actuators and joints of a transmission, in the order of their roles."""
        node.get("name")
        kinds = [*node.all("type"), *node.all("plugin")]
        given = kinds[0].text() if kinds else node.get("type") or ""
        actuators, joints = (sorted(node.all(tag), key=_role) for tag in ("actuator", "joint"))
        sizes, kind = (len(actuators), len(joints)), given
        if "SimpleTransmission" in given and sizes == (1, 1):
            kind = "simple"
        elif "DifferentialTransmission" in given and sizes == (2, 2):
            kind = "differential"
        for offset in [x for part in (*actuators, *joints) for x in part.all("offset")]:
            if offset.text_numbers(1) != (0.0,):
                offset.ignore("the zero of the motor, which its force is independent of")
        return cls(node, kind, actuators, joints, [j.need("name") for j in joints])

    @staticmethod
    def reduction(*places):
        """First mechanical reduction of some elements, 1 by default."""
        tags = ("mechanicalReduction", "mechanical_reduction")
        found = [n for place in places for n in place.all(*tags)]
        return found[0].text_numbers(1)[0] if found else 1.0

    def interfaces(self):
        """Hardware interfaces of ROS 1, such as ``hardware_interface/EffortJointInterface``."""
        found = [n for x in (*self.joints, *self.actuators) for n in x.all("hardwareInterface")]
        return [(n, n.text().rpartition("/")[2].partition("Joint")[0].lower()) for n in found]

    def note_interface(self):
        """Add a notice that gains of a position or velocity interface are missing."""
        for node, kind in self.interfaces():
            if kind and not kind.startswith(_FORCES):
                node.ignore(_without_gains(kind))
                return


def _unknown_transmission(parts):
    """Reason why a transmission is not supported."""
    count = f"{len(parts.actuators)} <actuator> and {len(parts.joints)} <joint>"
    for kind, size in (("SimpleTransmission", 1), ("DifferentialTransmission", 2)):
        if kind in parts.kind:
            return f"a {kind} has {size} <actuator> and {size} <joint>; this one has {count}"
    return (
        f"a SimpleTransmission of one joint or a DifferentialTransmission of two is an actuator, "
        f"not {parts.kind or 'one without a type'}"
    )


def _role(node):
    """Role of a joint or actuator in a transmission, e.g. ``joint1``."""
    inside = node.one("role")
    return node.get("role") or "" if inside is None else inside.text()


def _without_gains(kind):
    """Reason and effect of a servo without gains, for a notice."""
    return (
        f"the gains of a {kind} servo are not in the file: the actuator is a motor, its control a "
        f"force"
    )


def _own_fields(own, nv, gear) -> dict[str, Any]:
    """Actuator fields in kinetree's extension ``<kinetree:actuator>``."""
    fields = {"gear": own.numbers("gear", nv, gear)} | {k: own.get(k, "") for k in _OWN_TEXTS}
    for key in ("control", "effort", "activation_range", "integral_range"):
        fields[key] = own.numbers(key, 2, UNBOUNDED, finite=False)
    for key, count in _OWN_NUMBERS.items():
        if own.get(key) is not None:
            found = own.numbers(key, count)
            fields[key] = found[0] if count == 1 else found
    fields["adhesion"] = own.get("adhesion", "") in ("true", "True", "1")
    if own.get("muscle") is not None:
        force, *rest = own.numbers("muscle", 10)
        fields["muscle"] = Muscle(force, tuple(rest[:2]), tuple(rest[2:4]), *rest[4:])
    return fields


# --- joints of ros2_control ----------------------------------------------------------------------


def _servo(node, name, nv, n, params, commands):
    """Actuator for a command interface: a motor for effort, a servo with given gains."""
    force = next((k for k in commands if k in _FORCES), None)
    if force is not None:
        low, high = sorted(x / n if n else x for x in _bounds(*commands[force]))
        return Actuator(name, gear=(n,) * nv, control=(low, high))
    for kind in ("position", "velocity"):
        key = next((k for k in commands if k.startswith(kind)), None)
        if key is None:
            continue
        where, own = commands[key]
        kp, kd = (_gain(where, params | own, kind, x) for x in ("p", "d"))
        if kp is None or nv > 1:
            break
        if _gain(where, params | own, kind, "i"):
            where.note(f"integral gain of joint {name!r}", "an actuator has none")
        law = servo_law(name, {}, *((kp, kd) if kind == "position" else (None, kp)))
        return Actuator(name, control=_bounds(where, own), **law)
    where = next(iter(commands.values()))[0]
    where.note(f"joint {node.need('name')!r}", _without_gains(where.need("name")))
    return Actuator(name, gear=(n,) * nv)


def _gain(node, params, kind, letter):
    """Gain of a servo under one of its usual names, such as ``kp`` or ``position_kp``."""
    for prefix in ("", f"{kind[:3]}_", f"{kind}_"):
        key = f"{prefix}k{letter}"
        if key in params:
            value = _number(node, params, key, 0, finite=True)
            if value < 0:
                raise node.error(f"parameter {key!r} must not be negative, got {value:g}")
            return value
    return None


def _bounds(node, params):
    """Smallest and largest value of a command interface."""
    low, high = (
        _number(node, params, key, x) for key, x in zip(("min", "max"), UNBOUNDED, strict=True)
    )
    if low > high:
        node.note("min and max", f"{low:g} is above {high:g}: no bounds")
        return UNBOUNDED
    return low, high


def _params(node):
    """Texts of the ``<param>`` elements by name."""
    return {p.need("name"): p.text() for p in node.all("param")}


def _number(node, params, key, default, *, finite=False):
    """Number of a parameter of a command interface."""
    if key not in params:
        return float(default)
    try:
        return numbers_in(params[key], 1, finite=finite)[0]
    except ValueError as error:
        raise node.error(f"parameter {key!r} {error}") from None
