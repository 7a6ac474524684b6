"""Forces of contacts that obey their laws, by some lanes for each world.

Impulses ``lam`` and velocities ``w = b + Y u`` of the contacts with slots are along normal and
tangents, three numbers each, with ``u = Yᵀ lam``: ``Y = G L⁻¹ D^{-1/2}``, so that the mobility of
the contacts is ``Y Yᵀ``. Rows of ``Y`` are stored along the chain of the variables that move a
body, which begins alike for all bodies of a tree. ``own`` has the six numbers of the blocks on the
diagonal of ``Y Yᵀ``. Laws are those of ``stepping.step``.
"""

from kinetree.codegen.procedures import (
    cross,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    sqrt,
    vector,
    view,
    worlds_max,
)
from kinetree.contact.engine.slot_pairs import PairTables
from kinetree.contact.engine.slot_points import motion_of
from kinetree.contact.engine.slot_world import SlotWorld

SLOT_SIZE = 9
"""Numbers of a slot."""
MAX_CHAIN_DOFS = 128
"""Variables that move a body at most: turns of a lane that is alone."""
MAX_TREES = 31
"""Trees that contacts couple, at most: bits of a number."""
MAX_COUPLED_DOFS = 195
"""Variables of all trees where contacts couple them, at most, and three more."""
UNMIXED_SWEEPS = 8  # sweeps at the end that do not mix
MAX_EXTRAPOLATION = 5.0  # how far ahead of the last change mixtures may lie
MAX_GROWTH_FOR_EXTRAPOLATION = 1.01  # growth of the squared change up to which they may lie ahead
BLOCK_SWEEPS = 10  # sweeps in which each contact is solved whole
EXACT_SWEEPS = 16  # sweeps, after which errors may be larger
RELAXATION = 0.8  # part of the change that later sweeps take
FIRM_WEIGHT = 3e-2  # weight of staying in two of seven steps of Newton
HEAVY_WEIGHT = 0.3  # weight in the first step of every other try
WEIGHT_DECAY = 0.7  # weight of the next step
LEAST_WEIGHT = 1e-6  # weight of staying, for forces that move nothing


@procedure(inline=True)
def first_column(
    world: SlotWorld,
    pairs: PairTables,
    carrier: int,
    d: int,
    column: "float[:, 6]",
    out: "float[6]",
) -> None:
    """Motion of the first body of a carrier by its variable number ``d``, divided as ``Y`` is."""
    o, both = pairs.couple[carrier, 0], pairs.couple[carrier, 2]
    n, others = world.moves[pairs.couple[carrier, 1]], world.moves[o]
    level = d if d < n else both + d - n
    first = both if d < both else level if d >= n else others
    out[:] = 0.0
    for e in range(first, others):
        at = o * world.deep + e
        out += world.work[world.begin[at] + level] * column[world.chain[at]]


