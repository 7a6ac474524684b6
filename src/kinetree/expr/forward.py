"""Copying expressions with some nodes replaced, and forward accumulation of derivatives.

Copies are simplified again on the way. In forward accumulation every node carries its rates along
the directions that move it. A loop becomes one that carries the rates along, too: a copy, since the
values that the rates need inside it are its own.
"""

from kinetree.expr import simplify
from kinetree.expr.calls import Rates
from kinetree.expr.node import CONDITIONS, LEAVES
from kinetree.expr.repeat import loop_of

_RULES = {"+": simplify.add, "-": simplify.sub, "*": simplify.mul, "/": simplify.div}
_RULES |= {"neg": simplify.neg, "not": simplify.negate, "select": simplify.select}
_RULES |= {"atan2": simplify.atan2}


def substitute(source, roots, values, target=None):
    """Copy the computation of ``roots`` into ``target``, with values for some nodes; new nodes.

    Args:
        source: a graph.
        roots: node numbers of it.
        values: from node of ``source`` to the node of ``target`` that takes its place. Inputs that
            are not among them are inputs of the target by the same name.
        target: another graph; the same by default.
    """
    target = source if target is None else target
    needed = _nodes_needed(source, roots, values)
    image = dict(values) | fresh_carries(source, needed, target)
    for i in needed:
        if i not in image:
            op, *operands = source.nodes[i]
            if op not in LEAVES:
                operands = [image[a] for a in operands]
            image[i] = copy_node(target, op, operands)
    return [image[r] for r in roots]


def copy_node(graph, op, operands):
    """Node ``(op, *operands)`` after simplification."""
    if op in _RULES:
        return _RULES[op](graph, *operands)
    if op in ("sqrt", "sin", "cos", "abs", "exp", "log", "tanh", "floor", "held"):
        return simplify.unary(graph, op, *operands)
    if op in ("<", "<=", "=="):
        return simplify.compare(graph, op, *operands)
    if op in ("and", "or"):
        return simplify.combine(graph, op, *operands)
    if op == "const":
        return graph.constant(*operands)
    return graph.node(op, *operands)


def fresh_carries(source, order, target):
    """New carries for copies of all loops among the nodes ``order``, by old carry.

    Two loops with one number cannot stand in one program. Outer loops keep lower numbers.
    """
    loops = [loop_of(source, i) for i in order if source.nodes[i][0] == "repeat"]
    image = {}
    for loop in sorted(loops, key=lambda loop: loop.number):
        number = len(target.nodes)
        for k, carry in enumerate(loop.carries):
            image[carry] = target.node("carry", number, k)
    return image


def _nodes_needed(graph, roots, values):
    """Nodes that ``roots`` depend on except through ``values``, in evaluation order."""
    nodes, seen, stack = graph.nodes, set(), [r for r in roots if r not in values]
    while stack:
        i = stack.pop()
        if i not in seen:
            seen.add(i)
            if nodes[i][0] not in LEAVES:
                stack.extend(a for a in nodes[i][1:] if a not in values)
    return sorted(seen)


# --- derivatives of every operation, for forward and reverse accumulation alike ------------------

FLAT = frozenset(("const", "input", "callee", "repeat", "floor", "held", *CONDITIONS))
"""Operations without their own rate of change."""


def _quotient(g, i, a, b):
    """Partial derivatives of a quotient ``a / b``."""
    inverse = simplify.div(g, g.constant(1.0), b)
    return inverse, simplify.neg(g, simplify.mul(g, i, inverse))


def _angle(g, i, y, x):
    """Partial derivatives of ``atan2(y, x)``."""
    square = simplify.add(g, simplify.mul(g, x, x), simplify.mul(g, y, y))
    inverse = simplify.div(g, g.constant(1.0), square)
    return simplify.mul(g, x, inverse), simplify.neg(g, simplify.mul(g, y, inverse))


def _saturation(g, i, a):
    """Derivative of ``tanh``, from its value."""
    return (simplify.sub(g, g.constant(1.0), simplify.mul(g, i, i)),)


def _sign(g, i, a):
    """Derivative of the absolute value: the sign."""
    negative = simplify.compare(g, "<", a, g.constant(0.0))
    return (simplify.select(g, negative, g.constant(-1.0), g.constant(1.0)),)


