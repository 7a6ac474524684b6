"""Random worlds: laws that every step must obey, by an account of forces and momenta of our own.

``KINETREE_WORLDS=1000`` walks that many; ``make fuzz`` does.
"""

import os

import numpy as np
import pytest
import trimesh

import kinetree as kt
from kinetree import geometry

WORLDS = int(os.environ.get("KINETREE_WORLDS", "16"))
STEPS = 80
LIFTED = (502, 522, 539)  # small bodies that spin are shifted out of what they turn into


def rotation(q):
    """Of a unit quaternion, scalar first."""
    w, (x, y, z) = q[0], q[1:]
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


@pytest.fixture(scope="module")
def hull(tmp_path_factory):
    path = tmp_path_factory.mktemp("random") / "hull.stl"
    trimesh.creation.icosphere(subdivisions=1, radius=0.6).export(path)
    return str(path)


def solid(rng, L, hull):
    a = L * rng.uniform(0.3, 1.0, 3)
    return (
        geometry.Sphere(a[0]), geometry.Capsule(a[0] / 2, a[1]), geometry.Box(tuple(1.5 * a)),
        geometry.Cylinder(0.7 * a[0], a[1]), geometry.Ellipsoid(tuple(a)),
        geometry.Mesh(hull, scale=tuple(a)),
    )[rng.integers(6)]  # fmt: skip


def terrain(world, kind, L, at, surface):
    if kind == "ground":
        world.add_ground(point=at, normal=(0.1, 0.0, 1.0), name="floor", surface=surface)
    elif kind == "slab":
        at = at - [0, 0, L]
        world.add(geometry.Box((30 * L, 30 * L, 2 * L)), name="floor", at=at, surface=surface)
    else:
        heights = 0.3 * L * (np.random.default_rng(1).random((7, 7)) - 1)
        field = geometry.HeightField(tuple(map(tuple, heights)), (12 * L, 12 * L))
        world.add(field, name="floor", at=at, surface=surface)


def random_world(seed, hull):
    """A world of some size, friction, time step and place, and how large it is."""
    rng = np.random.default_rng(seed)
    L, g = 10 ** rng.uniform(-2.5, 1), rng.choice([9.81, 9.81, 9.81, 0.0])
    h = 10 ** rng.uniform(-3.5, -2) * min(1, 2 * np.sqrt(L))
    at = rng.choice([0.0, 0.0, 1000.0]) * np.ones(3)
    world = kt.World(gravity=(0, 0, -g), timestep=h)
    surface = geometry.Surface(
        friction=rng.choice([0.0, 0.1, 0.5, 1.0, 2.0]), restitution=rng.choice([0, 0, 0.3, 0.9]),
        condim=int(rng.choice([1, 3, 3, 4, 6])), torsion=0.05 * L, rolling=0.01 * L,
    )  # fmt: skip
    terrain(world, rng.choice(["ground", "slab", "hills"]), L, at, surface)
    speed = np.sqrt(9.81 * L)
    for k in range(rng.integers(1, 6)):
        pose = np.eye(4)
        if rng.random() < 0.7:
            pose[:3, :3] = rotation((u := rng.normal(size=4)) / np.linalg.norm(u))
        pose[:3, 3] = at + np.append(rng.uniform(-L / 2, L / 2, 2), (1.3 + 2.1 * k) * L)
        velocity = 0.3 * speed * rng.normal(size=3) - [0, 0, speed]
        world.add(
            solid(rng, L, hull), mass=10 ** rng.uniform(-1, 1) * L**3, name=f"o{k}", at=pose,
            velocity=velocity, spin=0.5 * speed / L * rng.normal(size=3), surface=surface,
        )  # fmt: skip
    return world, L, surface


def momenta(world):
    """Masses, momenta and middles of free bodies that carry their centres of mass."""
    q, qd = world.q.reshape(-1, 7), world.qd.reshape(-1, 6)
    mass = np.array([I.mass for I in world.model.inertia[1:]])
    return mass, np.array(
        [m * rotation(x[3:]) @ v[3:] for m, x, v in zip(mass, q, qd, strict=True)]
    )


def energy(world):
    m, q, qd = world.model, world.q, world.qd
    return kt.kinetic_energy(m, q, qd) + kt.potential_energy(m, q)


