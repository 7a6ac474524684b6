"""Joints of a Pinocchio model one by one: parts of composite joints, mimic joints."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import InteropError, MissingPackageError
from kinetree.interop.pinocchio.kinds import kind_of, universal_letters
from kinetree.joints import Helical
from kinetree.model import Coupling
from kinetree.spatial import Inertia, Plucker


class Leaf(NamedTuple):
    """A joint that is a whole joint of Pinocchio's model, or part of one."""

    name: str
    joint: Any
    placement: Plucker
    """From the coordinates of the parent body, or of the part before, to its own."""
    number: int
    """Number in Pinocchio's model of the whole joint."""
    first: bool
    """Whether it is the first part, which sits on the parent."""
    last: bool
    """Whether it is the last part, which carries the body."""
    q: slice
    """Slice of its position variables in Pinocchio's vectors."""
    v: slice


def leaves(pin_model):
    """Joints of ``pin_model`` in order; part ``k`` of composite joint ``j`` is ``j_k``."""
    result = []
    q = v = 0
    for number in range(1, pin_model.njoints):
        placement = from_se3(pin_model.jointPlacements[number])
        joint = pin_model.joints[number].extract()
        parts = list(_parts(pin_model.names[number], joint, placement))
        for k, (name, part, X) in enumerate(parts):
            at_q, at_v = slice(q, q + part.nq), slice(v, v + part.nv)
            q, v = at_q.stop, at_v.stop
            ends = {"first": k == 0, "last": k == len(parts) - 1}
            result.append(Leaf(name, part, X, number, **ends, q=at_q, v=at_v))
    return result


def _parts(name, joint, placement):
    """Name, joint and placement of each part of a joint; two for an oblique universal one."""
    if kind_of(joint) == "JointModelComposite":
        if joint.njoints == 0:
            raise InteropError(f"composite joint {name!r} has no parts; add at least one joint")
        parts = zip(joint.joints, map(from_se3, joint.jointPlacements), strict=True)
        for k, (part, X) in enumerate(parts, start=1):
            yield from _parts(f"{name}_{k}", part.extract(), X @ placement if k == 1 else X)
    elif kind_of(joint) == "JointModelUniversal" and not universal_letters(joint):
        for k, axis in enumerate((joint.axis1, joint.axis2), start=1):
            part = pinocchio().JointModelRevoluteUnaligned(axis)
            part.setIndexes(1, 0, 0)
            yield f"{name}_{k}", part, placement if k == 1 else Plucker.identity()
    else:
        yield name, joint, placement


# --- The library ---------------------------------------------------------------------------------


class MissingLibraryError(InteropError, MissingPackageError):
    """The other library is not installed."""


def pinocchio() -> Any:
    """Module ``pinocchio``; an error says how to install it."""
    try:
        import pinocchio as library  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingLibraryError(
            f"kinetree.interop.pinocchio needs Pinocchio, which cannot be imported ({error}): "
            f'pip install "kinetree[pinocchio]"'
        ) from error
    if not hasattr(library, "SE3"):
        raise MissingLibraryError(
            f"the module 'pinocchio' at {library.__file__} is not the rigid-body library but a "
            f'namesake: pip uninstall pinocchio, then pip install "kinetree[pinocchio]", which '
            f"brings the package called pin"
        )
    return library


# --- Placements and inertias ---------------------------------------------------------------------
# Pinocchio's ``SE3(R, p)`` is the pose of a frame; ``Plucker(E, r)`` the coordinate transform to
# it.


def from_se3(M) -> Plucker:
    """Plücker transform to the frame with the pose ``M``, an SE3 of Pinocchio."""
    return Plucker(np.array(M.rotation.T), np.array(M.translation))


def to_se3(pin, X):
    """Pose (SE3 of Pinocchio) of the frame that ``X`` transforms to."""
    return pin.SE3(np.asarray(X.E.T, dtype=float), np.asarray(X.r, dtype=float))


def from_inertia(Y) -> Inertia:
    """Kinetree's inertia from one of Pinocchio."""
    return Inertia.from_mass_center(Y.mass, np.array(Y.lever), np.array(Y.inertia))


