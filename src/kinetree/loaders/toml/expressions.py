"""Numbers as text: ``"2*length + 5 mm"``, ``"-30 deg"``, ``"sqrt(2)/2"``.

Only arithmetic on names that are known, by a list of what is allowed; nothing is ever executed
as Python. All numbers are floats, so that no expression takes long or grows large.
"""

import ast
import math
import operator
import re
import warnings
from collections import ChainMap
from collections.abc import Callable
from functools import lru_cache

from kinetree.spelling import did_you_mean

UNITS = {"rad": 1.0, "deg": math.pi / 180, "turn": 2 * math.pi, "cm": 1e-2, "mm": 1e-3}
CONSTANTS = {"pi": math.pi, "inf": math.inf}
FUNCTIONS = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "atan2": math.atan2, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "tanh": math.tanh,
    "abs": abs, "min": min, "max": max,
}  # fmt: skip
RESERVED = frozenset(UNITS) | frozenset(CONSTANTS) | frozenset(FUNCTIONS)

_LONGEST = 1000
# A unit may follow a number, a name or a bracket without a sign of multiplication: "30 deg".
_UNIT = re.compile(rf"(?<=[\w.)])\s+({'|'.join(UNITS)})(?!\w)")
_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip


class ExpressionError(ValueError):
    """An invalid expression; the message has no place in the file."""


@lru_cache(maxsize=1024)
def parse(text: str) -> ast.expr:
    """Syntax tree of an arithmetic expression; ExpressionError for anything else."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"an expression has at most {_LONGEST} characters, got {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of its style
            tree = ast.parse(_UNIT.sub(r"*\1", text.strip()), mode="eval").body
        _check(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(
            f"expected a number or an expression such as '2*length + 5 mm', got {text!r}"
        ) from None
    return tree


def _check(node):
    """Raise ExpressionError for a syntax node that is not arithmetic."""
    match node:
        case ast.Constant(value=float() | int() as value) if not isinstance(value, bool):
            return
        case ast.Name():
            return
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            _check(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            _check(left)
            _check(right)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise ExpressionError(f"no function {name!r}; {did_you_mean(name, FUNCTIONS)}")
            for argument in arguments:
                _check(argument)
        case _:
            what = type(node).__name__
            raise ExpressionError(
                f"{what} is not arithmetic; use numbers, names, + - * / **, brackets and "
                f"{', '.join(FUNCTIONS)}"
            )


def names_in(tree) -> set[str]:
    """Names of variables in an expression, without functions, units and constants."""
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - RESERVED


def evaluate(text: str, names: dict[str, float]) -> float:
    """Value of an arithmetic expression; infinite only if it contains ``inf``."""
    tree = parse(text)
    try:
        value = apply(tree, ChainMap(names, UNITS, CONSTANTS), FUNCTIONS)
    except ZeroDivisionError:
        raise ExpressionError(f"{text!r} divides by zero") from None
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None
    except OverflowError:
        raise ExpressionError(f"{text!r} is too large for a number") from None
    except (ValueError, TypeError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"{text!r} has no value: {error}") from None
    if isinstance(value, complex) or math.isnan(value):
        raise ExpressionError(f"{text!r} is not a real number")
    if math.isinf(value) and "inf" not in text:
        raise ExpressionError(f"{text!r} is too large for a number")
    return float(value)


def apply(node, names, functions, number: Callable = float):
    """Value of a checked syntax tree, for numbers and functions of any kind."""
    match node:
        case ast.Constant(value=value):
            return number(value)  # pyright: ignore[reportArgumentType]
        case ast.Name(id=name):
            if name not in names:
                known = [n for n in names if n not in RESERVED]
                raise ExpressionError(f"no parameter {name!r}; {did_you_mean(name, known)}")
            return names[name]
        case ast.UnaryOp(op=op, operand=operand):
            value = apply(operand, names, functions, number)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            a, b = (apply(x, names, functions, number) for x in (left, right))
            return _OPERATIONS[type(op)](a, b)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return functions[name](*(apply(a, names, functions, number) for a in arguments))
    raise ExpressionError(f"{type(node).__name__} is not arithmetic")
