"""``save``: a model as a file, in the format of the suffix; and ``to_srdf``."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import ModelError, ModelWarning, UnknownNameError, calling, warn
from kinetree.files import copy, write_text
from kinetree.joints import Free, Planar, Spherical
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.geometry import Mesh
from kinetree.spelling import explains
from kinetree.writers.urdf import add

# --- ``to_srdf``: what a URDF file has no words for, as the SRDF file beside it ------------------


def to_srdf(model) -> str:
    """SRDF text of a model's groups, postures and contact pairs, for its URDF file.

    Postures are group states of the smallest group that has all of their joints.
    """
    robot = etree.Element("robot", name=as_model(model).name)
    for g in model.groups:
        element = add(robot, "group", name=g.name)
        for name in g.joints:
            add(element, "joint", name=name)
    for p in model.postures:
        _add_state(robot, model, p)
    for g in model.groups:
        if g.tip:
            link = {"parent_link": g.tip, "group": g.name, "parent_group": g.name}
            add(robot, "end_effector", name=g.tip, **link)
    _add_pairs(robot, model)
    etree.indent(robot)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    return declaration + etree.tostring(robot, encoding="unicode") + "\n"


def _add_state(robot, model, posture):
    """Write a posture as a group state in SRDF."""
    moving = [i for i in range(1, model.body_count + 1) if model.joint[i].nq]
    names = {model.joint_names[i - 1] for i in moving}
    groups = sorted((len(g.joints), g.name) for g in model.groups if names <= {*g.joints})
    group = {"group": groups[0][1]} if groups else {}
    element = add(robot, "group_state", name=posture.name, **group)
    for i in moving:
        values = _values(model.joint[i], np.asarray(posture.q[model.q_slice[i]], dtype=float))
        add(element, "joint", name=model.joint_names[i - 1], value=values.tolist())


def _values(joint, q):
    """Position variables of a joint in SRDF's order."""
    if isinstance(joint, Free):
        return q[[0, 1, 2, 4, 5, 6, 3]]
    if isinstance(joint, Spherical):
        return q[[1, 2, 3, 0]]
    return q[[1, 2, 0]] if isinstance(joint, Planar) else q


def _add_pairs(robot, model):
    """Write excluded contact pairs in SRDF."""
    links, lost = {*model.body_names, *model.frame_names}, 0
    for p in model.contact_pairs:
        if not {p.first, p.second} <= links:
            lost += 1
            continue
        tag = "enable_collisions" if p.touch else "disable_collisions"
        element = add(robot, tag, link1=p.first, link2=p.second)
        element.set("reason", p.name or "User")
    if lost:
        warn(
            f"model {model.name!r}: {lost} contact pairs of single shapes are not written, since "
            f"SRDF has pairs of links",
            ModelWarning,
        )


def _to_urdf(model) -> str:
    """URDF text of a model."""
    from kinetree.writers.urdf import to_urdf

    return to_urdf(model)


def _to_srdf(model) -> str:
    """SRDF text of a model's groups, states and pairs."""
    from kinetree.writers.save import to_srdf

    return to_srdf(model)


def _to_sdf(model) -> str:
    """SDF text of a model."""
    from kinetree.writers.sdf import to_sdf

    return to_sdf(model)


def _to_mjcf(model) -> str:
    """MJCF text of a model."""
    from kinetree.writers.mjcf import to_mjcf

    return to_mjcf(model)


def _to_usd(model) -> str:
    """USD text of a model."""
    from kinetree.writers.usd import to_usd

    return to_usd(model)


def _to_toml(model) -> str:
    """TOML text of a model."""
    from kinetree.writers.native import to_toml

    return to_toml(model)


def to_json(model) -> str:
    """JSON text of a model's ``to_dict``."""
    return json.dumps(model.to_dict(), indent=1, allow_nan=False) + "\n"


