"""What strangers' files and websites may not do, one thing after another."""

import base64
import io
import json
import os
import struct
import zipfile

import numpy as np
import PIL.ImageFile
import pytest
import trimesh
import viser
from hostile.broken_files import archive, array_file, gltf_of, members
from support.effort import assert_light, assert_quick
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import kinetree as kt
from kinetree.contact.finding.shapes import hull_of
from kinetree.model import triangles
from kinetree.model.triangles import read_triangles
from kinetree.rendering.meshes import mesh_pieces
from kinetree.simulation.results import archives
from kinetree.simulation.results.report import Report
from kinetree.viewer.browser import drawing
from kinetree.viewer.browser.drawing import is_own_page

BOX = trimesh.creation.box()


# --- the viewer's socket --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown():
    with kt.view("pendulum", open=False, origins="https://hub.example.org") as found:
        yield found


@pytest.mark.parametrize("origin", [None, "http://localhost:{}", "https://hub.example.org"])
def test_its_own_page_and_programs_may_connect(shown, origin):
    port = shown.server.get_port()
    origin = origin and origin.format(port)
    protocol = f"viser-v{viser.__version__}"
    with connect(
        f"ws://localhost:{port}", origin=origin, subprotocols=[protocol], open_timeout=600
    ) as socket:
        assert len(socket.recv(timeout=600)) > 1000


@pytest.mark.parametrize(
    "origin",
    [
        "http://strange.example",
        "http://strange.example:{}",
        "null",
        "http://localhost:1",
        "file://",
    ],
)
def test_other_websites_may_not(shown, origin):
    port = shown.server.get_port()
    with pytest.raises(InvalidStatus, match="403") as refused:
        connect(f"ws://localhost:{port}", origin=origin.format(port), open_timeout=600)
    assert b"only its own page" in bytes(refused.value.response.body)


@pytest.mark.parametrize(
    ("origin", "host", "expected"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1:8080", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("http://192.168.1.7:8080", "192.168.1.7:8080", True),
        ("http://LOCALHOST:9000", "localhost:9000", True),  # through a tunnel
        ("http://strange.example:8080", "strange.example:8080", False),  # its name leads here
        ("http://localhost:8080", "127.0.0.1:8080", False),
        ("http://localhost.strange.example", "localhost.strange.example", False),
        ("http://[::1", "[::1", False),
        ("", "", False),
    ],
)
def test_whose_page_it_is(origin, host, expected):
    assert is_own_page(origin, host) is expected


def test_a_server_that_cannot_be_guarded_is_not_started(monkeypatch):
    started = []

    class Server:
        def __init__(self, **_):
            started.append(self)

        def stop(self):
            started.remove(self)

    monkeypatch.setattr(viser, "ViserServer", Server)
    with pytest.raises(kt.errors.ViewError, match="cannot guard against other websites"):
        drawing.start("title")
    assert not started


# --- meshes ---------------------------------------------------------------------------------------


def binary_stl(count, size):
    return b"\0" * 80 + struct.pack("<I", count) + bytes(size)


def test_a_sparse_file_of_triangles_is_rejected_before_it_is_read(tmp_path):
    path = tmp_path / "sparse.stl"

    def refuse(message):
        for read in (read_triangles, mesh_pieces):
            with pytest.raises(kt.LoadError, match=message):
                read(path)

    with open(path, "wb") as file:
        file.write(binary_stl(2**32 // 50, 0))
        file.truncate(2**32)
    large = r"has 4294967296 bytes; at most .* make it coarser"
    assert_light(lambda: refuse(large), 30 * 2**20)
    with open(path, "wb") as file:
        file.write(binary_stl(1_200_000, 0))
        file.truncate(84 + 50 * 1_200_000)
    many = "has 1200000 triangles; at most 1000000 are read"
    assert_light(lambda: refuse(many), 300 * 2**20)


@pytest.mark.parametrize("kind", [".zip", ".tar.gz", ".3mf", ".step", ".bz2", ".xaml", ""])
def test_archives_and_unknown_formats_are_rejected(tmp_path, kind):
    path = tmp_path / f"mesh{kind}"
    path.write_bytes(archive({"mesh.stl": BOX.export(file_type="stl")}))
    with pytest.raises(kt.LoadError, match=r"from \.stl, \.obj, .*\.gltf files, not '"):
        mesh_pieces(path)


def test_an_archive_under_another_name_is_not_a_mesh(tmp_path):
    path = tmp_path / "mesh.glb"
    path.write_bytes(archive({"mesh.stl": BOX.export(file_type="stl")}))
    with pytest.raises(kt.LoadError, match="not a binary glTF 2 mesh"):
        mesh_pieces(path)


def test_pipes_and_folders_are_no_meshes(tmp_path):
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "folder.stl").mkdir()
    for name in ("pipe.stl", "folder.stl"):
        with pytest.raises(kt.LoadError, match="not a regular file"):
            read_triangles(tmp_path / name)


def gltf(tmp_path, change):
    described = json.loads(gltf_of(trimesh.Scene([BOX]).export(file_type="glb")))
    change(described)
    path = tmp_path / "mesh.gltf"
    path.write_text(json.dumps(described))
    return path


def test_gltf_with_its_numbers_inside_is_drawn(tmp_path):
    (piece,) = mesh_pieces(gltf(tmp_path, lambda d: None))
    assert np.ptp(piece.surface.vertices, axis=0) == pytest.approx([1, 1, 1])


def test_gltf_leads_to_no_other_file(tmp_path, monkeypatch):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 2000)
    opened, real = [], open
    monkeypatch.setattr("builtins.open", lambda f, *a: (opened.append(str(f)), real(f, *a))[1])
    for uri in (str(secret), "secret.bin", secret.as_uri(), "http://localhost:9/x"):
        path = gltf(tmp_path, lambda d, uri=uri: d["buffers"][0].update(uri=uri))
        with pytest.raises(kt.LoadError, match=r"in another file, .* which is not read"):
            mesh_pieces(path)
    assert not [name for name in opened if "secret" in name]


