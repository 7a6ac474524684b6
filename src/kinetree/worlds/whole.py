"""A world that is put together: its model, scene, state and steps."""

import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.errors import ModelWarning, ShapeError
from kinetree.model import Model
from kinetree.model.arrays import as_reals
from kinetree.simulation.results.state import State
from kinetree.worlds.carried import activation_of, reached_faults, restore_memory
from kinetree.worlds.parts import Indices
from kinetree.worlds.pieces import compose
from kinetree.worlds.stepping import WorldSteps
from kinetree.worlds.ties import with_ties

if TYPE_CHECKING:
    from kinetree.worlds.core import WorldCore


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
        """Joint laws of a call: the world's where ``"auto"`` or, for motors, None."""
        own = self.joints
        return {
            "friction": own["friction"] if _is_auto(friction) else friction,
            "limits": own["limits"] if _is_auto(limits) else limits,
            "motors": (own["motors"] or None) if motors is None else motors,
        }


def _is_auto(law):
    """Whether a joint law is the string ``"auto"``."""
    return isinstance(law, str) and law == "auto"


class Whole:
    """A world that is put together: its model, scene, state and steps."""

    def __init__(self, world: "WorldCore"):
        model, self.numbers = compose(world._base, world._pieces, world._pairs)
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
        """Positions and velocities, fetched from the engine if it is ahead."""
        if self.is_ahead:
            self.is_ahead = False
            self._q, self._qd = self.steps.current()
        return self._q, self._qd

    def current(self) -> tuple[np.ndarray, np.ndarray]:
        """Views of positions and velocities for immediate use; the next step overwrites them."""
        if self.is_ahead and not self.model.couplings:
            return self.steps.machine.view(0)
        return self._state()

    @property
    def q(self) -> np.ndarray:
        """Positions of all parts, (nq,)."""
        return self._state()[0]

    @q.setter
    def q(self, q: np.ndarray):
        """Set the positions without checks."""
        self._state()
        self._q = q

    @property
    def qd(self) -> np.ndarray:
        """Velocities of all parts, (nv,)."""
        return self._state()[1]

    @qd.setter
    def qd(self, qd: np.ndarray):
        """Set the velocities without checks."""
        self._state()
        self._qd = qd

    @cached_property
    def scene(self) -> Scene:
        """``Scene`` of the shapes that may touch, by the world's contact rules."""
        with warnings.catch_warnings():
            empty = not any(g.body == 0 for g in self.model.geometry)  # nothing to fall through
            if empty or self._world._pairs:  # or what touches was chosen
                warnings.simplefilter("ignore", ModelWarning)
            return Scene(self.model, **self._world.coefficients)

    @cached_property
    def contact(self) -> TimeStepping:
        """``TimeStepping`` contact model with the world's settings."""
        settings: dict[str, Any] = {"tolerance": 1e-3 * self._world.tolerance, "flight": False}
        settings |= self._world.settings
        return TimeStepping(self.scene, **settings)

    @cached_property
    def steps(self) -> WorldSteps:
        """``WorldSteps`` that steps the assembled world."""
        world = self._world
        solving = {"tolerance": world.tolerance, "sleeping": world.sleeping}
        new = WorldSteps(self.model, self.contact, world.joints, solving, world.strict)
        if self.carried is not None and self.carried.counted is not None:
            b = new.machine.motions
            b.since[:], b.counts[:], warned, new.reported = self.carried.counted
            new.engine.parts.warned = warned
        if self.carried is not None and self.carried.rows:
            new.memory = restore_memory(self.carried, self, new.engine)
            new.start.reached = reached_faults(self.carried, self, new.engine)
        self.carried = None
        return new

    @cached_property
    def unit_parts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Joints with unit quaternions, and indices of these in ``q``, grouped by their length."""
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
        """Copy of ``q`` with normalised quaternions; ShapeError for zero ones."""
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
        """Set positions, velocities and activations after checks; normalises quaternions."""
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
