"""Boxes against boxes and capsules: separating axes, then the patch between the nearest features.

S. Gottschalk, M. Lin, D. Manocha, "OBBTree", 1996: of the 15 axes that can separate two boxes, the
one with the largest separation (or least depth) is the normal, if it belongs to a pair of features
that really face each other; otherwise corners or edges are nearest, and their distance is found
directly. Of axes nearly as good, faces go before edges and those of the first box before those of
the second, so that boxes at rest do not change their normal from step to step.
"""

from kinetree.codegen.procedures import Rounding, local, procedure, sqrt, vector, view
from kinetree.contact.collision.clipping import EXACT, NEAR, clip_side, put, spanning
from kinetree.contact.collision.spheres import out_of_box, put_inwards, to_shape
from kinetree.contact.collision.tables import Shapes, Touch

_PARALLEL = Rounding(1e-12, single=1e-5)  # squared sine between edges without a common normal
_LEVEL = Rounding(1e-12, single=1e-6)  # sine between a segment and a face that it does not meet
_EDGES = 20000  # first feature of edges on edges
_NEARLY = 0.9  # square of the cosine between normals of a face and of crossing edges
_SURELY = Rounding(EXACT / NEAR, single=EXACT.single / NEAR.single)
"""Gaps from which on corners may be nearest, relative to what counts as equal."""
_CORNERS = 21000  # first feature of corners next to corners and edges
_APART = -2  # in place of a pair of edges: those that separate the boxes by more than the margin


