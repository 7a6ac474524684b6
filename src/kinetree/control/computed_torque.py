"""Follow a motion by cancelling the dynamics."""

from kinetree.control.motors import motor_forces
from kinetree.control.reference import Gain, as_reference, configuration_error, damping_for

__all__ = ["ComputedTorque"]


class ComputedTorque:
    """Inverse dynamics of the wanted acceleration plus corrections.

        tau = inverse_dynamics(q, qd, qdd_r + kd (qd_r - qd) + kp (q_r - q)) - passive_force(q, qd)

    With an exact model the error ``e`` of every joint obeys ``ë + kd ė + kp e = 0``, whatever the
    mechanism. Differences of configurations are ``model.difference``; velocities of spherical
    joints are compared as numbers, each in its own frame, which keeps the error dynamics stable.

        follow = kt.control.ComputedTorque(m, lambda t: (q_r(t), qd_r(t), qdd_r(t)), kp=100)
        tau = follow(t, q, qd)

    Args:
        model: the mechanism without loops, every joint driven.
        reference: a function of time that returns ``(q, qd, qdd)``, or a configuration to go to.
        kp: stiffness per inertia [1/s²], a number, (nv,) or (nv, nv).
        kd: damping per inertia [1/s]; critical if left out.
    """

    def __init__(self, model, reference, kp, kd=None):
        self.model, self.reference = model, as_reference(model, reference)
        self.kp = Gain(kp, model.nv, "kp")
        self.kd = Gain(damping_for(kp, kd), model.nv, "kd")

    def __call__(self, t, q, qd):
        """Forces of the motors, (..., nv)."""
        q_r, qd_r, qdd_r = self.reference(t)
        e = configuration_error(self.model, q, q_r)
        return motor_forces(self.model, q, qd, qdd_r + self.kd(qd_r - qd) + self.kp(e))
