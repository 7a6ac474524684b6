"""What a copy of a model consists of when some of its parts are replaced."""

from dataclasses import replace

from kinetree.errors import ModelError

__all__ = ["replaced_parts"]


def replaced_parts(model, fields, *, inertia, **of_joints):
    """Bodies of the copy, and its loops and actuators, as fields of a model.

    Args:
        model: the original.
        fields: whole fields that the caller replaces.
        inertia: new inertias by body name, or None.
        **of_joints: new placements, joints, limits and dynamics by joint name, or None.
    """
    for what, given in {"inertia": inertia, **of_joints}.items():
        if given is not None and not isinstance(given, dict):
            raise ModelError(
                f"Model.replace: {what} must be a dictionary from names to new values, got "
                f"{type(given).__name__}"
            )
    bodies, loops = list(fields.get("bodies", model.bodies)), list(fields.get("loops", model.loops))
    for name, value in (inertia or {}).items():
        i = model.body_index(name)
        if i == 0:
            raise ModelError(f"the base {name!r} does not move and has no inertia to replace")
        bodies[i - 1] = replace(bodies[i - 1], inertia=value)
    loop_number = {loop.name: k for k, loop in enumerate(loops)}
    for attribute, changes in of_joints.items():
        for name, value in (changes or {}).items():
            if name in loop_number:
                k = loop_number[name]
                loops[k] = _with(loops[k], attribute, value)
            else:
                i = model.joint_index(name)
                bodies[i - 1] = replace(bodies[i - 1], **{attribute: value})
    actuators = fields.get("actuators")
    if actuators is None:
        actuators = _actuators(model, loop_number)
    return {"bodies": tuple(bodies), "loops": tuple(loops), "actuators": tuple(actuators)}


def _with(loop, attribute, value):
    if attribute == "placement":
        raise ModelError(
            f"Model.replace: loop joint {loop.name!r} has two placements; replace the loop itself, "
            f"model.replace(loops=...)"
        )
    return replace(loop, **{attribute: value})


def _actuators(model, loop_number):
    """Those of the model, with new numbers of the loop joints; without those of lost ones."""
    for a in model.actuators:
        if not a.loop:
            yield a
        elif model.driven_joint(a) in loop_number:
            yield replace(a, loop=loop_number[model.driven_joint(a)] + 1)
