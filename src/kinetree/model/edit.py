"""Changing the structure of a model without changing its physics.

Every function returns a new model. Bodies and joints keep their names; everything that is attached
to them goes along.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import LoopError, ModelError, names_itself
from kinetree.joints import Fixed, Free
from kinetree.model.actuator import command_vectors, commands_of
from kinetree.model.cameras import for_constructor, mounted_cameras
from kinetree.model.constraint_function import require_none_moved
from kinetree.model.decomposition import decompose
from kinetree.model.fluid import FluidForce, inertia_box
from kinetree.model.geometry import Geometry
from kinetree.model.mechanism import MechanismGraph
from kinetree.model.model import Model
from kinetree.model.parts import Body, Frame, Posture, as_placement, is_identity, relabel
from kinetree.model.sensors import PARTIAL, lump_sensors, mount_sensors
from kinetree.model.transfer import (
    body_motion,
    held_positions,
    inside,
    transfer_parts,
    transferred_postures,
)
from kinetree.spatial import Inertia, Plucker

__all__ = [
    "attach", "decompose", "extract", "floating", "grounded", "immerse", "lock", "lump_fixed",
    "reroot",
]  # fmt: skip


@names_itself
def lump_fixed(model: Model) -> Model:
    """Model with bodies on fixed joints merged into their parents; their names stay as frames.

    Bodies fixed to the base lose their mass, which has no effect. The variables stay the same.
    """
    owner, X = [0], [Plucker.identity()]  # the new body, and from there to the old body's frame
    inertia: list[Any] = [None]
    kept, merged = [], []
    for i, b in enumerate(model.bodies, start=1):
        p = b.parent
        if isinstance(b.joint, Fixed):
            owner.append(owner[p])
            X.append(b.placement @ X[p])
            merged.append(Frame(b.name, owner[i], X[i]))
            if owner[i] != 0:
                inertia[owner[i]] = inertia[owner[i]] + b.inertia.inverse_transformed(X[i])
        else:
            kept.append(replace(b, parent=owner[p], placement=b.placement @ X[p]))
            owner.append(len(kept))
            X.append(Plucker.identity())
            inertia.append(b.inertia)
    bodies = [replace(b, inertia=I) for b, I in zip(kept, inertia[1:], strict=True)]
    parts = transfer_parts(model, owner, X)
    for old, new in zip(model.loops, parts["loops"], strict=True):
        if new.predecessor == new.successor:
            ends = (model.body_names[k] for k in (old.predecessor, old.successor))
            raise LoopError(
                f"loop joint {old.name!r} connects {' and '.join(map(repr, ends))}, which fixed "
                f"joints make one body: remove the loop first"
            )
    parts["frames"] += merged
    for k, g in enumerate(model.geometry):  # a link keeps its shapes
        if isinstance(model.joint[g.body], Fixed) and not g.link:
            parts["geometry"][k] = replace(parts["geometry"][k], link=model.body_names[g.body])
    return model.replace(bodies=bodies, **parts, sensors=lump_sensors(model))


@names_itself
def lock(model: Model, positions: Mapping[str, ArrayLike], *, lump: bool = False) -> Model:
    """Model with some joints fixed at given positions, and those coupled to them.

    Their variables, actuators and couplings are removed; tendons keep their lengths.

    Args:
        model: the model.
        positions: position variables by joint name, a number or (nq,).
        lump: merge the bodies as well, as ``lump_fixed`` does with all fixed joints.
    """
    if not isinstance(positions, dict):
        raise ModelError(
            f"lock needs positions by joint name, such as {{'elbow': 0.5}}, got {positions!r}"
        )
    require_none_moved(model)
    held = held_positions(model, positions)
    bodies = list(model.bodies)
    for i, q in held.items():
        placement = bodies[i - 1].joint.transform(q) @ bodies[i - 1].placement
        still = {"joint": Fixed(), "placement": placement, "limits": None, "dynamics": None}
        bodies[i - 1] = replace(bodies[i - 1], **still)
    numbers = [None if i in held else i for i in range(1, model.body_count + 1)]
    tendons = [
        t.with_held({i: held[i][0] for i in t.joints if i in held})
        for t in model.tendons
        if t.path or not held.keys() >= set(t.joints)
    ]
    pulled = {"", *(t.name for t in tendons)}
    actuators = [a for a in model.actuators if a.joint not in held and a.tendon in pulled]
    locked = model.replace(
        bodies=bodies,
        couplings=[
            c.with_held({i: float(q[0]) for i, q in held.items() if i in c.leaders})
            for c in model.couplings
            if c.joint not in held
        ],
        actuators=actuators,
        tendons=tendons,
        postures=transferred_postures([b.joint for b in bodies], (numbers, model), actuators),
    )
    return lump_fixed(locked) if lump else locked


@names_itself
def reroot(model: Model, body: str) -> Model:
    """Floating model with its free joint moved to another body — RBDA §4.1.

    Joints on the way to the old root are reversed, with the same variables. The free joint keeps
    its name and now places ``body``. Body frames that had to move are kept as ``<body>_link``.
    """
    i = model.body_index(body)
    if i == 0:
        raise ModelError(f"{body!r} is the base; choose a moving body as the new root")
    root = model.bodies[model.support[i][0] - 1]
    if not isinstance(root.joint, Free):
        raise ModelError(
            f"body {body!r} hangs on the base by joint {root.joint_name!r}, a "
            f"{type(root.joint).__name__}; only a mechanism on a Free joint can change its root "
            f"(floating(model) makes one)"
        )
    if root.name == body:
        return model
    actuator = next((a for a in model.actuators if a.joint == model.support[i][0]), None)
    if root.dynamics is not None or actuator is not None:
        what = "dynamics" if actuator is None else f"actuator {actuator.name!r}"
        raise ModelError(
            f"joint {root.joint_name!r} has {what}, in the axes of body {root.name!r}; remove it "
            f"before the joint goes to body {body!r}"
        )
    for s in model.sensors:
        if s.kind in PARTIAL and model.frame(s.of).body in model.support[i]:
            raise ModelError(
                f"sensor {s.name!r} ({s.kind}) is about what {s.of!r} carries, which is not the "
                f"same with another root; remove it first (model.replace(sensors=...))"
            )
    graph = MechanismGraph(model.name, gravity=model.gravity, base_name=model.base_name)
    rerooted = (
        graph.add_model(model, without=(root.joint_name,))
        .joint(
            root.joint_name,
            root.joint,
            predecessor=model.base_name,
            successor=body,
            at=root.placement,
            limits=root.limits,
        )
        .to_model(tree_joints=model.joint_names, strict=model.strict)
    )
    at = rerooted.joint_index(root.joint_name)
    postures = [
        _with_root(rerooted, at, new, *_motion(model, i, old))
        for new, old in zip(rerooted.postures, model.postures, strict=True)
    ]
    return rerooted.replace(postures=postures)


def _motion(model, i, posture):
    """Transform from the base to body ``i``, and the body's velocity, in a posture."""
    qd = posture.qd if posture.moves else np.zeros(model.nv)
    return body_motion(model, i, posture.q, qd)


