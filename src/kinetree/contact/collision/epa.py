"""Depth of two convex cores that overlap: the expanding polytope of G. van den Bergen, "Proximity
queries and penetration depth computation on 3D game objects" (2001).

The differences ``b - a`` of points of both cores fill a convex set around the origin; the nearest
point of its border is the shortest way out. A polytope inside the set grows from the simplex of
``gjk``: its face nearest to the origin gets the farthest difference along its normal, until there
is nothing beyond it. Each such direction is an upper bound of the depth, the nearest face
a lower one.
"""

from kinetree.codegen.procedures import cross, local, procedure, sqrt, vector
from kinetree.contact.collision.refine import refine
from kinetree.contact.collision.support import support
from kinetree.contact.collision.tables import Shapes

DONE, FLAT, FULL = 1, 2, 3
"""Status: the bounds met; the set has no thickness; out of room, the depth is an upper bound."""
_CORNERS = 512
_FACES = 1024
_RIM = 256
_EVEN = 1e-13  # of the size: what is in one plane
_CLOSE = 3e-3  # of the depth: how near to a curved surface a face is for Newton's method
_SHUT = 1e-8  # likewise where Newton's method finds nothing
_NEAR = 1e-4  # of the size: likewise where they hardly overlap
_THICK = 1e-11  # of the size: what is thinner is flat


@procedure
def add_difference(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    f: "float[3]",
    k: int,
    W: "float[:, 3]",
    A: "float[:, 3]",
    B: "float[:, 3]",
    at: "int[:, 2]",
):
    """The farthest difference along ``f``, in row ``k``."""
    minus = -f
    before = k - 1 if k > 0 else 0
    at[k, 0] = support(shapes, i, corners, o, minus, at[before, 0] if k > 0 else -1, A[k])
    at[k, 1] = support(shapes, j, corners, o, f, at[before, 1] if k > 0 else -1, B[k])
    W[k] = B[k] - A[k]


