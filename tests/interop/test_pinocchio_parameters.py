"""Inertial parameters to and from Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
from support.closeness import assert_close
from support.pinocchio_mechanisms import SHARED, mechanism

import kinetree as kt
from kinetree.identification import inertial_parameters
from kinetree.interop import pinocchio as P
from kinetree.joints import Fixed


def dynamic_parameters(model):
    return np.concatenate([I.toDynamicParameters() for I in list(model.inertias)[1:]])


def test_order_of_bodies_and_bodies_on_fixed_joints(rng):
    ours = kt.samples.random_tree(9, rng, joints=SHARED, branching=0.7)
    theirs = P.to_model(ours)
    assert_close(
        P.to_parameters(ours, theirs, inertial_parameters(ours)), dynamic_parameters(theirs)
    )


def test_there_and_back(rng):
    joints = [j for j in SHARED if not isinstance(j, Fixed)]
    ours = kt.samples.random_tree(9, rng, joints=joints, branching=0.7)
    theirs, p = P.to_model(ours), rng.standard_normal(90)
    assert_close(P.from_parameters(ours, theirs, P.to_parameters(ours, theirs, p)), p)


def test_composite_joints_have_massless_parts(rng):
    theirs = mechanism("Composite", rng)
    ours = P.from_model(theirs)
    p = dynamic_parameters(theirs)
    assert_close(P.from_parameters(ours, theirs, p), inertial_parameters(ours))
    assert_close(P.to_parameters(ours, theirs, inertial_parameters(ours)), p)
    with pytest.raises(kt.errors.InteropError, match="moves with part of a composite joint"):
        P.to_parameters(ours, theirs, np.ones(10 * ours.body_count))


def test_errors(rng):
    ours = kt.samples.panda()
    theirs = P.to_model(ours)
    with pytest.raises(kt.errors.InteropError, match="body 'palm', on a fixed joint"):
        P.from_parameters(ours, theirs, np.zeros(10 * (theirs.njoints - 1)))
    with pytest.raises(kt.ShapeError, match=r"parameters must have shape \(100,\)"):
        P.to_parameters(ours, theirs, np.zeros(10))
    with pytest.raises(kt.errors.InteropError, match="joints are matched by name"):
        P.to_parameters(kt.samples.pendulum(), pin.buildSampleModelManipulator(), np.zeros(10))
