"""Contacts of a step in a fixed amount of memory: for GPUs, where some lanes have a world.

The scheme and the laws are those of ``stepping.step``. Of many potential contacts, ``slots`` at
most enter a step, the closest ones. Kinematics and the inertia matrix are traced code; what is here
loops over tables, and loops over ``lanes`` are shared by the lanes of a world. Several worlds run
in lockstep: ``worlds_max`` bounds loops in which lanes exchange numbers, and ``live`` is 0 for a
padding world, of which nothing is written. ``SlotWorld`` has what procedures read and write.
"""

from kinetree.codegen.procedures import (
    cross,
    dot,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    sqrt,
    view,
    worlds_max,
)
from kinetree.contact.engine.contact_frames import contact_frame
from kinetree.contact.engine.slot_classes import sort_slots
from kinetree.contact.engine.slot_laws import SLOT_SIZE, contact_rows, effect_of_impulses, speeds
from kinetree.contact.engine.slot_newton import HEAVY_WEIGHT, MAX_NEWTON_STEPS, finish_by_newton
from kinetree.contact.engine.slot_pairs import (
    POINT_SIZE,
    PairTables,
    point_of,
    speed_between,
)
from kinetree.contact.engine.slot_points import (
    FAR,
    PARTS,
    POINTS,
    TRACED,
    closing,
    gap_rates,
    gaps,
    list_near,
    motion_of,
    place_near,
    pose_of,
    take_slots,
    touch_plane,
)
from kinetree.contact.engine.slot_sweeps import sweep_slots
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns, number_of

REPORT_SIZE = 6
"""Numbers that ``slot_impulses`` reports: errors of velocity, cone and power, contact work, loss,
and sweeps."""


@procedure(inline=True)
def enter_found(
    world: SlotWorld,
    pairs: PairTables,
    row: int,
    R: "float[3, 3]",
    p: "float[3]",
    w0: "float[3]",
) -> "(int, float)":
    """Column and gap of a detected contact of moving shapes; writes axes, point, velocity."""
    x = local("float", 8)
    speed = local("float", 3)
    point_of(world, row, x)
    column = int(x[7])
    p[:] = x[1:4]
    contact_frame(x[4:7], R)
    speed_between(world, pairs, pairs.carrier[column], p, world.twist, world.twist_step, speed)
    w0[:] = R @ speed
    return column, x[0]


@procedure(inline=True)
def enter_known(
    world: SlotWorld,
    c: int,
    R: "float[3, 3]",
    p: "float[3]",
    w0: "float[3]",
    gain: "float[3]",
) -> float:
    """Gap of a fixed potential contact; writes axes, point, velocity and velocity rate."""
    i = world.body[c]
    gap = 0.0
    t, a = local("float", 2, 6)
    turn = local("float", 3)
    motion_of(i, world.twist, world.twist_step, t)
    motion_of(i, world.rate, world.rate_step, a)
    if world.kind[c] == TRACED:
        k = world.shape[c]
        gap = world.traced[k, 0]
        p[:] = world.traced[k, 1:4]
        turn[:] = world.traced[k, 4:7]
        R[:] = view(world.traced[k, 7:16], 0, 3, 3)
    else:
        its = local("float", 12)
        pose_of(world, i, world.pose_step, its)
        gap = touch_plane(world, c, its, t, p, turn)
        R[:] = view(world.plane[world.ground[c]], 0, 3, 3)
    v = t[3:] + cross(t[:3], p)
    w0[:] = R @ v
    gain[:] = R @ (a[3:] + cross(a[:3], p) + cross(t[:3], turn))
    if world.kind[c] == TRACED:
        gain[:] += view(world.traced[world.shape[c], 16:], 0, 3, 3) @ v
    return gap


