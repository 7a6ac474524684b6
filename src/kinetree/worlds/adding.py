"""Adding robots, objects, fixed shapes and ground to a world."""

import os
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.scene import with_ground
from kinetree.errors import ModelError, require_known
from kinetree.joints import AbstractJoint, Free
from kinetree.model import Model
from kinetree.model.geometry import Geometry, Plane, Surface
from kinetree.model.parts import as_placement, relabel
from kinetree.spatial import Inertia, Plucker
from kinetree.spelling import no_argument
from kinetree.worlds import pieces
from kinetree.worlds.core import WorldCore
from kinetree.worlds.parts import Part
from kinetree.worlds.pieces import SEPARATOR, Piece


@dataclass(frozen=True, kw_only=True)
class _New:
    """Arguments of ``World.add`` about what is added."""

    name: Any
    prefix: Any
    fixed: Any
    keep_overlaps: bool
    q: Any
    qd: Any
    velocity: Any
    spin: Any
    mass: Any
    density: Any
    inertia: Any
    joint: Any
    color: Any
    surface: Any
    coefficients: dict[str, Any]


_FREE = Free()
_SURFACE = tuple(f.name for f in fields(Surface))


class AddingParts(WorldCore):
    """Parts of a world that are added to it."""

    def add(
        self,
        what: Any,
        *,
        name: str | None = None,
        at: Any = None,
        q: Any = None,
        qd: ArrayLike | None = None,
        mass: float | None = None,
        density: float | None = None,
        inertia: Inertia | None = None,
        joint: AbstractJoint | None = None,
        velocity: ArrayLike | None = None,
        spin: ArrayLike | None = None,
        fixed: bool | None = None,
        on: str | None = None,
        prefix: str | None = None,
        color: ArrayLike | None = None,
        surface: Surface | None = None,
        keep_overlaps: bool = False,
        **coefficients: Any,
    ) -> Any:
        """Add a robot, an object or a fixed shape, and return its ``Part``.

        Args:
            what: a robot: a ``Model``, the path of its file, or the name of a sample. Or an object:
                a shape of ``kinetree.geometry``, or several, each with its place: ``[(shape, at),
                ...]``.
            name: of the part; that of the model or of the shape by default. Where there is one of
                that name, ``_2``, ``_3`` and so on are added.
            at: position (3,), pose (4, 4) or ``Plucker``; of several copies an array (n, 3) or
                (n, 4, 4), or a list of these: then a list of parts is returned.
            q: of a robot: positions (nq,) or the name of a posture; by default its posture
                ``home``, else where its file puts it, or neutral, within the limits of joints.
            qd: velocities at the start, (nv,).
            mass: of an object [kg]; its inertia is that of solids of uniform density.
            density: in place of the mass [kg/m³]. With neither, and no ``inertia``, the shapes are
                fixed to the world.
            inertia: in place of both, in the coordinates of the object.
            joint: between the world and an object; a free one by default.
            velocity: of a free part at the start, along the axes of the world [m/s], (3,).
            spin: angular velocity of a free part, likewise [rad/s], (3,).
            fixed: whether a robot has a fixed base; as in its model by default.
            on: name of a part, such as ``"ground"``, on which a free robot or object starts: it is
                moved straight up or down until the two touch, whatever the height in ``at``.
            prefix: of the names of a robot's parts; ``"<name>."`` by default.
            color: of an object: red, green, blue and opacity.
            surface: friction and other contact properties of all its shapes.
            keep_overlaps: whether links of a robot touch its own fixed base even if they overlap
                with it at the start. By default they do not, and a warning names them.
            **coefficients: single fields of ``kinetree.geometry.Surface`` for all its shapes:
                ``friction``, ``restitution``, ``rolling``, ``torsion``, ``margin`` and so on; with
                ``rolling`` or ``torsion``, ``condim`` is 6 or 4 by default. The velocity of a
                conveyor's surface is in ``surface``.
        """
        places, coefficients = pieces.placements(at), _acting(coefficients)
        surface = surface_of(surface, coefficients, self.add)
        states = {"q": q, "qd": qd, "velocity": velocity, "spin": spin}
        masses = {"mass": mass, "density": density, "inertia": inertia, "joint": joint}
        looks = {"color": color, "surface": surface, "coefficients": coefficients}
        names = {"name": name, "prefix": prefix, "fixed": fixed, "keep_overlaps": keep_overlaps}
        given = _New(**names, **states, **masses, **looks)
        if isinstance(what, (str, os.PathLike)):
            what = pieces.model_named(what, fixed)
        elif places and inertia is None and (mass, density) != (None, None):
            given = replace(given, **_shared_inertia(what, name, mass, density))
        if on is not None:
            require_known(on, self._parts, f"on={on!r} is not a part of the world")
        parts = [self._add_one(what, x, given) for x in places or [as_placement(at)]]
        if on is not None:
            try:
                for part in parts:
                    below, piece = ((self._parts[x][0], self._touching(x)) for x in (on, part.name))
                    pieces.put_down(self._base, below, piece)
            except ModelError:  # the world stays as it was
                for part in parts:
                    self._pieces.remove(self._parts.pop(part.name)[0])
                    self._copies.pop(part.name, None)
                raise
        return parts[0] if places is None else parts

    def _add_one(self, what, at, given):
        """``Part`` of one robot, object or fixed shape that is added with these options."""
        make = self._robot if isinstance(what, Model) else self._moved_object
        piece = make(what, at, given)
        shapes = piece.shapes if piece.model is None else piece.model.geometry
        still = piece.body is None and any(g.body == 0 for g in shapes)
        self._note_change(wakes=still)  # what sleeps does not look at what stands still
        self._pieces.append(piece)
        self._parts[piece.name] = (piece, None)
        if given.velocity is not None or given.spin is not None:
            pieces.give_velocity(piece, given.velocity, given.spin)
        return self._part(piece.name)

    def _robot(self, model, at, given):
        """``Piece`` of a robot model; ModelError for options that only objects have."""
        wrong = [
            x for x in ("mass", "density", "inertia", "joint") if getattr(given, x) is not None
        ]
        if wrong:
            raise ModelError(
                f"{wrong[0]}= is for objects; {model.name!r} is a model with its own: "
                f"model.replace(...) changes it"
            )
        usual = model.name.replace(SEPARATOR, "_").replace("/", "_")
        name = self._unique(usual if given.name is None else given.name)
        model = pieces.on_base(model, name, given.fixed)
        plain = given.surface is None or given.coefficients
        model = pieces.with_surface(model, given.coefficients if plain else vars(given.surface))
        prefix = name + SEPARATOR if given.prefix is None else given.prefix
        state, keep = (given.q, given.qd), given.keep_overlaps
        return pieces.robot(model, name, at, prefix, *state, keep_overlaps=keep)

    def _moved_object(self, what, at, given):
        """``Piece`` of an object or fixed shape, with its initial ``q`` and ``qd`` if given."""
        piece, (q, qd) = self._object(what, at, given), (given.q, given.qd)
        if q is None and qd is None:
            return piece
        if piece.body is None:
            raise ModelError(
                f"{piece.name!r} is fixed to the world and has no q and qd: at= places it, and "
                f"with mass=, density= or inertia= it moves"
            )
        state = piece.q if q is None else q, piece.qd if qd is None else qd
        piece.start = piece.q, piece.qd = pieces.as_state(piece.body.joint, piece.name, *state)
        return piece

    def _object(self, what, at, given):
        """``Piece`` of an object or fixed shape; ModelError for options that only robots have."""
        name, joint, inertia = given.name, given.joint, given.inertia
        mass, density = given.mass, given.density
        solids = pieces.solids_of(what, given.surface, given.color)
        if solids is None:
            raise ModelError(
                f"a world is made of models, files of robots, names of samples, and shapes of "
                f"kinetree.geometry such as Box((0.1, 0.1, 0.1)); got {what!r}"
            )
        name = self._unique(pieces.kind_of(solids) if name is None else name)
        solids = [_rename(g, name if len(solids) == 1 else "") for g in solids]
        if mass is None and density is None and inertia is None:
            if joint is not None:
                raise ModelError(f"{name!r} moves on a joint: give its mass, density or inertia")
            shapes = tuple(_place(_rename(g, name), at) for g in solids)
            return Piece(name, at, np.zeros(0), np.zeros(0), shapes=shapes)
        if inertia is None:
            inertia = pieces.inertia_of(name, solids, mass, density)
        return pieces.object_of(name, solids, inertia, joint or _FREE, at)

    def add_ground(
        self,
        *,
        height: float = 0.0,
        normal: ArrayLike = (0.0, 0.0, 1.0),
        point: ArrayLike | None = None,
        name: str = "ground",
        surface: Surface | None = None,
        color: ArrayLike | None = None,
        **coefficients: Any,
    ) -> "Part":
        """Add a fixed plane, solid below, and return its ``Part``.

        Args:
            height: of level ground [m].
            normal: direction out of the ground, (3,).
            point: of its surface [m], (3,), in place of the height.
            name: what to call it.
            surface: as in ``add``.
            color: as in ``add``.
            **coefficients: as in ``add``.
        """
        point = (0.0, 0.0, height) if point is None else point
        plane = with_ground(self._base, normal, point).geometry[-1]
        surface = surface_of(surface, coefficients, self.add_ground)
        return self.add(
            Plane((0.0, 0.0)), name=name, at=plane.placement, surface=surface, color=color
        )

    def _unique(self, name):
        """Unused name of a part: the given one, with a number appended if it is taken."""
        if not isinstance(name, str) or not name or SEPARATOR in name or "/" in name:
            raise ModelError(
                f"the name of a part must be a string without {SEPARATOR!r} and '/', got {name!r}"
            )
        count = self._copies.get(name, 0) + 1
        while True:
            new = name if count == 1 else f"{name}_{count}"
            if new not in self._parts and new != self._base.base_name:
                break
            count += 1
        self._copies[name] = count
        return new


