"""Contact patches: a face clipped by another, reduced to a few points that span the patch.

Clipping is that of I. Sutherland and G. Hodgman, "Reentrant polygon clipping", 1974. A corner of
the patch is named by the two edges that meet in it, so that it keeps its name from step to step
(E. Catto, "Fast and simple physics using sequential impulses", 2006). Choices between nearly equal
corners go to the one that comes first, or what lies at rest would change its mind by rounding.
"""

from kinetree.codegen.procedures import Rounding, local, procedure, sqrt, vector, workspace
from kinetree.contact.collision.tables import Touch

NEAR = Rounding(1e-6, single=1e-5)  # [sizes of the shapes] what counts as equal in choices
EXACT = Rounding(
    1e-9, single=2e-6
)  # [sizes of the shapes] likewise where gaps depend on the choice
FACE = 16  # corners of a face, at most
_STEEP = 1e3  # one over the tilt [rad] up to which a patch counts as level
_SLENDER = 1e-3  # [rad] between edges that count as parallel
_OPEN = 63  # "edge" beyond the ends of a segment


@procedure
def put(
    touch: Touch, n: int, point: "float[3]", normal: "float[3]", gap: float, feature: int
) -> int:
    """Append a contact (point, normal, gap, feature) as row ``n``; returns the new count."""
    touch.point[n] = point
    touch.normal[n] = normal
    touch.gap[n] = gap
    touch.feature[n] = feature
    return n + 1


@procedure
def put_between(
    touch: Touch, n: int, first: "float[3]", normal: "float[3]", gap: float, feature: int
) -> int:
    """Append a contact half-way across the gap from a point on the first surface; new count."""
    return put(touch, n, first + gap / 2 * normal, normal, gap, feature)


@procedure
def axes_across(normal: "float[3]", u: "float[3]", w: "float[3]") -> None:
    """Write two orthogonal unit vectors normal to a third one (Duff et al., JCGT 6, 2017)."""
    x, y, z = normal[0], normal[1], normal[2]
    s = 1.0 if z >= 0 else -1.0
    a = -1.0 / (s + z)
    b = x * y * a
    u[:] = vector(1.0 + s * x * x * a, s * b, -s * x)
    w[:] = vector(b, s + y * y * a, -y)


@workspace
class Faces:
    """Faces, edges or corners of two shapes that may touch, in the world.

    Attributes:
        normal: unit, from the first shape to the second; gaps are measured along it.
        first_count: corners of the face of the first shape, at most ``FACE``.
        first: these, in order around the face.
        second_count: corners of the face of the second shape.
        second: these.
    """

    normal: "float[3]"
    first_count: int
    first: "float[FACE, 3]"
    second_count: int
    second: "float[FACE, 3]"


@procedure
def see_along(
    face: "float[:, 3]",
    count: int,
    origin: "float[3]",
    u: "float[3]",
    w: "float[3]",
    normal: "float[3]",
    seen: "float[:, 3]",
) -> float:
    """Project a face's corners on the axes u, w and the normal; returns the size of its outline."""
    size = 0.0
    for k in range(count):
        d = face[k] - origin
        seen[k, 0] = d @ u
        seen[k, 1] = d @ w
        seen[k, 2] = d @ normal
        size = max(size, abs(seen[k, 0]) + abs(seen[k, 1]))
    return size


@procedure
def common_part(
    a: "float[:, 3]", na: int, b: "float[:, 3]", nb: int, edge: "int[:]", size: float
) -> int:
    """Number of corners in the intersection of two projected faces; points and gaps are set.

    They become points of the first face in ``a``, and gaps in ``b[:, 2]``.
    """
    plane = local("float", 3)  # height = plane[0] + plane[1] x + plane[2] y
    if na >= 3 and face_plane(a, na, plane) > NEAR * size * size:
        count = clip(b, edge, nb, a, na, NEAR * size)
        for k in range(count):
            low = plane[0] + plane[1] * b[k, 0] + plane[2] * b[k, 1]
            a[k] = b[k]
            a[k, 2] = low
            b[k, 2] -= low
        return count
    if nb >= 3 and face_plane(b, nb, plane) > NEAR * size * size:
        count = clip(a, edge, na, b, nb, NEAR * size)
        b[:count] = a[:count]
        b[:count, 2] = plane[0] + plane[1] * a[:count, 0] + plane[2] * a[:count, 1] - a[:count, 2]
        return count
    return edges_meet(a, min(na, 2), b, min(nb, 2), edge, NEAR * size)