def _with_root(model, i, posture, X, v):
    """Posture with the free joint of body ``i`` set to a given pose and velocity."""
    q, qd = np.array(posture.q), np.array(posture.qd)
    joint, X_J = model.joint[i], X @ model.tree_transform[i].inverse()
    q[model.q_slice[i]] = joint.coordinates(X_J)
    if posture.moves:
        qd[model.v_slice[i]] = joint.velocity_variables(q[model.q_slice[i]], v)
    return replace(posture, q=tuple(q.tolist()), qd=tuple(qd.tolist()))


@names_itself
def attach(
    model: Model,
    other: Model,
    *,
    on: str | None = None,
    at: ArrayLike | Plucker | None = None,
    prefix: str = "",
) -> Model:
    """Model with ``other`` mounted: its base becomes part of a body or frame of ``model``.

    Args:
        model: the model that ``other`` is mounted on; its gravity applies to both.
        other: the model to mount.
        on: name of a body or frame of ``model``; the base by default.
        at: where on it the base of ``other`` sits: position (3,), pose (4, 4) or ``Plucker``.
        prefix: put before every name of ``other``; its base stays as a frame of that name.
    """
    require_none_moved(model, other)
    parts = Assembly(model)
    parts.mount(other, model.frame(model.base_name if on is None else on), as_placement(at), prefix)
    return parts.build(_joint_postures(model, other, prefix, parts.fields["actuators"]))


