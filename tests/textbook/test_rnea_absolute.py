"""Newton–Euler in base coordinates: the same quantities, relative to the base."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import Mixed, assert_printed, mixed_tree, random_state

from kinetree.algorithms import rnea
from kinetree.model import Model
from kinetree.textbook import rnea_absolute


@pytest.mark.covers("RBDA Table 5.1", "RBDA 5.3", by=rnea_absolute.newton_euler)
@pytest.mark.parametrize("n", range(5))
def test_both_coordinate_systems_give_the_same_vectors(n, rng):
    m, q, qd, qdd, f_ext = random_state(rng)
    base = rnea_absolute.newton_euler(m, q, qd, qdd, f_ext)
    body = rnea.newton_euler(m, q, qd, qdd, f_ext)
    assert_close(base.tau, body.tau)
    for i in range(1, m.body_count + 1):
        for b, a in ((base.v, body.v), (base.a, body.a), (base.f, body.f)):
            in_base = base.X[i].inv_apply(a[i]).to_array()
            assert_close(b[i].to_array(), in_base, scale=10 + np.max(np.abs(in_base)))


def test_without_gravity_and_external_forces(rng):
    m, q, qd, qdd, _ = random_state(rng)
    assert_close(
        rnea_absolute.newton_euler(m, q, qd, qdd, gravity=False).tau,
        rnea.newton_euler(m, q, qd, qdd, gravity=False).tau,
    )


@pytest.mark.covers("6-D Guide 2: Algorithm", by=rnea_absolute.inverse_dynamics)
def test_branched_tree_with_mixed_joints():
    tau = rnea_absolute.inverse_dynamics(mixed_tree(), Mixed.q, Mixed.qd, Mixed.qdd)
    assert_printed(tau, Mixed.tau, 12)


def test_empty_model():
    nothing = np.zeros(0)
    assert rnea_absolute.inverse_dynamics(Model(), nothing, nothing, nothing).shape == (0,)
