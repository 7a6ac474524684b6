"""Articulated-body algorithms on variants 1 and 2 of Table 7.2 — RBDA §7.4."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.states import (
    aligned_chain,
    conditioning,
    floating_tree,
    random_external_forces,
    random_state,
)  # fmt: skip

from kinetree import samples
from kinetree.algorithms import aba
from kinetree.algorithms.aba_absolute import bodies_in_base
from kinetree.errors import SingularError
from kinetree.joints import REPRESENTATIVES, Prismatic, Revolute
from kinetree.model import ModelBuilder
from kinetree.spatial import Inertia
from kinetree.textbook import aba_variants, projection

VARIANTS = (aba_variants.forward_dynamics_1, aba_variants.forward_dynamics_2)


def tolerance(model, q, qdd):
    bodies = bodies_in_base(model, q, model.zero_velocity)
    shifts = max(float(np.linalg.cond(I.to_matrix())) ** 0.5 for I in bodies.I[1:])
    cond = conditioning(model, q) * shifts
    return {"condition": cond, "scale": 10 + np.abs(qdd).max(initial=0)}


@pytest.mark.covers("RBDA 7.4", by=VARIANTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_with_the_standard_algorithm(variant, rng):
    for _ in range(6):
        model = samples.random_tree(int(rng.integers(1, 9)), rng, joints=REPRESENTATIVES)
        q, qd, tau = random_state(model, rng)
        f_ext = random_external_forces(model, rng)
        qdd = aba.forward_dynamics(model, q, qd, tau, f_ext)
        assert_close(variant(model, q, qd, tau, f_ext), qdd, **tolerance(model, q, qdd))


@pytest.mark.covers("RBDA 7.4", by=aba_variants.forward_dynamics_1)
def test_variant_1_may_collect_the_mechanism_in_any_body(rng):
    model = samples.random_tree(7, rng, joints=REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    qdd = aba.forward_dynamics(model, q, qd, tau)
    for root in model.body_names:
        actual = aba_variants.forward_dynamics_1(model, q, qd, tau, root=root)
        assert_close(actual, qdd, **tolerance(model, q, qdd))


@pytest.mark.covers("RBDA 7.4", "RBDA 7.1", by=aba_variants.body_response)
@pytest.mark.parametrize("grounded", [True, False])
def test_response_of_any_body_equals_its_projection(grounded, rng):
    if grounded:
        model = samples.random_tree(6, rng, joints=REPRESENTATIVES)
    else:
        model = floating_tree(rng, 6, REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    f_ext = random_external_forces(model, rng)
    X_0 = bodies_in_base(model, q, qd).X_0
    for i, name in enumerate(model.body_names[1:], start=1):
        Phi, b = aba_variants.body_response(model, q, qd, tau, name, f_ext)
        expected = projection.handle_response(model, q, qd, tau, name, f_ext)
        X = X_0[i].to_matrix()
        close = tolerance(model, q, expected.b)
        assert_close(
            X @ Phi @ X.T, expected.Phi, condition=close["condition"], scale=np.abs(Phi).max()
        )
        assert_close(X @ b, expected.b, **close)
    Phi, b = aba_variants.body_response(model, q, qd, tau, "base")
    assert not np.any(Phi)
    assert not np.any(b)


@pytest.mark.covers("RBDA 7.1", by=aba_variants.body_response)
def test_rank_of_the_inverse_inertia_is_the_freedom_of_the_handle(rng):
    for n in range(1, 9):
        model = samples.chain(n)
        q, qd, tau = random_state(model, rng)
        Phi, _ = aba_variants.body_response(model, q, qd, tau, f"link{n}")
        assert np.linalg.matrix_rank(Phi, tol=1e-10 * np.abs(Phi).max()) == min(n, 6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_runs_on_complex_and_multiprecision_numbers(variant, rng):
    model = aligned_chain(rng)
    q, qd, tau = random_state(model, rng)
    d = rng.standard_normal(6)
    rate = variant(model, q, qd, tau + 1e-30j * d).imag / 1e-30
    expected = aba.forward_dynamics(model, q, qd, tau + 1e-30j * d).imag / 1e-30
    assert_close(rate, expected, **tolerance(model, q, expected))
    with mpmath.workdps(40):
        precise = model.map_numbers(mpmath.mpf)
        state = [np.array([mpmath.mpf(x) for x in part]) for part in (q, qd, tau)]
        difference = variant(precise, *state) - aba.forward_dynamics(precise, *state)
        assert max(abs(x) for x in difference) < mpmath.mpf(10) ** -33


@pytest.mark.parametrize(
    ("variant", "what"),
    [(VARIANTS[0], "the single body 'rod'"), (VARIANTS[1], "the articulated body 'rod'")],
)
def test_a_body_without_inertia_is_named(variant, what):
    rod = Inertia.from_mass_center(1.0, (0, 0, 0.5), np.diag([0.1, 0.1, 0.0]))
    cart = Inertia.from_mass_center(1.0, (0, 0, 0.5), np.diag([0.1, 0.1, 0.1]))
    model = (
        ModelBuilder()
        .body("cart", joint=Prismatic("x"), inertia=cart)
        .body("rod", on="cart", joint=Revolute("y"), inertia=rod)
        .build()
    )
    q = np.zeros(2)
    with pytest.raises(SingularError, match=f"{what} has no inverse inertia, which this variant"):
        variant(model, q, q, q)
