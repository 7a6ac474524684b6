"""Many depth images as a GPU draws them: its text, compiled for the CPU, against the renderer.

No GPU is needed: ``Processor`` lets the threads of a group take turns.
"""

import math

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry
from kinetree.codegen.device.assembly import assemble, assembler, ptx
from kinetree.codegen.device.groups import device_text, lower_to, next_number, raise_to
from kinetree.codegen.device.running import Processor
from kinetree.model.memo import remember
from kinetree.rendering import cameras
from kinetree.rendering.many import FEW, PHASES, ROOM

KINDS = ("depth", "shape", "body")


def images(model, q, camera):
    """The images of single pictures, and those of the text of a GPU and of many on a CPU."""
    stage = remember(model, ("render", False), lambda: cameras.ShapeStage(model, False))
    single = [
        kt.render(model, x, camera, KINDS) for x in q.reshape(math.prod(q.shape[:-1]), model.nq)
    ]
    one = {kind: np.array([x[kind] for x in single]) for kind in KINDS}
    one = {kind: x.reshape(*q.shape[:-1], *x.shape[1:]) for kind, x in one.items()}
    assert_equal(one, kt.render(model, q, camera, KINDS))
    return one, cameras.images_on(Processor(), stage, q, camera, KINDS)


def assert_equal(ours, theirs):
    for kind in KINDS:
        np.testing.assert_array_equal(ours[kind], theirs[kind], err_msg=kind)
        assert ours[kind].dtype == theirs[kind].dtype


@pytest.fixture(scope="module")
def arm() -> kt.Model:
    """Links round and square over ground, one of glass, with a camera on the last one."""
    b = kt.ModelBuilder("arm")
    b.geometry(geometry.Plane(), name="ground")
    shapes = (geometry.Capsule(0.08, 0.3), geometry.Box((0.1, 0.2, 0.4)), geometry.Sphere(0.15))
    above = None
    for k, shape in enumerate(shapes):
        joint = kt.Revolute((0, 1, 0) if k % 2 else (1, 0, 0))
        ball = kt.shapes.sphere(0.1, mass=1.0)
        b.body(f"link {k}", on=above, joint=joint, at=(0, 0, 0.45), inertia=ball)
        b.geometry(shape, on=f"link {k}", name=f"shape {k}")
        above = f"link {k}"
    b.geometry(geometry.Box((0.3, 0.3, 0.3)), on="link 0", name="glass", color=(1, 1, 1, 0.5))
    return b.build()


def test_pictures_have_the_bits_of_the_renderer(arm, rng):
    q = rng.uniform(-1.5, 1.5, (2, 3, 3))
    q[1, 2] = q[0, 0]
    camera = kt.camera((1.3, -0.8, 1.0), (0.0, 0.1, 0.6), size=(70, 45), angle=1.0)
    one, other = images(arm, q, camera)
    assert_equal(one, other)
    assert one["depth"].shape == (2, 3, 45, 70)
    assert len(np.unique(one["shape"])) == 5  # nothing, ground, three links; not what is of glass
    assert np.ptp(one["depth"][..., 20, 30]) > 0


def test_a_camera_that_moves_and_surfaces_all_around_it(arm, rng):
    q = rng.uniform(-1.0, 1.0, (3, 3))
    camera = kt.camera((0.02, 0.0, 0.0), (1.0, 0.2, -0.4), size=(40, 40), of="link 1")
    assert_equal(*images(arm, q, camera))


def test_long_lists_of_large_triangles(rng):
    b = kt.ModelBuilder("cards")
    for k in range(ROOM):
        b.geometry(geometry.Box((0.3, 0.001, 0.3)), at=(*rng.uniform(-0.5, 0.5, 3),), name=f"c{k}")
    model = b.build()
    camera = kt.camera((0.1, -1.4, 0.1), (0, 0, 0), size=(48, 48))
    one, other = images(model, np.zeros((1, 0)), camera)
    assert_equal(one, other)
    faces = 48 * 48 * 0.25**2
    assert faces > FEW
    assert len(np.unique(one["shape"])) > ROOM // 3


def test_equally_near_surfaces_belong_to_the_first():
    b = kt.ModelBuilder("twice")
    for k in range(3):
        b.geometry(geometry.Box((1.0, 1.0, 1.0)), name=f"box {k}")
    one, other = images(b.build(), np.zeros((2, 0)), kt.camera((3, 1, 1), (0, 0, 0), size=(32, 32)))
    assert_equal(one, other)
    assert set(np.unique(one["shape"])) == {-1, 0}


def test_the_text_of_a_gpu_waits_between_phases_and_changes_numbers_at_once():
    text = ptx(device_text(PHASES))
    assert ".visible .entry groups(" in text
    assert text.count("bar.sync") + text.count("barrier.sync") == len(PHASES) - 1
    assert "atom" in text
    assert "max.u64" in text
    assert "min.s64" in text
    assert "vprintf" not in text
    assert ".extern" not in text
    assert ".local" not in text  # numbers are in registers
    if assembler() is not None:
        assert assemble(text, "90").startswith(b"\x7fELF")


def test_what_is_one_instruction_means_what_python_says():
    x, n = np.array([1.0, 3.0]), np.array([5, 7])
    raise_to.python(x, 0, 2.0)
    raise_to(x, 1, 2.0)
    lower_to.python(n, 0, 4)
    lower_to(n, 1, 9)
    assert x.tolist() == [2.0, 3.0]
    assert n.tolist() == [4, 7]
    assert (next_number.python(n, 0), next_number(n, 1)) == (4, 7)
    assert n.tolist() == [5, 8]


def test_shapes_of_configurations_are_checked(arm):
    stage = cameras.ShapeStage(arm, False)
    camera = kt.camera((1, 1, 1), (0, 0, 0), size=(8, 8))
    with pytest.raises(kt.ShapeError, match=r"q must have shape \(\.\.\., 3\), got \(2, 4\)"):
        cameras.images_on(Processor(), stage, np.zeros((2, 4)), camera, ("depth",))


class Place:
    """In place of ``OnGpu``: NumPy arrays stand for those of a GPU."""

    def __init__(self, gpu, x):
        self.gpu = gpu

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def take(self, x):
        return np.asarray(x, dtype=float)

    def as_given(self, y):
        return y[::-1]  # to be told from pictures of the CPU


def test_depths_are_drawn_where_joint_positions_are(arm, monkeypatch, rng):
    q = rng.uniform(-1.0, 1.0, (2, 3))
    camera = kt.camera((1.3, -0.8, 1.0), (0.0, 0.1, 0.6), size=(20, 15))
    kinds, colors = ("depth", "body"), ("depth", "color")
    on_cpu, color = kt.render(arm, q, camera, kinds), kt.render(arm, q, camera, colors)
    monkeypatch.setattr(cameras, "gpu_of", lambda x: Processor())
    monkeypatch.setattr(cameras, "OnGpu", Place)
    images = kt.render(arm, q, camera, kinds)
    for kind in kinds:
        np.testing.assert_array_equal(images[kind][::-1], on_cpu[kind])
    np.testing.assert_array_equal(kt.render(arm, q, camera, "body"), images["body"])
    for kind, x in kt.render(arm, q, camera, colors).items():
        np.testing.assert_array_equal(x, color[kind])  # all on the CPU
