"""Islands: trees that groups of rows connect, directly or through others.

Trees are joined by union-find with halved paths. What is fixed to the ground has no node, so the
ground connects nothing. Trees without groups belong to no island.
"""

from kinetree.codegen.procedures import procedure
from kinetree.contact.newton.problem import Problem, Work

__all__ = ["split"]


@procedure
def top(up: "int[:]", tree: int) -> int:
    """Tree that stands for all that ``tree`` is joined with."""
    i = tree
    while up[i] != i:
        up[i] = up[up[i]]
        i = up[i]
    return i


@procedure
def split(problem: Problem, work: Work) -> int:
    """Number of islands; lists their groups, and numbers the trees by island."""
    up = work.tree_up
    island = work.tree_island
    first = work.island_groups_first
    for t in range(problem.trees):
        up[t] = t
        island[t] = -1
    for g in range(problem.groups):
        begin = problem.entry_first[g]
        end = problem.entry_first[g + 1]
        if begin < end:
            a = top(up, problem.node_tree[problem.entry_node[begin]])
            for e in range(begin + 1, end):
                b = top(up, problem.node_tree[problem.entry_node[e]])
                if b < a:
                    up[a] = b
                    a = b
                elif a < b:
                    up[b] = a
    count = 0
    for g in range(problem.groups):  # numbered in order of their first groups
        begin = problem.entry_first[g]
        if begin < problem.entry_first[g + 1]:
            a = top(up, problem.node_tree[problem.entry_node[begin]])
            if island[a] < 0:
                island[a] = count
                first[count] = 0
                count += 1
            first[island[a]] += 1
    total = 0
    for i in range(count):
        total += first[i]
        first[i] = total
    first[count] = total
    for t in range(problem.trees):
        island[t] = island[top(up, t)]
    for k in range(problem.groups):  # from the last to the first: lists keep the order
        g = problem.groups - 1 - k
        begin = problem.entry_first[g]
        if begin < problem.entry_first[g + 1]:
            i = island[problem.node_tree[problem.entry_node[begin]]]
            first[i] -= 1
            work.island_group[first[i]] = g
    return count
