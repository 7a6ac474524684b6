"""The two examples of Spencer §3.2: through kinematic singularities, at 1 ms."""

from itertools import pairwise

import numpy as np
import pytest
from support.linkages import (
    HOME,
    SINGULAR,
    five_bar,
    link_angles,
    pendulum,
    pendulum_state,
    pinned_body,
    swinging_body,
)

from kinetree.errors import (
    ShapeError,
    SimulationError,
    SingularError,
    SingularityWarning,
    UnknownNameError,
)
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.multipliers import acceleration
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook.regularization import regularized_acceleration
from kinetree.textbook.svd_form import SVDForm
from kinetree.textbook.system_invariants import post_stabilize
from kinetree.textbook.system_motion import (
    FORMS,
    HOLDS,
    compare_forms,
    integrate_system,
)

SYSTEM, REST = five_bar(), np.zeros(4)


@pytest.fixture(scope="module")
def first():
    """From beside the singular posture, at rest, without stabilisation."""
    return _from_singular(2.85)


def _from_singular(duration, **options):
    """The symmetric motion, out of a posture 1e-5 rad from the singular one.

    From that one itself rounding decides which way the linkage goes: a last digit more in one angle
    turns the links by a hundred degrees.
    """
    outer = np.pi + 1e-5
    inner = -2 * np.arcsin(np.sqrt(2 / 3) * np.sin(5e-6))
    start = np.diff(np.array([outer, inner, -inner, -outer]) - HOME, prepend=0.0)
    return integrate_system(SYSTEM, start, REST, duration, 1e-3, hold="nothing", **options)


@pytest.mark.covers("Spencer 3.2", by=integrate_system)
def test_a_start_at_the_singularity_is_reported():
    with pytest.warns(SingularityWarning, match="dependent at t = 0 s"):
        motion = integrate_system(SYSTEM, SINGULAR, REST, 0.1, 1e-3, hold="nothing")
    assert motion.passes[0].time == 0
    assert motion.drift.largest().energy < 0.01


@pytest.mark.covers("Spencer 3.2", by=integrate_system)
def test_the_first_example_returns_to_the_singularity(first):
    start, *returns = first.passes
    assert start.time == 0
    assert np.mean([event.time for event in returns]) == pytest.approx(2.8254, abs=0.015)
    assert all(event.kappa > 1e4 for event in returns)
    assert first.drift.largest().energy < 1e-4
    assert first.drift.largest().position < 1e-7


@pytest.mark.covers("Spencer 3.2", by=integrate_system)
def test_angles_of_the_first_example(first):
    angles = np.rad2deg(link_angles(first.q))
    expected = {
        0.2: (186.165, -5.033), 0.4: (205.086, -20.428), 0.6: (241.062, -49.012),
        0.8: (304.954, -92.786), 1.0: (353.558, -109.216), 1.2: (382.633, -106.379),
        2.0: (312.709, -96.826),
    }  # fmt: skip
    for t, pair in expected.items():  # the first step, out of the singularity, takes 0.2 ms more
        seen = [np.interp(t - 2e-4, first.t, angles[:, k]) for k in (0, 1)]
        np.testing.assert_allclose(seen, pair, atol=0.01)
    np.testing.assert_allclose(angles[:, 3], -angles[:, 0], atol=1e-4)  # symmetric
    np.testing.assert_allclose(angles[:, 2], -angles[:, 1], atol=1e-4)
    lowest = angles[np.argmax(angles[:, 0])]
    np.testing.assert_allclose(lowest[:2], [393.242, -102.958], atol=0.02)


@pytest.fixture(scope="module")
def second():
    """From the symmetric posture, by both methods of the thesis, as far as the third pass."""
    return {
        "baumgarte": integrate_system(
            SYSTEM, REST, REST, 3.95, 1e-3, form="multipliers", hold="baumgarte"
        ),
        "energy": integrate_system(SYSTEM, REST, REST, 3.95, 1e-3, form="svd", hold="energy"),
    }


@pytest.mark.covers("Spencer 3.2", by=integrate_system)
def test_the_second_example_passes_the_singularity(second):
    for motion in second.values():
        times = [event.time for event in motion.passes[:2]]
        np.testing.assert_allclose(times, [0.65082, 1.85379], atol=2e-3)
    third = second["baumgarte"].passes[2]
    assert third.time == pytest.approx(3.90978, abs=0.01)
    np.testing.assert_allclose(
        [event.kappa for event in second["baumgarte"].passes[:2]], [1758, 1556], rtol=0.01
    )


@pytest.mark.covers("Spencer 3.2", by=integrate_system)
def test_angles_of_the_second_example(second):
    expected = {
        0.2: (126.23, 43.34), 0.4: (143.93, 29.28), 0.6: (171.41, 7.01), 0.8: (210.59, -24.88),
        1.0: (280.88, -78.03), 1.4: (418.39, -90.92), 1.8: (523.45, -13.50),
    }  # fmt: skip
    for motion in second.values():
        angles = np.rad2deg(link_angles(motion.q))
        for t, pair in expected.items():
            np.testing.assert_allclose(angles[round(t / 1e-3), :2], pair, atol=0.02)


