"""Facts about the links and joints of a robot, from a file or from a model.

Checks look at these facts, so that they work on a file that no model can be built from.
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from kinetree.doctor.findings import NOWHERE, Place, part_name
from kinetree.model import geometry


@dataclass
class LinkFacts:
    """A body: its mass, mass centre and inertia about it; None where nothing is said.

    ``extent`` holds points that enclose its geometry, but for meshes, in the frame of the body.
    """

    name: str
    mass: float | None = None
    center: np.ndarray | None = None
    inertia: np.ndarray | None = None
    extent: list = field(default_factory=list)
    has_meshes: bool = False
    place: Place = NOWHERE
    mass_place: Place = NOWHERE
    inertia_place: Place = NOWHERE

    @property
    def part(self) -> str:
        """Name of the link in findings."""
        return part_name("body", self.name)

    @property
    def has_mass(self) -> bool:
        """Whether the link has a positive mass."""
        return self.mass is not None and self.mass > 0


@dataclass
class JointFacts:
    """A joint: ``kind`` is one of URDF's, or the joint's ``spelling``.

    ``offset`` is where it sits on its parent [m]; limits are None where nothing is said.
    """

    name: str
    kind: str
    parent: str
    child: str
    offset: np.ndarray
    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None
    armature: float = 0.0
    has_limits: bool = False
    place: Place = NOWHERE
    parent_place: Place = NOWHERE
    child_place: Place = NOWHERE
    limit_place: Place = NOWHERE

    @property
    def part(self) -> str:
        """Name of the joint in findings."""
        return part_name("joint", self.name)

    @property
    def moves(self) -> bool:
        """Whether the joint has any freedom."""
        return self.kind != "fixed"


@dataclass
class Facts:
    """All links and joints, in the order of the file; names may repeat."""

    links: list = field(default_factory=list)
    joints: list = field(default_factory=list)
    from_file: bool = False

    def subtrees(self) -> dict[str, list[LinkFacts]]:
        """Massless subtrees: the links on each link, itself first, if none has mass.

        A link that has mass, or carries one that has, is left out; cycles come to an end.
        """
        children, waiting = {}, {}
        links = {link.name: link for link in reversed(self.links)}
        for joint in self.joints:
            if joint.child in links:
                children.setdefault(joint.parent, []).append(joint.child)
        for name in links:
            waiting[name] = len(children.get(name, ()))
        parents = {}
        for parent, names in children.items():
            for name in names:
                parents.setdefault(name, []).append(parent)
        found, ready = {}, [name for name, count in waiting.items() if count == 0]
        while ready:
            name = ready.pop()
            below = [found.get(child) for child in children.get(name, ())]
            if links[name].mass in (None, 0) and None not in below:
                found[name] = [links[name], *(link for part in below for link in part or ())]
            for parent in parents.get(name, ()):
                if parent in waiting:
                    waiting[parent] -= 1
                    if waiting[parent] == 0:
                        ready.append(parent)
        return found


def from_model(model) -> Facts:
    """Facts of a model with plain numbers."""
    links = {i: LinkFacts(name) for i, name in enumerate(model.body_names)}
    for i, body in enumerate(model.bodies, start=1):
        m = float(np.real(body.inertia.mass))
        links[i].mass = m
        if m != 0:
            links[i].center = np.real(body.inertia.center_of_mass).astype(float)
            links[i].inertia = np.real(body.inertia.rotational_at_center).astype(float)
        else:
            links[i].inertia = np.real(body.inertia.rotational).astype(float)
    for g in model.geometry:
        links[g.body].extent += corners(g.shape, g.placement)
        links[g.body].has_meshes |= isinstance(g.shape, geometry.Mesh)
    return Facts(list(links.values()), [_joint(model, body) for body in model.bodies])


def _joint(model, body):
    """Facts about the joint of a body."""
    limits, dynamics = body.limits, body.dynamics
    kind = body.joint.spelling or type(body.joint).__name__.lower()  # a class of the user has none
    joint = JointFacts(
        body.joint_name,
        _URDF.get(kind, kind),
        model.body_names[body.parent],
        body.name,
        np.real(body.placement.r).astype(float),
        armature=max(dynamics.armature, default=0.0) if dynamics else 0.0,
        has_limits=limits is not None,
    )
    if limits is not None and body.joint.nq == 1:
        for name in ("lower", "upper", "velocity", "effort"):
            values = getattr(limits, name)
            setattr(joint, name, values[0] if values else None)
    return joint


_URDF = {"free": "floating"}  # whose names differ from ours


def corners(shape, placement) -> list[np.ndarray]:
    """Corners of a shape's bounding box in body coordinates; empty for planes and meshes."""
    if not isinstance(shape, geometry.Solid):
        return []
    half = np.array(shape.half_extents, dtype=float)
    E, r = np.asarray(placement.E, dtype=float), np.asarray(placement.r, dtype=float)
    return [r + E.T @ (np.array(signs) * half) for signs in product((-1, 1), repeat=3)]
