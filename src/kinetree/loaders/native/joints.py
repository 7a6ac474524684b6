"""Joints of the native format: ``{type = "revolute", axis = "y"}``, or ``"fixed"`` alone."""

import ast
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree import joints as kinds
from kinetree.joints import AbstractJoint
from kinetree.joints.jet import Jet
from kinetree.loaders.toml.expressions import (
    CONSTANTS,
    RESERVED,
    UNITS,
    ExpressionError,
    apply,
    names_in,
    parse,
)
from kinetree.loaders.toml.table import Table
from kinetree.spatial import Plucker, ops
from kinetree.spatial.transform import rx, ry, rz
from kinetree.spatial.vector3 import identity3
from kinetree.spelling import did_you_mean

__all__ = ["TYPES", "read_joint"]

_DEEPEST = 8  # joints inside joints


def read_joint(table: Table, key="joint", default=None, *, name=False, depth=0):
    """The joint under ``key`` of a table, and its name if it may have one."""
    value = table.get(key, default)
    if value is None:
        raise table.error(f"has no {key!r}; such as {key} = {{type = 'revolute', axis = 'y'}}")
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, dict):
        raise table.error(f"{key} must be a table such as {{type = 'revolute', axis = 'y'}}", key)
    if depth > _DEEPEST:
        raise table.error("joints are nested too deeply", key)
    inner = table.inner(value, key)
    kind = inner.text("type")
    own_name = inner.text("name", None) if name else None
    if kind not in TYPES:
        raise inner.error(f"unknown type {kind!r}; {did_you_mean(kind, TYPES)}", "type")
    joint = inner.attempt(TYPES[kind], inner, depth)
    inner.finish()
    return joint, own_name


def _axis(table):
    value = table.get("axis", "z")
    return value if isinstance(value, str) else table.as_numbers(value, "axis", 3)


def _exactly(joint, name, value, part=slice(None)):
    """Keep a unit vector as given: to scale it to unit length once more moves its last digit."""
    if isinstance(value, tuple) and getattr(joint, name) != value:
        size = math.sqrt(math.fsum(x * x for x in value[part]))
        if abs(size - 1) < 1e-15:
            object.__setattr__(joint, name, tuple(map(float, value)))
    return joint


def _about(kind):
    def make(table, depth):
        axis = _axis(table)
        return _exactly(kind(axis), "axis", axis)

    return make


def _helical(table, depth):
    axis = _axis(table)
    return _exactly(kinds.Helical(axis, pitch=table.number("pitch")), "axis", axis)


def _planar(table, depth):
    axis = _axis(table)
    translation = table.text("translation", "parent")
    return _exactly(kinds.Planar(axis, translation=translation), "axis", axis)


def _screw(table, depth):
    if table.choice("twist", "axis") == "axis":
        point = table.numbers("point", 3, (0, 0, 0))
        return kinds.Screw.about(_axis(table), point, table.number("pitch", 0.0, infinite=True))
    twist = table.numbers("twist", 6)
    part = slice(0, 3) if any(twist[:3]) else slice(3, 6)
    return _exactly(kinds.Screw(twist), "twist", twist, part)


def _inner(table, depth) -> AbstractJoint:
    return read_joint(table, depth=depth + 1)[0]


def _formulas(table, key, size, variables, default=None) -> Any:
    """Numbers or expressions of the variables, as formulas."""
    given = table.get(key, default)
    if not isinstance(given, list) or (size is not None and len(given) != size):
        count = "" if size is None else f"{size} "
        raise table.error(f"{key} must be a list of {count}numbers or expressions", key)
    parameters = table.document.parameters
    try:
        return tuple(formula(x, variables, parameters) for x in given)
    except ExpressionError as error:
        raise table.error(f"{key}: {error}", key) from None
    except RecursionError:
        raise table.error(f"{key}: a formula is nested too deeply", key) from None


def _custom(table, depth):
    variables = tuple(table.of_kind("variables", list, ["q"]))
    for name in variables:
        if not isinstance(name, str) or not name.isidentifier() or name in RESERVED:
            raise table.error(f"{name!r} cannot name a variable", "variables")
    zero = [0, 0, 0]
    at, rpy = (_formulas(table, key, 3, variables, zero) for key in ("at", "rpy"))
    return kinds.CustomJoint(FormulaPlacement(variables, at, rpy), len(variables))


def _prescribed(table, depth):
    joint = _inner(table, depth)
    q = _formulas(table, "motion", joint.nq, ("t",))
    rates = ()
    if "velocity" in table or "acceleration" in table or not joint.rates_are_velocities:
        if "velocity" not in table and not joint.rates_are_velocities:
            raise table.error(
                f"the velocity variables of a {type(joint).__name__} joint are not derivatives of "
                f"its position variables: give velocity and acceleration as formulas of t too"
            )
        rates = tuple(_formulas(table, n, joint.nv, ("t",)) for n in ("velocity", "acceleration"))
    return kinds.Prescribed(joint, FormulaMotion(q, *rates))


def _instant(table, depth):
    joint = _inner(table, depth)
    sizes = {"q": joint.nq, "qd": joint.nv, "qdd": joint.nv}
    values = (table.numbers(name, size) for name, size in sizes.items())
    return kinds.PrescribedInstant(joint, *values)


