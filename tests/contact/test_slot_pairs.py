"""Shapes that move and touch each other, in the steps that a GPU takes."""

import sys

import numpy as np
import pytest
from support import fake_cupy
from support.backends import cuda_on_cpu
from support.on_device import transition

import kinetree as kt
from kinetree.codegen.inline import evaluate
from kinetree.codegen.render.cuda import ROUTINES
from kinetree.codegen.render.cuda_pieces import render_pieces
from kinetree.contact import Scene, TimeStepping
from kinetree.contact.collision.tables import CYLINDER
from kinetree.contact.stepping.drives import StepStart

pytestmark = pytest.mark.usefixtures("specialised")
H = 2e-3
SHAPES = {
    "ball": (kt.geometry.Sphere(0.1), kt.shapes.sphere(0.1, mass=1.0)),
    "rod": (kt.geometry.Capsule(0.06, 0.2), kt.shapes.capsule(0.06, 0.2, mass=1.5)),
    "box": (kt.geometry.Box((0.2, 0.16, 0.12)), kt.shapes.box(0.2, 0.16, 0.12, mass=2.0)),
    "drum": (kt.geometry.Cylinder(0.09, 0.15), kt.shapes.cylinder(0.09, 0.15, mass=2.0)),
    "egg": (kt.geometry.Ellipsoid((0.12, 0.1, 0.07)), kt.shapes.sphere(0.1, mass=1.0)),
}


@pytest.fixture(scope="module", autouse=True)
def stone(tmp_path_factory):
    """A body whose shape is a mesh, a box without its corners."""
    import trimesh

    corners = np.array([p for p in np.ndindex(3, 3, 3) if sorted(p) in ([0, 0, 1], [0, 1, 2])])
    hull = trimesh.convex.convex_hull(np.vstack([corners, 2 - corners]) - 1.0)
    path = str(tmp_path_factory.mktemp("meshes") / "stone.stl")
    hull.export(path)
    SHAPES["stone"] = kt.geometry.Mesh(path, (0.1, 0.09, 0.07)), SHAPES["box"][1]


def heap(kinds, *, walls=False):
    """Free bodies above a ground, between two walls if there are any; and their scene."""
    b = kt.ModelBuilder("heap")
    if walls:
        for x in (0.35, -0.35):
            b.geometry(kt.geometry.Box((0.1, 2.0, 0.6)), on="base", at=(x, 0.0, 0.3))
    for k, kind in enumerate(kinds):
        shape, inertia = SHAPES[kind]
        b.body(f"{kind}{k}", joint=kt.Free(), inertia=inertia)
        b.geometry(shape, on=f"{kind}{k}")
    model = kt.contact.with_ground(b.build())
    return model, Scene(model, friction=0.6)


def thrown(model, rng, count=1):
    """Bodies above each other, turned, with velocities of their own."""
    q = np.tile(model.neutral(), (count, 1))
    bodies = model.nq // 7
    for k in range(bodies):
        q[:, 7 * k : 7 * k + 2] = rng.uniform(-0.02, 0.02, (count, 2))
        q[:, 7 * k + 2] = 0.15 + 0.25 * k
        turn = rng.standard_normal((count, 4))
        q[:, 7 * k + 3 : 7 * k + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    qd = 0.15 * rng.standard_normal((count, model.nv))
    falling = -1.5 * np.repeat(np.arange(bodies), 3)  # those above catch up with those below
    for k in range(count):
        R = kt.poses(model, q[k])[:, :3, :3]
        down = np.array([R[b].T @ [0.0, 0.0, falling[3 * b]] for b in range(bodies)])
        qd[k].reshape(-1, 6)[:, 3:] += down
    return q, qd


def overlap(world_scene, q):
    """The deepest overlap at a configuration, by the detection of the engine."""
    return max(0.0, -min([0.0, *np.asarray(world_scene.contacts(q, 0.0).gap)]))


@pytest.mark.parametrize("kinds", ["ball rod", "box box", "box rod"])
def test_bodies_fall_on_each_other_and_obey_the_laws(kinds, rng):
    """Overlaps are those of the engine's detection, velocities obey their laws, energy falls."""
    model, scene = heap(kinds.split(), walls="ball" in kinds)
    given = transition(TimeStepping(scene, compiled_rows=0))
    step, field = given.contact, given.field
    (q,), (qd,) = thrown(model, rng)
    force, touching, deepest = np.zeros(step.rows), 0, []
    energy = kt.kinetic_energy(model, q, qd) + kt.potential_energy(model, q)
    start = energy
    for _ in range(70):
        end = step(None, field, model, StepStart(0.0, H, q, qd, np.zeros(model.nv)), force)
        q, qd, force = end.q, end.qd, end.force
        assert end.residuals[0] < 1e-7
        assert abs(overlap(scene, q) - end.residuals[3]) < 1e-9
        deepest.append(end.residuals[3])
        acting = step.contact_forces(force, np.asarray)
        moving = step.columns.predecessor > 0
        touching = max(touching, int(np.sum(acting[moving, 0] > 0)))
        now = kt.kinetic_energy(model, q, qd) + kt.potential_energy(model, q)
        assert now < energy + 1e-6 * start
        energy = now
    assert touching > 0
    assert np.median(deepest) < 1e-6
    assert max(deepest) < 3e-3  # boxes that tumble on an edge come down elsewhere in one step


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-9), ("float32", 2e-4)])
@pytest.mark.parametrize("kinds", ["box rod ball", "drum egg stone"])
def test_the_text_for_a_gpu_gives_the_same(kinds, dtype, bound, rng, tmp_path, monkeypatch):
    launches = []
    model, scene = heap(kinds.split(), walls=True)
    contact = TimeStepping(scene, compiled_rows=0)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    runtime = fake_cupy.runtime(launches, cuda_on_cpu(tmp_path, ROUTINES))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    q, qd = thrown(model, rng, 3)
    q[:, 2::7] -= 0.04 * np.arange(1, 4)
    device = sys.modules["cupy"].asarray
    found = kt.rollout(
        model, device(q.astype(dtype)), device(qd.astype(dtype)), steps=6, dt=H,
        store_every=6, contact=contact, limits=None,
    )  # fmt: skip
    steps = transition(contact, dtype)
    zeros, ones = np.zeros(3), np.ones(3)
    given = zeros, H * ones, 6 * ones, q, qd, np.zeros((3, steps.memory))
    given = (*given[:5], zeros, given[5], *(np.zeros((3, a.size)) for a in steps.given))
    right = evaluate(steps.steps().program, given)
    for name, expected in zip(("q", "qd"), right, strict=False):
        a = np.asarray(getattr(found, name))[-1]
        np.testing.assert_allclose(a, expected, rtol=0, atol=bound * 30, err_msg=name)
    assert np.asarray(found.residuals)[:, 0].max() < max(bound, 1e-7)
    assert not np.asarray(found.failed).any()
    sys.modules.pop("kinetree.arrays.cupy_kind", None)


