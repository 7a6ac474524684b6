"""Files of triangles from strangers, read through trimesh: the only place where meshes are opened.

trimesh gets bytes, a format from a list and nothing to find other files with, so that no file leads
to another, and no archive is unpacked. What is large, or unfolds into something large, is rejected
before it is parsed: a file may claim triangles that it does not hold, or repeat what it holds.
"""

import importlib
import io
import json
import os
import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from kinetree.errors import LoadError
from kinetree.files import read_bounded

FORMATS = (".stl", ".obj", ".ply", ".off", ".msh")
"""Files with one surface."""
DRAWN = (*FORMATS, ".dae", ".glb", ".gltf")
"""All that are read: those, and files with several surfaces that have places and colours."""
LIMIT_BYTES = 64 * 2**20
MOST_TRIANGLES = 1_000_000
_MOST_PIECES = 10_000  # surfaces in a file, and places where they are
_MOST_ELEMENTS = 1_000_000  # of XML
_DEEPEST = 200
_FLAT = 1e-12  # volume over the cube of the size; some versions of trimesh shake flat meshes apart
_GREY = (0.72, 0.73, 0.75)


def read_triangles(name, scale=(1.0, 1.0, 1.0), path=None):
    """Mesh in a file as ``trimesh.Trimesh``, scaled; all surfaces of a scene joined.

    ``path`` is what to call the file in messages, if not by its name.
    """
    path = name if path is None else path
    kind = _kind(name, DRAWN, path)
    factors = np.broadcast_to(np.asarray(scale, dtype=float), 3)
    mesh: Any = None
    if kind in FORMATS:
        mesh = _parse("load_mesh", name, kind, path, skip_materials=True)
    else:
        bare = [(_bare(mesh), transform) for mesh, transform in open_scene(name)]
        placed = [each.apply_transform(transform) for each, transform in bare]
        mesh = _trimesh().util.concatenate(placed) if placed else None
    if not isinstance(mesh, _trimesh().Trimesh) or len(mesh.faces) == 0:
        raise LoadError(f"{path}: the mesh has no triangles")
    _check_count(len(mesh.faces), path)
    _check_corners(mesh, path)
    if not np.all(np.isfinite(mesh.vertices)):
        raise LoadError(f"{path}: the mesh has coordinates that are not finite")
    mesh.apply_transform(np.diag([*factors, 1.0]))
    return mesh


def _bare(mesh):
    """Copy of a mesh without colours, with coincident vertices merged."""
    return _trimesh().Trimesh(mesh.vertices, mesh.faces)


def convex_hull(mesh, path):
    """Convex hull of a ``trimesh.Trimesh``; LoadError if it is flat."""
    if _is_flat(mesh.vertices):  # before Qhull shakes it apart, and trimesh repairs that
        raise _no_hull(path, "it is flat")
    try:
        hull = mesh.convex_hull
    except ImportError:
        raise
    except Exception as error:  # Qhull's own, and whatever trimesh runs into
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        raise _no_hull(path, why) from error
    if not hull.volume > _FLAT * np.max(hull.extents) ** 3:
        raise _no_hull(path, "it is flat")
    return hull


def _is_flat(points):
    """Whether points are coplanar, collinear or coincident, up to rounding."""
    sizes = np.linalg.svd(points - np.mean(points, axis=0), compute_uv=False)
    return len(sizes) < 3 or not sizes[2] > _FLAT * sizes[0]


def _no_hull(path, why):
    """Error for a mesh that has no convex hull: flat, or too few points."""
    return LoadError(f"{path}: the mesh has no convex hull with a volume: {why}")


def open_scene(path):
    """Surfaces in a mesh file with their poses: pairs (``trimesh.Trimesh``, matrix (4, 4)).

    Textures are left out. Surfaces whose coordinates are not finite are left out, too.
    """
    path = os.fspath(path)
    kind = _kind(path, DRAWN, path)
    if kind == ".dae":
        _package("collada", "COLLADA meshes (.dae)", "mesh")
    loaded = _parse("load_scene", path, kind, path, process=False)  # points are merged later
    found, count = [], 0
    try:
        for node in loaded.graph.nodes_geometry:
            transform, name = loaded.graph[node]
            mesh = loaded.geometry[name]
            if isinstance(mesh, _trimesh().Trimesh) and np.all(np.isfinite(mesh.vertices)):
                _check_corners(mesh, path)
                count += len(mesh.faces)
                _check_count(count, path)
                found.append((mesh, np.asarray(transform, dtype=float)))
    except (KeyError, ValueError, TypeError, IndexError) as error:  # nodes that hang together badly
        raise LoadError(f"{path}: this mesh cannot be read: {error!r}") from None
    return found


