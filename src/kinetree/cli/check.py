"""``kinetree check``: what is wrong with a robot, why it matters, how to fix it."""

import os
from dataclasses import replace
from typing import Annotated

import typer

from kinetree.cli.console import out, print_json
from kinetree.cli.options import (
    Floating,
    FolderOption,
    Json,
    RobotArgument,
    SrdfOption,
    flag,
    open_robot,
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

    if os.path.exists(robot):
        findings = examine(robot, floating_base=floating or None, srdf=srdf, folders=folder or ())
    else:
        findings = examine(open_robot(robot, floating=floating, srdf=srdf).model)
    counts = {s: sum(f.severity == s for f in findings) for s in _STYLES}
    failed = counts["error"] > 0 or (strict and counts["warning"] > 0)
    if as_json:
        print_json(
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
    """One block for each kind of finding: where and what, then why and how once."""
    from rich.table import Table
    from rich.text import Text

    console = out()
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
        console.print(Text(f"  why   {first.why}", "dim"))
        console.print(Text(f"  fix   {first.fix}\n", "dim"))
    console.print(_verdict(robot, counts), soft_wrap=True)


def _place(place):
    """File and line; of a long path the end."""
    file = place.file if len(place.file) <= _LONG else os.path.basename(place.file)
    return str(replace(place, file=file))


def _alike(group):
    """Findings that say the same of parts of the same sort, together."""
    from kinetree.loaders.report import kind_of

    groups = {}
    for finding in group:
        key = finding.part.split()[0], finding.message
        if finding.code.startswith("ignored"):
            key = kind_of(finding.part, finding.message)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _kinds(findings):
    """Findings of one kind together, in the order of the first."""
    groups = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return groups.values()


def _verdict(robot, counts):
    from rich.text import Text

    from kinetree.cli.info import counted

    text = Text.assemble((robot, "bold"), ": ")
    parts = [(counted(n, s), f"bold {_STYLES[s]}") for s, n in counts.items() if n]
    if not parts:
        return text + Text("nothing to find fault with", "green")
    return text + Text(", ").join(Text(*part) for part in parts)
