"""Mistakes of newcomers: errors name the thing, what was expected, what came, what to do."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.spatial import log, skew

HINGE, BALL = kt.Revolute("z"), kt.shapes.sphere(0.1, mass=1.0)


def graph():
    return kt.model.MechanismGraph("linkage").body("a", inertia=BALL)


def panda_data(**changes):
    return {**kt.samples.panda().to_dict(), **changes}


CASES = {
    "vectors of the plane": (
        lambda: kt.Motion([1, 2], [3, 4]),
        kt.ShapeError, r"Motion needs an angular part of 3 .*got shapes \(2,\) and \(2,\)",
    ),
    "columns of different number": (
        lambda: kt.Force(np.eye(3), [1, 2, 3]),
        kt.ShapeError, r"got shapes \(3, 3\) and \(3,\)",
    ),
    "coordinate of a vector": (
        lambda: kt.Motion.zero()[0], kt.ShapeError, r"x.to_array\(\)\[k\] is a coordinate",
    ),
    "incomplete translation": (lambda: kt.xlt(1, 2), kt.ShapeError, "all of x, y, z, got x=1, y=2"),
    "cross matrix of two numbers": (lambda: skew([1, 2]), kt.ShapeError, "3 components"),
    "logarithm of a matrix": (
        lambda: log(np.eye(6)), kt.errors.SpatialTypeError,
        "log takes a Plucker transform, got ndarray",
    ),
    "motion that is not a tuple": (
        lambda: kt.Prescribed(HINGE, lambda t: 5.0).at(2.0),
        kt.errors.JointError, r"Revolute joint must return \(q, qd, qdd\), got 5.0 at t = 2",
    ),
    "motion that is not finite": (
        lambda: kt.Prescribed(HINGE, lambda t: ([np.nan], [0], [0])).at(0.0),
        kt.errors.JointError, r"must be finite, got \[nan\] at t = 0",
    ),
    "limits in words": (
        lambda: kt.Limits(lower="low"), kt.ModelError, "lower limit must hold numbers, got 'low'",
    ),
    "frame on a name": (
        lambda: kt.Model(frames=[kt.Frame("tip", "base")]),
        kt.ModelError, "frame 'tip' must refer to a body by its number, got 'base'",
    ),
    "mass as inertia": (
        lambda: graph().body("b", inertia=2.0),
        kt.ModelError, r"inertia of body 'b' must be an Inertia such as shapes.*, got float",
    ),
    "class as joint": (
        lambda: graph().joint("j", kt.Revolute, predecessor="base", successor="a"),
        kt.ModelError, r"joint 'j' must be a joint such as Revolute\('z'\), got the class Revolute",
    ),
    "number as model": (
        lambda: kt.model.MechanismGraph().add_model(3), kt.ModelError, "must be a Model, got int",
    ),
    "joint to omit": (
        lambda: kt.model.MechanismGraph().add_model(kt.samples.four_bar(), without=("pinn",)),
        kt.UnknownNameError, "did you mean 'pin'",
    ),
    "inertia for all": (
        lambda: kt.samples.pendulum().replace(inertia=BALL),
        kt.ModelError, "inertia must be a dictionary from names to new values, got Inertia",
    ),
    "misspelt field": (
        lambda: kt.samples.pendulum().replace(gravty=(0, 0, 0)),
        TypeError, "no argument 'gravty'; it takes .*gravity",
    ),
    "joint to lock, but where": (
        lambda: kt.edit.lock(kt.samples.pendulum(), "pivot"),
        kt.ModelError, r"positions by joint name, such as \{'elbow': 0.5\}, got 'pivot'",
    ),
    "data with a hole": (
        lambda: kt.Model.from_dict(panda_data(bodies=[{}])),
        kt.ModelError, "data of model 'panda' have no 'name'",
    ),
    "half a tool": (
        lambda: kt.from_dh([(0, 0, 0, 0)], tool=(1, 2)),
        kt.ModelError, r"must be 4 numbers or a Plucker or 4x4 pose, got \(1, 2\)",
    ),
    "fewer than no bodies": (
        lambda: kt.samples.chain(-1), kt.ModelError, "chain needs a number of bodies.*got -1",
    ),
    "half a body": (
        lambda: kt.samples.random_tree(1.5), kt.ModelError, "random_tree needs .*got 1.5",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), CASES.values(), ids=CASES.keys())
def test_message(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_screw_may_be_given_as_a_motion():
    assert kt.Screw(kt.Motion([0, 0, 2], [0, 0, 1])) == kt.Screw((0, 0, 2, 0, 0, 1))
