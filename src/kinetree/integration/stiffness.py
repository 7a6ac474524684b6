"""Stiffness: how fast springs, dampers and servos move a mechanism, and which steps follow them.

Near a configuration small motions obey ``H δqdd + D δqd + K δq = 0``. With ``H = L Lᵀ`` their
rates λ are the eigenvalues of

    [      0             1      ]
    [ -L⁻¹ K L⁻ᵀ   -L⁻¹ D L⁻ᵀ  ]

and steps h of an explicit method are stable where ``h λ`` is in its region of stability, where it
does not grow: ``|R(h λ)| <= 1``. ``D`` and ``K`` are those of springs, dampers, tendons and servos;
limits and smooth friction are soft enough for the usual steps by construction.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.closed.rank import rank_at, scaling
from kinetree.integration.explicit import SemiImplicitEuler
from kinetree.model.gearing import Gearing
from kinetree.model.limits import has_dynamics
from kinetree.model.memo import remember
from kinetree.model.tendon_paths import tendon_motion
from kinetree.quantities import dynamics

SAFE = 0.5
"""Part of the longest stable step at the start that ``integrator="auto"`` leaves to an explicit
method: inertias change as the mechanism moves."""
NO_INERTIA = 1e8
"""Steps over the time in which a damper acts, above which it moves next to no inertia."""
_GROWTH = 1.01  # in one step, that counts as unstable: 20,000 in 1000 steps
_SAMPLES = 64  # starts of a batch that are looked at


class Fastest(NamedTuple):
    """The motion that limits the step of an explicit method."""

    cause: str
    """The spring, damper or servo behind it, such as ``"the damper at joint 'elbow'"``."""
    time: float
    """In which it acts [s], ``1/|λ|``."""
    step: float
    """The longest stable one [s]."""

    def __str__(self):
        return f"{self.cause} acts within {seconds(self.time)}"


class Resistance(NamedTuple):
    """A force ``-(d J qd + k J q)`` along ``J``, (nv,)."""

    J: np.ndarray
    d: float
    k: float
    damper: str
    """What the cause is called where it is the damping."""
    spring: str
    """And where it is the stiffness."""


def fastest_motion(
    model, method, q=None, *, free=None, servos=False, step=np.inf
) -> Fastest | None:
    """Spring, damper or servo that limits an explicit method's step most; None if none does.

    None where nothing limits steps up to ``step``.

    Args:
        model: the mechanism.
        method: the integrator.
        q: configurations to look at, (..., nq), beside the neutral one: of a batch at most 64.
        free: 1 for variables that are not prescribed, (nv,); all by default.
        servos: whether actuators act.
        step: longest step that matters [s].
    """
    reach = stable_reach(method)
    if reach is None or model.nv == 0 or model.scalar_type().kind == "O":
        return None
    configurations: Any = None
    if model.couplings or model.loops or any(t.path for t in model.tendons):
        configurations = _configurations(model, q)
        parts = resistances(model, configurations[0], servos=servos)
    else:
        parts = remember(
            model, ("resistances", servos), lambda: resistances(model, None, servos=servos)
        )
    if not parts:
        return None
    configurations = _configurations(model, q) if configurations is None else configurations
    H, N = _inertias(model, configurations, free)
    J = np.array([part.J for part in parts]) @ N
    d, k = (np.array([getattr(part, name) for part in parts]) for name in ("d", "k"))
    H = N.T @ H @ N
    worst = _stiffest(H, J, d, k)
    if worst is None or worst[1] * step < np.min(reach[1]):
        return None
    rates, vectors = _rates(H[worst[0]], J, d, k)
    shortest = np.abs(rates) / np.interp(np.abs(np.angle(rates)), *reach)
    i = int(np.argmax(shortest))
    if not shortest[i] > 0:
        return None
    along, size = np.abs(J @ vectors[:, i]) ** 2, abs(rates[i])
    damped, sprung = d * along * size, k * along
    n = int(np.argmax(damped + sprung))
    cause = parts[n].damper if damped[n] > sprung[n] else parts[n].spring
    return Fastest(cause, float(1 / size), float(1 / shortest[i]))


def _configurations(model, q):
    """Configurations (n, nq) at which stiffness is examined: neutral, and some of ``q``."""
    if q is None or not q.size:
        return model.neutral()[None]
    flat = np.asarray(q, dtype=float).reshape(-1, model.nq)
    if model.is_constrained:
        return flat[:1]
    some = flat[np.unique(np.linspace(0, len(flat) - 1, _SAMPLES).astype(int))]
    return np.concatenate([some, model.neutral()[None]])


def _inertias(model, configurations, free):
    """Inertia matrices (n, nv, nv), and a basis of the motions that constraints allow.

    With loops prescribed joints count as free, which is a bound: constraints make motions slower.
    """
    if not model.is_constrained:
        # One by one: with couplings, code for batches takes seconds to compile.
        H, one = [dynamics.mass_matrix(model, q) for q in configurations], np.eye(model.nv)
        return np.asarray(H, dtype=float), one if free is None else one[:, free == 1]
    q, at = configurations[0], model.at(0.0)
    K, units = loop_constraints(at, q, np.zeros(model.nv)).K, scaling(at)
    _, _, Vt = np.linalg.svd(units.apply(np.asarray(K, dtype=float)))
    N = units.columns[:, None] * Vt[int(rank_at(at, K)) :].T
    return np.asarray(crba.joint_space_inertia(model, q), dtype=float)[None], N


def _stiffest(H, J, d, k):
    """Index of the configuration with the largest bound on rates, and the bound; None if zero.

    The trace of ``H⁻¹ D`` is a bound of its eigenvalues.
    """
    bounds = []
    for M in H:
        try:
            A = np.linalg.solve(np.linalg.cholesky(M), J.T)
        except np.linalg.LinAlgError:  # a joint without inertia, which forward dynamics names
            bounds.append(-1.0)
            continue
        mobility = np.sum(A * A, axis=0)
        bounds.append(float(mobility @ d + np.sqrt(mobility @ k)))
    n = int(np.argmax(bounds)) if bounds else 0
    return (n, bounds[n]) if bounds and bounds[n] > 0 else None


def _rates(H, J, d, k):
    """Eigenvalues of a damped system, and their velocity vectors, (p, 2 p)."""
    L = np.linalg.cholesky(H)
    Y = np.linalg.solve(L, J.T)
    D, K = (Y * d) @ Y.T, (Y * k) @ Y.T
    p = len(H)
    rates, vectors = np.linalg.eig(np.block([[np.zeros((p, p)), np.eye(p)], [-K, -D]]))
    return rates, np.linalg.solve(L.T, vectors[p:])


def resistances(model, q, *, servos=False) -> list[Resistance]:
    """``Resistance`` list of all springs, dampers and servos of a mechanism.

    They depend on ``q`` with couplings, loops or tendons through space only.
    """
    full, found = model.uncoupled, []
    unit = np.eye(full.nv)
    G = np.asarray(Gearing(model, q).G, dtype=float) if model.couplings else unit
    for i, body in enumerate(full.bodies, start=1):
        found += _of_joint(body, G[full.v_slice[i]], f"joint {body.joint_name!r}")
    at = Gearing(model, q).q if model.couplings else model.neutral() if q is None else q
    for tendon in full.tendons:
        J = _along(tendon, full, at, G)
        found += _resistance_along(J, tendon.damping, tendon.stiffness, f"tendon {tendon.name!r}")
    for loop in model.loops:
        if has_dynamics(loop, "stiffness") or has_dynamics(loop, "damping"):
            B = np.asarray(loop_joint_motion(model, q, 0 * G[0], [loop]).B, dtype=float)
            found += _of_joint(loop, B.T, f"loop joint {loop.name!r}")
    for a in model.actuators if servos else ():
        found += _of_servo(full, a, at, G)
    return found


def _of_joint(part, rows, name):
    """``Resistance`` list of a joint's springs and dampers along its rows."""
    found = []
    damping, stiffness = (
        getattr(part.dynamics, which) if has_dynamics(part, which) else (0.0,) * len(rows)
        for which in ("damping", "stiffness")
    )
    for J, d, k in zip(rows, damping, stiffness, strict=True):
        found += _resistance_along(J, d, k, name)
    return found


