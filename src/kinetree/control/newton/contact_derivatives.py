"""Derivatives of steps with scheduled contacts, of cones, and of costs of feet.

Moving variable ``j`` turns everything beyond its joint: motions ``x`` relative to the body before
it by ``S_j × x``. With ``dv = S_j × (v - v_before)`` the velocity of a body changes, and with
``S_j × (a - a_before) + (v_before × S_j) × (v - v_before)`` its acceleration.

Carpentier, Mansard, 2018: Analytical derivatives of rigid body dynamics algorithms. Budhiraja et
al., 2018: Differential dynamic programming for multi-phase rigid contact dynamics.
"""

from kinetree.codegen.procedures import cross, dot, lanes, local, procedure, vector, view
from kinetree.control.newton.calls import call
from kinetree.control.newton.contacts import ContactTables, Stance
from kinetree.control.newton.records import Batch, WorkerArrays
from kinetree.control.newton.stance import (
    count_landings,
    count_rows,
    fill_matrix,
    find_arm,
    find_motions,
    find_point_force,
    pad,
    solve_rows,
    spread_force,
)

SMALL = 1e-18  # terms of series that no longer count


@procedure
def find_contact_derivatives(b: Batch, w: WorkerArrays):
    """Derivatives of all contact steps and friction cones at the current knots."""
    x = w.stance.now
    call(x.derivatives, 0, b.steps)
    if x.forced == 1:
        call(x.force_derivatives, 0, b.steps)
    hits = gather_impacts(b, w)
    if hits > 0:
        call(x.impact, 0, 2 * hits)
    find_impact_rows(b, w, 0, b.steps)
    derivatives_of_impacts(b, w, 0, b.steps)
    find_contact_rows(b, w, 0, b.steps)
    derivatives_of_steps(b, w, 0, b.steps)


