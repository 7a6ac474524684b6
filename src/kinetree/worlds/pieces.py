"""Pieces of a world: robots, objects and fixed shapes with their places, and the model of them all.

Names: the parts of a robot called ``left`` are called ``left.elbow`` and so on; an object is one
body of its own name with a joint ``<name>_joint``; fixed shapes have the name of their piece.
Postures of the same name are one posture of the world.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kinetree import samples
from kinetree.contact.collision.distance import distance
from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.errors import LoadError, ModelError
from kinetree.joints import AbstractJoint, Free
from kinetree.loaders import robots
from kinetree.loaders.load import announce, read
from kinetree.loaders.meshes import mesh_inertia
from kinetree.model import Body, Model, Posture, geometry
from kinetree.model.actuator import command_vectors, commands_of
from kinetree.model.constraint_function import constraints_of_part
from kinetree.model.edit import Assembly, free_roots, grounded, moved_roots
from kinetree.model.geometry import Geometry, Surface
from kinetree.model.parts import Frame, as_placement, is_identity
from kinetree.simulation.compatibility import refuse_conflicts
from kinetree.simulation.setup import compose_setup
from kinetree.spatial import Inertia, Plucker, xlt
from kinetree.spelling import did_you_mean
from kinetree.worlds.overlaps import without_base_overlaps

SEPARATOR = "."
"""Between the name of a robot and the names of its parts."""

HERE = Geometry(0, geometry.Sphere(1.0)).placement
"""The identity, read-only, which parts then share."""

PLACED = ("qpos0", "initial")
"""Postures of MJCF and SDF files in which free bodies are where the file puts them."""


@dataclass(eq=False)
class Piece:
    """A robot, an object, or shapes that do not move.

    Attributes:
        name: in the world.
        at: from the world to the base of the piece.
        q: positions now, in the variables of the world, (nq,).
        qd: velocities now, (nv,).
        model: of a robot.
        prefix: of its names.
        body: of an object.
        shapes: of an object, or those that do not move.
        start: ``q`` and ``qd`` to which ``reset`` returns.
        mounted: its parts as they were last put into a model: see ``Assembly.mount``.
    """

    name: str
    at: Plucker
    q: np.ndarray
    qd: np.ndarray
    model: Model | None = None
    prefix: str = ""
    body: Body | None = None
    shapes: tuple[Geometry, ...] = ()

    def __post_init__(self):
        self.start = self.q, self.qd
        self.mounted: dict = {}

    def __getstate__(self):
        return {**self.__dict__, "mounted": {}}

    @property
    def body_count(self) -> int:
        """Number of bodies of the piece."""
        return self.model.body_count if self.model is not None else int(self.body is not None)

    @property
    def shape_count(self) -> int:
        """Number of shapes of the piece."""
        return len(self.shapes) if self.model is None else len(self.model.geometry)

    def in_posture(self, name: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Positions and velocities of a named posture of the piece; None if it has none."""
        if self.model is None or all(p.name != name for p in self.model.postures):
            return None
        posture = self.model.posture(name)
        qd = np.array(posture.qd) if posture.moves else np.zeros(self.model.nv)
        return moved_roots(self.model, posture.q, self.at), qd


def robot(
    model: Model,
    name: str,
    at: Plucker,
    prefix: str,
    q: Any,
    qd: Any,
    *,
    keep_overlaps: bool = True,
) -> Piece:
    """``Piece`` of a robot model, in a given state or its usual initial posture.

    Without ``keep_overlaps``, links that overlap with their own base do not touch it.
    """
    if model.is_rheonomic:
        refuse_conflicts(compose_setup("World", model, contact=TimeStepping(Scene(model))))
    named = {p.name: p for p in model.postures}
    within = np.clip(model.neutral(), *model.position_limits)
    usual = next((named[name] for name in ("home", *PLACED) if name in named), within)
    if prefix:  # shapes of its base are called by it
        base = [
            replace(g, link=g.link or model.base_name) if g.body == 0 else g for g in model.geometry
        ]
        model = model.replace(geometry=base) if any(g.body == 0 for g in base) else model
    given = usual if q is None else q
    given = model.posture(given) if isinstance(given, str) else given
    if isinstance(given, Posture):
        qd = given.qd if qd is None and given.moves else qd
        given = given.q
    q, qd = as_state(model, name, given, np.zeros(model.nv) if qd is None else qd)
    if not keep_overlaps:
        model = without_base_overlaps(model, q, name)
    return Piece(name, at, moved_roots(model, q, at), qd, model, prefix)


