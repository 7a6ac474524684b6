"""Depths and parts of many pictures, each by a group of threads of a GPU.

A thread takes a triangle. A small one it puts into the picture by itself; a large one it lists, and
then all threads put it there together. The picture is the largest inverse depth of each pixel, so
that the order does not matter: numbers are those of ``painting.measure_tiles`` to the last bit. A
second round says whose depth that is.
"""

from math import inf

from kinetree.codegen.device.groups import lower_to, next_number, raise_to
from kinetree.codegen.procedures import isfinite, local, procedure, record
from kinetree.rendering.tables import (
    BOTTOM,
    CLOSED,
    DEPTH,
    GROUP,
    KIND,
    LEFT,
    NODE,
    PLANE,
    RIGHT,
    TILE,
    TOP,
    VERTEX,
    Surfaces,
    View,
)
from kinetree.rendering.triangles import bounding_rows, faces_away, move, set_edges, set_plane

FEW = 64  # pixels of a triangle that one thread puts into a picture
ROOM = (
    128  # larger triangles of a picture that are listed; further ones are put there by one thread
)
_NOBODY = 1 << 40  # above all numbers of parts


@record
class Pictures:
    """Many pictures of the same surfaces and size.

    Attributes:
        surfaces: what there is.
        view: size and angle; eyes are in ``eyes``.
        nodes: of a picture.
        faces: of all parts.
        poses: of the nodes of one picture after the other, rows of matrices (3, 4).
        eyes: of each picture: position, then the axes of its view, as of ``View``.
        placed: poses of the parts in the coordinates of the view.
        large: faces that are listed, ``ROOM`` for each picture.
        listed: how many faces want to be in the list.
        wants_parts: whether parts are wanted.
        depth: inverse depths, then depths [m].
        part: numbers of parts.
    """

    surfaces: Surfaces
    view: View
    nodes: int
    faces: int
    poses: "float[:, 12]"
    eyes: "float[:, 12]"
    placed: "float[:, 12]"
    large: "int[:]"
    listed: "int[:]"
    wants_parts: bool
    depth: "float[:]"
    part: "int[:]"


@procedure
def turns(count: int, start: int, step: int) -> int:
    """Number of the values ``start``, ``start + step``, ... below ``count``."""
    return (count - start + step - 1) // step


@procedure
def begin(d: Pictures, image: int, start: int, step: int) -> None:
    """Clear a picture and transform its parts to the view."""
    s = d.surfaces
    pixels = d.view.width * d.view.height
    for turn in range(turns(pixels, start, step)):
        k = image * pixels + start + turn * step
        d.depth[k] = 0.0
        if d.wants_parts:
            d.part[k] = _NOBODY
    if start == 0:
        d.listed[image] = 0
    E = d.eyes[image]
    for turn in range(turns(s.parts, start, step)):
        p = start + turn * step
        P = d.poses[image * d.nodes + s.part[p, NODE]]
        Q = d.placed[image * s.parts + p]
        for r in range(3):
            sign = -1.0 if r == 2 else 1.0
            x = sign * E[3 + 3 * r]
            y = sign * E[4 + 3 * r]
            z = sign * E[5 + 3 * r]
            for c in range(3):
                Q[4 * r + c] = x * P[c] + y * P[4 + c] + z * P[8 + c]
            Q[4 * r + 3] = x * (P[3] - E[0]) + y * (P[7] - E[1]) + z * (P[11] - E[2])


@procedure(inline=True)
def place_face(d: Pictures, image: int, face: int, bounds: "int[4]", f: "float[12]") -> bool:
    """Write bounds and linear functions of a triangle or plane; whether it is visible."""
    s = d.surfaces
    view = d.view
    a, b, c = local("float", 3, 3)
    part = -1 - face if face < 0 else s.owner[face]
    Q = d.placed[image * s.parts + part]
    if s.part[part, GROUP] != 0 or not isfinite(Q[3]):
        return False
    if face < 0:
        v = s.part[part, VERTEX]
        move(Q, s.vertex[v], a)
        move(Q, s.vertex[v + 1], b)
        move(Q, s.vertex[v + 2], c)
        bounds[LEFT] = 0
        bounds[RIGHT] = view.width - 1
        bounds[TOP] = 0
        bounds[BOTTOM] = view.height - 1
        return set_plane(view, a, b, c, f)
    move(Q, s.vertex[s.face[face, 0]], a)
    move(Q, s.vertex[s.face[face, 1]], b)
    move(Q, s.vertex[s.face[face, 2]], c)
    closed = s.part[part, KIND] == CLOSED
    if closed and faces_away(view, a, b, c):
        return False
    if not bounding_rows(view, a, b, c, bounds):
        return False
    return set_edges(view, a, b, c, closed, f)


