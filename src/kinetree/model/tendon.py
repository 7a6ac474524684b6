"""Tendons: lengths that carry a force, sums of joint positions or paths through space.

How long they are, and how that changes, is in ``tendon_paths``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kinetree.errors import ModelError
from kinetree.model.coupling import as_floats

WRAPPED = ("sphere", "cylinder")
"""Shapes that a path can wind around."""


@dataclass(frozen=True)
class Wrap:
    """A sphere or a cylinder that a path winds around where it is in its way.

    Without a ``side`` the path takes the shorter way around. With one it passes where the side is;
    a side inside of the shape makes the path touch the shape from within, as through a ring.

    Attributes:
        frame: name of the frame or body at its centre; a cylinder is infinite along z.
        shape: "sphere" or "cylinder".
        radius: [m].
        side: name of a frame or body, or empty.
    """

    frame: str
    shape: str
    radius: float
    side: str = ""


@dataclass(frozen=True)
class Pulley:
    """The end of a part of a path, and the beginning of the next one.

    From here on lengths count less, and so do forces: a rope over a movable pulley has two parts
    that each pull with the force of the tendon divided by 2.

    Attributes:
        divisor: by which the lengths that follow are divided.
    """

    divisor: float


@dataclass(frozen=True)
class Tendon:
    """A length that carries a force.

    It is a weighted sum of joint positions, ``L = L0 + c1 q_1 + c2 q_2 + ...``, or the length of a
    path through space, or both together.

    The force ``f`` along the tendon acts on the joints as ``∂L/∂q f``. Spring, damper and friction
    are part of ``passive_force``; limits act in simulations; actuators may drive it.

    Attributes:
        name: unique name, among the tendons.
        joints: numbers of the joints, each of one variable; they may follow others.
        coefficients: ``c``, the change of the length with each joint's position.
        offset: ``L0``, the length where all positions are zero, without the path.
        lower: smallest length.
        upper: largest length.
        stiffness: of the spring, force per length.
        damping: force against the rate of the length.
        friction: largest force of dry friction.
        rest: lengths between which the spring is slack; equal for an ordinary spring.
        path: names of frames or bodies that it runs through, one after the other; a ``Wrap``
            between two of them, a ``Pulley`` between two parts.
    """

    name: str
    joints: tuple[int, ...] = ()
    coefficients: tuple[float, ...] = ()
    offset: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    stiffness: Any = 0.0
    damping: Any = 0.0
    friction: Any = 0.0
    rest: tuple[float, float] = (0.0, 0.0)
    path: tuple[str | Wrap | Pulley, ...] = ()

    def __post_init__(self):
        what = f"of tendon {self.name!r}"
        object.__setattr__(self, "joints", tuple(self.joints))
        object.__setattr__(self, "path", _path(self.path, what))
        for name in ("coefficients", "rest"):
            values = as_floats(getattr(self, name), f"{name} {what}")
            values = values * 2 if name == "rest" and len(values) == 1 else values
            object.__setattr__(self, name, values)

    @property
    def is_limited(self) -> bool:
        """Whether the tendon's length has a bound."""
        return math.isfinite(self.lower) or math.isfinite(self.upper)

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames and bodies on the path, those of side sites and wraps included."""
        found: dict = {}
        for x in self.path:
            of_shape = (x.frame, x.side) if isinstance(x, Wrap) else ()
            names = (x,) if isinstance(x, str) else of_shape
            found |= dict.fromkeys(filter(None, names))
        return tuple(found)

    def has(self, *names: str) -> bool:
        """Whether the tendon has some of these: stiffness, damping, friction."""
        return any(_is_some(getattr(self, name)) for name in names)

    def rename(self, name: Callable[[str], str]) -> "Tendon":
        """Copy of the tendon with the function ``name`` applied to its frames' names."""

        def of(x):
            if is_wrap(x):
                return replace(x, frame=name(x.frame), side=x.side and name(x.side))
            return name(x) if isinstance(x, str) else x

        return replace(self, path=tuple(map(of, self.path)))

    def with_held(self, positions: Mapping[int, Any]) -> "Tendon":
        """Tendon over the remaining joints when some are fixed at given positions."""
        terms = list(zip(self.joints, self.coefficients, strict=True))
        offset = self.offset + sum(float(c * positions[i]) for i, c in terms if i in positions)
        left = [(i, c) for i, c in terms if i not in positions]
        joints, coefficients = zip(*left, strict=True) if left else ((), ())
        return replace(self, joints=joints, coefficients=coefficients, offset=offset)

    def moves_with(self, model: Any) -> tuple[int, ...]:
        """Numbers of the joints that can change the tendon's length, ascending."""
        found = {*self.joints}
        for first, wrap, last in spans(self):
            ends = (first, last) if wrap is None else (first, wrap.frame, last)
            ways = [{*model.support[model.frame(name).body]} for name in ends]
            found |= set.union(*ways) - set.intersection(*ways)
        return tuple(sorted(i for i in found if model.joint[i].nv))


def spans(tendon: Tendon) -> list[tuple]:
    """Spans of a tendon's path: first frame, last frame, and the wrap between or None."""
    return [span[:3] for span in spans_with_divisors(tendon)]


def spans_with_divisors(tendon: Tendon) -> list[tuple]:
    """Spans of a tendon's path with the pulley divisor of each."""
    found, divisor, first, wrap = [], 1.0, None, None
    for x in tendon.path:
        if isinstance(x, Pulley):
            divisor, first, wrap = x.divisor, None, None
        elif is_wrap(x):
            wrap = x
        else:
            if first is not None:
                found.append((first, wrap, x, divisor))
            first, wrap = x, None
    return found


def is_wrap(x: Any) -> bool:
    """Whether an element of a tendon's path is a wrap."""
    return isinstance(x, Wrap)


def _path(given, what):
    """Path of a tendon, after a check that it is a list of names, wraps and pulleys."""
    if isinstance(given, str) or not isinstance(given, (list, tuple)):
        raise ModelError(
            f"path {what} must list names of frames, Wrap and Pulley, such as "
            f"('shoulder', Wrap('drum', 'cylinder', 0.02), 'hand'), got {given!r}"
        )
    for x in given:
        if not isinstance(x, (str, Wrap, Pulley)):
            raise ModelError(
                f"path {what} holds a {type(x).__name__}; it must list names of frames, Wrap and "
                f"Pulley"
            )
    return tuple(given)


def _is_some(x):
    """Whether a coefficient is not the plain number zero."""
    return not isinstance(x, (int, float)) or x != 0
