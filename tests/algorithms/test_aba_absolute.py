"""The basic articulated-body algorithm in base coordinates — RBDA (7.26)–(7.42)."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import conditioning, random_external_forces, random_state

from kinetree import samples
from kinetree.algorithms import aba, aba_absolute
from kinetree.algorithms.kinematics import base_velocities
from kinetree.errors import SingularError
from kinetree.joints import REPRESENTATIVES, Revolute
from kinetree.model import ModelBuilder


@pytest.mark.covers("RBDA 7.3", by=aba_absolute.forward_dynamics)
def test_agrees_with_the_algorithm_in_body_coordinates(rng):
    for _ in range(10):
        model = samples.random_tree(int(rng.integers(1, 10)), rng, joints=REPRESENTATIVES)
        q, qd, tau = random_state(model, rng)
        f_ext = random_external_forces(model, rng)
        body = aba.articulated_bodies(model, q, qd, tau, f_ext)
        base = aba_absolute.articulated_bodies(model, q, qd, tau, f_ext)
        X_0 = aba_absolute.bodies_in_base(model, q, qd).X_0
        cond = conditioning(model, q)
        size = np.abs(body.qdd).max(initial=10.0)
        assert_close(base.qdd, body.qdd, condition=cond, scale=size)
        for i in range(1, model.body_count + 1):
            IA = X_0[i].inv_apply(body.IA[i]).to_matrix()
            assert_close(base.IA[i].to_matrix(), IA, condition=cond)
            a = X_0[i].inv_apply(body.a[i]).to_array()
            assert_close(base.a[i].to_array(), a, condition=cond, scale=size)
            pA = X_0[i].inv_apply(body.pA[i]).to_array()
            assert_close(base.pA[i].to_array(), pA, condition=cond, scale=np.abs(IA).max() * size)


@pytest.mark.covers("RBDA 7.3", by=aba_absolute.bodies_in_base)
def test_first_pass_has_the_velocities_of_the_kinematics(rng):
    model = samples.random_tree(8, rng, joints=REPRESENTATIVES)
    q, qd, _ = random_state(model, rng)
    bodies = aba_absolute.bodies_in_base(model, q, qd)
    _, v = base_velocities(model, q, qd)
    for a, b in zip(bodies.v, v, strict=True):
        assert_close(a.to_array(), b.to_array())


@pytest.mark.covers("RBDA 7.3", by=aba_absolute.articulated_bodies)
def test_printed_equation_7_40_with_IA_in_place_of_Ia_would_be_wrong(rng):
    """The bias force of a parent changes by (IA - Ia) c, which is not a rounding error."""
    model = samples.chain(3)
    q, qd, tau = random_state(model, rng)
    bodies = aba_absolute.bodies_in_base(model, q, qd)
    result = aba_absolute.articulated_bodies(model, q, qd, tau)
    IA, S, c = (x[3] for x in (result.IA, bodies.S, bodies.c))
    U = (IA @ S).to_array()
    D = S.T @ (IA @ S)
    difference = U @ np.linalg.solve(D, U.T @ c.to_array())
    assert np.linalg.norm(difference) > 1e-2 * np.linalg.norm((IA @ c).to_array())


def test_a_joint_that_moves_no_inertia_is_named():
    model = ModelBuilder().body("vane", joint=Revolute("z")).build()
    with pytest.raises(SingularError, match="joint 'vane_joint' moves no inertia"):
        aba_absolute.forward_dynamics(model, np.zeros(1), np.zeros(1), np.zeros(1))
