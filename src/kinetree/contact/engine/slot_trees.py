"""Newton's equations of contacts that couple several trees, tree by tree.

The trees that have the fewest neighbours left are eliminated first (minimum degree), and of the
matrix only what couples trees that touch is used.
"""

from kinetree.codegen.procedures import lane_sum, lanes, local, procedure, view, worlds_max
from kinetree.contact.engine.slot_world import SlotWorld

MAX_TREES = 31
"""Trees that contacts couple, at most: bits of a number."""
MAX_COUPLED_DOFS = 195
"""Variables of all trees where contacts couple them, at most, and three more."""


@procedure(inline=True)
def bits_of(x: int) -> int:
    """How many bits of a number below 2³¹ are set."""
    n = x - ((x >> 1) & 0x55555555)
    n = (n & 0x33333333) + ((n >> 2) & 0x33333333)
    n = (n + (n >> 4)) & 0x0F0F0F0F
    n += n >> 8
    n += n >> 16
    return n & 63


@procedure
def order_trees(
    world: SlotWorld,
    used: int,
    carrier: "float[:]",
    plan: "int[2, MAX_TREES]",
) -> None:
    """An order in which trees are eliminated, and the later ones that each is coupled to, as bits.

    The one with the fewest neighbours comes next (minimum degree). All lanes do the same.
    """
    near = local("int", MAX_TREES)
    for t in range(world.trees):
        near[t] = 1 << t
    left = 0
    for s in range(used):
        both = world.touched[int(carrier[s])]
        left = left | both
        for t in range(world.trees):
            if (both >> t) & 1 == 1:
                near[t] = near[t] | both
    for n in range(world.trees):
        best = -1
        fewest = MAX_TREES + 1
        for t in range(world.trees):
            if (left >> t) & 1 == 1:
                few = bits_of(near[t] & left)
                if few < fewest:
                    fewest = few
                    best = t
        plan[0, n] = best
        plan[1, n] = 0
        if best >= 0:
            left = left - (1 << best)
            both = near[best] & left
            plan[1, n] = both
            for t in range(world.trees):
                if (both >> t) & 1 == 1:
                    near[t] = near[t] | both


@procedure
def list_variables(
    world: SlotWorld, tree: int, later: int, listed: "int[MAX_COUPLED_DOFS]"
) -> "(int, int)":
    """Variables of a tree, and of later ones after them: how many of the tree, and of all.

    Three more that are none follow, so that four can be taken at once.
    """
    n = 0
    own = 0
    if tree >= 0:
        for k in range(world.trunk[tree], world.trunk[tree + 1]):
            listed[n] = k
            n += 1
        own = n
        for t in range(world.trees if later != 0 else 0):
            if (later >> t) & 1 == 1:
                for k in range(world.trunk[t], world.trunk[t + 1]):
                    listed[n] = k
                    n += 1
    for k in range(3):
        listed[n + k] = world.nv
    return own, n


@procedure(inline=True)
def add_row(
    world: SlotWorld,
    row: int,
    others: int,
    first: int,
    count: int,
    factor: float,
    wide: int,
    listed: "int[MAX_COUPLED_DOFS]",
) -> None:
    """Add a multiple of one row of a matrix to another one, four numbers at once.

    They are read before any is written, so that reads do not wait for each other.
    """
    q, p = local("float", 2, 4)
    at = local("int", 4)
    for e in range(first, count, 4):
        for k in range(4):
            at[k] = listed[e + k]
            q[k] = world.K[row * wide + at[k]]
            p[k] = world.K[others * wide + at[k]]
        for k in range(4):
            world.K[row * wide + at[k]] = q[k] + factor * p[k]


@procedure
def couple_trees(
    world: SlotWorld,
    used: int,
    most: int,
    carrier: "float[:]",
    w: "float[:]",
    W: "float[:, 9]",
    z: "float[:]",
) -> None:
    """Add ``Yᵀ W Y`` to a matrix ``K``, and ``-Yᵀ w`` to ``z``."""
    wide = world.nv + 1
    q = local("float", 4)
    for s in range(most):
        here = s < used
        i = int(carrier[s]) if here else 0
        at = i * world.deep
        for d in lanes(world.moves[i] if here else 0):
            y = local("float", 3)
            for r in range(3):
                y[r] = world.Y[((3 * s + r) * world.deep + d) * world.Y_step]
            k = world.chain[at + d]
            z[k] -= y[0] * w[3 * s] + y[1] * w[3 * s + 1] + y[2] * w[3 * s + 2]
            y[:] = y @ view(W[s], 0, 3, 3)
            for e in range(0, world.moves[i] if W[s, 0] > 0.0 else 0, 4):
                for j in range(4):
                    q[j] = world.K[k * wide + world.chain[at + e + j]]
                    for r in range(3):
                        q[j] += y[r] * world.Y[((3 * s + r) * world.deep + e + j) * world.Y_step]
                for j in range(4):
                    world.K[k * wide + world.chain[at + e + j]] = q[j]


@procedure
def gained_across(
    world: SlotWorld,
    used: int,
    most: int,
    plan: "int[2, MAX_TREES]",
    carrier: "float[:]",
    w: "float[:]",
    W: "float[:, 9]",
    z: "float[:]",
) -> None:
    """``z`` with ``(1 + Yᵀ W Y) z = -Yᵀ w`` where contacts couple several trees.

    ``K`` has rows of ``nv + 1`` numbers, of which only those that couple trees that touch are used.
    """
    wide = world.nv + 1
    listed = local("int", MAX_COUPLED_DOFS)
    for k in lanes(world.nv if used > 0 else 0):
        z[k] = 0.0
    for n in range(world.trees):
        tree = plan[0, n] if used > 0 else -1
        own, count = list_variables(world, tree, plan[1, n], listed)
        for a in lanes(count):
            i = listed[a]
            world.K[i * wide + world.nv] = 0.0
            for c in range(count if a < own else own):
                world.K[i * wide + listed[c]] = 1.0 if listed[c] == i else 0.0
    couple_trees(world, used, most, carrier, w, W, z)
    for n in range(2 * world.trees):  # forward, then back
        back = n >= world.trees
        at = 2 * world.trees - 1 - n if back else n
        tree = plan[0, at] if used > 0 else -1
        own, count = list_variables(world, tree, plan[1, at], listed)
        for turn in range(worlds_max(own)):
            a = own - 1 - turn if back else turn
            here = a >= 0 and a < own
            k = listed[a] if here else 0
            if back:
                x = 0.0
                for c in lanes(count - a - 1 if here else 0):
                    x += world.K[k * wide + listed[a + 1 + c]] * z[listed[a + 1 + c]]
                x = lane_sum(x)
                for _ in lanes(1 if here else 0):
                    z[k] = (z[k] - x) / world.K[k * wide + k]
            else:
                for c in lanes(count - a - 1 if here else 0):
                    i = listed[a + 1 + c]
                    x = world.K[i * wide + k]
                    if x != 0.0:
                        x /= world.K[k * wide + k]
                        z[i] -= x * z[k]
                        add_row(world, i, k, a + 1, count, -x, wide, listed)
