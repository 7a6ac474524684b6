"""Simplifications, applied as each node is built — RBDA §10.4; ``RULES`` lists them.

Each function takes node numbers of a graph and returns one. The book's four groups of rules are
all here: constants are folded and copies never arise as nodes are built, algebraic identities are
below, and what no output needs is left behind by ``Graph.reachable``.
"""

import math

from kinetree.errors import TraceError


def add(g, a, b):
    """Node of ``a + b``, simplified."""
    nodes = g.nodes
    na, nb = nodes[a], nodes[b]
    oa, ob = na[0], nb[0]
    if oa == "const":
        if ob == "const":
            return g.constant(na[1] + nb[1])
        a, b, na, nb, oa, ob = b, a, nb, na, ob, oa
    if ob == "const":
        if nb[1] == 0:
            return a  # x + 0
        if oa == "neg":
            return sub(g, b, na[1])  # -x + c
        if (oa == "+" or oa == "-") and nodes[na[1]][0] == "const":
            c = g.constant(nodes[na[1]][1] + nb[1])
            return add(g, na[2], c) if oa == "+" else sub(g, c, na[2])  # (x + c) + d, (c - x) + d
        return _new(g, ("+", b, a))
    if ob == "neg":
        return sub(g, a, nb[1])  # x + -y, -x + -y
    if oa == "neg":
        return sub(g, b, na[1])
    if a == b:
        return _new(g, ("*", g.constant(2.0), a))  # x + x
    if oa == "*" or ob == "*":
        factor = _common_factor(g, a, b, na, nb, 1.0)  # c x + d x, x + c x
        if factor is not None:
            return factor
        if oa == ob and na[1] == na[2] and nb[1] == nb[2] and _is_pythagoras(nodes, na[1], nb[1]):
            return g.constant(1.0)  # sin² x + cos² x
    return _new(g, ("+", a, b) if a < b else ("+", b, a))


def sub(g, a, b):
    """Node of ``a - b``, simplified."""
    if a == b:
        return g.constant(0.0)  # x - x
    nodes = g.nodes
    na, nb = nodes[a], nodes[b]
    oa, ob = na[0], nb[0]
    if ob == "const":
        return add(g, a, g.constant(-nb[1]))  # x - 0, x - c
    if oa == "const":
        if na[1] == 0:
            return neg(g, b)  # 0 - x
        if (ob == "+" or ob == "-") and nodes[nb[1]][0] == "const":
            c = g.constant(na[1] - nodes[nb[1]][1])
            return sub(g, c, nb[2]) if ob == "+" else add(g, nb[2], c)  # c - (x + d), c - (d - x)
    if ob == "neg":
        return add(g, a, nb[1])  # x - -y
    if oa == "neg":
        return neg(g, add(g, na[1], b))  # -x - y
    if oa == "*" or ob == "*":
        factor = _common_factor(g, a, b, na, nb, -1.0)  # c x - d x, x - c x
        if factor is not None:
            return factor
    return _new(g, ("-", a, b))


def mul(g, a, b):
    """Node of ``a b``, simplified."""
    nodes = g.nodes
    na, nb = nodes[a], nodes[b]
    if nb[0] == "const":
        a, b, na, nb = b, a, nb, na
    oa, ob = na[0], nb[0]
    if oa == "const":
        c = na[1]
        if ob == "const":
            return g.constant(c * nb[1])
        if c == 1:
            return b  # x 1
        if c == 0:
            return a  # x 0
        if c == -1:
            return neg(g, b)  # x (-1)
        if ob == "neg":
            return mul(g, g.constant(-c), nb[1])  # c (-x)
        if ob == "*" and nodes[nb[1]][0] == "const":
            return mul(g, g.constant(c * nodes[nb[1]][1]), nb[2])  # c (d x)
        return _new(g, ("*", a, b))
    if oa == "neg":
        return neg(g, mul(g, na[1], b))  # (-x) y
    if ob == "neg":
        return neg(g, mul(g, a, nb[1]))
    return _new(g, ("*", a, b) if a <= b else ("*", b, a))


def neg(g, a):
    """Node of ``-a``, simplified."""
    node = g.nodes[a]
    op = node[0]
    if op == "const":
        return g.constant(-node[1])
    if op == "neg":
        return node[1]  # -(-x)
    if op == "-":
        return _new(g, ("-", node[2], node[1]))  # -(x - y)
    if op == "*" and g.nodes[node[1]][0] == "const":
        return mul(g, g.constant(-g.nodes[node[1]][1]), node[2])  # -(c x)
    return _new(g, ("neg", a))


