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
    """The root element of an XML file; elements have a ``sourceline``.

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
    """The tag of the root element without looking further, or None where this is not XML."""
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
    """Parser of XML without entities, networks and external definitions."""
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
    """Parse a file piece by piece; the root element."""
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
    """Prefixes without a declaration are common in robot files and do no harm."""
    parser = _parser(recover=True)
    root = _parse(source, path, parser)
    for entry in parser.feed_error_log:
        if entry.type != _UNDEFINED_PREFIX:
            raise _refusal(path, entry.line, entry.message)
    return root


def _refusal(path, line, message):
    """Error for text that is not well-formed XML."""
    place = f"{path}:{line}" if line else path
    return LoadError(f"{place}: this is not well-formed XML: {' '.join((message or '').split())}")


def numbers_in(text: str, count: int | None = None, *, finite: bool = True) -> tuple[float, ...]:
    """The numbers in a text, separated by blanks; ValueError says what is wrong with them.

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
        """``joint``, or ``prefix:joint``; a default namespace is left out."""
        return tag_of(self.element)

    @property
    def line(self) -> int:
        """Line in the file."""
        return self.element.sourceline

    def error(self, message: str) -> LoadError:
        """The error to raise, with file, line and tag before the message."""
        return self.report.error(self.element, message)

    def ignore(self, why: str, what: str | None = None, effect: Effect | None = None):
        """Note that the model does not represent this element, whatever is in it."""
        self.report.ignore(self.element, what, why, effect)

    def note(self, what: str, why: str, effect: Effect | None = None):
        """Note that something about this element is not represented."""
        effect = effect or self.report.effect_of(self.element)
        self.report.ignore(self.line, what, why, effect)

    def tolerate(self, read: "Callable[[], Found]", instead: "Found") -> "Found":
        """Result of ``read``; where it finds an error in this element, ``instead`` and a notice.

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
        """An attribute as text."""
        self.report.use(self.element, name)
        return self.element.get(name, default)

    def need(self, name: str) -> str:
        """An attribute as text that must be there and not be empty."""
        value = self.get(name)
        if not value:
            raise self.error(f"attribute {name!r} is {'missing' if value is None else 'empty'}")
        return value

    def numbers(self, name: str, count: int | None, default=None, *, finite: bool = True):
        """An attribute as a tuple of numbers; an error if it is missing and has no default."""
        text = self.get(name)
        if text is None:
            if default is None:
                raise self.error(f"attribute {name!r} is missing")
            return default
        return self._numbers(text, count, f"attribute {name!r}", finite)

    def number(self, name: str, default: float | None = None, *, finite: bool = True) -> float:
        """An attribute as one number."""
        return self.numbers(name, 1, None if default is None else (default,), finite=finite)[0]

    # --- text ----------------------------------------------------------------------------------

    def text(self) -> str:
        """The text inside, without blanks around it."""
        return (self.element.text or "").strip()

    def text_numbers(self, count: int | None, *, finite: bool = True) -> tuple[float, ...]:
        """The text inside as numbers."""
        return self._numbers(self.text(), count, "the content", finite)

    def _numbers(self, text, count, what, finite):
        """Numbers in a text; an error that names the element and line."""
        try:
            return numbers_in(text, count, finite=finite)
        except ValueError as error:
            raise self.error(f"{what} {error}") from None

    # --- children ------------------------------------------------------------------------------

    def all(self, *tags: str) -> list["Node"]:
        """The children with one of these tags, in order; every child without tags."""
        found = self.element.findall("*")
        self.report.look_for(self.element, tags)
        return [Node(e, self.report) for e in found if not tags or tag_of(e) in tags]

    def one(self, tag: str) -> "Node | None":
        """The child with this tag, if any; two are an error, or the first counts, by the report."""
        found = self.all(tag)
        for node in found[1:]:
            if not self.report.first_counts:
                raise node.error(f"{self.tag} has a second <{tag}>; only one is allowed")
            node.ignore(f"a second <{tag}> of <{self.tag}>: the first counts, as in other programs")
        return found[0] if found else None

    def need_one(self, tag: str) -> "Node":
        """The child with this tag, which must be there."""
        found = self.one(tag)
        if found is None:
            raise self.error(f"has no <{tag}>")
        return found