def as_state(model, name, q, qd):
    """Positions and velocities of a piece as float arrays; ModelError unless finite."""
    for what, x, size in (("q", q, model.nq), ("qd", qd, model.nv)):
        if np.shape(x) != (size,) or not np.all(np.isfinite(np.asarray(x, dtype=float))):
            raise ModelError(
                f"{what} of {name!r} must be {size} finite numbers, got shape {np.shape(x)}"
            )
    return np.array(q, dtype=float), np.array(qd, dtype=float)


def object_of(
    name: str, solids: Sequence[Geometry], inertia: Inertia, joint: AbstractJoint, at: Plucker
) -> Piece:
    """``Piece`` of a single body with shapes on a joint."""
    free = isinstance(joint, Free)
    body = Body(name, 0, joint, HERE if free else at, inertia, f"{name}_joint")
    if free and joint.translation == "parent" and np.array_equal(at.E, HERE.E):
        q = np.concatenate([at.r, [1.0, 0.0, 0.0, 0.0]])  # a quaternion takes a while
    else:
        q = joint.coordinates(at) if free else joint.neutral()
    return Piece(name, at, np.array(q, float), np.zeros(joint.nv), body=body, shapes=tuple(solids))


def give_velocity(piece: Piece, velocity: Any, spin: Any) -> None:
    """Set the initial velocity and spin of a free piece along world axes, (3,) each."""
    if piece.model is not None and (roots := free_roots(piece.model)):
        i = min(roots)
        model = piece.model
        joint, at_q, at_v = model.joint[i], model.q_slice[i], model.v_slice[i]
    elif piece.body is not None and isinstance(piece.body.joint, Free):
        joint, at_q, at_v = piece.body.joint, slice(0, 7), slice(0, 6)
    else:
        raise ModelError(f"{piece.name!r} is not on a free joint: give qd= in place of a velocity")
    E, qd = joint.transform(piece.q[at_q]).E, piece.qd.copy()
    given = [np.zeros(3) if x is None else np.asarray(x, dtype=float) for x in (spin, velocity)]
    for x in given:
        if x.shape != (3,) or not np.all(np.isfinite(x)):
            raise ModelError(f"a velocity of {piece.name!r} must be 3 finite numbers, got {x!r}")
    qd[at_v] = np.concatenate([E @ x for x in given])
    piece.start = piece.q, piece.qd = piece.q, qd


def put_down(base: Model, other: tuple[Piece, list[str]], upper: tuple[Piece, list[str]]) -> None:
    """Move a free piece vertically until it touches another piece from above.

    From above, along the tangents of the gaps: gaps of convex shapes are convex functions of the
    height, so that no step goes too far.

    Args:
        base: as of ``compose``.
        other: what it is put on, with the names of its bodies or shapes.
        upper: what is put down, likewise.
    """
    (below, there), (piece, here) = other, upper
    joint: Any = None if piece.body is None else piece.body.joint
    if not (isinstance(joint, Free) or (piece.model is not None and free_roots(piece.model))):
        raise ModelError(
            f"{piece.name!r} is not on a free joint: on= cannot move it, at= places it"
        )
    model, _ = compose(base, [below, piece])
    names = zip(*((a, b) for a in there for b in here), strict=True)
    first, second = (list(x) for x in names)

    def lift_by(z):
        up = xlt([0.0, 0.0, z])
        if piece.model is not None:
            return moved_roots(piece.model, piece.q, up)
        return np.array(joint.coordinates(joint.transform(piece.q) @ up), float)

    def gaps(z):
        return distance(model, np.concatenate([below.q, lift_by(z)]), first, second)

    z, lift = 0.0, 0.1
    while lift < 1e4 and min((found := gaps(z)).gap.min(), found.normal[:, 2].min()) <= 0:
        z, lift = z + abs(found.gap).max() + lift, 2 * lift
    for _ in range(100):
        closing = found.normal[:, 2] > 1e-6
        if not closing.any():
            raise ModelError(f"nothing of {below.name!r} is under {piece.name!r}: change at=")
        fall = (found.gap[closing] / found.normal[closing, 2]).min()
        if (next_one := gaps(z - fall)).gap.min() < -1e-9:  # a shape that is not convex
            fall = found.gap.min()
            next_one = gaps(z - fall)
        z, found = z - fall, next_one
        if fall < 1e-12 * (1 + abs(z)):
            break
    piece.start = piece.q, piece.qd = lift_by(z), piece.qd


