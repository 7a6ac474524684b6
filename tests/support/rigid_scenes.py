"""Bodies on the ground, and event-driven simulations that check themselves."""

import numpy as np

import kinetree as kt
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import EventDriven
from kinetree.model.geometry import Box, Geometry, Sphere
from kinetree.spatial import Inertia, Plucker

G = 9.81


def run(
    m, q, qd=None, *, friction=0.0, restitution=0.0, pairs=None, contact=(), error=1e-6, **options
):
    """A simulation whose residuals, laws and energy are what they should be."""
    scene = Scene(m, pairs, friction=friction, restitution=restitution)
    found = kt.simulate(m, q, qd, contact=EventDriven(scene, **dict(contact)), **options)
    assert found.report.energy_error < error
    assert not found.report.warnings
    worst = found.contact.worst
    assert max(worst.velocity, worst.cone, worst.pull, worst.opening, worst.penetration) < 1e-9
    assert worst.acceleration < 1e-9
    assert np.all(found.contact.force[..., 0] > -1e-9)
    return found


def free_body(shape, inertia):
    model = kt.ModelBuilder("body").body("body", joint=kt.Free(), inertia=inertia).build()
    return model.replace(geometry=(Geometry(1, shape, name="body"),))


def particle(radius=0.01):
    inertia = kt.shapes.sphere(radius, mass=1.0)
    m = kt.ModelBuilder("particle").body("particle", joint=kt.Translation(), inertia=inertia)
    return m.build().replace(geometry=(Geometry(1, Sphere(radius), name="particle"),))


BALL = with_ground(free_body(Sphere(0.1), kt.shapes.sphere(0.1, mass=1.0)))
BLOCK = free_body(Box((0.4, 0.3, 0.2)), kt.shapes.box(0.4, 0.3, 0.2, mass=2.0))
TABLE = with_ground(BLOCK)


def lifted(m, height, turn=(0, 0, 0)):
    q = m.integrate(m.neutral(), np.array([0, 0, 0, 0, 0, height]))
    return m.integrate(q, np.array([*turn, 0, 0, 0]))


def names(found):
    return [event.name.split(" ", 1)[1] for event in found.events]


def on_slope(body, height, angle):
    n = np.array([np.sin(angle), 0, np.cos(angle)])
    m = with_ground(body, normal=n)
    q = m.integrate(m.neutral(), np.concatenate([np.zeros(3), height * n]))
    return m, m.integrate(q, np.array([0, angle, 0, 0, 0, 0]))


def ladder(angle, length=1.0, m=2.0):
    """A rod against a wall, ends without size, in the plane x-z."""
    I = m * length**2 / 12
    builder = kt.ModelBuilder("ladder")
    builder.body("x", joint=kt.Prismatic("x"), inertia=Inertia.zero())
    builder.body("z", on="x", joint=kt.Prismatic("z"), inertia=Inertia.zero())
    inertia = Inertia.from_mass_center(m, np.zeros(3), np.diag([I, I, I / 10]))
    builder.body("rod", on="z", joint=kt.Revolute("y"), inertia=inertia)
    tiny = 1e-12
    ends = [
        Geometry(3, Sphere(tiny), Plucker(np.eye(3), np.array([0, 0, z])), name=name)
        for name, z in (("top", length / 2), ("foot", -length / 2))
    ]
    m = with_ground(builder.build().replace(geometry=ends), name="floor")
    m = with_ground(m, normal=(1, 0, 0), name="wall")
    at = length / 2 * np.array([np.sin(angle), np.cos(angle)]) + tiny
    return m, np.array([*at, -angle]), length