@pytest.mark.covers("Spencer 3.1", "Spencer 3.2", by=integrate_system)
def test_stabilisation_violates_energy_and_projection_holds_it(second):
    stabilized, held = second["baumgarte"], second["energy"]
    assert stabilized.drift.largest().energy > 1
    assert held.drift.largest().energy < 2e-3
    assert np.abs(stabilized.multipliers).max() > 1e4  # the spike just before 4 s
    assert stabilized.t[np.argmax(np.abs(stabilized.multipliers).max(1))] > 3.8


@pytest.mark.covers("Spencer 3.1", by=SVDForm.evaluate)
def test_the_indicator_vanishes_towards_a_benign_pass(second):
    seen = second["baumgarte"]
    assert seen.indicator[600] == pytest.approx(3.0e-2, rel=0.1)
    assert seen.kappa[600] == pytest.approx(6.7, abs=0.1)
    assert seen.indicator[650] < 1e-4
    assert seen.kappa[650] == pytest.approx(399, rel=0.02)


@pytest.mark.covers("Spencer 3.3", by=integrate_system)
@pytest.mark.parametrize("option", ["threshold", "damping"])
def test_softening_opens_the_loop(option):
    """The first tenths of a second from the singularity: the softer, the wider it opens."""
    drift = [_from_singular(0.3, **{option: size}).drift.largest() for size in (1e-12, 1e-3, 1e-2)]
    for less, more in pairwise(drift):
        assert more.position > 20 * less.position
        assert more.energy > 20 * less.energy


@pytest.mark.covers("Spencer 3.3", by=integrate_system)
def test_softening_costs_energy_at_the_return(first):
    """Damping costs 0.0119 J in the thesis; a threshold nothing, while both sides move alike."""
    soft, damped = (_from_singular(3.2, **{option: 1e-3}) for option in ("threshold", "damping"))
    assert soft.drift.largest().energy < 2 * first.drift.largest().energy
    assert damped.drift.largest().energy == pytest.approx(0.01077, rel=0.01)


@pytest.mark.covers("Spencer 3.2", by=integrate_system)
def test_energies_are_logged_apart(first):
    lowest = np.argmin(first.potential)
    assert first.potential[lowest] - first.potential[0] == pytest.approx(-120.6334, abs=1e-2)
    np.testing.assert_allclose(first.kinetic[0], 0)
    np.testing.assert_allclose(
        first.kinetic + first.potential - first.potential[0], first.drift.energy, atol=1e-12
    )


@pytest.mark.covers("Spencer 3.2", by=compare_forms)
def test_forms_and_holds_beside_each_other():
    """Unstabilised forms are one differential equation; from the singularity Lagrange's ends."""
    found = compare_forms(SYSTEM, REST, REST, 0.5, 2e-3, holds=("nothing", "energy", "ascher_chin"))
    assert list(found.motions) == [
        (form, hold)
        for form in ("multipliers", "svd")
        for hold in ("nothing", "energy", "ascher_chin")
    ]
    lagrange, svd = (found.motions[form, "nothing"] for form in ("multipliers", "svd"))
    np.testing.assert_allclose(lagrange.q, svd.q, atol=1e-12)
    np.testing.assert_allclose(lagrange.multipliers, svd.multipliers, atol=1e-8)
    lines = str(found).splitlines()
    assert lines[0].split()[:4] == ["form", "hold", "max", "|g|"]
    assert len(lines) == 7
    with pytest.warns(SingularityWarning):
        stuck = compare_forms(SYSTEM, SINGULAR, REST, 0.01, 1e-3, holds=("nothing",))
    assert list(stuck.motions) == [("svd", "nothing")]
    assert "multipliers, nothing: " in str(stuck)
    assert "no unique Lagrange multipliers" in stuck.failures["multipliers", "nothing"]


def test_sequential_regularisation_needs_no_rank():
    """At regular states it is Lagrange's equation; at the singular one it still has a solution."""
    rng = np.random.default_rng(3)
    q, v = 0.3 * rng.standard_normal((2, 4))
    exact = acceleration(SYSTEM, 0.0, q, v)
    errors = [
        np.max(
            np.abs(regularized_acceleration(SYSTEM, 0.0, q, v, epsilon=1e-4, iterations=k) - exact)
        )
        for k in (1, 2, 3)
    ]
    assert errors[0] > 300 * errors[1] > 300**2 * errors[2]
    assert np.all(np.isfinite(regularized_acceleration(SYSTEM, 0.0, SINGULAR, REST)))
    motion = integrate_system(
        SYSTEM, SINGULAR, REST, 0.2, 1e-3, form="regularized", hold="ascher_chin"
    )
    assert motion.drift.largest().position < 1e-12
    assert motion.drift.largest().energy < 0.05  # the first step goes all three ways, then two


