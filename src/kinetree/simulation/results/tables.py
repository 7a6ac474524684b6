"""A trajectory as a labelled dataset (xarray) or as a table (pandas)."""

import numpy as np

from kinetree.errors import need
from kinetree.functional import layout

_SCALARS = {"energy": "J", "work": "J", "loop_error": "m or rad"}
_NAMES = {
    "q": "joint positions",
    "qd": "joint velocities",
    "tau": "joint forces of the controller",
    "energy": "kinetic and potential energy",
    "work": "work of all joint forces since the start",
    "loop_error": "largest error of a loop or coupling",
    "controls": "controls of the actuators",
    "activation": "activations of the actuators",
}


def to_xarray(trajectory):
    """A dataset with dimensions ``time``, those of the batch, ``position`` and ``velocity``."""
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
        name: (("time", *batch, *last.get(name, ())), getattr(trajectory, name),
               {"long_name": words} | ({"units": _SCALARS[name]} if name in _SCALARS else {}))
        for name, words in _NAMES.items() if getattr(trajectory, name) is not None
    }  # fmt: skip
    coords = {
        "time": ("time", trajectory.t, {"units": "s"}),
        "position": [v.name for v in q],
        "velocity": [v.name for v in qd],
        "position_unit": ("position", units["position"]),
        "velocity_unit": ("velocity", units["velocity"]),
    }
    for name, actuators in layout.actuators(model).items():
        if name in data:
            coords[last[name][0]] = [a.name for a in actuators]
    return xarray.Dataset(data, coords=coords, attrs={"model": model.name})


def to_pandas(trajectory):
    """A table with a row for each time, and for each motion of a batch.

    Columns are ``q.elbow``, ``qd.elbow``, ``tau.elbow`` and so on, ``energy``, ``work`` and
    ``loop_error``; the index is the time, with the numbers of the batch after it.
    """
    pandas = need("pandas", "Trajectory.to_pandas", "tables")
    return pandas.DataFrame(columns(trajectory), index=_index(pandas, trajectory))


def columns(trajectory):
    """Columns by name, each with a number for every row."""
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
    batch = trajectory.q.shape[1:-1]
    if not batch:
        return pandas.Index(trajectory.t, name="time")
    places = [grid.ravel() for grid in np.indices((len(trajectory.t), *batch))]
    names = ["time", *_batch_names(trajectory)]
    return pandas.MultiIndex.from_arrays([trajectory.t[places[0]], *places[1:]], names=names)


def _batch_names(trajectory):
    count = trajectory.q.ndim - 2
    return ("motion",) if count == 1 else tuple(f"motion_{k}" for k in range(count))
