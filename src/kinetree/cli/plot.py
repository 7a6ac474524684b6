"""``kinetree plot``: a motion that was kept, as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli.console import err
from kinetree.cli.errors import fail, misuse
from kinetree.cli.options import option
from kinetree.cli.pictures import missing

__all__ = ["plot"]


def plot(
    file: Annotated[
        Path, typer.Argument(metavar="MOTION", help="What kinetree simulate --out wrote.")
    ],
    picture: Annotated[
        Path | None,
        option("--out", "-o", value="FILE", help="The picture; MOTION with .png unless given."),
    ] = None,
    joints: Annotated[
        list[str] | None,
        option("--joints", "-j", value="NAMES", help="Only these, with commas; repeatable."),
    ] = None,
):
    """Draw a motion: positions, velocities, forces, energy and events over time."""
    from kinetree.cli.simulate import PICTURES, draw, require_suffix
    from kinetree.simulation import Trajectory

    if not file.exists():
        misuse(f"there is no file {str(file)!r}; kinetree simulate ROBOT --out {file} makes one")
    picture = picture or file.with_suffix(".png")
    require_suffix(picture, PICTURES)
    if (reason := missing()) is not None:
        fail(reason)
    names = [name for entry in joints or () for name in entry.split(",") if name]
    motion = Trajectory.load(file)
    written = draw(motion, picture, names or None)
    err().print(f"wrote {written}", soft_wrap=True)
