"""Orders of elimination of the bodies and joints of a mechanism — RBDA §8.13.

The matrix of (8.64) has a block row for every body and every joint, and nonzero blocks where a
joint meets a body. Eliminating a node connects its neighbours with one another: fill-in. The order
of this module takes the node with the fewest neighbours next, as long as its pivot is safe. It
fills in nothing on a kinematic tree and a constant number of blocks for each rung of a ladder.

The matrix is indefinite, and pivots must not vanish unless a constraint is redundant. Bodies
eliminated so far form articulated bodies, joined by the joints eliminated so far. Such a joint
*anchors* its articulated body to the base, or to a body that is still to come. A pivot is safe if
it joins an articulated body that is not anchored to anything, or two with the same anchor: the
forces of the joint that move nothing then do not reach beyond, and can be left out.
"""

import heapq
from collections.abc import Collection, Sequence
from typing import NamedTuple


class EliminationOrder(NamedTuple):
    """Symbolic factorisation: order of elimination and fill-in."""

    nodes: tuple
    """``("body", i)``, ``("joint", j)`` and ``("row", c)`` in the order of elimination."""
    neighbours: tuple
    """For each of them, the nodes that are left and that its pivot row meets."""
    entries: int
    """Number of blocks below the diagonal of the matrix itself."""

    @property
    def blocks(self) -> int:
        """Number of blocks below the diagonal of the factor."""
        return sum(map(len, self.neighbours))

    @property
    def fill(self) -> int:
        """Number of fill-in blocks in the factor."""
        return self.blocks - self.entries

    @property
    def products(self) -> int:
        """Number of block products that the factorisation takes."""
        return sum(len(n) * (len(n) + 3) // 2 for n in self.neighbours)


def elimination_order(
    body_count: int,
    ends: Sequence[tuple[int, int]],
    rows: Sequence[Collection[int]] = (),
    links: Sequence[tuple[int, int]] = (),
) -> EliminationOrder:
    """``EliminationOrder`` by symbolic analysis of the mechanism's connectivity.

    Args:
        body_count: number of moving bodies, which are 1, 2, ….
        ends: predecessor and successor of every joint, tree and loop joints; 0 is the base.
        rows: bodies that each further constraint involves, such as a coupling of joints; these
            come last.
        links: pairs of bodies with their own block, such as one of armature.
    """
    graph = _graph(body_count, ends, rows, links)
    entries = sum(map(len, graph.values())) // 2
    assemblies = _Assemblies(ends)
    queue = [(len(graph[node]), node) for node in graph if node[0] == "body"]
    waiting: dict = {}
    heapq.heapify(queue)
    nodes, neighbours, done = [], [], set()

    while queue:
        degree, node = heapq.heappop(queue)
        if node in done or degree != len(graph[node]):
            continue  # it comes again with the degree it has now
        kind, number = node
        if kind == "joint":
            body = assemblies.hindrance(number)
            if body is not None:
                waiting.setdefault(body, []).append(node)
                continue
        found = sorted(graph.pop(node))
        nodes.append(node)
        neighbours.append(tuple(found))
        done.add(node)
        assemblies.add(node)
        for u in found:
            graph[u].discard(node)
            graph[u].update(w for w in found if w != u)
        if kind == "body":
            found = [*found, *waiting.pop(number, ())]
        for u in found:
            if u[0] != "row" and u not in done:
                heapq.heappush(queue, (len(graph[u]), u))

    for c in range(len(rows)):
        node = ("row", c)
        found = sorted(graph.pop(node))
        for u in found:
            graph[u].discard(node)
            graph[u].update(w for w in found if w != u)
        nodes.append(node)
        neighbours.append(tuple(found))
    return EliminationOrder(tuple(nodes), tuple(neighbours), entries)


def half_bandwidth(nodes, ends):
    """Largest distance between a joint and its bodies in an order of all nodes."""
    place = {node: n for n, node in enumerate(nodes)}
    return max(
        abs(place["joint", j] - place["body", b])
        for j, bodies in enumerate(ends)
        for b in bodies
        if b != 0
    )


def _graph(body_count, ends, rows, links):
    """Adjacency sets of bodies, joints and rows that share unknowns."""
    graph = {("body", i): set() for i in range(1, body_count + 1)}
    groups = [(("joint", j), bodies) for j, bodies in enumerate(ends)]
    groups += [(("row", c), bodies) for c, bodies in enumerate(rows)]
    for node, bodies in groups:
        graph[node] = {("body", b) for b in bodies if b != 0}
        for body in graph[node]:
            graph[body].add(node)
    for a, b in links:
        if a != 0 and b != 0:
            graph["body", a].add(("body", b))
            graph["body", b].add(("body", a))
    return graph


class _Assemblies:
    """Articulated bodies made of what was eliminated, and what each is anchored to."""

    def __init__(self, ends):
        self.ends = ends
        self.leader = {0: 0}
        self.anchor: dict = {0: 0}  # of a leader: a body that is still to come, 0, or None

    def hindrance(self, joint):
        """Body that must be eliminated before a joint can be, or None."""
        first, second = (self._anchor_of(b) for b in self.ends[joint])
        if first == second or None in (first, second):
            return None
        return first if first not in self.leader else second

    def add(self, node):
        """Record that a body or a joint has been eliminated."""
        kind, number = node
        if kind == "body":
            self.leader[number] = number
            self.anchor[number] = None
            return
        first, second = (self._leader(b) for b in self.ends[number])
        anchors = {self._anchor_of(b) for b in self.ends[number]} - {None}
        anchor = anchors.pop() if anchors else None
        for leader in (first, second):
            if leader is not None and leader != 0:
                self.anchor[leader] = anchor
        if first and second and first != second:
            self.leader[first] = second

    def _leader(self, body):
        """Representative body of the assembly of an eliminated body; None if not eliminated."""
        if body not in self.leader:
            return None
        path = []
        while self.leader[body] != body:
            path.append(body)
            body = self.leader[body]
        for b in path:
            self.leader[b] = body
        anchor = self.anchor[body]
        if body != 0 and anchor is not None and anchor != 0 and anchor in self.leader:
            self.leader[body] = anchor  # the body that it was anchored to has been eliminated
            return self._leader(anchor)
        return body

    def _anchor_of(self, body):
        """Anchor of a body: itself if not eliminated, else the anchor of its assembly."""
        leader = self._leader(body)
        return body if leader is None else self.anchor[leader]
