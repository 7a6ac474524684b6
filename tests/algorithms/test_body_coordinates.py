"""Derivatives of the dynamics in the coordinates of each body, against those in one frame."""

import pytest
from support.closeness import assert_close
from support.states import conditioning, floating_tree, random_external_forces, random_state

from kinetree import samples
from kinetree.algorithms import rnea_derivatives
from kinetree.algorithms.aba_derivatives import forward_dynamics_derivatives
from kinetree.algorithms.rnea_derivatives import inverse_dynamics_derivatives
from kinetree.errors import JointError
from kinetree.joints import REPRESENTATIVES, Prescribed, Prismatic, Revolute
from kinetree.model import ModelBuilder
from kinetree.model.views import axial_view, condensed_view

KINDS = tuple(joint for joint in REPRESENTATIVES if joint.constant_subspace)
IN_BODIES = {"composite_bodies": rnea_derivatives.composite_bodies_in_body_coordinates}


def trees(rng):
    yield samples.random_tree(6, rng, joints=KINDS)
    yield floating_tree(rng, 6, KINDS)
    yield floating_tree(rng, 6, (Revolute("x"), Revolute("y"), Revolute("z"), Prismatic("y")))


@pytest.mark.covers("Spencer 4.3", by=rnea_derivatives.composite_bodies_in_body_coordinates)
@pytest.mark.parametrize("view", [lambda m: m, axial_view, lambda m: axial_view(condensed_view(m))])
def test_derivatives_do_not_depend_on_the_coordinates(view, rng):
    for model in trees(rng):
        q, qd, x = random_state(model, rng)
        for f_ext in (None, random_external_forces(model, rng)):
            found = inverse_dynamics_derivatives(view(model), q, qd, x, f_ext, **IN_BODIES)
            expected = inverse_dynamics_derivatives(model, q, qd, x, f_ext)
            for a, b in zip(found, expected, strict=True):
                assert_close(a, b, ulps=300)
            found = forward_dynamics_derivatives(view(model), q, qd, x, f_ext, **IN_BODIES)
            expected = forward_dynamics_derivatives(model, q, qd, x, f_ext)
            for a, b in zip(found, expected, strict=True):
                assert_close(a, b, ulps=300, condition=conditioning(model, q))


def test_composite_bodies_are_the_same_bodies_in_other_coordinates(rng):
    model = floating_tree(rng, 5, KINDS)
    q, qd, _ = random_state(model, rng)
    here = rnea_derivatives.composite_bodies_in_body_coordinates(axial_view(model), q, qd)
    there = rnea_derivatives.composite_bodies(model, q, qd)
    for i in range(1, model.body_count + 1):
        for a, b in ((here.v, there.v), (here.J, there.J), (here.Jd, there.Jd)):
            in_base = [bodies.X_0[i].inv_apply(x[i]) for bodies, x in ((here, a), (there, b))]
            assert_close(*(x.to_array() for x in in_base), ulps=100)
        in_base = [bodies.X_0[i].inv_apply(bodies.IC[i]) for bodies in (here, there)]
        assert_close(*(I.to_matrix() for I in in_base), ulps=100)


def test_joints_outside_the_conditions_are_rejected(rng):
    driven = Prescribed(Revolute("z"), lambda t: ([t], [1.0], [0.0]))
    model = ModelBuilder("mechanism").body("link", joint=driven, joint_name="odd").build().at(0.5)
    with pytest.raises(JointError, match="do not cover joint 'odd'"):
        inverse_dynamics_derivatives(model, *random_state(model, rng), **IN_BODIES)
