"""A scene: the pairs of shapes that may touch, with coefficients of friction and restitution."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.tiers import TierChoice
from kinetree.contact.collision.curvature import curvatures
from kinetree.contact.collision.detect import Detection
from kinetree.contact.contacts import Contacts, contact_axes
from kinetree.contact.finding import candidates
from kinetree.contact.finding.closed_forms import is_compiled
from kinetree.contact.finding.pairs import (
    Pair,
    check_coefficient,
    chosen_pairs,
    coefficients,
    is_coefficient,
    may_touch,
    names_of,
    pair_names,
    pairs_of,
)
from kinetree.errors import ModelError, ModelWarning, SingularError, warn
from kinetree.functional.kernel import kernel
from kinetree.integration.refusals import ADHESION, MOVING_SURFACES, OPEN_PAIRS
from kinetree.model.arrays import as_configuration, as_model
from kinetree.model.geometry import Geometry, Plane, Surface
from kinetree.model.model import Model
from kinetree.model.parts import Posture
from kinetree.quantities import kinematics
from kinetree.spatial import Plucker
from kinetree.spelling import explains, explains_itself

MANY = 300
"""Shapes from which on a scene does not list all their pairs before something asks for the list."""


class Candidates(NamedTuple):
    """The potential contacts of a scene, in closed form: a fixed list.

    Attributes:
        predecessor: body numbers, (n,); 0 is the base.
        successor: body numbers, (n,).
        names: what to call them.
        friction: coefficients, (n,).
        restitution: coefficients, (n,).
        pair: number of the pair in ``scene.pairs``, (n,).
    """

    predecessor: np.ndarray
    successor: np.ndarray
    names: tuple[str, ...]
    friction: np.ndarray
    restitution: np.ndarray
    pair: np.ndarray

    @property
    def size(self) -> int:
        """Number of potential contacts."""
        return len(self.pair)


def as_scene(scene, what):
    """``scene`` itself, if it is a ``Scene``; else TypeError naming the class that takes it."""
    if not isinstance(scene, Scene):
        is_model = hasattr(scene, "body_count")
        hint = "; Scene(model, pairs='base') says what can touch" if is_model else ""
        raise TypeError(f"{what} takes a kinetree.contact.Scene, got {type(scene).__name__}{hint}")
    return scene


@explains_itself
class Scene:
    """The shapes of a model that may touch.

    Args:
        model: the mechanism; shapes of its ``geometry`` with ``collision`` set can touch.
        pairs: which shapes may touch: None: all that the model lets touch, as in MuJoCo: not
            those of neighbours, nor those that masks or ``contact_pairs`` exclude;
            ``"base"``: of these, moving ones with those fixed to the base; ``"feet"``: of these,
            the lowest ones in a posture; or a list of ``Pair``, of pairs of names of
            shapes, links, frames or bodies, or of names of pairs. If the first three find none,
            there is a warning.
        friction: coefficient of friction, or a function of two ``Geometry`` that returns it; by
            default that of their surfaces, 0.8 where these have none.
        restitution: coefficient of restitution, or a function of two ``Geometry``; by default that
            of their surfaces, 0 where these have none.
        ignore: pairs to leave out, written like ``pairs``.
        distance: deprecated, has no effect; all pairs of shapes are compared in compiled code.
        posture: in which ``pairs="feet"`` stand: a name, a ``Posture`` or position variables (nq,);
            by default that called home, or else the neutral one.

    Attributes:
        model: the mechanism.
        rule: which pairs were requested: None, ``"base"``, ``"feet"`` or a tuple.
        ignore: the pairs to leave out, as they were given.
        posture: of ``"feet"``, as it was given.
        given: ``friction`` and ``restitution`` as they were given, or None, by name.
    """

    def __init__(
        self,
        model: Model,
        pairs: Sequence | Literal["base", "feet"] | None = None,
        *,
        friction: float | Callable[[Geometry, Geometry], float] | None = None,
        restitution: float | Callable[[Geometry, Geometry], float] | None = None,
        ignore: Sequence = (),
        distance: Callable | None = None,
        posture: "str | Posture | ArrayLike | None" = None,
    ):
        self.model = as_model(model)
        if distance is not None:
            warn(
                "Scene(distance=...) has no effect: all pairs of shapes are compared in compiled "
                "code; leave it out",
                DeprecationWarning,
            )
        self.rule = pairs if pairs is None or isinstance(pairs, str) else tuple(pairs)
        self.ignore, self.posture = tuple(ignore), posture
        self.given = {"friction": friction, "restitution": restitution}
        if self.is_large:
            for name, value in self.given.items():
                check_coefficient(name, None if callable(value) else value, "the scene")
        if self.rule is None and not self.ignore and self._is_legal:  # pairs are listed on demand
            if not (self.is_large or may_touch(self.model).any() or chosen_pairs(self.model)):
                _warn_of_nothing(model)
        elif not self.is_large:
            _ = self.friction, self.restitution  # checked
            if not self.pairs and (pairs is None or isinstance(pairs, str)):
                _warn_of_nothing(model)

    @property
    def _is_legal(self):
        """Whether all coefficients of surfaces and of the scene are within their bounds."""
        surfaces = {id(g.surface): g.surface for g in self.model.geometry if g.surface}
        surfaces |= {id(p.surface): p.surface for p in self.model.contact_pairs if p.surface}
        values = {
            k: [x, *(getattr(s, k) for s in surfaces.values())] for k, x in self.given.items()
        }
        if any(map(callable, self.given.values())):
            return False
        return all(x is None or is_coefficient(k, x) for k, of in values.items() for x in of)

    @property
    def is_large(self) -> bool:
        """Whether the scene has so many shapes that its pairs are listed only on demand."""
        return self.rule is None and len(self.model.geometry) > MANY

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of shapes that may touch, each with the lower body first."""
        return pairs_of(self.model, self.rule, self.ignore, self.posture)

    @cached_property
    def pair_names(self) -> tuple[str, ...]:
        """Names of the pairs, such as ``"ground/foot"``."""
        return pair_names(self.model, self.pairs)

    @cached_property
    def friction(self) -> np.ndarray:
        """Coefficients of friction of the pairs, (number of pairs,)."""
        return coefficients(self.pairs, "friction", self.given["friction"], self.pair_names)

    @cached_property
    def restitution(self) -> np.ndarray:
        """Coefficients of restitution of the pairs, (number of pairs,)."""
        return coefficients(self.pairs, "restitution", self.given["restitution"], self.pair_names)

    def __repr__(self):
        count = len(self.model.geometry)
        what = f"{len(self.pairs)} pairs" if "pairs" in vars(self) else f"{count} shapes"
        return f"<Scene of {self.model.name!r}: {what}>"

    @cached_property
    def moving_surfaces(self) -> tuple[int, ...]:
        """Indices of the pairs with a moving surface, such as a conveyor belt."""
        return tuple(k for k, p in enumerate(self.pairs) if any(map(_moves, p[:2])))

    @cached_property
    def resisting_pairs(self) -> tuple[int, ...]:
        """Indices of the pairs with spinning or rolling friction: ``condim`` 4 or 6."""
        found = ((k, p.surface) for k, p in enumerate(self.pairs))
        return tuple(k for k, s in found if s is not None and s.condim > 3)

    @cached_property
    def shapes(self) -> tuple:
        """Shapes (``Geometry``) in any pair of the scene, in the order of the model."""
        used = {id(g) for pair in self.pairs for g in pair[:2]}
        return tuple(g for g in self.model.geometry if id(g) in used)

    @cached_property
    def pair_numbers(self) -> dict:
        """Map from the numbers of two shapes in ``shapes`` to their pair and its order."""
        at = {id(g): k for k, g in enumerate(self.shapes)}
        ends = ((k, at[id(p.first)], at[id(p.second)]) for k, p in enumerate(self.pairs))
        return {(min(i, j), max(i, j)): (k, i, j) for k, i, j in ends}

    @cached_property
    def reach(self) -> float:
        """Largest margin at which any pair of shapes is kept apart [m]."""
        return max((p.margin for p in self.pairs), default=0.0)

    def contacts(self, q: ArrayLike, margin: float = 0.0) -> Contacts:
        """Contacts at one configuration, with gaps up to a margin.

        Args:
            q: configuration, (nq,).
            margin: the largest gap that counts [m].
        """
        q = as_configuration(self.model, q)
        return _contacts(self, np.asarray(q, dtype=float), margin)

    @cached_property
    def choice(self) -> TierChoice:
        """Choice between the general and the unrolled step for this scene, see docs/tiers.md."""
        return TierChoice()

    @cached_property
    def memo(self) -> dict:
        """Cache for objects made once per scene, such as simulation setups and engines."""
        return {}

    @cached_property
    def detection(self) -> Detection:
        """Collision detection of the scene, with its tables; made once."""
        return Detection(self)

    def __getstate__(self):
        made = ("detection", "choice", "memo")
        return {name: x for name, x in vars(self).items() if name not in made}

    # --- in closed form ----------------------------------------------------------------------

    @cached_property
    def candidates(self) -> Candidates:
        """The potential contacts; raises ModelError where a pair has no closed form."""
        self._require_closed_forms()
        neutral, pair, names = self.model.neutral(), [], []
        for k, p in enumerate(self.pairs):
            gaps, _, _ = candidates.positions(self.model, neutral, [p])
            pair += [k] * len(gaps)
            names += [f"{self.pair_names[k]}:{j}" for j in range(len(gaps))]
        pair = np.array(pair, dtype=int)
        bodies = np.array([[p.first.body, p.second.body] for p in self.pairs], dtype=int)
        bodies = bodies.reshape(-1, 2)[pair]
        mu, e = self.friction[pair], self.restitution[pair]
        return Candidates(bodies[:, 0], bodies[:, 1], tuple(names), mu, e, pair)

    def candidate_positions(self, model: Model, q: ArrayLike) -> tuple[Array, Array, Array]:
        """Gaps (..., n), points (..., n, 3) and axes (..., n, 3, 3) of ``candidates``.

        The rows of the axes are normal and tangents. Traceable, like ``candidate_terms``.
        """
        return self._kernels[0](model, q)

    def candidate_velocities(
        self, model: Model, q: ArrayLike, qd: ArrayLike
    ) -> tuple[Array, Array]:
        """Gaps (..., n) and relative velocities (..., n, 3) of ``candidates``.

        Along normal and tangents, with what prescribed joints add. Traceable.
        """
        return self._kernels[1](model, q, qd)

    def candidate_terms(
        self, model: Model, q: ArrayLike, qd: ArrayLike
    ) -> tuple[Array, Array, Array]:
        """Gaps (..., n), Jacobians (..., n, 3, nv) and biases (..., n, 3) of ``candidates``.

        The relative velocity along normal and tangents is ``J qd``, its rate ``J qdd + bias``;
        along the normal these are the time derivatives of the gap. Can be traced in
        functions under ``@kernel``.
        """
        return self._kernels[2](model, q, qd)

    @cached_property
    def _kernels(self):
        """Compiled functions of the candidates' positions, velocities and terms."""
        self._require_closed_forms()
        pairs = self.pairs

        @kernel
        def candidate_positions(model, q):
            return candidates.positions(model, q, pairs)

        @kernel
        def candidate_velocities(model, q, qd):
            return candidates.velocities(model, q, qd, pairs)

        @kernel
        def candidate_terms(model, q, qd):
            return candidates.terms(model, q, qd, pairs)

        return candidate_positions, candidate_velocities, candidate_terms

    @cached_property
    def open_pairs(self) -> tuple[int, ...]:
        """Indices of the pairs without a closed form, which only ``contacts`` detects."""
        return tuple(
            k for k, p in enumerate(self.pairs) if not is_compiled(p.first.shape, p.second.shape)
        )

    def _require_closed_forms(self):
        """Raise an error if a pair of shapes has no closed form, which traced code needs."""
        if not self.open_pairs:
            return
        k = self.open_pairs[0]
        kinds = " and ".join(type(g.shape).__name__ for g in self.pairs[k][:2])
        raise OPEN_PAIRS.of(
            f"compiled contacts of {self.model.name!r}",
            f"{len(self.open_pairs)} of {len(self.pairs)} pairs that have no closed form, or one "
            f"that is too long, the first {self.pair_names[k]!r} ({kinds})",
        )

    def closed_forms(self) -> "Scene":
        """Scene with only the pairs of this one that have a closed form."""
        kept = [
            p._replace(friction=self.friction[k], restitution=self.restitution[k])
            for k, p in enumerate(self.pairs)
            if k not in self.open_pairs
        ]
        return Scene(self.model, kept)


