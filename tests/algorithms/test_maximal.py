import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from support import linkages
from support.closeness import assert_close
from support.special_joints import SPECIAL_JOINTS, Driven, Geared, Slot

from kinetree.algorithms import aba, crba, rnea
from kinetree.algorithms.closed import maximal
from kinetree.algorithms.closed.joint_space import joint_constraints
from kinetree.algorithms.closed.systems import (
    Explicit,
    Implicit,
    SubsystemEquation,
    apply_explicit,
    apply_implicit,
)
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
)
from kinetree.errors import ShapeError, SingularError
from kinetree.joints import (
    REPRESENTATIVES,
    Fixed,
    Prescribed,
    RackAndPinion,
    Revolute,
    Spherical,
)
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement, random_tree
from kinetree.spatial import Force, Inertia, Motion, xlt

TABLE = "RBDA 3.7"


PRESCRIBED = (
    Prescribed(Revolute("y"), lambda t: ([np.sin(t)], [np.cos(t)], [-np.sin(t)])).at(0.3),
    Prescribed(RackAndPinion(0.2), lambda t: ([t * t], [2 * t], [2.0])).at(0.7),
)
JOINTS = (*REPRESENTATIVES, *PRESCRIBED)


def random_state(model, rng):
    forces = [None] + [Force.from_array(rng.standard_normal(6)) for _ in model.bodies]
    return (
        model.random_configuration(rng),
        rng.standard_normal(model.nv),
        rng.standard_normal(model.nv),
        forces,
    )


def condition(model, q):
    return np.linalg.cond(crba.joint_space_inertia(model, q))


# --- trees ----------------------------------------------------------------------------------------


@pytest.mark.covers(TABLE, "RBDA 6.6", by=(maximal.forward_dynamics, maximal.equations))
@pytest.mark.parametrize("kinds", [JOINTS, SPECIAL_JOINTS, JOINTS + SPECIAL_JOINTS])
@pytest.mark.parametrize("trial", range(4))
def test_whole_system_equals_the_articulated_body_algorithm_on_trees(rng, kinds, trial):
    model = random_tree(9, rng, joints=kinds, floating_base=trial == 0)
    q, qd, tau, f_ext = random_state(model, rng)
    expected = aba.forward_dynamics(model, q, qd, tau, f_ext)
    s = maximal.solution(model, q, qd, tau, f_ext)
    assert_close(s.qdd, expected, ulps=1000, condition=condition(model, q))
    assert (s.rank, s.redundancy) == (6 * 9 - model.nv, 0)


@pytest.mark.covers(TABLE, by=maximal.forward_dynamics)
@pytest.mark.parametrize("joint", JOINTS + SPECIAL_JOINTS, ids=repr)
def test_every_kind_of_joint_in_the_middle_of_a_chain(rng, joint):
    model = random_tree(3, rng, joints=[joint], branching=0.0)
    q, qd, tau, f_ext = random_state(model, rng)
    expected = aba.forward_dynamics(model, q, qd, tau, f_ext)
    qdd = maximal.forward_dynamics(model, q, qd, tau, f_ext)
    c = condition(model, q) if model.nv else 1
    assert_close(qdd, expected, ulps=1000, condition=c)


@pytest.mark.covers("RBDA 3.7", by=maximal.solution)
def test_joint_forces_and_accelerations_equal_those_of_newton_and_euler(rng):
    model = random_tree(8, rng, joints=JOINTS + SPECIAL_JOINTS)
    q, qd, tau, f_ext = random_state(model, rng)
    s = maximal.solution(model, q, qd, tau, f_ext)
    ne = rnea.newton_euler(model, q, qd, s.qdd, f_ext)
    assert_close(ne.tau, tau, ulps=1000, condition=condition(model, q))
    X_0 = base_transforms(model, ne.X)
    size = max(np.linalg.norm(f.to_array()) for f in ne.f[1:])
    for i in range(1, 9):
        f = X_0[i].star @ s.f_J[i]
        assert_close(f.to_array(), ne.f[i].to_array(), ulps=1000, condition=100, scale=size)
        a = X_0[i] @ (s.a[i] - model.a_g)
        assert_close(a.to_array(), ne.a[i].to_array(), ulps=1000, condition=100)


