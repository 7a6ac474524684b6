"""The contract of a back end, checked by numbers: every operation, edge values, structure.

``check_backend`` runs small programs through a back end and through ``expr.interpret``, which says
what they mean. Arithmetic must agree to the last bit, sines, exponentials and the like to a few
units in the last place. Longer programs compute with small integers, where nothing is rounded:
so they must agree to the last bit too, whatever a back end does with the order of operations.
"""

from dataclasses import dataclass, field

import numpy as np

from kinetree.codegen.program import Argument, Program, trace
from kinetree.errors import BackendError
from kinetree.expr import interpret
from kinetree.expr.node import CONDITIONS, OPERATIONS, Graph
from kinetree.expr.repeat import repeat

# What the interpreter's own functions may be off, and those of a back end.
ULPS = {"sin": 3, "cos": 3, "atan2": 4, "exp": 4, "log": 4, "tanh": 5}
_NAMES = {
    "+": "sum", "-": "difference", "*": "product", "/": "quotient",
    "<": "less", "<=": "at_most", "==": "equal",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program, and arrays with a batch axis to run it on."""

    program: Program
    """What to compute."""
    arrays: tuple
    """One for every input."""
    ulps: dict = field(default_factory=dict)
    """How far an output may be off, by its name; nothing by default."""
    signed_zeros: bool = True
    """Whether zeros must have the right sign; fused operations lose it."""


def check_backend(compile, dtypes=("float64", "float32"), seed=0):
    """Raise BackendError for the first program that a back end gets wrong.

    Args:
        compile: takes a ``Program`` and a dtype; returns a function of one array per input, with
            leading batch axes, that returns an array per output (alone, or in a tuple).
        dtypes: the precisions to check.
        seed: for random numbers and programs.
    """
    for dtype in dtypes:
        for case in cases(dtype, seed):
            _check(compile(case.program, dtype), case, dtype)


def _check(run, case, dtype):
    """Raise BackendError where compiled code and interpreter disagree about a test case."""
    arrays = [np.asarray(x, dtype) for x in case.arrays]
    with np.errstate(all="ignore"):
        actual = run(*arrays)
    actual = actual if isinstance(actual, tuple) else (actual,)
    expected = interpret.run(case.program, *arrays)
    batch = arrays[0].shape[:1]
    for output, a, e in zip(case.program.outputs, actual, expected, strict=True):
        a, e = np.asarray(a), np.broadcast_to(e, batch + output.shape).astype(dtype)
        _require(case, dtype, output, f"shape {a.shape}, expected {e.shape}", a.shape == e.shape)
        _require(case, dtype, output, f"dtype {a.dtype}, expected {dtype}", a.dtype == dtype)
        good = _agree(a, e, case.ulps.get(output.name, 0), case.signed_zeros)
        if not np.all(good):
            index = tuple(int(k) for k in np.argwhere(~good)[0])
            inputs = [x[index[0]].tolist() for x in arrays]
            text = f"{a[index]!r}, expected {e[index]!r}, at {index} for inputs {inputs}"
            _require(case, dtype, output, text, False)


def _require(case, dtype, output, text, good):
    """Raise BackendError with program, precision, output and ``text``, unless ``good``."""
    if not good:
        raise BackendError(f"program {case.program.name!r} in {dtype}: {output.name} has {text}")


def _agree(a, e, ulps, signed_zeros):
    """Elementwise: whether arrays agree within some ulps; NaN, infinities, signed zeros too."""
    with np.errstate(all="ignore"):
        near = np.abs(a - e) <= ulps * np.spacing(np.abs(e))
    same = (a == e) & ((a != 0) | (np.signbit(a) == np.signbit(e)) | (not signed_zeros))
    return same | near & (e != 0) | np.isnan(a) & np.isnan(e)


# --- the programs --------------------------------------------------------------------------------


def cases(dtype, seed=0):
    """Test programs for a back end, with input arrays: operations, conditions, shapes, loops."""
    rng = np.random.default_rng(seed)
    yield _operations(1, dtype, rng)
    yield _operations(2, dtype, rng)
    yield _conditions()
    yield from _structure()
    yield _whole_numbers(rng, 40)
    yield _whole_numbers(rng, 700)  # several blocks
    yield from _loops()


def _edge_values(dtype):
    """Finite numbers near which operations of one precision go wrong: zeros, extremes, limits."""
    info = np.finfo(dtype)
    quadrants = np.arange(1, 9) * (np.pi / 4)
    limits = 2.0 ** np.array([10, 12, 20, 21, 40])
    extreme = [info.tiny, info.tiny / 4, info.eps, info.max, np.sqrt(info.max)]
    plain = [0, 1, 0.1, 0.5, 2, 3, 88, 709]  # the last two: where exponentials end
    positive = np.concatenate([plain, quadrants, limits, limits * 1.1, extreme])
    return np.concatenate([positive, -positive]).astype(dtype)


def _operations(count, dtype, rng):
    """Test case of all unary or binary operations on edge values, random numbers and reciprocals.

    Reciprocals stand for what a program meets on the way: infinities among them.
    """
    graph = Graph()
    direct = [graph.input(name).i for name in "xy"[:count]]
    results = {}
    for prefix, operands in (
        ("", direct),
        ("inverse_", [graph.node("/", graph.number(1), x) for x in direct]),
    ):
        for op, n in OPERATIONS.items():
            if op not in ("final", "result", "and", "or", "not") and n == count:
                results[prefix + _NAMES.get(op, op)] = _number(graph, op, operands)
        if count == 2:
            less = graph.node("<", *operands)
            results[prefix + "select"] = graph.node("select", less, *operands)
    edges = _edge_values(dtype)
    scale = rng.choice([1e-3, 1.0, 30.0, 1e5], 200)
    arrays = tuple(
        np.append(grid.ravel(), rng.standard_normal(200) * scale).astype(dtype)
        for grid in np.meshgrid(*[edges] * count)
    )
    ulps = {name: ULPS.get(name.removeprefix("inverse_"), 0) for name in results}
    inputs = tuple(Argument(name, ()) for name in "xy"[:count])
    outputs = tuple(Argument(name, ()) for name in results)
    program = Program(f"operations_on_{count}", inputs, outputs, graph, tuple(results.values()))
    return Case(program, arrays, ulps)


def _number(graph, op, operands):
    """Node of an operation's result as a number; truth values become 1 or 0."""
    node = graph.node(op, *operands)
    if op in CONDITIONS:
        node = graph.node("select", node, graph.number(1), graph.number(0))
    return node


def _conditions():
    """Test case that combines comparisons by and, or, not, select, for all four outcomes."""
    graph = Graph()
    x, y = graph.input("x").i, graph.input("y").i
    a, b = graph.node("<", x, graph.number(0)), graph.node("<=", y, graph.number(0))
    combined = [graph.node(op, a, b) for op in ("and", "or")] + [graph.node("not", a)]
    combined.append(graph.node("or", combined[0], graph.node("not", combined[1])))
    roots = [graph.node("select", c, x, y) for c in combined]
    x, y = np.array([-1.0, -1, 1, 1, 0]), np.array([-2.0, 2, -2, 2, 0])
    inputs = (Argument("x", ()), Argument("y", ()))
    outputs = (Argument("out0", (len(roots),)),)
    return Case(Program("conditions", inputs, outputs, graph, tuple(roots)), (x, y))


def _structure():
    """Test cases of outputs of several shapes, constants, passed inputs and shared values."""
    inputs = [Argument("a", (2, 3)), Argument("b", ()), Argument("unused", (4,))]

    def mix(a, b, unused):
        total = a[0, 0] * b[()] + a[1, 2]
        return a.T, np.array(7.0), np.array([total, a[0, 1], total, -0.5]), b * total

    numbers = np.arange(6.0 * 5).reshape(5, 2, 3), np.arange(5.0) - 2, np.ones((5, 4))
    yield Case(trace(mix, inputs, "structure"), numbers)
    constant = trace(lambda x: np.array([[1.0, 2.0]]), [Argument("x", (2,))], "constants")
    yield Case(constant, (np.ones((3, 2)),))
    swap = trace(lambda x: x[::-1], [Argument("x", (3,))], "inputs as outputs")
    yield Case(swap, (np.arange(9.0).reshape(3, 3),))

    def sines(x):  # as a result, and on the way to one
        return np.array([np.sin(x[0]), 2 * np.cos(x[0]), np.cos(x[1]), np.sin(x[0] + x[1])])

    angles = np.linspace(-3, 3, 22).reshape(11, 2)
    yield Case(trace(sines, [Argument("x", (2,))], "sines"), (angles,), {"out0": 3})


def _whole_numbers(rng, count):
    """A random program whose values all stay integers below 2²⁰."""
    graph = Graph()
    nodes = [(graph.input("x", (k,)).i, 9) for k in range(6)]  # with a bound on their size
    for _ in range(count):
        recent = len(nodes) - 60 if rng.random() < 0.9 else 0  # mostly, with some old ones
        first, second = rng.integers(max(recent, 0), len(nodes), 2)
        nodes.append(_whole_number(graph, rng, nodes, nodes[first], nodes[second]))
    roots = tuple(i for i, _ in nodes[-18:])
    outputs = (Argument("out0", (3, 4)), Argument("out1", (6,)))
    program = Program(f"operations_{count}", (Argument("x", (6,)),), outputs, graph, roots)
    return Case(program, (rng.integers(-9, 10, (13, 6)).astype(float),), signed_zeros=False)


def _whole_number(graph, rng, nodes, first, second):
    """Node of a random integer operation on two nodes, with a bound of its size."""
    (a, size_a), (b, size_b) = first, second
    op = rng.choice(["+", "-", "*", "neg", "abs", "select"])
    if op in ("neg", "abs"):
        return graph.node(op, a), size_a
    if op == "select":
        return graph.node("select", graph.node("<", a, b), b, a), max(size_a, size_b)
    size = size_a * size_b if op == "*" else size_a + size_b
    if size >= 2**20:
        positive = graph.node("<=", graph.number(0), a)
        return graph.node("select", positive, nodes[0][0], nodes[1][0]), 9
    return graph.node(str(op), a, b), size


def _loops():
    """Test cases of loops: with a fixed count, a count per sample, and nested."""
    numbers = np.arange(-4.0, 10.0).reshape(7, 2)

    def fixed_count(x):
        return repeat(lambda s: np.array([s[1], s[0] + s[1]]), x, 7)

    yield Case(trace(fixed_count, [Argument("x", (2,))], "loop"), (numbers,))

    def given_count(x, n):
        return repeat(lambda s: np.array([2 * s[0], s[1] - x[0]]), x, n[()])

    counts = np.array([0.0, 1, 5, 2, 3, 1, 4])
    inputs = [Argument("x", (2,)), Argument("n", ())]
    yield Case(trace(given_count, inputs, "loop of chosen length"), (numbers, counts))

    def loop_in_loop(x):
        def outer(s):
            inner = repeat(lambda t: t + s[1], s[0], 3)
            return np.array([inner, s[1] + x[0]])

        return repeat(outer, x, 4)

    yield Case(trace(loop_in_loop, [Argument("x", (2,))], "nested loops"), (numbers,))
