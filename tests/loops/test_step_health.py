"""What a projected step says about itself: bookkeeping, halving, and passes, on made-up motions."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.rank import scaling
from kinetree.integration.integrator import Stepped
from kinetree.integration.step import Stepper
from kinetree.loops.kinematics.compiled_projection import Chosen
from kinetree.loops.stepping import stepper as steppers
from kinetree.loops.stepping.choice import _health, choose
from kinetree.loops.stepping.health import Judge, refine_step
from kinetree.loops.stepping.projected import Checks
from kinetree.loops.stepping.singular_passes import (
    Passes,
    SingularPass,
    _between,
    _measures,
    _vertex,
    passes_of,
)
from kinetree.loops.stepping.stepper import ProjectedStepper


@cache
def five_bar():
    model = kt.samples.five_bar()
    postures = {name: np.array(model.posture(name).q) for name in ("home", "singular")}
    return model, postures, choose(model, postures["home"]).chosen


def checks(*, position=0.0, kick=0.0, health=1.0, lost=0.0, kinetic=0.0):
    return Checks(*map(np.asarray, (position, 0.0, kick, health, lost, kinetic)))


def steps(n, batch=(), **values):
    """Checks of ``n`` steps with the same numbers."""
    return Checks(*(np.broadcast_to(x, (n, *batch)) for x in checks(**values)))


# --- What is usual --------------------------------------------------------------------------------


def test_at_the_start_the_weight_over_a_length_is_the_energy_at_play():
    model = five_bar()[0]
    weight = 9.81 * sum(float(b.inertia.mass) for b in model.bodies)
    judge = Judge(model, np.array(0.5))
    length = judge.energy / weight
    assert 0.5 < length < 5  # links of 1 m and 1.5 m
    slow, fast = (Judge(model.replace(gravity=(0, g, 0)), np.array(0.5)) for g in (0, -2 * 9.81))
    assert slow.energy == 0
    assert_close(fast.energy, 2 * judge.energy)
    assert np.isfinite(slow.badness(checks(lost=1e-9)))


def test_badness_is_the_worst_of_three_shares():
    judge = Judge(five_bar()[0], np.array([0.5, 0.5]))
    judge.energy = np.array([4.0, 8.0])
    assert_close(judge.badness(checks(lost=[8e-9, -8e-9])), [2.0, 1.0])
    assert_close(judge.badness(checks(kick=[8e-12, 8e-12])), [2.0, 1.0])
    assert_close(judge.badness(checks(position=3 * judge.closed)), [3.0, 3.0])
    assert_close(judge.badness(checks(lost=[8e-9, 8e-9], kick=[4e-12, 32e-12])), [2.0, 4.0])
    assert_close(judge.badness(checks(lost=-8e-9), (1,)), 1.0)
    assert judge.badness(checks(lost=np.nan), (0,)) == np.inf
    assert judge.badness(checks(kick=np.inf), (0,)) == np.inf


def test_ten_times_what_is_usual_is_just_good_enough():
    judge = Judge(five_bar()[0], np.array([1.0, 1.0]))
    signs = np.resize([1.0, -1.0], (4000, 1))
    seen = steps(4000, (2,), kick=[2e-3, 4e-3])._replace(lost=signs * [0.1, 0.3])
    judge.learn(seen)
    assert_close(judge.badness(checks(lost=[1.0, -3.0])), [1, 1], ulps=1e9)
    assert_close(judge.badness(checks(kick=[2e-2, 4e-2])), [1, 1], ulps=1e9)


def test_memory_fades_by_a_hundredth_in_a_step():
    judge = Judge(five_bar()[0], np.array(1.0))
    judge.learn(steps(3, lost=-2.0, kick=0.5))
    first = 1 - 0.99**3
    assert_close([judge.lost, judge.kick], [2 * first, 0.5 * first])
    judge.learn(steps(2, lost=1.0, kick=0.25))
    second = 1 - 0.99**2
    assert_close(judge.lost, 2 * first * (1 - second) + second)
    assert_close(judge.kick, 0.5 * first * (1 - second) + 0.25 * second)


def test_steps_close_to_a_singularity_teach_nothing_but_their_energy():
    judge = Judge(five_bar()[0], np.array([1.0]))
    start = judge.energy[0]
    seen = steps(4, (1,), lost=0.2, kick=0.1, kinetic=[3 * start])
    seen = Checks(*(np.array(c) for c in seen))
    seen.health[2:], seen.lost[2:], seen.kick[2:] = 0.05, 50.0, 50.0
    seen.kinetic[:, 0] = [start / 2, np.nan, 7 * start, np.inf]
    judge.learn(seen)
    assert_close(judge.energy, [7 * start])
    assert_close(judge.lost, [0.2 * (1 - 0.99**2)])
    assert_close(judge.kick, [0.1 * (1 - 0.99**2)])
    judge.learn(steps(2, (1,), health=0.09, lost=9.0))
    assert_close(judge.lost, [0.2 * (1 - 0.99**2)])
    judge.learn(steps(1, (1,), health=2.5))
    assert judge.health == [2.5]
    assert list(judge.is_unhealthy(checks(health=[0.24, 0.26, np.nan]))) == [True, False, True]


# --- Halving --------------------------------------------------------------------------------------


def halved(badness):
    """A step of one second whose work is ``h (1 + t)``, with the badness of every ``(t, h)``."""
    taken = []

    def step(t, h, q, qd, tau):
        taken.append((t, h))
        return Stepped(q + h, qd + t, h * (1 + t), checks=np.array([t, h, 0, 1, 0, 0]))

    found = refine_step(
        step, lambda c: badness(float(c.position), float(c.velocity)), 0.0, 1.0, (5.0, 0.0), None
    )
    assert found[-1] == len(taken)
    return found[:-1], taken


def test_only_the_half_that_needs_it_is_halved_again():
    (q, qd, work, last), taken = halved(lambda t, h: h / (0.25 if t < 0.5 else 0.5))
    assert taken == [(0, 1), (0, 0.5), (0, 0.25), (0.25, 0.25), (0.5, 0.5)]
    assert (q, qd) == (6.0, 0.75)
    assert_close(work, 0.25 * 1 + 0.25 * 1.25 + 0.5 * 1.5)
    assert list(last[:2]) == [0.5, 0.5]  # the checks of the last part


def test_parts_that_are_worse_than_the_whole_are_left_out():
    """The first half is made better by its quarters, but not better than the whole step."""
    table = {(0, 1): 2.5, (0, 0.5): 5.0, (0, 0.25): 3.0, (0.25, 0.25): 0.5}
    (q, qd, work, last), taken = halved(lambda t, h: table.get((t, h), 9.0))
    assert taken[:4] == [(0, 1), (0, 0.5), (0, 0.25), (0, 0.125)]
    assert taken[-1] != (0.5, 0.5)
    assert (0.25, 0.25) in taken
    assert (q, qd, work) == (6.0, 0.0, 1.0)
    assert list(last[:2]) == [0.0, 1.0]


# --- Passes ---------------------------------------------------------------------------------------


def test_the_vertex_of_a_parabola():
    def parabola(x):
        return 3 * (x - 0.4) ** 2 + 0.02

    for nodes in ((0.0, 0.3, 0.7), (0.1, 0.5, 0.8), (0.35, 0.42, 0.5)):
        found = _vertex(*((x, parabola(x)) for x in nodes))
        assert_close(found, (0.4, 0.02), ulps=1e3)
    far = _vertex(*((x, parabola(x)) for x in (0.0, 0.1, 0.19)))  # the lowest is beyond the last
    assert_close(far, (0.19, parabola(0.19)), ulps=1e3)
    before = _vertex(*((x, parabola(x)) for x in (0.6, 0.7, 0.79)))
    assert_close(before, (0.6, parabola(0.6)), ulps=1e3)
    for uneven in ((0.0, 0.39, 0.5), (0.0, 0.1, 0.45)):
        middle = uneven[1], parabola(uneven[1])
        assert _vertex(*((x, parabola(x)) for x in uneven)) == middle
    assert _vertex((0, 1.0), (1, 1.5), (2, 1.8)) == (1, 1.5)  # bent the other way


def test_a_pass_lies_between_the_ends_of_steps():
    model, at, chosen = five_bar()
    q, qd = np.tile(at["singular"], (2, 1)), np.tile([0.3, -0.2, 0.5, 0.1], (2, 1))
    passes, best = Passes(model, chosen), np.array([4.0, 2.0])
    least = np.array([1e-4, 1e-4])  # relative to the best: 0.25e-4, and 0.5e-4
    for t in (0.0, 0.1, 0.2, 0.3, 0.4):
        health = 2e-2 * (t - 0.28) ** 2 + least * [1, 100]
        passes.look(t, q + t, qd, health, best)
    (event,) = passes.found
    assert event.sample == (0,)
    assert_close([event.t, event.sine], [0.28, np.sqrt(least[0] / 4)], ulps=1e6)
    assert_close(event.q, q[0] + 0.3)  # the lowest of the ends of steps
    assert_close(event.qd, qd[0])


def test_a_shorter_step_replaces_the_one_that_was_taken_before():
    model, at, chosen = five_bar()
    passes, best = Passes(model, chosen), np.array(1.0)
    for t in (0.0, 0.2, 0.1, 0.2, 0.3):  # the step to 0.2 is taken again in two
        passes.look(t, at["home"], np.zeros(4), 1e-3 * np.array((t - 0.2) ** 2), best)
    (event,) = passes.found
    assert event.sample == ()
    assert_close(event.t, 0.2, ulps=1e4)
    assert list(passes.is_near(checks(health=[9e-4, 11e-4]), SimpleNamespace(health=best))) == [
        True,
        False,
    ]


def line_through(target, direction, t0, t):
    """A made-up motion along a straight line that is at ``target`` at ``t0``."""
    return target + np.multiply.outer(t - t0, direction), np.tile(direction, (len(t), 1))


@pytest.mark.parametrize("steps", [1, 3, 100])
@pytest.mark.parametrize("t0", [0.0107, 0.5, 0.777, 1.9])
def test_a_stored_pass_is_found_to_many_digits(steps, t0):
    model, at, chosen = five_bar()
    t = np.linspace(0, 2, 401)
    q, qd = line_through(at["singular"], np.array([0.9, 0.4, -0.6, 0.2]), t0, t)
    (event,) = passes_of(model, chosen, t, q, qd, steps)
    assert isinstance(event, SingularPass)
    assert_close(event.t, t0, ulps=1e9)
    assert_close(event.q, at["singular"], ulps=1e9, scale=1.0)
    assert_close(event.qd, qd[0], ulps=1e6)
    assert event.sine < 1e-6
    assert event.sigma < 1e-6


def test_a_pass_in_the_last_part_of_the_last_interval_is_found():
    model, at, chosen = five_bar()
    t = np.linspace(0, 2, 41)
    q, qd = line_through(at["singular"], np.array([0.9, 0.4, -0.6, 0.2]), 1.998, t)
    (event,) = passes_of(model, chosen, t, q, qd, 16)
    assert_close(event.t, 1.998, ulps=1e9)


def test_the_closest_point_of_a_near_miss():
    """By another formula for the health, and another search for its minimum."""
    model, at, chosen = five_bar()
    t, direction = np.linspace(0, 2, 201), np.array([0.9, 0.4, -0.6, 0.2])
    target = at["singular"] + 2e-3 * np.array([-1.0, 1.0, 0.5, 0.7])
    q, qd = line_through(target, direction, 0.9, t)

    def health(t):
        return _health(model, target + (t - 0.9) * direction, chosen)

    best = max(map(health, t))
    lowest = minimize_scalar(health, bounds=(0.85, 0.95), options={"xatol": 1e-9})
    (event,) = passes_of(model, chosen, t, q, qd, 1)
    assert abs(event.t - lowest.x) < 1e-5
    assert abs(event.sine - np.sqrt(lowest.fun / best)) < 1e-3 * event.sine
    found = kt.loops.singularity(model, event.q)
    assert_close([event.sigma, event.kappa], [found.sigma, found.kappa], ulps=1e6)


def test_the_indicator_is_the_rate_of_the_constraint_that_is_lost():
    model, at, chosen = five_bar()
    q, h = at["singular"], 1e-6
    qd = np.array([0.9, 0.4, -0.6, 0.2])
    t = np.linspace(0, 2, 201)
    (event,) = passes_of(model, chosen, t, *line_through(q, qd, 1.0, t), 1)
    units = scaling(model)

    def K(q):
        return units.rows[:, None] * np.asarray(kt.loops.constraint(model, q, np.zeros(4)).K)

    lost = np.linalg.svd(K(q) * units.columns)[0][:, len(chosen.rows) - 1]
    expected = abs(lost @ (K(q + h * qd) - K(q - h * qd)) / (2 * h) @ qd)
    assert_close(event.indicator, expected, ulps=1e9)
    assert expected > 0.1


def test_cubic_motions_between_stored_states_are_exact():
    model = five_bar()[0]
    a = np.random.default_rng(3).normal(size=(4, 4))

    def motion(t):
        powers = t[:, None] ** np.arange(4)
        return powers @ a, (powers[:, :3] * [1, 2, 3]) @ a[1:]

    t, times = np.array([0.0, 0.3, 0.4, 1.0]), np.linspace(0, 1, 23)
    for found, expected in zip(_between(model, (t, *motion(t)), times), motion(times), strict=True):
        assert_close(found, expected, ulps=1e3, scale=10)


def test_between_stored_states_of_a_free_body():
    """A screw motion of constant speed is exact; ends of intervals are kept."""
    model = kt.ModelBuilder("free").body("b", joint=kt.Free(), inertia=BALL).build()
    rng = np.random.default_rng(4)
    q0, v = model.random_configuration(rng), rng.normal(size=6)
    t, times = np.linspace(0, 1, 5), np.linspace(0, 1, 17)
    q = np.array([model.integrate(q0, s * v) for s in t])
    found, rate = _between(model, (t, q, np.tile(v, (5, 1))), times)
    for s, x in zip(times, found, strict=True):
        assert_close(model.difference(model.integrate(q0, s * v), x), np.zeros(6), scale=10)
    assert_close(rate, np.tile(v, (17, 1)), ulps=1e4)


BALL = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))


# --- Steps in a hurry and with care ---------------------------------------------------------------


def scripted(monkeypatch, health, *, model, chosen):
    """A stepper for loops whose health at the end of a step is a function of time."""

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        row = np.array([0.0, 0.0, 0.0, health(t + h), 0.0, 1.0])
        return Stepped(q + h, qd, np.array(h), checks=row)

    monkeypatch.setattr(Stepper, "end_of_step", end_of_step)
    monkeypatch.setattr(ProjectedStepper, "_require_closed", lambda *_: None)
    method = SimpleNamespace(chosen=chosen, name="made up")
    return ProjectedStepper(model, method, None, compiled=True, health=np.array(1.0), refine=False)


@pytest.mark.parametrize("t0", [0.303, 0.697, 0.95])
def test_passes_do_not_depend_on_how_many_steps_are_taken_at_once(monkeypatch, t0):
    """Fine steps of which one leads right to the neighbourhood of a singular configuration."""
    model, at, chosen = five_bar()

    def health(t):
        return 1.0 if abs(t - t0) > 0.075 else 1e-3 * (t - t0) ** 2

    found, states = [], []
    instants = [0.05 * k for k in range(25)]
    for at_once in (1, 2, 5, 24):
        stepper = scripted(monkeypatch, health, model=model, chosen=chosen)
        q, qd, walked = at["home"], np.zeros(4), []
        for k in range(0, 24, at_once):
            walked += stepper.walk(instants[k : k + at_once + 1], q, qd, np.zeros(4), 0.05)
            q, qd = walked[-1][:2]
        found.append([(event.t, event.sine) for event in stepper.passes.found])
        states.append([state[0] for state in walked])
    assert len(found[0]) == 1
    for one, motion in zip(found, states, strict=True):
        assert_close(one, found[0], ulps=1e4)
        assert_close(motion, states[0], ulps=100)


def test_a_state_that_is_still_open_takes_more_of_newtons_steps():
    model, at, chosen = five_bar()
    stepper = ProjectedStepper(
        model, SimpleNamespace(chosen=chosen, name="rk4"), None, compiled=True,
        health=np.array(0.5), refine=True,
    )  # fmt: skip
    rng = np.random.default_rng(2)
    q, qd = at["home"] + 0.02 * rng.normal(size=4), rng.normal(size=4)
    row = np.array([0.02, 0.3, 0.0, 0.5, 0.0, 1.0])
    after = stepper._close(0.0, Stepped(q, qd, np.array(0.0), checks=row))
    left = kt.loops.constraint(model, after.q, after.qd)
    assert np.max(np.abs(left.error)) < 1e-14
    assert np.max(np.abs(left.rate)) < 1e-13
    assert np.max(after.checks[:2]) < 1e-12
    assert list(after.checks[2:]) == [0.0, 0.5, 0.0, 1.0]
    lost = Stepped(q, np.full(4, np.nan), np.array(0.0), checks=row)
    assert stepper._close(0.0, lost) is lost
    good = Stepped(q, qd, np.array(0.0), checks=np.zeros(6))
    assert stepper._close(0.0, good) is good


def test_better_equations_are_looked_for_where_the_step_begins(monkeypatch):
    model, at, chosen = five_bar()
    stepper = scripted(monkeypatch, lambda t: 1e-2, model=model, chosen=chosen)
    asked = []
    monkeypatch.setattr(steppers, "better_choice", lambda m, q, c: asked.append((q, c)))
    stepper.end_of_step(0.0, 0.1, at["home"], np.full(4, 7.0), np.zeros(4))
    ((q, before),) = asked
    assert list(q) == list(at["home"])
    assert before is chosen


def test_advice_where_equations_that_were_left_out_stay_open():
    """Of a linkage whose equations all count: which of them are chosen makes the difference."""
    model, at, chosen = five_bar()
    K = np.asarray(kt.loops.constraint(model, at["home"], np.zeros(4)).K)
    for open_row, closed_row in np.argwhere(1 - np.eye(2, dtype=int)):
        where = chosen.rows[open_row], chosen.rows[closed_row]
        wanted = np.zeros(len(K))
        wanted[where[0]] = 0.02
        q = at["home"] + np.linalg.pinv(K) @ wanted
        e = np.abs(np.asarray(kt.loops.constraint(model, q, np.zeros(4)).error))
        one, other = (Chosen((row,), (1.0,), every=chosen.every) for row in where)
        assert steppers._advice(model, q, one) == ""
        text = steppers._advice(model, q, other)
        assert "constraints that are redundant at the start are violated here" in text
        assert f"violated here, by {e[where[0]] * chosen.every[where[0]]:.2g} rad" in text


@pytest.mark.parametrize("k", [0, 1])
def test_positions_decide_whether_more_of_newtons_steps_are_taken(k):
    model, at, chosen = five_bar()
    method = SimpleNamespace(chosen=chosen, name="rk4")
    stepper = ProjectedStepper(
        model, method, None, compiled=True, health=np.array(0.5), refine=True
    )
    row = np.zeros(6)
    row[k] = 0.02
    before = Stepped(at["home"] + 0.01, np.ones(4), np.array(0.0), checks=row)
    after = stepper._close(0.0, before)
    assert (after is before) == (k == 1)


def test_a_step_is_taken_again_with_better_equations_if_there_are_some(monkeypatch):
    model, at, chosen = five_bar()
    stepper = scripted(monkeypatch, lambda t: 1e-2, model=model, chosen=chosen)
    plain, arguments = [], (0.0, 0.1, at["home"], np.zeros(4), np.zeros(4))
    again = Stepped(np.full(4, 7.0), np.full(4, 8.0), np.array(9.0), checks=np.arange(6.0))

    def other(self, better, *, alone):
        assert (better, alone) == ("better", True)
        return SimpleNamespace(plain=lambda *given: plain.append(given) or again)

    monkeypatch.setattr(ProjectedStepper, "_with", other)
    monkeypatch.setattr(steppers, "better_choice", lambda *_: "better")
    after = stepper.end_of_step(*arguments)
    assert [list(np.ravel(x)) for x in plain[0]] == [list(np.ravel(x)) for x in arguments]
    assert_close(after.q, again.q)
    assert_close(after.qd, again.qd)
    assert (after.work, list(after.checks)) == (9.0, list(again.checks))

    monkeypatch.setattr(steppers, "better_choice", lambda *_: None)
    monkeypatch.setattr(ProjectedStepper, "plain", lambda *_: pytest.fail("the same step again"))
    assert_close(stepper.end_of_step(*arguments).q, at["home"] + 0.1)


def test_what_is_lost_where_no_energy_is_at_play_is_bad():
    judge = Judge(five_bar()[0].replace(gravity=(0, 0, 0)), np.array(1.0))
    for seen in (checks(lost=1e-9), checks(lost=-1e-9), checks(kick=1e-9)):
        assert judge.badness(seen) > 1
    assert judge.badness(checks()) == 0


def test_measures_leave_out_joints_that_are_prescribed(rng):
    model = kt.samples.four_bar()
    q, qd = np.array(model.posture("home").q, dtype=float), rng.normal(size=3)
    for prescribed in ((), (0,), (2,)):
        chosen = choose(model, q, prescribed).chosen
        units, c = scaling(model), kt.loops.constraint(model, q, qd)
        K = np.delete(units.apply(np.asarray(c.K)), prescribed, axis=1)
        U, s, _ = np.linalg.svd(K)
        sigma, kappa, indicator = _measures(model, chosen, q, qd)
        assert_close([sigma, kappa], [s[1], s[0] / s[1]], ulps=1e3)
        assert_close(indicator, abs(U[:, 1] @ (units.rows * c.k)), ulps=1e3, scale=1)
