"""Orders in which the nodes of a program can be computed, and how many values each keeps waiting.

Compilers move instructions, but over thousands of them they keep to the order they are given. A
value that waits long for its last use occupies a register, or goes to memory and back.
"""

from kinetree.expr.node import LEAVES

__all__ = ["by_results", "created", "fewest_waiting", "most_waiting"]


def created(program):
    """The order in which the program was traced: pass after pass over all bodies."""
    return program.graph.reachable([*program.roots, *_checks(program)])


def by_results(program):
    """Result after result, each with all that it needs and that is not there yet; limb by limb."""
    nodes, order, seen = program.graph.nodes, [], set()
    for root in program.roots:
        _visit(nodes, root, order, seen)
    return _with_checks(program, order, seen)


def fewest_waiting(program):
    """The better of the two."""
    return min((created(program), by_results(program)), key=lambda o: most_waiting(program, o))


def most_waiting(program, order) -> int:
    """The largest number of values that are there and still needed; inputs can be read again."""
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
    return [node for node, *_ in program.checks]


def _operands(node):
    return () if node[0] in LEAVES else node[1:]


def _visit(nodes, root, order, seen):
    """Append what ``root`` needs, operands first."""
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
    """The order with conditions that must hold put in as soon as they can be looked at."""
    nodes, place = program.graph.nodes, {i: k for k, i in enumerate(order)}
    rest = [i for i in program.graph.reachable(_checks(program)) if i not in seen]
    for i in rest:
        place[i] = max((place[a] for a in _operands(nodes[i])), default=-1)
    added = dict.fromkeys(order, 0) | {i: n for n, i in enumerate(rest, start=1)}
    return sorted([*order, *rest], key=lambda i: (place[i], added[i]))