@pytest.mark.filterwarnings("ignore:step .* cannot be trusted:kinetree.errors.SimulationWarning")
@pytest.mark.parametrize("seed", sorted({*range(WORLDS), *LIFTED}))
def test_laws_of_random_worlds(seed, hull):
    world, L, surface = random_world(seed, hull)
    h, bodies = world.timestep, list(world.model.body_names)
    mass, before = momenta(world)
    E, weight = energy(world), 9.81 * mass.sum()
    start = np.abs(world.q).max()
    for _ in range(STEPS):
        world.step()
        found, report = world.contacts(), world.report()
        assert np.isfinite(world.q).all()
        assert report.penetration < 0.05 * L
        assert report.residual < 2e-6 or not world.gravity.any()  # without weight all may be zero
        force = np.zeros((len(bodies), 3))
        largest = np.abs(found.force).max(initial=weight)
        for (a, b), f, n in zip(found.bodies, found.force, found.normal, strict=True):
            force[bodies.index(b)] += f
            force[bodies.index(a)] -= f
            along = f @ n
            mu = surface.friction if surface.condim > 1 else 0.0
            assert along > -1e-6 * largest
            assert np.linalg.norm(f - along * n) < mu * along + 1e-5 * largest
        _, after = momenta(world)
        if report.residuals.taken == 0:  # else velocities gave way so that no energy is gained
            wanted = before + h * (force[1:] + mass[:, None] * world.gravity)
            scale = h * largest + 1e-6 * np.abs(after).max()
            np.testing.assert_allclose(after, wanted, rtol=0, atol=1e-5 * scale)
        before, last, E = after, E, energy(world)
        assert E - last < (1e-4 + 1e-12 * start / L) * weight * L


