"""Lengths of paths through space and over joints, with their moment arms, body by body.

A straight piece of a path is a line with Plücker coordinates ``ℓ = (p_a × u, u)``, where ``u`` is
the unit vector from ``a`` to ``b``. One body carries its end and another its beginning, so that

    dL/dt = ℓ · (v_b - v_a) = Σ_k ± ℓ · S_k qd_k

over the joints between them. Where a path winds around a shape, its length is stationary in the
points where it touches it: these count as points of the body that has the shape.

Each piece is seen from the last body that carries all of its ends, so that far from the origin of
the base nothing is lost, and joints that carry both ends have exactly no arm.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.errors import ModelError
from kinetree.model.coupling import Coupling, exact
from kinetree.model.names import number_of
from kinetree.model.tendon import Tendon, spans_with_divisors
from kinetree.model.wrapping import TINY, way_around
from kinetree.spatial import Force
from kinetree.spatial.ops import less, select, sqrt
from kinetree.spatial.vector3 import cross


def tendon_motion(model, tendon, q) -> tuple[Any, Any]:
    """Length of a tendon and its gradient ``∂L/∂q``, (nv,), without couplings."""
    length, arms = exact(tendon.offset), np.zeros(model.nv, model.scalar_type(q))
    for i, c in zip(tendon.joints, tendon.coefficients, strict=True):
        length = length + exact(c) * q[model.q_slice[i].start]
        arms[model.v_slice[i].start] += exact(c)
    for first, wrap, last, divisor in spans_with_divisors(tendon):
        begin, end = model.frame(first), model.frame(last)
        about = [] if wrap is None else [model.frame(x) for x in (wrap.frame, wrap.side) if x]
        seen = _View(model, q, [begin, end, *about])
        if wrap is None:
            distance, pulls = _straight(seen, begin, end)
        else:
            distance, pulls = _wrap(seen, begin, end, wrap)
        length = length + distance / exact(divisor)
        for i, f in pulls:
            for k in seen.between(i):
                share = seen.S[k].T @ (seen.X[k].star @ f)
                arms[model.v_slice[k]] = arms[model.v_slice[k]] + share / exact(divisor)
    return length, arms


class _View:
    """Some frames seen from the last body that carries all of them."""

    def __init__(self, model, q, frames):
        self.model = model
        ways = [model.support[f.body] for f in frames]
        shared = set.intersection(*map(set, ways))
        self.moved = sorted(set().union(*ways) - shared)
        self.X, self.S = {}, {}
        for i in self.moved:
            X_J, self.S[i], _, _ = model.jcalc(i, q, model.zero_velocity)
            X = X_J @ model.tree_transform[i]
            self.X[i] = X @ self.X[model.parent[i]] if model.parent[i] in self.X else X

    def between(self, body):
        """Numbers of the joints between the view's root body and a body."""
        return [k for k in self.model.support[body] if k in self.X]

    def point(self, frame):
        """Origin of a frame in the view's coordinates, (3,)."""
        r = frame.placement.r
        X = self.X.get(frame.body)
        return r if X is None else X.r + X.E.T @ r

    def axes(self, frame):
        """Axes of a frame in the view's coordinates, as rows (3, 3)."""
        X = self.X.get(frame.body)
        return frame.placement.E if X is None else frame.placement.E @ X.E


def _straight(seen, first, last):
    """Length of a straight span, and its gradient as forces on the two bodies."""
    length, line = _piece(seen.point(first), seen.point(last))
    return length, [(first.body, -line), (last.body, line)]


def _piece(a, b):
    """Length of the segment from ``a`` to ``b``, and its unit line force; 0 if they coincide."""
    d = b - a
    s = d @ d
    apart = less(TINY * TINY, s)
    size = sqrt(select(apart, s, 1 + 0 * s))
    u = d * select(apart, 1 / size, 0 * s)
    return select(apart, size, 0 * s), Force(cross(a, u), u)


def _wrap(seen, first, last, wrap):
    """Length of a span that may wrap around a shape, and its gradient as forces."""
    model = seen.model
    center = model.frame(wrap.frame)
    o, E = seen.point(center), seen.axes(center)
    p0, p1 = (seen.point(f) for f in (first, last))
    side = model.frame(wrap.side) if wrap.side else None
    if side is not None:
        on_shape = side.body == center.body  # where it is always
        r = center.placement.E @ (side.placement.r - center.placement.r)
        side = r if on_shape else E @ (seen.point(side) - o)
    way = way_around(wrap.shape, exact(wrap.radius), E @ (p0 - o), E @ (p1 - o), side)
    a, b = (o + E.T @ x for x in way.touching)
    (straight, direct), (before, come), (after, leave) = (
        _piece(p0, p1),
        _piece(p0, a),
        _piece(b, p1),
    )

    def choose(wound, otherwise):
        pairs = zip(wound.to_array(), otherwise.to_array(), strict=True)
        return Force.from_array(np.array([select(way.wraps, x, y) for x, y in pairs]))

    pulls = [
        (first.body, -choose(come, direct)),
        (center.body, choose(come - leave, direct * 0)),
        (last.body, choose(leave, direct)),
    ]
    return select(way.wraps, before + way.arc + after, straight), pulls


# --- joints that follow a tendon -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TendonLength:
    """Length of a tendon as a function of the joints that move it, one position each."""

    tendon: Tendon
    leaders: tuple[int, ...]
    """Numbers of these joints, each of one variable."""

    @classmethod
    def of(cls, mechanism: Any, tendon: Tendon) -> "TendonLength":
        """Length function of a tendon for a mechanism without couplings."""
        found = cls(tendon, tendon.moves_with(mechanism))
        found.__dict__["mechanism"] = mechanism
        return found

    @property
    def __name__(self) -> str:
        return self.tendon.name

    def __call__(self, *positions: Any) -> Any:
        """The length, for numbers of any kind."""
        m = self.__dict__["mechanism"]
        q = m.neutral().tolist()
        for i, x in zip(self.leaders, positions, strict=True):
            q[m.q_slice[i].start] = x
        return tendon_motion(m, self.tendon, np.array(q))[0]


def following_tendon(coupling: Coupling, tendons: Any, mechanism: Any) -> Coupling:
    """Coupling with the law by which its joint follows the length of a tendon.

    Args:
        coupling: with the name of the tendon.
        tendons: of the model.
        mechanism: the model without couplings.

    Raises:
        ModelError: for a tendon that a joint of several variables moves.
    """
    names, role = [t.name for t in tendons], f"tendon of coupling {coupling.name!r}"
    tendon = tendons[number_of(coupling.tendon, names, role, "model")]
    given = {"source": 0, "weights": (), "coefficients": (0.0, 1.0), "function": None}
    if not tendon.path:
        law = {"weights": tendon.coefficients, "coefficients": (tendon.offset, 1.0)}
        return replace(coupling, **given | law | {"sources": tendon.joints})
    length = TendonLength.of(mechanism, tendon)
    for i in length.leaders:
        if mechanism.joint[i].nv != 1:
            raise ModelError(
                f"coupling {coupling.name!r} follows tendon {tendon.name!r}, which joint "
                f"{mechanism.joint_names[i - 1]!r} moves with {mechanism.joint[i].nv} variables; "
                f"joints of one variable can lead"
            )
    return replace(coupling, **given | {"sources": length.leaders, "function": length})
