"""Trajectories: what a simulation returns.

Between two stored times the motion is the cubic in local coordinates, ``q = integrate(q0, u)``,
that meets positions and velocities at both ends: it stays on the manifold, and its error is of
fourth order in the distance of the stored times for positions, and of third for velocities.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, warn
from kinetree.expr.repeat import repeat
from kinetree.functional import layout
from kinetree.functional.kernel import kernel, select
from kinetree.integration.manifold import is_flat, local_rate
from kinetree.model import Model
from kinetree.model.manifold import continue_state
from kinetree.notebook import block, curve, fold, line, show, table
from kinetree.quantities.dynamics import Forces
from kinetree.quantities.reactions import Part
from kinetree.simulation.forces.actuators import servos_of
from kinetree.simulation.later import Later
from kinetree.simulation.results import plotting, storage
from kinetree.simulation.results.observables import observe, reactions
from kinetree.simulation.results.state import State
from kinetree.spelling import OF_TRAJECTORIES, explains_methods, name_here

# Annotations of kernels are shapes:
# ruff: noqa: F821
# pyright: reportInvalidTypeForm=false


_TURNS = 40  # of the iteration for velocities, which gains a factor of |u|/2 each time


def resample(trajectory, times):
    """Trajectory interpolated at ``times`` [s]: a sorted array, or a spacing."""
    t, model = trajectory.t, trajectory.model
    times = _times(t, times)
    k = np.clip(np.searchsorted(t, times, side="right") - 1, 0, len(t) - 2)
    h = t[k + 1] - t[k]
    s = np.divide(times - t[k], h, out=np.zeros(len(times)), where=h > 0)
    batch = (slice(None), *(None,) * (trajectory.q.ndim - 2))
    q, qd = _between(  # pyright: ignore[reportAssignmentType]
        model,
        trajectory.q[k],
        trajectory.qd[k],
        trajectory.q[k + 1],
        trajectory.qd[k + 1],
        s[batch],
        h[batch],
    )
    held = np.where(s >= 1, k + 1, k)
    arrays = {"t": times, "q": q, "qd": qd, "tau": trajectory.tau[held]}
    linear = ["work", "loop_error"]
    if trajectory.controls is not None:
        arrays["controls"] = trajectory.controls[held]
        linear += ["tau"] if servos_of(model) is not None else []
        linear += ["activation"] if trajectory.activation is not None else []
    seen = observe(model, q, qd)
    arrays["energy"] = seen.kinetic + seen.gravity + seen.elastic
    for name in linear:
        a = getattr(trajectory, name)
        weight = s.reshape(-1, *(1,) * (a.ndim - 1))
        arrays[name] = (1 - weight) * a[k] + weight * a[k + 1]
    return replace(trajectory, end=None, **arrays)


@kernel
def _between(model, q, qd, q1: ("nq",), qd1: ("nv",), s: (), h: ()):
    """State at fraction ``s`` of a step, by the cubic Hermite polynomial on the manifold."""
    q1, qd1 = continue_state(model, q1, qd1, q)
    d = model.difference(q, q1)
    a, b = h * qd, h * local_rate(model, q, d, qd1, order=6)
    c2, c3 = 3 * d - 2 * a - b, a + b - 2 * d
    u = s * (a + s * (c2 + s * c3))
    rate = (a + s * (2 * c2 + 3 * s * c3)) / select(h > 0, h, 1)
    return model.integrate(q, u), _velocity(model, q, u, rate)


def _velocity(model, q, u, rate):
    """Velocity for given rates of local coordinates, by fixed-point iteration."""
    if is_flat(model):
        return rate
    return repeat(lambda qd: qd + rate - local_rate(model, q, u, qd, order=6), rate, _TURNS)


def _times(t, times):
    """Requested times as a sorted array; ShapeError if the trajectory does not cover them."""
    if np.ndim(times) == 0:
        step = float(times)
        if not step > 0:
            raise ShapeError(f"the distance of times must be positive, got {times!r}")
        times = t[0] + step * np.arange(int((t[-1] - t[0]) / step * (1 + 1e-12)) + 1)
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or np.any(np.diff(times) < 0):
        raise ShapeError(f"times must be a sorted array of one axis, got shape {times.shape}")
    if len(t) < 2:
        raise ShapeError("there is nothing between the times of a trajectory that has only one")
    slack = 1e-9 * (t[-1] - t[0])
    if len(times) and not (times[0] >= t[0] - slack and times[-1] <= t[-1] + slack):
        raise ShapeError(
            f"the motion is known from {t[0]:g} s to {t[-1]:g} s; requested were {times[0]:g} s to "
            f"{times[-1]:g} s"
        )
    return np.clip(times, t[0], t[-1])


# --- Parts of a trajectory: one joint, some of the times, one of many motions --------------------


class JointMotion(NamedTuple):
    """The motion of one joint; joints of one variable have no axis for it."""

    q: np.ndarray
    """Positions [m, rad], (T, ..., nq of the joint)."""
    qd: np.ndarray
    """Velocities, (T, ..., nv of the joint)."""
    tau: np.ndarray
    """Joint forces of the controller [N, N·m], (T, ..., nv of the joint)."""


def joint_motion(trajectory, name) -> JointMotion:
    """``JointMotion`` of a named joint; without force if it follows other joints."""
    model = trajectory.model
    i = model.joint_index(name)
    if any(c.joint == i for c in model.couplings):
        full = model.uncoupled
        q = model.expand(trajectory.q)[..., full.q_slice[i].start]
        qd = model.expand_velocity(trajectory.q, trajectory.qd)[..., full.v_slice[i].start]
        return JointMotion(q, qd, 0 * qd)

    def part(array, at):
        array = array[..., at]
        return array[..., 0] if array.shape[-1] == 1 else array

    return JointMotion(
        part(trajectory.q, model.q_slice[i]),
        part(trajectory.qd, model.v_slice[i]),
        part(trajectory.tau, model.v_slice[i]),
    )


def some_times(trajectory, which):
    """Trajectory at some of its times: a slice, a mask, or indices."""
    which = which if isinstance(which, slice) else np.atleast_1d(which)
    arrays = {name: array[which] for name, array in trajectory.arrays().items()}
    t = arrays["t"]
    within = tuple(e for e in trajectory.events if len(t) and t[0] <= e.t <= t[-1])
    contact = trajectory.contact and trajectory.contact.at(which)
    goes_on = len(t) > 0 and t[-1] == trajectory.t[-1]
    end = trajectory.end if goes_on else None
    return replace(trajectory, events=within, contact=contact, end=end, **arrays)


def one_of_many(trajectory, index):
    """Trajectory of one motion, or some, of a batch."""
    index = index if isinstance(index, tuple) else (index,)
    shape = trajectory.q.shape[1:-1]
    try:
        arrays = {
            name: array if name == "t" else array[(slice(None), *index)]
            for name, array in trajectory.arrays().items()
        }
    except IndexError:
        raise ShapeError(
            f"there is no motion {', '.join(map(str, index))} in a batch of shape {shape}"
        ) from None
    contact = trajectory.contact and trajectory.contact.at((slice(None), *index))
    events = _events_of(trajectory, index)
    return replace(trajectory, events=events, contact=contact, end=None, **arrays)


def _events_of(trajectory, index):
    """Events of the motions at ``index`` of a batch; slices keep all events."""
    if not all(isinstance(i, (int, np.integer)) for i in index):
        return trajectory.events
    place = tuple(range(n)[i] for n, i in zip(trajectory.q.shape[1:-1], index, strict=False))
    found = [e for e in trajectory.events if tuple(e.sample[: len(place)]) == place]
    return tuple(replace(e, sample=tuple(e.sample[len(place) :])) for e in found)


_LATER = ("tau", "energy", "loop_error", "report", "contact", "controls", "end")
"""Attributes that may be found when they are read."""


def _none() -> Any:
    """Default None for fields that are computed later."""
    return None


@explains_methods
@dataclass(frozen=True, repr=False)
class Trajectory:
    """A motion, as arrays with time first; batch axes, if any, come second.

    Attributes:
        model: the mechanism that moved.
        t: times [s], (T,).
        q: joint positions, (T, ..., nq).
        qd: joint velocities, (T, ..., nv).
        tau: joint forces of the controller during the step that begins at each time, (T, ..., nv);
            under ``controls`` those of the actuators at that time; of prescribed joints, what their
            drives exert at that time.
        energy: kinetic energy, and potential energy in the gravity field and in springs of the
            joints [J], (T, ...).
        work: of all joint forces since the start, those of springs included, so that it is the
            change of energy less that of the springs [J], (T, ...).
        loop_error: largest position error of a loop or coupling [m or rad], (T, ...).
        events: ``EventRecord`` s in order of time.
        report: checks of the result.
        contact: contact forces and residuals, a ``ContactHistory``, where there was contact.
        acted: the forces that acted, for ``reactions``; None in a trajectory from a file.
        controls: of the actuators during the step that begins at each time, (T, ..., n), where they
            were controlled; else None.
        activation: of the actuators that have one, (T, ..., m); or None.
        end: the ``State`` at the last time, where it is known; see ``state``.
    """

    model: Model
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    energy: np.ndarray
    work: np.ndarray
    loop_error: np.ndarray
    events: tuple = ()
    report: Any = field(default_factory=_none)
    contact: Any = field(default_factory=_none)
    acted: Any = field(default=None, compare=False)
    controls: np.ndarray | None = field(default_factory=_none)
    activation: np.ndarray | None = None
    end: Any = field(default_factory=_none, compare=False)

    def __post_init__(self):
        own = self.__dict__
        later = {name: own.pop(name) for name in _LATER if type(own[name]) is Later}
        if later:
            own["_later"] = later

    def __getattr__(self, name):
        later = self.__dict__.get("_later", ())
        if name not in later:
            here = name_here(name, OF_TRAJECTORIES)
            hint = f"; write {here}" if here else ""
            raise AttributeError(f"a Trajectory has no attribute {name!r}{hint}")
        found = self.__dict__[name] = later[name].find()
        return found

    @property
    def state(self) -> State:
        """``State`` at the last time, from which ``simulate`` can continue.

        To the bit, unless the motion comes from a file, from a batch or ends before its simulation
        did: then what steps leave for the next, such as contact forces, is not known.
        """
        if self.end is not None:
            return self.end
        last = None if self.activation is None else self.activation[-1]
        return State(
            float(self.t[-1]),
            self.q[-1].copy(),
            self.qd[-1].copy(),
            np.zeros(0) if last is None else last.copy(),
            {},
        )

    def __len__(self):
        return len(self.t)

    def __repr__(self):
        batch = f" of a batch of shape {self.q.shape[1:-1]}" if self.q.ndim > 2 else ""
        span = f", t = {self.t[0]:g} to {self.t[-1]:g} s" if len(self) else ""
        return f"<Trajectory of {self.model.name!r}: {len(self)} states{batch}{span}>"

    def _repr_html_(self):
        """HTML table of all variables with small curves, for notebooks."""
        rows, q, qd = [], layout.positions(self.model), layout.velocities(self.model)
        for variables, arrays in ((q, self.q), (qd, self.qd)):
            for k, v in enumerate(variables):
                x = arrays[..., k].reshape(len(self), -1)
                ends = (x[0], x[-1], x.min(), x.max()) if x.size else ()
                ends = [e.item() if np.size(e) == 1 else "" for e in ends] or [""] * 4
                rows.append((v.name, v.unit, *ends, curve(x[:, 0]) if x.size else ""))
        head = ("variable", "unit", "first", "last", "least", "largest", "over time")
        single, last = self.q.ndim == 2, f"; the last {self.events[-1]}" if self.events else ""
        return block(
            repr(self)[1:-1],
            show(self) if single and len(self) and self.model.body_count else "",
            fold("positions and velocities", table(head, rows), is_open=len(rows) < 20),
            "" if self.report is None else fold("report", self.report._repr_html_()),
            line(f"{len(self.events)} events{last}") if self.events else "",
        )

    def __getstate__(self):
        for name in self.__dict__.get("_later", ()):
            getattr(self, name)
        kept = {name: x for name, x in self.__dict__.items() if name != "_later"}
        return kept | {"acted": None}  # functions of the user's cannot be sent

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays of the trajectory by name, time first."""
        names = ("t", "q", "qd", "tau", "energy", "work", "loop_error", "controls", "activation")
        found = {name: getattr(self, name) for name in names}
        return {name: array for name, array in found.items() if array is not None}

    # --- parts --------------------------------------------------------------------------------

    def __getitem__(self, which):
        """The motion of a joint by its name, ``trajectory["elbow"].q``; or some of the times."""
        if isinstance(which, str):
            return joint_motion(self, which)
        return some_times(self, which)

    def motion(self, index: Any) -> "Trajectory":
        """Trajectory of one motion, or some, of a batch."""
        return one_of_many(self, index)

    def resample(self, times: ArrayLike) -> "Trajectory":
        """Trajectory interpolated at other times [s]: a sorted array, or a spacing.

        Between stored times it is a cubic on the manifold that meets positions and velocities at
        both ends. Controls and the controller's forces are those of the stored time before; those
        of servos, work and loop error are interpolated linearly.
        """
        return resample(self, times)

    def reactions(
        self,
        joint: str | None = None,
        *,
        part: Part = "total",
        frame: str = "joint",
        f_ext: Forces = None,
    ) -> np.ndarray:
        """Joint reaction wrenches at all times, (T, ..., joints, 6), as ``kt.joint_reactions``.

        Under all forces that acted: ``kt.ExternalForce`` pushes bodies, other ``forces`` count as
        joint forces. A trajectory from a file or a rollout does not hold those; then it was the
        controller, and the joints' own springs, dampers and friction.

        Args:
            joint: name of a single joint, for a result (T, ..., 6); all joints by default.
            part: ``"total"``, ``"bearing"`` or ``"drive"``.
            frame: coordinates of the result, as in ``kt.joint_reactions``.
            f_ext: further forces on bodies at each time, such as those of contacts.
        """
        return reactions(self, f_ext, joint=joint, part=part, frame=frame)

    # --- files, tables, pictures -----------------------------------------------------------------

    def to_xarray(self) -> Any:
        """Labelled ``xarray.Dataset`` of the trajectory."""
        return storage.to_xarray(self)

    def to_pandas(self) -> Any:
        """``pandas.DataFrame`` with one row per time and columns such as ``q.elbow``."""
        return storage.to_pandas(self)

    def save(self, path: str | Path) -> Path:
        """Write the trajectory to a file, in the format of its suffix; returns the path.

        ``.npz``, ``.parquet`` and ``.nc`` (NetCDF) hold the model, events and report as well;
        ``.csv`` is a table, ``.mcap`` a ROS 2 bag of joint states and transforms.
        """
        return storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> "Trajectory":
        """Trajectory read from a file of ``save``; ``model`` is needed for ``.csv``."""
        return storage.load(cls, path, model)

    def plot(self, *, joints: Sequence[str] | None = None) -> Any:
        """Matplotlib figure of positions, velocities, forces and energy over time."""
        return plotting.plot(self, joints=joints)

    def view(self, **options: Any) -> Any:
        """Deprecated; ``kinetree.view(trajectory, **options)`` shows the motion in the browser."""
        import kinetree  # the viewer is a higher layer, reached through the public interface

        message = "trajectory.view() is deprecated: use kinetree.view(trajectory)"
        warn(message, DeprecationWarning)
        return kinetree.view(self, **options)
