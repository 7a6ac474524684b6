"""Robots of the package robot_descriptions, read from its source.

Each of its modules downloads a repository when it is imported, and then says where in it the file
of a robot is:

    REPOSITORY_PATH: str = _clone_to_cache("unitree_ros", commit=...)
    PACKAGE_PATH: str = _path.join(REPOSITORY_PATH, "robots", "go2_description")
    URDF_PATH: str = _path.join(PACKAGE_PATH, "urdf", "go2_description.urdf")

These assignments are evaluated here, with the place in the cache for the first one.
"""

import ast
from pathlib import Path
from typing import NamedTuple


class Description(NamedTuple):
    """A module of the package: its name, the file of its robot, and folders around that."""

    module: str
    file: Path
    folders: tuple[Path, ...]


def robots_of_descriptions(folder: Path, cache: Path, commit: str | None) -> list[Description]:
    """Robots that Python modules in ``folder`` describe, with files in ``cache``.

    Modules whose robot is a macro file, written out by another program, are left out.
    """
    places = _repositories(folder / "_repositories.py")
    found = []
    for module in sorted(folder.glob("*_description.py")):
        paths = _paths(module, places, cache, commit)
        file = paths.get("URDF_PATH") or paths.get("MJCF_PATH")
        if file is not None and not module.name.startswith("_"):
            around = {paths[k] for k in ("REPOSITORY_PATH", "PACKAGE_PATH") if k in paths}
            folders = tuple(sorted(around | {p.parent for p in around}))
            found.append(Description(module.stem, file, folders))
    return found


def _repositories(file) -> dict[str, str]:
    """Cache folders of repositories by name."""
    found = {}
    for node in ast.walk(_tree(file)):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
                texts = {k.arg: _text(k.value, {}) for k in value.keywords}
                if texts.get("cache_path"):
                    found[key.value] = texts["cache_path"]
    return found


def _paths(module, places, cache, commit) -> dict[str, Path]:
    """Paths assigned to names in a description module, evaluated without running it."""
    known: dict[str, str] = {}
    for node in _tree(module).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            name, value = node.target.id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        else:
            continue
        if isinstance(value, ast.Call) and "clone_to_cache" in ast.unparse(value.func):
            place = places.get(_text(value.args[0], known) or "")
            if place is not None:
                inside = f"{place}-{commit}/{place}" if commit else place
                known[name] = str(cache / inside)
        elif (text := _text(value, known)) is not None:
            known[name] = text
    return {name: Path(text) for name, text in known.items() if name.endswith("_PATH")}


def _text(node, known) -> str | None:
    """String value of a syntax tree of constants, names and ``join``, or None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr == "join":
        parts = [_text(part, known) for part in node.args]
        texts = [part for part in parts if part is not None]
        return str(Path(*texts)) if len(texts) == len(parts) else None
    return None


def _tree(file) -> ast.Module:
    """Syntax tree of a Python file; empty if it cannot be read."""
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])
