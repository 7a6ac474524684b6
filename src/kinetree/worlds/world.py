"""``World``: robots, objects and terrain put together, stepped, saved and looked at."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import TimeStepping
from kinetree.errors import ModelError, ShapeError, SimulationError, UnknownNameError, require_known
from kinetree.joints import AbstractJoint, Free
from kinetree.model import Model
from kinetree.model.arrays import as_seconds
from kinetree.model.cameras import Camera
from kinetree.model.geometry import ContactPair, Geometry, Plane, Surface
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.model.names import is_known, names_that_touch
from kinetree.model.parts import Posture, as_placement, relabel
from kinetree.notebook import block, show
from kinetree.rendering.cameras import render
from kinetree.simulation.results.state import State
from kinetree.simulation.sensors import Readings, Sensors, sensors
from kinetree.spatial import Inertia, Plucker
from kinetree.spelling import did_you_mean, explains_methods, no_argument
from kinetree.worlds import pieces
from kinetree.worlds.attributes import no_attribute
from kinetree.worlds.carried import Carried, carried_from
from kinetree.worlds.contacts import Contacts
from kinetree.worlds.forces import Forces
from kinetree.worlds.inputs import by_part
from kinetree.worlds.options import check_options, options_of
from kinetree.worlds.overlaps import link_of, overlapping_links
from kinetree.worlds.parts import Part
from kinetree.worlds.pieces import SEPARATOR, Piece
from kinetree.worlds.removal import drop_rules, remove_part
from kinetree.worlds.results import Report
from kinetree.worlds.ties import hold, release, tie
from kinetree.worlds.whole import Simulated, Whole, fill, from_file, load, save


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


@explains_methods
class World:
    """Robots, objects and terrain in rigid contact, as one mechanism that is stepped.

        world = kt.World()
        world.add_ground()
        arm = world.add("panda", name="arm")
        box = world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, at=(0.5, 0, 0.05))
        world.step(1000)
        box.pose, world.contacts()

    Parts are assembled when they are first needed: ``model`` is the whole world as one ``Model``, a
    forest, and ``scene`` defines what can touch. All functions of kinetree work with them.

    Args:
        name: of the world.
        gravity: [m/s²], (3,), for all parts; that of their models is ignored.
        timestep: length of a step [s].
        friction: coefficient of friction of all contacts; by default that of the surfaces, 0.8
            where these have none.
        restitution: coefficient of restitution, in the same way; 0 where surfaces have none.
        tolerance: error of the impulses of a step, relative to the largest among bodies that
            touch; a thousandth of it is the tolerance of velocities of ``TimeStepping``.
        limits: of joints: ``"rigid"``, ``"stiff"`` or None, as in ``kinetree.simulate``; by default
            rigid, but for joints that close loops.
        joint_friction: dry friction of joints: ``"exact"``, ``"smooth"`` or None; by default exact
            where it can be, see docs/defaults.md.
        sleeping: whether groups of touching bodies that are all slower than 1e-4 rad/s, or lengths
            of the largest shape per second, for 50 steps are no longer moved, until something
            touches them, a force on them changes, or a state is set.
        strict: whether a step that cannot be trusted, see ``report().unsolved``, raises an error;
            then the world stays where it was before the call. Otherwise the first one is a warning.
        **options: ``motors``, ``kinetree.TorqueSpeed`` by name of the actuator, which limits it
            under controls; and settings of ``kinetree.contact.TimeStepping``, such as
            ``rest_velocity``.
    """

    def __init__(
        self,
        name: str = "world",
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        timestep: float = 2e-3,
        friction: float | None = None,
        restitution: float | None = None,
        tolerance: float = 1e-6,
        limits: Any = "auto",
        joint_friction: Any = "auto",
        sleeping: bool = False,
        strict: bool = False,
        **options: Any,
    ):
        self._base = Model((), name=name, gravity=np.array(gravity, dtype=float), base_name="world")
        named = {
            "friction": friction, "restitution": restitution, "tolerance": tolerance,
            "limits": limits, "joint_friction": joint_friction, "sleeping": sleeping,
            "strict": strict,
        }  # fmt: skip
        check_options(World.__init__, self._base, named | options)
        self.timestep = timestep
        self.coefficients: dict[str, Any] = {"friction": friction, "restitution": restitution}
        motors = dict(options.pop("motors", None) or {})
        self.settings, self.tolerance, self.sleeping = options, tolerance, bool(sleeping)
        self.strict = bool(strict)
        self.joints = {"limits": limits, "friction": joint_friction, "motors": motors}
        self._pieces: list[Piece] = []
        self._parts: dict[str, tuple[Piece, tuple[int, ...] | None]] = {}
        self._copies: dict[str, int] = {}
        self._pairs: list[ContactPair] = []
        self._ties: dict[str, Any] = {}
        self._released: set[str] = set()
        self._uncoupled: dict = {}
        self._carried: Carried | None = None
        self._time, self._is_stepping = 0.0, False

    # --- what there is -----------------------------------------------------------------------

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
        surface = _surface(surface, coefficients, World.add)
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
        parts = [self._added(what, x, given) for x in places or [as_placement(at)]]
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

    def _added(self, what, at, given):
        """The part that is added, as a ``_New`` says."""
        make = self._robot if isinstance(what, Model) else self._moved_object
        piece = make(what, at, given)
        shapes = piece.shapes if piece.model is None else piece.model.geometry
        still = piece.body is None and any(g.body == 0 for g in shapes)
        self._changed(wakes=still)  # what sleeps does not look at what stands still
        self._pieces.append(piece)
        self._parts[piece.name] = (piece, None)
        if given.velocity is not None or given.spin is not None:
            pieces.give_velocity(piece, given.velocity, given.spin)
        return Part(self, piece.name)

    def _robot(self, model, at, given):
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
        name, joint, inertia = given.name, given.joint, given.inertia
        mass, density = given.mass, given.density
        solids = pieces.solids_of(what, given.surface, given.color)
        if solids is None:
            raise ModelError(
                f"a world is made of models, files of robots, names of samples, and shapes of "
                f"kinetree.geometry such as Box((0.1, 0.1, 0.1)); got {what!r}"
            )
        name = self._unique(pieces.kind_of(solids) if name is None else name)
        solids = [_named(g, name if len(solids) == 1 else "") for g in solids]
        if mass is None and density is None and inertia is None:
            if joint is not None:
                raise ModelError(f"{name!r} moves on a joint: give its mass, density or inertia")
            shapes = tuple(_moved(_named(g, name), at) for g in solids)
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
        """Add a plane that is solid below.

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
        surface = _surface(surface, coefficients, World.add_ground)
        return self.add(
            Plane((0.0, 0.0)), name=name, at=plane.placement, surface=surface, color=color
        )

    def remove(self, name: str) -> None:
        """Remove a part: a robot, an object or a fixed shape, with the rules of contact about it.

        The others keep their states, and the solver what it knows of their contacts.

        Args:
            name: of the part; it can then be given to another.
        """
        require_known(name, self._parts, f"world {self.name!r} has no part {name!r} to remove")
        self._changed()
        remove_part(self, name)

    def exclude(self, first: str, second: str) -> None:
        """Let shapes pass through each other: those of two parts, bodies, links or shapes.

        ``include`` undoes it. The last call of ``exclude``, ``contact_pair`` and ``include`` for
        two of them counts.
        """
        self._pair(first, second, touch=False, surface=None)

    def include(self, first: str, second: str) -> None:
        """Let two parts, bodies, links or shapes touch by the usual rules again.

        It undoes ``exclude``, ``contact_pair`` and ``exclude_overlaps``, and also what the files
        of robots, or their overlaps with their own base, have decided about the two.
        """
        ends = [self._touching(first), self._touching(second)]
        self._changed(rules=True)
        drop_rules(self, *ends)

    def tie(self, name: str, first: str, second: str, *, joint: Any = None, at: Any = None) -> None:
        """Hold two bodies or frames to each other as they are now, until ``release(name)``.

        Args:
            name: unique name, among the joints of the world.
            first: name of a body or frame of the world.
            second: name of the other.
            joint: what may move between them, such as ``kt.Spherical()``; nothing by default.
            at: where the joint is on ``first``: position (3,), pose (4, 4) or ``Plucker``; at
                ``second`` by default.
        """
        tie(self, name, first, second, joint, at)

    def release(self, name: str) -> None:
        """Let go what ``tie`` holds, a joint that closes a loop, or a coupling; see ``hold``.

        A joint that followed others has variables of its own then: ``q`` of the robot is longer.
        """
        release(self, name)

    def hold(self, name: str) -> None:
        """Let a joint that closes a loop, or a coupling, hold again after ``release``.

        Its ends must be where it closes, a joint where it follows; ``tie`` holds bodies where they
        are.
        """
        hold(self, name)

    def exclude_overlaps(self, margin: float = 0.0) -> list[tuple[str, str]]:
        """Let links of one robot that overlap in this posture pass through each other; their names.

        Links of many robot files overlap at a joint or two in every posture, and would be pushed
        apart. Contacts between parts stay as they are.

        Args:
            margin: links nearer to each other than this count as well [m].
        """
        names = overlapping_links(self, margin)
        for a, b in names:
            self.exclude(a, b)
        return names

    def contact_pair(
        self, first: str, second: str, *, surface: Surface | None = None, **coefficients: Any
    ) -> None:
        """Let two parts, bodies, links or shapes touch, with their own coefficients.

        Args:
            first: name of a part, body, link or shape of the world.
            second: name of the other.
            surface: coefficients of the pair.
            **coefficients: in place of it, as in ``add``.
        """
        self._pair(
            first, second, touch=True, surface=_surface(surface, coefficients, World.contact_pair)
        )

    def _pair(self, first, second, *, touch, surface):
        ends = [self._touching(first), self._touching(second)]
        self._changed(rules=True)
        drop_rules(self, *ends)
        self._pairs += [ContactPair(a, b, touch, surface) for a in ends[0] for b in ends[1]]

    def _touching(self, name: str) -> list[str]:
        """Names of the links or shapes of a part, which may also be one of these itself."""
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
        """Raise UnknownNameError unless pieces have a body, link, frame or shape of this name."""
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

    def _unique(self, name):
        """The name, with a number where it is taken."""
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

    if not TYPE_CHECKING:  # checkers of types find unknown names themselves

        def __getattr__(self, name):
            if hasattr(type(self), name):  # a property whose code failed to find something else
                return object.__getattribute__(self, name)
            raise AttributeError(no_attribute(self, name))

    def __getitem__(self, name: str) -> Part:
        if name in self._parts or name in self._bodies:
            return Part(self, name)
        known = [*self._parts, *self._bodies]
        raise UnknownNameError(
            f"world {self._base.name!r} has no part or body {name!r}; {did_you_mean(name, known)}"
        )

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
        return block(repr(self)[1:-1], show(self) if self._parts else "")

    # --- the whole ---------------------------------------------------------------------------

    def _changed(self, *, wakes: bool = False, rules: bool = False):
        """Forget what was put together; every piece keeps its state, and the solver its memory."""
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
        return Whole(self)

    @property
    def model(self) -> Model:
        """The whole world as one model."""
        return self._whole.model

    @property
    def scene(self) -> Scene:
        """Scene of the shapes that can touch."""
        return self._whole.scene

    @property
    def contact(self) -> TimeStepping:
        """The contact model for ``kinetree.simulate`` and others."""
        return self._whole.contact

    @property
    def _bodies(self):
        return self._whole.bodies

    @property
    def name(self) -> str:
        """Name of the world."""
        return self._base.name

    @property
    def gravity(self) -> np.ndarray:
        """Acceleration of gravity [m/s²], (3,)."""
        return self._base.gravity

    # --- state -------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Time since the start [s]."""
        return self._time

    @time.setter
    def time(self, t: float):
        self._time = as_seconds(t, "time")

    @property
    def timestep(self) -> float:
        """Length of a step [s]."""
        return self._timestep

    @timestep.setter
    def timestep(self, h: float):
        self._timestep = as_seconds(h, "timestep", least=0.0)

    @property
    def q(self) -> np.ndarray:
        """Positions of all parts, (nq,): a copy."""
        return self._whole.q.copy()

    @q.setter
    def q(self, q: ArrayLike):
        self._whole.set(q, self._whole.qd)

    @property
    def qd(self) -> np.ndarray:
        """Velocities of all parts, (nv,): a copy."""
        return self._whole.qd.copy()

    @qd.setter
    def qd(self, qd: ArrayLike):
        self._whole.set(self._whole.q, qd)

    @property
    def activation(self) -> np.ndarray:
        """Activations of the actuators that have one, (m,): a copy."""
        return self._whole.activation.copy()

    @property
    def state(self) -> State:
        """Time, positions, velocities, activations, and the memory of the solver."""
        whole = self._whole
        return State(
            self._time,
            whole.q.copy(),
            whole.qd.copy(),
            whole.activation.copy(),
            whole.steps.saved(),
        )

    def set_state(self, state: State) -> None:
        """Return to a state of this world, or of one that was built in the same way."""
        if not isinstance(state, State):
            raise TypeError(f"set_state takes the state of a world, got {type(state).__name__}")
        whole = self._whole
        whole.set(state.q, state.qd, activation=state.activation)
        whole.steps.restore(state.memory)
        self._time = state.time

    def reset(self, posture: str | Posture | Mapping[str, str] | None = None) -> None:
        """Go back to the start, at time 0.

        Args:
            posture: name of a posture: parts that have one of that name take it, the others go to
                their start. Or names of postures by part.
        """
        whole, (q, qd) = self._whole, self.start
        activation = np.zeros(whole.activation.size)
        if posture is None:
            wanted = {}
        elif isinstance(posture, Mapping):
            wanted = {self[name]: self.model.posture(x) for name, x in posture.items()}
        else:
            name = posture if isinstance(posture, str) else posture.name
            wanted = {None: self.model.posture(name)}
        for part, p in wanted.items():
            at_q, at_v = (slice(None),) * 2 if part is None else (part.q_indices, part.v_indices)
            if part is not None and p.name not in part.postures:
                known = ", ".join(part.postures) or "none"
                raise UnknownNameError(f"{part.name!r} has no posture {p.name!r}; it has {known}")
            q[at_q], qd[at_v] = p.q[at_q], p.qd[at_v] if p.moves else 0.0
            activation = np.array(p.activation) if p.activation.size else activation
        whole.set(q, qd, activation=activation)
        whole.steps.forget()
        self._time = 0.0

    @property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities to which ``reset`` returns."""
        states = [piece.start for piece in self._pieces]
        q, qd = ([x[k] for x in states] for k in (0, 1))
        return np.concatenate([np.zeros(0), *q]), np.concatenate([np.zeros(0), *qd])

    # --- motion ------------------------------------------------------------------------------

    def step(
        self,
        n: int = 1,
        control: Any = None,
        *,
        tau: ArrayLike | Callable | None = None,
        forces: Any = None,
    ) -> None:
        """Take steps of ``timestep`` seconds.

        Args:
            n: how many.
            control: of the actuators of all robots, (number of actuators,); or by name of the
                part, ``{"left": u}``; or a function ``(t, q, qd)`` that returns either, called
                before every step. Without it actuators exert nothing.
            tau: joint forces beside them, (nv,), by part as well, or a function ``(t, q, qd)``; by
                part also functions of the state of the part, ``{"left": controller}``.
            forces: external forces, as of ``kinetree.simulate``: a ``kinetree.ExternalForce``, a
                function ``(model, t, q, qd)`` that returns joint forces, or several; or by name of
                the body or frame, ``{"box": (0, 0, 5.0)}``: three numbers are a force through its
                origin [N], six a moment [N·m] and a force, along the axes of the world. Functions
                are called before every step.
        """
        if type(n) is not int or n < 0:
            n = _number_of_steps(n)
        if self._is_stepping:
            self._require_rest("step it")
        before = self.state if self.strict else None
        self._is_stepping, steps = True, None
        try:
            whole = self._whole
            steps = whole.steps
            steps.taken = 0
            plain = tau is None and forces is None and n > 0
            if not plain or callable(control) or not steps.go_on(whole, self._timestep, n, control):
                self._step(steps, n, control, tau, forces)
        except SimulationError:
            if before is not None:
                self._is_stepping = False
                self.set_state(before)
            raise
        finally:  # a controller may fail on the way
            self._is_stepping = False
            if steps is not None:
                self._time += steps.taken * self._timestep

    def _step(self, steps, n, control, tau, forces):
        """Take steps that something beside controls acts in, or that a function decides about."""
        whole, t, h = self._whole, self._time, self._timestep
        if tau is None and forces is None and n and callable(control):
            steps.follow(whole, t, h, n, control, self._actuators)
        else:
            acting = by_part(tau, self), Forces(self.model, forces)
            steps.advance(whole, t, h, n, control, acting, self._actuators)

    def _require_rest(self, what):
        """Reject what a controller, or another thread, may not do to a world that is stepped."""
        if self._is_stepping:
            raise SimulationError(
                f"world {self.name!r} is being stepped: controllers and other threads cannot "
                f"{what} meanwhile; do so between steps, or with a copy"
            )

    def _actuators(self, name):
        return self[name].actuators

    def contacts(self) -> Contacts:
        """The contacts of the last step as a table, with their forces."""
        return self._whole.steps.contacts(self._whole)

    def report(self) -> Report:
        """Accuracy of all steps since the last report: errors in units, energy, unsolved steps."""
        return self._whole.steps.report(self._time, self._timestep)

    # --- sensors -----------------------------------------------------------------------------

    @property
    def sensors(self) -> Sensors:
        """The sensors of all parts, by name."""
        return sensors(self.model)

    def read_sensors(self) -> Readings:
        """Readings now, with the contact forces and accelerations of the last step."""
        return self._whole.steps.readings(self._whole, self.sensors, self._time)

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """The cameras of all parts."""
        return self.model.cameras

    def render(
        self,
        camera: str | Camera | None = None,
        what: str | Sequence[str] = "color",
        *,
        collision: bool = False,
        shadows: bool = True,
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Picture of the world by a camera, as ``kinetree.render``.

        Args:
            camera: a ``Camera`` or the name of one of the world; by default its first one.
            what: ``"color"``, ``"depth"``, ``"shape"``, ``"body"``, or several of these.
            collision: draw the shapes that can touch instead of those to be seen.
            shadows: whether there are shadows in colours.
        """
        return render(self.model, self.q, camera, what, collision=collision, shadows=shadows)

    # --- copies, and other functions of kinetree ---------------------------------------------

    def simulated(self) -> Simulated:
        """Start of ``kinetree.simulate(world, ...)``."""
        whole = self._whole
        return Simulated(
            whole.model,
            self.state,
            self.timestep,
            whole.contact,
            self.joints,
            read=(
                lambda tau: by_part(tau, self),
                lambda u: whole.steps.drives.rows(u, self._actuators)[0],
            ),
            check=lambda q=None: (
                whole.steps.check(whole) if q is None else whole.steps.check_starts(q)
            ),
        )

    def with_model(self, model: Model) -> "World":
        """A copy of the world with other parameters of its model: masses, sizes, gravity.

        Args:
            model: the model of the world, changed by ``model.replace(...)``; bodies, joints and
                actuators must be the same.
        """
        names = ("body_names", "joint_names", "nq")
        if any(getattr(model, x) != getattr(self.model, x) for x in names):
            raise ModelError(
                f"with_model takes the model of world {self.name!r} with other numbers; "
                f"{model.name!r} has other bodies or joints"
            )
        options = options_of(self.joints) | self.coefficients | self.settings
        options |= {"tolerance": self.tolerance, "sleeping": self.sleeping, "strict": self.strict}
        new = World(self.name, gravity=model.gravity, timestep=self.timestep, **options)
        parts = {name: self[name].numbers for name in self}
        fill(new, model, self.start, parts)
        new.set_state(self.state)
        return new

    def copy(self) -> "World":
        """Another world in the same state."""
        return self.with_model(self.model)

    def batch(
        self,
        n: int,
        *,
        friction: Any = None,
        restitution: Any = None,
        mass: Any = None,
        gains: Any = None,
        size: Any = None,
        device: Any = "cpu",
        arrays: str = "cupy",
    ) -> Any:
        """Copies of the world with individual parameters, stepped together; nothing is recompiled.

        Args:
            n: how many.
            friction: coefficient of all shapes, (n,), or by part, ``{"box": (n,)}``. Of two shapes
                that touch the larger one counts, or that of the higher ``priority``.
            restitution: in the same way.
            mass: of parts [kg], ``{"box": (n,)}``; inertias grow with it.
            gains: factors of the gains of all actuators, (n,), or by part.
            size: factors of the lengths of parts, ``{"box": (n,)}``; masses stay.
            device: ``"cpu"``, or a GPU such as ``"cuda"``.
            arrays: ``"cupy"``, ``"torch"`` or ``"numpy"``: what worlds on a GPU return.

        Returns:
            ``kinetree.Worlds``; on a GPU ``kinetree.DeviceWorlds``.
        """
        from kinetree.worlds.batch import batch

        given = {"friction": friction, "restitution": restitution, "mass": mass, "gains": gains}
        return batch(self, n, given | {"size": size}, device, arrays)

    def __getstate__(self):
        state = self.state  # puts together what is not yet
        return {**self.__dict__, "_whole": None, "_state": state, "_is_stepping": False}

    def __setstate__(self, given):
        state = given.pop("_state")
        del given["_whole"]
        self.__dict__.update(given)
        self.set_state(state)

    # --- files, batches, pictures ------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the world with its state to a file, ``.npz``; ``World.load`` reads it."""
        return save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "World":
        """The world in a file that ``save`` wrote; it continues with bit-identical results."""
        return load(cls, path)

    @classmethod
    def from_file(cls, path: str | os.PathLike, **options: Any) -> "World":
        """The world in an MJCF, SDF or other file, with its robots and objects as parts.

        Every body on the base, with everything it carries, becomes a part under its own name; all
        names are those of the file. Gravity and, of MJCF and SDF, the time step are those of the
        file. The world starts where the file puts its bodies.

        Args:
            path: of the file.
            **options: of ``World`` and of ``kinetree.load``; ``posture``, the name of a
                keyframe to start from; and ``keep_overlaps``, as in ``add``.
        """
        return from_file(cls, path, options)

    def view(self, **options: Any) -> Any:
        """Show the world as it is in the browser: ``kinetree.view(world, **options)``."""
        import kinetree  # the viewer is a higher layer, reached through the public interface

        return kinetree.view(self, **options)


