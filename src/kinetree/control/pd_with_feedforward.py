"""Follow a motion with springs and dampers, and forces computed ahead."""

from kinetree.control.motors import holding_forces, motor_forces
from kinetree.control.reference import Gain, as_reference, configuration_error
from kinetree.errors import UnknownNameError

__all__ = ["PDWithFeedforward"]


class PDWithFeedforward:
    """Springs and dampers at the joints, on top of forces from the model.

        tau = feedforward + kp (q_r - q) + kd (qd_r - qd)

    Unlike with ``ComputedTorque`` the gains are those of real springs, the same in every
    configuration, and what is computed ahead may be computed before the motion starts.

    Args:
        model: the mechanism without loops, every joint driven.
        reference: a function of time that returns ``(q, qd, qdd)``, or a configuration to go to.
        kp: stiffness [N·m/rad, N/m], a number, (nv,) or (nv, nv).
        kd: damping [N·m·s/rad, N·s/m], likewise.
        feedforward: ``"reference"``: what the motors need for the reference; ``"gravity"``: what
            holds the mechanism where it is, its springs included, which brings it to rest at a
            constant reference from anywhere; None: nothing.
    """

    def __init__(self, model, reference, kp, kd, *, feedforward="reference"):
        if feedforward not in ("reference", "gravity", None):
            raise UnknownNameError(
                f"feedforward must be 'reference', 'gravity' or None, got {feedforward!r}"
            )
        self.model, self.reference = model, as_reference(model, reference)
        self.kp, self.kd = Gain(kp, model.nv, "kp"), Gain(kd, model.nv, "kd")
        self.feedforward = feedforward

    def __call__(self, t, q, qd):
        """Forces of the motors, (..., nv)."""
        q_r, qd_r, qdd_r = self.reference(t)
        tau = self.kp(configuration_error(self.model, q, q_r)) + self.kd(qd_r - qd)
        if self.feedforward == "reference":
            tau = tau + motor_forces(self.model, q_r, qd_r, qdd_r)
        elif self.feedforward == "gravity":
            tau = tau + holding_forces(self.model, q)
        return tau
