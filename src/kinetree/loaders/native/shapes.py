"""What bodies look like, in the native format: ``[[geometry]]`` with one shape each."""

from typing import Any

from kinetree.loaders.mesh_files import mesh_file
from kinetree.loaders.toml.table import Table
from kinetree.model import geometry

__all__ = ["read_color", "read_shape"]


def read_shape(table: Table, report, folders):
    """The shape of a geometry; None, with a notice, for a mesh that cannot be had."""
    kind = table.choice(*_SHAPES)
    if kind is None:
        raise table.error(f"has no shape; give one of {', '.join(_SHAPES)}")
    if kind == "mesh":
        return _mesh(table, report, folders)
    return _SHAPES[kind](table)


def read_color(table: Table):
    """Red, green, blue and opacity from 0 to 1, or None; three numbers are opaque."""
    color = table.numbers("color", None, None)
    if color is None:
        return None
    if len(color) not in (3, 4) or not all(0 <= x <= 1 for x in color):
        raise table.error("color must be 3 or 4 numbers from 0 to 1", "color")
    return (*map(float, color), 1.0)[:4]


def _sizes(table, key, count) -> Any:
    sizes = table.numbers(key, None if count == 1 else count)
    if len(sizes) != count or any(x < 0 for x in sizes):
        raise table.error(f"{key} must be {count} sizes, not negative, got {list(sizes)}", key)
    return tuple(map(float, sizes))


def _mesh(table, report, folders):
    scale = table.numbers("scale", 3, (1, 1, 1))
    line = table.document.line((*table.path, "mesh"))
    path = mesh_file(
        table.text("mesh"), folders, lambda why: report.ignored(line, f"{table.label}: mesh", why)
    )
    x, y, z = map(float, scale)
    return None if path is None else geometry.Mesh(path, (x, y, z))


_SHAPES = {
    "box": lambda table: geometry.Box(_sizes(table, "box", 3)),
    "sphere": lambda table: geometry.Sphere(*_sizes(table, "sphere", 1)),
    "cylinder": lambda table: geometry.Cylinder(*_sizes(table, "cylinder", 2)),
    "capsule": lambda table: geometry.Capsule(*_sizes(table, "capsule", 2)),
    "ellipsoid": lambda table: geometry.Ellipsoid(_sizes(table, "ellipsoid", 3)),
    "plane": lambda table: geometry.Plane(_sizes(table, "plane", 2)),
    "mesh": None,
}
