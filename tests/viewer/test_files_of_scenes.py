"""Pictures, films and pages as files; meshes; what is missing is said."""

import importlib
import subprocess
from dataclasses import replace

import imageio.v3 as iio
import numpy as np
import pytest
import trimesh
from imageio_ffmpeg import get_ffmpeg_exe

import kinetree as kt
from kinetree import errors, viewer
from kinetree.model import geometry
from kinetree.viewer import painting

PENDULUM = kt.samples.pendulum()


def with_mesh(path, **options):
    piece = geometry.Geometry(1, geometry.Mesh(str(path)), name="shell", **options)
    return PENDULUM.replace(geometry=(piece, geometry.Geometry(0, geometry.Sphere(0.1))))


def images(film):
    """All images of a film, (T, 48, 64, 3)."""
    command = [get_ffmpeg_exe(), "-i", str(film), "-fps_mode", "passthrough", "-f", "rawvideo"]
    found = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    return np.frombuffer(found.stdout, dtype=np.uint8).reshape(-1, 48, 64, 3)


def swinging():
    t = np.linspace(0, 0.2, 7)
    return PENDULUM, np.sin(10 * t)[:, None]


def test_a_picture_shows_the_mechanism_in_its_colours(tmp_path):
    image = viewer.picture(PENDULUM, tmp_path / "a.png", [0.5], size=(160, 120))
    assert image.shape == (120, 160, 3)
    assert np.array_equal(iio.imread(tmp_path / "a.png"), image)
    red, _, blue = image.astype(int).transpose(2, 0, 1)
    assert np.sum(red > blue + 60) > 40
    other = viewer.picture(PENDULUM, q=[-0.5], size=(160, 120))
    assert np.sum(np.any(np.abs(image.astype(int) - other) > 40, axis=-1)) > 80


def test_a_picture_has_the_requested_layers():
    pictures = [
        viewer.picture(PENDULUM, size=(80, 60), show=show)
        for show in (("bodies",), ("bodies", "frames"), ("bodies", "inertias"))
    ]
    assert np.any(pictures[0] != pictures[1])
    assert np.any(pictures[0] != pictures[2])
    with pytest.raises(kt.UnknownNameError, match="no layer 'bones'; there are bodies, ghost"):
        viewer.picture(PENDULUM, show="bones")


@pytest.mark.parametrize("name", ["swing.mp4", "swing.gif"])
def test_films_have_as_many_images_as_their_time_asks_for(tmp_path, name):
    model, q = swinging()
    reported = []
    path = viewer.record(
        model, tmp_path / name, q, size=(64, 48), rate=20, t=np.linspace(0, 0.2, 7),
        progress=reported.append,
    )  # fmt: skip
    found = images(path)
    assert len(found) == 5
    assert np.any(np.abs(found[0].astype(int) - found[-1]) > 40)
    assert reported == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])