WRITERS = {
    "urdf": _to_urdf, "sdf": _to_sdf, "mjcf": _to_mjcf, "usd": _to_usd, "toml": _to_toml,
    "json": to_json, "srdf": _to_srdf,
}  # fmt: skip
"""The formats that ``save`` writes: functions of a model to the text of a file, by name."""
_SUFFIXES = {
    ".urdf": "urdf", ".sdf": "sdf", ".world": "sdf", ".xml": "mjcf", ".mjcf": "mjcf",
    ".usda": "usd", ".usd": "usd", ".toml": "toml", ".json": "json", ".srdf": "srdf",
}  # fmt: skip


@explains
def save(
    model: Model,
    path: str | os.PathLike,
    *,
    format: str | None = None,
    meshes: Literal["refer", "copy"] = "refer",
) -> Path:
    """Write a model to a file atomically; returns its path.

    Args:
        model: the model.
        path: where to; the suffix is the format: ``.urdf``, ``.sdf`` or ``.world``, ``.xml``
            or ``.mjcf``, ``.usda`` or ``.usd``, ``.toml``, ``.json``; or ``.srdf``, the groups,
            postures and pairs of links that go beside a URDF file.
        format: ``"urdf"``, ``"sdf"``, ``"mjcf"``, ``"usd"``, ``"toml"``, ``"json"`` or
            ``"srdf"``, if the suffix does not determine it.
        meshes: ``"refer"`` to mesh files where they are, or ``"copy"`` them into a folder beside
            the file, ``robot_meshes``, so that both can be moved together. ``kinetree.load`` does
            not open files outside the folder of the robot file, unless ``folders=`` allows it.
    """
    as_model(model)
    path = Path(os.fspath(path))
    if meshes not in ("refer", "copy"):
        raise UnknownNameError(f"meshes must be 'refer' or 'copy', got {meshes!r}")
    format = format or _SUFFIXES.get(path.suffix.lower())
    if format not in WRITERS:
        raise ModelError(
            f"cannot write {str(path)!r}: the format must be one of {', '.join(WRITERS)}, by "
            f"format= or by the suffix {', '.join(_SUFFIXES)}; got {format or path.suffix!r}"
        )
    if meshes == "copy":
        if format == "json":
            raise ModelError("JSON holds a model as it is: meshes='copy' is for the other formats")
        model = _with_copies(model, path)
    elif format != "json":
        _warn_of_meshes(model, path)
    with calling("save"):
        text = WRITERS[format](model)
    return write_text(path, text)


def _meshes(model):
    """Paths of all mesh files of a model."""
    return [g.shape.path for g in model.geometry if isinstance(g.shape, Mesh)]


def _with_copies(model, path):
    """Model with its meshes copied to a folder beside the file."""
    folder, places = path.with_name(f"{path.stem}_meshes"), {}
    for source in dict.fromkeys(_meshes(model)):
        name = Path(source).name
        while name in places.values():  # of another folder
            name = f"_{name}"
        places[source] = name
    try:
        folder.mkdir(exist_ok=True)
        for source, name in places.items():
            if not (folder / name).exists() or not os.path.samefile(source, folder / name):
                copy(source, folder / name)
    except OSError as error:
        raise ModelError(f"save cannot copy the meshes of model {model.name!r}: {error}") from None
    return model.replace(
        geometry=[
            replace(g, shape=replace(g.shape, path=f"{folder.name}/{places[g.shape.path]}"))
            if isinstance(g.shape, Mesh)
            else g
            for g in model.geometry
        ]
    )


def _warn_of_meshes(model, path):
    """Warn of meshes that ``load`` could not open from the file's place."""
    own = Path(os.path.realpath(path.parent))
    far = [m for m in _meshes(model) if os.path.isabs(m) and own not in Path(m).parents]
    if far:
        folder = os.path.commonpath([os.path.dirname(m) for m in far])
        warn(
            f"model {model.name!r}: {len(far)} shapes refer to meshes outside the folder of "
            f"{path.name}, which kinetree.load opens with folders=[{folder!r}]; "
            f"save(..., meshes='copy') puts copies beside the file",
            ModelWarning,
        )
