"""``identify``: base parameters from measured motion, by weighted least squares."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.progress import working
from kinetree.errors import (
    ExcitationError,
    ExcitationWarning,
    IdentifiabilityError,
    ShapeError,
    warn,
)
from kinetree.identification.base import BaseParameters, base_parameters, require_freedoms
from kinetree.identification.consistent import possible_parameters, triangular
from kinetree.identification.forces import Forces, JointForces, MotorForces
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.model.gearing import Gearing
from kinetree.notebook import block, table, text_table

_HEAD = ("parameter", "value", "std. dev.")


@dataclass(frozen=True, eq=False)
class Identification:
    """Base parameters of a mechanism, estimated from measurements.

    Attributes:
        base: which combinations of parameters these are; ``base.labels`` names them.
        values: the estimates, (n,).
        covariance: of their errors, (n, n).
        noise: standard deviation of the measured joint forces about the fit, (nv,) [N, N·m].
        residuals: measured minus fitted joint forces, (..., nv). With loops both are about
            ``Gᵀ tau``, (p,) and (..., p).
        condition: condition number of the least-squares problem with columns of unit length.
            Below 100 the motion excites all parameters well; far above, noise dominates.
        parameters: with ``consistent=True`` a value for every single parameter, (len(names),):
            determined by the data, and otherwise as close as possible to the given model.
    """

    base: BaseParameters
    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residuals: np.ndarray
    condition: float
    parameters: np.ndarray | None = None
    identified_model: Model | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimates: single parameters, or combinations of them."""
        return self.base.labels

    @property
    def standard_deviations(self) -> Array:
        """Standard deviations of the estimates, (n,)."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def identifiable(self) -> Array:
        """Mask of the parameters in ``base.names`` that have their own estimate."""
        return self.base.identifiable

    def __getitem__(self, name):
        """The estimate of a parameter or combination, by name.

        Raises:
            IdentifiabilityError: for a parameter that is not identifiable by itself.
        """
        return float(self.values[self.base.index(name)])

    def standard_deviation(self, name: str) -> float:
        """Standard deviation of one estimate, by name."""
        return float(self.standard_deviations[self.base.index(name)])

    @property
    def model(self) -> Model:
        """Model with physically possible inertias that fit the data (``consistent=True``).

        Friction and rotor inertia of its joints are those of the given model:
        ``joint_parameter`` has the identified ones.
        """
        if self.identified_model is None:
            raise IdentifiabilityError(
                f"only {len(self.base)} combinations of the {len(self.base.names)} parameters are "
                f"known, which is not a model; identify(..., consistent=True) chooses the possible "
                f"model nearest to the given one"
            )
        return self.identified_model

    def joint_parameter(self, name: str) -> float:
        """Friction or rotor inertia of a joint by name, such as ``"elbow.viscous"``.

        With ``consistent=True`` it always has a value, otherwise only if it is identifiable.
        """
        if self.parameters is None:
            return self[name]
        if name not in self.base.names:
            self.base.index(name)  # raises
        return float(self.parameters[self.base.names.index(name)])

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Joint forces predicted by the estimates, (..., nv); with loops ``Gᵀ tau``, (..., p)."""
        return self.base.regressor(q, qd, qdd) @ self.values

    def summary(self) -> str:
        """Text table of the estimates."""
        estimates = zip(self.names, self.values, self.standard_deviations, strict=True)
        rows = [(name, f"{x:>12.6g}", f"{d:>10.2g}") for name, x, d in estimates]
        found = text_table([_HEAD, *rows], right=(1, 2))
        return f"{found}\ncondition number {self.condition:.4g}"

    def _repr_html_(self):
        """HTML table of this object for notebooks."""
        rows = list(zip(self.names, self.values, self.standard_deviations, strict=True))
        return block(repr(self), table(_HEAD, rows, most=200))

    def __repr__(self):
        rows = self.residuals.size
        return (
            f"Identification({self.base.model.name!r}: {len(self.base)} base parameters from "
            f"{rows} joint forces, condition number {self.condition:.3g})"
        )


_DEFICIENT = 1e-8  # relative size of a singular value below which a direction is not excited
_FAINT = 1e3  # condition number above which noise decides
_FINEST = 1e-7  # of the largest force: no measurement is taken to be more precise


