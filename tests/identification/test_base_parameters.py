"""Which combinations of inertial parameters joint forces can tell."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import two_link_arm

import kinetree as kt
from kinetree.identification import base_parameters, inertial_parameters, parameter_names
from kinetree.model.views import condensed_view


@pytest.fixture(scope="module")
def arm():
    return base_parameters(kt.samples.arm())


@pytest.mark.covers("RBDA 9.7", "RBDA Table 9.7", by=base_parameters)
def test_planar_arm_in_closed_form():
    """The textbook's six combinations, for links of any shape: L1 = 0.8 m."""
    base = base_parameters(two_link_arm(L1=0.8))
    assert base.labels == (
        "upper.h_x + 0.8 fore.m", "upper.h_y", "upper.I_zz + 0.64 fore.m",
        "fore.h_x", "fore.h_y", "fore.I_zz",
    )  # fmt: skip
    assert base.without_effect.sum() == 13
    singles = [n for n, alone in zip(base.names, base.identifiable, strict=True) if alone]
    assert singles == ["upper.h_y", "fore.h_x", "fore.h_y", "fore.I_zz"]


def test_number_of_base_parameters_of_known_mechanisms(arm):
    """A generic six-axis arm has 36; on a floating base each axis adds 7, each slide 4, to 10."""
    assert len(arm) == 36
    assert len(base_parameters(kt.samples.quadruped())) == 10 + 7 * 12
    free = kt.samples.random_tree(1, 0, joints=[kt.Free()])
    assert len(base_parameters(free)) == 10
    joints = [kt.Revolute("x"), kt.Prismatic("y")]
    tree = kt.samples.random_tree(5, 1, joints=joints, floating_base=True)
    axes = sum(isinstance(j, kt.Revolute) for j in tree.joint[2:])
    assert len(base_parameters(tree)) == 10 + 7 * axes + 4 * (4 - axes)


def test_gravity_along_the_first_axis_hides_its_first_moment():
    assert len(base_parameters(kt.samples.pendulum())) == 3
    upright = kt.samples.pendulum().replace(gravity=(0.0, 9.81, 0.0))
    assert base_parameters(upright).labels == ("bob.I_yy",)


def test_combinations_explain_the_whole_regressor(arm, rng):
    m = arm.model
    q, qd, qdd = rng.standard_normal((3, 30, m.nv))
    Y = kt.regressor(m, q, qd, qdd)
    assert_close(arm.regressor(q, qd, qdd) @ arm.combinations, Y, ulps=1e4)
    tau = kt.inverse_dynamics(m, q, qd, qdd)
    assert_close(arm.regressor(q, qd, qdd) @ arm.values(), tau, ulps=1e4)


@pytest.mark.covers("RBDA 9.7", by=base_parameters)
def test_inertia_that_can_be_moved_changes_no_base_parameter(arm):
    moved = np.concatenate([I.parameters() for I in condensed_view(arm.model).inertia[1:]])
    assert np.max(np.abs(moved - inertial_parameters(arm.model))) > 1
    assert_close(arm.values(moved), arm.values(), ulps=1e5)


def test_rank_decision_has_a_wide_margin(arm):
    chosen = np.isin(np.arange(60), arm.columns)
    assert np.min(arm.novelty[chosen]) > 0.1
    assert np.max(arm.novelty[~chosen]) < 1e-12


def test_every_kind_of_joint(rng):
    m = kt.samples.random_tree(6, rng)
    base = base_parameters(m)
    q = np.array([m.random_configuration(rng) for _ in range(5)])
    qd, qdd = rng.standard_normal((2, 5, m.nv))
    Y = kt.regressor(m, q, qd, qdd)
    assert_close(base.regressor(q, qd, qdd) @ base.combinations, Y, ulps=1e5)


def test_friction_and_rotors_are_parameters_too():
    m = kt.samples.double_pendulum()
    base = base_parameters(m, friction=True, rotors=True)
    assert base.names == parameter_names(m, friction=True, rotors=True)
    assert base.names[20:] == (
        "shoulder.viscous", "elbow.viscous", "shoulder.coulomb", "elbow.coulomb",
        "shoulder.rotor", "elbow.rotor",
    )  # fmt: skip
    assert base.labels[2] == "upper.I_yy + lower.m + shoulder.rotor"  # a rotor on a fixed axis
    assert base.index("elbow.coulomb") >= 0
    assert base.index("elbow.rotor") >= 0
    ball = kt.samples.random_tree(1, 0, joints=[kt.Spherical()])
    assert parameter_names(ball, friction="viscous")[-1] == "body1_joint[2].viscous"


def test_unidentifiable_parameters_are_rejected_by_name():
    base = base_parameters(two_link_arm())
    assert base.index("fore.I_zz") == base.index(base.labels[5]) == 5
    with pytest.raises(
        kt.errors.IdentifiabilityError, match=r"upper.m cannot be identified: no joint"
    ):
        base.index("upper.m")
    part = r"fore.m cannot be identified by itself, only as part of upper.h_x \+ fore.m; upper.I_zz"
    with pytest.raises(kt.errors.IdentifiabilityError, match=part):
        base.index("fore.m")
    with pytest.raises(kt.UnknownNameError, match=r"has no parameter 'fore.mass'"):
        base.index("fore.mass")
    assert repr(base) == "BaseParameters('2R arm': 6 of 20 parameters, 13 without effect)"