@pytest.mark.filterwarnings("ignore:step 1 .* cannot be trusted. bodies overlap by:UserWarning")
@pytest.mark.parametrize("seed", range(max(10, WORLDS // 4)))
def test_impacts_in_free_space_keep_both_momenta(seed, hull):
    """Two bodies of any shape that hit each other, with friction and restitution.

    Where an edge slides along a body while both spin, without friction and restitution, they may
    overlap at the end of a step by some thousandths of their size. Worlds say so, as they should
    (seeds 11, 34 and 142), and momenta are kept then as well.
    """
    rng = np.random.default_rng(seed)
    surface = geometry.Surface(
        friction=rng.choice([0.0, 0.3, 1.0]), restitution=rng.choice([0.0, 0.5, 1.0])
    )
    world = kt.World(gravity=(0, 0, 0), timestep=2e-3)
    for side in (-1, 1):
        pose = np.eye(4)
        pose[:3, :3] = rotation((u := rng.normal(size=4)) / np.linalg.norm(u))
        pose[:3, 3] = (0.12 * side, *rng.normal(scale=0.01, size=2))
        world.add(
            solid(rng, 0.1, hull), mass=rng.uniform(0.3, 3), at=pose, surface=surface,
            velocity=rng.normal(scale=0.2, size=3) - [2.0 * side, 0, 0],
            spin=8 * rng.normal(size=3), name=f"body{side}",
        )  # fmt: skip
    E, touched = energy(world), 0
    P, L = both_momenta(world)
    before = momenta(world)[1]
    for _ in range(80):
        world.step()
        found, after = world.contacts(), momenta(world)[1]
        touched += np.abs(found.force).max(initial=0.0) > 0
        assert world.report().penetration < 2e-3
        if world.report().residuals.taken == 0:  # else it is in no contact force
            ends = np.array([1 if b == "body1" else -1 for _, b in found.bodies])
            impulse = world.timestep * ends @ found.force.reshape(-1, 3)
            wanted = before + np.outer((-1, 1), impulse)
            np.testing.assert_allclose(after, wanted, rtol=0, atol=1e-12)
        before = after
        now = both_momenta(world)
        scale = sum(I.mass for I in world.model.inertia[1:])  # metres and metres per second
        np.testing.assert_allclose(now[0], P, rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(now[1], L, rtol=0, atol=1e-13 * scale)
        last, E = E, energy(world)
        assert E - last < 1e-13 * scale
    assert touched or seed > 9


def both_momenta(world):
    """Momentum, and angular momentum about the origin, of free bodies."""
    P, L = np.zeros(3), np.zeros(3)
    bodies = zip(
        world.model.inertia[1:], world.q.reshape(-1, 7), world.qd.reshape(-1, 6), strict=True
    )
    for I, x, v in bodies:
        R, c = rotation(x[3:]), I.first_moment / I.mass
        p = I.mass * R @ (v[3:] + np.cross(v[:3], c))
        own = I.rotational - I.mass * (c @ c * np.eye(3) - np.outer(c, c))
        P, L = P + p, L + np.cross(x[:3] + R @ c, p) + R @ own @ v[:3]
    return P, L


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_a_random_world_is_the_same_again(seed, hull, tmp_path):
    world = random_world(seed, hull)[0]
    batch = world.batch(2)
    world.step(40)
    batch.step(40)
    copies = [world.copy(), kt.World.load(world.save(tmp_path / "world.npz"))]
    again = random_world(seed, hull)[0]
    again.step(40)
    assert np.array_equal(again.q, world.q)
    assert np.array_equal(batch.q[1], world.q)
    world.step(40)
    for other in copies:
        other.step(40)
        assert np.array_equal(other.q, world.q)
        assert np.array_equal(other.qd, world.qd)


# --- what a world is not -------------------------------------------------------------------------

BOX = geometry.Box((0.1, 0.1, 0.1))


def boxed(**options):
    world = kt.World(**options)
    world.add_ground()
    world.add(BOX, mass=1.0, at=(0, 0, 0.05), name="box")
    return world


def _set(world, name, value):
    setattr(world, name, value)


def _meanwhile(act):
    """Let a controller do something to the world whose step asks it."""
    world = boxed()
    world.step(tau=lambda t, q, qd: [act(world), np.zeros(6)][1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kt.World(timstep=1e-3), "no argument 'timstep'; did you mean 'timestep'"),
        (lambda: kt.World(tolerance=-1), "tolerance of world 'world' must be between 0 and 1"),
        (lambda: boxed().add(BOX, mas=1.0), "World.add has no argument 'mas'; did you mean 'mass'"),
        (lambda: boxed().add(BOX, mass="heavy"), "mass of 'box_2' must be a positive number"),
        (lambda: boxed().add(geometry.Box((0, 1, 1)), mass=1), "'box_2' has no volume"),
        (lambda: boxed().add(BOX, q=[0.0]), "'box_2' is fixed to the world and has no q and qd"),
        (lambda: boxed().add(BOX, at=(0, 0, np.nan)), "'at' must be a position of 3 finite"),
        (lambda: _set(boxed(), "timestep", -1e-3), "timestep must be a positive time"),
        (lambda: _set(boxed(), "q", np.zeros(7)), "length zero.*at joint 'box_joint'"),
        (lambda: boxed().step(5, tau=[0, 0, 0, 1e300, 0, 0]), "too large"),
        (lambda: _meanwhile(lambda w: w.step()), "cannot step it meanwhile"),
        (lambda: _meanwhile(lambda w: w.reset()), "cannot set its state meanwhile"),
        (lambda: _meanwhile(lambda w: w.add(BOX)), "cannot add to it"),
    ],
)
def test_messages(call, message):
    with pytest.raises((kt.errors.KinetreeError, TypeError), match=message):
        call()


def test_a_world_in_which_nothing_moves_has_a_time():
    world = kt.World()
    world.step(3)
    assert world.time == pytest.approx(6e-3)
    assert len(world.contacts()) == 0
    assert world.report().steps == 3


def test_quaternions_of_any_length_are_the_same_rotation():
    world, other = boxed(), boxed()
    q = world.q
    q[3:] *= 2
    other.q = q
    world.step(10)
    other.step(10)
    assert np.array_equal(other.q, world.q)


def test_time_goes_with_the_state_when_a_controller_fails():
    world = boxed()

    def tau(t, q, qd):
        return np.zeros(6) if t < 3e-3 else 1 / 0

    with pytest.raises(ZeroDivisionError):
        world.step(9, tau=tau)
    assert world.time == pytest.approx(4e-3)
    assert world.report().steps == 2
    assert boxed().add(BOX, name="world").name == "world_2"


def test_a_body_that_turns_too_far_in_a_step_does_not_go_faster_and_faster(hull):
    world = kt.World(gravity=(0, 0, 0), timestep=0.01)
    solids = [
        (geometry.Box((0.1, 0.04, 0.02)), (0.02, 0, 0)),
        (geometry.Sphere(0.03), (0, 0.05, 0)),
    ]
    world.add(solids, mass=1.0, spin=(300, 400, 500), velocity=(1, 0, 0))
    start, taken = energy(world), 0.0
    with pytest.warns(kt.SimulationWarning, match=r"turns by 7\.1 rad in one step of 0\.01 s"):
        world.step()
    for _ in range(50):
        world.step()
        taken += world.report().residuals.taken
    assert energy(world) < 1.02 * start  # a ten-thousandth in a step
    assert taken > 0  # as is reported
