"""Which mechanisms can be simulated, and which integrators can move them."""

from kinetree.errors import JointError, KinetreeError, LoopError, refuse_formulas
from kinetree.integration.manifold import require_groups
from kinetree.joints.prescribed import PrescribedInstant

__all__ = ["require_method", "require_simulated"]


def require_simulated(model, t, function):
    """Raise for models that have no numbers, or joints that follow a function of time."""
    if model.scalar_type().kind == "O":  # fractions are numbers, symbols are not
        try:
            model.map_numbers(float)
        except (TypeError, KinetreeError) as error:
            refuse_formulas(function, (model,), error)
    for name, body in zip(model.joint_names, model.bodies, strict=True):
        if body.joint.at(t) != body.joint:
            raise JointError(
                f"joint {name!r} of model {model.name!r} is moved by time itself, which {function} "
                f"does not do: make it a joint with freedom, and give its motion to "
                f"{function}(prescribed={{{name!r}: motion}}); or take model.at(t), where it "
                f"stands still in that position"
            )


def require_method(model, method):
    """Raise for an integrator that cannot move this mechanism."""
    if not method.differentiates:
        return
    require_groups(model, f"integrator {method.name!r}")
    if model.loops:
        raise LoopError(
            f"integrator {method.name!r} is for trees; model {model.name!r} has loops. Use "
            f"'rk4' or 'dopri5', or constraints='generalized_alpha' of simulate for what is stiff"
        )
    for name, body in zip(model.joint_names, model.bodies, strict=True):
        if method.by_action and isinstance(body.joint, PrescribedInstant):
            raise JointError(
                f"integrator {method.name!r} makes an action stationary, which energies at one "
                f"instant do not tell: joint {name!r} of model {model.name!r} is prescribed there. "
                f"Use 'rk4' or 'implicit_midpoint', or give its motion to prescribed="
            )