def test_sparse_factorisation_of_the_matrix_gives_the_same(rng):
    model = random_tree(7, rng, joints=JOINTS)
    q, qd, tau, f_ext = random_state(model, rng)
    eq = maximal.equations(model, q, qd, tau, f_ext)
    assert_close(eq.matrix, eq.matrix.T)
    x = scipy.sparse.linalg.splu(scipy.sparse.csc_matrix(eq.matrix)).solve(eq.right_hand_side)
    s = maximal.solution(model, q, qd, tau, f_ext)
    a = np.concatenate([a.to_array() for a in s.a[1:]])
    assert_close(x, np.concatenate([a, -s.lam]), condition=np.linalg.cond(eq.matrix))


def test_incidence_has_one_block_for_a_joint_on_the_base_and_two_for_others():
    model = linkages.four_bar()
    P = maximal.incidence(model)
    blocks = [
        [1, -1, 0, 0],
        [0, 1, 0, -1],
        [0, 0, 1, 1],
    ]
    assert_close(P, np.kron(blocks, np.eye(6)))


@pytest.mark.covers("RBDA 3.5", by=maximal.forward_dynamics)
def test_welded_bodies_move_as_one(rng):
    I1, I2, at = random_inertia(rng), random_inertia(rng), random_placement(rng)
    hinge, X = Revolute("y"), random_placement(rng)
    welded = (
        ModelBuilder()
        .body("a", joint=hinge, at=X, inertia=I1)
        .body("b", on="a", joint=Fixed(), at=at, inertia=I2)
        .build()
    )
    merged = ModelBuilder().body("a", joint=hinge, at=X, inertia=I1 + I2.inverse_transformed(at))
    state = rng.standard_normal((3, 1))
    expected = aba.forward_dynamics(merged.build(), *state)
    assert_close(maximal.forward_dynamics(welded, *state), expected)


@pytest.mark.covers("RBDA Example 3.2", by=maximal.solution)
def test_where_the_actuator_pushes_changes_the_bearing_loads_and_nothing_else(rng):
    r = 0.2
    T_a = Force.from_array(np.array([[0, 0, 1, 0, -1 / r, 0]]).T)
    at, I = random_placement(rng), random_inertia(rng)
    plain, geared = (
        ModelBuilder().body("b", joint=joint, at=at, inertia=I).build()
        for joint in (Revolute("z"), Geared(Revolute("z"), T_a))
    )
    q, qd, tau = rng.standard_normal((3, 1))
    a, b = (maximal.solution(m, q, qd, tau) for m in (plain, geared))
    assert_close(b.qdd, a.qdd)
    assert_close(b.f_J[1].to_array(), a.f_J[1].to_array())
    X = joint_transforms(plain, q)[0][1]
    difference = X.star @ (b.f_c[1] - a.f_c[1])
    expected = np.array([0, 0, 0, 0, tau[0] / r, 0])
    assert_close(difference.to_array(), expected, scale=np.linalg.norm(b.f_J[1].to_array()))


def test_massless_bodies_may_sit_between_others(rng):
    builder = ModelBuilder().body("a", joint=Revolute("x"), inertia=Inertia.zero())
    model = builder.body("b", on="a", joint=Revolute("y"), inertia=random_inertia(rng)).build()
    q, qd, tau = rng.standard_normal((3, 2))
    expected = aba.forward_dynamics(model, q, qd, tau)
    assert_close(
        maximal.forward_dynamics(model, q, qd, tau), expected, condition=condition(model, q)
    )


def test_a_motion_without_inertia_is_an_error():
    model = ModelBuilder().body("a", joint=Revolute("x"), inertia=Inertia.zero()).build()
    with pytest.raises(SingularError, match="some allowed motion moves no inertia"):
        maximal.forward_dynamics(model, np.zeros(1), np.zeros(1), np.zeros(1))