def _resistance_along(J, d, k, name):
    """List with the ``Resistance`` of a damper and spring along a row; [] if both are zero."""
    d, k = max(float(d), 0.0), max(float(k), 0.0)
    if not (d or k) or not np.any(J):
        return []
    return [Resistance(J, d, k, f"the damper at {name}", f"the spring at {name}")]


def _of_servo(full, a, q, G):
    """List with the ``Resistance`` of a servo actuator, at its largest control; [] if none.

    Where its gain does, too, at the largest control.
    """
    largest = [abs(x) for x in a.control if np.isfinite(x)]
    (_, k, d), (_, gain_k, gain_d) = a.bias, a.gain
    k, d = (
        max(-x, 0.0) + abs(gain) * max(largest, default=0.0)
        for x, gain in ((k, gain_k), (d, gain_d))
    )
    if a.muscle is not None:
        k, d = a.muscle.steepest
    if a.tendon:
        rows = [_along(full.tendon(a.tendon), full, q, G)]
    elif a.joint:
        rows = G[full.v_slice[a.joint]]
    else:
        return []  # at a frame or a loop joint
    J = np.array(a.gear[: len(rows)], dtype=float) @ np.array(rows[: len(a.gear)])
    name = f"servo {a.name!r}"
    return [Resistance(J, d, k, name, name)] if (d or k) and np.any(J) else []


def _along(tendon, full, q, G):
    """Change of a tendon's length per velocity variable, (nv,)."""
    return np.asarray(tendon_motion(full, tendon, q)[1], dtype=float) @ G


# --- stability of explicit methods ---------------------------------------------------------------


@lru_cache(maxsize=64)
def stable_reach(method):
    """Angles of λ and the largest stable ``h |λ|`` at each; None if unlimited or unknown.

    None for methods that are stable for any step, or about which nothing is known.
    """
    angles = np.radians(np.arange(90.0, 180.5, 1.0))
    table = getattr(method, "tableau", None)
    if isinstance(method, SemiImplicitEuler):
        return angles, np.full(len(angles), 2.0)
    if not hasattr(table, "b"):
        return None
    r = np.arange(0.0, 20.0, 0.01)[1:]
    growth = np.abs(amplification(table, r * np.exp(1j * angles[:, None])))
    grows = np.concatenate([growth > _GROWTH, np.ones((len(angles), 1), dtype=bool)], axis=1)
    return angles, r[np.maximum(np.argmax(grows, axis=1) - 1, 0)]


def amplification(table, z):
    """Stability function ``R(z)`` of an explicit Runge-Kutta method."""
    A = np.zeros((len(table.b), len(table.b)))
    for i, row in enumerate(table.a):
        A[i, : len(row)] = row
    value, power, stages = np.ones_like(z), z, np.ones(len(table.b))
    for _ in table.b:
        value = value + power * float(np.dot(table.b, stages))
        power, stages = power * z, A @ stages
    return value


def seconds(t) -> str:
    """Duration as text in s, ms, µs or ns."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if t >= 0.9995 * unit:
            return f"{t / unit:.3g} {name}"
    return f"{t / 1e-9:.3g} ns"
