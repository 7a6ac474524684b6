"""Steps with scheduled contacts: impacts, accelerations and contact forces of all knots.

    M a - Jᵀ f = tau - C        J a + dJ/dt v + damping J v + SOFT f = 0

``SOFT`` decides between forces that do the same. What touches down stops before: ``v`` becomes
``v + M⁻¹ Jᵀ Λ`` with ``J v = 0``. Steps are then semi-implicit Euler's.
"""

import math

from kinetree.codegen.procedures import cross, lane_sum, lanes, local, procedure, view
from kinetree.control.newton.calls import call
from kinetree.control.newton.contacts import ContactTables, Stance
from kinetree.control.newton.records import Batch, WorkerArrays
from kinetree.control.tiles import factor_tiles, solve_tiles, subtract_tiles

SOFT = 1e-9  # accelerations for unit forces [1/kg]


@procedure
def find_motions(b: Batch, c: ContactTables, s: Stance, k: int, i: int, qdd: "float[:]"):
    """Velocities and accelerations of bodies on the path to contact ``i``, without gravity."""
    for j in range(6):
        s.vel[j] = s.acc[j] = 0.0
    for e in range(c.chain_first[i], c.chain_first[i + 1]):
        find_motion(b, c, s, k, c.chain[e], qdd)


@procedure
def find_motion(b: Batch, c: ContactTables, s: Stance, k: int, i: int, qdd: "float[:]"):
    """Velocity and acceleration of body ``i``, from those of its parent."""
    up = 6 * c.parent[i]
    turn, slide, push, pull = local("float", 4, 3)
    turn[0:3] = slide[0:3] = 0.0
    push[0:3] = view(s.acc, up, 3)
    pull[0:3] = view(s.acc, up + 3, 3)
    for d in range(c.variable[i], c.variable[i + 1]):
        S = view(s.S, (k * b.nv + d) * 6)
        x = s.v[k * b.nv + d]
        y = qdd[d]
        turn += x * view(S, 0, 3)
        slide += x * view(S, 3, 3)
        push += y * view(S, 0, 3)
        pull += y * view(S, 3, 3)
    v, a = view(s.vel, 6 * i), view(s.acc, 6 * i)
    turning = view(v, 0, 3)
    moving = view(v, 3, 3)
    turning[0:3] = view(s.vel, up, 3) + turn
    moving[0:3] = view(s.vel, up + 3, 3) + slide
    first, last = view(a, 0, 3), view(a, 3, 3)
    first[0:3] = push + cross(turning, turn)
    last[0:3] = pull + (cross(turning, slide) + cross(moving, turn))


@procedure
def find_arm(c: ContactTables, s: Stance, k: int, i: int, arm: "float[3]"):
    """Vector from the origin of a tree's first body to the first point of contact ``i``."""
    own = view(s.pose, (k * c.bodies + c.body[i] - 1) * 12)
    first = view(s.pose, (k * c.bodies + c.root[c.body[i]] - 1) * 12)
    p = view(c.point, 3 * i)
    for j in range(3):
        x = own[4 * j + 3] - first[4 * j + 3]
        arm[j] = x + own[4 * j] * p[0] + own[4 * j + 1] * p[1] + own[4 * j + 2] * p[2]


@procedure
def count_rows(c: ContactTables, k: int, end: int) -> int:
    """Number of contact rows of closed contacts before ``end`` at a knot."""
    rows = 0
    for i in range(end):
        rows += c.active[k * c.count + i] * c.size[i]
    return rows


@procedure
def find_rows(b: Batch, c: ContactTables, s: Stance, k: int, i: int):
    """Jacobian rows and drift of contact ``i`` at a knot if it is closed; number of rows."""
    nv = b.nv
    if begin_rows(c, s, k, i) == 0:
        return
    J = view(s.J, (k * c.rows + count_rows(c, k, i)) * nv)
    for j in range(c.size[i] * nv):
        J[j] = 0.0
    for e in range(c.path_first[i], c.path_first[i + 1]):
        find_row_column(c, s, k, i, c.path[e], nv, J)