_FAR = 1e100  # [m] margins that mean everything


def _contacts(scene, q, margin):
    """``Contacts`` of a ``Scene`` at ``q`` with gaps up to ``margin``."""
    detection = scene.detection
    poses = kinematics.poses(scene.model, q)
    if not np.all(np.abs(poses) < _FAR):
        raise SingularError(
            f"contacts of {scene.model.name!r}: bodies are not at a finite place, at q = {q}"
        )
    with detection.lock:
        found = detection.find(poses, min(margin, _FAR))
        n = found.count
        turn, travel = np.zeros((2, n, 2, 3, 3))
        curvatures(detection.tables.shapes, found, turn, travel)
        first, second = found.first[:n].copy(), found.second[:n].copy()
        contacts = Contacts(
            found.bodies[:n, 0].copy(),
            found.bodies[:n, 1].copy(),
            found.point[:n].copy(),
            found.normal[:n].copy(),
            found.gap[:n].copy(),
            _names(scene, first, second, found.feature[:n]),
            found.friction[:n, 0].copy(),
            found.restitution[:n].copy(),
            turn,
            travel,
        )
    if scene.rule in (None, "base"):  # in the order of the shapes already
        return contacts
    pairs = zip(np.minimum(first, second).tolist(), np.maximum(first, second).tolist(), strict=True)
    number = [scene.pair_numbers[pair][0] for pair in pairs]
    return contacts.chosen(np.argsort(number, kind="stable"))