# --- loops ----------------------------------------------------------------------------------------


@pytest.mark.covers(TABLE, by=maximal.solution)
@pytest.mark.parametrize("y", [-2.0, 0.4, 1.3])
def test_planar_linkages_in_space_move_as_lagrange_says(linkage, rng, y):
    build, positions = linkage
    model, yd, u = build(rng), 3.1, 0.7
    q, G, g = linkages.explicit(positions, y, yd)
    s = maximal.solution(model, q, G * yd, np.array([u, 0.0, 0.0]))
    ydd = linkages.lagrange(positions, y, yd, u)
    assert_close(s.qdd, G * ydd + g, ulps=1000, condition=10)
    # 15 + 5 constraints leave one freedom to three bodies: three are redundant
    assert (s.rank, s.redundancy) == (17, 3)
    assert_close(s.loop_error, np.zeros(5), scale=1)
    assert_close(s.loop_rate, np.zeros(5), scale=10)


@pytest.mark.covers("RBDA 3.2", by=(apply_explicit, apply_implicit))
def test_spanning_tree_and_loop_constraint_give_the_same_as_the_whole_system(linkage, rng):
    """Strategy 2 of RBDA §3.2, with explicit and with implicit constraint, against strategy 1."""
    build, positions = linkage
    model, y, yd = build(rng), 0.9, -2.2
    q, G, g = linkages.explicit(positions, y, yd)
    qd, tau = G * yd, rng.standard_normal(3)
    tree = SubsystemEquation(crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd), tau)
    expected = maximal.forward_dynamics(model, q, qd, tau)
    explicit = apply_explicit(tree, Explicit(G[:, None], g))
    assert_close(explicit.qdd, expected, ulps=1000, condition=10)
    K, k = loop_constraint(model, q, qd)
    implicit = apply_implicit(tree, Implicit(K, k), scale=np.linalg.norm(qd) ** 2)
    assert_close(implicit.qdd, expected, ulps=1000, condition=10)
    assert (implicit.rank, implicit.indeterminacy) == (2, 3)


def loop_constraint(model, q, qd):
    """K and k of the loop joints on the tree: unit velocities and zero accelerations go in."""
    X, v = body_velocities(model, q, qd)
    X_0 = base_transforms(model, X)

    def across(vectors, loop):
        p, s = loop.predecessor, loop.successor
        zero = Motion.zero()
        a, b = (X_0[n].inverse() @ vectors[n] if n else zero for n in (s, p))
        return a - b

    in_base = [X_0[i].inverse() @ v[i] for i in range(model.body_count + 1)]
    avp = body_accelerations(model, q, qd, np.zeros(model.nv))[2]
    rows, k = [], []
    closures = joint_constraints(model, q, qd, X_0, in_base)[model.body_count :]
    for loop, J in zip(model.loops, closures, strict=True):
        columns = [J.T.T @ across(body_velocities(model, q, e)[1], loop) for e in np.eye(model.nv)]
        rows.append(np.column_stack(columns))
        k.append(J.T.T @ (J.c - across(avp, loop)))
    return np.vstack(rows), np.concatenate(k)


