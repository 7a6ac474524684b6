"""The contract of a joint, checked by numbers — RBDA §3.5, §4.4.

Every built-in kind passes ``check_joint``; run it on your own. Derivatives are taken by finite
differences of the joint's own ``X_J``, so the checks need nothing but the joint.
"""

import copy

import numpy as np

from kinetree.errors import JointError
from kinetree.joints.base import AbstractJoint
from kinetree.spatial import Force, Motion, Plucker, dense, exp

_STEP = 1e-4  # of the differences below: truncation and rounding both stay under 1e-10
_TOLERANCE = 1e-8


def check_joint(joint: AbstractJoint, rng: "np.random.Generator | None" = None) -> None:
    """Raise JointError for the first property of ``AbstractJoint`` that ``joint`` violates.

    Args:
        joint: an instance of any kind; of a joint that depends on time, the one with ``at``.
        rng: a NumPy random generator or a seed for the positions to try.
    """
    rng = np.random.default_rng(0 if rng is None else rng)
    _check_identity(joint)
    for _ in range(3):
        case = _Case(joint, rng.uniform(0.5, 1.5), rng)
        _check_shapes(case)
        for check in _CHECKS:
            check(case)


class _Case:
    """A joint at one time, position and velocity, with what ``jcalc`` says about it."""

    def __init__(self, joint, t, rng):
        self.joint, self.t, self.now = joint, t, joint.at(t)
        self.q, self.q_other = self.now.random(rng), self.now.random(rng)
        self.qd, self.v = rng.standard_normal(self.now.nv), rng.standard_normal(6)

    def jcalc(self, h, qd):
        """Results of ``jcalc`` after moving for the time ``h`` at the velocity ``qd``."""
        q = self.q + h * self.now.configuration_rate(self.q, qd)
        return self.joint.at(self.t + h).jcalc(q, qd)

    def require(self, actual, expected, complaint):
        """Raise JointError unless two arrays agree up to rounding and truncation."""
        actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
        size = max([1.0, *np.abs(actual).ravel(), *np.abs(expected).ravel()])
        error = np.max(np.abs(actual - expected), initial=0.0)
        if not error <= _TOLERANCE * size:
            self.fail(f"{complaint}; off by {error:.3g}")

    def fail(self, complaint):
        """Raise JointError that names the joint and the configuration."""
        raise JointError(f"{self.joint!r}: {complaint}, at q = {np.round(self.q, 6).tolist()}")


def _check_identity(joint):
    """Raise JointError unless an object is a joint with valid sizes."""
    if not isinstance(joint, AbstractJoint):
        raise JointError(f"a joint must be an instance of AbstractJoint, got {joint!r}")
    for name in ("nq", "nv"):
        size = getattr(joint, name, None)
        if not isinstance(size, int) or size < 0:
            raise JointError(f"{joint!r}: {name} must be a count, got {size!r}")
    if joint.nv > 6 or joint.nq < joint.nv:
        raise JointError(
            f"{joint!r}: need nv <= 6 and nq >= nv, got nq = {joint.nq}, nv = {joint.nv}"
        )
    twin = copy.deepcopy(joint)
    try:
        same = twin == joint and hash(twin) == hash(joint)
    except TypeError as error:
        raise JointError(f"{joint!r}: must be hashable; a frozen dataclass is: {error}") from None
    if not same:
        raise JointError(f"{joint!r}: must equal its copy and hash alike; a frozen dataclass does")


