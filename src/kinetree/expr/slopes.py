"""The slope of every operation: the table that both ways of differentiating share."""

from kinetree.expr import simplify
from kinetree.expr.node import CONDITIONS

__all__ = ["FLAT", "SLOPES"]

FLAT = frozenset(("const", "input", "repeat", *CONDITIONS))
"""Operations without a rate of change of their own."""


def _quotient(g, i, a, b):
    inverse = simplify.div(g, g.constant(1.0), b)
    return inverse, simplify.neg(g, simplify.mul(g, i, inverse))


def _angle(g, i, y, x):
    square = simplify.add(g, simplify.mul(g, x, x), simplify.mul(g, y, y))
    inverse = simplify.div(g, g.constant(1.0), square)
    return simplify.mul(g, x, inverse), simplify.neg(g, simplify.mul(g, y, inverse))


def _saturation(g, i, a):
    return (simplify.sub(g, g.constant(1.0), simplify.mul(g, i, i)),)


def _sign(g, i, a):
    negative = simplify.compare(g, "<", a, g.constant(0.0))
    return (simplify.select(g, negative, g.constant(-1.0), g.constant(1.0)),)


SLOPES = {
    "+": lambda g, i, a, b: (g.constant(1.0), g.constant(1.0)),
    "-": lambda g, i, a, b: (g.constant(1.0), g.constant(-1.0)),
    "*": lambda g, i, a, b: (b, a),
    "neg": lambda g, i, a: (g.constant(-1.0),),
    "/": _quotient,
    "sqrt": lambda g, i, a: (simplify.div(g, g.constant(0.5), i),),
    "sin": lambda g, i, a: (simplify.unary(g, "cos", a),),
    "cos": lambda g, i, a: (simplify.neg(g, simplify.unary(g, "sin", a)),),
    "exp": lambda g, i, a: (i,),
    "log": lambda g, i, a: (simplify.div(g, g.constant(1.0), a),),
    "tanh": _saturation,
    "atan2": _angle,
    "abs": _sign,
}
"""Operation: nodes of its slopes with respect to its operands, given its own node and theirs.

A choice has no slope: its rate is the rate of what is chosen. At the corner of ``abs`` the slope is
the one from above.
"""
