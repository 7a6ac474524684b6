"""Texts recorded once for every robot, run by the interpreter: the numbers of the plain text."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms import (
    aba_derivatives,
    centroidal,
    coriolis,
    energy,
    jacobians,
    minv,
    regressors,
    rnea_derivatives,
)
from kinetree.codegen.loops.meaning import interpret
from kinetree.joints import REPRESENTATIVES
from kinetree.model.define import ARRAYS, DEFINITIONS
from kinetree.model.general.model import Source
from kinetree.model.general.tables import data_of
from kinetree.samples.trees import random_tree
from kinetree.spatial import Force

TEXTS = {
    coriolis.coriolis_matrix: ("q", "qd"),
    coriolis.inertia_rate: ("q", "qd"),
    coriolis.christoffel_by_planes: ("q",),
    minv.inverse_mass_matrix_by_columns: ("q",),
    regressors.regressor_in_base_coordinates: ("q", "qd", "qdd"),
    regressors.momentum_regressor: ("q", "qd"),
    regressors.energy_regressor: ("q", "qd"),
    regressors.kinetic_energy_regressor: ("q", "qd"),
    regressors.potential_energy_regressor: ("q",),
    **{DEFINITIONS[name].algorithms[0]: DEFINITIONS[name].required
       for name in ("integrate", "difference", "configuration_rate", "normalize")},
    jacobians.all_poses: ("q",),
    **{partial(jacobians.all_jacobians, reference=r): ("q",)
       for r in ("world", "body", "aligned")},
    energy.kinetic_energy: ("q", "qd"),
    energy.potential_energy: ("q",),
    energy.kinetic_energy_rate: ("q", "qd", "qdd"),
    energy.potential_energy_rate: ("q", "qd"),
    energy.generalized_momentum: ("q", "qd"),
    energy.generalized_force: ("q", "f_ext"),
    centroidal.center_of_mass: ("q",),
    centroidal.center_of_mass_velocity: ("q", "qd"),
    centroidal.center_of_mass_acceleration: ("q", "qd", "qdd"),
    centroidal.center_of_mass_jacobian: ("q",),
    centroidal.center_of_mass_jacobian_rate: ("q", "qd"),
    centroidal.total_momentum: ("q", "qd"),
    centroidal.centroidal_momentum: ("q", "qd"),
    centroidal.centroidal_momentum_rate: ("q", "qd", "qdd"),
    centroidal.centroidal_momentum_matrix: ("q",),
    centroidal.centroidal_momentum_matrix_rate: ("q", "qd"),
    centroidal.centroidal_inertia: ("q",),
    centroidal.zero_moment_point: ("q", "qd", "qdd", "point"),
}  # fmt: skip
OF_REGULAR_JOINTS = {
    rnea_derivatives.inverse_dynamics_derivatives: ("q", "qd", "qdd", "f_ext"),
    coriolis.coriolis_matrix_in_root_coordinates: ("q", "qd"),
    aba_derivatives.forward_dynamics_derivatives_by_articulated_bodies: ("q", "qd", "tau", "f_ext"),
}


def is_regular(joint):
    return joint.constant_subspace and not joint.moves_by_itself


def assert_general_text_agrees(text, arguments, joints, rng):
    for floating in (False, True):
        model = random_tree(7, rng, joints=joints, floating_base=floating)
        bodies = [
            replace(b, dynamics=kt.JointDynamics(armature=0.2)) if b.joint.nv == 1 and k % 2 else b
            for k, b in enumerate(model.bodies)
        ]
        model = model.replace(bodies=bodies)
        data = data_of(model)
        assert data is not None
        axes = {n: ARRAYS[n].shape for n in arguments}
        source = Source(lambda model, *a: text(model, *a), axes, "text")
        program = source.program(data.domains["bodies"].kinds)
        sizes = {"f_ext": (model.body_count, 6), "point": (3,)}
        given = {
            n: model.random_configuration(rng)
            if n in ("q", "q0", "q1")
            else rng.standard_normal(sizes.get(n, (model.nv,)))
            for n in arguments
        }
        found = interpret(program, data, *given.values())
        if "f_ext" in given:
            given["f_ext"] = [None, *map(Force.from_array, given["f_ext"])]
        expected = text(model, *given.values())
        expected = expected if isinstance(expected, tuple) else (expected,)
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.max(np.abs(b), initial=1e-3))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: getattr(text, "__name__", str(text)))
def test_texts_for_every_joint_are_recorded_once_for_every_robot(text, rng):
    assert_general_text_agrees(text, TEXTS[text], REPRESENTATIVES, rng)


@pytest.mark.parametrize("text", OF_REGULAR_JOINTS, ids=lambda text: text.__name__)
def test_texts_for_regular_joints_are_recorded_once_for_every_robot(text, rng):
    joints = [joint for joint in REPRESENTATIVES if is_regular(joint)]
    assert_general_text_agrees(text, OF_REGULAR_JOINTS[text], joints, rng)
