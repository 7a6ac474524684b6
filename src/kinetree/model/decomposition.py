"""Concave meshes as several convex ones, by CoACD: cups hold, and hooks hook.

Wei, Liu, Ling, Su: Approximate convex decomposition for 3D meshes with collision-aware concavity
and tree search, SIGGRAPH 2022. Pieces are files in the cache folder, named by the content of the
mesh and the settings; they are made once on a machine.
"""

import hashlib
import json
import os
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from kinetree.codegen.cache import cache_folder
from kinetree.errors import LoadError, ModelError, ModelWarning, need
from kinetree.files import write_text
from kinetree.model.geometry import Geometry, Mesh
from kinetree.model.model import Model
from kinetree.model.triangles import convex_hull, read_triangles
from kinetree.spelling import explains

_FOLDER = "meshes"
_THRESHOLD = 0.05
_CONVEX = 0.98  # volume over that of the hull from which on a mesh counts as convex


@explains
def decompose(model: Model, *, threshold: float = _THRESHOLD) -> Model:
    """Model whose concave collision meshes are split into convex pieces instead of hulls.

    Args:
        model: the mechanism; meshes that are nearly convex stay as they are.
        threshold: how far the pieces may depart from the mesh, relative to its size, from 0.01
            (exact, slow) to 1; 0.05 suits grippers and cups.

    Returns:
        The model with the pieces as shapes that collide and are not drawn. The mesh itself is still
        drawn. What is said of single shapes by their names (contact pairs, sensors) applies to the
        pieces only where it names the body.

    Raises:
        MissingPackageError: coacd is not installed: ``pip install "kinetree[decomposition]"``.
    """
    if not 0.01 <= threshold <= 1:
        raise ModelError(f"threshold must be from 0.01 to 1, got {threshold!r}")
    return in_pieces(model, is_concave, float(threshold))


def in_pieces(model, wanted, threshold=_THRESHOLD):
    """Model in which collision meshes that are ``wanted`` are split into convex pieces."""
    found: list[Geometry] = []
    is_split = False
    for g in model.geometry:
        if not (g.collision and isinstance(g.shape, Mesh) and wanted(g.shape)):
            found.append(g)
            continue
        is_split = True
        if g.visual:
            found.append(replace(g, collision=False))
        for k, path in enumerate(_pieces(g.shape.path, threshold)):
            shape = Mesh(path, g.shape.scale)
            name = f"{g.name}_{k}" if g.name else ""
            found.append(replace(g, shape=shape, name=name, visual=False))
    if not is_split:
        return model
    with warnings.catch_warnings():  # defects of the bodies were reported before
        warnings.simplefilter("ignore", ModelWarning)
        return model.replace(geometry=tuple(found))


def is_concave(shape: Mesh) -> bool:
    """Whether a mesh encloses clearly less than its convex hull, or is not closed."""
    mesh = read_triangles(shape.path)
    hull = convex_hull(mesh, shape.path)
    return not mesh.is_watertight or abs(float(mesh.volume)) < _CONVEX * float(hull.volume)


def _pieces(path, threshold) -> list[str]:
    """Files of the convex pieces of a mesh, computed unless they are in the cache."""
    from importlib.metadata import version  # with archives, which an import need not load

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise LoadError(f"{path}: the mesh cannot be read: {error}") from None
    coacd = need("coacd", "splitting a concave mesh into convex ones", "decomposition")
    settings = json.dumps([threshold, version("coacd"), Path(path).suffix.lower()])
    key = hashlib.sha256(content + settings.encode()).hexdigest()[:32]
    folder = Path(cache_of_meshes()) / _FOLDER / key
    listed = folder / "pieces.json"
    if listed.is_file():
        names = json.loads(listed.read_text(encoding="utf-8"))
        if all((folder / name).is_file() for name in names):
            return [str(folder / name) for name in names]
    mesh = read_triangles(path)
    coacd.set_log_level("error")
    parts = coacd.run_coacd(
        coacd.Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces)),
        threshold=threshold,
        seed=0,
    )
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"piece_{k}.obj" for k in range(len(parts))]
    for name, (vertices, faces) in zip(names, parts, strict=True):
        write_text(folder / name, obj_text(vertices, faces))
    write_text(listed, json.dumps(names))  # last: what it lists is there
    return [str(folder / name) for name in names]


def is_kept_mesh(path) -> bool:
    """Whether a file is in the cache of meshes: written by ``kept_mesh`` or by splitting."""
    folder = Path(os.path.realpath(os.path.join(cache_of_meshes(), _FOLDER)))
    return folder in Path(os.path.realpath(path)).parents


def kept_mesh(vertices, faces) -> str:
    """Cache file, named by its content, for a mesh that was given by vertices and faces."""
    text = obj_text(vertices, faces)
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    path = Path(cache_of_meshes()) / _FOLDER / f"{key}.obj"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return str(path)


def obj_text(vertices, faces) -> str:
    """Text of an OBJ file for a surface of triangles."""
    corners = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(vertices, dtype=float).tolist()]
    triangles = [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in np.asarray(faces).tolist()]
    return "\n".join([*corners, *triangles]) + "\n"


@cache
def cache_of_meshes() -> str:
    """Folder of cached meshes; a temporary one of this process where caching is off."""
    try:
        found = cache_folder()
    except FileNotFoundError:
        found = None
    if found:
        return os.fspath(found)
    import tempfile  # the same

    return tempfile.mkdtemp(prefix="kinetree-meshes-")
