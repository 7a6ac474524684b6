"""Forward dynamics with loops and couplings: compiled code against ranks decided per sample."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.forward_dynamics import constrained_acceleration, ways
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.errors import ShapeError, SingularError
from kinetree.joints import Revolute
from kinetree.model import ModelBuilder
from kinetree.quantities import closed_chains
from kinetree.samples.random_mechanisms import LINKAGE_KINDS, random_closed_mechanism
from kinetree.spatial import Force


def moving_states(model, rng, count=8):
    """States with the loops closed in position and velocity, and joint forces."""
    q = closed_configurations(model, count)
    qd = rng.normal(size=(len(q), model.nv))
    for n in range(len(q)):
        K = loop_constraints(model, q[n], qd[n]).K
        qd[n] -= np.linalg.pinv(K, rcond=1e-8) @ (K @ qd[n])
    return q, qd, rng.normal(size=qd.shape)


def by_ranks(model, q, qd, tau, f_ext=None):
    return kt.forward_dynamics(model, q, qd, tau, f_ext, method="implicit")


SAMPLES = {
    name: getattr(kt.samples, name)
    for name in ("four_bar", "slider_crank", "bennett", "excavator", "stewart")
}


@pytest.fixture(scope="module", params=SAMPLES)
def sample(request):
    return SAMPLES[request.param]()


@pytest.mark.covers("RBDA 8.5", "RBDA 8.7", by=kt.forward_dynamics)
def test_compiled_code_and_ranks_decided_per_sample_agree(sample, rng):
    q, qd, tau = moving_states(sample, rng)
    expected = by_ranks(sample, q, qd, tau)
    found = kt.forward_dynamics(sample, q, qd, tau)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, ulps=1e5)


@pytest.mark.covers("RBDA 8.5", "RBDA 8.9", by=constrained_acceleration)
@pytest.mark.parametrize(
    "make", [kt.samples.four_bar, kt.samples.bennett, lambda: kt.samples.ladder(2)]
)
def test_both_ways_solve_the_equation_of_motion_with_its_constraints(make, rng):
    sample = make()
    q, qd, tau = (x[-1] for x in moving_states(sample, rng))
    tree = sample.replace(loops=(), couplings=())
    H, C = kt.mass_matrix(tree, q), kt.bias_force(tree, q, qd)
    c = loop_constraints(sample, q, qd)
    for way in ways(sample):
        motion = constrained_acceleration(sample, q, qd, tau, way=way)
        assert motion.health > 1
        residual = H @ motion.qdd + C - tau  # a constraint force: in the range of Kᵀ
        lam = np.linalg.lstsq(c.K.T, residual, rcond=1e-8)[0]
        assert_close(c.K.T @ lam, residual, ulps=1e6)
        scale = np.max(np.abs(c.K)) * np.max(np.abs(motion.qdd)) + np.max(np.abs(c.k))
        assert_close(c.K @ motion.qdd, c.k, ulps=1e5, scale=scale)


@pytest.mark.covers("RBDA 8.5", "RBDA 8.8", "RBDA 8.10", by=constrained_acceleration)
@pytest.mark.parametrize("kind", LINKAGE_KINDS)
def test_random_mechanisms(kind, rng):
    for _ in range(2):
        model, q, qd = random_closed_mechanism(rng, kind=kind)
        tau = rng.normal(size=model.nv)
        expected = joint_space.solution(model, q, qd, tau)
        for way in ways(model):
            motion = constrained_acceleration(model, q, qd, tau, way=way)
            assert len(way.plan.pivots) == expected.rank or motion.health < 1
            if motion.health >= 1:
                assert_close(motion.qdd, expected.qdd, ulps=1e8)


def test_external_forces(rng):
    model = kt.samples.four_bar()
    q, qd, tau = moving_states(model, rng, 3)
    f_ext = {"coupler": Force.from_array(rng.normal(size=6))}
    found = kt.forward_dynamics(model, q, qd, tau, f_ext)
    for a, b in zip(found, by_ranks(model, q, qd, tau, f_ext), strict=True):
        assert_close(a, b, ulps=1e5)


def test_shapes_and_precision(rng):
    model = kt.samples.four_bar()
    q, qd, tau = moving_states(model, rng, 6)
    many = kt.forward_dynamics(model, q.reshape(2, 3, -1), qd.reshape(2, 3, -1), tau[:3])
    assert many.shape == (2, 3, 3)
    one = kt.forward_dynamics(model, q[1], qd[1], tau[1])
    assert_close(one, many[0, 1], ulps=1e3)
    single = [x.astype(np.float32) for x in (q, qd, tau)]
    found = kt.forward_dynamics(model, *single)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, kt.forward_dynamics(model, q, qd, tau), rtol=1e-3, atol=1e-3)
    assert kt.forward_dynamics(model, q[:0], qd[:0], tau[:0]).shape == (0, 3)


def test_complex_numbers_go_through_the_same_source(rng):
    model = kt.samples.four_bar()
    q, qd, tau = (x[0] for x in moving_states(model, rng))
    direction, h = rng.normal(size=3), 1e-30
    derivative = kt.forward_dynamics(model, q, qd, tau + 1j * h * direction).imag / h
    assert_close(
        derivative, by_ranks(model, q, qd, tau + direction) - by_ranks(model, q, qd, tau), ulps=1e5
    )


@pytest.mark.covers("RBDA 8.5", by=kt.forward_dynamics)
def test_singular_samples_of_a_batch_are_solved_by_other_means(rng):
    model = kt.samples.five_bar()
    singular = np.array(next(p.q for p in model.postures if p.name == "singular"))
    q, qd, tau = moving_states(model, rng, 6)
    q = np.concatenate([q, [singular]])
    qd, tau = np.concatenate([qd, np.zeros((1, 4))]), np.concatenate([tau, np.ones((1, 4))])
    regular = [n for n in range(len(q)) if not np.allclose(q[n], singular)]
    qd[[n for n in range(len(q)) if n not in regular]] = 0
    found = kt.forward_dynamics(model, q, qd, tau)
    expected = by_ranks(model, q, qd, tau)
    assert_close(found[-1], expected[-1], ulps=0)
    for n in regular:
        assert_close(found[n], expected[n], ulps=1e6)


def test_weak_pivots_go_to_the_second_way(rng, monkeypatch):
    model = kt.samples.four_bar()
    q, qd, tau = moving_states(model, rng)
    expected = kt.forward_dynamics(model, q, qd, tau)
    called = []
    kernel = closed_chains._kernel

    def weak(model, number, count):
        called.append(number)
        if number:
            return kernel(model, number, count)

        class First:
            def call(self, *arrays):
                qdd, health = kernel(model, 0, count).call(*arrays)
                return qdd * [[np.nan]], np.where(np.arange(len(health)) < 3, 0.5, 0.0)

        return First()

    monkeypatch.setattr(closed_chains, "_kernel", weak)
    found = kt.forward_dynamics(model, q, qd, tau)
    assert called == [0, 1]
    assert_close(found, expected, ulps=1e5)


def test_a_constraint_that_was_left_out_by_mistake_is_noticed(rng):
    """A plan that takes the plane of a linkage for granted, for one that has left its plane."""
    model = kt.samples.four_bar()
    (way, *_) = ways(model)
    tilted = model.replace(
        bodies=[
            replace(b, joint=Revolute((0.3, 1, 0.2))) if b.name == "crank" else b
            for b in model.bodies
        ]
    )
    motion = constrained_acceleration(tilted, np.zeros(3), np.zeros(3), np.ones(3), way=way)
    assert motion.health == 0


def test_inside_a_kernel_bad_samples_are_solved_outside_it(rng):
    model = kt.samples.five_bar()

    @kt.kernel
    def step(model, q, qd, tau):
        return 2 * kt.forward_dynamics(model, q, qd, tau)

    q, qd, tau = moving_states(model, rng, 4)
    keep = np.array(
        [
            joint_space.solution(model, *state).rank == 2
            for state in zip(q, 0 * qd, tau, strict=True)
        ]
    )
    qd[~keep] = 0
    assert_close(step(model, q, qd, tau), 2 * by_ranks(model, q, qd, tau), ulps=1e6)


def test_stabilisation_inside_a_kernel(rng):
    model = kt.samples.four_bar()
    q, qd, tau = (x[0] for x in moving_states(model, rng))
    ajar = np.array([0, 1e-5, 0])
    q, qd = q + ajar, qd + ajar

    @kt.kernel
    def stabilized(model, q, qd, tau):
        motion = constrained_acceleration(model, q, qd, tau, stabilization=0.05)
        return motion.qdd, motion.health

    qdd, health = stabilized(model, q, qd, tau)
    assert health > 1
    expected = joint_space.forward_dynamics(model, q, qd, tau, stabilization=0.05)
    np.testing.assert_allclose(qdd, expected, rtol=1e-3, atol=1e-3)  # they differ with the gap
    assert np.max(np.abs(qdd - joint_space.forward_dynamics(model, q, qd, tau))) > 1e-3


def test_states_that_tear_loops_apart_are_rejected_by_name(rng):
    model = kt.samples.four_bar()
    q, qd, tau = moving_states(model, rng)
    with pytest.raises(ShapeError, match=r"q does not close loop 'pin'.*assemble"):
        kt.forward_dynamics(model, q + np.array([0, 0.1, 0]), qd, tau)
    with pytest.raises(ShapeError, match="qd tears loop 'pin' apart"):
        kt.forward_dynamics(model, q, qd + np.array([0, 1, 0]), tau)
    with pytest.raises(ShapeError, match="q must be finite"):
        kt.forward_dynamics(model, q * np.nan, qd, tau)


def test_an_axis_that_points_backwards_is_not_a_closed_hinge():
    """The sines of the error vanish at half a turn, too."""
    model = kt.samples.four_bar()
    (pin,) = model.loops
    turned = replace(pin, successor_placement=kt.rotz(np.pi) @ pin.successor_placement)
    zero = np.zeros(3)
    with pytest.raises(ShapeError, match=r"does not close loop 'pin': its position error is 3\.14"):
        kt.forward_dynamics(model.replace(loops=[turned]), zero, zero, zero)


def test_a_locked_mechanism_does_not_move(rng):
    model = kt.samples.four_bar()
    held = model.replace(couplings=[kt.Coupling("held", 1, 0, (0.0,))])
    zero = np.zeros(2)
    assert_close(kt.forward_dynamics(held, zero, zero, rng.normal(size=2)), zero, scale=1.0)


def test_massless_bodies_are_welcome_where_others_carry_them(rng):
    model = kt.samples.four_bar()
    bodies = [
        replace(b, inertia=kt.Inertia.zero()) if b.name == "coupler" else b for b in model.bodies
    ]
    light = model.replace(bodies=bodies)
    q, qd, tau = moving_states(light, rng)
    assert [way.method for way in ways(light)] == ["null space"]
    for a, b in zip(
        kt.forward_dynamics(light, q, qd, tau), by_ranks(light, q, qd, tau), strict=True
    ):
        assert_close(a, b, ulps=1e5)


def test_without_inertia_there_is_no_solution(rng):
    builder = ModelBuilder("ghost").body("a", joint=Revolute("z"), inertia=kt.Inertia.zero())
    builder.body("b", joint=Revolute("z"), inertia=kt.Inertia.zero())
    model = builder.coupling("gear", joint="b_joint", source="a_joint", coefficients=(0, 2)).build()
    with pytest.raises(SingularError, match="'ghost' has no order of elimination"):
        next(ways(model))
    with pytest.raises(SingularError, match="moves no inertia"):
        kt.forward_dynamics(model, np.zeros(1), np.zeros(1), np.ones(1))


@pytest.mark.covers("RBDA 8.9", by=ways)
def test_two_clusters_cost_no_more_than_one_after_the_other():
    model = kt.samples.four_bar()
    bodies = list(model.bodies)
    twice = [
        replace(
            b, name=f"{b.name}2", joint_name=f"{b.joint_name}2", parent=b.parent and b.parent + 3
        )
        for b in bodies
    ]
    (pin,) = model.loops
    second = replace(pin, name="pin2", predecessor=pin.predecessor + 3, successor=pin.successor + 3)
    pair = kt.Model([*bodies, *twice], loops=[pin, second])
    costs = [min(way.cost for way in ways(m)) for m in (model, pair)]
    assert costs[1] <= 2 * costs[0]


def test_joints_that_cannot_be_compiled_are_solved_on_the_host(rng):
    model = kt.samples.four_bar()
    stubborn = model.replace(joint={"crank_joint": _Stubborn("y")})
    q, qd, tau = moving_states(model, rng)
    found = kt.forward_dynamics(stubborn, q, qd, tau)
    assert_close(found, kt.forward_dynamics(model, q, qd, tau), ulps=1e4)


class _Stubborn(Revolute):
    """A hinge that looks at its angle."""

    def jcalc(self, q, qd):
        if abs(float(q[0])) > 1e6:
            raise ValueError("dizzy")
        return super().jcalc(q, qd)
