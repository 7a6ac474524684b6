"""Symbolic analysis: no fill-in on trees, a constant amount for each rung of a ladder."""

import numpy as np
import pytest

from kinetree.textbook.elimination_order import elimination_order, half_bandwidth


def ladder_graph(rungs):
    """The graph of RBDA Figure 8.4: bodies 1, 3, 5, … and 2, 4, 6, … with joints between."""
    ends = []
    for i in range(rungs):
        left, right = 2 * i + 1, 2 * i + 2
        ends.append((left, right))
        if i < rungs - 1:
            ends += [(left, left + 2), (right, right + 2)]
    return 2 * rungs, ends


def book_order(rungs):
    """1, 2, 12, 13, 24, 3, 4, 34, 35, 46, 5, 6, 56, …"""
    nodes = []
    for i in range(rungs):
        nodes += [("body", 2 * i + 1), ("body", 2 * i + 2)]
        nodes += [("joint", 3 * i + n) for n in range(3 if i < rungs - 1 else 1)]
    return nodes


@pytest.mark.covers("RBDA 8.13", by=half_bandwidth)
@pytest.mark.parametrize("rungs", [2, 3, 10, 100])
def test_the_order_of_the_book_has_half_bandwidth_3(rungs):
    _, ends = ladder_graph(rungs)
    assert half_bandwidth(book_order(rungs), ends) == 3


@pytest.mark.covers("RBDA 8.13", by=elimination_order)
def test_work_on_a_ladder_is_linear_in_its_rungs():
    counts = {r: elimination_order(*ladder_graph(r)) for r in (50, 100, 200, 400)}
    assert max(len(n) for n in counts[400].neighbours) == 3
    for what in ("blocks", "fill", "products"):
        a, b, c, d = (getattr(order, what) for order in counts.values())
        assert c - b == 2 * (b - a)
        assert d - c == 2 * (c - b)


def star(n):
    return [(0 if i == 1 else 1, i) for i in range(1, n + 1)]


def chain(n):
    return [(i - 1, i) for i in range(1, n + 1)]


def random_parents(n):
    rng = np.random.default_rng(n)
    return [(int(rng.integers(0, i)), i) for i in range(1, n + 1)]


@pytest.mark.parametrize("tree", [chain, star, random_parents])
@pytest.mark.parametrize("n", [10, 2000])
def test_trees_fill_in_nothing(tree, n):
    order = elimination_order(n, tree(n))
    assert order.fill == 0
    assert order.products <= 4 * n
    assert len(order.nodes) == 2 * n


@pytest.mark.parametrize("seed", range(20))
def test_pivots_are_safe_on_any_graph(seed):
    """A joint joins an articulated body without anchor, or two with the same one."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    ends = random_parents(n)
    for _ in range(int(rng.integers(1, 6))):
        ends.append(tuple(int(b) for b in rng.choice(n + 1, 2, replace=False)))
    order = elimination_order(n, ends)
    assert len(set(order.nodes)) == len(order.nodes) == n + len(ends)
    anchors, members = {}, {}  # by representative, which is the smallest body
    for kind, number in order.nodes:
        if kind == "body":
            joined = [r for r, a in anchors.items() if a == number]
            members[number] = set().union({number}, *(members.pop(r) for r in joined))
            for r in joined:
                del anchors[r]
            anchors[number] = None
            continue
        sides = []
        for b in ends[number]:
            mine = [r for r, bodies in members.items() if b in bodies]
            sides.append((mine[0], anchors[mine[0]]) if mine else (None, b))
        (one, a), (other, b) = sides
        assert one is not None or other is not None
        assert a == b or a is None or b is None
        anchor = a if a is not None else b
        group = [r for r in {one, other} if r is not None]
        merged = set().union(*(members.pop(r) for r in group))
        for r in group:
            del anchors[r]
        members[group[0]], anchors[group[0]] = merged, anchor


def test_further_rows_come_last_and_links_count():
    order = elimination_order(3, chain(3), rows=[{1, 3}], links=[(1, 2), (0, 1)])
    assert order.nodes[-1] == ("row", 0)
    assert order.entries == 5 + 2 + 1


def test_rows_that_share_no_body_meet_where_a_third_one_joins_them():
    """Rows 1 and 2 touch different bodies on the base; row 0 touches both."""
    order = elimination_order(2, [(0, 1), (0, 2)], rows=[{1, 2}, {1}, {2}])
    of = dict(zip(order.nodes, order.neighbours, strict=True))
    assert of["row", 0] == (("row", 1), ("row", 2))
    assert of["row", 1] == (("row", 2),)
    assert of["row", 2] == ()


def test_half_bandwidth_counts_no_distance_to_the_base():
    nodes = [("body", 1), ("joint", 1), ("body", 2), ("joint", 0)]
    assert half_bandwidth(nodes, [(0, 1), (1, 2)]) == 3