@procedure
def begin_rows(c: ContactTables, s: Stance, k: int, i: int) -> int:
    """Numbers and drift of the rows of contact ``i`` at a knot: 1, or 0 if it is open."""
    if i == 0:
        s.live[k] = count_rows(c, k, c.count)
    if c.active[k * c.count + i] == 0:
        return 0
    arm = view(s.R, 6, 3)
    at = k * c.rows + count_rows(c, k, i)
    for j in range(c.size[i]):
        s.row[at + j] = c.first[i] + j
    find_arm(c, s, k, i, arm)
    find_drift(c, s, i, arm, view(s.drift, at))
    return 1


@procedure(inline=True)
def find_row_column(c: ContactTables, s: Stance, k: int, i: int, d: int, nv: int, J: "float[:]"):
    """A column of the Jacobian of contact ``i``, whose arm is there: by variable ``d``."""
    S = view(s.S, (k * nv + d) * 6)
    axis = view(S, 0, 3)
    way = view(S, 3, 3) + cross(axis, view(s.R, 6, 3))
    for j in range(3):
        J[j * nv + d] = way[j]
        if c.size[i] == 6:
            J[(3 + j) * nv + d] = axis[j]


@procedure
def find_drift(c: ContactTables, s: Stance, i: int, arm: "float[3]", drift: "float[:]"):
    """Contact acceleration at ``qdd = 0``, with velocity damping."""
    v = view(s.vel, 6 * c.body[i])
    a = view(s.acc, 6 * c.body[i])
    w = view(v, 0, 3)
    speed = view(v, 3, 3) + cross(w, arm)
    push = view(a, 3, 3) + cross(view(a, 0, 3), arm) + cross(w, speed)
    for j in range(3):
        drift[j] = push[j] + c.damping[i] * speed[j]
        if c.size[i] == 6:
            drift[3 + j] = a[j] + c.damping[i] * w[j]


