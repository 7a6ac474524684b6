"""A step with contact in a fixed amount of memory: for GPUs, where a warp has a world.

The scheme and the laws are those of ``stepping.step``, for trees that touch what is fixed to the
base. Of many potential contacts, ``slots`` at most enter a step, the closest ones. Loops go over
tables, and those over ``lanes`` are shared by the lanes of a warp: see ``slot_tree`` and
``slot_laws``.

Arguments that several procedures have:

- bodies, nv: numbers of bodies, the base included, and of velocity variables.
- contacts, slots: potential contacts, and how many may act at once.
- deep: variables that move a body at most.
- parent, tree, flies: of bodies; the number of their tree; 1 for those with a free joint.
- levels, order, starts: of the tree, bodies by level, and where each level begins among them.
- owner, level: of variables, the body that they move first, and how many are above them.
- corner, deepest: rows of the numbers of a lower triangle; variables, deep ones first.
- moves, chain: how many variables move a body, and which, from the base outward.
- common: how many of them two bodies have in common.
- sort: contacts by their kinds.
- kind, shape, ground, body, group: of contacts, kinds as ``slot_tree`` has them, numbers of frames
  and of planes, the body, and the number of the pair.
- frame, spot, plane: axes by rows and places of shapes in coordinates of their bodies; what
  ``slot_tree.local_point`` wants; and axes of planes by rows with the distance from the origin.
- traced: gap, point, its rate, axes and their rates of the contacts that are computed elsewhere.
- inertia: of the bodies in their own coordinates, ``Inertia.parameters``.
- gravity, armature: acceleration [m/s²], and of the variables.
- axis, first: columns of the joints in coordinates of the bodies, and where those of a body begin.
- travel, mount: how far joints with one axis have turned or slid, and from which poses relative to
  the parents, axes by rows and place.
- given, other: poses relative to the parents of bodies with other joints, and their numbers there,
  -1 for the first kind.
"""

from kinetree.codegen.procedures import (
    cross,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    sqrt,
    view,
)
from kinetree.contact.engine.slot_laws import contact_rows, finished, pressed, speeds, swept
from kinetree.contact.engine.slot_tree import (
    TRACED,
    chosen,
    closing,
    gaps,
    touch,
    tree_columns,
    tree_energies,
    tree_factors,
    tree_forces,
    tree_half,
    tree_motion,
    tree_poses,
    tree_whole,
)

STEPS = 20  # of Newton's method, at most
NEARLY = 100.0  # times the tolerance, where no more rounds follow them
FOUND = 10
"""Numbers that a step reports: errors of velocity, cone and power, contact work, loss, work of the
joints, contacts without a slot, sweeps, slots in use, and the largest depth at its middle."""


@procedure
def entered(
    used: int, slots: int, h: float, time: float, kind: "int[:]", shape: "int[:]",
    ground: "int[:]", body: "int[:]", tree: "int[:]", frame: "float[:, 12]", spot: "float[:, 4]",
    plane: "float[:, 10]", traced: "float[:, 25]", friction: "float[:]", force: "float[:]",
    pose: "float[:, 12]", origin: "float[:, 3]", twist: "float[:, 6]", rate: "float[:, 6]",
    gap: "float[:]", taken: "float[:]", carrier: "float[:]", mu: "float[:]", near: "float[:]",
    place: "float[:, 12]", before: "float[:]", ahead: "float[:]", lam: "float[:]",
) -> None:  # fmt: skip
    """What the contacts with slots are like, before the step.

    - time: from the middle of the step to its end.
    - carrier, mu, near: their bodies, friction, gaps.
    - place: axes by rows, and points.
    - before, ahead: velocities along the axes, and what they gain without forces.
    - lam: impulses to start from.
    """
    for s in lanes(used):
        c = int(taken[s])
        i = body[c]
        carrier[s] = float(i)
        mu[s] = friction[c]
        near[s] = gap[c]
        t = twist[i]
        a = rate[i]
        if kind[c] == TRACED:
            k = shape[c]
            place[s, :9] = traced[k, 7:16]
            place[s, 9:] = traced[k, 1:4]
            speed = t[3:] + cross(t[:3], traced[k, 1:4])
            turn = cross(t[:3], traced[k, 4:7])
        else:
            place[s, :9] = plane[ground[c], :9]
            p, turn = local("float", 2, 3)
            touch(kind[c], frame[shape[c]], spot[c], plane[ground[c]], pose[i], origin[tree[i]], t,
                  p, turn)  # fmt: skip
            place[s, 9:] = p
            speed = t[3:] + cross(t[:3], p)
            turn[:] = cross(t[:3], turn)
        R = view(place, s, 3, 3)
        w0 = R @ speed
        gain = R @ (a[3:] + cross(a[:3], place[s, 9:]) + turn)
        if kind[c] == TRACED:
            gain += view(traced[shape[c], 16:], 0, 3, 3) @ speed
        n = 3 * s
        f = local("float", 3)
        f[:] = 0.0
        for k in range(slots):
            if force[4 * k] == float(c + 1):
                f[:] = h * view(force, 4 * k + 1, 3)
        if f[0] > 0.0:  # it goes on
            near[s] -= (h - time) * (h - time) * gain[0] / 2.0
        for r in range(3):
            ahead[n + r] = time * gain[r] if f[0] > 0.0 else 0.0
            before[n + r] = w0[r]
            lam[n + r] = f[r]


