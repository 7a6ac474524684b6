"""The pattern of factors: islands, minimum degree, fill and addresses, from sets of neighbours.

A worse order or more fill than needed would solve the same equations, in more time.
"""

from itertools import combinations, pairwise

import numpy as np
import pytest
from support.islands import ancestors, filled, random_parents

from kinetree.contact.newton.pattern import (
    address,
    analyse,
    couples,
    has_couplings,
    place_pairs,
    same_nodes,
    split,
)
from kinetree.contact.newton.problem import BOUNDS, CONE, enlarge, workspace


def groups_of(rng, parent, count):
    """Contacts of one or two random freedoms and all that carry them; now and then one twice."""
    rows: list = []
    for _ in range(count):
        if rows and rng.random() < 0.2:
            rows.append(rows[-1])
            continue
        J = np.zeros((rng.choice([1, 3]), len(parent)))
        for d in rng.integers(0, len(parent), size=rng.integers(1, 3)):
            J[:, list(ancestors(parent, int(d)))] = 1.0
        rows.append((CONE if len(J) > 1 else BOUNDS, J, np.zeros(len(J)), 0.5, 0.0, np.inf))
    return rows


def a_problem(seed, trees=7, count=6):
    rng = np.random.default_rng(seed)
    parent = random_parents(rng, trees, most=7)
    p = filled(parent, np.eye(len(parent)), groups_of(rng, parent, count))
    if seed % 2:  # as the engine has them: from what moves down to the root
        for g in range(p.groups):
            span = slice(*p.entry_first[g : g + 2])
            p.entry_node[span] = p.entry_node[span][::-1].copy()
            p.entry_at[span] = p.entry_at[span][::-1].copy()
    return p


def analysed(p):
    work = workspace(p)
    while True:
        islands = split(p, work)
        if analyse(p, work) == 0 and place_pairs(p, work) == 0:
            return work, islands
        enlarge(work, p)


def nodes_of(p, g):
    return p.entry_node[p.entry_first[g] : p.entry_first[g + 1]].tolist()


def carriers(p, n):
    found = []
    while n >= 0:
        found.append(n)
        n = int(p.node_parent[n])
    return found


def graph(p):
    """Neighbours of the nodes of all islands."""
    touched = {int(p.node_tree[n]) for g in range(p.groups) for n in nodes_of(p, g)}
    near = {n: set() for n in range(p.nodes) if int(p.node_tree[n]) in touched}
    cliques = [carriers(p, n) for n in near] + [nodes_of(p, g) for g in range(p.groups)]
    pairs = [(n, a) for c in cliques[: len(near)] for n in c[:1] for a in c[1:]]
    pairs += [pair for c in cliques[len(near) :] for pair in combinations(c, 2)]
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    return near


CASES = [(seed, *size) for seed in range(12) for size in ((7, 6), (12, 20), (4, 1))]


@pytest.mark.parametrize("case", CASES[:3])
def test_islands_are_what_groups_connect(case):
    for seed in range(12):
        p = a_problem(seed, *case[1:])
        work = workspace(p)
        count = split(p, work)
        of = {t: {t} for t in range(p.trees)}
        used = set()
        for g in range(p.groups):
            trees = {int(p.node_tree[n]) for n in nodes_of(p, g)}
            used |= trees
            joined = set().union(*(of[t] for t in trees))
            for t in joined:
                of[t] = joined
        islands, numbers = [], {}
        for g in range(p.groups):  # in the order of their first groups
            trees = frozenset(of[int(p.node_tree[nodes_of(p, g)[0]])])
            if trees not in numbers:
                numbers[trees] = len(islands)
                islands.append([])
            islands[numbers[trees]].append(g)
        assert count == len(islands)
        found = np.split(work.island_group[: p.groups], work.island_groups_first[1:count])
        assert [x.tolist() for x in found] == islands
        assert work.island_groups_first[0] == 0
        assert work.island_groups_first[count] == p.groups
        expected = [numbers[frozenset(of[t])] if t in used else -1 for t in range(p.trees)]
        assert work.tree_island[: p.trees].tolist() == expected
        for i, groups in enumerate(islands):  # their rows, in runs
            rows = [r for g in groups for r in range(p.row_first[g], p.row_first[g + 1])]
            runs = work.run[work.run_first[i] : work.run_first[i + 1]].tolist()
            assert [r for begin, end in runs for r in range(begin, end)] == rows
            assert all(end != begin for (_, end), (begin, _) in pairwise(runs))


