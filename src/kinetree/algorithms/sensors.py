"""Readings of sensors: what frames, joints, tendons and parts of a mechanism measure.

The meaning of each kind is MuJoCo's. Accelerations are proper ones: ``a_0 = -a_g`` as in RBDA §5.3,
so that an accelerometer at rest reads ``-g``. A force sensor reads what the parent exerts on the
body that carries it, ``f = Σ (I a + v ×* I v) - f_ext`` over all that is beyond — RBDA (5.16).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.algorithms.actuators import actuator_forces, force_with_compensation, transmission
from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.energy import kinetic_energy, potential_energy, spring_energy
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
)
from kinetree.algorithms.reactions import multipliers, with_loop_forces
from kinetree.model.sensors import KINDS, size_of
from kinetree.model.tendon_paths import tendon_motion
from kinetree.spatial import Force, crf, cross
from kinetree.spatial.ops import check_pivot, less, select
from kinetree.spatial.rotation import quaternion_from_rotation


def total_size(model) -> int:
    """Number of scalars that all sensors of a model read together."""
    return sum(size_of(model, s) for s in model.sensors)


def readings(
    model, q, qd=None, qdd=None, tau=None, f_ext=None, controls=None, activation=None, t=None
):
    """Readings of all sensors of a model, concatenated, (n,).

    Args:
        model: the mechanism.
        q: position variables, (nq,).
        qd: velocity variables, (nv,), where a sensor depends on them.
        qdd: accelerations, (nv,), where a sensor depends on them.
        tau: joint forces, (nv,), with loops and sensors of forces.
        f_ext: external force on each body in base coordinates, entry 0 unused.
        controls: of all actuators, (n,).
        activation: of the actuators that have one, (m,).
        t: time [s].
    """
    lam = None
    if model.loops and any(s.kind in ("force", "torque") for s in model.sensors):
        lam = multipliers(model, q, qd, qdd, tau, f_ext)
    given = {"q": q, "qd": qd, "qdd": qdd, "f_ext": f_ext, "lam": lam, "t": t}
    given |= {"controls": controls, "activation": activation}
    return _readings(model, **{name: x for name, x in given.items() if x is not None})


@for_all_joints()
def _readings(
    model, q, qd=None, qdd=None, f_ext=None, lam=None, controls=None, activation=None, t=None
):
    """Readings of all sensors from the given arrays, concatenated."""
    state = _State(model, q, qd, qdd, f_ext, lam, controls, activation, t)
    rows = [_clip(s, np.atleast_1d(_READ[s.kind](state, s))) for s in model.sensors]
    return np.concatenate([np.zeros(0, dtype=int), *rows])


def _clip(sensor, reading):
    """Reading clipped to the sensor's ``cutoff``."""
    c, data = sensor.cutoff, KINDS[sensor.kind].data
    if not c or not data:
        return reading
    reading = [select(less(c, x), c, x) for x in reading]
    return np.array(
        reading if data == "positive" else [select(less(x, -c), -c, x) for x in reading]
    )


