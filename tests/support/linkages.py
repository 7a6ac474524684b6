"""Planar linkages with one freedom: as models with a loop, and as textbook formulas.

The formulas use nothing of kinetree: positions in the plane as functions of the crank angle, and
Lagrange's equation M(y) ydd + M'(y) yd²/2 + V'(y) = u with derivatives taken in 50 digits.
"""

from dataclasses import dataclass

import mpmath as mp
import numpy as np

from kinetree.joints import Prismatic, Revolute
from kinetree.model import ModelBuilder
from kinetree.samples import random_placement
from kinetree.spatial import Inertia, Plucker

GRAVITY = 9.81


@dataclass(frozen=True)
class Link:
    """A planar body: mass, distance of its mass centre along x, inertia about it."""

    m: float
    c: float
    I: float

    def inertia(self):
        # a little thickness: no moment may exceed the sum of the other two
        return Inertia.from_mass_center(
            self.m, (self.c, 0.0, 0.0), np.diag([0.3, 0.8, 1.0]) * self.I
        )


CRANK, COUPLER, ROCKER = Link(1.2, 0.11, 0.02), Link(0.8, 0.25, 0.03), Link(1.5, 0.2, 0.04)
L1, L2, L3, D = 0.2, 0.5, 0.4, 0.45


def _frame(rng):
    """Where the plane of the linkage lies in space; anywhere if there is an rng."""
    return Plucker(np.eye(3), np.zeros(3)) if rng is None else random_placement(rng)


def four_bar(rng=None):
    """Crank and rocker on the base, coupler on the crank; a revolute joint closes the loop."""
    F = _frame(rng)
    ground = Plucker(F.E, F.r + F.E.T @ np.array([D, 0, 0]))
    return (
        ModelBuilder("four-bar", gravity=F.E.T @ np.array([0, -GRAVITY, 0]))
        .body("crank", joint=Revolute("z"), at=F, inertia=CRANK.inertia())
        .body("coupler", on="crank", joint=Revolute("z"), at=(L1, 0, 0), inertia=COUPLER.inertia())
        .body("rocker", joint=Revolute("z"), at=ground, inertia=ROCKER.inertia())
        .loop(
            "pin",
            predecessor="coupler",
            successor="rocker",
            joint=Revolute("z"),
            at=(L2, 0, 0),
            successor_at=(L3, 0, 0),
        )
        .build()
    )


def crank_slider(rng=None):
    """Crank on the base, rod on the crank, slider on the base; the rod's end pins the slider."""
    F = _frame(rng)
    return (
        ModelBuilder("crank-slider", gravity=F.E.T @ np.array([0, -GRAVITY, 0]))
        .body("crank", joint=Revolute("z"), at=F, inertia=CRANK.inertia())
        .body("rod", on="crank", joint=Revolute("z"), at=(L1, 0, 0), inertia=COUPLER.inertia())
        .body("slider", joint=Prismatic("x"), at=F, inertia=ROCKER.inertia())
        .loop("pin", predecessor="rod", successor="slider", joint=Revolute("z"), at=(L2, 0, 0))
        .build()
    )


def four_bar_positions(y):
    """Joint variables q = gamma(y) of ``four_bar`` for the crank angle, and the bodies.

    Each body is (link, x, y, angle) with the position of its mass centre.
    """
    px, py = D - L1 * mp.cos(y), -L1 * mp.sin(y)  # from the crank pin to the rocker's bearing
    e2 = px**2 + py**2
    e = mp.sqrt(e2)
    # coupler angle: law of cosines in the triangle with sides L2, L3, e
    a = mp.atan2(py, px) + mp.acos((L2**2 + e2 - L3**2) / (2 * L2 * e))
    b = mp.atan2(-py + L2 * mp.sin(a), -px + L2 * mp.cos(a))
    bodies = (
        (CRANK, CRANK.c * mp.cos(y), CRANK.c * mp.sin(y), y),
        (
            COUPLER,
            L1 * mp.cos(y) + COUPLER.c * mp.cos(a),
            L1 * mp.sin(y) + COUPLER.c * mp.sin(a),
            a,
        ),
        (ROCKER, D + ROCKER.c * mp.cos(b), ROCKER.c * mp.sin(b), b),
    )
    return [y, a - y, b], bodies


def crank_slider_positions(y):
    """The same for ``crank_slider``."""
    a = -mp.asin(L1 * mp.sin(y) / L2)
    x = L1 * mp.cos(y) + L2 * mp.cos(a)
    bodies = (
        (CRANK, CRANK.c * mp.cos(y), CRANK.c * mp.sin(y), y),
        (
            COUPLER,
            L1 * mp.cos(y) + COUPLER.c * mp.cos(a),
            L1 * mp.sin(y) + COUPLER.c * mp.sin(a),
            a,
        ),
        (ROCKER, x + ROCKER.c, mp.mpf(0), mp.mpf(0)),
    )
    return [y, a - y, x], bodies


def explicit(positions, y, yd):
    """q, G, g of the explicit constraint q = gamma(y), as floats."""
    with mp.workdps(50):
        y = mp.mpf(y)
        q = positions(y)[0]
        G = [mp.diff(lambda y, n=n: positions(y)[0][n], y) for n in range(len(q))]
        g = [mp.diff(lambda y, n=n: positions(y)[0][n], y, 2) * yd**2 for n in range(len(q))]
    return tuple(np.array([float(x) for x in part]) for part in (q, G, g))


def lagrange(positions, y, yd, u):
    """ydd of the linkage by Lagrange's equation for the one coordinate y."""
    with mp.workdps(50):
        y = mp.mpf(y)

        def M(y):
            return sum(
                link.m
                * sum(mp.diff(lambda y, k=k, n=n: positions(y)[1][n][k], y) ** 2 for k in (1, 2))
                + link.I * mp.diff(lambda y, n=n: positions(y)[1][n][3], y) ** 2
                for n, (link, *_) in enumerate(positions(y)[1])
            )

        def V(y):
            return sum(link.m * GRAVITY * h for link, _, h, _ in positions(y)[1])

        return float((u - mp.diff(M, y) * yd**2 / 2 - mp.diff(V, y)) / M(y))
