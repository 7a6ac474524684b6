"""Islands, and the pattern of the Cholesky factor of ``M + J' A J``: order, fill, addresses.

Islands are trees that groups of rows connect, directly or through others, joined by union-find with
halved paths. What is fixed to the ground has no node, so the ground connects nothing.

Two nodes are coupled where one carries the other (the mass matrix) or a group has entries of both.
Nodes are eliminated by minimum degree, so leaves of trees before roots, and free bodies with few
neighbours first. The row of blocks that a node leaves in the factor, its **panel**, is one matrix:
as many rows as the node has degrees of freedom, its own columns first, then those of the later
nodes it is coupled with, by elimination or from the start, in their order.

The pattern of a step is that of its own couplings, whatever was solved before: a motion that starts
again repeats its bits. Problems of the same step with fewer couplings go on with it.
"""

from kinetree.codegen.procedures import procedure
from kinetree.contact.newton.problem import CONE, Problem, Work, note_spot

MOST_ALIKE = 8
"""Contacts of the same bodies that are added to a matrix at once, at most."""


@procedure
def top(up: "int[:]", tree: int) -> int:
    """Representative of the set of joined trees that ``tree`` is in (union-find with halving)."""
    i = tree
    while up[i] != i:
        up[i] = up[up[i]]
        i = up[i]
    return i


@procedure
def list_runs(problem: Problem, work: Work, islands: int) -> None:
    """List the runs of consecutive constraint rows that each island consists of."""
    at = 0
    for i in range(islands):
        work.run_first[i] = at
        end = -1
        for k in range(work.island_groups_first[i], work.island_groups_first[i + 1]):
            g = work.island_group[k]
            if problem.row_first[g] != end:
                work.run[at, 0] = problem.row_first[g]
                at += 1
            end = problem.row_first[g + 1]
            work.run[at - 1, 1] = end
    work.run_first[islands] = at


@procedure
def split(problem: Problem, work: Work) -> int:
    """Split trees coupled by groups into islands; lists their groups, returns their number."""
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
    list_runs(problem, work, count)
    return count


@procedure
def address(work: Work, i: int, j: int) -> int:
    """Address in ``H`` of the block of two node positions, ``i <= j``; -1 if not in the pattern."""
    if i == j:
        return work.panel_at[i]
    low = work.panel_first[i]
    high = work.panel_first[i + 1] - 1
    while low <= high:
        middle = (low + high) // 2
        k = work.panel_node[middle]
        if k == j:
            return work.panel_at[i] + work.panel_offset[middle]
        if k < j:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@procedure
def same_nodes(problem: Problem, g: int) -> bool:
    """Whether a group acts on the same nodes as the group before it."""
    if g == 0:
        return False
    begin = problem.entry_first[g]
    before = problem.entry_first[g - 1]
    n = problem.entry_first[g + 1] - begin
    if begin - before != n:
        return False
    same = True
    for e in range(n):
        same = same and problem.entry_node[begin + e] == problem.entry_node[before + e]
    return same


@procedure
def couples(problem: Problem, g: int) -> bool:
    """Whether a group acts on nodes that are not a chain of parents, so that it couples trees."""
    for e in range(problem.entry_first[g], problem.entry_first[g + 1] - 1):
        if problem.node_parent[problem.entry_node[e]] != problem.entry_node[e + 1]:
            return True
    return False


@procedure
def note_couplings(problem: Problem, work: Work) -> None:
    """Store the trees and couplings from which the matrix pattern was made."""
    at = 0
    for t in range(problem.trees):
        work.coupled[at] = 1 if work.tree_island[t] >= 0 else 0
        at += 1
    for g in range(problem.groups):
        if couples(problem, g) and not same_nodes(problem, g):
            for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
                work.coupled[at] = problem.entry_node[e]
                at += 1
            work.coupled[at] = -1
            at += 1
    work.couplings = at


@procedure
def has_couplings(problem: Problem, work: Work) -> bool:
    """Whether the matrix pattern was made from exactly this problem's couplings, in order."""
    at = 0
    for t in range(problem.trees):
        if (work.coupled[at] == 1) != (work.tree_island[t] >= 0):
            return False
        at += 1
    for g in range(problem.groups):
        if couples(problem, g) and not same_nodes(problem, g):
            for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
                if at >= work.couplings or work.coupled[at] != problem.entry_node[e]:
                    return False
                at += 1
            if at >= work.couplings or work.coupled[at] != -1:
                return False
            at += 1
    return at == work.couplings


