"""Trajectories in files: NumPy's ``.npz``, Parquet (``.parquet``) and NetCDF (``.nc``).

Every file holds the model as well, unless it has joints that only the program knows, so that a
motion can be looked at wherever it is taken.
"""

import json
import os
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np

from kinetree.errors import KinetreeError, LoadError, MissingPackageError, ModelError, ModelWarning
from kinetree.model import Model, serialize
from kinetree.simulation.results import tables
from kinetree.simulation.results.packages import need
from kinetree.simulation.results.plain import plain, revived

__all__ = ["SUFFIXES", "load", "save"]

FORMAT = "kinetree trajectory 1"
SUFFIXES = (".npz", ".parquet", ".nc")
"""How the names of files end, one for each format."""


def save(trajectory, path):
    """Write a trajectory to a file, whose suffix says how."""
    path = Path(path)
    _, write = _by_suffix(path)
    draft = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:  # a file is there as a whole or not at all
        write(trajectory, draft, json.dumps(_about(trajectory)))
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def load(cls, path, model=None):
    """The trajectory in a file.

    Args:
        cls: the class of trajectories.
        path: of the file.
        model: the mechanism, for files that could not hold it.
    """
    path = Path(path)
    read, _ = _by_suffix(path)
    if not path.exists():
        raise LoadError(f"{path}: there is no such file")
    try:
        arrays, text = read(path)
        about = json.loads(text)
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}, expected {FORMAT!r}")
        shape = tuple(about["shape"])
    except KinetreeError:
        raise
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise LoadError(f"{path}: this is no trajectory of kinetree ({error})") from error
    model = _model(path, about, model)
    arrays = {name: np.asarray(array, dtype=float) for name, array in arrays.items()}
    for name in ("q", "qd", "tau", "energy", "work", "loop_error"):
        tail = arrays[name].shape[-1:] if name in ("q", "qd", "tau") else ()
        arrays[name] = arrays[name].reshape(*shape, *tail)
    told = {name: revived(about.get(name)) for name in ("events", "report", "contact")}
    return cls(model, **told, **arrays)


def _by_suffix(path):
    ways = (
        (_read_npz, _write_npz), (_read_parquet, _write_parquet), (_read_netcdf, _write_netcdf),
    )  # fmt: skip
    if path.suffix.lower() not in SUFFIXES:
        raise LoadError(
            f"{path}: trajectories are kept in files that end in {', '.join(SUFFIXES)}; this one "
            f"ends in {path.suffix!r}"
        )
    return ways[SUFFIXES.index(path.suffix.lower())]


# --- what is not an array -------------------------------------------------------------------------


def _about(trajectory):
    try:
        model = trajectory.model.to_dict()
    except ModelError:  # a joint of the user's, which only the program knows
        model = None
    return {
        "format": FORMAT,
        "shape": list(trajectory.q.shape[:-1]),
        "model": model,
        "strict": trajectory.model.strict,
        "name": trajectory.model.name,
        "fingerprint": trajectory.model.fingerprint,
        "events": [plain(event) for event in trajectory.events],
        "report": plain(trajectory.report),
        "contact": plain(trajectory.contact),
    }


def _model(path, about, model):
    if model is not None:
        if model.fingerprint != about["fingerprint"]:
            raise LoadError(
                f"{path}: this is a motion of another model, {about['name']!r}; the one that was "
                f"given, {model.name!r}, is not the same"
            )
        return model
    if about["model"] is None:
        raise LoadError(
            f"{path}: model {about['name']!r} has joints that a file cannot hold; give the model: "
            f"Trajectory.load(path, model=...)"
        )
    with warnings.catch_warnings():  # its inertias were wondered at when it was made
        warnings.simplefilter("ignore", ModelWarning)
        return serialize.from_dict(partial(Model, strict=about["strict"]), about["model"])


# --- formats --------------------------------------------------------------------------------------


def _write_npz(trajectory, path, about):
    np.savez_compressed(path, about=np.array(about), **trajectory.arrays())


def _read_npz(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays if name != "about"}, str(arrays["about"])


def _write_parquet(trajectory, path, about):
    arrow = need("pyarrow", "a .parquet file", "tables")
    parquet = need("pyarrow.parquet", "a .parquet file", "tables")
    columns = tables.columns(trajectory)
    count = int(np.prod(trajectory.q.shape[1:-1]))
    table = arrow.table({"time": np.repeat(trajectory.t, count), **columns})
    table = table.replace_schema_metadata({b"kinetree": about.encode()})
    parquet.write_table(table, path)


def _read_parquet(path):
    arrow = need("pyarrow", "a .parquet file", "tables")
    parquet = need("pyarrow.parquet", "a .parquet file", "tables")
    try:
        table = parquet.read_table(path)
    except arrow.ArrowException as error:
        raise ValueError(error) from error
    about = (table.schema.metadata or {})[b"kinetree"].decode()
    shape = json.loads(about)["shape"]
    columns = {name: table[name].to_numpy() for name in table.column_names}
    arrays = {"t": columns.pop("time").reshape(shape).reshape(shape[0], -1)[:, 0]}
    for kind in ("q", "qd", "tau"):
        entries = [c for name, c in columns.items() if name.startswith(f"{kind}.")]
        arrays[kind] = np.stack(entries, axis=-1) if entries else np.zeros((np.prod(shape), 0))
    return arrays | {name: columns[name] for name in ("energy", "work", "loop_error")}, about


def _write_netcdf(trajectory, path, about):
    dataset = tables.to_xarray(trajectory)
    dataset.attrs["kinetree"] = about
    dataset.to_netcdf(path, engine=_netcdf_engine())


def _read_netcdf(path):
    xarray = need("xarray", "a .nc file", "tables")
    with xarray.open_dataset(path, engine=_netcdf_engine(), decode_times=False) as dataset:
        arrays = {name: dataset[name].values for name in dataset.data_vars}
        return {"t": dataset["time"].values} | arrays, dataset.attrs["kinetree"]


def _netcdf_engine():
    """The first package of those that can write NetCDF."""
    for engine in ("netcdf4", "h5netcdf", "scipy"):
        module = {"netcdf4": "netCDF4", "scipy": "scipy.io"}.get(engine, engine)
        try:
            need(module, "a .nc file", "tables")
        except MissingPackageError:
            continue
        return engine
    raise MissingPackageError(
        "a .nc file needs one of the packages netCDF4, h5netcdf or scipy beside xarray, and none "
        'can be imported: pip install "kinetree[tables]"'
    )
