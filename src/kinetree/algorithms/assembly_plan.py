"""In which order to join the bodies of a mechanism: a balanced binary tree — RBDA §3.2, §7.5.

Leaves are bodies, the base (0) among them. Every other node joins two parts by all the joints
that run between them: one joint of the spanning tree, and the loop joints that close there.
Parts on the same level are independent of one another, so a chain of n bodies is assembled in
about log2 n parallel steps.
"""

from typing import NamedTuple

__all__ = ["Step", "assembly_plan", "joint_ends"]


class Step(NamedTuple):
    """A part of the mechanism, and how it is made from two smaller ones."""

    bodies: tuple
    """Numbers of the bodies in this part, in ascending order."""
    joints: tuple = ()
    """Joints closed in this step; numbers above N_B are loop joints."""
    parts: tuple = ()
    """The part that the tree joint leaves and the part that it enters; none for a single body."""

    @property
    def depth(self) -> int:
        """Number of steps that have to follow one another, this one included."""
        return 1 + max(part.depth for part in self.parts) if self.parts else 0


def joint_ends(model):
    """``(predecessor, successor)`` of every joint: tree joints 1 … N_B, then loop joints."""
    tree = {i: (model.parent[i], i) for i in range(1, model.body_count + 1)}
    loops = {
        n: (loop.predecessor, loop.successor)
        for n, loop in enumerate(model.loops, start=model.body_count + 1)
    }
    return tree | loops


def assembly_plan(model):
    """Cut the mechanism into halves, as equal as its tree allows, down to single bodies."""
    ends = joint_ends(model)

    def part(bodies):
        if len(bodies) == 1:
            return Step(tuple(bodies))
        beyond = {i: {i} for i in bodies}
        for i in reversed(bodies[1:]):  # the first is the root of this part
            beyond[model.parent[i]] |= beyond[i]
        cut = min(bodies[1:], key=lambda i: abs(len(bodies) - 2 * len(beyond[i])))
        near = [i for i in bodies if i not in beyond[cut]]
        far = [i for i in bodies if i in beyond[cut]]
        joints = [j for j, (p, s) in ends.items() if _crosses(p, s, set(near), beyond[cut])]
        return Step(tuple(bodies), tuple(joints), (part(near), part(far)))

    return part(list(range(model.body_count + 1)))


def _crosses(p, s, near, far):
    return (p in near and s in far) or (p in far and s in near)
