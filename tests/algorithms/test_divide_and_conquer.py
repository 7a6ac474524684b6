"""Forward dynamics by pairwise assembly, on trees and on closed loops — RBDA §7.5."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import (
    crank_slider,
    crank_slider_positions,
    explicit,
    four_bar,
    four_bar_positions,
    lagrange,
)
from support.states import conditioning, floating_tree, random_external_forces, random_state

from kinetree import samples
from kinetree.algorithms import aba, rnea
from kinetree.algorithms.closed import divide_and_conquer as dc
from kinetree.algorithms.closed import maximal
from kinetree.algorithms.closed.divide_and_conquer import AssemblyStep, assembly_plan
from kinetree.algorithms.kinematics import base_transforms
from kinetree.errors import SingularError
from kinetree.joints import (
    REPRESENTATIVES,
    Fixed,
    Helical,
    Planar,
    Prismatic,
    RackAndPinion,
    Revolute,
    Spherical,
    Universal,
)  # fmt: skip
from kinetree.model import ModelBuilder
from kinetree.spatial import Inertia


def assert_same_motion(model, q, qd, tau, f_ext=None, **options):
    result = dc.divide_and_conquer(model, q, qd, tau, f_ext, **options)
    expected = aba.articulated_bodies(model, q, qd, tau, f_ext)
    cond = conditioning(model, q) * body_conditioning(model, q)
    size = 10 + np.abs(expected.qdd).max(initial=0)
    assert_close(result.qdd, expected.qdd, condition=cond, scale=size)
    assert result.redundancy == 0
    return result


def body_conditioning(model, q):
    """Single bodies are inverted in base coordinates: shifts of origin cost digits."""
    bodies = dc.bodies_in_base(model, q, model.zero_velocity)
    return max(float(np.linalg.cond(I.to_matrix())) ** 0.5 for I in bodies.I[1:])


@pytest.mark.covers("RBDA 7.5", "RBDA 3.2", by=dc.divide_and_conquer)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 17])
def test_chains(n, rng):
    model = samples.chain(n)
    result = assert_same_motion(model, *random_state(model, rng))
    assert result.whole.step.depth == int(np.ceil(np.log2(n + 1)))
    assert result.whole.handles == ()


@pytest.mark.covers("RBDA 7.5", by=dc.divide_and_conquer)
def test_branched_trees_of_every_joint_kind(rng):
    for _ in range(8):
        model = samples.random_tree(int(rng.integers(2, 10)), rng, joints=REPRESENTATIVES)
        assert_same_motion(model, *random_state(model, rng), random_external_forces(model, rng))


@pytest.mark.covers("RBDA 7.5", by=dc.divide_and_conquer)
def test_floating_trees(rng):
    model = floating_tree(rng, 8, REPRESENTATIVES)
    assert_same_motion(model, *random_state(model, rng), random_external_forces(model, rng))


@pytest.mark.covers("RBDA 7.5", by=dc.divide_and_conquer)
def test_any_order_of_assembly_will_do(rng):
    """One body at a time from the base, and one at a time from the tip."""
    model = samples.chain(5)
    state = random_state(model, rng)
    from_base = AssemblyStep((0,))
    for i in range(1, 6):
        from_base = AssemblyStep(tuple(range(i + 1)), (i,), (from_base, AssemblyStep((i,))))
    from_tip = AssemblyStep((5,))
    for i in range(4, -1, -1):
        from_tip = AssemblyStep(tuple(range(i, 6)), (i + 1,), (AssemblyStep((i,)), from_tip))
    for plan in (from_base, from_tip, assembly_plan(model)):
        assert_same_motion(model, *state, plan=plan)
    assert from_base.depth == from_tip.depth == 5


@pytest.mark.covers("RBDA 7.4", "RBDA 7.5", by=dc.divide_and_conquer)
def test_forces_and_accelerations_recovered_on_the_way_down(rng):
    model = samples.random_tree(7, rng, joints=REPRESENTATIVES)
    q, qd, tau = random_state(model, rng)
    result = assert_same_motion(model, q, qd, tau)
    truth = rnea.newton_euler(model, q, qd, result.qdd)
    X_0 = base_transforms(model, truth.X)
    cond = conditioning(model, q) * body_conditioning(model, q)
    size = max(np.abs((X_0[i].T @ truth.f[i]).to_array()).max() for i in range(1, 8))
    for i in range(1, 8):
        f = X_0[i].T @ truth.f[i]
        assert_close(result.f_J[i].to_array(), f.to_array(), condition=cond, scale=size)
        a = X_0[i].inv_apply(truth.a[i])
        scale = 10 + np.abs(result.qdd).max()
        assert_close(result.a[i].to_array(), a.to_array(), condition=cond, scale=scale)
    assert np.array_equal(result.a[0].to_array(), -model.a_g.to_array())


@pytest.mark.covers("RBDA 7.5", "RBDA 3.2", by=dc.divide_and_conquer)
@pytest.mark.parametrize(
    ("linkage", "positions", "redundancy"),
    [(four_bar, four_bar_positions, 3), (crank_slider, crank_slider_positions, 3)],
)
def test_planar_linkages_closed_by_a_hinge(linkage, positions, redundancy, rng):
    """In space three of the hinge's five constraints repeat what the plane demands anyway."""
    model = linkage(rng)
    y, yd = 0.7, 1.3
    q, G, _ = explicit(positions, y, yd)
    tau = np.array([0.4, 0.0, 0.0])
    result = dc.divide_and_conquer(model, q, G * yd, tau)
    cond = system_conditioning(model, q, G * yd, tau)
    assert_close(result.qdd[0], lagrange(positions, y, yd, tau[0]), condition=cond)
    assert_close(result.qdd, maximal.forward_dynamics(model, q, G * yd, tau), condition=cond)
    assert result.redundancy == redundancy
    assert result.contradiction < 1e-10
    assert result.loop_error < 1e-15


