"""Newton's equations of contacts that couple several trees, tree by tree, by the lanes of a warp.

The trees that have the fewest neighbours left are eliminated first (minimum degree), and of the
matrix only what couples trees that touch is used. ``PANEL`` variables are eliminated at once.
"""

from kinetree.codegen.procedures import (
    lane_count,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    view,
)
from kinetree.contact.engine.slot_classes import press, row_of
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns, bits_of

MAX_TREES = 31
"""Trees that contacts couple, at most: bits of a number."""
MAX_COUPLED_DOFS = 192
"""Variables of all trees where contacts couple them, at most."""
PANEL = 6
"""Variables that are eliminated at once: those of a free body."""
COLUMNS = 3
"""Columns of the rest that a lane takes at once."""
FEW = 24
"""Variables that one lane sums up as soon as all lanes do."""


@procedure(inline=True)
def wide_of(world: SlotWorld) -> int:
    """Odd row stride of the matrix ``K``, so that lanes use different memory banks."""
    return world.nv + 1 - world.nv % 2


@procedure
def list_trees(world: SlotWorld, its: Unknowns, tree: int, later: int, first: int) -> int:
    """List variables of a tree and of the later trees coupled with it; their number."""
    own = world.trunk[tree + 1] - world.trunk[tree]
    for k in lanes(own):
        its.listed[first + k] = world.trunk[tree] + k
    for t in lanes(world.trees):
        if (later >> t) & 1 == 1:
            at = first + own
            for o in range(t):
                if (later >> o) & 1 == 1:
                    at += world.trunk[o + 1] - world.trunk[o]
            for k in range(world.trunk[t], world.trunk[t + 1]):
                its.listed[at + k - world.trunk[t]] = k
    count = own
    for t in range(world.trees):
        if (later >> t) & 1 == 1:
            count += world.trunk[t + 1] - world.trunk[t]
    return count


@procedure
def order_trees(world: SlotWorld, its: Unknowns, used: int) -> int:
    """Order trees by minimum degree and list their variables; the number of trees.

    The one with the fewest neighbours comes next (minimum degree). ``order`` has of each where its
    list begins, how many variables are its own, and how many are listed.
    """
    for t in lanes(world.trees):
        near = 0
        for s in range(used):
            both = world.touched[its.carrier[s]]
            if (both >> t) & 1 == 1:
                near = near | both
        its.joined[t] = near
    left = 0
    for t in range(world.trees):
        left = left | its.joined[t]
    first = 0
    many = 0
    while left != 0:
        key = 0.0
        for t in lanes(world.trees):
            if (left >> t) & 1 == 1:
                few = bits_of(its.joined[t] & left)
                key = max(key, float((MAX_TREES + 1 - few) * 32 + 31 - t))
        tree = 31 - int(lane_max(key)) % 32
        left = left - (1 << tree)
        later = its.joined[tree] & left
        for t in lanes(world.trees):
            if (later >> t) & 1 == 1:
                its.joined[t] = its.joined[t] | later
        count = list_trees(world, its, tree, later, first)
        for _ in lanes(1):
            its.order[3 * many] = first
            its.order[3 * many + 1] = world.trunk[tree + 1] - world.trunk[tree]
            its.order[3 * many + 2] = count
        first += count
        many += 1
    return many


