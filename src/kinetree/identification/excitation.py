"""Exciting motions for identification: periodic, Fourier series.

The usual choice for identification (Swevers et al., IEEE T-RA 1997): band-limited, periodic, so
that measurements can be averaged, with exact velocities and accelerations.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, names_itself
from kinetree.identification.base import base_parameters, require_freedoms

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


def fourier_trajectory(
    t: ArrayLike, middle: ArrayLike, sines: ArrayLike, cosines: ArrayLike, period: float
) -> Excitation:
    """``q = middle + Σ_k (sines_k sin(k ω t) + cosines_k cos(k ω t))`` with ``ω = 2π / period``.

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
def exciting_trajectory(
    model: "Model",
    *,
    period: float = 10.0,
    samples: int = 200,
    harmonics: int = 5,
    amplitude: Any = 1.0,
    candidates: int = 20,
    rng: np.random.Generator | None = None,
) -> Excitation:
    """The best of some random Fourier series: the one with the least condition number.

    Args:
        model: the mechanism, with joints whose velocities are rates of their positions.
        period: of the motion [s].
        samples: how many times, evenly over one period.
        harmonics: how many multiples of the basic frequency.
        amplitude: typical size of the motion of a joint [rad or m]. Less where limits are narrow;
            limits of position and velocity are kept.
        candidates: how many series to compare.
        rng: a NumPy random generator or a seed.
    """
    for body in model.bodies:
        if not body.joint.rates_are_velocities:
            raise ModelError(
                f"a Fourier series moves joints whose velocities are the rates of their "
                f"positions; joint {body.joint_name!r} is {body.joint!r}"
            )
    require_freedoms(model, "exciting_trajectory")
    rng, base = np.random.default_rng(rng), base_parameters(model)
    t = np.linspace(0, period, samples, endpoint=False)

    def condition(motion):
        W = base.regressor(motion.q, motion.qd, motion.qdd).reshape(-1, len(base))
        norms = np.linalg.norm(W, axis=0)
        return np.linalg.cond(W / np.maximum(norms, 1e-300)) if len(base) else 1.0

    series = (
        _random_series(model, t, period, harmonics, amplitude, rng)
        for _ in range(max(candidates, 1))
    )
    return min(series, key=condition)


def _random_series(model, t, period, harmonics, amplitude, rng):
    """A random series within the limits of the joints."""
    shape = (harmonics, model.nv)
    falling = 1 / np.arange(1, harmonics + 1)[:, None]
    sines, cosines = (rng.standard_normal(shape) * falling for _ in range(2))
    unit = fourier_trajectory(t, 0.0, sines, cosines, period)
    (low, high), fastest = model.position_limits, model.velocity_limits
    limited = np.isfinite(low) & np.isfinite(high)
    middle = np.zeros(model.nv)
    middle[limited] = (low[limited] + high[limited]) / 2
    reach = np.minimum(amplitude, np.minimum(high - middle, middle - low))
    size = reach / np.maximum(np.max(np.abs(unit.q), axis=0, initial=0.0), 1e-12)
    speed = np.maximum(np.max(np.abs(unit.qd), axis=0, initial=0.0), 1e-12)
    size = np.minimum(size, fastest / speed)
    return fourier_trajectory(t, middle, sines * size, cosines * size, period)