def _names(scene, first, second, feature):
    """Names of contacts, ``shape/shape:feature``, from numbers of shapes and features."""
    own, numbers = names_of(scene.model).own, scene.detection.tables.numbers
    keys = numbers[first].tolist(), numbers[second].tolist(), feature.tolist()
    return tuple(f"{own[a]}/{own[b]}:{k}" for a, b, k in zip(*keys, strict=True))


def _moves(geometry):
    """Whether the surface of a shape moves by itself, as a conveyor belt does."""
    return geometry.surface is not None and any(geometry.surface.velocity)


def require_plain_friction(scene, what):
    """Raise ModelError for moving surfaces, and warn of friction that ``what`` ignores."""
    if scene.moving_surfaces:
        moving = scene.pair_names[scene.moving_surfaces[0]]
        raise MOVING_SURFACES.of(what, f"a surface of {moving!r}, which moves (Surface.velocity)")
    sticky = next((a.name for a in scene.model.actuators if a.adhesion), None)
    if sticky is not None:
        raise ADHESION.of(what, f"actuator {sticky!r} of {scene.model.name!r}, which adheres")
    if scene.resisting_pairs:
        warn(
            f"{what} has sliding friction alone: torsion and rolling of "
            f"{scene.pair_names[scene.resisting_pairs[0]]!r} (condim > 3) do not act; "
            f"kinetree.contact.TimeStepping and kinetree.World have them",
            ModelWarning,
        )


