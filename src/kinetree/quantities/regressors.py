"""Public regressors: matrices that turn the inertial parameters of a model into its dynamics.

The parameters of a body are the ten of ``Inertia.parameters``, in its own frame,

    m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz

mass [kg], first moment [kg·m] and rotational inertia about the origin [kg·m²]; those of the bodies
follow one another in the order of ``model.body_names[1:]``. Pinocchio has the same ten in the same
order, and numbers the bodies in its own way (``interop.pinocchio.to_parameters``).
"""

from kinetree.algorithms.regressors import joint_effects
from kinetree.quantities.functions import quantity

__all__ = [
    "energy_regressor",
    "kinetic_energy_regressor",
    "momentum_regressor",
    "potential_energy_regressor",
    "regressor",
]


def regressor(model, q, qd, qdd, *, friction=False, rotors=False):
    """``Y`` with ``inverse_dynamics(model, q, qd, qdd) == Y @ p``, for the bodies of a model.

    Armature that the model has adds ``armature * qdd`` at each joint, which ``rotors`` has columns
    for.

    Args:
        model: the mechanism, without loops.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        qdd: joint accelerations [m/s², rad/s²], (..., nv).
        friction: add ``nv`` columns for ``"viscous"`` friction ``qd``, for ``"coulomb"`` friction
            ``sign(qd)``, or, with True, for one after the other.
        rotors: add ``nv`` columns for the inertia of rotors as felt at the joint, ``qdd``.

    Returns:
        (..., nv, n) with ``n = 10 body_count``, plus the columns asked for. The ten columns of a
        body are zero in the rows of joints that do not support it.
    """
    if not (friction or rotors):
        return quantity(model, "regressor").call(q, qd, qdd)
    joint_effects(friction)  # or an error
    chosen = {"friction": friction, "rotors": bool(rotors)}
    return quantity(model, "regressor", **chosen).call(q, qd, qdd)


def momentum_regressor(model, q, qd):
    """``Y`` with ``momentum(model, q, qd) == Y @ p``, (..., 6, 10 body_count)."""
    return quantity(model, "momentum_regressor").call(q, qd)


def kinetic_energy_regressor(model, q, qd):
    """``y`` with ``kinetic_energy(model, q, qd) == y @ p``, (..., 10 body_count)."""
    return quantity(model, "kinetic_energy_regressor").call(q, qd)


def potential_energy_regressor(model, q):
    """``y`` with ``potential_energy(model, q) == y @ p``, (..., 10 body_count)."""
    return quantity(model, "potential_energy_regressor").call(q)


def energy_regressor(model, q, qd):
    """``y`` with ``y @ p`` the kinetic and potential energy together, (..., 10 body_count).

    Its change over a motion is the work of the joint forces: identification without accelerations.
    """
    return quantity(model, "energy_regressor").call(q, qd)
