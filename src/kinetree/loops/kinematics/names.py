"""Names of single variables and constraints, for messages and reports."""

__all__ = ["variable_names"]


def variable_names(model):
    """One name for each velocity variable: of its joint, with ``[k]`` where that has several."""
    return tuple(
        name if joint.nv == 1 else f"{name}[{k}]"
        for name, joint in zip(model.joint_names, model.joint[1:], strict=True)
        for k in range(joint.nv)
    )
