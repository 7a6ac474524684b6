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
from kinetree.contact.engine.slot_points import motion_of

SLOT_SIZE = 9
"""Numbers of a slot."""
MAX_CHAIN_DOFS = 128
"""Variables that move a body at most: turns of a lane that is alone."""
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


@procedure
def contact_rows(
    used: int,
    deep: int,
    nv: int,
    inverses: int,
    moves: "int[:]",
    chain: "int[:]",
    begin: "int[:]",
    slot: "float[:]",
    slot_step: int,
    place: "float[:]",
    place_step: int,
    S: "float[:]",
    S_step: int,
    inverse: "float[:]",
    inverse_step: int,
    Y: "float[:]",
    Y_step: int,
    own: "float[:]",
    own_step: int,
    work: "float[:]",
) -> None:
    """``Y``, and the blocks on the diagonal of ``Y Yᵀ``; ``place`` has points and axes.

    A lane computes columns ``d`` and ``d + deep/2``, of all six rows of the body first.
    """
    half = deep // 2
    column = view(work, inverses, nv, 6)  # at hand for all contacts, as ``inverse`` is
    for k in lanes(inverses if used > 0 else 0):
        work[k] = inverse[k * inverse_step]
    for k in lanes(nv if used > 0 else 0):
        motion_of(k, S, S_step, column[k])
    for s in range(worlds_max(used)):
        here = s < used
        i = int(slot[SLOT_SIZE * s * slot_step]) if here else 0
        n = moves[i]
        at = 3 * s * deep
        D = local("float", 6)
        D[:] = 0.0
        for d in lanes(half if here else 0):
            a, b = local("float", 2, 6)
            a[:] = 0.0
            b[:] = 0.0
            for e in range(d, n):
                row = begin[i * deep + e]
                c = column[chain[i * deep + e]]
                a += work[row + d] * c
                b += (work[row + d + half] if e >= d + half else 0.0) * c
            its = local("float", 12)
            for k in range(12):
                its[k] = place[(12 * s + k) * place_step]
            p = its[9:]
            R = view(its, 0, 3, 3)
            x = R @ (a[3:] + cross(a[:3], p))
            y = R @ (b[3:] + cross(b[:3], p))
            for r in range(3):
                Y[(at + r * deep + d) * Y_step] = x[r]
                Y[(at + r * deep + d + half) * Y_step] = y[r]
            D += vector(x[0] * x[0], x[0] * x[1], x[1] * x[1], x[0] * x[2], x[1] * x[2],
                        x[2] * x[2])  # fmt: skip
            D += vector(y[0] * y[0], y[0] * y[1], y[1] * y[1], y[0] * y[2], y[1] * y[2],
                        y[2] * y[2])  # fmt: skip
        for r in range(6):
            D[r] = lane_sum(D[r])
        for r in range(6 if here else 0):
            own[(6 * s + r) * own_step] = D[r]


@procedure(inline=True)
def block_of(x: "float[6]", D: "float[3, 3]") -> None:
    """A block on the diagonal of ``Y Yᵀ``, whole."""
    D[0] = vector(x[0], x[1], x[3])
    D[1] = vector(x[1], x[2], x[4])
    D[2] = vector(x[3], x[4], x[5])


@procedure(inline=True)
def fetched(
    s: int,
    used: int,
    deep: int,
    chain: "int[:]",
    carrier: "float[:]",
    Y: "float[:]",
    Y_step: int,
    own: "float[:]",
    own_step: int,
    row: "float[3, MAX_CHAIN_DOFS]",
    place: "int[MAX_CHAIN_DOFS]",
    block: "float[6]",
) -> None:
    """Fetch a lane's part of a contact: rows, their variables, and the block."""
    places = int(carrier[s]) * deep if s < used else 0
    k = 0
    for d in lanes(deep):
        place[k] = chain[places + d]
        for r in range(3):
            row[r, k] = Y[((3 * s + r) * deep + d) * Y_step]
        k += 1  # noqa: SIM113
    for r in range(6):
        block[r] = own[(6 * s + r) * own_step]


@procedure
def pressed(
    used: int,
    nv: int,
    deep: int,
    chain: "int[:]",
    carrier: "float[:]",
    Y: "float[:]",
    Y_step: int,
    lam: "float[:]",
    u: "float[:]",
) -> None:
    """``u = Yᵀ lam``."""
    for k in lanes(nv + 1):
        u[k] = 0.0
    for s in range(worlds_max(used)):
        here = s < used
        places = int(carrier[s]) * deep if here else 0
        for d in lanes(deep if here else 0):
            at = 3 * s * deep + d
            x = lam[3 * s] * Y[at * Y_step] + lam[3 * s + 1] * Y[(at + deep) * Y_step]
            u[chain[places + d]] += x + lam[3 * s + 2] * Y[(at + 2 * deep) * Y_step]


