"""Rollouts with rigid contact by the engine: one native call takes all steps of all worlds."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from kinetree.contact.engine.machine import Machine
from kinetree.contact.engine.making import (
    ForceSource,
    beside_actuators,
    compiled_forces,
    engine_of,
    has_actuators_in_tables,
    is_plain,
    smooth_laws,
    without_actuators,
)
from kinetree.contact.engine.parts import NO_INERTIA
from kinetree.contact.engine.renewal import idle_machines
from kinetree.contact.engine.stepper import columns_in
from kinetree.contact.history import ContactHistory, gather
from kinetree.contact.stepping.choice import joint_rows, tier_of_rollout
from kinetree.functional.parameters import with_parameters, with_some
from kinetree.integration.refusals import BAKED_PARAMETERS
from kinetree.simulation.rollouts.inputs import FRICTION
from kinetree.simulation.rollouts.run import Run, require_inertia
from kinetree.simulation.rollouts.transition import Transition


def run_by_engine(setup, arrays, called, give, memory_of=None):
    """``EngineRun`` of a rollout; None if specialised unrolled code is used instead.

    Args:
        setup: of the call.
        arrays: what goes in.
        called: names of these, controller and times: the ``Called`` of ``rollout``.
        give: gives a ``Machine`` the numbers of its worlds, or None.
        memory_of: function from the number of a motion to what steps have left there, or None.
    """
    model, effects, prescription = setup.model, setup.effects, setup.prescription
    joints = joint_rows(effects, prescription)
    unrolled = any(g.name == FRICTION for g in arrays.given)
    shared = prescription is not None or (joints.friction and joints.stiction[0])
    if shared:  # which the engine has once for all samples
        unrolled = unrolled or any(g.kind == "parameters" for g in arrays.given)
    only = "specialised" if unrolled else None
    if only is None and (give is not None or called.control is not None or not model.nv):
        only = "general"
    samples = max(called.steps, 1) * arrays.size
    if tier_of_rollout(setup.contact, effects, setup.field, samples, only=only) == "specialised":
        return None
    kernels = called.controller, called.arguments, called.parameters
    transition = Transition(model, setup.steps, setup.field, *kernels)
    times = called.steps, called.dt, called.t0
    run = EngineRun(transition, arrays, *times, setup.contact, joints, give)
    run.memory_of = memory_of
    run.control = called.control
    return run


@dataclass(frozen=True)
class _Packed(ForceSource):
    """Arguments of a step, packed: numbers and shapes of the arrays in ``order``."""

    transition: Any
    order: tuple
    tabled: bool = False
    """Whether the engine has the actuators as tables: then they exert nothing here."""

    def at(self, t, q, qd, inputs):
        """Field and its arguments at a state, unpacked from the engine's flat inputs."""
        rest, at = [None] * len(self.order), 0
        for k, shape in self.order:
            size = prod(shape)
            rest[k] = inputs[at : at + size].reshape(shape) if shape else inputs[at]
            at += size
        model, arrays = self.transition.with_parameters(rest)
        given = model, t, q, qd, self.transition.held_inputs(model, arrays, t, q, qd)
        field = self.transition.acting(model)
        if self.tabled:
            field = without_actuators(field)
        return field.for_steps, given