@procedure
def box_box(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append up to four contacts of two boxes: a face patch, crossing edges, or corners."""
    a, b = shapes.size[i], shapes.size[j]
    seen = local("float", 3, 4)
    relative_pose(shapes.pose[i], shapes.pose[j], seen)
    near = NEAR * (a[0] + a[1] + a[2] + b[0] + b[1] + b[2])
    best, axis = best_face(shapes, i, j, seen, margin, near)
    if axis < 0:
        return n
    edge, edges = best_edges(seen, a, b, best - near, margin)
    if edges == _APART:
        return n
    across = local("float", 3)
    across[:] = vector(edge, margin, near)
    by_edges = edges >= 0 and edge > best + near
    is_patch = by_edges and edge <= 0 and is_level(seen, axis, edges // 3, edges % 3)
    first = n
    if is_patch:
        first = max(edge_edge(shapes, i, j, seen, edges, across, touch, n), n)
    m = -1
    if is_patch or not by_edges:
        along = local("float", 3)
        along[:] = vector(best, margin, near)
        if axis < 3:
            m = face_box(shapes, i, j, seen, axis, along, touch, first)
        else:
            back = local("float", 3, 4)
            relative_pose(shapes.pose[j], shapes.pose[i], back)
            m = face_box(shapes, j, i, back, axis, along, touch, first)
    if is_patch and max(m, first) > n:
        for k in range(first, m):
            touch.gap[k] = max(touch.gap[k], edge)
        return max(m, first)
    if m < 0 and edges >= 0:
        m = edge_edge(shapes, i, j, seen, edges, across, touch, n)
    if m < 0:
        return corners_box(shapes, i, j, margin, near, touch, n)
    return m


@procedure
def relative_pose(p: "float[12]", q: "float[12]", seen: "float[3, 4]") -> None:
    """Write the pose ``[R | p]`` of the second of two shapes in coordinates of the first."""
    d = q[3::4] - p[3::4]
    seen[:, 3] = p[:3] * d[0] + p[4:7] * d[1] + p[8:11] * d[2]
    seen[:, :3] = view(p, 0, 3, 4)[:, :3].T @ view(q, 0, 3, 4)[:, :3]


@procedure
def best_face(
    shapes: Shapes, i: int, j: int, seen: "float[3, 4]", margin: float, near: float
) -> "(float, int)":
    """Largest separation of two boxes along face normals, and that axis: 0 to 5, -1 beyond margin.

    Axes 0 to 2 are those of the first box, 3 to 5 those of the second.
    """
    p, q, a, b = shapes.pose[i], shapes.pose[j], shapes.size[i], shapes.size[j]
    F = abs(seen[:, :3])
    best, axis = -1e300, 0
    for k in range(3):
        gap = abs(seen[k, 3]) - a[k] - b[0] * F[k, 0] - b[1] * F[k, 1] - b[2] * F[k, 2]
        if gap > margin:
            return gap, -1
        if gap > best + near:
            best = gap
            axis = k
    d = q[3::4] - p[3::4]
    s = q[:3] * d[0] + q[4:7] * d[1] + q[8:11] * d[2]  # centre to centre, as the second sees it
    for l in range(3):
        gap = abs(s[l]) - b[l] - a[0] * F[0, l] - a[1] * F[1, l] - a[2] * F[2, l]
        if gap > margin:
            return gap, -1
        if gap > best + near:
            best = gap
            axis = 3 + l
    return best, axis


@procedure
def best_edges(
    seen: "float[3, 4]", a: "float[3]", b: "float[3]", least: float, margin: float
) -> "(float, int)":
    """Largest separation of two boxes along cross products of edges, and which: 3 k + l, or -1.

    Only those that exceed ``least`` count, compared without the root that few axes need; -1 where
    there are none, ``_APART`` where one exceeds the margin.
    """
    C, t = seen[:, :3], seen[:, 3]
    F = abs(C)
    edge, edges = least, -1
    for k in range(3):
        u, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
        for l in range(3):
            square = C[u, l] * C[u, l] + C[w, l] * C[w, l]
            if square > _PARALLEL:
                v, o = (l + 1 if l < 2 else 0), (l - 1 if l > 0 else 2)
                reach = a[u] * F[w, l] + a[w] * F[u, l] + b[v] * F[k, o] + b[o] * F[k, v]
                gap = abs(t[w] * C[u, l] - t[u] * C[w, l]) - reach
                if gap > 0 or gap * gap < edge * edge * square:
                    gap = gap / sqrt(square)
                    if gap > margin:
                        return gap, _APART
                    if gap > edge:
                        edge = gap
                        edges = 3 * k + l
    return edge, edges


@procedure
def level_out(touch: Touch, first: int, n: int, gap: float, near: float) -> int:
    """Raise contact gaps to at least ``gap``; the smallest becomes ``gap`` if nearly equal.

    They were chosen along an axis that is only nearly the best, so as not to change it at rest.
    """
    lowest = first
    for k in range(first, n):
        touch.gap[k] = max(touch.gap[k], gap)
        if touch.gap[k] < touch.gap[lowest]:
            lowest = k
    if n > first and touch.gap[lowest] <= gap + near:
        touch.gap[lowest] = gap
    return n


@procedure
def is_level(C: "float[3, 4]", axis: int, k: int, l: int) -> bool:
    """Whether the common normal of edges k and l of two boxes is nearly the normal of a face.

    Boxes that overlap and lie on each other nearly flat have their least depth along some axis
    across two edges, and along another one in the next step. With one point they would sink.
    """
    u, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
    square = C[u, l] * C[u, l] + C[w, l] * C[w, l]
    if axis < 3:
        along = C[u, l] if axis == w else C[w, l] if axis == u else 0.0
    else:
        f = axis - 3
        along = C[k, 3 - l - f] if f != l else 0.0
    return along * along > _NEARLY * square


@procedure
def face_box(
    shapes: Shapes,
    i: int,
    j: int,
    seen: "float[3, 4]",
    axis: int,
    limits: "float[3]",
    touch: Touch,
    n: int,
) -> int:
    """Append the contacts of another box on a face of box i; new count, -1 if not nearest.

    Args:
        shapes: the shapes.
        i: number of the box.
        j: number of the other box.
        seen: pose of the other, as the box sees it.
        axis: of the face, 0 to 2; 3 to 5 where the box is the second of the pair.
        limits: separation along the axis, largest gap, and what counts as equal.
        touch: where the points go.
        n: points there are.
    """
    a, best, margin, near = shapes.size[i], limits[0], limits[1], limits[2]
    k = axis if axis < 3 else axis - 3
    u, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
    side = 1.0 if seen[k, 3] >= -near else -1.0
    face = local("float", 3, 3)
    f = face_against(seen, a, shapes.size[j], k, side, face)
    corner = local("float", 32, 3)
    edge = local("int", 32)
    count = clip_face(face, a[u], a[w], near, corner, edge)
    kept, lowest = keep_near(corner, edge, count, margin)
    if best > _SURELY * near and lowest > best + _SURELY * near:
        return -1
    if kept == 0 and best <= margin and best <= near:
        # The deepest corner is beyond the border by rounding.
        corner[0, 0] = min(max(face[0, 0], -a[u]), a[u])
        corner[0, 1] = min(max(face[0, 1], -a[w]), a[w])
        corner[0, 2] = best
        edge[0] = 0
        kept = 1
    chosen = local("int", 8)
    kept = spanning(corner, kept, 4, near, chosen)
    R = view(shapes.pose[i], 0, 3, 4)
    outwards = 1.0 if axis < 3 else -1.0  # normals point to the second box of the pair
    normal = outwards * side * R[:, k]
    feature = 3072 * axis + 1024 * f + (512 if side > 0 else 0)
    for c in range(kept):
        pick = chosen[c]
        gap = corner[pick, 2]
        x = corner[pick, 0]
        y = corner[pick, 1]
        z = side * (a[k] + gap / 2)
        at = R[:, 3] + R[:, u] * x + R[:, w] * y + R[:, k] * z
        n = put(touch, n, at, normal, gap, feature + edge[pick])
    return n


@procedure
def face_against(
    C: "float[3, 4]", a: "float[3]", b: "float[3]", k: int, side: float, face: "float[3, 3]"
) -> int:
    """Axis of the other box's face that opposes the face along axis k; writes it to ``face``.

    Its middle and half edges are the rows of ``face``: along both edges of the face along axis k,
    and their height above it.
    """
    u, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
    f = 0  # axis of the other box that is most along the normal
    for l in range(1, 3):
        if abs(C[k, l]) > abs(C[k, f]) + NEAR:
            f = l
    g, h = (f + 1 if f < 2 else 0), (f - 1 if f > 0 else 2)
    d = -b[f] if side * C[k, f] > 0 else b[f]
    face[0] = vector(
        C[u, 3] + d * C[u, f], C[w, 3] + d * C[w, f], side * (C[k, 3] + d * C[k, f]) - a[k]
    )
    face[1] = vector(b[g] * C[u, g], b[g] * C[w, g], side * b[g] * C[k, g])
    face[2] = vector(b[h] * C[u, h], b[h] * C[w, h], side * b[h] * C[k, h])
    return f


@procedure
def clip_face(
    face: "float[3, 3]",
    width: float,
    depth: float,
    near: float,
    corner: "float[32, 3]",
    edge: "int[32]",
) -> int:
    """Clip a face to a rectangle; returns the number of corners, whose edges go into ``edge``.

    It is clipped only by sides of the rectangle that it reaches beyond.
    """
    for c in range(4):
        e, o = (1.0 if c == 0 or c == 3 else -1.0), (1.0 if c < 2 else -1.0)
        corner[c] = face[0] + e * face[1] + o * face[2]
        edge[c] = 64 * ((c + 3) & 3) + c
    x, y = face[0, 0], face[0, 1]
    wide = abs(face[1, 0]) + abs(face[2, 0]) - width - near
    deep = abs(face[1, 1]) + abs(face[2, 1]) - depth - near
    count = 4
    if wide + x > 0:
        count = clip_side(corner, edge, count, 1.0, 0.0, width, near, 4)
    if wide - x > 0:
        count = clip_side(corner, edge, count, -1.0, 0.0, width, near, 5)
    if deep + y > 0:
        count = clip_side(corner, edge, count, 0.0, 1.0, depth, near, 6)
    if deep - y > 0:
        count = clip_side(corner, edge, count, 0.0, -1.0, depth, near, 7)
    return count


@procedure
def keep_near(corner: "float[32, 3]", edge: "int[32]", count: int, margin: float) -> "(int, float)":
    """Keep the corners with gaps up to the margin; their number, and the smallest gap of all."""
    lowest = 1e300
    kept = 0
    for c in range(count):
        gap = corner[c, 2]
        lowest = min(lowest, gap)
        if gap <= margin:
            corner[kept] = corner[c]
            edge[kept] = edge[c]
            kept += 1
    return kept, lowest


@procedure
def edge_edge(
    shapes: Shapes,
    i: int,
    j: int,
    seen: "float[3, 4]",
    edges: int,
    limits: "float[3]",
    touch: Touch,
    n: int,
) -> int:
    """Append the contact of two crossing edges of boxes; returns the count, -1 if they miss.

    Args:
        shapes: the shapes.
        i: number of the first box.
        j: number of the second box.
        seen: pose of the second, as the first sees it.
        edges: 3 k + l for edges along axis k of the first and l of the second.
        limits: separation across them, largest gap, and what counts as equal.
        touch: where the point goes.
        n: points there are.
    """
    a, b, gap, near = shapes.size[i], shapes.size[j], limits[0], limits[2]
    C, t = seen[:, :3], seen[:, 3]
    k, l = edges // 3, edges % 3
    u, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
    v, o = (l + 1 if l < 2 else 0), (l - 1 if l > 0 else 2)
    nu, nw = -C[w, l], C[u, l]  # the axis k cross l, as the first box sees it
    length = sqrt(nu * nu + nw * nw)
    side = length if nu * t[u] + nw * t[w] >= -near * length else -length
    nu = nu / side
    nw = nw / side
    # Middle of the edge of the first box, and of that of the second, as the first sees them.
    x = local("float", 3)
    x[k] = 0.0
    x[u] = a[u] if nu > 0 else -a[u]
    x[w] = a[w] if nw > 0 else -a[w]
    dv = -b[v] if nu * C[u, v] + nw * C[w, v] > 0 else b[v]
    do = -b[o] if nu * C[u, o] + nw * C[w, o] > 0 else b[o]
    y = t + dv * C[:, v] + do * C[:, o] - x
    cosine = C[k, l]
    along, other = y[k], y @ C[:, l]
    f = (along - cosine * other) / (length * length)
    e = cosine * f - other
    beyond = max(abs(f) - a[k], abs(e) - b[l])
    if gap > _SURELY * near and beyond > _SURELY * near:
        return -1
    f = min(max(f, -a[k]), a[k])
    e = min(max(e, -b[l]), b[l])
    x[k] = f
    y[k] -= f  # from the point of the first edge to the middle of the second
    x += (y + e * C[:, l]) / 2
    R = view(shapes.pose[i], 0, 3, 4)
    normal = nu * R[:, u] + nw * R[:, w]
    at = R[:, 3] + R[:, 0] * x[0] + R[:, 1] * x[1] + R[:, 2] * x[2]
    feature = _EDGES + 16 * (3 * k + l) + (1 if nu > 0 else 0) + (2 if nw > 0 else 0)
    feature += (4 if dv > 0 else 0) + (8 if do > 0 else 0)
    return put(touch, n, at, normal, gap, feature)


@procedure
def corners_box(
    shapes: Shapes, i: int, j: int, margin: float, near: float, touch: Touch, n: int
) -> int:
    """Append contacts of those corners of two separated boxes that are nearest to the other box."""
    x, out = local("float", 2, 3)
    distance = local("float", 16)
    best = 1e300
    for c in range(16):
        distance[c] = corner_box(shapes, i, j, c, x, out)
        best = min(best, distance[c])
    if best > margin:
        return n
    start = n
    for c in range(16):
        if distance[c] <= best + near and n < start + 4:
            d = corner_box(shapes, i, j, c, x, out)
            n = put_inwards(shapes.pose[j if c < 8 else i], x, out, d, 0.0, touch, n, _CORNERS + c)
            if c >= 8:
                touch.normal[n - 1] = -touch.normal[n - 1]
            for k in range(start, n - 1):
                e = touch.point[k] - touch.point[n - 1]
                if e @ e <= near * near:  # corner on corner
                    n = n - 1
                    break
    return n


@procedure
def corner_box(shapes: Shapes, i: int, j: int, c: int, x: "float[3]", out: "float[3]") -> float:
    """Distance of corner c from the other of two boxes; c is 0 to 7 of box i, 8 to 15 of box j."""
    p, q = shapes.pose[i if c < 8 else j], shapes.pose[j if c < 8 else i]
    a, b = shapes.size[i if c < 8 else j], shapes.size[j if c < 8 else i]
    u, v, w = (a[0] if c & 1 else -a[0]), (a[1] if c & 2 else -a[1]), (a[2] if c & 4 else -a[2])
    to_shape(q, p[3::4] + p[::4] * u + p[1::4] * v + p[2::4] * w, x)
    return out_of_box(x, b, out)


@procedure
def capsule_box(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append the contacts of a capsule and a box: nearest point, and ends of a parallel part."""
    p, q, r, half = shapes.pose[i], shapes.pose[j], shapes.size[i, 0], shapes.size[i, 1]
    b = shapes.size[j]
    line = local("float", 2, 3)  # middle of the segment and its direction, as the box sees them
    c, u = line[0], line[1]
    u[:] = q[:3] * p[2] + q[4:7] * p[6] + q[8:11] * p[10]
    to_shape(q, vector(p[3], p[7], p[11]), c)
    for k in range(3):
        if abs(c[k]) - half * abs(u[k]) - b[k] - r > margin:
            return n
    near = NEAR * (half + b[0] + b[1] + b[2])
    t = nearest_on_segment(c, u, half, b)
    out = local("float", 3)
    x = c + t * u
    gap = out_of_box(x, b, out)
    where = 0
    deep = gap <= near  # the segment passes through the box
    if deep:
        gap, where = segment_box_separation(c, u, half, b, near)
    if gap - r > margin:
        return n
    if deep:
        if where >= 3:
            return put_crossing(shapes, i, j, line, where - 3, gap, touch, n)
        out[:] = 0.0
        out[where] = 1.0 if c[where] >= -near else -1.0
        t = -half if out[where] * u[where] > 0 else half
    low, high, free = nearest_interval(line, half, b, out, near)
    if deep:
        if low > high:  # by rounding
            low = min(max((low + high) / 2, -half), half)
            high = low
        t = min(max(t, low), high)
    low = min(low, t)
    high = max(high, t)
    count = n
    if free > 0 and high - low > near:
        gaps = local("float", 2)
        side = local("float", 3)
        for k in range(2):
            e = low if k == 0 else high
            x[:] = c + e * u
            if deep:
                gaps[k] = out @ x - b[where]
                side[:] = out
            else:
                gaps[k] = out_of_box(x, b, side)
            if gaps[k] - r <= margin:
                n = put_inwards(q, x, side, gaps[k], r, touch, n, k)
        if min(gaps[0], gaps[1]) <= gap + near and n > count:
            return level_out(touch, count, n, gap - r, near)
    x[:] = c + t * u
    return put_inwards(q, x, out, gap, r, touch, n, 2)


@procedure
def nearest_interval(
    line: "float[2, 3]", half: float, b: "float[3]", out: "float[3]", near: float
) -> "(float, float, int)":
    """Interval of a segment nearest to one feature of a box, and the feature's dimension."""
    low, high = -half, half
    free = 0
    for k in range(3):
        if abs(out[k]) <= NEAR:
            free += 1
            x, u = line[0, k], line[1, k]
            if half * abs(u) > near:
                e, f = (-b[k] - x) / u, (b[k] - x) / u
                low = max(low, min(e, f))
                high = min(high, max(e, f))
    return low, high, free


@procedure
def nearest_on_segment(c: "float[3]", u: "float[3]", half: float, b: "float[3]") -> float:
    """Parameter t of the point c + t u, ``|t| <= half``, nearest to a box of half extents ``b``.

    The derivative of the squared distance grows along the segment, with corners where the segment
    passes the planes of the faces: it is zero between two of these.
    """
    low, high = -half, half
    at_low, at_high = approach(c, u, b, low), approach(c, u, b, high)
    if at_low >= 0:
        return low if at_high > 0 or at_low > 0 else 0.0
    if at_high <= 0:
        return high
    for k in range(6):
        a = k if k < 3 else k - 3
        if abs(u[a]) > _LEVEL:
            t = ((b[a] if k < 3 else -b[a]) - c[a]) / u[a]
            if low < t < high:
                d = approach(c, u, b, t)
                if d < 0:
                    low = t
                    at_low = d
                else:
                    high = t
                    at_high = d
    return low - at_low * (high - low) / (at_high - at_low)


@procedure
def approach(c: "float[3]", u: "float[3]", b: "float[3]", t: float) -> float:
    """Half of the derivative with respect to t of the squared distance of c + t u from a box."""
    d = 0.0
    for k in range(3):
        x = c[k] + t * u[k]
        d += u[k] * (x - min(max(x, -b[k]), b[k]))
    return d


@procedure
def segment_box_separation(
    c: "float[3]", u: "float[3]", half: float, b: "float[3]", near: float
) -> "(float, int)":
    """Largest of a segment's 6 separations from a box, and its axis: 0 to 2 face, 3 to 5 edge."""
    best, axis, most = -1e300, 0, -1e300
    for k in range(3):
        gap = abs(c[k]) - b[k] - half * abs(u[k])
        most = max(most, gap)
        if gap > best + near:
            best = gap
            axis = k
    for k in range(3):
        v, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
        square = u[v] * u[v] + u[w] * u[w]
        if square > _PARALLEL:
            reach = b[v] * abs(u[w]) + b[w] * abs(u[v])
            gap = (abs(c[w] * u[v] - c[v] * u[w]) - reach) / sqrt(square)
            most = max(most, gap)
            if gap > best + near:
                best = gap
                axis = 3 + k
    return most, axis


@procedure
def put_crossing(
    shapes: Shapes, i: int, j: int, line: "float[2, 3]", k: int, gap: float, touch: Touch, n: int
) -> int:
    """Append the contact of capsule i's segment, inside box j, with a box edge along axis k.

    ``line`` has the middle of the segment and its direction, as the box sees them.
    """
    r, half, b = shapes.size[i, 0], shapes.size[i, 1], shapes.size[j]
    c, u = line[0], line[1]
    v, w = (k + 1 if k < 2 else 0), (k - 1 if k > 0 else 2)
    length = sqrt(u[v] * u[v] + u[w] * u[w])
    turn = c[w] * u[v] - c[v] * u[w]
    side = length if turn >= -NEAR * (b[v] + b[w]) * length else -length
    out = local("float", 3)
    out[k] = 0.0
    out[v] = -u[w] / side
    out[w] = u[v] / side
    # At right angles to the normal and the edge, both are at the same place.
    x, y = c[v] - (b[v] if out[v] > 0 else -b[v]), c[w] - (b[w] if out[w] > 0 else -b[w])
    t = -(out[w] * x - out[v] * y) / (out[w] * u[v] - out[v] * u[w])
    t = min(max(t, -half), half)
    at = c + t * u
    return put_inwards(shapes.pose[j], at, out, gap, r, touch, n, 3 + k)
