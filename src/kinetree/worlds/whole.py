"""A world that is put together: its model, scene, state and steps; and worlds in files."""

import inspect
import json
import warnings
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.errors import LoadError, ModelWarning, ShapeError, joined_class
from kinetree.files import write_with
from kinetree.loaders.load import announce, read
from kinetree.model import Model
from kinetree.model.arrays import as_reals
from kinetree.simulation.forces.actuators import TorqueSpeed
from kinetree.simulation.results.archives import Archive
from kinetree.simulation.results.state import State
from kinetree.spatial import Plucker
from kinetree.spelling import printable
from kinetree.worlds.carried import activation_of, reached, restored
from kinetree.worlds.options import corners_of, options_of
from kinetree.worlds.parts import Indices, tree_parts
from kinetree.worlds.pieces import PLACED, composed, robot
from kinetree.worlds.stepping import Steps
from kinetree.worlds.ties import with_ties

if TYPE_CHECKING:
    from kinetree.worlds.world import World

FORMAT = "kinetree world 1"


class Simulated(NamedTuple):
    """A world as ``kinetree.simulate`` and ``kinetree.rollout`` need it."""

    model: Model
    """The whole world."""
    state: State
    """Where it is; of a batch, positions and velocities of all."""
    timestep: float
    """[s]."""
    contact: TimeStepping
    """The contact model."""
    joints: dict[str, Any]
    """How dry friction and limits of joints are taken, and torque–speed curves of actuators."""
    give: Any = None
    """Gives the numbers of each world to an ``Machine``, of a batch that has some."""
    read: tuple = ()
    """Functions from joint forces and from controls by part to those of the whole world."""
    check: Any = None
    """Warns of what is wrong with the state, unless it was checked since it was set; or with
    positions (..., nq) that it is given."""
    parameters: Any = None
    """Parameters of the model that worlds have their own of, by name, (n, ...)."""
    memory_of: Any = None
    """Of a batch that was stepped, what steps have left in world ``k``: a function of ``k``."""

    def laws(self, friction: Any, limits: Any, motors: Any = None) -> dict[str, Any]:
        """Laws of joints in a call: those of the world where they are ``"auto"``, or no motors."""
        own = self.joints
        return {
            "friction": own["friction"] if _is_auto(friction) else friction,
            "limits": own["limits"] if _is_auto(limits) else limits,
            "motors": (own["motors"] or None) if motors is None else motors,
        }


def _is_auto(law):
    return isinstance(law, str) and law == "auto"