@procedure(inline=True)
def along(
    s: int,
    long: int,
    deep: int,
    places: int,
    chain: "int[:]",
    Y: "float[:]",
    Y_step: int,
    u: "float[:]",
    v: "float[3]",
) -> None:
    """``Y u`` of a contact."""
    v[:] = 0.0
    for d in lanes(long):
        part = u[chain[places + d]]
        for r in range(3):
            v[r] += part * Y[((3 * s + r) * deep + d) * Y_step]
    for r in range(3):
        v[r] = lane_sum(v[r])


@procedure
def speeds(
    used: int,
    deep: int,
    chain: "int[:]",
    carrier: "float[:]",
    Y: "float[:]",
    Y_step: int,
    b: "float[:]",
    u: "float[:]",
    w: "float[:]",
) -> None:
    """``w = b + Y u``."""
    for s in range(worlds_max(used)):
        here = s < used
        places = int(carrier[s]) * deep if here else 0
        v = local("float", 3)
        along(s, deep if here else 0, deep, places, chain, Y, Y_step, u, v)
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
    C = vector(b * e - A[2, 1] * A[2, 1], A[2, 1] * A[2, 0] - A[1, 0] * e,
               A[1, 0] * A[2, 1] - b * A[2, 0])  # fmt: skip
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
    used: int, nv: int, deep: int, sweeps: int, enough: float, later: float, chain: "int[:]",
    carrier: "float[:]", Y: "float[:]", Y_step: int, own: "float[:]", own_step: int,
    mu: "float[:]", b: "float[:]", lam: "float[:]", u: "float[:]", last: "float[:, 3]",
    older: "float[:]", best: "float[:]",
) -> "(int, float)":  # fmt: skip
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
    fetched(
        0, used, deep, chain, carrier, Y, Y_step, own, own_step, following, its_place, its_block
    )
    most = worlds_max(used)
    error, before, ahead, least = 0.0, 0.0, 1.0, 0.0
    rounds = 0
    going = used > 0
    for n in range(sweeps + 1):
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
            for _ in lanes(deep):
                place[k] = its_place[k]
                for r in range(3):
                    row[r, k] = following[r, k]
                part = u[place[k]]
                x += row[0, k] * part
                y += row[1, k] * part
                z += row[2, k] * part
                k += 1  # noqa: SIM113
            block[:] = its_block
            fetched(s + 1 if s + 1 < mine else 0, mine, deep, chain, carrier, Y, Y_step, own,
                    own_step, following, its_place, its_block)  # fmt: skip
            x, y, z = lane_sum(x), lane_sum(y), lane_sum(z)
            change[:] = 0.0
            old = vector(0.0, 0.0, 0.0)
            off = 0.0
            if here:
                v = vector(b[3 * s] + x, b[3 * s + 1] + y, b[3 * s + 2] + z)
                old = vector(lam[3 * s], lam[3 * s + 1], lam[3 * s + 2])
                block_of(block, D)
                off = missed(D, mu[s], v, old)
                if n < sweeps and off > enough:
                    if n < BLOCK_SWEEPS:
                        solved(D, mu[s], v, old, new)
                        change[:] = new - old
                    else:
                        pushed(D, mu[s], v, old, new)
                        change[:] = RELAXATION * (new - old)
            largest = max(largest, off)
            k = 0
            for d in lanes(deep if off > enough and n < sweeps else 0):
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
            going = error > (enough if n < EXACT_SWEEPS else later) and n < sweeps
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
        if n > 0 and n < sweeps - UNMIXED_SWEEPS and across > 0.0:
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
        for k in lanes(nv if going else 0):
            y = u[k]
            if part != 0.0:
                u[k] = y - part * (y - older[k])
            older[k] = y
    worse = used if error > enough and error > least else 0
    if worlds_max(worse) > 0:
        for k in lanes(3 * worse):
            lam[k] = best[k]
        pressed(worse, nv if worse > 0 else -1, deep, chain, carrier, Y, Y_step, lam, u)
        speeds(worse, deep, chain, carrier, Y, Y_step, b, u, best)
        largest = 0.0
        for s in lanes(worse):
            for r in range(6):
                block[r] = own[(6 * s + r) * own_step]
            block_of(block, D)
            off = missed(D, mu[s], view(best, 3 * s), view(lam, 3 * s))
            largest = max(largest, off)
        largest = lane_max(largest)
        error = largest if worse > 0 else error
    return rounds, error