class EngineRun(Run):
    """A rollout with rigid contact by the engine, which serves every scene, on the CPU.

    One native call takes all steps of all worlds, in double precision.

    Args:
        transition: forces, controller and parameters.
        arrays: what goes in.
        steps, dt, t0: times.
        settings: ``TimeStepping``.
        joints: ends of travel and dry friction.
        give: gives an ``Machine`` the numbers of its worlds, or None.

    Attributes:
        control: controller that is no kernel, for compiled code to call, or None.
    """

    tier = "general"
    force: Any = None
    memory_of: Any = None
    control: Any = None

    def __init__(self, transition, arrays, steps, dt, t0, settings, joints, give=None):
        super().__init__(transition, arrays, steps, dt, t0)
        self.settings, self.joints, self.give = settings, joints, give
        given, field = arrays.given, transition.field
        self._timed, self._rest = ([g for g in given if g.timed is x] for x in (True, False))
        kinds = {g.kind for g in given} - {"parameters"}
        own = {name.partition(":")[0] for name in transition.parameters}
        bare = transition.controller is None and is_plain(beside_actuators(field))
        bare = bare and not own & {"damping", "stiffness"}  # of joints that may have none
        if smooth_laws(field) != (None, None) and len(kinds) < len({g.kind for g in given}):
            bare = False  # their numbers may depend on parameters
        self.driven = bare and "controls" in kinds and kinds <= {"controls", "activation"}
        self.plain = self.driven or (bare and field.actuators is None and kinds <= {"tau"})
        known = transition.controller is None and has_actuators_in_tables(field)
        self.tabled = known and not self.plain
        if self.tabled:
            self._put_controls_first()
        self.own = give is not None or bool(own)
        self.changes_tables = give is not None or not own <= {"mass", "inertia"}

    def _put_controls_first(self):
        """Order the input arrays so that controls and activations come first."""
        first = sorted((g for g in self.arrays.given if g.kind in _OF_ACTUATORS), key=_order)
        self._timed, self._rest = (
            [g for g in of if g.kind not in _OF_ACTUATORS] for of in (self._timed, self._rest)
        )
        at = self._timed if self._timed or any(g.timed for g in first) else self._rest
        at[:0] = first

    @cached_property
    def _made_of(self):
        """Key of the machine pool: machines of equal keys are interchangeable."""
        layout = tuple((g.name, g.shape, g.timed) for g in self.arrays.given)
        return (), (self.transition, layout, self.joints, self.settings, self.arrays.size)

    def new_machine(self) -> Machine:
        """New machine for rollouts like this one."""
        found = Machine(self._new_engine, max(self.arrays.size, 1))
        found.motions.lists = 0
        return found

    def _machine(self):
        """Machine of this run: an idle one of equal setup, or a new one."""
        if self.changes_tables:
            return self.new_machine()
        return idle_machines(self.scene).take(*self._made_of, self.new_machine)

    def _new_engine(self):
        """New engine with the forces of this rollout, in tables or compiled."""
        t, native = self.transition, {}
        if not self.plain:
            numbers = {id(g): k for k, g in enumerate(self.arrays.given)}
            order = tuple((numbers[id(g)], g.shape) for g in (*self._timed, *self._rest))
            size = max(sum(prod(shape) for _, shape in order), 1)
            packed = _Packed(t.model, t, order, self.tabled)
            acting = without_actuators(t.field) if self.tabled else t.field
            native = compiled_forces(packed, np.zeros(size), resists=acting.resists)
            native["reads"] = self.tabled
        shown = with_some(self.model, "armature", t.parameters)
        given = shown, self.settings, self.joints, t.field if self.plain else None
        native["prescription"] = t.field.prescription
        actuated = self.driven or self.tabled
        native["drive"] = t.field.drive if actuated else None
        return engine_of(*given, own=self.own, actuated=actuated, **native)

    @property
    def scene(self):
        """``Scene`` of the rollout's rigid contact."""
        return self.settings.scene

    @property
    def _activation(self):
        """Initial activations (n, m), or None if no actuator has any."""
        for g in self.arrays.given:
            if g.kind == "activation":  # and its time
                return np.array(g.array[0] if g.timed else g.array, dtype=float)[..., :-1].copy()
        return None

    @property
    def _levels(self):
        """Function from a model to its dry-friction levels; None without dry friction."""
        if not self.joints.friction:
            return None
        passive = self.transition.field.passive
        return lambda model: np.array(passive.exact_levels(model))[
            [i for i, _ in self.joints.friction]
        ]

    def fill(self, marks, q, qd, work, *, threaded=True):
        """Write states and work at the marked steps: (marks, samples, ...)."""
        q[0], qd[0], work[0] = self.arrays.q0, self.arrays.qd0, 0
        self.machine = self._machine()
        if not self.arrays.size or len(marks) < 2:
            return
        recorder = self.machine.record(self.arrays.batch)
        self.take(self.machine, marks, q, qd, work, recorder)
        self._failed = self.machine.motions.failed.copy()
        self._recorded = recorder.history(columns_in(self.scene), recorder.summary())()
        if not self.changes_tables:
            idle_machines(self.scene).give(*self._made_of, self.machine)
        if (self._failed == NO_INERTIA).any():
            require_inertia(self.model.spanning_tree)  # which the engine divides by

    def take(self, b, marks, q, qd, work, recorder=None):
        """Let a machine take all steps, storing states at the marked ones.

        Args:
            b: the ``Machine``.
            marks: numbers of the steps before which the state is stored.
            q: where positions are stored, (marks, samples, nq).
            qd: velocities, (marks, samples, nv).
            work: (marks, samples).
            recorder: of all else that is stored, or None where only forces of contacts are.
        """
        n = self.arrays.size
        if self.give is not None:
            self.give(b)
        own = {g.name: g.array for g in self.arrays.given if g.kind == "parameters"}
        if own:
            give_parameters(b, self.model, own, self._levels)
        q0, qd0 = self.arrays.q0.astype(float), self.arrays.qd0.astype(float)
        if self.memory_of is None:
            b.put(q0, qd0)
        else:
            b.start_from(q0, qd0, self.memory_of)
        b.time[:] = self.t0
        tree = b.engine.tree
        tabled = ("parameters", "activation") if self.plain else ()
        inputs, held = ([g for g in of if g.kind not in tabled] for of in (self._timed, self._rest))
        timed, rest = _flat(map(self._in_time, inputs), (self.steps, n)), _flat(held, (n,))
        if self.driven and rest is not None:
            timed, rest = rest[None], None
        activation, every = self._activation if self.driven else None, int(marks[1] - marks[0])
        if self.control is not None:
            rest = np.zeros((n, self.model.nv))
        b.hold(timed, rest, driven=self.driven, activation=activation)
        b.control(self.control)
        if recorder is None:
            out = [np.empty((len(marks), n, *x)) for x in ((tree.nq,), (tree.nv,), ())]
            b.store(every, *out)
        else:
            b.record_steps(every, self.steps, (self.t0, 0))
        self._have_columns(b, len(marks))
        b.run(self.dt, self.steps)
        if recorder is None:
            found = out[0][..., b.engine.of_q], out[1][..., b.engine.of_v], out[2]
        else:
            found = tuple(map(recorder.array, ("q", "v", "work")))
        for x, y in zip((q, qd, work), found, strict=True):
            x[1:] = y[1:].reshape(x[1:].shape)

    def _in_time(self, given):
        """Input array with a time axis, constant ones broadcast over all steps."""
        if given.timed:
            return given
        return replace(given, array=np.broadcast_to(given.array, (self.steps, *given.array.shape)))

    def _have_columns(self, b, times):
        """Enable storage of contact forces, if their names are known beforehand."""
        if not (self.scene.is_large or self.scene.open_pairs):
            names = self.scene.candidates.names
            self.force = np.zeros((times, self.arrays.size, len(names), 3))
            b.store_columns(names, self.force)

    def notes(self, shaped):
        """Contact forces (or None), residuals and failure flags of the rollout."""
        failed = shaped(self._failed[None, : self.arrays.size] != 0)[0]
        residuals = gather(self._recorded.residuals)
        return None if self.force is None else shaped(self.force), residuals, failed

    def history(self, shaped):
        """``ContactHistory`` of the rollout's contact and joint forces, and residuals."""
        found = self._recorded
        if self.force is None:
            return found
        names = self.scene.candidates.names
        return ContactHistory(names, shaped(self.force), found.joint_force, found.residuals)


