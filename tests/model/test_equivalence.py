"""Inertia that moves to the parent is not missed — RBDA §9.7."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree import samples
from kinetree.algorithms import crba, energy, rnea
from kinetree.joints import Fixed, Prismatic, Revolute, Spherical
from kinetree.model.views import condensed_view


@pytest.mark.covers("RBDA 9.7", "RBDA Table 9.7", by=condensed_view)
@pytest.mark.parametrize("seed", range(10))
def test_the_equation_of_motion_stays(seed):
    rng = np.random.default_rng(seed)
    kinds = [Revolute("x"), Revolute("-z"), Prismatic("y"), Spherical(), Fixed()]
    model = samples.random_tree(8, rng, joints=kinds, floating_base=bool(seed % 2))
    lean = condensed_view(model)
    q = model.random_configuration(rng)
    qd, qdd = rng.standard_normal((2, model.nv))
    H = crba.joint_space_inertia(model, q)
    assert_close(crba.joint_space_inertia(lean, q), H, ulps=500)
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(rnea.inverse_dynamics(lean, q, qd, qdd), tau, ulps=1000)


def test_what_moves_is_what_the_joint_cannot_tell():
    model = samples.random_tree(4, 1, joints=[Revolute("z")], branching=0)
    for I in condensed_view(model).inertia[1:]:
        J = np.trace(I.rotational) / 2 * np.eye(3) - I.rotational  # second moments
        assert_close([I.mass, I.first_moment[2], J[2, 2]], [0.0, 0.0, 0.0], scale=10.0)


def test_on_a_fixed_base_the_first_body_keeps_seven_numbers_less():
    model = samples.random_tree(1, 1, joints=[Prismatic("z")])
    (I,) = condensed_view(model).inertia[1:]
    assert I.mass == model.inertia[1].mass
    assert not np.any(I.rotational)


def test_kinetic_energy_is_no_longer_that_of_each_body(rng):
    model = samples.quadruped()
    lean = condensed_view(model)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    total = energy.kinetic_energy(model, q, qd)
    assert_close(energy.kinetic_energy(lean, q, qd), total, ulps=500)
    assert lean.inertia[-1].mass != model.inertia[-1].mass
