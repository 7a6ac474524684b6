"""Through singular configurations, and from them: the five-bar of Spencer §3.2, by default."""

import warnings
from functools import cache

import numpy as np
import pytest

import kinetree as kt
from kinetree.integration.integrator import Stepped
from kinetree.loops.kinematics.projection import project_configuration, project_velocity
from kinetree.loops.stepping.choice import better_choice, choose
from kinetree.loops.stepping.health import Judge, refine_step
from kinetree.loops.stepping.options import CONSTRAINTS, Projection
from kinetree.loops.stepping.projected import Checks
from kinetree.loops.stepping.singular_passes import SingularPass, passes_of
from kinetree.loops.stepping.stepper import ProjectedStepper


@cache
def five_bar():
    return kt.samples.five_bar()


@cache
def through():
    """The second example: at rest, upright and symmetric; three passes in 5 s."""
    model = five_bar()
    return kt.simulate(model, np.array(model.posture("home").q), duration=4.2)


@cache
def falling():
    """The first example: at rest in the singular posture."""
    model = five_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.SimulationWarning)
        return kt.simulate(model, np.array(model.posture("singular").q), duration=3.1)


def directions(motion):
    """Absolute angles of the first two links [deg]."""
    inner = np.degrees(np.arccos(2 / 3))
    turned = np.degrees(motion.q)
    return 120 + turned[:, 0], inner + turned[:, 0] + turned[:, 1]


@pytest.mark.covers("Spencer 3.2", by=(ProjectedStepper, Projection))
def test_three_passes_at_the_right_times_and_the_energy_kept():
    motion = through()
    passes = [event for event in motion.events if isinstance(event, SingularPass)]
    times = [event.t for event in passes]
    np.testing.assert_allclose(times[:2], [0.65082, 1.85379], rtol=0, atol=1e-4)
    np.testing.assert_allclose(times[2], 3.90978, rtol=0, atol=1e-3)
    assert all(event.sine < 2e-3 for event in passes[:2])
    assert motion.report.singular_passes == len(passes)
    assert np.max(np.abs(motion.energy - motion.energy[0])) < 1e-5  # of 100 J
    assert motion.report.loop_error < 1e-13
    assert motion.report.refined > 0


@pytest.mark.covers("Spencer 3.2", by=ProjectedStepper)
def test_the_motion_goes_straight_through():
    one, two = directions(through())
    at = np.round(np.array([0.2, 0.4, 0.6, 0.8, 1.0, 1.4, 1.8]) * 1000).astype(int)
    np.testing.assert_allclose(
        one[at], [126.23, 143.93, 171.41, 210.59, 280.88, 418.39, 523.45], atol=0.01
    )
    np.testing.assert_allclose(
        two[at], [43.34, 29.28, 7.01, -24.88, -78.03, -90.92, -13.50], atol=0.01
    )


@pytest.mark.covers("Spencer 3.2", by=ProjectedStepper)
def test_from_rest_in_the_singular_posture_it_falls_and_comes_back():
    """Angles by quadrature of the symmetric motion, which has one freedom.

    The branch is chosen in the first step, at a point where accelerations are not unique. What
    follows is the exact motion, shifted in time by a small part of that step.
    """
    motion, at = falling(), [200, 400, 600]
    one, two = directions(motion)
    rates = np.degrees([motion.qd[at, 0], motion.qd[at, 0] + motion.qd[at, 1]])
    exact = [[186.1779, 205.1122, 241.1119], [-5.0434, -20.4487, -49.0500]]
    shifts = (np.array([one[at], two[at]]) - exact) / rates
    assert np.max(np.abs(shifts)) < 2e-5  # seconds; a step is 1e-3
    assert np.ptp(shifts) < 3e-6
    np.testing.assert_allclose(one[1413], 393.242, atol=1e-2)
    (back,) = motion.events
    np.testing.assert_allclose(back.t, 2.82537, rtol=0, atol=5e-4)
    assert motion.report.energy_error < 1e-8
    assert motion.report.loop_error < 1e-13


def test_a_start_in_a_singular_configuration_is_warned_of():
    model = five_bar()
    with pytest.warns(kt.SimulationWarning, match=r"'five-bar' starts in a singular.*branches"):
        kt.simulate(model, np.array(model.posture("singular").q), duration=0.01)


def test_without_refinement_the_energy_suffers():
    model = five_bar()
    q = np.array(model.posture("home").q)
    run = {"duration": 0.7, "integrator": "rk4"}
    one, other = (
        np.max(np.abs(np.diff(kt.simulate(model, q, constraints=c, **run).energy)))
        for c in (Projection(refine=False), Projection())
    )
    assert other < 1e-7
    assert other <= one


@pytest.mark.parametrize(
    ("name", "store_every"),
    [("baumgarte", 1), *((name, 10) for name in CONSTRAINTS if "energy" not in name)],
)
def test_passes_are_events_however_constraints_are_kept(name, store_every):
    model = five_bar()
    run = {"duration": 0.9, "dt": 5e-3, "store_every": store_every, "constraints": name}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.SimulationWarning)  # the energy of generalized-alpha
        motion = kt.simulate(model, np.array(model.posture("home").q), **run)
    (event,) = motion.events
    assert isinstance(event, SingularPass)
    np.testing.assert_allclose(event.t, 0.65082, rtol=0, atol=2e-4)
    assert event.sigma < 1e-2
    assert event.kappa > 100
    assert event.indicator < 0.1  # 32 on the way to the next
    assert motion.report.singular_passes == 1
    assert str(event).startswith("singular configuration at t = 0.65")
    assert str(event).endswith("may have gone through a bifurcation")
    found = kt.loops.singularity(model, event.q)
    np.testing.assert_allclose([event.sigma, event.kappa], [found.sigma, found.kappa], rtol=1e-6)