@procedure
def note_bunch(problem: Problem, work: Work, g: int) -> None:
    """Store block addresses for a free-body contact and the similar ones after it.

    How many they are, then address and width of the panel for the block of the first body, the
    same for that of the second one, -1 if there is none, and for that of both, and 1 where its rows
    are those of the second.
    """
    bunch = work.bunch[g]
    pair = work.pair_first[g]
    e = problem.entry_first[g]
    i = work.position[problem.entry_node[e]]
    bunch[0] = 1
    bunch[1] = work.pair_at[pair]
    bunch[2] = work.panel_width[i]
    bunch[3] = -1
    if work.spot[g, 2] >= 0:
        j = work.position[problem.entry_node[e + 1]]
        bunch[3] = work.pair_at[pair + 2]
        bunch[4] = work.panel_width[j]
        bunch[5] = work.pair_at[pair + 1]
        bunch[6] = work.panel_width[min(i, j)]
        bunch[7] = 1 if j < i else 0


@procedure
def place_pairs(problem: Problem, work: Work) -> int:
    """Find the block of every pair of a group's nodes; 0, 1: pattern lacks one, -1: no room."""
    for n in range(problem.nodes):
        if work.tree_island[problem.node_tree[n]] >= 0 and work.position[n] < 0:
            return 1
        if work.tree_island[problem.node_tree[n]] >= 0:
            i = work.position[n]
            for b in range(problem.node_blocks_first[n], problem.node_blocks_first[n + 1]):
                j = work.position[problem.block_ancestor[b]]
                work.block_place[b] = address(work, min(i, j), max(i, j))
    at = 0
    head = -1
    for g in range(problem.groups):
        note_spot(problem, work, g)
        work.pair_first[g] = at
        begin = problem.entry_first[g]
        n = problem.entry_first[g + 1] - begin
        pairs = n * (n + 1) // 2
        if at + pairs > work.pairs_room:
            return -1
        goes_on = same_nodes(problem, g)
        if goes_on:
            for _ in range(pairs):
                work.pair_at[at] = work.pair_at[at - pairs]
                at += 1
        else:
            for e in range(n):
                i = work.position[problem.entry_node[begin + e]]
                for f in range(e, n):
                    j = work.position[problem.entry_node[begin + f]]
                    k = address(work, min(i, j), max(i, j))
                    if k < 0:
                        return 1
                    work.pair_at[at] = k
                    at += 1
        if work.spot[g, 0] < 0 or problem.kind[g] != CONE:
            work.bunch[g, 0] = 0
            head = -1
        elif goes_on and head >= 0 and work.bunch[head, 0] < MOST_ALIKE:
            work.bunch[head, 0] += 1
        else:
            head = g
            note_bunch(problem, work, g)
    work.pair_first[problem.groups] = at
    return 0


@procedure
def neighbours(problem: Problem, work: Work) -> int:
    """List every node's neighbours in the coupling graph; the length used, -1 without room."""
    count = work.list_count
    count[: problem.nodes] = 0
    work.mark[: problem.nodes] = -1
    for n in range(problem.nodes):  # how many, repeated ones included
        if work.tree_island[problem.node_tree[n]] >= 0:
            for b in range(problem.node_blocks_first[n] + 1, problem.node_blocks_first[n + 1]):
                count[n] += 1
                count[problem.block_ancestor[b]] += 1
    for g in range(problem.groups):
        if couples(problem, g) and not same_nodes(problem, g):
            begin = problem.entry_first[g]
            end = problem.entry_first[g + 1]
            for e in range(begin, end):
                count[problem.entry_node[e]] += end - begin - 1
    total = 0
    for n in range(problem.nodes):
        work.list_at[n] = total
        total += count[n]
        work.list_room[n] = count[n]
        count[n] = 0
    if total > work.pool_room:
        return -1
    for n in range(problem.nodes):
        if work.tree_island[problem.node_tree[n]] >= 0:
            for b in range(problem.node_blocks_first[n] + 1, problem.node_blocks_first[n + 1]):
                a = problem.block_ancestor[b]
                work.pool[work.list_at[n] + count[n]] = a
                count[n] += 1
                work.pool[work.list_at[a] + count[a]] = n
                count[a] += 1
    for g in range(problem.groups):
        if couples(problem, g) and not same_nodes(problem, g):
            begin = problem.entry_first[g]
            end = problem.entry_first[g + 1]
            for e in range(begin, end):
                n = problem.entry_node[e]
                for f in range(begin, end):
                    if f != e:
                        work.pool[work.list_at[n] + count[n]] = problem.entry_node[f]
                        count[n] += 1
    for n in range(problem.nodes):  # each neighbour once
        at = work.list_at[n]
        kept = 0
        for k in range(at, at + count[n]):
            a = work.pool[k]
            if work.mark[a] != n:
                work.mark[a] = n
                work.pool[at + kept] = a
                kept += 1
        count[n] = kept
    return total


