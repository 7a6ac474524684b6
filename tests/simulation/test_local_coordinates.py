"""Local coordinates of a step: their rates, and the derivatives of exponential maps."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree import ModelBuilder, Revolute, simulate
from kinetree.errors import JointError
from kinetree.integration import manifold
from kinetree.integration.manifold import (
    dexp,
    dexp_inverse,
    joint_rate,
)
from kinetree.joints import REPRESENTATIVES, Exponential

TURNING = [j for j in REPRESENTATIVES if not j.rates_are_velocities]
every_group = pytest.mark.parametrize("joint", TURNING, ids=repr)


def by_differentiation(joint, q, u, qd):
    """The definition: rate of ``difference(q, there)`` while ``there`` moves at ``qd``."""
    there = joint.integrate(q, u)
    step = 1e-6
    ends = [joint.integrate(there, s * step * qd) for s in (-2, -1, 1, 2)]
    a, b, c, d = (joint.difference(q, end) for end in ends)
    return (a - 8 * b + 8 * c - d) / (12 * step)


@every_group
def test_rate_of_local_coordinates_is_that_of_their_definition(joint, rng):
    q, u, qd = joint.random(rng), 0.8 * rng.uniform(-1, 1, joint.nv), rng.standard_normal(joint.nv)
    expected = by_differentiation(joint, q, u, qd)
    np.testing.assert_allclose(dexp_inverse(joint, u) @ qd, expected, atol=1e-9)


@every_group
def test_joints_of_other_people_are_differentiated_with_the_same_result(joint, rng):
    q, u, qd = joint.random(rng), rng.uniform(-1, 1, joint.nv), rng.standard_normal(joint.nv)
    rate = manifold._rate_by_differentiation(joint, q, u, qd)
    assert_close(rate.astype(float), dexp_inverse(joint, u) @ qd, ulps=1000)


@every_group
@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_the_series_leaves_an_error_that_a_method_of_that_order_does_not_see(joint, order, rng):
    q, u, qd = joint.random(rng), rng.uniform(-1, 1, joint.nv), rng.standard_normal(joint.nv)
    errors = [
        np.max(np.abs(joint_rate(joint, q, h * u, qd, order) - dexp_inverse(joint, h * u) @ qd))
        for h in (0.2, 0.1)
    ]
    if errors[0] > 1e-12:
        assert np.log2(errors[0] / errors[1]) > order - 1.1


@every_group
@pytest.mark.parametrize("size", [0.0, 1e-7, 1e-3, 0.5, 2.5])
def test_derivatives_of_the_exponential_map_are_inverse_to_each_other(joint, size, rng):
    u = rng.standard_normal(joint.nv)
    u = size * u / np.linalg.norm(u)
    E, D = (np.asarray(f(joint, u), dtype=float) for f in (dexp, dexp_inverse))
    assert_close(E @ D, np.eye(joint.nv), ulps=300)


@every_group
def test_brackets_obey_jacobi(joint, rng):
    bracket = joint.bracket
    a, b, c = rng.standard_normal((3, joint.nv))
    total = bracket(a, bracket(b, c)) + bracket(b, bracket(c, a)) + bracket(c, bracket(a, b))
    assert_close(total, np.zeros(joint.nv), scale=10.0)


def test_joints_whose_velocities_are_rates_have_no_bracket():
    assert Revolute("z").bracket is None
    assert_close(dexp(Exponential(), np.ones(3)), np.eye(3, dtype=int))


def test_an_unknown_group_is_named():
    class Strange(Revolute):
        rates_are_velocities = False

    model = ModelBuilder("odd").body("arm", joint=Strange("z"), inertia=_unit()).build()
    with pytest.raises(JointError, match=r"joint 'arm_joint' .* is a Strange.*use the integrator"):
        simulate(model, [0.0], duration=0.1, integrator="variational")


def _unit():
    from kinetree import shapes

    return shapes.sphere(0.1, mass=1.0)
