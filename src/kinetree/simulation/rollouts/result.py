"""Motions of a rollout, with what follows from them."""

from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from kinetree.algorithms.energy import elastic_energy
from kinetree.contact.history import ContactHistory
from kinetree.contact.soft.history import SoftHistory, soft_contacts
from kinetree.errors import (
    ModelWarning,
    warn,
)
from kinetree.functional.parameters import with_parameters
from kinetree.notebook import block, line, table
from kinetree.quantities import dynamics
from kinetree.quantities.actuators import activation_after
from kinetree.simulation.results.trajectory import Trajectory


class Rollout:
    """Motions of a batch of mechanisms.

    Attributes:
        model: the mechanism; of parameters that were given it has its own.
        batch: shape of the batch.
        t: times [s], (T,).
        q: joint positions, (T, ..., nq).
        qd: joint velocities, (T, ..., nv).
        work: of all joint forces since the start [J], (T, ...).
        integrator: name of the method that took the steps.
        tier: of the code that took them, see docs/tiers.md.
        contact_force: with rigid contact, mean forces of its contacts in the step that ended at
            each time, along normals and tangents [N], (T, ..., contacts, 3); None otherwise, and
            for scenes whose contacts have no closed forms: ``contact`` has theirs.
        residuals: with rigid contact, of all steps of each motion, (..., 10), in the order of
            ``contact.worst`` of a simulation; else None.
        failed: with rigid contact, (...,), motions that stopped being finite: they stay where they
            were; else None.

    Controls, activations, contacts, forces and energies are found from these when they are read, as
    a ``Trajectory`` has them.
    """

    def __init__(self, run, marks, q, qd, work):
        self._run, self._marks, self._flat = run, marks, (q, qd, work)
        self.model, self.batch = run.model, run.arrays.batch
        self.t, self.integrator = run.time(marks), run.transition.method.name
        self.tier = run.tier
        self.q, self.qd, self.work = map(self._reshape, (q, qd, work))
        self.contact_force, self.residuals, self.failed = run.notes(self._reshape)
        if self.failed is not None:
            self.integrator = "time_stepping"

    def __len__(self):
        return len(self.t)

    def __repr__(self):
        return (
            f"<Rollout of {self.model.name!r}: {len(self)} states of a batch of shape "
            f"{self.batch}, t = {self.t[0]:g} to {self.t[-1]:g} s>"
        )

    def _repr_html_(self):
        """HTML table of the rollout's arrays, for notebooks."""
        arrays = {"t": "times [s]", "q": "joint positions", "qd": "joint velocities",
                  "work": "of all joint forces since the start [J]"}  # fmt: skip
        rows = [(n, str(getattr(self, n).shape), what) for n, what in arrays.items()]
        about = line(f"integrator {self.integrator}, {self.tier} code")
        failed = 0 if self.failed is None else int(np.sum(self.failed))
        bad = line(f"{failed} motions stopped being finite") if failed else ""
        return block(repr(self)[1:-1], table(("array", "shape", "what"), rows), about, bad)

    def flat(self):
        """Arrays ``q``, ``qd`` and ``work`` with a single batch axis, reusable by ``out=``."""
        return self._flat

    @cached_property
    def tau(self) -> np.ndarray:
        """Joint forces of ``tau``, controller and drives in the step from each time, (T, ..., nv).

        Of prescribed joints: the forces of their drives at that time.
        At the end: in a step like the last.
        """
        control = getattr(self._run, "control", None)
        if control is not None:
            return control.call(self.t, self.q, self.qd)
        return self._of_states(self._run.transition.forces())

    @cached_property
    def controls(self) -> np.ndarray | None:
        """Actuator controls in the step from each time, (T, ..., n), or None."""
        if self._run.transition.field.actuators is None:
            return None
        return self._of_states(self._run.transition.of_controls())

    @cached_property
    def activation(self) -> np.ndarray | None:
        """Activations of the actuators that have one at all times, (T, ..., m), or None."""
        given = {g.kind: g for g in self._run.arrays.given}
        if "activation" not in given:
            return None
        model, act, controls = self.model, given["activation"], given["controls"]
        found = []
        for mark, t in zip(self._marks, self.t, strict=True):
            k = min(int(mark), max(self._run.steps - 1, 0))
            start, u = act.at(k), controls.at(k)
            since = np.asarray(t - start[..., -1], start.dtype)
            found.append(activation_after(model, u, start[..., :-1], since))
        return self._reshape(np.array(found))

    @cached_property
    def contact(self) -> ContactHistory | None:
        """History of contact and constraint forces at the stored times; None without contact.

        Residuals are those of the steps since the time before; of unrolled steps, see ``tier``,
        those of all steps, which stand at the last time. Forces of soft contact are those at each
        time.
        """
        found = self._run.history(self._reshape)
        softs = () if found is not None else soft_contacts(self._run.transition.field.forces)
        if not softs:
            return found
        kernel = self._run.transition.of_soft_contacts(softs)
        return SoftHistory(softs, lambda: self._each_of_states(kernel))

    @cached_property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential energy of gravity and springs [J], (T, ...)."""
        return self._of_states(self._run.transition.of_state("energy", _energy))

    def motion(self, index=()) -> Trajectory:
        """``Trajectory`` of one motion of the batch, with its individual model parameters."""
        n = np.arange(self._run.arrays.size).reshape(self.batch)[index]
        if np.ndim(n):
            raise IndexError(f"index {index!r} must name one sample of a batch {self.batch}")
        given = self._run.arrays.given
        values = {g.name: g.array[n] for g in given if g.kind == "parameters"}
        model = with_parameters(self.model, values) if values else self.model
        q, qd, work = (a[:, n].copy() for a in self._flat)
        at = (slice(None), *np.unravel_index(n, self.batch)) if self.batch else slice(None)
        tau, energy = self.tau[at], self.energy[at]
        return Trajectory(
            model, self.t, q, qd, tau, energy, work, np.zeros(len(self)), **self._more(at)
        )

    def _more(self, at):
        """Fields of a trajectory about actuators and contact, if there are any."""
        found: dict[str, Any] = {
            name: x[at]
            for name, x in (("controls", self.controls), ("activation", self.activation))
            if x is not None
        }
        if self.contact is not None:
            found["contact"] = self.contact.at(at)
            found["acted"] = self._acting_forces(at)
        return found

    def _acting_forces(self, at):
        """Stand-in for the stepper: field of forces, and notes of contact, of some motions."""
        run, field = self._run, self._run.transition.field
        acted = SimpleNamespace(notes=run, field=field)
        stateful = run.transition.stateful
        if stateful is not None:
            states = dict(zip(self.t.tolist(), self._reshape(run.memory)[at], strict=True))
            acted.field_at = lambda t: stateful.at(states[float(t)])
        return acted

    def trajectory(self) -> Trajectory:
        """``Trajectory`` of all motions with batch axes, for tables, files and plots.

        It has one model. Where samples have their own parameters, that is the nominal one, with a
        ``ModelWarning``; ``motion(index)`` has those of its sample.
        """
        own = [g.name for g in self._run.arrays.given if g.kind == "parameters"]
        if own:
            warn(
                f"the samples of this rollout differ in {', '.join(own)}, and a trajectory of all "
                f"of them has one model, {self.model.name!r} as it was given; "
                f"rollout.motion(index) has the parameters of its sample",
                ModelWarning,
            )
        names = ("t", "q", "qd", "tau", "energy", "work")
        arrays: dict[str, Any] = {
            name: np.array(getattr(self, name), dtype=float) for name in names
        }
        more = self._more(slice(None))
        return Trajectory(self.model, **arrays, loop_error=np.zeros(self.work.shape), **more)

    def save(self, path: str | Path) -> Path:
        """Write all motions to a file that ``Trajectory.load`` reads; returns the path."""
        return self.trajectory().save(path)

    def _of_states(self, kernel):
        """Result of a compiled function of states and inputs at all stored times."""
        if kernel.is_empty:
            lead, q = self._flat[0].shape[:2], self._flat[0]
            return self._reshape(np.zeros((*lead, *kernel.outputs[0].shape), q.dtype))
        (found,) = self._each_of_states(kernel)
        return found

    def _each_of_states(self, kernel):
        """All results of a compiled function of states and inputs at all stored times."""
        run, (q, qd, _) = self._run, self._flat
        last = max(run.steps - 1, 0)
        results = []
        for k, (mark, t, q_k, qd_k) in enumerate(zip(self._marks, self.t, q, qd, strict=True)):
            held = [g.at(min(int(mark), last)) for g in run.arrays.given]
            memory = [] if run.memory is None else [run.memory[k]]
            found = kernel.full(np.array(t, q.dtype), q_k, qd_k, *memory, *held)
            results.append(found if isinstance(found, tuple) else (found,))
        return tuple(self._reshape(np.array(x)) for x in zip(*results, strict=True))

    def _reshape(self, array):
        """Array (T, samples, ...) with the batch axes of the call."""
        return array.reshape((len(array), *self.batch, *array.shape[2:]))


def _energy(model, arrays, t, q, qd):
    """Kernel of the mechanical energy with springs [J]."""
    total = dynamics.kinetic_energy(model, q, qd) + dynamics.potential_energy(model, q)
    return (np.asarray(total + elastic_energy(model, q)),)