def test_the_text_has_narrow_phases_of_the_kinds_of_the_scene_alone():
    """A heap of balls does not wait for what boxes and meshes need to be compiled."""
    sizes = []
    for kinds in ("ball ball", "box box", "drum stone"):
        program = transition(TimeStepping(heap(kinds.split())[1], compiled_rows=0), "float32")
        (text,) = render_pieces(program.steps().program, "float32", ROUTINES).texts
        assert ("shallow_pair" in text.text) == ("stone" in kinds)
        assert ("box_box" in text.text) == ("box" in kinds)
        sizes.append(len(text.text))
    assert sizes[0] < sizes[1] < sizes[2] < 1.8 * sizes[0]


@pytest.mark.parametrize("robots", [1, 2])
def test_robots_whose_shapes_are_capsules_and_cylinders_have_slots(robots):
    """The humanoid with what it may do to itself; two quadrupeds that push each other."""
    world = kt.World(timestep=H)
    world.add_ground()
    for k in range(robots):
        robot = kt.samples.humanoid() if robots == 1 else kt.samples.quadruped()
        world.add(robot, at=(0.8 * k, 0, 0.6), name=f"robot{k}")
    step = transition(TimeStepping(Scene(world.model), slots=32), "float32").contact
    assert step._tables["pairs"].count > 300
    assert {CYLINDER} < {*step._tables["pairs"].kind.tolist()} or robots == 1


def test_many_balls_on_a_height_field_keep_their_closed_forms():
    """There is no narrow phase of these among those for GPUs, however many they are."""
    b = kt.ModelBuilder("rain")
    x = np.linspace(-1, 1, 6)
    heights = tuple(map(tuple, 0.02 * np.outer(np.sin(x), np.cos(x))))
    b.geometry(kt.geometry.HeightField(heights, (4.0, 4.0)), on="base")
    for k in range(17):
        b.body(f"ball{k}", joint=kt.Free(), inertia=kt.shapes.sphere(0.05, mass=1.0))
        b.geometry(kt.geometry.Sphere(0.05), on=f"ball{k}")
    step = transition(TimeStepping(Scene(b.build(), "base"), compiled_rows=0)).contact
    assert step.columns.size == 17
    assert step._tables["pairs"].count == 0


@kt.kernel
def sees(model, q, qd, contact_force):
    return np.concatenate([q, contact_force[:, 0]])


@kt.kernel
def earns(model, qd):
    return -qd @ qd


def test_environments_on_a_gpu_take_boxes_on_each_other(tmp_path, monkeypatch):
    """A stack of two, which has no closed forms: the weight is in the forces that are seen."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    runtime = fake_cupy.runtime([], cuda_on_cpu(tmp_path, ROUTINES))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    model, scene = heap(["box", "box"])
    stacked = model.neutral()
    stacked[2::7] = 0.06, 0.18

    @kt.kernel
    def begins(model):
        return {"q": stacked}

    env = kt.learning.Environment(
        model, 2, observe=sees, reward=earns, reset=begins, contact=TimeStepping(scene),
        limits=None, dt=H, decimation=2, episode=20, device="cuda", dtype="float64",
        arrays="cupy",
    )  # fmt: skip
    for _ in range(3):
        seen, *_, info = env.step(np.zeros((2, env.action_size)))
    seen = np.asarray(seen)
    np.testing.assert_allclose(seen[:, 2 : model.nq : 7], [[0.06, 0.18]] * 2, atol=1e-9)
    forces = seen[:, model.nq :]
    names = transition(TimeStepping(scene)).contact.columns.names
    between = np.array([name.startswith("box0/box1") for name in names])
    np.testing.assert_allclose(forces[:, between].sum(axis=1), 2 * 9.81, rtol=1e-3)
    np.testing.assert_allclose(forces[:, ~between].sum(axis=1), 4 * 9.81, rtol=1e-3)
    assert not np.asarray(info["failed"]).any()
    sys.modules.pop("kinetree.arrays.cupy_kind", None)
