"""``kinetree convert``: a robot from one format to another."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli.console import err, fail
from kinetree.cli.info import counted
from kinetree.cli.options import (
    Floating,
    FolderOption,
    KeepFixed,
    RobotArgument,
    SrdfOption,
    flag,
    open_robot,
)


def convert(
    robot: RobotArgument,
    out: Annotated[
        Path,
        typer.Argument(help="Where to write; the suffix .urdf, .sdf, .xml, .toml, .json decides."),
    ],
    floating: Floating = False,
    srdf: SrdfOption = None,
    keep_fixed: KeepFixed = False,
    folder: FolderOption = None,
    strict: Annotated[
        bool, flag("--strict", help="Write nothing if something would get lost.")
    ] = False,
    force: Annotated[bool, flag("--force", help="Replace a file that exists.")] = False,
):
    """Write a robot in another format: URDF, SDF, MJCF (.xml), kinetree's TOML, or JSON.

    What the new file cannot carry is listed.
    """
    from kinetree.loaders.report import in_lines

    found = open_robot(robot, floating=floating, srdf=srdf, folders=folder, keep_fixed=keep_fixed)
    for line in in_lines(found.notices):
        err().print(f"note: {line}", style="yellow", markup=False, soft_wrap=True)
    if strict and found.notices:
        fail(f"nothing was written, because of {counted(len(found.notices), 'note')} about {robot}")
    write(found.model, out, force=force, strict=strict)


def write(model, path, *, force, strict=False):
    """Save a model, replace a file only with ``force``, and print the path."""
    from kinetree.errors import ModelWarning
    from kinetree.writers import save

    if path.exists() and not force:
        fail(f"{path} exists; --force replaces it", code=2)
    if not path.parent.is_dir():
        fail(f"there is no folder {str(path.parent)!r} to write {path.name} in", code=2)
    with warnings.catch_warnings():
        if strict:
            warnings.simplefilter("error", ModelWarning)
        try:
            save(model, path)
        except ModelWarning as warning:
            fail(f"nothing was written: {warning}")
    size = f"{counted(model.body_count, 'body', 'bodies')}, nv = {model.nv}"
    err().print(f"wrote {path}: {size}", soft_wrap=True)