def _warn_of_nothing(model):
    """Warn if a scene has shapes but no pair that may touch."""
    if not model.geometry:
        return
    solid = [g for g in model.geometry if g.collision]
    if len(solid) < 2:
        what = f"of its {len(model.geometry)} shapes {len(solid)} have collision=True"
    else:
        what = (
            f"no two of its {len(solid)} solid shapes are a pair: all are of neighbours, ignored, "
            f"or left out by masks and contact_pairs"
        )
    warn(
        f"nothing can touch in the scene of {model.name!r}: {what}. Robot files have <collision> "
        f"elements for it, builders geometry(..., collision=True), and "
        f"kinetree.contact.with_ground(model) adds a ground; Scene(model, pairs=[]) says that "
        f"nothing is meant to",
        ModelWarning,
    )


# --- A ground plane ------------------------------------------------------------------------------


@explains
def with_ground(
    model: Model,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    point: ArrayLike = (0.0, 0.0, 0.0),
    name: str = "ground",
    surface: Surface | None = None,
) -> Model:
    """Copy of the model with a plane fixed to its base, solid below the ``normal``.

    Args:
        model: the mechanism.
        normal: direction out of the ground, of any length, (3,).
        point: a point of the surface [m], (3,).
        name: name of the shape.
        surface: its contact properties; by default those of the shape that touches it.
    """
    n = np.asarray(normal, dtype=float)
    length = np.sqrt(n @ n) if n.shape == (3,) else 0.0
    if not 0 < length < np.inf:
        raise ModelError(f"normal must be a direction of three numbers, got {normal!r}")
    axes = contact_axes(n / length)
    placement = Plucker(axes[[1, 2, 0]], np.array(point, dtype=float))
    plane = Geometry(0, Plane(), placement, name=name, surface=surface)
    return as_model(model).replace(geometry=(*model.geometry, plane))