@pytest.mark.parametrize("name", ["projection", "ascher_chin"])
def test_a_pass_of_steps_that_adapt_counts_once(name):
    model, run = five_bar(), {"duration": 0.8, "rtol": 1e-7, "constraints": name}
    (event,) = kt.simulate(model, np.array(model.posture("home").q), **run).events
    np.testing.assert_allclose(event.t, 0.65082, rtol=0, atol=1e-4)


@pytest.mark.covers("Spencer 3.1", by=passes_of)
def test_passes_of_a_batch_have_the_number_of_their_sample():
    model = five_bar()
    home = np.array(model.posture("home").q)
    other = project_configuration(model, home + np.array([0.1, 0.0, 0.0, 0.05]))
    motion = kt.simulate(model, [other, home], duration=0.8, dt=5e-3, constraints="baumgarte")
    (event,) = motion.events
    assert event.sample == (1,)
    np.testing.assert_allclose(event.t, 0.65082, rtol=0, atol=2e-4)


def test_a_step_that_fails_at_a_singularity_names_it():
    run = {"duration": 1.9, "constraints": "generalized_alpha"}
    text = r"t = 1\.853 s did not converge.* close to a singular configuration"
    with pytest.raises(kt.SimulationError, match=text):
        kt.simulate(five_bar(), through().q[0], **run)


def test_passes_are_found_whatever_is_stored():
    model = five_bar()
    some = kt.simulate(model, np.array(model.posture("home").q), duration=0.8, store_every=100)
    (event,) = some.events
    np.testing.assert_allclose(event.t, through().events[0].t, rtol=0, atol=1e-9)
    np.testing.assert_allclose(some.q[-1], through().q[800], rtol=0, atol=1e-9)


def test_samples_of_a_batch_are_refined_one_by_one():
    model = five_bar()
    home = np.array(model.posture("home").q)
    other = project_configuration(model, home + np.array([0.1, 0.0, 0.0, 0.05]))
    batch = kt.simulate(model, [home, other], duration=0.8)
    assert [(event.sample, round(event.t, 3)) for event in batch.events] == [((0,), 0.651)]
    alone = kt.simulate(model, other, duration=0.8)
    np.testing.assert_allclose(batch.q[:, 1], alone.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(batch.q[:, 0], through().q[:801], rtol=0, atol=1e-7)


def test_an_event_is_located_among_refined_steps():
    model = five_bar()
    flat = kt.Event(lambda t, q, qd: np.degrees(q[0]) - 60, name="flat", terminal=True)
    motion = kt.simulate(model, np.array(model.posture("home").q), duration=1.0, events=flat)
    np.testing.assert_allclose(motion.t[-1], 0.65082, rtol=0, atol=1e-4)


# --- equations that are solved --------------------------------------------------------------------


def test_an_overconstrained_linkage_holds_all_the_way_round():
    """Bennett's: the equations that imply the others change on the way."""
    model = kt.samples.bennett()
    q = np.array(model.posture("home").q)
    qd = project_velocity(model, q, np.array([12.0, 0.0, 0.0]))
    motion = kt.simulate(model, q, qd, duration=2.0)
    assert np.ptp(motion.q[:, 0]) > 2 * np.pi
    assert motion.report.loop_error < 1e-13
    assert motion.report.energy_error < 1e-9


def test_equations_next_to_a_singular_start_are_chosen():
    model = five_bar()
    singular, home = (choose(model, np.array(model.posture(p).q)) for p in ("singular", "home"))
    assert singular.chosen == home.chosen
    assert singular.singular
    assert not home.singular
    assert len(home.chosen.rows) == 2


def test_better_equations_are_found_where_there_are_some():
    model = kt.samples.bennett()
    q = np.array(model.posture("home").q)
    chosen = choose(model, q).chosen
    assert better_choice(model, q, chosen) is None
    poor = [c for c in _pairs(5) if c != chosen.rows]
    found = [better_choice(model, q, chosen.__class__(rows, (1.0, 1.0))) for rows in poor]
    assert any(other == chosen for other in found)


def _pairs(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


# --- halving --------------------------------------------------------------------------------------


def test_a_step_is_halved_until_it_is_good_enough():
    def step(t, h, q, qd, tau):
        checks = np.array([0.0, 0.0, h, 1.0, 0.0, 1.0])
        return Stepped(q + h, qd, h, checks=checks)

    q, _, work, _, taken = refine_step(step, lambda c: c.kick / 0.3, 0.0, 1.0, (0.0, 0.0), None)
    assert (q, work, taken) == (1.0, 1.0, 7)


def test_a_step_across_is_kept_where_halves_are_worse():
    def step(t, h, q, qd, tau):
        return Stepped(q + h, qd, h, checks=np.array([0.0, 0.0, 1 / h, 1.0, 0.0, 1.0]))

    q, _, work, _, taken = refine_step(step, lambda c: c.kick / 0.5, 0.0, 1.0, (0.0, 0.0), None)
    assert (q, work) == (1.0, 1.0)
    assert taken == 19  # once for every length


def test_what_is_usual_is_not_suspicious():
    judge = Judge(five_bar(), np.array(0.5))
    usual = Checks.of(np.array([[0.0, 0.0, 1e-9, 0.6, 1e-3, 10.0]]))
    assert judge.badness(Checks(*(c[0] for c in usual))) > 1
    for _ in range(1000):
        judge.learn(usual)
    assert judge.badness(Checks(*(c[0] for c in usual))) < 1
    assert judge.health == 0.6
