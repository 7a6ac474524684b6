"""Sleep: islands that rest are left as they are until something touches or drives them.

Trees of an island that have all been slow for a while fall asleep together, as a pile, and stand
still to the bit. Their contacts keep their forces and have no rows. A pile wakes as a whole when
something that is awake can touch it within the step, or when a joint force on it changes; a state
that is set wakes everything. While all sleep a step only counts the time.
"""

import numpy as np

from kinetree.codegen.procedures import procedure, record
from kinetree.contact.collision.tables import Found

SLOW = 1e-4
"""Speed of what rests, in radians or lengths of the mechanism (its largest shape) per second."""

CALM = 50
"""Steps for which it is slower before it falls asleep."""


@record
class Sleep:
    """Record of the trees that sleep.

    Attributes:
        on: whether they may;  trees: how many there are;  asleep: how many sleep.
        sleeps: of trees, 1 where they do;  pile: the first tree of those with which it sleeps.
        calm: of trees: steps for which they have been slow;  fastest: speed in the last one.
        ready: of islands: the first tree where all may fall asleep.
        moved: of trees: 1 where a variable moves prescribed; these do not sleep.
        tree: of bodies, -1 for what is fixed;  tree_of_q, tree_of_v: of variables.
        tau: joint forces with which they sleep.
    """

    on: int
    trees: int
    asleep: int
    sleeps: "int[:]"
    pile: "int[:]"
    calm: "int[:]"
    fastest: "float[:]"
    ready: "int[:]"
    moved: "int[:]"
    tree: "int[:]"
    tree_of_q: "int[:]"
    tree_of_v: "int[:]"
    tau: "float[:]"


def sleep_of(tree, m, p, on) -> Sleep:
    """``Sleep`` record with all trees awake; ``on`` enables falling asleep."""
    of_v = np.array(p.node_tree[p.dof_node], dtype=np.int64) if p.nv else np.zeros(0, np.int64)
    of_q = np.zeros(tree.nq, dtype=np.int64)
    for q, v in zip(tree.q_slice[1:], tree.v_slice[1:], strict=True):
        of_q[q] = of_v[v.start] if v.stop > v.start else 0
    bodies = np.where(m.node >= 0, p.node_tree[np.maximum(m.node, 0)] if p.nv else -1, -1)
    moved = np.zeros(p.trees, dtype=np.int64)
    moved[of_v[m.free == 0]] = 1
    return Sleep(
        on=int(on),
        trees=p.trees,
        tree=np.ascontiguousarray(bodies, dtype=np.int64),
        moved=moved,
        tree_of_q=of_q,
        tree_of_v=of_v,
        tau=np.zeros(p.nv),
        fastest=np.zeros(p.trees),
        **{k: np.zeros(p.trees, dtype=np.int64) for k in ("sleeps", "pile", "calm", "ready")},
    )


@procedure
def is_asleep(z: Sleep, f: Found, c: int) -> bool:
    """Whether no body of contact ``c`` is awake."""
    a = z.tree[f.bodies[c, 0]]
    b = z.tree[f.bodies[c, 1]]
    return z.asleep > 0 and (a < 0 or z.sleeps[a] == 1) and (b < 0 or z.sleeps[b] == 1)


@procedure
def is_mixed(z: Sleep, f: Found, c: int) -> bool:
    """Whether one body of contact ``c`` sleeps and the other is awake."""
    a = z.tree[f.bodies[c, 0]]
    b = z.tree[f.bodies[c, 1]]
    return z.asleep > 0 and a >= 0 and b >= 0 and z.sleeps[a] != z.sleeps[b]


@procedure
def wake(z: Sleep, t: int):
    """Wake a tree and all trees of the same sleeping island."""
    pile = z.pile[t]
    for i in range(z.trees):
        if z.sleeps[i] == 1 and z.pile[i] == pile:
            z.sleeps[i] = 0
            z.calm[i] = 0
            z.asleep -= 1


@procedure
def wake_driven(z: Sleep, tau: "float[:]", nv: int):
    """Wake trees whose joint forces differ from those with which they fell asleep."""
    for k in range(nv):
        t = z.tree_of_v[k]
        if z.sleeps[t] == 1 and tau[k] != z.tau[k]:
            wake(z, t)


@procedure
def fall_asleep(
    z: Sleep, island: "int[:]", v: "float[:]", units: "float[:]", tau: "float[:]", nv: int
) -> bool:
    """Put islands to sleep that have been slow long enough; whether any fell asleep."""
    z.fastest[: z.trees] = 0.0
    for k in range(nv):
        t = z.tree_of_v[k]
        z.fastest[t] = max(z.fastest[t], abs(v[k]) / units[k])
    for t in range(z.trees):
        rests = island[t] >= 0 and z.moved[t] == 0 and z.fastest[t] < SLOW
        z.calm[t] = z.calm[t] + 1 if rests else 0
        z.ready[t] = -1
    before = z.asleep
    for t in range(z.trees):  # the first tree of islands, or -2 where one is not slow yet
        if island[t] >= 0:
            if z.calm[t] < CALM:
                z.ready[island[t]] = -2
            elif z.ready[island[t]] == -1:
                z.ready[island[t]] = t
    for t in range(z.trees):
        if island[t] >= 0 and z.ready[island[t]] >= 0:
            z.sleeps[t] = 1
            z.pile[t] = z.ready[island[t]]
            z.asleep += 1
    if z.asleep == before:
        return False
    for k in range(nv):
        if z.sleeps[z.tree_of_v[k]] == 1:
            v[k] = 0.0
            z.tau[k] = tau[k]
    return True
