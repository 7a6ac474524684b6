"""Worlds in files: their own, and those of robots and objects."""

import inspect
import json
from math import isfinite
from pathlib import Path

import numpy as np

from kinetree.errors import LoadError, joined_class
from kinetree.files import write_with
from kinetree.loaders.load import announce, read
from kinetree.model import Model
from kinetree.simulation.forces.actuators import TorqueSpeed
from kinetree.simulation.results.archives import Archive
from kinetree.spatial import Plucker
from kinetree.spelling import printable
from kinetree.worlds.options import corners_of, options_of
from kinetree.worlds.parts import tree_parts
from kinetree.worlds.pieces import PLACED, robot

FORMAT = "kinetree world 1"


def save(world, path) -> Path:
    """Write a world with its state to an ``.npz`` file, at full precision."""
    path, state, model = Path(path), world.state, world.model
    if path.suffix.lower() != ".npz":
        raise LoadError(
            f"{path}: worlds are kept in files that end in .npz; for other programs, "
            f"kinetree.save(world.model, 'scene.xml') writes the model"
        )
    start_q, start_qd = world.start
    about = {
        "format": FORMAT,
        "model": model.to_dict(),
        "parts": {name: list(world[name].numbers) for name in world},
        "timestep": world.timestep,
        "coefficients": world.coefficients,
        "settings": world.settings
        | {"tolerance": world.tolerance, "sleeping": world.sleeping, "strict": world.strict},
        "joints": world.joints | {"motors": corners_of(world.joints["motors"])},
    }
    try:
        text = json.dumps(about)
    except TypeError as error:
        raise LoadError(
            f"world {world.name!r} has settings that a file cannot hold: {error}"
        ) from error
    arrays = {"time": np.array(state.time), "q": state.q, "qd": state.qd, "start_q": start_q,
              "start_qd": start_qd, "activation": state.activation}  # fmt: skip
    arrays |= {f"memory.{name}": x for name, x in state.memory.items()}
    return write_with(path, lambda file: np.savez(file, about=np.array(text), **arrays))


def load(cls, path):
    """World read from a file that ``save`` wrote; LoadError if the file is invalid."""
    try:
        return _read(cls, path)
    except LoadError:
        raise
    except FileNotFoundError as error:
        kind = joined_class(LoadError, FileNotFoundError)
        raise kind(f"{path}: there is no such file") from error
    except Exception as error:  # archives, and settings that no world has, raise anything
        why = printable(str(error)[:300]) or type(error).__name__
        raise LoadError(f"{path}: this is not a world of World.save ({why})") from error


def _read(cls, path):
    """World read from an ``.npz`` file, without translating errors."""
    with Archive(path) as file:
        if "about" not in file:
            raise LoadError(f"{path}: this is not a file of World.save")
        about = json.loads(str(file["about"]))
        arrays = {name: file[name] for name in file.names if name != "about"}
    if about.get("format") != FORMAT:
        raise LoadError(f"{path}: expected format {FORMAT!r}, got {about.get('format')!r}")
    model, options = Model.from_dict(about["model"]), about["settings"] | about["coefficients"]
    joints = options_of(about["joints"])
    joints["motors"] = {k: TorqueSpeed(**x) for k, x in joints.get("motors", {}).items()}
    world = cls(model.name, gravity=model.gravity, timestep=about["timestep"], **joints, **options)
    start = arrays["start_q"], arrays["start_qd"]
    fill(world, model, start, {name: tuple(x) for name, x in about["parts"].items()})
    memory = {k.removeprefix("memory."): x for k, x in arrays.items() if k.startswith("memory.")}
    state = {name: arrays[name] for name in ("q", "qd", "activation")}
    time = float(arrays["time"])
    if not isfinite(time):
        raise ValueError(f"its time is {time}")
    world.set_state(world.state._replace(time=time, memory=memory, **state))
    if memory and model.nv:
        _check_memory(world._whole, memory)
    return world


def _check_memory(whole, memory):
    """Raise ValueError if a file's solver memory does not fit the world."""
    engine, key = whole.steps.engine, memory.get("key", np.zeros((0, 3), int))
    shapes = engine.tables.shapes.count
    if key.dtype.kind not in "iu" or key.ndim != 2 or key.shape[1] != 3:
        raise ValueError(f"contacts that are remembered as {key.dtype} of shape {key.shape}")
    if key.size and not (key.min() >= 0 and key[:, :2].max() < shapes):
        raise ValueError(f"it remembers contacts of shapes beyond its {shapes}")
    whole.steps.load(whole)


def from_file(cls, path, options):
    """World with the robots and objects of a model file as parts."""
    own = inspect.signature(cls).parameters
    of_file = {k: options.pop(k) for k in list(options) if k in inspect.signature(read).parameters}
    posture, keep = options.pop("posture", None), options.pop("keep_overlaps", False)
    loaded = read(path, **of_file)
    notices = tuple(n for n in loaded.notices if n.effect not in ("setting", "picture"))
    model = announce(loaded._replace(notices=notices))
    timestep = loaded.settings.get("timestep", own["timestep"].default)
    given = {"name": model.name, "gravity": model.gravity, "timestep": timestep} | options
    world = cls(given.pop("name"), **given)
    names = [p.name for p in model.postures]
    posture = posture or next((name for name in PLACED if name in names), None)
    state = (model.neutral(), np.zeros(model.nv)) if posture is None else (posture, None)
    fixed = {g.name: () for g in model.geometry if g.body == 0 and g.name}
    fill(world, model, state, {**fixed, **tree_parts(model)}, keep_overlaps=keep)
    return world


def fill(world, model, state, parts, keep_overlaps=True):
    """Make a model the only piece of an empty world, with named parts by body numbers."""
    world._base = Model((), name=world.name, gravity=world.gravity, base_name=model.base_name)
    named = model if model.name == world.name else model.replace(name=world.name)
    at = Plucker.identity()
    piece = robot(named, world.name, at, "", *state, keep_overlaps=keep_overlaps)
    world._pieces.append(piece)
    world._parts |= {name: (piece, inside) for name, inside in parts.items()}