def _check_shapes(case):
    """Check the types and shapes of everything that a joint returns."""
    now, q, qd = case.now, case.q, case.qd
    nq, nv = now.nq, now.nv
    _shape(case, "random", q, (nq,))
    _shape(case, "neutral", now.neutral(), (nq,))
    parts = now.jcalc(q, qd)
    if not isinstance(parts, tuple) or len(parts) != 4:
        case.fail(f"jcalc must return (X_J, S, v_J, c_J), got {parts!r}")
    kinds = (Plucker, Motion, Motion, Motion)
    for name, part, kind in zip(("X_J", "S", "v_J", "c_J"), parts, kinds, strict=True):
        _kind(case, f"{name} of jcalc", part, kind)
    X_J, S, v_J, c_J = parts
    _shape(case, "E of X_J", X_J.E, (3, 3))
    _shape(case, "r of X_J", X_J.r, (3,))
    _shape(case, "S", S.to_array(), (6, nv))
    _shape(case, "v_J", v_J.to_array(), (6,))
    _shape(case, "c_J", c_J.to_array(), (6,))
    for name, size in (("constraint_subspace", 6 - nv), ("active_subspace", nv)):
        columns = getattr(now, name)(q)
        _kind(case, name, columns, Force)
        _shape(case, name, columns.to_array(), (6, size))
    _shape(case, "configuration_rate", now.configuration_rate(q, qd), (nq,))
    _shape(case, "integrate", now.integrate(q, qd), (nq,))
    _shape(case, "difference", now.difference(q, case.q_other), (nv,))
    _shape(case, "coordinates", now.coordinates(X_J), (nq,))
    _shape(case, "loop_error", now.loop_error(X_J), (6 - nv,))
    _shape(case, "normalize", now.normalize(q), (nq,))
    if now.defect(q) is not None:
        case.fail(f"defect complains about a random position: {now.defect(q)}")


def _shape(case, name, array, shape):
    """Raise JointError unless an array has the given shape."""
    if np.shape(array) != shape:
        case.fail(f"{name} must have shape {shape}, got {np.shape(array)}")


def _kind(case, name, value, kind):
    """Raise JointError unless a value has the given type."""
    if not isinstance(value, kind):
        case.fail(f"{name} must be a {kind.__name__}, got {type(value).__name__}")


def _check_rotation(case):
    """Check that ``X_J`` turns by a proper rotation."""
    E = case.now.transform(case.q).E
    case.require(E @ E.T, np.eye(3), "E of X_J is not a rotation: E E^T differs from 1")
    case.require(np.linalg.det(E), 1.0, "E of X_J is not a proper rotation: det E is not 1")


def _check_neutral(case):
    """Check that ``X_J`` is the identity at the neutral position, if it can be."""
    now, one = case.now, Plucker.identity()
    reachable = now.transform(now.coordinates(one)).to_matrix()
    if np.allclose(reachable, np.eye(6), rtol=0, atol=_TOLERANCE):
        at_neutral = now.transform(now.neutral()).to_matrix()
        case.require(at_neutral, np.eye(6), "X_J at neutral() is not the identity")


def _check_velocity(case):
    """Check that ``v_J`` is ``S qd``, and the rate of ``X_J``."""
    now, q, qd = case.now, case.q, case.qd
    _, S, v_J, _ = now.jcalc(q, qd)
    sigma = now.jcalc(q, np.zeros(now.nv))[2]
    case.require((v_J - sigma).to_array(), (S @ qd).to_array(), "v_J is not S qd (plus sigma)")
    for rates in (*np.eye(now.nv), qd):
        dX = _rate(lambda h, rates=rates: case.jcalc(h, rates)[0].to_matrix())
        X_J, _, v_J, _ = now.jcalc(q, rates)
        case.require(
            -dense.crm(v_J.to_array()) @ X_J.to_matrix(),
            dX,
            f"v_J is not the velocity of X_J along configuration_rate for qd = "
            f"{np.round(rates, 3).tolist()}: check S, sigma and configuration_rate",
        )


def _check_bias(case):
    """Check that ``c_J`` is the rate of ``v_J`` at constant velocity variables."""
    c_J = case.now.jcalc(case.q, case.qd)[3]
    expected = _rate(lambda h: case.jcalc(h, case.qd)[2].to_array())
    case.require(c_J.to_array(), expected, "c_J is not the rate of v_J at constant qd")


