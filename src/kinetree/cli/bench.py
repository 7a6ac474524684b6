"""``kinetree bench``: how long the compiled functions take on this machine."""

import os
import time
from dataclasses import asdict
from importlib.util import find_spec
from typing import Annotated

import numpy as np
import typer

from kinetree.cli import options as cli
from kinetree.cli.options import Floating, FolderOption, Json, option
from kinetree.codegen import tiers
from kinetree.codegen.runtime.threads import set_threads, threads

_FUNCTIONS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "qdd"),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
}


def bench(
    robot: Annotated[
        str,
        typer.Argument(
            metavar="[ROBOT]",
            help="A file (.urdf, .xml, .sdf, .toml, .csv, .json) or a sample.",
            autocompletion=cli.complete,
        ),
    ] = "panda",
    batch: Annotated[
        list[int] | None, option("--batch", value="N", help="Samples per call; repeatable.")
    ] = None,
    seconds: Annotated[
        float, option("--seconds", value="S", help="Time for each measurement; 0.2.")
    ] = 0.2,
    against: Annotated[
        str | None,
        option(
            "--against",
            value="LIBRARY",
            help="'pinocchio' or 'none'; Pinocchio by default on a URDF file, if it is installed.",
        ),
    ] = None,
    floating: Floating = False,
    folder: FolderOption = None,
    as_json: Json = False,
):
    """Time the compiled functions of a robot: one call, and batches on one thread.

    On a URDF file, and if Pinocchio is installed, both run on the same states: how many times
    faster kinetree is, and how closely the answers agree. Otherwise the first column is the time to
    the first result, from the cache when it is there. The others are of specialised code, or
    with KINETREE_TIER=general of code that serves every robot.
    """
    batches = batch or [1, 256, 4096]
    if min(batches) < 1:
        cli.misuse(f"a batch has at least 1 sample, got {min(batches)}")
    if against is None:
        against = "pinocchio" if robot.endswith(".urdf") and find_spec("pinocchio") else "none"
    if against != "none":
        _against(against, robot, floating, folder, batches, as_json)
        return
    model = cli.open_robot(robot, floating=floating, folders=folder).model
    if model.is_constrained:
        cli.fail(f"{robot} has loops, and what is timed is for trees", code=2)
    rows = [
        measure(model, name, batches, seconds) for name in cli.progress(_FUNCTIONS, "measuring")
    ]
    if as_json:
        cli.print_json({"model": robot, "nv": model.nv, "functions": rows})
        return
    table = _table(f"{os.path.basename(robot)}: microseconds per sample, nv = {model.nv}", batches)
    for row in rows:
        times = (f"{1e6 * row['per_sample'][str(n)]:.3f}" for n in batches)
        table.add_row(row["function"], f"{1e3 * row['first']:.0f} ms", *times)
    cli.out().print(table)


def _against(peer, path, floating, folders, batches, as_json):
    """Print times of a model beside those of another library, as tables or JSON."""
    from kinetree.benchmark import compare
    from kinetree.interop.pinocchio.leaves import pinocchio

    if peer != "pinocchio":
        cli.misuse(f"--against takes 'pinocchio' or 'none', got {peer!r}")
    if not os.path.isfile(path):
        cli.misuse(f"--against pinocchio needs a URDF file; there is no file {path!r}")
    cli.open_robot(path, floating=floating, folders=folders)  # says best what is wrong with a file
    pin = pinocchio()
    root = [pin.JointModelFreeFlyer()] if floating else []
    try:
        model = pin.buildModelFromUrdf(path, *root)
    except ValueError as error:
        cli.fail(f"Pinocchio cannot read {path!r}: {error}")
    before = threads()
    set_threads(1)
    try:
        found = list(cli.progress(compare(model, batches), "measuring"))
    finally:
        set_threads(before)
    if as_json:
        cli.print_json({"model": path, "results": [asdict(r) for r in found]})
        return
    title = f"{os.path.basename(path)}: times faster than Pinocchio (microseconds per sample)"
    table = _table(title, batches, "largest error")
    for function in dict.fromkeys(r.function for r in found):
        rows = {r.batch: r for r in found if r.function == function}
        cells = [
            f"{rows[n].ratio:.1f} ({1e6 * rows[n].ours:.3f})" if n in rows else "too large"
            for n in batches
        ]
        table.add_row(function, *cells, f"{max(r.error for r in rows.values()):.0e}")
    cli.out().print(table)


def _table(title, batches, last=None):
    """Table of times: a row per function and a column per batch size."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    first = () if last else ("first result",)
    columns = ("function", *first, *(f"batch of {n}" for n in batches), *([last] if last else []))
    for column in columns:
        is_name = column == "function"
        table.add_column(
            column, justify="left" if is_name else "right", no_wrap=is_name, header_style="dim"
        )
    return table


def measure(model, name, batches, seconds):
    """Median seconds per sample of one function for every batch size, and of the first call."""
    import kinetree as kt

    function = getattr(kt, name)
    states = _states(model, max(batches))

    def arguments(n):
        arrays = [states[argument] for argument in _FUNCTIONS[name]]
        return [a[0] for a in arrays] if n == 1 else [a[:n] for a in arrays]

    first = _seconds(lambda: function(model, *arguments(batches[0])))
    if tiers.setting() != "general":
        kt.warm_up(model, function, progress=False)
    before = threads()
    set_threads(1)
    try:
        per_sample = {
            str(n): _median(lambda a: function(model, *a), arguments(n), seconds) / n
            for n in batches
        }
    finally:
        set_threads(before)
    return {"function": name, "first": first, "per_sample": per_sample}


def _states(model, count):
    """Random positions, velocities and accelerations to time functions with."""
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return {
        "q": q,
        "qd": rng.normal(size=(count, model.nv)),
        "qdd": rng.normal(size=(count, model.nv)),
    }


def _median(call, arguments, seconds):
    """Median time of a call [s], each measurement long enough for the clock."""
    call(arguments)
    repetitions = max(1, int(2e-4 / _seconds(lambda: call(arguments))))
    found, end = [], time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        found.append(_seconds(lambda: [call(arguments) for _ in range(repetitions)]) / repetitions)
    return float(np.median(found))


def _seconds(work):
    """Wall time of one call [s]."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