def test_drift_of_all_holds_compared():
    """Ten seconds of the pendulum: the drift of each, at the same step."""
    q, v = pendulum_state(-1.0, 2.0)
    drift = {
        hold: integrate_system(pendulum(), q, v, 10.0, 0.02, hold=hold, tolerance=1e-12)
        .drift.largest()
        for hold in ("nothing", "baumgarte", "ascher_chin", "projection")
    }  # fmt: skip
    assert drift["nothing"].position > 20 * drift["baumgarte"].position
    assert drift["baumgarte"].position > 1e3 * drift["ascher_chin"].position
    assert drift["ascher_chin"].position < 1e-13
    assert drift["ascher_chin"].velocity < 1e-13
    assert drift["projection"].position < 1e-11
    # one correction leaves velocities off by the position error times the speed
    off = np.array([1.001, 0.0]), np.array([0.3, 1.0])
    once, twice = (post_stabilize(pendulum(), *off, repeats=k) for k in (1, 2))
    assert abs(once[0] @ once[0] - 1) < 2e-6
    assert abs(twice[0] @ twice[0] - 1) < 1e-11
    assert abs(twice[0] @ twice[1]) < 1e-5 * abs(once[0] @ once[1]) + 1e-15


@pytest.fixture(scope="module")
def on_a_hinge():
    """A bar that swings on a hinge."""
    hinge = system_of(swinging_body())
    return integrate_system(hinge, [0.4], [1.5], 0.5, 5e-3, hold="nothing")


@pytest.mark.parametrize("hold", ["nothing", "ascher_chin", "projection", "all", "energy"])
def test_configurations_that_are_not_vectors(hold, on_a_hinge):
    """A bar that the pin at its end lets swing, in planar coordinates, beside one on a hinge."""
    system, exact = system_of(pinned_body()), on_a_hinge
    q, v = np.array([0.4, 0.0, 0.0]), np.array([1.5, 0.0, 0.0])
    motion = integrate_system(system, q, v, 0.5, 5e-3, hold=hold, tolerance=1e-10)
    np.testing.assert_allclose(motion.q[:, 0], exact.q[:, 0], atol=1e-7)
    np.testing.assert_allclose(motion.v[:, 0], exact.v[:, 0], atol=1e-7)
    assert motion.drift.largest().position < 1e-7
    assert motion.drift.largest().energy < 1e-5


@pytest.mark.covers("Spencer 3.2", by=integrate_system)
def test_multipliers_do_not_start_at_a_singularity():
    with pytest.raises(SingularError, match=r"kt\.loops\.SVDForm"):
        integrate_system(SYSTEM, SINGULAR, REST, 0.01, 1e-3, form="multipliers")


def test_unknown_forms_and_holds_are_named():
    with pytest.raises(UnknownNameError, match="no form is called 'lagrange'"):
        integrate_system(SYSTEM, REST, REST, 0.01, 1e-3, form="lagrange")
    with pytest.raises(UnknownNameError, match="is called 'glue'; use one of"):
        integrate_system(SYSTEM, REST, REST, 0.01, 1e-3, hold="glue")
    mute = ConstrainedSystem(**{**vars(SYSTEM), "energy": None})
    with pytest.raises(ShapeError, match="the system has no energy function"):
        integrate_system(mute, REST, REST, 0.01, 1e-3, hold="energy")
    with pytest.raises(ShapeError, match="soften the inverse of form 'svd'; form 'multipliers'"):
        integrate_system(SYSTEM, REST, REST, 0.01, 1e-3, form="multipliers", damping=1e-3)


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("form", FORMS)
def test_every_combination_follows_the_pendulum(form, hold):
    q, v = pendulum_state(-1.0, 2.0)
    motion = integrate_system(pendulum(), q, v, 0.5, 0.01, form=form, hold=hold, tolerance=1e-10)
    assert motion.drift.largest().position < 1e-6
    assert motion.drift.largest().energy < 1e-5
    assert motion.t[-1] == pytest.approx(0.5)
    assert np.all(motion.kappa == 1)
    # lam in M vdot = F - G' lam: the force along the rod, over 2 |q|
    force = -(9.81 * motion.q[:, 1] + 0) + np.sum(motion.v**2, axis=1)
    np.testing.assert_allclose(motion.multipliers[:, 0], force / 2, atol=1e-3)


def test_a_motion_that_diverges_is_an_error():
    wild = ConstrainedSystem(**{**vars(pendulum()), "F": lambda t, q, v: np.array([np.inf, 0.0])})
    q, v = pendulum_state(-1.0, 2.0)
    with np.errstate(all="ignore"), pytest.raises(SimulationError, match="blew up in the step"):
        integrate_system(wild, q, v, 0.1, 0.01, form="multipliers", hold="nothing")
