"""Commands about files of robots: ``kinetree check``, ``convert`` and ``samples``."""

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli import options as cli
from kinetree.cli.info import count_of
from kinetree.cli.options import (
    Floating,
    FolderOption,
    Json,
    KeepFixed,
    RobotArgument,
    SrdfOption,
    flag,
)
from kinetree.spelling import printable

_STYLES = {"error": "red", "warning": "yellow", "note": "blue"}
_SHOWN, _LONG = 6, 24


def check(
    robot: RobotArgument,
    strict: Annotated[bool, flag("--strict", help="Let warnings fail, too.")] = False,
    everything: Annotated[
        bool, flag("--all", help=f"List more than {_SHOWN} findings of a kind.")
    ] = False,
    floating: Floating = False,
    srdf: SrdfOption = None,
    folder: FolderOption = None,
    as_json: Json = False,
):
    """Examine a robot: impossible inertias, wrong units, missing limits, broken paths and loops.

    Every finding says where it is, why it matters and how to fix it. Errors give exit code 1,
    with --strict warnings as well.
    """
    from kinetree.doctor import check as examine

    if cli.is_file(robot):
        options = {"floating_base": floating or None, "srdf": srdf, "folders": folder or ()}
        findings = examine(robot, **options)
    else:
        findings = examine(cli.open_robot(robot, floating=floating, srdf=srdf).model)
    counts = {s: sum(f.severity == s for f in findings) for s in _STYLES}
    failed = counts["error"] > 0 or (strict and counts["warning"] > 0)
    if as_json:
        cli.print_json(
            {
                "source": robot,
                "passed": not failed,
                **{f"{severity}s": count for severity, count in counts.items()},
                "findings": [f.to_dict() for f in findings],
            }
        )
    else:
        _print(robot, findings, counts, None if everything else _SHOWN)
    if failed:
        raise typer.Exit(1)


def _print(robot, findings, counts, most):
    """Print findings, one block per kind: places, reason and remedy."""
    from rich.table import Table
    from rich.text import Text

    console = cli.out()
    for group in _kinds(findings):
        first, style = group[0], _STYLES[group[0].severity]
        console.print(Text.assemble((first.severity, f"bold {style}"), "  ", (first.code, "bold")))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(max_width=40)
        table.add_column()
        rows = [[f] for f in group] if most is None else _alike(group)
        shown = None if first.code == "ignored-motion" else most
        for alike in rows[:shown]:
            f, others = alike[0], len(alike) - 1
            message = Text(printable(f.message)) + Text(
                f"  (and {others} like it)" if others else "", "dim"
            )
            place = f"  {printable(_place(f.place))}".rstrip()
            table.add_row(place, Text(printable(f.part)), message)
        if shown and len(rows) > shown:
            rest = sum(map(len, rows[shown:]))
            table.add_row("", f"and {rest} more", "(--all lists them)", style="dim")
        console.print(table)
        lines = Table.grid(padding=(0, 3, 0, 0))
        lines.add_row("  why", Text(first.why), style="dim")
        lines.add_row("  fix", Text(first.fix), style="dim")
        console.print(lines, "", sep="\n")
    console.print(_verdict(robot, counts), soft_wrap=True)


def _place(place):
    """File and line of a finding; long paths are shortened."""
    file = place.file if len(place.file) <= _LONG else os.path.basename(place.file)
    return str(replace(place, file=file))


def _alike(group):
    """Groups of findings with equal text about similar parts."""
    from kinetree.loaders.report import kind_of

    groups = {}
    for finding in group:
        key = finding.part.split()[0], finding.message
        if finding.code.startswith("ignored"):
            key = kind_of(finding.part, finding.message)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _kinds(findings):
    """Groups of findings of one kind, in order of first appearance."""
    groups = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return groups.values()


