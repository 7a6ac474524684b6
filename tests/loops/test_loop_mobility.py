"""Mobility, redundancy and singularities: the numbers of RBDA §8.10 and of Spencer §3."""

from dataclasses import replace

import numpy as np
import pytest
from support import linkages
from support.closeness import assert_close
from support.linkages import sample

import kinetree as kt
from kinetree.algorithms.closed.rank import scaling
from kinetree.errors import AssemblyError, LoopError, SingularityWarning
from kinetree.loops.kinematics.branches import follow
from kinetree.loops.kinematics.mobility import mobilities, mobility
from kinetree.loops.kinematics.singularities import (
    determines,
    singularities,
    singularity,
    stabilization_time,
)


@pytest.mark.covers("RBDA 8.10", by=mobility)
def test_the_counts_of_the_planar_four_bar():
    """n - r = 3 - 2; 4 - 6 = -2; 4 - 3 = 1; 4 - 6 + (5 - 2) = 1."""
    found = mobility(sample("four_bar"))
    assert (found.tree_dof, found.constraints, found.rank) == (3, 5, 2)
    with pytest.warns(
        DeprecationWarning, match=r"Mobility\.joint_freedoms is called Mobility\.joint_dof"
    ):
        assert found.joint_freedoms == found.joint_dof
    assert (found.mobility, found.spatial_count) == (1, -2)
    assert (found.planar_count, found.corrected_count) == (1, 1)
    assert (found.redundancy, found.nearby, found.is_variable) == (3, (1,), False)
    assert found.redundant == found.involved
    assert found.redundant == (
        "loop 'pin': rotation about z",
        "loop 'pin': rotation about x",
        "loop 'pin': translation along y",
    )


@pytest.mark.covers("RBDA 8.10", by=mobility)
def test_a_sphere_in_a_cylinder_cures_over_constraint():
    model = sample("four_bar")
    (remedy,) = mobility(model).replacements
    assert (remedy.loop, remedy.joint, remedy.saved) == ("pin", kt.joints.SphereInCylinder("y"), 3)
    cured = model.replace(loops=(replace(model.loops[0], joint=remedy.joint),))
    found = mobility(cured)
    assert (found.constraints, found.rank, found.redundancy, found.mobility) == (2, 2, 0, 1)
    assert found.spatial_count == 1
    assert found.planar_count is None  # the new joint is not one of the plane
    assert found.replacements == ()
    rng = np.random.default_rng(0)
    tau = rng.standard_normal(3)
    qdd = kt.forward_dynamics(model, model.neutral(), np.zeros(3), tau)
    assert_close(kt.forward_dynamics(cured, cured.neutral(), np.zeros(3), tau), qdd, ulps=1e3)


@pytest.mark.covers("RBDA 8.10", by=(mobility, mobilities))
def test_the_kite_pair_has_one_two_or_three_freedoms():
    model = sample("kite_pair")
    found = {p.name: mobility(model, p.q) for p in model.postures}
    assert {name: m.rank for name, m in found.items()} == {"open": 4, "folded": 3, "flat": 2}
    assert {name: m.mobility for name, m in found.items()} == {"open": 1, "folded": 2, "flat": 3}
    assert found["flat"].nearby == (1, 2)
    assert found["flat"].is_variable
    assert found["flat"].generic_mobility == 1
    assert not found["open"].is_variable
    assert not found["folded"].is_variable
    assert all(m.constraints == 10 for m in found.values())
    path = np.array([p.q for p in model.postures])
    assert mobilities(model, path).tolist() == [1, 2, 3]
    assert "only here: close by the mobility is 1 or 2" in str(found["flat"])


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("bennett", (3, 5, 2, 1, -2)),
        ("slider_crank", (3, 5, 2, 1, -2)),
        ("excavator", (4, 5, 2, 2, -1)),
        ("five_bar", (4, 2, 2, 2, 2)),
        ("stewart", (24, 18, 18, 6, 6)),
    ],
)
def test_samples(name, counts):
    m = mobility(sample(name))
    assert (m.tree_dof, m.constraints, m.rank, m.mobility, m.spatial_count) == counts
    assert m.corrected_count == m.mobility
    assert len(m.redundant) == m.redundancy


def test_all_constraints_of_a_bennett_linkage_depend_on_each_other():
    found = mobility(sample("bennett"))
    assert len(found.redundant) == 3
    assert len(found.involved) == 5
    assert found.planar_count is None
    assert "(a choice: 5 depend on each other)" in str(found)


def test_couplings_take_a_freedom_each():
    bar = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    model = kt.ModelBuilder("gears").body("a", joint=kt.Revolute("z"), inertia=bar)
    model.body("b", joint=kt.Revolute("z"), inertia=bar)
    model.coupling("gear", joint="b_joint", source="a_joint", coefficients=(0.0, -2.0))
    found = mobility(model.build())
    assert (found.mobility, found.spatial_count, found.couplings) == (1, 1, 1)
    assert mobility(kt.samples.double_pendulum()).mobility == 2