class Whole:
    """A world that is put together: its model, scene, state and steps."""

    def __init__(self, world: "World"):
        model, self.numbers = composed(world._base, world._pieces, world._pairs)
        self.model = with_ties(world, model)
        slices = self.model.q_slice, self.model.v_slice
        starts = [
            slice(x[r.start].start if len(r) else 0, x[r[-1]].stop if len(r) else 0)
            for r in self.numbers
            for x in slices
        ]
        self.slices = [(starts[k], starts[k + 1]) for k in range(0, len(starts), 2)]
        self.is_ahead = False  # the machine has a later state
        self._q = self.with_unit_quaternions(
            np.concatenate([np.zeros(0), *(p.q for p in world._pieces)])
        )
        self._qd = np.concatenate([np.zeros(0), *(p.qd for p in world._pieces)])
        self.carried, world._carried = world._carried, None
        self.pieces = tuple(world._pieces)
        self.activation = activation_of(self.model, self.carried)
        self.bodies = {name: i for i, name in enumerate(self.model.body_names) if i}
        self.ranges = dict(zip((id(p) for p in world._pieces), self.numbers, strict=True))
        self._world = world
        self.indices: dict[str, Indices] = {}  # of parts that were read

    def _state(self):
        if self.is_ahead:
            self.is_ahead = False
            self._q, self._qd = self.steps.current()
        return self._q, self._qd

    def current(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities to read from at once: the next step may write over them."""
        if self.is_ahead and not self.model.couplings:
            return self.steps.machine.view(0)
        return self._state()

    @property
    def q(self) -> np.ndarray:
        """Positions."""
        return self._state()[0]

    @q.setter
    def q(self, q: np.ndarray):
        self._state()
        self._q = q

    @property
    def qd(self) -> np.ndarray:
        """Velocities."""
        return self._state()[1]

    @qd.setter
    def qd(self, qd: np.ndarray):
        self._state()
        self._qd = qd

    @cached_property
    def scene(self) -> Scene:
        """Scene of the shapes that can touch."""
        with warnings.catch_warnings():
            empty = not any(g.body == 0 for g in self.model.geometry)  # nothing to fall through
            if empty or self._world._pairs:  # or what touches was chosen
                warnings.simplefilter("ignore", ModelWarning)
            return Scene(self.model, **self._world.coefficients)

    @cached_property
    def contact(self) -> TimeStepping:
        """The contact model."""
        settings: dict[str, Any] = {"tolerance": 1e-3 * self._world.tolerance, "flight": False}
        settings |= self._world.settings
        return TimeStepping(self.scene, **settings)

    @cached_property
    def steps(self) -> Steps:
        """Stepper of the world."""
        world = self._world
        solving = {"tolerance": world.tolerance, "sleeping": world.sleeping}
        new = Steps(self.model, self.contact, world.joints, solving, world.strict)
        if self.carried is not None and self.carried.counted is not None:
            b = new.machine.motions
            b.since[:], b.counts[:], warned, new.reported = self.carried.counted
            new.engine.parts.warned = warned
        if self.carried is not None and self.carried.rows:
            new.memory = restored(self.carried, self, new.engine)
            new.start.reached = reached(self.carried, self, new.engine)
        self.carried = None
        return new

    @cached_property
    def unit_parts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Numbers of joints with unit quaternions and where these are, (n,) and (n, length)."""
        model, found = self.model, {}
        for i in range(1, model.body_count + 1):
            at = model.q_slice[i]
            for part in model.joint[i].unit_parts:
                where = range(at.start, at.stop)[part]
                found.setdefault(len(where), []).append((i, where))
        return [
            (np.array([i for i, _ in of]), np.array([where for _, where in of]))
            for of in found.values()
        ]

    def with_unit_quaternions(self, q: np.ndarray) -> np.ndarray:
        """A copy of ``q``, whose quaternions may have any length but zero."""
        model, q = self.model, np.array(q, dtype=float)
        for joints, where in self.unit_parts:
            sizes = np.linalg.norm(q[..., where], axis=-1)
            if not sizes.all():
                name = model.joint_names[joints[int(np.argmin(sizes)) % len(joints)] - 1]
                raise ShapeError(
                    f"q of world {model.name!r} has a quaternion of length zero, which points "
                    f"nowhere, at joint {name!r}; no rotation is (1, 0, 0, 0)"
                )
            off = np.abs(sizes - 1) > 1e-12  # others keep their bits
            if off.any():
                q[..., where] /= np.where(off, sizes, 1.0)[..., None]
        return q

    def set(self, q, qd, *, activation=None):
        """Set the state, checked; quaternions are made unit."""
        for what, x, size in (("q", q, self.model.nq), ("qd", qd, self.model.nv)):
            x = as_reals(x, what)
            if x.shape != (size,) or not np.all(np.isfinite(x)):
                raise ShapeError(
                    f"{what} of world {self.model.name!r} must be {size} finite numbers, got shape "
                    f"{x.shape}"
                )
        self._world._require_rest("set its state")
        now, q = self.current()[0], self.with_unit_quaternions(q)
        if not np.array_equal(now, q):  # has to be checked
            if self.carried is not None:
                self.carried.is_reached = False
            if "steps" in self.__dict__:
                self.steps.checked, self.steps.start.reached = False, None
        self._q, self._qd, self.is_ahead = q, np.array(qd, dtype=float), False
        if activation is not None:
            self.activation = np.array(activation, dtype=float)


# --- files ---------------------------------------------------------------------------------------


def save(world, path) -> Path:
    """Write a world with its state; numbers keep all their digits."""
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
    """The world that ``save`` wrote; LoadError for whatever is wrong with the file."""
    try:
        return _loaded(cls, path)
    except LoadError:
        raise
    except FileNotFoundError as error:
        kind = joined_class(LoadError, FileNotFoundError)
        raise kind(f"{path}: there is no such file") from error
    except Exception as error:  # archives, and settings that no world has, raise anything
        why = printable(str(error)[:300]) or type(error).__name__
        raise LoadError(f"{path}: this is not a world of World.save ({why})") from error


def _loaded(cls, path):
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
    """Let the engine take a memory at once: a wrong one is the file's fault, not that of a step."""
    engine, key = whole.steps.engine, memory.get("key", np.zeros((0, 3), int))
    shapes = engine.tables.shapes.count
    if key.dtype.kind not in "iu" or key.ndim != 2 or key.shape[1] != 3:
        raise ValueError(f"contacts that are remembered as {key.dtype} of shape {key.shape}")
    if key.size and not (key.min() >= 0 and key[:, :2].max() < shapes):
        raise ValueError(f"it remembers contacts of shapes beyond its {shapes}")
    whole.steps.load(whole)


def from_file(cls, path, options):
    """The world in a file of robots and objects."""
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
    """Make a model the first piece of an empty world, with parts by the numbers of their bodies."""
    world._base = Model((), name=world.name, gravity=world.gravity, base_name=model.base_name)
    named = model if model.name == world.name else model.replace(name=world.name)
    at = Plucker.identity()
    piece = robot(named, world.name, at, "", *state, keep_overlaps=keep_overlaps)
    world._pieces.append(piece)
    world._parts |= {name: (piece, inside) for name, inside in parts.items()}
