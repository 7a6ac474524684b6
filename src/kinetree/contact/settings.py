"""Settings of rigid contact: ``TimeStepping`` and ``EventDriven``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.impacts.single import require_law
from kinetree.contact.scene import Scene, as_scene, require_plain_friction
from kinetree.errors import ModelError, warn
from kinetree.spelling import explains_itself

DEEP = 1e-13
"""Penetration [m or rad] up to which velocities take it out, at the cost of a little energy: for
rounding errors, so that they do not add up. More is taken out of positions."""

CLOSED, GROWN, SAME = 1e-10, 1e-12, 1e-15
"""Penetration, or error of a loop, [m or rad] with which positions are left as they are; the same
where there was less before, so that it does not grow from step to step; and rounding of it."""

PASSES, SETTLED = 2, 1e-7
"""Velocity products are those of the mean velocity of a step, which is known after it: it is taken
again, at most so often, until that changes by less than this [m/s or rad/s]."""

PASSES_ACROSS, SETTLED_ACROSS = 8, 1e-10
"""The same where springs or drives pull at joints of different branches: a pass takes their forces
less close, the less the stiffer they are."""


MOST_SLOTS = 64
"""Contacts that may act at once in a step with slots."""


class Accuracy(NamedTuple):
    """Sizes that the numbers of an unrolled step resolve; see the constants above.

    Attributes:
        deep, closed, grown, same: of positions [m or rad].
        settled, settled_across: of velocities [m/s or rad/s].
        tolerance: the smallest ``TimeStepping.tolerance`` that can be reached.
        sweeps: how many of Gauss and Seidel solve for the forces; 0 for Newton's method, which
            reaches any accuracy, and has more code than a GPU has registers for.
        least: weight of derivatives of forces that are not unique, see ``solver.differentiable``.
    """

    deep: float
    closed: float
    grown: float
    same: float
    settled: float
    settled_across: float
    tolerance: float
    sweeps: int
    least: float


DOUBLE = Accuracy(DEEP, CLOSED, GROWN / 2, SAME, SETTLED, SETTLED_ACROSS, 0.0, 0, 1e-6)
SINGLE = Accuracy(1e-6, 1e-5, 1e-6, 1e-7, 1e-4, 1e-4, 2.5e-5, 32, 1e-3)


@explains_itself
@dataclass(frozen=True)
class TimeStepping:
    """Rigid contact by time stepping, for ``kinetree.simulate(..., contact=TimeStepping(scene))``.

    In every step velocities, impulses of contacts, stops, dry joint friction and loops are found
    together, so that at its end nothing penetrates, nothing pulls, and friction is within its
    cone. The order in time is one where a contact begins to touch or to slide, two while it
    lasts; in flight it is that of the integrator, or two where forces are Python code, or the
    model has more than 64 velocity variables, loops or exact friction.

    Args:
        scene: what can touch, a ``Scene``.
        tolerance: largest error of a velocity that counts as solved, relative to 1 m/s and to the
            velocities at hand; by default that of ``kinetree.World``, a thousandth of the tolerated
            error of impulses. Of 1e-12 a humanoid that falls costs 1.4 times as much.
        rounds: most rounds of Newton's method in the unrolled step, usually a few are enough; steps
            that it does not solve are taken by the engine.
        rest_velocity: contacts that arrive slower than this do not bounce [m/s].
        stiffness: of a controller's forces, their derivative by position, one number or (nv,)
            [N/m or N·m]: with it stiff gains are integrated implicitly, as springs of the
            joints always are.
        damping: the same with respect to velocity, as dampers of the joints always are.
        conserving: whether a step may gain energy only by the work of forces; what a first-order
            step would add is taken from the velocities.
        correction_speed: how fast penetration is taken out of positions at most: radians per second
            of a joint, or lengths of the mechanism (its largest shape) per second; in the engine a
            body that moves faster may be shifted as fast. Bodies that start deep inside each other
            part over several steps, instead of being thrown apart in one.
        reach: deprecated, has no effect: contacts are searched as far as bodies move in a step.
        compiled_rows: largest number of coupled rows, three for a contact, or as much code in
            several groups, with which a step may be unrolled for the scene where the work
            repays compiling (14 s for 40 rows, growing with the cube), see docs/tiers.md. All
            other steps are taken by the engine, whose code serves every scene; 0: all steps.
        relaxation: a speed v [m/s or rad/s] that makes motions smooth functions of everything, for
            rollouts and their gradients; 0, the default: rigid. Contacts and stops push with
            ``m v²/gap`` [N], where m is the mass that a contact meets, and bodies rest at a gap of
            about ``v²/g``; friction is ``mu N s/(v + s)`` at the sliding speed s, so that contacts
            which should stick creep. The error of a motion is proportional to v. Energies are not
            balanced then, and positions not projected. See docs/rollouts.md.
        slots: on a GPU, of scenes that cannot be unrolled: how many contacts may act at once, up to
            64, the closest ones; the errors of others are part of the residuals.
        thorough: in such steps in single precision, whether Newton's method follows where sweeps do
            not converge. Without it a few steps in a thousand have errors of up to 0.02 m/s, which
            the residuals of a rollout report, and rollouts are a third faster.
        flight: whether ``simulate`` takes steps in which nothing is near by its integrator; False
            in a world, whose steps are of second order in flight as well.
    """

    scene: Scene
    tolerance: float = 1e-9
    rounds: int = 128
    rest_velocity: float = 1e-2
    stiffness: Any = 0.0
    damping: Any = 0.0
    conserving: bool = True
    correction_speed: float = 10.0
    reach: float | None = None
    compiled_rows: int = 40
    relaxation: float = 0.0
    slots: int = 24
    thorough: bool = True
    flight: bool = True

    def __post_init__(self):
        as_scene(self.scene, "TimeStepping")
        if self.reach is not None:
            warn(
                "TimeStepping(reach=...) has no effect any more: contacts are looked for as far as "
                "bodies move in a step. Leave it out",
                DeprecationWarning,
            )
        check_settings(vars(self), self.scene.model.nv)
        for name in _OF_CONTROLLERS:
            values = np.asarray(getattr(self, name), dtype=float)
            object.__setattr__(
                self, name, (*np.broadcast_to(values, self.scene.model.nv).tolist(),)
            )


def check_settings(given: Mapping[str, Any], nv: int | None = None) -> None:
    """Raise ModelError for an invalid value among the settings of ``TimeStepping``.

    Args:
        given: settings by name.
        nv: number of velocity variables, where it is known.
    """
    for name, value in given.items():
        if name not in _RULES:
            continue
        fits, wanted = _RULES[name]
        for_all = nv is None or name not in _OF_CONTROLLERS or np.shape(value) in ((), (nv,))
        if not (_holds(fits, value) and for_all):
            count = "nv numbers" if nv is None else f"nv = {nv}"
            raise ModelError(f"{name} {wanted.format(count)} got {value!r}")


_OF_CONTROLLERS = ("stiffness", "damping")
_POSITIVE = (lambda x: x > 0), "must be positive,"
_NOT_NEGATIVE = (lambda x: x >= 0), "must not be negative,"
_CHOICE = (lambda x: isinstance(x, (bool, np.bool_))), "must be True or False,"
_WEIGHTS = (
    lambda x: np.all(np.asarray(x, dtype=float) >= 0),
    "of a controller must be one number or {}, none negative;",
)
_FEW = (
    lambda x: x == int(x) and 1 <= x <= MOST_SLOTS,
    f"must be an integer from 1 to {MOST_SLOTS},",
)
_RULES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "tolerance": _POSITIVE, "rounds": _POSITIVE, "correction_speed": _POSITIVE,
    "rest_velocity": _NOT_NEGATIVE, "compiled_rows": _NOT_NEGATIVE, "relaxation": _NOT_NEGATIVE,
    "slots": _FEW,
    "conserving": _CHOICE, "thorough": _CHOICE, "flight": _CHOICE, "stiffness": _WEIGHTS,
    "damping": _WEIGHTS,
}  # fmt: skip
"""Whether a value can be that of a setting, and what messages say."""


def _holds(rule, value):
    """Whether a rule accepts a value; False also if the rule raises for its type."""
    try:
        return bool(rule(value))
    except (TypeError, ValueError):
        return False


# --- Event-driven contact ------------------------------------------------------------------------


@explains_itself
@dataclass(frozen=True)
class EventDriven:
    """Event-driven rigid contact, for ``kinetree.simulate(..., contact=EventDriven(scene))``.

    Between events every contact is open, sticks, slides in a known direction, or touches without
    friction, and closed ones are equations of the motion: the order in time is that of the
    integrator. Events are located to 1e-12 s: contacts arrive, and an impact follows; normal forces
    would have to pull, and contacts open; friction is not enough, and they slip; sliding stops;
    a corner of a polyhedron slides over the border of a face, or an edge past the end of an edge.
    At each, and only there, a contact problem decides what comes next — RBDA Table 11.1.

    For single motions with few contacts. ``TimeStepping`` is for many.

    Args:
        scene: what can touch, a ``Scene``, whose pairs have closed forms or are polyhedra: boxes,
            convex hulls of meshes, planes.
        law: of restitution: ``"energetic"``, ``"poisson"`` or ``"newton"``.
        order: of impacts at several contacts: ``"simultaneous"`` or ``"sequential"``.
        rest_velocity: contacts that would leave an impact slower than this stay closed [m/s]: where
            bounces become ever faster, they end.
        stick_velocity: sliding that is slower than this where it stops counts as sticking [m/s].
        gap_tolerance: largest gap of a closed contact [m].
        velocity_tolerance: largest speed that counts as zero [m/s].
        acceleration_tolerance: least acceleration with which a contact opens or slips [m/s²].
    """

    scene: Scene
    law: str = "energetic"
    order: str = "simultaneous"
    rest_velocity: float = 1e-4
    stick_velocity: float = 1e-6
    gap_tolerance: float = 1e-9
    velocity_tolerance: float = 1e-8
    acceleration_tolerance: float = 1e-8

    def __post_init__(self):
        require_plain_friction(as_scene(self.scene, "EventDriven"), "EventDriven")
        require_law(self.law)
        if self.order not in ("simultaneous", "sequential"):
            raise ModelError(f"order must be 'simultaneous' or 'sequential', got {self.order!r}")
        for name, value in vars(self).items():
            if isinstance(value, (int, float)) and not value > 0:
                raise ModelError(f"{name} must be positive, got {value!r}")
