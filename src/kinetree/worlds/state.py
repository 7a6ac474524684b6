"""Time and state of a world: reading, setting, and the start to which it returns."""

from collections.abc import Mapping

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import UnknownNameError
from kinetree.model.arrays import as_seconds
from kinetree.model.parts import Posture
from kinetree.simulation.results.state import State
from kinetree.worlds.core import WorldCore


class WorldState(WorldCore):
    """Time, positions, velocities and activations of a world, and what its solver remembers."""

    @property
    def time(self) -> float:
        """Simulated time since the start [s]."""
        return self._time

    @time.setter
    def time(self, t: float):
        """Set the simulated time [s]."""
        self._time = as_seconds(t, "time")

    @property
    def timestep(self) -> float:
        """Length of a step [s]."""
        return self._timestep

    @timestep.setter
    def timestep(self, h: float):
        """Set the length of a step [s]."""
        self._timestep = as_seconds(h, "timestep", least=0.0)

    @property
    def q(self) -> np.ndarray:
        """Positions of all parts, (nq,): a copy."""
        return self._whole.q.copy()

    @q.setter
    def q(self, q: ArrayLike):
        """Set the positions of all parts, (nq,); quaternions are normalised."""
        self._whole.set(q, self._whole.qd)

    @property
    def qd(self) -> np.ndarray:
        """Velocities of all parts, (nv,): a copy."""
        return self._whole.qd.copy()

    @qd.setter
    def qd(self, qd: ArrayLike):
        """Set the velocities of all parts, (nv,)."""
        self._whole.set(self._whole.q, qd)

    @property
    def activation(self) -> np.ndarray:
        """Activations of all actuators that have one, (m,): a copy."""
        return self._whole.activation.copy()

    @property
    def state(self) -> State:
        """``State`` of the world: time, positions, velocities, activations, solver memory."""
        whole = self._whole
        return State(
            self._time,
            whole.q.copy(),
            whole.qd.copy(),
            whole.activation.copy(),
            whole.steps.copy_memory(),
        )

    def set_state(self, state: State) -> None:
        """Set the world to a ``State`` of this world, or of one built in the same way."""
        if not isinstance(state, State):
            raise TypeError(f"set_state takes the state of a world, got {type(state).__name__}")
        whole = self._whole
        whole.set(state.q, state.qd, activation=state.activation)
        whole.steps.restore(state.memory)
        self._time = state.time

    def reset(self, posture: str | Posture | Mapping[str, str] | None = None) -> None:
        """Reset the world to its initial state, or to a posture, at time 0.

        Args:
            posture: name of a posture: parts that have one of that name take it, the others go to
                their start. Or names of postures by part.
        """
        whole, (q, qd) = self._whole, self.start
        activation = np.zeros(whole.activation.size)
        if posture is None:
            wanted = {}
        elif isinstance(posture, Mapping):
            wanted = {self[name]: self.model.posture(x) for name, x in posture.items()}
        else:
            name = posture if isinstance(posture, str) else posture.name
            wanted = {None: self.model.posture(name)}
        for part, p in wanted.items():
            at_q, at_v = (slice(None),) * 2 if part is None else (part.q_indices, part.v_indices)
            if part is not None and p.name not in part.postures:
                known = ", ".join(part.postures) or "none"
                raise UnknownNameError(f"{part.name!r} has no posture {p.name!r}; it has {known}")
            q[at_q], qd[at_v] = p.q[at_q], p.qd[at_v] if p.moves else 0.0
            activation = np.array(p.activation) if p.activation.size else activation
        whole.set(q, qd, activation=activation)
        whole.steps.forget()
        self._time = 0.0

    @property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial positions and velocities, to which ``reset`` returns."""
        states = [piece.start for piece in self._pieces]
        q, qd = ([x[k] for x in states] for k in (0, 1))
        return np.concatenate([np.zeros(0), *q]), np.concatenate([np.zeros(0), *qd])
