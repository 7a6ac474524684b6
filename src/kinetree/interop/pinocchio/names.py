"""Names of bodies and frames, taken from the frames of a Pinocchio model and kept unique."""

import warnings

import numpy as np

from kinetree.errors import ModelWarning
from kinetree.interop.pinocchio.placement import from_se3
from kinetree.model import Frame

__all__ = ["body_names", "frames"]


def body_names(pin_model, parts):
    """Names of the base and of the body that each of ``parts``, the joints, moves.

    The first body frame that coincides with the joint frame, or else the joint itself, names it.
    """
    links = [f for f in pin_model.frames if _kind(f) == "BODY"]
    taken, names = {f.name for f in links}, []
    sites = [(0, pin_model.names[0]), *((p.number if p.last else None, p.name) for p in parts)]
    for number, joint_name in sites:
        own = [f.name for f in links if f.parentJoint == number and _is_identity(f.placement)]
        names.append(own[0] if own else _unused(joint_name, "body", taken))
        taken.add(names[-1])
    return names


def frames(pin_model, body_names, number_of):
    """All frames that are not bodies or joints themselves.

    Args:
        pin_model: Pinocchio's model.
        body_names: names of the bodies, the base first.
        number_of: number of the body at each joint of Pinocchio.
    """
    own = [
        f
        for f in list(pin_model.frames)[1:]  # frame 0 is the universe, which is the base
        if _kind(f) != "JOINT"
        and not (_kind(f) == "BODY" and f.name == body_names[number_of[f.parentJoint]])
    ]
    taken, chosen, renamed = set(body_names), {}, []
    for frame in sorted(own, key=lambda f: _kind(f) != "BODY"):  # links come first to their names
        name = _unused(frame.name, _kind(frame).lower(), taken)
        if name != frame.name:
            renamed.append(f"{frame.name!r} to {name!r}")
        taken.add(name)
        chosen[_kind(frame), frame.name] = name
    if renamed:
        warnings.warn(
            f"model {pin_model.name!r}: frames renamed, since another body or frame has the same "
            f"name: {', '.join(renamed)}",
            ModelWarning,
            stacklevel=3,
        )
    return tuple(
        Frame(chosen[_kind(f), f.name], number_of[f.parentJoint], from_se3(f.placement))
        for f in own
    )


def _unused(name, suffix, taken):
    """``name``, with a suffix and then a number if it is taken."""
    candidate, count = name, 1
    while candidate in taken:
        candidate = f"{name}_{suffix}" if count == 1 else f"{name}_{suffix}_{count}"
        count += 1
    return candidate


def _kind(frame):
    return str(frame.type).rpartition(".")[2]


def _is_identity(M):
    return np.array_equal(M.homogeneous, np.eye(4))
