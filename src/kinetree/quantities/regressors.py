"""Public regressors: matrices that turn the inertial parameters of a model into its dynamics.

The parameters of a body are the ten of ``Inertia.parameters``, in its own frame,

    m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz

mass [kg], first moment [kg·m] and rotational inertia about the origin [kg·m²]; those of the bodies
follow one another in the order of ``model.body_names[1:]``. Pinocchio has the same ten in the same
order, and numbers the bodies in its own way (``interop.pinocchio.to_parameters``).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from kinetree.algorithms import regressors as texts
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.model import Model
from kinetree.model.define import kernel_of, quantity
from kinetree.quantities.loops import coordinate_count, with_loops

__all__ = [
    "energy_regressor", "kinetic_energy_regressor", "momentum_regressor",
    "potential_energy_regressor", "regressor",
]  # fmt: skip


Friction = bool | Literal["viscous", "coulomb"]


def _parameter_count(model, options):
    """Number of parameters: ten per body, and one per effect of a joint."""
    effects = texts.joint_effects(options.get("friction", False), options.get("rotors", False))
    return 10 * model.body_count + len(effects) * model.uncoupled.nv


def _check(model, given):
    """Raise an error for unknown friction effects."""
    texts.joint_effects(given["friction"])  # or an error


def _along_loops(at, qdd, friction, rotors):
    """Regressor along the motions that loops allow, ``Gᵀ Y``."""
    return at.G.T @ texts.regressor(at.model, at.q, at.qd, qdd, friction=friction, rotors=rotors)


def _with_joint_columns(model, options):
    """Regressor with columns of joint effects, when requested."""
    effects = texts.joint_effects(options["friction"], options["rotors"])
    if not effects or model.couplings or model.is_constrained:
        return None
    bodies = kernel_of(model, "regressor", friction=False, rotors=False)
    if not bodies.has_general_code:
        return None

    def of_arrays(q, qd, qdd):
        Y = bodies.call(q, qd, qdd)
        of = {"viscous": qd, "coulomb": np.sign(qd), "rotor": qdd}
        each = [of[effect][..., None] * np.eye(model.nv, dtype=Y.dtype) for effect in effects]
        lead = Y.shape[:-2]
        return np.concatenate(
            [Y, *(np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in each)], axis=-1
        )

    return of_arrays


def _general_text(options):
    """General code of the regressor if no option is set, else None."""
    return None if any(options.values()) else texts.regressor_in_base_coordinates


@quantity(
    (coordinate_count, _parameter_count),
    texts.regressor,
    texts.regressor_by_axial_turns,
    tree=True,
    general=_general_text,
    on_arrays=_with_joint_columns,
    gears=True,
    check=_check,
    read={"rotors": lambda model, rotors: bool(rotors)},
    selects=("independent",),
    serve=with_loops(_along_loops),
)
def regressor(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    friction: Friction = False,
    rotors: bool = False,
    independent: str | Sequence[str] | None = None,
) -> Array:
    """``Y`` with ``inverse_dynamics(model, q, qd, qdd) == Y @ p``, for the bodies of a model.

    Armature that the model has adds ``armature * qdd`` at each joint, which ``rotors`` has columns
    for. With loops it is ``Gᵀ Y`` for independent coordinates ``y`` with ``qd = G yd``: then
    ``Gᵀ tau == regressor @ p`` for all joint forces ``tau`` that produce the motion.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        qdd: joint accelerations [m/s², rad/s²], (..., nv).
        friction: add ``nv`` columns for ``"viscous"`` friction ``qd``, for ``"coulomb"`` friction
            ``sign(qd)``, or, with True, for one after the other.
        rotors: add ``nv`` columns for the inertia of rotors as felt at the joint, ``qdd``.
        independent: of a mechanism with loops, names of the joints whose variables are ``y``;
            ``kinetree.loops.independent(model)`` if left out.

    Returns:
        (..., nv, n) with ``n = 10 body_count``, plus the requested columns; (..., p, n) with loops.
        The ten columns of a body are zero in the rows of joints that do not support it.
    """


@quantity((6, _parameter_count), texts.momentum_regressor, general=True, gears=True)
def momentum_regressor(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Regressor ``Y`` of the momentum about the base origin, (..., 6, 10 body_count).

    ``momentum(model, q, qd) == Y @ p``.
    """


@quantity((_parameter_count,), texts.kinetic_energy_regressor, general=True)
def kinetic_energy_regressor(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Regressor ``y`` of the kinetic energy, (..., 10 body_count).

    ``kinetic_energy(model, q, qd) == y @ p`` for the bodies; armature of a model adds its own.
    """


@quantity((_parameter_count,), texts.potential_energy_regressor, general=True)
def potential_energy_regressor(model: Model, q: ArrayLike) -> Array:
    """Regressor ``y`` of the potential energy, (..., 10 body_count).

    ``potential_energy(model, q) == y @ p``.
    """


@quantity((_parameter_count,), texts.energy_regressor, general=True, gears=True)
def energy_regressor(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Regressor ``y`` of kinetic plus potential energy ``y @ p``, (..., 10 body_count).

    Its change over a motion is the work of the joint forces: identification without accelerations.
    """
