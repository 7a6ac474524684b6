"""Untrusted XML: bounded in size and depth, no entities, no network, with line numbers.

``parse`` gives the root element. ``Node`` reads attributes and children of an element, remembers
in a ``Report`` what was read, and raises ``LoadError`` with file and line for what is wrong.
"""

import math
import re
from collections.abc import Callable
from typing import TypeVar

from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import LoadError
from kinetree.loaders.report import Effect, Report, short, tag_of
from kinetree.loaders.xml_repairs import repair_xml

Found = TypeVar("Found")

LIMIT_BYTES = 32 * 2**20
LIMIT_ELEMENTS = 100_000  # with their attributes
LIMIT_ATTRIBUTES = 500  # of one element; looking one up takes as many steps as there are
_PIECE = 2**16
_UNDEFINED_PREFIX = etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE
_LARGEST = 1e50  # so that products of several numbers of a file stay finite
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.I | re.A)


def parse(source: bytes, path: str):
    """Root element of an XML file, whose elements have line numbers.

    Document types are rejected, and with them every entity. Nesting is limited to 256, the number
    of elements and the size of the file by ``LIMIT_ELEMENTS`` and ``LIMIT_BYTES``.
    """
    if len(source) > LIMIT_BYTES:
        raise LoadError(
            f"{path}: the file has {len(source)} bytes; kinetree reads at most {LIMIT_BYTES}"
        )
    source, _ = repair_xml(source)
    try:
        return _parse(source, path)
    except etree.XMLSyntaxError as error:
        if error.code != _UNDEFINED_PREFIX:
            raise _refusal(path, error.lineno, error.msg) from None
    return _parse_despite_prefixes(source, path)


def root_tag(source: bytes) -> str | None:
    """Tag of the root element without parsing the rest; None if this is no XML."""
    parser, (source, _) = _parser(), repair_xml(source)
    try:
        for start in range(0, len(source), _PIECE):
            parser.feed(source[start : start + _PIECE])
            for _, element in parser.read_events():
                return tag_of(element)
    except etree.XMLSyntaxError:
        return next((tag_of(element) for _, element in parser.read_events()), None)
    return None


def _parser(**options):
    """XML parser without entities, network access and external definitions."""
    return etree.XMLPullParser(
        events=("start",),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        **options,
    )


def _parse(source, path, parser=None):
    """Root element of an XML source, parsed in chunks."""
    parser, count = parser or _parser(), 0
    for start in range(0, len(source), _PIECE):
        parser.feed(source[start : start + _PIECE])
        for _, element in parser.read_events():
            if count == 0 and element.getroottree().docinfo.doctype:
                raise LoadError(
                    f"{path}:1: the file has a document type, <!DOCTYPE ...>, which can define "
                    f"entities and is rejected; remove it"
                )
            count += 1 + len(element.attrib)
            if len(element.attrib) > LIMIT_ATTRIBUTES:
                raise LoadError(
                    f"{path}:{element.sourceline}: <{tag_of(element)}> has {len(element.attrib)} "
                    f"attributes; at most {LIMIT_ATTRIBUTES} are read"
                )
        if count > LIMIT_ELEMENTS:
            raise LoadError(f"{path}: more than {LIMIT_ELEMENTS} XML elements and attributes")
    return parser.close()


def _parse_despite_prefixes(source, path):
    """Root element of an XML source with undeclared prefixes, which are tolerated."""
    parser = _parser(recover=True)
    root = _parse(source, path, parser)
    for entry in parser.feed_error_log:
        if entry.type != _UNDEFINED_PREFIX:
            raise _refusal(path, entry.line, entry.message)
    return root


def _refusal(path, line, message):
    """LoadError for text that is not well-formed XML."""
    place = f"{path}:{line}" if line else path
    return LoadError(f"{place}: this is not well-formed XML: {' '.join((message or '').split())}")


def numbers_in(text: str, count: int | None = None, *, finite: bool = True) -> tuple[float, ...]:
    """Numbers in a text, separated by blanks; ValueError says what is wrong.

    ``finite=False`` is for limits, which may be infinite.
    """
    words = text.split()
    if count is not None and len(words) != count:
        expected = "a number" if count == 1 else f"{count} numbers"
        hint = "; separate them by spaces, without commas" if "," in text else ""
        raise ValueError(f"must be {expected}, got {short(text)}{hint}")
    for word in words:
        if not _NUMBER.fullmatch(word):
            raise ValueError(f"must hold numbers, got {short(word)}")
    values = tuple(float(word) for word in words)
    for word, value in zip(words, values, strict=True):
        if math.isnan(value) or (finite and math.isinf(value)):
            raise ValueError(f"must be finite, got {short(word)}")
        if finite and abs(value) > _LARGEST:
            raise ValueError(f"must be below {_LARGEST:g} in size, got {short(word)}")
    return values


