"""Closed forms of loop-closure functions, read from models — RBDA §8.11."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import LoopError, UnknownNameError, UnreachableError
from kinetree.joints import Prismatic, Revolute, SphereInCylinder, Universal
from kinetree.loops.dynamics.solution import solve
from kinetree.model import ModelBuilder
from kinetree.samples import (
    actuated_arm,
    excavator,
    ladder,
    random_inertia,
    random_placement,
    slider_crank,
    stewart,
)
from kinetree.samples import four_bar as four_bar_model
from kinetree.spatial import Plucker, rotz, xlt
from kinetree.textbook.closure_rules import closure, four_bar, leg, parallelogram, triangle


def anywhere_four_bar(rng):
    """A four-bar in a random plane, its axes not all the same way round, the loop either way."""
    at = Plucker(random_placement(rng).E, rng.standard_normal(3))
    lift = [xlt(0, 0, z) for z in rng.standard_normal(2)]
    builder = (
        ModelBuilder("anywhere", gravity=rng.standard_normal(3))
        .body("carrier", joint=Revolute("x"), inertia=random_inertia(rng))
        .body("rocker", on="carrier", joint=Revolute("-z"), inertia=random_inertia(rng),
              at=rotz(0.4) @ xlt(1.1, 0.2, 0) @ at)
        .body("crank", on="carrier", joint=Revolute("z"), at=lift[0] @ at,
              inertia=random_inertia(rng))
        .body("coupler", on="crank", joint=Revolute("-z"), at=lift[1] @ rotz(-0.7) @ xlt(0.4, 0, 0),
              inertia=random_inertia(rng))
    )  # fmt: skip
    ends = {"coupler": (0.9, 0.1, 0.0), "rocker": (0.2, 0.8, 0.0)}
    names = list(ends)[:: 1 if rng.random() < 0.5 else -1]
    return builder.loop(
        "pin", predecessor=names[0], successor=names[1], joint=SphereInCylinder("z"),
        at=ends[names[0]], successor_at=ends[names[1]],
    ).build()  # fmt: skip


def check(found, y, yd, rng):
    """Closed, with G and g that the loop's own constraints confirm, and the same dynamics."""
    model = found.model
    q, qd, G, g = found.motion(y, yd)
    c = loop_constraints(model, q, qd)
    assert np.abs(c.error).max() < 1e-14
    assert np.abs(c.K @ G).max() < 1e-13
    assert np.abs(c.K @ g - c.k).max() < 1e-12 * (1 + np.abs(c.k).max())
    tau = rng.standard_normal(model.nv)
    one = solve(model, q, qd, tau)
    other = solve(model, q, qd, tau, method="closure", closure=found)
    assert_close(other.qdd, one.qdd, ulps=1e7, scale=1 + np.abs(one.qdd).max())


@pytest.mark.covers("RBDA 8.11", by=(closure, triangle))
def test_a_linear_actuator(rng):
    for model, loop in ((actuated_arm(), "eye"), (excavator(), "rod_eye")):
        found = closure(model, triangle(model, loop))
        assert len(found.names) == 2
        for _ in range(3):
            check(found, rng.uniform(0.1, 0.5, 2), rng.standard_normal(2), rng)
    assert np.abs(found.configuration([0.0, 0.0])).max() < 1e-14  # assembled at q = 0


@pytest.mark.covers("RBDA 8.10", "RBDA 8.11", by=four_bar)
def test_both_assemblies_of_a_four_bar(rng):
    model = four_bar_model()
    one, other = (closure(model, four_bar(model, "pin", branch=b)) for b in (1, -1))
    assert np.abs(other.configuration([0.0])).max() < 1e-14
    assert np.abs(one.configuration([0.0])[1:]).min() > 1
    for found in (one, other):
        for _ in range(3):
            check(found, rng.uniform(-3, 3, 1), rng.standard_normal(1), rng)


@pytest.mark.parametrize("seed", range(4))
def test_four_bars_in_any_plane(seed):
    rng = np.random.default_rng(seed)
    model = anywhere_four_bar(rng)
    for branch in (1, -1):
        found = closure(model, four_bar(model, "pin", branch=branch))
        assert found.names == ("carrier_joint", "crank_joint")
        check(found, rng.uniform(-0.3, 0.3, 2), rng.standard_normal(2), rng)


def test_a_crank_that_cannot_go_there_is_rejected(rng):
    model = anywhere_four_bar(np.random.default_rng(1))
    long = model.replace(placement={"coupler_joint": xlt(3.0, 0, 0)})
    found = closure(long, four_bar(long, "pin"))
    with pytest.raises(
        UnreachableError, match=r"cannot be assembled at carrier_joint, crank_joint"
    ):
        found.configuration([0.0, 2.0])


@pytest.mark.covers("RBDA 8.11", by=parallelogram)
def test_a_ladder_of_parallelograms_folds_flat(rng):
    model = ladder(3)
    found = closure(model, *(parallelogram(model, f"pin{i}") for i in (1, 2, 3)))
    assert len(found.names) == 3
    check(found, rng.uniform(-1, 1, 3), rng.standard_normal(3), rng)
    flat = found.configuration(np.full(3, np.pi / 2) * [1, 0, 0])
    assert np.abs(loop_constraints(model, flat, np.zeros(9)).error).max() < 1e-14


@pytest.mark.covers("RBDA 8.11", by=leg)
def test_a_platform_from_its_pose(rng):
    model = stewart()
    found = closure(model, *(leg(model, f"leg{i}_ball") for i in range(1, 7)))
    home = model.neutral()[:7]
    assert np.abs(found.configuration(home) - model.neutral()).max() < 1e-14
    for _ in range(2):
        y = found.integrate(home, 0.15 * rng.standard_normal(6))
        check(found, y, rng.standard_normal(6), rng)