def _number_of_steps(n) -> int:
    """``n`` as an integer that is not negative."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 0:
        raise ShapeError(f"n must be an integer number of steps, got {n!r}")
    return int(n)


def _surface(surface, coefficients, method) -> Surface | None:
    unknown = [key for key in coefficients if key not in _SURFACE]
    if unknown:
        known = [*_named_parameters(method), *_SURFACE]
        raise TypeError(no_argument(method.__qualname__, unknown[0], known))
    if surface is not None and coefficients:
        raise ModelError(f"give surface= or {next(iter(coefficients))}=, not both")
    return Surface(**_acting(coefficients)) if coefficients else surface


def _shared_inertia(what, name, mass, density) -> dict[str, Any]:
    """Options of copies of an object, by which all of them have one inertia."""
    solids = pieces.solids_of(what, None, None)
    if solids is None:
        return {}
    inertia = pieces.inertia_of(name or pieces.kind_of(solids), solids, mass, density)
    return {"mass": None, "density": None, "inertia": inertia}


def _acting(coefficients):
    """Coefficients of a surface with as many directions (``condim``) as they act in."""
    rolls, spins = (coefficients.get(name) for name in ("rolling", "torsion"))
    dim = {"condim": 6} if rolls else {"condim": 4} if spins else {}
    return dim | coefficients


def _named_parameters(function):
    """Names of the parameters that are given by name."""
    return [x.name for x in signature(function).parameters.values() if x.kind is x.KEYWORD_ONLY]


def _named(g: Geometry, name: str) -> Geometry:
    return relabel(g, name=name)


def _moved(g: Geometry, at: Plucker) -> Geometry:
    return replace(g, placement=g.placement @ at)
