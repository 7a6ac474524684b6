"""The compiled linear model: against derivatives sample by sample, and what it costs."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.expr.counting import cost
from kinetree.loops.linear.linearization import equations, linear_model, motion_state
from kinetree.loops.linear.tangent_dynamics import kernel_and_columns, tangent_dynamics
from kinetree.quantities.closed_chains import _kernel

CLOSED = ["bennett", "corner_ladder", "excavator", "five_bar", "kite_pair", "loader"]
MODELS: dict = {}


def moving(name, rng):
    """A closed mechanism, and a state in which it moves under forces."""
    m = MODELS.setdefault(name, getattr(kt.samples, name)())
    near = m.integrate(m.neutral(), 0.02 * rng.standard_normal(m.nv))
    q = kt.loops.project_configuration(m, near)
    qd = kt.loops.project_velocity(m, q, rng.standard_normal(m.nv))
    return m, q, qd, rng.standard_normal(m.nv)


@pytest.mark.covers("Spencer 4.2", by=tangent_dynamics)
@pytest.mark.parametrize("name", CLOSED)
def test_the_plan_and_the_general_way_agree(name, rng):
    m, q, qd, tau = moving(name, rng)
    f_ext = rng.standard_normal((m.body_count, 6))
    t = tangent_dynamics(m, None, q, qd, tau, f_ext)
    assert t is not None
    at = list(t.columns)
    general = motion_state(m, q, qd, tau, f_ext, np.eye(m.nv)[at])
    A21, A22, B2 = equations(*general)
    state, _, basis = general
    size = max(np.abs(A21).max(), np.abs(A22).max())
    condition = np.linalg.norm(basis.inverse) ** 2
    assert_close(t.W[at], A21, ulps=2e3, scale=size, condition=condition)
    assert_close(t.U[at], A22, ulps=2e3, scale=size, condition=condition)
    assert_close(t.B, B2, ulps=2e3, condition=condition)
    assert_close(t.G, basis.G, ulps=2e3, condition=condition)
    assert_close(t.qdd, state.qdd, ulps=2e3, condition=condition)


@pytest.mark.parametrize("name", ["bennett", "excavator", "five_bar", "loader"])
def test_loops_that_are_open_are_left_to_the_general_way(name, rng):
    """``health`` says so: what the plan finds there is of no motion."""
    m, q, qd, tau = moving(name, rng)
    assert tangent_dynamics(m, None, q, qd, tau).health >= 1
    apart = m.integrate(q, 0.05 * np.sign(rng.standard_normal(m.nv)))
    assert not tangent_dynamics(m, None, apart, qd, tau).health >= 1


@pytest.mark.covers("Spencer 4.1", by=tangent_dynamics)
@pytest.mark.parametrize("name", ["loader", "five_bar", "bennett"])
def test_accelerations_along_the_manifold_by_a_complex_step(name, rng):
    """[Df] Dψ of forward dynamics, which along tangents does not depend on how it goes on."""
    m, q, qd, tau = moving(name, rng)
    t, h = tangent_dynamics(m, None, q, qd, tau), 1e-30
    still = np.zeros_like(t.G)
    for dq, dqd, found in ((t.G, t.V, t.W), (still, t.G, t.U)):
        for k in range(len(t.columns)):
            state = q + 1j * h * dq[:, k], qd + 1j * h * dqd[:, k], tau + 0j
            along = kt.forward_dynamics(m, *state).imag / h
            assert_close(found[:, k], along, ulps=1e5, scale=np.abs(t.W).max())


@pytest.mark.parametrize("independent", [None, "tangent", "matrix", "swapped", "loop joint"])
def test_all_coordinates_of_the_loader_against_central_differences(independent, rng):
    m, q, qd, tau = moving("loader", rng)
    independent = {
        "matrix": [[1, 0.5], [-0.3, 1]] @ kt.loops.linearize_in_coordinates(m, q, qd, tau).G.T,
        "swapped": ["bucket_joint", "boom_joint"],
        "loop joint": ["tilt_eye", "boom_joint"],
    }.get(independent, independent)
    found, differences = (
        kt.loops.linearize_in_coordinates(m, q, qd, tau, independent=independent, method=method)
        for method in ("equations", "differences")
    )
    assert found.coordinates == differences.coordinates
    size = np.abs(found.A).max() * max(1, np.linalg.cond(found.G))
    assert np.abs(found.A - differences.A).max() < 1e-7 * size
    assert_close(found.rate, differences.rate, ulps=1e5)
    assert_close(found.B, differences.B, ulps=1e6)


def test_samples_that_no_plan_fits_are_solved_in_the_general_way():
    """Near a dead point of the rocker, which then says little about the crank."""
    m = MODELS.setdefault("four_bar", kt.samples.four_bar())
    y = np.concatenate([np.linspace(0, 4.05, 40), np.linspace(4.07, 4.09, 41)])[:, None]
    q, qd, _ = kt.loops.coordinate_motion(
        m, np.zeros(3), y, np.ones_like(y), 0 * y, independent=["crank_joint"]
    )
    q, qd = q[40:], qd[40:]
    names, tau = ["rocker_joint"], np.zeros(3)
    t = tangent_dynamics(m, (2,), q, qd, tau)
    poor = t.health < 1
    assert 0 < poor.sum() < 20
    found = linear_model(m, q, qd, tau, None, names)
    for k in np.flatnonzero(poor):
        state, chosen, basis = motion_state(m, q[k], qd[k], tau, None, names)
        A21, *_ = equations(state, chosen, basis)
        assert_close(found.A[k, 1:, :1], A21, ulps=1e6, condition=np.linalg.norm(basis.inverse))
        assert_close(found.qdd[k], state.qdd, ulps=1e5, condition=np.linalg.norm(basis.inverse))
    good = ~poor
    alone = linear_model(m, q[good], qd[good], tau, None, names)
    assert np.array_equal(found.A[good], alone.A)


def test_states_that_no_plan_takes():
    """Where ranks change, and where loops are open, the general way answers."""
    m = MODELS.setdefault("five_bar", kt.samples.five_bar())
    rest = np.zeros(4)
    singular = np.array(m.posture("singular").q, dtype=float)
    assert not tangent_dynamics(m, None, singular, rest, rest).health >= 1
    linear = linear_model(m, singular, rest, rest, None, None)
    assert len(linear.coordinates) == 3  # one more than elsewhere
    both = np.array([[0, 0, 0, 0], [0.1, 0, 0, 0]])
    for independent in (None, ["link1_joint", "link2_joint"]):
        with pytest.raises(kt.ShapeError, match=r"of sample \(1,\)"):
            linear_model(m, both, rest, rest, None, independent)


def test_a_tree_is_the_case_without_loops(rng):
    for m in (kt.samples.ur5(), kt.samples.hopping_leg(), kt.samples.satellite()):
        q, qd, tau = m.random_configuration(rng), *rng.standard_normal((2, m.nv))
        expected = kt.linearize(m, q, qd, tau)
        found = kt.loops.linearize_in_coordinates(m, q, qd, tau)
        assert_close(found.A, expected.A, ulps=1e3)
        assert_close(found.B, expected.B, ulps=1e3)
        assert np.array_equal(found.G, np.eye(m.nv))
        all_variables = kt.loops.linearize_on_manifold(m, q, qd, tau)
        assert_close(all_variables.A, expected.A, ulps=1e6)
        assert_close(all_variables.projector, np.eye(2 * m.nv), ulps=1e4)
        R = np.linalg.qr(rng.standard_normal((m.nv, m.nv)))[0]
        turned = kt.loops.linearize_in_coordinates(m, q, qd, tau, independent=R)
        both = np.kron(np.eye(2), R)
        assert_close(turned.A, both @ expected.A @ both.T, ulps=1e4)


@pytest.mark.covers("Spencer 4.1", by=kernel_and_columns)
def test_the_cost_is_that_of_a_few_forward_dynamics(rng):
    """LN-17: two to four evaluations of f are claimed, against 2 N = 32 for differences."""
    m, *_ = moving("loader", rng)
    columns = tuple(
        sorted(m.v_slice[m.joint_index(n)].start for n in ("boom_joint", "bucket_joint"))
    )
    linear, free = kernel_and_columns(m, columns, 3, columns)
    forward = _kernel(m, 0, 3)
    count, once = (cost(k.program.graph, k.program.roots) for k in (linear, forward))
    assert free == columns
    assert count < 3 * once
