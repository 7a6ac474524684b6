"""Impulses of contacts with slots by sweeps of Gauss and Seidel: see ``slot_laws``."""

from kinetree.codegen.procedures import (
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
from kinetree.contact.engine.slot_laws import (
    MAX_CHAIN_DOFS,
    block_of,
    contact_law_error,
    effect_of_impulses,
    fetch_contact,
    speeds,
)
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns

UNMIXED_SWEEPS = 8  # sweeps at the end that do not mix
MAX_EXTRAPOLATION = 5.0  # how far ahead of the last change mixtures may lie
MAX_GROWTH_FOR_EXTRAPOLATION = 1.01  # growth of the squared change up to which they may lie ahead
BLOCK_SWEEPS = 10  # sweeps in which each contact is solved whole
EXACT_SWEEPS = 16  # sweeps, after which errors may be larger
RELAXATION = 0.8  # part of the change that later sweeps take
LEAST_WEIGHT = 1e-6  # weight of staying, for forces that move nothing


@procedure(inline=True)
def turn_friction(A: "float[3, 3]", free: "float[3]", mu: float, c: "float[2]") -> None:
    """Direction of sliding friction after one Newton step of its angle."""
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
    steep = 2.0 * across * Ap[0] / (a if a > 0.0 else 1.0)
    rate = max(rate, abs(across), steep)
    angle = across / rate if rate > 0.0 else 0.0
    part = 1.0 / sqrt(1.0 + angle * angle)
    x = (c[0] - angle * p[0]) * part
    y = (c[1] - angle * p[1]) * part
    c[0] = x
    c[1] = y


@procedure(inline=True)
def solve_contact(
    A: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]", new: "float[3]"
) -> None:
    """Write the impulse that satisfies one contact's Coulomb law with the others fixed."""
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
    turn_friction(A, free, mu, c)
    stiff = A[0, 0] + mu * (A[0, 1] * c[0] + A[0, 2] * c[1])
    n = max(-free[0] / stiff, 0.0) if stiff > 0.0 else 0.0
    new[:] = vector(n, mu * n * c[0], mu * n * c[1])


@procedure(inline=True)
def relax_contact(
    A: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]", new: "float[3]"
) -> None:
    """Write a contact's impulse after one projected normal and friction update."""
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
def mixture(part: float, size: float, before: float, ahead: float) -> "(float, float)":
    """Anderson mixing weight of the last two sweeps, and the next limit of extrapolation.

    ``part`` is that of least change, ``size`` the squared change and ``before`` the one before.
    """
    if part < 0.0 or part > 1.0:  # changes are alike: ahead
        alike = size <= MAX_GROWTH_FOR_EXTRAPOLATION * before
        ahead = min(2.0 * ahead, MAX_EXTRAPOLATION) if alike else 1.0
        part = -ahead if part > 1.0 else max(part, -ahead)
        part = part if alike else 0.0
    return part, ahead


@procedure
def mix(
    world: SlotWorld,
    its: Unknowns,
    used: int,
    nv: int,
    sweep: int,
    before: float,
    ahead: float,
) -> "(float, float)":
    """Replace impulses by a mixture of the last two sweeps; squared change, and limit ``ahead``.

    The first of three impulses in ``W`` are those before the sweep.
    """
    last = view(its.W, 0, 3 * world.slots, 3)
    size, along, across = 0.0, 0.0, 0.0
    for k in lanes(3 * used):
        f = its.lam[k] - last[k, 0]
        turn = f - (last[k, 1] if sweep > 0 else 0.0)
        size += f * f
        along += f * turn
        across += turn * turn
        last[k, 1] = f
    size, along, across = lane_sum(size), lane_sum(along), lane_sum(across)
    part = 0.0
    if sweep > 0 and sweep < world.sweeps - UNMIXED_SWEEPS and across > 0.0:
        part, ahead = mixture(along / across, size, before, ahead)
    for k in lanes(3 * used):
        y = its.lam[k]
        if part != 0.0:
            its.lam[k] = y - part * (y - last[k, 2])
        last[k, 2] = y
    for k in lanes(nv):
        y = its.v[k]
        if part != 0.0:
            its.v[k] = y - part * (y - its.older[k])
        its.older[k] = y
    return size, ahead


@procedure(inline=True)
def change_of(
    D: "float[3, 3]", mu: float, v: "float[3]", old: "float[3]", sweep: int, out: "float[3]"
) -> None:
    """Write a contact's impulse change in a sweep: exact at first, relaxed in later sweeps."""
    new = local("float", 3)
    if sweep < BLOCK_SWEEPS:
        solve_contact(D, mu, v, old, new)
        out[:] = new - old
    else:
        relax_contact(D, mu, v, old, new)
        out[:] = RELAXATION * (new - old)


