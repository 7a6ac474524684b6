"""Steps that close loops, one by one: formulas, limits, starts, metrics, and what errors say."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import sample

import kinetree as kt
from kinetree.algorithms.closed.rank import scaling
from kinetree.errors import AssemblyError, MisalignmentWarning
from kinetree.joints import REPRESENTATIVES
from kinetree.loops.kinematics import all_assemblies, assembly, state_projection
from kinetree.loops.kinematics.constraint import closing, closure_error, constraint, loop_gaps
from kinetree.loops.kinematics.descent import (
    Descent,
    DescentBounds,
    _damped_step,
    _Errors,
    _movable,
    descend,
)
from kinetree.loops.kinematics.loop_joints import weld_loops
from kinetree.loops.kinematics.space import ModelSpace, VectorSpace, metric, space_of
from kinetree.model.parts import Actuator

# --- One step -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 5), (3, 3), (6, 4), (1, 1), (0, 3), (4, 0)])
def test_a_step_minimises_the_error_and_its_own_length(shape, rng):
    """``|e + A z|² + mu |z|²``, by least squares with ``√mu`` times one more row for each ``z``."""
    m, k = shape
    A, e, damping = rng.normal(size=(3, m, k)), rng.normal(size=(3, m)), np.array([0.1, 3.0, 1e-6])
    found = _damped_step(A, e, damping)
    assert found.shape == (3, k)
    for n in range(3):
        mean = np.sum(A[n] ** 2) / max(min(m, k), 1)
        mu = mean * damping[n] * np.linalg.norm(e[n])
        stacked = np.concatenate([A[n], np.sqrt(mu) * np.eye(k)])
        expected = np.linalg.lstsq(stacked, -np.concatenate([e[n], np.zeros(k)]), rcond=None)[0]
        assert_close(
            found[n], expected, ulps=1e10 if n == 2 else 1e4, scale=1 + abs(expected).max(initial=0)
        )


def test_what_pushes_against_a_limit_does_not_move():
    limits = DescentBounds(
        np.array([-1.0, -1.0, -np.inf]), np.array([1.0, 2.0, np.inf]), np.array([1, 0, -1, 2])
    )
    q = np.array([[-1.0, 2.0, 5.0]] * 2 + [[1.0, -1.0, 5.0]] * 2 + [[0.0, 0.0, 0.0]])
    up = np.ones(4)
    directions = np.array([up, -up, up, -up, up])
    # variables 1, 0, none, 2 belong to the four velocities
    expected = [[0, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]
    assert _movable(limits, q, directions).tolist() == expected


def test_steps_stay_within_limits_and_slide_along_them():
    """From a corner of the box, where one joint would leave it and the others must do the rest."""
    model = sample("four_bar")
    limits = {"rocker_joint": kt.Limits(-0.05, 0.05), "coupler_joint": kt.Limits(-0.2, 1.0)}
    limited = model.replace(limits=limits)
    starts = np.array([[0.3, -0.2, 0.05], [-0.3, 1.0, -0.05], [0.2, 0.4, 0.05]])
    bounds = assembly.limits_of(limited)
    found = descend(limited, starts, limits=bounds, tolerance=1e-12, iterations=100)
    assert np.all(found.error < 1e-12)
    assert np.all(found.q >= bounds.lower)
    assert np.all(found.q <= bounds.upper)
    assert np.max(np.abs(closure_error(limited, found.q))) < 1e-12


@pytest.mark.parametrize("name", ["four_bar", "bennett", "stewart"])
def test_a_few_steps_are_enough_near_a_solution(name, rng):
    """Quadratic convergence, with redundant constraints or without."""
    model = sample(name)
    home = np.array(model.posture("home").q) if model.postures else model.neutral()
    starts = model.integrate(home, 0.05 * rng.normal(size=(4, model.nv)) * scaling(model).columns)
    found = descend(model, starts, tolerance=1e-9, iterations=50)
    assert np.all(found.error < 1e-12)
    assert np.all(found.steps <= 6)


# --- Assemblies -----------------------------------------------------------------------------------


def two_pins(limits):
    """Two pendulums whose hinges to the base are loop joints; one of those has limits."""
    bar = kt.Inertia.from_mass_center(1.0, (0.5, 0, 0), np.eye(3))
    builder = kt.ModelBuilder("two pins")
    for name in limits:
        builder.body(name, joint=kt.Planar(), inertia=bar)
        builder.loop(f"{name} pin", predecessor="base", successor=name, joint=kt.Revolute("z"))
    model = builder.build()
    loops = [
        replace(loop, limits=given)
        for loop, given in zip(model.loops, limits.values(), strict=True)
    ]
    return model.replace(loops=loops)


@pytest.mark.parametrize("first", [True, False])
def test_limits_of_one_loop_joint_among_several_count(first):
    limit = kt.Limits(np.array([0.5]), np.array([1.0]))
    model = two_pins({"a": limit if first else None, "b": None if first else limit})
    found = Descent(np.array([[0.7, 0, 0, 0.1, 0, 0], [0.1, 0, 0, 0.7, 0, 0]]), np.zeros(2), None)
    angles = kt.loops.loop_positions(model, found.q)
    inside = [0.5 <= float(x[0]) <= 1 for x in angles["a pin" if first else "b pin"]]
    assert sorted(inside) == [False, True]
    assert list(assembly.is_assembled(model, found, 1e-9, True)) == inside
    assert list(assembly.is_assembled(model, found, 1e-9, False)) == [True, True]


def test_the_error_tells_of_the_start_that_came_closest():
    model = sample("four_bar")
    tried = Descent(
        np.array([[0.5, 0, 0], [0.1, 0, 0], [0.9, 0, 0]]), np.array([3.0, 1.0, 2.0]), None
    )
    free, options = np.ones(3, dtype=bool), {"tolerance": 1e-12, "iterations": 1}
    found = assembly._failure(model, tried, (), free, False, options)
    assert list(found.q) == [0.1, 0, 0]
    gap = np.linalg.norm(closure_error(model, tried.q[1]))
    assert_close(found.gap, gap)
    assert f"stays open by {gap:.3g} m or rad after 4 starts" in str(found)


def test_gaps_of_a_batch_are_those_of_its_samples(rng):
    model = sample("ladder")
    q = rng.normal(size=(2, 7, model.nq))
    found = loop_gaps(model, q)
    assert len(found) == len(model.loops) > 1
    for index in np.ndindex(2, 7):
        for name, gap in loop_gaps(model, q[index]).items():
            assert found[name].shape == (2, 7)
            assert_close(found[name][index], gap)
    each = np.array(list(loop_gaps(model, q[0, 0]).values()))
    assert_close(np.linalg.norm(each), np.linalg.norm(closure_error(model, q[0, 0])))


@pytest.mark.parametrize(
    "joint", [j for j in REPRESENTATIVES if j.angles or j.unit_parts], ids=repr
)
def test_turns_are_taken_away_from_every_angle(joint, rng):
    """Whatever turns and signs are added, the configuration next to the reference is found."""
    model = (
        kt.ModelBuilder("two joints")
        .body("first", joint=kt.Revolute("x"), inertia=BALL)
        .body("second", on="first", joint=joint, inertia=BALL)
        .build()
    )
    near = model.random_configuration(rng)
    q = model.integrate(near, 0.1 * rng.normal(size=model.nv))
    turned, at = q.copy(), model.q_slice[2]
    turned[0] -= 4 * np.pi
    for n, k in enumerate(joint.angles, start=1):
        turned[at][k] += 2 * np.pi * n * (-1) ** n
    for part in joint.unit_parts:
        turned[at][part] *= -1
    assert_close(all_assemblies._wrap_angles(model, near, turned), q, ulps=1e3)
    assert_close(all_assemblies._wrap_angles(model, near, q), q)


BALL = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))


def test_starts_are_scattered_as_far_as_requested(rng):
    model = sample("slider_crank")
    units = scaling(model).columns
    free = np.ones(model.nv, dtype=bool)
    free[0] = False
    q = model.neutral()
    found = assembly.scatter(model, q, 0.4, free, None, rng, 500)
    away = np.max(np.abs(model.difference(q, found) / units), axis=0)
    assert away[0] == 0
    assert np.all((away[1:] > 0.38) & (away[1:] <= 0.4))


def test_a_welded_model_keeps_the_actuators_of_its_tree():
    model = sample("excavator")
    motor, valve = Actuator("motor", 1, (2.0,)), Actuator("valve", 0, (3.0,), loop=1)
    model = model.replace(actuators=(valve, motor))
    assert [a.name for a in weld_loops(model).actuators] == ["motor"]


# --- Spaces and metrics ---------------------------------------------------------------------------


def test_one_joint_that_is_not_flat_makes_the_space_a_manifold():
    def space(*joints):
        builder = kt.ModelBuilder("chain")
        for n, joint in enumerate(joints):
            builder.body(f"b{n}", on=f"b{n - 1}" if n else None, joint=joint, inertia=BALL)
        return space_of(builder.build())

    hinge, ball = kt.Revolute("x"), kt.Spherical()
    assert isinstance(space(hinge, hinge), VectorSpace)
    for joints in ((hinge, ball), (ball, hinge), (ball,)):
        assert isinstance(space(*joints), ModelSpace)
        assert not space(*joints).flat


def test_numbers_are_weights_on_the_diagonal(rng):
    model = sample("bennett")
    q, W = model.neutral(), rng.uniform(0.1, 9, model.nv)
    B = metric(model, q, W)
    assert_close(B @ B.T, np.diag(1 / W))
    other = metric(model, q, np.diag(W))
    assert_close(other @ other.T, np.diag(1 / W))
    A = rng.normal(size=(model.nv, model.nv))
    full = A @ A.T + np.eye(model.nv)
    B = metric(model, q, full)
    assert_close(B @ B.T @ full, np.eye(model.nv), ulps=1e4)


# --- Projection -----------------------------------------------------------------------------------


def scaled_four_bar(size):
    """The four-bar with all lengths multiplied."""
    bar = kt.Inertia.from_mass_center(1.0, (0.1 * size, 0, 0), size**2 * np.eye(3) / 100)
    z = kt.Revolute("z")
    return (
        kt.ModelBuilder("scaled")
        .body("crank", joint=z, inertia=bar)
        .body("coupler", on="crank", joint=z, at=(0.3 * size, 0, 0), inertia=bar)
        .body("rocker", joint=z, at=(0.4 * size, 0, 0), inertia=bar)
        .loop("pin", predecessor="coupler", successor="rocker", joint=z, at=(0.5 * size, 0, 0),
              successor_at=(0.4 * size, 0.0, 0))
        .build()
    )  # fmt: skip


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_fast_projection_is_good_to_a_tolerance_in_pure_numbers(size, rng):
    model = scaled_four_bar(size)
    home = kt.loops.assemble(model, [1.0, -0.4, 1.2])
    q, qd = home + 0.1 * rng.normal(size=3), np.zeros(3)
    closed, _, good = state_projection.fast_projection(model, q, qd, 1.0)
    assert good
    left = np.max(np.abs(closure_error(model, closed) * scaling(model).rows))
    assert 1e-12 < left < 1e-2  # three chord steps from afar
    for factor, expected in ((2.0, True), (0.5, None)):
        found = state_projection.fast_projection(model, q, qd, factor * left)
        assert (found is not None) == bool(expected)


@pytest.mark.parametrize("name", ["four_bar", "bennett"])
@pytest.mark.parametrize("away", [0.01, 0.3])
def test_rows_are_chosen_on_the_manifold_however_far_the_state_is_off(name, away, rng):
    model = sample(name)
    home = np.array(model.posture("home").q)
    expected = kt.loops.rank(constraint(model, home, np.zeros(model.nv)).K, scaling(model))
    q = home + away * rng.normal(size=model.nv)
    assert len(state_projection._equations_near(model, q[None]).rows) == expected == 2


@pytest.mark.parametrize("lacking", [-4.0, -0.6, -0.4, 0.0, 0.4, 0.6, 4.0])
def test_velocities_are_scaled_for_small_corrections_of_the_energy(lacking):
    """In parts of the kinetic energy; more than half of it is left alone."""
    model = sample("four_bar")
    q = np.array(model.posture("home").q)
    qd = kt.loops.project_velocity(model, q, np.array([1.0, 0.0, 0.0]))
    total, rest = (state_projection.mechanical_energy(model, q, x) for x in (qd, 0 * qd))
    wanted = total + lacking * (total - rest)
    _, found = kt.loops.project_state(model, q, qd, energy=wanted)
    factor = np.sqrt(1 + lacking) if abs(lacking) < 0.5 else 1.0
    assert_close(found, factor * qd, ulps=1e4)


def at_once(model, q, qd, energy):
    q, qd = kt.loops.project_state(model, q, qd, energy=energy, simultaneous=True)
    c = constraint(model, q, qd)
    return [*c.error, *c.rate, float(state_projection.mechanical_energy(model, q, qd)) - energy]


def test_all_invariants_at_once_from_afar():
    """Where whole steps lead away, shorter ones are tried; the state ends with every invariant."""
    model = sample("four_bar")
    home = np.array(model.posture("home").q)
    qd = kt.loops.project_velocity(model, home, np.array([2.0, 0.0, 0.0]))
    energy = float(state_projection.mechanical_energy(model, home, qd))
    for seed in (1, 4, 7, 8):
        rng = np.random.default_rng(seed)
        for away in (0.2, 0.5, 1.0):
            q, v = home + away * rng.normal(size=3), 5 * away * rng.normal(size=3)
            assert np.max(np.abs(at_once(model, q, v, energy))) < 1e-11
    with pytest.raises(
        AssemblyError, match=r"energy of -5000 J to be projected at once: errors of"
    ):
        at_once(model, home, qd, -5000.0)
    with pytest.raises(AssemblyError, match=r"loop 'pin' stays open by 0\.1 m or rad") as caught:
        at_once(model, home + np.array([-0.3, 2.5, 3.0]), qd, energy)
    assert caught.value.reason == "local minimum"


def test_nearly_redundant_constraints_have_no_say_in_a_projection_at_once(rng):
    """A hinge that is a little askew, as manufactured: its loop closes up to the misalignment."""
    model = scaled_four_bar(1.0)
    askew = model.replace(placement={"rocker_joint": kt.rotx(1e-5) @ kt.xlt(0.4, 0, 0)})
    with pytest.warns(MisalignmentWarning, match="3 constraints of loop 'pin' are nearly"):
        q = kt.loops.assemble(askew, [1.0, -0.4, 1.2])
    qd = kt.loops.project_velocity(askew, q, np.array([1.0, 0.0, 0.0]))
    energy = float(state_projection.mechanical_energy(askew, q, qd))
    start = q + 1e-3 * rng.normal(size=3), qd + 1e-3 * rng.normal(size=3)
    p, pd = kt.loops.project_state(askew, *start, energy=energy, simultaneous=True)
    c = constraint(askew, p, pd)
    assert np.max(np.abs(c.error)) < 2e-5
    assert np.max(np.abs(c.rate)) < 1e-4
    assert abs(float(state_projection.mechanical_energy(askew, p, pd)) - energy) < 1e-11
    assert np.max(np.abs(p - q)) < 0.01


@pytest.mark.parametrize("sign", [1, -1])
def test_rates_of_fast_motions_are_judged_by_their_speed(sign):
    """Rounding errors of a million radians in a second are no reason to decide ranks anew."""
    model = (
        kt.ModelBuilder("two that turn as one")
        .body("a", joint=kt.Revolute("z"), inertia=BALL)
        .body("b", joint=kt.Revolute("z"), at=kt.rotz(0.3), inertia=BALL)
        .loop("weld", predecessor="a", successor="b", joint=kt.Fixed(), at=(0.3, 0.7, 0),
              successor_at=(0.3, 0.7, 0))
        .build()
    )  # fmt: skip
    q, qd = np.array([0.7, 0.4]), np.ones(2)
    for factor in (1.0, 1e7):
        closed, moving, good = state_projection.fast_projection(model, q, sign * factor * qd, 1e-12)
        assert good
        assert_close(closed, q, scale=1)
        assert_close(moving, sign * factor * qd, ulps=1e3)
    off = sign * 1e7 * np.array([1.0, 1 + 1e-9])
    assert np.abs(constraint(model, q, off).rate).max() > 1e-3
    assert state_projection.fast_projection(model, q, off, 1e-12)[2]


def askew_four_bar():
    """A hinge that is a little askew, as manufactured; not looked at before."""
    return scaled_four_bar(1.0).replace(
        placement={"rocker_joint": kt.rotx(1e-5) @ kt.xlt(0.4, 0, 0)}
    )


def offset_four_bar():
    """A pin that misses along its axis, which the constraint matrix does not show."""
    model = scaled_four_bar(1.0)
    (pin,) = model.loops
    away = kt.xlt(pin.successor_placement.r + np.array([0, 0, 1e-5]))
    return model.replace(loops=(replace(pin, successor_placement=away),))


def test_a_start_that_is_stuck_does_not_keep_others_from_closing():
    """Up to the misalignment, which is known only after steps that do not get there."""
    start, stuck = np.array([1.0, -0.4, 1.2]), np.array([0.0, 2.0, -1.0])
    metrics = np.stack([np.diag(scaling(offset_four_bar()).columns), np.zeros((3, 3))])
    for q, B in (([start, stuck], metrics), ([start], metrics[:1])):
        with pytest.warns(MisalignmentWarning):
            found = descend(offset_four_bar(), np.array(q), B=B, tolerance=1e-12, iterations=60)
        assert found.error[0] < 1e-12


def test_what_nearly_redundant_constraints_miss_beyond_their_misalignment_is_an_error(
    rng, monkeypatch
):
    model = askew_four_bar()
    with pytest.warns(MisalignmentWarning):
        q = kt.loops.assemble(model, [1.0, -0.4, 1.2])
    policy, rows = scaling(model).policy, scaling(model).rows
    monkeypatch.setattr(type(policy), "slack", 1e-6)  # less than there is
    missed = []
    near = q + 0.02 * rng.normal(size=(5, 3))
    counts, _, sizes = _Errors(model).at(near)
    for one, count, size in zip(near, counts, sizes, strict=True):
        rest = np.max(np.abs(closing(model, one)[0] * rows - count))
        missed.append(max(rest - policy.slack, 0.0))
        assert_close(size, np.linalg.norm(count) + missed[-1])
    assert max(missed) > 1e-6


def test_some_of_the_starts_that_close_are_enough_to_blame_held_joints():
    """A delta robot has local minima, in which some random starts end."""
    model = sample("delta")
    free = np.ones(model.nv, dtype=bool)
    free[0] = False
    options = {"tolerance": 1e-12, "iterations": 100}
    reason, advice = assembly._reason(model, model.neutral(), free, False, options)
    assert reason == "held joints"
    assert repr(model.joint_names[0]) in advice
