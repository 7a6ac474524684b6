"""Contacts of a step in a fixed amount of memory: for GPUs, where some lanes have a world.

The scheme and the laws are those of ``stepping.step``, for trees that touch what is fixed to the
base. Of many potential contacts, ``slots`` at most enter a step, the closest ones. Kinematics and
the inertia matrix are traced code; what is here loops over tables, and loops over ``lanes`` are
shared by the lanes of a world: see ``slot_points`` and ``slot_laws``. Several worlds run in
lockstep: ``worlds_max`` bounds loops in which lanes exchange numbers.

Arguments that several procedures have:

- ..._step: numbers from one of an array to the next; 1, or more where worlds lie side by side.
- live: 1, or 0 for a world that only keeps others company: nothing of it is written.
- nv, contacts, slots: variables of velocity, potential contacts, and how many may act at once.
- deep: variables that move a body at most, a multiple of 8.
- moves, chain: how many variables move a body, and which, from the base outward, then ``nv``.
- owner, level: of variables, the body that they move first, and how many come before them.
- sort: contacts by their kinds.
- kind, shape, ground, body, group: of contacts, kinds as ``slot_points`` has them, numbers of
  frames and of planes, the body, and the number of the pair.
- tree: of bodies, the number of theirs.
- frame, spot, plane: axes by rows and places of shapes in coordinates of their bodies; what
  ``slot_points.local_point`` wants; and axes of planes by rows with the distance from the origin.
- traced: gap, point, its rate, axes and their rates of the contacts that are computed elsewhere.
- pose, origin: axes of bodies by rows, and places relative to the origins of trees; these.
- S: columns of the joints.
- inverse, inverses, begin: rows of ``L⁻¹ D^{-1/2}``, with ``Lᵀ D L = H + h lag``, along chains one
  after the other; how many numbers; and where those of the variables in ``chain`` begin.
- numbers: length of the step, time to its middle, tolerance, depth that velocities take out,
  and speed of arrival without rebound.
- found: of ``slot_contacts``: how many slots are in use, how many contacts have none, the largest
  depth, and whether all of it is known.
- taken, place: contacts with slots; their axes by rows, and points.
- slot: ``SLOT_SIZE`` numbers for each slot: body, friction, gap, velocities along the axes before
  the step, and what they gain without forces, three numbers each.
- Y, own: rows of contacts, and blocks on the diagonal of ``Y Yᵀ``: see ``slot_laws``.
- work: numbers that a procedure may use as it likes.
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
from kinetree.contact.engine.slot_laws import (
    HEAVY_WEIGHT,
    SLOT_SIZE,
    contact_rows,
    finished,
    pressed,
    speeds,
    swept,
)
from kinetree.contact.engine.slot_points import (
    PARTS,
    POINTS,
    TRACED,
    chosen,
    closing,
    gaps,
    motion_of,
    pose_of,
    touch,
)

MAX_NEWTON_STEPS = 20  # of Newton's method, at most
REPORT_SIZE = 6
"""Numbers that ``slot_impulses`` reports: errors of velocity, cone and power, contact work, loss,
and sweeps."""


@procedure
def entered(
    used: int,
    slots: int,
    numbers: "float[5]",
    kind: "int[:]",
    shape: "int[:]",
    ground: "int[:]",
    body: "int[:]",
    tree: "int[:]",
    frame: "float[:, 12]",
    spot: "float[:, 4]",
    plane: "float[:, 10]",
    traced: "float[:, 25]",
    friction: "float[:]",
    force: "float[:]",
    force_step: int,
    pose: "float[:]",
    pose_step: int,
    origin: "float[:, 3]",
    twist: "float[:]",
    twist_step: int,
    rate: "float[:]",
    rate_step: int,
    taken: "float[:]",
    taken_step: int,
    place: "float[:]",
    place_step: int,
    slot: "float[:]",
    slot_step: int,
    start: "float[:]",
    start_step: int,
) -> None:
    """Enter the contacts that have slots, as they are before the step."""
    wait = numbers[1]
    time = numbers[0] - wait
    for s in lanes(used):
        c = int(taken[s * taken_step])
        i = body[c]
        t, a = local("float", 2, 6)
        motion_of(i, twist, twist_step, t)
        motion_of(i, rate, rate_step, a)
        p, turn = local("float", 2, 3)
        R = local("float", 3, 3)
        if kind[c] == TRACED:
            k = shape[c]
            gap = traced[k, 0]
            p[:] = traced[k, 1:4]
            turn[:] = traced[k, 4:7]
            R[:] = view(traced[k, 7:16], 0, 3, 3)
        else:
            its = local("float", 12)
            pose_of(i, pose, pose_step, its)
            gap = touch(kind[c], frame[shape[c]], spot[c], plane[ground[c]], its,
                        origin[tree[i]], t, p, turn)  # fmt: skip
            R[:] = view(plane[ground[c]], 0, 3, 3)
        for r in range(3):
            place[(12 * s + 9 + r) * place_step] = p[r]
            for k in range(3):
                place[(12 * s + 3 * r + k) * place_step] = R[r, k]
        speed = t[3:] + cross(t[:3], p)
        w0 = R @ speed
        gain = R @ (a[3:] + cross(a[:3], p) + cross(t[:3], turn))
        if kind[c] == TRACED:
            gain += view(traced[shape[c], 16:], 0, 3, 3) @ speed
        f = local("float", 3)
        f[:] = 0.0
        for k in range(slots):
            if force[4 * k * force_step] == float(c + 1):
                for r in range(3):
                    f[r] = force[(4 * k + 1 + r) * force_step]
        if f[0] > 0.0:  # it goes on
            gap -= wait * wait * gain[0] / 2.0
        at = SLOT_SIZE * s
        slot[at * slot_step] = float(i)
        slot[(at + 1) * slot_step] = friction[c]
        slot[(at + 2) * slot_step] = gap
        start[4 * s * start_step] = float(c + 1)
        for r in range(3):
            slot[(at + 3 + r) * slot_step] = w0[r]
            slot[(at + 6 + r) * slot_step] = time * gain[r] if f[0] > 0.0 else 0.0
            start[(4 * s + 1 + r) * start_step] = f[r]


@procedure
def slot_contacts(
    live: int,
    nv: int,
    contacts: int,
    slots: int,
    deep: int,
    inverses: int,
    moves: "int[:]",
    chain: "int[:]",
    begin: "int[:]",
    sort: "int[:]",
    kind: "int[:]",
    shape: "int[:]",
    ground: "int[:]",
    body: "int[:]",
    group: "int[:]",
    tree: "int[:]",
    frame: "float[:, 12]",
    spot: "float[:, 4]",
    plane: "float[:, 10]",
    traced: "float[:, 25]",
    pose: "float[:]",
    pose_step: int,
    origin: "float[:, 3]",
    S: "float[:]",
    S_step: int,
    twist: "float[:]",
    twist_step: int,
    rate: "float[:]",
    rate_step: int,
    inverse: "float[:]",
    inverse_step: int,
    friction: "float[:]",
    force: "float[:]",
    force_step: int,
    numbers: "float[5]",
    found: "float[3]",
    taken: "float[:]",
    taken_step: int,
    place: "float[:]",
    place_step: int,
    slot: "float[:]",
    slot_step: int,
    start: "float[:]",
    start_step: int,
    Y: "float[:]",
    Y_step: int,
    own: "float[:]",
    own_step: int,
    work: "float[:]",
) -> None:
    """Contacts that enter a step.

    - twist, rate: velocities of bodies, and accelerations in straight motion.
    - friction: coefficients of the contacts.
    - force: for each slot the number of its contact, from 1 on, or 0, and the forces along normal
      and tangents in the step before.
    - start: like ``force``, of the slots of this step.
    """
    gap = view(work, 0)
    soon = view(work, contacts)
    listed = view(work, 2 * contacts)
    point = view(work, 3 * contacts + PARTS, POINTS, 3)
    used, left, depth = chosen(
        live, contacts, slots, numbers[0], sort, kind, shape, ground, body, group, tree, frame,
        spot, plane, traced, pose, pose_step, origin, twist, twist_step, gap, soon, listed, point,
        taken, taken_step,
    )  # fmt: skip
    for k in lanes(4 * slots if live > 0 else 0):
        start[k * start_step] = 0.0
    entered(used, slots, numbers, kind, shape, ground, body, tree, frame, spot, plane, traced,
            friction, force, force_step, pose, pose_step, origin, twist, twist_step, rate,
            rate_step, taken, taken_step, place, place_step, slot, slot_step, start,
            start_step)  # fmt: skip
    if worlds_max(used) > 0:
        contact_rows(used, deep, nv, inverses, moves, chain, begin, slot, slot_step, place,
                     place_step, S, S_step, inverse, inverse_step, Y, Y_step, own, own_step,
                     work)  # fmt: skip
    if live > 0:
        found[0] = float(used)
        found[1] = float(left)
        found[2] = depth


def contacts_size(tables: dict) -> int:
    """Numbers of the workspace of ``slot_contacts``."""
    contacts = tables["contacts"]
    found = 3 * contacts + PARTS + max(3 * POINTS, contacts)
    return max(found, tables["inverses"] + 6 * tables["nv"])


@procedure
def slot_impulses(
    live: int,
    nv: int,
    slots: int,
    deep: int,
    inverses: int,
    sweeps: int,
    tries: int,
    first: float,
    serious: float,
    nearly: float,
    proximal_weight: float,
    light: float,
    moves: "int[:]",
    chain: "int[:]",
    begin: "int[:]",
    owner: "int[:]",
    level: "int[:]",
    restitution: "float[:]",
    numbers: "float[5]",
    loose: "float[1]",
    z: "float[:]",
    z_step: int,
    found: "float[3]",
    taken: "float[:]",
    taken_step: int,
    slot: "float[:]",
    slot_step: int,
    Y: "float[:]",
    Y_step: int,
    own: "float[:]",
    own_step: int,
    start: "float[:]",
    start_step: int,
    held: "float[:]",
    held_step: int,
    u: "float[:]",
    u_step: int,
    reported: "float[REPORT_SIZE]",
    K: "float[:]",
    work: "float[:]",
) -> None:
    """Impulses of the contacts with slots.

    - sweeps: of Gauss and Seidel, at most.
    - tries: how often there are sweeps, and steps of Newton where they do not end.
    - serious, nearly: times the tolerance, above which these steps follow, and sweeps again.
    - proximal_weight: weight of staying in steps of Newton.
    - light: force of contacts that were pressed before these, and are not any more.
    - first, loose: times the tolerance that will do, where this is above 0.
    - restitution: coefficients of the contacts.
    - z: what velocities gain without contact, ``D^{-1/2} L⁻ᵀ h (tau - C)``.
    - start, held: forces to start from, and forces.
    - u: what velocities gain by contact, as ``z``.
    - reported: ``REPORT_SIZE`` numbers.
    - K, work: room for Newton's method, 2 ``inverses`` + 3 ``slots`` numbers, and 2 ``nv`` + 2 +
      21 ``slots``.
    """
    h = numbers[0]
    used = int(found[0]) if live > 0 else 0
    v = view(work, 0)
    older = view(work, nv + 1)
    at = 2 * nv + 2
    carrier = view(work, at)
    mu = view(work, at + slots)
    target = view(work, at + 2 * slots)
    b = view(work, at + 3 * slots)
    lam = view(work, at + 6 * slots)
    last = view(work, at + 9 * slots, 3 * slots, 3)
    w = view(work, at + 18 * slots)
    W = view(work, at + 9 * slots, slots, 9)  # in place of ``last``
    for k in lanes(nv + 1):
        v[k] = z[k * z_step] if k < nv else 0.0
    for s in lanes(used):
        at = SLOT_SIZE * s
        carrier[s] = slot[at * slot_step]
        mu[s] = slot[(at + 1) * slot_step]
        for r in range(3):
            b[3 * s + r] = slot[(at + 3 + r) * slot_step]
            lam[3 * s + r] = h * start[(4 * s + 1 + r) * start_step]
    speeds(used, deep, chain, carrier, Y, Y_step, b, v, w)
    largest = 0.0
    for s in lanes(used):
        n = 3 * s
        e = restitution[int(taken[s * taken_step])]
        near = slot[(SLOT_SIZE * s + 2) * slot_step]
        wanted = max(near, -numbers[3]) / h
        if e > 0.0 and near + h * w[n] <= 0.0 and b[n] < -numbers[4]:
            wanted = e * b[n]
        target[s] = wanted
        for r in range(3):
            largest = max(largest, abs(w[n + r]))
            b[n + r] = w[n + r] + slot[(SLOT_SIZE * s + 6 + r) * slot_step]
        b[n] += wanted
    enough = numbers[2] * (1.0 + lane_max(largest))
    if loose[0] > 0.0:
        enough *= first
    pressed(used, nv, deep, chain, carrier, Y, Y_step, lam, v)
    left, rounds, error = used, 0, 0.0
    for n in range(tries):
        later = min(serious, 2.0) * enough
        more, less = swept(left, nv, deep, sweeps, enough, later, chain, carrier, Y, Y_step, own,
                           own_step, mu, b, lam, v, last, older, w)  # fmt: skip
        rounds += more
        error = less if left > 0 else error
        for s in lanes(used if n == 0 else 0):
            held[(4 * s + 1) * held_step] = lam[3 * s]
        left = left if error > serious * enough else 0
        if worlds_max(left) == 0:
            break
        less = finished(
            left, nv, deep, inverses, MAX_NEWTON_STEPS,
            HEAVY_WEIGHT if n % 2 else proximal_weight, proximal_weight, enough, moves, chain,
            begin, owner, level, carrier, Y, Y_step, own, own_step, mu, b, lam, v, w, older, W, K,
        )  # fmt: skip
        error = less if left > 0 else error
        left = left if error > nearly * enough else 0
    speeds(used, deep, chain, carrier, Y, Y_step, b, v, w)
    cone, power, done, lost = 0.0, 0.0, 0.0, 0.0
    for s in lanes(used):
        n = 3 * s
        held[4 * s * held_step] = taken[s * taken_step] + 1.0
        touches = light if held[(4 * s + 1) * held_step] > 0.0 else 0.0
        sliding = sqrt(lam[n + 1] * lam[n + 1] + lam[n + 2] * lam[n + 2])
        cone = max(cone, sliding - mu[s] * lam[n])
        slip = sqrt(w[n + 1] * w[n + 1] + w[n + 2] * w[n + 2])
        slip = lam[n + 1] * w[n + 1] + lam[n + 2] * w[n + 2] + mu[s] * lam[n] * slip
        power = max(power, abs(lam[n] * w[n]), abs(slip))
        for r in range(3):
            held[(4 * s + 1 + r) * held_step] = (
                max(lam[n] / h, touches) if r == 0 else lam[n + r] / h
            )
            there = w[n + r] - (target[s] if r == 0 else 0.0)
            done += lam[n + r] * there
            at = (SLOT_SIZE * s + 3 + r) * slot_step
            before = slot[at] - slot[at + 3 * slot_step]
            lost += lam[n + r] * (there - before) / 2.0
    for k in lanes(nv if live > 0 else 0):
        u[k * u_step] = v[k]
    for k in lanes(4 * (slots - used) if live > 0 else 0):
        held[(4 * used + k) * held_step] = 0.0
    cone, power, done, lost = lane_max(cone), lane_max(power), lane_sum(done), lane_sum(lost)
    if live > 0:
        reported[:] = vector(error, cone, power, done, lost, float(rounds))


@procedure
def slot_missed(
    live: int,
    bodies: int,
    contacts: int,
    deep: int,
    moves: "int[:]",
    chain: "int[:]",
    kind: "int[:]",
    shape: "int[:]",
    ground: "int[:]",
    body: "int[:]",
    tree: "int[:]",
    frame: "float[:, 12]",
    spot: "float[:, 4]",
    plane: "float[:, 10]",
    traced: "float[:, 25]",
    pose: "float[:]",
    pose_step: int,
    origin: "float[:, 3]",
    S: "float[:]",
    S_step: int,
    found: "float[3]",
    after: "float[:]",
    after_step: int,
    numbers: "float[5]",
    missed: "float[1]",
    work: "float[:]",
) -> None:
    """The speed [m/s] at which contacts without slots end up below the ground, or 0.

    - after: velocities after the step.
    - work: of 6 ``bodies`` numbers.
    """
    most = 0.0
    left = int(found[1]) if live > 0 else 0
    if worlds_max(left) > 0:
        twist = view(work, 0, bodies, 6)
        for i in lanes(bodies):
            t = local("float", 6)
            t[:] = 0.0
            for d in range(moves[i]):
                k = chain[i * deep + d]
                column = local("float", 6)
                motion_of(k, S, S_step, column)
                t += column * after[k * after_step]
            twist[i] = t
        most = closing(contacts, numbers[0], kind, shape, ground, body, tree, frame, spot, plane,
                       traced, pose, pose_step, origin, twist)  # fmt: skip
    if live > 0:
        missed[0] = most if left > 0 else 0.0


@procedure
def slot_look(
    live: int,
    contacts: int,
    slots: int,
    sort: "int[:]",
    kind: "int[:]",
    shape: "int[:]",
    ground: "int[:]",
    body: "int[:]",
    tree: "int[:]",
    frame: "float[:, 12]",
    spot: "float[:, 4]",
    plane: "float[:, 10]",
    traced: "float[:, 25]",
    pose: "float[:]",
    pose_step: int,
    origin: "float[:, 3]",
    found: "float[3]",
    taken: "float[:]",
    taken_step: int,
    near: "float[:]",
    near_step: int,
    depth: "float[1]",
    work: "float[:]",
) -> None:
    """Gaps of the contacts with slots, and the largest depth of all, at a configuration.

    - work: of ``contacts`` numbers.
    """
    gaps(contacts, sort, kind, shape, ground, body, tree, frame, spot, plane, traced, pose,
         pose_step, origin, work)  # fmt: skip
    used = int(found[0]) if live > 0 else 0
    most = 0.0
    for c in lanes(contacts):
        most = max(most, -work[c])
    for s in lanes(used):
        near[s * near_step] = work[int(taken[s * taken_step])]
    most = lane_max(most)
    if live > 0:
        depth[0] = most


@procedure
def slot_shift(
    live: int,
    nv: int,
    deep: int,
    rounds: int,
    chain: "int[:]",
    near: "float[:]",
    near_step: int,
    found: "float[3]",
    slot: "float[:]",
    slot_step: int,
    Y: "float[:]",
    Y_step: int,
    own: "float[:]",
    own_step: int,
    shift: "float[:]",
    shift_step: int,
    work: "float[:]",
) -> None:
    """Displacements that open the gaps of the contacts with slots, as ``u`` of ``slot_impulses``.

    By a fixed number of sweeps along ``M⁻¹ Gᵀ``.
    """
    used = int(found[0]) if live > 0 else 0
    u = view(work, 0)
    pushed = view(work, nv + 1)
    for k in lanes(nv + 1):
        u[k] = 0.0
    for s in lanes(used):
        pushed[s] = 0.0
    most = worlds_max(used)
    for _ in range(rounds):
        for s in range(most):
            here = s < used
            at = 3 * s * deep
            places = int(slot[SLOT_SIZE * s * slot_step]) * deep if here else 0
            opens = 0.0
            for d in lanes(deep):
                opens += Y[(at + d) * Y_step] * u[chain[places + d]]
            opens = lane_sum(opens)
            x = 0.0
            have = 0.0
            if here:
                have = pushed[s]
                size = own[6 * s * own_step]
                x = max(-(near[s * near_step] + opens) / size if size > 0.0 else 0.0, -have)
            for d in lanes(deep if here else 0):
                u[chain[places + d]] += x * Y[(at + d) * Y_step]
                if d == 0:
                    pushed[s] = have + x
    for k in lanes(nv if live > 0 else 0):
        shift[k * shift_step] = u[k]


@procedure
def slot_forces(
    live: int, contacts: int, slots: int, force: "float[:]", found: "float[:, 3]"
) -> None:
    """Forces of all potential contacts, from those of slots."""
    for c in lanes(contacts if live > 0 else 0):
        found[c] = 0.0
    for s in lanes(slots if live > 0 else 0):
        c = int(force[4 * s]) - 1
        if c >= 0:
            found[c] = view(force, 4 * s + 1, 3)
