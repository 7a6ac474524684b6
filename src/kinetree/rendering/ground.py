"""The sky, and a ground with lines that fades into it, row by row."""

from kinetree.codegen.procedures import local, procedure, sqrt
from kinetree.rendering.shading import FAINT, SKY, lit_texels, nearest
from kinetree.rendering.tables import PIXELS, TILE, Shot


@procedure(inline=True)
def ground_in_row(shot: Shot, y: float, g: "float[14]") -> None:
    """Write coefficients of the ground along a row of pixels, for ``ground_at``.

    Coordinates in the ground, from its middle, are those of the eye plus depth times others.
    """
    view = shot.view
    ground = shot.ground
    A = view.axes
    up = ground.normal
    a = ground.along
    e = view.eye
    g[0] = A[0] @ up
    g[1] = (A[1] @ up) * y - A[2] @ up
    g[2] = e @ up - ground.height
    for c in range(2):
        g[3 + 4 * c] = a[c] @ e
        g[4 + 4 * c] = a[c] @ A[0]
        g[5 + 4 * c] = (a[c] @ A[1]) * y - a[c] @ A[2]
        g[6 + 4 * c] = a[c] @ ground.middle
    g[11] = 1 / ground.step
    g[12] = 1 / ground.reach
    wide = 0.525 * view.pixel * g[11] * max(g[2], 1e-30)
    g[13] = 1 / wide  # of a line at depth 1, in units of the step; it is wider where seen flatly


@procedure(inline=True)
def ground_at(g: "float[14]", x: float) -> "(float, float, float)":
    """Depth [m], line share and visibility (0 to 1) of the ground at a column of a row."""
    down = -(g[0] * x + g[1])
    z = g[2] / max(down, 1e-9)
    u = g[3] + z * (g[4] * x + g[5])
    w = g[7] + z * (g[8] * x + g[9])
    du = u - g[6]
    dw = w - g[10]
    away = max(1 - sqrt(du * du + dw * dw) * g[12], 0.0)
    p = u * g[11]
    q = w * g[11]
    near = min(abs(p - nearest(p)), abs(q - nearest(q)))
    sharp = g[13] * down * min(max(down, 0.05), 1.0)
    line = min(max(1.2 - near * sharp, 0.0), 0.8)
    fade = away * sqrt(away) if down > 1e-9 else 0.0
    return z, line, fade


@procedure
def may_be_shaded(shot: Shot, x0: float, x1: float, y: float, z0: float, z1: float) -> bool:
    """Whether points between two on a line may lie in the shadow map."""
    light = shot.light
    view = shot.view
    sun = shot.sun
    if light.shadow == 0.0:
        return False
    A = view.axes
    B = sun.axes
    half = 0.5 * light.size * sun.pixel
    p = view.eye + (A[0] * x0 + A[1] * y - A[2]) * z0 - sun.eye
    q = view.eye + (A[0] * x1 + A[1] * y - A[2]) * z1 - sun.eye
    for c in range(2):
        a = B[c] @ p
        b = B[c] @ q
        if max(a, b) < -half or min(a, b) > half:
            return False
    return True


@procedure
def backdrop(
    shot: Shot, left: int, top: int, right: int, bottom: int, color: "float[3, PIXELS]"
) -> None:
    """Draw sky, and a ground with lines that fades into it, on a tile.

    Args:
        shot: the picture.
        left: first column of the tile.
        top: first row.
        right: end of the columns.
        bottom: end of the rows.
        color: of the pixels.
    """
    view = shot.view
    count = right - left
    g = local("float", 14)
    low, span = local("float", 2, 3)
    row, texel = local("float", 2, 3, TILE)
    ground = shot.ground
    for c in range(3):
        low[c] = ground.color[c]
        span[c] = ground.lines[c] - low[c]
    for j in range(top, bottom):
        y = (0.5 * view.height - j - 0.5) * view.pixel
        at = (j - top) * TILE
        if ground.drawn:
            ground_in_row(shot, y, g)
        first = (left + 0.5 - 0.5 * view.width) * view.pixel
        last = (left + count - 0.5 - 0.5 * view.width) * view.pixel
        down = max(-(g[0] * first + g[1]), -(g[0] * last + g[1]))
        if not ground.drawn or not (g[2] > 0.0 and down > 1e-9):
            for c in range(3):
                for i in range(count):
                    color[c, at + i] = SKY[c]
            continue
        for i in range(count):
            x = (left + i + 0.5 - 0.5 * view.width) * view.pixel
            z, line, fade = ground_at(g, x)
            color[0, at + i] = SKY[0] + fade * (low[0] + line * span[0] - SKY[0])
            color[1, at + i] = SKY[1] + fade * (low[1] + line * span[1] - SKY[1])
            color[2, at + i] = SKY[2] + fade * (low[2] + line * span[2] - SKY[2])
            row[0, i] = z
            row[1, i] = line
            row[2, i] = fade
        near = g[2] / max(-(g[0] * first + g[1]), 1e-9)
        far = g[2] / max(-(g[0] * last + g[1]), 1e-9)
        if may_be_shaded(shot, first, last, y, near, far):
            find_texels(shot, first, y, count, row, texel)
            darken(shot, count, row, texel, at, color)


@procedure
def find_texels(
    shot: Shot, x: float, y: float, count: int, row: "float[3, TILE]", texel: "float[3, TILE]"
) -> None:
    """Write shadow-map coordinates of a row of ground pixels.

    Args:
        shot: the picture.
        x: of the first pixel, at unit distance.
        y: of the row.
        count: of pixels.
        row: their depths, and so on.
        texel: columns, rows and nearness to the sun.
    """
    view = shot.view
    sun = shot.sun
    light = shot.light
    slope = shot.ground.normal @ light.sun
    start, ahead, aside = local("float", 3, 3)
    half = 0.5 * light.size - 0.5
    for c in range(3):  # of the eye, of a ray and of a step to the right, in texels
        scale = -light.scale if c == 1 else light.scale if c == 0 else 1.0
        shift = half if c < 2 else sun.near + light.bias * (7.0 - 6.0 * slope)
        B = sun.axes[c]
        start[c] = B @ (view.eye - sun.eye) * scale + shift
        ahead[c] = B @ (view.axes[0] * x + view.axes[1] * y - view.axes[2]) * scale
        aside[c] = B @ view.axes[0] * view.pixel * scale
    for c in range(3):
        a = start[c]
        b = ahead[c]
        s = aside[c]
        for i in range(count):
            texel[c, i] = a + row[0, i] * (b + s * i)


@procedure
def darken(
    shot: Shot,
    count: int,
    row: "float[3, TILE]",
    texel: "float[3, TILE]",
    at: int,
    color: "float[3, PIXELS]",
) -> None:
    """Darken a row of ground pixels that lie in shadow.

    Args:
        shot: the picture.
        count: of pixels.
        row: depths of the pixels, how much of each is line, how much is seen.
        texel: columns, rows and nearness in the map of shadows.
        at: the first pixel in the tile.
        color: of the pixels.
    """
    ground = shot.ground
    for i in range(count):
        fade = row[2, i]
        if fade > 0.0:
            reached = lit_texels(shot.light, texel[0, i], texel[1, i], texel[2, i])
            if reached < 1.0:
                dark = fade * FAINT * (1 - reached)
                for c in range(3):
                    tint = ground.color[c] + row[1, i] * (ground.lines[c] - ground.color[c])
                    color[c, at + i] -= tint * dark