@procedure
def put(
    d: Pictures, image: int, part: int, f: "float[12]", i: int, j: int, most: float, last: bool
) -> None:
    """Update a pixel's depth with a triangle; in the last round record its part instead.

    Args:
        d: the pictures.
        image: number of the picture.
        part: what the triangle belongs to.
        f: its linear functions.
        i: column of the pixel.
        j: its row.
        most: largest inverse depth that is seen.
        last: whether this is the last round.
    """
    view = d.view
    left = i // TILE * TILE  # numbers are those of tiles
    x = i - left
    a = f[0] * left + f[1] * j + f[2]
    b = f[3] * left + f[4] * j + f[5]
    c = f[6] * left + f[7] * j + f[8]
    e = f[DEPTH] * left + f[DEPTH + 1] * j + f[DEPTH + 2]
    w = f[DEPTH] * x + e
    if min(f[0] * x + a, f[3] * x + b, f[6] * x + c) >= 0.0 and w <= most:
        k = (image * view.height + j) * view.width + i
        if last:
            if w == d.depth[k]:
                lower_to(d.part, k, part)
        elif w > d.depth[k]:
            raise_to(d.depth, k, w)


@procedure
def put_small(d: Pictures, image: int, start: int, step: int, last: bool) -> None:
    """Rasterise every ``step``-th small triangle of a picture, and list the large ones."""
    f = local("float", 12)
    bounds = local("int", 4)
    most = 1 / d.view.near
    for turn in range(turns(d.faces, start, step)):
        face = start + turn * step
        if place_face(d, image, face, bounds, f):
            wide = bounds[RIGHT] - bounds[LEFT] + 1
            if wide * (bounds[BOTTOM] - bounds[TOP] + 1) > FEW:
                n = d.listed[image] if last else next_number(d.listed, image)
                if last and n <= ROOM:
                    continue
                if not last and n < ROOM:
                    d.large[image * ROOM + n] = face
                    continue
            part = d.surfaces.owner[face]
            for j in range(bounds[TOP], bounds[BOTTOM] + 1):
                for i in range(bounds[LEFT], bounds[RIGHT] + 1):
                    put(d, image, part, f, i, j, most, last)


@procedure
def put_together(d: Pictures, image: int, face: int, start: int, step: int, last: bool) -> None:
    """Rasterise a share of the pixels of one large triangle or plane."""
    f = local("float", 12)
    bounds = local("int", 4)
    most = 1 / d.view.near
    part = -1 - face if face < 0 else d.surfaces.owner[face]
    if place_face(d, image, face, bounds, f):
        wide = bounds[RIGHT] - bounds[LEFT] + 1
        count = wide * (bounds[BOTTOM] - bounds[TOP] + 1)
        for turn in range(turns(count, start, step)):
            k = start + turn * step
            row = k // wide
            put(d, image, part, f, bounds[LEFT] + k - row * wide, bounds[TOP] + row, most, last)


@procedure
def put_large(d: Pictures, image: int, start: int, step: int, last: bool) -> None:
    """Rasterise the listed large triangles and the planes of a picture."""
    s = d.surfaces
    for n in range(min(d.listed[image], ROOM)):
        put_together(d, image, d.large[image * ROOM + n], start, step, last)
    for p in range(s.parts):
        if s.part[p, KIND] == PLANE:
            put_together(d, image, -1 - p, start, step, last)


@procedure
def see_small(d: Pictures, image: int, start: int, step: int) -> None:
    """Rasterise the depths of every ``step``-th small triangle of a picture."""
    put_small(d, image, start, step, False)


@procedure
def see_large(d: Pictures, image: int, start: int, step: int) -> None:
    """Rasterise the depths of a picture's listed large triangles and of its planes."""
    put_large(d, image, start, step, False)


@procedure
def name_parts(d: Pictures, image: int, start: int, step: int) -> None:
    """Record the visible part of every pixel, the first one of equal depths."""
    if d.wants_parts:
        put_small(d, image, start, step, True)
        put_large(d, image, start, step, True)


@procedure
def end(d: Pictures, image: int, start: int, step: int) -> None:
    """Convert a picture's inverse depths to depths [m], infinite where empty."""
    pixels = d.view.width * d.view.height
    for turn in range(turns(pixels, start, step)):
        k = image * pixels + start + turn * step
        near = d.depth[k]
        d.depth[k] = 1 / near if near > 0.0 else inf
        if d.wants_parts and d.part[k] == _NOBODY:
            d.part[k] = -1


PHASES = (begin, see_small, see_large, name_parts, end)


@procedure
def draw_all(d: Pictures, images: int, start: int, step: int) -> None:
    """Draw every ``step``-th picture completely in one CPU thread."""
    for turn in range(turns(images, start, step)):
        image = start + turn * step
        begin(d, image, 0, 1)
        see_small(d, image, 0, 1)
        see_large(d, image, 0, 1)
        name_parts(d, image, 0, 1)
        end(d, image, 0, 1)
