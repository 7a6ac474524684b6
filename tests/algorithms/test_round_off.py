"""Round-off in the tree algorithms grows slowly with the number of bodies — RBDA §10.1."""

import numpy as np
import pytest
from support.closeness import EPS

from kinetree import samples
from kinetree.algorithms import aba, crba, rnea


def error(model, forward_dynamics, rng):
    """Of the acceleration after inverse and forward dynamics."""
    q, qd, qdd = rng.uniform(-1, 1, (3, model.nv))
    tau = rnea.inverse_dynamics(model, q, 0.1 * qd, qdd)
    return np.max(np.abs(forward_dynamics(model, q, 0.1 * qd, tau) - qdd))


@pytest.mark.covers("RBDA 10.1", by=(rnea.inverse_dynamics, aba.forward_dynamics))
@pytest.mark.parametrize("bodies", [10, 100, 1000])
def test_a_thousand_bodies_leave_half_of_the_digits_even_in_a_chain(bodies, rng):
    """Condition numbers of the inertia matrix of a chain grow with the fourth power."""
    assert error(samples.chain(bodies), aba.forward_dynamics, rng) < 50 * bodies**2.5 * EPS
    assert error(samples.tree(bodies, 2), aba.forward_dynamics, rng) < 50 * bodies * EPS


@pytest.mark.covers("RBDA 10.1", by=(aba.forward_dynamics, crba.forward_dynamics))
def test_articulated_bodies_lose_fewer_digits_than_the_inertia_matrix(rng):
    chain = samples.chain(60)
    errors = {
        method: np.median([error(chain, method.forward_dynamics, rng) for _ in range(9)])
        for method in (aba, crba)
    }
    assert errors[aba] < errors[crba]
