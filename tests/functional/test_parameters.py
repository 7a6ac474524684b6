"""Parameters of a model by name: their values, what they change, how they move."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import ModelError, UnknownNameError
from kinetree.functional.parameters import is_parameter, parameter, with_parameters
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Motion, exp


def names(m):
    return ("gravity", "inertia", f"inertia:{m.body_names[2]}", f"mass:{m.body_names[1]}",
            f"placement:{m.joint_names[1]}")  # fmt: skip


def test_a_model_with_its_own_values_is_the_same_model():
    m = kt.samples.double_pendulum()
    for name in names(m):
        p = parameter(m, name)
        value = p.value(m)
        assert np.shape(value) == p.shape
        assert with_parameters(m, {name: value}) == m


def test_changed_values_arrive(rng):
    m = kt.samples.double_pendulum()
    body, joint = m.body_names[2], m.joint_names[0]
    inertia, placement = random_inertia(rng), random_placement(rng)
    changed = with_parameters(
        m,
        {
            "gravity": [0.0, 1.0, 2.0],
            f"inertia:{body}": inertia.parameters(),
            f"placement:{joint}": placement.to_pose(),
        },
    )
    assert changed.gravity.tolist() == [0, 1, 2]
    assert np.array_equal(changed.inertia[2].parameters(), inertia.parameters())
    assert np.array_equal(changed.tree_transform[1].to_pose(), placement.to_pose())


def test_a_new_mass_keeps_the_mass_centre_and_the_shape():
    m = kt.samples.double_pendulum()
    I = m.inertia[1]
    new = with_parameters(m, {f"mass:{m.body_names[1]}": np.asarray(3 * I.mass)}).inertia[1]
    assert_close(new.center_of_mass, I.center_of_mass, ulps=4, scale=1.0)
    assert_close(new.parameters(), 3 * I.parameters(), ulps=4)


def test_a_placement_moves_like_a_free_joint(rng):
    """Column j of its rates is the rate of the pose when the frame moves at e_j."""
    m = kt.samples.double_pendulum().replace(placement={})
    p = parameter(m, f"placement:{m.joint_names[1]}")
    X = random_placement(rng)
    rates, h = p.rates(X.to_pose()), 1e-6
    for j, e in enumerate(np.eye(6)):
        ahead, back = ((exp(Motion.from_array(s * h * e)) @ X).to_pose() for s in (1, -1))
        assert np.max(np.abs((ahead - back) / (2 * h) - rates[..., j])) < 1e-9


def test_names():
    assert all(map(is_parameter, ("gravity", "inertia:a", "mass:b", "placement:c", "inertia")))
    assert all(map(is_parameter, ("armature:a", "damping:a", "friction:a", "stiffness:a")))
    assert not any(map(is_parameter, ("q", "stickiness:a", "parameters", None)))


def test_unknown_names_are_rejected():
    m = kt.samples.double_pendulum()
    with pytest.raises(UnknownNameError, match="no parameter 'friction'; use 'gravity', 'inertia'"):
        parameter(m, "friction")
    with pytest.raises(UnknownNameError, match="no parameter 'mass'"):
        parameter(m, "mass")
    with pytest.raises(UnknownNameError, match="has no body 'nobody'"):
        parameter(m, "mass:nobody")
    with pytest.raises(UnknownNameError, match="has no joint 'nowhere'"):
        parameter(m, "placement:nowhere")
    with pytest.raises(ModelError, match="the base does not move"):
        parameter(m, f"inertia:{m.base_name}")


def test_what_cannot_be_scaled_or_is_set_twice_is_rejected():
    m = kt.ModelBuilder("pair").body("light", joint=kt.Revolute("z")).build()
    with pytest.raises(ModelError, match="no mass that could be scaled; use 'inertia:light'"):
        parameter(m, "mass:light")
    m = kt.samples.double_pendulum()
    values = {n: parameter(m, n).value(m) for n in ("inertia", f"mass:{m.body_names[1]}")}
    with pytest.raises(ModelError, match=r"the inertia of .* is set twice"):
        with_parameters(m, values)
