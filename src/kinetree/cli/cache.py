"""``kinetree cache``: compiled code on disk: where it is, how much, and removing it."""

import typer

from kinetree.cli.console import err, out, print_json
from kinetree.cli.options import Json, examples

app = typer.Typer(
    epilog=examples("kinetree cache", "kinetree cache clear", "du -sh $(kinetree cache path)")
)


def _store():
    from kinetree.codegen.cache import open_store

    return open_store()


@app.callback(invoke_without_command=True)
def cache(context: typer.Context, as_json: Json = False):
    """Show or clear the compiled code kept on disk.

    The environment variable KINETREE_CACHE chooses the folder, or is 'off';
    KINETREE_CACHE_SIZE limits its size, such as 500MB.
    """
    if context.invoked_subcommand is None:
        show(as_json)


@app.command()
def show(as_json: Json = False):
    """Folder and size of compiled code, and what there is: by name, tier and level.

    General code serves every robot, specialised code one. LLVM optimised code of level 1; that of
    level 0 computes the same and was compiled sooner.
    """
    from dataclasses import asdict
    from datetime import datetime

    from rich.filesize import decimal
    from rich.table import Table

    from kinetree.codegen.build import kept_code

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
        print_json(facts)
        return
    table = Table(show_header=False, box=None, padding=(0, 3, 0, 0), pad_edge=False)
    table.add_column(style="dim")
    table.add_row("location", store.folder or "none: KINETREE_CACHE is off")
    table.add_row("entries", str(facts["entries"]))
    table.add_row("size", f"{decimal(facts['bytes'])} of at most {decimal(store.limit)}")
    if entries:
        table.add_row("last used", f"{datetime.fromtimestamp(entries[-1].used):%Y-%m-%d %H:%M}")
    out().print(table, soft_wrap=True)
    if code:
        listed = Table("code", "tier", "level", "programs", "size", box=None, pad_edge=False)
        for kept in code:
            level = "GPU" if kept.level is None else str(kept.level)
            listed.add_row(kept.name, kept.tier, level, str(kept.count), decimal(kept.bytes))
        out().print()
        out().print(listed)


@app.command()
def path():
    """Print the folder, and nothing else."""
    typer.echo(_store().folder or "")


@app.command()
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
        print_json({"removed": before - left, "bytes": freed, "left": left})
    else:
        typer.echo(f"removed {before - left} entries, {decimal(freed)}")
    if left and not as_json:
        err().print(f"{left} entries could not be removed from {store.folder}", soft_wrap=True)
    if left:
        raise typer.Exit(1)