DERIVATIVES = {
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
"""Operation: nodes of its derivatives with respect to its operands, given its own node and theirs.

A choice has none: its rate is the rate of what is chosen. At the corner of ``abs`` the derivative
is the one from above.
"""


def forward(graph, roots, seeds):
    """Derivatives of each root by forward mode, as a dict from direction number to node.

    Args:
        graph: the graph of the roots, and of the result.
        roots: node numbers.
        seeds: for each direction a dict from node to the node of its rate.
    """
    nodes, zero, none = graph.nodes, graph.constant(0.0), {}
    add, sub, mul = simplify.add, simplify.sub, simplify.mul
    rates, calls = by_node(seeds), Rates(graph)
    order = graph.reachable(roots)
    loops = _Loops(graph, order, seeds, rates) if _has_loops(graph, order) else None
    for i in loops.order if loops else order:
        op, *operands = nodes[i]
        if loops and op not in ("input", "const", "callee"):
            operands, here = loops.copy_node(i, op, operands)
        else:
            here = i
        if i in rates or op in FLAT or op in ("final", "carry", "call"):
            continue
        if op == "+" or op == "-" or op == "*":
            a, b = nodes[i][1:]
            da, db = rates.get(a, none), rates.get(b, none)
            if not da and not db:
                continue
            if op == "*":
                a, b = operands
                da = {k: mul(graph, b, d) for k, d in da.items()}
                db = {k: mul(graph, a, d) for k, d in db.items()}
            row = dict(da)
            combine = sub if op == "-" else add
            for k, d in db.items():
                row[k] = combine(graph, row.get(k, zero), d)
        elif op == "result":
            row = calls.of(i, operands[0], rates)
        else:
            parts = [rates.get(a, none) for a in nodes[i][1:]]
            if not any(parts):
                continue
            if op == "select":
                row = _choose(graph, operands[0], *parts[1:])
            else:
                row = {}
                for part, derivative in zip(
                    parts, DERIVATIVES[op](graph, here, *operands), strict=True
                ):
                    for k, d in part.items():
                        row[k] = add(graph, row.get(k, zero), mul(graph, derivative, d))
        rates[i] = row
    if loops:
        loops.copy_checks()
    return [{k: d for k, d in rates.get(r, none).items() if d != zero} for r in roots]


def by_node(seeds):
    """Seeds rearranged as ``{node: {direction: rate}}``."""
    rates = {}
    for k, seed in enumerate(seeds):
        for i, rate in seed.items():
            rates.setdefault(i, {})[k] = rate
    return rates


def _choose(graph, condition, da, db):
    """Derivatives of a selection, by direction."""
    zero = graph.constant(0.0)
    return {
        k: simplify.select(graph, condition, da.get(k, zero), db.get(k, zero))
        for k in dict.fromkeys([*da, *db])
    }


def direction_sets(graph, order, seeds):
    """For every node the set of directions that change it, as bits of an integer."""
    sets = {}
    for k, seed in enumerate(seeds):
        for i in seed:
            sets[i] = sets.get(i, 0) | 1 << k
    fixed, changed = set(sets), True
    while changed:  # once, unless there are loops
        changed = False
        for i in order:
            op, *operands = graph.nodes[i]
            if op == "repeat":
                loop = loop_of(graph, i)
                for carry, *sources in zip(loop.carries, loop.initial, loop.next, strict=True):
                    found = sets.get(carry, 0)
                    for a in sources:
                        found |= sets.get(a, 0)
                    if found != sets.get(carry, 0):
                        sets[carry], changed = found, True
            elif i not in fixed and op not in FLAT and op != "carry":
                found = 0
                for a in operands:
                    found |= sets.get(a, 0)
                if found:
                    sets[i] = found
    return sets


def _has_loops(graph, order):
    """Whether the nodes contain loops."""
    return any(graph.nodes[i][0] == "repeat" for i in order)


class _Loops:
    """The copies of loops that carry rates, while they are built.

    Attributes:
        image: node of the copy, for nodes that are inside a loop or depend on its result.
        order: the nodes to visit.
    """

    def __init__(self, graph, order, seeds, rates):
        self.graph, self.rates = graph, rates
        self.checks = list(graph.checks)
        self.order = graph.reachable([*order, *(c[0] for c in self.checks)])
        self.image = fresh_carries(graph, self.order, graph)
        sets = direction_sets(graph, self.order, seeds)
        for i in self.order:
            if graph.nodes[i][0] == "repeat":
                self._add_carried_rates(loop_of(graph, i), sets)

    def _add_carried_rates(self, loop, sets):
        """Extend a loop by further state variables: rates of those it carries."""
        number, place = self.graph.nodes[self.image[loop.carries[0]]][1], len(loop.carries)
        for carry in loop.carries:
            directions = sets.get(carry, 0)
            self.rates[carry] = {}
            for k in range(directions.bit_length()):
                if directions >> k & 1:
                    self.rates[carry][k] = self.graph.node("carry", number, place)
                    place += 1

    def copy_node(self, i, op, operands):
        """Copy of node ``i`` within a differentiated loop, and its operands."""
        graph, image = self.graph, self.image
        if op == "carry":
            return operands, image.get(i, i)
        if op == "repeat":
            image[i] = self._repeat(loop_of(graph, i))
            return operands, image[i]
        if not any(a in image for a in operands):
            return operands, i
        copies = [image.get(a, a) for a in operands]
        image[i] = copy_node(graph, op, copies)
        if op == "final":
            rates = self.rates[operands[1]]
            self.rates[i] = {k: graph.node("final", copies[0], d) for k, d in rates.items()}
        return copies, image[i]

    def _repeat(self, loop):
        """Copy of a loop that carries derivatives beside its state."""
        graph, image, zero = self.graph, self.image, self.graph.constant(0.0)
        initial, following, carries = (
            [image.get(a, a) for a in part] for part in (loop.initial, loop.next, loop.carries)
        )
        for carry, start, after in zip(loop.carries, loop.initial, loop.next, strict=True):
            for k, rate in self.rates[carry].items():
                initial.append(self.rates.get(start, {}).get(k, zero))
                following.append(self.rates.get(after, {}).get(k, zero))
                carries.append(rate)
        times = image.get(loop.times, loop.times)
        return graph.node("repeat", times, *initial, *following, *carries)

    def copy_checks(self):
        """Add copies of the run-time checks inside loops."""
        for i, *rest in self.checks:
            if i in self.image:
                self.graph.checks.append((self.image[i], *rest))
