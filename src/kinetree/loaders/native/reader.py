"""A model from the native format.

Each kind of part has its own array of tables: ``[[body]]``, ``[[frame]]``, ``[[loop]]``,
``[[coupling]]``, ``[[geometry]]``, ``[[actuator]]``, ``[[posture]]``, ``[[tendon]]``,
``[[gravity_compensation]]``, ``[[fluid_force]]``, ``[[contact_pair]]``, ``[[sensor]]``,
``[[group]]``, ``[[camera]]``.
docs/formats.md describes the keys.
"""

import re
from dataclasses import fields, replace
from typing import Any

from kinetree.errors import KinetreeError, LoadError
from kinetree.loaders.dh import read_dh_document
from kinetree.loaders.native import parts
from kinetree.loaders.native.joints import read_joint
from kinetree.loaders.toml.document import Document
from kinetree.loaders.toml.table import TomlTable, read_parameters
from kinetree.model import JointDynamics, Limits, Model, ModelBuilder
from kinetree.model.actuator import UNBOUNDED
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.model.muscle import Muscle
from kinetree.model.tendon import Pulley, Wrap

VERSION = 1
_ADDED = ("added_mass", "added_inertia")


def read_toml(source, report, folders, options) -> Model:
    """Model from a TOML file: kinetree's format, or a Denavit–Hartenberg table."""
    document = Document(source, report.path)
    if "dh" in document.data:
        return read_dh_document(document, report, options)
    bodies = document.data.get("body", ())
    report.check_bodies(len(bodies) if isinstance(bodies, list) else 0)
    top = TomlTable(document, document.data, (), "file")
    return _Reader(top, report, folders, options).model()


