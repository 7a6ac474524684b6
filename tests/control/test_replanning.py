"""Plans that follow each other: what is kept between them does not change them."""

import copy

import numpy as np

from kinetree.control import MPC, Phase, QuadraticCost, Schedule

STAND = np.array([0.25, -0.2])


def hopping(hopper, **more):
    schedule = Schedule([Phase(0.3, ["leg"]), Phase(0.2)], repeat=0, ground=0.05)
    given = {"iterations": 2, **more}
    return MPC(
        hopper, steps=20, dt=0.02, phases=schedule, actuated=["leg_joint"],
        running=QuadraticCost(q=STAND, position=10.0, velocity=1e-2, effort=1e-4), **given,
    )  # fmt: skip


def same(a, b):
    names = ("q", "qd", "tau", "gains", "cost", "gap", "violation", "optimality", "converged")
    for name in names:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for x, y in zip(a.multipliers, b.multipliers, strict=True):
        np.testing.assert_array_equal(x, y)
    for name, force in a.forces.items():
        np.testing.assert_array_equal(force, b.forces[name])


def test_plans_are_those_of_controllers_that_never_planned(hopper):
    """Starts, times of the schedule, guesses and shapes of batches take turns."""
    control, none = hopping(hopper).problem, np.zeros(2)
    first = control.solve(STAND, none, iterations=30)
    kept = copy.deepcopy(first)
    cases = [
        ((STAND + 0.01, none), {"guess": first, "begins": 0.02}),
        ((STAND - 0.02, none + 0.1), {"guess": first, "begins": 0.31, "barrier": 1e-3}),
        (([STAND, STAND + 0.01], none), {"guess": first}),
        (([STAND + 0.02, STAND], none), {"begins": 0.44}),
        ((STAND.tolist(), none), {"guess": first}),
        ((STAND, None), {}),
    ]
    for start, more in [*cases, *cases]:
        found = control.solve(*start, iterations=2, **more)
        same(found, hopping(hopper).problem.solve(*start, iterations=2, **more))
    same(first, kept)  # no plan writes to one before it


def test_plans_follow_goals_that_are_changed_in_place(hopper):
    control, none = hopping(hopper).problem, np.zeros(2)
    before = control.solve(STAND, none)
    (name,) = (n for n, x in control.arguments.items() if np.array_equal(x, STAND))
    control.arguments[name] = STAND + np.array([0.05, 0.0])
    after = control.solve(STAND, none)
    control.arguments[name] -= np.array([0.05, 0.0])
    assert abs(after.q - before.q).max() > 1e-4
    same(control.solve(STAND, none), before)


def test_copies_of_controllers_plan_on_their_own(hopper):
    control, none = hopping(hopper), np.zeros(2)
    control(0.0, STAND, none)
    other = copy.deepcopy(control)
    for each in (control, other):
        each(0.02, STAND, none)
    same(control.plan, other.plan)


def test_plans_that_use_up_their_iterations_are_not_examined_again(hopper):
    """The motion is the same; what another look at it would have said is left out."""
    control = hopping(hopper, tolerance=1e-6).problem
    start = STAND, np.array([0.0, 0.1])
    hasty = control.solve(*start, iterations=1)
    control.lax = 0.0
    examined = control.solve(*start, iterations=1)
    for name in ("q", "tau", "gains", "gap", "violation", "cost", "iterations"):
        np.testing.assert_array_equal(getattr(hasty, name), getattr(examined, name))
    assert not hasty.converged
    assert hasty.optimality != examined.optimality
    assert control.solve(*start, iterations=0).optimality == hasty.optimality
