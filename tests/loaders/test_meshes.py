"""Mass properties of meshes."""

import mujoco
import numpy as np
import pytest
import trimesh
from hostile.broken_files import msh_of
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import LoadError
from kinetree.loaders.meshes import mesh_bounds, mesh_inertia
from kinetree.model import shapes, triangles


@pytest.fixture
def box(tmp_path):
    """A box of 1 x 2 x 3, its centre at (1, 0, 0)."""
    mesh = trimesh.creation.box(extents=(1, 2, 3))
    mesh.apply_translation((1, 0, 0))
    for kind in ("stl", "obj", "ply", "off"):
        mesh.export(tmp_path / f"box.{kind}")
    (tmp_path / "box.msh").write_bytes(msh_of(mesh))
    return tmp_path


@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "off", "msh"])
def test_inertia_of_a_box(box, kind):
    I = mesh_inertia(box / f"box.{kind}", density=10.0)
    expected = shapes.box(1, 2, 3, mass=60.0)
    assert_close(I.center_of_mass, np.array([1.0, 0, 0]), ulps=100)
    assert_close(I.rotational_at_center, expected.rotational, ulps=1e9)  # files in float32


def test_a_mesh_of_mujoco_is_the_one_that_it_compiles(box):
    text = (
        f'<mujoco><asset><mesh name="m" file="{box}/box.msh"/></asset><worldbody><body>'
        f'<freejoint/><geom type="mesh" mesh="m" density="10"/></body></worldbody></mujoco>'
    )
    mj_model = mujoco.MjModel.from_xml_string(text)
    I = mesh_inertia(box / "box.msh", density=10.0)
    assert mj_model.body_mass[1] == pytest.approx(I.mass)
    moments = np.linalg.eigvalsh(I.rotational_at_center)
    np.testing.assert_allclose(np.sort(mj_model.body_inertia[1]), moments, rtol=1e-6)


def test_scale_and_mass(box):
    I = mesh_inertia(box / "box.off", mass=2.0, scale=(0.1, 0.2, 0.3))
    expected = shapes.box(0.1, 0.4, 0.9, mass=2.0)
    assert_close(I.rotational_at_center, expected.rotational, ulps=1e4)
    assert_close(I.center_of_mass, np.array([0.1, 0, 0]), ulps=1e4)


def test_mirrored_mesh_has_a_positive_mass(box):
    I = mesh_inertia(box / "box.off", density=1.0, scale=(-1, 1, 1))
    assert_close(I.mass, 6.0, ulps=1e4)
    assert_close(I.center_of_mass, np.array([-1.0, 0, 0]), ulps=1e4)
    assert np.all(np.linalg.eigvalsh(I.rotational_at_center) > 0)


def test_bounds(box):
    assert_close(mesh_bounds(box / "box.off", scale=2.0), np.array([[1.0, -2, -3], [3, 2, 3]]))


def test_only_inside_the_folders(box, tmp_path):
    (tmp_path / "other").mkdir()
    assert mesh_inertia("box.off", mass=1.0, folders=[box]).mass == 1
    with pytest.raises(LoadError, match="lies outside"):
        mesh_inertia("../box.off", mass=1.0, folders=[tmp_path / "other"])


def test_open_meshes_need_a_hull(tmp_path):
    (tmp_path / "open.off").write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n")
    with pytest.raises(LoadError, match="not closed and encloses no volume; pass hull=True"):
        mesh_inertia(tmp_path / "open.off", mass=1.0)
    I = mesh_inertia(tmp_path / "open.off", density=6.0, hull=True)
    assert_close(I.mass, 1.0, ulps=1e4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.stl", b"noise", "mesh"),
        ("a.stl", b"\0" * 80 + b"\xff\xff\xff\xff" + b"\0" * 50, "mesh"),
        ("a.obj", b"v 1 2\nf 1 2 3\n", "mesh"),
        ("a.obj", b"mtllib /etc/passwd\nv nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "mesh"),
        ("a.off", b"OFF\n1000000000 5 5\n", "mesh"),
        ("a.ply", b"ply\nformat ascii 1.0\nend_header\n", "mesh"),
        ("a.dae", b"<a/>", "this is no DAE mesh"),
        ("a.msh", b"\1\0\0\0" * 4, "its header makes it 60 bytes long, and it has 16"),
        ("a.msh", b"\0", "this is not a mesh of MuJoCo: it has no header"),
        (
            "a.exe",
            b"",
            "from .stl, .obj, .ply, .off, .msh, .dae, .glb, .gltf files, not '.exe'; convert",
        ),
    ],
)
def test_what_is_not_a_mesh(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LoadError, match=message):
        mesh_inertia(tmp_path / name, mass=1.0)


def test_a_scene_of_several_surfaces_is_one_mesh(tmp_path):
    """As collision shapes of real robots often are: two boxes at their places, also for contact."""
    scene, box = trimesh.Scene(), trimesh.creation.box((0.1, 0.1, 0.1))
    aside = trimesh.transformations.translation_matrix([0.4, 0, 0])
    scene.add_geometry(box)
    scene.add_geometry(box.copy(), transform=aside)
    scene.export(tmp_path / "pair.glb")
    assert_close(mesh_inertia(tmp_path / "pair.glb", density=1000.0).mass, 2.0, ulps=1e9)
    low, high = mesh_bounds(tmp_path / "pair.glb")
    assert_close(high - low, [0.5, 0.1, 0.1], ulps=1e9)
    world = kt.World()
    world.add_ground()
    world.add(kt.geometry.Mesh(str(tmp_path / "pair.glb")), mass=1.0, at=(0, 0, 0.05), name="pair")
    world.step(5)
    assert len(world.contacts()) == 4
    assert abs(world["pair"].position[2] - 0.05) < 1e-6


def test_missing_and_huge_files(tmp_path, monkeypatch):
    with pytest.raises(LoadError, match="cannot be read: No such file"):
        mesh_bounds(tmp_path / "none.stl")
    (tmp_path / "a.stl").write_bytes(b"x" * 100)
    monkeypatch.setattr(triangles, "LIMIT_BYTES", 10)
    with pytest.raises(LoadError, match="has 100 bytes; at most 10 are read"):
        mesh_bounds(tmp_path / "a.stl")


def test_either_density_or_mass(tmp_path):
    with pytest.raises(LoadError, match="either density or mass, got density=None, mass=None"):
        mesh_inertia(tmp_path / "a.stl")


def test_trimesh_is_needed(box, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "trimesh", None)
    with pytest.raises(LoadError, match=r'pip install "kinetree\[mesh\]"'):
        mesh_bounds(box / "box.off")