class _Reader:
    """Reads the arrays of tables one after another into a builder."""

    def __init__(self, top: TomlTable, report, folders, options):
        self.top, self.report, self.folders = top, report, folders
        self.strict = options.strict
        self.places: dict[str, tuple] = {}  # of everything with a name, for messages
        self.names: dict[tuple, TomlTable] = {}
        self.at_rest: set[str] = set()  # postures without velocities
        self._check_version()
        read_parameters(top, options.parameters)
        self.builder = ModelBuilder(
            top.text("name", "mechanism"),
            gravity=top.numbers("gravity", 3, STANDARD_GRAVITY),
            base_name=top.text("base", "base"),
        )

    def _check_version(self):
        """Raise LoadError unless the file's format version is supported."""
        version = self.top.get("kinetree")
        if version is None:
            raise self.top.error(
                f"this is not a kinetree model: a line 'kinetree = {VERSION}' is missing; a "
                f"Denavit-Hartenberg table has 'dh = \"modified\"' or 'dh = \"standard\"'"
            )
        if version != VERSION or isinstance(version, bool):
            raise self.top.error(
                f"kinetree = {version!r}, but this kinetree reads version {VERSION}", "kinetree"
            )

    def model(self) -> Model:
        """Build the model from all tables of the file."""
        for key in (
            "body",
            "frame",
            "loop",
            "coupling",
            "geometry",
            "actuator",
            "posture",
            "tendon",
            "gravity_compensation",
            "fluid_force",
            "contact_pair",
            "sensor",
            "group",
            "camera",
        ):
            read = getattr(self, f"_{key}")
            for table in self.top.tables(key):
                table.attempt(read, table)
                table.finish()
        self.top.finish()
        try:
            model = self.builder.build(strict=self.strict)
        except LoadError:
            raise
        except KinetreeError as error:
            raise self.top.document.error(self._place(str(error)), str(error)) from None
        postures = [replace(p, qd=()) if p.name in self.at_rest else p for p in model.postures]
        return model.replace(postures=tuple(postures)) if self.at_rest else model

    def _place(self, message):
        """Path in the file of the first part that a message names in quotes; or empty."""
        for name in re.findall(r"'([^']*)'", message):
            if name in self.places:
                return self.places[name]
        return ()

    def _new_name(self, table, *kinds):
        """Name of a table, registered as unique among parts of some kinds."""
        name = table.text("name")
        for kind in kinds:
            self._claim(kind, name, table)
        self.places.setdefault(name, table.path)
        return name

    def _claim(self, kind, name, table):
        """Register a name; LoadError if another part of the kind has it."""
        first = self.names.setdefault((kind, name), table)
        if first is not table:
            line = table.document.line(first.path)
            raise table.error(
                f"the {kind} name {name!r} is taken, on line {line}; rename one", "name"
            )

    def _body(self, table):
        """Add a body with its joint from a TOML table."""
        name = self._new_name(table, "body")
        joint, joint_name = read_joint(table, name=True)
        joint_name = f"{name}_joint" if joint_name is None else joint_name
        self._claim("joint", joint_name, table)
        self.places.setdefault(joint_name, table.path)
        self.builder.body(
            name,
            on=table.text("on", None),
            joint=joint,
            joint_name=joint_name,
            at=parts.placement(table),
            inertia=parts.read_inertia(table),
            **_of_joint(table),
        )

    def _frame(self, table):
        """Add a frame from a TOML table."""
        self.builder.frame(
            self._new_name(table, "frame"), on=table.text("on", None), at=parts.placement(table)
        )

    def _loop(self, table):
        """Add a loop from a TOML table."""
        self.builder.loop(
            self._new_name(table, "joint"),
            predecessor=table.text("predecessor"),
            successor=table.text("successor"),
            joint=read_joint(table, default="fixed")[0],
            at=parts.placement_of(table, "predecessor_at"),
            successor_at=parts.placement_of(table, "successor_at"),
            misalignment=table.number("misalignment", None),
            **_of_joint(table),
        )

    def _coupling(self, table):
        """Add a coupling from a TOML table."""
        name = self._new_name(table, "joint")
        joint, source = table.text("joint"), table.text("source", None)
        sources, tendon = table.texts("sources", ()), table.text("tendon", "")
        if tendon:
            self.builder.coupling(name, joint=joint, tendon=tendon)
            return
        if table.choice("coefficients", "ratio") == "ratio":
            coefficients = (table.number("offset", 0.0), table.number("ratio"))
        else:
            usual = (0.0, 1.0) if source or sources else (0.0,)
            coefficients = table.numbers("coefficients", None, usual)
        weights = table.numbers("weights", len(sources), (1.0,) * len(sources)) if sources else ()
        law = {"coefficients": coefficients, "weights": weights}
        self.builder.coupling(name, joint=joint, source=source, sources=sources, **law)

    def _geometry(self, table):
        """Add a shape from a TOML table."""
        shape = parts.read_shape(table, self.report, self.folders)
        options = {
            "on": table.text("on", None), "at": parts.placement(table),
            "name": table.text("name", ""),
            "visual": table.flag("visual", True), "collision": table.flag("collision", True),
            "color": parts.read_color(table), "surface": parts.read_surface(table),
            "link": table.text("link", ""),
        }  # fmt: skip
        if shape is not None:  # None: a mesh that this file may not have
            self.builder.geometry(shape, **options)

    def _actuator(self, table):
        """Add an actuator from a TOML table."""
        name = self._new_name(table, "actuator")
        ranges = ("control", "effort", "activation_range", "integral_range")
        on = {"joint": table.text("joint", None)}
        on |= {key: table.text(key, "") for key in ("tendon", "frame", "reference")}
        law = {key: table.numbers(key, None, None) for key in ("gain", "bias")}
        law |= {key: table.number(key, None) for key in ("kp", "kv")}
        law |= {key: table.numbers(key, 2, UNBOUNDED, infinite=True) for key in ranges}
        names = ("time_constant", "deactivation_time", "crank", "integral", "integral_zero")
        state: dict[str, Any] = {key: table.number(key, 0.0) for key in names}
        state["activation"] = table.text("activation", "")
        state["adhesion"] = table.flag("adhesion", False)
        state["muscle"] = self._muscle(table)
        gear = table.numbers("gear", None, (1.0,))
        self.builder.actuator(name, **on, gear=gear, **law, **state)

    def _muscle(self, table):
        """Muscle parameters of an actuator's table, or None."""
        given = table.table("muscle")
        if given is None:
            return None
        pairs = {key: given.numbers(key, 2, None) for key in ("length_range", "range")}
        names = [f.name for f in fields(Muscle) if f.name not in pairs]
        numbers = {key: given.number(key, None) for key in names} | pairs
        given.finish()
        return given.attempt(Muscle, **{key: x for key, x in numbers.items() if x is not None})

    def _posture(self, table):
        """Add a posture from a TOML table."""
        name = self._new_name(table, "posture")
        keys = ("q", "qd", "controls", "activation")
        q, qd, controls, activation = (self._by_name(table, key) for key in keys)
        if qd is None:
            self.at_rest.add(name)
        self.builder.posture(name, q=q, qd=qd, controls=controls, activation=activation)

    def _tendon(self, table):
        """Add a tendon from a TOML table."""
        joints, path = table.table("joints"), table.of_kind("path", list, [])
        if joints is None and not path:
            raise table.error(
                "tendon needs joints, such as {upper = 1.0, lower = -0.5}, or a path of frames"
            )
        self.builder.tendon(
            self._new_name(table, "tendon"),
            joints={name: joints.number(name) for name in joints.data} if joints else {},
            path=[self._part_of_path(table, x) for x in path],
            offset=table.number("offset", 0.0),
            **{name: table.number(name, 0.0) for name in ("stiffness", "damping", "friction")},
            lower=table.number("lower", UNBOUNDED[0], infinite=True),
            upper=table.number("upper", UNBOUNDED[1], infinite=True),
            rest=table.numbers("rest", None, (0.0, 0.0)),
        )

    def _part_of_path(self, table, value):
        """Element of a tendon's path: frame, wrap or pulley."""
        if isinstance(value, str):
            return value
        if not isinstance(value, dict):
            raise table.error(f"path must list names of frames and tables, got {value!r}", "path")
        part = table.inner(value, "path")
        if "divisor" in part:
            found: Any = Pulley(part.number("divisor"))
        else:
            names = part.text("frame"), part.text("shape")
            found = Wrap(*names, part.number("radius"), part.text("side", ""))
        part.finish()
        return found

    def _gravity_compensation(self, table):
        """Add gravity compensation from a TOML table."""
        center = table.numbers("center", 3, (0.0, 0.0, 0.0))
        self.builder.gravity_compensation(
            table.text("on"), mass=table.number("mass"), center=center
        )

    def _fluid_force(self, table):
        """Add a fluid force from a TOML table."""
        given = {name: table.number(name, 0.0) for name in ("density", "viscosity")}
        for name, size in (("wind", 3), ("coefficients", 5), *dict.fromkeys(_ADDED, 3).items()):
            if (values := table.numbers(name, size, None)) is not None:
                given[name] = tuple(values)
        shape, at = parts.read_shape(table, self.report, self.folders), parts.placement(table)
        self.builder.fluid_force(shape, on=table.text("on"), at=at, **given)

    def _contact_pair(self, table):
        """Add a contact pair or exclusion from a TOML table."""
        ends = table.text("first"), table.text("second")
        name, surface = table.text("name", ""), parts.read_surface(table)
        if table.flag("touch", True):
            self.builder.contact_pair(*ends, surface=surface, name=name)
        elif surface is not None:
            raise table.error("shapes that do not touch have no surface", "surface")
        else:
            self.builder.exclude(*ends, name=name)

    def _sensor(self, table):
        """Add a sensor from a TOML table."""
        shape = table.table("shape")
        rest: dict[str, Any] = {"data": tuple(table.numbers("data", None, ()))}
        rest |= {key: table.number(key, 0.0) for key in ("cutoff", "noise", "offset")}
        at = parts.placement_of(table, "reference_at")
        if at is not None:
            rest["reference_placement"] = at
        if shape is not None:
            rest["shape"] = parts.read_shape(shape, self.report, self.folders)
            shape.finish()
        self.builder.sensor(
            self._new_name(table, "sensor"),
            table.text("kind"),
            of=table.text("of", ""),
            reference=table.text("reference", ""),
            at=parts.placement(table),
            inertia=parts.read_inertia(table),
            beyond=tuple(table.texts("beyond", ())),
            **rest,
        )

    def _group(self, table):
        """Add a joint group from a TOML table."""
        name, tip = self._new_name(table, "group"), table.text("tip", "")
        self.builder.group(name, joints=table.texts("joints"), tip=tip)

    def _camera(self, table):
        """Add a camera from a TOML table."""
        rest: dict[str, Any] = {}
        if (size := table.numbers("size", 2, None)) is not None:
            rest["size"] = tuple(int(n) if n == int(n) else n for n in size)
        for key in ("angle", "near"):
            if (value := table.number(key, None)) is not None:
                rest[key] = value
        name, of = self._new_name(table, "camera"), table.text("of", "")
        self.builder.camera(name, of=of, at=parts.placement(table), **rest)

    @staticmethod
    def _by_name(table, key):
        """Numbers by name in a nested table, or None."""
        inner = table.table(key)
        if inner is None:
            return None
        return {name: inner.numbers(name, None) for name in inner.data}


def _of_joint(table):
    """Limits and dynamics of a tree or loop joint from its table."""
    return {
        "limits": _values(table, "limits", Limits),
        "dynamics": _values(table, "dynamics", JointDynamics),
    }


def _values(table, key, kind):
    """Limits or dynamics from a nested table: numbers or lists by name."""
    inner = table.table(key)
    if inner is None:
        return None
    names = [field.name for field in fields(kind)]
    given = {name: inner.numbers(name, None, (), infinite=key == "limits") for name in names}
    inner.finish()
    return inner.attempt(kind, **given)
