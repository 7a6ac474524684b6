"""``sensors``: the sensors of a model as a table of named readings.

s = kt.sensors(model)             # names, kinds, what they are of, units
r = s(q, qd, qdd)                 # all readings, batched: r["imu"] and r.values
r = s(trajectory)                 # along a motion, time first
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact import Contacts, Scene
from kinetree.errors import ContactError, ModelError
from kinetree.model import Model, Sensor
from kinetree.model.arrays import as_model
from kinetree.model.memo import remember
from kinetree.model.names import number_of
from kinetree.model.sensors import KINDS, size_of
from kinetree.quantities.actuators import needs_of, sensor_readings
from kinetree.quantities.dynamics import Forces
from kinetree.quantities.external_forces import external_forces
from kinetree.simulation import contact_sensors
from kinetree.simulation.results.observables import accelerations
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.simulation.rollouts.result import Rollout
from kinetree.spelling import explains


@explains
def sensors(model: Model, only: Sequence[Sensor | str] | None = None) -> "Sensors":
    """``Sensors`` of a model, or of some of its sensors, to read from states.

    Args:
        model: the mechanism.
        only: some of its sensors by name, or others, ``Sensor`` objects; all it has by default.
    """
    as_model(model)
    if only is None:
        return remember(model, ("sensors",), lambda: Sensors(model))
    names = [s.name for s in model.sensors]
    chosen = [
        model.sensors[number_of(s, names, "a sensor", "model")] if isinstance(s, str) else s
        for s in only
    ]
    return Sensors(model.replace(sensors=chosen))


class Sensors(Mapping[str, Sensor]):
    """The sensors of a model by name; call it for their readings.

    Attributes:
        model: the mechanism, with these sensors.
    """

    def __init__(self, model: Model):
        self.model = model
        self._by_name = {s.name: s for s in model.sensors}
        self._kernels: dict = {}  # by what is given
        ends = np.cumsum([0, *(size_of(model, s) for s in model.sensors)]).tolist()
        self._at = {s.name: slice(*ends[k : k + 2]) for k, s in enumerate(model.sensors)}

    def __getitem__(self, name: str) -> Sensor:
        where = f"model {self.model.name!r}"
        return self.model.sensors[number_of(name, self.names, "a sensor", where)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self):
        return len(self._by_name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sensors, in order."""
        return tuple(self._by_name)

    @property
    def size(self) -> int:
        """Total number of values of all readings."""
        return max((at.stop for at in self._at.values()), default=0)

    def at(self, name: str) -> slice:
        """Slice of a sensor's reading in the vector of all readings."""
        return self._at[self[name].name]

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of every reading by sensor name; "" for directions and quaternions."""
        return {name: _unit(self.model, s) for name, s in self._by_name.items()}

    def __call__(
        self,
        q: "ArrayLike | Trajectory",
        qd: ArrayLike | None = None,
        qdd: ArrayLike | None = None,
        *,
        tau: ArrayLike | None = None,
        f_ext: Forces = None,
        controls: ArrayLike | None = None,
        activation: ArrayLike | None = None,
        t: ArrayLike | None = None,
        contacts: Contacts | list[Contacts] | None = None,
        contact_forces: ArrayLike | list | None = None,
        scene: Scene | None = None,
    ) -> "Readings":
        """Readings of a state, of many, or along a motion.

        Args:
            q: joint positions [m, rad], (..., nq); or a ``Trajectory`` or ``Rollout``, which says
                all the rest.
            qd: joint velocities [m/s, rad/s], (..., nv), where a sensor depends on them.
            qdd: joint accelerations [m/s², rad/s²], (..., nv), where a sensor depends on them.
            tau: joint forces that cause them, in place of ``qdd``, as in ``forward_dynamics``; with
                loops and sensors of forces, beside them.
            f_ext: forces acting on bodies, as in ``inverse_dynamics``.
            controls: of the actuators, (..., n); without ``qdd`` and ``tau`` they drive the
                mechanism, against its passive forces.
            activation: of the actuators that have one, in their order; zero by default.
            t: time [s], for clocks.
            contacts: where bodies touch in a single state, for sensors of touch and of forces; of
                several states a list, one for each.
            contact_forces: of these contacts along normal and tangents [N], (n, 3); or a list.
            scene: of a trajectory from a file, what could touch; others know theirs.
        """
        given = {"qd": qd, "qdd": qdd, "tau": tau, "f_ext": f_ext, "t": t}
        given |= {"controls": controls, "activation": activation}
        touching = None
        q = q.trajectory() if isinstance(q, Rollout) else q
        if isinstance(q, Trajectory):
            others = (*given.values(), contacts, contact_forces)
            if any(x is not None for x in others):
                raise ModelError("a trajectory says all that sensors depend on; give nothing else")
            q, given, touching = self._along(q, scene)
        elif contacts is not None and contact_forces is not None:
            several = isinstance(contacts, list)
            pairs = (
                zip(contacts, contact_forces, strict=True)
                if several
                else [(contacts, contact_forces)]
            )
            touching = [contact_sensors.check_forces(*pair) for pair in pairs]
            given["f_ext"] = self._with_contacts(
                touching, np.shape(q)[:-1] if several else (), f_ext
            )
        return Readings(self, self._values(q, given, touching))

    def _along(self, motion, scene):
        """Arguments for reading along a trajectory, and its contacts."""
        needs, batch = needs_of(self.model.sensors), motion.qd.ndim - 2
        given: dict[str, Any] = {"qd": motion.qd}
        if "t" in needs:
            given["t"] = motion.t.reshape(-1, *[1] * batch)
        if motion.controls is not None:
            given |= {"controls": motion.controls, "activation": motion.activation}
        if "qdd" in needs:
            given["qdd"] = accelerations(motion)
        touching = None
        kinds = {s.kind for s in self.model.sensors}
        if motion.contact is not None and kinds & {"touch", "force", "torque"}:
            touching = contact_sensors.contacts_along(motion, scene)
            if kinds & {"force", "torque"}:
                given["f_ext"] = self._with_contacts(touching, motion.q.shape[:-1], None)
        return motion.q, given, touching

    def _with_contacts(self, touching, batch, f_ext):
        """External forces on bodies plus those of contacts, (..., bodies, 6)."""
        each = np.array([contact_sensors.wrenches(self.model, *now) for now in touching])
        each = each.reshape(*batch, self.model.body_count, 6)
        return each if f_ext is None else each + external_forces(self.model, f_ext)

    @cached_property
    def _closed(self):
        """Model with only the sensors that are closed formulas of the state."""
        chosen = [s for s in self.model.sensors if KINDS[s.kind].needs != "contact"]
        return self.model if len(chosen) == len(self) else self.model.replace(sensors=chosen)

    def _of_state(self, q, given):
        """Readings (..., n) of the sensors that are closed formulas, compiled."""
        model, definition = self._closed, sensor_readings.definition
        extra = tuple(n for n in definition.optional if given.get(n) is not None)
        kernel = self._kernels.get(extra)
        if kernel is None:
            values = sensor_readings(model, q, **given)
            self._kernels[extra] = definition.kernel(model, extra)
            return values
        if "f_ext" in extra:
            given = given | {"f_ext": external_forces(model, given["f_ext"])}
        return kernel.call(q, *(given[n] for n in extra))

    def _values(self, q, given, touching):
        """Vector (..., size) of all readings."""
        values = self._of_state(q, given)
        if self._closed is self.model:
            return values
        values, q = np.asarray(values, dtype=float), np.asarray(q, dtype=float)
        found, columns, at = np.zeros((*values.shape[:-1], self.size)), [], 0
        for s in self.model.sensors:
            n = self._at[s.name].stop - self._at[s.name].start
            if KINDS[s.kind].needs != "contact":
                found[..., self._at[s.name]] = values[..., at : at + n]
                at += n
            else:
                columns.append(s)
        states = np.broadcast_to(q, (*values.shape[:-1], q.shape[-1]))
        for k, index in enumerate(np.ndindex(states.shape[:-1])):
            for s in columns:
                now = touching[k if len(touching) > 1 else 0] if touching else None
                found[index][self._at[s.name]] = self._of_contact(s, states[index], now)
        return found

    def _of_contact(self, s, q, touching):
        """Reading of a sensor that needs contacts or shapes, at one state."""
        if s.kind == "rangefinder":
            return contact_sensors.range_along(self.model, s, q)
        if s.kind != "touch":
            return contact_sensors.nearest(self.model, s, q)
        if touching is None:
            raise ContactError(
                f"sensor {s.name!r} (touch) needs contact forces: those of a trajectory with "
                f"contact, or contacts= and contact_forces= of a state"
            )
        return np.clip(contact_sensors.touch(self.model, s, q, *touching), None, s.cutoff or np.inf)

    def __repr__(self):
        rows = [("sensor", "kind", "of", "size", "unit")]
        for s in self.model.sensors:
            of = s.of + (f" from {s.reference}" if s.reference else "")
            rows.append((s.name, s.kind, of, str(size_of(self.model, s)), self.units[s.name]))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)


class Readings:
    """Readings of sensors: an array (..., size) by name, as in a dict, and all in ``values``.

    Attributes:
        sensors: the table that they belong to.
        values: the readings one after another, in the order of the sensors, (..., n).
    """

    def __init__(self, sensors: Sensors, values: Array):
        self.sensors, self.values = sensors, values

    def __getitem__(self, name: str) -> Array:
        return self.values[..., self.sensors.at(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.sensors)

    def __len__(self):
        return len(self.sensors)

    def __contains__(self, name: object):
        return name in self.sensors

    def keys(self) -> tuple[str, ...]:
        """Names of the sensors."""
        return self.sensors.names

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of sensor name and reading."""
        return ((name, self[name]) for name in self)

    def __repr__(self):
        if np.ndim(self.values) > 1:
            return f"<Readings of {len(self)} sensors, {tuple(np.shape(self.values))}>"
        width = max(map(len, self), default=0)
        lines = []
        for name in self:
            numbers = " ".join(f"{float(x):.6g}" for x in self[name])
            lines.append(f"{name.ljust(width)}  {numbers} {self.sensors.units[name]}".rstrip())
        return "\n".join(lines)


def _unit(model, s):
    """Unit of a sensor's reading, by the type of its joint or actuator."""
    kind = KINDS[s.kind]
    if kind.of != "joint" or s.kind.startswith("ball"):
        return kind.unit
    joint = model.bodies[model.joint_index(s.of) - 1].joint
    units = joint.position_units() if kind.unit == "rad" else joint.velocity_units()
    if kind.needs == "controls":
        return "N·m" if units[0].startswith("rad") else "N"
    return ", ".join(dict.fromkeys(units))
