"""Contact between the parts of a world, ties that hold them to each other, and removal."""

from typing import Any

from kinetree.errors import require_known
from kinetree.model.geometry import ContactPair, Surface
from kinetree.worlds.adding import AddingParts, surface_of
from kinetree.worlds.overlaps import overlapping_links
from kinetree.worlds.removal import drop_rules, remove_part
from kinetree.worlds.ties import hold, release, tie


class TouchingParts(AddingParts):
    """Contact between the parts of a world, ties between them, and their removal."""

    def remove(self, name: str) -> None:
        """Remove a part with all contact rules about it; the other parts keep their states.

        The others keep their states, and the solver what it knows of their contacts.

        Args:
            name: of the part; it can then be given to another.
        """
        require_known(name, self._parts, f"world {self.name!r} has no part {name!r} to remove")
        self._note_change()
        remove_part(self, name)

    def exclude(self, first: str, second: str) -> None:
        """Disable contact between two parts, bodies, links or shapes, until ``include``.

        ``include`` undoes it. The last call of ``exclude``, ``contact_pair`` and ``include`` for
        two of them counts.
        """
        self._pair(first, second, touch=False, surface=None)

    def include(self, first: str, second: str) -> None:
        """Restore the default contact rules between two parts, bodies, links or shapes.

        It undoes ``exclude``, ``contact_pair`` and ``exclude_overlaps``, and also what the files
        of robots, or their overlaps with their own base, have decided about the two.
        """
        ends = [self._touching(first), self._touching(second)]
        self._note_change(rules=True)
        drop_rules(self, *ends)

    def tie(self, name: str, first: str, second: str, *, joint: Any = None, at: Any = None) -> None:
        """Connect two bodies or frames as they are now by a joint, until ``release(name)``.

        Args:
            name: unique name, among the joints of the world.
            first: name of a body or frame of the world.
            second: name of the other.
            joint: what may move between them, such as ``kt.Spherical()``; nothing by default.
            at: where the joint is on ``first``: position (3,), pose (4, 4) or ``Plucker``; at
                ``second`` by default.
        """
        tie(self, name, first, second, joint, at)

    def release(self, name: str) -> None:
        """Release a tie, a loop joint or a coupling by name; ``hold`` closes it again.

        A joint that followed others has variables of its own then: ``q`` of the robot is longer.
        """
        release(self, name)

    def hold(self, name: str) -> None:
        """Close a loop joint, or enforce a coupling, again after ``release``.

        Its ends must be where it closes, a joint where it follows; ``tie`` holds bodies where they
        are.
        """
        hold(self, name)

    def exclude_overlaps(self, margin: float = 0.0) -> list[tuple[str, str]]:
        """Disable contact of links of the same robot that overlap now; returns their names.

        Links of many robot files overlap at a joint or two in every posture, and would be pushed
        apart. Contacts between parts stay as they are.

        Args:
            margin: links nearer to each other than this count as well [m].
        """
        names = overlapping_links(self, margin)
        for a, b in names:
            self.exclude(a, b)
        return names

    def contact_pair(
        self, first: str, second: str, *, surface: Surface | None = None, **coefficients: Any
    ) -> None:
        """Enable contact between two parts, bodies, links or shapes, with own coefficients.

        Args:
            first: name of a part, body, link or shape of the world.
            second: name of the other.
            surface: coefficients of the pair.
            **coefficients: in place of it, as in ``add``.
        """
        self._pair(
            first, second, touch=True, surface=surface_of(surface, coefficients, self.contact_pair)
        )

    def _pair(self, first, second, *, touch, surface):
        """Replace the contact rules between all shapes of two parts by one rule."""
        ends = [self._touching(first), self._touching(second)]
        self._note_change(rules=True)
        drop_rules(self, *ends)
        self._pairs += [ContactPair(a, b, touch, surface) for a in ends[0] for b in ends[1]]