@working("identifying parameters")
@on_host
def identify(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    tau: ArrayLike | MotorForces | JointForces,
    *,
    weights: ArrayLike | None = None,
    friction: bool = False,
    rotors: bool = False,
    consistent: bool = False,
    regularisation: float = 0.1,
    tolerance: float = 1e-7,
    independent: str | Sequence[str] | None = None,
) -> "Identification":
    """Estimate the inertial parameters of a mechanism from measured motion and joint forces.

    Solves ``Y(q, qd, qdd) p = tau`` for the base parameters, the combinations of parameters that
    joint forces depend on. A parameter that is not identifiable by itself has no value. With
    loops it is ``Gᵀ Y p = Gᵀ tau``: loop forces need not be measured.

    Args:
        model: the mechanism; geometry and gravity are taken from it. Its inertias count only with
            ``consistent=True``.
        q: measured positions, (..., nq).
        qd: velocities, (..., nv).
        qdd: accelerations, (..., nv).
        tau: ``MotorForces`` or ``JointForces``, or an array (..., nv), which is taken for the
            latter, with a warning where it matters; zero at joints without a motor.
        weights: one over the standard deviation of the measured forces, (nv,) or (..., nv); zero
            leaves a measurement out. By default the spread about an unweighted fit, joint by joint.
            With loops, of ``Gᵀ tau``, (p,) or (..., p).
        friction: identify friction too: ``"viscous"``, ``"coulomb"``, or both with True.
        rotors: identify the inertia of the rotors as felt at the joints too.
        consistent: find a complete model with physically possible inertias, as close to ``model``
            as the data allow. See ``Identification.model``.
        regularisation: with ``consistent``, cost of changing an inertia by 100 %, relative to a
            misfit of one standard deviation of one measurement.
        tolerance: of the rank decision, as in ``base_parameters``.
        independent: of a mechanism with loops, names of the joints whose variables are the
            coordinates of ``regressor``; ``kinetree.loops.independent(model)`` if left out.

    Returns:
        Estimates of the base parameters, their covariance, the residuals, the condition number.

    Raises:
        ExcitationError: the motion does not excite all base parameters; the message names them.

    Warns:
        ExcitationWarning: the motion excites some of them only weakly.
        ModelWarning: joints have springs or friction, and nothing says which forces these are.
    """
    require_freedoms(model, "identify")
    options: dict = {"friction": friction, "rotors": rotors, "tolerance": tolerance}
    base = base_parameters(model, **options, independent=independent)
    forces = tau if isinstance(tau, MotorForces | JointForces) else Forces(tau)
    q, qd, qdd, measured = _measurements(model, q, qd, qdd, forces.tau)
    whole = forces.along_joints(model, q, qd, measured, base.friction)
    if not rotors:  # what is known of them is not to be identified
        whole = whole - _armature_force(model, q, qd, qdd)
    along = base.projected(q, qd, whole)
    Y = base.regressor(q, qd, qdd)
    w = _weights(base, Y, along, weights)
    A, b = (Y * w[..., None]).reshape(along.size, len(base)), (along * w).ravel()
    condition, extra = _condition(base, A), {}
    if consistent:
        values, covariance, extra = _consistent_solution(model, base, A, b, regularisation)
    else:
        values, covariance = _solution(A, b)
    residuals = along - Y @ values
    n = along.shape[-1]
    noise = np.sqrt(np.mean(residuals.reshape(along.size // max(n, 1), n) ** 2, axis=0))
    return Identification(base, values, covariance, noise, residuals, condition, **extra)


def _measurements(model, q, qd, qdd, tau):
    """Measured arrays broadcast to common batch axes."""
    arrays = [as_configuration(model, q)]
    names = {"qd": qd, "qdd": qdd, "tau": tau}
    arrays += [as_joint_vector(model, x, name) for name, x in names.items()]
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    return [np.broadcast_to(a, (*batch, a.shape[-1])).astype(float) for a in arrays]


def _weights(base, Y, tau, given):
    """Weights of the measured forces: given ones, or from the residuals of a fit."""
    if given is None:
        _singular_values(base, Y.reshape(tau.size, len(base)))  # or an error
        given = _weights_from_spread(Y, tau)
    return np.broadcast_to(_checked_weights(given, tau.shape), tau.shape)


def _checked_weights(weights, shape):
    """Weights as an array that broadcasts to the samples; checked."""
    weights = np.asarray(weights, dtype=float)
    fits = weights.ndim > 0 and weights.shape[-1] == shape[-1] and weights.ndim <= len(shape)
    if not fits or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ShapeError(
            f"weights must be finite and not negative, one for each velocity variable, "
            f"({shape[-1]},), or for each measured force, {shape}; got shape {weights.shape}"
        )
    return weights


def _weights_from_spread(Y, tau):
    """Inverse standard deviation of each joint's force, by iteratively weighted fits."""
    count, n = Y.shape[-1], tau.shape[-1]
    samples = tau.size // n
    size = max(np.max(np.abs(tau), initial=0.0), 1e-300)
    data = np.concatenate([Y, tau[..., None]], axis=-1).reshape(samples, n, count + 1)
    # All that a fit needs to know of a joint is the triangular factor of its rows.
    R = np.array([np.linalg.qr(data[:, j], mode="r") for j in range(n)])
    weights = np.full(n, 1 / size)
    for _ in range(50):
        weighted = R * weights[:, None, None]
        A = weighted[..., :-1].reshape(R.shape[0] * R.shape[1], count)
        values, covariance = _solution(A, weighted[..., -1].ravel())
        squares = np.sum((R[..., -1] - R[..., :-1] @ values) ** 2, axis=1)
        # What a joint's forces spend on the fit, in degrees of freedom: the trace of A C Aᵀ.
        spent = np.sum((A @ covariance) * A, axis=1).reshape(n, -1).sum(axis=1)
        spread = np.sqrt(squares / np.maximum(samples - spent, 1.0))
        new = 1 / np.maximum(spread, _FINEST * size)
        change = np.max(np.abs(new / weights - 1))
        weights = new
        if change < 1e-3:
            break
    return weights


def _solution(A, b):
    """Least-squares solution and its covariance for unit noise."""
    scale = np.linalg.norm(A, axis=0)
    R, b = triangular(A / scale, b)
    inverse = np.linalg.inv(R) / scale[:, None]
    return inverse @ b, inverse @ inverse.T


def _consistent_solution(model, base, A, b, regularisation):
    """Base parameters of a physically possible model, their covariance, and the model."""
    K = base.combinations
    found = possible_parameters(model, base, A @ K, b, regularisation)
    D = K @ found.spread
    extra = {"parameters": found.parameters, "identified_model": found.model}
    return K @ found.parameters, D @ D.T, extra


def _condition(base, A):
    """Condition number of the regressor with unit columns; warns if it is bad."""
    s, Vt = _singular_values(base, A)
    condition = float(s[0] / s[-1]) if len(s) else 1.0
    if condition > _FAINT:
        worst = np.argsort(-np.abs(Vt[-1]))[:3]
        warn(
            f"the motion excites some parameters of model {base.model.name!r} only weakly: "
            f"condition number {condition:.3g}, above {_FAINT:g}; the least certain are "
            f"{_list(base, worst)}. Move more joints at once, faster and further",
            ExcitationWarning,
        )
    return condition


def _singular_values(base, A):
    """Singular values of the regressor with unit columns; an error for insufficient data."""
    if len(A) < len(base):
        raise ExcitationError(
            f"{len(A)} joint forces do not determine {len(base)} base parameters of model "
            f"{base.model.name!r}; measure more of them"
        )
    norms = np.linalg.norm(A, axis=0)
    still = norms <= _DEFICIENT * np.max(norms, initial=0.0)
    if np.any(still):
        raise ExcitationError(_unseen(base, np.flatnonzero(still)))
    _, s, Vt = np.linalg.svd(np.linalg.qr(A / norms, mode="r"))
    hidden = Vt[s <= _DEFICIENT * np.max(s, initial=0.0)]
    if len(hidden):
        part = np.linalg.norm(hidden, axis=0)
        raise ExcitationError(_unseen(base, np.flatnonzero(part > 0.1 * np.max(part))))
    return s, Vt


def _unseen(base, which):
    """Error message about parameters that the motion does not excite."""
    return (
        f"the motion does not show all base parameters of model {base.model.name!r}: it cannot "
        f"tell {_list(base, which)}. Move more joints at once, at changing speeds; see "
        f"identification.exciting_trajectory"
    )


def _list(base, which, most=4):
    """First few labels of base parameters, as text."""
    shown = "; ".join(base.labels[k] for k in which[:most])
    return shown + (f" and {len(which) - most} more" if len(which) > most else "")


def _armature_force(model, q, qd, qdd):
    """Joint forces due to the armature, (..., nv)."""
    if not model.couplings:
        return model.armature * qdd
    A = np.asarray(model.uncoupled.armature, dtype=float)
    forces = np.zeros(qdd.shape)
    for n in np.ndindex(qdd.shape[:-1]):
        at = Gearing(model, q[n], qd[n])
        forces[n] = at.G.T @ (A * (at.G @ qdd[n] + at.g))
    return forces
