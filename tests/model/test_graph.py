"""Spanning trees, chords, cycles and numberings of connectivity graphs."""

from math import factorial

import numpy as np
import pytest
from support.mechanisms import random_graph

from kinetree.errors import ModelError
from kinetree.model import ConnectivityGraph
from kinetree.model.tree import check_parents, depths, numbering_count

# RBDA Fig. 4.1: base 0, crank 1, rod 2, piston 3; three revolute joints and a prismatic one.
CRANK_SLIDER = ConnectivityGraph(4, ((0, 1), (1, 2), (2, 3), (3, 0)))


@pytest.mark.covers("RBDA 4.1", by=ConnectivityGraph)
def test_crank_slider_has_one_loop_and_the_printed_parent_arrays():
    tree = CRANK_SLIDER.spanning_tree()
    assert (tree.body_count, len(CRANK_SLIDER.arcs), tree.loop_count) == (3, 4, 1)
    parents = {tuple(t.parent[1:]) for t in CRANK_SLIDER.numberings()}
    assert {(0, 1, 2), (0, 0, 1)} <= parents


@pytest.mark.covers("RBDA 4.1", by=ConnectivityGraph)
def test_crank_slider_has_eight_regular_numberings():
    counts = [
        numbering_count(CRANK_SLIDER.spanning_tree(arcs).parent)
        for arcs in CRANK_SLIDER.spanning_trees()
    ]
    assert sorted(counts) == [1, 1, 3, 3]
    numberings = list(CRANK_SLIDER.numberings())
    assert len(numberings) == CRANK_SLIDER.numbering_count() == 8
    assert len({(t.bodies, t.joints) for t in numberings}) == 8
    for t in numberings:
        check_parents(t.parent)


def test_number_of_spanning_trees_is_a_cofactor_of_the_laplacian(rng):
    for nodes, extra in ((4, 2), (5, 3), (6, 2)):
        graph = random_graph(rng, nodes, extra, turned=True)
        laplacian = np.zeros((nodes, nodes))
        for a, b in graph.arcs:
            laplacian[[a, b], [a, b]] += 1
            laplacian[[a, b], [b, a]] -= 1
        expected = round(np.linalg.det(laplacian[1:, 1:]))
        assert len(list(graph.spanning_trees())) == expected


def test_numbering_count_is_the_hook_length_formula(rng):
    for _ in range(5):
        graph = random_graph(rng, 6, 0, turned=True)
        assert len(list(graph.numberings())) == graph.numbering_count()
    star, chain = (-1, 0, 0, 0, 0), (-1, 0, 1, 2, 3)
    assert (numbering_count(star), numbering_count(chain)) == (factorial(4), 1)


@pytest.mark.covers("RBDA 4.1", by=ConnectivityGraph)
def test_chords_do_not_depend_on_the_tree_in_number_and_have_one_cycle_each(rng):
    graph = random_graph(rng, 6, 2, turned=True)
    for arcs in graph.spanning_trees():
        tree = graph.spanning_tree(arcs)
        assert tree.loop_count == len(graph.arcs) - tree.body_count == 2
        assert set(tree.joints[1 : graph.node_count]) == set(arcs)
        for chord in tree.chords:
            cycle = tree.cycle(chord)
            assert [k for k in cycle if k in tree.chords] == [chord]
            ends = [end for k in cycle for end in (tree.predecessor[k], tree.successor[k])]
            assert all(ends.count(node) == 2 for node in set(ends))  # every body of it is passed


@pytest.mark.covers("RBDA 4.1", by=ConnectivityGraph)
def test_figure_4_2_two_chords_three_cycles_of_which_two_have_one_chord():
    graph = ConnectivityGraph(4, ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2)))
    tree = graph.spanning_tree()
    one, other = (set(tree.cycle(chord)) for chord in tree.chords)
    assert len(tree.chords) == 2
    assert one != other
    assert set(tree.chords) <= one ^ other  # the third cycle passes through both chords


@pytest.mark.covers("RBDA 4.1", by=ConnectivityGraph)
def test_numbering_is_regular_and_joints_know_their_direction(rng):
    graph = random_graph(rng, 9, 3, turned=True)
    tree = graph.spanning_tree()
    check_parents(tree.parent)
    for i in range(1, 9):
        p, s = graph.arcs[tree.joints[i]]
        assert (tree.bodies[tree.predecessor[i]], tree.bodies[tree.successor[i]]) == (p, s)
        assert i in (tree.predecessor[i], tree.successor[i])
        assert tree.forward[i] == (tree.bodies[i] == s)
        assert tree.parent[i] == min(tree.predecessor[i], tree.successor[i])
    assert sorted(tree.bodies) == list(range(9))
    assert sorted(tree.joints[1:]) == list(range(len(graph.arcs)))


def test_default_tree_has_minimum_depth():
    ring = ConnectivityGraph(7, tuple((k, (k + 1) % 7) for k in range(7)))
    tree = ring.spanning_tree()
    assert sorted(depths(tree.parent)) == [0, 1, 1, 2, 2, 3, 3]
    assert tree.forward.count(False) == 3


def test_regular_numbers_are_kept():
    tree = ConnectivityGraph(4, ((0, 1), (1, 2), (0, 3))).spanning_tree()
    assert tree.bodies == (0, 1, 2, 3)


def test_parallel_joints_are_legal_and_a_base_alone_is_a_graph():
    assert ConnectivityGraph(2, ((0, 1), (0, 1))).spanning_tree().loop_count == 1
    assert ConnectivityGraph(1, ()).spanning_tree().parent == (-1,)


@pytest.mark.covers("RBDA 4.1", by=ConnectivityGraph)
def test_a_graph_that_is_not_connected_is_rejected():
    apart = ConnectivityGraph(4, ((0, 1), (2, 3)))
    assert apart.components() == ((0, 1), (2, 3))
    with pytest.raises(
        ModelError, match=r"no path of joints leads from the base to bodies \[2, 3\]"
    ):
        apart.spanning_tree()
    with pytest.raises(ModelError, match="joint 0 connects body 1 to itself"):
        ConnectivityGraph(2, ((1, 1),))
    with pytest.raises(ModelError, match="joint 0 refers to body 2; bodies are 0 to 1"):
        ConnectivityGraph(2, ((0, 2),))
    with pytest.raises(ModelError, match="a spanning tree of 4 nodes has 3 arcs, got 4"):
        CRANK_SLIDER.spanning_tree([0, 1, 2, 3])
    with pytest.raises(ModelError, match=r"to bodies \[2, 3\]"):
        CRANK_SLIDER.spanning_tree([0])
