"""Mechanisms with loops: linkages, closed chains, constrained systems; errors of their loops."""

from dataclasses import dataclass
from functools import cache
from math import acos, pi

import mpmath as mp
import numpy as np

import kinetree as kt
from kinetree import samples
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.joints import Planar, Prismatic, Revolute
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.velocity_basis import velocity_basis
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.model import Loop, ModelBuilder
from kinetree.samples import random_placement
from kinetree.spatial import Inertia, Plucker

# --- Planar linkages with one freedom: as models with a loop, and as textbook formulas -----------
# The formulas use nothing of kinetree: positions in the plane as functions of the crank angle, and
# Lagrange's equation M(y) ydd + M'(y) yd²/2 + V'(y) = u with derivatives taken in 50 digits.


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


# --- Closed chains for tests of linear models: Spencer's parallel four-bar, and chains at random -


def offset_four_bar(z=1e-5):
    """A planar four-bar whose pin misses by ``z`` along its axis."""
    bar, hinge = kt.Inertia.from_mass_center(1.0, (0.1, 0, 0), np.eye(3) / 100), kt.Revolute("z")
    return (
        kt.ModelBuilder("offset")
        .body("crank", joint=hinge, inertia=bar)
        .body("coupler", on="crank", joint=hinge, at=(0.3, 0, 0), inertia=bar)
        .body("rocker", joint=hinge, at=(0.4, 0, 0), inertia=bar)
        .loop("pin", predecessor="coupler", successor="rocker", joint=hinge, at=(0.5, 0, 0),
              successor_at=(0.4, 0, z))
        .build()
    )  # fmt: skip


def parallel_four_bar(L1=1.3, L2=0.8):
    """The four-bar of Spencer's Figures 2.4 and A.1: links 1, and 2, 3, 4, cut at link 1."""
    z = kt.Revolute("z")

    def bar(mass, length):
        moment = mass * length**2 / 12
        center = np.array([length / 2, 0, 0])
        return Inertia.from_mass_center(mass, center, np.diag([0.01, moment, moment]))

    return (
        kt.ModelBuilder("parallel four-bar", gravity=(0, -9.81, 0))
        .body("1", joint=z, inertia=bar(1.0, L1), joint_name="q1")
        .body("2", joint=z, inertia=bar(2.0, L2), joint_name="q2")
        .body("3", on="2", joint=z, at=(L2, 0, 0), inertia=bar(1.5, L1), joint_name="q3")
        .body("4", on="3", joint=z, at=(L1, 0, 0), inertia=bar(1.2, L2), joint_name="q4")
        .loop("A", predecessor="1", successor="4", joint=z, at=(L1, 0, 0), successor_at=(L2, 0, 0))
        .build()
    )


def parallelogram(q1, q2):
    """Its joint variables on the branch of (2.48)."""
    return np.array([q1, q2, q1 - q2, q2 - q1 - np.pi])


def spatial_chain(rng, *joints, cut):
    """A chain whose end a loop joint ties to the base, and a configuration that closes it.

    The place of the loop joint follows from random positions of all joints.
    """
    builder = kt.ModelBuilder("spatial chain")
    for k, joint in enumerate(joints):
        builder.body(
            f"b{k}",
            on=f"b{k - 1}" if k else None,
            joint=joint,
            at=kt.samples.random_placement(rng),
            inertia=kt.samples.random_inertia(rng),
        )
    tree = builder.build()
    q = tree.random_configuration(rng)
    X_0 = base_transforms(tree, joint_transforms(tree, q)[0])
    X_p = kt.samples.random_placement(rng)
    X_s = cut.transform(cut.random(rng)) @ X_p @ X_0[-1].inverse()
    loop = Loop("cut", 0, tree.body_count, cut, X_p, X_s)
    return tree.replace(loops=(loop,)), q


def allowed_velocity(model, q, rng, size=1.0):
    """A random velocity that keeps the loops closed."""
    K = constraint(model, q, np.zeros(model.nv)).K
    G = velocity_basis(model, q, K, coordinates(model, K, "tangent")).G
    return G @ (size * rng.standard_normal(G.shape[1]))


# --- Constrained systems written by hand, and the mechanisms of Spencer's thesis -----------------


def pendulum(length=1.0, mass=1.0):
    """A point mass on a circle, in Cartesian coordinates; q[1] upwards."""
    return ConstrainedSystem(
        n=2, m=1,
        M=lambda q: mass * np.eye(2),
        F=lambda t, q, v: np.array([0.0, -mass * GRAVITY]),
        g=lambda q: np.array([q @ q - length**2]),
        G=lambda q: 2 * q[None],
        Gdot_v=lambda q, v: np.array([2 * v @ v]),
        energy=lambda q, v: mass * (v @ v / 2 + GRAVITY * q[1]),
    )  # fmt: skip


