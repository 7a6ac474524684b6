"""Many copies of a world on a GPU: states, controls and forces are arrays there."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike, kind_of
from kinetree.codegen.device.running import Gpu
from kinetree.contact.engine.device.machine import DeviceMachine
from kinetree.contact.engine.machine import Machine
from kinetree.contact.engine.samples import OwnNumbers
from kinetree.errors import DeviceError, ShapeError, SimulationError, SimulationWarning, need, warn
from kinetree.integration.refusals import DEVICE_FORCES
from kinetree.worlds.batch import Worlds, whole_number_of_steps
from kinetree.worlds.contacts import Contacts, of_stored
from kinetree.worlds.forces import WorldForces
from kinetree.worlds.results import Report, report_of

if TYPE_CHECKING:
    from kinetree.simulation.results.state import State
    from kinetree.worlds.world import World

LIBRARIES = ("cupy", "torch", "numpy")
"""What arrays of worlds on a device may be."""


class DeviceWorlds:
    """Copies of a world that are stepped together on a GPU, a thread each.

    The code is that of worlds on the CPU, in float64: results are those of ``world.batch(n)`` to
    the last bit, but for sines, logarithms and the like, which may differ in their last bits.
    ``worlds[k]`` is one of them as a separate ``World`` on the CPU, with the memory of its solver:
    it tells what there is no array for, such as names of contacts and readings of sensors.
    """

    def __init__(
        self,
        world: "World",
        n: int,
        columns: Mapping[str, Mapping[str, np.ndarray]],
        *,
        on: Any,
        arrays: str = "cupy",
    ):
        if arrays not in LIBRARIES:
            raise ShapeError(f"arrays must be one of {', '.join(LIBRARIES)}, got {arrays!r}")
        self.world, self.columns, self.model, self.arrays = world, columns, world.model, arrays
        self._on, self._n, self._steps = on, n, world._whole.steps
        self._drives, self._is_warned = self._steps.drives, False
        self._first = Worlds(world, 1, {x: _first(y) for x, y in columns.items()})
        self._first._check()
        own = bool({"mass", "size"} & {*columns})
        machine = Machine(lambda: self._steps.new_engine(own), 1)
        self._batch: Any = machine
        numbers = self._own_numbers(machine) if columns else None
        start = self._first._start
        machine.restore(0, start.q, start.qd, start.memory)
        machine.time[0] = start.time
        self._batch = DeviceMachine(machine, numbers, n, on)
        self._activation = np.tile(start.activation, (n, 1))

    def _own_numbers(self, machine):
        """Individual parameters of all worlds, for the device; ``machine`` gets world 0's."""
        numbers = OwnNumbers(machine.engine, self._n)
        Worlds._give(self, SimpleNamespace(samples=numbers))  # pyright: ignore[reportArgumentType]
        self._first._give(machine)
        return numbers.record

    _shapes, _inertias, render = Worlds._shapes, Worlds._inertias, Worlds.render

    def __len__(self):
        return self._n

    def __repr__(self):
        failed = int(self._batch.failed.sum())
        stopped = f", {failed} failed" if failed else ""
        time = float(self._batch.time[0])
        return f"<{self._n} worlds {self.world.name!r} on a GPU; t = {time:.6g} s{stopped}>"

    # --- arrays ------------------------------------------------------------------------------

    def _out(self, x):
        """Device array as an array of the caller's library (NumPy, CuPy or torch)."""
        if self.arrays == "numpy":
            return x if isinstance(x, np.ndarray) else x.get()
        if self.arrays == "torch" and not isinstance(x, np.ndarray):
            torch = need("torch", "worlds as tensors", "torch")
            return torch.from_dlpack(x)
        return x

    def _in(self, x, what, size) -> Any:
        """Caller's array as a device array, (n, size) or (1, size); ShapeError if it misfits."""
        xp = self._on.xp
        if kind_of(x) == "torch" and not x.is_cuda:
            x = x.numpy()
        x = xp.asarray(x, dtype=np.float64)
        if x.shape not in ((size,), (1, size), (self._n, size)):
            raise ShapeError(
                f"{what} of {self._n} worlds must be ({self._n}, {size}) or ({size},), got "
                f"{x.shape}"
            )
        if not bool(xp.isfinite(x).all()):
            raise ShapeError(f"{what} of {self._n} worlds must be finite")
        return x.reshape(-1, size)

    @property
    def q(self) -> Array:
        """Positions of all worlds, (n, nq): a copy; assignable."""
        return self._out(self._batch.q[:, self._of_q])

    @q.setter
    def q(self, q: ArrayLike):
        """Set the positions of all worlds, (n, nq) or (nq,)."""
        self._set(self._in(q, "q", self.model.nq), None)

    @property
    def qd(self) -> Array:
        """Velocities of all worlds, (n, nv): a copy; assignable."""
        return self._out(self._batch.v[:, self._of_v])

    @qd.setter
    def qd(self, qd: ArrayLike):
        """Set the velocities of all worlds, (n, nv) or (nv,)."""
        self._set(None, self._in(qd, "qd", self.model.nv))

    @property
    def _of_q(self):
        """Indices of the independent position variables among all, on the device."""
        return self._on.xp.asarray(self._batch.engine.of_q)

    @property
    def _of_v(self):
        """Indices of the independent velocity variables among all, on the device."""
        return self._on.xp.asarray(self._batch.engine.of_v)

    def _set(self, q, qd):
        """Set positions, velocities or both; normalises quaternions and updates couplings."""
        xp, n = self._on.xp, self._n
        q = self._batch.q[:, self._of_q] if q is None else xp.broadcast_to(q, (n, q.shape[1]))
        qd = self._batch.v[:, self._of_v] if qd is None else xp.broadcast_to(qd, (n, qd.shape[1]))
        for _, where in self.world._whole.unit_parts:
            sizes = xp.sqrt((q[:, where] ** 2).sum(axis=-1))
            if not bool(sizes.all()):
                raise ShapeError("q has a quaternion of length zero, which points nowhere")
            off, q = xp.abs(sizes - 1) > 1e-12, q.copy()  # others keep their bits
            q[:, where] /= xp.where(off, sizes, 1.0)[..., None]
        engine = self._batch.engine
        if self.model.couplings:
            q, qd = (x if isinstance(x, np.ndarray) else x.get() for x in (q, qd))
            both = [engine._full(x, y) for x, y in zip(q, qd, strict=True)]
            q, qd = (xp.asarray(np.array(x)) for x in zip(*both, strict=True))
        self._batch.put(q, qd)

    @property
    def times(self) -> Array:
        """Times of all worlds [s], (n,): a copy."""
        return self._out(self._batch.time)

    @property
    def time(self) -> float:
        """Time of the first world [s]."""
        return float(self._batch.time[0])

    @property
    def failed(self) -> Array:
        """Mask (n,) of worlds that stopped because their state became non-finite."""
        return self._out(self._batch.failed)

    @property
    def residuals(self) -> Array:
        """Residuals over the last call of ``step``, (n, 12): ``Residuals``, work and gain [J]."""
        return self._out(self._batch.get("since"))

    @property
    def activation(self) -> Array:
        """Activations of the actuators that have one, (n, m): a copy."""
        return self._out(self._on.xp.asarray(self._activation))

    # --- steps -------------------------------------------------------------------------------

    def step(
        self,
        n: int = 1,
        control: ArrayLike | None = None,
        *,
        tau: ArrayLike | None = None,
        forces: Any = None,
    ) -> None:
        """Take ``n`` steps in all worlds; worlds whose state becomes non-finite stop.

        Args:
            n: how many.
            control: of the actuators, (n, m) or (m,), or by part as on the CPU; arrays of NumPy,
                CuPy or torch. Functions of the state are called by the caller, step by step.
            tau: joint forces, (n, nv) or (nv,).
            forces: wrenches by name of a body or frame, (3,) or (6,), or with a row for each world.
        """
        count = whole_number_of_steps(n)
        batch = self._batch
        batch.forget_counts()
        if not count:
            return
        before = batch.failed
        self._hold(control, tau)
        external = WorldForces(self.model, forces, self._n)
        if not external.held:
            raise DEVICE_FORCES.of("worlds on a GPU", "forces that are functions")
        batch.push(external.give, external.wrenches(0.0))
        batch.advance(self.world.timestep, count)
        if self._drives.states.size:
            self._activation = batch.activation[:, : self._drives.states.size]
        self._judge(before)

    def _hold(self, control, tau):
        """Set controls and joint forces of all worlds for the next steps."""
        xp, engine, n = self._on.xp, self._batch.engine, self._n
        u = None
        if control is not None:
            drives = self._drives
            if not drives.count or isinstance(control, Mapping):
                control = drives.rows(control, self.world._actuators, n)
            u = self._in(control, "control", drives.count)
        force = None if tau is None else self._in(tau, "tau", self.model.nv)
        held = None
        if engine.s.inputs_count:
            own = xp.zeros((n, self.model.nv)) if force is None else force
            parts = [xp.broadcast_to(own, (n, self.model.nv))]
            if {"mass", "size"} & {*self.columns}:
                parts.append(xp.asarray(self._inertias.reshape(n, -1)))
            held = xp.concatenate(parts, axis=1)
        elif force is not None:
            held = xp.zeros((len(force), engine.tree.nv))
            held[:, self._of_v] = force
        states = xp.asarray(self._activation) if self._drives.states.size else None
        timed = None if u is None else u[None]
        self._batch.hold(timed, held, driven=u is not None, activation=states)

    def _judge(self, before):
        """Warn of worlds that have failed, and once of worlds with unreliable steps."""
        xp, batch, name = self._on.xp, self._batch, self.world.name
        new = xp.flatnonzero(batch.failed & ~before)
        if len(new):
            k = int(new[0])
            warn(
                f"{len(new)} of {self._n} worlds {name!r} failed and were stopped: world {k}: "
                f"{batch.why(k)}; forces or velocities are too large for steps of "
                f"{self.world.timestep:g} s. worlds.reset(worlds.failed) restarts them",
                SimulationWarning,
            )
        counts = batch.get("counts")[:, 1] * ~batch.failed
        wrong = int((counts > 0).sum())
        if not wrong or (self._is_warned and not self.world.strict):
            return
        message = (
            f"{wrong} of {self._n} worlds {name!r} took steps of {self.world.timestep:g} s that "
            f"cannot be trusted"
        )
        if self.world.strict:
            raise SimulationError(f"{message}. Take shorter steps, or strict=False")
        self._is_warned = True
        warn(
            f"{message}. Further ones are counted: worlds.reports[k].unsolved, or strict=True "
            f"raises an error. Take shorter steps, or masses that differ less",
            SimulationWarning,
        )

    def reset(self, which: ArrayLike | None = None) -> None:
        """Reset all worlds, or some by numbers or a mask, to the batch's initial state."""
        xp = self._on.xp
        numbers = xp.arange(self._n)
        if which is not None:
            numbers = xp.atleast_1d(numbers[xp.asarray(which)])
        if not len(numbers):
            return
        self._batch.reset(numbers)
        if self._drives.states.size:
            activation = xp.array(self._activation)
            activation[numbers] = xp.asarray(self._first._start.activation)
            self._activation = activation

    # --- one of them -------------------------------------------------------------------------

    def _state(self, k) -> "State":
        """``State`` of world ``k`` with its solver memory, copied from the device."""
        self._batch.into(self._first._batch, k)
        state = self._first._state(0)
        activation = self._activation[k]
        activation = activation if isinstance(activation, np.ndarray) else activation.get()
        return state._replace(activation=activation.copy())

    def __getitem__(self, k: int) -> "World":
        from kinetree.worlds.samples import sample_model

        k = range(self._n)[k]
        world = self.world.with_model(sample_model(self.world, self.columns, k))
        for what in ("friction", "restitution"):
            if "" in self.columns.get(what, ()):
                world.coefficients[what] = None
        world.set_state(self._state(k))
        return world

    def contacts(self, k: int) -> Contacts:
        """``Contacts`` table of world ``k`` in its last step."""
        self._batch.into(self._first._batch, range(self._n)[k])
        b = self._first._batch.motions
        count = int(b.listed[0])
        return of_stored(b.place[:count], b.which[:count], self._steps.labels)

    @property
    def reports(self) -> tuple[Report, ...]:
        """``Report`` of every world on the last call of ``step``, a tuple."""
        names = ("since", "counts", "ends", "errors")
        found = {x: self._batch.get(x) for x in names}
        found = {x: y if isinstance(y, np.ndarray) else y.get() for x, y in found.items()}
        times, h = self._batch.time.tolist(), self.world.timestep
        return tuple(report_of(SimpleNamespace(**found), k, t, h) for k, t in enumerate(times))


def _first(columns):
    """First row (1, ...) of every column of parameters, by name."""
    return {name: values[:1] for name, values in columns.items()}


def gpu_of(device: Any) -> Gpu:
    """GPU selected by a device name such as ``"cuda"`` or ``"cuda:1"``."""
    kind, _, number = str(device).partition(":")
    if kind != "cuda" or not (number or "0").isdigit():
        raise DeviceError(f"device must be 'cpu', 'cuda' or 'cuda:1', got {device!r}")
    on = Gpu()
    count = on.devices
    if int(number or 0) >= count:
        raise DeviceError(
            f"there {'is' if count == 1 else 'are'} {count} CUDA devices, got {device!r}"
        )
    on.use(int(number or 0))
    return on