def to_inertia(pin, I):
    """Pinocchio's inertia from kinetree's, also if physically impossible."""
    if I.mass == 0:
        Y = pin.Inertia.Zero()
        Y.inertia = np.asarray(I.rotational, dtype=float)
        return Y
    return pin.Inertia.FromDynamicParameters(np.asarray(I.parameters(), dtype=float))


# --- Couplings and mimic joints ------------------------------------------------------------------
# A group of coupled joints has one variable. In Pinocchio it is that of the joint with the smallest
# number, and what the others have of armature, damping and friction goes to it, seen through the
# gear.


class LeafJoint(NamedTuple):
    """A joint without independent variables in Pinocchio's model."""

    name: str
    leader: str
    scaling: float
    offset: float


def followers(pin_model):
    """Mimic joints of a Pinocchio model."""
    found = zip(pin_model.mimicking_joints, pin_model.mimicked_joints, strict=True)
    return [
        LeafJoint(pin_model.names[i], pin_model.names[j], joint.scaling, joint.offset)
        for i, j in found
        if kind_of(joint := pin_model.joints[i].extract()) == "JointModelMimic"
    ]


def couplings(pin_model, joint_names):
    """Couplings for the mimic joints of a Pinocchio model."""
    number = {name: i for i, name in enumerate(joint_names, start=1)}
    return tuple(
        Coupling(f"{f.name}_mimic", number[f.name], number[f.leader], (f.offset, f.scaling))
        for f in followers(pin_model)
    )


def add_mimic_joints(pin, result, model):
    """Pinocchio model with the couplings of ``model`` as mimic joints."""
    places = _places(model)
    groups = {}
    for i, (root, _, _) in places.items():
        groups.setdefault(root, {})[result.getJointId(model.joint_names[i - 1])] = i
    for numbers in groups.values():
        first, *others = sorted(numbers)
        _, a, b = places[numbers[first]]
        for k in others:
            _refuse_helical(model, numbers[k])
            _, offset, factor = places[numbers[k]]
            scaling = factor / b
            _hand_over(result, first, k, scaling)
            result = pin.transformJointIntoMimic(result, first, k, scaling, offset - scaling * a)
    return result


def _refuse_helical(model, i):
    """Raise InteropError for helical mimic joints, which Pinocchio computes wrongly."""
    if isinstance(model.bodies[i - 1].joint, Helical):
        raise InteropError(
            f"joint {model.joint_names[i - 1]!r} is helical and follows another; Pinocchio cannot "
            f"compute with helical mimic joints, only with revolute and prismatic ones. Remove the "
            f"coupling with model.replace(couplings=...), or let the helical joint lead"
        )


def _hand_over(result, leader, follower, scaling):
    """Add a mimic joint's armature, damping and friction to its leader."""
    i, j = result.idx_vs[leader], result.idx_vs[follower]
    result.armature[i] += scaling**2 * result.armature[j]
    result.damping[i] += scaling**2 * result.damping[j]
    result.upperDryFrictionLimit[i] += abs(scaling) * result.upperDryFrictionLimit[j]
    result.lowerDryFrictionLimit[i] += abs(scaling) * result.lowerDryFrictionLimit[j]


def _places(model):
    """For every coupled joint ``i`` its final leader ``s`` and ``q_i = a + b q_s``."""
    coupling = {c.joint: c for c in model.couplings}

    def place(i):
        if i not in coupling:
            return i, 0.0, 1.0
        c = coupling[i]
        a, b, *rest = (*c.coefficients, 0.0)
        if c.source == 0 or b == 0 or np.any(rest) or c.function is not None:
            law = f"has coefficients {list(c.coefficients)}"
            law = (
                "follows a function" if c.function else "has several sources" if c.sources else law
            )
            raise InteropError(
                f"Pinocchio's mimic joints follow another by a factor and an offset; coupling "
                f"{c.name!r} {law}. Remove it with model.replace(couplings=...), or lock a joint "
                f"that is held"
            )
        root, offset, factor = place(c.source)
        return root, a + b * offset, b * factor

    coupled = {i for c in model.couplings for i in (c.joint, *c.leaders)}
    return {i: place(i) for i in sorted(coupled)}
