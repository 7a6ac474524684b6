"""Exciting motions for identification: periodic, Fourier series.

The usual choice for identification (Swevers et al., IEEE T-RA 1997): band-limited, periodic, so
that measurements can be averaged, with exact velocities and accelerations.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.independent import named_variables, variable_names
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.progress import working
from kinetree.errors import LoopError, SingularError, UnreachableError, names_itself
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp
from kinetree.identification.base import base_parameters, require_freedoms
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.singularities import determines
from kinetree.loops.kinematics.space import difference_gradient as displacement_gradient
from kinetree.loops.kinematics.space import space_of
from kinetree.loops.linear.coordinate_motion import coordinate_motion
from kinetree.model.limits import position_index
from kinetree.quantities.loops import coordinate_count, require_no_choice

if TYPE_CHECKING:
    from kinetree.model import Model


class Excitation(NamedTuple):
    """Positions, velocities and accelerations over time."""

    t: np.ndarray
    """Times [s], (n,)."""
    q: np.ndarray
    """Positions, (n, nq)."""
    qd: np.ndarray
    """Velocities, (n, nv)."""
    qdd: np.ndarray
    """Accelerations, (n, nv)."""

    def __repr__(self):
        return (
            f"<Excitation: {len(self.t)} states of {self.q.shape[-1]} positions, "
            f"t = {self.t[0]:g} to {self.t[-1]:g} s>"
        )


def fourier_trajectory(
    t: ArrayLike, middle: ArrayLike, sines: ArrayLike, cosines: ArrayLike, period: float
) -> Excitation:
    """Fourier series ``q = middle + Σ_k (sines_k sin(k ω t) + cosines_k cos(k ω t))``, with rates.

    The frequency of the first harmonic is ``ω = 2π / period``.

    Args:
        t: times [s], (n,).
        middle: positions about which the joints move, (nv,).
        sines: amplitudes of the harmonics, (harmonics, nv).
        cosines: likewise.
        period: of the whole motion [s].
    """
    t, sines, cosines = np.asarray(t, dtype=float), np.asarray(sines), np.asarray(cosines)
    w = 2 * np.pi / period * np.arange(1, len(sines) + 1)
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return Excitation(
        t,
        middle + s @ sines + c @ cosines,
        (c * w) @ sines - (s * w) @ cosines,
        -(s * w**2) @ sines - (c * w**2) @ cosines,
    )


@names_itself
@working("looking for an exciting trajectory")
def exciting_trajectory(
    model: "Model",
    *,
    period: float = 10.0,
    samples: int = 200,
    harmonics: int = 5,
    amplitude: Any = 1.0,
    candidates: int = 20,
    rng: np.random.Generator | None = None,
    independent: Sequence[str] | None = None,
) -> Excitation:
    """Exciting trajectory: random Fourier series with the smallest condition number.

    Free and ball joints are displaced by the series from their neutral positions, as
    ``joint.integrate`` does. With loops, independent joints move by the series, about a
    configuration that closes the loops, and the others follow; the motion is reduced if they
    cannot.

    Args:
        model: the mechanism.
        period: of the motion [s].
        samples: how many times, evenly over one period.
        harmonics: how many multiples of the basic frequency.
        amplitude: typical size of the motion of a joint [rad or m]. Less where limits are narrow;
            limits of position and velocity are kept.
        candidates: how many series to compare.
        rng: a NumPy random generator or a seed.
        independent: of a mechanism with loops, names of the joints that the series moves, as many
            variables as it has degrees of freedom; by default those with motors, or
            ``kinetree.loops.independent``.
    """
    if model.is_rheonomic:
        (moving, *_) = (c.name for c in model.constraints if c.rheonomic)
        raise LoopError(
            f"exciting_trajectory moves a mechanism for a while, and constraint {moving!r} of "
            f"model {model.name!r} would move meanwhile: it is known at one instant"
        )
    columns = _moved_variables(model, independent)
    require_freedoms(model, "exciting_trajectory")
    rng, base = np.random.default_rng(rng), base_parameters(model)
    t = np.linspace(0, period, samples, endpoint=False)

    def condition(motion):
        W = base.regressor(motion.q, motion.qd, motion.qdd).reshape(-1, len(base))
        norms = np.linalg.norm(W, axis=0)
        return np.linalg.cond(W / np.maximum(norms, 1e-300)) if len(base) else 1.0

    home = assemble(model, limits=True) if model.is_constrained else None
    found = []
    for _ in range(max(candidates, 1)):
        series = _random_series(model, t, period, harmonics, amplitude, rng, columns, home)
        if home is None:
            yd, ydd = _velocities(model, columns, *series[1:])
            found.append(Excitation(t, model.integrate(model.neutral(), series.q), yd, ydd))
        else:
            found.append(_follow(model, home, columns, series))
    if not any(found):
        raise LoopError(
            f"exciting_trajectory found no motion that the loops of model {model.name!r} allow "
            f"within its limits; name other joints by independent=, or lower the amplitude"
        )
    return min(filter(None, found), key=condition)


def _moved_variables(model, independent):
    """Indices of the velocity variables that the Fourier series moves."""
    if not model.is_constrained:
        require_no_choice(model, independent)
        return np.arange(model.nv)
    if independent is None:
        joints = sorted({a.joint for a in model.actuators if a.joint})
        motors = [model.joint_names[i - 1] for i in joints]
        count = sum(model.joint[i].nv for i in joints)
        if count == coordinate_count(model, {}) and determines(model, assemble(model), motors):
            independent = motors
    return np.array(named_variables(model, independent), dtype=int)


_RAMP = 20  # configurations on the way to the start of a series


def _follow(model, home, columns, series):
    """Motion of all joints for that of the independent ones, scaled until loops close.

    None where even a small one is not possible.
    """
    names = [variable_names(model)[k] for k in columns]
    middle = model.difference(model.neutral(), home)[columns]
    (low, high), fastest = model.position_limits, model.velocity_limits
    for part in 0.5 ** np.arange(8):
        y = middle + part * (series.q - middle)
        ramp = middle + np.linspace(0, 1, _RAMP, endpoint=False)[:, None] * (y[0] - middle)
        yd, ydd = _velocities(model, columns, y, part * series.qd, part * series.qdd)
        yd, ydd = (np.concatenate([0 * ramp, x]) for x in (yd, ydd))
        try:
            motion = coordinate_motion(
                model, home, np.concatenate([ramp, y]), yd, ydd, independent=names
            )
        except (UnreachableError, SingularError):
            continue
        q, qd, qdd = (x[_RAMP:] for x in motion)
        if np.all((q >= low) & (q <= high)) and np.all(np.abs(qd) <= fastest):
            return Excitation(series.t, q, qd, qdd)
    return None


def _velocities(model, columns, y, rate, second):
    """Velocity variables and their derivatives, (n, p) each, from displacement rates.

    A displacement ``u = difference(q0, q)`` has the rate ``D v``, hence ``D dv/dt = d²u/dt² -
    dD/dt v``; ``D`` is one where velocities are the rates of positions.
    """
    if all(body.joint.rates_are_velocities for body in model.bodies):
        return rate, second
    full, q0 = np.zeros((3, len(y), model.nv)), model.neutral()
    full[:, :, columns] = y, rate, second
    q = model.integrate(q0, full[0])
    D = space_of(model).difference_gradient(q0, q)
    v = np.linalg.solve(D, full[1][..., None])[..., 0]
    turning = _turning(model, q, q0, v, tangents=v)
    turning = turning[-1] if isinstance(turning, tuple) else turning
    a = np.linalg.solve(D, (full[2] - turning)[..., None])[..., 0]
    return v[:, columns], a[:, columns]


@kernel
def _displacement_rate(model, q, q0, v):
    """Kernel: rate of the displacement from a configuration."""
    return displacement_gradient(model, q, q0) @ v


_turning = jvp(_displacement_rate, wrt="q")
_WIDEST = 1.4  # of a free or ball joint about each axis [rad]: displacements end at half a turn


def _random_series(model, t, period, harmonics, amplitude, rng, columns, home):
    """Random Fourier series within the limits of the joints it moves."""
    shape = (harmonics, len(columns))
    falling = 1 / np.arange(1, harmonics + 1)[:, None]
    sines, cosines = (rng.standard_normal(shape) * falling for _ in range(2))
    unit = fourier_trajectory(t, 0.0, sines, cosines, period)
    k = position_index(model)[columns]
    flat, fastest = k >= 0, model.velocity_limits[columns]
    low, high = (
        np.where(flat, x[k], side)
        for x, side in zip(model.position_limits, (-np.inf, np.inf), strict=True)
    )
    limited = np.isfinite(low) & np.isfinite(high)
    middle = np.zeros(len(columns))
    middle[limited] = (low[limited] + high[limited]) / 2
    if home is not None:
        middle = model.difference(model.neutral(), home)[columns]
        amplitude = amplitude if np.ndim(amplitude) == 0 else np.asarray(amplitude)[columns]
    reach = np.minimum(amplitude, np.minimum(high - middle, middle - low))
    reach = np.where(flat, reach, np.minimum(reach, _WIDEST))
    size = reach / np.maximum(np.max(np.abs(unit.q), axis=0, initial=0.0), 1e-12)
    speed = np.maximum(np.max(np.abs(unit.qd), axis=0, initial=0.0), 1e-12)
    size = np.minimum(size, fastest / speed)
    return fourier_trajectory(t, middle, sines * size, cosines * size, period)