def picture():
    """A picture of a hundred million points in a hundred thousand bytes."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(buffer, "png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def two_parents(described):
    described["nodes"] = [{"children": [k + 1, k + 1]} for k in range(40)] + [{"mesh": 0}]
    described["scenes"] = [{"nodes": [0]}]


def nested(described):
    described["nodes"] = [{"children": [1]}, {"children": [0]}]
    described["scenes"] = [{"nodes": [0]}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["accessors"][0].update(count=10**9), "claims 1000000000 entries"),
        (lambda d: d["accessors"][0].pop("bufferView"), r"claims \d+ entries and has 0 bytes"),
        (lambda d: d["accessors"][0].update(sparse={"count": 1}), "claims"),
        (two_parents, "node 1 of the mesh has two parents"),
        (nested, "contains itself"),
        (lambda d: d.update(extensionsRequired=["KHR_draco_mesh_compression"]), "save it unpacked"),
        (lambda d: d.update(nodes=[{}] * 20_000), "has 20000 nodes; at most 10000"),
    ],
)
def test_claims_of_gltf(tmp_path, change, message):
    path = gltf(tmp_path, change)

    def refuse():
        with pytest.raises(kt.LoadError, match=message):
            mesh_pieces(path)

    assert_quick(refuse, 5)


def test_pictures_in_gltf_are_not_unpacked(tmp_path, monkeypatch):
    def textured(d):
        d["images"], d["textures"] = [{"uri": picture()}], [{"source": 0}]
        d["materials"] = [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]
        d["meshes"][0]["primitives"][0]["material"] = 0

    monkeypatch.setattr(PIL.ImageFile.ImageFile, "load", lambda self: pytest.fail("unpacked"))
    assert len(mesh_pieces(gltf(tmp_path, textured))) == 1


COLLADA = """<?xml version="1.0"?>{}<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"
version="1.4.1"><asset><up_axis>Z_UP</up_axis></asset><library_geometries/><library_nodes>{}
</library_nodes><library_visual_scenes><visual_scene id="s"><node id="n"><instance_node url="#n0"/>
</node></visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene>
</COLLADA>"""
MANY = "".join(
    f'<node id="n{k}">' + f'<instance_node url="#n{k + 1}"/>' * 10 + "</node>" for k in range(12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            COLLADA.format("", MANY + '<node id="n12"><instance_geometry url="#g"/></node>'),
            "places",
        ),
        (
            COLLADA.format("", '<node id="n0"><instance_node url="#n0"/></node>'),
            "contain each other",
        ),
        (COLLADA.format('<!DOCTYPE a [<!ENTITY x "y">]>', ""), "document type"),
        (COLLADA.format("", "<node>" * 300 + "</node>" * 300), "nested more than 200 deep"),
    ],
    ids=["copies", "circle", "entities", "deep"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_claims_of_collada(tmp_path, text, message, encoding):
    path = tmp_path / "mesh.dae"
    path.write_bytes(
        text.replace('version="1.0"', f'version="1.0" encoding="{encoding}"', 1).encode(encoding)
    )
    with pytest.raises(kt.LoadError, match=message):
        mesh_pieces(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.obj", b"v 0 0 0\n" + b"usemtl a\nf 1 1 1\n" * 20_000, "has 20000 groups"),
        ("a.stl", b"solid a\nendsolid a\n" * 20_000, "has 20000 solids"),
        ("a.off", b"OFF\n9999999 5 0\n", "claims 10000004 elements and has"),
        (
            "a.ply",
            b"ply\nformat binary_little_endian 1.0\nelement vertex 1000000000\nend_header\n",
            "claims 1000000000 elements",
        ),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "mesh"),
    ],
)
def test_claims_of_simple_formats(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    for read in (read_triangles, mesh_pieces):
        with pytest.raises(kt.LoadError, match=message):
            read(tmp_path / name)


def test_the_doctor_and_contact_open_meshes_the_same_way(tmp_path, monkeypatch):
    monkeypatch.setattr(triangles, "LIMIT_BYTES", 100)
    path = tmp_path / "box.stl"
    BOX.export(path)
    builder = kt.ModelBuilder("boxed").body(
        "box", joint=kt.Free(), inertia=kt.shapes.sphere(1, mass=1)
    )
    model = builder.geometry(kt.geometry.Mesh(str(path)), on="box").build()
    (broken,) = [f for f in kt.check(model) if f.code == "mesh-broken"]
    assert "at most 100 are read" in broken.message
    with pytest.raises(kt.KinetreeError, match="at most 100 are read"):
        hull_of(model.geometry[0].shape)
    assert "at most 100 are read" in kt.viewer.scene(model).notices[0]


def test_a_flat_mesh_has_no_hull(tmp_path):
    path = tmp_path / "flat.off"
    path.write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n3 0 1 2\n3 1 3 2\n")
    with pytest.raises(kt.LoadError, match=r"flat\.off: the mesh has no convex hull with a volume"):
        hull_of(kt.geometry.Mesh(str(path)))


# --- motions and sweeps ---------------------------------------------------------------------------


def motion():
    model, t = kt.samples.pendulum(), np.linspace(0, 1, 4)
    q, zero = np.sin(t)[:, None], np.zeros(4)
    return kt.Trajectory(model, t, q, q, q, zero, zero, zero)


def rewritten(tmp_path, **parts):
    path = motion().save(tmp_path / "motion.npz")
    changed = {f"{name}.npy": content for name, content in parts.items()}
    path.write_bytes(archive(members(path.read_bytes()) | changed))
    return path


def test_a_small_file_does_not_unfold_to_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "FREE_BYTES", 10**6)
    path = rewritten(tmp_path, q=array_file(np.zeros(4_000_000)))
    with pytest.raises(kt.LoadError, match=r"unfold to 32\d+, and at most \d+ are read"):
        kt.Trajectory.load(path)


@pytest.mark.parametrize("suffix", [".parquet", ".nc"])
def test_tables_do_not_unfold_either(tmp_path, monkeypatch, suffix):
    path = motion().save(tmp_path / f"motion{suffix}")
    monkeypatch.setattr(archives, "FREE_BYTES", -(10**9))
    with pytest.raises(kt.LoadError, match="and at most -"):
        kt.Trajectory.load(path)


def test_a_header_that_claims_more_than_there_is(tmp_path):
    claim = array_file(np.zeros(4)).replace(b"(4,)", b"(4000000000,)")
    path = rewritten(tmp_path, t=claim[: len(claim) - 9] + claim[-9:])
    with pytest.raises(kt.LoadError, match="this is not a trajectory of kinetree"):
        kt.Trajectory.load(path)


def test_objects_are_not_revived(tmp_path):
    path = rewritten(tmp_path, t=array_file(np.array([None] * 4)))
    with pytest.raises(kt.LoadError, match="neither numbers nor text"):
        kt.Trajectory.load(path)


def test_methods_of_packing_that_numpy_does_not_write(tmp_path):
    path = motion().save(tmp_path / "motion.npz")
    parts = members(path.read_bytes())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    with pytest.raises(kt.LoadError, match="not an archive that NumPy writes"):
        kt.Trajectory.load(path)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"": "kinetree.samples.names"}, "nothing that a trajectory holds"),
        ({"": "kinetree.cli.app.app"}, "nothing that a trajectory holds"),
        ({"": "results.report.Report", "steps": "x"}, "steps of Report cannot be 'x'"),
        ({"": "events.event.EventRecord"}, "this is not a trajectory"),
        ([[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]], "nested more than 16 deep"),
        ({"": "array", "values": [1, [2]]}, "this is not a trajectory"),
    ],
)
def test_files_name_classes_of_a_fixed_table_alone(tmp_path, report, message):
    path = motion().save(tmp_path / "motion.npz")
    about = json.loads(str(np.load(path)["about"])) | {"report": report}
    path = rewritten(tmp_path, about=array_file(json.dumps(about)))
    with pytest.raises(kt.LoadError, match=message):
        kt.Trajectory.load(path)


def test_the_table_names_classes_as_files_do():
    assert all(isinstance(kind, type) for kind in archives._CLASSES.values())
    assert archives._CLASSES["results.report.Report"] is Report
    with pytest.raises(TypeError, match="Limits is not among the classes that files can name"):
        archives.plain(kt.Limits())


def test_json_that_is_nested_without_end(tmp_path):
    path = rewritten(tmp_path, about=array_file("[" * 100_000))
    with pytest.raises(kt.LoadError, match="this is not a trajectory"):
        kt.Trajectory.load(path)


def test_a_folder_without_its_runs_is_named(tmp_path):
    kt.sweep(kt.samples.pendulum(), lambda model, k: k, {"k": [1, 2]}, folder=tmp_path)
    (tmp_path / "runs.npz").unlink()
    with pytest.raises(kt.errors.SweepError, match=r"runs\.npz cannot be read"):
        kt.Sweep.load(tmp_path)


# --- robots that take long ------------------------------------------------------------------------

URDF = '<robot name="r" xmlns:kinetree="urn:kinetree:urdf:1">{}</robot>'


def toml(lines):
    return 'kinetree = 1\nname = "arm"\n' + "\n".join(lines)


def pendulum(**changes):
    return json.dumps(kt.samples.double_pendulum().to_dict() | changes)


def leaders(count):
    first, second = (b["joint_name"] for b in kt.samples.double_pendulum().to_dict()["bodies"])
    coupling = {"name": "c", "joint": second, "source": None, "coefficients": [0.0, 1.0]}
    return [coupling | {"sources": [first] * count, "weights": [1.0] * count}]


@pytest.mark.parametrize(
    ("text", "format", "message"),
    [
        (
            URDF.format("<link " + " ".join(f'a{k}="1"' for k in range(40_000)) + "/>"),
            "urdf", r"<link> has 40000 attributes; at most 500 are read",
        ),
        (URDF.format('<link name="a"/>' * 11000), "urdf", "11000 bodies; at most 10000 are"),
        (pendulum(couplings=leaders(20_001)), "json", "20001 joints that lead; at most 1000"),
        (pendulum(bodies=[{}] * 11000), "json", "11000 bodies; at most 10000 are"),
        (pendulum(gravity="@").replace('"@"', f"[0, 0, {'9' * 5000}]"), "json", "must be finite"),
        (toml(f"{'a.' * 99}k{k} = 1" for k in range(9500)), "toml", "very many dotted keys"),
        (toml(f"[{'a.' * 99}k{k}]" for k in range(9500)), "toml", "very many dotted keys"),
        (toml([f"x = {'9' * 5000}"]), "toml", "not TOML: .*digits"),
        (toml(["[[body]]"] * 11000), "toml", "11000 bodies; at most 10000 are"),
    ],
    ids=lambda value: value[:20] if len(value) < 100 else "",
)  # fmt: skip
def test_slow_robots_are_rejected_at_once(text, format, message):
    def refuse():
        with pytest.raises(kt.LoadError, match=message):
            kt.loads(text, format)

    assert_quick(refuse, 2)


def test_dotted_keys_and_numbers_as_people_write_them_are_read():
    lines = [f"joint{k}.type.name = {k}.5" for k in range(3000)]
    with pytest.raises(kt.LoadError, match="unknown key"):  # and not that there are too many
        kt.loads(toml(lines), "toml")


def test_the_config_of_a_model_is_not_read_as_a_whole(tmp_path):
    (tmp_path / "m").mkdir()
    with open(tmp_path / "m" / "model.config", "wb") as file:
        file.truncate(2**32)
    world = tmp_path / "world.sdf"
    world.write_text(
        '<sdf version="1.7"><model name="w"><include><uri>m</uri></include></model></sdf>'
    )

    def refuse():
        with pytest.raises(kt.LoadError, match=r"model\.config: the file has 4294967296 bytes"):
            kt.load(world)

    assert_light(refuse, 50 * 2**20)


def test_the_doctor_leaves_eigenvalues_of_large_robots_alone():
    builder = kt.ModelBuilder("star")
    for k in range(600):
        builder.body(
            f"b{k}",
            joint=kt.Revolute("y"),
            inertia=kt.shapes.sphere(0.1, mass=1.0),
            joint_name=f"j{k}",
        )

    def look():
        assert "too-large" in [finding.code for finding in kt.check(builder.build())]

    assert_quick(look, 6)