_OF_ACTUATORS = ("controls", "activation")


def _order(given):
    """Rank of an input's kind in the engine's order: controls, then activations."""
    return _OF_ACTUATORS.index(given.kind)


def _flat(given, lead):
    """Input arrays concatenated to (*lead, size); None without any."""
    parts = [np.asarray(g.array, dtype=float).reshape(*lead, -1) for g in given]
    return np.concatenate(parts, axis=-1) if parts else None


def give_parameters(b, model, given, levels=None) -> None:
    """Write each world's model parameters, (n, ...) by name, to a machine.

    Args:
        b: the ``Machine``.
        model: as it is without them.
        given: arrays by name.
        levels: function from a model to levels of its rows of dry friction, or None.
    """
    numbers, n = b.engine.numbers, len(b)
    kinds = {name.partition(":")[0] for name in given}
    baked = model.gravity_compensation or (
        kinds - {"mass", "inertia", "gravity"}
        and (model.is_constrained or model.tendons or model.fluid_forces)
    )
    if not numbers or baked or (model.couplings and not kinds <= {"mass", "inertia"}):
        raise BAKED_PARAMETERS.of(
            f"parameters ({', '.join(given)}) of a rollout with rigid contact",
            f"model {model.name!r}",
        )
    if kinds <= {"mass", "inertia"}:
        table = np.tile(numbers["inertia"], (n, 1, 1))
        for name, values in given.items():
            kind, _, body = name.partition(":")
            if not body:
                table[:] = values
            elif kind == "inertia":
                table[:, model.body_index(body) - 1] = values
            else:
                row = table[:, model.body_index(body) - 1]
                row *= (values / row[:, 0])[:, None]
        b.samples.give_inertias(table)
    else:
        models = [
            with_parameters(model, {name: x[k] for name, x in given.items()}) for k in range(n)
        ]
        b.samples.give_models(models)
        if levels is not None:
            b.samples.give_levels([levels(x) for x in models])
