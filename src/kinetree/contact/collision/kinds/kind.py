"""Record of a kind of solid: procedures of collision in the solid's own coordinates.

``size`` are its ``half_sizes``. A solid may be a *core* with a ball of radius ``size[0]`` around
every point of it, as a capsule is one around a segment: then ``support``, ``face`` and ``clip`` are
those of the core.
"""

from typing import NamedTuple

from kinetree.codegen.procedures import Procedure

SINGLE, EDGE, FACE, CROSSING, NONE = 0, 1, 2, 3, -1
"""What ``stand`` finds: the farthest point is single, or anywhere on an edge or face, or there is
none in this mode. ``CROSSING`` is for two edges."""

NEAR = 1e-6
"""Part of the size of a shape by which a point may miss a face, edge or corner."""
ALONG = 1e-12
"""By which the product of a face's normal and that of a contact may miss 1."""
DISC = 16
"""Corners of the polygon that stands for a flat round end."""
DISC_TURN = 6.283185307179586 / DISC
TILT = 2e-2
"""[rad] by which the direction may be wrong where Newton's method begins."""


class SolidKind(NamedTuple):
    """Procedures of a kind of solid, and what it is."""

    support: Procedure
    """``(size, d, x) -> corner``: the farthest point ``x`` along ``d``, and the number of its
    corner, 0 if there is none."""
    ray: Procedure
    """``(size, x, v, n) -> t``: where the ray ``x + t v`` meets the surface, ``lines.NONE`` where
    it does not, and the outward normal there."""
    clip: Procedure
    """``(size, x)``: a point that is in the solid, or near it, moved to the nearest point of it."""
    contains: Procedure
    """``(size, x, slack) -> bool``: whether a point is in the solid, or misses it by ``slack``."""
    face: Procedure | None = None
    """``(size, d, tilt, out) -> n``: corners of the face or edge within ``tilt`` (sine) of right
    angles to the unit direction ``d``, counter-clockwise seen from its tip; 0: one point, that of
    ``support``. None: always."""
    surface: Procedure | None = None
    """``(size, pose, x, n, normal, turn, travel) -> bool``: curvature at a point, see
    ``curvature``. None: a polyhedron."""
    reach: Procedure | None = None
    """``(size, x, y, z) -> float``: how far a solid that is symmetric about its centre goes along a
    unit direction. None: as far as its box."""
    stand: Procedure | None = None
    """``(size, mode, d, q, x, bend, e) -> status``: in a mode (face, edge, rim, ...), a point
    farthest along ``d``, derivative of it by ``d``, and the normal of the face; or, of an edge, the
    unit vector and number with ``e[:3] @ d == e[3]`` for directions in which the edge is farthest:
    an edge that does not turn has its own direction and zero. ``q`` is the point of the other
    shape: of edges that turn, ``x`` is the point next to it. None: all faces are flat."""
    within: Procedure | None = None
    """``(size, mode, x, slack) -> bool``: whether a point is on the edge or face of a mode."""
    modes: int = 0
    """Number of modes of ``stand``."""
    is_rounded: bool = False
    """Whether it is a core with a ball of radius ``size[0]`` around it."""
    is_rod: bool = False
    """Whether it is a cylinder or capsule: round about an axis from ``-size[1]`` to ``size[1]``."""
    has_feet: bool = False
    """Whether ``on_fields.FEET`` has its contacts with height fields; otherwise it stands on them
    as a polyhedron whose corners are on its surface."""
