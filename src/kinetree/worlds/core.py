"""Common ground of the parts of ``World``: its pieces, and the whole made of them."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.errors import SimulationError, UnknownNameError
from kinetree.model import Model
from kinetree.model.geometry import ContactPair
from kinetree.model.names import is_known, names_that_touch
from kinetree.notebook import block, show
from kinetree.spelling import did_you_mean
from kinetree.worlds.attributes import no_attribute
from kinetree.worlds.carried import Carried, carried_from
from kinetree.worlds.overlaps import link_of
from kinetree.worlds.parts import Part
from kinetree.worlds.pieces import Piece
from kinetree.worlds.whole import Whole

if TYPE_CHECKING:
    from kinetree.worlds.world import World


class WorldCore:
    """Pieces of a world by name, and the model, scene and state that they are put together to.

    Args:
        base: the world without parts.
        coefficients: of friction and restitution of all contacts, or None.
        settings: of ``TimeStepping``.
        joints: limits, friction and motors of joints.
        solving: ``tolerance``, ``sleeping`` and ``strict``.
    """

    def __init__(
        self,
        base: Model,
        coefficients: dict[str, Any],
        settings: dict[str, Any],
        joints: dict[str, Any],
        solving: dict[str, Any],
    ):
        self._base = base
        self.coefficients, self.settings, self.joints = coefficients, settings, joints
        self.tolerance: float = solving["tolerance"]
        self.sleeping, self.strict = bool(solving["sleeping"]), bool(solving["strict"])
        self._pieces: list[Piece] = []
        self._parts: dict[str, tuple[Piece, tuple[int, ...] | None]] = {}
        self._copies: dict[str, int] = {}
        self._pairs: list[ContactPair] = []
        self._ties: dict[str, Any] = {}
        self._released: set[str] = set()
        self._uncoupled: dict = {}
        self._carried: Carried | None = None
        self._time, self._is_stepping = 0.0, False

    # --- the whole ---------------------------------------------------------------------------

    def _note_change(self, *, wakes: bool = False, rules: bool = False):
        """Discard the assembled model after a change, keeping states and solver memory."""
        self._require_rest("add to it, remove from it or change its pairs")
        whole = self.__dict__.pop("_whole", None)
        if whole is not None:
            for piece, (at_q, at_v) in zip(self._pieces, whole.slices, strict=True):
                piece.q, piece.qd = whole.q[at_q].copy(), whole.qd[at_v].copy()
            self._carried = carried_from(whole)
        if self._carried is not None:
            self._carried.is_new |= wakes or rules
            self._carried.by_rules |= rules

    @cached_property
    def _whole(self) -> Whole:
        """Assembled world: model, scene, state and stepper; built when first needed."""
        return Whole(self)

    @property
    def model(self) -> Model:
        """``Model`` of the whole world with all its parts."""
        return self._whole.model

    @property
    def scene(self) -> Scene:
        """``Scene`` of all shapes of the world that may touch."""
        return self._whole.scene

    @property
    def contact(self) -> TimeStepping:
        """The ``TimeStepping`` contact model of the world, for ``kinetree.simulate`` and others."""
        return self._whole.contact

    @property
    def _bodies(self):
        """Number of every body of the world, by its name."""
        return self._whole.bodies

    @property
    def name(self) -> str:
        """Name of the world."""
        return self._base.name

    @property
    def gravity(self) -> np.ndarray:
        """Acceleration of gravity [m/s²], (3,)."""
        return self._base.gravity

    def _require_rest(self, what):
        """Raise SimulationError if the world is being stepped, naming the rejected action."""
        if self._is_stepping:
            raise SimulationError(
                f"world {self.name!r} is being stepped: controllers and other threads cannot "
                f"{what} meanwhile; do so between steps, or with a copy"
            )

    # --- parts by name -----------------------------------------------------------------------

    def _touching(self, name: str) -> list[str]:
        """Names of a part's links that have collision shapes; other names are returned alone."""
        if name not in self._parts:
            self._require_known(name)
            return [name]
        piece, inside = self._parts[name]
        if piece.model is None or inside == ():
            return [name]
        shapes = [g for g in piece.model.geometry if inside is None or g.body in inside]
        links = dict.fromkeys(link_of(piece.model, g) for g in shapes if g.collision)
        return [piece.prefix + link for link in links]

    def _require_known(self, name):
        """Raise UnknownNameError unless some part has a body, link, frame or shape so named."""
        known = {self._base.base_name, *self._parts}
        for piece in self._pieces:
            m = piece.model
            if m is not None:
                own = names_that_touch(m.base_name, m.bodies, m.frames, m.geometry)
                known |= {piece.prefix + x for x in own}
        if not isinstance(name, str) or not is_known(name, known):
            raise UnknownNameError(
                f"world {self.name!r} has no part, body, link, frame or shape {name!r}; "
                f"{did_you_mean(str(name), sorted(known))}"
            )

    def _actuators(self, name):
        """Numbers of the actuators of the named part."""
        return self[name].actuators

    if not TYPE_CHECKING:  # checkers of types find unknown names themselves

        def __getattr__(self, name):
            if hasattr(type(self), name):  # a property whose code failed to find something else
                return object.__getattribute__(self, name)
            raise AttributeError(no_attribute(self, name))

    def __getitem__(self, name: str) -> Part:
        if name in self._parts or name in self._bodies:
            return self._part(name)
        known = [*self._parts, *self._bodies]
        raise UnknownNameError(
            f"world {self._base.name!r} has no part or body {name!r}; {did_you_mean(name, known)}"
        )

    def _part(self, name) -> Part:
        """``Part`` object for the world's part of this name."""
        return Part(cast("World", self), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self):
        return len(self._parts)

    def __contains__(self, name: object):
        return name in self._parts

    def __repr__(self):
        counts: dict[str, int] = {}
        for piece, inside in self._parts.values():
            size = piece.body_count if inside is None else len(inside)
            single = size == 1 and (inside is not None or piece.model is None)
            kind = "fixed" if not size else "object" if single else "robot"
            counts[kind] = counts.get(kind, 0) + 1
        parts = ", ".join(
            f"{n} {kind}{'s' if n > 1 and kind != 'fixed' else ''}" for kind, n in counts.items()
        )
        return f"<World {self._base.name!r}: {parts or 'empty'}; t = {self._time:.6g} s>"

    def _repr_html_(self):
        """HTML picture of the world, for notebooks."""
        return block(repr(self)[1:-1], show(self) if self._parts else "")
