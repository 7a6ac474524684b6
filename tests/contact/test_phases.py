"""Motion during a phase, at random instants: equations that hold, forces that are shared out."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact.event_driven.dynamics import (
    ContactInstant,
    PhaseDynamics,
    _forces,
    closed_positions,
    closed_velocities,
)
from kinetree.contact.event_driven.modes import OPEN, SLIDES, STICKS, TOUCHES, ContactModes, centre
from kinetree.contact.event_driven.stepper import loads
from kinetree.contact.event_driven.transitions import Transitions
from kinetree.contact.scene import Scene
from kinetree.integration.field import Field
from kinetree.loops.kinematics.constraint import constraint

KINDS = np.array([STICKS, SLIDES, TOUCHES, OPEN])
MU = np.array([0.4, 0.3, 0.0, 0.2])


def dynamics_of(mu):
    """Equations of motion that need no mechanism, with coefficients of friction."""
    return PhaseDynamics(
        None, None, SimpleNamespace(candidates=SimpleNamespace(friction=mu)), Field()
    )


def random_instant(rng, *, batch=(), n=4, nv=9, loops=0):
    """Contacts and inertia of no mechanism in particular, in mixed units."""
    units = 10 ** rng.uniform(-3, 3, nv)
    B = rng.normal(size=(*batch, nv, nv))
    A = units[:, None] * (B @ np.swapaxes(B, -1, -2) / nv + np.eye(nv)) * units
    J, K = (rng.normal(size=(*batch, *s, nv)) / units for s in ((n, 3), (loops,)))
    free, total, qd = (rng.normal(size=(*batch, nv)) * x for x in (units, 1 / units, units))
    bias, k, gap = (rng.normal(size=(*batch, *s)) for s in ((n, 3), (loops,), (n,)))
    return ContactInstant(gap, J, bias, np.zeros((*batch, 1)), A, free, total, K, k), qd


def sliding_mode(rng, now, qd, kinds=KINDS):
    """A mode whose directions of sliding are those of the velocities."""
    mode = ContactModes.apart(len(kinds))
    mode.kind[:], mode.force[:] = kinds, rng.uniform(0, 1, size=(len(kinds), 3))
    v = (now.J @ qd)[:, 1:]
    mode.slip[kinds == SLIDES] = (v / np.linalg.norm(v, axis=1, keepdims=True))[kinds == SLIDES]
    return mode


@pytest.mark.parametrize("loops", [0, 2])
def test_motion_keeps_rows_and_obeys_the_laws_of_friction(rng, loops):
    for _ in range(5):
        now, qd = random_instant(rng, loops=loops)
        mode = sliding_mode(rng, now, qd)
        found = dynamics_of(MU).motion(now, qd, mode)
        w = now.J @ found.qdd + now.bias
        assert found.regular
        assert_close(w[[0, 1, 2], 0], np.zeros(3), scale=100)
        assert_close(w[0], np.zeros(3), scale=100)
        assert_close(now.K @ found.qdd, now.k, scale=100)
        assert_close(found.missing, 0.0, scale=100)
        f = found.force
        assert np.array_equal(f[3], np.zeros(3))
        assert_close(f[1, 1:], -MU[1] * f[1, 0] * mode.slip[1], ulps=1e5)
        assert_close(f[2, 1:], np.zeros(2), scale=1)
        push = np.einsum("nav,na->v", now.J, f)
        assert_close(found.power, (now.total + push) @ qd, ulps=1e6)
        left = found.qdd - now.free - now.A @ push  # by loops
        size = 1 / np.sqrt(np.diag(now.A))
        columns = size[:, None] * (now.A @ now.K.T)
        rest = size * left - columns @ np.linalg.lstsq(columns, size * left, rcond=None)[0]
        assert_close(rest, np.zeros(9), scale=100)


def test_softness_is_the_answer_of_a_row_that_alone_gives_way(rng):
    now, qd = random_instant(rng)
    mode = sliding_mode(rng, now, qd)
    dynamics = dynamics_of(MU)
    found = dynamics.motion(now, qd, mode)
    R, C = now.J[mode.rows], dynamics.columns(now, qd, mode)
    W = R @ now.A @ C.T
    for k in range(len(R)):
        others = np.delete(np.arange(len(R)), k)
        x = np.zeros(len(R))
        x[k], x[others] = 1, -np.linalg.solve(W[np.ix_(others, others)], W[others, k])
        assert_close(found.softness[k], abs(W[k] @ x), ulps=1e5)


def test_many_instants_are_each_on_its_own(rng):
    now, qd = random_instant(rng, batch=(2, 3), loops=1)
    first = ContactInstant(*(x[0, 0] for x in now))
    mode, dynamics = sliding_mode(rng, first, qd[0, 0]), dynamics_of(MU)
    mode.blur[:] = 0.3
    found, resistance = dynamics.motion(now, qd, mode), dynamics.resistance(now, qd, mode)
    for at in np.ndindex(2, 3):
        one = ContactInstant(*(x[at] for x in now))
        for many, single in zip(found, dynamics.motion(one, qd[at], mode), strict=True):
            many, single = 1.0 * many[at], 1.0 * single
            assert_close(many, single, scale=1 + np.max(np.abs(single)), ulps=1e4)
        assert_close(resistance[at], dynamics.resistance(one, qd[at], mode))
    nothing = dynamics.motion(now, qd, ContactModes.apart(4))
    assert_close(nothing.force, np.zeros((2, 3, 4, 3)))
    assert nothing.regular.shape == (2, 3)


def test_redundant_forces_are_the_nearest_to_those_before(rng):
    """Rows that depend on others: what moves nothing keeps its part, each row in its own unit."""
    for contradicts in (False, True):
        now, qd = random_instant(rng)
        J, bias = np.array(now.J), np.array(now.bias)
        J[3, 0], bias[3, 0] = 2 * J[0, 0] - J[2, 0], 2 * bias[0, 0] - bias[2, 0] + contradicts
        now = now._replace(J=J, bias=bias)
        mode = sliding_mode(rng, now, qd, np.full(4, TOUCHES))
        found = dynamics_of(np.zeros(4)).motion(now, qd, mode)
        assert not found.regular
        change = found.force[:, 0] - mode.force[:, 0]
        sizes = np.einsum("nv,vw,nw->n", J[:, 0], now.A, J[:, 0])
        assert_close(
            (change * sizes) @ [2, 0, -1, -1], 0.0, scale=np.max(np.abs(change) * sizes), ulps=1e6
        )
        rest = J[:, 0] @ found.qdd + bias[:, 0]
        assert_close(found.missing, np.max(np.abs(rest)), scale=1)
        assert (found.missing > 0.01) == contradicts


def test_directions_of_sliding_follow_the_velocity_no_faster_than_a_step_can(rng):
    now, qd = random_instant(rng)
    v = (now.J @ qd)[:, 1:]
    speed = np.linalg.norm(v, axis=1)
    mode, dynamics = sliding_mode(rng, now, qd, np.full(4, SLIDES)), dynamics_of(MU)
    angle = 0.3
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    mode.slip[:] = v / speed[:, None] @ turn  # behind by the angle
    assert_close(dynamics.slip(now, qd, mode), v / speed[:, None])
    mode.blur[:] = 2 * speed
    part = np.arcsin(np.sin(angle) / 2)  # half of the way across
    found = dynamics.slip(now, qd, mode)
    along = np.sum(found * mode.slip, axis=1)
    across = found[:, 1] * mode.slip[:, 0] - found[:, 0] * mode.slip[:, 1]
    ahead = v[:, 1] * mode.slip[:, 0] - v[:, 0] * mode.slip[:, 1]
    assert_close(along, np.full(4, np.cos(part)))
    assert_close(across, ahead / speed / 2)
    mode.slip[:] = -v / speed[:, None]
    assert_close(dynamics.slip(now, qd, mode), mode.slip)  # reversed: stays as it was


def test_resistance_and_blur_are_those_of_their_formulas(rng):
    now, qd = random_instant(rng)
    mode, dynamics = sliding_mode(rng, now, qd), dynamics_of(MU)
    mode.force[0, 0] = -0.5  # of a solver's rounding errors the size counts
    n, t = now.J[1, 0], mode.slip[1] @ now.J[1, 1:]
    expected = [1, 1 - MU[1] * (t @ now.A @ n) / (n @ now.A @ n), 1, 1]
    assert_close(dynamics.resistance(now, qd, mode), expected)
    traces = [np.trace(J[1:] @ now.A @ J[1:].T) for J in now.J]
    load = MU @ np.abs(mode.force[:, 0])
    assert_close(dynamics.blurs(now, mode, 0.01), 0.01 * load * np.array(traces) / 2)


def test_corrections_do_not_depend_on_the_units_of_rows(rng):
    B, R = rng.normal(size=(6, 6)), rng.normal(size=(4, 6))
    R[3] = R[0] + R[1]
    A, error = B @ B.T + np.eye(6), R @ rng.normal(size=6)
    expected = A @ R.T @ _forces(R, A, error)
    assert_close(R @ expected, error, ulps=1e5)
    for _ in range(5):
        units = 10 ** rng.uniform(-4, 4, 4)
        scaled = units[:, None] * R
        assert_close(A @ scaled.T @ _forces(scaled, A, units * error), expected, ulps=1e6)


def test_loops_are_closed_also_where_nothing_touches(rng):
    m = kt.samples.four_bar()
    dynamics = PhaseDynamics(m, m.spanning_tree, Scene(m, []), Field())
    none = np.zeros(0, dtype=int)
    q = closed_positions(dynamics, kt.loops.assemble(m, m.neutral()) + 1e-4, none)
    qd = rng.normal(size=m.nv)
    found = closed_velocities(dynamics, q, qd, (none, none))
    c = constraint(m, q, found)
    assert_close(c.error, np.zeros_like(c.error), scale=1)
    assert_close(c.rate, np.zeros_like(c.rate), scale=1)
    H = np.asarray(kt.mass_matrix(m.spanning_tree, q))
    assert_close((qd - found) @ H @ found, 0.0, scale=1, ulps=1e4)  # nearest in that metric


def test_load_of_a_table_is_in_the_middle_of_what_is_admissible():
    """Four legs: one way of shifting, along which they go to the middle, whatever the start."""
    legs = np.array([[1.0, x, y] for x in (-1, 1) for y in (-1, 1)])
    J = np.zeros((4, 3, 3))
    J[:, 0] = legs
    nothing = np.zeros((0, 3)), np.zeros(0)
    now = ContactInstant(
        np.zeros(4), J, np.zeros((4, 3)), np.zeros(1), np.eye(3), *np.zeros((2, 3)), *nothing
    )
    way = np.array([1.0, -1.0, -1.0, 1.0])
    for start in ([0.0, 4.0, 2.0, 1.0], [3.0, 0.5, 0.2, 0.4], [1.0, 1.0, 1.0, 1.0]):
        mode, force = ContactModes.apart(4), np.zeros((4, 3))
        mode.kind[:], force[:, 0] = TOUCHES, start
        found = centre(dynamics_of(np.zeros(4)), now, np.zeros(3), mode, force)[:, 0]
        shift = (min(start[1], start[2]) - min(start[0], start[3])) / 2
        np.testing.assert_allclose(found, np.array(start) + shift * way, atol=1e-5)


def test_contacts_do_not_brace_against_each_other():
    """Two feet on a rail that push against each other: the tangents go, the normals stay."""
    J = np.zeros((2, 3, 3))
    J[:, 0], J[:, 1], J[0, 0, 2], J[1, 0, 2] = [0, 1.0, 0], [1.0, 0, 0], -1.0, 1.0
    nothing = np.zeros((0, 3)), np.zeros(0)
    now = ContactInstant(
        np.zeros(2), J, np.zeros((2, 3)), np.zeros(1), np.eye(3), *np.zeros((2, 3)), *nothing
    )
    mode = ContactModes.apart(2)
    mode.kind[:] = STICKS
    force = np.array([[1.0, 0.35, 0], [2.0, -0.15, 0]])
    found = centre(dynamics_of(np.full(2, 0.5)), now, np.zeros(3), mode, force)
    np.testing.assert_allclose(found, [[1.0, 0.1, 0], [2.0, 0.1, 0]], atol=1e-6)


def test_margins_are_the_accelerations_that_contacts_can_bear(rng):
    now, qd = random_instant(rng, batch=(3,))
    mode, dynamics = sliding_mode(rng, ContactInstant(*(x[0] for x in now)), qd[0]), dynamics_of(MU)
    settings = SimpleNamespace(acceleration_tolerance=1e-3)
    found = loads(SimpleNamespace(dynamics=dynamics, mode=mode, settings=settings), now, 0.0, qd)
    assert found.shared == {}
    for at in range(3):
        f, soft = found.motion.force[at], found.motion.softness[at]
        bears = f[0, 0] * soft[0]
        holds = (MU[0] * f[0, 0] - np.hypot(*f[0, 1:])) * min(soft[1], soft[2])
        expected = [min(bears, holds), f[1, 0] * soft[3], f[2, 0] * soft[4]]
        assert_close(found.margin[at], [*np.add(expected, 1e-3), 1.0])


def test_loads_that_cannot_be_shared_as_before_are_shared_otherwise():
    """A table whose legs cannot bear what is nearest to the last loads, but can bear others."""
    legs = np.array([[1.0, x, y] for x in (-1, 1) for y in (-1, 1)])
    J = np.zeros((4, 3, 4))
    J[:, 0, :3], J[:, 1, 3] = legs, 1.0
    nothing = np.zeros((0, 4)), np.zeros(0)
    free = np.array([-4.0, 0.9, 0.9, 0.0])
    now = ContactInstant(
        np.zeros(4), J, np.zeros((4, 3)), np.zeros(1), np.eye(4), free, np.zeros(4), *nothing
    )
    qd, mu, mode = np.array([0, 0, 0, 1.0]), np.full(4, 0.1), ContactModes.apart(4)
    mode.kind[:], mode.slip[:], mode.force[:, 0] = SLIDES, [1.0, 0], [9.0, -9.0, -9.0, 9.0]
    dynamics = dynamics_of(mu)
    seen = []

    def solve(problem, t, thorough):
        seen.append((problem, t))
        return np.ones((4, 3)), np.zeros((4, 3))

    transitions = SimpleNamespace(
        dynamics=dynamics, mode=mode, settings=SimpleNamespace(acceleration_tolerance=1e-8),
        problem=lambda now, zeta, which: zeta[which], solve=solve,
    )  # fmt: skip
    found = loads(transitions, now, 0.5, qd)
    assert not found.motion.regular
    ((zeta, t),) = seen
    assert t == 0.5
    assert_close(zeta, [[0, 1.0, 0]] * 4)  # of contacts that slide the directions count
    assert_close(found.shared[()], np.ones((4, 3)))
    assert_close(found.margin, np.ones(4))


def test_what_contacts_do_next_follows_from_forces_and_accelerations():
    """Open, touch, stick, slide on, begin to slide against friction, or along the acceleration."""
    of = SimpleNamespace(size=2, friction=np.array([0.5, 0.0]), names=("rough", "smooth"))
    settings = SimpleNamespace(acceleration_tolerance=1e-3)
    scene = SimpleNamespace(candidates=of)
    transitions = Transitions(settings, SimpleNamespace(model=None, scene=scene))
    still, lam = np.zeros(3), np.array([2.0, 0.6, -0.8])
    slides = np.array([0.0, 3.0, 4.0])
    cases = [
        (0, lam, [0.1, 0, 0], still, OPEN, [0, 0]),
        (1, lam, [0, 0, 0], slides, TOUCHES, [0, 0]),
        (0, lam, [0, 0, 0], still, STICKS, [0, 0]),
        (0, lam, [0, 0.3, 0], slides, SLIDES, [0.6, 0.8]),
        (0, lam, [0, -0.3, 0.4], still, SLIDES, [-0.6, 0.8]),
        (0, [0.0, 0, 0], [0, -0.3, 0.4], still, SLIDES, [-0.6, 0.8]),
    ]
    for k, force, w, zeta, kind, slip in cases:
        for suspected in (False, True):
            mode = ContactModes.apart(2)
            transitions._decide(mode, k, np.array(force), np.array(w), zeta, suspected)
            assert mode.kind[k] == kind
            assert mode.kind[1 - k] == OPEN
            assert_close(mode.slip[k], slip, scale=1)
            assert_close(mode.force[k], force if kind != OPEN else still)