def div(g, a, b):
    """Node of ``a / b``: a product with the reciprocal, which quotients share."""
    na, nb = g.nodes[a], g.nodes[b]
    if nb[0] == "const":
        if nb[1] == 0:
            raise ZeroDivisionError("a traced expression is divided by the constant zero")
        if na[0] == "const":
            return g.constant(na[1] / nb[1])
        if 1e-290 < abs(nb[1]) < 1e290:  # else the reciprocal is not a good number
            return mul(g, g.constant(1 / nb[1]), a)  # x / c
        return _new(g, ("/", a, b))
    if a == b:
        return g.constant(1.0)  # x / x
    if nb[0] == "neg":
        return neg(g, div(g, a, nb[1]))  # x / -y
    one = g.constant(1.0)
    return mul(g, a, _new(g, ("/", one, b)))  # x / y, 0 / x


def _exp(x):
    """Exponential that overflows to infinity."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


_FOLD = {
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "abs": abs,
    "exp": _exp, "log": lambda x: math.log(x) if x else -math.inf, "tanh": math.tanh,
    "floor": lambda x: float(math.floor(x)) if math.isfinite(x) else x, "held": float,
}  # fmt: skip
_OF_POSITIVE = {"sqrt": "square root", "log": "logarithm"}
_ODD, _EVEN = frozenset(("sin", "tanh")), frozenset(("cos", "abs"))


def unary(g, op, a):
    """Node of a function of one number, such as ``sin``, simplified."""
    node = g.nodes[a]
    of = node[0]
    if of == "const":
        if op in _OF_POSITIVE and node[1] < 0:
            raise TraceError(
                f"the {_OF_POSITIVE[op]} of the negative constant {node[1]} was traced"
            )
        return g.constant(_FOLD[op](node[1]))
    if of == "neg":
        if op in _ODD:
            return neg(g, _new(g, (op, node[1])))  # sin(-x), tanh(-x)
        if op in _EVEN:
            return _new(g, (op, node[1]))  # cos(-x), abs(-x)
    if op == of and op in ("floor", "held"):
        return a  # floor(floor x)
    if op == "abs" and (of == "abs" or (of == "*" and node[1] == node[2])):
        return a  # abs(abs x), abs(x x)
    return _new(g, (op, a))


def atan2(g, y, x):
    """Node of the angle of the point ``(x, y)``, simplified."""
    ny, nx = g.nodes[y], g.nodes[x]
    if ny[0] == nx[0] == "const":
        return g.constant(math.atan2(ny[1], nx[1]))
    return _new(g, ("atan2", y, x))


_HOLDS = {"<": float.__lt__, "<=": float.__le__, "==": float.__eq__}


def compare(g, op, a, b):
    """Node of ``a < b``, ``a <= b`` or ``a == b``; constant 1 or 0 if known."""
    na, nb = g.nodes[a], g.nodes[b]
    if na[0] == nb[0] == "const":
        return g.constant(_HOLDS[op](na[1], nb[1]))
    if a == b:
        return g.constant(op != "<")  # x < x, x <= x, x == x
    if op == "==" and b < a:
        a, b = b, a
    return _new(g, (op, a, b))


def combine(g, op, a, b):
    """Node of ``a and b`` or ``a or b``, simplified."""
    nodes = g.nodes
    if nodes[a][0] == "const":
        a, b = b, a
    if nodes[b][0] == "const":
        return a if bool(nodes[b][1]) == (op == "and") else b  # c & True, c | True
    if a == b:
        return a  # c & c
    if nodes[a] == ("not", b) or nodes[b] == ("not", a):
        return g.constant(op == "or")  # c & ~c
    return _new(g, (op, a, b) if a < b else (op, b, a))


def negate(g, a):
    """Node of ``not a``, simplified."""
    node = g.nodes[a]
    if node[0] == "const":
        return g.constant(not node[1])
    return node[1] if node[0] == "not" else _new(g, ("not", a))  # ~~c


def select(g, condition, a, b):
    """Node of ``a`` where the condition holds, else ``b``, simplified."""
    node = g.nodes[condition]
    if node[0] == "const":
        return a if node[1] else b
    if a == b:
        return a  # select(c, x, x)
    if node[0] == "not":
        return _new(g, ("select", node[1], b, a))  # select(~c, x, y)
    return _new(g, ("select", condition, a, b))


def _new(g, key):
    """Node of an operation that needs no simplification."""
    i = g.known.get(key)
    return g.append(key) if i is None else i


def _common_factor(g, a, b, na, nb, sign):
    """Node of ``c x ± d x`` as one product, if both terms are multiples of ``x``; else None."""
    nodes = g.nodes
    c, x = (nodes[na[1]][1], na[2]) if na[0] == "*" and nodes[na[1]][0] == "const" else (1.0, a)
    d, y = (nodes[nb[1]][1], nb[2]) if nb[0] == "*" and nodes[nb[1]][0] == "const" else (1.0, b)
    return mul(g, g.constant(c + sign * d), x) if x == y else None


def _is_pythagoras(nodes, a, b):
    """Whether two nodes are sine and cosine of one angle."""
    x, y = nodes[a], nodes[b]
    return x[1:] == y[1:] and {x[0], y[0]} == {"sin", "cos"}


# --- the rules as data ---------------------------------------------------------------------------

EXACT, NEUTRAL = "exact", "neutral"
"""What a rule does to rounding: the same value but for the sign of zero, for all finite operands;
or a value of the same accuracy, rounded once more or less, or in another order."""

RULES = (
    # before, after, accuracy
    ("x + 0", "x", EXACT),
    ("x + -y", "x - y", EXACT),
    ("-x + -y", "-(x + y)", EXACT),
    ("-x + c", "c - x", EXACT),
    ("x + x", "2 * x", EXACT),
    ("(x + c) + d", "x + (c + d)", NEUTRAL),
    ("(c - x) + d", "(c + d) - x", NEUTRAL),
    ("c * x + d * x", "(c + d) * x", NEUTRAL),
    ("x + c * x", "(1 + c) * x", NEUTRAL),
    ("sin(x) * sin(x) + cos(x) * cos(x)", "1.0", NEUTRAL),
    ("x - 0", "x", EXACT),
    ("0 - x", "-x", EXACT),
    ("x - x", "0.0", EXACT),
    ("x - c", "x + -c", EXACT),
    ("x - -y", "x + y", EXACT),
    ("-x - y", "-(x + y)", EXACT),
    ("c - (x + d)", "(c - d) - x", NEUTRAL),
    ("c - (d - x)", "x + (c - d)", NEUTRAL),
    ("c * x - d * x", "(c - d) * x", NEUTRAL),
    ("x - c * x", "(1 - c) * x", NEUTRAL),
    ("x * 0", "0.0", EXACT),
    ("x * 1", "x", EXACT),
    ("x * -1", "-x", EXACT),
    ("c * (d * x)", "(c * d) * x", NEUTRAL),
    ("c * -x", "(-c) * x", EXACT),
    ("-x * y", "-(x * y)", EXACT),
    ("-(-x)", "x", EXACT),
    ("-(x - y)", "y - x", EXACT),
    ("-(c * x)", "(-c) * x", EXACT),
    ("x / c", "x * (1 / c)", NEUTRAL),
    ("x / y", "x * (1 / y)", NEUTRAL),  # one division per denominator
    ("x / x", "1.0", EXACT),
    ("x / -y", "-(x / y)", NEUTRAL),
    ("0 / x", "0.0", EXACT),
    ("sin(-x)", "-sin(x)", EXACT),
    ("cos(-x)", "cos(x)", EXACT),
    ("abs(-x)", "abs(x)", EXACT),
    ("tanh(-x)", "-tanh(x)", EXACT),
    ("abs(abs(x))", "abs(x)", EXACT),
    ("abs(x * x)", "x * x", EXACT),
    ("x < x", "False", EXACT),
    ("x <= x", "True", EXACT),
    ("x == x", "True", EXACT),
    ("~~(x < y)", "x < y", EXACT),
    ("(x < y) & (x < y)", "x < y", EXACT),
    ("(x < y) & True", "x < y", EXACT),
    ("(x < y) | True", "True", EXACT),
    ("(x < y) & ~(x < y)", "False", EXACT),
    ("select(x < y, z, z)", "z", EXACT),
    ("select(~(x < y), x, z)", "select(x < y, z, x)", EXACT),
)
"""Every simplification: what is written, what it becomes, and what that does to rounding.

``x``, ``y``, ``z`` are any expressions; ``c`` and ``d`` any constants. Sums and products are
commutative, so each rule holds in either order. Programs check that operands are finite: an
infinite one would make ``0 * x`` a NaN that the trace no longer has. Constants among themselves are
ordinary floats and are folded before they get here. Left alone on purpose, because it was measured
to gain nothing on processors with fused multiply-add: ``x y + x z = x (y + z)``, ``(c x) y = c (x
y)``, ``-(x + y)``, and identities of angles other than the one above.
"""
