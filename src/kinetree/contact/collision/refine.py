"""The normal between cores of which at least one is curved, to rounding error, by Newton's method.

Near its maximum the width of the slab between two shapes changes little with its direction, so that
a search by widths leaves the direction uncertain by the square root of their error. Here it comes
from a condition that is met only there: the farthest points of both lie along the normal,
``t · (b(-n) - a(n)) = 0`` for both tangents t. The derivative of a support point is the matrix of
the radii of curvature; corners do not move, on edges and faces the normal is at right angles to
them. Of a polyhedron, the corners in the simplex of ``gjk`` or ``epa`` are tried: its face,
edges, corners.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, view
from kinetree.contact.collision.frames import into_shape, out_of_shape
from kinetree.contact.collision.kinds import choice_of
from kinetree.contact.collision.kinds.kind import CROSSING, EDGE, FACE, NONE, SINGLE, TILT
from kinetree.contact.collision.support import MODES, best_face, is_curved, support
from kinetree.contact.collision.tables import BOX, HULL, Shapes

_STEPS = 12
_CERTAIN = 2e-5  # one minus the cosine between directions that lead to the same maximum
_PARALLEL = 1e-9  # [rad]
_SAME = 1e-12  # of the depth: as good in any direction, like the middle of a ball


@procedure
def stands_nowhere(
    size: "float[3]",
    mode: int,
    d: "float[3]",
    q: "float[3]",
    x: "float[3]",
    bend: "float[3, 3]",
    e: "float[4]",
) -> int:
    """Placeholder for a kind without curved faces."""
    return NONE


@procedure
def is_within(size: "float[3]", mode: int, x: "float[3]", slack: float) -> bool:
    """Placeholder for a kind without curved faces."""
    return False


STAND = choice_of("stand", stands_nowhere)
WITHIN = choice_of("within", is_within)


@procedure
def width(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    n: "float[3]",
    a: "float[3]",
    b: "float[3]",
    near: "int[2]",
) -> float:
    """Width of the slab between two cores at right angles to ``n``; their farthest points."""
    minus = -n
    near[0] = support(shapes, i, corners, o, n, near[0], a)
    near[1] = support(shapes, j, corners, o, minus, near[1], b)
    return (b[0] - a[0]) * n[0] + (b[1] - a[1]) * n[1] + (b[2] - a[2]) * n[2]


@procedure
def different_corners(
    P: "float[4, 3]", at: "int[4, 2]", side: int, m: int, C: "float[4, 3]"
) -> int:
    """The corners of one shape in a simplex, each once."""
    count = 0
    for k in range(m):
        old = False
        for e in range(k):
            if at[e, side] == at[k, side]:
                old = True
        if not old and count < 3:
            C[count] = P[k]
            count += 1
    return count


@procedure
def modes(shapes: Shapes, i: int, count: int) -> int:
    """How many ways there are for the normal to stand on a shape."""
    if is_curved(shapes, i):
        return MODES[shapes.kind[i]]
    if count == 3:
        return 8
    return 4 if count == 2 else 2


@procedure
def stand(
    shapes: Shapes,
    i: int,
    C: "float[4, 3]",
    count: int,
    mode: int,
    o: "float[3]",
    n: "float[3]",
    other: "float[3]",
    p: "float[3]",
    bend: "float[3, 3]",
    e: "float[4]",
) -> int:
    """A point farthest along ``n`` in a mode, its derivative, and the edge or the face's normal.

    ``other`` is about the nearest point of the other shape. Of an edge, ``e[:3] @ n == e[3]`` where
    it is farthest: see ``Kind.stand``.
    """
    bend[:] = 0.0
    e[3] = 0.0
    if not is_curved(shapes, i):
        if mode == 0:
            return nearest_face(shapes, i, o, n, p, e)
        mode -= 1
        if count == 3 and mode == 0:
            f = cross(C[1] - C[0], C[2] - C[0])
            length = sqrt(f @ f)
            if length == 0.0:
                return NONE
            if f @ n < 0:
                length = -length
            e[:3] = f / length
            p[:] = C[0]
            return FACE
        k = mode - 4 if count == 3 else mode - 1
        if (count == 3 and mode < 4) or (count == 2 and mode == 0):
            first = mode - 1 if count == 3 else 0
            second = (first + 1) % count
            way = C[second] - C[first]
            length = sqrt(way @ way)
            if length == 0.0:
                return NONE
            e[:3] = way / length
            p[:] = C[first]
            return EDGE
        if count == 1:
            k = 0
        p[:] = C[k]
        return SINGLE
    P = shapes.pose[i]
    R = view(P, 0, 3, 4)[:, :3]
    d, q, x = local("float", 3, 3)
    turned = local("float", 3, 3)
    turned[:] = 0.0
    into_shape(P, n, d)
    into_shape(P, other - (P[3::4] - o), q)
    status = STAND[shapes.kind[i]](shapes.size[i], mode, d, q, x, turned, e)
    if status == NONE:
        return NONE
    out_of_shape(P, o, x[0], x[1], x[2], p)
    for k in range(3):
        bend[k] = R @ (turned @ R[k])
    if status != SINGLE:
        e[:3] = R @ e[:3]
    return status


@procedure
def nearest_face(
    shapes: Shapes, i: int, o: "float[3]", n: "float[3]", p: "float[3]", e: "float[4]"
) -> int:
    """A point of the face of a box or hull whose normal is nearest to ``n``, and that normal."""
    if i < 0 or (shapes.kind[i] != BOX and shapes.kind[i] != HULL):
        return NONE
    P = shapes.pose[i]
    d = local("float", 3)
    into_shape(P, n, d)
    if shapes.kind[i] == BOX:
        k = 0
        if abs(d[1]) > abs(d[k]):
            k = 1
        if abs(d[2]) > abs(d[k]):
            k = 2
        sign = 1.0 if d[k] > 0 else -1.0
        e[:3] = sign * view(P, 0, 3, 4)[:, k]
        p[:] = e[:3] * shapes.size[i, k] + (P[3::4] - o)
    else:
        face = best_face(shapes, i, d)
        f = shapes.face_normal[face]
        x = shapes.vertex[shapes.face_vertex[shapes.face_first[face]]]
        out_of_shape(P, o, x[0], x[1], x[2], p)
        e[:3] = P[::4] * f[0] + P[1::4] * f[1] + P[2::4] * f[2]
    return FACE if e[:3] @ n > 1 - TILT else NONE


@procedure
def solve_normal(
    shapes: Shapes,
    i: int,
    j: int,
    CA: "float[4, 3]",
    CB: "float[4, 3]",
    na: int,
    nb: int,
    ma: int,
    mb: int,
    o: "float[3]",
    n: "float[3]",
    a: "float[3]",
    b: "float[3]",
    standing: "int[2]",
) -> int:
    """The normal in a mode of each shape, from ``n`` on; ``a``, ``b`` are the points, if single.

    About the nearest points are in ``a`` and ``b`` before.

    Returns 0: there is none; 1: a direction nearby; 2: the solution.
    """
    bend_a, bend_b = local("float", 2, 3, 3)
    line_a, line_b = local("float", 2, 4)
    ea, eb, m = local("float", 3, 3)
    last = 1.0
    for step in range(_STEPS):
        m[:] = -n
        sa = stand(shapes, i, CA, na, ma, o, n, b, a, bend_a, line_a)
        sb = stand(shapes, j, CB, nb, mb, o, m, a, b, bend_b, line_b)
        ea[:] = line_a[:3]
        eb[:] = line_b[:3]
        ka, kb = line_a[3], line_b[3]
        standing[0] = sa
        standing[1] = sb
        if sa == NONE or sb == NONE:
            return 0
        if sa == FACE or sb == FACE:
            # what is not parallel to the face touches it with a corner, edge or rim instead
            lean = 0.0
            if sa == FACE and sb == FACE:
                off = cross(ea, eb)
                lean = off @ off
            elif sa == EDGE or sb == EDGE:
                lean = (ea @ eb + ka + kb) * (ea @ eb + ka + kb)
            if lean > _PARALLEL * _PARALLEL:
                return 0
            n[:] = ea if sa == FACE else -eb
            if step > 0:
                return 2
            continue
        t = cross(n, ea)
        free = 2
        if sa == EDGE and sb == EDGE:
            over = cross(ea, eb)
            length = sqrt(over @ over)
            if length > _PARALLEL:
                if over @ n < 0:
                    length = -length
                # ea @ n == ka and -eb @ n == kb: a part along both, and the rest across them
                cosine = -(ea @ eb)
                one = (ka - cosine * kb) / (length * length)
                two = (kb - cosine * ka) / (length * length)
                rest = 1.0 - one * ka - two * kb
                if rest < 0:
                    return 0
                n[:] = sqrt(rest) * over / length + one * ea - two * eb
                if step > 0:
                    u = ea - ka * n  # the lines that touch, not of unit length
                    w = eb + kb * n
                    past = cross(b - a, w) @ n / (cross(u, w) @ n)
                    gap = (b - a) @ n
                    a[:] += past * u
                    b[:] = a + gap * n
                    standing[0] = CROSSING
                    return 2
                continue
        if sa == EDGE or sb == EDGE:
            free = 1
            e = ea * 1.0
            k = ka
            if sa != EDGE:
                e = -eb
                k = kb
            along = e @ n
            n[:] -= along * e
            length = sqrt(n @ n)
            if abs(along - k) > 0.7 or length < 1e-9:
                return 0
            root = sqrt(1.0 - k * k)
            n[:] = root * n / length + k * e
            t = cross(e, n) / root
        else:
            axis = 0
            if abs(n[1]) < abs(n[axis]):
                axis = 1
            if abs(n[2]) < abs(n[axis]):
                axis = 2
            m[:] = 0.0
            m[axis] = 1.0
            t = cross(n, m)
            t = t / sqrt(t @ t)
        between = b - a
        gap = between @ n
        u = cross(n, t)
        Bt = bend_a @ t + bend_b @ t + t * gap
        M11 = t @ Bt
        r1 = t @ between
        move = t * 0.0
        if free == 1:
            if M11 <= 0:
                return 2 if abs(r1) <= _SAME * abs(gap) else 1
            move = t * (r1 / M11)
        else:
            Bu = bend_a @ u + bend_b @ u + u * gap
            M12 = t @ Bu
            M22 = u @ Bu
            r2 = u @ between
            det = M11 * M22 - M12 * M12
            if M11 <= 0 or det <= 0:
                return 2 if abs(r1) + abs(r2) <= _SAME * abs(gap) else 1
            move = t * ((M22 * r1 - M12 * r2) / det) + u * ((M11 * r2 - M12 * r1) / det)
        size = sqrt(move @ move)
        if size > 0.5:
            return 1
        n[:] += move
        length = sqrt(n @ n)
        n[:] = n / length
        if size < 3e-15:
            return 2
        last = size
    return 2 if last < 1e-12 else 1


@procedure
def within(
    shapes: Shapes,
    i: int,
    C: "float[4, 3]",
    count: int,
    mode: int,
    o: "float[3]",
    p: "float[3]",
    slack: float,
) -> bool:
    """Whether a foot is on the edge or face of a mode."""
    if is_curved(shapes, i):
        P = shapes.pose[i]
        d = local("float", 3)
        d[:] = p - (P[3::4] - o)
        s = local("float", 3)
        into_shape(P, d, s)
        return WITHIN[shapes.kind[i]](shapes.size[i], mode, s, slack)
    if mode == 0:
        return within_polyhedron(shapes, i, o, p, slack)
    mode -= 1
    if count == 3 and mode == 0:
        f = cross(C[1] - C[0], C[2] - C[0])
        for k in range(3):
            q = (k + 1) % 3
            if cross(C[q] - C[k], p - C[k]) @ f < -slack * sqrt(f @ f):
                return False
        return True
    first = mode - 1 if count == 3 else 0
    way = C[(first + 1) % count] - C[first]
    past = (p - C[first]) @ way
    length = sqrt(way @ way)
    return past >= -slack * length and past <= (length + slack) * length


@procedure
def within_polyhedron(shapes: Shapes, i: int, o: "float[3]", p: "float[3]", slack: float) -> bool:
    """Whether a point is within a box or hull."""
    P = shapes.pose[i]
    x = local("float", 3)
    d = p - (P[3::4] - o)
    into_shape(P, d, x)
    if shapes.kind[i] == BOX:
        past = abs(x[0]) - shapes.size[i, 0]
        past = max(past, abs(x[1]) - shapes.size[i, 1])
        return max(past, abs(x[2]) - shapes.size[i, 2]) <= slack
    for f in range(shapes.data[i, 2], shapes.data[i, 2] + shapes.data[i, 3]):
        corner = shapes.vertex[shapes.face_vertex[shapes.face_first[f]]]
        if (x - corner) @ shapes.face_normal[f] > slack:
            return False
    return True


@procedure
def refine(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    A: "float[4, 3]",
    B: "float[4, 3]",
    at: "int[4, 2]",
    m: int,
    scale: float,
    most: float,
    n: "float[3]",
    a: "float[3]",
    b: "float[3]",
) -> "(float, bool)":
    """The largest width near ``n``, whether it is a maximum, its direction, and nearest points.

    In: about the normal and the points, the simplex of ``m`` corners that they are of, the size
    of the shapes, and the ``most`` that the width can be.
    """
    CA, CB = local("float", 2, 4, 3)
    na = different_corners(A, at, 0, m, CA)
    nb = different_corners(B, at, 1, m, CB)
    d, pa, pb, sa, sb, start = local("float", 6, 3)
    standing, near = local("int", 2, 2)
    near[0] = at[0, 0]
    near[1] = at[0, 1]
    start[:] = n
    best = width(shapes, i, j, corners, o, n, sa, sb, near)
    # the points, moved along the normal to where the slab ends
    slip = (sa - a) @ n
    a[:] += slip * n
    b[:] = a + best * n
    slack = 1e-12 * scale
    solved_any = False
    for ma in range(modes(shapes, i, na)):
        for mb in range(modes(shapes, j, nb)):
            d[:] = start
            pa[:] = a
            pb[:] = b
            solved = solve_normal(shapes, i, j, CA, CB, na, nb, ma, mb, o, d, pa, pb, standing)
            if solved == 0 or d @ start < 1 - TILT:
                continue
            found = width(shapes, i, j, corners, o, d, sa, sb, near)
            if found < best - 1e-3 * slack:
                continue
            between = pb - pa
            gap = between @ d
            extended = False
            # Both points are farthest ones, and single or on the edge or face: a maximum.
            optimal = solved == 2 and abs(gap - found) <= slack
            if standing[0] == CROSSING:
                optimal = (
                    optimal
                    and within(shapes, i, CA, na, ma, o, pa, slack)
                    and within(shapes, j, CB, nb, mb, o, pb, slack)
                )
            elif standing[0] == SINGLE and standing[1] != SINGLE:
                pb[:] = pa + found * d
                optimal = optimal and within(shapes, j, CB, nb, mb, o, pb, slack)
            elif standing[0] != SINGLE and standing[1] == SINGLE:
                pa[:] = pb - found * d
                optimal = optimal and within(shapes, i, CA, na, ma, o, pa, slack)
            elif standing[0] != SINGLE:
                optimal = False
                extended = True
            if not optimal:
                # anywhere: where the search ended, moved to the ends of the slab
                slip = (sa - a) @ d
                pa[:] = a + slip * d
                pb[:] = pa + found * d
            best = found
            n[:] = d
            a[:] = pa
            b[:] = pb
            # Apart there is one maximum; of overlapping shapes there may be several nearby.
            certain = optimal and (found >= 0 or d @ start > 1 - _CERTAIN)
            if certain or best >= most - 1e-2 * slack:
                return best, True
            if extended or optimal:
                solved_any = True
    return best, solved_any
