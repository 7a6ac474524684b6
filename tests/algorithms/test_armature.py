"""Armature is a constant on the diagonal of H, in every algorithm or refused by name."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import with_armature, without_armature
from support.states import conditioning, random_external_forces, random_state

import kinetree as kt
from kinetree.algorithms import (
    aba,
    aba_absolute,
    centroidal,
    coriolis,
    crba,
    energy,
    minv,
    rnea,
    rnea_derivatives,
    rnea_tensor,
)
from kinetree.algorithms.aba_derivatives import forward_dynamics_derivatives
from kinetree.algorithms.closed import divide_and_conquer, joint_space, maximal
from kinetree.algorithms.crba import require_independent_joints
from kinetree.errors import ModelError, SingularError
from kinetree.functional.parameters import with_parameters
from kinetree.joints import REPRESENTATIVES, Fixed, Prismatic, Revolute, Spherical
from kinetree.model import JointDynamics, ModelBuilder
from kinetree.model.views import axial_view, condensed_view, dense_view
from kinetree.samples import random_inertia, random_tree
from kinetree.textbook import (
    aba_variants,
    closed_form,
    crba_variants,
    projection,
    rnea_3d,
    rnea_absolute,
    stacked,
)
from kinetree.textbook.record import Recording

SIMPLE = (Revolute("x"), Revolute((1, -2, 2)), Prismatic("z"), Fixed())


@pytest.fixture(params=range(5))
def case(request):
    rng = np.random.default_rng([4, request.param])
    joints = SIMPLE if request.param == 3 else REPRESENTATIVES
    model = with_armature(random_tree(6, rng, joints=joints, floating_base=request.param == 4), rng)
    return model, *random_state(model, rng), random_external_forces(model, rng)


def test_inertia_matrices_have_it_on_their_diagonal(case):
    model, q, *_ = case
    H = crba.joint_space_inertia(without_armature(model), q) + np.diag(model.armature)
    for name, actual in {
        "composite bodies": crba.joint_space_inertia(model, q),
        "definition": crba_variants.from_definition(model, q),
        "Jacobians": crba_variants.from_jacobians(model, q),
        "base coordinates": crba_variants.from_base_coordinates(model, q),
        "unit accelerations": crba_variants.from_unit_accelerations(model, q),
        "columns": np.array([crba_variants.column(model, q, k).tau for k in range(model.nv)]).T,
        "stacked": stacked.joint_space_inertia(model, q),
        "closed form": closed_form.equation_of_motion(model, q).H,
        "condensed": crba.joint_space_inertia(axial_view(condensed_view(model)), q),
        "Newton-Euler": np.array([rnea.inertia_product(model, q, e) for e in np.eye(model.nv)]).T,
    }.items():
        assert actual.shape == H.shape, name
        assert_close(actual, H, ulps=1000)


def test_inverse_dynamics_takes_it_along(case):
    model, q, qd, qdd, f_ext = case
    bare = rnea.inverse_dynamics(without_armature(model), q, qd, qdd, f_ext)
    tau = bare + model.armature * qdd
    scale = np.max(np.abs(tau))
    for function in (rnea, rnea_absolute, rnea_tensor):
        actual = function.inverse_dynamics(model, q, qd, qdd, f_ext)
        assert_close(actual, tau, ulps=1000, scale=scale)
    dense, typed = (rnea.inverse_dynamics(m, q, qd, qdd) for m in (dense_view(model), model))
    assert_close(dense, typed, ulps=1000, scale=scale)
    if all(isinstance(b.joint, (Revolute, Prismatic, Fixed)) for b in model.bodies):
        actual = rnea_3d.inverse_dynamics(model, q, qd, qdd, f_ext)
        assert_close(actual, tau, ulps=1000, scale=scale)
    for function in (rnea.bias_force, rnea_tensor.bias_force):
        expected = rnea.bias_force(without_armature(model), q, qd)
        assert_close(function(model, q, qd), expected, ulps=1000)


def test_forward_dynamics_is_the_inverse(case):
    model, q, qd, qdd, f_ext = case
    tau = rnea.inverse_dynamics(model, q, qd, qdd, f_ext)
    condition = conditioning(model, q) * max(1.0, np.max(np.abs(tau)))
    for method in (aba, aba_absolute, crba, maximal, joint_space):
        actual = method.forward_dynamics(model, q, qd, tau, f_ext)
        assert_close(actual, qdd, ulps=1000, condition=condition)


def test_inverse_matrices(case):
    model, q, *_ = case
    H_inv = np.linalg.inv(crba.joint_space_inertia(model, q))
    for actual in (
        minv.inverse_mass_matrix(model, q),
        minv.inverse_mass_matrix_by_factors(model, q),
    ):
        assert_close(actual, H_inv, ulps=1000, condition=conditioning(model, q))
    frame = model.body_names[-1]
    J = projection.handle_jacobian(model, q, frame)
    Phi = projection.inverse_inertia(model, q, frame)
    assert_close(Phi, J @ H_inv @ J.T, ulps=1000, condition=conditioning(model, q))


def test_energy_has_its_share_and_momentum_has_not(case):
    model, q, qd, *_ = case
    H, bare = crba.joint_space_inertia(model, q), without_armature(model)
    expected = qd @ H @ qd / 2
    assert_close(energy.kinetic_energy(model, q, qd), expected, ulps=1000)
    h = centroidal.total_momentum(model, q, qd)
    assert np.array_equal(h, centroidal.total_momentum(bare, q, qd))
    C = coriolis.coriolis_matrix(model, q, qd)
    assert np.array_equal(C, coriolis.coriolis_matrix(bare, q, qd))


def test_compiled_functions_have_it_too(rng):
    model = with_armature(random_tree(4, rng, joints=(*SIMPLE, Spherical())), rng)
    q, qd, qdd = random_state(model, rng)
    tau, H = rnea.inverse_dynamics(model, q, qd, qdd), crba.joint_space_inertia(model, q)
    condition = conditioning(model, q)
    assert_close(kt.inverse_dynamics(model, q, qd, qdd), tau, ulps=1000)
    assert_close(kt.mass_matrix(model, q), H)
    assert_close(kt.inverse_mass_matrix(model, q) @ H, np.eye(model.nv), condition=condition)
    assert_close(kt.kinetic_energy(model, q, qd), qd @ H @ qd / 2)
    for method in (None, "aba", "crba"):
        actual = kt.forward_dynamics(model, q, qd, tau, method=method)
        assert_close(actual, qdd, ulps=1000, condition=condition)
    d = kt.differentiate(kt.inverse_dynamics, ("q", "qd", "qdd"))
    actual, bare = d(model, q, qd, qdd), d(without_armature(model), q, qd, qdd)
    for x, expected in zip(actual, (bare[0], bare[1], H), strict=True):
        assert_close(x, expected, ulps=1000)
    recursive = rnea_derivatives.inverse_dynamics_derivatives(model, q, qd, qdd)
    for x, expected in zip(recursive, actual, strict=True):
        assert_close(x, expected, ulps=1000)


@pytest.mark.parametrize("floating", [False, True])
def test_recursive_derivatives_of_forward_dynamics_by_complex_step(rng, floating):
    joints = (*SIMPLE, Spherical())
    model = with_armature(random_tree(4, rng, joints=joints, floating_base=floating), rng)
    check_forward_derivatives(model, rng)


def check_forward_derivatives(model, rng):
    q, qd, tau = random_state(model, rng)
    d = forward_dynamics_derivatives(model, q, qd, tau)
    step = 1e-30
    scale = 1000 * conditioning(model, q)
    for k, e in enumerate(np.eye(model.nv)):
        dq = model.configuration_rate(q, e)
        along_q = aba.forward_dynamics(model, q + 1j * step * dq, qd, tau).imag / step
        along_qd = aba.forward_dynamics(model, q, qd + 1j * step * e, tau).imag / step
        assert_close(d.dq[:, k], along_q, condition=scale, scale=np.max(np.abs(d.dq)))
        assert_close(d.dqd[:, k], along_qd, condition=scale, scale=np.max(np.abs(d.dqd)))
    expected = minv.inverse_mass_matrix(model, q)
    assert_close(d.dtau, expected, condition=scale)


def test_armature_of_the_free_joint_itself(rng):
    """What a floating base takes upon itself it can no longer take alone."""
    model = with_armature(random_tree(3, rng, joints=SIMPLE, floating_base=True), rng)
    free = JointDynamics(armature=rng.uniform(0.1, 1.0, 6))
    model = model.replace(dynamics={model.joint_names[0]: free})
    check_forward_derivatives(model, rng)


def test_derivatives_with_respect_to_it(rng):
    model = with_armature(random_tree(3, rng, joints=SIMPLE[:3]), rng)
    q, qd, tau = random_state(model, rng)
    name = model.joint_names[model.armature_joints[0] - 1]
    k = model.v_slice[model.armature_joints[0]].start
    d = kt.differentiate(kt.forward_dynamics, f"armature:{name}")(model, q, qd, tau)
    # H qdd = tau - C, so dqdd = -H⁻¹ dH qdd
    qdd = kt.forward_dynamics(model, q, qd, tau)
    expected = -kt.inverse_mass_matrix(model, q)[:, [k]] * qdd[k]
    assert_close(d, expected, ulps=1000, condition=conditioning(model, q))
    f = kt.compile(kt.forward_dynamics, model, parameters=(f"armature:{name}",))
    changed = with_parameters(model, {f"armature:{name}": [0.9]})
    assert changed.armature[k] == 0.9
    expected = kt.forward_dynamics(changed, q, qd, tau)
    assert_close(f(q, qd, tau, [0.9]), expected, condition=conditioning(model, q))


def test_several_parameters_of_one_joint(rng):
    model = with_armature(random_tree(2, rng, joints=SIMPLE[:1]), rng)
    name = model.joint_names[0]
    changed = with_parameters(model, {f"armature:{name}": [0.9], f"damping:{name}": [0.1]})
    assert changed.bodies[0].dynamics == JointDynamics(armature=0.9, damping=0.1)
    f = kt.compile(kt.mass_matrix, model, parameters=(f"armature:{name}",))
    with pytest.raises(kt.ShapeError, match="armature must not be negative, got -1"):
        f(np.zeros(2), [-1.0])


def test_a_massless_body_with_a_rotor_can_be_moved():
    builder = ModelBuilder().body(
        "a", joint=Revolute("x"), dynamics=JointDynamics(armature=0.5)
    ).body("b", on="a", joint=Prismatic("z"))  # fmt: skip
    model = builder.build()
    with pytest.raises(SingularError, match="'b_joint' moves no inertia"):
        kt.forward_dynamics(model, np.zeros(2), np.zeros(2), np.ones(2))
    both = model.replace(dynamics={"b_joint": JointDynamics(armature=0.25)})
    require_independent_joints(both, "forward_dynamics")
    for method in (None, "aba", "crba", "implicit", "maximal"):
        qdd = kt.forward_dynamics(both, np.zeros(2), np.zeros(2), np.ones(2), method=method)
        assert_close(qdd, [2.0, 4.0])


def test_exact_numbers_stay_exact(rng):
    model = ModelBuilder().body(
        "a", joint=Prismatic("x"), inertia=random_inertia(rng), dynamics=JointDynamics(armature=0.5)
    ).build().map_numbers(Fraction)  # fmt: skip
    one = np.array([Fraction(1)])
    qdd = aba.forward_dynamics(model, one, one, one)
    assert rnea.inverse_dynamics(model, one, one, qdd).tolist() == [1]


def test_algorithms_without_a_place_for_it_raise(case):
    model, q, qd, tau, _ = case
    if not model.armature_joints:
        pytest.fail("every case has armature somewhere")
    name = model.joint_names[model.armature_joints[0] - 1]
    message = f"does not support the armature of joint '{name}' of model"
    for function in (
        divide_and_conquer.forward_dynamics,
        aba_variants.forward_dynamics_1,
        aba_variants.forward_dynamics_2,
    ):
        with pytest.raises(ModelError, match=message):
            function(model, q, qd, tau)


def test_nothing_is_added_where_there_is_none(rng):
    """Word for word: the same operations in the same order as for a model that never had any."""
    tree = random_tree(4, rng, joints=SIMPLE[:3])
    zero = tree.replace(dynamics={n: JointDynamics(armature=0.0) for n in tree.joint_names})
    recorded = []
    for model in (tree, zero):
        recording = Recording()
        q, qd, tau = (recording.array(name, (model.nv,)) for name in ("q", "qd", "tau"))
        aba.forward_dynamics(model, q, qd, tau)
        rnea.inverse_dynamics(model, q, qd, tau)
        crba.joint_space_inertia(model, q)
        energy.kinetic_energy(model, q, qd)
        recorded.append(recording.nodes)
    assert recorded[0] == recorded[1]


def test_momenta_and_rates_have_their_share(rng):
    model = with_armature(kt.samples.random_tree(4, rng), rng)
    q, qd, qdd = random_state(model, rng)
    H = kt.mass_matrix(model, q)
    condition = conditioning(model, q)
    assert_close(kt.generalized_momentum(model, q, qd), H @ qd, condition=condition)
    gained = kt.kinetic_energy_rate(model, q, qd, qdd)
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    fallen = kt.potential_energy_rate(model, q, qd)
    assert_close(gained + fallen, tau @ qd, condition=condition, scale=np.abs(tau) @ np.abs(qd))
    Y = kt.regressor(model, q, qd, qdd)
    p = np.concatenate([b.inertia.parameters() for b in model.bodies])
    assert_close(Y @ p + model.armature * qdd, tau, condition=condition)
