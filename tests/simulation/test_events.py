"""Events: found, located, acted upon; none missed."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.mechanisms import assert_balanced, ball, block

import kinetree as kt
from kinetree.errors import ShapeError, SimulationError
from kinetree.integration.roots import FRACTIONS, bracket, may_cross, root
from kinetree.integration.watcher import Watcher, _Look

g = 9.81


def bounce(e):
    def action(t, q, qd):
        return q, -e * qd

    return kt.Event(lambda t, q, qd: q[0], direction=-1, action=action, name="bounce")


@pytest.mark.covers("RBDA 11.5", by=(Watcher, kt.Event))
@pytest.mark.parametrize("integrator", ["heun", "midpoint", "rk4", "dopri5"])
def test_bouncing_ball_hits_the_ground_when_the_formula_says(integrator):
    # Methods of order two and more are exact for a parabola, so that only location is tested.
    e, first = 0.8, np.sqrt(2 / g)
    motion = kt.simulate(
        ball(), [1.0], duration=2.0, dt=0.03, integrator=integrator, events=[bounce(e)]
    )
    times = [event.t for event in motion.events]
    expected = first + 2 * first * np.array([0, e, e + e**2])
    assert len(times) == 3
    assert np.max(np.abs(times - expected)) < 1e-11
    energy = [g * 1.0 * (e**2 - 1) * e ** (2 * k) for k in range(3)]
    assert np.allclose([event.energy for event in motion.events], energy, rtol=1e-10)
    assert_balanced(motion, 1e-14)
    assert np.allclose(motion.events[0].qd_after, -e * motion.events[0].qd)


@pytest.mark.parametrize("integrator", ["heun", "rk4"])
def test_few_steps_are_taken_to_locate_an_event(integrator, monkeypatch):
    """On the way of a pendulum, which the interpolant knows to a few digits only."""
    taken, take = [], _Look.value_after
    monkeypatch.setattr(_Look, "value_after", lambda look, x: taken.append(x) or take(look, x))
    passes = kt.Event(lambda t, q, qd: np.sin(3 * q[0]) - 0.5, name="passes")
    model = kt.samples.pendulum()
    motion = kt.simulate(
        model, [1.0], duration=2.0, dt=0.05, integrator=integrator, events=[passes]
    )
    assert len(motion.events) == 4
    assert np.allclose([np.sin(3 * event.q[0]) for event in motion.events], 0.5, atol=1e-10)
    assert len(taken) <= 5 * len(motion.events)


def test_bouncing_ball_with_steps_that_adapt():
    motion = kt.simulate(
        ball(), [1.0], duration=2.0, dt=0.1, rtol=1e-8, max_step=0.1, events=bounce(0.8)
    )
    assert abs(motion.events[0].t - np.sqrt(2 / g)) < 1e-11
    assert len(motion.events) == 3
    assert np.allclose(np.diff(motion.t), 0.1)
    assert_balanced(motion, 1e-12)


@pytest.mark.parametrize("integrator", ["euler", "semi_implicit_euler"])
def test_location_is_as_good_as_the_integrator(integrator):
    errors = []
    for dt in (1e-3, 5e-4):
        motion = kt.simulate(
            ball(), [1.0], duration=0.5, dt=dt, integrator=integrator, events=[bounce(0.5)]
        )
        errors.append(abs(motion.events[0].t - np.sqrt(2 / g)))
        assert_balanced(motion, 0.01)
    assert abs(np.log2(errors[0] / errors[1]) - 1) < 0.1


def test_there_and_back_in_one_step_are_two_events():
    # A throw that passes 1 m upward and downward within a step, at times with a formula.
    v = np.sqrt(2 * g * 1.001)
    passes = kt.Event(lambda t, q, qd: q[0] - 1.0, name="passes")
    up, down = (v + s * np.sqrt(v * v - 2 * g) for s in (-1, 1))
    motion = kt.simulate(ball(), [0.0], [v], duration=0.6, dt=0.2, events=passes)
    assert up / g // 0.2 == down / g // 0.2  # the same step
    assert np.allclose([e.t for e in motion.events], [up / g, down / g], atol=1e-11)
    for direction, expected in ((1, up), (-1, down)):
        one = kt.Event(lambda t, q, qd: q[0] - 1.0, direction=direction)
        motion = kt.simulate(ball(), [0.0], [v], duration=0.6, dt=0.2, events=one)
        assert np.allclose([e.t for e in motion.events], [expected / g], atol=1e-11)


def test_almost_touching_is_not_an_event():
    v = np.sqrt(2 * g * (1 - 1e-9))
    passes = kt.Event(lambda t, q, qd: q[0] - 1.0)
    assert not kt.simulate(ball(), [0.0], [v], duration=0.6, dt=0.2, events=passes).events


def test_the_earliest_of_several_comes_first_and_changes_what_follows():
    # The first event turns the block round, so that the second one never happens.
    near = kt.Event(lambda t, q, qd: q[0] - 0.31, action=lambda t, q, qd: (q, -qd), name="near")
    far = kt.Event(lambda t, q, qd: q[0] - 0.32, name="far")
    motion = kt.simulate(block(), [0.0], [1.0], duration=1.0, dt=0.1, events=[far, near])
    assert [e.name for e in motion.events] == ["near"]
    assert abs(motion.events[0].t - 0.31) < 1e-11
    assert np.allclose(motion.q[-1], 0.62 - 1.0)
    assert_balanced(motion, 1e-14)


def test_events_at_the_same_instant_all_happen_in_the_order_given():
    def at(name, x):
        return kt.Event(lambda t, q, qd: q[0] - x, action=_scaled, name=name)

    def _scaled(t, q, qd):
        return q, 0.5 * qd

    events = [at("one", 0.25), at("two", 0.25)]
    motion = kt.simulate(block(), [0.0], [1.0], duration=0.4, dt=0.1, events=events)
    assert [e.name for e in motion.events] == ["one", "two"]
    assert motion.events[0].t == motion.events[1].t
    assert np.allclose(motion.qd[-1], 0.25)


def test_many_events_in_one_step_are_all_found():
    ticks = kt.Event(lambda t, q, qd: np.sin(20 * np.pi * q[0]), name="tick")
    motion = kt.simulate(block(), [0.01], [1.0], duration=0.5, dt=0.25, events=ticks)
    assert np.allclose([e.t for e in motion.events], np.arange(1, 11) * 0.05 - 0.01, atol=1e-11)


def test_terminal_event_ends_the_motion_there():
    end = kt.Event(lambda t, q, qd: q[0], terminal=True)
    motion = kt.simulate(ball(), [1.0], duration=3.0, dt=0.01, events=end)
    assert abs(motion.t[-1] - np.sqrt(2 / g)) < 1e-11
    assert abs(motion.q[-1, 0]) < 1e-11
    assert_balanced(motion, 1e-13)


@pytest.mark.parametrize("options", [{"dt": 0.03}, {"dt": 0.1, "rtol": 1e-8, "max_step": 0.1}])
def test_samples_of_a_batch_have_events_of_their_own(options):
    heights = np.array([[0.5], [1.0], [3.0]])
    motion = kt.simulate(ball(), heights, duration=1.0, events=bounce(0.8), **options)
    alone = [kt.simulate(ball(), h, duration=1.0, events=bounce(0.8), **options) for h in heights]
    for k, one in enumerate(alone):
        own = [e for e in motion.events if e.sample == (k,)]
        assert np.allclose([e.t for e in own], [e.t for e in one.events], atol=1e-10)
        assert np.allclose(motion.q[:, k], one.q, atol=1e-8)
    assert_balanced(motion, 1e-10)


@pytest.mark.parametrize("options", [{"dt": 0.03}, {"dt": 0.01, "rtol": 1e-6}])
def test_samples_of_a_batch_stop_one_by_one(options):
    heights = np.array([[0.5], [1.0]])
    end = kt.Event(lambda t, q, qd: q[0], terminal=True)
    motion = kt.simulate(ball(), heights, duration=1.0, events=end, **options)
    first, last = np.sqrt(2 * heights[:, 0] / g)
    assert np.allclose([e.t for e in motion.events], [first, last], atol=1e-10)
    assert abs(motion.t[-1] - last) < 1e-10  # nothing moves any more
    after = motion.t > first
    assert np.all(np.abs(motion.q[after, 0]) < 1e-10)
    assert np.all(motion.q[:-1, 1] > 1e-6)
    assert_balanced(motion, 1e-9)


def test_kernels_as_events_with_and_without_the_model():
    @kt.kernel
    def height(m, t, q, qd):
        return kt.pose(m, q, "ball")[2, 3]

    @kt.kernel
    def speed(t, q, qd):
        return qd[0] + 5.0

    q0 = np.array([[1.0], [2.0]])
    motion = kt.simulate(ball(), q0, duration=1.0, dt=0.1, events=[kt.Event(height)])
    assert [e.name for e in motion.events] == ["height", "height"]
    assert np.allclose([e.t for e in motion.events], np.sqrt(2 * q0[:, 0] / g), atol=1e-10)
    motion = kt.simulate(ball(), [1.0], duration=1.0, dt=0.1, events=kt.Event(speed))
    assert np.allclose([e.t for e in motion.events], [5 / g], atol=1e-10)


def test_events_on_a_floating_body_respect_its_manifold(rng):
    m = kt.samples.satellite()
    q0, qd0 = m.neutral(), rng.standard_normal(m.nv)
    turned = kt.Event(lambda t, q, qd: kt.pose(m, q, m.body_names[1])[2, 2] - 0.9)
    coarse = kt.simulate(m, q0, qd0, duration=1.0, dt=0.02, integrator="dopri5", events=turned)
    fine = kt.simulate(m, q0, qd0, duration=1.0, dt=0.002, integrator="dopri5", events=turned)
    assert coarse.events
    assert np.allclose([e.t for e in coarse.events], [e.t for e in fine.events], atol=1e-8)
    assert coarse.report.energy_error < 1e-9
    assert coarse.report.momentum_error < 1e-9


def test_an_event_that_never_ends_is_named():
    with pytest.raises(SimulationError, match=r"'bounce' happens faster and.*let its action"):
        kt.simulate(ball(), [1.0], duration=3.0, dt=0.05, events=bounce(0.5))


def test_events_are_checked():
    with pytest.raises(TypeError, match="function of an Event must be a function"):
        kt.Event(3.0)
    with pytest.raises(ShapeError, match="direction of event 'x' must be"):
        kt.Event(lambda t, q, qd: 0.0, direction=2, name="x")
    with pytest.raises(ShapeError, match="tolerance of event 'x'"):
        kt.Event(lambda t, q, qd: 0.0, tolerance=0.0, name="x")
    with pytest.raises(TypeError, match=r"events must be kinetree\.Event, got function"):
        kt.simulate(ball(), [1.0], duration=0.1, events=[lambda t, q, qd: 0.0])
    pair = kt.Event(lambda t, q, qd: [1.0, 2.0], name="pair")
    with pytest.raises(SimulationError, match="'pair' must return one finite number"):
        kt.simulate(ball(), [1.0], duration=0.1, events=pair)
    wrong = kt.Event(lambda t, q, qd: q[0], action=lambda t, q, qd: q, name="wrong")
    with pytest.raises(ShapeError, match=r"action of event 'wrong' must return None or \(q, qd\)"):
        kt.simulate(ball(), [0.1], duration=1.0, events=wrong)
    wrong = kt.Event(lambda t, q, qd: q[0], action=lambda t, q, qd: (q, qd[:0]), name="wrong")
    with pytest.raises(ShapeError, match="qd that the action of event 'wrong' returned"):
        kt.simulate(ball(), [0.1], duration=1.0, events=wrong)


# --- crossings -------------------------------------------------------------------------------


def sampled(function):
    return FRACTIONS, function(FRACTIONS)


def test_bracket_sees_dips_between_samples():
    def dip(x):
        return (x - 0.44) ** 2 - 1e-6  # below zero on 0.439 to 0.441, between 3/8 and 4/8

    theta, values = sampled(dip)
    assert values.min() > 0
    assert may_cross(values)
    a, _, b, _ = bracket(dip, theta, values, -1, False)
    assert a < 0.439 < b < 0.441
    a, _, b, _ = bracket(dip, theta, values, 1, False)
    assert 0.439 < a < 0.441 < b


@pytest.mark.parametrize("fresh", [False, True])
def test_what_has_just_happened_does_not_happen_again(fresh):
    theta, values = sampled(lambda x: -1e-15 + x)
    found = bracket(None, theta, values, 0, fresh)
    assert (found is None) == fresh


def test_root_is_beyond_the_crossing_and_close():
    for function in (lambda x: np.cos(x), lambda x: 1e-3 - (x - 1) ** 9, lambda x: 1.0 - (x > 0.7)):
        calls = []

        def counted(x, function=function, calls=calls):
            calls.append(x)
            return function(x)

        x = root(counted, 0.0, function(0.0), 2.0, function(2.0), 1e-13)
        assert len(calls) < 90
        assert function(x) <= 0 < function(x - 1.01e-13)


def test_events_that_have_ended_do_not_count_as_ever_faster():
    """Sliding whose direction spins up as it comes to rest ends there; what goes on is an error."""
    model = kt.samples.pendulum()
    watch = SimpleNamespace(
        name="rest", act=lambda t, q, qd: (q, qd), terminal=False, tolerance=1e-12, remedy="wait",
        ended=True,
    )  # fmt: skip
    watcher = Watcher(model, [SimpleNamespace(watches=[watch])], ())
    step = SimpleNamespace(
        t1=0.0, q1=np.zeros(1), qd1=np.zeros(1), tau=np.zeros(1), work=np.zeros(()), events=[]
    )

    def happens(times):
        for _ in range(times):
            step.t1 += 1e-9
            watcher._happen(step, (), [0])

    happens(8)
    watch.ended = False
    with pytest.raises(kt.SimulationError, match=r"'rest' happens faster and faster.*wait"):
        happens(8)
