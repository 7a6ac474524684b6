"""Potential contacts of trees with planes: gaps, points, and which of them enter a step.

All quantities are along the axes of the world, about the origin of the tree that they belong to,
which is that of its first body. ``slots`` has the step; arguments are explained there.
"""

from kinetree.codegen.procedures import (
    cross,
    dot,
    lane_max,
    lanes,
    local,
    procedure,
    sqrt,
    vector,
    view,
)
from kinetree.contact.engine.slot_world import SlotWorld

NEAR = 0.2  # [m/s] added to the largest speed, for the distance out to which contacts are found
SAME = 1e-10  # [m²] squared distance within which points of a pair are one
UPRIGHT = 1e-3  # sine of the tilt below which a cylinder stands on its rim as a whole
STANDING = 0.05  # sine of the tilt below which corners of its rim may arrive next
FAR = 1e30  # [m] of contacts that are not chosen
PARTS = 8  # of the contacts, each listed by a lane
POINTS = 64  # of those that are near, which are looked at for being one
FIXED, LOWEST, CORNER, ELLIPSOID, TRACED = range(5)
"""Kinds of contacts: a point of the body, the lowest point of a rim, a corner of it, the lowest
point of an ellipsoid, and one that comes with the arguments."""


@procedure(inline=True)
def local_point(
    kind: int, spot: "float[4]", n: "float[3]", turn: "float[3]", x: "float[3]", xd: "float[3]"
) -> None:
    """Write the shape's point that may touch a plane, and its rate, in shape coordinates.

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
    kind: int,
    frame: "float[12]",
    spot: "float[4]",
    n: "float[3]",
    pose: "float[12]",
    w: "float[3]",
    x: "float[3]",
    xd: "float[3]",
) -> None:
    """Write the shape's point that may touch a plane, and its rate, in body coordinates."""
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
    kind: int,
    frame: "float[12]",
    spot: "float[4]",
    plane: "float[10]",
    pose: "float[12]",
    origin: "float[3]",
    t: "float[6]",
    point: "float[3]",
    point_rate: "float[3]",
) -> float:
    """Gap of a contact with a plane; writes the point half-way across and its rate."""
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


@procedure(inline=True)
def pose_of(world: SlotWorld, i: int, step: int, out: "float[12]") -> None:
    """Copy the pose (12) of body ``i`` of a world."""
    for k in range(12):
        out[k] = world.pose[(12 * i + k) * step]


@procedure(inline=True)
def motion_of(i: int, motion: "float[:]", step: int, out: "float[6]") -> None:
    """Copy a 6-vector, number ``i`` of a strided array: a body's motion or a joint's column."""
    for k in range(6):
        out[k] = motion[(6 * i + k) * step]


@procedure(inline=True)
def touch_plane(
    world: SlotWorld,
    c: int,
    its: "float[12]",
    t: "float[6]",
    point: "float[3]",
    point_rate: "float[3]",
) -> float:
    """Gap of contact ``c`` with its plane at its body's pose; writes point and rate."""
    origin = world.origin[world.tree[world.body[c]]]
    frame, plane = world.frame[world.shape[c]], world.plane[world.ground[c]]
    return touch(world.kind[c], frame, world.spot[c], plane, its, origin, t, point, point_rate)


@procedure
def gaps(world: SlotWorld, gap: "float[:]") -> None:
    """Write the gaps of all potential contacts of a world."""
    for m in lanes(world.contacts):
        c = world.sort[m]
        if world.kind[c] == TRACED:
            gap[c] = world.traced[world.shape[c], 0]
        else:
            i = world.body[c]
            n = world.plane[world.ground[c], :3]
            x, xd, w = local("float", 3, 3)
            w[:] = 0.0
            its = local("float", 12)
            pose_of(world, i, world.pose_step, its)
            body_point(world.kind[c], world.frame[world.shape[c]], world.spot[c], n, its, w, x, xd)
            p = world.origin[world.tree[i]] + its[9:] + view(its, 0, 3, 3) @ x
            gap[c] = dot(n, p) - world.plane[world.ground[c], 9] - world.spot[c, 3]


@procedure
def closing(world: SlotWorld, h: float, twist: "float[:, 6]") -> float:
    """Largest closing speed in excess of gap / ``h`` over all potential contacts [m/s]."""
    most = 0.0
    for c in lanes(world.contacts):
        i = world.body[c]
        t = twist[i]
        p, n, pd = local("float", 3, 3)
        if world.kind[c] == TRACED:
            gap = world.traced[world.shape[c], 0]
            p[:] = world.traced[world.shape[c], 1:4]
            n[:] = world.traced[world.shape[c], 7:10]
        else:
            n[:] = world.plane[world.ground[c], :3]
            its = local("float", 12)
            pose_of(world, i, world.pose_step, its)
            gap = touch_plane(world, c, its, t, p, pd)
        most = max(most, -(gap / h + dot(n, t[3:] + cross(t[:3], p))))
    return lane_max(most)


