"""Results of a rollout: arrays with time first; forces and energies on demand."""

from functools import cached_property

import numpy as np

from kinetree.algorithms.energy import elastic_energy
from kinetree.functional.parameters import with_parameters
from kinetree.quantities import dynamics
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
    """

    def __init__(self, run, marks, q, qd, work):
        self._run, self._marks, self._flat = run, marks, (q, qd, work)
        self.model, self.batch = run.model, run.arrays.batch
        self.t, self.integrator = run.time(marks), run.transition.method.name
        self.q, self.qd, self.work = map(self._shaped, (q, qd, work))

    def __len__(self):
        return len(self.t)

    def __repr__(self):
        return (
            f"<Rollout of {self.model.name!r}: {len(self)} states of a batch of shape "
            f"{self.batch}, t = {self.t[0]:g} to {self.t[-1]:g} s>"
        )

    def flat(self):
        """``q``, ``qd`` and ``work`` with one batch axis, in memory that ``out=`` uses again."""
        return self._flat

    @cached_property
    def tau(self) -> np.ndarray:
        """``tau`` and the controller's forces in the step that begins at each time, (T, ..., nv).

        Of prescribed joints: the forces of their drives at that time.
        At the end: in a step like the last.
        """
        return self._of_states(self._run.transition.forces())

    @cached_property
    def energy(self) -> np.ndarray:
        """Kinetic energy, and potential energy of gravity and springs [J], (T, ...)."""
        return self._of_states(self._run.transition.of_state("energy", _energy))

    def motion(self, index=()) -> Trajectory:
        """One motion of the batch as a ``Trajectory``, of a model with its own parameters."""
        n = np.arange(self._run.arrays.size).reshape(self.batch)[index]
        if np.ndim(n):
            raise IndexError(f"index {index!r} must name one sample of a batch {self.batch}")
        given = self._run.arrays.given
        values = {g.name: g.array[n] for g in given if g.kind == "parameters"}
        model = with_parameters(self.model, values) if values else self.model
        q, qd, work = (a[:, n].copy() for a in self._flat)
        tau, energy = (x[(slice(None), *np.unravel_index(n, self.batch))] if self.batch else x
                       for x in (self.tau, self.energy))  # fmt: skip
        return Trajectory(model, self.t, q, qd, tau, energy, work, np.zeros(len(self)))

    def _of_states(self, kernel):
        """A compiled function of states and what is given, for all times."""
        run, (q, qd, _) = self._run, self._flat
        if kernel.is_empty:
            return self._shaped(np.zeros((*q.shape[:2], *kernel.outputs[0].shape), q.dtype))
        last = max(run.steps - 1, 0)
        results = []
        for mark, t, q_k, qd_k in zip(self._marks, self.t, q, qd, strict=True):
            held = [g.at(min(int(mark), last)) for g in run.arrays.given]
            results.append(kernel.general(np.array(t, q.dtype), q_k, qd_k, *held))
        return self._shaped(np.array(results))

    def _shaped(self, array):
        return array.reshape((len(array), *self.batch, *array.shape[2:]))


def _energy(model, arrays, t, q, qd):
    total = dynamics.kinetic_energy(model, q, qd) + dynamics.potential_energy(model, q)
    return (np.asarray(total + elastic_energy(model, q)),)
