"""Files of motions, folders of sweeps and meshes, broken at random: bytes, archives and claims."""

import base64
import copy
import io
import json
import random
import struct
import zipfile

import numpy as np
import trimesh
from loaders.fuzzing import hurt

SLOWEST, MOST = 5.0, 700 * 2**20  # seconds, and bytes beyond what it took to get here


# --- archives -------------------------------------------------------------------------------------


def members(data: bytes) -> dict[str, bytes]:
    """What is in an archive, by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive(parts: dict[str, bytes]) -> bytes:
    """An archive whose checksums are right, whatever is in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return buffer.getvalue()


def array_file(array) -> bytes:
    """The content of an ``.npy`` file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


_HEADERS = (
    (b"'<f8'", b"'|O' "), (b"'<f8'", b"'<f4'"), (b"False", b"True "), (b"(", b"(9"),
    (b"(", b"(-"), (b"'shape'", b"'shaqe'"), (b"'<f8'", b"'<c8'"), (b"'<f8'", b"[('a','O')]"),
    (b"NUMPY\x01", b"NUMPY\x03"), (b"v\x00", b"\xff\xff"),
)  # fmt: skip
_ARRAYS = (
    np.zeros(3), np.zeros((0, 4)), np.array("text"), np.array([None]), np.array(["a"] * 3),
    np.full((5, 2), np.nan), np.arange(4), np.array(1e300 + 0j), np.zeros((1,) * 20),
)  # fmt: skip


def hurt_archive(data: bytes, rng: random.Random) -> bytes:
    """An archive with one to three of its arrays broken, its checksums right or wrong."""
    if rng.random() < 0.25:
        return hurt(data, rng)
    parts = members(data)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(list(parts))
        way = rng.randrange(6)
        if way == 0:
            del parts[name]
            parts["more.npy"] = array_file(rng.choice(_ARRAYS))
        elif way == 1:
            parts[name] = array_file(rng.choice(_ARRAYS))
        elif way == 2:
            parts[name] = parts[name].replace(*rng.choice(_HEADERS), 1)
        elif way == 3:
            parts[name] = hurt(parts[name], rng)
        elif way == 4:
            parts[name] = parts[rng.choice(list(parts))]
        else:
            parts[name] = parts[name] + bytes(rng.randrange(1, 100))
    return archive(parts)


def hurt_json(text: str, rng: random.Random) -> str:
    """JSON with some values replaced by others, or with bytes that are wrong."""
    if rng.random() < 0.3:
        return hurt(text.encode(), rng).decode("utf-8", "replace")
    data = json.loads(text)
    for _ in range(rng.randint(1, 4)):
        _change(data, rng)
    return json.dumps(data)


_VALUES = (
    None, True, 0, -1, 3, 10**30, 1e308, float("nan"), float("inf"), "", "x", "os.system", [], {},
    [[]], {"": "os.system", "command": "true"}, {"": "kinetree.samples.pendulum"},
    {"": "results.report.Report"}, {"": "array", "values": [[1], [1, 2]]}, {"": ["a"]}, ["a", None],
    {"": "events.event.EventRecord", "t": "x"}, {"": "array"}, "\ud800", [0] * 50,
)  # fmt: skip


def _change(data, rng):
    """One value, anywhere in it."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(data[key], (dict, list)) and data[key] and rng.random() < 0.7:
            data = data[key]
            continue
        if isinstance(data, dict) and rng.random() < 0.2:
            del data[key]
        else:
            data[key] = copy.deepcopy(rng.choice(_VALUES))
        return


# --- meshes ---------------------------------------------------------------------------------------


def mesh_seeds() -> dict[str, list[bytes]]:
    """Sound meshes of all formats, by suffix."""
    box = trimesh.creation.box()
    box.visual.face_colors = [200, 30, 30, 255]

    def text(kind, **options):
        made = box.export(file_type=kind, **options)
        return made.encode() if isinstance(made, str) else made

    glb = trimesh.Scene([box, trimesh.creation.icosphere(subdivisions=0)]).export(file_type="glb")
    return {
        ".stl": [text("stl"), text("stl_ascii")],
        ".obj": [text("obj"), b"o a\nusemtl x\n" + text("obj")],
        ".ply": [text("ply", encoding="ascii"), text("ply", encoding="binary")],
        ".off": [text("off")],
        ".msh": [msh_of(box)],
        ".dae": [text("dae")],
        ".glb": [glb],
        ".gltf": [gltf_of(glb)],
    }


def msh_of(mesh) -> bytes:
    """A mesh in MuJoCo's own binary format, with normals and points of textures that it ignores."""
    points, faces = mesh.vertices.astype("<f4"), mesh.faces.astype("<i4")
    n = len(points)
    head = struct.pack("<4i", n, n, n, len(faces))
    return head + points.tobytes() + points.tobytes() + bytes(8 * n) + faces.tobytes()


def gltf_of(glb: bytes) -> bytes:
    """The text of a binary glTF file, with its numbers inside."""
    length = struct.unpack_from("<I", glb, 12)[0]
    described = json.loads(glb[20 : 20 + length])
    binary = glb[28 + length :]
    uri = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    described["buffers"][0]["uri"] = uri
    return json.dumps(described).encode()


def hurt_mesh(kind: str, data: bytes, rng: random.Random) -> bytes:
    """A mesh that is broken: bytes, claims of a glTF description, or its header."""
    if kind == ".gltf" and rng.random() < 0.6:
        return hurt_json(data.decode(), rng).encode("utf-8", "replace")
    if kind in (".stl", ".ply", ".glb") and rng.random() < 0.3:
        at = rng.randrange(max(len(data) - 4, 1))
        claim = struct.pack("<I", rng.choice((0, 1, 2**16, 2**31, 2**32 - 1)))
        return data[:at] + claim + data[at + 4 :]
    return hurt(data, rng)
