"""Trajectories in files: NumPy's ``.npz``, Parquet (``.parquet``), NetCDF (``.nc``); and as tables.

Every such file holds the model as well, unless it has joints that only the program knows, so that a
motion can be looked at wherever it is taken. For other programs there are CSV, which is numbers
alone, and MCAP, the bags of ROS 2. Files come from strangers, too: whatever is wrong
with one is a ``LoadError``, and no file unfolds to more than ``archives`` allows.
"""

import csv
import json
import math
import warnings
from pathlib import Path

import numpy as np

from kinetree.errors import (
    KinetreeError,
    LoadError,
    MissingPackageError,
    ModelError,
    ModelWarning,
    need,
)
from kinetree.files import replacing
from kinetree.functional import layout
from kinetree.model import Model, serialize
from kinetree.simulation.results.archives import Archive, check_size, plain, regular_size, revive
from kinetree.simulation.results.bags import write_mcap
from kinetree.spelling import printable

FORMAT = "kinetree trajectory 1"
SUFFIXES = (".npz", ".parquet", ".nc")
"""How the names of files end that hold all of a motion, one for each format."""
WRITTEN = (*SUFFIXES, ".csv", ".mcap")
"""How the names of all files end that can be written."""


def save(trajectory, path):
    """Write a trajectory to a file, in the format of its suffix; returns the path."""
    path = Path(path)
    _, write = _by_suffix(path)
    _check_names(trajectory.model, path)
    with replacing(path) as part:
        write(trajectory, part, json.dumps(_about(trajectory)))
    return path


def load(cls, path, model=None):
    """Trajectory read from a file; ``model`` is needed for formats without one.

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
        arrays, text = read(path, model)
        about = json.loads(text)
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}, expected {FORMAT!r}")
        model = _model(path, about, model)
        arrays = _shape(arrays, about["shape"], model)
        records = {name: revive(about.get(name)) for name in ("events", "report", "contact")}
        _check(records)
    except (KinetreeError, ImportError):
        raise
    except Exception as error:  # archives and their libraries raise whatever they run into
        why = printable(str(error)[:300]) or type(error).__name__
        raise LoadError(f"{path}: this is not a trajectory of kinetree ({why})") from error
    return cls(model, **records, **arrays)


def _shape(arrays, shape, model):
    """Arrays reshaped to the model's variables and the stored batch shape."""
    if not (isinstance(shape, list) and shape and all(type(n) is int and n >= 0 for n in shape)):
        raise ValueError(f"the shape {shape!r} is not a list of lengths")
    last = {"q": (model.nq,), "qd": (model.nv,), "tau": (model.nv,)}
    more = {name: (len(a),) for name, a in layout.actuators(model).items() if name in arrays}
    found, last = {}, last | more
    for name in ("t", "q", "qd", "tau", "energy", "work", "loop_error", *more):
        array = np.asarray(arrays[name], dtype=float)
        expected = (shape[0],) if name == "t" else (*shape, *last.get(name, ()))
        if array.size != math.prod(expected):
            raise ValueError(f"{name} has {array.size} numbers, expected shape {expected}")
        found[name] = array.reshape(expected)
    if not np.all(np.isfinite(found["t"])):
        raise ValueError(f"its time {int(np.argmin(np.isfinite(found['t'])))} is not a number")
    return found


def _check(records):
    """Raise ValueError for stored events, report or contacts of a wrong type."""
    if not isinstance(records["events"] or (), tuple):
        raise ValueError("its events are not a list")
    records["events"] = records["events"] or ()
    kinds = {"events": "EventRecord", "report": "Report", "contact": "ContactHistory"}
    for name, kind in kinds.items():
        for x in records[name] if name == "events" else (records[name],):
            if x is not None and kind not in [c.__name__ for c in type(x).__mro__]:
                raise ValueError(f"its {name} cannot be {type(x).__name__}")
    contact = records["contact"]
    if contact is not None and contact.force.shape[-2:-1] != (len(contact.names),):
        raise ValueError(f"{len(contact.names)} contacts with forces {contact.force.shape}")


def _check_names(model, path):
    """Raise ModelError for names that the file format cannot encode."""
    for name in (model.name, *model.joint_names) if path.suffix.lower() != ".npz" else ():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ModelError(
                f"{path}: the name {name!r} holds half a surrogate pair, which a {path.suffix} "
                f"file cannot; save the motion as .npz, or rename the joint"
            ) from None