_PARTS = (
    "bodies", "frames", "loops", "couplings", "geometry", "actuators", "tendons",
    "gravity_compensation", "sensors", "contact_pairs", "groups", "cameras", "fluid_forces",
)  # fmt: skip


class Assembly:
    """Parts of several models, collected and then built as one: work in proportion to the parts.

    Args:
        model: what to start from; its base carries the rest, and its gravity holds for all.

    Attributes:
        fields: lists of the parts, by the names of a model's fields.
        names: of bodies and frames.
    """

    def __init__(self, model: Model):
        self.model, self.strict = model, model.strict
        self.fields: dict[str, list] = {kind: list(getattr(model, kind)) for kind in _PARTS}
        self.names = {*model.body_names, *model.frame_names}

    def mount(
        self,
        other: Model,
        on: Frame,
        at: Plucker,
        prefix: str = "",
        *,
        free: bool = False,
        known: dict | None = None,
    ) -> list[int]:
        """Add the parts of ``other`` with its base at the frame ``on``; returns its body numbers.

        Args:
            other: a model without separate constraints.
            on: a frame of what is there.
            at: from this frame to the base of ``other``.
            prefix: put before every name of ``other``.
            free: whether bodies on free joints keep their places in the variables instead: their
                joints are put on the frame's body itself, see ``free_roots``.
            known: what an earlier call with the same arguments has added, for the next one: parts
                are the same unless numbers of bodies and loops differ.
        """
        fields, here = self.fields, prefix + other.base_name
        shift, taken, loops = len(fields["bodies"]), here in self.names, len(fields["loops"])
        number = [on.body, *range(shift + 1, shift + other.body_count + 1)]
        key, known = (shift, loops, taken), {} if known is None else known
        if known.get("key") != key or known["model"] is not other:
            parts = self._mount(other, on, at, prefix, free, number)
            known |= {"key": key, "model": other, "parts": parts}
        for kind, new in known["parts"].items():
            fields[kind] += new
        self.names |= {prefix + name for name in (*other.body_names[1:], *other.frame_names)}
        self.names.add(here)
        self.strict = self.strict and other.strict
        return number

    def _mount(self, other, on, at, prefix, free, number) -> dict[str, list]:
        """Parts of ``other`` for the assembly, by field, with new body numbers."""
        mount, loops, bodies = at @ on.placement, len(self.fields["loops"]), []
        count = len(number)
        X = [mount] + [Plucker.identity()] * (count - 1)
        roots = free_roots(other) if free else ()
        for i, b in enumerate(other.bodies, start=1):
            placement = Plucker.identity() if i in roots else b.placement
            if i not in roots and b.parent == 0:
                placement = placement @ mount
            names = {"name": prefix + b.name, "joint_name": prefix + b.joint_name}
            bodies.append(replace(b, **names, parent=number[b.parent], placement=placement))
        here = prefix + other.base_name
        taken = here in self.names
        parts = {
            kind: [_prefix_names(p, prefix) for p in parts] if prefix else parts
            for kind, parts in transfer_parts(other, number, X).items()
        }
        parts["contact_pairs"] = [
            replace(p, first=prefix + p.first, second=prefix + p.second)
            for p in other.contact_pairs
        ]
        if not taken:
            parts["frames"].append(Frame(here, on.body, mount))
        parts["tendons"] = [t.rename(lambda name: prefix + name) for t in parts["tendons"]]
        parts["couplings"] = [
            replace(c, tendon=prefix + c.tendon) if c.tendon else c for c in parts["couplings"]
        ]
        parts["actuators"] = [
            replace(
                a,
                loop=a.loop and a.loop + loops,
                **{k: prefix + x for k in ("tendon", "frame", "reference") if (x := getattr(a, k))},
            )
            for a in parts["actuators"]
        ]
        parts["sensors"] = mount_sensors(other, prefix, on.name if taken else "", at)
        parts["cameras"] = mounted_cameras(other, prefix, on.name, at)
        parts["groups"] = [group.prefix_names(prefix) for group in other.groups]
        return parts | {"bodies": bodies}

    def add(self, body: Body, shapes: Sequence[Geometry] = ()) -> int:
        """Add a body and its shapes to the assembly; returns the body's number."""
        self.fields["bodies"].append(body)
        number = len(self.fields["bodies"])
        self.fields["geometry"] += [relabel(g, body=number) for g in shapes]
        self.names.add(body.name)
        return number

    def build(self, postures: Sequence[Posture] = ()) -> Model:
        """Build the model of all added parts, with the given postures."""
        fields = for_constructor({kind: tuple(parts) for kind, parts in self.fields.items()})
        m = self.model
        return Model(
            fields.pop("bodies"),
            **fields,
            postures=tuple(postures),
            gravity=m.gravity,
            name=m.name,
            base_name=m.base_name,
            strict=self.strict,
        )


