"""Two free bodies with a shape each, and how their gaps change along a motion."""

import numpy as np
import trimesh

import kinetree as kt
from kinetree.contact.finding import candidates
from kinetree.contact.finding.shapes import Placed
from kinetree.contact.scene import Scene
from kinetree.model.geometry import Box, Geometry, Mesh
from kinetree.spatial import Plucker, rotx, roty, xlt


def two_bodies(a, b, *, at_a=None, at_b=None, fixed=False):
    """Shape ``a`` on the first free body, or on the base where ``fixed``; ``b`` on the last."""
    builder = kt.ModelBuilder("two bodies")
    names = ("second",) if fixed else ("first", "second")
    for name in names:
        builder.body(name, joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
    model = builder.build()
    identity = Plucker.identity()
    shapes = (
        Geometry(0 if fixed else 1, a, at_a or identity, name="a"),
        Geometry(len(names), b, at_b or identity, name="b"),
    )
    return model.replace(geometry=shapes)


def random_placement(rng):
    a, b = rng.uniform(-3, 3, size=2)
    return rotx(a) @ roty(b) @ xlt(0.1 * rng.normal(size=3))


def state(model, rng, offset):
    """A random attitude of both bodies, the last one ``offset`` from the first, and velocities."""
    q = model.integrate(model.neutral(), rng.normal(size=model.nv))
    for i in range(1, model.body_count + 1):
        q[model.q_slice[i]][:3] = 0.02 * rng.normal(size=3)
    q[model.q_slice[model.body_count]][:3] += offset
    return q, rng.normal(size=model.nv)


def derivatives(function, h=2e-4):
    """First and second derivative at zero, by central differences of fourth order."""
    f = [np.asarray(function(k * h)) for k in (-2, -1, 0, 1, 2)]
    first = (f[0] - 8 * f[1] + 8 * f[3] - f[4]) / (12 * h)
    second = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * h * h)
    return first, second


def pairs_of(scene):
    return [pair[:2] for pair in scene.pairs]


def gaps_along(scene, q, qd):
    model, pairs = scene.model, pairs_of(scene)
    return lambda t: candidates.positions(model, model.integrate(q, t * qd), pairs)[0]


def speeds_along(scene, q, qd):
    model, pairs = scene.model, pairs_of(scene)
    return lambda t: candidates.velocities(model, model.integrate(q, t * qd), qd, pairs)[1]


def placed(shape, rng=None, origin=(0, 0, 0)):
    axes = np.eye(3) if rng is None else random_placement(rng).E.T
    return Placed(shape, axes, np.array(origin, dtype=float))


def on_table(shape, position, turn=0.0, table=None):
    model = two_bodies(table or Box((1.0, 1.0, 0.2)), shape, fixed=True)
    q = model.neutral()
    q[:3] = position
    return Scene(model), model.integrate(q, np.array([0, 0, turn, 0, 0, 0]))


def wedge_in(folder):
    """A mesh of a prism with a dent, which its hull fills."""
    outline = np.array([[0, 0], [0.4, 0], [0.2, 0.1], [0.2, 0.5]])
    points = [[x, y, z] for z in (0.0, 0.3) for x, y in outline]
    faces = [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]
    faces += [[i, j, j + 4] for i, j in ((0, 1), (1, 2), (2, 3), (3, 0))]
    faces += [[i, j + 4, i + 4] for i, j in ((0, 1), (1, 2), (2, 3), (3, 0))]
    path = folder / "wedge.off"
    trimesh.Trimesh(points, faces, process=False).export(path)
    return Mesh(str(path))
