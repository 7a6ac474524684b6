"""Many copies of a world at once, each with its own numbers, state and memory of the solver."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.runtime.threads import threads
from kinetree.contact.engine.engine import Memory
from kinetree.errors import ModelError, ShapeError
from kinetree.model import Model
from kinetree.model.arrays import check_finite
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Sphere, Surface
from kinetree.spatial import Inertia, Plucker
from kinetree.worlds.drives import Drives
from kinetree.worlds.stepping import Contacts, Report, Steps

if TYPE_CHECKING:
    from kinetree.worlds.world import State, World

_ALL = Surface(contype=-1, conaffinity=-1)
_LENGTHS = {
    Box: ("size",), Sphere: ("radius",), Cylinder: ("radius", "length"),
    Capsule: ("radius", "length"), Ellipsoid: ("radii",),
}  # fmt: skip


class Worlds:
    """Copies of a world that are stepped together, on all threads.

    All share one model and the code of its steps; what differs are numbers in tables, the state,
    and the memory of the solver. ``worlds[k]`` is one of them as a ``World`` of its own.
    """

    def __init__(self, world: "World", n: int, columns: Mapping[str, Mapping[str, np.ndarray]]):
        self.world, self.columns, self.model = world, columns, world.model
        self._start = world.state
        self._samples = [_Sample(self, k) for k in range(n)]
        self._team: list[Steps] = []
        self.set_state([self._start] * n)

    def __len__(self):
        return len(self._samples)

    def __getitem__(self, k: int) -> "World":
        range(len(self))[k]
        world = self.world.with_model(_changed(self.world, self.columns, k))
        for what in ("friction", "restitution"):
            if "" in self.columns.get(what, ()):
                world.coefficients[what] = None
        world.set_state(self.state[k])
        return world

    def __repr__(self):
        return f"<{len(self)} worlds {self.world.name!r}; t = {self.time:.6g} s>"

    @property
    def time(self) -> float:
        """Of the first world [s]."""
        return self._samples[0].time

    @property
    def q(self) -> np.ndarray:
        """Positions, (n, nq): a copy."""
        return np.array([sample.q for sample in self._samples])

    @q.setter
    def q(self, q: ArrayLike):
        for sample, x in zip(self._samples, self._rows("q", q, self.model.nq), strict=True):
            sample.q = np.array(x)

    @property
    def qd(self) -> np.ndarray:
        """Velocities, (n, nv): a copy."""
        return np.array([sample.qd for sample in self._samples])

    @qd.setter
    def qd(self, qd: ArrayLike):
        for sample, x in zip(self._samples, self._rows("qd", qd, self.model.nv), strict=True):
            sample.qd = np.array(x)

    def _rows(self, what, values, size):
        try:
            rows = np.broadcast_to(np.asarray(values, dtype=float), (len(self), size))
        except ValueError:
            raise ShapeError(
                f"{what} of {len(self)} worlds must be ({len(self)}, {size}) or ({size},), got "
                f"{np.shape(values)}"
            ) from None
        return check_finite(rows, what)

    def step(
        self, n: int = 1, control: Any = None, *, tau: ArrayLike | Callable | None = None,
        contacts: bool = False,
    ) -> None:  # fmt: skip
        """Take ``n`` steps in all worlds.

        Args:
            n: how many.
            control: as in ``World.step``, with one row for each world, or the same for all; by
                part, ``{"left": u}``; or a function ``(t, q, qd)`` of the states of all worlds,
                called before every step.
            tau: joint forces, in the same ways.
            contacts: whether to keep the tables of contacts of the last step, for ``contacts()``.
        """
        if callable(control) or callable(tau):
            for k in range(n):
                state = self.time, self.q, self.qd
                u = control(*state) if callable(control) else control
                force = tau(*state) if callable(tau) else tau
                self._together(1, u, force, contacts and k == n - 1)
        else:
            self._together(n, control, tau, contacts)

    def _together(self, n, control, tau, contacts):
        count, many = len(self), min(threads(), len(self))
        while len(self._team) < many:
            whole = self.world._whole
            world = self.world
            parts = self.model, whole.contact, world.joints, world.tolerance, world.sleeping
            self._team.append(Steps(*parts))
        h = self.world.timestep

        def run(first):
            for k in range(first, count, many):
                u = control
                if isinstance(control, Mapping):
                    u = {name: _row(x, k, count) for name, x in control.items()}
                elif control is not None:
                    u = _row(control, k, count)
                inputs = u, _row(tau, k, count)
                self._samples[k].advance(self._team[first], h, n, *inputs, keep=contacts)

        if many < 2:
            return run(0)
        with ThreadPoolExecutor(many) as pool:
            list(pool.map(run, range(many)))

    def reset(self, which: ArrayLike | None = None) -> None:
        """Bring all worlds, or those of some numbers or a mask, back to where the batch began."""
        numbers = np.arange(len(self)) if which is None else np.arange(len(self))[np.asarray(which)]
        for k in np.atleast_1d(numbers):
            self._samples[k].set(self._start)

    @property
    def state(self) -> "tuple[State, ...]":
        """The states of all worlds."""
        return tuple(
            self._start._replace(
                time=x.time, q=x.q.copy(), qd=x.qd.copy(), activation=x.activation.copy(),
                memory=x.saved(),
            )
            for x in self._samples
        )  # fmt: skip

    def set_state(self, states: "Sequence[State]") -> None:
        """Go back to states of these worlds."""
        for sample, state in zip(self._samples, states, strict=True):
            sample.set(state)

    def contacts(self) -> tuple[Contacts, ...]:
        """The tables of contacts of all worlds, after ``step(..., contacts=True)``."""
        found = tuple(sample.contacts for sample in self._samples)
        if any(table is None for table in found):
            raise ShapeError("tables of contacts are kept by step(..., contacts=True)")
        return found  # type: ignore[return-value]

    @property
    def reports(self) -> tuple[Report, ...]:
        """Of the last call of ``step``, of all worlds."""
        return tuple(sample.report for sample in self._samples)


class _Sample:
    """State and numbers of one world of a batch."""

    def __init__(self, worlds, k):
        self.worlds, self.k = worlds, k
        self.kernels: dict[int, Any] = {}
        self.report: Any = None
        self.contacts: Contacts | None = None
        self.steps: Any = None

    def set(self, state):
        """Take a state."""
        self.time, self.steps, self.contacts = state.time, None, None
        self.q, self.qd = np.array(state.q), np.array(state.qd)
        self.activation = np.array(state.activation)
        self.memory = Memory({name: np.array(x) for name, x in state.memory.items()})

    def saved(self):
        """Memory of the solver, for a ``State``."""
        engine = None if self.steps is None else self.steps.engine
        arrays = engine.saved() if engine and engine._current is self.memory else self.memory.arrays
        return {name: np.array(x) for name, x in arrays.items()}

    def advance(self, steps, h, n, control, tau, *, keep):
        """Take steps with an engine that others use as well."""
        engine, self.steps = steps.engine, steps
        for name, array in self._tables(engine).items():
            setattr(engine.tables.shapes, name, array)
        if "mass" in self.worlds.columns or "size" in self.worlds.columns:
            engine.parts.kernels = self._kernels(engine)
        engine.balance.known = engine.rows.follows = 0  # of another world
        steps.memory, steps.checked, steps.drives = self.memory, True, self._drives
        steps.advance(self, self.time, h, n, control, tau, self.worlds.world._actuators)
        self.report, self.time = steps.report(), self.time + n * h
        self.contacts = steps.contacts(self) if keep else None

    @cached_property
    def _model(self):
        return _changed(self.worlds.world, self.worlds.columns, self.k)

    def _kernels(self, engine):
        """The code of the terms, tied to the inertias of this world."""
        if id(engine) not in self.kernels:
            self.kernels[id(engine)] = engine.tied(self._model)
        return self.kernels[id(engine)]

    @cached_property
    def _drives(self):
        factors = np.ones(len(self.worlds.model.actuators))
        for name, values in self.worlds.columns.get("gains", {}).items():
            at = self.worlds.world[name].actuators if name else slice(None)
            factors[at] *= values[self.k]
        return Drives(self.worlds.model, factors)

    def _tables(self, engine):
        """Arrays of ``Shapes`` that differ from those of the world, by name."""
        if "_arrays" not in vars(self):
            self._arrays = _shape_arrays(self.worlds, engine, self.k)
        return self._arrays


def _shape_arrays(worlds, engine, k):
    """Friction, restitution and sizes of sample ``k`` in the tables of an engine."""
    tables = engine.tables
    original = worlds.__dict__.setdefault("_original", {})
    names = {
        "friction": ("friction",), "restitution": ("restitution",),
        "size": ("size", "radius", "box", "thin", "place"),
    }  # fmt: skip
    found = {}
    for what, fields in names.items():
        for field in fields if what in worlds.columns else ():
            first = original.setdefault(field, np.array(getattr(tables.shapes, field)))
            array = found[field] = np.array(first)
            for part, values in worlds.columns[what].items():
                own = _shapes_of(worlds, part)
                at = np.flatnonzero(np.isin(tables.numbers, own)) if part else slice(None)
                if what == "friction":
                    array[at, 0] = values[k]
                elif what == "restitution":
                    array[at] = values[k]
                elif field == "place":
                    array[at, 3::4] *= values[k]
                else:
                    array[at] *= values[k]
    return found


def _shapes_of(worlds, part):
    """Numbers of the shapes of a part in the model."""
    model = worlds.model
    bodies = {*worlds.world[part].numbers} if part else {*range(model.body_count + 1)}
    return [
        i for i, g in enumerate(model.geometry) if g.body in bodies or (part and g.name == part)
    ]


def _row(values, k, count):
    """What world ``k`` gets: its row, or the same as all."""
    if values is None or isinstance(values, str):
        return values
    values = np.asarray(values, dtype=float)
    if values.ndim < 2:
        return values
    if len(values) != count:
        raise ShapeError(f"{count} worlds need {count} rows of inputs, got shape {values.shape}")
    return values[k]


# --- numbers of each sample ----------------------------------------------------------------------


def batch(world: "World", n: int, given: Mapping[str, Any]) -> Worlds:
    """``n`` copies of a world with the given numbers; see ``World.batch``."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ShapeError(f"a batch needs a whole number of worlds, got {n!r}")
    columns = {what: _columns(world, what, x, n) for what, x in given.items() if x is not None}
    world = world.copy()  # the original may go its own way
    _changed(world, columns, 0)  # names what cannot be changed
    return Worlds(world, n, columns)


