"""The two examples of Spencer §3.2: through kinematic singularities, at 1 ms."""

import numpy as np
import pytest
from support.linkages import (
    SINGULAR,
    five_bar,
    link_angles,
    pendulum,
    pendulum_state,
    pinned_body,
)

from kinetree.errors import ShapeError, SimulationError, SingularError, UnknownNameError
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.svd_form import SVDForm
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.loops.state_space.system_motion import integrate_system, runge_kutta_step

SYSTEM, REST = five_bar(), np.zeros(4)


@pytest.fixture(scope="module")
def first():
    """From the singular posture, at rest, without stabilisation."""
    return integrate_system(SYSTEM, SINGULAR, REST, 2.85, 1e-3, hold="nothing")


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
    for t, pair in expected.items():
        np.testing.assert_allclose(angles[round(t / 1e-3), :2], pair, atol=0.02)
    np.testing.assert_allclose(angles[:, 3], -angles[:, 0], atol=0.05)  # symmetric
    np.testing.assert_allclose(angles[:, 2], -angles[:, 1], atol=0.05)
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


@pytest.mark.covers("Spencer 3.3", by=SVDForm)
@pytest.mark.parametrize("option", ["threshold", "damping"])
def test_softening_costs_energy(option):
    """The first tenths of a second from the singularity: stable, and less accurate."""
    changes, gaps = [], []
    for size in (1e-12, 1e-3, 1e-1):
        form, x = SVDForm(SYSTEM, **{option: size}), np.concatenate([SINGULAR, REST])
        for i in range(100):
            x = runge_kutta_step(lambda t, x, f=form: _rate(f, t, x), i * 4e-3, x, 4e-3)
        changes.append(abs(SYSTEM.energy(x[:4], x[4:]) - SYSTEM.energy(SINGULAR, REST)))
        gaps.append(np.linalg.norm(SYSTEM.g(x[:4])))
    assert gaps == sorted(gaps)
    assert changes[0] < 1e-4
    assert min(changes[1:]) > 20 * changes[0]


def _rate(form, t, x):
    return np.concatenate([x[4:], form.acceleration(t, x[:4], x[4:])])


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
    with pytest.raises(ShapeError, match="does not know its energy"):
        integrate_system(mute, REST, REST, 0.01, 1e-3, hold="energy")
    with pytest.raises(ShapeError, match=r"use charts\.Atlas"):
        integrate_system(system_of(pinned_body()), np.zeros(3), np.zeros(3), 0.1, 0.01)


@pytest.mark.parametrize("hold", ["nothing", "baumgarte", "projection", "all", "energy"])
@pytest.mark.parametrize("form", ["svd", "multipliers"])
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
