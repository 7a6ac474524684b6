"""``kinetree generate``: the functions of a robot as C to take elsewhere, or as NumPy to read."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli.arguments import find_function, functions, spelling
from kinetree.cli.console import err, misuse, progress
from kinetree.cli.options import (
    Floating,
    FolderOption,
    RobotArgument,
    SrdfOption,
    flag,
    open_robot,
    option,
)

_USUAL = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_force")


def _complete(incomplete: str):
    return [name for name in functions() if name.startswith(incomplete)]


def generate(
    robot: RobotArgument,
    function: Annotated[
        list[str] | None,
        option(
            "--functions",
            "-F",
            value="NAMES",
            help="Such as mass_matrix,pose:tool,jacobian:tool:world; repeatable.",
            autocompletion=_complete,
        ),
    ] = None,
    out: Annotated[
        Path | None, option("--out", "-o", value="FOLDER", help="Folder to write to.")
    ] = None,
    numpy: Annotated[
        bool, flag("--numpy", help="NumPy source instead; on stdout without --out.")
    ] = False,
    float32: Annotated[bool, flag("--float32", help="C in single precision.")] = False,
    floating: Floating = False,
    srdf: SrdfOption = None,
    folder: FolderOption = None,
):
    """Write the functions of a robot as standalone C, with a test of its own, or as NumPy source.

    Without --functions: inverse and forward dynamics, mass matrix and bias force.
    """
    import kinetree as kt

    wanted = [part for entry in function or _USUAL for part in entry.split(",") if part]
    requests = [_request(text) for text in wanted]
    model = open_robot(robot, floating=floating, srdf=srdf, folders=folder).model
    if numpy:
        _listings(kt, model, requests, out)
        return
    if out is None:
        misuse("C needs a folder to write to: --out FOLDER")
    for _ in progress([None], "tracing and printing C"):
        kt.export_c(model, requests, out, dtype="float32" if float32 else "float64")
    files = sorted(p.name for p in Path(out).iterdir() if p.is_file())
    err().print(f"wrote {out}: {', '.join(files)}", soft_wrap=True)
    command = f"make -C {shlex.quote(str(out))} test"  # on one line, to be copied
    hint = f"{command}    compiles it and compares numbers"
    err().print(hint, style="dim", soft_wrap=True)


def _request(text):
    """A function with its options, as ``export_c`` takes it."""
    name, *rest = text.strip().split(":")
    words = [word for word in spelling(find_function(name)).items() if word[1] in ("of", "in")]
    if not words and rest:
        misuse(f"{name} is not about a frame; drop {':'.join(rest)!r}")
    if not words:
        return name
    if not 1 <= len(rest) <= len(words):
        misuse(f"{name} of what? Write {name}:FRAME, such as {name}:tool")
    if len(words) == 2 and len(rest) == 1:
        rest = [*rest, "world"]
    return name, {parameter: value for (parameter, _), value in zip(words, rest, strict=True)}


def _listings(kt, model, requests, out):
    texts = {}
    for request in progress(requests, "tracing"):
        name, options = request if isinstance(request, tuple) else (request, {})
        label = "_".join([name, *options.values()])
        texts[label] = kt.listing(name, model, **options)
    if out is None:
        typer.echo("\n\n".join(texts.values()))
        return
    out.mkdir(parents=True, exist_ok=True)
    for label, text in texts.items():
        safe = "".join(c if c.isalnum() else "_" for c in label)
        (out / f"{safe}.py").write_text(text, encoding="utf-8")
    err().print(f"wrote {len(texts)} files to {out}", soft_wrap=True)