def _columns(world, what, given, n):
    """Values by part, (n,) each; "" stands for all parts."""
    if what == "mass" and not isinstance(given, Mapping):
        raise ModelError("mass of a batch must be given by part, such as {'box': masses}")
    named = given if isinstance(given, Mapping) else {"": given}
    found = {}
    for name, values in named.items():
        part = name and world[name].name
        values = np.asarray(values, dtype=float)
        if values.shape not in ((), (n,)) or not np.all(values >= 0):
            raise ShapeError(
                f"{what} of {name or 'a batch'!r} must be {n} numbers that are not negative, one "
                f"for each world, or one for all; got {given!r}"
            )
        found[part] = np.broadcast_to(values, (n,))
    return found


def _changed(world, columns, k) -> Model:
    """The model of sample ``k``."""
    model = world.model
    geometry, inertia = list(model.geometry), dict(enumerate(model.inertia))
    actuators = list(model.actuators)
    for what, by_part in columns.items():
        for name, values in by_part.items():
            x = float(values[k])
            bodies = {*range(model.body_count + 1)} if not name else {*world[name].numbers}
            own = [
                i for i, g in enumerate(geometry) if g.body in bodies or (name and g.name == name)
            ]
            if what in ("friction", "restitution"):
                for i in own:
                    surface = replace(geometry[i].surface or _ALL, **{what: x})
                    geometry[i] = replace(geometry[i], surface=surface)
            elif what == "mass":
                total = sum(float(inertia[i].mass) for i in bodies)
                inertia |= {i: _scaled(inertia[i], x / total) for i in bodies}
            elif what == "gains":
                numbers = world[name].actuators if name else range(len(actuators))
                for i in numbers:
                    a = actuators[i]
                    gain, bias = ([c * x for c in y] for y in (a.gain, a.bias))
                    actuators[i] = replace(a, gain=tuple(gain), bias=tuple(bias))
            else:
                for i in own:
                    geometry[i] = _grown(geometry[i], x)
                inertia |= {i: _grown_inertia(inertia[i], x) for i in bodies if i}
    named = {model.body_names[i]: I for i, I in inertia.items() if i and I is not model.inertia[i]}
    return model.replace(geometry=geometry, inertia=named, actuators=actuators)


def _scaled(I, factor):
    return Inertia(I.mass * factor, I.first_moment * factor, I.rotational * factor)


def _grown_inertia(I, factor):
    """Inertia of a body whose lengths grow by a factor; its mass stays."""
    return Inertia(I.mass, I.first_moment * factor, I.rotational * factor**2)


def _grown(g: Geometry, factor: float) -> Geometry:
    names = _LENGTHS.get(type(g.shape))
    if names is None:
        raise ModelError(
            f"size of a batch is for boxes, spheres, cylinders, capsules and ellipsoids; shape "
            f"{g.name!r} is a {type(g.shape).__name__}"
        )
    values = {name: getattr(g.shape, name) for name in names}
    grown = {
        name: tuple(x * factor for x in value) if isinstance(value, tuple) else value * factor
        for name, value in values.items()
    }
    placement = Plucker(g.placement.E, g.placement.r * factor)
    return replace(g, shape=replace(g.shape, **grown), placement=placement)
