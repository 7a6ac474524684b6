"""A graph to read: a listing, one line per operation, or a drawing in the dot language."""

from kinetree.expr.node import LEAVES
from kinetree.expr.repeat import by_scope, loop_of

_INFIX = {"+", "-", "*", "/", "<", "<=", "==", "and", "or"}


def listing(program):
    """Program as Python-like text, one operation per line.

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
        """Append the lines of one loop, or of the code outside all loops."""
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
        """Append the lines of a loop."""
        names, inside = self.names, indent + "    "
        for carry, start in zip(loop.carries, loop.initial, strict=True):
            names[carry] = f"s{len(self.lines)}"
            self.lines.append(f"{indent}{names[carry]} = {names[start]}")
        self.lines.append(f"{indent}repeat {names[loop.times]} times:")
        self._write(loop.number, inside)
        carries, following = (", ".join(names[i] for i in x) for x in (loop.carries, loop.next))
        self.lines.append(f"{inside}{carries} = {following}")


def dot(program):
    """Program as a Graphviz graph, with values along the arrows."""
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
    """Names of the outputs that each node is assigned to."""
    names, roots = {}, iter(program.roots)
    for output in program.outputs:
        for k in range(output.size):
            index = []
            for extent in reversed(output.shape):
                k, remainder = divmod(k, extent)
                index.insert(0, remainder)
            names.setdefault(next(roots), []).append(_index(output.name, index))
    return names


def _leaf(node):
    """Text of a node without operands."""
    if node[0] == "carry":
        return f"state {node[2]} of loop {node[1]}"
    if node[0] == "callee":
        return node[1].name
    return f"{node[1]:.17g}" if node[0] == "const" else _index(node[1], node[2])


def _index(name, index):
    """Text of an element of an argument."""
    return f"{name}[{', '.join(map(str, index))}]" if len(index) else name


def _operation(node, names):
    """Text of an operation on named operands."""
    op, *operands = node
    values = [names[a] for a in operands]
    if op in _INFIX:
        return f"{values[0]} {op} {values[1]}"
    return f"-{values[0]}" if op == "neg" else f"{op}({', '.join(values)})"
