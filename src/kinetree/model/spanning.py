"""Which joints to cut: the choice of a spanning tree — RBDA §8.6, §8.10, §10.2.

A joint in the tree has variables; one that closes a loop is a set of constraints. In order of
importance, a good tree

1. leaves in the tree what needs variables: armature and couplings first, then actuators, springs,
   dampers and friction (the loop joints are then passive), then limits;
2. is shallow, which keeps the inertia matrix well conditioned: the deepest body first, then all;
3. cuts joints with many freedoms, so that there are few variables and few constraints.

Points 2 and 3 are improved by exchanging one joint at a time, from several starts; the tree of the
order in which joints were given is one of them, so the result is never worse than that.
"""

import math
from typing import NamedTuple

from kinetree.model.dynamics import has_dynamics
from kinetree.model.tree import depths

__all__ = ["CutCost", "best_tree", "cut_cost", "importance"]

_PASSIVE = ("stiffness", "damping", "friction")
_LARGEST_EXCHANGE = 64
"""Bodies up to which joints are exchanged; larger graphs take the best start."""


class CutCost(NamedTuple):
    """What a spanning tree costs, the most important first; smaller is better."""

    cuts: tuple
    """Numbers of loop joints of each level of importance, the highest level first."""
    depth: int
    """Joints between the base and the deepest body."""
    total_depth: int
    """The same, summed over the bodies."""
    constraints: int
    """Constraints ``n^c`` of the loop joints."""


def importance(joints, needed, driven) -> list[int]:
    """How much each joint should be in the tree: 3, 2 or 1 as in point 1 above, or 0.

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
    """The cost of a tree.

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
    """The arcs of the best tree that was found."""
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
    return min((_improved(graph, arcs, cost) for arcs in dict.fromkeys(starts)), key=cost)


def _greedy(graph, order):
    """The tree of the arcs that come first: none is left out that does not close a cycle."""
    group = list(range(graph.node_count))
    chosen = []
    for k in order:
        p, s = (group[node] for node in graph.arcs[k])
        if p != s:
            chosen.append(k)
            group = [p if g == s else g for g in group]
    return tuple(sorted(chosen))


def _distances(tree, count):
    """How far each arc begins from the base, in joints of the shallowest tree."""
    d, near = depths(tree.parent), [0] * count
    for new, old in enumerate(tree.joints):
        if new:
            near[old] = min(d[tree.predecessor[new]], d[tree.successor[new]])
    return near


def _improved(graph, arcs, cost):
    """The tree after the best exchange of one joint for another, until none helps."""
    best = cost(arcs)
    while True:
        found = min(((cost(new), new) for new in _exchanges(graph, arcs)), default=(best, arcs))
        if not found[0] < best:
            return arcs
        best, arcs = found


def _exchanges(graph, arcs):
    tree = graph.spanning_tree(arcs)
    for chord in tree.chords:
        for out in tree.cycle(chord)[1:]:
            kept = (k for k in arcs if k != tree.joints[out])
            yield tuple(sorted((*kept, tree.joints[chord])))