@procedure
def laws(
    used: int,
    proximal_weight: float,
    own: "float[:]",
    own_step: int,
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
        at = 6 * s * own_step
        a = (own[at] + own[at + 2 * own_step] + own[at + 5 * own_step]) / 3.0
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
            W[s] = vector(near, 0.0, 0.0, near * mu[s] * c, across * e * e, -across * c * e,
                          near * mu[s] * e, -across * c * e, across * c * c)  # fmt: skip
        else:
            off *= far
        for r in range(3):
            w[3 * s + r] = off[r]
    return lane_max(most)


@procedure
def gained(
    used: int,
    most: int,
    nv: int,
    deep: int,
    inverses: int,
    moves: "int[:]",
    chain: "int[:]",
    begin: "int[:]",
    owner: "int[:]",
    level: "int[:]",
    carrier: "float[:]",
    Y: "float[:]",
    Y_step: int,
    w: "float[:]",
    W: "float[:, 9]",
    K: "float[:]",
    z: "float[:]",
) -> None:
    """``z`` with ``(1 + Yᵀ W Y) z = -Yᵀ w``.

    Like the inertia matrix, this one has numbers where one variable moves the other one, and keeps
    this pattern (RBDA section 6.5): ``K`` has those before and on the diagonal along chains, then
    those above the diagonal. A world that is masked out has none of the contacts ``used``.
    """
    above = view(K, inverses)
    for k in lanes(2 * inverses if used > 0 else 0):
        K[k] = 0.0
    for k in lanes(nv if used > 0 else 0):
        K[begin[owner[k] * deep + level[k]] + level[k]] = 1.0
        z[k] = 0.0
    for s in range(most):
        here = s < used
        i = int(carrier[s]) if here else 0
        at = i * deep
        for d in lanes(moves[i] if here else 0):
            y = local("float", 3)
            for r in range(3):
                y[r] = Y[((3 * s + r) * deep + d) * Y_step]
            z[chain[at + d]] -= y[0] * w[3 * s] + y[1] * w[3 * s + 1] + y[2] * w[3 * s + 2]
            y[:] = y @ view(W[s], 0, 3, 3)
            for e in range(moves[i] if W[s, 0] > 0.0 else 0):
                x = 0.0  # one sum in memory a pair: each waits for the one before
                for r in range(3):
                    x += y[r] * Y[((3 * s + r) * deep + e) * Y_step]
                if e <= d:
                    K[begin[at + d] + e] += x
                else:
                    above[begin[at + e] + d] += x
    for n in range(2 * nv):  # inward, then outward
        k = nv - 1 - n if n < nv else n - nv
        at = owner[k] * deep
        long = level[k]
        row = begin[at + long]
        if worlds_max(1 if used > 0 and K[row + long] != 1.0 else 0) == 0:
            continue  # no contact feels it
        x = 0.0
        if n < nv:
            for d in lanes(long if used > 0 else 0):
                part = above[row + d] / K[row + long]
                z[chain[at + d]] -= part * z[k]
                for e in range(d + 1):
                    K[begin[at + d] + e] -= part * K[row + e]
                for e in range(d + 1, long):
                    above[begin[at + e] + d] -= part * K[row + e]
        else:
            for e in lanes(long if used > 0 else 0):
                x += K[row + e] * z[chain[at + e]]
            x = lane_sum(x)
            for _ in lanes(1 if used > 0 else 0):
                z[k] = (z[k] - x) / K[row + long]


@procedure
def finished(
    used: int,
    nv: int,
    deep: int,
    inverses: int,
    steps: int,
    weight: float,
    light: float,
    enough: float,
    moves: "int[:]",
    chain: "int[:]",
    begin: "int[:]",
    owner: "int[:]",
    level: "int[:]",
    carrier: "float[:]",
    Y: "float[:]",
    Y_step: int,
    own: "float[:]",
    own_step: int,
    mu: "float[:]",
    b: "float[:]",
    lam: "float[:]",
    u: "float[:]",
    w: "float[:]",
    z: "float[:]",
    W: "float[:, 9]",
    K: "float[:]",
) -> float:
    """The error [m/s] after the best of some steps of Newton from where sweeps end.

    The weight of staying falls from ``weight`` to ``light``; two of seven steps have more of it,
    out of cycles.
    """
    best = view(K, 2 * inverses)
    least = 0.0
    most = worlds_max(used)
    mine = used
    for n in range(steps + 1):
        if worlds_max(mine) == 0:
            break
        speeds(mine, deep, chain, carrier, Y, Y_step, b, u, w)
        proximal_weight = max(weight, FIRM_WEIGHT if n % 7 > 4 else light)
        weight *= WEIGHT_DECAY
        error = laws(mine, proximal_weight, own, own_step, mu, lam, w, W)
        better = n == 0 or error < least
        if mine > 0 and better:
            least = error
        for k in lanes(3 * mine if better else 0):
            best[k] = lam[k]
        if n == steps or error <= enough:
            mine = 0
        gained(mine, most, nv, deep, inverses, moves, chain, begin, owner, level, carrier, Y,
               Y_step, w, W, K, z)  # fmt: skip
        for s in range(most):
            here = s < mine
            v = local("float", 3)
            i = int(carrier[s]) if here else 0
            along(s, moves[i] if here else 0, deep, i * deep, chain, Y, Y_step, z, v)
            for r in lanes(3 if here else 0):
                x = W[s, 3 * r] * v[0] + W[s, 3 * r + 1] * v[1] + W[s, 3 * r + 2] * v[2]
                lam[3 * s + r] -= w[3 * s + r] + x
        pressed(mine, nv if mine > 0 else -1, deep, chain, carrier, Y, Y_step, lam, u)
    for k in lanes(3 * used):
        lam[k] = best[k]
    pressed(used, nv if used > 0 else -1, deep, chain, carrier, Y, Y_step, lam, u)
    return least
