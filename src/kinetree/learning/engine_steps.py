"""Steps of the mechanics in an environment by the engine, which takes every scene, on the CPU.

A control step is then three calls: the task before the steps, the steps of all worlds in one native
call, as in a rollout, and the task after them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.settings import TimeStepping
from kinetree.contact.stepping.choice import joint_rows, tier_of_rollout
from kinetree.functional.parameters import parameter
from kinetree.learning.physics import Physics, physics_of
from kinetree.learning.step import FRICTION
from kinetree.quantities.actuators import activation_after
from kinetree.simulation.compatibility import refuse_conflicts
from kinetree.simulation.rollouts.engine_run import EngineRun
from kinetree.simulation.rollouts.inputs import (
    STATE,
    Given,
    RolloutArrays,
    names_of,
    with_activation,
)
from kinetree.simulation.rollouts.transition import Transition
from kinetree.simulation.setup import Setup

_MANY = 2**31  # steps of environments: enough for code that is specialised


@dataclass(frozen=True)
class EnginePhysics(Physics):
    """Facts that a ``ControlStep`` needs about steps of the engine."""

    setup: Setup | None = None
    """How the mechanism is stepped."""

    @property
    def is_rigid(self) -> bool:
        """Whether there is rigid contact: always with the engine."""
        return True

    def forces_of(self, force):
        """Contact forces [N], (contacts, 3), from the stored vector."""
        return np.asarray(force).reshape(-1, 3)


def engine_physics_of(setup: Setup, dt: float) -> EnginePhysics:
    """``EnginePhysics`` of a setup with rigid contact."""
    contact: Any = setup.contact
    scene = contact.scene
    names = () if scene.is_large or scene.open_pairs else scene.candidates.names
    given = {"dt": dt, "rows": 3 * len(names), "names": names, "servos": setup.servos}
    return EnginePhysics(setup.model, setup.field, setup.steps, None, setup=setup, **given)


def chosen_physics(setup: Setup, starts, dt, *, dtype, on_device) -> Physics:
    """``Physics`` of a setup: unrolled steps for small scenes, else steps of the engine.

    Arguments as of ``physics_of``. On a GPU there is no engine.
    """
    if isinstance(setup.contact, TimeStepping) and not on_device:
        refuse_conflicts(setup)
        if tier_of_rollout(setup.contact, setup.effects, setup.field, _MANY) == "general":
            return engine_physics_of(setup, dt)
    return physics_of(setup, starts, dt, dtype=dtype, on_device=on_device)


class Taken(NamedTuple):
    """Where steps of the mechanics have led, (worlds, ...) each."""

    after: dict[str, np.ndarray]
    """What they have changed of the state, by name."""
    before: tuple[np.ndarray, np.ndarray]
    """Positions and velocities before the last one."""
    wanted: np.ndarray
    """The action that the last one carried out."""
    error: np.ndarray
    """The largest error of a velocity at a contact [m/s]."""
    failed: np.ndarray
    """1 where the state did not stay finite."""


class EngineSteps:
    """Takes the steps of the mechanics of all worlds of an environment.

    Args:
        program: the ``ControlStep``, whose physics is an ``EnginePhysics``.
        worlds: how many.
    """

    def __init__(self, program, worlds):
        self.program, self.worlds, self.setup = program, worlds, program.physics.setup
        self._joints = joint_rows(self.setup.effects, self.setup.prescription)
        self._batch: Any = None
        self._transition: Any = None
        self._friction: Any = None  # of the shapes, as the scene has it

    def __call__(self, state, arguments, actions) -> Taken:
        """Take the steps of one control step.

        Args:
            state: arrays of all worlds by name, (worlds, ...).
            arguments: likewise, or the same of all worlds.
            actions: that are to be carried out, latest first, (worlds, history + 1, n).
        """
        step, n = self.program, self.worlds
        values = self._numbers(state, arguments)
        wanted = self._requested_actions(values, np.asarray(actions, dtype=float))
        run = self._run(self._step_inputs(values, wanted), values)
        marks = np.arange(step.decimation + 1)
        sizes = (self.setup.model.nq,), (self.setup.model.nv,), ()
        q, qd, work = (np.empty((len(marks), n, *size)) for size in sizes)
        q[0], qd[0], work[0] = values["q"], values["qd"], 0.0
        run.take(self._batch, marks, q, qd, work)
        after = {"q": q[-1], "qd": qd[-1]}
        if step.physics.rows:
            after["force"] = run.force[-1].reshape(n, -1)
        if step.physics.states:
            before = run.arrays.given[0].array[-1, :, :-1]  # the last step
            time = np.array(step.physics.dt)
            after["activation"] = activation_after(self.setup.model, wanted[-1], before, time)
        many = self._batch.motions
        return Taken(
            after,
            (q[-2], qd[-2]),
            wanted[-1],
            many.total[:n, 0].copy(),
            self._batch.failed[:n].astype(float),
        )

    def _numbers(self, state, arguments):
        """State and arguments of all worlds by name, as float64 arrays (worlds, ...)."""
        shapes = {**self.program.arguments, **self.program.shapes}
        return {
            name: np.broadcast_to(np.asarray(x, dtype=float), (self.worlds, *shapes[name]))
            for name, x in {**arguments, **state}.items()
        }

    def _requested_actions(self, values, actions):
        """Delayed actions that reach the joints in each step, (decimation, worlds, n)."""
        step = self.program
        late = values.get("delay", np.full(self.worlds, float(step.delay[1])))[:, None]
        found = []
        for k in range(step.decimation):
            now = actions[:, 0]
            for age in range(1, actions.shape[1]):
                now = np.where(k + (age - 1) * step.decimation < late, actions[:, age], now)
            found.append(now)
        return np.array(found)

    def _step_inputs(self, values, wanted):
        """Input arrays of the engine's steps, apart from activations, from the actions."""
        step, model, act = self.program, self.setup.model, self.program.kernels.get("act")
        size = wanted.shape[2:]
        if act is not None:
            names = [name for name in names_of(act) if name not in STATE]
            given = [
                Given("inputs", name, size, True, wanted)
                if name == "action"
                else Given("arguments", name, values[name].shape[1:], False, values[name])
                for name in names
            ]
        elif self.setup.servos is None:
            given = [Given("tau", "tau", size, True, wanted)]
        else:
            given = [Given("controls", "controls", size, True, wanted)]
        for name, value in step.parameters.items():
            if name != FRICTION:
                shape = parameter(model, name).shape
                given.append(Given("parameters", name, shape, False, values[value]))
        return tuple(given)

    def _run(self, given, values):
        """Results of one control step's mechanics, as a rollout of the engine."""
        step, setup = self.program, self.setup
        dt, contact = step.physics.dt, setup.contact
        time = values["steps"] * (dt * step.decimation)
        states = values["q"], values["qd"]
        arrays = RolloutArrays(*states, given, (self.worlds,), "float64", self.worlds)
        if step.physics.states:
            act = setup.servos, values["activation"]
            arrays = with_activation(arrays, setup.model, *act, time, dt)
        if self._transition is None:
            names = tuple(g.name for g in given if g.kind == "parameters")
            own = tuple(g.argument for g in arrays.given if g.kind != "parameters")
            act = step.kernels.get("act")
            self._transition = Transition(setup.model, setup.steps, setup.field, act, own, names)
        factor = step.parameters.get(FRICTION)
        give = None if factor is None else lambda b: self._give_friction(b, values[factor])
        run = EngineRun(
            self._transition, arrays, step.decimation, dt, time, contact, self._joints, give
        )
        if self._batch is None:
            self._batch = run.new_machine()
        begins = np.broadcast_to(values["steps"] == 0, (self.worlds,))
        if begins.any():  # by impulses of the episode before it would have other last digits
            self._batch.forget(begins)
        return run

    def _give_friction(self, batch, factor):
        """Multiply all shapes' friction coefficients by one factor per world."""
        if self._friction is None:
            self._friction = batch.engine.tables.shapes.friction.copy()
        table = np.tile(self._friction, (self.worlds, 1, 1))
        table[:, :, 0] *= factor[:, None]
        batch.samples.give_shapes({"friction": table})
