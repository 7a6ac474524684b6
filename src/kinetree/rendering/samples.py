"""Colours of samples of triangles, many at a time.

Triangles, their corners and texels of the map of shadows are read one by one, for they follow no
pattern; everything else is arithmetic on rows of numbers, which the processor does as vectors.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, workspace
from kinetree.rendering.shading import GLANCING, lit_texels, shade_plane
from kinetree.rendering.tables import DEPTH, NODE, PIXELS, TILE, Shot

BATCH = 128
_ALIKE = 0.9  # cosine between normals of triangles that share a colour within a pixel


@workspace
class ColorSamples:
    """ColorSamples whose colours are computed at once, of one tile.

    Attributes:
        left: first column of the tile's samples.
        top: first row.
        opacity: of the surfaces.
        count: number of samples.
        pixel: pixel of the tile that each belongs to.
        share: of each in the colour of its pixel.
        column: where each is.
        row: where each is.
        near: inverse depth.
        normal: in the coordinates of the base, of any length.
        color: of the surface, then of the sample.
        texel: column, row and nearness in the map of shadows.
        slope: cosine of the angle between the normal and the sun.
        level: brightness without the sun.
        shine: of the sun on a smooth surface.
        reached: how much of the sun comes there.
    """

    left: int
    top: int
    opacity: float
    count: int
    pixel: "int[BATCH]"
    share: "float[BATCH]"
    column: "float[BATCH]"
    row: "float[BATCH]"
    near: "float[BATCH]"
    normal: "float[3, BATCH]"
    color: "float[3, BATCH]"
    texel: "float[3, BATCH]"
    slope: "float[BATCH]"
    level: "float[BATCH]"
    shine: "float[BATCH]"
    reached: "float[BATCH]"


@procedure
def blend(
    shot: Shot, face: "int[:]", left: int, top: int, opacity: float, color: "float[3, PIXELS]"
) -> None:
    """Blend the samples of a tile into the colours of its pixels.

    Args:
        shot: the picture.
        face: triangle of each sample of the tile.
        left: first column of the tile's pixels.
        top: first row.
        opacity: of the surfaces.
        color: of the pixels.
    """
    view = shot.view
    n = view.samples
    row = n * n * TILE
    s = local(ColorSamples)
    s.left = left * n
    s.top = top * n
    s.opacity = opacity
    s.count = 0
    for j in range(min(TILE, view.height - top)):
        seen = -1  # where all numbers of triangles are -1
        for k in range(j * row, (j + 1) * row):
            seen = seen & face[k]
        if seen != -1:
            for i in range(min(TILE, view.width - left)):
                take_pixel(shot, s, face, i, j, color)
    add_colors(shot, s, color)


@procedure
def take_pixel(
    shot: Shot, s: ColorSamples, face: "int[:]", i: int, j: int, color: "float[3, PIXELS]"
) -> None:
    """Append the samples of a pixel to the list, equal-looking neighbours merged.

    Args:
        shot: the picture.
        s: where they go.
        face: triangle of each sample of the tile.
        i: column of the pixel in the tile.
        j: its row.
        color: of the pixels.
    """
    n = shot.view.samples
    side = TILE * n
    start = j * n * side + i * n
    first = face[start]
    alike = True
    count = 0
    for b in range(n):
        for a in range(n):
            k = face[start + b * side + a]
            alike = alike & (k == first)
            count += 1 if k >= 0 else 0
    if count == 0:
        return
    pixel = j * TILE + i
    share = s.opacity / (n * n)
    for c in range(3):
        color[c, pixel] *= 1 - share * count
    if alike:
        middle = 0.5 * (n - 1)
        take_sample(shot, s, first, i * n + middle, j * n + middle, pixel, share * count, color)
        return
    run = 0  # samples that the first of them stands for
    last = -1
    shown = -1
    x = 0.0
    y = 0.0
    for b in range(n):
        for a in range(n):
            k = face[start + b * side + a]
            if k < 0:
                continue
            if run == 0 or not (k == last or looks_alike(shot, k, last)):
                if run > 0:
                    take_sample(shot, s, shown, x, y, pixel, share * run, color)
                run = 0
                shown = k
                x = float(i * n + a)
                y = float(j * n + b)
            run += 1
            last = k
    take_sample(shot, s, shown, x, y, pixel, share * run, color)


@procedure
def looks_alike(shot: Shot, k: int, m: int) -> bool:
    """Whether two triangles belong to one part and have nearly equal normals."""
    s = shot.surfaces
    a = shot.work.face[k]
    b = shot.work.face[m]
    if a < 0 or b < 0 or s.owner[a] != s.owner[b]:
        return False
    return s.normal[s.face[a, 0]] @ s.normal[s.face[b, 0]] > _ALIKE


@procedure
def take_sample(
    shot: Shot,
    s: ColorSamples,
    k: int,
    x: float,
    y: float,
    pixel: int,
    share: float,
    color: "float[3, PIXELS]",
) -> None:
    """Append a triangle's sample to the list; add a plane's sample to its pixel's colour at once.

    Args:
        shot: the picture.
        s: where it goes.
        k: number of the triangle.
        x: column of the sample in the tile.
        y: its row.
        pixel: of the tile.
        share: in the colour of the pixel.
        color: of the pixels.
    """
    tables = shot.surfaces
    f = shot.work.linear[k]
    face = shot.work.face[k]
    i = s.left + x
    j = s.top + y
    if face < 0:
        one = local("float", 3)
        shade_plane(shot, k, i, j, one)
        for c in range(3):
            color[c, pixel] += share * one[c]
        return
    if s.count == BATCH:
        add_colors(shot, s, color)
    m = s.count
    part = tables.owner[face]
    u = max(f[0] * i + f[1] * j + f[2], 0.0)
    v = max(f[3] * i + f[4] * j + f[5], 0.0)
    w = max(f[6] * i + f[7] * j + f[8], 0.0)
    p = tables.normal[tables.face[face, 0]]
    q = tables.normal[tables.face[face, 1]]
    r = tables.normal[tables.face[face, 2]]
    n = u * p + v * q + w * r
    P = shot.poses[tables.part[part, NODE]]
    for c in range(3):
        s.normal[c, m] = P[4 * c] * n[0] + P[4 * c + 1] * n[1] + P[4 * c + 2] * n[2]
        s.color[c, m] = tables.color[part, c]
    s.near[m] = f[DEPTH] * i + f[DEPTH + 1] * j + f[DEPTH + 2]
    s.column[m] = i
    s.row[m] = j
    s.pixel[m] = pixel
    s.share[m] = share
    s.count = m + 1


@procedure
def add_colors(shot: Shot, s: ColorSamples, color: "float[3, PIXELS]") -> None:
    """Shade all listed samples, add them to their pixels, and clear the list."""
    light_up(shot, s)
    light = shot.light
    for m in range(s.count):
        has_shadow = light.shadow > 0.0 and s.slope[m] > GLANCING
        s.reached[m] = (
            lit_texels(light, s.texel[0, m], s.texel[1, m], s.texel[2, m]) if has_shadow else 1.0
        )
    for m in range(s.count):
        level = s.level[m] + 0.52 * max(s.slope[m], 0.0) * s.reached[m]
        shine = s.shine[m] * s.reached[m]
        share = s.share[m]
        s.color[0, m] = share * min(max(s.color[0, m] * level + shine, 0.0), 1.0)
        s.color[1, m] = share * min(max(s.color[1, m] * level + shine, 0.0), 1.0)
        s.color[2, m] = share * min(max(s.color[2, m] * level + shine, 0.0), 1.0)
    for m in range(s.count):
        k = s.pixel[m]
        color[0, k] += s.color[0, m]
        color[1, k] += s.color[1, m]
        color[2, k] += s.color[2, m]
    s.count = 0


@procedure
def light_up(shot: Shot, s: ColorSamples) -> None:
    """Compute skylight and shadow-map coordinates of all samples in a tile's list.

    Numbers of all samples are read before the loop, or it would read them for each: it writes
    arrays, and they are in arrays.
    """
    view = shot.view
    light = shot.light
    A = view.axes
    B = shot.sun.axes
    step = view.pixel / view.samples
    middle_x = 0.5 * view.width * view.samples - 0.5
    middle_y = 0.5 * view.height * view.samples - 0.5
    ax, ay, az = A[0, 0], A[0, 1], A[0, 2]
    bx, by, bz = A[1, 0], A[1, 1], A[1, 2]
    cx, cy, cz = A[2, 0], A[2, 1], A[2, 2]
    sx, sy, sz = light.sun[0], light.sun[1], light.sun[2]
    hx, hy, hz = light.shine[0], light.shine[1], light.shine[2]
    ux, uy, uz = light.up[0], light.up[1], light.up[2]
    ex = view.eye[0] - shot.sun.eye[0]
    ey = view.eye[1] - shot.sun.eye[1]
    ez = view.eye[2] - shot.sun.eye[2]
    px, py, pz = B[0, 0], B[0, 1], B[0, 2]
    qx, qy, qz = B[1, 0], B[1, 1], B[1, 2]
    rx, ry, rz = B[2, 0], B[2, 1], B[2, 2]
    scale = light.scale
    half = 0.5 * light.size - 0.5
    far = shot.sun.near
    bias = light.bias
    for m in range(s.count):
        x = (s.column[m] - middle_x) * step
        y = (middle_y - s.row[m]) * step
        dx = ax * x + bx * y - cx
        dy = ay * x + by * y - cy
        dz = az * x + bz * y - cz
        nx = s.normal[0, m]
        ny = s.normal[1, m]
        nz = s.normal[2, m]
        size = sqrt(nx * nx + ny * ny + nz * nz)
        e = 1 / size if size > 0.0 else 0.0
        e = -e if nx * dx + ny * dy + nz * dz > 0.0 else e  # both sides are lit
        nx = nx * e
        ny = ny * e
        nz = nz * e
        depth = 1 / max(s.near[m], 1e-30)
        dx = ex + depth * dx
        dy = ey + depth * dy
        dz = ez + depth * dz
        slope = nx * sx + ny * sy + nz * sz
        s.slope[m] = slope
        s.texel[0, m] = (px * dx + py * dy + pz * dz) * scale + half
        s.texel[1, m] = half - (qx * dx + qy * dy + qz * dz) * scale
        s.texel[2, m] = far + (rx * dx + ry * dy + rz * dz) + bias * (7.0 - 6.0 * slope)
        s.level[m] = 0.44 + 0.14 * (nx * ux + ny * uy + nz * uz)
        h = max(nx * hx + ny * hy + nz * hz, 0.0)
        h2 = h * h
        h4 = h2 * h2
        h8 = h4 * h4
        h16 = h8 * h8
        shine = 0.16 * (h16 * h16 * h8)  # the power 40
        s.shine[m] = shine if slope > 0.0 else 0.0