def test_slow_motion_shows_the_states_in_between(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(painting, "film", lambda scene, path, **options: seen.append(scene))
    t = np.linspace(0, 1, 1001)
    for speed in (0.1, 1.0, 10.0):
        viewer.record(PENDULUM, tmp_path / "a.mp4", t[:, None], t=t, speed=speed)
    assert [len(scene.times) for scene in seen] == [301, 31, 4]


def test_arrows_inside_a_body_shine_through_it():
    motion = kt.Trajectory(PENDULUM, np.zeros(1), *np.ones((3, 1, 1)), *np.zeros((3, 1)))
    shell = PENDULUM.replace(geometry=(geometry.Geometry(0, geometry.Sphere(4.0)),))
    hidden = replace(motion, model=shell)
    images = [
        viewer.picture(hidden, size=(320, 240), show=show)
        for show in ("bodies", ("bodies", "forces"))
    ]
    assert np.any(np.abs(images[0].astype(int) - images[1]) > 20)


def test_other_kinds_of_files_are_rejected(tmp_path):
    with pytest.raises(kt.UnknownNameError, match=r"a.avi must end in .mp4 or .gif"):
        viewer.record(PENDULUM, tmp_path / "a.avi", size=(8, 8))
    with pytest.raises(kt.UnknownNameError, match=r"a.bmp must end in .png or .jpg"):
        viewer.picture(PENDULUM, tmp_path / "a.bmp")
    with pytest.raises(kt.KinetreeError, match="must be positive, got 0 and 30"):
        viewer.record(PENDULUM, tmp_path / "a.gif", speed=0)


def test_a_page_is_one_small_file_that_refers_to_no_other(tmp_path):
    model, q = swinging()
    path = viewer.save_html(model.replace(name="</script>&"), tmp_path / "p.html", q)
    text = path.read_text(encoding="utf-8")
    assert len(text) < 100_000
    for forbidden in ("http:", "https:", "src=", "@import", "<link"):
        assert forbidden not in text
    assert "<title>&lt;/script&gt;&amp;</title>" in text
    assert text.count("</script>") == 3


def test_a_page_can_be_kept_in_a_notebook():
    page = viewer.embedded(PENDULUM, height=300)
    assert repr(page) == f"<page of {len(page.text)} characters>"
    assert page._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "height:300px" in page._repr_html_()


def test_meshes_are_drawn_with_their_scale_and_colours(tmp_path):
    box = trimesh.creation.box((2.0, 4.0, 6.0))
    box.visual.face_colors = [200, 100, 50, 255]
    box.export(tmp_path / "box.ply")
    stretched = geometry.Mesh(str(tmp_path / "box.ply"), (0.5, -0.5, 1.0))
    model = PENDULUM.replace(geometry=(geometry.Geometry(1, stretched),))
    part = viewer.scene(model).parts[0]
    assert np.ptp(part.surface.vertices, axis=0) == pytest.approx([1, 2, 6])
    assert part.color == pytest.approx((200 / 255, 100 / 255, 50 / 255))
    a, b, c = (part.surface.vertices[part.surface.faces[:, k]] for k in range(3))
    assert np.sum(a * np.cross(b, c)) / 6 == pytest.approx(12)  # outwards still
    coloured = with_mesh(tmp_path / "box.ply", color=(0.1, 0.2, 0.3, 0.5))
    part = viewer.scene(coloured).parts[0]
    assert (part.color, part.opacity) == ((0.1, 0.2, 0.3), 0.5)


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 2 0</float_array><technique_common>
<accessor source="#pa" count="3" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node>
</visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_collada_meshes_are_drawn(tmp_path):
    path = tmp_path / "a.dae"
    path.write_text(COLLADA, encoding="utf-8")
    part = viewer.scene(with_mesh(path)).parts[0]
    assert np.ptp(part.surface.vertices, axis=0) == pytest.approx([1, 2, 0])


def test_a_mesh_without_its_textures_is_drawn_grey(tmp_path):
    material = """<library_effects><effect id="e"><profile_COMMON><newparam sid="s"><sampler2D>
<source>gone</source></sampler2D></newparam><technique sid="common"><phong><diffuse>
<texture texture="s" texcoord="UV"/></diffuse></phong></technique></profile_COMMON></effect>
</library_effects><library_materials><material id="m"><instance_effect url="#e"/></material>
</library_materials><library_geometries>"""
    bound = """<instance_geometry url="#g"><bind_material><technique_common><instance_material
symbol="m" target="#m"/></technique_common></bind_material></instance_geometry>"""
    text = COLLADA.replace("<library_geometries>", material)
    text = text.replace('<triangles count="1">', '<triangles count="1" material="m">')
    path = tmp_path / "a.dae"
    path.write_text(text.replace('<instance_geometry url="#g"/>', bound), encoding="utf-8")
    part = viewer.scene(with_mesh(path)).parts[0]
    assert part.color == pytest.approx((0.72, 0.73, 0.75), abs=0.01)


def test_a_missing_mesh_is_named_and_the_rest_is_drawn(tmp_path):
    model = with_mesh(tmp_path / "gone.stl")
    with pytest.warns(kt.ModelWarning, match=r"shell of \w+ is not drawn: there is no file .*gone"):
        image = viewer.picture(model, size=(40, 30))
    assert image.std() > 1
    (tmp_path / "bad.stl").write_bytes(b"solid nothing")
    notices = viewer.scene(with_mesh(tmp_path / "bad.stl")).notices
    assert "bad.stl: " in notices[0]


@pytest.mark.parametrize(
    ("package", "purpose", "use"),
    [
        ("viser", "the viewer", lambda path: kt.view(PENDULUM, open=False)),
        ("imageio", "recording", lambda path: viewer.record(PENDULUM, path / "a.gif", size=(8, 8))),
        ("imageio_ffmpeg", "recording .mp4", lambda path: viewer.record(PENDULUM, path / "a.mp4")),
    ],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, package, purpose, use):
    real = importlib.import_module

    def without(name, *rest):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(errors.importlib, "import_module", without)
    with pytest.raises(kt.errors.MissingPackageError, match=rf"{purpose} needs .*kinetree\[view\]"):
        use(tmp_path)


def test_trajectories_can_be_shown(monkeypatch):
    model, q = swinging()
    zero = np.zeros(7)
    motion = kt.Trajectory(model, np.arange(7.0), q, q, q, zero, zero, zero)
    monkeypatch.setattr(kt, "view", lambda *arguments, **options: (arguments, options))
    with pytest.warns(DeprecationWarning, match=r"use kinetree\.view\(trajectory\)"):
        assert motion.view(port=1234) == ((motion,), {"port": 1234})
