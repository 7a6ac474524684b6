"""``kt.sweep``: one function run for many initial states, parameters, gains, or random numbers."""

import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import kinetree
from kinetree.codegen.progress import reporter
from kinetree.codegen.runtime.threads import threads as kernel_threads
from kinetree.errors import SimulationWarning, SweepError, SweepWarning, warn
from kinetree.files import write_text, write_with
from kinetree.model import Model
from kinetree.simulation.simulate import simulate
from kinetree.simulation.sweep.plan import digest, from_grid, from_samples, on_cluster, on_threads
from kinetree.simulation.sweep.result import (
    FORMAT,
    Folder,
    Memory,
    Sweep,
    read_manifest,
    save_arrays,
)
from kinetree.simulation.sweep.work import RunFunction, model_parameters, work_of
from kinetree.spelling import did_you_mean, explains


@explains
def sweep(
    model: Model | Any,
    run: Callable | Mapping[str, Any],
    grid: Mapping[str, Any] | None = None,
    *,
    samples: Any = None,
    count: int | None = None,
    seed: int = 0,
    batched: bool | None = None,
    folder: str | Path | None = None,
    client: Any = None,
    threads: int | None = None,
    chunk: int | None = None,
    progress: Callable | bool | None = None,
) -> Sweep:
    """Run a function for every combination of values, or for many samples.

        def swing(model, kp, mass):
            ...
            return {"error": ..., "energy": ...}

        found = kt.sweep(m, swing, {"kp": [1, 10, 100], "mass": np.linspace(1, 2, 11)})
        found["error"].reshape(found.shape)

    A run that raises an exception is recorded with the reason, and the others continue. Every run
    has a number and a seed, which depends only on ``seed`` and that number. Results are in the
    order of the numbers, and are the same on any number of threads or machines.

    Args:
        model: the mechanism; or a ``kinetree.World``, of which every run gets its own copy.
        run: called as ``run(model, **values)`` for each run; may take a random generator or a
            seed by having a parameter ``rng`` or ``seed``. Returns a number or an array, a
            dictionary of such, or a trajectory. Or a dictionary of options of ``kt.simulate``:
            then each run is a simulation, and ``q0``, ``qd0`` or any option may be among the
            values.
        grid: values by name; all combinations are run.
        samples: instead of a grid, values by name of which each run gets its own; or a list with a
            dictionary for each run; or a function that draws the dictionary of one run from a
            random generator.
        count: how many samples to draw.
        seed: from which the seeds of all runs are derived.
        batched: ``run`` takes many runs at once, along the first axis of its arguments, and returns
            arrays with as many rows. Simulations that differ in their initial states alone are
            batched unless this is False.
        folder: where to store results as they arrive. If it already holds a part of this sweep,
            only the rest is run.
        client: a ``dask.distributed.Client``; the runs go to its workers.
        threads: without a client, how many threads; as many as ``kt.threads()`` by default.
        chunk: how many runs are done, sent and kept together.
        progress: True for a bar, False for none; by default a bar on a terminal. Or a function of
            the number of runs done and of all.

    Names of parameters of the model, such as ``"mass:arm"`` or ``"gravity"``, change the model that
    a run gets.
    """
    plan = _plan(grid, samples, count, seed)
    if not isinstance(model, Model) and hasattr(model, "with_model"):
        model, run = model.model, _in_world(model, run)
    work = replace(_work(model, run, tuple(plan.values), batched), count=plan.count)
    size = _chunk_size(chunk, plan.count, work.batched)
    store, size, study = _open(folder, model, run, work, plan, size)
    missing = [k for k in range(-(-plan.count // size)) if k not in store.finished_chunks()]
    tasks = _tasks(plan, size, missing)
    if client is None:
        results = on_threads(work, tasks, _thread_count(threads))
    else:
        results = on_cluster(work, tasks, client, study)
    done = plan.count - sum(min((k + 1) * size, plan.count) - k * size for k in missing)
    _keep(results, store, reporter(progress, plan.count, done, work.label), work)
    result = Sweep(plan.values, plan.shape, plan.axes, store, -(-plan.count // size))
    _warn(result, is_simulation=work.label == "simulate")
    return result


def _plan(grid, samples, count, seed):
    """``SweepPlan`` of a grid, or of samples."""
    if (grid is None) == (samples is None):
        raise SweepError(
            "give either a grid, values by name of which all combinations are run, or samples="
        )
    if grid is not None and count is not None:
        raise SweepError("count= is for samples that a function draws; a grid has its own count")
    return from_grid(grid, seed) if samples is None else from_samples(samples, count, seed)


def _tasks(plan, size, missing):
    """Chunks to compute: chunk number, run numbers, seeds and values of each."""
    for k in missing:
        ids = np.arange(k * size, min((k + 1) * size, plan.count))
        yield k, ids, plan.seeds(ids), plan.part(ids)


def _keep(results, store, report, work):
    """Store results as they arrive, with progress."""
    with warnings.catch_warnings(), report as advance:
        if work.label == "simulate":  # what a simulation warns of is among its results
            warnings.simplefilter("ignore", SimulationWarning)
        for number, found in results:
            store.keep(number, found)
            advance(len(found.ids))


def _warn(result, *, is_simulation):
    """Warn how many runs failed or had simulation warnings."""
    if result.failed:
        first = min(result.failed)
        warn(
            f"{len(result.failed)} of {len(result)} runs failed; run {first}: "
            f"{result.failed[first]}. See .failed for all",
            SweepWarning,
        )
    suspect = {}
    if is_simulation and "warning" in result.names:
        suspect = {i: str(w) for i, w in enumerate(result["warning"]) if w is not None and str(w)}
    if suspect:
        first = min(suspect)
        warn(
            f"{len(suspect)} of {len(result)} simulations should not be trusted; run {first}: "
            f"{suspect[first]}. See ['warning'] for all",
            SweepWarning,
        )


def _work(model, run, names, batched):
    """Run function of a sweep: calls of a user's function, or simulations with varied options."""
    if isinstance(run, _InWorld) and isinstance(run.function, dict):
        work = simulation_work(model, run.function, names, batched=batched, in_world=True)
        return replace(work, function=replace(run, function=work.function))
    if not isinstance(run, dict):
        return work_of(model, run, names, batched=bool(batched))
    return simulation_work(model, run, names, batched=batched)


def _open(folder, model, run, work, plan, chunk):
    """Result store, chunk size and digest of a sweep; continues an existing folder."""
    parts = {
        "model": digest(model),
        "function or options": digest(run if isinstance(run, dict) else work.function),
        "values": digest(plan.values),
        "seed": digest(plan.seed),
    }
    study = digest(parts)
    if folder is None:
        return Memory(), chunk, study
    folder = Path(folder)
    if (folder / "manifest.json").exists():
        manifest = read_manifest(folder)
        if manifest["study"] != study:
            changed = [name for name in parts if manifest["digest"].get(name) != parts[name]]
            raise SweepError(
                f"{folder} holds another sweep, of model {manifest['model']!r} by "
                f"{manifest['run']}: its {' and '.join(changed) or 'digest'} differ from "
                f"those of this call. Choose another folder, or remove this one"
            )
        chunk = manifest["chunk"]
    else:
        _begin(folder, model, work, plan, chunk, parts, study)
    return Folder(folder, study, -(-plan.count // chunk)), chunk, study


def _begin(folder, model, work, plan, chunk, parts, study):
    """Write a new sweep's values and manifest to its folder, the manifest last."""
    if folder.exists() and (not folder.is_dir() or any(folder.glob("chunk-*.npz"))):
        raise SweepError(f"{folder} exists and is not a folder of a sweep; choose another one")
    folder.mkdir(parents=True, exist_ok=True)
    runs = {f"value:{name}": _storable(array) for name, array in plan.values.items()}
    runs |= {f"axis:{name}": _storable(array) for name, array in plan.axes.items()}
    write_with(folder / "runs.npz", lambda file: save_arrays(file, runs))
    manifest = {
        "format": FORMAT,
        "kinetree": kinetree.__version__,
        "model": model.name,
        "run": work.label,
        "count": plan.count,
        "shape": list(plan.shape),
        "chunk": chunk,
        "chunks": -(-plan.count // chunk),
        "seed": plan.seed,
        "values": list(plan.values),
        "axes": list(plan.axes),
        "digest": parts,
        "study": study,
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    write_text(folder / "manifest.json", text)


def _storable(array):
    """Array for a file: objects converted to text."""
    return array if array.dtype != object else np.array([str(x) for x in array])


def _chunk_size(chunk, count, batched):
    """Number of runs per chunk; SweepError unless a positive integer."""
    if chunk is None:
        return int(np.clip(-(-count // 32), 1, 1024 if batched else 100))
    if not isinstance(chunk, int) or isinstance(chunk, bool) or chunk < 1:
        raise SweepError(f"chunk must be an integer of at least 1, got {chunk!r}")
    return chunk


def _thread_count(threads):
    """Number of threads; SweepError unless a positive integer."""
    if threads is None:
        return kernel_threads()
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise SweepError(f"threads must be an integer of at least 1, got {threads!r}")
    return threads


# --- Runs that are simulations, given by options of ``kt.simulate`` instead of a function --------

_KEPT = ("t", "q", "qd", "tau", "energy")
_STATES = {"q0", "qd0"}
_SAME_FOR_ALL = {"duration", "dt", "store_every", "t0", "integrator"}


def simulation_work(model, options, names, *, batched=None, in_world=False) -> RunFunction:
    """Run function of a sweep: simulates ``model`` with fixed options, and others varied by name.

    Runs that differ in nothing but their initial state, and which no function of the user's acts
    on, move together as one batch; every one comes out as it would alone.
    """
    known = [name for name in inspect.signature(simulate).parameters if name != "model"]
    changes = model_parameters(model, names)
    for name in (*options, *(name for name in names if name not in changes)):
        if name not in known:
            hint = did_you_mean(name, [*known, "gravity"])
            raise SweepError(
                f"a simulation has no option {name!r}, and a model no such parameter; {hint} For "
                f"values of your own, give a function instead of options"
            )
        elif name in options and name in names:
            raise SweepError(f"{name!r} is among the options and among the values; give it once")
    for name in ("duration",) if in_world else ("q0", "duration"):
        if name not in options and name not in names:
            raise SweepError(
                f"a simulation needs {name}: give it among the options, or among the values"
            )
    if batched is None:
        batched = set(names) <= _STATES and set(options) <= _STATES | _SAME_FOR_ALL
    return RunFunction(model, _Simulation(options, batched), batched, (), changes, "simulate")


class _Simulation:
    """A simulation, or a batch of them, as arrays by name, with what its report warns of."""

    def __init__(self, options, batched):
        self.options, self.batched = options, batched

    def __call__(self, model, **values):
        if not self.batched:
            return self._arrays(self._simulate(model, values))
        count = len(next(iter(values.values())))
        if count == 1:  # errors and warnings then speak of no batch
            alone = self._simulate(model, {name: column[0] for name, column in values.items()})
            return {name: array[None] for name, array in self._arrays(alone).items()}
        trajectory = self._simulate(model, values)
        if trajectory.report.warnings:
            raise _SomeoneIsSuspectError
        arrays = self._arrays(trajectory)
        shared = {name: np.stack([arrays.pop(name)] * count) for name in ("t", "warning")}
        return shared | {name: np.moveaxis(array, 1, 0) for name, array in arrays.items()}

    def _simulate(self, model, values):
        """``Trajectory`` of one run with its option values."""
        options = {**self.options, **values}
        return simulate(model, options.pop("q0", None), **options)

    def _arrays(self, trajectory):
        """Arrays of a trajectory that a sweep keeps, by name."""
        arrays = {name: np.asarray(getattr(trajectory, name)) for name in _KEPT}
        return arrays | {"warning": np.array("; ".join(trajectory.report.warnings))}


class _SomeoneIsSuspectError(Exception):
    """A batch whose report warns: done again run by run, it is known of which."""


# --- Runs in worlds ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _InWorld:
    """A function of a world as one of its model: every call has its own world."""

    world: Any
    """Of which copies are made."""
    about: Any
    """Its state and settings, for the digest of a sweep."""
    function: Any
    """Of a world and values; or options of a simulation."""

    def __call__(self, model, **values):
        return self.function(self.world.with_model(model), **values)


def _in_world(world, run):
    """Run function of a sweep over a world, with the user function's signature."""
    own = world.simulation_start()
    found = _InWorld(world, ((own.state.q, own.state.qd), own.timestep), run)
    if callable(run):
        object.__setattr__(found, "__signature__", inspect.signature(run))
        object.__setattr__(found, "__name__", getattr(run, "__name__", type(run).__name__))
    return found