def chain_with_loop(rng):
    """B1, B2, B3 in a chain from the base, a slot back to the base; and a state that fits."""
    I = [random_inertia(rng) for _ in range(3)]
    at = [random_placement(rng) for _ in range(3)]
    slot = Slot(0.5)
    q_loop = np.array([0.3])
    builder = (
        ModelBuilder("chain")
        .body("B1", joint=Spherical(), at=at[0], inertia=I[0])
        .body("B2", on="B1", joint=Spherical(), at=at[1], inertia=I[1])
        .body("B3", on="B2", joint=Slot(), at=at[2], inertia=I[2])
    )
    q = builder.build().random_configuration(rng)
    X = base_transforms(builder.build(), joint_transforms(builder.build(), q)[0])
    ground = slot.transform(q_loop).inverse() @ X[3]
    model = builder.loop("L", predecessor="base", successor="B3", joint=slot, at=ground).build()
    K, _ = loop_constraint(model, q, np.zeros(7))
    qd = rng.standard_normal(7)
    qd = qd - np.linalg.pinv(K) @ (K @ qd)
    other = (
        ModelBuilder("chain, cut elsewhere")
        .body("B1", joint=Spherical(), at=at[0], inertia=I[0])
        .body("B2", on="B1", joint=Spherical(), at=at[1], inertia=I[1])
        .body("B3", joint=slot, at=ground, inertia=I[2])
        .loop("J3", predecessor="B2", successor="B3", joint=Slot(), at=at[2])
        .build()
    )
    v_3 = body_velocities(model, q, qd)[1][3]
    rate = np.linalg.lstsq(slot.motion_subspace(q_loop).to_array(), v_3.to_array(), rcond=None)[0]
    return model, q, qd, other, np.r_[q[:8], q_loop], np.r_[qd[:6], rate]


@pytest.mark.covers(TABLE, by=maximal.solution)
def test_any_spanning_tree_gives_the_same_motion_and_the_same_forces(rng):
    model, q, qd, other, q_other, qd_other = chain_with_loop(rng)
    tau = np.r_[rng.standard_normal(6), 0.0]
    a = maximal.solution(model, q, qd, tau)
    b = maximal.solution(other, q_other, qd_other, tau)
    assert (a.rank, a.redundancy) == (b.rank, b.redundancy) == (16, 0)
    tolerance = {"ulps": 1000, "condition": 100}
    for i in (1, 2, 3):
        assert_close(b.a[i].to_array(), a.a[i].to_array(), **tolerance)
    for j, k in ((1, 1), (2, 2), (3, 4), (4, 3)):
        assert_close(b.f_J[k].to_array(), a.f_J[j].to_array(), **tolerance)


@pytest.mark.covers("6-D Guide 2: Acceleration", by=maximal.forward_dynamics)
def test_two_hands_on_one_object_keep_its_acceleration_common(rng):
    """(J_l - J_r) qdd = avp_r - avp_l for two arms of which the hands are welded together."""
    builder, hands = ModelBuilder("two arms"), []
    for side in "lr":
        parent = None
        for n, joint in enumerate((Spherical(), Revolute("y"), Spherical())):
            name = f"{side}{n}"
            at, inertia = random_placement(rng), random_inertia(rng)
            builder.body(name, on=parent, joint=joint, at=at, inertia=inertia)
            parent = name
        hands.append(parent)
    q = builder.build().random_configuration(rng)
    X_0 = base_transforms(builder.build(), joint_transforms(builder.build(), q)[0])
    grip = X_0[6] @ X_0[3].inverse()
    model = builder.loop("grasp", predecessor=hands[0], successor=hands[1], at=grip).build()
    K, _ = loop_constraint(model, q, np.zeros(14))
    qd = rng.standard_normal(14)
    qd = qd - np.linalg.pinv(K) @ (K @ qd)
    qdd = maximal.forward_dynamics(model, q, qd, rng.standard_normal(14))

    def hand(i, vectors):
        return (X_0[i].inverse() @ vectors[i]).to_array()

    J_l, J_r = (
        np.column_stack([hand(i, body_velocities(model, q, e)[1]) for e in np.eye(14)])
        for i in (3, 6)
    )
    # both with -a_g at the base: it cancels
    avp = body_accelerations(model, q, qd, np.zeros(14), -model.a_g)[2]
    left, right = (J_l - J_r) @ qdd, hand(6, avp) - hand(3, avp)
    assert_close(left, right, ulps=1000, scale=np.linalg.norm(J_l @ qdd))


