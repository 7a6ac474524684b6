"""Many copies of a world at once, each with its own numbers, state and memory of the solver."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.runtime.threads import threads
from kinetree.errors import ModelError, ShapeError
from kinetree.model import Model
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Sphere, Surface
from kinetree.spatial import Inertia, Plucker
from kinetree.worlds.stepping import Contacts, Report

if TYPE_CHECKING:
    from kinetree.worlds.world import World

_ALL = Surface(contype=-1, conaffinity=-1)
_LENGTHS = {
    Box: ("size",), Sphere: ("radius",), Cylinder: ("radius", "length"),
    Capsule: ("radius", "length"), Ellipsoid: ("radii",),
}  # fmt: skip


class Worlds:
    """Copies of a world that are stepped together, on all threads.

    Attributes:
        samples: the copies, each a ``World`` of its own.
    """

    def __init__(self, samples: "Sequence[World]"):
        self.samples = tuple(samples)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, k: int) -> "World":
        return self.samples[k]

    def __repr__(self):
        return f"<{len(self)} worlds {self.samples[0].name!r}; t = {self.time:.6g} s>"

    @property
    def model(self) -> Model:
        """The model of the first one."""
        return self.samples[0].model

    @property
    def time(self) -> float:
        """[s]."""
        return self.samples[0].time

    @property
    def q(self) -> np.ndarray:
        """Positions, (n, nq): a copy."""
        return np.array([world._whole.q for world in self.samples])

    @q.setter
    def q(self, q: ArrayLike):
        for world, x in zip(self.samples, self._rows("q", q, self.model.nq), strict=True):
            world.q = x

    @property
    def qd(self) -> np.ndarray:
        """Velocities, (n, nv): a copy."""
        return np.array([world._whole.qd for world in self.samples])

    @qd.setter
    def qd(self, qd: ArrayLike):
        for world, x in zip(self.samples, self._rows("qd", qd, self.model.nv), strict=True):
            world.qd = x

    def _rows(self, what, values, size):
        try:
            return np.broadcast_to(np.asarray(values, dtype=float), (len(self), size))
        except ValueError:
            raise ShapeError(
                f"{what} of {len(self)} worlds must be ({len(self)}, {size}) or ({size},), got "
                f"{np.shape(values)}"
            ) from None

    def step(
        self, n: int = 1, control: Any = None, *, tau: ArrayLike | Callable | None = None
    ) -> None:
        """Take ``n`` steps in all worlds.

        Args:
            n: how many.
            control: as in ``World.step``, with one row for each world, or the same for all; by
                part, ``{"left": u}``; or a function ``(t, q, qd)`` of the states of all worlds,
                called before every step.
            tau: joint forces, in the same ways.
        """
        if callable(control) or callable(tau):
            for _ in range(n):
                state = self.time, self.q, self.qd
                u = control(*state) if callable(control) else control
                self._together(1, u, tau(*state) if callable(tau) else tau)
        else:
            self._together(n, control, tau)

    def _together(self, n, control, tau):
        count = len(self)
        if isinstance(control, Mapping):
            rows = [{name: _row(u, k, count) for name, u in control.items()} for k in range(count)]
        else:
            rows = [_row(control, k, count) for k in range(count)]
        forces = [_row(tau, k, count) for k in range(count)]

        def run(numbers):
            for k in numbers:
                self.samples[k].step(n, rows[k], tau=forces[k])

        many = min(threads(), count)
        if many < 2:
            return run(range(count))
        with ThreadPoolExecutor(many) as pool:
            list(pool.map(run, [range(k, count, many) for k in range(many)]))

    def reset(self, which: ArrayLike | None = None, posture: Any = None) -> None:
        """Bring all worlds, or those of some numbers or a mask, back to their start."""
        numbers = np.arange(len(self)) if which is None else np.arange(len(self))[np.asarray(which)]
        for k in np.atleast_1d(numbers):
            self.samples[k].reset(posture)

    @property
    def state(self) -> tuple:
        """The states of all worlds."""
        return tuple(world.state for world in self.samples)

    def set_state(self, states: Sequence) -> None:
        """Go back to states of these worlds."""
        for world, state in zip(self.samples, states, strict=True):
            world.set_state(state)

    def contacts(self) -> tuple[Contacts, ...]:
        """The tables of contacts of all worlds."""
        return tuple(world.contacts() for world in self.samples)

    @property
    def reports(self) -> tuple[Report, ...]:
        """Of the last call of ``step``, of all worlds."""
        return tuple(world.report for world in self.samples)


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
    if not columns:
        return Worlds([world.copy() for _ in range(n)])
    return Worlds([world.with_model(_changed(world, columns, k)) for k in range(n)])


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