def test_a_weld_that_holds_everything_may_be_a_looser_joint():
    bar = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    model = kt.ModelBuilder("truss").body("bar", joint=kt.Revolute("z"), inertia=bar)
    model.loop("weld", predecessor="base", successor="bar", joint=kt.Fixed(),
               at=(1, 0, 0), successor_at=(1, 0, 0))  # fmt: skip
    found = mobility(model.build())
    assert (found.mobility, found.rank, found.redundancy) == (0, 1, 5)
    assert found.replacements[0].saved == 4


def test_the_report_reads_well():
    assert str(mobility(sample("four_bar"))).splitlines() == [
        "four-bar: mobility 1",
        "  3 degrees of freedom of the tree - 2 independent of 5 constraints",
        "  counting joints and loops: 4 - 6 * 1 = -2, and 3 redundant: 1; in the plane 1",
        "  over-constrained: 3 redundant constraints, for example",
        "    loop 'pin': rotation about z",
        "    loop 'pin': rotation about x",
        "    loop 'pin': translation along y",
        "  remedy: close loop 'pin' by a SphereInCylinder along y: 3 constraints fewer",
    ]


def test_a_linkage_that_does_not_close_has_no_mobility():
    model = sample("four_bar")
    short = {
        "predecessor_placement": kt.xlt(0, 0, 0.2),
        "successor_placement": kt.xlt(0, 0, 0.1),
    }
    pin = replace(model.loops[0], **short)
    with pytest.raises(AssemblyError, match="loop 'pin' stays open"):
        mobility(model.replace(loops=(pin,)))


# --- singularities -----------------------------------------------------------------------------


@pytest.mark.covers("Spencer 3.1", by=singularity)
def test_the_condition_of_the_five_bar():
    """Singular values 2.57560 and 1.59775 at the start of Spencer's second example."""
    model = sample("five_bar")
    start = singularity(model, model.neutral())
    assert start.kappa == pytest.approx(1.612, abs=5e-4)
    length = scaling(model).length
    assert start.sigma * length == pytest.approx(1.59775, abs=5e-6)
    assert not start.is_singular
    flat = singularity(model, model.posture("singular").q)
    assert flat.is_singular
    assert flat.kappa > 1e14
    assert flat.joints == model.joint_names


def test_a_warning_on_request():
    model = sample("five_bar")
    with pytest.warns(SingularityWarning, match="'five-bar' is near singular: condition"):
        singularity(model, model.posture("singular").q, warn=True)
    singularity(model, model.neutral(), warn=True)


@pytest.mark.covers("RBDA 8.10", by=determines)
def test_at_its_dead_point_the_rocker_does_not_determine_the_crank():
    model = sample("four_bar")
    q = model.neutral()
    branch = follow(model, q, {"rocker_joint": [0.3]})
    dead = singularity(model, branch.end.q, hold=["rocker_joint"])
    assert dead.kappa > 1e4
    assert dead.joints == ("crank_joint", "coupler_joint")
    assert singularity(model, branch.end.q).kappa < 10  # nothing wrong with the loop itself
    assert determines(model, q, ["crank_joint"])
    assert determines(model, q, "rocker_joint")
    assert not determines(sample("five_bar"), np.zeros(4), ["link1_joint"])


def test_inputs_that_are_too_few_are_rejected():
    with pytest.raises(LoopError, match="holding 'link1_joint' leaves model 'five-bar' 1 more"):
        singularity(sample("five_bar"), np.zeros(4), hold=["link1_joint"])


def test_along_a_motion_the_condition_peaks_where_constraints_become_dependent():
    model = sample("five_bar")
    flat = np.array(model.posture("singular").q)
    path = np.linspace(np.zeros(4), flat, 5)
    found = singularities(model, path[[0, -1]])
    assert found[0].kappa < 2 < 1e14 < found[1].kappa
    assert "weakest against motion of link1_joint" in str(found[0])
    (single,) = singularities(model, path[:1], rank=1)
    assert single.kappa == 1.0


def test_a_tree_has_no_singularities_of_loops():
    model = kt.samples.double_pendulum()
    assert singularity(model, model.neutral()).kappa == 1.0


@pytest.mark.covers("RBDA 8.3", by=stabilization_time)
def test_time_constants_suit_the_size_of_the_mechanism():
    excavator = sample("excavator")
    assert 0.05 < stabilization_time(excavator) < 0.2
    assert stabilization_time(sample("four_bar")) < stabilization_time(excavator)
    assert stabilization_time(excavator, dt=0.05) == 0.5
    weightless = excavator.replace(gravity=(0.0, 0.0, 0.0))
    assert stabilization_time(weightless) == stabilization_time(excavator)


def test_a_planar_linkage_is_planar_wherever_its_plane_lies(rng):
    for make in (linkages.four_bar, linkages.crank_slider):
        model = make(rng)
        found = mobility(model, kt.loops.assemble(model, [0.6, 0.4, 0.9]))
        assert found.is_planar
        assert found.planar_count == found.mobility == 1
    assert not mobility(kt.samples.bennett()).is_planar