def _kind(name, formats, path):
    """Format of a mesh file by its suffix; LoadError if it is unknown."""
    kind = Path(name).suffix.lower()
    if kind not in formats:
        raise LoadError(
            f"{path}: kinetree reads meshes from {', '.join(formats)} files, not {kind!r}; "
            f"convert it first"
        )
    return kind


def _parse(load, name, kind, path, **options):
    """Mesh or scene parsed by trimesh, after checks of its size."""
    trimesh = _trimesh()
    data = content_of(name, path)
    try:
        data = _CHECKS[kind](data)
        return getattr(trimesh, load)(
            io.BytesIO(data), file_type=_AS.get(kind, kind[1:]), **options
        )
    except _RefusedError as error:
        raise LoadError(f"{path}: {error}") from None
    except Exception as error:  # trimesh raises whatever its parsers run into
        why = str(error) or type(error).__name__
        raise LoadError(f"{path}: this is no {kind[1:].upper()} mesh: {why[:300]}") from None


def content_of(name, path):
    """Bytes of a mesh file; errors name its ``path``."""
    return read_bounded(name, LIMIT_BYTES, "the mesh", called=path)


def _check_count(count, path):
    """Raise LoadError if a mesh has too many triangles."""
    if count > MOST_TRIANGLES:
        raise LoadError(
            f"{path}: the mesh has {count} triangles; at most {MOST_TRIANGLES} are read; make it "
            f"coarser"
        )


def _check_corners(mesh, path):
    """Raise LoadError if triangles refer to vertices that do not exist."""
    if len(mesh.faces) and not 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices):
        raise LoadError(f"{path}: the mesh has triangles whose corners are not there")


# --- what each format may claim ------------------------------------------------------------------


class _RefusedError(Exception):
    """Something in a file that is not read, and why."""


def _require_at_most(count, most, what):
    """Raise LoadError if a mesh file has more than ``most`` of something."""
    if count > most:
        raise _RefusedError(f"the mesh has {count} {what}; at most {most} are read")


def _stl(data):
    """Checked bytes of an STL file: its triangle count fits its size."""
    if len(data) >= 84 and len(data) == 84 + 50 * (count := struct.unpack("<I", data[80:84])[0]):
        _require_at_most(count, MOST_TRIANGLES, "triangles")
    else:
        _require_at_most(len(re.findall(rb"^[ \t]*solid\b", data, re.M)), _MOST_PIECES, "solids")
    return data


def _obj(data):
    """Checked bytes of an OBJ file: limited numbers of vertices and faces."""
    pieces = len(re.findall(rb"^[ \t]*(?:usemtl|o|g)\b", data, re.M))
    _require_at_most(pieces, _MOST_PIECES, "groups")
    _require_at_most(len(re.findall(rb"^[ \t]*f[ \t]", data, re.M)), MOST_TRIANGLES, "faces")
    return data


def _ply(data):
    """Checked bytes of a PLY file: its element counts fit its size."""
    head, found, _ = data[: 2**16].partition(b"end_header")
    if not found:
        raise _RefusedError("this is not a PLY mesh: its header does not end")
    counts = [int(n[:20]) for n in re.findall(rb"^[ \t]*element[ \t]+\S+[ \t]+(\d+)", head, re.M)]
    _require_bytes(sum(counts), data)
    _require_at_most(max(counts, default=0), MOST_TRIANGLES, "vertices or triangles")
    return data


def _off(data):
    """Checked bytes of an OFF file: its element counts fit its size."""
    text = re.sub(rb"#[^\n]*", b"", data[: 2**12]).split()
    counts = [int(n[:20]) for n in text[:4] if n.isdigit()]
    _require_bytes(sum(counts[:2]), data)
    _require_at_most(max(counts[:2], default=0), MOST_TRIANGLES, "vertices or triangles")
    return data


