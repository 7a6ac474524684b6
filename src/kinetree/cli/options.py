"""Options that commands share, and the robot that they work on: a file, or a sample by name."""

import os
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from kinetree.cli.console import misuse
from kinetree.spelling import close_names, did_you_mean


def flag(*names, help, **settings):
    """An option without a value."""
    return typer.Option(*names, help=help, metavar="", **settings)


def option(*names, help, value, **settings):
    """An option with a value, which ``--help`` calls ``value``."""
    return typer.Option(*names, help=help, metavar=value, show_default=False, **settings)


def examples(*lines):
    """The end of a ``--help``: commands to copy."""
    return "\n".join(["Examples:", *(f"$ {line}" for line in lines)])


Json = Annotated[bool, flag("--json", help="Print JSON.")]


# --- The robot -----------------------------------------------------------------------------------


SUFFIXES = {".urdf", ".xml", ".mjcf", ".sdf", ".world", ".toml", ".csv", ".json"}


def complete(incomplete: str):
    """Names of samples and of robot files, for the shell."""
    import kinetree as kt

    for name in kt.samples.names():
        if name.startswith(incomplete):
            yield name, describe(name)
    folder = Path(incomplete).parent if not incomplete.endswith(os.sep) else Path(incomplete)
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        text = f"{entry}{os.sep}" if entry.is_dir() else str(entry)
        if text.startswith(incomplete) and (entry.is_dir() or entry.suffix in SUFFIXES):
            yield text, ""


RobotArgument = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT",
        help="A file (.urdf, .xml, .sdf, .toml, .csv, .json) or a sample, such as panda.",
        autocompletion=complete,
    ),
]
Floating = Annotated[bool, flag("--floating", help="Put the root on a free joint.")]
SrdfOption = Annotated[
    Path | None,
    option("--srdf", value="FILE", help="SRDF beside a URDF file: groups, states, collisions."),
]
KeepFixed = Annotated[bool, flag("--keep-fixed", help="Keep bodies on fixed joints apart.")]
FolderOption = Annotated[
    list[Path] | None,
    option("--folder", "-f", value="FOLDER", help="Where else to look for meshes; repeatable."),
]


class Robot(NamedTuple):
    """A model, where it came from, and what its file says beyond it."""

    model: Any
    title: str
    notices: tuple = ()
    is_sample: bool = False


def open_robot(name, *, floating=False, srdf=None, folders=None, keep_fixed=False) -> Robot:
    """The robot that the user means, or a message that says what there is."""
    import kinetree as kt
    from kinetree.loaders import read

    if os.path.exists(name):
        lump = False if keep_fixed else None
        root = True if floating else None
        loaded = read(name, floating_base=root, srdf=srdf, folders=folders or (), lump=lump)
        return Robot(loaded.model, os.path.basename(name), loaded.notices)
    if name in kt.samples.names():
        if floating or srdf is not None:
            what = "--floating" if floating else "--srdf"
            misuse(f"{what} is for files; a sample comes as it is")
        return Robot(getattr(kt.samples, name)(), name, is_sample=True)
    misuse(missing(name, kt.samples.names()))


def missing(name, samples, *, files=True):
    """The message for a name that is neither file nor sample, with close names."""
    if not files:
        hint = did_you_mean(name, samples, f"there are {', '.join(samples)}", most=2, cutoff=0.5)
        return f"there is no sample {name!r}; {hint}"
    path = Path(name)
    looks_like_file = path.suffix.lower() in SUFFIXES or os.sep in name
    text = f"there is no file {name!r}" + (
        "" if looks_like_file else ", and no sample of that name"
    )
    folder = path.parent
    if looks_like_file and not folder.is_dir():
        return f"{text}: there is no folder {str(folder)!r}"
    try:
        files = [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        files = []
    close = [str(folder / f) for f in close_names(path.name, files, most=3)]
    stem = path.name.removesuffix(path.suffix)
    close += close_names(stem, samples, most=2)
    if close:
        return f"{text}; did you mean {' or '.join(map(repr, close))}?"
    robots = sorted(
        f for f in files if Path(f).suffix.lower() in SUFFIXES - {".json", ".csv", ".toml"}
    )
    if robots:
        return f"{text}; robot files here: {', '.join(robots[:5])}"
    return f"{text}; the samples are {', '.join(samples)}"


def describe(name) -> str:
    """A sample in one line: the beginning of its docstring."""
    import inspect

    import kinetree as kt

    text = inspect.getdoc(getattr(kt.samples, name)) or ""
    first = text.partition("\n\n")[0].replace("\n", " ").partition(". ")[0]
    return first.partition(" — ")[0].rstrip(".")