@procedure
def link(work: Work, n: int) -> None:
    """Insert a node into the list of nodes of its degree (minimum-degree ordering)."""
    d = work.list_count[n]
    work.degree[n] = d
    work.previous[n] = -1
    work.next[n] = work.bucket[d]
    if work.bucket[d] >= 0:
        work.previous[work.bucket[d]] = n
    work.bucket[d] = n


@procedure
def unlink(work: Work, n: int) -> None:
    """Remove a node from the list of nodes of its degree (minimum-degree ordering)."""
    if work.previous[n] >= 0:
        work.next[work.previous[n]] = work.next[n]
    else:
        work.bucket[work.degree[n]] = work.next[n]
    if work.next[n] >= 0:
        work.previous[work.next[n]] = work.previous[n]


@procedure
def eliminate(problem: Problem, work: Work, used: int) -> int:
    """Order nodes by minimum degree, leaving each panel's columns as lists; 0, or -1: no room."""
    free = used
    work.bucket[: problem.nodes + 1] = -1
    left = 0
    for k in range(problem.nodes):
        n = problem.nodes - 1 - k
        work.position[n] = work.mark[n] = -1
        if work.tree_island[problem.node_tree[n]] >= 0:
            link(work, n)
            left += 1
    work.ordered = left
    lowest = 0
    for step in range(left):
        while work.bucket[lowest] < 0:
            lowest += 1
        u = work.bucket[lowest]
        unlink(work, u)
        work.position[u] = step
        work.order[step] = u
        at = work.list_at[u]
        n = work.list_count[u]
        for k in range(n):
            v = work.pool[at + k]
            place = work.list_at[v]
            stamp = step * problem.nodes + v  # v's neighbours, in this step
            kept = 0
            for m in range(work.list_count[v]):
                x = work.pool[place + m]
                if x != u:
                    work.pool[place + kept] = x
                    kept += 1
                    work.mark[x] = stamp
            work.mark[v] = stamp
            for m in range(n):
                x = work.pool[at + m]
                if work.mark[x] != stamp:
                    if kept == work.list_room[v]:  # moved to the end, with room to grow
                        room = 2 * kept + 8
                        if free + room > work.pool_room:
                            return -1
                        for c in range(kept):
                            work.pool[free + c] = work.pool[place + c]
                        place = free
                        work.list_at[v] = free
                        work.list_room[v] = room
                        free += room
                    work.pool[place + kept] = x
                    kept += 1
            unlink(work, v)
            work.list_count[v] = kept
            link(work, v)
            if kept < lowest:
                lowest = kept
    return 0


@procedure
def analyse(problem: Problem, work: Work) -> int:
    """Symbolic factorisation: elimination order and panel pattern; 0, or -1 without room."""
    work.ordered = 0
    problem.changed = 2
    work.position[: problem.nodes] = -1
    used = neighbours(problem, work)
    if used < 0 or eliminate(problem, work, used) < 0:
        work.ordered = 0
        return -1
    total = 0
    work.left_first[: work.ordered + 1] = 0
    for k in range(work.ordered):
        u = work.order[k]
        total += work.list_count[u]
        for m in range(work.list_at[u], work.list_at[u] + work.list_count[u]):
            work.left_first[work.position[work.pool[m]]] += 1
    if total > work.panels_room:
        work.ordered = 0
        return -1
    total = 0
    for k in range(work.ordered):
        total += work.left_first[k]
        work.left_first[k] = total
    work.left_first[work.ordered] = total
    for m in range(work.ordered):  # rows of the factor, and from them its panels, in order
        k = work.ordered - 1 - m
        u = work.order[k]
        for i in range(work.list_at[u], work.list_at[u] + work.list_count[u]):
            j = work.position[work.pool[i]]
            work.left_first[j] -= 1
            work.left_panel[work.left_first[j]] = k
    total = 0
    for k in range(work.ordered):
        work.panel_first[k] = total
        total += work.list_count[work.order[k]]
        work.mark[k] = 0
    work.panel_first[work.ordered] = total
    for j in range(work.ordered):
        for m in range(work.left_first[j], work.left_first[j + 1]):
            k = work.left_panel[m]
            i = work.panel_first[k] + work.mark[k]
            work.mark[k] += 1
            work.panel_node[i] = j
            work.left_index[m] = i
    numbers = 0
    for k in range(work.ordered):
        rows = problem.node_count[work.order[k]]
        width = rows
        for i in range(work.panel_first[k], work.panel_first[k + 1]):
            work.panel_offset[i] = width
            width += problem.node_count[work.order[work.panel_node[i]]]
        work.panel_at[k] = numbers
        work.panel_width[k] = width
        numbers += rows * width
    if numbers > work.room:
        work.ordered = 0
        return -1
    note_couplings(problem, work)
    return 0