def pendulum_state(angle, rate):
    """State of the pendulum by its angle from the x axis."""
    s, c = np.sin(angle), np.cos(angle)
    return np.array([c, s]), rate * np.array([-s, c])


LENGTHS = np.array([1.0, 1.5, 1.5, 1.0])
MASSES, MOMENTS = np.array([2.0, 3.0, 3.0, 2.0]), np.array([1.0, 2.0, 2.0, 1.0])
HOME = np.array([2 * pi / 3, acos(2 / 3), -acos(2 / 3), -2 * pi / 3])
FLAT = np.array([pi, 0.0, 0.0, -pi])


def absolute_five_bar():
    """The five-bar of Spencer §3.2 in absolute link angles, written out by hand."""
    reach = np.tril(np.tile(LENGTHS, (4, 1)), -1) + np.diag(LENGTHS / 2)  # a_ki

    def M(theta):
        x, y = -reach * np.sin(theta), reach * np.cos(theta)
        return np.diag(MOMENTS) + np.einsum("k,ki,kj->ij", MASSES, x, x) + np.einsum(
            "k,ki,kj->ij", MASSES, y, y
        )  # fmt: skip

    def F(t, theta, omega):
        x, y = -reach * np.sin(theta), reach * np.cos(theta)
        bias = np.stack([-reach * np.cos(theta), -reach * np.sin(theta)]) @ omega**2
        fall = np.array([np.zeros(4), np.full(4, -GRAVITY)]) - bias
        return np.einsum("k,ki,k->i", MASSES, x, fall[0]) + np.einsum(
            "k,ki,k->i", MASSES, y, fall[1]
        )  # fmt: skip

    return ConstrainedSystem(
        n=4, m=2, M=M, F=F,
        g=lambda th: np.array([LENGTHS @ np.cos(th) - 1, LENGTHS @ np.sin(th)]),
        G=lambda th: np.stack([-LENGTHS * np.sin(th), LENGTHS * np.cos(th)]),
        Gdot_v=lambda th, w: np.stack([-LENGTHS * np.cos(th), -LENGTHS * np.sin(th)]) @ w**2,
        energy=lambda th, w: w @ M(th) @ w / 2 + GRAVITY * MASSES @ (reach @ np.sin(th)),
    )  # fmt: skip


def five_bar():
    """The same as a model, in joint angles that are zero at the start of the second example."""
    return system_of(samples.five_bar())


def link_angles(q):
    """Absolute link angles of the model, (..., 4)."""
    return HOME + np.cumsum(q, axis=-1)


SINGULAR = np.diff(FLAT - HOME, prepend=0.0)
"""Joint angles of the model at which all links lie on the line of the supports."""


BAR = Inertia.from_mass_center(2.0, np.array([0.5, 0, 0]), np.diag([0.01, 0.3, 0.3]))


def pinned_body():
    """A pendulum of one body that could go anywhere in the plane, but for a pin at its end.

    Its configuration space is not flat: the velocities of a planar joint are no derivatives.
    """
    builder = ModelBuilder("pinned", gravity=(0, -GRAVITY, 0))
    builder.body("bar", inertia=BAR, joint=Planar())
    builder.loop("pin", predecessor="base", successor="bar", joint=Revolute("z"))
    return builder.build()


def swinging_body():
    """The same pendulum on a hinge: one coordinate, no constraint."""
    builder = ModelBuilder("swinging", gravity=(0, -GRAVITY, 0))
    builder.body("bar", inertia=BAR, joint=Revolute("z"))
    return builder.build()


# --- Position errors of the loops of a model, and their Jacobian by differences ------------------


def loop_errors(model, q):
    """Errors of all loop joints, one after the other — RBDA (8.23)."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    errors = [np.zeros(0)]
    for loop in model.loops:
        X_p = loop.predecessor_placement @ X_0[loop.predecessor]
        X_s = loop.successor_placement @ X_0[loop.successor]
        errors.append(loop.joint.loop_error(X_s @ X_p.inverse()))
    return np.concatenate(errors).astype(float)


def loop_jacobian(model, q, step=1e-6):
    """Derivative of the errors with respect to the velocity variables, by central differences."""

    def at(dv):
        return loop_errors(model, model.integrate(q, dv))

    return np.column_stack([(at(step * e) - at(-step * e)) / (2 * step) for e in np.eye(model.nv)])


def mobility(model, q):
    """Degrees of freedom that the loops leave at ``q``, n - r — RBDA (8.52)."""
    return model.nv - np.linalg.matrix_rank(loop_jacobian(model, q), tol=1e-7)


@cache
def sample(name):
    """One model of each name: kernels are kept with the model."""
    return getattr(samples, name)()