@procedure
def sweep_once(world: SlotWorld, its: Unknowns, mine: int, sweep: int, enough: float) -> float:
    """One Gauss-Seidel sweep over all contacts; the largest error before the update [m/s].

    Contacts that obey are passed over. What is read of the next contact is on its way while a
    contact is solved.
    """
    change, old = local("float", 2, 3)
    D = local("float", 3, 3)
    row, following = local("float", 2, 3, MAX_CHAIN_DOFS)
    block, its_block = local("float", 2, 6)
    its_place, place = local("int", 2, MAX_CHAIN_DOFS)
    fetch_contact(world, its, 0, mine, following, its_place, its_block)
    largest = 0.0
    for s in range(worlds_max(mine)):
        here = s < mine
        x, y, z = 0.0, 0.0, 0.0
        k = 0
        for _ in lanes(world.deep):
            place[k] = its_place[k]
            for r in range(3):
                row[r, k] = following[r, k]
            part = its.v[place[k]]
            x += row[0, k] * part
            y += row[1, k] * part
            z += row[2, k] * part
            k += 1  # noqa: SIM113
        block[:] = its_block
        coming = s + 1 if s + 1 < mine else 0
        fetch_contact(world, its, coming, mine, following, its_place, its_block)
        x, y, z = lane_sum(x), lane_sum(y), lane_sum(z)
        change[:] = 0.0
        old[:] = 0.0
        off = 0.0
        if here:
            v = vector(its.b[3 * s] + x, its.b[3 * s + 1] + y, its.b[3 * s + 2] + z)
            old[:] = view(its.lam, 3 * s, 3)
            block_of(block, D)
            off = contact_law_error(D, its.mu[s], v, old)
            if sweep < world.sweeps and off > enough:
                change_of(D, its.mu[s], v, old, sweep, change)
        largest = max(largest, off)
        k = 0
        for d in lanes(world.deep if off > enough and sweep < world.sweeps else 0):
            more = change[0] * row[0, k] + change[1] * row[1, k] + change[2] * row[2, k]
            its.v[place[k]] += more
            k += 1  # noqa: SIM113
            if d == 0:
                for r in range(3):
                    its.lam[3 * s + r] = old[r] + change[r]
    return largest


@procedure
def take_best(world: SlotWorld, its: Unknowns, worse: int) -> float:
    """Restore the best contact impulses, stored in ``w``; returns their error [m/s]."""
    D = local("float", 3, 3)
    block = local("float", 6)
    for k in lanes(3 * worse):
        its.lam[k] = its.w[k]
    effect_of_impulses(world, its, worse, world.nv if worse > 0 else -1)
    speeds(world, its, worse)
    largest = 0.0
    for s in lanes(worse):
        for r in range(6):
            block[r] = world.own[(6 * s + r) * world.own_step]
        block_of(block, D)
        off = contact_law_error(D, its.mu[s], view(its.w, 3 * s), view(its.lam, 3 * s))
        largest = max(largest, off)
    return lane_max(largest)


@procedure
def sweep_slots(
    world: SlotWorld, its: Unknowns, used: int, enough: float, later: float
) -> "(int, float)":
    """Gauss-Seidel sweeps until contact laws hold within ``enough``; sweeps and error [m/s].

    After ``EXACT_SWEEPS`` sweeps ``later`` will do. How many, and the error [m/s]. ``v`` goes with
    ``lam``, before and after. Each sweep starts from a mixture of the last two (Anderson 1965),
    ahead of both only where changes do not grow; mixtures are linear, and so are velocities.
    Contacts that are solved whole, one after the other, may run in cycles, where several slide:
    after ``BLOCK_SWEEPS`` sweeps normal forces and friction take a step each. Where sweeps do not
    end, the best of what they began with is taken.
    """
    last = view(its.W, 0, 3 * world.slots, 3)
    error, before, ahead, least = 0.0, 0.0, 1.0, 0.0
    rounds = 0
    going = used > 0
    for n in range(world.sweeps + 1):
        if worlds_max(1 if going else 0) == 0:
            break
        mine = used if going else 0
        for k in lanes(3 * mine):
            last[k, 0] = its.lam[k]
        largest = sweep_once(world, its, mine, n, enough)
        better = going and (n == 0 or largest < least)
        for k in lanes(3 * mine if better else 0):
            its.w[k] = last[k, 0]
        if going:
            error = largest
            least = error if better else least
            rounds = n
            going = error > (enough if n < EXACT_SWEEPS else later) and n < world.sweeps
        mine = used if going else 0
        before, ahead = mix(world, its, mine, world.nv if going else 0, n, before, ahead)
    worse = used if error > enough and error > least else 0
    if worlds_max(worse) > 0:
        largest = take_best(world, its, worse)
        error = largest if worse > 0 else error
    return rounds, error
