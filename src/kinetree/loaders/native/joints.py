"""Joints of the native format: ``{type = "revolute", axis = "y"}``, or ``"fixed"`` alone.

What a kind is called and which keys it has is up to its class: ``AbstractJoint.spelling`` and
``from_table``. This module reads the keys.
"""

import ast
import math
from dataclasses import MISSING, dataclass
from typing import Any

import numpy as np

from kinetree.joints import AbstractJoint, known_joints
from kinetree.joints.jet import Jet
from kinetree.loaders.toml import expressions
from kinetree.loaders.toml.table import TomlTable
from kinetree.spatial import Plucker, ops
from kinetree.spatial.transform import rx, ry, rz
from kinetree.spatial.vector3 import identity3
from kinetree.spelling import did_you_mean

_DEEPEST = 8  # joints inside joints


def read_joint(table: TomlTable, key="joint", default=None, *, name=False, depth=0):
    """Joint under ``key`` of a TOML table, and its name if it may have one."""
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
    known = {c.spelling: c for c in known_joints()}
    if kind not in known:
        raise inner.error(f"unknown type {kind!r}; {did_you_mean(kind, known)}", "type")
    joint = inner.attempt(_read, known[kind], JointTable(inner, depth))
    inner.finish()
    return joint, own_name


def _read(kind, table):
    """Joint of a class from a TOML table; unit vectors are not rescaled."""
    joint = kind.from_table(table)
    for name, value in table.vectors.items():
        if getattr(joint, name, value) != value:
            part = value[:3] if any(value[:3]) else value[3:]
            size = math.sqrt(math.fsum(x * x for x in part))
            if abs(size - 1) < 1e-15:
                object.__setattr__(joint, name, tuple(map(float, value)))
    return joint


class JointTable:
    """The table of a joint in a file, as ``AbstractJoint.from_table`` reads it.

    Attributes:
        number, numbers, text, choice: values of keys, checked: see ``TomlTable``.
        vectors: axes and twists read so far, by key.
    """

    def __init__(self, table: TomlTable, depth: int):
        self.number, self.numbers, self.text = table.number, table.numbers, table.text
        self.choice = table.choice
        self.vectors: dict[str, tuple] = {}
        self._table, self._depth = table, depth

    def parameters(self, fields: Any) -> dict[str, Any]:
        """Constructor arguments of a joint class, one key for each field, read by type."""
        return {field.name: self._parameter(field) for field in fields}

    def _parameter(self, field):
        """Value of one field of a joint class, read by its type."""
        default = () if field.default is MISSING else (field.default,)
        if field.name == "axis":
            return self.axis()
        if field.type is AbstractJoint:
            return self.joint(field.name)
        if field.type is str:
            return self.text(field.name, *default)
        if field.type in (float, int):
            return self.number(field.name, *default)
        self.vectors[field.name] = self.numbers(field.name, None, *default)
        return self.vectors[field.name]

    def axis(self) -> str | tuple:
        """Axis of a joint: a letter with optional sign, or three numbers."""
        value = self._table.get("axis", "z")
        if isinstance(value, str):
            return value
        self.vectors["axis"] = self._table.as_numbers(value, "axis", 3)
        return self.vectors["axis"]

    def joint(self, key: str = "joint") -> AbstractJoint:
        """Joint nested inside this joint's table."""
        return read_joint(self._table, key, depth=self._depth + 1)[0]

    def placement_formulas(self) -> "tuple[FormulaPlacement, int]":
        """Formulas for ``at`` and ``rpy`` in joint variables, and the number of these."""
        table = self._table
        variables = tuple(table.of_kind("variables", list, ["q"]))
        for name in variables:
            if not isinstance(name, str) or not name.isidentifier() or name in expressions.RESERVED:
                raise table.error(f"{name!r} cannot name a variable", "variables")
        at, rpy = (self._formulas(key, 3, variables, [0, 0, 0]) for key in ("at", "rpy"))
        return FormulaPlacement(variables, at, rpy), len(variables)

    def motion_formulas(self, joint: AbstractJoint) -> "FormulaMotion":
        """Formulas in ``t`` for a prescribed joint's motion, velocity and acceleration."""
        table = self._table
        q, rates = self._formulas("motion", joint.nq, ("t",)), ()
        if "velocity" in table or "acceleration" in table or not joint.rates_are_velocities:
            if "velocity" not in table and not joint.rates_are_velocities:
                raise table.error(
                    f"the velocity variables of a {type(joint).__name__} joint are not derivatives "
                    f"of its position variables: give velocity and acceleration as formulas of t "
                    f"too"
                )
            names = ("velocity", "acceleration")
            rates = tuple(self._formulas(name, joint.nv, ("t",)) for name in names)
        return FormulaMotion(q, *rates)

    def _formulas(self, key, size, variables, default=None) -> Any:
        """Numbers or expressions under a key, as formulas of the variables."""
        table = self._table
        given = table.get(key, default)
        if not isinstance(given, list) or (size is not None and len(given) != size):
            count = "" if size is None else f"{size} "
            raise table.error(f"{key} must be a list of {count}numbers or expressions", key)
        try:
            return tuple(formula(x, variables, table.document.parameters) for x in given)
        except expressions.ExpressionError as error:
            raise table.error(f"{key}: {error}", key) from None
        except RecursionError:
            raise table.error(f"{key}: a formula is nested too deeply", key) from None