def _prefix_names(part, prefix):
    """Copy of a part with a prefix to all its names."""
    given = {n: prefix + x for n in ("name", "link") if (x := getattr(part, n, ""))}
    return replace(part, **given) if given else part


def free_roots(model: Model) -> frozenset[int]:
    """Bodies on free joints on the base, without springs: their pose is free of the base's.

    A spring at such a joint refers to where the joint was put, and a constraint of one's own to
    its variables as they are.
    """
    return frozenset(
        i
        for i, b in enumerate(model.bodies, start=1)
        if b.parent == 0
        and not model.constraints
        and isinstance(b.joint, Free)
        and not (b.dynamics is not None and any(b.dynamics.stiffness))
    )


def moved_roots(model: Model, q: ArrayLike, at: Plucker) -> np.ndarray:
    """Configuration after moving the base ``at`` a place, with free bodies staying where they were.

    Bodies of ``free_roots`` then have their pose with respect to the place as variables.
    """
    q, stays = np.array(q, dtype=float), is_identity(at)
    for i in free_roots(model):
        joint, k, X = model.joint[i], model.q_slice[i], model.tree_transform[i]
        X = X if stays else X @ at
        if not is_identity(X):
            q[k] = joint.coordinates(joint.transform(q[k]) @ X)
    return q


def _joint_postures(model, other, prefix, actuators):
    """Postures of the joined model: of both parts, combined where names are equal."""
    other_postures = {prefix + p.name: p for p in other.postures}
    names = dict.fromkeys([*(p.name for p in model.postures), *other_postures])
    own_postures = {p.name: p for p in model.postures}
    result = []
    for name in names:
        halves = ((own_postures.get(name), model), (other_postures.get(name), other))
        q = [m.neutral() if p is None else p.q for p, m in halves]
        qd = [p.qd if p is not None and p.moves else np.zeros(m.nv) for p, m in halves]
        moves = any(p is not None and p.moves for p, _ in halves)
        q, qd = (tuple(float(x) for y in z for x in y) for z in (q, qd))
        own, others = (p and commands_of(p, m.actuators) for p, m in halves)
        commands = {
            what: (own[what] if own else {})
            | {prefix + k: x for k, x in (others[what] if others else {}).items()}
            for what in ("controls", "activation")
        }
        result.append(Posture(name, q, qd if moves else (), **command_vectors(commands, actuators)))
    return result