def _by_suffix(path):
    """Reader and writer functions for the suffix of a path."""
    ways = (
        (_read_npz, _write_npz), (_read_parquet, _write_parquet), (_read_netcdf, _write_netcdf),
        (_read_csv, _write_csv), (_read_mcap, write_mcap),
    )  # fmt: skip
    if path.suffix.lower() not in WRITTEN:
        raise LoadError(
            f"{path}: trajectories are kept in files that end in {', '.join(WRITTEN)}; this one "
            f"ends in {path.suffix!r}"
        )
    return ways[WRITTEN.index(path.suffix.lower())]


# --- what is not an array -------------------------------------------------------------------------


def _about(trajectory):
    """Description of a trajectory (model, report, events) for its file."""
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
    """Model of a stored trajectory; LoadError if a different one is given."""
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
        return serialize.from_dict(Model, about["model"], strict=about["strict"])


# --- formats --------------------------------------------------------------------------------------


def _write_npz(trajectory, path, about):
    """Write a trajectory and its description as ``.npz``."""
    with open(path, "wb") as file:  # NumPy adds its suffix to names that end in .NPZ
        np.savez_compressed(file, about=np.array(about), **trajectory.arrays())


def _read_npz(path, _):
    """Arrays and description of a trajectory from ``.npz``."""
    with Archive(path) as arrays:
        return {name: arrays[name] for name in arrays.names if name != "about"}, str(
            arrays["about"]
        )


def _write_parquet(trajectory, path, about):
    """Write a trajectory as ``.parquet``, one row per time and motion."""
    arrow = need("pyarrow", "a .parquet file", "tables")
    parquet = need("pyarrow.parquet", "a .parquet file", "tables")
    entries = columns(trajectory)
    count = int(np.prod(trajectory.q.shape[1:-1]))
    table = arrow.table({"time": np.repeat(trajectory.t, count), **entries})
    table = table.replace_schema_metadata({b"kinetree": about.encode()})
    parquet.write_table(table, path)


def _read_parquet(path, _):
    """Arrays and description of a trajectory from ``.parquet``."""
    arrow = need("pyarrow", "a .parquet file", "tables")
    parquet = need("pyarrow.parquet", "a .parquet file", "tables")
    size = regular_size(path)
    try:
        with parquet.ParquetFile(path) as file:
            kinds = file.schema_arrow.types
            if not all(arrow.types.is_float64(kind) for kind in kinds):
                raise ValueError("a table of something other than numbers")
            check_size(path, 8 * file.metadata.num_rows * len(kinds), size)
            table = file.read(use_threads=False)
    except arrow.ArrowException as error:
        raise ValueError(error) from error
    about = (table.schema.metadata or {})[b"kinetree"].decode()
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return _of_columns(columns, json.loads(about)["shape"]), about


def _of_columns(columns, shape):
    """Arrays by name, of columns of a table such as ``q.elbow``."""
    arrays = {"t": columns.pop("time").reshape(shape).reshape(shape[0], -1)[:, 0]}
    for kind in ("q", "qd", "tau", "controls", "activation"):
        entries = [c for name, c in columns.items() if name.startswith(f"{kind}.")]
        if entries or kind in ("q", "qd", "tau"):
            arrays[kind] = np.stack(entries, axis=-1) if entries else np.zeros((np.prod(shape), 0))
    return arrays | {name: columns[name] for name in ("energy", "work", "loop_error")}


def _write_csv(trajectory, path, about):
    """Write a trajectory as ``.csv``, one row per time and motion."""
    batch = trajectory.q.shape[1:-1]
    places = [grid.ravel() for grid in np.indices((len(trajectory.t), *batch))]
    index = dict(zip(_batch_names(trajectory), places[1:], strict=True))
    table = {"time": trajectory.t[places[0]], **index, **columns(trajectory)}
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))