def test_closing_a_loop_twice_changes_the_motion_no_more_than_once(linkage, rng):
    build, positions = linkage
    model, tau = build(rng), rng.standard_normal(3)
    twice = model.replace(loops=(*model.loops, type(model.loops[0])("again", *vars_of(model))))
    q, G, _ = linkages.explicit(positions, 0.5, 2.0)
    a, b = (maximal.solution(m, q, 2.0 * G, tau) for m in (model, twice))
    assert b.redundancy == a.redundancy + 5
    assert_close(b.qdd, a.qdd, ulps=1000, condition=10)
    # each of the two carries half of the load
    assert_close(b.f_J[4].to_array(), b.f_J[5].to_array(), ulps=1000, condition=10)


def vars_of(model):
    loop = model.loops[0]
    return (
        loop.predecessor,
        loop.successor,
        loop.joint,
        loop.predecessor_placement,
        loop.successor_placement,
    )


def test_loops_that_contradict_each_other_are_an_error(rng):
    """At t = 0 the drive is at rest but about to move; a weld forbids it."""

    class Starting(Driven):
        def jcalc(self, q, qd):
            X, S, v, c = Driven.jcalc(self, q, qd)
            return X, S, v * 0, c

    model = (
        ModelBuilder()
        .body("b", joint=Starting(0.0), inertia=random_inertia(rng))
        .body("c", on="b", joint=Fixed(), inertia=random_inertia(rng))
        .loop("weld", predecessor="base", successor="c")
        .build()
    )
    none = np.zeros(0)
    with pytest.raises(SingularError, match="contradictory constraints: of 18 equations"):
        maximal.solution(model, none, none, none)


def test_a_weld_opened_by_half_a_turn_is_not_closed(rng):
    """The error that stabilisation uses vanishes there; the check must not."""
    model = (
        ModelBuilder()
        .body("b", joint=Revolute("z"), inertia=random_inertia(rng))
        .loop("weld", predecessor="base", successor="b")
        .build()
    )
    zero = np.zeros(1)
    assert_close(maximal.forward_dynamics(model, zero, zero, zero), zero, scale=1)
    with pytest.raises(ShapeError, match=r"loop 'weld': its position error is 3\.14"):
        maximal.forward_dynamics(model, np.array([np.pi]), zero, zero)


@pytest.mark.covers(TABLE, by=maximal.solution)
def test_stabilisation_makes_loop_errors_decay_at_its_time_constant():
    """K a = k + k_stab: the error obeys dd e + 2/T d e + e/T² = 0 — RBDA (8.22)."""
    model, T_stab = linkages.four_bar(), 0.1
    q, G, _ = linkages.explicit(linkages.four_bar_positions, 0.5, 2.0)
    q, qd, tau = q + np.array([0, 1e-4, 0]), 2 * G + np.array([0, 0, 1e-4]), np.zeros(3)
    plain = maximal.equations(model, q, qd, tau)
    stabilised = maximal.equations(model, q, qd, tau, stabilization=T_stab)
    s = maximal.solution(model, q, qd, tau, stabilization=T_stab)
    k_stab = -2 / T_stab * s.loop_rate - s.loop_error / T_stab**2
    assert_close(stabilised.k - plain.k, np.r_[np.zeros(15), k_stab], scale=10)
    assert np.max(np.abs(k_stab)) > 1e-4


def test_an_empty_mechanism_has_an_empty_solution():
    none = np.zeros(0)
    s = maximal.solution(ModelBuilder().build(), none, none, none)
    assert s.qdd.shape == (0,)
    assert s.rank == 0


def test_far_from_the_origin_forces_are_still_those_near_it(rng):
    model = random_tree(4, rng, joints=JOINTS[:3])
    moved = model.replace(
        bodies=tuple(
            type(b)(**{**vars(b), "placement": b.placement @ xlt(30.0, -20.0, 10.0)})
            if b.parent == 0
            else b
            for b in model.bodies
        )
    )
    q, qd, tau, _ = random_state(model, rng)
    a, b = (maximal.forward_dynamics(m, q, qd, tau) for m in (model, moved))
    assert_close(b, a, ulps=1000, condition=1e3 * condition(model, q))
