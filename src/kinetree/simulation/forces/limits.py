"""Ends of travel of joints: springs that stop them, or stops that they bounce off.

Stiff limits are forces like others, compiled into the step. Rigid ones act at an instant: the
moment at which a joint arrives is located, an impulse ``H Δqd = u`` (RBDA (11.57)) sends it back,
and a joint that arrives too slowly to bounce is held until something pulls it away. See
``kinetree.simulation.forces.modes``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import ModelError, SimulationWarning, UnknownNameError, warn
from kinetree.functional.kernel import select
from kinetree.model import Model
from kinetree.model.gearing import Gearing
from kinetree.model.limits import counted_compensation, position_bounds, position_index
from kinetree.model.memo import remember
from kinetree.quantities.tendons import tendon_lengths
from kinetree.simulation.forces.applied import nominal_mobility, on_variables
from kinetree.spatial.ops import sqrt

FAR_OUTSIDE = 0.1
"""How far outside its limits a joint may start without a warning, as part of its travel."""


@dataclass(frozen=True)
class StiffLimits:
    """Joint limits as springs and dampers, which push but do not pull.

        f = max(0, k p + d p/(p + p_0) dp/dt)

    ``p`` is how far the joint is beyond its limit; the damper sets in gradually, over ``p_0``.

    Args:
        stiffness: ``k`` [N/m or N·m/rad], a number or one per velocity variable. By default that
            which makes the joint alone, at the neutral position, swing at ``frequency``.
        damping_ratio: damping as a fraction of the critical one of that swing.
        frequency: [rad/s].
        onset: ``p_0`` [m or rad].
    """

    stiffness: Any = None
    damping_ratio: float = 1.0
    frequency: float = 200.0
    onset: float = 1e-3
    stops: tuple = ()

    traceable = True

    def __post_init__(self):
        for name in ("frequency", "onset"):
            if not getattr(self, name) > 0:
                raise ModelError(f"{name} of stiff limits must be positive, got {self!r}")
        if np.ndim(self.stiffness):  # hashable: steps are kept by their laws
            object.__setattr__(self, "stiffness", tuple(np.asarray(self.stiffness).tolist()))
        if not self.damping_ratio >= 0:
            raise ModelError(f"damping_ratio of stiff limits must not be negative, got {self!r}")

    def of(self, model: Model) -> "StiffLimits | None":
        """Stiff limits with the parameters of a model; None if all joints are unlimited.

        Followers have their own stops, which push those that lead.
        """
        model = model.uncoupled
        lower, upper = position_bounds(model)
        if not np.any(np.isfinite([lower, upper])):
            return None
        inertia = 1 / nominal_mobility(model)
        if self.stiffness is None:
            k = self.frequency**2 * inertia
        else:
            k = np.asarray(self.stiffness, dtype=float)
            if k.shape not in ((), (model.nv,)) or not np.all(k > 0):
                raise ModelError(
                    f"stiffness of limits must be positive, one number or nv = {model.nv}, got {k}"
                )
            k = np.broadcast_to(k, model.nv)
        d = [2 * self.damping_ratio * sqrt(x) for x in k * inertia]
        index = position_index(model)
        stops = [
            (int(index[i]), i, sign, float(bound[i]), k[i], d[i])
            for i in range(model.nv)
            for sign, bound in ((1.0, lower), (-1.0, upper))
            if np.isfinite(bound[i])
        ]
        return StiffLimits(None, self.damping_ratio, self.frequency, self.onset, stops=tuple(stops))

    def push(self, x: Any, v: Any, sign: float, bound: float, k: float, d: float) -> Any:
        """Force of a spring-damper stop on a variable at ``x`` with velocity ``v``.

        Args:
            x: position.
            v: velocity.
            sign: 1 for a lower bound, -1 for an upper one.
            bound: where it is.
            k: stiffness.
            d: damping.
        """
        f, _ = self._stop_force(x, v, sign, bound, k, d)
        return sign * select(f > 0, f, 0 * f)

    def _stop_force(self, x, v, sign, bound, k, d):
        """Signed force of a stop, negative if it would pull, and its damping coefficient."""
        p = sign * (bound - x)
        p = select(p > 0, p, 0 * p)
        d = d * (p / (p + self.onset))
        return k * p - d * (sign * v), d

    def resistance(self, model: Model, q: Any, qd: Any) -> tuple[Any, Any]:
        """Stiffness and damping of active stops by variable, (nv,) each, for one sample."""
        geared = Gearing(model, q, qd) if model.couplings else None
        full, x, v = (model, q, qd) if geared is None else (model.uncoupled, geared.q, geared.qd)
        K, D = ([0.0] * full.nv for _ in range(2))
        for i_q, i, sign, bound, k, d in self.stops:
            f, damping = self._stop_force(x[i_q], v[i], sign, bound, k, d)
            K[i], D[i] = (y + select(f > 0, z, 0.0) for y, z in ((K[i], k), (D[i], damping)))
        K, D = np.array(K), np.array(D)
        return (K, D) if geared is None else ((geared.G**2).T @ K, (geared.G**2).T @ D)

    def __call__(self, model, t, q, qd):
        """Joint forces, (..., nv)."""
        return on_variables(model, q, qd, self._of_all)

    def _of_all(self, model, q, qd):
        """Joint forces of all stops, (..., nv), traceable."""
        numbers = [np.asarray(x) for x in (q, qd, [stop[3:] for stop in self.stops])]
        if all(x.dtype != object for x in numbers):
            return self._of_arrays(*numbers)
        columns: list = [0 * qd[..., i] for i in range(model.nv)]
        for i_q, i, *stop in self.stops:
            columns[i] = columns[i] + self.push(q[..., i_q], qd[..., i], *stop)
        return np.stack([np.asarray(c) for c in columns], axis=-1)

    def _of_arrays(self, q, qd, stops):
        """Joint forces of all stops, (..., nv), vectorised for float arrays."""
        i_q, i, sign = np.array([stop[:3] for stop in self.stops], dtype=int).T
        batch = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
        total = np.zeros((*batch, qd.shape[-1]), np.result_type(q, qd, stops)) + 0 * qd
        for side in (1, -1):
            at = sign == side
            total[..., i[at]] += self.push(q[..., i_q[at]], qd[..., i[at]], side, *stops[at].T)
        return total


@dataclass(frozen=True)
class RigidLimits:
    """Rigid joint stops, with impacts.

    Args:
        restitution: velocity after an impact as a fraction of that before, from 0 to 1.
        rest_velocity: joints that would leave slower than this [m/s or rad/s] stay.
    """

    restitution: float = 0.0
    rest_velocity: float = 1e-3

    def __post_init__(self):
        if not 0 <= self.restitution <= 1:
            raise ModelError(f"restitution must be between 0 and 1, got {self.restitution}")
        if not self.rest_velocity >= 0:
            raise ModelError(f"rest_velocity must not be negative, got {self.rest_velocity}")


def warn_outside(model, q):
    """Warn of joints or tendons that start far outside their limits."""
    limited = any(t.is_limited for t in model.tendons)
    lengths = np.moveaxis(tendon_lengths(model, q), -1, 0) if limited else ()
    for t, L in zip(model.tendons, lengths, strict=False):
        travel = t.upper - t.lower if np.isfinite(t.upper - t.lower) else 1.0
        if np.any(np.maximum(t.lower - L, L - t.upper) > FAR_OUTSIDE * travel):
            worst = np.ravel(L)[np.argmax(np.maximum(t.lower - L, L - t.upper))]
            warn(
                f"tendon {t.name!r} starts with a length of {worst:.4g}, far outside its limits "
                f"{t.lower:.4g} to {t.upper:.4g}, and its stop pushes it back; limits=None leaves "
                f"the stops out",
                SimulationWarning,
            )
    lower, upper = model.position_limits
    travel = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    beyond = np.maximum(lower - q, q - upper) - FAR_OUTSIDE * travel
    if not np.any(beyond > 0):
        return
    *sample, k = map(int, np.unravel_index(np.argmax(beyond), beyond.shape))
    x, i = q[(*sample, k)], next(i for i, at in enumerate(model.q_slice) if at.stop > k)
    where = f" of sample {tuple(sample)}" if sample else ""
    turns = " Angles are in radians: np.radians converts degrees." if abs(x) > 2 * np.pi else ""
    warn(
        f"joint {model.joint_names[i - 1]!r}{where} starts at {x:.4g}, far outside its limits "
        f"{lower[k]:.4g} to {upper[k]:.4g}, and its stop pushes it back.{turns} limits=None leaves "
        f"the stops out",
        SimulationWarning,
    )


def limits_effort(model) -> bool:
    """Whether any joint of a model has a known effort limit."""
    return remember(model, ("limits_effort",), lambda: (_limits_effort(model.effort_limits),))[0]


def _limits_effort(efforts):
    """Whether any effort limit is positive and finite."""
    return bool(np.any((efforts > 0) & np.isfinite(efforts)))


def beyond_effort(model, tau, t) -> str | None:
    """Message about joint forces that exceed the joints' effort limits, or None.

    Args:
        model: the mechanism. An effort of zero means that it is unknown; one that gravity
            compensation uses up in part is that of the actuators, which keep it.
        tau: joint forces, (n, ..., nv).
        t: their times [s], (n,).
    """
    if not limits_effort(model) or not tau.size:
        return None
    known = (model.effort_limits > 0) & (counted_compensation(model) == 0)
    limit = np.where(known, model.effort_limits, np.inf)
    others = tuple(range(tau.ndim - 1))
    largest = np.maximum(tau.max(axis=others), -tau.min(axis=others))
    k = int(np.argmax(largest / limit))
    if not largest[k] > limit[k] * (1 + 1e-6):  # which single precision respects
        return None
    sizes = np.abs(tau[..., k])
    n, *sample = map(int, np.unravel_index(np.argmax(sizes), sizes.shape))
    i = next(i for i, at in enumerate(model.v_slice) if at.stop > k)
    where = f" in sample {tuple(sample)}" if sample else ""
    turns = model.joint[i].velocity_units()[k - model.v_slice[i].start] == "rad/s"
    return (
        f"joint {model.joint_names[i - 1]!r} is driven with {tau[(n, *sample, k)]:.4g} "
        f"{'N·m' if turns else 'N'} at t = {t[n]:.4g} s{where}, beyond its effort limit of "
        f"{limit[k]:.4g}: let the controller return "
        f"np.clip(tau, -model.effort_limits, model.effort_limits), or drive the model's actuators "
        f"(simulate(controls=...)), whose forces are limited"
    )


def limits_of(model, given):
    """Limits of a model from "stiff", "rigid", None or a law; None without finite limits."""
    if given is None:
        return None
    if isinstance(given, str):
        if given not in ("stiff", "rigid"):
            raise UnknownNameError(
                f"limits must be 'stiff', 'rigid', None, StiffLimits or RigidLimits, got {given!r}"
            )
        given = StiffLimits() if given == "stiff" else RigidLimits()
    if isinstance(given, StiffLimits):
        return given.of(model)
    if not isinstance(given, RigidLimits):
        raise TypeError(
            f"limits must be 'stiff', 'rigid', None, StiffLimits or RigidLimits, got "
            f"{type(given).__name__}"
        )
    return given if np.any(np.isfinite(position_bounds(model))) else None
