"""Triangles as linear functions of the samples of a picture, and the tiles that they are in.

A ray through a sample is ``r = (x, y, 1)`` in the coordinates of the view. It meets the plane of
the triangle a, b, c at the depth ``1/w``, ``w = N·r / N·a`` with ``N = (b - a)×(c - a)``, inside of
it where ``r·(b×c)``, ``r·(c×a)`` and ``r·(a×b)`` have the sign of ``N·a``: all four are linear in x
and y, also where corners are behind the eye, so that nothing is clipped.

M. Olano, T. Greer, "Triangle scan conversion using 2D homogeneous coordinates", 1997.
"""

from math import ceil, floor

from kinetree.codegen.procedures import cross, isfinite, local, procedure, vector
from kinetree.rendering.tables import (
    BOTTOM,
    CLOSED,
    DEPTH,
    FACE,
    FACES,
    GROUP,
    KIND,
    LEFT,
    NODE,
    PLANE,
    RIGHT,
    TILE,
    TOP,
    VERTEX,
    VERTICES,
    Shot,
    Surfaces,
    TileWork,
    View,
)

ROOM = 1  # there are more triangles in tiles than there is room for
_EDGE = 1e-12  # of the size of a linear function: its rounding error must not open seams


@procedure
def pose_in_view(view: View, P: "float[12]", out: "float[12]") -> None:
    """Pose of a node in view coordinates: right, up, depth."""
    A = view.axes
    for r in range(3):
        sign = -1.0 if r == 2 else 1.0
        x = sign * A[r, 0]
        y = sign * A[r, 1]
        z = sign * A[r, 2]
        for c in range(3):
            out[4 * r + c] = x * P[c] + y * P[4 + c] + z * P[8 + c]
        out[4 * r + 3] = (
            x * (P[3] - view.eye[0]) + y * (P[7] - view.eye[1]) + z * (P[11] - view.eye[2])
        )


@procedure
def move(Q: "float[12]", p: "float[3]", out: "float[3]") -> None:
    """Transform a point by the pose ``Q`` (3 x 4, row by row)."""
    out[0] = Q[0] * p[0] + Q[1] * p[1] + Q[2] * p[2] + Q[3]
    out[1] = Q[4] * p[0] + Q[5] * p[1] + Q[6] * p[2] + Q[7]
    out[2] = Q[8] * p[0] + Q[9] * p[1] + Q[10] * p[2] + Q[11]


@procedure
def on_samples(view: View, n: "float[3]", out: "float[:]", at: int, slack: float) -> None:
    """Write ``n·(x, y, 1)`` as linear coefficients by sample column and row."""
    step = view.pixel / view.samples
    x = (0.5 - 0.5 * view.width * view.samples) * step
    y = (0.5 * view.height * view.samples - 0.5) * step
    size = abs(n[0] * x) + abs(n[1] * y) + abs(n[2])
    out[at] = n[0] * step
    out[at + 1] = -n[1] * step
    out[at + 2] = n[0] * x + n[1] * y + n[2] + slack * size


@procedure
def bounding_rows(view: View, a: "float[3]", b: "float[3]", c: "float[3]", out: "int[4]") -> bool:
    """Write the sample bounds of a triangle; whether it covers any sample."""
    low = local("float", 2)
    high = local("float", 2)
    last_column = view.width * view.samples - 1
    last_row = view.height * view.samples - 1
    out[LEFT] = 0
    out[RIGHT] = last_column
    out[TOP] = 0
    out[BOTTOM] = last_row
    if not view.parallel:
        if max(a[2], b[2], c[2]) <= view.near:
            return False
        if min(a[2], b[2], c[2]) <= view.near:
            return True
    u = 1.0 if view.parallel else 1 / a[2]
    v = 1.0 if view.parallel else 1 / b[2]
    w = 1.0 if view.parallel else 1 / c[2]
    for k in range(2):
        low[k] = min(a[k] * u, b[k] * v, c[k] * w)
        high[k] = max(a[k] * u, b[k] * v, c[k] * w)
    scale = view.samples / view.pixel
    x = 0.5 * view.width * view.samples - 0.5
    y = 0.5 * view.height * view.samples - 0.5
    # Far outside, rows and columns would not be integers.
    left = min(max(low[0] * scale + x - 1e-6, -1.0), last_column + 2.0)
    right = min(max(high[0] * scale + x + 1e-6, -2.0), last_column + 1.0)
    top = min(max(y - high[1] * scale - 1e-6, -1.0), last_row + 2.0)
    bottom = min(max(y - low[1] * scale + 1e-6, -2.0), last_row + 1.0)
    out[LEFT] = max(0, ceil(left))
    out[RIGHT] = min(last_column, floor(right))
    out[TOP] = max(0, ceil(top))
    out[BOTTOM] = min(last_row, floor(bottom))
    return out[LEFT] <= out[RIGHT] and out[TOP] <= out[BOTTOM]


@procedure
def faces_away(view: View, a: "float[3]", b: "float[3]", c: "float[3]") -> bool:
    """Whether a triangle shows its back, rounded as in ``set_edges``."""
    n = cross(b - a, c - a)
    return n[2] <= 0.0 if view.parallel else n @ a <= 0.0