@procedure
def enter_contacts(world: SlotWorld, used: int, pairs: PairTables) -> None:
    """Fill the slots with the contacts' frames, gaps and velocities before the step.

    What rates of their axes and points add is known of contacts with what is fixed alone.
    """
    wait = world.numbers[1]
    time = world.numbers[0] - wait
    before = view(world.work, 0)  # at hand for all contacts
    for k in lanes(world.slots if used > 0 else 0):
        before[k] = world.force[4 * k * world.force_step]
    for s in lanes(used):
        c = int(world.taken[s * world.taken_step])
        R = local("float", 3, 3)
        p, gain, w0, f = local("float", 4, 3)
        gain[:] = 0.0
        f[:] = 0.0
        column, gap = 0, 0.0
        if c >= world.contacts:
            row = int(world.which[(c - world.contacts) * world.which_step])
            column, gap = enter_found(world, pairs, row, R, p, w0)
        else:
            column = pairs.column[c]
            gap = enter_known(world, c, R, p, w0, gain)
        for r in range(3):
            world.place[number_of(world, s, 9 + r, 12) * world.place_step] = p[r]
            for k in range(3):
                world.place[number_of(world, s, 3 * r + k, 12) * world.place_step] = R[r, k]
        same = -1
        for k in range(world.slots):
            same = k if before[k] == float(column + 1) else same
        for r in range(3 if same >= 0 else 0):
            f[r] = world.force[(4 * same + 1 + r) * world.force_step]
        if f[0] > 0.0:  # it goes on
            gap -= wait * wait * gain[0] / 2.0
        world.taken[s * world.taken_step] = float(column)
        world.start[4 * s * world.start_step] = float(column + 1)
        numbers = local("float", SLOT_SIZE)
        numbers[0] = float(pairs.carrier[column])
        numbers[1] = world.friction[column]
        numbers[2] = gap
        for r in range(3):
            numbers[3 + r] = w0[r]
            numbers[6 + r] = time * gain[r] if f[0] > 0.0 else 0.0
            world.start[(4 * s + 1 + r) * world.start_step] = f[r]
        for k in range(SLOT_SIZE):
            world.slot[number_of(world, s, k, SLOT_SIZE) * world.slot_step] = numbers[k]


@procedure
def pair_gaps(
    world: SlotWorld, extra: int, pairs: PairTables, gap: "float[:]", ahead: "float[:]"
) -> float:
    """Write gaps and gap rates of contacts between moving shapes; the largest speed²."""
    fastest = 0.0
    for d in lanes(extra):
        x = local("float", 8)
        u = local("float", 3)
        point_of(world, int(world.which[d * world.which_step]), x)
        speed_between(
            world, pairs, pairs.carrier[int(x[7])], x[1:4], world.twist, world.twist_step, u
        )
        gap[world.contacts + d] = x[0]
        ahead[world.contacts + d] = dot(x[4:7], u)
        fastest = max(fastest, dot(u, u))
    return lane_max(fastest)


@procedure
def slot_contacts(live: int, world: SlotWorld, pairs: PairTables) -> None:
    """Select the contacts of a world that take part in a step, and fill their slots.

    - twist, rate: velocities of bodies, and accelerations in straight motion.
    - friction: coefficients of the contacts.
    - force: for each slot the number of its contact, from 1 on, or 0, and the forces along normal
      and tangents in the step before.
    - start: like ``force``, of the slots of this step.
    """
    extra = int(world.near[0]) if live > 0 else 0
    every = world.contacts + extra
    room = world.contacts + pairs.most
    gap = view(world.work, 0)
    soon = view(world.work, room)
    listed = view(world.work, 2 * room)
    point = view(world.work, 3 * room + PARTS, POINTS, 3)
    fastest, depth = gap_rates(world, gap, soon)
    if pairs.count > 0:
        fastest = max(fastest, pair_gaps(world, extra, pairs, gap, soon))
    many = list_near(every, world.numbers[0], fastest, gap, soon, listed)
    many = many if live > 0 else 0
    close = view(listed, PARTS)
    place_near(world, many, close, point)
    used, left = take_slots(world, many, every, close, gap, soon, point)
    if world.trees > 0:
        sort_slots(live, world, pairs, used)
    for k in lanes(4 * world.slots if live > 0 else 0):
        world.start[k * world.start_step] = 0.0
    enter_contacts(world, used, pairs)
    if live > 0:
        world.found[0] = float(used)
        world.found[1] = float(left)
        world.found[2] = max(depth, world.near[2])


