"""Stages of USD, opened with the files that they refer to; values of attributes; places."""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.errors import LoadError, need
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_from_quaternion

OWN = "kinetree"
_MOST_LAYERS = 1000
_UPRIGHT = 1e-4  # how far the axes of a scaled frame may be from a right angle


def pxr(name: str) -> Any:
    """Module of the USD library by name."""
    return need(f"pxr.{name}", "reading USD files", "usd")


def open_stage(source: bytes, report, folders):
    """USD stage of a file or text, without access outside the allowed folders."""
    sdf, usd, tf = pxr("Sdf"), pxr("Usd"), pxr("Tf")
    try:
        path = Path(report.path)
        if path.is_file():
            _check_layers(sdf, str(path), folders)
            return usd.Stage.Open(str(path))
        if source.startswith(b"#usda"):
            layer = sdf.Layer.CreateAnonymous(".usda")
            if not layer.ImportFromString(source.decode("utf-8")):
                raise report.error(None, "this is not USD")
            return usd.Stage.Open(layer)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stage.usd"
            file.write_bytes(source)
            layer = sdf.Layer.CreateAnonymous(".usda")
            layer.TransferContent(sdf.Layer.OpenAsAnonymous(str(file)))
        return usd.Stage.Open(layer)
    except (tf.ErrorException, UnicodeDecodeError) as error:
        raise report.error(None, f"USD cannot read this: {_first_line(error)}") from None


def _first_line(error):
    """First line of a USD error, without source positions."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rpartition(" : ")[2] if lines else "unknown error"


def _check_layers(sdf, path, folders):
    """Raise LoadError where a layer refers to a file outside the allowed folders."""
    if path.lower().endswith(".usdz"):
        return  # an archive: everything that it refers to is inside
    waiting, known = [path], set()
    while waiting:
        layer = sdf.Layer.FindOrOpen(waiting.pop())
        if layer is None or layer.identifier in known:
            continue
        known.add(layer.identifier)
        if len(known) > _MOST_LAYERS:
            raise LoadError(f"{path}: it refers to more than {_MOST_LAYERS} files")
        for asset in layer.GetCompositionAssetDependencies():
            target = asset if "://" in asset else layer.ComputeAbsolutePath(asset)
            waiting.append(folders.locate(target))


# --- Attributes ----------------------------------------------------------------------------------


def value_of(prim, name: str, default=None):
    """Value of an authored attribute: a number, an array, or ``default``.

    Of kinetree's own attribute in double precision, where it rounds to the standard one.
    """
    attribute = prim.GetAttribute(name)
    if not attribute or not attribute.HasAuthoredValue():
        return default
    value = numbers(attribute.Get())
    exact = prim.GetAttribute(f"{OWN}:{name}")
    if exact and exact.HasAuthoredValue():
        better = numbers(exact.Get())
        same = np.float32(better) == np.float32(value)
        value = better if np.all(same) else value
    return value if np.ndim(value) else float(value)


def number_of(prim, name: str) -> float | None:
    """Number of an authored attribute, or None."""
    value = value_of(prim, name)
    return None if value is None else float(value)


def own(prim, name: str):
    """Array of kinetree's own attribute, or None."""
    attribute = prim.GetAttribute(f"{OWN}:{name}")
    return tuple(attribute.Get()) if attribute and attribute.HasAuthoredValue() else None


def tag(prim, key: str, default=None):
    """Value of kinetree's custom data of a USD prim."""
    found = prim.GetCustomDataByKey(f"{OWN}:{key}")
    return default if found is None else found


def name_of(prim) -> str:
    """Name of a USD prim, the original one if USD's rules changed it."""
    return tag(prim, "name", prim.GetName())


def numbers(value):
    """Attribute value as numbers, quaternions as (w, x, y, z)."""
    if hasattr(value, "real") and hasattr(value, "imaginary"):
        return np.array([value.real, *value.imaginary], dtype=float)
    return np.array(value, dtype=float)


# --- Places --------------------------------------------------------------------------------------


def placement(position, quaternion) -> Plucker:
    """Transform to a frame at a position, rotated by a quaternion of any length."""
    p = np.asarray(quaternion, dtype=float)
    size = float(np.linalg.norm(p))
    if not math.isfinite(size) or size == 0:
        p, size = np.array([1.0, 0, 0, 0]), 1.0
    E = np.asarray(rotation_from_quaternion(p / size), dtype=float)
    return Plucker(E, np.array(position, dtype=float))


def frame_of(matrix) -> tuple[Plucker, np.ndarray]:
    """Transform and scale along x, y, z of a USD matrix."""
    rows = np.array(matrix, dtype=float)
    E, scale = rows[:3, :3], np.linalg.norm(rows[:3, :3], axis=1)
    if not np.all(np.isfinite(rows)) or np.any(scale == 0):
        raise ValueError("its transform is flat or not finite")
    E = E / scale[:, None]
    if np.linalg.det(E) < 0:
        scale, E = scale * (1, 1, -1), E * np.array([[1.0], [1.0], [-1.0]])
    if np.abs(E @ E.T - np.eye(3)).max() > _UPRIGHT:
        raise ValueError("its transform has shear")
    if np.abs(E @ E.T - np.eye(3)).max() > 1e-15:
        U, _, V = np.linalg.svd(E)
        E = U @ V
    return Plucker(E, rows[3, :3].copy()), scale
