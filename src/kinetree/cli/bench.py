"""``kinetree bench``: how long the compiled functions take on this machine."""

import json
import os
import time
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

import kinetree as kt
from kinetree.codegen.runtime.threads import set_threads, threads

__all__ = ["bench"]

_FUNCTIONS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "qdd"),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
}


def bench(
    model: Annotated[
        str, typer.Argument(help="A sample model, such as panda, or a file robot.urdf.")
    ] = "panda",
    batch: Annotated[list[int] | None, typer.Option(help="Samples per call; repeatable.")] = None,
    seconds: Annotated[float, typer.Option(help="Time to spend on each measurement.")] = 0.2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    floating: Annotated[
        bool, typer.Option(help="Put a robot from a file on a free joint.")
    ] = False,
):
    """Time the compiled functions of a model: one call, and batches on one thread.

    The first column is the time to the first result, from the cache when it is there. A robot from
    a file is read by Pinocchio, which runs beside: how many times faster kinetree is, and how
    closely the answers agree.
    """
    batches = batch or [1, 256, 4096]
    if min(batches) < 1:
        raise typer.BadParameter(f"a batch has at least 1 sample, got {min(batches)}")
    if model.endswith(".urdf"):
        _against_pinocchio(model, floating, batches, as_json)
        return
    mechanism = _sample(model)
    names = track(
        _FUNCTIONS, "measuring", console=Console(stderr=True), transient=True, disable=as_json
    )
    rows = [measure(mechanism, name, batches, seconds) for name in names]
    if as_json:
        typer.echo(json.dumps({"model": model, "nv": mechanism.nv, "functions": rows}))
        return
    table = Table(title=f"{model}, {mechanism.nv} degrees of freedom, µs per sample")
    for column in ("function", "first result", *(f"batch of {n}" for n in batches)):
        is_name = column == "function"
        table.add_column(column, justify="left" if is_name else "right", no_wrap=is_name)
    for row in rows:
        times = (f"{1e6 * row['per_sample'][str(n)]:.3f}" for n in batches)
        table.add_row(row["function"], f"{1e3 * row['first']:.0f} ms", *times)
    Console().print(table)


def _against_pinocchio(path, floating, batches, as_json):
    from kinetree.benchmark import compare
    from kinetree.interop.pinocchio.library import pinocchio

    if not os.path.isfile(path):
        raise typer.BadParameter(f"there is no file {path!r}")
    pin = pinocchio()
    root = [pin.JointModelFreeFlyer()] if floating else []
    try:
        peer = pin.buildModelFromUrdf(path, *root)
    except ValueError as error:
        raise typer.BadParameter(f"Pinocchio cannot read {path!r}: {error}") from None
    before = threads()
    set_threads(1)
    try:
        found = list(compare(peer, batches))
    except kt.KinetreeError as error:
        raise typer.BadParameter(f"{path}: {error}") from None
    finally:
        set_threads(before)
    if as_json:
        typer.echo(json.dumps({"model": path, "results": [asdict(r) for r in found]}))
        return
    table = Table(title=f"{os.path.basename(path)}: times faster than Pinocchio (µs per sample)")
    for column in ("function", *(f"batch of {n}" for n in batches), "largest error"):
        table.add_column(column, justify="left" if column == "function" else "right")
    for function in dict.fromkeys(r.function for r in found):
        rows = {r.batch: r for r in found if r.function == function}
        cells = [
            f"{rows[n].ratio:.1f} ({1e6 * rows[n].ours:.3f})" if n in rows else "too large"
            for n in batches
        ]
        table.add_row(function, *cells, f"{max(r.error for r in rows.values()):.0e}")
    Console().print(table)


def _sample(name):
    if name not in kt.samples.names():
        known = ", ".join(kt.samples.names())
        raise typer.BadParameter(f"no sample model is called {name!r}; there are {known}")
    model = getattr(kt.samples, name)()
    if model.loops:
        raise typer.BadParameter(f"{name} has kinematic loops, and what is timed is for trees")
    return model


def measure(model, name, batches, seconds):
    """Median seconds per sample of one function for every batch size, and of the first call."""
    function = getattr(kt, name)
    states = _states(model, max(batches))

    def arguments(n):
        arrays = [states[argument] for argument in _FUNCTIONS[name]]
        return [a[0] for a in arrays] if n == 1 else [a[:n] for a in arrays]

    first = _seconds(lambda: function(model, *arguments(batches[0])))
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
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return {
        "q": q,
        "qd": rng.normal(size=(count, model.nv)),
        "qdd": rng.normal(size=(count, model.nv)),
    }


def _median(call, arguments, seconds):
    """Median time of a call, each measurement long enough for the clock."""
    call(arguments)
    repetitions = max(1, int(2e-4 / _seconds(lambda: call(arguments))))
    found, end = [], time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        found.append(_seconds(lambda: [call(arguments) for _ in range(repetitions)]) / repetitions)
    return float(np.median(found))


def _seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