def surface_of(surface, coefficients, method) -> Surface | None:
    """``Surface`` given by ``surface``, or built from coefficients by name; None for neither."""
    unknown = [key for key in coefficients if key not in _SURFACE]
    if unknown:
        known = [*_named_parameters(method), *_SURFACE]
        raise TypeError(no_argument(method.__qualname__, unknown[0], known))
    if surface is not None and coefficients:
        raise ModelError(f"give surface= or {next(iter(coefficients))}=, not both")
    return Surface(**_acting(coefficients)) if coefficients else surface


def _shared_inertia(what, name, mass, density) -> dict[str, Any]:
    """Mass options for copies of an object, replaced by one inertia that all copies share."""
    solids = pieces.solids_of(what, None, None)
    if solids is None:
        return {}
    inertia = pieces.inertia_of(name or pieces.kind_of(solids), solids, mass, density)
    return {"mass": None, "density": None, "inertia": inertia}


def _acting(coefficients):
    """Surface coefficients with the ``condim`` that rolling and torsional friction need."""
    rolls, spins = (coefficients.get(name) for name in ("rolling", "torsion"))
    dim = {"condim": 6} if rolls else {"condim": 4} if spins else {}
    return dim | coefficients


def _named_parameters(function):
    """Names of the keyword-only parameters of a function."""
    return [x.name for x in signature(function).parameters.values() if x.kind is x.KEYWORD_ONLY]


def _rename(g: Geometry, name: str) -> Geometry:
    """Copy of a shape with another name."""
    return relabel(g, name=name)


def _place(g: Geometry, at: Plucker) -> Geometry:
    """Copy of a shape moved on its body by the placement ``at``."""
    return replace(g, placement=g.placement @ at)
