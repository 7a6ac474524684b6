"""Notices of a loader: everything that it did not use, with file and line."""

from dataclasses import dataclass
from typing import Any

from kinetree.errors import LoadError

LIMIT_BODIES = 3_000
"""Bodies that a file may have; reading one takes about a millisecond."""


@dataclass(frozen=True)
class Notice:
    """Something in a file that the model does not represent.

    Attributes:
        file: the file, as it was named by the caller.
        line: where in it, if known.
        what: the thing, such as ``<gazebo reference='wheel'>``.
        why: why it was left out.
    """

    file: str
    line: int | None
    what: str
    why: str

    def __str__(self):
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}: {self.why}"


class Report:
    """Collects notices, and which elements and attributes of an XML file were read.

    Args:
        path: the file, as messages shall name it.
    """

    def __init__(self, path: str = "<text>"):
        self.path = str(path)
        self.notices: list[Notice] = []
        self._used: dict = {}  # the names of the used attributes, by element

    def ignored(
        self, where: Any, what: str | None = None, why: str = "kinetree does not use it"
    ) -> None:
        """Add a notice of something that the model does not represent.

        Args:
            where: an XML element, which is then settled with all it contains; a line number; or
                None.
            what: what it is; the tag of the element by default.
            why: why it is left out.
        """
        if where is None or isinstance(where, int):
            line, what = where, what or "file"
        else:
            line, what = where.sourceline, what or label(where)
            self.use_all(where)
        self.notices.append(Notice(self.path, line, what, why))

    def use(self, element: Any, *attributes: str) -> None:
        """Mark an element, and some of its attributes, as read."""
        self._used.setdefault(element, set()).update(attributes)

    def use_all(self, element: Any) -> None:
        """Mark an element with all attributes and everything inside as settled."""
        for inner in element.iter("*"):
            self.use(inner, *inner.attrib)

    def unused(self, root: Any) -> None:
        """Note every element and attribute below ``root`` that was not read."""
        waiting = [root]
        while waiting:
            element = waiting.pop()
            if element not in self._used:
                self.ignored(element)
                continue
            for name in element.attrib:
                if name not in self._used[element]:
                    what = f"attribute {name!r} of {label(element)}"
                    self.ignored(element.sourceline, what)
            waiting.extend(reversed(element.findall("*")))
        self.notices.sort(key=lambda notice: notice.line or 0)

    def check_bodies(self, count: int) -> None:
        """Raise LoadError for a file with more bodies than are read."""
        if count > LIMIT_BODIES:
            raise LoadError(f"{self.path}: {count} bodies; at most {LIMIT_BODIES} are read")

    def error(self, where: Any, message: str) -> LoadError:
        """The error that says file, line and element; ``where`` is as in ``ignored``."""
        if where is None:
            return LoadError(f"{self.path}: {message}")
        if isinstance(where, int):
            return LoadError(f"{self.path}:{where}: {message}")
        return LoadError(f"{self.path}:{where.sourceline}: {label(where)}: {message}")


def tag_of(element) -> str:
    """The tag as it is written, ``joint`` or ``prefix:joint``; a default namespace is left out."""
    local = element.tag.rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else local


def label(element) -> str:
    """An element for messages, such as ``<joint name='elbow'>``."""
    for name in ("name", "reference", "link", "joint"):
        if name in element.attrib:
            return f"<{tag_of(element)} {name}={short(element.get(name))}>"
    return f"<{tag_of(element)}>"


def short(text: str) -> str:
    """Text in quotes, cut if it is long, so that no message is."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