@dataclass(eq=False)
class _State:
    """A state of the mechanism, and what follows from it as far as sensors need it."""

    model: Any
    q: Any
    qd: Any
    qdd: Any
    f_ext: Any
    lam: Any
    controls: Any
    activation: Any
    t: Any

    # --- motion of frames ------------------------------------------------------------------------

    @cached_property
    def motion(self) -> tuple:
        """Transforms, velocities, accelerations of bodies; the latter None if not given."""
        m = self.model
        if self.qdd is not None:
            return body_accelerations(m, self.q, self.qd, self.qdd, -m.a_g)
        if self.qd is not None:
            return (*body_velocities(m, self.q, self.qd), None)
        return joint_transforms(m, self.q)[0], None, None

    @cached_property
    def X_0(self) -> Any:
        """Transforms from base to body coordinates."""
        return base_transforms(self.model, self.motion[0])

    def place(self, sensor, reference=False):
        """Transform from base coordinates to those of a sensor, or of its reference frame."""
        X, body = self.mount(sensor, reference)
        return X @ self.X_0[body] if body else X

    def mount(self, sensor, reference=False):
        """Transform from body to sensor (or reference) coordinates, and the body's number."""
        frame = self.model.frame(sensor.reference if reference else sensor.of)
        X = sensor.reference_placement if reference else sensor.placement
        return X @ frame.placement, frame.body

    def velocity(self, sensor, reference=False):
        """Spatial velocity of a sensor, in its coordinates."""
        X, body = self.mount(sensor, reference)
        return X @ self.motion[1][body]

    def acceleration(self, sensor):
        """Angular acceleration, and proper acceleration of the sensor's origin — RBDA (2.50)."""
        X, body = self.mount(sensor)
        a, v = X @ self.motion[2][body], self.velocity(sensor)
        return a.angular, a.linear + cross(v.angular, v.linear)

    # --- a body with all that it carries ---------------------------------------------------------

    def beyond(self, sensor):
        """Inertia, transform and body number of each body in a sensor's subtree."""
        model, (X, body) = self.model, self.mount(sensor)
        if sensor.inertia is None:
            bodies = [i for i in model.subtree[body] if i]
            return [(model.inertia[i], model.identity_transform, i) for i in bodies]
        part = [(sensor.inertia, X, body)]
        roots = [model.body_index(name) for name in sensor.beyond]
        bodies = [i for root in roots for i in model.subtree[root]]
        return part + [(model.inertia[i], model.identity_transform, i) for i in bodies]

    def mass_and_moment(self, sensor):
        """Mass, and mass times mass centre in base coordinates, of a sensor's subtree."""
        mass, moment = 0, np.zeros(3, dtype=int)
        for I, X, i in self.beyond(sensor):
            X_0 = X @ self.X_0[i]
            mass, moment = mass + I.mass, moment + I.mass * X_0.r + X_0.E.T @ I.first_moment
        what = f"what sensor {sensor.name!r} is about has no mass, hence no mass centre"
        return check_pivot(mass, 0, lambda: what), moment

    def momentum(self, sensor):
        """Momentum of a sensor's subtree, in base coordinates."""
        h = Force.zero()
        for I, X, i in self.beyond(sensor):
            h = h + (X @ self.X_0[i]).T @ (I @ (X @ self.motion[1][i]))
        return h

    @cached_property
    def acting(self) -> Any:
        """Forces on bodies from outside and from loop joints, in base coordinates; or None."""
        if self.lam is None:
            return self.f_ext
        return with_loop_forces(self.model, self.q, self.qd, self.X_0, self.lam, self.f_ext)[0]

    def force(self, sensor):
        """Force of the parent on the sensor's body, in sensor coordinates."""
        f = Force.zero()
        for I, X, i in self.beyond(sensor):
            v, a = (X @ self.motion[k][i] for k in (1, 2))
            f = f + (X @ self.X_0[i]).T @ (I @ a + crf(v, I @ v))
            if self.acting is not None and i and sensor.inertia is None:
                f = f - self.acting[i]
        f = self.place(sensor).star @ f
        return f * sensor.data[0] if sensor.data else f

    # --- joints and tendons ----------------------------------------------------------------------

    def joint(self, sensor):
        """Number of the joint that a sensor measures."""
        return self.model.joint_index(sensor.of)

    @cached_property
    def transmission(self) -> Any:
        """Lengths and velocities of all actuators."""
        qd = np.zeros(self.model.nv, dtype=int) if self.qd is None else self.qd
        return transmission(self.model, self.q, qd)

    @cached_property
    def forces(self) -> Any:
        """Forces of all actuators, before their gears."""
        state = self.model, self.q, self.qd
        return actuator_forces(*state, self.controls, self.activation)

    def actuator(self, sensor):
        """Index of the actuator that a sensor measures."""
        return [a.name for a in self.model.actuators].index(sensor.of)

    def tendon(self, sensor):
        """The tendon that a sensor measures, with its length and rate."""
        tendon = self.model.tendon(sensor.of)
        length, arms = tendon_motion(self.model, tendon, self.q)
        return tendon, length, None if self.qd is None else arms @ self.qd


def _relative(state, s, vector):
    """Vector given in base coordinates, in those of a sensor's reference frame if it has one."""
    return state.place(s, True).E @ vector if s.reference else vector


def _frame_position(state, s):
    """Reading of the position of a frame, absolute or in a reference frame."""
    p = state.place(s).r
    return _relative(state, s, p - state.place(s, True).r) if s.reference else p


def _frame_quaternion(state, s):
    """Reading of the orientation of a frame, absolute or in a reference frame."""
    E = state.place(s).E
    return quaternion_from_rotation(E @ state.place(s, True).E.T if s.reference else E)


def _axis(k):
    """Reader function of a frame's relative axis ``k``."""
    return lambda state, s: _relative(state, s, state.place(s).E[k])


def _frame_velocity(state, s):
    """Reading of a frame's linear velocity, relative to its reference frame, which may rotate."""
    X, v = state.place(s), state.velocity(s)
    linear = X.E.T @ v.linear
    if not s.reference:
        return linear
    X_r, v_r = state.place(s, True), state.velocity(s, True)
    return X_r.E @ linear - v_r.linear - cross(v_r.angular, X_r.E @ (X.r - X_r.r))


def _frame_turning(state, s):
    """Reading of the angular velocity of a frame, absolute or in a reference frame."""
    w = state.place(s).E.T @ state.velocity(s).angular
    return _relative(state, s, w) - state.velocity(s, True).angular if s.reference else w


def _subtree_spin(state, s):
    """Reading of the angular momentum of a subtree about its centre of mass."""
    mass, moment = state.mass_and_moment(s)
    h = state.momentum(s)
    return h.angular - cross(moment / mass, h.linear)


