"""Functions from formulas in a file: where a custom joint goes, how a prescribed one moves.

A formula keeps its text, with the values of parameters put in, so that it can be written back,
compared and pickled. It runs on numbers of any kind, like every joint.
"""

import ast
from dataclasses import dataclass

import numpy as np

from kinetree.joints.jet import Jet
from kinetree.loaders.toml.expressions import (
    CONSTANTS,
    UNITS,
    ExpressionError,
    apply,
    names_in,
    parse,
)
from kinetree.spatial import Plucker, ops
from kinetree.spatial.transform import rx, ry, rz
from kinetree.spatial.vector3 import identity3

__all__ = ["FormulaMotion", "FormulaPlacement", "formula"]

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
