"""Texts recorded once for every robot: the numbers of the plain text, and of specialised code."""

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
from kinetree.errors import JointError
from kinetree.functional.prepare import Prepared
from kinetree.joints import REPRESENTATIVES, Prescribed
from kinetree.model.array_arguments import ARRAYS
from kinetree.model.define import DEFINITIONS
from kinetree.model.general.model import Source
from kinetree.model.general.tables import data_of
from kinetree.samples.random_mechanisms import random_tree
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


def robot(rng, joints, floating, bodies=5):
    """A random tree; every other joint that can has armature."""
    model = random_tree(bodies, rng, joints=joints, floating_base=floating)
    bodies = [
        replace(b, dynamics=kt.JointDynamics(armature=0.2)) if b.joint.nv == 1 and k % 2 else b
        for k, b in enumerate(model.bodies)
    ]
    return model.replace(bodies=bodies)


def assert_general_text_agrees(text, arguments, joints, rng):
    for floating in (False, True):
        model = robot(rng, joints, floating)
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


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: getattr(text, "func", text).__name__)
def test_texts_for_every_joint_are_recorded_once_for_every_robot(text, rng):
    assert_general_text_agrees(text, TEXTS[text], REPRESENTATIVES, rng)


@pytest.mark.parametrize("text", OF_REGULAR_JOINTS, ids=lambda text: text.__name__)
def test_texts_for_regular_joints_are_recorded_once_for_every_robot(text, rng):
    joints = [joint for joint in REPRESENTATIVES if is_regular(joint)]
    assert_general_text_agrees(text, OF_REGULAR_JOINTS[text], joints, rng)


PUBLIC = {
    kt.inverse_mass_matrix: ("q",),
    kt.coriolis_matrix: ("q", "qd"),
    kt.christoffel: ("q",),
    kt.mass_matrix_rate: ("q", "qd"),
    kt.regressor: ("q", "qd", "qdd"),
    kt.momentum_regressor: ("q", "qd"),
    kt.kinetic_energy_regressor: ("q", "qd"),
    kt.potential_energy_regressor: ("q",),
    kt.energy_regressor: ("q", "qd"),
    kt.hybrid_dynamics: ("q", "qd", "tau", "qdd"),
    kt.hybrid_response: ("q",),
    kt.generalized_momentum: ("q", "qd"),
    kt.kinetic_energy_rate: ("q", "qd", "qdd"),
    kt.potential_energy_rate: ("q", "qd"),
    kt.kinetic_energy: ("q", "qd"),
    kt.potential_energy: ("q",),
}
HYBRID = (kt.hybrid_dynamics, kt.hybrid_response)
JOINTS = (kt.Revolute("z"), kt.Revolute((1.0, 2.0, -1.0)), kt.Spherical(), kt.Universal("xy"))


@pytest.fixture(scope="module")
def mechanism():
    return robot(np.random.default_rng(3), JOINTS, floating=True, bodies=5)


def arrays(model, names, rng, batch=()):
    found = {n: rng.standard_normal((*batch, model.nv)) for n in names}
    return found | {"q": model.random_configuration(rng, *batch)}


@pytest.mark.parametrize("function", PUBLIC, ids=lambda f: f.__name__)
def test_public_functions_run_general_code_that_agrees_with_the_source(function, mechanism, rng):
    options = {"given": mechanism.joint_names[1::2]} if function in HYBRID else {}
    for batch in ((), (3,)):
        given = arrays(mechanism, PUBLIC[function], rng, batch)
        with kt.tier("general"):
            found = np.array(function(mechanism, **given, **options))
            kernel = next(k for k in mechanism.kernels.values() if k.name == function.__name__)
            assert kernel.tier == "general"
        expected = kernel.reference(list(given.values()))
        if function is kt.hybrid_dynamics:
            expected = np.moveaxis(expected, -2, 0)
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale)


def test_another_joint_that_is_given_compiles_nothing(mechanism, rng):
    q = mechanism.random_configuration(rng)
    with kt.tier("general"):
        found = [kt.hybrid_response(mechanism, q, given=name) for name in mechanism.joint_names[1:]]
    H_inv = np.linalg.inv(kt.mass_matrix(mechanism, q))
    for i, R in enumerate(found, start=2):
        at = mechanism.v_slice[i]
        expected = np.linalg.inv(H_inv[at, at])  # inertia of the joint while all others are free
        np.testing.assert_allclose(R[at, at], expected, rtol=0, atol=1e-9 * np.max(expected))


def test_errors_are_those_of_specialised_code(rng):
    builder = kt.ModelBuilder("driven")
    drive = Prescribed(kt.Revolute("z"), lambda t: ([t], [1.0], [0.0]))
    model = builder.body("link", joint=drive).build().at(0.0)
    for tier in ("general", "specialised"):
        with kt.tier(tier), pytest.raises(JointError, match="does not support prescribed joint"):
            kt.coriolis_matrix(model, model.neutral(), np.zeros(model.nv))


@pytest.mark.parametrize("function", [kt.inverse_dynamics, kt.forward_dynamics, kt.bias_force])
@pytest.mark.parametrize("wrt", ["q", ("qd", "q")], ids=str)
def test_derivatives_of_dynamics_run_general_code(function, wrt, rng):
    model = robot(np.random.default_rng(4), JOINTS[:3], floating=True, bodies=4)
    names = {kt.inverse_dynamics: ("q", "qd", "qdd"), kt.forward_dynamics: ("q", "qd", "tau")}
    given = arrays(model, names.get(function, ("q", "qd")), rng, (2,))
    f_ext = rng.standard_normal((2, model.body_count, 6))
    derivative = kt.differentiate(function, wrt)
    found = {}
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            found[tier] = np.array(derivative(model, *given.values(), f_ext))
            kernels = [p.kernel for p in model.memo.values() if isinstance(p, Prepared)]
            assert [k.tier for k in kernels] == [tier]
    scale = np.max(np.abs(found["specialised"]))
    np.testing.assert_allclose(*found.values(), rtol=0, atol=1e-11 * scale)


def test_derivatives_of_irregular_joints_stay_specialised(rng):
    model = robot(rng, (kt.Universal("xy"),), floating=False, bodies=2)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    derivative = kt.differentiate(kt.inverse_dynamics, "qd")
    with kt.tier("general"):
        d = derivative(model, q, qd, qd)
    C = [kt.coriolis_matrix(model, q, v) for v in (qd, *np.eye(model.nv))]
    expected = C[0] + np.array([c @ qd for c in C[1:]]).T  # of C(q, qd) qd, bilinear
    np.testing.assert_allclose(d, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


def test_inverse_of_the_mass_matrix_is_symmetric_to_the_last_digit(mechanism, rng):
    robot = kt.samples.quadruped()
    with kt.tier("general"):
        H_inv = kt.inverse_mass_matrix(mechanism, mechanism.random_configuration(rng))
        assert np.array_equal(H_inv, H_inv.T)
        rest = robot.random_configuration(rng), np.zeros(robot.nv), np.zeros(robot.nv)
        H_inv = kt.differentiate(kt.forward_dynamics, "tau")(robot, *rest)
        assert np.array_equal(H_inv, H_inv.T)