@names_itself
def extract(model: Model, body: str) -> Model:
    """Model of a body with its subtree; the body's parent becomes the base.

    Base coordinates are then those of the parent body, gravity included, as if the parent were at
    rest with its axes along those of the base. Loops and couplings that lead out of the subtree
    raise an error.
    """
    i = model.body_index(body)
    if i == 0:
        return model
    require_none_moved(model)
    subtree = model.subtree[i]
    number: list[Any] = [None] * (model.body_count + 1)
    number[model.parent[i]] = 0
    for new, old in enumerate(subtree, start=1):
        number[old] = new
    part = inside(model, subtree, body)
    parts = transfer_parts(part, number, [Plucker.identity()] * len(number))
    bodies = [replace(model.bodies[k - 1], parent=number[model.parent[k]]) for k in subtree]
    postures = transferred_postures([b.joint for b in bodies], (subtree, model), parts["actuators"])
    base_name = model.body_names[model.parent[i]]
    return part.replace(bodies=bodies, **parts, postures=postures, base_name=base_name, name=body)


@names_itself
def floating(
    model: Model,
    *,
    inertia: Inertia | None = None,
    world: str = "world",
    joint_name: str = "floating",
) -> Model:
    """Model with a floating base: the former base becomes body 1 on a free joint.

    Args:
        model: a model with a fixed base.
        inertia: of the former base; massless by default.
        world: name of the new base.
        joint_name: name of the free joint.
    """
    require_none_moved(model)
    inertia = Inertia.zero() if inertia is None else inertia
    root = Body(model.base_name, 0, Free(), Plucker.identity(), inertia, joint_name)
    number = range(1, model.body_count + 2)
    parts = transfer_parts(model, number, [Plucker.identity()] * len(number))
    bodies = (root, *(replace(b, parent=b.parent + 1) for b in model.bodies))
    old = (None, *range(1, model.body_count + 1))
    postures = transferred_postures([b.joint for b in bodies], (old, model))
    return model.replace(bodies=bodies, **parts, postures=postures, base_name=world)


@names_itself
def grounded(model: Model) -> Model:
    """Model with a fixed base: the first body becomes the base; undoes ``floating``.

    The inertia of the body is dropped. Gravity is that of the world at the zero of the joint.
    """
    roots = [b.name for b in model.bodies if b.parent == 0]
    if len(roots) != 1:
        raise ModelError(
            f"grounded makes the only body on the base of a model the base; model {model.name!r} "
            f"has {', '.join(map(repr, roots)) or 'no bodies'} there"
        )
    require_none_moved(model)
    X = model.tree_transform[1]
    number = [None, *range(model.body_count)]
    part = inside(model, range(1, model.body_count + 1), model.body_names[1])
    parts = transfer_parts(part, number, [Plucker.identity()] * len(number))
    bodies = [replace(b, parent=b.parent - 1) for b in model.bodies[1:]]
    old = range(2, model.body_count + 1)
    postures = transferred_postures([b.joint for b in bodies], (old, model), parts["actuators"])
    return part.replace(
        bodies=bodies,
        **parts,
        postures=postures,
        base_name=model.body_names[1],
        gravity=X.E @ model.gravity,
    )


@names_itself
def immerse(
    model: Model,
    *,
    density: float,
    viscosity: float = 0.0,
    wind: ArrayLike = (0.0, 0.0, 0.0),
    bodies: Sequence[str] | None = None,
) -> Model:
    """Model in a fluid: drag of the boxes with the inertias of its bodies.

    So does MuJoCo with ``<option density="" viscosity="" wind="">``. Buoyancy is not part of it.
    Fluids that were around these bodies before are replaced.

    Args:
        model: the model.
        density: of the fluid [kg/m³]: 1000 for water, 1.2 for air.
        viscosity: of the fluid [Pa·s]: 1e-3 for water, 1.8e-5 for air.
        wind: velocity of the fluid in base coordinates [m/s], (3,).
        bodies: names of the bodies; by default all that have mass.
    """
    wet = range(1, model.body_count + 1) if bodies is None else map(model.body_index, bodies)
    wet = [i for i in wet if i and model.inertia[i].mass > 0]
    speed = tuple(np.asarray(wind, dtype=float).tolist())
    around = [FluidForce(i, *inertia_box(model.inertia[i]), density, viscosity, speed) for i in wet]
    others = [f for f in model.fluid_forces if f.body not in wet]
    return model.replace(fluid_forces=(*others, *around))


guard_module(__name__)
