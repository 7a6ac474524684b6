"""Connectivity graphs: spanning trees, chords, cycles, regular numbering — RBDA §4.1.

Nodes are bodies and arcs are joints. Node 0 is the base; arc ``k`` goes from its predecessor to
its successor, which matters for the polarity of the joint but not for the graph.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from kinetree.errors import ModelError
from kinetree.model.limits import has_dynamics
from kinetree.model.tree import children, depths, numbering_count, regular_order, supports


@dataclass(frozen=True)
class SpanningTree:
    """A spanning tree with a regular numbering of bodies and joints — RBDA §4.1.2.

    Attributes:
        bodies: old number of body ``i``; ``bodies[0]`` is the base, 0.
        joints: old number of joint ``i``: tree joints 1 … N_B, then loop joints N_B+1 … N_J.
            Entry 0 is None.
        predecessor: ``p``, the body that joint ``i`` comes from, in new numbers; entry 0 is None.
        successor: ``s``, the body that joint ``i`` leads to.
    """

    bodies: tuple
    joints: tuple
    predecessor: tuple
    successor: tuple

    @property
    def body_count(self) -> int:
        """Number N_B of moving bodies and tree joints."""
        return len(self.bodies) - 1

    @property
    def loop_count(self) -> int:
        """Number N_L = N_J - N_B of independent kinematic loops — RBDA (4.1)."""
        return len(self.joints) - len(self.bodies)

    @property
    def parent(self) -> tuple[int, ...]:
        """Parent array λ(i) = min(p(i), s(i)), entry 0 being -1 — RBDA (4.2)."""
        p, s = self.predecessor, self.successor
        return (-1, *(min(p[i], s[i]) for i in range(1, len(self.bodies))))

    @property
    def forward(self) -> tuple[bool | None, ...]:
        """Whether each tree joint leads from parent to child; entry 0 is None."""
        return (None, *(self.successor[i] == i for i in range(1, len(self.bodies))))

    @property
    def chords(self) -> tuple[int, ...]:
        """Numbers of the loop joints."""
        return tuple(range(len(self.bodies), len(self.joints)))

    def cycle(self, chord: int) -> tuple[int, ...]:
        """Joints of the loop that a loop joint closes, itself first."""
        kappa = supports(self.parent)
        one, other = set(kappa[self.predecessor[chord]]), set(kappa[self.successor[chord]])
        return (chord, *sorted(one ^ other))


@dataclass(frozen=True)
class ConnectivityGraph:
    """An undirected graph of bodies and joints. Several joints may join the same two bodies.

    Args:
        node_count: number of nodes, N_B + 1; node 0 is the base.
        arcs: pairs (predecessor, successor), one for each joint.
    """

    node_count: int
    arcs: tuple[tuple[int, int], ...]

    def __post_init__(self):
        for k, (p, s) in enumerate(self.arcs):
            for node in (p, s):
                if not 0 <= node < self.node_count:
                    last = self.node_count - 1
                    raise ModelError(f"joint {k} refers to body {node}; bodies are 0 to {last}")
            if p == s:
                raise ModelError(f"joint {k} connects body {p} to itself")

    def components(self) -> tuple:
        """The connected parts as tuples of nodes, the part with the base first."""
        parts, left = [], set(range(self.node_count))
        while left:
            part = self._reach(min(left), range(len(self.arcs)))
            parts.append(tuple(sorted(part)))
            left -= set(part)
        return tuple(parts)

    def spanning_tree(self, arcs: Sequence[int] | None = None) -> SpanningTree:
        """Spanning tree, numbered regularly and close to the given numbers.

        Args:
            arcs: the arcs of the tree; by default every body is as few joints away from the base
                as possible.
        """
        return self._number(self._parents(arcs))

    def spanning_trees(self) -> Iterator:
        """Every choice of tree arcs, as tuples. Their number grows fast: for small graphs."""
        for arcs in combinations(range(len(self.arcs)), self.node_count - 1):
            if len(self._reach(0, arcs)) == self.node_count:
                yield arcs

    def numberings(self) -> Iterator:
        """Regular numberings of every spanning tree, as an iterator."""
        for arcs in self.spanning_trees():
            parents = self._parents(arcs)
            for order in _orders(children(_parent_list(parents))):
                yield self._number(parents, order)

    def numbering_count(self) -> int:
        """Number of regular numberings, without enumerating them — RBDA Fig. 4.4."""
        return sum(
            numbering_count(self.spanning_tree(arcs).parent) for arcs in self.spanning_trees()
        )

    def _reach(self, start, arcs):
        """Breadth-first search: nodes reachable from ``start``, each with (parent, arc)."""
        touching = [[] for _ in range(self.node_count)]
        for k in arcs:
            p, s = self.arcs[k]
            touching[p].append((s, k))
            touching[s].append((p, k))
        found, queue = {start: (-1, None)}, deque([start])
        while queue:
            node = queue.popleft()
            for other, k in touching[node]:
                if other not in found:
                    found[other] = (node, k)
                    queue.append(other)
        return found

    def _parents(self, arcs):
        """Parent and connecting arc of each node in the spanning tree of some arcs."""
        chosen = range(len(self.arcs)) if arcs is None else tuple(arcs)
        found = self._reach(0, chosen)
        if len(found) < self.node_count:
            missing = sorted(set(range(self.node_count)) - set(found))
            raise ModelError(f"no path of joints leads from the base to bodies {missing}")
        if arcs is not None and len(chosen) != self.node_count - 1:
            raise ModelError(
                f"a spanning tree of {self.node_count} nodes has {self.node_count - 1} arcs, "
                f"got {len(chosen)}"
            )
        return found

    def _number(self, parents, order=None):
        """Spanning tree numbered regularly in a given order."""
        order = regular_order(_parent_list(parents)) if order is None else order
        new = {old: i for i, old in enumerate(order)}
        tree = [parents[old][1] for old in order[1:]]
        chosen = set(tree)
        loops = [k for k in range(len(self.arcs)) if k not in chosen]
        joints = (None, *tree, *loops)
        p = (None, *(new[self.arcs[k][0]] for k in joints[1:]))
        s = (None, *(new[self.arcs[k][1]] for k in joints[1:]))
        return SpanningTree(tuple(order), joints, p, s)


def _parent_list(parents):
    """Parents by node, as a list."""
    return [parents[node][0] for node in range(len(parents))]


def _orders(mu, placed=(0,), ready=None):
    """All orders of the nodes in which parents come before children."""
    ready = mu[0] if ready is None else ready
    if not ready:
        yield placed
    for node in ready:
        rest = tuple(n for n in ready if n != node)
        yield from _orders(mu, (*placed, node), rest + mu[node])


# --- choice of a spanning tree: which joints to cut — RBDA §8.6, §8.10, §10.2 --------------------
# A joint in the tree has variables; one that closes a loop is a set of constraints. In order of
# importance, a good tree
#
# 1. leaves in the tree what needs variables: armature and couplings first, then actuators, springs,
#    dampers and friction (the loop joints are then passive), then limits;
# 2. is shallow, which keeps the inertia matrix well conditioned: the deepest body first, then all;
# 3. cuts joints with many degrees of freedom, so that there are few variables and few constraints.
#
# Points 2 and 3 are improved by exchanging one joint at a time, from several starts; the tree of
# the order in which joints were given is one of them, so the result is never worse than that.

_PASSIVE = ("stiffness", "damping", "friction")
_LARGEST_EXCHANGE = 64
"""Bodies up to which joints are exchanged; larger graphs take the best start."""


class CutCost(NamedTuple):
    """Costs of a spanning tree, the most important first; smaller is better."""

    cuts: tuple
    """Numbers of loop joints of each level of importance, the highest level first."""
    depth: int
    """Joints between the base and the deepest body."""
    total_depth: int
    """The same, summed over the bodies."""
    constraints: int
    """Constraints ``n^c`` of the loop joints."""


def importance(joints, needed, driven) -> list[int]:
    """Importance of each joint for the spanning tree, 3 (needs variables) to 0.

    Args:
        joints: with name, limits and dynamics.
        needed: names of those that need variables.
        driven: names of those that have actuators.
    """
    levels = []
    for j in joints:
        bounds = () if j.limits is None else (*j.limits.lower, *j.limits.upper)
        if j.name in needed or has_dynamics(j, "armature"):
            levels.append(3)
        elif j.name in driven or any(has_dynamics(j, name) for name in _PASSIVE):
            levels.append(2)
        else:
            levels.append(int(any(map(math.isfinite, bounds))))
    return levels


def cut_cost(graph, arcs, levels, freedoms) -> CutCost:
    """Cost of a spanning tree: important joints cut, depth, freedoms of cut joints.

    Args:
        graph: a ``ConnectivityGraph``.
        arcs: those of the tree.
        levels: how much each arc should be in the tree, from 0 for not at all.
        freedoms: degree of freedom of each arc's joint.
    """
    chosen = set(arcs)
    cut = [k for k in range(len(graph.arcs)) if k not in chosen]
    counts = tuple(sum(levels[k] == level for k in cut) for level in range(max(levels), 0, -1))
    d = depths(graph.spanning_tree(arcs).parent)
    return CutCost(counts, max(d), sum(d), sum(6 - freedoms[k] for k in cut))


def best_tree(graph, levels, freedoms) -> tuple:
    """Arcs of the cheapest spanning tree found by local search."""
    all_arcs = range(len(graph.arcs))
    levels = levels or [0]
    by_distance = graph.spanning_tree()
    shallow = tuple(sorted(by_distance.joints[1 : graph.node_count]))
    if len(shallow) == len(graph.arcs):
        return shallow
    near = _distances(by_distance, len(graph.arcs))
    by_level = _greedy(graph, sorted(all_arcs, key=lambda k: (-levels[k], near[k])))
    starts = (shallow, by_level, _greedy(graph, all_arcs))

    def cost(arcs):
        return cut_cost(graph, arcs, levels, freedoms)

    if graph.node_count > _LARGEST_EXCHANGE:
        return min(starts, key=cost)
    return min((_improve(graph, arcs, cost) for arcs in dict.fromkeys(starts)), key=cost)


def _greedy(graph, order):
    """Spanning tree of the first arcs in an order that close no cycle (Kruskal)."""
    group = list(range(graph.node_count))
    chosen = []
    for k in order:
        p, s = (group[node] for node in graph.arcs[k])
        if p != s:
            chosen.append(k)
            group = [p if g == s else g for g in group]
    return tuple(sorted(chosen))


def _distances(tree, count):
    """Distance from the base to each arc, in joints of a tree."""
    d, near = depths(tree.parent), [0] * count
    for new, old in enumerate(tree.joints):
        if new:
            near[old] = min(d[tree.predecessor[new]], d[tree.successor[new]])
    return near


def _improve(graph, arcs, cost):
    """Local search: exchange one arc for another while the cost falls."""
    best = cost(arcs)
    while True:
        found = min(((cost(new), new) for new in _exchanges(graph, arcs)), default=(best, arcs))
        if not found[0] < best:
            return arcs
        best, arcs = found


def _exchanges(graph, arcs):
    """Spanning trees that differ from one by the exchange of one arc."""
    tree = graph.spanning_tree(arcs)
    for chord in tree.chords:
        for out in tree.cycle(chord)[1:]:
            kept = (k for k in arcs if k != tree.joints[out])
            yield tuple(sorted((*kept, tree.joints[chord])))
