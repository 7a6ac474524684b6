"""Kinematics and dynamics of trees, and their contacts with planes, by a warp for each world.

All spatial quantities are along the axes of the world, about the origin of the tree that they
belong to, which is that of its first body. ``slots`` has the step; arguments are explained there.
"""

from kinetree.codegen.procedures import (
    cos,
    cross,
    dot,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    sin,
    sqrt,
    vector,
    view,
)
from kinetree.contact.engine.mechanism import resistance

NEAR = 0.2  # [m/s] added to the largest speed, for the distance out to which contacts are found
SAME = 1e-10  # [m²] squared distance within which points of a pair are one
UPRIGHT = 1e-3  # sine of the tilt below which a cylinder stands on its rim as a whole
STANDING = 0.05  # sine of the tilt below which corners of its rim may arrive next
FAR = 1e30  # [m] of contacts that are not chosen any more
FIXED, LOWEST, CORNER, ELLIPSOID, TRACED = range(5)
"""Kinds of contacts: a point of the body, the lowest point of a rim, a corner of it, the lowest
point of an ellipsoid, and one that comes with the arguments."""


@procedure
def tree_poses(
    bodies: int, levels: int, order: "int[:]", starts: "int[:]", parent: "int[:]", tree: "int[:]",
    first: "int[:]", other: "int[:]", axis: "float[:, 6]", mount: "float[:, 12]",
    given: "float[:, 12]", travel: "float[:]", near: "float[:, 12]", pose: "float[:, 12]",
    origin: "float[:, 3]",
) -> None:  # fmt: skip
    """Poses of bodies, and origins of trees; ``near`` are poses relative to the parents."""
    for b in lanes(bodies - 1):
        i = b + 1
        R = view(near, i, 3, 3)
        if other[i] >= 0:
            near[i] = given[other[i]]
        else:
            a = axis[first[i], :3]
            angle = travel[i] if dot(a, a) > 0.0 else 0.0
            sine = sin(angle)
            cosine = cos(angle)
            M = view(mount, i, 3, 3)
            for r in range(3):
                row = M[r]
                R[r] = cosine * row + (1.0 - cosine) * dot(row, a) * a + sine * cross(row, a)
            near[i, 9:] = mount[i, 9:] + M @ (travel[i] * axis[first[i], 3:])
        if parent[i] == 0:
            origin[tree[i]] = near[i, 9:]
            pose[i, :9] = near[i, :9]
            pose[i, 9:] = 0.0
    for l in range(1, levels):
        for m in lanes(12 * (starts[l + 1] - starts[l])):  # number by number
            i = order[starts[l] + m // 12]
            e = m % 12
            r = e // 3 if e < 9 else e - 9
            q = view(pose, parent[i])
            x = view(near, i)
            at = e - 3 * r if e < 9 else 9
            by = 3 if e < 9 else 1
            y = q[0, 3 * r] * x[0, at] + q[0, 3 * r + 1] * x[0, at + by]
            y += q[0, 3 * r + 2] * x[0, at + 2 * by]
            pose[i, e] = y if e < 9 else y + q[0, e]


@procedure
def tree_columns(
    nv: int, owner: "int[:]", axis: "float[:, 6]", pose: "float[:, 12]", S: "float[:, 6]"
) -> None:
    """Columns of the joints, from those in coordinates of the bodies that they move."""
    for n in lanes(nv):
        i = owner[n]
        R = view(pose, i, 3, 3)
        a = R @ axis[n, :3]
        S[n, :3] = a
        S[n, 3:] = R @ axis[n, 3:] + cross(pose[i, 9:], a)


@procedure(inline=True)
def tree_sums(
    levels: int, order: "int[:]", starts: "int[:]", parent: "int[:]", x: "float[:, 6]"
) -> None:
    """``x`` of bodies becomes the sum over them and all that carry them."""
    for l in range(1, levels):
        for m in lanes(6 * (starts[l + 1] - starts[l])):
            i = order[starts[l] + m // 6]
            x[i, m % 6] += x[parent[i], m % 6]


@procedure
def tree_motion(
    bodies: int, levels: int, order: "int[:]", starts: "int[:]", parent: "int[:]",
    first: "int[:]", count: "int[:]", flies: "int[:]", inertia: "float[:, 10]",
    S: "float[:, 6]", v: "float[:]", twist: "float[:, 6]", rate: "float[:, 6]",
) -> None:  # fmt: skip
    """Velocities of bodies, and accelerations in straight motion — RBDA Table 5.1."""
    for i in lanes(bodies):
        own = local("float", 6)
        own[:] = 0.0
        for n in range(first[i], first[i] + count[i]):
            own += S[n] * v[n]
        twist[i] = own
    tree_sums(levels, order, starts, parent, twist)
    for i in lanes(bodies):
        t = twist[parent[i]]
        u = twist[i]
        a = local("float", 6)
        a[:3] = cross(t[:3], u[:3])
        a[3:] = cross(t[:3], u[3:]) + cross(t[3:], u[:3])
        if flies[i] > 0:  # its variables are along axes that turn with it
            k = first[i]
            m = inertia[i, 0]
            c = inertia[i, 1:4] * (1.0 / m if m > 0.0 else 0.0)
            w = vector(v[k], v[k + 1], v[k + 2])
            turn = cross(w, vector(v[k + 3], v[k + 4], v[k + 5]) + cross(w, c))
            a -= S[k + 3] * turn[0] + S[k + 4] * turn[1] + S[k + 5] * turn[2]
        rate[i] = a
    tree_sums(levels, order, starts, parent, rate)


@procedure(inline=True)
def momentum(I: "float[10]", x: "float[6]", out: "float[6]") -> None:
    """``I x``, the force that goes with an acceleration or velocity."""
    w = x[:3]
    u = x[3:]
    h = I[1:4]
    out[0] = I[4] * w[0] + I[5] * w[1] + I[7] * w[2] + h[1] * u[2] - h[2] * u[1]
    out[1] = I[5] * w[0] + I[6] * w[1] + I[8] * w[2] + h[2] * u[0] - h[0] * u[2]
    out[2] = I[7] * w[0] + I[8] * w[1] + I[9] * w[2] + h[0] * u[1] - h[1] * u[0]
    out[3:] = I[0] * u - cross(h, w)


@procedure(inline=True)
def world_inertia(pose: "float[12]", b: "float[10]", out: "float[10]") -> None:
    """An inertia ``(m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)`` along the axes of the world."""
    R = view(pose, 0, 3, 3)
    p = vector(pose[9], pose[10], pose[11])
    m = b[0]
    h = R @ b[1:4]
    T = local("float", 3, 3)
    for r in range(3):
        T[r, 0] = R[r, 0] * b[4] + R[r, 1] * b[5] + R[r, 2] * b[7]
        T[r, 1] = R[r, 0] * b[5] + R[r, 1] * b[6] + R[r, 2] * b[8]
        T[r, 2] = R[r, 0] * b[7] + R[r, 1] * b[8] + R[r, 2] * b[9]
    s = h + 0.5 * m * p
    both = 2.0 * dot(s, p)
    out[0] = m
    out[1:4] = h + m * p
    out[4] = dot(T[0], R[0]) + both - 2.0 * s[0] * p[0]
    out[5] = dot(T[1], R[0]) - s[0] * p[1] - s[1] * p[0]
    out[6] = dot(T[1], R[1]) + both - 2.0 * s[1] * p[1]
    out[7] = dot(T[2], R[0]) - s[0] * p[2] - s[2] * p[0]
    out[8] = dot(T[2], R[1]) - s[1] * p[2] - s[2] * p[1]
    out[9] = dot(T[2], R[2]) + both - 2.0 * s[2] * p[2]


@procedure
def tree_forces(
    bodies: int, nv: int, parent: "int[:]", owner: "int[:]", gravity: "float[3]",
    inertia: "float[:, 10]", pose: "float[:, 12]", S: "float[:, 6]", twist: "float[:, 6]",
    rate: "float[:, 6]", B: "float[:, 16]", C: "float[:]",
) -> None:  # fmt: skip
    """Joint forces of the accelerations ``rate`` and of gravity — RBDA Table 5.1.

    ``B`` are inertias of composite bodies, and forces on them.
    """
    for b in lanes(bodies - 1):
        i = b + 1
        a, p = local("float", 2, 6)
        I = local("float", 10)
        world_inertia(pose[i], inertia[i], I)
        t = twist[i]
        a[:3] = rate[i, :3]
        a[3:] = rate[i, 3:] - gravity
        momentum(I, t, p)
        f = local("float", 6)
        momentum(I, a, f)
        f[:3] += cross(t[:3], p[:3]) + cross(t[3:], p[3:])
        f[3:] += cross(t[:3], p[3:])
        B[i, :10] = I
        B[i, 10:] = f
    for c in lanes(16):
        for k in range(1, bodies):
            i = bodies - k
            if parent[i] > 0:
                B[parent[i], c] += B[i, c]
    for n in lanes(nv):
        C[n] = dot(S[n], B[owner[n], 10:])


@procedure
def tree_energies(
    bodies: int, nv: int, tree: "int[:]", gravity: "float[3]", armature: "float[:]",
    inertia: "float[:, 10]", pose: "float[:, 12]", origin: "float[:, 3]", twist: "float[:, 6]",
    v: "float[:]", energy: "float[:]",
) -> None:  # fmt: skip
    """Kinetic and potential energy [J]."""
    T = 0.0
    U = 0.0
    for b in lanes(bodies - 1):
        i = b + 1
        I = local("float", 10)
        p = local("float", 6)
        world_inertia(pose[i], inertia[i], I)
        momentum(I, twist[i], p)
        T += dot(twist[i], p) / 2.0
        U -= dot(gravity, I[1:4] + I[0] * origin[tree[i]])
    for n in lanes(nv):
        T += armature[n] * v[n] * v[n] / 2.0
    energy[0] = lane_sum(T)
    energy[1] = lane_sum(U)


@procedure
def tree_factors(
    nv: int, deep: int, owner: "int[:]", level: "int[:]", chain: "int[:]", corner: "int[:]",
    deepest: "int[:]", S: "float[:, 6]", armature: "float[:]", K: "float[:]", D: "float[:]",
    h: float, alpha: float,
    B: "float[:, 16]", lead: "float[:]", lag: "float[:]", root: "float[:]", L: "float[:]",
    X: "float[:]",
) -> None:  # fmt: skip
    """``X = L⁻¹ D^{-1/2}`` of ``Lᵀ D L = H + h lag``, rows along chains — RBDA Tables 6.2, 6.3."""
    for m in lanes(nv):
        n = deepest[m]
        i = owner[n]
        F = local("float", 6)
        momentum(B[i, :10], S[n], F)
        x = 0.0
        for e in range(level[n] + 1):
            x = dot(F, S[chain[i * deep + e]])
            L[n * deep + e] = x
        own = x + armature[n]
        slow = 0.0
        held = 0.0
        if K[n] > 0.0 or D[n] > 0.0:
            slow, held = resistance(K[n], D[n], own, h, alpha)
        lead[n] = slow
        lag[n] = held
        L[n * deep + level[n]] = own + h * held
    for m in range(nv):
        k = nv - 1 - m
        n = level[k]
        one = 1.0 / L[k * deep + n]
        for p in lanes(n * (n + 1) // 2):
            e = corner[p]
            d = p - e * (e + 1) // 2
            a = L[k * deep + e] * one
            L[chain[owner[k] * deep + e] * deep + d] -= a * L[k * deep + d]
    for j in lanes(nv):
        root[j] = 1.0 / L[j * deep + level[j]]
    for j in lanes(nv):  # rows of L⁻¹ from the right; those of L are still to be divided by D
        k = deepest[j]
        n = level[k]
        at = owner[k] * deep
        for r in range(n):
            e = n - 1 - r
            x = -L[k * deep + e] * root[k]
            for f in range(e + 1, n):
                i = chain[at + f]
                x -= X[k * deep + f] * (root[i] * L[i * deep + e])
            X[k * deep + e] = x
        X[k * deep + n] = 1.0
    for j in lanes(nv):
        k = deepest[j]
        for e in range(level[k] + 1):
            X[k * deep + e] *= sqrt(root[chain[owner[k] * deep + e]])


@procedure
def tree_half(
    nv: int, deep: int, owner: "int[:]", level: "int[:]", chain: "int[:]", X: "float[:]",
    f: "float[:]", x: "float[:]",
) -> None:  # fmt: skip
    """``x = D^{-1/2} L⁻ᵀ f``."""
    for k in lanes(nv):
        d = level[k]
        y = 0.0
        for j in range(k, nv):
            if level[j] >= d and chain[owner[j] * deep + d] == k:
                y += X[j * deep + d] * f[j]
        x[k] = y


@procedure
def tree_whole(
    nv: int, deep: int, owner: "int[:]", level: "int[:]", chain: "int[:]", deepest: "int[:]",
    X: "float[:]", x: "float[:]", y: "float[:]",
) -> None:  # fmt: skip
    """``y = L⁻¹ D^{-1/2} x``."""
    for m in lanes(nv):
        k = deepest[m]
        z = 0.0
        for e in range(level[k] + 1):
            z += X[k * deep + e] * x[chain[owner[k] * deep + e]]
        y[k] = z


# --- Contacts ------------------------------------------------------------------------------------


@procedure(inline=True)
def local_point(
    kind: int, spot: "float[4]", n: "float[3]", turn: "float[3]", x: "float[3]", xd: "float[3]"
) -> None:
    """The point of a shape that may touch, and its rate, in coordinates of the shape.

    - kind: of the contact.
    - spot: a point and the radius of a ball around it; the corner of a rim; or the radii.
    - n, turn: normal of the plane and its rate, in coordinates of the shape.
    """
    x[:] = spot[:3]
    xd[:] = 0.0
    if kind == ELLIPSOID:
        s = vector(spot[0] * n[0], spot[1] * n[1], spot[2] * n[2])
        sd = vector(spot[0] * turn[0], spot[1] * turn[1], spot[2] * turn[2])
        one = 1.0 / sqrt(dot(s, s))
        along = dot(s, sd) * one * one
        for r in range(3):
            x[r] = -spot[r] * s[r] * one
            xd[r] = -spot[r] * (sd[r] - s[r] * along) * one
    elif kind != FIXED:
        lean = n[0] * n[0] + n[1] * n[1]
        if kind == LOWEST or lean >= STANDING * STANDING:
            radius = sqrt(spot[0] * spot[0] + spot[1] * spot[1])
            x[0] = radius
            x[1] = 0.0
            if lean > UPRIGHT * UPRIGHT:
                one = 1.0 / sqrt(lean)
                along = (n[0] * turn[0] + n[1] * turn[1]) / lean
                for r in range(2):
                    x[r] = -radius * n[r] * one
                    xd[r] = -radius * (turn[r] - n[r] * along) * one


@procedure(inline=True)
def body_point(
    kind: int, frame: "float[12]", spot: "float[4]", n: "float[3]", pose: "float[12]",
    w: "float[3]", x: "float[3]", xd: "float[3]",
) -> None:  # fmt: skip
    """The point of a shape that may touch, and its rate, in coordinates of the body."""
    if kind == FIXED:
        x[:] = spot[:3]
        xd[:] = 0.0
    else:
        R = view(pose, 0, 3, 3)
        E = view(frame, 0, 3, 3)
        wn = cross(n, w)
        a = vector(dot(R[:, 0], n), dot(R[:, 1], n), dot(R[:, 2], n))
        b = vector(dot(R[:, 0], wn), dot(R[:, 1], wn), dot(R[:, 2], wn))
        m, turn, y, yd = local("float", 4, 3)
        m[:] = vector(dot(E[:, 0], a), dot(E[:, 1], a), dot(E[:, 2], a))
        turn[:] = vector(dot(E[:, 0], b), dot(E[:, 1], b), dot(E[:, 2], b))
        local_point(kind, spot, m, turn, y, yd)
        x[:] = frame[9:] + E @ y
        xd[:] = E @ yd


@procedure
def touch(
    kind: int, frame: "float[12]", spot: "float[4]", plane: "float[10]", pose: "float[12]",
    origin: "float[3]", t: "float[6]", point: "float[3]", point_rate: "float[3]",
) -> float:  # fmt: skip
    """The gap of a contact, the point halfway between plane and shape, and its rate."""
    R = view(pose, 0, 3, 3)
    n = plane[:3]
    x, xd = local("float", 2, 3)
    body_point(kind, frame, spot, n, pose, t[:3], x, xd)
    p = pose[9:] + R @ x
    pd = t[3:] + cross(t[:3], p) + R @ xd
    high = dot(n, p) + (dot(n, origin) - plane[9])
    gap = high - spot[3]
    point[:] = p - (high - gap / 2.0) * n
    point_rate[:] = pd - dot(n, pd) / 2.0 * n
    return gap


@procedure
def gaps(
    contacts: int, sort: "int[:]", kind: "int[:]", shape: "int[:]", ground: "int[:]",
    body: "int[:]", tree: "int[:]", frame: "float[:, 12]", spot: "float[:, 4]",
    plane: "float[:, 10]", traced: "float[:, 25]", pose: "float[:, 12]", origin: "float[:, 3]",
    gap: "float[:]",
) -> None:  # fmt: skip
    """Gaps of all potential contacts."""
    for m in lanes(contacts):
        c = sort[m]
        if kind[c] == TRACED:
            gap[c] = traced[shape[c], 0]
        else:
            i = body[c]
            n = plane[ground[c], :3]
            x, xd, w = local("float", 3, 3)
            w[:] = 0.0
            body_point(kind[c], frame[shape[c]], spot[c], n, pose[i], w, x, xd)
            p = origin[tree[i]] + pose[i, 9:] + view(pose, i, 3, 3) @ x
            gap[c] = dot(n, p) - plane[ground[c], 9] - spot[c, 3]


@procedure
def closing(
    contacts: int, h: float, kind: "int[:]", shape: "int[:]", ground: "int[:]", body: "int[:]",
    tree: "int[:]", frame: "float[:, 12]", spot: "float[:, 4]", plane: "float[:, 10]",
    traced: "float[:, 25]", pose: "float[:, 12]", origin: "float[:, 3]", twist: "float[:, 6]",
) -> float:  # fmt: skip
    """The largest speed beyond that at which a gap closes within a step of ``h`` seconds [m/s]."""
    most = 0.0
    for c in lanes(contacts):
        i = body[c]
        t = twist[i]
        p, n, pd = local("float", 3, 3)
        if kind[c] == TRACED:
            gap = traced[shape[c], 0]
            p[:] = traced[shape[c], 1:4]
            n[:] = traced[shape[c], 7:10]
        else:
            n[:] = plane[ground[c], :3]
            gap = touch(kind[c], frame[shape[c]], spot[c], plane[ground[c]], pose[i],
                        origin[tree[i]], t, p, pd)  # fmt: skip
        most = max(most, -(gap / h + dot(n, t[3:] + cross(t[:3], p))))
    return lane_max(most)


@procedure
def chosen(
    contacts: int, slots: int, h: float, sort: "int[:]", kind: "int[:]", shape: "int[:]",
    ground: "int[:]",
    body: "int[:]", group: "int[:]", tree: "int[:]", frame: "float[:, 12]", spot: "float[:, 4]",
    plane: "float[:, 10]", traced: "float[:, 25]", pose: "float[:, 12]", origin: "float[:, 3]",
    twist: "float[:, 6]", gap: "float[:]", ahead: "float[:]", point: "float[:, 3]",
    taken: "float[:]",
) -> "(int, int)":  # fmt: skip
    """How many contacts have slots, and how many have none; ``taken`` are those that have.

    They are those whose gaps can close within the step, the closest ones if there are too many.
    Points of a pair that are one count once.
    """
    fastest = 0.0
    for m in lanes(contacts):
        c = sort[m]
        p, pd = local("float", 2, 3)
        i = body[c]
        t = twist[i]
        if kind[c] == TRACED:
            gap[c] = traced[shape[c], 0]
            p[:] = traced[shape[c], 1:4]
            u = t[3:] + cross(t[:3], p)
            ahead[c] = dot(traced[shape[c], 7:10], u)
            fastest = max(fastest, dot(u, u))
        else:
            n = plane[ground[c], :3]
            gap[c] = touch(kind[c], frame[shape[c]], spot[c], plane[ground[c]], pose[i],
                           origin[tree[i]], t, p, pd)  # fmt: skip
            u = t[3:] + cross(t[:3], p)
            ahead[c] = dot(n, u)
            fastest = max(fastest, dot(u, u))
        point[c] = p
    reach = h * (NEAR + sqrt(lane_max(fastest)))
    for c in lanes(contacts):
        x = gap[c] + h * min(ahead[c], 0.0)
        ahead[c] = x if x <= reach and gap[c] <= 2.0 * reach else FAR
    used = 0
    left = 0.0
    while used < slots:
        least = FAR
        at = -1.0
        for c in lanes(contacts):
            if ahead[c] < least:
                least = ahead[c]
                at = float(c)
        best = -lane_max(-least)
        if best >= FAR:
            break
        c = int(lane_max(at if least == best else -1.0))
        again = 0.0
        for s in lanes(used):
            o = int(taken[s])
            if group[o] == group[c]:
                e = point[c] - point[o]
                if dot(e, e) < SAME:
                    again = 1.0
        same = lane_max(again) > 0.0
        for _ in lanes(1):
            ahead[c] = FAR
            if not same:
                taken[used] = float(c)
        if not same:
            used += 1
    for c in lanes(contacts):
        if ahead[c] < FAR:
            left += 1.0
    return used, int(lane_sum(left))
