"""Notices of a loader: everything that it did not use, with file and line, the gravest first."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kinetree.errors import LoadError
from kinetree.spelling import did_you_mean

LIMIT_BODIES = 10_000
"""Bodies that a file may have; reading one takes about a millisecond."""

Effect = Literal["motion", "contact", "control", "setting", "picture"]
"""What a notice bears on: how the robot moves, what it can touch, how it is driven and measured,
settings of a simulator, or pictures alone."""
EFFECTS: tuple[Effect, ...] = get_args(Effect)
MOVING: tuple[Effect, ...] = ("motion", "contact")
"""Effects of which Python is warned; of the others a line of the log has the number."""
_SHOWN, _SHOWN_MOTION = 10, 40
_USUAL = {
    "gravity": ("1", "true"),
    **dict.fromkeys(("kinematic", "self_collide", "enable_wind"), ("0", "false")),
}  # elements of SDF, also met in URDF, that say what holds without them


@dataclass(frozen=True)
class Notice:
    """Something in a file that the model does not represent.

    Attributes:
        file: the file, as it was named by the caller.
        line: where in it, if known.
        what: the thing, such as ``<gazebo reference='wheel'>``.
        why: why it was left out.
        effect: what is different without it.
    """

    file: str
    line: int | None
    what: str
    why: str
    effect: Effect = "motion"

    def __str__(self):
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}: {self.why}"


class Notices(tuple[Notice, ...]):
    """Notices about a file, the gravest first; printed, a line for each kind."""

    __slots__ = ()

    def __str__(self):
        return "\n".join(in_lines(self)) or "nothing was ignored, and nothing looks wrong"


class Report:
    """Collects notices, and which elements and attributes of an XML file were read.

    Args:
        path: the file, as named in messages.
        effects: what is different without an element, by its tag. What is inside an element has
            the same effect; it may differ inside the root, and where the effect is on motion.
            With an ``@``, what is different without an attribute of that name.
    """

    def __init__(self, path: str = "<text>", effects: Mapping[str, Effect] | None = None):
        self.path = str(path)
        self.effects: Mapping[str, Effect] = effects or {}
        self.notices: list[Notice] = []
        self.settings: dict[str, Any] = {}  # of a simulation, such as the time step
        self.first_counts = False  # of elements that may be there once; two are an error otherwise
        self._used: dict = {}  # the names of the used attributes, by element
        self._wanted: dict = {}  # tags of the children that were looked for, by element

    def ignore(
        self,
        where: Any,
        what: str | None = None,
        why: str = "kinetree does not use it",
        effect: Effect | None = None,
    ) -> None:
        """Add a notice about something that the model does not represent.

        Args:
            where: an XML element, which is then settled with all it contains; a line number; or
                None.
            what: what it is; the tag of the element by default.
            why: why it is left out.
            effect: what is different without it; by default that of the element, or the motion.
        """
        if where is None or isinstance(where, int):
            line, what = where, what or "file"
        else:
            line, what = where.sourceline, what or label(where)
            effect = effect or self.effect_of(where)
            self.use_all(where)
        self.notices.append(Notice(self.path, line, what, why, effect or "motion"))

    def effect_of(self, element: Any) -> Effect:
        """Effect of leaving out an element: ``"motion"``, ``"picture"``, or another ``Effect``."""
        root, *inner = [tag_of(e) for e in (element, *element.iterancestors())][::-1]
        known: list[Effect] = [self.effects[tag] for tag in inner if tag in self.effects]
        if "picture" in known:  # the colour of a collision shape, too
            return "picture"
        for effect in known:
            if effect != "motion":
                return effect
        return "motion" if known else self.effects.get(root, "motion")

    def in_order(self) -> Notices:
        """Notices sorted by effect, motion first, then by place in the file."""

        def key(notice):
            return EFFECTS.index(notice.effect), notice.file != self.path, notice.line or 0

        return Notices(sorted(self.notices, key=key))

    def use(self, element: Any, *attributes: str) -> None:
        """Mark attributes of an XML element as read."""
        self._used.setdefault(element, set()).update(attributes)

    def look_for(self, element: Any, tags: Iterable[str]) -> None:
        """Record which children of an XML element are supported, for suggestions."""
        self._wanted.setdefault(element, set()).update(tags)

    def use_all(self, element: Any) -> None:
        """Mark an XML element with everything inside as read."""
        for inner in element.iter("*"):
            self.use(inner, *inner.attrib)

    def note_unused(self, root: Any) -> None:
        """Add notices for all elements and attributes below ``root`` that were not read."""
        waiting = [root]
        while waiting:
            element = waiting.pop()
            if element not in self._used:
                if (element.text or "").strip() not in _USUAL.get(tag_of(element), ()):
                    parent = element.getparent()
                    wanted = self._wanted.get(parent, ()) if parent is not None else ()
                    self.ignore(element, why=_reason_unused(tag_of(element), wanted))
                continue
            for name in element.attrib:
                if name not in self._used[element]:
                    what = f"attribute {name!r} of {label(element)}"
                    effect = self.effects.get(f"@{name}") or self.effect_of(element)
                    why = _reason_unused(name, self._used[element] - {*element.attrib})
                    self.ignore(element.sourceline, what, why, effect)
            waiting.extend(reversed(element.findall("*")))

    def check_bodies(self, count: int) -> None:
        """Raise LoadError if a file has more bodies than supported."""
        if count > LIMIT_BODIES:
            raise LoadError(f"{self.path}: {count} bodies; at most {LIMIT_BODIES} are read")

    def error(self, where: Any, message: str) -> LoadError:
        """LoadError with file, line and element; ``where`` as in ``ignore``."""
        if where is None:
            return LoadError(f"{self.path}: {message}")
        if isinstance(where, int):
            return LoadError(f"{self.path}:{where}: {message}")
        error = LoadError(f"{self.path}:{where.sourceline}: {label(where)}: {message}")
        error.reason = f"{label(where)}: {message}"
        return error


def _reason_unused(name, wanted):
    """Reason that a name is unsupported, with a suggestion of a similar one."""
    hint = did_you_mean(name, sorted(wanted), "", cutoff=0.75)
    return f"kinetree does not use it{hint and '; '}{hint}"


def in_lines(notices: Iterable[Notice]) -> list[str]:
    """Notices as text, a line per kind with its first place; one for pictures.

    What changes motion is never left out for its number, within reason.
    """
    kinds: dict = {}
    for notice in notices:
        key = (notice.effect, *kind_of(notice.what, notice.why))
        kinds.setdefault(key, []).append(notice)
    pictures = [alike for key, alike in kinds.items() if key[0] == "picture"]
    others = [alike for key, alike in kinds.items() if key[0] != "picture"]
    most = max(_SHOWN, min(_SHOWN_MOTION, sum(key[0] == "motion" for key in kinds)))
    lines = [_line(alike) for alike in others[:most]]
    if len(others) > most:
        lines.append(f"and {len(others) - most} other kinds (model.report lists them)")
    if len(pictures) == 1:
        lines.append(_line(pictures[0]))
    elif pictures:
        lines.append(pictures_in_one([notice for alike in pictures for notice in alike]))
    return lines


def kind_of(what: str, why: str) -> tuple[str, str]:
    """Kind of a notice: its text without names and numbers."""
    # names of things, not those of attributes, and numbers of things without a name
    named = r"'[^']*'(?=((?:, '[^']*')* of <)?)| \(\d+ times\)|(?<= )\d+\b"
    what, why = (re.sub(named, lambda m: m[0] if m[1] else "", text) for text in (what, why))
    return what, re.sub(r"[\d.]+", "", why)


def _line(alike):
    """Line of text for notices of one kind."""
    more = f" (and {len(alike) - 1} more of this kind)" if len(alike) > 1 else ""
    return f"{alike[0]}{more}"


def pictures_in_one(notices: list[Notice]) -> str:
    """Line of text for all notices about pictures."""
    kinds = list(dict.fromkeys(notice.what.partition(" (")[0] for notice in notices))
    some = ", ".join(kinds[:_SHOWN]) + (", ..." if len(kinds) > _SHOWN else "")
    return f"for pictures only, {len(notices)} notices: {some}"


def tag_of(element) -> str:
    """XML tag as written, ``joint`` or ``prefix:joint``, without a default namespace."""
    local = element.tag.rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else local


def label(element) -> str:
    """XML element as text for messages, such as ``<joint name='elbow'>``."""
    for name in ("name", "reference", "link", "joint"):
        if name in element.attrib:
            return f"<{tag_of(element)} {name}={short(element.get(name))}>"
    return f"<{tag_of(element)}>"


def short(text: str) -> str:
    """Text in quotes, shortened if long, for messages."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
