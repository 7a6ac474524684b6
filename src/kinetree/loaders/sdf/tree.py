"""Which joints of a file carry bodies and which close loops.

Any spanning tree will do for the dynamics. But only joints of the tree have variables, so those
that follow others, or have springs, damping or limits, should be in it.
"""

from kinetree.joints import Fixed
from kinetree.loaders.sdf.frames import WORLD
from kinetree.loaders.sdf.mechanism import Arc

__all__ = ["Connections"]


class _Groups:
    """Things that belong together: a forest whose roots stand for groups."""

    def __init__(self, things):
        self._above = {thing: thing for thing in things}

    def of(self, thing):
        while self._above[thing] != thing:
            self._above[thing] = self._above[self._above[thing]]
            thing = self._above[thing]
        return thing

    def join(self, a, b) -> bool:
        """Whether the two were apart."""
        a, b = self.of(a), self.of(b)
        self._above[b] = a
        return a != b


class Connections:
    """Links and joints as a graph.

    Args:
        links: keys.
        arcs: the joints between them and the world.
        needed: names of joints that must be in the tree.
    """

    def __init__(self, links: list[str], arcs: list[Arc], needed: set[str]):
        self.links, self.arcs, self.needed = links, list(arcs), needed

    def add(self, arc: Arc):
        """One more joint."""
        self.arcs.append(arc)

    def apart(self) -> list[set[str]]:
        """The parts that nothing connects to the world."""
        groups = _Groups([WORLD, *self.links])
        for arc in self.arcs:
            groups.join(arc.predecessor, arc.successor)
        parts: dict[str, set[str]] = {}
        for link in self.links:
            parts.setdefault(groups.of(link), set()).add(link)
        parts.pop(groups.of(WORLD), None)
        return list(parts.values())

    def chosen(self) -> tuple[list[Arc], list[Arc], list[Arc]]:
        """Joints of the tree, joints that close loops, and joints between links that are one."""
        groups, rigid = _Groups([WORLD, *self.links]), _Groups([WORLD, *self.links])
        tree, left, still = [], [], []
        near = self._distance()
        for arc in sorted(self.arcs, key=lambda arc: (self._rank(arc), near[arc.name])):
            if groups.join(arc.predecessor, arc.successor):
                tree.append(arc)
                if isinstance(arc.joint, Fixed):
                    rigid.join(arc.predecessor, arc.successor)
            elif rigid.of(arc.predecessor) == rigid.of(arc.successor):
                still.append(arc)
            else:
                left.append(arc)
        order = {arc.name: k for k, arc in enumerate(self.arcs)}
        for part in (tree, left, still):
            part.sort(key=lambda arc: order[arc.name])
        return tree, left, still

    def _rank(self, arc):
        if isinstance(arc.joint, Fixed):
            return 0
        if arc.name in self.needed:
            return 1
        return 2 if arc.dynamics is not None else 3 if arc.limits is not None else 4

    def _distance(self):
        """How far from the world each joint is, in joints; so that trees are not deep."""
        touching: dict[str, list[Arc]] = {key: [] for key in (WORLD, *self.links)}
        for arc in self.arcs:
            touching[arc.predecessor].append(arc)
            touching[arc.successor].append(arc)
        distance, reached, ring = {}, {WORLD}, [WORLD]
        steps = 0
        while ring:
            following = []
            for link in ring:
                for arc in touching[link]:
                    distance.setdefault(arc.name, steps)
                    other = arc.successor if arc.predecessor == link else arc.predecessor
                    if other not in reached:
                        reached.add(other)
                        following.append(other)
            ring, steps = following, steps + 1
        return distance