class Node:
    """An element, read through a report: what is not read will be among its notices.

    Args:
        element: from ``parse``.
        report: has the name of the file, and keeps track.
    """

    def __init__(self, element, report: Report):
        self.element, self.report = element, report
        report.use(element)

    @property
    def tag(self) -> str:
        """Tag as written, ``joint`` or ``prefix:joint``, without a default namespace."""
        return tag_of(self.element)

    @property
    def line(self) -> int:
        """Line in the file."""
        return self.element.sourceline

    def error(self, message: str) -> LoadError:
        """LoadError with file, line and tag."""
        return self.report.error(self.element, message)

    def ignore(self, why: str, what: str | None = None, effect: Effect | None = None):
        """Add a notice that the model does not represent this element."""
        self.report.ignore(self.element, what, why, effect)

    def note(self, what: str, why: str, effect: Effect | None = None):
        """Add a notice that something about this element is not represented."""
        effect = effect or self.report.effect_of(self.element)
        self.report.ignore(self.line, what, why, effect)

    def tolerate(self, read: "Callable[[], Found]", instead: "Found") -> "Found":
        """Result of ``read``; on an error in this element ``instead``, with a notice.

        For what does not change motion: a robot is not refused for its pictures or controllers.
        """
        try:
            return read()
        except LoadError as error:
            if not error.reason:
                raise
            self.ignore(f"it is left out: {error.reason}")
            return instead

    # --- attributes ----------------------------------------------------------------------------

    def get(self, name: str, default: str | None = None) -> str | None:
        """Value of an attribute as text."""
        self.report.use(self.element, name)
        return self.element.get(name, default)

    def need(self, name: str) -> str:
        """Text of a required, nonempty attribute."""
        value = self.get(name)
        if not value:
            raise self.error(f"attribute {name!r} is {'missing' if value is None else 'empty'}")
        return value

    def numbers(self, name: str, count: int | None, default=None, *, finite: bool = True):
        """Numbers of an attribute as a tuple; LoadError if it is missing without default."""
        text = self.get(name)
        if text is None:
            if default is None:
                raise self.error(f"attribute {name!r} is missing")
            return default
        return self._numbers(text, count, f"attribute {name!r}", finite)

    def number(self, name: str, default: float | None = None, *, finite: bool = True) -> float:
        """Number of an attribute."""
        return self.numbers(name, 1, None if default is None else (default,), finite=finite)[0]

    # --- text ----------------------------------------------------------------------------------

    def text(self) -> str:
        """Text inside the element, stripped."""
        return (self.element.text or "").strip()

    def text_numbers(self, count: int | None, *, finite: bool = True) -> tuple[float, ...]:
        """Numbers in the text inside the element."""
        return self._numbers(self.text(), count, "the content", finite)

    def _numbers(self, text, count, what, finite):
        """Numbers in a text; LoadError with element and line."""
        try:
            return numbers_in(text, count, finite=finite)
        except ValueError as error:
            raise self.error(f"{what} {error}") from None

    # --- children ------------------------------------------------------------------------------

    def all(self, *tags: str) -> list["Node"]:
        """Children with one of these tags, in order; all children without tags."""
        found = self.element.findall("*")
        self.report.look_for(self.element, tags)
        return [Node(e, self.report) for e in found if not tags or tag_of(e) in tags]

    def one(self, tag: str) -> "Node | None":
        """Child with this tag, or None; for two an error, or the first by the report."""
        found = self.all(tag)
        for node in found[1:]:
            if not self.report.first_counts:
                raise node.error(f"{self.tag} has a second <{tag}>; only one is allowed")
            node.ignore(f"a second <{tag}> of <{self.tag}>: the first counts, as in other programs")
        return found[0] if found else None

    def need_one(self, tag: str) -> "Node":
        """Child with this tag, which must exist."""
        found = self.one(tag)
        if found is None:
            raise self.error(f"has no <{tag}>")
        return found