@procedure
def gap_rates(world: SlotWorld, gap: "float[:]", ahead: "float[:]") -> "(float, float)":
    """Write gaps and gap rates of fixed potential contacts; largest squared speed, and depth."""
    fastest = 0.0
    depth = 0.0
    for m in lanes(world.contacts):
        c = world.sort[m]
        p, pd = local("float", 2, 3)
        i = world.body[c]
        t = local("float", 6)
        motion_of(i, world.twist, world.twist_step, t)
        if world.kind[c] == TRACED:
            gap[c] = world.traced[world.shape[c], 0]
            p[:] = world.traced[world.shape[c], 1:4]
            u = t[3:] + cross(t[:3], p)
            ahead[c] = dot(world.traced[world.shape[c], 7:10], u)
            fastest = max(fastest, dot(u, u))
        else:
            n = world.plane[world.ground[c], :3]
            its = local("float", 12)
            pose_of(world, i, world.pose_step, its)
            gap[c] = touch_plane(world, c, its, t, p, pd)
            u = t[3:] + cross(t[:3], p)
            ahead[c] = dot(n, u)
            fastest = max(fastest, dot(u, u))
        depth = max(depth, -gap[c])
    return lane_max(fastest), lane_max(depth)


@procedure
def list_near(
    every: int, h: float, fastest: float, gap: "float[:]", ahead: "float[:]", listed: "float[:]"
) -> int:
    """List contacts that can close within a step of ``h`` seconds; returns their number.

    ``ahead`` is how fast gaps open, and then the smallest gap in the step, or ``FAR``.
    """
    reach = h * (NEAR + sqrt(fastest))
    part = (every + PARTS - 1) // PARTS
    for m in lanes(PARTS):
        near_here = 0.0
        for c in range(m * part, min((m + 1) * part, every)):
            x = gap[c] + h * min(ahead[c], 0.0)
            ahead[c] = x if x <= reach and gap[c] <= 2.0 * reach else FAR
            near_here += 1.0 if ahead[c] < FAR else 0.0
        listed[m] = near_here
    many = 0
    for m in range(PARTS):
        many += int(listed[m])
    for m in lanes(PARTS):  # in order
        at = PARTS
        for o in range(m):
            at += int(listed[o])
        for c in range(m * part, min((m + 1) * part, every)):
            if ahead[c] < FAR:
                listed[at] = float(c)
                at += 1
    return many


@procedure
def place_near(world: SlotWorld, many: int, near: "float[:]", point: "float[:, 3]") -> None:
    """Write the points of the first ``POINTS`` near contacts with fixed shapes."""
    for j in lanes(min(many, POINTS)):
        c = int(near[j])
        p, pd = local("float", 2, 3)
        p[:] = 0.0
        if c < world.contacts and world.kind[c] == TRACED:
            p[:] = world.traced[world.shape[c], 1:4]
        elif c < world.contacts:
            i = world.body[c]
            t = local("float", 6)
            its = local("float", 12)
            t[:] = 0.0
            pose_of(world, i, world.pose_step, its)
            touch_plane(world, c, its, t, p, pd)
        point[j] = p


@procedure
def take_slots(
    world: SlotWorld,
    many: int,
    every: int,
    near: "float[:]",
    gap: "float[:]",
    ahead: "float[:]",
    point: "float[:, 3]",
) -> "(int, int)":
    """Assign slots to the closest near contacts; numbers of those with and without a slot.

    They are the closest ones if there are too many. Points of a pair that are one count once.
    """
    for j in lanes(many):  # those that are there already; gaps are not needed any more
        gone = 0.0
        c = int(near[j])
        for o in range(j if j < POINTS and c < world.contacts else 0):
            e = int(near[o])
            if e < world.contacts and world.group[e] == world.group[c]:
                d = point[j] - point[o]
                if dot(d, d) < SAME:
                    gone = 1.0
        gap[j] = gone
    rank = view(point, 0, every)
    for j in lanes(many):
        c = int(near[j])
        closer = 0.0
        for o in range(many):
            e = int(near[o])
            if gap[o] == 0.0 and (ahead[e] < ahead[c] or (ahead[e] == ahead[c] and e < c)):
                closer += 1.0
        rank[j] = closer
    used = 0
    others = 0
    for j in range(many):
        if gap[j] == 0.0:
            if int(rank[j]) < world.slots:
                world.taken[used * world.taken_step] = near[j]
                used += 1
            else:
                others += 1
    return used, others