@procedure
def clip_faces(faces: Faces, margin: float, most: int, touch: Touch, n: int, feature: int) -> int:
    """Append up to ``most`` (4 to 8) contacts of two faces with gaps up to ``margin``; new count.

    Args:
        faces: of two shapes.
        margin: largest gap.
        most: largest number of points.
        touch: where the points go, from n on.
        n: points there are.
        feature: added to the keys of the points, which are less than 4096.

    Returns:
        How many points there are then; n where the faces do not meet, seen along the normal.
    """
    normal, origin = faces.normal, faces.first[0]
    na, nb = faces.first_count, faces.second_count
    u, w = local("float", 2, 3)
    axes_across(normal, u, w)
    a, b = local("float", 2, 32, 3)
    size = see_along(faces.first, na, origin, u, w, normal, a)
    size = max(size, see_along(faces.second, nb, origin, u, w, normal, b))
    edge = local("int", 32)
    count = common_part(a, na, b, nb, edge, size)
    kept = 0
    for k in range(count):
        if b[k, 2] <= margin:
            a[kept] = a[k]
            b[kept] = b[k]
            edge[kept] = edge[k]
            kept += 1
    chosen = local("int", 8)
    kept = spanning(b, kept, most, NEAR * size, chosen)
    for k in range(kept):
        c = chosen[k]
        h = a[c, 2] + b[c, 2] / 2
        p = origin + a[c, 0] * u + a[c, 1] * w + h * normal
        n = put(touch, n, p, normal, b[c, 2], feature + edge[c])
    return n


@procedure
def face_plane(face: "float[:, 3]", n: int, plane: "float[3]") -> float:
    """Twice the projected area of a polygon; sets its plane as a height linear in x and y."""
    x, y, z, cx, cy, cz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(n):  # Newell's formula
        p, q = face[k], face[k + 1 if k + 1 < n else 0]
        x += (p[1] - q[1]) * (p[2] + q[2])
        y += (p[2] - q[2]) * (p[0] + q[0])
        z += (p[0] - q[0]) * (p[1] + q[1])
        cx += p[0]
        cy += p[1]
        cz += p[2]
    if z != 0:
        plane[1] = -x / z
        plane[2] = -y / z
    plane[0] = (cz - plane[1] * cx - plane[2] * cy) / n
    return abs(z)


@procedure
def clip(
    subject: "float[:, 3]",
    edge: "int[:]",
    count: int,
    window: "float[:, 3]",
    sides: int,
    near: float,
) -> int:
    """Clip a polygon, segment or point to a convex window (Sutherland-Hodgman); number of corners.

    ``edge`` receives the two edges that meet in each corner, 64 times the one before and the one
    after it: those of the subject are numbered from 0, those of the window from 32.
    """
    closed = count >= 3
    for k in range(count):
        before = k - 1 if k > 0 else (count - 1 if closed else _OPEN)
        edge[k] = 64 * before + (_OPEN if not closed and k == count - 1 else k)
    turn = 0.0
    for k in range(sides):
        p, q = window[k], window[k + 1 if k + 1 < sides else 0]
        turn += p[0] * q[1] - p[1] * q[0]
    sign = 1.0 if turn > 0 else -1.0
    for k in range(sides):
        p, q = window[k], window[k + 1 if k + 1 < sides else 0]
        x, y = sign * (q[1] - p[1]), -sign * (q[0] - p[0])  # outwards
        length = sqrt(x * x + y * y)
        if length > near:
            x = x / length
            y = y / length
            limit = x * p[0] + y * p[1]
            count = clip_side(subject, edge, count, x, y, limit, near, 32 + k)
    return count


@procedure
def clip_side(
    subject: "float[:, 3]",
    edge: "int[:]",
    count: int,
    x: float,
    y: float,
    limit: float,
    near: float,
    side: int,
) -> int:
    """Clip a polygon to the half plane (x, y) . p <= limit; returns the number of corners left.

    Corners that are within ``near`` of the line stay where they are, and count as on it.
    """
    beyond = local("float", 33)
    worst = -1.0
    for k in range(count):
        beyond[k] = x * subject[k, 0] + y * subject[k, 1] - limit
        worst = max(worst, beyond[k])
    if worst <= near:
        return count
    corner = local("float", 33, 3)
    name = local("int", 33)
    m = 0
    for k in range(count):
        j = k + 1 if k + 1 < count else 0
        d, e = beyond[k], beyond[j]
        if d <= near:
            corner[m] = subject[k]
            name[m] = edge[k]
            m += 1
        if min(d, e) < -near and max(d, e) > near and (j > 0 or count > 2):
            t = d / (d - e)
            corner[m] = subject[k] + t * (subject[j] - subject[k])
            cut = edge[k] & 63
            name[m] = 64 * cut + side if d < e else 64 * side + cut
            m += 1
    m = min(m, 32)
    subject[:m] = corner[:m]
    edge[:m] = name[:m]
    return m