@procedure
def set_edges(
    view: View, a: "float[3]", b: "float[3]", c: "float[3]", closed: bool, f: "float[12]"
) -> bool:
    """Write edge and depth functions of a triangle; whether it is visible."""
    n = local("float", 3)
    n[:] = cross(b - a, c - a)
    if view.parallel:
        # Edges in the plane, and depth below the farthest.
        if n[2] == 0.0 or (closed and n[2] < 0.0):
            return False
        e = 1 / n[2]
        on_samples(
            view, vector(b[1] - c[1], c[0] - b[0], b[0] * c[1] - b[1] * c[0]) * e, f, 0, _EDGE
        )
        on_samples(
            view, vector(c[1] - a[1], a[0] - c[0], c[0] * a[1] - c[1] * a[0]) * e, f, 3, _EDGE
        )
        on_samples(
            view, vector(a[1] - b[1], b[0] - a[0], a[0] * b[1] - a[1] * b[0]) * e, f, 6, _EDGE
        )
        h = (n @ a) * e
        on_samples(view, vector(n[0] * e, n[1] * e, view.near - h), f, DEPTH, 0.0)
        return True
    v = n @ a
    if v == 0.0 or (closed and v < 0.0) or not isfinite(1 / v):
        return False
    e = 1 / v
    on_samples(view, cross(b, c) * e, f, 0, _EDGE)
    on_samples(view, cross(c, a) * e, f, 3, _EDGE)
    on_samples(view, cross(a, b) * e, f, 6, _EDGE)
    on_samples(view, n * e, f, DEPTH, 0.0)
    return True


@procedure
def set_plane(view: View, a: "float[3]", b: "float[3]", c: "float[3]", f: "float[12]") -> bool:
    """Write the linear depth function of an infinite plane; whether it is visible."""
    n = local("float", 3)
    n[:] = cross(b - a, c - a)
    v = n @ a
    if v == 0.0 or not isfinite(1 / v):
        return False
    for k in range(3):
        f[3 * k] = 0.0
        f[3 * k + 1] = 0.0
        f[3 * k + 2] = 1.0
    on_samples(view, n * (1 / v), f, DEPTH, 0.0)
    return True


@procedure
def see_triangles(shot: Shot, view: View, shadows: bool) -> None:
    """Collect the triangles that a view, or the shadow map, may see, group by group."""
    s = shot.surfaces
    shot.work.seen = 0
    for group in range(s.groups):
        for p in range(s.parts):
            P = shot.poses[s.part[p, NODE]]
            wanted = s.part[p, GROUP] == group and (not shadows or s.casts[p] != 0)
            if wanted and isfinite(P[3]):
                see_part(s, p, P, view, shot.work)


@procedure
def see_part(s: Surfaces, p: int, P: "float[12]", view: View, work: TileWork) -> None:
    """Collect the triangles of a part that a view may see."""
    start = s.part[p, VERTEX]
    Q = local("float", 12)
    pose_in_view(view, P, Q)
    for v in range(start, start + s.part[p, VERTICES]):
        move(Q, s.vertex[v], work.corner[v])
    kind = s.part[p, KIND]
    if kind == PLANE:
        k = work.seen
        work.bounds[k, LEFT] = 0
        work.bounds[k, RIGHT] = view.width * view.samples - 1
        work.bounds[k, TOP] = 0
        work.bounds[k, BOTTOM] = view.height * view.samples - 1
        if set_plane(
            view, work.corner[start], work.corner[start + 1], work.corner[start + 2], work.linear[k]
        ):
            work.face[k] = -1 - p
            work.seen += 1
        return
    for face in range(s.part[p, FACE], s.part[p, FACE] + s.part[p, FACES]):
        k = work.seen
        a = work.corner[s.face[face, 0]]
        b = work.corner[s.face[face, 1]]
        c = work.corner[s.face[face, 2]]
        if kind == CLOSED and faces_away(view, a, b, c):
            continue
        if bounding_rows(view, a, b, c, work.bounds[k]) and set_edges(
            view, a, b, c, kind == CLOSED, work.linear[k]
        ):
            work.face[k] = face
            work.seen += 1


@procedure
def sort_into_tiles(view: View, work: TileWork) -> int:
    """Sort triangles into the lists of tiles; ``ROOM`` if there are too many."""
    one = 1 / (TILE * view.samples)
    across = (view.width + TILE - 1) // TILE
    tiles = across * ((view.height + TILE - 1) // TILE)
    for t in range(tiles + 1):
        work.first[t] = 0
    for k in range(work.seen):
        for m in range(4):  # of integers, whose quotient is far enough from the next one
            work.tiles[k, m] = int((work.bounds[k, m] + 0.5) * one)
        for j in range(work.tiles[k, TOP], work.tiles[k, BOTTOM] + 1):
            for i in range(work.tiles[k, LEFT], work.tiles[k, RIGHT] + 1):
                work.first[j * across + i + 1] += 1
    for t in range(tiles):
        work.first[t + 1] += work.first[t]
    if work.first[tiles] > work.room:
        return ROOM
    for k in range(work.seen):
        for j in range(work.tiles[k, TOP], work.tiles[k, BOTTOM] + 1):
            for i in range(work.tiles[k, LEFT], work.tiles[k, RIGHT] + 1):
                t = j * across + i
                work.entry[work.first[t]] = k
                work.first[t] += 1
    for t in range(tiles, 0, -1):
        work.first[t] = work.first[t - 1]
    work.first[0] = 0
    return 0
