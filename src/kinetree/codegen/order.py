"""Orders in which the nodes of a program can be computed, and how many values each keeps waiting.

Compilers move instructions, but over thousands of them they keep to the order they are given. A
value that waits long for its last use occupies a register, or goes to memory and back.
"""

from functools import partial
from heapq import heapify, heappop, heappush

from kinetree.expr.node import LEAVES

_FEW = 64  # waiting values that fit anywhere
_MANY = 8000  # nodes for which not everything is tried


def creation_order(program):
    """Nodes of a program in the order in which they were traced."""
    return program.graph.reachable([*program.roots, *_checks(program)])


def by_results(program):
    """Nodes of a program depth first, result after result: a limb's values come together."""
    nodes, order, seen = program.graph.nodes, [], set()
    for root in program.roots:
        _visit(nodes, root, order, seen)
    return _with_checks(program, order, seen)


def backward(program, late=True):
    """Reverse list scheduling: nodes ordered from the end by which adds the fewest live values.

    Args:
        program: what is computed.
        late: whether what was traced late comes late when nothing else decides.
    """
    nodes, order = program.graph.nodes, creation_order(program)
    inner = [i for i in order if nodes[i][0] not in LEAVES]
    operands = {
        i: [a for a in dict.fromkeys(_operands(nodes[i])) if nodes[a][0] not in LEAVES]
        for i in inner
    }
    users = {i: [] for i in inner}
    for i in inner:
        for a in operands[i]:
            users[a].append(i)
    rank = {i: -k if late else k for k, i in enumerate(order)}
    missing, waiting = {i: len(users[i]) for i in inner}, set()

    def entry(i):
        return sum(a not in waiting for a in operands[i]) - (i in waiting), rank[i], i

    heap, found, done = [entry(i) for i in inner if not missing[i]], [], set()
    heapify(heap)
    while heap:
        old = heappop(heap)
        i = old[2]
        if i in done:
            continue
        if entry(i) != old:
            heappush(heap, entry(i))
            continue
        done.add(i)
        found.append(i)
        waiting.discard(i)
        for a in operands[i]:
            missing[a] -= 1
            if a not in waiting:
                waiting.add(a)
                for u in users[a]:
                    if not missing[u] and u not in done:
                        heappush(heap, entry(u))
            if not missing[a]:
                heappush(heap, entry(a))
    return [*(i for i in order if nodes[i][0] in LEAVES), *reversed(found)]


def fewest_waiting(program):
    """Order of a program's nodes with the fewest values live at once, among several heuristics."""
    orders = (by_results, backward, partial(backward, late=False))
    best = creation_order(program)
    least = most_waiting(program, best)
    loops = any(program.graph.nodes[i][0] == "repeat" for i in best)
    for make in orders[: 1 if loops or len(best) > _MANY else 3]:
        if least <= _FEW:
            break
        order = make(program)
        waiting = most_waiting(program, order)
        if waiting < least:
            best, least = order, waiting
    return best


def most_waiting(program, order) -> int:
    """Largest number of live values (computed, still needed) in an order of nodes; no inputs."""
    nodes, last = program.graph.nodes, {}
    for place, i in enumerate(order):
        for a in _operands(nodes[i]):
            if nodes[a][0] not in LEAVES:
                last[a] = place
    ends = [0] * len(order)
    for place in last.values():
        ends[place] += 1
    waiting = most = 0
    for place, i in enumerate(order):
        waiting += (i in last) - ends[place]
        most = max(most, waiting)
    return most


def _checks(program):
    """Nodes of the conditions that a program checks at run time."""
    return [node for node, *_ in program.checks]


def _operands(node):
    """Operands of a node of a graph; none for constants and inputs."""
    return () if node[0] in LEAVES else node[1:]


def _visit(nodes, root, order, seen):
    """Append a node to the order after all its operands, depth first."""
    if root in seen:
        return
    stack = [(root, iter(_operands(nodes[root])))]
    seen.add(root)
    while stack:
        i, rest = stack[-1]
        for a in rest:
            if a not in seen:
                seen.add(a)
                stack.append((a, iter(_operands(nodes[a]))))
                break
        else:
            order.append(i)
            stack.pop()


def _with_checks(program, order, seen):
    """Order of nodes with run-time conditions inserted as soon as their operands are there."""
    nodes, place = program.graph.nodes, {i: k for k, i in enumerate(order)}
    rest = [i for i in program.graph.reachable(_checks(program)) if i not in seen]
    for i in rest:
        place[i] = max((place[a] for a in _operands(nodes[i])), default=-1)
    added = dict.fromkeys(order, 0) | {i: n for n, i in enumerate(rest, start=1)}
    return sorted([*order, *rest], key=lambda i: (place[i], added[i]))