@procedure
def find_impact_rows(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of contact velocities, and of impulses, at the touch-downs of some knots."""
    s, c = w.stance, b.contacts
    for e, i in lanes(end - first, c.count):
        k = first + e
        if count_landings(c, k) > 0 and c.active[k * c.count + i] == 1:
            for j in range(b.nv):
                s.room[j] = 0.0
            find_motions(b, c, s, k, i, s.room)
            speed_rows(b, c, s, k, i)
    for e in lanes(end - first):
        if count_landings(c, first + e) > 0:
            force_rows(b, c, s, first + e, s.impulse)


@procedure
def derivatives_of_impacts(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of the touch-down impacts at the beginnings of steps."""
    for k in range(first, end):
        if count_landings(b.contacts, k) > 0:
            impact_derivatives(b, w, k)


@procedure
def find_contact_rows(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of contact accelerations and contact forces, and of joint motions in steps."""
    s, c = w.stance, b.contacts
    for e, i in lanes(end - first, c.count):
        k = first + e
        if c.active[k * c.count + i] == 1:
            find_motions(b, c, s, k, i, view(w.now.qdd, k * b.nv))
            contact_rows(b, c, s, k, i)
    for e in lanes(end - first):
        k = first + e
        force_rows(b, c, s, k, s.f)
        for t in range(c.turns):
            first_of_turn, at = c.turn[t], (k * c.turns + t) * 36
            motion = view(w.now.v_after, k * b.nv + first_of_turn)
            turned, spun = view(s.turned, at), view(s.spun, at)
            turning(s, motion, b.h, c.width[t], turned, spun)


@procedure
def derivatives_of_steps(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of several contact steps and cones, from those of their contacts."""
    for k in range(first, end):
        derivatives_of_step(b, w, k)


@procedure
def gather_impacts(b: Batch, w: WorkerArrays) -> int:
    """Gather positions and velocity jumps at impacts for batched derivatives; their number.

    By positions, at the steps with impacts, one after the other.
    """
    s, c, q, nq, nv, count = w.stance, b.contacts, w.now.q, b.nq, b.nv, 0
    for k in range(b.steps):
        if count_landings(c, k) > 0:
            s.hit[k] = 2 * count
            for i in lanes(nq):
                s.hit_q[2 * count * nq + i] = s.hit_q[(2 * count + 1) * nq + i] = q[k * nq + i]
            for i in lanes(nv):
                s.jump[2 * count * nv + i] = s.v[k * nv + i] - w.now.qd[k * nv + i]
                s.jump[(2 * count + 1) * nv + i] = 0.0
            count += 1
    return count


@procedure
def derivatives_of_step(b: Batch, w: WorkerArrays, k: int):
    """Derivatives of one contact step and its cones, from those of its contacts."""
    s, c, nv, m, size = w.stance, b.contacts, b.nv, b.m, b.size
    live, hits = s.live[k], count_landings(c, k)
    third = pad(nv) + pad(live)
    wide = third + pad(size)
    fill_matrix(b, s, k, live, wide)
    fill_right(b, s, k, third, wide)
    right = view(s.Q, pad(live))
    for r, j in lanes(live, m):
        right[r * wide + j] = 0.0
    for r, j in lanes(live, nv):
        at = (k * c.rows + r) * nv + j
        right[r * wide + m + j] = -s.A_q[at]
        right[r * wide + m + nv + j] = -s.A_v[at]
    solve_rows(s, nv, live, size)
    if hits > 0:
        chain_impact(b, s, k, view(s.P, third), wide, nv)
        chain_impact(b, s, k, right, wide, live)
    fill_step(b, w, k, live, hits)
    cone_rows(b, w, k, view(s.Q, pad(live)), wide, s.bench)


@procedure
def fill_right(b: Batch, s: Stance, k: int, first: int, wide: int):
    """Derivatives of joint and contact forces, but for inverse dynamics, as right-hand side."""
    nv, m, size = b.nv, b.m, b.size
    right = view(s.P, first)
    if s.now.forced == 1:
        for i, j in lanes(nv, size):
            right[i * wide + j] = s.f_z[(k * nv + i) * size + j]
    else:
        for i, j in lanes(nv, size):
            right[i * wide + j] = 0.0
    for i, j in lanes(nv, nv):
        at = (k * nv + i) * nv + j
        right[i * wide + m + j] += s.D[at] - s.E_q[at]
        right[i * wide + m + nv + j] -= s.E_v[at]
    if s.now.forced == 0:
        for j in lanes(m):
            s.P[b.columns[j] * wide + first + j] += 1.0


@procedure
def contact_rows(b: Batch, c: ContactTables, s: Stance, k: int, i: int):
    """Derivatives of the acceleration of contact ``i`` at fixed ``qdd``, with damping."""
    nv, at = b.nv, k * c.rows + count_rows(c, k, i)
    for j in range(c.size[i] * nv):
        s.A_q[at * nv + j] = s.A_v[at * nv + j] = 0.0
    find_arm(c, s, k, i, view(s.R, 6, 3))
    for e in range(c.path_first[i], c.path_first[i + 1]):
        columns_of_variable(b, c, s, k, i, e, at)


@procedure
def columns_of_variable(b: Batch, c: ContactTables, s: Stance, k: int, i: int, e: int, at: int):
    """Derivative of a contact's acceleration by one velocity variable."""
    nv, d, body, damping = b.nv, c.path[e], c.body[i], c.damping[i]
    arm = view(s.R, 6, 3)
    S = view(s.S, (k * nv + d) * 6)
    own = 6 * c.owner[e]
    up = 6 * c.parent[c.owner[e]]
    turn = view(S, 0, 3)
    slide = view(S, 3, 3)
    w = view(s.vel, 6 * body, 3)
    v = view(s.vel, 6 * body + 3, 3)
    aw = view(s.acc, 6 * body, 3)
    av = view(s.acc, 6 * body + 3, 3)
    w_up = view(s.vel, up, 3)
    v_up = view(s.vel, up + 3, 3)
    w_own = view(s.vel, own, 3)
    v_own = view(s.vel, own + 3, 3)
    dw = w - w_up
    dv = v - v_up
    da = aw - view(s.acc, up, 3)
    dl = av - view(s.acc, up + 3, 3)
    way = slide + cross(turn, arm)
    speed = v + cross(w, arm)
    # velocities
    vw = cross(turn, dw)
    vv = cross(turn, dv) + cross(slide, dw)
    gw = cross(w_up, turn)
    gv = cross(w_up, slide) + cross(v_up, turn)
    # accelerations, by position
    xw = cross(turn, da) + cross(gw, dw)
    xv = cross(turn, dl) + cross(slide, da) + cross(gw, dv) + cross(gv, dw)
    moved = vv + cross(vw, arm) + cross(w, way)
    q_lin = xv + cross(xw, arm) + cross(aw, way) + cross(vw, speed) + cross(w, moved)
    # accelerations, by velocity
    yw = cross(w_own, turn) + vw
    yv = cross(w_own, slide) + cross(v_own, turn) + vv
    v_lin = yv + cross(yw, arm) + cross(turn, speed) + cross(w, way)
    for j in range(3):
        s.A_q[(at + j) * nv + d] = q_lin[j] + damping * moved[j]
        s.A_v[(at + j) * nv + d] = v_lin[j] + damping * way[j]
        if c.size[i] == 6:
            s.A_q[(at + 3 + j) * nv + d] = xw[j] + damping * vw[j]
            s.A_v[(at + 3 + j) * nv + d] = yw[j] + damping * turn[j]


@procedure
def force_rows(b: Batch, c: ContactTables, s: Stance, k: int, forces: "float[:]"):
    """Derivatives of the joint forces due to constant contact forces, in ``D``, (nv, nv).

    A variable moves a contact by its way, and turns it. Of two variables on the path to a contact,
    that nearer to the base moves the axis of the other.
    """
    nv = b.nv
    D = view(s.D, k * nv * nv)
    for i in range(nv * nv):
        D[i] = 0.0
    arm = view(s.R, 6, 3)
    for i in range(c.count):
        if c.active[k * c.count + i] == 0:
            continue
        find_arm(c, s, k, i, arm)
        f = view(forces, k * c.rows + c.first[i], 3)
        begin, end = c.path_first[i], c.path_first[i + 1]
        for e in range(begin, end):
            S = view(s.S, (k * nv + c.path[e]) * 6)
            turn = view(S, 0, 3)
            own = view(s.room, 9 * (e - begin))
            own[0:3] = view(S, 3, 3) + cross(turn, arm)
            own[3:6] = cross(f, turn)
            if c.size[i] == 6:
                own[6:9] = cross(view(forces, k * c.rows + c.first[i] + 3, 3), turn)
        for x in range(begin, end):
            own = view(s.room, 9 * (x - begin))
            way = view(own, 0, 3)
            push = view(own, 3, 3)
            to = view(D, c.path[x] * nv)
            for y in range(begin, end):
                other = view(s.room, 9 * (y - begin))
                if c.owner[y] <= c.owner[x]:
                    total = dot(view(other, 3, 3), way)
                    if c.size[i] == 6:
                        total += dot(view(other, 6, 3), view(s.S, (k * nv + c.path[x]) * 6, 3))
                    to[c.path[y]] += total
                else:
                    to[c.path[y]] += dot(push, view(other, 0, 3))


@procedure
def impact_derivatives(b: Batch, w: WorkerArrays, k: int):
    """Derivatives of post-impact velocities by the state before, in ``B``, (nv, 2 nv)."""
    s, c, nv = w.stance, b.contacts, b.nv
    I_q = view(s.I_q, s.hit[k] * nv * nv)
    G_q = view(I_q, nv * nv)
    live = s.live[k]
    third = pad(nv) + pad(live)
    wide = third + pad(2 * nv)
    fill_matrix(b, s, k, live, wide)
    right, below = view(s.P, third), view(s.Q, pad(live))
    for i, j in lanes(nv, nv):
        at = (k * nv + i) * nv + j
        right[i * wide + j] = s.D[at] - I_q[i * nv + j] + G_q[i * nv + j]
        right[i * wide + nv + j] = s.M[at]
    for r, j in lanes(live, nv):
        below[r * wide + j] = -s.A_q[(k * c.rows + r) * nv + j]
        below[r * wide + nv + j] = 0.0
    solve_rows(s, nv, live, 2 * nv)
    for i, j in lanes(nv, 2 * nv):
        s.B[(k * nv + i) * 2 * nv + j] = right[i * wide + j]


@procedure
def speed_rows(b: Batch, c: ContactTables, s: Stance, k: int, i: int):
    """Derivatives of contact ``i``'s velocity by positions, in ``A_q``."""
    nv, at = b.nv, k * c.rows + count_rows(c, k, i)
    for j in range(c.size[i] * nv):
        s.A_q[at * nv + j] = 0.0
    arm = view(s.R, 6, 3)
    find_arm(c, s, k, i, arm)
    for e in range(c.path_first[i], c.path_first[i + 1]):
        S = view(s.S, (k * nv + c.path[e]) * 6)
        up = 6 * c.parent[c.owner[e]]
        turn = view(S, 0, 3)
        slide = view(S, 3, 3)
        w = view(s.vel, 6 * c.body[i], 3)
        dw = w - view(s.vel, up, 3)
        dv = view(s.vel, 6 * c.body[i] + 3, 3) - view(s.vel, up + 3, 3)
        vw = cross(turn, dw)
        vv = cross(turn, dv) + cross(slide, dw) + cross(vw, arm)
        vv = vv + cross(w, slide + cross(turn, arm))
        for j in range(3):
            s.A_q[(at + j) * nv + c.path[e]] = vv[j]
            if c.size[i] == 6:
                s.A_q[(at + 3 + j) * nv + c.path[e]] = vw[j]


@procedure
def chain_impact(b: Batch, s: Stance, k: int, X: "float[:]", wide: int, rows: int):
    """Chain derivatives by the post-impact state to those by the state before the impact."""
    nv, m = b.nv, b.m
    for i in lanes(rows):
        row = view(X, i * wide + m)
        for j in range(nv):
            s.room[j] = row[j]
            s.room[nv + j] = 0.0
        for e in range(nv):
            x, of_speed = row[nv + e], view(s.B, (k * nv + e) * 2 * nv)
            for j in range(2 * nv):
                s.room[j] += x * of_speed[j]
        for j in range(2 * nv):
            row[j] = s.room[j]


@procedure
def fill_step(b: Batch, w: WorkerArrays, k: int, live: int, hits: int):
    """Derivatives of the velocities after a step, from those of accelerations."""
    s, nv, m, n, size, h = w.stance, b.nv, b.m, b.n, b.size, b.h
    third = pad(nv) + pad(live)
    wide = third + pad(size)
    V = view(w.F, (k * n + nv) * size)
    a = view(s.P, third)
    for i, j in lanes(nv, size):
        V[i * size + j] = h * a[i * wide + j]
    if hits > 0:
        for i, j in lanes(nv, 2 * nv):
            V[i * size + m + j] += s.B[(k * nv + i) * 2 * nv + j]
    else:
        for i in lanes(nv):
            V[i * size + m + nv + i] += 1.0


@procedure
def turning(s: Stance, v: "float[:]", h: float, n: int, turned: "float[:]", spun: "float[:]"):
    """Matrices ``exp(-ad)`` and ``(1 - exp(-ad)) / ad`` of a joint's motion in a step.

    Their terms are ``[A 0; B A]``, as ``-ad`` is; a ball joint has ``A`` alone.
    """
    A, B, W, V = local("float", 4, 3, 3)
    W[0] = vector(0.0, h * v[2], -h * v[1])
    W[1] = vector(-h * v[2], 0.0, h * v[0])
    W[2] = vector(h * v[1], -h * v[0], 0.0)
    for i in range(3):
        for j in range(3):
            A[i, j] = 1.0 if i == j else 0.0
            B[i, j] = V[i, j] = 0.0
    if n == 6:
        V[0] = vector(0.0, h * v[5], -h * v[4])
        V[1] = vector(-h * v[5], 0.0, h * v[3])
        V[2] = vector(h * v[4], -h * v[3], 0.0)
    for i in range(n * n):
        turned[i] = spun[i] = 0.0
    add_term(n, A, B, 1.0, turned)
    add_term(n, A, B, 1.0, spun)
    for order in range(1, 60):
        part = 1.0 / order
        B[:, :] = part * (B @ W + A @ V)
        A[:, :] = part * (A @ W)
        add_term(n, A, B, 1.0, turned)
        add_term(n, A, B, 1.0 / (order + 1), spun)
        most = 0.0
        for i in range(3):
            for j in range(3):
                most = max(most, max(abs(A[i, j]), abs(B[i, j])))
        if most < SMALL:
            return


@procedure(inline=True)
def add_term(n: int, A: "float[3, 3]", B: "float[3, 3]", part: float, to: "float[:]"):
    """Add a multiple of ``[A 0; B A]``, or of ``A`` where ``n`` is 3."""
    for i in range(3):
        row = view(to, i * n, 3)
        row += part * A[i]
        if n == 6:
            below = view(to, (3 + i) * 6, 3)
            below += part * B[i]
            below = view(to, (3 + i) * 6 + 3, 3)
            below += part * A[i]


@procedure
def cone_rows(b: Batch, w: WorkerArrays, k: int, forces: "float[:]", wide: int, bench: "float[:]"):
    """Derivatives of friction cones of a step, from those of contact forces."""
    c, size = b.contacts, b.size
    at = 0
    for i in range(c.count):
        on = c.active[k * c.count + i]
        df = view(forces, at * wide)
        for p in range(c.point_first[i], c.point_first[i + 1]):
            of_point, row_width = df, wide
            if on == 1 and c.size[i] == 6:
                point_derivatives(b, w, k, i, p, df, wide, bench)
                of_point, row_width = bench, size
            x = view(of_point, 0)
            y = view(of_point, row_width)
            z = view(of_point, 2 * row_width)
            start, count = c.cone_first[p], c.cone_first[p + 1] - c.cone_first[p]
            rows = view(w.path, (k * b.nc + c.before + start) * size)
            cones = view(c.cone, 3 * start)
            if on == 1:
                for e, j in lanes(count, size):
                    push = cones[3 * e] * x[j] + cones[3 * e + 1] * y[j]
                    rows[e * size + j] = push + cones[3 * e + 2] * z[j]
            else:
                for e, j in lanes(count, size):
                    rows[e * size + j] = 0.0
        at += on * c.size[i]


@procedure
def point_derivatives(
    b: Batch,
    w: WorkerArrays,
    k: int,
    i: int,
    p: int,
    df: "float[:]",
    wide: int,
    bench: "float[:]",
):
    """Derivatives of the force at a contact point by all variables of a knot, (3, size)."""
    s, c, nv, m, size = w.stance, b.contacts, b.nv, b.m, b.size
    y = view(s.R, 9, 3)
    find_point_force(c, s, k, i, p, y)
    f = view(s.f, k * c.rows + c.first[i])
    force = view(f, 0, 3)
    moment = view(f, 3, 3)
    more = view(s.R, 24, 3)
    for j in lanes(size):
        x = view(s.R, 18, 6)
        for e in range(6):
            x[e] = df[e * wide + j]
        spread_force(c, s, k, i, p, x, more)
        for e in range(3):
            bench[e * size + j] = more[e]
    for at in lanes(c.path_first[i + 1] - c.path_first[i]):
        d = c.path[c.path_first[i] + at]
        turn = view(s.S, (k * nv + d) * 6, 3)
        x = view(s.R, 18, 6)
        x[0:3] = -1.0 * cross(turn, force)
        x[3:6] = -1.0 * cross(turn, moment)
        spread_force(c, s, k, i, p, x, more)
        turned = cross(turn, y)
        for j in range(3):
            bench[j * size + m + d] += more[j] + turned[j]


@procedure
def add_feet_derivatives(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of the foot-placement cost, added to those of other costs."""
    s, c, nv, m, size = w.stance, b.contacts, b.nv, b.m, b.size
    arm = view(s.R, 6, 3)
    way = view(s.R, 9, 3)
    for knot in lanes(end - first):
        k = first + knot
        for i in range(c.count):
            at = 3 * (k * c.count + i)
            weight = view(c.weight, at, 3)
            if weight[0] + weight[1] + weight[2] == 0.0:
                continue
            find_arm(c, s, k, i, arm)
            root = view(s.pose, (k * c.bodies + c.root[c.body[i]] - 1) * 12)
            for e in range(c.path_first[i], c.path_first[i + 1]):
                S = view(s.S, (k * nv + c.path[e]) * 6)
                way[0:3] = weight * (view(S, 3, 3) + cross(view(S, 0, 3), arm))
                row = m + c.path[e]
                total = 0.0
                for j in range(3):
                    total += way[j] * (arm[j] + root[4 * j + 3] - c.goal[at + j])
                w.g[k * size + row] += total
                for x in range(e, c.path_first[i + 1]):  # variables ascend along a path
                    T = view(s.S, (k * nv + c.path[x]) * 6)
                    other = view(T, 3, 3) + cross(view(T, 0, 3), arm)
                    w.H[(k * size + row) * size + m + c.path[x]] += dot(way, other)
