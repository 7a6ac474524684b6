"""Random small worlds: steps of a GPU, as their text has them, against those of the CPU's engine.

Bodies of all convex shapes fall on each other and on a ground. Where nothing touches, both have the
same motion; where bodies tumble on each other, the schemes differ in second-order terms (the engine
measures how contacts travel, slots know it of fixed ground alone), and what counts are the laws:
errors of velocities, overlaps as the engine's detection sees them, and energy.
``KINETREE_WORLDS=100`` draws that many scenes, of 33 worlds each; ``make fuzz`` does.
"""

import os
import sys

import numpy as np
import pytest
from support import fake_cupy
from support.backends import cuda_on_cpu
from support.contact_scenes import stone_in

import kinetree as kt
from kinetree.codegen.render.cuda import ROUTINES
from kinetree.contact import Scene, TimeStepping
from kinetree.contact.stepping import slots

SCENES = int(os.environ.get("KINETREE_WORLDS", "1"))
WORLDS, H, BEFORE, STEPS = 33, 2e-3, 40, 10
"""Worlds of a scene, length of a step [s], steps of the engine before those that are compared."""
ERRORS = {"float64": 1e-5, "float32": 2e-3}
"""Bounds of errors of velocities [m/s]; all but two worlds obey a tenth."""
pytestmark = pytest.mark.usefixtures("specialised")


@pytest.fixture(scope="module")
def stone(tmp_path_factory):
    return stone_in(tmp_path_factory.mktemp("meshes"), corners=16)


def drawn_shape(rng, stone):
    """A shape with random sizes, and the inertia of a body of about this size."""
    a, b, c = rng.uniform(0.06, 0.12, 3)
    shapes = (
        kt.geometry.Sphere(a),
        kt.geometry.Capsule(a, 2 * b),
        kt.geometry.Box((2 * a, 2 * b, 2 * c)),
        kt.geometry.Cylinder(a, 2 * b),
        kt.geometry.Ellipsoid((a, b, c)),
        kt.geometry.Mesh(stone, (a, b, c)),
    )
    return shapes[rng.integers(len(shapes))], kt.shapes.box(2 * a, 2 * b, 2 * c, mass=1.0)


def drawn_scene(rng, stone):
    """Two or three bodies above each other, a ground, and sometimes a fixed body in their way."""
    b = kt.ModelBuilder("world")
    if rng.random() < 0.5:
        b.geometry(drawn_shape(rng, stone)[0], on="base", at=(0.05, 0.0, 0.0))
    for k in range(rng.integers(2, 4)):
        shape, inertia = drawn_shape(rng, stone)
        b.body(f"body{k}", joint=kt.Free(), inertia=inertia)
        b.geometry(shape, on=f"body{k}")
    model = kt.contact.with_ground(b.build())
    return model, Scene(model, friction=float(rng.uniform(0.2, 1.0)))


def thrown(model, rng):
    """Bodies above each other, turned, with velocities; those above catch up with those below."""
    q, qd = np.tile(model.neutral(), (WORLDS, 1)), rng.standard_normal((WORLDS, model.nv))
    for k in range(model.nq // 7):
        q[:, 7 * k : 7 * k + 2] = rng.uniform(-0.04, 0.04, (WORLDS, 2))
        q[:, 7 * k + 2] = 0.3 + 0.32 * k
        turn = rng.standard_normal((WORLDS, 4))
        q[:, 7 * k + 3 : 7 * k + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    qd *= 0.2
    for k in range(model.nq // 7):
        R = kt.poses(model, q)[:, k, :3, :3]
        qd[:, 6 * k + 3 : 6 * k + 6] += np.einsum("nij,i->nj", R, [0.0, 0.0, -1.5 - k])
    return q, qd


def energy(model, q, qd):
    return kt.kinetic_energy(model, q, qd) + kt.potential_energy(model, q)


@pytest.fixture
def shim(tmp_path, monkeypatch):
    """CuPy whose arrays are those of NumPy, and kernels compiled for the CPU.

    Blocks have four warps, which take the worlds of a block one after the other, and two warps
    share a world where its impulses are found.
    """
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    monkeypatch.setattr(slots, "lanes_that_fit", lambda size: 64)
    runtime = fake_cupy.runtime([], cuda_on_cpu(tmp_path, ROUTINES, threads=128, samples=7))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    yield sys.modules["cupy"].asarray
    sys.modules.pop("kinetree.arrays.cupy_kind", None)


@pytest.mark.parametrize("seed", range(SCENES))
def test_worlds_obey_the_laws_as_the_engine_has_them(seed, stone, shim):
    rng = np.random.default_rng([seed, 20])
    model, scene = drawn_scene(rng, stone)
    contact = TimeStepping(scene, slots=32)
    options = {"dt": H, "contact": contact, "limits": None}
    before = kt.rollout(model, *thrown(model, rng), steps=BEFORE, **options)
    q, qd = np.asarray(before.q)[-1], np.asarray(before.qd)[-1]
    right = kt.rollout(model, q, qd, steps=STEPS, **options)
    start = energy(model, q, qd)
    reach = 4 * H * STEPS * (0.5 + np.abs(qd).max(axis=1))
    free = np.asarray(right.residuals)[:, 9] == 0  # nothing has touched
    for dtype, bound in ERRORS.items():
        given = shim(q.astype(dtype)), shim(qd.astype(dtype))
        found = kt.rollout(model, *given, steps=STEPS, store_every=STEPS, **options)
        assert not np.asarray(found.failed).any()
        residuals = np.asarray(found.residuals, float)
        assert residuals[:, 0].max() < bound
        assert np.sum(residuals[:, 0] > bound / 10) <= 2
        ends = np.asarray(found.q)[-1].astype(float), np.asarray(found.qd)[-1].astype(float)
        same = 1e-9 if dtype == "float64" else 1e-4
        assert np.abs(ends[0] - right.q[-1])[free].max(initial=0.0) < same
        assert np.all(np.abs(ends[0] - right.q[-1]).max(axis=1) < reach)
        assert np.all(energy(model, *ends) < start + 1e-3 * (1 + np.abs(start)))
        depth = [-min([0.0, *scene.contacts(x, 0.0).gap]) for x in ends[0]]
        assert np.max(depth) < residuals[:, 3].max() + (1e-9 if dtype == "float64" else 1e-5)
        assert np.median(depth) < 1e-5
