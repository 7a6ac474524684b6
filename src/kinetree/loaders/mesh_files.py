"""The file behind the name of a mesh, if the robot file may have it."""

import os

from kinetree.errors import LoadError
from kinetree.loaders.paths import Folders

__all__ = ["mesh_file"]


def mesh_file(name: str, folders: Folders, note) -> str | None:
    """The path to keep for a mesh, or None; ``note(why)`` is told what is wrong with it.

    A file that is missing keeps its path, and a package that is missing its name. What lies outside
    the allowed folders is left out, so that nobody opens it later.
    """
    try:
        path = folders.locate(name)
    except LoadError as error:
        note(str(error))
        harmless = name.startswith(("package://", "model://")) and ".." not in name
        return name if harmless else None
    if not os.path.isfile(path):
        note(f"there is no file {path!r}")
    return path
