"""Well-formed graphs: what holds after every pass."""

from kinetree.expr.node import CONDITIONS, OPERATIONS


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