@pytest.mark.parametrize("length", [0.7, 1.3])
def test_bars_that_do_not_meet_are_no_parallelogram(length):
    """Crank and rocker are equal, the coupler is shorter or longer than the ground."""
    builder = (
        ModelBuilder("apart")
        .body("crank", joint=Revolute("z"))
        .body("rocker", joint=Revolute("z"), at=xlt(1.0, 0, 0))
        .body("coupler", on="crank", joint=Revolute("z"), at=xlt(0, 0.5, 0))
    )
    ends = {"at": (length, 0.0, 0.0), "successor_at": (0.0, 0.5, 0.0)}
    pin = SphereInCylinder("z")
    model = builder.loop(
        "pin", predecessor="coupler", successor="rocker", joint=pin, **ends
    ).build()
    with pytest.raises(LoopError, match="is not a parallelogram at q = 0"):
        parallelogram(model, "pin")


def test_loops_of_other_shapes_are_rejected():
    model = four_bar_model()
    with pytest.raises(UnknownNameError, match=r"no loop joint 'pen'.*pin"):
        four_bar(model, "pen")
    with pytest.raises(LoopError, match="does not have this closed form: it runs through Revolute"):
        triangle(model, "pin")
    with pytest.raises(LoopError, match="is not a parallelogram at q = 0"):
        parallelogram(model, "pin")
    with pytest.raises(LoopError, match="branch must be 1 or -1, got 2"):
        four_bar(model, "pin", branch=2)
    with pytest.raises(LoopError, match=r"does not have this closed form"):
        leg(model, "pin")
    crank = slider_crank()
    with pytest.raises(LoopError, match="does not have this closed form"):
        four_bar(crank, crank.loops[0].name)


def test_dimensions_that_do_not_fit_the_form_are_rejected():
    arm = actuated_arm()
    for y in (0.1, -0.1):
        beside = arm.replace(placement={"rod_joint": xlt(0, y, 0)})
        with pytest.raises(LoopError, match="the line of slide 'rod_joint' must pass through both"):
            triangle(beside, "eye")
    tilted = arm.replace(joint={"barrel_joint": Revolute("x")})
    with pytest.raises(LoopError, match="is not planar"):
        triangle(tilted, "eye")
    platform = stewart()
    skew = platform.replace(joint={"leg1_stroke": Prismatic("x")})
    with pytest.raises(LoopError, match="is not a leg: the line of slide 'leg1_stroke'"):
        leg(skew, "leg1_ball")
    other = platform.replace(joint={"leg1_universal": Universal("zy")})
    with pytest.raises(LoopError, match="is not a leg"):
        leg(other, "leg1_ball")


def test_two_rules_for_one_joint_are_rejected():
    model = four_bar_model()
    rule = four_bar(model, "pin")
    with pytest.raises(LoopError, match="two rules determine joint coupler_joint, rocker_joint"):
        closure(model, rule, rule)


def test_a_slide_that_leaves_the_plane_is_rejected():
    """Its projection still passes through both pivots."""
    arm = actuated_arm()
    rod = arm.joint[arm.joint_index("rod_joint")]
    across = np.array(arm.joint[arm.joint_index("barrel_joint")].axis, dtype=float)
    out = arm.replace(joint={"rod_joint": Prismatic(0.8 * np.array(rod.axis) + 0.6 * across)})
    with pytest.raises(LoopError, match="the line of slide 'rod_joint' must pass through both"):
        triangle(out, "eye")


@pytest.mark.covers("RBDA 8.11", by=leg)
def test_the_margin_of_a_leg_is_its_distance_from_the_first_axis_of_its_joint(rng):
    """Squared: in line with that axis the second angle is a quarter turn, and the first is free."""
    model = stewart()
    q = model.neutral()
    for _ in range(3):
        q = q.copy()
        q[:7] = model.integrate(model.neutral(), np.r_[0.4 * rng.standard_normal(6), np.zeros(18)])[
            :7
        ]
        for n in range(1, 7):
            rule = leg(model, f"leg{n}_ball")
            loop = next(x for x in model.loops if x.name == f"leg{n}_ball")
            foot = model.joint_index(f"leg{n}_universal")
            X_0 = base_transforms(model, joint_transforms(model, q)[0])
            body, placement = loop.predecessor, loop.predecessor_placement
            if rule.dependent[1] == body:
                body, placement = loop.successor, loop.successor_placement
            ball = X_0[body].r + X_0[body].E.T @ placement.r
            base = model.tree_transform[foot]
            axis = base.E.T @ np.eye(3)["xyz".index(model.joint[foot].axes[0])]
            distance = np.linalg.norm(np.cross(axis, ball - base.r))
            assert_close(rule.margins(q), [distance**2], ulps=1e3)


@pytest.mark.covers("RBDA 8.11", by=leg)
def test_a_ball_may_sit_anywhere_on_the_line_of_its_leg(rng):
    model = stewart()
    rod = model.joint_index("leg1_stroke")
    line = np.array(model.joint[rod].axis, dtype=float)
    home = np.array(model.neutral(), dtype=float)
    for beyond in (0.1, -0.2):
        first, *others = model.loops
        assert first.predecessor == rod
        first = replace(first, predecessor_placement=xlt(beyond * line))
        longer = model.replace(loops=(first, *others))
        found = closure(longer, *(leg(longer, f"leg{i}_ball") for i in range(1, 7)))
        expected = home.copy()
        expected[model.q_slice[rod]] -= beyond
        assert np.abs(found.configuration(home[:7]) - expected).max() < 1e-14
        check(found, found.integrate(home[:7], 0.1 * rng.standard_normal(6)), np.zeros(6), rng)
