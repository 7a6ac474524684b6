"""Loops: whether they close, and what they leave."""

import numpy as np
import pytest
from support.findings import codes

import kinetree as kt
from kinetree.doctor import check
from kinetree.loops.kinematics.assembly import assemble

BAR = kt.shapes.box(0.3, 0.02, 0.02, mass=0.5, at=(0.15, 0, 0))


def four_bar(ground=0.4, joint=None, turned=np.pi / 2):
    """Two bars on the ground and one across, described with all bars along x."""
    model = kt.ModelBuilder("linkage")
    model.body("crank", joint=kt.Revolute("z"), inertia=BAR, at=kt.rotz(turned))
    model.body("coupler", on="crank", joint=kt.Revolute("z"), at=(0.3, 0, 0), inertia=BAR)
    model.body("rocker", joint=kt.Revolute("z"), at=kt.rotz(turned) @ kt.xlt(ground, 0, 0),
               inertia=BAR)  # fmt: skip
    return model.loop(
        "pin", predecessor="coupler", successor="rocker", joint=joint or kt.Revolute("z"),
        at=(0.4, 0, 0), successor_at=(0.3, 0, 0),
    )  # fmt: skip


def test_a_loop_that_has_to_be_assembled_and_repeats_itself():
    model = four_bar().build()
    assert codes(model) == [("note", "loop-neutral"), ("note", "loop-redundant")]
    message = check(model)[1].message
    assert message == (
        "3 of the 5 constraints of its loops and couplings are redundant; 1 degree of freedom "
        "remains. For example: loop 'pin': rotation about x, loop 'pin': rotation about y, "
        "loop 'pin': translation along z"
    )
    q = assemble(model, model.neutral())
    kt.forward_dynamics(model, q, np.zeros(3), np.zeros(3))  # refuses what is not assembled


def test_a_posture_that_closes_it_is_enough():
    model = four_bar().build()
    q = assemble(model, model.neutral())
    posture = four_bar().posture("closed", q=dict(zip(model.joint_names, q, strict=True)))
    assert codes(posture.build()) == [("note", "loop-redundant")]


def test_a_loop_that_cannot_close():
    (finding,) = check(four_bar(ground=3.0).build())
    assert (finding.severity, finding.code) == ("error", "loop-open")
    assert finding.part == "loop joint 'pin'"
    assert "no position was found" in finding.message


def test_a_loop_that_holds_everything():
    model = kt.ModelBuilder("truss").body("bar", joint=kt.Revolute("z"), inertia=BAR)
    model.loop("weld", predecessor="base", successor="bar", joint=kt.Fixed())
    assert codes(model.build()) == [("warning", "loop-locked"), ("note", "loop-redundant")]


@pytest.mark.parametrize("name", ["five_bar"])
def test_a_singular_start_is_not_a_redundancy(name):
    assert check(getattr(kt.samples, name)()) == ()
