"""Texts recorded once for every robot, run by the interpreter: the numbers of the plain text."""

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms import aba_derivatives, coriolis, minv, regressors, rnea_derivatives
from kinetree.codegen.loops.meaning import interpret
from kinetree.joints import REPRESENTATIVES
from kinetree.model.general.model import AXES, Source
from kinetree.model.general.tables import data_of
from kinetree.samples.trees import random_tree
from kinetree.spatial import Force

TEXTS = {
    coriolis.coriolis_matrix: ("q", "qd"),
    coriolis.inertia_rate: ("q", "qd"),
    minv.inverse_mass_matrix_by_columns: ("q",),
    regressors.regressor_in_base_coordinates: ("q", "qd", "qdd"),
    regressors.momentum_regressor: ("q", "qd"),
    regressors.energy_regressor: ("q", "qd"),
    regressors.kinetic_energy_regressor: ("q", "qd"),
    regressors.potential_energy_regressor: ("q",),
}
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
        source = Source(lambda model, *a: text(model, *a), {n: AXES[n] for n in arguments})
        program = source.program(data.domains["bodies"].kinds)
        sizes = {"f_ext": (model.body_count, 6)}
        given = {n: rng.standard_normal(sizes.get(n, (model.nv,))) for n in arguments}
        given["q"] = model.random_configuration(rng)
        found = interpret(program, data, *given.values())
        if "f_ext" in given:
            given["f_ext"] = [None, *map(Force.from_array, given["f_ext"])]
        expected = text(model, *given.values())
        expected = expected if isinstance(expected, tuple) else (expected,)
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.max(np.abs(b), initial=1e-3))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.__name__)
def test_texts_for_every_joint_are_recorded_once_for_every_robot(text, rng):
    assert_general_text_agrees(text, TEXTS[text], REPRESENTATIVES, rng)


@pytest.mark.parametrize("text", OF_REGULAR_JOINTS, ids=lambda text: text.__name__)
def test_texts_for_regular_joints_are_recorded_once_for_every_robot(text, rng):
    joints = [joint for joint in REPRESENTATIVES if is_regular(joint)]
    assert_general_text_agrees(text, OF_REGULAR_JOINTS[text], joints, rng)