def contacts_size(tables: dict) -> int:
    """Number of floats in the workspace of ``slot_contacts``."""
    contacts = tables["contacts"] + tables["pairs"].most
    found = 3 * contacts + PARTS + max(3 * POINTS, contacts)
    return max(found, 4 * tables["slots"] + tables["trees"])


@procedure
def slot_rows(live: int, world: SlotWorld, pairs: PairTables) -> None:
    """Compute ``Y`` of a world's contacts in slots, and the diagonal blocks of ``Y Yᵀ``."""
    used = int(world.found[0]) if live > 0 else 0
    if worlds_max(used) > 0:
        contact_rows(world, used, pairs)


def rows_size(tables: dict) -> int:
    """Number of floats in the workspace of ``slot_rows``."""
    coupled = 13 * tables["slots"] if tables["trees"] else 0
    return tables["inverses"] + 6 * tables["nv"] + coupled


def newton_size(tables: dict) -> int:
    """Number of floats of the Newton matrix ``K`` of ``slot_impulses``."""
    return 2 * tables["inverses"] + 3 * tables["slots"]


@procedure(inline=True)
def wanted_speed(world: SlotWorld, s: int, v: float, before: float) -> float:
    """Normal velocity that is added to a contact's law, from its gap or restitution [m/s]."""
    e = world.restitution[int(world.taken[s * world.taken_step])]
    near = world.slot[number_of(world, s, 2, SLOT_SIZE) * world.slot_step]
    if abs(near) < world.numbers[5]:  # that is rounding: corners at rest would fight each other
        near = 0.0
    wanted = max(near, -world.numbers[3]) / world.numbers[0]
    if e > 0.0 and near + world.numbers[0] * v <= 0.0 and before < -world.numbers[4]:
        wanted = e * before
    return wanted


@procedure
def enter_impulses(world: SlotWorld, its: Unknowns, used: int) -> float:
    """Set a world's contact unknowns from the last step's impulses; the largest velocity [m/s]."""
    for k in lanes(world.nv + 1):
        its.v[k] = world.z[k * world.z_step] if k < world.nv else 0.0
    for s in lanes(used):
        at = SLOT_SIZE * s
        its.carrier[s] = int(world.slot[at * world.slot_step])
        its.mu[s] = world.slot[(at + 1) * world.slot_step]
        for r in range(3):
            its.b[3 * s + r] = world.slot[(at + 3 + r) * world.slot_step]
            force = world.start[(4 * s + 1 + r) * world.start_step]
            its.lam[3 * s + r] = world.numbers[0] * force
    speeds(world, its, used)
    largest = 0.0
    for s in lanes(used):
        n = 3 * s
        wanted = wanted_speed(world, s, its.w[n], its.b[n])
        its.target[s] = wanted
        for r in range(3):
            largest = max(largest, abs(its.w[n + r]))
            gained = world.slot[(SLOT_SIZE * s + 6 + r) * world.slot_step]
            its.b[n + r] = its.w[n + r] + gained
        its.b[n] += wanted
    effect_of_impulses(world, its, used, world.nv)
    return lane_max(largest)


