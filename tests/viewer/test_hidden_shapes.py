"""Which shapes are drawn where most bodies of a robot have none to be seen."""

from dataclasses import replace

import kinetree as kt
from kinetree.model.geometry import Geometry, Sphere
from kinetree.rendering.bodies import shapes_seen


def model(visual):
    """A chain of four bodies, each with a sphere that touches, and a ball."""
    chain = kt.samples.chain(4)
    graph = kt.edit.attach(chain, kt.samples.pendulum(), prefix="other_")
    spheres = [Geometry(i, Sphere(0.1), visual=i in visual, name=str(i)) for i in range(1, 6)]
    return graph.replace(geometry=tuple(spheres))


def names(found):
    return [g.name for g in found]


def test_bodies_under_a_skin_are_drawn_by_what_touches():
    robot = model(visual={1, 5})  # an eye of the chain, and the other mechanism
    assert sorted(names(shapes_seen(robot))) == ["1", "2", "3", "4", "5"]
    looks = tuple(replace(g, collision=g.visual or g.name == "2") for g in robot.geometry)
    assert "2" in names(shapes_seen(robot.replace(geometry=looks)))


def test_a_robot_that_is_seen_stays_as_it_is():
    assert names(shapes_seen(model(visual={1, 2, 3}))) == ["1", "2", "3", "5"]
    assert names(shapes_seen(model(visual=set()))) == ["1", "2", "3", "4", "5"]
