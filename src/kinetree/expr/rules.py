"""Every simplification, as data: what is written, what it becomes, and what that does to rounding.

  exact     the same value, bit for bit but for the sign of zero, for all finite operands
  neutral   a value of the same accuracy: rounded once more or once less, or in another order

``x``, ``y``, ``z`` are any expressions; ``c`` and ``d`` any constants. Sums and products are
commutative, so each rule holds in either order. Finite operands are what programs check for: an
infinite one would make ``0 * x`` a NaN that the trace has long forgotten. Constants among
themselves are ordinary floats and are folded before they get here.

The rules are applied by ``kinetree.expr.simplify`` as each node is built, in constant time each:
tracing stays linear. Left alone on purpose, because it was measured to gain nothing on processors
with fused multiply-add: ``x y + x z = x (y + z)``, ``(c x) y = c (x y)``, ``-(x + y)``, and
identities of angles other than the one below.
"""

__all__ = ["EXACT", "NEUTRAL", "RULES"]

EXACT, NEUTRAL = "exact", "neutral"

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