def _subtree_velocity(state, s):
    """Reading of the velocity of a subtree's centre of mass."""
    return state.momentum(s).linear / state.mass_and_moment(s)[0]


def _subtree_center(state, s):
    """Reading of a subtree's centre of mass."""
    mass, moment = state.mass_and_moment(s)
    return moment / mass


def _joint_limit(state, s, value):
    """Reading of the distance or rate by which a joint exceeds its limit."""
    i = state.joint(s)
    limits, x = state.model.bodies[i - 1].limits, state.q[state.model.q_slice[i].start]
    lower, upper = (limits.lower, limits.upper) if limits is not None else ((), ())
    rate = None if value == "position" else state.qd[state.model.v_slice[i].start]
    return _limit(s, x, lower[0] if lower else -np.inf, upper[0] if upper else np.inf, rate)


def _tendon_limit(state, s, value):
    """Reading of the distance or rate by which a tendon exceeds its limit."""
    tendon, length, rate = state.tendon(s)
    return _limit(s, length, tendon.lower, tendon.upper, None if value == "position" else rate)


def _limit(s, x, lower, upper, rate):
    """Signed distance beyond a limit (negative), or its rate; zero within the limits.

    ``data`` may hold the margin within which a limit counts as reached.
    """
    margin, reading = (s.data[0] if s.data else 0), 0
    for side, bound in ((-1, upper), (1, lower)):  # the lower one comes first, where both are
        if np.isfinite(bound):
            gap = side * (x - bound) - margin
            reading = select(less(gap, 0), gap if rate is None else side * rate, reading)
    return reading


def _joint_drive(state, s):
    """Reading of the force of all actuators on a joint."""
    given = state.controls, state.activation
    tau = force_with_compensation(state.model, state.q, state.qd, *given)
    return tau[state.model.v_slice[state.joint(s)]]


def _tendon_drive(state, s):
    """Reading of the force of all actuators along a tendon."""
    actuators = state.model.actuators
    return sum(f for a, f in zip(actuators, state.forces, strict=True) if a.tendon == s.of)


def _potential(state, s):
    """Reading of the potential energy, that of springs included."""
    return potential_energy(state.model, state.q) + spring_energy(state.model, state.q) + s.offset


def _joint_position(state, s):
    """Reading of a joint's position, with the sensor's offset."""
    q = state.q[state.model.q_slice[state.joint(s)]]
    return q + s.offset if s.offset else q


def _joint_velocity(state, s):
    """Reading of a joint's velocity."""
    return state.qd[state.model.v_slice[state.joint(s)]]


_READ: dict[str, Callable[..., Any]] = {
    "jointpos": _joint_position,
    "jointvel": _joint_velocity,
    "jointlimitpos": lambda state, s: _joint_limit(state, s, "position"),
    "jointlimitvel": lambda state, s: _joint_limit(state, s, "velocity"),
    "ballquat": _joint_position,
    "ballangvel": _joint_velocity,
    "tendonpos": lambda state, s: state.tendon(s)[1] + s.offset,
    "tendonvel": lambda state, s: state.tendon(s)[2],
    "tendonlimitpos": lambda state, s: _tendon_limit(state, s, "position"),
    "tendonlimitvel": lambda state, s: _tendon_limit(state, s, "velocity"),
    "jointactuatorfrc": _joint_drive,
    "tendonactuatorfrc": _tendon_drive,
    "actuatorpos": lambda state, s: state.transmission.length[state.actuator(s)] + s.offset,
    "actuatorvel": lambda state, s: state.transmission.velocity[state.actuator(s)],
    "actuatorfrc": lambda state, s: state.forces[state.actuator(s)],
    "framepos": _frame_position,
    "framequat": _frame_quaternion,
    "framexaxis": _axis(0),
    "frameyaxis": _axis(1),
    "framezaxis": _axis(2),
    "framelinvel": _frame_velocity,
    "frameangvel": _frame_turning,
    "framelinacc": lambda state, s: state.place(s).E.T @ state.acceleration(s)[1],
    "frameangacc": lambda state, s: state.place(s).E.T @ state.acceleration(s)[0],
    "accelerometer": lambda state, s: state.acceleration(s)[1],
    "gyro": lambda state, s: state.velocity(s).angular,
    "velocimeter": lambda state, s: state.velocity(s).linear,
    "magnetometer": lambda state, s: state.place(s).E @ np.array(s.data),
    "force": lambda state, s: state.force(s).linear,
    "torque": lambda state, s: state.force(s).angular,
    "subtreecom": _subtree_center,
    "subtreelinvel": _subtree_velocity,
    "subtreeangmom": _subtree_spin,
    "e_potential": _potential,
    "e_kinetic": lambda state, s: kinetic_energy(state.model, state.q, state.qd),
    "clock": lambda state, s: state.t,
}
"""The reading of each kind that is a closed formula of a state."""
