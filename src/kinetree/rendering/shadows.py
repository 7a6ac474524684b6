"""The map of shadows: what is first in the light of the sun."""

from kinetree.codegen.procedures import isfinite, local, procedure
from kinetree.rendering.tables import NODE, Shot
from kinetree.rendering.tiles import fill
from kinetree.rendering.triangles import move, pose_in_view, see_triangles


@procedure
def aim_sun(shot: Shot) -> bool:
    """Fit the shadow map's view to all shadow-casting parts; whether there are any."""
    s = shot.surfaces
    light = shot.light
    sun = shot.sun
    low, high, middle, corner, at = local("float", 5, 3)
    for c in range(3):
        sun.eye[c] = 0.0
        low[c] = 1e300
        high[c] = -1e300
    Q = local("float", 12)
    for p in range(s.parts):
        P = shot.poses[s.part[p, NODE]]
        if s.casts[p] == 0 or not isfinite(P[3]):
            continue
        pose_in_view(sun, P, Q)
        for v in range(8):
            corner[0] = s.box[p, 3 * (v & 1)]
            corner[1] = s.box[p, 1 + 3 * ((v >> 1) & 1)]
            corner[2] = s.box[p, 2 + 3 * (v >> 2)]
            move(Q, corner, at)
            for c in range(3):
                low[c] = min(low[c], at[c])
                high[c] = max(high[c], at[c])
    if not low[0] <= high[0]:
        return False
    wide = max(high[0] - low[0], high[1] - low[1], 1e-9)
    for c in range(3):
        middle[c] = 0.5 * (low[c] + high[c])
    A = sun.axes
    for c in range(3):
        sun.eye[c] = A[0, c] * middle[0] + A[1, c] * middle[1] - A[2, c] * middle[2]
    sun.pixel = 1.04 * wide / light.size
    sun.near = 0.5 * (high[2] - low[2]) + 2 * wide
    light.scale = 1 / sun.pixel
    light.bias = sun.pixel
    return True


@procedure
def cast_shadows(shot: Shot) -> None:
    """Draw the shadow map: nearness to the sun of the first surface on each ray."""
    light = shot.light
    if light.shadow == 0.0:
        return
    if not aim_sun(shot):
        light.shadow = 0.0
        return
    see_triangles(shot, shot.sun, True)
    for k in range(light.size * light.size):
        light.map[k] = 0.0
    for k in range(shot.work.seen):
        fill(shot.work, k, 0, 0, light.size, 1e300, light.map, light.face)
