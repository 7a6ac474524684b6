"""Repairs of XML that the parsers of robot programs read and the standard forbids.

Robot files are written by hand and read by small parsers (tinyxml2 in ROS, Gazebo and MuJoCo),
which ignore declarations and document types and are content with two hyphens in a comment. What
is replaced keeps its lines, so that places in messages stay right.
"""

import codecs
import re

_DECLARATION = re.compile(rb"\s*<\?xml\b([^>]*?)\?>")
_VERSION = re.compile(rb"version\s*=\s*[\"']1\.[0-9][\"']")
_ENCODING = re.compile(rb"encoding\s*=\s*[\"']([^\"']*)[\"']")
_PLAIN_DOCTYPE = re.compile(rb"<!DOCTYPE\s+[\w:.-]+\s*>")
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w+;)")
_HEAD = 4096


def repair_xml(source: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    """XML text repaired so that parsers accept it, and (what, why) of each change.

    Texts of two or four bytes a character, and what is not XML, are left as they are.
    """
    start = source[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip()
    if not start.startswith(b"<") or b"\0" in start:
        return source, []
    source = source.removeprefix(codecs.BOM_UTF8)
    notes: list[tuple[str, str]] = []
    for repair in (_without_declaration, _without_doctype, _without_hyphens, _with_ampersands):
        source, note = repair(source)
        notes += [note] if note else []
    return source, notes


def _blank(text):
    """Text with all characters but line breaks replaced by blanks."""
    return re.sub(rb"[^\n]", b" ", text)


def _without_declaration(source):
    """XML source without a faulty declaration, and a notice."""
    found = _DECLARATION.match(source)
    if found is None:
        return source, None
    declared, fault = _ENCODING.search(found[1]), ""
    encoding = b"utf-8" if declared is None else declared[1]
    codec = _codec(encoding)
    if codec is None:
        fault = f"the encoding {encoding.decode('latin-1')!r} is not known: read as UTF-8"
    elif not _VERSION.search(found[1]):
        fault = "it has no version of XML that exists: read as 1.0"
    elif not source.startswith(b"<"):
        fault = "something stands before it"
    if not fault:
        return source, None
    plain = b""
    if codec not in (None, "utf-8"):  # without it the bytes would mean other letters
        plain = b'<?xml version="1.0" encoding="' + encoding + b'"?>'
    return plain + _blank(found[0]) + source[found.end() :], ("<?xml?>", fault)


def _codec(name):
    """Python name of an encoding, or None."""
    try:
        return codecs.lookup(name.decode("ascii")).name
    except (LookupError, UnicodeDecodeError, ValueError):
        return None


def _without_doctype(source):
    """XML source without an empty document type; others stay and are rejected."""
    found = _PLAIN_DOCTYPE.search(source, 0, _HEAD)
    if found is None:
        return source, None
    why = "a document type says nothing here"
    return source[: found.start()] + _blank(found[0]) + source[found.end() :], ("<!DOCTYPE>", why)


def _without_hyphens(source):
    """XML source with double hyphens in comments replaced, and a notice."""
    parts, done, at = [], 0, source.find(b"<!--")
    while at >= 0:
        end = source.find(b"-->", at + 4)
        if end < 0:
            break
        inside = source[at + 4 : end]
        if b"--" in inside or inside.endswith(b"-"):
            parts += [source[done : at + 4], inside.replace(b"-", b" ")]
            done = end
        at = source.find(b"<!--", end)
    if not parts:
        return source, None
    note = ("a comment", "two hyphens stand in it, which XML forbids")
    return b"".join([*parts, source[done:]]), note


def _with_ampersands(source):
    """XML source with bare ampersands escaped, and a notice."""
    changed = _BARE_AMPERSAND.sub(b"&amp;", source)
    return changed, (("'&'", "read as itself; XML wants &amp;") if changed != source else None)