def _read_csv(path, model):
    """Arrays of a trajectory from ``.csv``, which needs the model given."""
    if model is None:
        raise LoadError(
            f"{path}: a CSV file holds numbers alone; give the model, Trajectory.load(path, "
            f"model=...), or save the motion as .npz, .parquet or .nc"
        )
    regular_size(path)
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    table = np.array([[float(x) for x in row] for row in rows]).reshape(len(rows), len(names))
    columns = dict(zip(names, table.T, strict=True))
    index = [columns.pop(name) for name in names if name.partition("_")[0] == "motion"]
    batch = [int(x.max()) + 1 if x.size else 0 for x in index]
    shape = [len(rows) // max(math.prod(batch), 1), *batch]
    about = {"format": FORMAT, "shape": shape, "fingerprint": model.fingerprint}
    return _of_columns(columns, shape), json.dumps(about)


def _read_mcap(path, _):
    """Raise LoadError: ROS bags cannot be loaded as trajectories."""
    raise LoadError(
        f"{path}: a bag holds joint states and transforms for other programs, not all of a "
        f"motion; save it as .npz, .parquet or .nc to load it again"
    )


def _write_netcdf(trajectory, path, about):
    """Write a trajectory as NetCDF ``.nc``."""
    dataset = to_xarray(trajectory)
    dataset.attrs["kinetree"] = about
    dataset.to_netcdf(path, engine=_netcdf_engine())


def _read_netcdf(path, _):
    """Arrays and description of a trajectory from NetCDF ``.nc``."""
    xarray = need("xarray", "a .nc file", "tables")
    size = regular_size(path)
    with xarray.open_dataset(path, engine=_netcdf_engine(), decode_cf=False) as dataset:
        check_size(path, sum(dataset[name].nbytes for name in dataset.variables), size)
        arrays = {name: dataset[name].values for name in dataset.data_vars}
        return {"t": dataset["time"].values} | arrays, dataset.attrs["kinetree"]


def _netcdf_engine():
    """Name of the first installed package that xarray can write NetCDF with."""
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


_SCALARS = {"energy": "J", "work": "J", "loop_error": "m or rad"}
_NAMES = {
    "q": "joint positions", "qd": "joint velocities", "tau": "joint forces of the controller",
    "energy": "kinetic and potential energy", "work": "work of all joint forces since the start",
    "loop_error": "largest error of a loop or coupling", "controls": "controls of the actuators",
    "activation": "activations of the actuators",
}  # fmt: skip


def to_xarray(trajectory):
    """``xarray.Dataset`` with dimensions time, batch axes, position and velocity."""
    xarray = need("xarray", "Trajectory.to_xarray", "tables")
    model = trajectory.model
    batch = _batch_names(trajectory)
    last = {
        "q": ("position",), "qd": ("velocity",), "tau": ("velocity",), "controls": ("actuator",),
        "activation": ("activated",),
    }  # fmt: skip
    q, qd = layout.positions(model), layout.velocities(model)
    units = {"position": [v.unit for v in q], "velocity": [v.unit for v in qd]}
    data = {
        name: (
            ("time", *batch, *last.get(name, ())),
            getattr(trajectory, name),
            {"long_name": words} | ({"units": _SCALARS[name]} if name in _SCALARS else {}),
        )
        for name, words in _NAMES.items()
        if getattr(trajectory, name) is not None
    }
    coords = {
        "time": ("time", trajectory.t, {"units": "s"}), "position": [v.name for v in q],
        "velocity": [v.name for v in qd], "position_unit": ("position", units["position"]),
        "velocity_unit": ("velocity", units["velocity"]),
    }  # fmt: skip
    for name, actuators in layout.actuators(model).items():
        if name in data:
            coords[last[name][0]] = [a.name for a in actuators]
    return xarray.Dataset(data, coords=coords, attrs={"model": model.name})


def to_pandas(trajectory):
    """``pandas.DataFrame`` with one row per time and motion.

    Columns are ``q.elbow``, ``qd.elbow``, ``tau.elbow`` and so on, ``energy``, ``work`` and
    ``loop_error``; the index is the time, with the numbers of the batch after it.
    """
    pandas = need("pandas", "Trajectory.to_pandas", "tables")
    return pandas.DataFrame(columns(trajectory), index=_index(pandas, trajectory))


def columns(trajectory):
    """Table columns by name, such as ``q.elbow``, one value per time and motion."""
    model, found = trajectory.model, {}
    variables = {
        "q": layout.positions(model),
        "qd": layout.velocities(model),
        "tau": layout.velocities(model),
        **{k: a for k, a in layout.actuators(model).items() if getattr(trajectory, k) is not None},
    }
    for name, entries in variables.items():
        array = getattr(trajectory, name)
        for k, variable in enumerate(entries):
            found[f"{name}.{variable.name}"] = array[..., k].ravel()
    return found | {name: getattr(trajectory, name).ravel() for name in _SCALARS}


def _index(pandas, trajectory):
    """Index of a pandas table: times, or times and motion numbers."""
    batch = trajectory.q.shape[1:-1]
    if not batch:
        return pandas.Index(trajectory.t, name="time")
    places = [grid.ravel() for grid in np.indices((len(trajectory.t), *batch))]
    names = ["time", *_batch_names(trajectory)]
    return pandas.MultiIndex.from_arrays([trajectory.t[places[0]], *places[1:]], names=names)


def _batch_names(trajectory):
    """Names of the batch axes as table columns: ``motion`` or ``motion_0``, ..."""
    count = trajectory.q.ndim - 2
    return ("motion",) if count == 1 else tuple(f"motion_{k}" for k in range(count))