def _check_subspaces(case):
    """Check ranks of ``S`` and ``T``, and that they complement each other."""
    now, q = case.now, case.q
    S, T = now.motion_subspace(q), now.constraint_subspace(q)
    T_a = now.active_subspace(q)
    for name, columns in (("S", S), ("T", T)):
        if (
            np.linalg.matrix_rank(columns.to_array().astype(float), tol=_TOLERANCE)
            < (columns.angular.shape[1])
        ):
            case.fail(f"{name} has linearly dependent columns")
    case.require(T.T @ S, np.zeros((6 - now.nv, now.nv)), "T^T S is not zero")
    case.require(T_a.T @ S, np.eye(now.nv), "T_a^T S is not 1")


def _check_flags(case):
    """Check the flags by which a joint declares constant axes and rates."""
    now, q, qd = case.now, case.q, case.qd
    if now.constant_subspace:
        S, other = (now.motion_subspace(p).to_array() for p in (q, case.q_other))
        case.require(S, other, "constant_subspace is True, but S changes with q")
    rate = now.configuration_rate(q, qd)
    if now.rates_are_velocities:
        if now.nq != now.nv:
            case.fail("rates_are_velocities is True, but nq is not nv")
        case.require(rate, qd, "rates_are_velocities is True, but dq/dt is not qd")
    elif now.nq == now.nv and np.array_equal(rate, qd):
        case.fail("rates_are_velocities is False, but dq/dt is qd")
    for rates in (qd, -qd):
        rate = now.configuration_rate(q, rates)
        case.require(now.rate_matrix(q) @ rates, rate, "configuration_rate is not linear in qd")


def _check_manifold(case):
    """Check ``integrate`` and ``difference`` against each other and ``configuration_rate``."""
    now, q, dv = case.now, case.q, case.qd / 3
    case.require(now.integrate(q, 0 * dv), q, "integrate(q, 0) is not q")
    start = _rate(lambda h: now.integrate(q, h * dv))
    case.require(
        start, now.configuration_rate(q, dv), "integrate does not start with configuration_rate"
    )
    back = now.difference(q, now.integrate(q, dv))
    case.require(back, dv, "difference(q, integrate(q, dv)) is not dv")
    reached = now.integrate(q, now.difference(q, case.q_other))
    case.require(
        now.transform(reached).to_matrix(),
        now.transform(case.q_other).to_matrix(),
        "integrate(q0, difference(q0, q1)) is not q1",
    )
    case.require(
        now.transform(now.normalize(q)).to_matrix(),
        now.transform(q).to_matrix(),
        "normalize(q) changes X_J",
    )


def _check_coordinates(case):
    """Check that ``coordinates`` reproduces ``X_J``."""
    now, X_J = case.now, case.now.transform(case.q)
    again = now.transform(now.coordinates(X_J))
    case.require(again.to_matrix(), X_J.to_matrix(), "coordinates(X_J(q)) does not reproduce X_J")


def _check_loop_error(case):
    """Check that ``loop_error`` vanishes on the manifold, and its rate."""
    now, X_J = case.now, case.now.transform(case.q)
    zero = np.zeros(6 - now.nv)
    case.require(now.loop_error(X_J), zero, "loop_error is not zero on the manifold")
    v = Motion.from_array(case.v)
    rate = _rate(lambda h: now.loop_error(exp(v * h) @ X_J))
    T = now.constraint_subspace(now.coordinates(X_J))
    case.require(rate, T.T @ v, "rate of loop_error is not T^T v_J")


_CHECKS = (
    _check_rotation,
    _check_neutral,
    _check_velocity,
    _check_bias,
    _check_subspaces,
    _check_flags,
    _check_manifold,
    _check_coordinates,
    _check_loop_error,
)


def _rate(f):
    """Derivative of an array function at zero, by a central difference of fourth order."""
    h = _STEP
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