TYPES = {
    "fixed": lambda table, depth: kinds.Fixed(),
    "revolute": _about(kinds.Revolute),
    "prismatic": _about(kinds.Prismatic),
    "helical": _helical,
    "screw": _screw,
    "cylindrical": _about(kinds.Cylindrical),
    "universal": lambda table, depth: kinds.Universal(table.text("axes", "xy")),
    "rack_and_pinion": lambda table, depth: kinds.RackAndPinion(table.number("radius")),
    "planar": _planar,
    "spherical": lambda table, depth: kinds.Spherical(),
    "euler": lambda table, depth: kinds.Euler(table.text("sequence", "zyx")),
    "exponential": lambda table, depth: kinds.Exponential(),
    "translation": lambda table, depth: kinds.Translation(),
    "sphere_in_cylinder": _about(kinds.SphereInCylinder),
    "free": lambda table, depth: kinds.Free(table.text("translation", "parent")),
    "reversed": lambda table, depth: kinds.Reversed(_inner(table, depth)),
    "custom": _custom,
    "prescribed": _prescribed,
    "prescribed_instant": _instant,
}


# --- Functions from formulas in a file: where a custom joint goes, how a prescribed one moves ----
# A formula keeps its text, with the values of parameters put in, so that it can be written back,
# compared and pickled. It runs on numbers of any kind, like every joint.

_FUNCTIONS = {
    "sin": ops.sin,
    "cos": ops.cos,
    "tan": lambda x: ops.sin(x) / ops.cos(x),
    "sqrt": ops.sqrt,
    "exp": ops.exp,
    "log": ops.log,
    "tanh": ops.tanh,
    "atan2": ops.atan2,
    "atan": lambda x: ops.atan2(x, 1),
}
_LARGEST_POWER = 16


def formula(given, variables, parameters) -> str:
    """A number or an expression as a formula of ``variables`` alone.

    Raises ExpressionError for names that are neither, and for what has no derivative.
    """
    tree = parse(given if isinstance(given, str) else repr(given))
    for name in sorted(names_in(tree)):
        if name not in variables and name not in parameters:
            known = ", ".join([*variables, *parameters])
            raise ExpressionError(f"no variable or parameter {name!r}; known: {known}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.func.id not in _FUNCTIONS:  # pyright: ignore
            raise ExpressionError(
                f"a formula of a variable may use {', '.join(_FUNCTIONS)}, not {node.func.id}"  # pyright: ignore[reportAttributeAccessIssue]
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            _check_power(node.right)
    known = {**UNITS, **CONSTANTS, **parameters}
    tree = _Bound({n: v for n, v in known.items() if n not in variables}).visit(_copy(tree))
    return ast.unparse(tree)


def _check_power(node):
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    value = sign * inner.value if isinstance(inner, ast.Constant) else None  # pyright: ignore
    if not isinstance(value, int) or abs(value) > _LARGEST_POWER:
        raise ExpressionError(
            f"a power in a formula of a variable must be a whole number from -{_LARGEST_POWER} to "
            f"{_LARGEST_POWER}; there is also sqrt"
        )


def _copy(tree):
    return ast.parse(ast.unparse(tree), mode="eval").body


class _Bound(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        return ast.Constant(self.values[node.id]) if node.id in self.values else node

    def visit_Call(self, node):
        node.args = [self.visit(argument) for argument in node.args]
        return node


def _value(text, names):
    return apply(parse(text), names, _FUNCTIONS, number=lambda x: x)


@dataclass(frozen=True)
class FormulaPlacement:
    """``X_J`` by formulas of the variables: a position and angles of roll, pitch and yaw."""

    variables: tuple[str, ...]
    at: tuple[str, str, str] = ("0", "0", "0")
    rpy: tuple[str, str, str] = ("0", "0", "0")

    def __call__(self, q):
        """``X_J`` for position variables."""
        names = dict(zip(self.variables, q, strict=True))
        r = np.array([_value(text, names) for text in self.at])
        E = identity3()
        for turn, text in zip((rz, ry, rx), self.rpy[::-1], strict=True):
            if text != "0":
                E = turn(_value(text, names)) @ E
        return Plucker(E, r)

    def to_table(self):
        """The keys that describe it in a file."""
        return {"variables": self.variables, "at": self.at, "rpy": self.rpy}


@dataclass(frozen=True)
class FormulaMotion:
    """Position variables as formulas of the time ``t`` [s]; rates by formulas or derivatives."""

    q: tuple[str, ...]
    qd: tuple[str, ...] = ()
    qdd: tuple[str, ...] = ()

    def __call__(self, t):
        """Position, velocity and acceleration variables at a time."""
        if self.qd:
            parts = (self.q, self.qd, self.qdd)
            return tuple(np.array([_value(text, {"t": t}) for text in part]) for part in parts)
        jets = [_value(text, {"t": Jet(t, 1)}) for text in self.q]
        jets = [x if isinstance(x, Jet) else Jet(x) for x in jets]
        return tuple(np.array([getattr(x, n) for x in jets]) for n in ("value", "first", "second"))

    def to_table(self):
        """The keys that describe it in a file."""
        rates = {"velocity": self.qd, "acceleration": self.qdd} if self.qd else {}
        return {"motion": self.q, **rates}