@procedure(inline=True)
def add_column(
    world: SlotWorld, its: Unknowns, s: int, e: int, first: int, rows: int, W: "float[:, 9]"
) -> None:
    """Add a lane's rows of one column of a contact's ``Yᵀ W Y`` to the matrix ``K``.

    Four numbers are read before any is written, so that reads do not wait for each other.
    """
    wide, own = wide_of(world), its.carrier[s] * world.deep
    n = world.moves[its.carrier[s]]
    x, y = local("float", 2, 3)
    row_of(world, its, s, e, x)
    y[:] = view(W[s], 0, 3, 3) @ x
    column = world.chain[own + e]
    for turn in range(((n if e < n else 0) + 4 * rows - 1) // (4 * rows)):
        d = first + turn * 4 * rows
        q = local("float", 4)
        at = local("int", 4)
        for k in range(4):
            here = d + k * rows < n
            at[k] = world.chain[own + d + k * rows] * wide + column if here else -1
            if here:
                row_of(world, its, s, d + k * rows, x)
                q[k] = world.K[at[k]] + x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
        for k in range(4):
            if at[k] >= 0:
                world.K[at[k]] = q[k]


@procedure
def couple_trees(
    world: SlotWorld, its: Unknowns, used: int, many: int, w: "float[:]", W: "float[:, 9]"
) -> None:
    """Build the matrix ``K = 1 + Yᵀ W Y`` and the right side ``-Yᵀ w``."""
    wide = wide_of(world)
    for n in range(many):
        first, count = its.order[3 * n], its.order[3 * n + 2]
        for k in lanes(its.order[3 * n + 1] * count):
            i, j = its.listed[first + k // count], its.listed[first + k % count]
            world.K[i * wide + j] = 1.0 if i == j else 0.0
            if i != j:
                world.K[j * wide + i] = 0.0
    press(world, its, used, w, its.older)
    for k in lanes(world.nv):
        its.older[k] = -its.older[k]
    first = 0
    for c in range(its.ends[0] if used > 0 else 0):  # contacts that share no variables
        each = (its.ends[1 + c] - first) * world.deep
        rows = max(1, lane_count() // each)
        for k in lanes(rows * each):
            s = first + k % each // world.deep
            if W[s, 0] > 0.0:
                add_column(world, its, s, k % world.deep, k // each, rows, W)
        first = its.ends[1 + c]


@procedure(inline=True)
def factor_panel(
    world: SlotWorld,
    its: Unknowns,
    own: int,
    width: int,
    P: "float[PANEL, PANEL]",
    one: "float[PANEL]",
    t: "float[PANEL]",
) -> None:
    """LU-factor a diagonal panel of ``K`` in registers, with inverse pivots and right side.

    Its variables are ``own`` and the next ones. All lanes do the same. Where there are fewer
    variables, the rest is that of the identity.
    """
    wide = wide_of(world)
    for a in range(PANEL):
        t[a] = its.older[own + a] if a < width else 0.0
        for c in range(PANEL):
            P[a, c] = 1.0 if a == c else 0.0
            if a < width and c < width:
                P[a, c] = world.K[(own + a) * wide + own + c]
    for a in range(PANEL):
        one[a] = 1.0 / P[a, a]
        for c in range(PANEL):
            if c > a:
                P[c, a] *= one[a]
                t[c] -= P[c, a] * t[a]
                for e in range(PANEL):
                    if e > a:
                        P[c, e] -= P[c, a] * P[a, e]


@procedure(inline=True)
def keep_panel(
    world: SlotWorld,
    its: Unknowns,
    own: int,
    width: int,
    P: "float[PANEL, PANEL]",
    one: "float[PANEL]",
    t: "float[PANEL]",
) -> None:
    """Store the upper factor, with inverse pivots, and the right side of a diagonal panel."""
    wide = wide_of(world)
    for a in range(PANEL):
        if a < width:
            its.older[own + a] = t[a]
            for c in range(PANEL):
                if c >= a and c < width:
                    world.K[(own + a) * wide + own + c] = one[a] if c == a else P[a, c]


@procedure(inline=True)
def divide_by_panel(
    world: SlotWorld,
    its: Unknowns,
    i: int,
    own: int,
    width: int,
    P: "float[PANEL, PANEL]",
    one: "float[PANEL]",
    t: "float[PANEL]",
) -> None:
    """Compute the row, column and right side of variable ``i`` after elimination of a panel."""
    wide = wide_of(world)
    x, y = local("float", 2, PANEL)
    z = its.older[i]
    for c in range(PANEL):
        x[c] = 0.0
        y[c] = 0.0
        if c < width:
            x[c] = world.K[i * wide + own + c]
            y[c] = world.K[(own + c) * wide + i]
    for c in range(PANEL):
        for a in range(PANEL):
            if a < c:
                x[c] -= x[a] * P[a, c]
                y[c] -= P[c, a] * y[a]
        x[c] *= one[c]
        z -= x[c] * t[c]
    its.older[i] = z
    for c in range(PANEL):
        if c < width:
            world.K[i * wide + own + c] = x[c]
            world.K[(own + c) * wide + i] = y[c]


@procedure
def eliminate_panel(world: SlotWorld, its: Unknowns, first: int, width: int, rest: int) -> None:
    """Eliminate a panel of variables of ``K`` from the ``rest`` of its tree's list.

    Those of a panel follow one another.
    """
    wide, own, after = wide_of(world), its.listed[first], first + width
    P = local("float", PANEL, PANEL)
    one, t = local("float", 2, PANEL)
    factor_panel(world, its, own, width, P, one, t)
    for k in lanes(rest + 1):
        if k == rest:
            keep_panel(world, its, own, width, P, one, t)
        else:
            divide_by_panel(world, its, its.listed[after + k], own, width, P, one, t)
    groups = (rest + COLUMNS - 1) // COLUMNS
    for k in lanes(rest * groups):
        row, e = its.listed[after + k // groups] * wide, COLUMNS * (k % groups)
        lost = local("float", COLUMNS)
        column = local("int", COLUMNS)
        for r in range(COLUMNS):
            column[r] = its.listed[after + min(e + r, rest - 1)]
            lost[r] = 0.0
        for c in range(PANEL):
            if c < width:
                part = world.K[row + own + c]
                for r in range(COLUMNS):
                    lost[r] += part * world.K[(own + c) * wide + column[r]]
        for r in range(COLUMNS):
            if e + r < rest:
                world.K[row + column[r]] -= lost[r]


@procedure
def substitute_panel(world: SlotWorld, its: Unknowns, first: int, width: int, rest: int) -> None:
    """Back-substitute a panel's variables from the ``rest`` of its tree's list.

    Few others are summed up by a lane for each variable, and many by all lanes.
    """
    wide, own, after = wide_of(world), its.listed[first], first + width
    x = local("float", PANEL)
    x[:] = 0.0
    if rest > FEW:
        for k in lanes(rest):
            j = its.listed[after + k]
            z = its.older[j]
            for a in range(PANEL):
                if a < width:
                    x[a] += world.K[(own + a) * wide + j] * z
        for a in range(PANEL):
            x[a] = lane_sum(x[a])
    for a in lanes(width if rest <= FEW else 0):
        z = its.older[own + a]
        for k in range(rest):
            j = its.listed[after + k]
            z -= world.K[(own + a) * wide + j] * its.older[j]
        its.older[own + a] = z
    for turn in range(PANEL):
        a = PANEL - 1 - turn
        if a < width:
            x[a] = its.older[own + a] - x[a]
            for c in range(PANEL):
                if c > a and c < width:
                    x[a] -= world.K[(own + a) * wide + own + c] * x[c]
            x[a] *= world.K[(own + a) * wide + own + a]
    for _ in lanes(1):
        for a in range(PANEL):
            if a < width:
                its.older[own + a] = x[a]


@procedure
def gained_across(
    world: SlotWorld, its: Unknowns, used: int, many: int, w: "float[:]", W: "float[:, 9]"
) -> None:
    """Solve ``(1 + Yᵀ W Y) older = -Yᵀ w`` over trees coupled by contacts."""
    couple_trees(world, its, used, many, w, W)
    for turn in range(2 * many):  # forward, then back
        back = turn >= many
        n = 2 * many - 1 - turn if back else turn
        first, own, count = its.order[3 * n], its.order[3 * n + 1], its.order[3 * n + 2]
        panels = (own + PANEL - 1) // PANEL
        for p in range(panels):
            at = PANEL * (panels - 1 - p if back else p)
            width = min(PANEL, own - at)
            if back:
                substitute_panel(world, its, first + at, width, count - at - width)
            else:
                eliminate_panel(world, its, first + at, width, count - at - width)
