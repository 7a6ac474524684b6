"""A graph to read: a listing, one line per operation, or a drawing in the dot language; a check."""

from kinetree.expr.node import CONDITIONS, LEAVES, OPERATIONS
from kinetree.expr.repeat import by_scope, loop_of

_INFIX = {"+", "-", "*", "/", "<", "<=", "==", "and", "or"}


def listing(program):
    """The program as Python-like text, inputs by name and one operation per line.

        t0 = sin(q[0])
        out0[0] = t0 * 9.81

    Temporaries are numbered in the order of the lines; an output that is just an input, a
    constant, or a value needed elsewhere too, is a separate line.
    """
    lines = _Listing(program).lines
    head = f"{program.name}({', '.join(a.name for a in program.inputs)})"
    return "\n".join([f"{head}:", *(f"    {line}" for line in lines)]) + "\n"


class _Listing:
    def __init__(self, program):
        self.graph, self.nodes = program.graph, program.graph.nodes
        self.names, self.lines, self.outputs = {}, [], _output_names(program)
        self.checks = [i for i, _ in program.checks]
        order = self.graph.reachable([*program.roots, *self.checks])
        self.scopes = by_scope(self.graph, order)
        self._write(None, "")
        for i, targets in self.outputs.items():
            self.lines += [f"{target} = {self.names[i]}" for target in targets]
        outside = set(self.scopes.get(None, ()))
        self.lines += [f"require {self.names[i]}" for i in self.checks if i in outside]

    def _write(self, scope, indent):
        """The lines of one loop, or of what is outside all loops."""
        for i in self.scopes.get(scope, ()):
            op, *operands = self.nodes[i]
            if op in LEAVES:
                self.names[i] = _leaf(self.nodes[i])
            elif op == "repeat":
                self._loop(loop_of(self.graph, i), indent)
            elif op == "final":
                self.names[i] = self.names[operands[1]]
            else:
                text = _operation(self.nodes[i], self.names)
                first, *others = self.outputs.pop(i, [None])
                self.names[i] = first or f"t{len(self.lines)}"
                self.lines.append(f"{indent}{self.names[i]} = {text}")
                self.lines += [f"{indent}{other} = {self.names[i]}" for other in others]
            if indent and i in self.checks:
                self.lines.append(f"{indent}require {self.names[i]}")

    def _loop(self, loop, indent):
        names, inside = self.names, indent + "    "
        for carry, start in zip(loop.carries, loop.initial, strict=True):
            names[carry] = f"s{len(self.lines)}"
            self.lines.append(f"{indent}{names[carry]} = {names[start]}")
        self.lines.append(f"{indent}repeat {names[loop.times]} times:")
        self._write(loop.number, inside)
        carries, following = (", ".join(names[i] for i in x) for x in (loop.carries, loop.next))
        self.lines.append(f"{inside}{carries} = {following}")


def dot(program):
    """The program as a directed graph for Graphviz: values flow along the arrows."""
    nodes = program.graph.nodes
    lines = [f'digraph "{program.name}" {{', "  rankdir=LR; node [shape=box, fontname=monospace];"]
    for i in program.graph.reachable([*program.roots, *(c for c, _ in program.checks)]):
        op, *operands = nodes[i]
        leaf = op in LEAVES
        style = ", style=filled" if op == "input" else ", shape=plaintext" if leaf else ""
        lines.append(f'  n{i} [label="{_leaf(nodes[i]) if leaf else op}"{style}];')
        if not leaf:
            lines += [f"  n{a} -> n{i};" for a in operands]
    for i, targets in _output_names(program).items():
        for target in targets:
            lines.append(f'  "{target}" [shape=oval]; n{i} -> "{target}";')
    return "\n".join([*lines, "}"]) + "\n"


def _output_names(program):
    """Node number of each output: the names of what it is assigned to."""
    names, roots = {}, iter(program.roots)
    for output in program.outputs:
        for k in range(output.size):
            index = []
            for extent in reversed(output.shape):
                k, remainder = divmod(k, extent)
                index.insert(0, remainder)
            names.setdefault(next(roots), []).append(_indexed(output.name, index))
    return names


def _leaf(node):
    if node[0] == "carry":
        return f"state {node[2]} of loop {node[1]}"
    if node[0] == "callee":
        return node[1].name
    return f"{node[1]:.17g}" if node[0] == "const" else _indexed(node[1], node[2])


def _indexed(name, index):
    return f"{name}[{', '.join(map(str, index))}]" if len(index) else name


def _operation(node, names):
    op, *operands = node
    values = [names[a] for a in operands]
    if op in _INFIX:
        return f"{values[0]} {op} {values[1]}"
    return f"-{values[0]}" if op == "neg" else f"{op}({', '.join(values)})"


# --- well-formed graphs, for tests after every pass ----------------------------------------------


def check_graph(graph, roots=()):
    """Raise AssertionError, naming the node, if something in the graph cannot be meant.

    Every operation is known and has the right number of operands; operands come before it and are
    numbers or conditions as it needs them; constants are numbers; no node is there twice; and
    ``roots`` are numbers.
    """
    nodes = graph.nodes
    assert len(set(nodes)) == len(nodes), "two nodes are equal"
    assert len(graph.handles) == len(nodes), "handles and nodes differ in number"
    for i, node in enumerate(nodes):
        problem = _problem(nodes, i)
        assert problem is None, f"node {i}, {node!r}: {problem}"
        assert graph.known[node] == i, f"node {i}, {node!r}: known as {graph.known[node]}"
    for i, _ in graph.checks:
        assert nodes[i][0] in CONDITIONS, f"node {i}, {nodes[i]!r}: checked, but not a condition"
    for i in roots:
        assert nodes[i][0] not in CONDITIONS, f"node {i}, {nodes[i]!r}: a condition is not a result"


def _problem(nodes, i):
    """What is wrong with one node, or None."""
    op, *operands = nodes[i]
    if op not in OPERATIONS:
        return "not an operation"
    if op == "const":
        (value,) = operands
        return None if isinstance(value, float) and value == value else "not a number"
    if op == "input":
        name, index = operands
        good = isinstance(name, str) and isinstance(index, tuple)
        return None if good else "an input has a name and an index"
    if op == "carry":
        return None if operands[0] <= i and operands[1] >= 0 else "belongs to no loop"
    if op == "callee":
        return None
    if op == "call":
        if not operands or nodes[operands[0]][0] != "callee":
            return "calls nothing"
        if len(operands) - 1 != sum(a.size for a in nodes[operands[0]][1].inputs):
            return "needs one operand for every number of the inputs"
    if op == "repeat":
        if len(operands) % 3 != 1:
            return "needs the number of runs, and three operands per carried value"
    elif op != "call" and len(operands) != OPERATIONS[op]:
        return f"needs {OPERATIONS[op]} operands"
    for position, a in enumerate(operands):
        if not (isinstance(a, int) and 0 <= a < i):
            return f"operand {a} is not an earlier node"
        wanted = op in ("and", "or", "not") or (op == "select" and position == 0)
        if wanted != (nodes[a][0] in CONDITIONS):
            return f"operand {a} must be a {'condition' if wanted else 'number'}"
    return None
