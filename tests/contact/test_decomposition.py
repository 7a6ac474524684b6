"""Concave meshes in convex pieces: a cup holds a ball, which its hull does not let in."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.model import decomposition
from kinetree.model.decomposition import is_concave

trimesh = pytest.importorskip("trimesh")
BOTTOM = 0.01

SDF = """<sdf version="1.11"><model name="cup"><static>true</static><link name="l">
<collision name="c"><geometry><mesh optimization="convex_decomposition"><uri>cup.stl</uri></mesh>
</geometry></collision></link></model></sdf>"""


@pytest.fixture(scope="module")
def cup(tmp_path_factory):
    """A cup with four walls: 12 cm high, 7 cm wide inside; more walls take longer to split."""
    outline = [(0, 0), (0.06, 0), (0.06, 0.12), (0.05, 0.12), (0.05, BOTTOM), (0, BOTTOM)]
    path = tmp_path_factory.mktemp("cup") / "cup.stl"
    trimesh.creation.revolve(np.array(outline), sections=4).export(path)
    return path


@pytest.fixture(scope="module")
def model(cup):
    shape = kt.geometry.Geometry(0, kt.geometry.Mesh(str(cup)), name="cup")
    return kt.ModelBuilder("cup").build().replace(geometry=(shape,))


def height_of_rest(model):
    world = kt.World(timestep=2e-3)
    world.add(model, name="cup")
    world.add(kt.geometry.Sphere(0.02), name="ball", mass=0.05, at=(0.005, 0.002, 0.16))
    world.step(400)
    return world["ball"].position[2]


def test_a_cup_holds_a_ball(model):
    assert is_concave(model.geometry[0].shape)
    assert height_of_rest(model) == pytest.approx(0.14, abs=1e-3)  # on the hull, which is closed
    pieces = kt.edit.decompose(model, threshold=0.1)
    assert height_of_rest(pieces) == pytest.approx(BOTTOM + 0.02, abs=3e-3)
    drawn, *others = pieces.geometry
    assert (drawn.visual, drawn.collision) == (True, False)
    assert all(g.collision and not g.visual for g in others)
    assert others[0].name == "cup_0"


def test_pieces_are_kept_on_disk(model, monkeypatch):
    first = kt.edit.decompose(model, threshold=0.1)
    monkeypatch.setattr(decomposition, "need", lambda *_: None)  # nothing is split again
    assert kt.edit.decompose(model, threshold=0.1) == first


def test_convex_meshes_stay(tmp_path):
    trimesh.creation.icosphere(subdivisions=2).export(tmp_path / "ball.stl")
    shape = kt.geometry.Geometry(0, kt.geometry.Mesh(str(tmp_path / "ball.stl")))
    model = kt.ModelBuilder("ball").build().replace(geometry=(shape,))
    assert kt.edit.decompose(model) == model
    with pytest.raises(kt.ModelError, match=r"threshold must be from 0.01 to 1, got 2"):
        kt.edit.decompose(model, threshold=2)


def test_sdf_asks_for_pieces(cup, monkeypatch):
    file = cup.with_name("cup.sdf")
    file.write_text(SDF)
    monkeypatch.setattr(decomposition, "_pieces", lambda path, threshold: [path, path])
    assert len(kt.load(file).geometry) == 2

    def missing(*_):
        raise kt.errors.MissingPackageError('coacd is missing: pip install "kinetree[x]"')

    monkeypatch.setattr(decomposition, "_pieces", missing)
    with pytest.warns(kt.ModelWarning, match="the meshes touch with their triangles: coacd"):
        model = kt.load(file)
    assert [g.shape.convex for g in model.geometry] == [False]
