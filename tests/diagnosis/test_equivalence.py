"""Mechanisms that move alike although their inertias differ — RBDA §9.7."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.quiet import without_warnings
from support.states import conditioning

import kinetree as kt
from kinetree.algorithms import aba, crba, rnea
from kinetree.algorithms import fewest_operations as fewest
from kinetree.codegen.program import Argument, trace
from kinetree.diagnosis import equivalence
from kinetree.expr.interpret import evaluate
from kinetree.model.views import uncondensed_view
from kinetree.samples import random_inertia, random_tree
from kinetree.spatial import Inertia

FAMILIES = {
    "revolute": (kt.Revolute("z"), 3),
    "slanted revolute": (kt.Revolute((0.0, 0.6, 0.8)), 3),
    "prismatic": (kt.Prismatic("x"), 6),
    "slanted prismatic": (kt.Prismatic((1.0, -2.0, 0.5)), 6),
    "translation": (kt.Translation(), 6),
    "spherical": (kt.Spherical(), 1),
    "cylindrical": (kt.Cylindrical(), 1),
    "slanted cylindrical": (kt.Cylindrical((1.0, 1.0, 1.0)), 1),
    "helical": (kt.Helical(pitch=0.1), 1),
    "helical without pitch": (kt.Helical((0.0, 0.6, 0.8), pitch=0.0), 3),
    "screw": (kt.Screw((0.6, 0.0, 0.8, 0.3, -0.2, 0.1)), 1),
    "hinge beside its frame": (kt.Screw.about((0.6, 0.0, 0.8), (0.3, 0.2, -0.1)), 3),
    "planar": (kt.Planar(), 1),
    "slanted planar": (kt.Planar((0.5, 1.0, -1.0), translation="child"), 1),
    "universal": (kt.Universal("zy"), 1),
    "Euler": (kt.joints.Euler("zyx"), 1),
    "proper Euler": (kt.joints.Euler("zxz"), 1),
    "exponential": (kt.joints.Exponential(), 1),
    "rack and pinion": (kt.joints.RackAndPinion(0.3), 1),
    "reversed": (kt.joints.Reversed(kt.joints.RackAndPinion(0.3)), 1),
    "sphere in cylinder": (kt.joints.SphereInCylinder(), 0),
    "fixed": (kt.Fixed(), 10),
    "free": (kt.Free(), 0),
}


@pytest.mark.covers("RBDA 9.7", by=equivalence.lumped)
@pytest.mark.parametrize("seed", range(20))
def test_a_lumped_model_moves_like_the_original(seed):
    rng = np.random.default_rng(seed)
    model = random_tree(7, rng, floating_base=bool(seed % 2))
    lean = equivalence.lumped(model)
    q, (qd, u) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    H = crba.joint_space_inertia(model, q)
    assert_close(crba.joint_space_inertia(lean, q), H, ulps=500)
    tau = rnea.inverse_dynamics(model, q, qd, u)
    assert_close(rnea.inverse_dynamics(lean, q, qd, u), tau, ulps=1000)
    qdd = aba.forward_dynamics(model, q, qd, u)
    scale = float(np.max(np.abs(qdd)))
    found = aba.forward_dynamics(lean, q, qd, u)
    assert_close(found, qdd, ulps=1000, scale=scale, condition=conditioning(model, q))


@pytest.mark.covers("RBDA Table 9.7", by=equivalence.invariant_inertias)
@pytest.mark.parametrize(("joint", "count"), FAMILIES.values(), ids=FAMILIES)
def test_each_joint_has_the_family_of_the_table(joint, count, rng):
    basis = equivalence.invariant_inertias(joint)
    assert len(basis) == count
    for parameters in basis:
        assert equivalence.is_invariant(joint, Inertia.from_parameters(parameters))
    assert equivalence.is_invariant(joint, random_inertia(rng)) == (count == 10)


@pytest.mark.covers("RBDA 9.7", by=equivalence.is_invariant)
@pytest.mark.parametrize(("joint", "count"), FAMILIES.values(), ids=FAMILIES)
def test_lumping_moves_the_whole_family(joint, count, rng):
    """E-04: what moves spans the family, and what stays has no part of it left."""
    moved = []
    for _ in range(12):
        inertia = random_inertia(rng)
        part = joint.movable_inertia(inertia)
        if part is None:
            assert count == 0
            return
        assert equivalence.is_invariant(joint, part)
        left = joint.movable_inertia(inertia - part)
        assert_close(left.parameters(), np.zeros(10), scale=10.0)
        moved.append(part.parameters())
    assert np.linalg.matrix_rank(np.array(moved), tol=1e-9) == count


@pytest.mark.parametrize(("joint", "count"), FAMILIES.values(), ids=FAMILIES)
def test_what_moves_of_a_body_at_the_origin(joint, count):
    """A body whose centre is at the joint has no first moment to divide by."""
    inertia = Inertia.from_mass_center(2.0, np.zeros(3), np.diag([1.0, 1.5, 2.0]))
    part = joint.movable_inertia(inertia)
    if part is not None:
        assert np.all(np.isfinite(part.to_matrix()))
        assert equivalence.is_invariant(joint, part)


@pytest.mark.covers("RBDA 9.7", by=equivalence.lumped)
@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("joint", [joint for joint, _ in FAMILIES.values()], ids=FAMILIES)
def test_a_lumped_chain_of_any_joints_moves_like_the_original(joint, floating_base, rng):
    """H, C, and on a floating base F, I0c and p0c, which are rows of the same matrices."""
    builder = kt.ModelBuilder("pair")
    root = kt.Free() if floating_base else kt.Revolute((0.0, 0.6, 0.8))
    builder.body("root", joint=root, inertia=random_inertia(rng))
    for k, on in enumerate(("root", "b0")):
        at = kt.xlt(0.3, 0.2, 0.1) @ kt.rotx(0.4)
        builder.body(f"b{k}", on=on, joint=joint, at=at, inertia=random_inertia(rng))
    model = builder.build()
    lean = equivalence.lumped(model)
    q, (qd, qdd) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    H = crba.joint_space_inertia(model, q)
    assert_close(crba.joint_space_inertia(lean, q), H, ulps=500)
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(rnea.inverse_dynamics(lean, q, qd, qdd), tau, ulps=1000)
    assert_close(kt.inverse_dynamics(model, q, qd, qdd), tau, ulps=1000)  # compiled


def test_any_member_of_the_family_may_change_sides(rng):
    """The two bodies of a joint, one with less and the other with more."""
    for joint, count in FAMILIES.values():
        if not 0 < count < 10:
            continue
        basis = equivalence.invariant_inertias(joint)
        part = Inertia.from_parameters(rng.standard_normal(count) @ basis)
        pair = (
            kt.ModelBuilder("pair")
            .body("a", joint=kt.Free(), inertia=random_inertia(rng))
            .body("b", on="a", joint=joint, at=(0.3, 0.2, 0.1), inertia=random_inertia(rng))
            .build()
        )
        X, (I_a, I_b) = pair.tree_transform[2], pair.inertia[1:]
        changed = {"a": I_a + X.inv_apply(part), "b": I_b - part}
        other = without_warnings(pair.replace, inertia=changed, strict=False)
        assert max(equivalence.compare(pair, other)) < 1e-11


def test_without_the_transform_that_the_printed_loop_forgets_the_motion_changes(rng):
    model = random_tree(4, rng, joints=[kt.Revolute("z")], branching=0)
    I = list(model.inertia)
    part = Inertia(I[4].mass, (0, 0, I[4].first_moment[2]), np.zeros((3, 3)))
    assert equivalence.is_invariant(model.joint[4], part)
    names = model.body_names
    printed = {names[3]: I[3] + part, names[4]: I[4] - part}
    other = without_warnings(model.replace, inertia=printed, strict=False)
    assert equivalence.compare(model, other).inertia > 1e-3


def test_seven_numbers_of_each_body_on_a_hinge_remain():
    model = equivalence.lumped(random_tree(5, 2, joints=[kt.Revolute("z")], branching=0))
    for I in model.inertia[1:]:
        J = np.trace(I.rotational) / 2 * np.eye(3) - I.rotational
        assert_close([I.mass, I.first_moment[2], J[2, 2]], np.zeros(3), scale=10.0)


def test_savings_are_those_that_the_book_reports():
    found = equivalence.savings(kt.samples.panda())
    assert 12 < found["RNEA"].percent < 20  # about 15 %
    assert found["RNEA"].percent > found["ABA"].percent > 0
    assert found["CRBA"].lumped < found["CRBA"].plain


@pytest.mark.covers("RBDA 9.7", by=equivalence.augmented_bodies)
def test_augmented_bodies_hold_the_whole_mass(rng):
    chain = random_tree(3, rng, joints=[kt.Revolute("y")], branching=0)
    masses = [float(I.mass) for I in chain.inertia[1:]]
    on_base = equivalence.augmented_bodies(chain)
    assert_close([I.mass for I in on_base], [sum(masses), sum(masses[1:]), masses[2]])
    floating = equivalence.augmented_bodies(chain, floating=True)
    assert_close([I.mass for I in floating], [sum(masses)] * 3)


def test_the_inertia_matrix_of_a_plane_chain_is_written_with_augmented_bodies():
    """H_ij = first moment of augmented body j about its joint, times the arm, for hinged links."""
    lengths, builder = (0.5, 0.4, 0.3), kt.ModelBuilder("chain")
    for i, length in enumerate(lengths, start=1):
        at = {"on": f"b{i - 1}", "at": (lengths[i - 2], 0, 0)} if i > 1 else {}
        inertia = kt.shapes.box(length, 0.05, 0.05, mass=i, at=(length / 2, 0, 0))
        builder.body(f"b{i}", joint=kt.Revolute("z"), inertia=inertia, **at)
    model = builder.build()
    bodies = equivalence.augmented_bodies(model)
    q = np.array([0.4, -0.9, 1.3])
    angles = np.cumsum(q)
    K = np.zeros((3, 3))  # in absolute angles
    for j, I in enumerate(bodies):
        K[j, j] = I.rotational[2, 2]
        for i in range(j):
            arm = lengths[i] * I.first_moment[0] * np.cos(angles[j] - angles[i])
            K[i, j] = K[j, i] = arm
    B = np.tril(np.ones((3, 3)))
    assert_close(kt.mass_matrix(model, q), B.T @ K @ B, condition=10)


def test_generated_code_computes_with_lumped_inertias():
    m = kt.samples.ur5()
    q, qd = m.neutral() + 0.1, np.full(m.nv, 0.3)
    arguments = [Argument("q", (m.nq,)), Argument("qd", (m.nv,))]

    def run(model):
        text = trace(lambda q, qd: fewest.inverse_dynamics(model, q, qd, qd), arguments)
        tau = evaluate(text.graph, text.roots, {"q": q, "qd": qd})
        return np.array(tau), len(text.graph.reachable(text.roots))

    (lumped, short), (plain, long) = run(m), run(uncondensed_view(m))
    assert_close(lumped, plain, condition=10)
    assert_close(lumped, kt.inverse_dynamics(m, q, qd, qd), condition=10)
    assert short < long


def test_models_with_other_joints_are_not_compared():
    with pytest.raises(kt.ModelError, match="do not have the same joints"):
        equivalence.compare(kt.samples.panda(), kt.samples.arm())


def test_a_comparison_reports_what_it_found():
    panda = kt.samples.panda()
    heavy = panda.replace(inertia={"link7": kt.shapes.sphere(0.2, mass=5.0)})
    assert str(equivalence.compare(panda, panda)).startswith("equivalent: ")
    assert str(equivalence.compare(panda, heavy)).startswith("not equivalent: ")


@pytest.mark.covers("RBDA 9.7", by=equivalence.compare)
def test_a_particle_at_the_pin_of_a_loop_may_belong_to_either_body():
    """The linkages move alike; their spanning trees, which the pin does not tie, do not."""
    model = kt.samples.four_bar()
    (pin,) = model.loops
    coupler, rocker = (
        model.replace(
            inertia={
                model.body_names[i]: model.inertia[i] + Inertia.from_particles([0.7], [placement.r])
            }
        )
        for i, placement in (
            (pin.predecessor, pin.predecessor_placement),
            (pin.successor, pin.successor_placement),
        )
    )
    assert max(equivalence.compare(coupler, rocker)) < 1e-12
    assert max(equivalence.compare(model, coupler)) > 0.1
    trees = coupler.spanning_tree, rocker.spanning_tree
    assert min(equivalence.compare(*trees)) > 0.01
    with pytest.raises(kt.ModelError, match="do not have the same loops"):
        equivalence.compare(coupler, rocker.spanning_tree)


def test_lumped_linkages_move_alike_and_take_no_more_operations():
    for make in (kt.samples.four_bar, kt.samples.five_bar):
        model = make()
        assert max(equivalence.compare(model, equivalence.lumped(model))) < 1e-10
        found = equivalence.savings(model)
        assert set(found) == {"RNEA", "CRBA", "closed loops"}
        assert all(s.lumped <= s.plain for s in found.values())