# --- Functions from formulas: placements of custom joints, prescribed motions --------------------
# A formula keeps its text, with the values of parameters put in, so that it can be written back,
# compared and pickled. It runs on numbers of any kind, like every joint.

_FUNCTIONS = {
    "sin": ops.sin, "cos": ops.cos, "tan": lambda x: ops.sin(x) / ops.cos(x), "sqrt": ops.sqrt,
    "exp": ops.exp, "log": ops.log, "tanh": ops.tanh, "atan2": ops.atan2,
    "atan": lambda x: ops.atan2(x, 1),
}  # fmt: skip
_LARGEST_POWER = 16


def formula(given, variables, parameters) -> str:
    """Number or expression as a formula of ``variables``, with parameters inserted.

    Raises ExpressionError for names that are neither, and for what has no derivative.
    """
    tree = expressions.parse(given if isinstance(given, str) else repr(given))
    for name in sorted(expressions.names_in(tree)):
        if name not in variables and name not in parameters:
            known = ", ".join([*variables, *parameters])
            raise expressions.ExpressionError(f"no variable or parameter {name!r}; known: {known}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.func.id not in _FUNCTIONS:  # pyright: ignore
            raise expressions.ExpressionError(
                f"a formula of a variable may use {', '.join(_FUNCTIONS)}, not {node.func.id}"  # pyright: ignore[reportAttributeAccessIssue]
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            _check_power(node.right)
    known = {**expressions.UNITS, **expressions.CONSTANTS, **parameters}
    tree = _Bound({n: v for n, v in known.items() if n not in variables}).visit(_copy(tree))
    return ast.unparse(tree)


def _check_power(node):
    """Raise ExpressionError unless an exponent is a small integer."""
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    value = sign * inner.value if isinstance(inner, ast.Constant) else None  # pyright: ignore
    if not isinstance(value, int) or abs(value) > _LARGEST_POWER:
        raise expressions.ExpressionError(
            f"a power in a formula of a variable must be an integer from -{_LARGEST_POWER} to "
            f"{_LARGEST_POWER}; there is also sqrt"
        )


def _copy(tree):
    """Copy of a syntax tree."""
    return ast.parse(ast.unparse(tree), mode="eval").body


class _Bound(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        """Replace a variable name by its value in a syntax tree."""
        return ast.Constant(self.values[node.id]) if node.id in self.values else node

    def visit_Call(self, node):
        """Substitute names in the arguments of a call, but not its function."""
        node.args = [self.visit(argument) for argument in node.args]
        return node


def _value(text, names):
    """Value of an expression for given names."""
    return expressions.apply(expressions.parse(text), names, _FUNCTIONS, number=lambda x: x)


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
        """Keys of a TOML table that describe the placement."""
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
        """Keys of a TOML table that describe the motion."""
        rates = {"velocity": self.qd, "acceleration": self.qdd} if self.qd else {}
        return {"motion": self.q, **rates}
