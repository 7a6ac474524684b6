"""Pieces of algorithms for closed chains, each by its own definition."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.divide_and_conquer import pushing
from kinetree.algorithms.closed.elimination import orthogonal_solution
from kinetree.algorithms.closed.forces import active_force, reference_position
from kinetree.loops.kinematics.all_assemblies import _distinct
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_exp


def test_columns_with_a_linear_force_push():
    """A force along any one axis does, on any handle; moments alone do not."""
    T = np.zeros((12, 13))
    T[np.arange(12), np.arange(12)] = 1.0
    assert pushing(T).tolist() == ([False] * 3 + [True] * 3) * 2 + [False]


@pytest.mark.parametrize(("rows", "columns"), [(6, 6), (6, 3), (5, 1), (3, 2)])
def test_orthogonal_solutions_are_those_of_least_squares(rows, columns, rng):
    """What is left of each column is relative to all columns of the matrix together."""
    A, b = rng.normal(size=(rows, columns)), rng.normal(size=(rows, 2))
    x, parts, left = orthogonal_solution(A, b)
    assert_close(x, np.linalg.lstsq(A, b, rcond=None)[0], scale=10.0, ulps=1e4)
    R = np.linalg.qr(A, mode="r")
    assert_close(parts, np.diag(R) ** 2 / np.sum(A * A), scale=1.0)
    assert_close(left, b - A @ x, scale=10.0, ulps=1e3)


@pytest.mark.parametrize(
    "joint", [kt.Revolute("x"), kt.Planar(), kt.Universal("xy"), kt.Helical("y", pitch=0.1)]
)
def test_work_of_forces_of_loop_joints_is_that_along_their_motion(joint, rng):
    """``f · v`` is ``tau · qd_J``, wherever both bodies are and whichever way the joint turns."""

    def anywhere():
        return Plucker(rotation_exp(rng.normal(size=3)), rng.normal(size=3))

    b = kt.ModelBuilder("pair")
    for name in ("p", "s"):
        b.body(name, joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
    b.loop("l", predecessor="p", successor="s", joint=joint, at=anywhere(), successor_at=anywhere())
    (loop,) = b.build().loops
    for _ in range(5):
        q, X_p = rng.uniform(-1.0, 1.0, joint.nq), anywhere()
        X_J, S, *_ = joint.jcalc(q, np.zeros(joint.nv))
        X_s = X_J @ X_p
        X_0 = [None, loop.predecessor_placement.inverse() @ X_p,
               loop.successor_placement.inverse() @ X_s]  # fmt: skip
        tau, qd = rng.normal(size=(2, joint.nv))
        f = active_force(loop, X_0, tau)
        v = X_s.inverse() @ (S @ qd)
        assert_close(v.T @ f, tau @ qd, scale=10.0, ulps=1e4)
    assert_close(reference_position(loop), joint.neutral(), scale=1.0)


def test_places_that_differ_either_way_are_distinct():
    m = kt.samples.double_pendulum()
    q = np.array([[0.3, 0.4], [0.5, 0.4], [0.1, 0.4], [0.3, 0.4], [0.3 + 2 * np.pi, 0.4]])
    for order in ([0, 1, 2, 3, 4], [2, 1, 0, 4, 3], [1, 2, 0, 3, 4]):
        assert len(_distinct(m, q[order], np.arange(2))) == 3
