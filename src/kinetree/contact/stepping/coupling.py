"""Which rows of a step have to do with each other, and how much code they make.

Rows are in one group if they move the same mechanism, or mechanisms that may touch. The code for
the equations of a group grows with the cube of its size, that for all else with the size.
"""

from kinetree.contact.stepping.rows import Holds

__all__ = ["coupled_rows", "is_short"]

_EACH = 500  # as much code for each row as the equations of so many pairs of rows


def is_short(holds: Holds, most) -> bool:
    """Whether a step has no more code than one with ``most`` rows in one group."""
    return sum(map(_length, coupled_rows(holds))) <= _length(most)


def _length(rows):
    return rows * (_EACH + rows * rows)


def coupled_rows(holds: Holds) -> list[int]:
    """Numbers of rows in each group, where contacts are known beforehand; loops make it one."""
    model, known = holds.model, holds.scene.candidates
    if holds.closes or model.couplings:
        return [holds.count(known.size)]
    root = [0]
    for i in range(1, model.body_count + 1):
        root.append(root[model.parent[i]] or i)
    joints = [i for i in range(1, model.body_count + 1) for _ in range(model.joint[i].nv)]
    rows = [({root[p], root[s]} - {0}, 3) for p, s in zip(*known[:2], strict=True)]
    rows += [({root[joints[stop[1]]]}, 1) for stop in holds.joints.stops]
    rows += [({root[joints[i]]}, 1) for i, _ in holds.joints.friction]
    groups: list[tuple[set[int], int]] = []
    for trees, count in rows:
        joined = [group for group in groups if group[0] & trees]
        groups = [group for group in groups if not group[0] & trees]
        whole = trees.union(*(group[0] for group in joined))
        groups.append((whole, count + sum(group[1] for group in joined)))
    return sorted(count for _, count in groups)