@procedure
def thicken(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    m: int,
    W: "float[:, 3]",
    A: "float[:, 3]",
    B: "float[:, 3]",
    at: "int[:, 2]",
    n: "float[3]",
) -> int:
    """Corners added to a simplex of ``m`` until it is a tetrahedron; if fewer, the set is flat.

    ``n`` is then a unit vector at right angles to it.
    """
    f = local("float", 3)
    size = 0.0
    for k in range(6):
        f[:] = 0.0
        f[k // 2] = 1.0 if k % 2 == 0 else -1.0
        add_difference(shapes, i, j, corners, o, f, 4, W, A, B, at)
        size = max(size, sqrt((W[4] - W[0]) @ (W[4] - W[0])))
        if m == 1 and size > 0 and sqrt((W[4] - W[0]) @ (W[4] - W[0])) >= size:
            W[1] = W[4]
            A[1] = A[4]
            B[1] = B[4]
            at[1, 0] = at[4, 0]
            at[1, 1] = at[4, 1]
    thin = _THICK * size
    if m == 1:
        if size == 0.0:
            return 1
        m = 2
    if m == 3:  # corners on one line are two of them
        off = cross(W[1] - W[0], W[2] - W[0])
        one = W[1] - W[0]
        two = W[2] - W[0]
        longest = max(one @ one, two @ two)
        if off @ off <= thin * thin * longest:
            if two @ two > one @ one:
                W[1] = W[2]
                A[1] = A[2]
                B[1] = B[2]
                at[1] = at[2]
            m = 2
    if m == 2:
        t = W[1] - W[0]
        length = sqrt(t @ t)
        t = t / length
        k = 0
        if abs(t[1]) < abs(t[k]):
            k = 1
        if abs(t[2]) < abs(t[k]):
            k = 2
        f[:] = 0.0
        f[k] = 1.0
        side = cross(t, f)
        side = side / sqrt(side @ side)
        for _ in range(6):
            f[:] = side
            add_difference(shapes, i, j, corners, o, f, 2, W, A, B, at)
            off = cross(W[2] - W[0], t)
            if sqrt(off @ off) > thin:
                m = 3
                break
            side = side * 0.5 + cross(t, side) * 0.8660254037844386
        if m == 2:
            side = side - t * (side @ t)
            side = side / sqrt(side @ side)
            n[:] = side
            return 2
    if m == 3:
        up = cross(W[1] - W[0], W[2] - W[0])
        up = up / sqrt(up @ up)
        for _ in range(2):
            f[:] = up
            add_difference(shapes, i, j, corners, o, f, 3, W, A, B, at)
            if abs((W[3] - W[0]) @ up) > thin:
                return 4
            up = -up
        n[:] = up
        return 3
    return m


@procedure
def set_face(
    W: "float[:, 3]",
    p: int,
    q: int,
    r: int,
    centre: "float[3]",
    k: int,
    face: "int[1024, 3]",
    normal: "float[1024, 3]",
    offset: "float[1024]",
):
    """Face ``k`` through three corners.

    One without an area is never the nearest, nor one that rounding turned inside out, which has the
    ``centre`` of the polytope in front of it.
    """
    face[k, 0] = p
    face[k, 1] = q
    face[k, 2] = r
    a = W[q] - W[p]
    b = W[r] - W[p]
    n = cross(a, b)
    area = n @ n
    if area > 1e-28 * (a @ a) * (b @ b) and (W[p] - centre) @ n > 0:
        n = n / sqrt(area)
        normal[k] = n
        offset[k] = n @ W[p]
    else:
        normal[k] = n * 0.0
        offset[k] = 1e300


@procedure
def foot_on_face(
    W: "float[:, 3]", A: "float[:, 3]", p: int, q: int, r: int, f: "float[3]", a: "float[3]"
) -> float:
    """The point of the first core at the origin's foot on a face, and its smallest weight there."""
    foot = f * (f @ W[p])
    x = cross(W[q] - foot, W[r] - foot) @ f
    y = cross(W[r] - foot, W[p] - foot) @ f
    z = cross(W[p] - foot, W[q] - foot) @ f
    least = min(min(x, y), z) / (x + y + z)
    x = max(x, 0.0)
    y = max(y, 0.0)
    z = max(z, 0.0)
    total = x + y + z
    a[:] = (x * A[p] + y * A[q] + z * A[r]) / total
    return least


@procedure
def epa(
    shapes: Shapes,
    i: int,
    j: int,
    corners: "float[6, 3]",
    o: "float[3]",
    m: int,
    curved: bool,
    size: float,
    W4: "float[4, 3]",
    A4: "float[4, 3]",
    B4: "float[4, 3]",
    at4: "int[4, 2]",
    n: "float[3]",
    a: "float[3]",
    b: "float[3]",
) -> "(int, float, float)":
    """Status, upper and lower bound of the depth; the direction ``n`` in which the second leaves.

    The simplex of ``m`` corners comes from ``gjk``, ``a`` and ``b`` are the nearest points. Faces
    that are close to a curved surface are left to Newton's method, each of them.
    """
    W, A, B = local("float", 3, 512, 3)
    at = local("int", 512, 2)
    face = local("int", 1024, 3)
    normal = local("float", 1024, 3)
    offset = local("float", 1024)
    rim = local("int", 256, 2)
    f, pa, pb = local("float", 3, 3)
    for k in range(m):
        W[k] = W4[k]
        A[k] = A4[k]
        B[k] = B4[k]
        at[k] = at4[k]
    n[:] = vector(0.0, 0.0, 1.0)
    if m < 4 and thicken(shapes, i, j, corners, o, m, W, A, B, at, n) < 4:
        return FLAT, 0.0, 0.0
    scale = 0.0
    for k in range(4):
        scale = max(scale, W[k] @ W[k])
    scale = sqrt(scale)
    count = 4
    turn = 0
    if cross(W[1] - W[0], W[2] - W[0]) @ (W[3] - W[0]) > 0:
        turn = 1
    centre = (W[0] + W[1] + W[2] + W[3]) / 4
    set_face(W, 0, 1 + turn, 2 - turn, centre, 0, face, normal, offset)
    set_face(W, 0, 3 - 2 * turn, 1 + 2 * turn, centre, 1, face, normal, offset)
    set_face(W, 1, 3 - turn, 2 + turn, centre, 2, face, normal, offset)
    set_face(W, 2, 3 - 3 * turn, 3 * turn, centre, 3, face, normal, offset)
    faces = 4
    best = 1e300  # upper bound
    status = FULL
    lower = 0.0
    polished = False
    while True:
        near = 0
        for k in range(1, faces):
            if offset[k] < offset[near]:
                near = k
        lower = offset[near]
        if lower >= best - 1e-12 * abs(best) - 1e-15 * scale:
            status = DONE
            break
        f[:] = normal[near]
        add_difference(shapes, i, j, corners, o, f, count, W, A, B, at)
        w = W[count]
        height = f @ w
        p = face[near, 0]
        q = face[near, 1]
        r = face[near, 2]
        old = False  # a corner already: what is beyond the face is rounding error
        for k in range(count):
            away = W[k] - w
            if away @ away <= _EVEN * _EVEN * scale * scale:
                old = True
        if curved and (old or height - lower <= _CLOSE * abs(height) + _NEAR * size):
            A4[0] = A[p]
            A4[1] = A[q]
            A4[2] = A[r]
            B4[0] = B[p]
            B4[1] = B[q]
            B4[2] = B[r]
            at4[0] = at[p]
            at4[1] = at[q]
            at4[2] = at[r]
            foot_on_face(W, A, p, q, r, f, pa)
            pb[:] = pa + height * f
            f[:] = -f
            wide, solved = refine(shapes, i, j, corners, o, A4, B4, at4, 3, size, -lower, f, pa, pb)
            if -wide < best:
                best = -wide
                polished = True
                n[:] = f
                a[:] = pa
                b[:] = pb
            if solved or old or height - lower <= _SHUT * (abs(height) + size):
                offset[near] = -wide
                continue
            f[:] = normal[near]
        if height < best:
            best = height
            polished = False
            foot_on_face(W, A, p, q, r, f, pa)
            n[:] = -f
            a[:] = pa
            b[:] = pa + best * f
        if height - lower <= _EVEN * scale:
            status = DONE
            break
        if old:
            offset[near] = height
            continue
        if count + 2 > _CORNERS:
            break
        scale = max(scale, sqrt(w @ w))
        # the faces that the new corner sees go; edges that only one of them has are the rim
        rims = 0
        k = 0
        while k < faces:
            if normal[k] @ w - min(offset[k], 1e200) > _EVEN * scale or k == near:
                for side in range(3):
                    p = face[k, side]
                    q = face[k, (side + 1) % 3]
                    back = -1
                    for e in range(rims):
                        if rim[e, 0] == q and rim[e, 1] == p:
                            back = e
                    if back >= 0:
                        rims -= 1
                        rim[back] = rim[rims]
                    elif rims < _RIM:
                        rim[rims, 0] = p
                        rim[rims, 1] = q
                        rims += 1
                faces -= 1
                face[k] = face[faces]
                normal[k] = normal[faces]
                offset[k] = offset[faces]
                if near == k:
                    near = -1
                elif near == faces:
                    near = k
            else:
                k += 1
        if faces + rims > _FACES:
            break
        for e in range(rims):
            set_face(W, rim[e, 0], rim[e, 1], count, centre, faces, face, normal, offset)
            faces += 1
        count += 1
    if not polished:
        # of the triangles of a flat face the one that the foot is in
        inside = -1e300
        for k in range(faces):
            if normal[k] @ n < -1 + 1e-12 and abs(offset[k] - best) <= 1e-12 * scale:
                f[:] = -n
                weight = foot_on_face(W, A, face[k, 0], face[k, 1], face[k, 2], f, pa)
                if weight > inside:
                    inside = weight
                    a[:] = pa
                    b[:] = pa - best * n
    return status, best, lower
