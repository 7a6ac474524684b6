"""Many copies of a world at once, each with its own numbers, state and memory of the solver."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.engine.machine import Machine
from kinetree.errors import ShapeError, SimulationError, SimulationWarning, warn
from kinetree.model.arrays import check_finite
from kinetree.model.cameras import Camera
from kinetree.quantities.dynamics import forward_dynamics
from kinetree.rendering.cameras import render
from kinetree.simulation.sensors import Readings, sensors
from kinetree.worlds.contacts import Contacts, contact_rows, contacts_at, of_stored, without_forces
from kinetree.worlds.forces import WorldForces
from kinetree.worlds.inputs import by_part, hold
from kinetree.worlds.results import Report, report_of
from kinetree.worlds.samples import columns_of, inertias_of, sample_model, shape_arrays
from kinetree.worlds.starts import Faults

if TYPE_CHECKING:
    from kinetree.simulation.results.state import State
    from kinetree.worlds.device import DeviceWorlds
    from kinetree.worlds.whole import Simulated
    from kinetree.worlds.world import World


class Worlds:
    """Copies of a world that are stepped together, in one call of compiled code, on all threads.

    All share one model and the code of its steps; what differs are numbers in tables, the state,
    and the memory of the solver. ``worlds[k]`` is one of them as a separate ``World``. Results are
    bit-identical to those of single worlds, for any number of threads.
    """

    def __init__(self, world: "World", n: int, columns: Mapping[str, Mapping[str, np.ndarray]]):
        self.world, self.columns, self.model = world, columns, world.model
        self._start, self._steps = world.state, world._whole.steps
        self._is_checked = np.zeros(n, dtype=bool)
        self._of_start: dict[int, Faults] = {}  # by world where their shapes differ
        self._drives = drives = self._steps.drives
        own = bool({"mass", "size"} & {*columns})
        self._batch = Machine(lambda: self._steps.new_engine(own), n)
        self.activation = np.zeros((n, drives.states.size))
        self._control: Any = None
        self._is_warned = False  # of steps that cannot be trusted
        self._give(self._batch)
        self.set_state([self._start] * n)

    # Engines have the tables of the model until they have stepped a world: these are found first.

    @cached_property
    def _shapes(self):
        """Shape parameters (friction, restitution, sizes) of all worlds, (n, shapes, ...)."""
        return shape_arrays(self)

    @cached_property
    def _inertias(self):
        """Inertia parameters of all bodies in all worlds, (n, bodies, 10)."""
        return inertias_of(self)

    def _give(self, batch):
        """Write the worlds' individual parameters (shapes, inertias, gains) to a machine."""
        columns, drives = self.columns, self._drives
        if {"friction", "restitution", "size"} & {*columns}:
            batch.samples.give_shapes(self._shapes)
        if {"mass", "size"} & {*columns}:
            batch.samples.give_inertias(self._inertias)
        if "gains" in columns:
            factors = np.ones((len(self), drives.count))
            for name, values in columns["gains"].items():
                factors[:, self.world[name].actuators if name else slice(None)] *= values[:, None]
            batch.samples.give_gains(factors)

    def simulation_start(self) -> "Simulated":
        """Initial states, parameters and laws with which ``kinetree.rollout`` starts."""
        given: dict[str, Any] = {"check": self._check}
        given["give"] = self._give if self.columns else None
        if {"mass", "size"} & {*self.columns}:
            given["parameters"] = {"inertia": self._inertias}
        given["memory_of"] = self._batch.memory_of if self._batch.has_stepped else None
        own = self.world.simulation_start()
        state = {"time": self.time, "activation": self.activation, "memory": {}}
        return own._replace(state=own.state._replace(q=self.q, qd=self.qd, **state), **given)

    def __len__(self):
        return len(self._batch)

    def __getitem__(self, k: int) -> "World":
        k = range(len(self))[k]
        world = self.world.with_model(sample_model(self.world, self.columns, k))
        for what in ("friction", "restitution"):
            if "" in self.columns.get(what, ()):
                world.coefficients[what] = None
        world.set_state(self._state(k))
        return world

    def render(
        self,
        camera: str | Camera | None = None,
        what: str | Sequence[str] = "color",
        **options: Any,
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Camera image of every world, (n, rows, columns, ...), as ``World.render``.

        Args:
            camera: a ``Camera`` or the name of one of the worlds; by default the first one.
            what: as in ``World.render``.
            **options: as in ``World.render``.
        """
        if "size" not in self.columns:
            return render(self.model, self.q, camera, what, **options)
        found: list[Any] = [world.render(camera, what, **options) for world in self]
        if isinstance(what, str):
            return np.stack(found)
        return {kind: np.stack([images[kind] for images in found]) for kind in found[0]}

    def __repr__(self):
        failed = int(self.failed.sum())
        stopped = f", {failed} failed" if failed else ""
        return f"<{len(self)} worlds {self.world.name!r}; t = {self.time:.6g} s{stopped}>"

    @property
    def time(self) -> float:
        """Time of the first world [s]."""
        return float(self._batch.time[0])

    @property
    def times(self) -> np.ndarray:
        """Times of all worlds [s], (n,): a copy."""
        return self._batch.time.copy()

    @property
    def failed(self) -> np.ndarray:
        """Mask (n,) of worlds that stopped because their state became non-finite."""
        return self._batch.failed

    @property
    def q(self) -> np.ndarray:
        """Positions of all worlds, (n, nq): a copy."""
        return self._batch.q

    @q.setter
    def q(self, q: ArrayLike):
        """Set the positions of all worlds, (n, nq) or (nq,); quaternions are normalised."""
        q = self.world._whole.with_unit_quaternions(self._rows("q", q, self.model.nq))
        self._is_checked[np.any(q != self.q, axis=1)] = False
        self._batch.put(q, self.qd)

    @property
    def qd(self) -> np.ndarray:
        """Velocities of all worlds, (n, nv): a copy."""
        return self._batch.qd

    @qd.setter
    def qd(self, qd: ArrayLike):
        """Set the velocities of all worlds, (n, nv), or (nv,) for equal ones."""
        self._batch.put(self.q, self._rows("qd", qd, self.model.nv))

    def _rows(self, what, values, size):
        """``values`` as an array (n, size), one row per world; ShapeError if they do not fit."""
        try:
            rows = np.broadcast_to(np.asarray(values, dtype=float), (len(self), size))
        except ValueError:
            raise ShapeError(
                f"{what} of {len(self)} worlds must be ({len(self)}, {size}) or ({size},), got "
                f"{np.shape(values)}"
            ) from None
        return check_finite(rows, what)

    def step(
        self,
        n: int = 1,
        control: Any = None,
        *,
        tau: ArrayLike | Callable | None = None,
        forces: Any = None,
    ) -> None:
        """Take ``n`` steps in all worlds; worlds whose state becomes non-finite stop.

        A world whose state does not stay finite keeps its last one and is ``failed``; a warning
        names it, and the others continue.

        Args:
            n: how many.
            control: as in ``World.step``, with one row for each world, or the same for all; by
                part, ``{"left": u}``; or a function ``(t, q, qd)`` of the states of all worlds,
                called before every step.
            tau: joint forces, in the same ways.
            forces: external forces as in ``World.step``; those by name may have a row for each
                world, ``{"box": (n, 3)}``.
        """
        n = whole_number_of_steps(n)
        if n:
            self._check()
        self._batch.forget_counts()
        before, drives, tau = self.failed, self._drives, by_part(tau, self.world, len(self))
        external = WorldForces(self.model, forces, len(self))
        held = external.held and not (callable(control) or callable(tau))
        many, left = (n if held else 1), n
        while left:
            state = self.time, self.q, self.qd
            u = control(*state) if callable(control) else control
            force = tau(*state) if callable(tau) else tau
            u = None if u is None else drives.rows(u, self.world._actuators, len(self))
            force = None if force is None else self._rows("tau", force, self.model.nv)
            if external:
                more = np.broadcast_to(external.joint_forces(*state), (len(self), self.model.nv))
                force = more if force is None else force + more
            self._batch.push(external.give, external.wrenches(state[0]))
            self._take(many, u, force)
            left -= many
        self._judge(n)
        new = np.flatnonzero(self.failed & ~before)
        if new.size:
            warn(
                f"{new.size} of {len(self)} worlds {self.world.name!r} failed and were stopped: "
                f"world {new[0]}: {self._batch.why(new[0])}; forces or velocities are too large "
                f"for steps of {self.world.timestep:g} s. worlds.failed has them, "
                f"worlds.reset(worlds.failed) restarts them",
                SimulationWarning,
            )

    def _judge(self, n):
        """Warn, or raise an error if strict, of worlds with unreliable steps."""
        counts = self._batch.motions.counts[:, 1] * bool(n) * ~self.failed
        wrong = np.flatnonzero(counts)
        if not wrong.size or (self._is_warned and not self.world.strict):
            return
        message = (
            f"{wrong.size} of {len(self)} worlds {self.world.name!r} took steps of "
            f"{self.world.timestep:g} s that cannot be trusted: world {wrong[0]} took "
            f"{counts[wrong[0]]}"
        )
        if self.world.strict:
            raise SimulationError(f"{message}. Take shorter steps, or strict=False")
        self._is_warned = True
        warn(
            f"{message}. Further ones are counted: worlds.reports[k].unsolved, or strict=True "
            f"raises an error. Take shorter steps, or masses that differ less",
            SimulationWarning,
        )

    def _check(self, starts=None):
        """Check newly set states for overlaps, exceeded limits and open loops; warns of them.

        Or at ``starts``, positions of the worlds that they are not in.
        """
        if starts is not None:
            rows = self._rows("q0", starts, self.model.nq)
            found, find = self._steps.start, self._batch.find
            faults = {
                k: found.faults(self._batch.engine, find(k, x), x) for k, x in enumerate(rows)
            }
            found.check_batch(faults, len(self))
            return
        if self._is_checked.all():
            return
        new, q, b = np.flatnonzero(~self._is_checked), self.q, self._batch
        self._is_checked[:] = True
        again = np.all(q[new] == self._start.q, axis=1)
        q = self._close_loops(new, q)
        faults = {}
        for k, start in zip(new.tolist(), again.tolist(), strict=True):
            key = k if "size" in self.columns else 0
            known = self._of_start.get(key) if start else None
            if known is None:
                known = self._steps.start.faults(b.engine, b.find(k), q[k])
            if start:
                self._of_start[key] = known
            faults[k] = known
        self._steps.start.check_batch(faults, len(self))

    def _close_loops(self, new, q):
        """Close slightly open loops in the numbered worlds; returns all positions."""
        b, qd, closed = self._batch, self.qd, q.copy()
        for k in new:
            closed[k], qd[k] = self._steps.start.close_loops(b.engine, q[k], qd[k])
        if not np.array_equal(closed, q):
            b.put(closed, qd)
        return closed

    def _take(self, n, u, tau):
        """Take ``n`` steps in all worlds with constant controls and joint forces."""
        own = ()
        if {"mass", "size"} & {*self.columns}:
            own = (self._inertias.reshape(len(self), -1),)
        hold(self._batch, u, tau, self.activation, own)
        self._batch.advance(self.world.timestep, n)
        self._control = u

    @cached_property
    def _models(self):
        """Models of all worlds, with their individual parameters, for functions in Python."""
        return [sample_model(self.world, self.columns, k) for k in range(len(self))]

    def reset(self, which: ArrayLike | None = None) -> None:
        """Reset all worlds, or some by numbers or a mask, to the batch's initial state."""
        numbers = np.arange(len(self)) if which is None else np.arange(len(self))[np.asarray(which)]
        for k in np.atleast_1d(numbers):
            self._set(k, self._start)

    def _state(self, k) -> "State":
        """``State`` of world ``k``: time, positions, velocities, activations and memory."""
        b = self._batch
        return self._start._replace(
            time=float(b.time[k]),
            q=b.q[k],
            qd=b.qd[k],
            activation=self.activation[k].copy(),
            memory=b.memory_of(k),
        )

    def _set(self, k, state):
        """Set world ``k`` to a ``State``, solver memory included."""
        self._is_checked[k] = False
        self._batch.restore(k, state.q, state.qd, state.memory)
        self._batch.time[k], self.activation[k] = state.time, state.activation

    @property
    def state(self) -> "tuple[State, ...]":
        """``State`` of every world, a tuple."""
        return tuple(self._state(k) for k in range(len(self)))

    def set_state(self, states: "Sequence[State]") -> None:
        """Set every world to one of the given states."""
        for k, state in zip(range(len(self)), states, strict=True):
            self._set(k, state)

    def _touching(self, k):
        """Contacts of world ``k`` with forces, moments and slip velocities of the last step."""
        b = self._batch
        if b.motions.ends[k, 3]:
            return contact_rows(b.forces(k))
        return without_forces(self.model, b.q[k], b.qd[k], b.contacts(k))

    def contacts(self) -> tuple[Contacts, ...]:
        """``Contacts`` table of every world, a tuple."""
        return tuple(self._contacts_of(k) for k in range(len(self)))

    def _contacts_of(self, k):
        """``Contacts`` of world ``k``: of its last step, else detected at its state."""
        b, labels = self._batch, self._steps.labels
        if not b.motions.ends[k, 3]:
            return contacts_at(b.engine, b.contacts(k), b.q[k], b.qd[k], labels)
        return of_stored(*b.listed_contacts(k), labels)

    def read_sensors(self) -> Readings:
        """Readings of all sensors in all worlds by name, (n, ...) each."""
        b, found, q, qd = self._batch, sensors(self.model), self.q, self.qd
        kinds, still = {s.kind for s in found.values()}, b.motions.ends[:, 3] == 0
        qdd = (qd - b.before) / self.world.timestep
        if still.any():
            zero = np.zeros(self.model.nv)
            qdd[still] = forward_dynamics(self.model, q[still], qd[still], zero)
        given: dict[str, Any] = {"t": self.times, "qdd": qdd}
        if kinds & {"touch", "force", "torque"}:
            each = [self._touching(k) for k in range(len(self))]
            given["contacts"] = [x[0] for x in each]
            given["contact_forces"] = [x[1] for x in each]
        if self._drives.count:
            u = np.zeros(self._drives.count) if self._control is None else self._control
            given["controls"] = np.broadcast_to(u, (len(self), self._drives.count))
            if self._drives.states.size:
                given["activation"] = self.activation
        if not ({"mass", "size"} & {*self.columns} and kinds & {"force", "torque"}):
            return found(q, qd, **given)
        each = (  # forces between bodies depend on their masses
            sensors(model)(q[k], qd[k], **{x: y[k] for x, y in given.items()}).values
            for k, model in enumerate(self._models)
        )
        return Readings(found, np.array(list(each)))

    @property
    def reports(self) -> tuple[Report, ...]:
        """``Report`` of every world on the last call of ``step``, a tuple."""
        b, h, times = self._batch.motions, self.world.timestep, self.times.tolist()
        return tuple(report_of(b, k, t, h) for k, t in enumerate(times))


def whole_number_of_steps(n: Any) -> int:
    """``n`` as an int; ShapeError unless it is a nonnegative integer."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ShapeError(f"n must be an integer number of steps, got {n!r}")
    return int(n)


def batch(
    world: "World", n: int, given: Mapping[str, Any], device: Any = "cpu", arrays: str = "cupy"
) -> "Worlds | DeviceWorlds":
    """``Worlds`` of ``n`` copies of a world with individual parameters."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ShapeError(f"a batch needs an integer number of worlds, got {n!r}")
    columns = {what: columns_of(world, what, x, n) for what, x in given.items() if x is not None}
    world = world.copy()  # the original goes its own way
    sample_model(world, columns, 0)  # names what cannot be changed
    if device == "cpu":
        return Worlds(world, n, columns)
    from kinetree.worlds.device import DeviceWorlds, gpu_of

    return DeviceWorlds(world, n, columns, on=gpu_of(device), arrays=arrays)
