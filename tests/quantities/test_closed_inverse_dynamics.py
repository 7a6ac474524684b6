"""Inverse dynamics of closed chains: the inverse of forward dynamics, smallest forces, errors."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed import inverse_dynamics as text
from kinetree.errors import ShapeError, TraceError
from kinetree.quantities import closed_chains


def motion(model, rng, count):
    """States with closed loops, joint forces, and the accelerations that these produce."""
    q = np.broadcast_to(kt.loops.assemble(model), (count, model.nq))
    qd = kt.loops.project_velocity(model, q, rng.normal(size=(count, model.nv)))
    return q, qd, kt.forward_dynamics(model, q, qd, rng.normal(size=(count, model.nv)))


@pytest.mark.covers("RBDA 8.12", by=(text.terms, text.solution))
@pytest.mark.parametrize("name", ["four_bar", "stewart", "excavator"])
def test_forward_dynamics_returns_the_acceleration(name):
    model, rng = getattr(kt.samples, name)(), np.random.default_rng(1)
    q, qd, qdd = motion(model, rng, 3)
    tau = closed_chains.inverse_dynamics(model, (q, qd, qdd))
    assert_close(kt.forward_dynamics(model, q, qd, tau), qdd, ulps=1e6, scale=1 + np.abs(qdd).max())
    assert_close(tau, kt.loops.inverse_dynamics(model, q, qd, qdd).tau)
    one = closed_chains.inverse_dynamics(model, (q[1], qd[1], qdd[1]))
    assert_close(one, tau[1], ulps=1e4, scale=1 + np.abs(tau).max())


def test_external_forces_count():
    model, rng = kt.samples.four_bar(), np.random.default_rng(2)
    q, qd, _ = motion(model, rng, 2)
    f_ext = rng.normal(size=(2, model.body_count, 6))
    qdd = kt.forward_dynamics(model, q, qd, np.zeros(model.nv), f_ext)
    tau = closed_chains.inverse_dynamics(model, (q, qd, qdd, f_ext))
    assert_close(kt.forward_dynamics(model, q, qd, tau, f_ext), qdd, ulps=1e5, scale=10)


def test_motions_that_loops_do_not_allow_are_rejected():
    model = kt.samples.four_bar()
    q, qd, qdd = motion(model, np.random.default_rng(3), 1)
    with pytest.raises(ShapeError, match=r"qdd does not satisfy loop"):
        closed_chains.inverse_dynamics(model, (q[0], qd[0], qdd[0] + 1.0))


def test_it_says_that_it_cannot_be_traced():
    model = kt.samples.four_bar()

    @kt.kernel
    def force(model, q):
        return closed_chains.inverse_dynamics(model, (q, np.zeros(model.nv), np.zeros(model.nv)))

    with pytest.raises(TraceError, match="decides ranks and cannot be traced"):
        force(model, kt.loops.assemble(model))