def compose(
    base: Model, pieces: Sequence[Piece], pairs: Sequence = ()
) -> tuple[Model, list[range]]:
    """Model of all pieces together, and the body numbers of each piece.

    Args:
        base: a model without bodies, whose name, gravity and base name are taken.
        pieces: all pieces, in order.
        pairs: ``ContactPair`` of the world itself.
    """
    parts, numbers, world = Assembly(base), [], Frame(base.base_name, 0)
    alone = len(pieces) == 1 and not pairs and not any(parts.fields.values())
    if alone and (whole := _whole(base, pieces[0])) is not None:
        return whole, [range(1, pieces[0].body_count + 1)]
    for piece in pieces:
        first = len(parts.fields["bodies"])
        if piece.model is not None:
            options = {"free": True, "known": piece.mounted}
            parts.mount(piece.model, world, piece.at, piece.prefix, **options)
        elif piece.body is not None:
            parts.add(piece.body, piece.shapes)
        else:
            parts.fields["geometry"] += piece.shapes
        numbers.append(range(first + 1, len(parts.fields["bodies"]) + 1))
    parts.fields["contact_pairs"] += pairs
    model = parts.build(_postures(pieces, parts.fields["actuators"]))
    return _with_constraints(model, pieces, numbers), numbers


def _with_constraints(model, pieces, numbers) -> Model:
    """Copy of the composed model with the pieces' user-defined constraints."""
    found = []
    for piece, own in zip(pieces, numbers, strict=True):
        if piece.model is not None and piece.model.constraints:
            q, v = (slice(x[own[0]].start, x[own[-1]].stop) for x in (model.q_slice, model.v_slice))
            found += constraints_of_part(piece.model, piece.prefix, q, v)
    return model.replace(constraints=found) if found else model


def _whole(base, piece) -> Model | None:
    """Model of a single piece if the world can use it unchanged, else None."""
    model = piece.model
    if model is None or piece.prefix or model.sensors or model.cameras:
        return None
    same = (model.name, model.base_name) == (base.name, base.base_name)
    same = same and np.array_equal(model.gravity, base.gravity) and is_identity(piece.at)
    same = same and all(is_identity(model.tree_transform[i]) for i in free_roots(model))
    return model if same else None


def _postures(pieces, actuators) -> list[Posture]:
    """Postures of the world by name; pieces without that posture are in their initial state."""
    robots = [piece for piece in pieces if piece.model is not None]
    found = []
    for name in dict.fromkeys(p.name for piece in robots for p in piece.model.postures):
        states = [piece.in_posture(name) or piece.start for piece in pieces]
        q, qd = (np.concatenate([np.zeros(0), *x]) for x in zip(*states, strict=True))
        commands: dict[str, dict] = {"controls": {}, "activation": {}}
        for piece in robots:
            for p in (p for p in piece.model.postures if p.name == name):
                for what, values in commands_of(p, piece.model.actuators).items():
                    commands[what] |= {piece.prefix + k: x for k, x in values.items()}
        vectors = command_vectors(commands, actuators)
        found.append(Posture(name, q, qd if np.any(qd) else (), **vectors))
    return found


# --- models and shapes ---------------------------------------------------------------------------


def model_named(name: str | os.PathLike, fixed: bool | None = None) -> Model:
    """Model from a file, or sample of that name; on a free joint where ``fixed`` is False."""
    path = Path(name)
    if path.exists() or str(name).startswith(robots.PREFIX):
        model = announce(read(name))
        if fixed is not False or _is_free(model):
            return model
        return read(name, floating_base=True).model  # with the same notices
    if str(name) in samples.names():
        return samples.load(str(name))
    known = samples.names()
    hint = did_you_mean(str(name), known, f"the samples are {', '.join(known)}")
    raise LoadError(f"there is no file {str(name)!r}, and no sample of that name; {hint}")