@procedure(inline=True)
def pad(count: int) -> int:
    """Next multiple of eight."""
    return 8 * ((count + 7) // 8)


@procedure
def fill_matrix(b: Batch, s: Stance, k: int, live: int, wide: int):
    """Fill ``[M | Jᵀ]`` into the working matrix ``P``, padded to multiples of eight."""
    nv, second = b.nv, pad(b.nv)
    M = view(s.M, k * nv * nv)
    J = view(s.J, k * b.contacts.rows * nv)
    for i, j in lanes(nv, nv):
        s.P[i * wide + j] = M[i * nv + j]
    for r, i in lanes(live, nv):
        s.P[i * wide + second + r] = J[r * nv + i]


@procedure
def solve_rows(s: Stance, nv: int, live: int, columns: int) -> int:
    """Solve the contact system: accelerations in ``P``, forces in ``Q``; 0, or 1 if singular.

    From ``[M | Jᵀ | r]`` in ``P``, and the right-hand sides of contacts in the last columns of
    ``Q``, ``[. | r]``, all of them padded, in rows of the same length. ``M a - Jᵀ f = r`` and
    ``J a + SOFT f = Q``.
    """
    second, third, count = pad(nv), pad(nv) + pad(live), pad(columns)
    wide = third + count
    P, Q = s.P, s.Q
    if factor_tiles(P, nv, wide) != 0:
        return 1
    right = view(P, third)
    if live > 0:
        Y = view(P, second)
        forces = view(Q, pad(live))
        for i, j in lanes(live, live):
            Q[i * wide + j] = 0.0
        for r in range(0, live, 6):
            c = 8 * (r // 8)
            rows, to = min(6, live - r), view(Q, r * wide + c)
            subtract_tiles(to, wide, view(Y, r), wide, view(Y, c), nv, rows, pad(live) - c)
        for i, j in lanes(live, live):
            Q[i * wide + j] = -Q[i * wide + j]
        for i in lanes(live):
            Q[i * wide + i] += SOFT
        subtract_tiles(forces, wide, Y, wide, right, nv, live, count)
        if factor_tiles(Q, live, wide) != 0:
            return 1
        solve_tiles(Q, wide, live, forces, wide, count, s.bench)
        for j, i in lanes(live, nv):
            s.Y[j * nv + i] = -Y[i * wide + j]
        subtract_tiles(right, wide, s.Y, nv, forces, live, nv, count)
    solve_tiles(P, wide, nv, right, wide, count, s.bench)
    return 0


@procedure
def count_landings(c: ContactTables, k: int) -> int:
    """Number of contacts that touch down at the beginning of a step."""
    hits = 0
    for i in range(c.count):
        hits += c.landing[k * c.count + i]
    return hits


@procedure
def stop_contacts(b: Batch, c: ContactTables, s: Stance, k: int, qd: "float[:]"):
    """Velocities after the touch-down impacts at the beginning of a step."""
    nv = b.nv
    own = view(s.v, k * nv)
    J = view(s.J, k * c.rows * nv)
    live = s.live[k]
    left, right = pad(live), pad(nv) + pad(live)
    fill_matrix(b, s, k, live, right + 8)
    for i in lanes(nv):
        s.P[i * (right + 8) + right] = 0.0
    for r in lanes(live):
        total = 0.0
        for i in range(nv):
            total -= J[r * nv + i] * qd[i]
        s.Q[r * (right + 8) + left] = total
    failed = solve_rows(s, nv, live, 1)
    for i in lanes(nv):
        own[i] += s.P[i * (right + 8) + right] if failed == 0 else math.inf
    for r in lanes(live):
        s.impulse[k * c.rows + s.row[k * c.rows + r]] = s.Q[r * (right + 8) + left]


@procedure
def accelerate(b: Batch, c: ContactTables, s: Stance, k: int, force: "float[:]", qdd: "float[:]"):
    """Accelerations and contact forces of a knot under joint forces, with known rows."""
    nv, live = b.nv, s.live[k]
    left, right = pad(live), pad(nv) + pad(live)
    fill_matrix(b, s, k, live, right + 8)
    for i in lanes(nv):
        s.P[i * (right + 8) + right] = force[i] - s.bias[k * nv + i]
    for r in lanes(live):
        s.Q[r * (right + 8) + left] = -s.drift[k * c.rows + r]
    failed = solve_rows(s, nv, live, 1)
    for i in lanes(nv):
        qdd[i] = s.P[i * (right + 8) + right] if failed == 0 else math.inf
    for r in lanes(c.rows):
        s.f[k * c.rows + r] = 0.0
    for r in lanes(live):
        s.f[k * c.rows + s.row[k * c.rows + r]] = s.Q[r * (right + 8) + left]


@procedure
def find_contacts(b: Batch, w: WorkerArrays, first: int, end: int):
    """Contact rows of several knots, without acceleration terms."""
    c, s, nv = b.contacts, w.stance, b.nv
    for e, j in lanes(end - first, nv):
        w.tried.qdd[(first + e) * nv + j] = 0.0
    for e, i in lanes(end - first, c.count):
        k = first + e
        if c.active[k * c.count + i] == 1:
            find_motions(b, c, s, k, i, view(w.tried.qdd, k * nv))
        find_rows(b, c, s, k, i)


@procedure
def find_rows_of_landing(b: Batch, w: WorkerArrays, first: int, end: int):
    """Contact rows of the knots where something touches down."""
    for e, i in lanes(end - first, b.contacts.count):
        if count_landings(b.contacts, first + e) > 0:
            find_rows(b, b.contacts, w.stance, first + e, i)


@procedure
def stop_landing(b: Batch, w: WorkerArrays, first: int, end: int):
    """Velocities and impulses of several knots after their touch-down impacts."""
    for k in range(first, end):
        if count_landings(b.contacts, k) > 0:
            stop_contacts(b, b.contacts, w.stance, k, view(w.tried.qd, k * b.nv))


@procedure
def take_steps_of_contacts(b: Batch, w: WorkerArrays, first: int, end: int):
    """Accelerations, contact forces and motions of several knots, from contact rows."""
    k, s, c, nv = w.tried, w.stance, b.contacts, b.nv
    force = k.total if s.tried.forced == 1 else k.held
    for i in range(first, end):
        accelerate(b, c, s, i, view(force, i * nv), view(k.qdd, i * nv))
    move_knots(b, w, first, end)


@procedure
def move_knots(b: Batch, w: WorkerArrays, first: int, end: int):
    """Velocities at the ends of steps, and joint motions, from accelerations."""
    k, s, nv = w.tried, w.stance, b.nv
    for e in lanes((end - first) * nv):
        i = first * nv + e
        v = s.v[i] + b.h * k.qdd[i]
        k.v_after[i] = v
        s.lines[i] = b.h * v
        if b.flat == 1:
            k.q_after[i] = k.q[i] + b.h * v


@procedure
def find_cones_of_steps(b: Batch, w: WorkerArrays, first: int, end: int):
    """Friction-cone values of the contact forces of several knots."""
    for e in lanes(end - first):
        i = first + e
        find_cones(b, b.contacts, w.stance, i, view(w.tried.path, i * b.nc + b.contacts.before))


@procedure
def take_contact_steps(b: Batch, w: WorkerArrays, first: int, count: int):
    """Ends of steps with contacts, for trial knots."""
    x, end = w.stance.tried, first + count
    w.search.fresh = 0
    call(x.terms, first, count)
    call(x.mass, first, count)
    find_rows_of_landing(b, w, first, end)
    stop_landing(b, w, first, end)
    if x.forced == 1:
        call(x.force, first, count)
    call(x.bias, first, count)
    find_contacts(b, w, first, end)
    take_steps_of_contacts(b, w, first, end)
    if b.flat == 0:
        call(x.move, first, count)
    find_cones_of_steps(b, w, first, end)


@procedure
def spread_force(c: ContactTables, s: Stance, k: int, i: int, p: int, f: "float[6]", y: "float[3]"):
    """Point force that is equivalent to the contact's force and moment, in base axes."""
    R = view(s.pose, (k * c.bodies + c.body[i] - 1) * 12)
    x = view(s.R, 12, 3)
    for j in range(3):
        x[j] = 0.0
        for e in range(3):
            force = R[e] * f[0] + R[4 + e] * f[1] + R[8 + e] * f[2]
            moment = R[e] * f[3] + R[4 + e] * f[4] + R[8 + e] * f[5]
            x[j] += c.spread[(p * 3 + j) * 6 + e] * force
            x[j] += c.spread[(p * 3 + j) * 6 + 3 + e] * moment
    for j in range(3):
        y[j] = R[4 * j] * x[0] + R[4 * j + 1] * x[1] + R[4 * j + 2] * x[2]


@procedure
def find_point_force(c: ContactTables, s: Stance, k: int, i: int, p: int, y: "float[3]"):
    """Force at point ``p`` of contact ``i``, in base axes."""
    f = view(s.f, k * c.rows + c.first[i])
    if c.size[i] == 3:
        for j in range(3):
            y[j] = f[j]
        return
    spread_force(c, s, k, i, p, view(f, 0, 6), y)


@procedure
def find_cones(b: Batch, c: ContactTables, s: Stance, k: int, path: "float[:]"):
    """Friction-cone values of all contact forces at a knot, at most 0 when met."""
    y = view(s.R, 9, 3)
    for i in range(c.count):
        for p in range(c.point_first[i], c.point_first[i + 1]):
            find_point_force(c, s, k, i, p, y)
            for e in range(c.cone_first[p], c.cone_first[p + 1]):
                G = view(c.cone, 3 * e)
                path[e] = G[0] * y[0] + G[1] * y[1] + G[2] * y[2] - c.offset[e]


@procedure
def follow_feet(b: Batch, w: WorkerArrays) -> float:
    """Foot-placement cost at all trial knots."""
    s, c, cost = w.stance, b.contacts, 0.0
    arm = view(s.R, 6, 3)
    for k in lanes(b.steps + 1):
        for i in range(c.count):
            at = 3 * (k * c.count + i)
            if c.weight[at] + c.weight[at + 1] + c.weight[at + 2] > 0.0:
                find_arm(c, s, k, i, arm)
                first = view(s.pose, (k * c.bodies + c.root[c.body[i]] - 1) * 12)
                for j in range(3):
                    off = arm[j] + first[4 * j + 3] - c.goal[at + j]
                    cost += 0.5 * c.weight[at + j] * off * off
    return lane_sum(cost)