def _verdict(robot, counts):
    """Summary line: numbers of errors, warnings and notes."""
    from rich.text import Text

    from kinetree.cli.info import count_of

    text = Text.assemble((robot, "bold"), ": ")
    parts = [(count_of(n, s), f"bold {_STYLES[s]}") for s, n in counts.items() if n]
    if not parts:
        return text + Text("nothing to find fault with", "green")
    return text + Text(", ").join(Text(*part) for part in parts)


def convert(
    robot: RobotArgument,
    out: Annotated[
        Path,
        typer.Argument(
            help="Where to write; the suffix .urdf, .sdf, .xml, .usda, .toml, .json decides."
        ),
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

    found = cli.open_robot(
        robot, floating=floating, srdf=srdf, folders=folder, keep_fixed=keep_fixed
    )
    for line in in_lines(found.notices):
        cli.err().print(f"note: {line}", style="yellow", markup=False, soft_wrap=True)
    if strict and found.notices:
        cli.fail(
            f"nothing was written, because of {count_of(len(found.notices), 'note')} about {robot}"
        )
    write(found.model, out, force=force, strict=strict)


def write(model, path, *, force, strict=False):
    """Save a model, overwriting only with ``force``; prints the path."""
    from kinetree.errors import ModelWarning
    from kinetree.writers import save

    if path.exists() and not force:
        cli.fail(f"{path} exists; --force replaces it", code=2)
    if not path.parent.is_dir():
        cli.fail(f"there is no folder {str(path.parent)!r} to write {path.name} in", code=2)
    with warnings.catch_warnings():
        if strict:
            warnings.simplefilter("error", ModelWarning)
        try:
            save(model, path)
        except ModelWarning as warning:
            cli.fail(f"nothing was written: {warning}")
    size = f"{count_of(model.body_count, 'body', 'bodies')}, nv = {model.nv}"
    cli.err().print(f"wrote {path}: {size}", soft_wrap=True)


# --- samples -------------------------------------------------------------------------------------

_WRITE = "kinetree samples write panda panda.urdf"

samples_app = typer.Typer(epilog=cli.examples("kinetree samples", _WRITE))


def _sample_names(incomplete: str):
    """Sample names that begin with a text, with descriptions, for shell completion."""
    import kinetree as kt
    from kinetree.cli.options import describe

    return [(n, describe(n)) for n in kt.samples.names() if n.startswith(incomplete)]


@samples_app.callback(invoke_without_command=True)
def samples(context: typer.Context, as_json: Json = False):
    """List the robots that ship with the package, or write one to a file."""
    if context.invoked_subcommand is not None:
        return
    import kinetree as kt
    from kinetree.cli.options import describe

    rows = []
    for name in kt.samples.names():
        model = getattr(kt.samples, name)()
        row = {"name": name, "nq": model.nq, "nv": model.nv, "loops": len(model.loops)}
        rows.append({**row, "description": describe(name)})
    if as_json:
        cli.print_json(rows)
    else:
        _print_samples(rows)


def _print_samples(rows):
    """Print the samples as a table."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for heading in ("sample", "nq", "nv", "loops", "description"):
        is_number = heading in ("nq", "nv", "loops")
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        numbers = (str(row["nq"]), str(row["nv"]), str(row["loops"] or ""))
        table.add_row(Text(row["name"], "bold"), *numbers, Text(row["description"]))
    cli.out().print(table)


@samples_app.command("write", epilog=cli.examples(_WRITE))
def write_sample(
    name: Annotated[str, typer.Argument(help="Name of a sample.", autocompletion=_sample_names)],
    file: Annotated[
        Path, typer.Argument(help="Where to: .urdf, .sdf, .xml (MJCF), .toml or .json.")
    ],
    force: Annotated[bool, flag("--force", help="Replace a file that exists.")] = False,
):
    """Write a sample to a file, to change it or to use it elsewhere."""
    import kinetree as kt
    from kinetree.cli.options import missing

    if name not in kt.samples.names():
        cli.misuse(missing(name, kt.samples.names(), files=False))
    write(getattr(kt.samples, name)(), file, force=force)