@pytest.mark.parametrize("case", CASES)
def test_nodes_are_eliminated_by_minimum_degree_and_panels_have_what_fills(case):
    p = a_problem(*case)
    work, _ = analysed(p)
    near = graph(p)
    order = work.order[: work.ordered].tolist()
    assert sorted(order) == sorted(near)
    position = {n: k for k, n in enumerate(order)}
    assert work.position[: p.nodes].tolist() == [position.get(n, -1) for n in range(p.nodes)]
    at, lefts = 0, [[] for _ in order]
    for k, n in enumerate(order):
        assert len(near[n]) == min(map(len, near.values()))
        later = near.pop(n)
        for a in later:
            near[a] |= later
            near[a] -= {a, n}
        panel = sorted(position[a] for a in later)
        span = slice(*work.panel_first[k : k + 2])
        assert work.panel_node[span].tolist() == panel
        rows, width = p.node_count[n], p.node_count[n]
        assert work.panel_at[k] == at
        assert address(work, k, k) == at
        for j, offset in zip(panel, work.panel_offset[span], strict=True):
            assert offset == width
            assert address(work, k, j) == at + width
            width += p.node_count[order[j]]
            lefts[j].append(k)
        for j in set(range(k + 1, len(order))) - set(panel):
            assert address(work, k, j) == -1
        assert work.panel_width[k] == width
        at += rows * width
    for j, left in enumerate(lefts):
        span = slice(*work.left_first[j : j + 2])
        assert work.left_panel[span].tolist() == left
        for k, index in zip(left, work.left_index[span], strict=True):
            assert work.panel_first[k] <= index < work.panel_first[k + 1]
            assert work.panel_node[index] == j


@pytest.mark.parametrize("case", CASES[:9])
def test_pairs_of_entries_and_blocks_of_the_mass_matrix_have_the_addresses_of_their_nodes(case):
    p = a_problem(*case)
    work, _ = analysed(p)

    def place(a, b):
        i, j = sorted((work.position[a], work.position[b]))
        return address(work, i, j)

    assert work.pair_first[0] == 0
    for g in range(p.groups):
        nodes = nodes_of(p, g)
        pairs = [place(a, b) for k, a in enumerate(nodes) for b in nodes[k:]]
        assert work.pair_at[slice(*work.pair_first[g : g + 2])].tolist() == pairs
        assert min(pairs) >= 0
        assert same_nodes(p, g) == (g > 0 and nodes == nodes_of(p, g - 1))
        assert couples(p, g) == (nodes != carriers(p, nodes[0]) and nodes[::-1] != nodes)
    for n in range(p.nodes):
        for k in range(p.node_blocks_first[n], p.node_blocks_first[n + 1]):
            if work.position[n] >= 0:
                assert work.block_place[k] == place(n, p.block_ancestor[k])


def test_a_pattern_is_that_of_its_own_couplings():
    """Neither that of fewer, nor of others, nor of trees that are in no island now."""
    kept = 0
    for seed in range(20):
        p = a_problem(seed, 5, 5)
        work, _ = analysed(p)
        assert has_couplings(p, work)
        other = a_problem(seed, 5, 5)
        other.groups -= 1
        split(other, work)
        touched = {int(p.node_tree[n]) for n in nodes_of(p, other.groups)}
        rest = {int(p.node_tree[n]) for g in range(other.groups) for n in nodes_of(p, g)}
        last = couples(p, other.groups) and not same_nodes(p, other.groups)
        same = touched <= rest and not last
        kept += same
        assert has_couplings(other, work) == same
        assert place_pairs(other, work) == 0  # fewer have their places in it
        fewer, _ = analysed(other)
        split(p, fewer)
        assert has_couplings(p, fewer) == same
    assert 3 < kept < 17
