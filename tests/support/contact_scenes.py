"""Bodies in contact: scenes, pairs of shapes, and contact problems as matrices."""

import numpy as np

import kinetree as kt
from kinetree.contact.collision.tables import TOUCHES, Touch
from kinetree.contact.finding import candidates
from kinetree.contact.finding.shapes import Placed
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import EventDriven
from kinetree.model.geometry import Box, Geometry, Mesh, Sphere
from kinetree.spatial import Inertia, Plucker, rotx, roty, xlt

# --- Bodies on the ground, and event-driven simulations that check themselves --------------------


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


# --- Two free bodies with a shape each, and how their gaps change along a motion -----------------


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
    import trimesh  # the rest is of use where it is not installed

    outline = np.array([[0, 0], [0.4, 0], [0.2, 0.1], [0.2, 0.5]])
    points = [[x, y, z] for z in (0.0, 0.3) for x, y in outline]
    faces = [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]
    faces += [[i, j, j + 4] for i, j in ((0, 1), (1, 2), (2, 3), (3, 0))]
    faces += [[i, j + 4, i + 4] for i, j in ((0, 1), (1, 2), (2, 3), (3, 0))]
    path = folder / "wedge.off"
    trimesh.Trimesh(points, faces, process=False).export(path)
    return Mesh(str(path))


# --- Contact problems as matrices: balls, boxes and stacks of boxes, from first principles -------


def point_rows(r, normal, tangent):
    """Rows (normal, tangent, tangent) of the velocity of a point of a free body, (3, 6)."""
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    axes = np.array([normal, tangent, np.cross(normal, tangent)])
    return axes @ np.hstack([-cross, np.eye(3)])


def box(rng, corners=4):
    """A box about to land on a plane, turning and sliding: A, b, mu."""
    a, b, c = rng.uniform(0.2, 1.0, 3)
    inertia = np.array([b * b + c * c, a * a + c * c, a * a + b * b, 3, 3, 3]) / 3
    points = [(x, y, -c) for x in (-a, a) for y in (-b, b)][:corners]
    J = np.vstack([point_rows(p, (0, 0, 1), (1, 0, 0)) for p in points])
    v = rng.normal(size=6) * rng.choice([0.01, 1.0]) - [0, 0, 0, 0, 0, rng.choice([0.01, 1.0])]
    return J @ (J.T / inertia[:, None]), J @ v, rng.uniform(0.1, 1.0, len(points))


def stack(rng, levels, ratio=1.0):
    """A stack of cubes at rest, a moment after the gravity and a little push: A, b, mu."""
    J, mass = np.zeros((12 * levels, 6 * levels)), ratio ** np.arange(levels)
    corners = [(x, y) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
    for i in range(levels):
        for j, (x, y) in enumerate(corners):
            rows = slice(3 * (4 * i + j), 3 * (4 * i + j) + 3)
            J[rows, 6 * i : 6 * i + 6] = point_rows((x, y, -0.5), (0, 0, 1), (1, 0, 0))
            if i:
                below = point_rows((x, y, 0.5), (0, 0, 1), (1, 0, 0))
                J[rows, 6 * i - 6 : 6 * i] = -below
    inverse = np.concatenate([np.array([6, 6, 6, 1, 1, 1]) / m for m in mass])
    v = 1e-3 * rng.normal(size=6 * levels) - 0.01 * (np.arange(6 * levels) % 6 == 5)
    return J @ (inverse[:, None] * J.T), J @ v, np.full(4 * levels, 0.5)


def ball_in_slot(tilt):
    """A unit ball between two walls that lean outwards by ``tilt`` [rad]: A."""
    normals = np.array([[np.cos(tilt), 0, np.sin(tilt)], [-np.cos(tilt), 0, np.sin(tilt)]])
    J = np.vstack([point_rows(-n, n, (0, 1, 0)) for n in normals])
    return J @ (np.array([2.5, 2.5, 2.5, 1, 1, 1])[:, None] * J.T)


def assert_laws_hold(A, b, mu, lam, *, convex=False, low=(), high=(), tolerance=1e-11):
    """The definitions, written out: cones, dual cones, no power where there should be none."""
    w, c = A @ lam + b, 3 * len(mu)
    small = tolerance * np.max(np.abs(b))
    force = tolerance * max(np.max(np.abs(lam)), 1e-12)
    for m, f, v in zip(mu, lam[:c].reshape(-1, 3), w[:c].reshape(-1, 3), strict=True):
        slip, friction = np.hypot(*v[1:]), np.hypot(*f[1:])
        assert friction <= m * f[0] + force
        assert v[0] >= (m * slip if convex else 0) - small
        if f[0] > force:
            assert abs(v[0] - (m * slip if convex else 0)) <= small  # in touch
        if slip > 1e-6 * np.max(np.abs(b)):
            np.testing.assert_allclose(f[1:], -m * f[0] * v[1:] / slip, atol=1e6 * force)
        assert abs(f @ v + (0 if convex else m * f[0] * slip)) <= small * max(np.max(f), 1.0)
    for x, v, lowest, highest in zip(lam[c:], w[c:], low, high, strict=True):
        assert lowest - force <= x <= highest + force
        assert v <= small or x <= lowest + force
        assert v >= -small or x >= highest - force


def touch_table():
    """Room for the touches of a pair of shapes."""
    return Touch(
        point=np.zeros((TOUCHES, 3)),
        normal=np.zeros((TOUCHES, 3)),
        gap=np.zeros(TOUCHES),
        feature=np.zeros(TOUCHES, dtype=np.int64),
    )


def symmetry_axes(m, q):
    """Axis of symmetry, base coordinates, along a motion."""
    return np.array([kt.poses(m, each)[0, :3, 2] for each in q])


def stone_in(folder, corners):
    """A file with a random polyhedron."""
    import trimesh  # the rest is of use where it is not installed

    points = np.random.default_rng(3).normal(size=(corners, 3))
    hull = trimesh.convex.convex_hull(points / np.linalg.norm(points, axis=1)[:, None])
    path = str(folder / "stone.stl")
    hull.export(path)
    return path


def leaning(position, tilt, precession, spin, velocity):
    """State of a body that leans about x, turns about the vertical and about its own axis.

    Args:
        position: of the mass centre.
        tilt: of the axis [rad].
        precession: about the vertical [rad/s].
        spin: angular velocity along the axis, precession included [rad/s].
        velocity: of the mass centre, base coordinates.
    """
    c, s = np.cos(tilt), np.sin(tilt)
    E = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])  # base to body; the axis is (0, -s, c)
    quaternion = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0, 0])
    q = np.concatenate([position, quaternion])
    return q, np.concatenate([[0, precession * s, spin], E @ velocity])


def moved_to(origin):
    """A placement that is turned nowhere."""
    return Plucker(np.eye(3), np.array(origin, dtype=float))
