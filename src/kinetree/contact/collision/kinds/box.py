"""Boxes: polyhedra, of which ``boxes``, ``axes`` and ``polyhedra`` have narrow phases."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.collision.kinds.kind import SolidKind
from kinetree.contact.collision.kinds.lines import NONE, entry


@procedure(inline=True)
def support(size: "float[3]", d: "float[3]", x: "float[3]") -> int:
    """Support point of a box: its farthest corner along ``d``; returns the corner's number."""
    corner = 0
    x[:] = size
    if d[0] < 0:
        x[0] = -size[0]
        corner += 1
    if d[1] < 0:
        x[1] = -size[1]
        corner += 2
    if d[2] < 0:
        x[2] = -size[2]
        corner += 4
    return corner


@procedure
def face(size: "float[3]", d: "float[3]", tilt: float, out: "float[16, 3]") -> int:
    """Corners of a box's face, edge or corner farthest along ``d``, up to a tilt; their number."""
    x = size[0] if d[0] >= 0 else -size[0]
    y = size[1] if d[1] >= 0 else -size[1]
    z = size[2] if d[2] >= 0 else -size[2]
    flat_x = abs(d[0]) <= tilt
    flat_y = abs(d[1]) <= tilt
    flat_z = abs(d[2]) <= tilt
    n = 0
    # signs of the corners, in order around d
    for k in range(4):
        u = 1.0 if k == 0 or k == 3 else -1.0
        v = 1.0 if k < 2 else -1.0
        fx = x
        fy = y
        fz = z
        use = True
        if flat_x and flat_y:
            fx = u * size[0] if d[2] >= 0 else v * size[0]
            fy = v * size[1] if d[2] >= 0 else u * size[1]
        elif flat_y and flat_z:
            fy = u * size[1] if d[0] >= 0 else v * size[1]
            fz = v * size[2] if d[0] >= 0 else u * size[2]
        elif flat_z and flat_x:
            fz = u * size[2] if d[1] >= 0 else v * size[2]
            fx = v * size[0] if d[1] >= 0 else u * size[0]
        elif flat_x:
            fx = size[0] if k == 0 else -size[0]
            use = k < 2
        elif flat_y:
            fy = size[1] if k == 0 else -size[1]
            use = k < 2
        elif flat_z:
            fz = size[2] if k == 0 else -size[2]
            use = k < 2
        else:
            use = k < 1
        if use:
            out[n, 0] = fx
            out[n, 1] = fy
            out[n, 2] = fz
            n += 1
    return n


@procedure
def ray(size: "float[3]", x: "float[3]", v: "float[3]", n: "float[3]") -> float:
    """Ray parameter where a ray meets a box, and the normal there; ``NONE`` if it misses."""
    low = -NONE
    high = NONE
    into = 0
    out = 0
    for c in range(3):
        if v[c] == 0.0:
            if abs(x[c]) > size[c]:
                return NONE
        else:
            near = (-size[c] if v[c] > 0 else size[c]) - x[c]
            last = (size[c] if v[c] > 0 else -size[c]) - x[c]
            if near / v[c] > low:
                low = near / v[c]
                into = c
            if last / v[c] < high:
                high = last / v[c]
                out = c
    t = entry(low, high)
    k = into if low >= 0 else out
    n[:] = 0.0
    n[k] = 1.0 if (v[k] > 0) == (low < 0) else -1.0
    return t


@procedure(inline=True)
def clip(size: "float[3]", x: "float[3]") -> None:
    """Move a point to the nearest point of a box, in the box's coordinates."""
    for c in range(3):
        x[c] = min(max(x[c], -size[c]), size[c])


@procedure
def contains(size: "float[3]", x: "float[3]", slack: float) -> bool:
    """Whether a point is inside a box, with slack [m]."""
    past = abs(x) - size
    return max(max(past[0], past[1]), past[2]) <= slack


@procedure(inline=True)
def reach(size: "float[3]", x: float, y: float, z: float) -> float:
    """Support function of a box: its extent from the centre along a unit direction [m]."""
    return abs(x) * size[0] + abs(y) * size[1] + abs(z) * size[2]


KIND = SolidKind(support, ray, clip, contains, face, reach=reach, has_feet=True)
