"""Shared parts of commands: options, the robot that they work on, and how they print.

Answers go to standard output, everything else to standard error. Rich leaves colours out where
there is no terminal, and where NO_COLOR is set. Programs and pipes get lines of ``WIDTH`` columns,
or of COLUMNS where that is set. Text comes from untrusted files: it is not taken as markup, and
control characters in it are shown, not sent to the terminal.
"""

import json
import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
import typer.core

from kinetree.errors import KinetreeError
from kinetree.spelling import close_names, did_you_mean, printable


def flag(*names, help, **settings):
    """Command-line option without a value."""
    return typer.Option(*names, help=help, metavar="", **settings)


def option(*names, help, value, **settings):
    """Command-line option with a value, called ``value`` in ``--help``."""
    return typer.Option(*names, help=help, metavar=value, show_default=False, **settings)


def examples(*lines):
    """Epilogue of ``--help`` with example commands."""
    return "\n".join(["Examples:", *(f"$ {line}" for line in lines)])


Json = Annotated[bool, flag("--json", help="Print JSON.")]


# --- The robot -----------------------------------------------------------------------------------


SUFFIXES = {".urdf", ".xml", ".mjcf", ".sdf", ".world", ".toml", ".csv", ".json"} | {
    ".usda",
    ".usd",
    ".usdc",
    ".usdz",
}


def complete(incomplete: str):
    """Sample and robot file names that begin with a text, for shell completion."""
    import kinetree as kt

    for name in kt.samples.names():
        if name.startswith(incomplete):
            yield name, describe(name)
    if incomplete.startswith(kt.robots.PREFIX):
        for robot in kt.robots.names():
            if f"{kt.robots.PREFIX}{robot}".startswith(incomplete):
                yield f"{kt.robots.PREFIX}{robot}", ""
        return
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
        help="A file (.urdf, .xml, .sdf, .toml, .csv, .json), a sample such as panda, or "
        "robots:NAME from an installed package.",
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


class RobotOption(NamedTuple):
    """A model, where it came from, and what its file says beyond it."""

    model: Any
    title: str
    notices: tuple = ()
    is_sample: bool = False
    path: str = ""


def is_file(name) -> bool:
    """Whether a robot name means a file: a path or ``robots:NAME``."""
    from kinetree.loaders.robots import PREFIX

    return os.path.exists(name) or name.startswith(PREFIX)


def open_robot(name, *, floating=False, srdf=None, folders=None, keep_fixed=False) -> RobotOption:
    """Robot model by name or path; exits with a list of choices if there is none."""
    import kinetree as kt
    from kinetree.loaders import read

    if is_file(name):
        lump = False if keep_fixed else None
        root = True if floating else None
        loaded = read(name, floating_base=root, srdf=srdf, folders=folders or (), lump=lump)
        return RobotOption(
            loaded.model, os.path.basename(name), loaded.notices, path=str(loaded.path)
        )
    if name in kt.samples.names():
        if floating or srdf is not None:
            what = "--floating" if floating else "--srdf"
            misuse(f"{what} is for files; a sample comes as it is")
        return RobotOption(getattr(kt.samples, name)(), name, is_sample=True)
    misuse(missing(name, kt.samples.names()))


def missing(name, samples, *, files=True):
    """Error message for a name that is neither file nor sample, with suggestions."""
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
    """First line of a sample's docstring."""
    import inspect

    import kinetree as kt

    text = inspect.getdoc(getattr(kt.samples, name)) or ""
    first = text.partition("\n\n")[0].replace("\n", " ").partition(". ")[0]
    return first.partition(" — ")[0].rstrip(".")


# --- What commands print --------------------------------------------------------------------------


WIDTH = 100


def labels_and_texts(rows):
    """Grid of texts with dim labels, below an empty line."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(style="dim")
    grid.add_row()
    for label, text in rows:
        grid.add_row(label, Text(printable(text)))
    return grid


def out():
    """Console on standard output."""
    return _console(sys.stdout)


def err():
    """Console on standard error."""
    return _console(sys.stderr)


def _console(stream):
    """Rich console of a stream that escapes control characters."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        """A console on which only its own styles drive the terminal."""

        def render(self, renderable, options=None):
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(printable(segment.text, "\n"), segment.style)

    piped = not stream.isatty() and not os.environ.get("COLUMNS")
    width = WIDTH if piped else None
    return Shown(file=stream, width=width, highlight=False, emoji=False, markup=False)


def print_wide(console, table):
    """Print a table at its natural width, except on a terminal."""
    if console.is_terminal:
        console.print(table)
        return
    width = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    console.width = max(width, console.width)
    console.print(table)


def print_json(value):
    """Print JSON with rows of numbers on one line."""
    sys.stdout.write(_json(value) + "\n")


def _json(value, indent=""):
    """JSON text: objects over several lines, rows of numbers on one."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        items = [f"{inner}{_json(str(k))}: {_json(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, (dict, list, tuple)) for v in value):
        return "[\n" + ",\n".join(inner + _json(v, inner) for v in value) + f"\n{indent}]"
    text = json.dumps(_finite(value), ensure_ascii=False)
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(c):
    """JSON escape of a control character."""
    return c if c.isprintable() else json.dumps(c)[1:-1] if c != "\x7f" else "\\u007f"


def _finite(value):
    """Value with infinities replaced by null, as JSON has none."""
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def progress(steps, what):
    """Iterator over steps with a progress bar on standard error, on terminals."""
    from rich.progress import track

    return track(steps, what, console=err(), transient=True, disable=not sys.stderr.isatty())


@contextmanager
def bar(what, total):
    """Context of a progress bar; yields a function that shows progress."""
    from rich.progress import Progress

    shown = Progress(console=err(), transient=True, disable=not sys.stderr.isatty())
    with shown:
        task = shown.add_task(what, total=total)
        yield lambda done, total=total: shown.update(task, completed=done, total=total)


# --- Errors: one line for people, the traceback for ``--debug`` ----------------------------------
# Exit codes: 0 done; 1 the answer is no, or could not be computed; 2 the command was used wrongly.


def fail(message, *, code=1) -> NoReturn:
    """Print an error message and exit."""
    from rich.text import Text

    err().print(Text("error: ", "bold red") + Text(str(message)), soft_wrap=True)
    raise typer.Exit(code)


def misuse(message) -> NoReturn:
    """Print a message about wrong usage and exit."""
    fail(message, code=2)


class Commands(typer.core.TyperGroup):
    """The group of all commands, which turns errors into messages."""

    order = (
        "info", "view", "check", "eval", "simulate", "plot", "convert", "samples", "robots",
        "generate", "bench", "demo", "cache",
    )  # fmt: skip

    def list_commands(self, ctx):
        """Names of the commands in the order in which newcomers need them."""
        known = [name for name in self.order if name in self.commands]
        return known + sorted(set(self.commands) - set(known))

    def invoke(self, ctx):
        """Run a command; errors of kinetree are printed without traceback."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KinetreeError as error:
                return _fail_with(ctx, error, str(error))
            except OSError as error:
                name = "" if error.filename is None else f"{error.filename}: "
                return _fail_with(ctx, error, f"{name}{error.strerror or error}")


def _fail_with(ctx, error, message):
    """Exit with a message, or raise the error with ``--debug``."""
    if ctx.params.get("debug"):
        raise error
    fail(message)


def _show_warning(message, category, filename, lineno, file=None, line=None):
    """Print a warning as one coloured line; replaces ``warnings.showwarning``."""
    from rich.text import Text

    err().print(Text("warning: ", "yellow") + Text(str(message)), soft_wrap=True)
