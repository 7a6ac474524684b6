"""Compiled constraint equations of loops and couplings."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.joints import Revolute
from kinetree.loops.kinematics.constraint import Constraint, constraint, error
from kinetree.model.edit import attach


@pytest.mark.covers("RBDA 8.2", "RBDA 8.3", "RBDA Table 8.4", by=(constraint, error))
@pytest.mark.parametrize("sample", [kt.samples.four_bar, kt.samples.five_bar, kt.samples.bennett])
def test_compiled_equations_are_those_of_the_source(sample, rng):
    model = sample()
    q, qd = rng.normal(size=(2, 4, model.nv))
    found = constraint(model, q, qd)
    assert isinstance(found, Constraint)
    for n in range(4):
        for a, b in zip(found, loop_constraints(model, q[n], qd[n]), strict=True):
            assert_close(a[n], b, ulps=1e3)
    assert_close(error(model, q), found.error)
    assert_close(constraint(model, q[0], qd[0]).K, found.K[0])


def test_batches_broadcast_and_trees_have_no_constraints(rng):
    model = kt.samples.four_bar()
    q, qd = rng.normal(size=(2, 5, 3)), rng.normal(size=3)
    c = constraint(model, q, qd)
    assert [x.shape for x in c] == [(2, 5, 5, 3), (2, 5, 5), (2, 5, 5), (2, 5, 5)]
    assert error(model, q).shape == (2, 5, 5)
    tree = model.replace(loops=())
    assert constraint(tree, q[0], qd).K.shape == (5, 0, 3)
    assert error(tree, q[0]).shape == (5, 0)


def test_errors_vanish_where_the_loops_are_closed(rng):
    model = kt.samples.bennett()
    q = closed_configurations(model)
    assert np.max(np.abs(error(model, q))) < 1e-11
    assert np.max(np.abs(error(model, q + 0.1))) > 1e-3


def test_what_makes_no_sense_is_rejected(rng):
    model = kt.samples.four_bar()
    with pytest.raises(UnknownNameError, match="'loop' or 'base', got 'world'"):
        constraint(model, np.zeros(3), np.zeros(3), coordinates="world")
    with pytest.raises(ShapeError, match="q must have shape"):
        error(model, np.zeros(4))


class Stubborn(Revolute):
    """A hinge that looks at its angle, which compiled code cannot."""

    def jcalc(self, q, qd):
        if float(q[0]) > 1e6:
            raise ValueError("dizzy")
        return super().jcalc(q, qd)


def test_joints_that_cannot_be_compiled_are_taken_as_they_are(rng):
    model = kt.samples.four_bar()
    stubborn = model.replace(joint={"crank_joint": Stubborn("y")})
    q, qd = rng.normal(size=(2, 3, 3))
    for a, b in zip(constraint(stubborn, q, qd), constraint(model, q, qd), strict=True):
        assert_close(a, b, ulps=1e3)


@pytest.mark.covers("RBDA 8.7", by=constraint)
def test_a_spacecraft_far_from_the_base_keeps_its_digits(rng):
    """A four-bar on a floating hull, 1000 km away: only base coordinates lose digits."""
    hull = kt.ModelBuilder("craft")
    hull.body("hull", joint=kt.Free(), inertia=kt.samples.random_inertia(rng))
    model = attach(hull.build(), kt.samples.four_bar(), on="hull")
    q, qd = model.neutral(), rng.normal(size=model.nv)
    far = q.copy()
    far[model.q_slice[1]] += [1e6, 1e6, 1e6, 0, 0, 0, 0]
    lost = {}
    for coordinates in ("loop", "base"):
        here, there = (constraint(model, x, qd, coordinates=coordinates) for x in (q, far))
        lost[coordinates] = max(np.max(np.abs(a - b)) for a, b in zip(here, there, strict=True))
    assert lost["loop"] == 0
    assert lost["base"] > 1e-11