@procedure
def slot_impulses(live: int, world: SlotWorld, its: Unknowns) -> None:
    """Solve a world's contact impulses in slots, and apply them to its velocities."""
    used = int(world.found[0]) if live > 0 else 0
    enough = world.numbers[2] * (1.0 + enter_impulses(world, its, used))
    if world.loose[0] > 0.0:
        enough *= world.first
    left, rounds, error = used, 0, 0.0
    for n in range(world.tries):
        more, less = sweep_slots(world, its, left, enough, min(world.serious, 2.0) * enough)
        rounds += more
        error = less if left > 0 else error
        for s in lanes(used if n == 0 else 0):
            world.held[(4 * s + 1) * world.held_step] = its.lam[3 * s]
        left = left if error > world.serious * enough else 0
        if worlds_max(left) == 0:
            break
        heavy = HEAVY_WEIGHT if n % 2 else world.proximal_weight
        less = finish_by_newton(world, its, left, MAX_NEWTON_STEPS, heavy, enough)
        error = less if left > 0 else error
        left = left if error > world.nearly * enough else 0
    speeds(world, its, used)
    for k in lanes(world.nv if live > 0 else 0):
        world.u[k * world.u_step] = its.v[k]
    report_impulses(live, world, its, used)
    if live > 0:
        world.reported[0] = error
        world.reported[5] = float(rounds)


@procedure
def report_impulses(live: int, world: SlotWorld, its: Unknowns, used: int) -> None:
    """Write held contact forces, and residuals, contact work and loss of a world."""
    h = world.numbers[0]
    cone, power, done, lost = 0.0, 0.0, 0.0, 0.0
    for s in lanes(used):
        n = 3 * s
        mu = its.mu[s]
        lam, w = local("float", 2, 3)
        for r in range(3):
            lam[r] = its.lam[n + r]
            w[r] = its.w[n + r]
        world.held[4 * s * world.held_step] = world.taken[s * world.taken_step] + 1.0
        touches = world.light if world.held[(4 * s + 1) * world.held_step] > 0.0 else 0.0
        sliding = sqrt(lam[1] * lam[1] + lam[2] * lam[2])
        cone = max(cone, sliding - mu * lam[0])
        slip = sqrt(w[1] * w[1] + w[2] * w[2])
        slip = lam[1] * w[1] + lam[2] * w[2] + mu * lam[0] * slip
        power = max(power, abs(lam[0] * w[0]), abs(slip))
        for r in range(3):
            world.held[(4 * s + 1 + r) * world.held_step] = (
                max(lam[0] / h, touches) if r == 0 else lam[r] / h
            )
            there = w[r] - (its.target[s] if r == 0 else 0.0)
            done += lam[r] * there
            before = world.slot[number_of(world, s, 3 + r, SLOT_SIZE) * world.slot_step]
            before -= world.slot[number_of(world, s, 6 + r, SLOT_SIZE) * world.slot_step]
            lost += lam[r] * (there - before) / 2.0
    for k in lanes(4 * (world.slots - used) if live > 0 else 0):
        world.held[(4 * used + k) * world.held_step] = 0.0
    cone, power, done, lost = lane_max(cone), lane_max(power), lane_sum(done), lane_sum(lost)
    if live > 0:
        world.reported[1] = cone
        world.reported[2] = power
        world.reported[3] = done
        world.reported[4] = lost


@procedure
def slot_missed(live: int, world: SlotWorld, pairs: PairTables) -> None:
    """Closing speed [m/s] at which contacts without slots end up penetrating, or 0.

    - after: velocities after the step.
    - work: of 6 ``bodies`` numbers.
    """
    most = 0.0
    left = int(world.found[1]) if live > 0 else 0
    if worlds_max(left) > 0:
        twist = view(world.work, 0, world.bodies, 6)
        for i in lanes(world.bodies):
            t = local("float", 6)
            t[:] = 0.0
            for d in range(world.moves[i]):
                k = world.chain[i * world.deep + d]
                column = local("float", 6)
                motion_of(k, world.S, world.S_step, column)
                t += column * world.after[k * world.after_step]
            twist[i] = t
        most = closing(world, world.numbers[0], twist)
        if pairs.count > 0:
            motion = view(world.work, 0)
            across = 0.0
            for d in lanes(int(world.near[0]) if left > 0 else 0):
                x = local("float", 8)
                u = local("float", 3)
                point_of(world, int(world.which[d * world.which_step]), x)
                carrier = pairs.carrier[int(x[7])]
                speed_between(world, pairs, carrier, x[1:4], motion, 1, u)
                across = max(across, -(x[0] / world.numbers[0] + dot(x[4:7], u)))
            most = max(most, lane_max(across))
    if live > 0:
        world.missed[0] = most if left > 0 else 0.0
        if world.near[1] > 0.0:  # nobody knows how near these pairs are
            world.missed[0] = FAR


