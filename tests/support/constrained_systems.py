"""Constrained systems written by hand, and the mechanisms of Spencer's thesis."""

from math import acos, pi

import numpy as np

from kinetree import samples
from kinetree.joints import Planar, Revolute
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.model import ModelBuilder
from kinetree.spatial import Inertia

GRAVITY = 9.81


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