def holding_hands(rng, ends, joint):
    """Two arms on the base and a loop joint between two bodies, with a state that it allows."""
    builder = ModelBuilder()
    for side in "lr":
        for n, kind in enumerate((Universal("xy"), Revolute("y"), Spherical())):
            builder.body(
                f"{side}{n}", on=f"{side}{n - 1}" if n else None, joint=kind,
                at=samples.random_placement(rng), inertia=samples.random_inertia(rng),
            )  # fmt: skip
    tree = builder.build()
    q, qd, tau = random_state(tree, rng)
    X_0 = dc.bodies_in_base(tree, q, qd).X_0
    p, s = (tree.body_index(name) for name in ends)
    X_J = joint.transform(joint.random(rng))
    at = X_J.inverse() @ X_0[s] @ X_0[p].inverse()  # closed by construction
    model = builder.loop(
        "hands", predecessor=ends[0], successor=ends[1], joint=joint, at=at
    ).build()

    def rate(qd):
        bodies = dc.bodies_in_base(model, q, qd)
        return dc.joint_constraints(model, q, qd, bodies.X_0, bodies.v)[-1].rate

    K = np.array([rate(unit) for unit in np.eye(model.nv)]).T
    return model, q, qd - np.linalg.pinv(K) @ (K @ qd), tau


@pytest.mark.covers("RBDA 7.5", by=dc.divide_and_conquer)
@pytest.mark.parametrize(
    ("ends", "joint"),
    [
        *(
            (ends, Spherical())
            for ends in [("l2", "r2"), ("r2", "l2"), ("r1", "base"), ("l2", "r1")]
        ),
        *((("l2", "r2"), joint) for joint in (Universal("xy"), RackAndPinion(0.3), Planar("z"))),
        (("r2", "l2"), Fixed()),
        (("r2", "l2"), Helical("z", pitch=0.1)),
    ],
    ids=repr,
)
def test_spatial_loops_between_any_bodies(ends, joint, rng):
    model, q, qd, tau = holding_hands(rng, ends, joint)
    result = dc.divide_and_conquer(model, q, qd, tau)
    expected = maximal.solution(model, q, qd, tau)
    cond = system_conditioning(model, q, qd, tau)
    size = 10 + np.abs(expected.qdd).max()
    assert_close(result.qdd, expected.qdd, condition=cond, scale=size)
    assert result.redundancy == expected.redundancy == 0
    size = max(np.abs(f.to_array()).max() for f in expected.f_J[1:])
    for f, g in zip(result.f_J[1:], expected.f_J[1:], strict=True):
        assert_close(f.to_array(), g.to_array(), condition=cond, scale=size)


def system_conditioning(model, q, qd, tau):
    """Condition number of the whole system of equations, redundancy left aside."""
    values = np.linalg.svd(maximal.equations(model, q, qd, tau).matrix, compute_uv=False)
    values = values[values > 1e-10 * values[0]]
    return values[0] / values[-1]


@pytest.mark.covers("RBDA 7.5", by=dc.divide_and_conquer)
def test_two_loops_that_close_at_once_and_repeat_each_other(rng):
    model = four_bar(rng)
    pin = model.loops[0]
    twin = type(pin)("twin", pin.successor, pin.predecessor, pin.joint,
                     pin.successor_placement, pin.predecessor_placement)  # fmt: skip
    q, G, _ = explicit(four_bar_positions, 0.7, 1.3)
    tau = np.array([0.4, 0.1, -0.2])
    once = dc.divide_and_conquer(model, q, 1.3 * G, tau)
    twice = dc.divide_and_conquer(model.replace(loops=(pin, twin)), q, 1.3 * G, tau)
    assert_close(twice.qdd, once.qdd, condition=system_conditioning(model, q, 1.3 * G, tau))
    assert twice.redundancy == once.redundancy + 5


@pytest.mark.covers("RBDA 7.5", by=dc.divide_and_conquer)
def test_stabilisation_pulls_a_loop_together_as_in_maximal_coordinates(rng):
    model = four_bar(rng)
    q, G, _ = explicit(four_bar_positions, 0.7, 1.3)
    drift = np.array([0, 0, 1e-4])
    q, qd = q + drift, 1.3 * G + 2 * drift
    tau = np.array([0.4, 0.1, -0.2])
    plain = maximal.forward_dynamics(model, q, qd, tau)
    expected = maximal.forward_dynamics(model, q, qd, tau, stabilization=0.1)
    assert np.max(np.abs(expected - plain)) > 1e-3
    qdd = dc.forward_dynamics(model, q, qd, tau, stabilization=0.1)
    # redundant rows disagree by the loop error, and each solver splits the difference its own way
    assert np.max(np.abs(qdd - expected)) < 1e-6 * np.max(np.abs(expected))


def test_a_body_without_inertia_is_named():
    rod = Inertia.from_mass_center(1.0, (0, 0, 0.5), np.diag([0.1, 0.1, 0.0]))
    solid = Inertia.from_mass_center(1.0, (0, 0, 0.5), np.diag([0.1, 0.1, 0.1]))
    model = (
        ModelBuilder()
        .body("plate", joint=Prismatic("x"), inertia=solid)
        .body("rod", on="plate", joint=Fixed(), inertia=rod)
        .build()
    )
    with pytest.raises(SingularError) as error:
        dc.forward_dynamics(model, np.zeros(1), np.zeros(1), np.zeros(1))
    assert str(error.value) == (
        "divide and conquer needs the inverse inertia of every single body, and body 'rod' has "
        "none: give it mass and rotational inertia, or use aba, which lets bodies be massless"
    )
