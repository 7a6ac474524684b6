"""The machine of one mechanism and scene on a GPU: ``n`` motions, a thread each."""

from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.contact.engine.advance import NOT_FINITE, Call
from kinetree.contact.engine.carrying import ROOM
from kinetree.contact.engine.device.image import Image
from kinetree.contact.engine.device.memory import Memories
from kinetree.contact.engine.machine import Machine
from kinetree.contact.engine.parts import FOUND_FULL, FULL, NO_INERTIA, WORK_FULL
from kinetree.errors import SimulationError

_REALS = (
    "row",
    "kept",
    "ended",
    "spot",
    "bent",
    "total",
    "since",
    "overlap",
    "last",
    "errors",
    "place",
)
_WHOLE = ("number", "key", "failed", "counts", "bare", "ends", "listed", "which")
_OF_CONTACTS = {"key": 3, "kept": 6, "ended": 3, "spot": 3, "bent": 3, "place": 18, "which": 5}
_SAMPLES = ("gain", "shape", "inertia", "body", "gravity", "joint", "level")
_FORGOTTEN = ("change", "last", "energy", "stop_kept", "dry_kept", "loop_kept", "loop_ended", "tau")
_ROOM = (FULL, WORK_FULL, FOUND_FULL, ROOM)


class DeviceMachine:
    """Motions of one model and scene, whose memories are on a device.

    Args:
        machine: of one motion, with the numbers and the state that all start with; it is not used
            by anybody else.
        samples: record of ``n`` motions with their own numbers, or None.
        n: number of motions.
        on: where they are computed, ``codegen.device.running.Gpu`` or ``Processor``.
    """

    memory: Any

    def __init__(self, machine: Machine, samples: Any, n: int, on: Any):
        self.template, self.engine, self._n, self._on = machine, machine.engine, n, on
        self._samples, self._pushed = samples, 4  # wrenches that there is room for
        machine.motions.lists = 1
        self._have_inputs()
        self._build()

    def __len__(self):
        return self._n

    # --- memories ----------------------------------------------------------------------------

    def _have_inputs(self):
        """Allocate input arrays for the largest held forces, controls and activations."""
        engine, x = self.engine, self.template.motions.inputs
        held = max(engine.tree.nv, engine.s.inputs_count, 1)
        x.held, x.timed = np.zeros(held), np.zeros(max(len(engine.drives.u), 1))
        x.activation = np.zeros(max(len(engine.drives.activation), 1))

    def _build(self):
        """Allocate the worlds' device memory with as much room as the engine has."""
        machine, engine = self.template, self.engine
        b, pushes = machine.motions, engine.pushes
        b.worlds = 1
        if b.room < engine.rows.groups_room:
            machine._have_room(engine.rows.groups_room)
        b.worlds = 2  # so that memory is in rows after a call, as in a batch
        count = self._pushed
        pushes.count, pushes.body = 0, np.zeros(count, dtype=np.int64)
        pushes.point, pushes.wrench = np.zeros((count, 3)), np.zeros((count, 6))
        pushes.turns = np.zeros(count, dtype=np.int64)
        b.inputs.push = np.zeros((count, 6))
        call = Call(parts=engine.parts, motions=b, worker=machine._worker)
        image = Image(call)
        self.memory = Memories(image, self._n, self._on)
        self._at = {name: image.words_of(b, name) for name in (*_REALS, *_WHOLE)}
        inputs, samples = b.inputs, b.samples
        self._inputs = {name: image.words_of(inputs, name) for name in inputs.types}
        self._numbers = {name: image.words_of(samples, name) for name in samples.types}
        self._pushes = {x: image.words_of(pushes, x) for x in ("count", "body", "point", "turns")}
        self._step = image.words_of(machine._worker, "step")
        self._give_samples()

    def _give_samples(self):
        """Write each motion's individual parameters to the device memory."""
        own, b = self._samples, self.template.motions.samples
        for name in _SAMPLES if own is not None else ():
            values = getattr(own, name)
            if values.size and getattr(b, name).size:
                self.memory.write(self._numbers[name], values.reshape(self._n, -1))

    def _more_room(self, code):
        """Enlarge the device memory after an overflow, keeping all motions' data."""
        kept = {name: self._get(name) for name in self._at}
        inputs: dict[str, Any] = {
            name: self.memory.read(at) if at.stop > at.start else None
            for name, at in self._inputs.items()
        }
        pushes = {name: self.memory.read(at) for name, at in self._pushes.items()}
        self.memory = None  # its words are free before others are made
        before = self.template.motions.room
        if code in (FULL, WORK_FULL, FOUND_FULL):
            self.engine._help(code)
        self._build()
        for name, values in kept.items():
            width = _OF_CONTACTS.get(name)
            at = self._at[name]
            if width:
                at = slice(at.start, at.start + before * width)
            self.memory.write(at, values, values.dtype)
        for name, values in inputs.items():
            at = self._inputs[name]
            if values is not None and at.stop - at.start == values.shape[1]:
                if name not in ("push", "held", "timed", "activation"):
                    continue
                self.memory.write(at, values)
        for name, values in pushes.items():
            first = self._pushes[name].start
            self.memory.write(slice(first, first + values.shape[1]), values)
        for name in ("h", "driven", "held_size", "timed_size", "states", "pushed"):
            self.memory.write(self._inputs[name], inputs[name][:1])

    # --- states ------------------------------------------------------------------------------

    def _get(self, name) -> Array:
        """Values of a field in all worlds, read from the device."""
        return self.memory.read(self._at[name], np.int64 if name in _WHOLE else np.float64)

    def _part(self, name) -> slice:
        """Slice of device words that holds a named part of each motion's row."""
        part, row = self.template._at[name], self._at
        where = row["number" if name in _INTEGERS else "row"].start
        if isinstance(part, int):
            return slice(where + part, where + part + 1)
        return slice(where + part.start, where + part.stop)

    @property
    def q(self) -> Array:
        """Positions of all joints, (n, nq): a copy."""
        return self.memory.read(self._part("q"))

    @property
    def v(self) -> Array:
        """Velocities of all joints, (n, nv): a copy."""
        return self.memory.read(self._part("v"))

    @property
    def time(self) -> Array:
        """Times of all motions [s], (n,): a copy."""
        return self.memory.read(self._part("time"))[:, 0]

    @property
    def failed(self) -> Array:
        """Mask of the motions that have stopped because their steps failed, (n,)."""
        return self._get("failed")[:, 0] != 0

    def get(self, name: str) -> Array:
        """Field of ``Motions`` of all motions, (n, ...), read from the device."""
        found = self._get(name)
        width = _OF_CONTACTS.get(name)
        return found.reshape(self._n, -1, width) if width else found

    def put(self, q: Array, v: Array) -> None:
        """Set positions and velocities of all motions; unchanged motions keep their memory."""
        xp = self._on.xp
        new = xp.any(self.q != q, axis=1) | xp.any(self.v != v, axis=1)
        which = xp.flatnonzero(new)
        if not len(which):
            return
        write, one = self.memory.write_some, [[0.0]]
        write(self._part("q"), which, q[which])
        write(self._part("v"), which, v[which])
        for name in ("change", "last"):
            write(self._part(name), which, self._zeros(name))
        for name in ("follows", "energy_known", "sleeps", "calm"):
            write(self._part(name), which, self._zeros(name), np.int64)
        write(self._at["failed"], which, one, np.int64)
        write(self._at["ends"], which, [[0] * 4], np.int64)
        write(self._at["overlap"], which, [[np.inf]])

    def _zeros(self, name):
        """Zero row (1, size) for a named part of the state."""
        part = self._part(name)
        return np.zeros((1, part.stop - part.start))

    def reset(self, which: Array) -> None:
        """Reset motions by number to the state and memory of the template."""
        b = self.template.motions
        for name, at in self._at.items():
            values = np.asarray(getattr(b, name)).reshape(1, -1)
            self.memory.write_some(at, which, values, values.dtype)

    def into(self, machine: Machine, k: int) -> None:
        """Copy motion ``k`` from the device into a CPU machine's only motion."""
        b = machine.motions
        while b.room < self.template.motions.room:
            machine._have_room(2 * b.room)
        words = self.memory.words[
            k // self.memory.words.shape[2], :, k % self.memory.words.shape[2]
        ]
        for name, at in self._at.items():
            found = words[at]
            found = found if isinstance(found, np.ndarray) else found.get()
            mine = getattr(b, name)
            values = np.ascontiguousarray(found).view(mine.dtype).reshape(-1, *mine.shape[1:])
            mine[: len(values)] = values
        machine._worker.loaded = 0

    # --- inputs ------------------------------------------------------------------------------

    def hold(
        self,
        timed: Array | None = None,
        held: Array | None = None,
        *,
        driven: bool = False,
        activation: Array | None = None,
    ) -> None:
        """Set the inputs of the next steps: timed and held joint forces or controls."""
        memory, at = self.memory, self._inputs
        for name, values in (("timed", None if timed is None else timed[0]), ("held", held)):
            size = 0 if values is None else values.shape[1]
            self._whole(at[f"{name}_size"], size)
            if size:
                first = at[name].start
                memory.write(slice(first, first + size), values)
        self._whole(at["driven"], int(driven))
        states = 0 if activation is None else activation.shape[1]
        self._whole(at["states"], states)
        if states:
            memory.write(slice(at["activation"].start, at["activation"].start + states), activation)

    @property
    def activation(self) -> Array:
        """Activations of all actuators in all motions, (n, m), read from the device."""
        return self.memory.read(self._inputs["activation"])

    def push(self, give: Any, wrenches: Array) -> None:
        """Set external wrenches (n, count, 6) that act on bodies in the next steps."""
        count = wrenches.shape[1]
        if count > self._pushed:
            self._pushed = count
            self._more_room(0)
        at, before = self._pushes, self.engine.pushes
        kept = {name: getattr(before, name) for name in ("body", "point", "wrench", "turns")}
        give(self.engine)
        for name, width in (("body", 1), ("point", 3), ("turns", 1)):
            values = np.asarray(getattr(self.engine.pushes, name)).reshape(1, -1)
            first = at[name].start
            if count:
                self.memory.write(slice(first, first + count * width), values, values.dtype)
        for name, values in kept.items():
            setattr(before, name, values)
        before.count = 0
        self._whole(at["count"], count)
        self._whole(self._inputs["pushed"], 1)
        first = self._inputs["push"].start
        if count:
            self.memory.write(slice(first, first + 6 * count), wrenches.reshape(len(wrenches), -1))

    def _whole(self, at, value):
        """Write one integer at the same word of all worlds."""
        self.memory.words[:, at.start] = value

    # --- steps -------------------------------------------------------------------------------

    def forget_counts(self) -> None:
        """Reset the residuals, work and counts of reports to zero in all worlds."""
        for name in ("total", "since", "counts"):
            self.memory.words[:, self._at[name]] = 0

    def advance(self, h: float, steps: int) -> None:
        """Take steps of ``h`` seconds in all motions; failed motions keep their last state."""
        self.memory.write(self._inputs["h"], [[h]])
        left: Any = np.array([steps])
        while True:
            codes = self.memory.take(left)
            least = int(codes.min())
            if least >= 0:
                return
            if least not in _ROOM and int(codes.max()) <= least:
                raise SimulationError(f"steps on a device ended by the code {least}")
            xp = self._on.xp
            step = self.memory.read(self._step, np.int64)[:, 0]
            left = xp.where(codes < 0, left - xp.maximum(step, 0), 0)
            for code in _ROOM:
                if bool((codes == code).any()):
                    self._more_room(code)

    def why(self, k: int) -> str:
        """Reason, as text, why motion ``k`` has stopped."""
        code = int(self._get("failed")[k, 0])
        if code == NO_INERTIA:
            return "a joint moves no inertia, or does not stay finite"
        assert code == NOT_FINITE
        return "its state does not stay finite"


_INTEGERS = ("follows", "energy_known", "known", "sleeps", "pile", "calm")
