"""Worlds in files: saved ones, and those of robot formats with several robots and objects."""

import inspect
import json
from pathlib import Path

import numpy as np

from kinetree.errors import LoadError
from kinetree.loaders.load import announced, read
from kinetree.model import Model
from kinetree.simulation.results.archives import Archive
from kinetree.spatial import Plucker
from kinetree.worlds.parts import tree_parts
from kinetree.worlds.pieces import PLACED, robot

FORMAT = "kinetree world 1"


def save(world, path) -> Path:
    """Write a world with its state; numbers keep all their digits."""
    path, state, model = Path(path), world.state, world.model
    start_q, start_qd = world.start
    about = {
        "format": FORMAT,
        "model": model.to_dict(),
        "parts": {name: list(world[name].numbers) for name in world},
        "timestep": world.timestep,
        "coefficients": world.coefficients,
        "settings": world.settings | {"tolerance": world.tolerance, "sleeping": world.sleeping},
        "joints": world.joints,
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
    with open(path, "wb") as file:
        np.savez(file, about=np.array(text), **arrays)
    return path


def load(cls, path):
    """The world that ``save`` wrote."""
    with Archive(path) as file:
        if "about" not in file:
            raise LoadError(f"{path}: this is not a file of World.save")
        about = json.loads(str(file["about"]))
        arrays = {name: file[name] for name in file.names if name != "about"}
    if about.get("format") != FORMAT:
        raise LoadError(f"{path}: expected format {FORMAT!r}, got {about.get('format')!r}")
    model, options = Model.from_dict(about["model"]), about["settings"] | about["coefficients"]
    joints = {"limits": about["joints"]["limits"], "joint_friction": about["joints"]["friction"]}
    world = cls(model.name, gravity=model.gravity, timestep=about["timestep"], **joints, **options)
    start = arrays["start_q"], arrays["start_qd"]
    fill(world, model, start, {name: tuple(x) for name, x in about["parts"].items()})
    memory = {k.removeprefix("memory."): x for k, x in arrays.items() if k.startswith("memory.")}
    state = {name: arrays[name] for name in ("q", "qd", "activation")}
    world.set_state(world.state._replace(time=float(arrays["time"]), memory=memory, **state))
    return world


def from_file(cls, path, options):
    """The world in a file of robots and objects."""
    own = inspect.signature(cls).parameters
    of_file = {k: options.pop(k) for k in list(options) if k in inspect.signature(read).parameters}
    posture = options.pop("posture", None)
    loaded = read(path, **of_file)
    notices = tuple(n for n in loaded.notices if n.effect not in ("setting", "picture"))
    model = announced(loaded._replace(notices=notices), stacklevel=4)
    timestep = loaded.settings.get("timestep", own["timestep"].default)
    given = {"name": model.name, "gravity": model.gravity, "timestep": timestep} | options
    world = cls(given.pop("name"), **given)
    names = [p.name for p in model.postures]
    posture = posture or next((name for name in PLACED if name in names), None)
    state = (model.neutral(), np.zeros(model.nv)) if posture is None else (posture, None)
    fixed = {g.name: () for g in model.geometry if g.body == 0 and g.name}
    fill(world, model, state, {**fixed, **tree_parts(model)})
    return world


def fill(world, model, state, parts):
    """Make a model the first piece of an empty world, with parts by the numbers of their bodies."""
    world._base = Model((), name=world.name, gravity=world.gravity, base_name=model.base_name)
    piece = robot(model.replace(name=world.name), world.name, Plucker.identity(), "", *state)
    world._pieces.append(piece)
    world._parts |= {name: (piece, inside) for name, inside in parts.items()}
