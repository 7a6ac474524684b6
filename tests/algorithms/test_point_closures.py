"""Rows of closures that hold a point, along axes of one's choice."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.constraints import loop_rows
from kinetree.algorithms.closed.plan import AXES, closure_error, holds_a_point, turned_rows
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.joints import Fixed, Prismatic, Revolute, SphereInCylinder, Spherical, Universal


def test_which_joints_hold_a_point():
    assert all(
        map(holds_a_point, (Fixed(), Revolute((1, 2, 3)), Spherical(), kt.joints.Euler("zyx")))
    )
    others = (Prismatic("x"), SphereInCylinder("z"), kt.Helical("z", pitch=0.1), kt.Free())
    assert not any(map(holds_a_point, (*others, Universal("xy"), kt.Planar("z"))))


def state(joint, rng):
    """The Stewart platform with a leg that ends in ``joint``, closed there and moving."""
    model = kt.samples.stewart()
    loop = replace(model.loops[2], joint=joint)
    if isinstance(joint, Revolute | Fixed):  # their axes agree at q = 0 alone
        model = model.replace(loops=[replace(loop, predecessor_placement=_agreeing(model, loop))])
        q = model.neutral()
    else:
        model = model.replace(loops=[loop])
        q = closed_configurations(model, 4)[-1]
    qd = rng.normal(size=model.nv)
    K = loop_rows(model, model.loops[0], q, qd).K
    return model, q, qd - np.linalg.pinv(K) @ (K @ qd)


def _agreeing(model, loop):
    from kinetree.algorithms.kinematics import base_transforms, joint_transforms

    X = base_transforms(model, joint_transforms(model, model.neutral())[0])
    return loop.successor_placement @ X[loop.successor] @ X[loop.predecessor].inverse()


@pytest.mark.covers("RBDA 8.2", by=turned_rows)
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("joint", [Spherical(), Revolute("z"), Fixed()], ids=repr)
def test_rotated_rows_are_equivalent_for_a_closed_loop(joint, axes, rng):
    model, q, qd = state(joint, rng)
    (loop,) = model.loops
    rows, turned = loop_rows(model, loop, q, qd), turned_rows(model, loop, q, qd, axes)
    mixing = turned.K @ np.linalg.pinv(rows.K)
    assert_close(mixing @ mixing.T, np.eye(len(mixing)), ulps=1e4)
    assert_close(mixing @ rows.K, turned.K, ulps=1e4)
    assert_close(mixing @ rows.k, turned.k, ulps=1e5)
    assert_close(turned.rate, np.zeros(len(mixing)), scale=1.0, ulps=1e4)
    assert_close(turned.error, np.zeros(len(mixing)), scale=1.0, ulps=1e5)


@pytest.mark.parametrize("axes", AXES)
def test_the_rate_of_the_gap_is_exact_where_the_loop_is_open(axes, rng):
    model = kt.samples.stewart()
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    loop, h = model.loops[0], 1e-6

    def gap(t):
        return np.linalg.norm(closure_error(model, loop, model.integrate(q, t * qd))[0])

    c = turned_rows(model, loop, q, qd, axes)
    assert_close(np.linalg.norm(c.error), gap(0.0))
    assert_close(c.K @ qd, c.rate, ulps=1e4)
    np.testing.assert_allclose(c.error @ c.rate / gap(0.0), (gap(h) - gap(-h)) / (2 * h), rtol=1e-7)


def test_other_joints_keep_their_rows(rng):
    model = kt.samples.five_bar()
    q, qd = rng.normal(size=(2, 4))
    rows = loop_rows(model, model.loops[0], q, qd)
    for a, b in zip(turned_rows(model, model.loops[0], q, qd, "root"), rows, strict=True):
        assert_close(a, b, ulps=0)
    error, alignment = closure_error(model, model.loops[0], q)
    assert_close(error, rows.error)
    assert alignment == 1


def test_rows_along_the_leg_are_sparse():
    """A leg of the platform moves its own end along three perpendicular directions."""
    model = kt.samples.stewart()
    q = closed_configurations(model, 4)[-1]
    K = turned_rows(model, model.loops[0], q, np.zeros(model.nv), "predecessor").K
    assert np.count_nonzero(np.abs(K[:, 6:9]) > 1e-15) == 3
