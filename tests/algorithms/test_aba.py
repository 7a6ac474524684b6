"""The articulated-body algorithm of Table 7.1 and what it computes on the way."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from support.closeness import assert_close
from support.states import (
    aligned_chain,
    conditioning,
    floating_tree,
    random_external_forces,
    random_state,
)  # fmt: skip

from kinetree import samples
from kinetree.algorithms import aba, aba_absolute, crba, rnea
from kinetree.algorithms.closed import maximal
from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.algorithms.propagation import propagate
from kinetree.errors import SingularError
from kinetree.joints import (
    REPRESENTATIVES,
    Fixed,
    Free,
    Helical,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)  # fmt: skip
from kinetree.model import Model, ModelBuilder
from kinetree.model.views import dense_view
from kinetree.spatial import Force, Inertia, crf, rotx, xlt
from kinetree.textbook.aba_variants import true_accelerations

DISC = Inertia.from_mass_center(1.5, (0.2, 0.1, -0.1), np.diag([0.02, 0.03, 0.04]))


@pytest.mark.covers("RBDA Table 7.1", "RBDA 7.3", by=aba.forward_dynamics)
@pytest.mark.covers("6-D Guide 2: Articulated-Body Algorithm", by=aba.forward_dynamics)
@pytest.mark.parametrize("floating", [False, True])
def test_forward_dynamics_inverts_inverse_dynamics(floating, rng):
    for _ in range(15):
        model = samples.random_tree(
            int(rng.integers(1, 9)), rng, joints=REPRESENTATIVES, floating_base=floating
        )
        q, qd, qdd = random_state(model, rng)
        f_ext = random_external_forces(model, rng)
        tau = rnea.inverse_dynamics(model, q, qd, qdd, f_ext)
        assert_close(
            aba.forward_dynamics(model, q, qd, tau, f_ext), qdd,
            condition=conditioning(model, q), scale=np.abs(tau).max(initial=1.0),
        )  # fmt: skip


@pytest.mark.covers("6-D Guide 2: Articulated-Body Algorithm", by=aba.forward_dynamics)
def test_branched_tree_of_mixed_joints_gives_its_reference_numbers():
    pitch = (0, np.inf, 0.1, 0, 0, np.inf)
    builder = ModelBuilder(gravity=(0, 0, -9.81))
    for i, parent in enumerate((0, 1, 2, 1, 2, 4), start=1):
        h = pitch[i - 1]
        joint = Prismatic("z") if h == np.inf else Helical("z", pitch=h) if h else Revolute("z")
        builder.body(
            f"b{i}", on=f"b{parent}" if parent else None, joint=joint,
            at=rotx(0.1 * i) @ xlt(0.1 * i, 0.2, -0.05 * i),
            inertia=Inertia.from_mass_center(
                1 + 0.1 * i, (0.05 * i, 0.02, -0.03 * i),
                np.diag([0.01 * i + 0.02, 0.02 * i + 0.03, 0.015 * i + 0.04]),
            ),
        )  # fmt: skip
    i = np.arange(1, 7)
    qdd = aba.forward_dynamics(builder.build(strict=False), 0.1 * i, 0.3 - 0.1 * i, np.zeros(6))
    # computed once with an independent dense implementation, twelve digits
    expected = [-1.611093273738, -9.546353594797, -0.500973440226,
                -7.773504655295, -0.272898504608, -10.401948150142]  # fmt: skip
    assert np.max(np.abs(qdd - expected)) < 1e-12 * 10.5


@pytest.mark.covers("RBDA 7.1", by=aba.articulated_bodies)
def test_articulated_inertias_depend_on_positions_alone(rng):
    model = samples.random_tree(8, rng, joints=REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    still = aba.articulated_bodies(model, q, 0 * qd, 0 * tau).IA
    moving = aba.articulated_bodies(model, q, qd, tau, random_external_forces(model, rng)).IA
    for i in range(1, model.body_count + 1):
        assert np.array_equal(still[i].to_matrix(), moving[i].to_matrix())


@pytest.mark.covers("RBDA 7.1", by=aba.articulated_bodies)
def test_articulated_inertias_are_symmetric_and_positive_definite(rng):
    model = samples.random_tree(10, rng)
    for IA in aba.articulated_bodies(model, *random_state(model, rng)).IA[1:]:
        M = IA.to_matrix()
        assert_close(M, M.T)
        assert np.linalg.eigvalsh(M)[0] > 0


@pytest.mark.covers("RBDA 7.1", by=aba.articulated_bodies)
def test_a_leaf_is_its_own_articulated_body(rng):
    model = samples.random_tree(10, rng)
    bodies = aba.articulated_bodies(model, *random_state(model, rng))
    leaves = [i for i in range(1, 11) if not model.children[i]]
    assert leaves
    for i in leaves:
        assert bodies.IA[i] is model.inertia[i]
        p = crf(bodies.v[i], model.inertia[i] @ bodies.v[i])
        assert np.array_equal(bodies.pA[i].to_array(), p.to_array())


@pytest.mark.covers("RBDA 7.2", by=aba.articulated_bodies)
def test_force_across_a_joint_from_both_sides(rng):
    """RBDA (7.25), and the joint forces of the Newton-Euler algorithm."""
    model = samples.random_tree(9, rng, joints=REPRESENTATIVES, floating_base=True)
    q, qd, tau = random_state(model, rng)
    bodies = aba.articulated_bodies(model, q, qd, tau)
    f = aba.joint_forces(bodies)
    truth = rnea.newton_euler(model, q, qd, bodies.qdd).f
    size = max(np.abs(x.to_array()).max() for x in truth[1:])
    cond = conditioning(model, q)
    for j in range(1, model.body_count + 1):
        _, S, _, _ = model.jcalc(j, q, qd)
        Ia, pa = propagate(bodies.IA[j], bodies.pA[j], S, bodies.c[j], tau[model.v_slice[j]])
        from_parent = Ia @ (bodies.X[j] @ bodies.a[model.parent[j]]) + pa
        assert_close(from_parent.to_array(), f[j].to_array(), scale=size, condition=cond)
        assert_close(f[j].to_array(), truth[j].to_array(), scale=size, condition=cond)
        assert_close(S.T @ f[j], tau[model.v_slice[j]], scale=size, condition=cond)


@pytest.mark.covers(
    "RBDA 7.1", "6-D Guide 2: Articulated-Body Algorithm", by=aba.articulated_bodies
)
def test_pushing_a_handle_obeys_the_articulated_body_equation(rng):
    model = samples.random_tree(7, rng, floating_base=True)
    q, qd, tau = random_state(model, rng)
    tau[:6] = 0  # the handle floats freely
    alone = aba.articulated_bodies(model, q, qd, tau)
    X_0 = base_transforms(model, alone.X)[1]
    for _ in range(6):
        f = Force.from_array(rng.standard_normal(6))
        f_ext = [None, X_0.T @ f] + [Force.zero()] * 6
        a = aba.articulated_bodies(model, q, qd, tau, f_ext).a[1]
        response = alone.IA[1] @ a + alone.pA[1]
        size = np.abs(alone.pA[1].to_array()).max()
        assert_close(
            response.to_array(), f.to_array(), scale=size, condition=conditioning(model, q)
        )


@pytest.mark.covers("RBDA 7.3", by=true_accelerations)
def test_true_accelerations_are_those_of_the_kinematics(rng):
    model = samples.random_tree(8, rng, joints=REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    bodies = aba.articulated_bodies(model, q, qd, tau)
    _, _, expected = body_accelerations(model, q, qd, bodies.qdd)
    for a, b in zip(true_accelerations(model, bodies), expected, strict=True):
        assert_close(a.to_array(), b.to_array(), scale=np.abs(bodies.qdd).max(), ulps=400)


@pytest.mark.covers("RBDA 7.3", by=true_accelerations)
def test_a_floating_tree_at_rest_falls_as_one_body(rng):
    kinds = [joint for joint in REPRESENTATIVES if not isinstance(joint, Free)]
    model = floating_tree(rng, 8, kinds)
    q = model.random_configuration(rng)
    zero = np.zeros(model.nv)
    bodies = aba.articulated_bodies(model, q, zero, zero)
    assert_close(bodies.qdd[6:], zero[6:], scale=9.81, condition=conditioning(model, q))
    X_0 = base_transforms(model, bodies.X)
    for a, X in zip(true_accelerations(model, bodies)[1:], X_0[1:], strict=True):
        assert_close(a.to_array(), (X @ model.a_g).to_array(), condition=conditioning(model, q))


@pytest.mark.covers("RBDA 7.3", by=aba.forward_dynamics)
def test_gravity_may_as_well_be_an_external_force(rng):
    model = samples.random_tree(8, rng, joints=REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    weightless = model.replace(gravity=np.zeros(3))
    bodies = aba.articulated_bodies(model, q, qd, tau)
    X_0 = base_transforms(model, bodies.X)
    weights = [None] + [X_0[i].inv_apply(model.inertia[i]) @ model.a_g for i in range(1, 9)]
    heavy = aba.articulated_bodies(weightless, q, qd, tau, weights)
    cond = conditioning(model, q)
    assert_close(heavy.qdd, bodies.qdd, condition=cond, scale=10 + np.abs(tau).max())
    for a, b in zip(heavy.a[1:], true_accelerations(model, bodies)[1:], strict=True):
        scale = 10 + np.abs(bodies.qdd).max()
        assert_close(a.to_array(), b.to_array(), condition=cond, scale=scale)


def pendulum_on_a_trolley(trolley, bob):
    return (
        ModelBuilder()
        .body("trolley", joint=Prismatic("x"), inertia=trolley)
        .body("bob", on="trolley", joint=Revolute("y"), inertia=bob)
        .build()
    )


@pytest.mark.covers("RBDA Table 7.1", by=aba.forward_dynamics)
def test_a_joint_that_moves_no_inertia_is_named():
    model = pendulum_on_a_trolley(DISC, Inertia.zero())
    with pytest.raises(SingularError) as error:
        aba.forward_dynamics(model, np.zeros(2), np.zeros(2), np.zeros(2))
    assert str(error.value) == (
        "forward dynamics is singular: joint 'bob_joint' moves no inertia, so any force gives it "
        "infinite acceleration. Give body 'bob' or a body beyond it mass away from the joint "
        "axis, or make the joint Fixed"
    )


def test_a_point_mass_on_a_slanted_axis_is_noticed_through_rounding_errors(rng):
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    bead = Inertia.from_mass_center(1.0, 0.6 * axis, np.zeros((3, 3)))
    model = ModelBuilder().body("rod", joint=Revolute(axis), inertia=bead).build()
    with pytest.raises(SingularError, match="'rod_joint' moves no inertia"):
        aba.forward_dynamics(model, np.array([0.3]), np.zeros(1), np.zeros(1))
    ball = model.replace(joint={"rod_joint": Spherical()})
    with pytest.raises(SingularError, match="'rod_joint' moves no inertia"):
        aba.forward_dynamics(ball, ball.neutral(), np.zeros(3), np.zeros(3))


@pytest.mark.covers("RBDA Table 7.1", by=aba.forward_dynamics)
def test_massless_bodies_between_others_do_no_harm(rng):
    """A universal joint, and the same made of two hinges with a massless cross between them."""
    q, qd, tau = rng.standard_normal((3, 3))
    whole = (
        ModelBuilder()
        .body("arm", joint=Revolute("z"), inertia=DISC)
        .body("hand", on="arm", joint=Universal("xy"), at=(0.4, 0, 0), inertia=DISC)
        .build()
    )
    parts = (
        ModelBuilder()
        .body("arm", joint=Revolute("z"), inertia=DISC)
        .body("cross", on="arm", joint=Revolute("x"), at=(0.4, 0, 0))
        .body("hand", on="cross", joint=Revolute("y"), inertia=DISC)
        .build()
    )
    expected = aba.forward_dynamics(whole, q, qd, tau)
    assert_close(
        aba.forward_dynamics(parts, q, qd, tau), expected, condition=conditioning(whole, q)
    )


@pytest.mark.covers("RBDA 7.1", by=aba.articulated_bodies)
def test_gluing_handles_adds_their_inertias_and_bias_forces(rng):
    """A fixed joint makes one body of two; so does adding their inertias in one frame."""
    placement = samples.random_placement(rng)
    other = samples.random_inertia(rng)
    pair = (
        ModelBuilder()
        .body("one", joint=Free(), inertia=DISC)
        .body("other", on="one", joint=Fixed(), at=placement, inertia=other)
        .build()
    )
    glued = DISC + placement.inv_apply(other)
    whole = ModelBuilder().body("one", joint=Free(), inertia=glued).build()
    q, qd, tau = random_state(pair, rng)
    a, b = (aba.articulated_bodies(model, q, qd, tau) for model in (pair, whole))
    assert_close(a.IA[1].to_matrix(), b.IA[1].to_matrix())
    assert_close(a.pA[1].to_array(), b.pA[1].to_array())
    assert_close(a.qdd, b.qdd, condition=conditioning(whole, q))


@pytest.mark.covers("RBDA Table 7.1", by=aba.forward_dynamics)
def test_the_same_source_runs_on_dense_six_by_six_matrices(rng):
    model = samples.random_tree(8, rng, joints=REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    compact = aba.articulated_bodies(model, q, qd, tau)
    definition = aba.articulated_bodies(dense_view(model), q, qd, tau)
    cond = conditioning(model, q)
    assert_close(definition.qdd, compact.qdd, condition=cond, scale=10 + np.abs(tau).max())
    for i in range(1, 9):
        assert_close(compact.IA[i].to_matrix(), definition.IA[i], condition=cond)


def fraction_tree():
    kinds = [Prismatic("x"), Prismatic("-y"), Fixed(), Prismatic("z")]
    builder = ModelBuilder(gravity=(0, Fraction(1, 3), Fraction(-981, 100)))
    names = [None]
    for i in range(8):
        m = Fraction(i + 2, 3)
        inertia = Inertia.from_mass_center(
            m, np.array([Fraction(i, 7), Fraction(1, 5), 0]),
            np.diag([Fraction(1, 5), Fraction(1, 4), Fraction(1, 3)]),
        )  # fmt: skip
        at = np.array([Fraction(1, i + 1), 0, Fraction(2, 3)])
        names.append(f"b{i}")
        builder.body(names[-1], on=names[i // 2], joint=kinds[i % 4], at=at, inertia=inertia)
    return builder.build()


@pytest.mark.covers("RBDA Table 7.1", by=aba.forward_dynamics)
def test_exact_in_rational_arithmetic():
    model = fraction_tree()
    q, qd, tau = (
        np.array([Fraction(k * n + 1, n + 2) for n in range(model.nv)]) for k in (2, 3, 5)
    )
    qdd = aba.forward_dynamics(model, q, qd, tau)
    assert all(type(x) is Fraction for x in qdd)
    assert np.array_equal(rnea.inverse_dynamics(model, q, qd, qdd), tau)


@pytest.mark.covers("RBDA Table 7.1", by=aba.forward_dynamics)
def test_fifty_digits_in_multiprecision_arithmetic(rng):
    model = aligned_chain(rng)  # compact transforms count on E Eᵀ = 1
    state = random_state(model, rng)
    with mpmath.workdps(50):
        q, qd, tau = (np.array([mpmath.mpf(x) for x in part]) for part in state)
        precise = model.map_numbers(mpmath.mpf)
        qdd = aba.forward_dynamics(precise, q, qd, tau)
        residual = rnea.inverse_dynamics(precise, q, qd, qdd) - tau
        assert max(abs(x) for x in residual) < mpmath.mpf(10) ** -45
    expected = aba.forward_dynamics(model, *state)
    assert_close(qdd.astype(float), expected, condition=conditioning(model, state[0]))


def test_complex_step_gives_the_inverse_inertia_times_the_torque_rate(rng):
    model = samples.random_tree(
        6, rng, joints=[Revolute("z"), Prismatic("x"), Helical("y", pitch=0.2)]
    )
    q, qd, tau = random_state(model, rng)
    d = rng.standard_normal(model.nv)
    rate = aba.forward_dynamics(model, q, qd, tau + 1e-30j * d).imag / 1e-30
    H = crba.joint_space_inertia(model, q)
    assert_close(rate, np.linalg.solve(H, d), condition=conditioning(model, q))
    # and with respect to q the rate of qdd that keeps tau fixed
    dq = rng.standard_normal(model.nv)
    qdd = aba.forward_dynamics(model, q + 1e-30j * dq, qd, tau)
    dtau = rnea.inverse_dynamics(model, q + 1e-30j * dq, qd, qdd).imag / 1e-30
    assert_close(
        dtau, 0 * dtau, scale=np.abs(qdd.imag).max() / 1e-30, condition=conditioning(model, q)
    )


def test_symbols_give_the_textbook_pendulum():
    m, l, g, angle, speed, torque = sympy.symbols("m l g q qd tau", positive=True)
    inertia = Inertia.from_mass_center(m, np.array([l, 0, 0]), np.zeros((3, 3), int))
    model = (
        ModelBuilder(gravity=np.array([0, -g, 0], dtype=object))
        .body("bob", joint=Revolute("z"), inertia=inertia)
        .build()
    )
    state = (np.array([x], dtype=object) for x in (angle, speed, torque))
    (qdd,) = aba.forward_dynamics(model, *state)
    expected = (torque - m * g * l * sympy.cos(angle)) / (m * l**2)
    assert sympy.simplify(qdd - expected) == 0


@pytest.mark.parametrize("way", [aba, aba_absolute, crba, maximal])
def test_a_model_without_bodies_has_nothing_to_accelerate(way):
    none = np.zeros(0)
    assert way.forward_dynamics(Model(), none, none, none).shape == (0,)