@procedure
def edges_meet(
    a: "float[:, 3]", na: int, b: "float[:, 3]", nb: int, edge: "int[:]", near: float
) -> int:
    """Points where two projected edges, or an edge and a point, are closest; returns 1 or 2."""
    ax, ay, az = a[na - 1, 0] - a[0, 0], a[na - 1, 1] - a[0, 1], a[na - 1, 2] - a[0, 2]
    bx, by, bz = b[nb - 1, 0] - b[0, 0], b[nb - 1, 1] - b[0, 1], b[nb - 1, 2] - b[0, 2]
    dx, dy, dz = b[0, 0] - a[0, 0], b[0, 1] - a[0, 1], b[0, 2] - a[0, 2]
    aa, bb, ab = ax * ax + ay * ay, bx * bx + by * by, ax * bx + ay * by
    ad, bd = ax * dx + ay * dy, bx * dx + by * dy
    turn = ax * by - ay * bx
    # Parameters of the points along a; beyond the ends of either edge there are none.
    s, e = 0.0, 0.0
    count = 1
    if aa <= near * near:
        s = 0.0
    elif bb <= near * near:
        s = min(max(ad / aa, 0.0), 1.0)
    elif turn * turn > _SLENDER * _SLENDER * aa * bb:
        s = min(max((dx * by - dy * bx) / turn, 0.0), 1.0)
    else:
        s = min(max(min(ad, ad + ab) / aa, 0.0), 1.0)
        e = min(max(max(ad, ad + ab) / aa, 0.0), 1.0)
        count = 2 if (e - s) * (e - s) * aa > near * near else 1
    x, y, z = a[0, 0], a[0, 1], a[0, 2]
    for k in range(count):
        if k == 1:
            s = e
        t = 0.0
        if bb > near * near:
            t = min(max((s * ab - bd) / bb, 0.0), 1.0)
        edge[k] = 64 * _OPEN + k
        b[k, 0] = x + s * ax
        b[k, 1] = y + s * ay
        b[k, 2] = dz + t * bz - s * az
        a[k, 0] = b[k, 0]
        a[k, 1] = b[k, 1]
        a[k, 2] = z + s * az
    return count


@procedure
def spanning(corner: "float[:, 3]", count: int, most: int, near: float, chosen: "int[:]") -> int:
    """Choose up to ``most`` corners of a convex polygon that span it best; returns their number.

    The deepest one, and the one that is farthest from it or nearly as deep; then again and again
    the one that adds most to the area.
    """
    if count <= most:
        for k in range(count):
            chosen[k] = k
        return count
    taken = local("int", 33)
    deepest = 0
    for k in range(count):
        taken[k] = 0
        if corner[k, 2] < corner[deepest, 2] - near:
            deepest = k
    taken[deepest] = 1
    second = -1
    best = -1e300
    for k in range(count):
        if k != deepest:
            x, y = corner[k, 0] - corner[deepest, 0], corner[k, 1] - corner[deepest, 1]
            value = sqrt(x * x + y * y) - _STEEP * (corner[k, 2] - corner[deepest, 2])
            if value > best + near:
                best = value
                second = k
    taken[second] = 1
    for _ in range(most - 2):
        last = max(deepest, second)  # the one taken before corner 0
        for k in range(count):
            if taken[k] != 0:
                last = k
        pick = -1
        best = -1.0
        for k in range(count):
            if taken[k] != 0:
                last = k
            else:
                following = k + 1 if k + 1 < count else 0
                while taken[following] == 0:
                    following = following + 1 if following + 1 < count else 0
                px, py = corner[last, 0] - corner[k, 0], corner[last, 1] - corner[k, 1]
                qx, qy = corner[following, 0] - corner[k, 0], corner[following, 1] - corner[k, 1]
                area = abs(px * qy - py * qx)
                if area > best * (1.0 + NEAR) + near * near:
                    best = area
                    pick = k
        taken[pick] = 1
    m = 0
    for k in range(count):
        if taken[k] != 0:
            chosen[m] = k
            m += 1
    return m
