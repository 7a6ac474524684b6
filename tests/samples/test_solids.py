"""Solids: inertia and looks belong together."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.joints import Revolute
from kinetree.model import ModelBuilder, shapes
from kinetree.samples import solids
from kinetree.samples.solids import with_posture
from kinetree.spatial import rotx, rotz, xlt


@pytest.mark.parametrize("axis", "xyz")
def test_the_axis_of_what_is_seen_is_that_of_the_inertia(axis):
    at = rotx(0.3) @ xlt(0.1, 0.2, 0.3)
    rod = solids.cylinder(0.01, 1.0, mass=2.0, at=at, axis=axis)
    again = shapes.cylinder(0.01, 1.0, mass=2.0, at=rod.placement)
    assert_close(rod.inertia.rotational, again.rotational)
    assert_close(rod.inertia.first_moment, again.first_moment)
    assert_close(np.linalg.det(rod.placement.E), np.array(1.0))


def test_inertias_add_and_decoration_weighs_nothing():
    builder = ModelBuilder("two")
    ball, decoration = solids.sphere(0.1, mass=1.0, at=(0.3, 0, 0)), solids.box(1, 1, 1)
    solids.add_body(builder, "a", ball, decoration, joint=Revolute("z"))
    solids.add_scenery(builder, decoration)
    model = builder.build()
    assert model.bodies[0].inertia.mass == 1.0
    assert [(p.body, p.collision) for p in model.geometry] == [(1, True), (1, False), (0, False)]


def test_looks_on_a_frame_go_to_its_body():
    model = (
        ModelBuilder("one")
        .body("a", joint=Revolute("z"), inertia=shapes.sphere(0.1, mass=1.0))
        .frame("tip", on="a", at=rotz(0.5) @ xlt(1, 0, 0))
        .build()
    )
    dressed = solids.with_looks(model, {"tip": [solids.box(1, 1, 1, at=(0, 0, 0.2))]})
    (piece,) = dressed.geometry
    assert piece.body == 1
    assert_close(piece.placement.r, np.array([1, 0, 0.2]))


def test_postures_by_joint_name():
    model = ModelBuilder("one").body("a", joint=Revolute("z")).build()
    model = with_posture(model, "there", {"a_joint": 0.5})
    assert (*model.postures[0].q, *model.postures[0].qd) == (0.5, 0.0)