@procedure
def slot_look(live: int, world: SlotWorld, pairs: PairTables) -> None:
    """Write the gaps of contacts in slots at a configuration, and the largest depth.

    - fixed: of columns, the number of the contact that is always looked at, or -1.
    - opening: gaps of the contacts with slots; of shapes that move the least of the pair, whose
      points may be others than before, and ``FAR`` where they are apart.
    - work: of ``contacts`` numbers.
    """
    gaps(world, world.work)
    used = int(world.found[0]) if live > 0 else 0
    most = 0.0
    for c in lanes(world.contacts):
        most = max(most, -world.work[c])
    for s in lanes(used):
        column = int(world.taken[s * world.taken_step])
        gap = FAR
        if world.fixed[column] >= 0:
            gap = world.work[world.fixed[column]]
        else:
            for d in range(int(world.near[0])):
                at = POINT_SIZE * int(world.which[d * world.which_step])
                its = int(world.points[(at + 7) * world.points_step])
                if world.pair[its] == world.pair[column]:
                    gap = min(gap, world.points[at * world.points_step])
        world.opening[s * world.opening_step] = gap
    most = lane_max(most)
    if live > 0:
        world.depth[0] = max(most, world.near[2])


@procedure
def slot_shift(live: int, world: SlotWorld) -> None:
    """Displacements that remove the penetration of contacts in slots, by fixed sweeps.

    By a fixed number of sweeps along ``M⁻¹ Gᵀ``.
    """
    used = int(world.found[0]) if live > 0 else 0
    u = view(world.work, 0)
    pushed = view(world.work, world.nv + 1)
    for k in lanes(world.nv + 1):
        u[k] = 0.0
    for s in lanes(used):
        pushed[s] = 0.0
    most = worlds_max(used)
    for _ in range(world.rounds):
        for s in range(most):
            here = s < used
            at = 3 * s * world.deep
            places = int(world.slot[SLOT_SIZE * s * world.slot_step]) * world.deep if here else 0
            opens = 0.0
            for d in lanes(world.deep):
                opens += world.Y[(at + d) * world.Y_step] * u[world.chain[places + d]]
            opens = lane_sum(opens)
            x = 0.0
            have = 0.0
            if here:
                have = pushed[s]
                size = world.own[6 * s * world.own_step]
                x = max(
                    -(world.opening[s * world.opening_step] + opens) / size if size > 0.0 else 0.0,
                    -have,
                )
            for d in lanes(world.deep if here else 0):
                u[world.chain[places + d]] += x * world.Y[(at + d) * world.Y_step]
                if d == 0:
                    pushed[s] = have + x
    for k in lanes(world.nv if live > 0 else 0):
        world.shift[k * world.shift_step] = u[k]


@procedure
def slot_forces(
    live: int, columns: int, slots: int, force: "float[:]", found: "float[:, 3]"
) -> None:
    """Copy contact forces from slots to all potential contacts; zero for the others."""
    for c in lanes(columns if live > 0 else 0):
        found[c] = 0.0
    for s in lanes(slots if live > 0 else 0):
        c = int(force[4 * s]) - 1
        if c >= 0:
            found[c] = view(force, 4 * s + 1, 3)