def _msh(data):
    """MuJoCo's binary mesh converted to PLY: vertices, normals, texture points, triangles."""
    if len(data) < 16:
        raise _RefusedError("this is not a mesh of MuJoCo: it has no header")
    vertices, normals, points, faces = struct.unpack("<4i", data[:16])
    size = 16 + 12 * (vertices + normals + faces) + 8 * points
    if min(vertices, normals, points, faces) < 0 or size != len(data):
        raise _RefusedError(
            f"this is not a mesh of MuJoCo: its header makes it {size} bytes long, and it has "
            f"{len(data)}"
        )
    _require_at_most(faces, MOST_TRIANGLES, "triangles")
    corners = np.frombuffer(data, "<i4", 3 * faces, size - 12 * faces).reshape(-1, 3)
    rows = np.zeros(faces, dtype=[("count", "u1"), ("corners", "<i4", 3)])
    rows["count"], rows["corners"] = 3, corners
    head = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {vertices}\nproperty float x\n"
        f"property float y\nproperty float z\nelement face {faces}\n"
        f"property list uchar int vertex_indices\nend_header\n"
    )
    return head.encode() + data[16 : 16 + 12 * vertices] + rows.tobytes()


def _require_bytes(count, data):
    """Raise LoadError if a mesh file is shorter than the elements it claims."""
    if count > len(data):
        raise _RefusedError(f"the mesh claims {count} elements and has {len(data)} bytes")


def _dae(data):
    """Checked COLLADA text with textures replaced by grey."""
    _reject_unsafe_xml(data)
    root = ET.fromstring(data)
    _require_at_most(_count_places(root), _MOST_PIECES, "places of surfaces")
    for parent in root.iter():
        for k, child in reversed(list(enumerate(parent))):
            kind = child.tag.rpartition("}")[2]
            if kind == "texture":
                parent[k] = ET.Element(child.tag.replace("texture", "color"))
                parent[k].text = " ".join(map(str, (*_GREY, 1.0)))
            elif kind in ("newparam", "library_images"):
                del parent[k]
    return ET.tostring(root)


def _reject_unsafe_xml(data):
    """Raise LoadError for XML with entities, deep nesting or very many elements."""
    parser, depth, count = expat.ParserCreate(), 0, 0

    def doctype(*_):
        raise _RefusedError("the mesh has a document type, which can define entities; remove it")

    def start(*_):
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > _DEEPEST:
            raise _RefusedError(f"the mesh has XML nested more than {_DEEPEST} deep")
        _require_at_most(count, _MOST_ELEMENTS, "XML elements")

    def end(*_):
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)


def _count_places(root):
    """Number of surfaces in a COLLADA scene after all node instances are expanded."""
    parts = {f"#{e.get('id')}": e for e in root.iter() if e.get("id") is not None}
    known: dict = {}

    def count(element, above):
        if element in known:
            return known[element]
        if element in above:
            raise _RefusedError("nodes of the mesh contain each other")
        total = 0
        for child in element:
            kind = child.tag.rpartition("}")[2]
            if kind in ("node", "visual_scene"):
                total += count(child, above | {element})
            elif kind in ("instance_geometry", "instance_controller"):
                total += 1
            elif kind in ("instance_node", "instance_visual_scene") and child.get("url") in parts:
                total += count(parts[child.get("url")], above | {element})
        known[element] = total
        return total

    names = ("visual_scene", "scene", "node")
    whole = [e for e in root.iter() if e.tag.rpartition("}")[2] in names]
    return max((count(e, frozenset()) for e in whole), default=0)


# --- glTF ----------------------------------------------------------------------------------------

_GLB = struct.Struct("<4sII")
_CHUNK = struct.Struct("<I4s")
_OUTSIDE = ("images", "textures", "samplers", "animations", "skins", "cameras", "extensions")


def _glb(data):
    """Checked binary glTF file without textures, extensions and external files."""
    magic, version, _ = _GLB.unpack_from(data)
    if magic != b"glTF" or version != 2:
        raise _RefusedError("this is not a binary glTF 2 mesh")
    chunks, at = [], _GLB.size
    while at + _CHUNK.size <= len(data) and len(chunks) < 2:
        length, kind = _CHUNK.unpack_from(data, at)
        chunks.append((kind, data[at + _CHUNK.size : at + _CHUNK.size + length]))
        at += _CHUNK.size + length
    if not chunks or chunks[0][0] != b"JSON":
        raise _RefusedError("this is not a binary glTF mesh: it does not begin with JSON")
    binary = next((content for kind, content in chunks[1:] if kind == b"BIN\0"), b"")
    return _container(_harmless(json.loads(chunks[0][1])), binary)


