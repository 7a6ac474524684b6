"""Commands about compiled code: ``kinetree generate``, as C or NumPy, and ``cache``."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli import options as cli
from kinetree.cli.arguments import find_function, functions, spelling
from kinetree.cli.options import Json, RobotArgument, flag, option
from kinetree.cli.records import Reading, with_records
from kinetree.files import write_text

_USUAL = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_force")


def _complete(incomplete: str):
    """Function names that begin with a text, for shell completion."""
    return [name for name in functions() if name.startswith(incomplete)]


@with_records
def generate(
    robot: RobotArgument,
    *,
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
    reading: Reading,
):
    """Write the functions of a robot as standalone C, with its own test, or as NumPy source.

    Without --functions: inverse and forward dynamics, mass matrix and bias force.
    """
    import kinetree as kt

    wanted = [part for entry in function or _USUAL for part in entry.split(",") if part]
    requests = [_request(text) for text in wanted]
    model = reading.robot(robot).model
    if numpy:
        _listings(kt, model, requests, out)
        return
    if out is None:
        cli.misuse("C needs a folder to write to: --out FOLDER")
    for _ in cli.progress([None], "tracing and printing C"):
        kt.export_c(model, requests, out, dtype="float32" if float32 else "float64")
    files = sorted(p.name for p in Path(out).iterdir() if p.is_file())
    cli.err().print(f"wrote {out}: {', '.join(files)}", soft_wrap=True)
    command = f"make -C {shlex.quote(str(out))} test"  # on one line, to be copied
    hint = f"{command}    compiles it and compares numbers"
    cli.err().print(hint, style="dim", soft_wrap=True)


def _request(text):
    """Function name with options from text, as ``export_c`` takes it."""
    name, *rest = text.strip().split(":")
    words = [word for word in spelling(find_function(name)).items() if word[1] in ("of", "in")]
    if not words and rest:
        cli.misuse(f"{name} is not about a frame; drop {':'.join(rest)!r}")
    if not words:
        return name
    if not 1 <= len(rest) <= len(words):
        cli.misuse(f"{name} of what? Write {name}:FRAME, such as {name}:tool")
    if len(words) == 2 and len(rest) == 1:
        rest = [*rest, "world"]
    return name, {parameter: value for (parameter, _), value in zip(words, rest, strict=True)}


def _listings(kt, model, requests, out):
    """Write NumPy listings of functions into files, or print a single one."""
    texts = {}
    for request in cli.progress(requests, "tracing"):
        name, options = request if isinstance(request, tuple) else (request, {})
        label = "_".join([name, *options.values()])
        texts[label] = kt.listing(name, model, **options)
    if out is None:
        typer.echo("\n\n".join(texts.values()))
        return
    out.mkdir(parents=True, exist_ok=True)
    for label, text in texts.items():
        safe = "".join(c if c.isalnum() else "_" for c in label)
        write_text(out / f"{safe}.py", text)
    cli.err().print(f"wrote {len(texts)} files to {out}", soft_wrap=True)


cache_app = typer.Typer(
    epilog=cli.examples("kinetree cache", "kinetree cache clear", "du -sh $(kinetree cache path)")
)


def _store():
    """Disk cache of compiled code."""
    from kinetree.codegen.cache import open_store

    return open_store()


@cache_app.callback(invoke_without_command=True)
def cache(context: typer.Context, as_json: Json = False):
    """Show or clear the compiled code kept on disk.

    The environment variable KINETREE_CACHE chooses the folder, or is 'off';
    KINETREE_CACHE_SIZE limits its size, such as 500MB.
    """
    if context.invoked_subcommand is None:
        show(as_json)


@cache_app.command()
def show(as_json: Json = False):
    """Folder and size of compiled code, and its entries by name, tier and level.

    General code serves every robot, specialised code one. LLVM optimised code of level 1; that of
    level 0 computes the same and was compiled sooner.
    """
    from dataclasses import asdict
    from datetime import datetime

    from rich.filesize import decimal
    from rich.table import Table

    from kinetree.codegen.keys import kept_code

    store = _store()
    entries, code = store.entries(), kept_code(store)
    facts = {
        "location": store.folder,
        "entries": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "limit": store.limit,
        "last_used": entries[-1].used if entries else None,
        "code": [asdict(kept) for kept in code],
    }
    if as_json:
        cli.print_json(facts)
        return
    table = Table(show_header=False, box=None, padding=(0, 3, 0, 0), pad_edge=False)
    table.add_column(style="dim")
    table.add_row("location", store.folder or "none: KINETREE_CACHE is off")
    table.add_row("entries", str(facts["entries"]))
    table.add_row("size", f"{decimal(facts['bytes'])} of at most {decimal(store.limit)}")
    if entries:
        table.add_row("last used", f"{datetime.fromtimestamp(entries[-1].used):%Y-%m-%d %H:%M}")
    cli.out().print(table, soft_wrap=True)
    if code:
        listed = Table("code", "tier", "level", "programs", "size", box=None, pad_edge=False)
        for kept in code:
            level = "GPU" if kept.level is None else str(kept.level)
            listed.add_row(kept.name, kept.tier, level, str(kept.count), decimal(kept.bytes))
        cli.out().print()
        cli.out().print(listed)


@cache_app.command()
def path():
    """Print the folder, and nothing else."""
    typer.echo(_store().folder or "")


@cache_app.command()
def clear(as_json: Json = False):
    """Remove all compiled code from the disk; it is compiled again when needed.

    Programs that are running keep what they have loaded.
    """
    from rich.filesize import decimal

    store = _store()
    before = len(store.entries())
    freed = store.clear()
    left = len(store.entries())
    if as_json:
        cli.print_json({"removed": before - left, "bytes": freed, "left": left})
    else:
        typer.echo(f"removed {before - left} entries, {decimal(freed)}")
    if left and not as_json:
        cli.err().print(f"{left} entries could not be removed from {store.folder}", soft_wrap=True)
    if left:
        raise typer.Exit(1)