@procedure
def slot_step(
    bodies: int, nv: int, contacts: int, slots: int, deep: int, levels: int, trees: int,
    sweeps: int, passes: int, again: int, parent: "int[:]", tree: "int[:]", flies: "int[:]",
    order: "int[:]", starts: "int[:]", owner: "int[:]", level: "int[:]", corner: "int[:]",
    deepest: "int[:]", count: "int[:]", moves: "int[:]", chain: "int[:]", common: "int[:]",
    sort: "int[:]", kind: "int[:]",
    shape: "int[:]", ground: "int[:]", body: "int[:]", group: "int[:]", frame: "float[:, 12]",
    spot: "float[:, 4]", plane: "float[:, 10]", traced: "float[:, 25]", inertia: "float[:, 10]",
    gravity: "float[3]", armature: "float[:]", first: "int[:]", other: "int[:]",
    axis: "float[:, 6]",
    mount: "float[:, 12]", given: "float[:, 12]", travel: "float[:]",
    v: "float[:]", tau: "float[:]", K: "float[:]", D: "float[:]", friction: "float[:]",
    restitution: "float[:]", force: "float[:]", numbers: "float[7]",
    after: "float[:]", held: "float[:]", found: "float[FOUND]", X: "float[:]", Y: "float[:]",
    own: "float[:, 9]", taken: "float[:]", work: "float[:]",
) -> None:  # fmt: skip
    """Velocities after a step, and the forces of the contacts.

    - sweeps, passes: at most, of Gauss and Seidel, and with velocity products of the mean.
    - again: how often steps of Newton, then sweeps again, follow sweeps that do not end.
    - v, tau, K, D: velocities, joint forces, stiffness and damping of the variables.
    - friction, restitution: coefficients of the contacts.
    - force: for each slot the number of its contact, from 1 on, or 0, and the forces along normal
      and tangents in the step before.
    - numbers: length of the step, time to its middle, tolerance, change of velocities that needs
      no more passes, depth that velocities take out, speed of arrival without rebound, and
      times the tolerance that will do in the first pass.
    - after, held, found: results: velocities, forces like ``force``, and ``FOUND`` numbers.
    - X, Y, own, taken: inverse factors, rows, and blocks of the contacts with slots, for
      ``slot_shift``; there is room for factors in ``Y``.
    - work: of ``work_size`` numbers.
    """
    h = numbers[0]
    wait = numbers[1]
    time = h - wait
    pose = view(work, 0, bodies, 12)
    rest = view(work, 12 * bodies)
    S = view(rest, 0, nv, 6)
    lead = view(rest, 6 * nv)
    lag = view(rest, 7 * nv)
    C = view(rest, 8 * nv)
    mean = view(rest, 9 * nv)
    u = view(rest, 10 * nv)
    z = view(rest, 11 * nv)
    at = 12 * nv
    origin = view(rest, at, trees, 3)
    at += 3 * trees
    twist = view(rest, at, bodies, 6)
    rate = view(rest, at + 6 * bodies, bodies, 6)
    older = view(rest, at + 6 * bodies)
    at += 12 * bodies
    carrier = view(rest, at)
    near = view(rest, at + slots)
    mu = view(rest, at + 2 * slots)
    place = view(rest, at + 4 * slots, slots, 12)
    last = view(rest, at + 4 * slots, 3 * slots, 3)
    before = view(rest, at + 16 * slots)
    ahead = view(rest, at + 19 * slots)
    b = view(rest, at + 22 * slots)
    w = view(rest, at + 25 * slots)
    lam = view(rest, at + 28 * slots)
    target = view(rest, at + 31 * slots)
    at += 32 * slots
    A = view(rest, at)
    J = view(rest, at + 9 * slots * (slots + 1) // 2)
    if again > 0:
        at += 9 * slots * (slots + 1) // 2 + 3 * slots * (3 * slots + 1)
    B = view(rest, at, bodies, 16)
    gap = view(rest, at)
    soon = view(rest, at + contacts)
    point = view(rest, at + 2 * contacts, contacts, 3)
    tree_poses(bodies, levels, order, starts, parent, tree, first, other, axis, mount, given,
               travel, view(rest, at, bodies, 12), pose, origin)  # fmt: skip
    tree_columns(nv, owner, axis, pose, S)
    for k in lanes(nv):
        mean[k] = v[k]
    used = 0
    left = 0
    depth = 0.0
    error = 0.0
    rounds = 0
    for m in range(passes):
        tree_motion(bodies, levels, order, starts, parent, first, count, flies, inertia, S, mean,
                    twist, rate)  # fmt: skip
        if m == 0:
            used, left = chosen(contacts, slots, h, sort, kind, shape, ground, body, group, tree,
                                frame, spot, plane, traced, pose, origin, twist, gap, soon, point,
                                taken)  # fmt: skip
            depth = 0.0
            for c in lanes(contacts):
                depth = max(depth, -gap[c])
            depth = lane_max(depth)
            entered(used, slots, h, time, kind, shape, ground, body, tree, frame, spot, plane,
                    traced, friction, force, pose, origin, twist, rate, gap, taken, carrier, mu,
                    near, place, before, ahead, lam)  # fmt: skip
        tree_forces(bodies, nv, parent, owner, gravity, inertia, pose, S, twist, rate, B, C)
        if m == 0:
            tree_factors(nv, deep, owner, level, chain, corner, deepest, S, armature, K, D, h,
                         wait / h, B, lead, lag, u, Y, X)  # fmt: skip
            contact_rows(used, deep, moves, chain, carrier, place, S, X, Y, own)
        for k in lanes(nv):
            C[k] = h * (tau[k] - lead[k] * v[k] - C[k])
        tree_half(nv, deep, owner, level, chain, X, C, z)
        speeds(used, deep, moves, chain, carrier, Y, before, z, w)
        largest = 0.0
        for s in lanes(used):
            n = 3 * s
            e = restitution[int(taken[s])]
            wanted = max(near[s], -numbers[4]) / h
            if e > 0.0 and near[s] + h * w[n] <= 0.0 and before[n] < -numbers[5]:
                wanted = e * before[n]
            target[s] = wanted
            for r in range(3):
                largest = max(largest, abs(w[n + r]))
                b[n + r] = w[n + r] + ahead[n + r]
            b[n] += wanted
        enough = numbers[2] * (1.0 + lane_max(largest))
        if m + 1 < passes:
            enough *= numbers[6]
        pressed(used, nv, deep, owner, level, moves, chain, carrier, Y, lam, u)
        more, error = swept(used, nv, deep, sweeps, enough, moves, chain, carrier, Y, own, mu, b,
                            lam, u, last, older)  # fmt: skip
        rounds += more
        for n in range(again):
            if error <= enough:
                break
            if n > 0:
                more, error = swept(used, nv, deep, sweeps, enough, moves, chain, carrier, Y, own,
                                    mu, b, lam, u, last, older)  # fmt: skip
                rounds += more
            error = finished(used, nv, deep, bodies, STEPS, enough, owner, level, moves, chain,
                             common, carrier, Y, mu, b, lam, u, w, last, A, J)  # fmt: skip
            if error <= NEARLY * enough:  # sweeps would only disturb it
                break
        for k in lanes(nv):
            z[k] += u[k]
        tree_whole(nv, deep, owner, level, chain, deepest, X, z, C)
        change = 0.0
        for k in lanes(nv):
            x = v[k] + C[k]
            after[k] = x
            change = max(change, abs((v[k] + x) / 2.0 - mean[k]))
            mean[k] = (v[k] + x) / 2.0
        if lane_max(change) <= numbers[3] and error <= enough:
            break
    speeds(used, deep, moves, chain, carrier, Y, b, u, w)
    if left > 0:  # what had no slot counts, too
        tree_motion(bodies, levels, order, starts, parent, first, count, flies, inertia, S, after,
                    twist, rate)  # fmt: skip
        most = closing(contacts, h, kind, shape, ground, body, tree, frame, spot, plane, traced,
                       pose, origin, twist)  # fmt: skip
        error = max(error, most)
    for k in lanes(4 * slots):
        held[k] = 0.0
    cone = 0.0
    power = 0.0
    done = 0.0
    lost = 0.0
    for s in lanes(used):
        n = 3 * s
        held[4 * s] = taken[s] + 1.0
        sliding = sqrt(lam[n + 1] * lam[n + 1] + lam[n + 2] * lam[n + 2])
        cone = max(cone, sliding - mu[s] * lam[n])
        slip = sqrt(w[n + 1] * w[n + 1] + w[n + 2] * w[n + 2])
        slip = lam[n + 1] * w[n + 1] + lam[n + 2] * w[n + 2] + mu[s] * lam[n] * slip
        power = max(power, abs(lam[n] * w[n]), abs(slip))
        for r in range(3):
            held[4 * s + 1 + r] = lam[n + r] / h
            there = w[n + r] - (target[s] if r == 0 else 0.0)
            done += lam[n + r] * there
            lost += lam[n + r] * (there - before[n + r] + ahead[n + r]) / 2.0
    work_of_joints = 0.0
    for k in lanes(nv):
        x = tau[k] - lead[k] * v[k] - lag[k] * (after[k] - v[k])
        work_of_joints += h * x * mean[k]
    found[0] = error
    found[1] = lane_max(cone)
    found[2] = lane_max(power)
    found[3] = lane_sum(done)
    found[4] = lane_sum(lost)
    found[5] = lane_sum(work_of_joints)
    found[6] = float(left)
    found[7] = float(rounds)
    found[8] = float(used)
    found[9] = depth


def newton_size(slots: int, again: int) -> int:
    """Numbers of the workspace of ``slot_step`` that only Newton's method needs."""
    return 9 * slots * (slots + 1) // 2 + 3 * slots * (3 * slots + 1) if again else 0


def work_size(tables: dict, again: int) -> int:
    """Numbers of the workspace of ``slot_step``."""
    bodies, contacts, slots = (tables[n] for n in ("bodies", "contacts", "slots"))
    fixed = 12 * tables["nv"] + 3 * tables["trees"] + 24 * bodies + 32 * slots
    return fixed + newton_size(slots, again) + max(16 * bodies, 5 * contacts)


@procedure
def slot_look(
    bodies: int, nv: int, contacts: int, slots: int, levels: int, trees: int, parent: "int[:]",
    tree: "int[:]", flies: "int[:]", order: "int[:]", starts: "int[:]", owner: "int[:]",
    count: "int[:]", sort: "int[:]", kind: "int[:]", shape: "int[:]", ground: "int[:]",
    body: "int[:]", frame: "float[:, 12]", spot: "float[:, 4]", plane: "float[:, 10]",
    traced: "float[:, 25]", inertia: "float[:, 10]", gravity: "float[3]", armature: "float[:]",
    first: "int[:]", other: "int[:]", axis: "float[:, 6]", mount: "float[:, 12]",
    given: "float[:, 12]", travel: "float[:]", v: "float[:]", found: "float[FOUND]",
    taken: "float[:]", near: "float[:]", energy: "float[3]", work: "float[:]",
) -> None:  # fmt: skip
    """What a configuration is like.

    - found, taken: of ``slot_step``.
    - near: gaps of the contacts with slots.
    - energy: kinetic and potential energy [J], and the largest depth of all contacts.
    - work: of ``look_size`` numbers.
    """
    pose = view(work, 0, bodies, 12)
    rest = view(work, 12 * bodies)
    S = view(rest, 0, nv, 6)
    twist = view(rest, 6 * nv, bodies, 6)
    rate = view(rest, 6 * nv + 6 * bodies, bodies, 6)
    origin = view(rest, 6 * nv + 12 * bodies, trees, 3)
    gap = view(rest, 6 * nv + 12 * bodies + 3 * trees)
    at = 6 * nv
    tree_poses(bodies, levels, order, starts, parent, tree, first, other, axis, mount, given,
               travel, view(rest, at, bodies, 12), pose, origin)  # fmt: skip
    tree_columns(nv, owner, axis, pose, S)
    tree_motion(bodies, levels, order, starts, parent, first, count, flies, inertia, S, v, twist,
                rate)  # fmt: skip
    gaps(contacts, sort, kind, shape, ground, body, tree, frame, spot, plane, traced, pose, origin,
         gap)  # fmt: skip
    tree_energies(bodies, nv, tree, gravity, armature, inertia, pose, origin, twist, v, energy)
    depth = 0.0
    for c in lanes(contacts):
        depth = max(depth, -gap[c])
    for s in lanes(slots):
        near[s] = gap[int(taken[s])] if s < int(found[8]) else 0.0
    energy[2] = lane_max(depth)


def look_size(tables: dict) -> int:
    """Numbers of the workspace of ``slot_look``."""
    sizes = {"nv": 6, "bodies": 24, "trees": 3, "contacts": 1}
    return sum(k * tables[name] for name, k in sizes.items())


@procedure
def slot_shift(
    nv: int, deep: int, rounds: int, owner: "int[:]", level: "int[:]",
    deepest: "int[:]", moves: "int[:]", chain: "int[:]", body: "int[:]", near: "float[:]",
    found: "float[FOUND]", X: "float[:]", Y: "float[:]", own: "float[:, 9]", taken: "float[:]",
    shift: "float[:]", work: "float[:]",
) -> None:  # fmt: skip
    """Displacements of the joints that open the gaps of the contacts with slots.

    By so many sweeps along ``M⁻¹ Gᵀ``, with the matrices of ``slot_step``.
    """
    used = int(found[8])
    u = view(work, used)
    for k in lanes(nv):
        u[k] = 0.0
    for s in lanes(used):
        work[s] = 0.0
    for _ in range(rounds):
        for s in range(used):
            i = body[int(taken[s])]
            open_ = 0.0
            for d in lanes(moves[i]):
                open_ += Y[3 * s * deep + d] * u[chain[i * deep + d]]
            have = work[s]
            size = own[s, 0]
            x = -(near[s] + lane_sum(open_)) / size if size > 0.0 else 0.0
            x = max(x, -have)
            if x != 0.0:
                for d in lanes(moves[i]):
                    u[chain[i * deep + d]] += x * Y[3 * s * deep + d]
                    if d == 0:
                        work[s] = have + x
    tree_whole(nv, deep, owner, level, chain, deepest, X, u, shift)


@procedure
def slot_forces(contacts: int, slots: int, force: "float[:]", found: "float[:, 3]") -> None:
    """Forces of all potential contacts, from those of slots."""
    for c in lanes(contacts):
        found[c] = 0.0
    for s in lanes(slots):
        c = int(force[4 * s]) - 1
        if c >= 0:
            found[c] = view(force, 4 * s + 1, 3)