def _is_free(model):
    """Whether the first body of a model is on a free joint."""
    return any(isinstance(b.joint, Free) for b in model.bodies[:1])


def on_base(model: Model, name: str, fixed: bool | None) -> Model:
    """Copy of the model on a fixed base or free joint, as ``fixed`` demands; None keeps it."""
    if fixed is None or fixed is not _is_free(model):
        return model
    if fixed:
        return grounded(model)
    raise ModelError(
        f"{name!r} stands on a fixed base, whose mass model {model.name!r} does not have: load its "
        f"file with kinetree.load(path, floating_base=True), or free it with "
        f"kinetree.edit.floating(model, inertia=...)"
    )


def placements(at: Any) -> list[Plucker] | None:
    """Placements of several copies from positions (n, 3) or poses (n, 4, 4); None for one place."""
    if isinstance(at, (list, tuple)) and at and all(isinstance(x, Plucker) for x in at):
        return list(at)
    shape = () if at is None or isinstance(at, Plucker) else np.shape(at)
    several = (len(shape) == 2 and shape[1] == 3) or (len(shape) == 3 and shape[1:] == (4, 4))
    return [as_placement(x) for x in np.asarray(at, dtype=float)] if several else None


_TERRAIN = (geometry.Plane, geometry.HeightField)


def solids_of(what: Any, surface: Surface | None, color: Any) -> list[Geometry] | None:
    """Shapes of an object as ``Geometry`` list; None if ``what`` is not made of shapes."""
    several: Any = what if isinstance(what, (list, tuple)) and what else [what]
    pairs: list[Any] = [
        x if isinstance(x, (list, tuple)) and len(x) == 2 else (x, None) for x in several
    ]
    if not all(isinstance(shape, geometry.Shape) for shape, _ in pairs):
        return None
    color = None if color is None else tuple(map(float, color))
    return [
        Geometry(0, shape, as_placement(at), color=color, surface=surface) for shape, at in pairs
    ]


def kind_of(solids: Sequence[Geometry]) -> str:
    """Default name of an object: its shape's type, or "object" for several shapes."""
    return type(solids[0].shape).__name__.lower() if len(solids) == 1 else "object"


def inertia_of(name: str, solids: Sequence[Geometry], mass: Any, density: Any) -> Inertia:
    """Inertia of solids of uniform density, from total mass or density."""
    for g in solids:
        if isinstance(g.shape, _TERRAIN):
            raise ModelError(
                f"{name!r}: a {type(g.shape).__name__} has no end and no mass; leave out mass and "
                f"density to fix it to the world"
            )
    if (mass is None) == (density is None):
        raise ModelError(f"{name!r}: give mass or density, not both, got {mass=}, {density=}")
    value = density if mass is None else mass
    if not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        what = "density" if mass is None else "mass"
        raise ModelError(f"{what} of {name!r} must be a positive number, got {value!r}")
    each = [_inertia(g, 1.0 if mass is not None else density) for g in solids]
    total = sum(each[1:], start=each[0])
    if not total.mass > 0:
        raise ModelError(f"{name!r} has no volume: sizes must be positive, got {solids[0].shape}")
    if mass is None:
        return total
    factor = mass / total.mass
    return Inertia(mass, total.first_moment * factor, total.rotational * factor)


def _inertia(g, density):
    """Inertia of one shape of uniform density, in coordinates of its body."""
    s, at = g.shape, g.placement
    if isinstance(s, geometry.Solid):
        return s.inertia(density, at)
    assert isinstance(s, geometry.Mesh)
    return mesh_inertia(s.path, density=density, scale=s.scale, hull=True).inverse_transformed(at)


def with_surface(model: Model, changes: dict) -> Model:
    """Copy of the model with some surface coefficients of all shapes changed."""
    if not changes:
        return model
    return model.replace(
        geometry=[
            replace(g, surface=replace(g.surface or Surface(contype=-1, conaffinity=-1), **changes))
            for g in model.geometry
        ]
    )
