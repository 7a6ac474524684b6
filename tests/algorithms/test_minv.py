"""The inverse of the joint-space inertia matrix, two ways."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.states import aligned_chain, conditioning, random_state

from kinetree import samples
from kinetree.algorithms import aba, crba, minv
from kinetree.errors import SingularError
from kinetree.joints import REPRESENTATIVES, Fixed, Prismatic, Revolute
from kinetree.model import ModelBuilder
from kinetree.spatial import Inertia

WAYS = (minv.inverse_mass_matrix, minv.inverse_mass_matrix_by_factors)


@pytest.mark.covers("RBDA 6.5", by=minv.inverse_mass_matrix_by_factors)
@pytest.mark.covers("RBDA 7.3", by=minv.inverse_mass_matrix)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("floating", [False, True])
def test_product_with_the_inertia_matrix_is_the_identity(way, floating, rng):
    for _ in range(10):
        model = samples.random_tree(
            int(rng.integers(1, 10)), rng, joints=REPRESENTATIVES, floating_base=floating
        )
        q = model.random_configuration(rng)
        H, H_inv = crba.joint_space_inertia(model, q), way(model, q)
        scale = np.abs(H_inv).max(initial=1) * np.abs(H).max(initial=1)
        cond = conditioning(model, q)
        assert_close(H_inv @ H, np.eye(model.nv), scale=scale, condition=cond)
        assert_close(H_inv, H_inv.T, condition=cond)


@pytest.mark.covers("RBDA 7.3", by=minv.inverse_mass_matrix)
def test_columns_are_the_accelerations_that_unit_forces_cause(rng):
    model = samples.random_tree(8, rng, joints=REPRESENTATIVES).replace(gravity=np.zeros(3))
    q, _, _ = random_state(model, rng)
    H_inv = minv.inverse_mass_matrix(model, q)
    for k, unit in enumerate(np.eye(model.nv)):
        qdd = aba.forward_dynamics(model, q, np.zeros(model.nv), unit)
        assert_close(H_inv[:, k], qdd, condition=conditioning(model, q), scale=np.abs(H_inv).max())


def test_separate_branches_on_the_base_do_not_feel_each_other(rng):
    builder = ModelBuilder()
    for name in ("a", "b"):
        builder.body(name, joint=Revolute("x"), inertia=samples.random_inertia(rng))
        builder.body(f"{name}2", on=name, joint=Prismatic("y"), inertia=samples.random_inertia(rng))
    model = builder.build()
    q = model.random_configuration(rng)
    for way in WAYS:
        H_inv = way(model, q)
        assert np.all(H_inv[:2, 2:] == 0)
        assert np.all(H_inv[2:, :2] == 0)


@pytest.mark.parametrize("way", WAYS)
def test_exact_in_rational_arithmetic(way):
    inertia = Inertia.from_mass_center(Fraction(3, 2), np.zeros(3, int), np.eye(3, dtype=int))
    builder = ModelBuilder(gravity=np.zeros(3, int))
    builder.body("b0", joint=Prismatic("x"), inertia=inertia)
    for i in range(1, 5):
        joint = Prismatic("xyz"[i % 3]) if i != 2 else Fixed()
        builder.body(f"b{i}", on=f"b{i // 2}", joint=joint, inertia=inertia)
    model = builder.build()
    q = np.array([Fraction(1, k + 2) for k in range(model.nq)])
    H, H_inv = crba.joint_space_inertia(model, q), way(model, q)
    assert np.array_equal(H @ H_inv, np.eye(4, dtype=int))


@pytest.mark.parametrize("way", WAYS)
def test_complex_step_and_multiprecision(way, rng):
    model = aligned_chain(rng)
    q, dq, _ = random_state(model, rng)
    H_inv = way(model, q + 1e-30j * dq)
    H_rate = crba.joint_space_inertia(model, q + 1e-30j * dq).imag / 1e-30
    expected = -H_inv.real @ H_rate @ H_inv.real
    assert_close(H_inv.imag / 1e-30, expected, condition=conditioning(model, q) ** 2)
    with mpmath.workdps(40):
        precise, q = model.map_numbers(mpmath.mpf), np.array([mpmath.mpf(x) for x in q])
        residual = crba.joint_space_inertia(precise, q) @ way(precise, q) - np.eye(6, dtype=int)
        assert max(abs(x) for x in residual.ravel()) < mpmath.mpf(10) ** -35


@pytest.mark.parametrize("way", WAYS)
def test_nothing_to_invert_and_something_impossible_to_invert(way):
    rigid = ModelBuilder().body("post", joint=Fixed()).build()
    assert way(rigid, np.zeros(0)).shape == (0, 0)
    vane = ModelBuilder().body("mast", joint=Fixed()).body("vane", on="mast", joint=Revolute("z"))
    with pytest.raises(SingularError, match="joint 'vane_joint' moves no inertia"):
        way(vane.build(), np.zeros(1))
