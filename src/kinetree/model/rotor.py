"""Rotors: bodies that spin on a carrier, geared to a joint — RBDA §9.6."""

from kinetree.errors import ModelError, names_itself
from kinetree.joints import Revolute
from kinetree.model.coupling import Coupling
from kinetree.model.model import Model
from kinetree.model.parts import Body, Posture, as_placement

__all__ = ["add_rotor"]


@names_itself
def add_rotor(
    model, joint, *, ratio, inertia, on=None, at=None, axis=None, name=None, leads="joint",
    dynamics=None,
) -> Model:  # fmt: skip
    """A motor's rotor, as a body that turns ``ratio`` times as fast as a joint.

    It is carried by the body that holds the stator, and so feels how that body turns: gyroscopic
    forces and the small inertial couplings that ``armature = ratio² I`` leaves out, see
    ``kinetree.quantities.gears.armature_error``.

    Args:
        model: the mechanism.
        joint: name of the joint that the motor drives, with one variable.
        ratio: rotor angle per joint variable; negative for gears that turn against each other.
        inertia: ``Inertia`` of the rotor in its own frame, which turns about ``axis``.
        on: name of the body with the stator; by default the parent of the joint.
        at: where the rotor is on it: a position (3,) or a ``Plucker``; by default at the joint.
        axis: of the rotor; by default that of a revolute joint.
        name: of the rotor; by default that of the joint followed by ``_rotor``.
        leads: ``"joint"``, whose variable stays; or ``"rotor"``, whose angle takes its place.
        dynamics: damping, friction and so on in the bearings of the rotor.
    """
    i = model.joint_index(joint)
    moved, full = model.bodies[i - 1], model.uncoupled
    name = f"{joint}_rotor" if name is None else name
    if leads not in ("joint", "rotor"):
        raise ModelError(f"leads must be 'joint' or 'rotor', got {leads!r}")
    if ratio == 0:
        raise ModelError(f"ratio of rotor {name!r} must not be zero")
    if axis is None:
        axis = getattr(moved.joint, "axis", None) if isinstance(moved.joint, Revolute) else None
        if axis is None:
            raise ModelError(
                f"rotor {name!r} needs an axis: joint {joint!r} is a {type(moved.joint).__name__}"
            )
    parent = moved.parent if on is None else model.body_index(on)
    if at is None:
        at = moved.placement if on is None else None
    number = model.body_count + 1
    rotor = Body(
        name, parent, Revolute(axis), as_placement(at), inertia, f"{name}_joint", dynamics=dynamics
    )
    if leads == "joint":
        gear = Coupling(f"{name}_gear", number, i, (0.0, float(ratio)))
    else:
        gear = Coupling(f"{name}_gear", i, number, (0.0, 1 / ratio))
    q, v = full.q_slice[i].start, full.v_slice[i].start
    postures = [
        Posture(p.name, (*p.q, ratio * p.q[q]), (*p.qd, ratio * p.qd[v]) if p.moves else ())
        for p in full.postures
    ]
    return model.replace(
        bodies=(*model.bodies, rotor), couplings=(*model.couplings, gear), postures=postures
    )