@procedure
def contact_rows(world: SlotWorld, used: int, pairs: PairTables) -> None:
    """``Y``, and the blocks on the diagonal of ``Y Yᵀ``; ``place`` has points and axes.

    A lane computes columns ``d`` and ``d + deep/2``, of all six rows of the body first. Of two
    bodies, variables that move both come first, then others of the second, and of the first body.
    """
    half = world.deep // 2
    # At hand for all contacts, as ``inverse`` is.
    column = view(world.work, world.inverses, world.nv, 6)
    for k in lanes(world.inverses if used > 0 else 0):
        world.work[k] = world.inverse[k * world.inverse_step]
    for k in lanes(world.nv if used > 0 else 0):
        motion_of(k, world.S, world.S_step, column[k])
    for s in range(worlds_max(used)):
        here = s < used
        carrier = int(world.slot[SLOT_SIZE * s * world.slot_step]) if here else 0
        i, o, both = pairs.couple[carrier, 1], pairs.couple[carrier, 0], pairs.couple[carrier, 2]
        n = world.moves[i]
        others = world.moves[o] if here and pairs.count > 0 else 0
        shift = world.origin[world.tree[i]] - world.origin[world.tree[o]]
        at = 3 * s * world.deep
        D = local("float", 6)
        D[:] = 0.0
        for d in lanes(half if here else 0):
            a, b = local("float", 2, 6)
            a[:] = 0.0
            b[:] = 0.0
            for e in range(max(d, both), n):
                row = world.begin[i * world.deep + e]
                c = column[world.chain[i * world.deep + e]]
                a += world.work[row + d] * c
                b += (world.work[row + d + half] if e >= d + half else 0.0) * c
            its = local("float", 12)
            for k in range(12):
                its[k] = world.place[(12 * s + k) * world.place_step]
            p = its[9:]
            R = view(its, 0, 3, 3)
            x = R @ (a[3:] + cross(a[:3], p))
            y = R @ (b[3:] + cross(b[:3], p))
            if others > both:
                there = p + shift
                first_column(world, pairs, carrier, d, column, a)
                first_column(world, pairs, carrier, d + half, column, b)
                x -= R @ (a[3:] + cross(a[:3], there))
                y -= R @ (b[3:] + cross(b[:3], there))
            for r in range(3):
                world.Y[(at + r * world.deep + d) * world.Y_step] = x[r]
                world.Y[(at + r * world.deep + d + half) * world.Y_step] = y[r]
            for r in range(3):
                for k in range(r + 1):
                    D[r * (r + 1) // 2 + k] += x[r] * x[k] + y[r] * y[k]
        for r in range(6):
            D[r] = lane_sum(D[r])
        for r in range(6 if here else 0):
            world.own[(6 * s + r) * world.own_step] = D[r]


@procedure(inline=True)
def block_of(x: "float[6]", D: "float[3, 3]") -> None:
    """A block on the diagonal of ``Y Yᵀ``, whole."""
    D[0] = vector(x[0], x[1], x[3])
    D[1] = vector(x[1], x[2], x[4])
    D[2] = vector(x[3], x[4], x[5])


@procedure(inline=True)
def fetched(
    world: SlotWorld,
    s: int,
    used: int,
    carrier: "float[:]",
    row: "float[3, MAX_CHAIN_DOFS]",
    place: "int[MAX_CHAIN_DOFS]",
    block: "float[6]",
) -> None:
    """Fetch a lane's part of a contact: rows, their variables, and the block."""
    places = int(carrier[s]) * world.deep if s < used else 0
    k = 0
    for d in lanes(world.deep):
        place[k] = world.chain[places + d]
        for r in range(3):
            row[r, k] = world.Y[((3 * s + r) * world.deep + d) * world.Y_step]
        k += 1  # noqa: SIM113
    for r in range(6):
        block[r] = world.own[(6 * s + r) * world.own_step]


@procedure
def pressed(
    world: SlotWorld, used: int, nv: int, carrier: "float[:]", lam: "float[:]", u: "float[:]"
) -> None:
    """``u = Yᵀ lam``."""
    for k in lanes(nv + 1):
        u[k] = 0.0
    for s in range(worlds_max(used)):
        here = s < used
        places = int(carrier[s]) * world.deep if here else 0
        for d in lanes(world.deep if here else 0):
            at = 3 * s * world.deep + d
            x = (
                lam[3 * s] * world.Y[at * world.Y_step]
                + lam[3 * s + 1] * world.Y[(at + world.deep) * world.Y_step]
            )
            u[world.chain[places + d]] += (
                x + lam[3 * s + 2] * world.Y[(at + 2 * world.deep) * world.Y_step]
            )


@procedure(inline=True)
def along(world: SlotWorld, s: int, long: int, places: int, u: "float[:]", v: "float[3]") -> None:
    """``Y u`` of a contact."""
    v[:] = 0.0
    for d in lanes(long):
        part = u[world.chain[places + d]]
        for r in range(3):
            v[r] += part * world.Y[((3 * s + r) * world.deep + d) * world.Y_step]
    for r in range(3):
        v[r] = lane_sum(v[r])


@procedure
def speeds(
    world: SlotWorld, used: int, carrier: "float[:]", b: "float[:]", u: "float[:]", w: "float[:]"
) -> None:
    """``w = b + Y u``."""
    for s in range(worlds_max(used)):
        here = s < used
        places = int(carrier[s]) * world.deep if here else 0
        v = local("float", 3)
        along(world, s, world.deep if here else 0, places, u, v)
        for r in lanes(3 if here else 0):
            w[3 * s + r] = b[3 * s + r] + v[r]


@procedure(inline=True)
def turned(A: "float[3, 3]", free: "float[3]", mu: float, c: "float[2]") -> None:
    """The direction of friction after a Newton step of its angle: ``traced.Sweeps``."""
    p = vector(-c[1], c[0])
    g = vector(1.0, mu * c[0], mu * c[1])
    Ag = A @ g
    Ap = mu * (A[:, 1:] @ p)
    a = Ag[0]
    d = free[0]
    fp = p[0] * free[1] + p[1] * free[2]
    Agp = p[0] * Ag[1] + p[1] * Ag[2]
    stiff = -d * (p[0] * Ap[1] + p[1] * Ap[2])
    slip = d * (c[0] * Ag[1] + c[1] * Ag[2]) - a * (c[0] * free[1] + c[1] * free[2])
    across = a * fp - d * Agp
    rate = stiff + slip + Ap[0] * fp
    if not rate > stiff / 4.0:
        rate = stiff / 4.0 + abs(slip)
    pressed = 2.0 * across * Ap[0] / (a if a > 0.0 else 1.0)
    rate = max(rate, abs(across), pressed)
    angle = across / rate if rate > 0.0 else 0.0
    part = 1.0 / sqrt(1.0 + angle * angle)
    x = (c[0] - angle * p[0]) * part
    y = (c[1] - angle * p[1]) * part
    c[0] = x
    c[1] = y


@procedure(inline=True)
def solved(A: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]", new: "float[3]") -> None:
    """The impulse of a contact that obeys its laws if no other one changes: ``traced.Sweeps``."""
    x = vector(lam[0], lam[1], lam[2])
    v = vector(w[0], w[1], w[2])
    free = v - A @ x
    new[:] = 0.0
    if free[0] >= 0.0:
        return
    size = (A[0, 0] + A[1, 1] + A[2, 2]) / 3.0
    a = A[0, 0] + LEAST_WEIGHT * size
    b = A[1, 1] + LEAST_WEIGHT * size
    e = A[2, 2] + LEAST_WEIGHT * size
    C = vector(
        b * e - A[2, 1] * A[2, 1], A[2, 1] * A[2, 0] - A[1, 0] * e, A[1, 0] * A[2, 1] - b * A[2, 0]
    )
    one = 1.0 / (a * C[0] + A[1, 0] * C[1] + A[2, 0] * C[2])
    f = a * e - A[2, 0] * A[2, 0]
    g = A[1, 0] * A[2, 0] - a * A[2, 1]
    k = a * b - A[1, 0] * A[1, 0]
    stick = local("float", 3)
    stick[0] = x[0] - one * (C[0] * v[0] + C[1] * v[1] + C[2] * v[2])
    stick[1] = x[1] - one * (C[1] * v[0] + f * v[1] + g * v[2])
    stick[2] = x[2] - one * (C[2] * v[0] + g * v[1] + k * v[2])
    most = mu * stick[0]
    if stick[0] > 0.0 and stick[1] * stick[1] + stick[2] * stick[2] <= most * most:
        new[:] = stick
        return
    c = local("float", 2)
    reach = sqrt(x[1] * x[1] + x[2] * x[2])
    lifted = (A[0, 0] - LEAST_WEIGHT * size) * reach + mu * (A[0, 1] * x[1] + A[0, 2] * x[2])
    if lifted > 0.0 and x[1] * v[1] + x[2] * v[2] <= 0.0:
        c[:] = x[1:]
    else:
        c[:] = stick[1:]
        reach = sqrt(c[0] * c[0] + c[1] * c[1])
    c *= 1.0 / reach if reach > 0.0 else 1.0
    turned(A, free, mu, c)
    along = A[0, 0] + mu * (A[0, 1] * c[0] + A[0, 2] * c[1])
    n = max(-free[0] / along, 0.0) if along > 0.0 else 0.0
    new[:] = vector(n, mu * n * c[0], mu * n * c[1])


@procedure(inline=True)
def pushed(A: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]", new: "float[3]") -> None:
    """The impulse after a step of the normal force, and one of friction for it."""
    x = max(lam[0] - w[0] / A[0, 0], 0.0) if A[0, 0] > 0.0 else 0.0
    d = x - lam[0]
    e = (A[1, 1] - A[2, 2]) / 2.0
    b = (A[1, 1] + A[2, 2]) / 2.0 + sqrt(e * e + A[1, 2] * A[1, 2])
    y = lam[1]
    z = lam[2]
    if b > 0.0:
        y -= (w[1] + A[1, 0] * d) / b
        z -= (w[2] + A[2, 0] * d) / b
    t = sqrt(y * y + z * z)
    part = mu * x / t if t > mu * x else 1.0
    new[:] = vector(x, part * y, part * z)


@procedure(inline=True)
def missed(D: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]") -> float:
    """Error of a contact in its laws [m/s]: the functions of Alart and Curnier."""
    a = (D[0, 0] + D[1, 1] + D[2, 2]) / 3.0
    x = a * view(lam, 0, 3)
    y = x - view(w, 0, 3)
    n = max(y[0], 0.0)
    t = sqrt(y[1] * y[1] + y[2] * y[2])
    part = 1.0
    if t > mu * n:
        part = mu * n / t
    return max(abs(x[0] - n), abs(x[1] - part * y[1]), abs(x[2] - part * y[2]))


@procedure
def swept(
    world: SlotWorld,
    used: int,
    enough: float,
    later: float,
    carrier: "float[:]",
    mu: "float[:]",
    b: "float[:]",
    lam: "float[:]",
    u: "float[:]",
    last: "float[:, 3]",
    older: "float[:]",
    best: "float[:]",
) -> "(int, float)":
    """Sweeps of Gauss and Seidel until no contact misses its laws by more than ``enough``.

    After ``EXACT_SWEEPS`` sweeps ``later`` will do. How many, and the error [m/s]. Contacts that
    obey are passed over. ``u`` goes with ``lam``, before and after. Each sweep starts from a
    mixture of the last two (Anderson 1965), ahead of both only where changes do not grow; mixtures
    are linear, and so are velocities. Contacts that are solved whole, one after the other, may run
    in cycles, where several slide: after ``BLOCK_SWEEPS`` sweeps normal forces and friction take a
    step each. Where sweeps do not end, ``best`` of what they began with is taken. What is read of
    the next contact is on its way while a contact is solved.
    """
    new, change = local("float", 2, 3)
    D = local("float", 3, 3)
    row, following = local("float", 2, 3, MAX_CHAIN_DOFS)
    block, its_block = local("float", 2, 6)
    its_place, place = local("int", 2, MAX_CHAIN_DOFS)
    fetched(world, 0, used, carrier, following, its_place, its_block)
    most = worlds_max(used)
    error, before, ahead, least = 0.0, 0.0, 1.0, 0.0
    rounds = 0
    going = used > 0
    for n in range(world.sweeps + 1):
        if worlds_max(1 if going else 0) == 0:
            break
        mine = used if going else 0
        for k in lanes(3 * mine):
            last[k, 0] = lam[k]
        largest = 0.0
        for s in range(most):
            here = s < mine
            x, y, z = 0.0, 0.0, 0.0
            k = 0
            for _ in lanes(world.deep):
                place[k] = its_place[k]
                for r in range(3):
                    row[r, k] = following[r, k]
                part = u[place[k]]
                x += row[0, k] * part
                y += row[1, k] * part
                z += row[2, k] * part
                k += 1  # noqa: SIM113
            block[:] = its_block
            fetched(
                world, s + 1 if s + 1 < mine else 0, mine, carrier, following, its_place, its_block
            )
            x, y, z = lane_sum(x), lane_sum(y), lane_sum(z)
            change[:] = 0.0
            old = vector(0.0, 0.0, 0.0)
            off = 0.0
            if here:
                v = vector(b[3 * s] + x, b[3 * s + 1] + y, b[3 * s + 2] + z)
                old = vector(lam[3 * s], lam[3 * s + 1], lam[3 * s + 2])
                block_of(block, D)
                off = missed(D, mu[s], v, old)
                if n < world.sweeps and off > enough:
                    if n < BLOCK_SWEEPS:
                        solved(D, mu[s], v, old, new)
                        change[:] = new - old
                    else:
                        pushed(D, mu[s], v, old, new)
                        change[:] = RELAXATION * (new - old)
            largest = max(largest, off)
            k = 0
            for d in lanes(world.deep if off > enough and n < world.sweeps else 0):
                more = change[0] * row[0, k] + change[1] * row[1, k] + change[2] * row[2, k]
                u[place[k]] += more
                k += 1  # noqa: SIM113
                if d == 0:
                    for r in range(3):
                        lam[3 * s + r] = old[r] + change[r]
        better = going and (n == 0 or largest < least)
        for k in lanes(3 * mine if better else 0):
            best[k] = last[k, 0]
        if going:
            error = largest
            least = error if better else least
            rounds = n
            going = error > (enough if n < EXACT_SWEEPS else later) and n < world.sweeps
        mine = used if going else 0
        size, along, across = 0.0, 0.0, 0.0
        for k in lanes(3 * mine):
            f = lam[k] - last[k, 0]
            turn = f - (last[k, 1] if n > 0 else 0.0)
            size += f * f
            along += f * turn
            across += turn * turn
            last[k, 1] = f
        size, along, across = lane_sum(size), lane_sum(along), lane_sum(across)
        part = 0.0
        if n > 0 and n < world.sweeps - UNMIXED_SWEEPS and across > 0.0:
            part = along / across
            if part < 0.0 or part > 1.0:  # changes are alike: ahead
                alike = size <= MAX_GROWTH_FOR_EXTRAPOLATION * before
                ahead = min(2.0 * ahead, MAX_EXTRAPOLATION) if alike else 1.0
                part = -ahead if part > 1.0 else max(part, -ahead)
                part = part if alike else 0.0
        before = size
        for k in lanes(3 * mine):
            y = lam[k]
            if part != 0.0:
                lam[k] = y - part * (y - last[k, 2])
            last[k, 2] = y
        for k in lanes(world.nv if going else 0):
            y = u[k]
            if part != 0.0:
                u[k] = y - part * (y - older[k])
            older[k] = y
    worse = used if error > enough and error > least else 0
    if worlds_max(worse) > 0:
        for k in lanes(3 * worse):
            lam[k] = best[k]
        pressed(world, worse, world.nv if worse > 0 else -1, carrier, lam, u)
        speeds(world, worse, carrier, b, u, best)
        largest = 0.0
        for s in lanes(worse):
            for r in range(6):
                block[r] = world.own[(6 * s + r) * world.own_step]
            block_of(block, D)
            off = missed(D, mu[s], view(best, 3 * s), view(lam, 3 * s))
            largest = max(largest, off)
        largest = lane_max(largest)
        error = largest if worse > 0 else error
    return rounds, error


@procedure
def laws(
    world: SlotWorld,
    used: int,
    proximal_weight: float,
    mu: "float[:]",
    lam: "float[:]",
    w: "float[:]",
    W: "float[:, 9]",
) -> float:
    """Largest error of contacts in their laws [m/s], and blocks of Newton's method.

    With ``off``, what ``missed`` looks at, and ``P``, the derivatives of its projections with
    respect to ``y``: of ``B = a (1 + proximal_weight - P)`` the products ``W = B⁻¹ P``, and
    ``B⁻¹ off`` in place of ``w``.
    """
    most = 0.0
    for s in lanes(used):
        at = 6 * s * world.own_step
        a = (
            world.own[at] + world.own[at + 2 * world.own_step] + world.own[at + 5 * world.own_step]
        ) / 3.0
        x = a * view(lam, 3 * s, 3)
        y = x - view(w, 3 * s, 3)
        n = max(y[0], 0.0)
        t = sqrt(y[1] * y[1] + y[2] * y[2])
        slides = t > mu[s] * n
        part = mu[s] * n / t if slides else 1.0
        off = vector(x[0] - n, x[1] - part * y[1], x[2] - part * y[2])
        most = max(most, abs(off[0]), abs(off[1]), abs(off[2]))
        near = 1.0 / (proximal_weight * a) if a > 0.0 else 0.0
        far = 1.0 / ((1.0 + proximal_weight) * a) if a > 0.0 else 0.0
        W[s] = 0.0
        if not slides:
            off *= near
            for r in range(3):
                W[s, 4 * r] = near
        elif n > 0.0:  # along the force, and across
            c, e = y[1] / t, y[2] / t
            across = near / (1.0 + (1.0 - part) / proximal_weight)
            d = near * off[0]
            f = far * (off[1] * c + off[2] * e + mu[s] * a * d)
            g = across * (off[2] * c - off[1] * e)
            off[:] = vector(d, f * c - g * e, f * e + g * c)
            across *= part
            W[s] = vector(
                near,
                0.0,
                0.0,
                near * mu[s] * c,
                across * e * e,
                -across * c * e,
                near * mu[s] * e,
                -across * c * e,
                across * c * c,
            )
        else:
            off *= far
        for r in range(3):
            w[3 * s + r] = off[r]
    return lane_max(most)


@procedure
def gained(
    world: SlotWorld,
    used: int,
    most: int,
    carrier: "float[:]",
    w: "float[:]",
    W: "float[:, 9]",
    z: "float[:]",
) -> None:
    """``z`` with ``(1 + Yᵀ W Y) z = -Yᵀ w``.

    Like the inertia matrix, this one has numbers where one variable moves the other one, and keeps
    this pattern (RBDA section 6.5): ``K`` has those before and on the diagonal along chains, then
    those above the diagonal. A world that is masked out has none of the contacts ``used``.
    """
    above = view(world.K, world.inverses)
    for k in lanes(2 * world.inverses if used > 0 else 0):
        world.K[k] = 0.0
    for k in lanes(world.nv if used > 0 else 0):
        world.K[world.begin[world.owner[k] * world.deep + world.level[k]] + world.level[k]] = 1.0
        z[k] = 0.0
    for s in range(most):
        here = s < used
        i = int(carrier[s]) if here else 0
        at = i * world.deep
        for d in lanes(world.moves[i] if here else 0):
            y = local("float", 3)
            for r in range(3):
                y[r] = world.Y[((3 * s + r) * world.deep + d) * world.Y_step]
            z[world.chain[at + d]] -= y[0] * w[3 * s] + y[1] * w[3 * s + 1] + y[2] * w[3 * s + 2]
            y[:] = y @ view(W[s], 0, 3, 3)
            for e in range(world.moves[i] if W[s, 0] > 0.0 else 0):
                x = 0.0  # one sum in memory a pair: each waits for the one before
                for r in range(3):
                    x += y[r] * world.Y[((3 * s + r) * world.deep + e) * world.Y_step]
                if e <= d:
                    world.K[world.begin[at + d] + e] += x
                else:
                    above[world.begin[at + e] + d] += x
    for n in range(2 * world.nv):  # inward, then outward
        k = world.nv - 1 - n if n < world.nv else n - world.nv
        at = world.owner[k] * world.deep
        long = world.level[k]
        row = world.begin[at + long]
        if worlds_max(1 if used > 0 and world.K[row + long] != 1.0 else 0) == 0:
            continue  # no contact feels it
        x = 0.0
        if n < world.nv:
            for d in lanes(long if used > 0 else 0):
                part = above[row + d] / world.K[row + long]
                z[world.chain[at + d]] -= part * z[k]
                for e in range(d + 1):
                    world.K[world.begin[at + d] + e] -= part * world.K[row + e]
                for e in range(d + 1, long):
                    above[world.begin[at + e] + d] -= part * world.K[row + e]
        else:
            for e in lanes(long if used > 0 else 0):
                x += world.K[row + e] * z[world.chain[at + e]]
            x = lane_sum(x)
            for _ in lanes(1 if used > 0 else 0):
                z[k] = (z[k] - x) / world.K[row + long]


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


@procedure
def finished(
    world: SlotWorld,
    used: int,
    steps: int,
    weight: float,
    light: float,
    enough: float,
    carrier: "float[:]",
    mu: "float[:]",
    b: "float[:]",
    lam: "float[:]",
    u: "float[:]",
    w: "float[:]",
    z: "float[:]",
    W: "float[:, 9]",
) -> float:
    """The error [m/s] after the best of some steps of Newton from where sweeps end.

    The weight of staying falls from ``weight`` to ``light``; two of seven steps have more of it,
    out of cycles.
    """
    best = view(world.K, world.nv * (world.nv + 1) if world.trees > 0 else 2 * world.inverses)
    least = 0.0
    most = worlds_max(used)
    mine = used
    plan = local("int", 2, MAX_TREES)
    if world.trees > 0:
        order_trees(world, used, carrier, plan)
    for n in range(steps + 1):
        if worlds_max(mine) == 0:
            break
        speeds(world, mine, carrier, b, u, w)
        proximal_weight = max(weight, FIRM_WEIGHT if n % 7 > 4 else light)
        weight *= WEIGHT_DECAY
        error = laws(world, mine, proximal_weight, mu, lam, w, W)
        better = n == 0 or error < least
        if mine > 0 and better:
            least = error
        for k in lanes(3 * mine if better else 0):
            best[k] = lam[k]
        if n == steps or error <= enough:
            mine = 0
        if world.trees > 0:
            gained_across(world, mine, most, plan, carrier, w, W, z)
        else:
            gained(world, mine, most, carrier, w, W, z)
        for s in range(most):
            here = s < mine
            v = local("float", 3)
            i = int(carrier[s]) if here else 0
            along(world, s, world.moves[i] if here else 0, i * world.deep, z, v)
            for r in lanes(3 if here else 0):
                x = W[s, 3 * r] * v[0] + W[s, 3 * r + 1] * v[1] + W[s, 3 * r + 2] * v[2]
                lam[3 * s + r] -= w[3 * s + r] + x
        pressed(world, mine, world.nv if mine > 0 else -1, carrier, lam, u)
    for k in lanes(3 * used):
        lam[k] = best[k]
    pressed(world, used, world.nv if used > 0 else -1, carrier, lam, u)
    return least
