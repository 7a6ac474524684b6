"""Carrying articulated bodies across joints: the identities of RBDA §7.2.2."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_articulated

from kinetree.algorithms.propagation import (
    clear_rows,
    inverse_joint_inertia,
    joint_inertia_bound,
    moves_no_inertia,
    propagate,
)
from kinetree.errors import SingularError
from kinetree.joints import (
    Cylindrical,
    Euler,
    Helical,
    Planar,
    RackAndPinion,
    Revolute,
    Spherical,
)
from kinetree.joints.base import unit_motions
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial import Force, Inertia, Motion


def random_vectors(rng):
    p, c = rng.standard_normal((2, 6))
    return Force.from_array(p), Motion.from_array(c)


@pytest.mark.covers("RBDA Example 7.1", by=propagate)
def test_box_with_slot_and_cylinder():
    I1, I2, m1, m2 = (Fraction(n) for n in (3, 5, 7, 11))
    box, cylinder = (
        Inertia.from_mass_center(m, np.zeros(3, int), I * np.eye(3, dtype=int))
        for m, I in ((m1, I1), (m2, I2))
    )
    Ia, pa = propagate(cylinder, Force.zero(), unit_motions(1, 5), Motion.zero(), [0, 0])
    IA = (box + Ia).to_matrix()
    assert np.array_equal(IA, np.diag([I1, I1 + I2, I1 + I2, m1 + m2, m1, m1 + m2]))
    assert not np.any(pa.to_array())


@pytest.mark.covers("RBDA 7.2", by=propagate)
def test_propagated_inertia_annihilates_the_motion_subspace(rng):
    for n in range(7):
        IA, (pA, c) = random_articulated(rng), random_vectors(rng)
        S = Motion.from_array(rng.standard_normal((6, n)))
        Ia, _ = propagate(IA, pA, S, c, rng.standard_normal(n))
        assert_close((Ia @ S).to_array(), np.zeros((6, n)), scale=np.abs(IA.to_matrix()).max() * 10)
        assert_close(Ia.to_matrix(), Ia.to_matrix().T)


@pytest.mark.covers("RBDA 7.2", by=propagate)
def test_force_across_the_joint_as_parent_and_child_see_it(rng):
    for n in range(7):
        IA, (pA, c), (_, a_parent) = (
            random_articulated(rng),
            random_vectors(rng),
            random_vectors(rng),
        )
        S, tau = Motion.from_array(rng.standard_normal((6, n))), rng.standard_normal(n)
        I = IA.to_matrix()
        D = S.to_array().T @ I @ S.to_array()
        qdd = np.linalg.solve(D, tau - S.T @ (IA @ (a_parent + c) + pA))  # (7.18)
        f = IA @ (a_parent + c + S @ qdd) + pA
        Ia, pa = propagate(IA, pA, S, c, tau)
        cond = np.linalg.cond(I) * max(np.linalg.cond(D), 1.0) if n else 1.0
        assert_close((Ia @ a_parent + pa).to_array(), f.to_array(), condition=cond)
        assert_close(S.T @ f, tau, condition=cond, scale=10 + np.abs(tau).max(initial=0))


@pytest.mark.covers("RBDA 7.2", by=clear_rows)
@pytest.mark.parametrize(
    ("joint", "rows"),
    [
        (Revolute("z"), [2]),
        (Revolute("-x"), [0]),
        (Planar("z"), [2, 3, 4]),
        (Cylindrical("z"), [2, 5]),
        (Spherical(), [0, 1, 2]),
    ],
)
def test_aligned_joints_leave_exact_zero_rows_and_columns(joint, rows, rng):
    for _ in range(20):
        IA, (pA, c) = random_articulated(rng), random_vectors(rng)
        S = joint.motion_subspace(joint.neutral())
        Ia = propagate(IA, pA, S, c, np.ones(joint.nv)).Ia.to_matrix()
        assert np.all(Ia[rows] == 0)
        assert np.all(Ia[:, rows] == 0)
        others = [r for r in range(6) if r not in rows]
        assert np.all(np.abs(Ia[others][:, others].diagonal()) > 1e-3)


@pytest.mark.covers("RBDA 7.2", by=clear_rows)
def test_slanted_and_helical_joints_have_no_zero_rows(rng):
    for joint in (Revolute((1.0, 2.0, -3.0)), Helical("z", pitch=0.1)):
        IA, S = random_articulated(rng), joint.motion_subspace(joint.neutral())
        assert np.array_equal(clear_rows(IA, S).to_matrix(), IA.to_matrix())
        pA, c = random_vectors(rng)
        Ia = propagate(IA, pA, S, c, np.ones(1)).Ia
        assert np.all(np.abs(Ia.to_matrix().diagonal()) > 1e-6)


def test_dense_matrices_propagate_alike(rng):
    IA, (pA, c), S = random_articulated(rng), random_vectors(rng), unit_motions(3)
    typed = propagate(IA, pA, S, c, [0.7])
    dense = propagate(IA.to_matrix(), pA.to_array(), S.to_array(), c.to_array(), [0.7])
    assert_close(dense.Ia, typed.Ia.to_matrix())
    assert_close(dense.pa, typed.pa.to_array())
    assert np.all(dense.Ia[2] == 0)


def test_a_rod_about_its_own_axis_is_no_inertia_despite_rounding(rng):
    caught = 0
    for _ in range(20):
        axis = rng.standard_normal(3)
        axis /= np.linalg.norm(axis)
        rod = Inertia.from_mass_center(2.0, 0.7 * axis, 0.3 * (np.eye(3) - np.outer(axis, axis)))
        S = Motion(axis[:, None], np.zeros((3, 1)))
        D = S.T @ (rod @ S)
        caught += D[0, 0] > 0  # rounding has made it positive
        with pytest.raises(SingularError, match="not positive definite"):
            inverse_joint_inertia(rod, S, D)
    assert caught > 0


def test_a_thin_rod_is_inertia_enough():
    rod = Inertia.from_mass_center(1.0, (0, 0, 10.0), np.diag([10.0, 10.0, 1e-9]))
    D = unit_motions(3).T @ (rod @ unit_motions(3))
    assert inverse_joint_inertia(rod, unit_motions(3), D) == 1 / 1e-9


@pytest.mark.parametrize("w", [1, 3], ids=["plane", "space"])
def test_the_bound_of_a_joint_inertia_is_that_of_the_worst_direction(w, rng):
    n = 2 * w if w == 3 else 3
    I = np.diag(rng.uniform(1, 2, n))
    S = rng.standard_normal((n, 2))
    turn, shift = I.diagonal()[:w].sum(), I.diagonal()[w:].sum()
    # values may vanish elsewhere, so that all columns count
    whole = turn * np.sum(S[:w] ** 2) + shift * np.sum(S[w:] ** 2)
    for k in (0, 1):
        assert_close(joint_inertia_bound(I, S, k), whole)
        assert joint_inertia_bound(I, S, k) >= np.linalg.norm(S[:, k] @ I @ S[:, k])
    # structure does not: only its own column does, and only where it is not zero
    axes = np.zeros((n, 2), dtype=int)
    axes[w - 1, 0], axes[n - 1, 1] = 2, 3
    assert_close(joint_inertia_bound(I, axes, 0), 4 * turn)
    assert_close(joint_inertia_bound(I, axes, 1), 9 * shift)
    assert_close(joint_inertia_bound(I, 0.0 * S, 0), 0.0, scale=1)


def test_why_a_joint_has_no_inertia_depends_on_its_variables(rng):
    """Those of Euler angles may be singular; a single variable is not, whatever its axis does."""
    for joint, reason in (
        (RackAndPinion(0.1), "moves no inertia"),
        (Euler("zyx"), "are singular in this configuration"),
        (Spherical(), "moves no inertia"),
    ):
        model = ModelBuilder("one").body("b", joint=joint, inertia=random_inertia(rng)).build()
        assert reason in moves_no_inertia(model, 1)
        assert "'b_joint'" in moves_no_inertia(model, 1)
