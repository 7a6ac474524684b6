"""Joints that move no inertia together are named, not turned into huge accelerations."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms.crba import require_independent_joints

AXES = [(1, 2, 3), (-2, 1, 0.5), (0.3, -1, 2)]


def wrist(at, links=None, mass=1.0):
    """A point mass on three hinges through one point."""
    builder, on = kt.ModelBuilder("wrist"), None
    for k, axis in enumerate(AXES):
        inertia = kt.shapes.point(mass=mass, at=at) if k == 2 else links
        builder.body(f"b{k}", on=on, joint=kt.Revolute(axis), inertia=inertia)
        on = f"b{k}"
    return builder.build()


@pytest.mark.parametrize("at", [(0.3, 0.2, 0.1), (0.5, -0.4, 0.7)])
@pytest.mark.parametrize("method", [None, "aba", "crba"])
def test_a_point_mass_on_three_hinges_is_explained(at, method):
    model, zero = wrist(at), np.zeros(3)
    with pytest.raises(
        kt.SingularError, match="joints 'b0_joint', 'b1_joint', 'b2_joint' can move"
    ):
        kt.forward_dynamics(model, [0.3, -0.5, 0.7], zero, np.ones(3), method=method)
    with pytest.raises(kt.SingularError, match="inverse_mass_matrix is singular for model 'wrist'"):
        kt.inverse_mass_matrix(model, zero)


def test_links_with_inertia_make_it_regular():
    model = wrist((0.3, 0.2, 0.1), kt.shapes.sphere(0.1, mass=0.5))
    q, tau = np.array([0.3, -0.5, 0.7]), np.ones(3)
    qdd = kt.forward_dynamics(model, q, np.zeros(3), tau)
    assert np.allclose(kt.inverse_dynamics(model, q, np.zeros(3), qdd), tau)


def test_massless_bodies_are_fine_where_others_carry_the_inertia():
    for name in ("double_pendulum", "panda", "quadruped", "humanoid"):
        require_independent_joints(getattr(kt.samples, name)(), "forward_dynamics")
    builder = kt.ModelBuilder("planar").body("x", joint=kt.Prismatic("x"))
    builder.body("y", on="x", joint=kt.Prismatic("y"), inertia=kt.shapes.point(mass=1.0))
    require_independent_joints(builder.build(), "forward_dynamics")


@pytest.mark.parametrize("mass", [1e-12, 1e12])
def test_they_are_found_in_any_unit_of_mass(mass):
    with pytest.raises(kt.SingularError, match="can move together without moving any inertia"):
        kt.inverse_mass_matrix(wrist((0.3, 0.2, 0.1), mass=mass), np.zeros(3))


def test_a_body_that_neither_moves_nor_weighs_has_no_accelerations():
    model = kt.ModelBuilder("sign").body("sign", joint=kt.Fixed()).build()
    assert kt.forward_dynamics(model, np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)