def _gltf(data):
    """Checked glTF text that refers to no other files."""
    return _container(_harmless(json.loads(data)), b"")


def _container(described, binary):
    """Binary glTF file from its JSON description and binary chunk."""
    text = json.dumps(described).encode()
    chunks = [(b"JSON", text + b" " * (-len(text) % 4))]
    chunks += [(b"BIN\0", binary + b"\0" * (-len(binary) % 4))] if binary else []
    body = b"".join(_CHUNK.pack(len(part), kind) + part for kind, part in chunks)
    return _GLB.pack(b"glTF", 2, _GLB.size + len(body)) + body


def _harmless(described):
    """Checked description of a glTF scene, without textures and extensions."""
    needed = described.pop("extensionsRequired", [])
    if packed := [name for name in needed if "compression" in str(name)]:
        raise _RefusedError(
            f"the mesh is packed with {packed[0]}, which is not read; save it unpacked"
        )
    for buffer in described.get("buffers", []):
        uri = buffer.get("uri")
        if uri is not None and not re.match(r"data:[^,]{0,100};base64,", uri):
            raise _RefusedError(
                f"the mesh is in another file, {str(uri)[:60]!r}, which is not read; save it as "
                f".glb"
            )
    for name in _OUTSIDE:
        described.pop(name, None)
    described.pop("extensionsUsed", None)
    for material in described.get("materials", []):
        _without_pictures(material)
    for part in ("accessors", "bufferViews", "meshes", "nodes"):
        _require_at_most(len(described.get(part, [])), _MOST_PIECES, part)
    _check_tree(described.get("nodes", []), described.get("scenes", []))
    _check_accessors(described)
    return described


def _without_pictures(material):
    """Remove the textures of a glTF material, in place."""
    for key in [k for k in material if k.endswith("Texture") or k == "extensions"]:
        del material[key]
    for inner in material.values():
        if isinstance(inner, dict):
            _without_pictures(inner)


def _check_tree(nodes, scenes):
    """Raise LoadError if a glTF node has several parents or contains itself."""
    parent = {}
    for i, node in enumerate(nodes):
        for child in node.get("children", []):
            if child in parent:
                raise _RefusedError(f"node {child} of the mesh has two parents")
            parent[child] = i
    for node in parent:
        seen = {node}
        while (node := parent.get(node)) is not None:
            if node in seen:
                raise _RefusedError(f"node {node} of the mesh contains itself")
            seen.add(node)
            if len(seen) > _DEEPEST:
                raise _RefusedError(f"nodes of the mesh are nested more than {_DEEPEST} deep")
    for scene in scenes:
        roots = scene.get("nodes", [])
        if len(set(roots)) < len(roots):
            raise _RefusedError("a scene of the mesh has a node twice")


def _check_accessors(described):
    """Raise LoadError if glTF arrays exceed their buffers, or are used too often."""
    accessors, views = described.get("accessors", []), described.get("bufferViews", [])
    for accessor in accessors:
        count, view = accessor["count"], accessor.get("bufferView")
        room = views[view]["byteLength"] if view is not None else 0
        if not isinstance(count, int) or not 0 <= count <= room or "sparse" in accessor:
            raise _RefusedError(f"an array of the mesh claims {count} entries and has {room} bytes")
    total = 0
    for mesh in described.get("meshes", []):
        for primitive in mesh["primitives"]:
            primitive.pop("extensions", None)
            primitive.pop("targets", None)
            named = [*primitive["attributes"].values(), primitive.get("indices")]
            total += sum(accessors[k]["count"] for k in named if k is not None)
            _require_at_most(total, 10 * MOST_TRIANGLES, "numbers")


_CHECKS = {
    ".stl": _stl, ".obj": _obj, ".ply": _ply, ".off": _off, ".dae": _dae, ".glb": _glb,
    ".gltf": _gltf, ".msh": _msh,
}  # fmt: skip
_AS = {".gltf": "glb", ".msh": "ply"}  # what trimesh gets: text and numbers in one piece


def _trimesh():
    """Package trimesh; an error says how to install it if it is missing."""
    return _package("trimesh", "meshes", "mesh")


def _package(name, what, extra):
    """Optional package by name; an error says how to install it if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LoadError(
            f"reading {what} needs {name}, which cannot be imported ({error}): "
            f'pip install "kinetree[{extra}]"'
        ) from error
