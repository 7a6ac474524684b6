"""Where in a TOML file something stands.

``tomllib`` says where a syntax error is and forgets the places of the rest. This finds the lines
of table headers and of keys at the start of a line; whatever stands inside an inline table or an
array is where its key is. Only messages depend on it.
"""

import re

__all__ = ["key_lines"]

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_PATH = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_PATH})[ \t]*\]")
_ASSIGNMENT = re.compile(rf"[ \t]*({_PATH})[ \t]*=")
# What ends or opens a value on a line: strings, comments and brackets.
_TOKEN = re.compile(
    r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#.*|[\[\]{}]',
)


def key_lines(text: str) -> dict[tuple, int]:
    """Line numbers by path, such as ``("body", 0, "joint")``; arrays of tables count from 0."""
    lines: dict[tuple, int] = {}
    counts: dict[tuple, int] = {}
    table: tuple = ()
    depth, quote = 0, None
    for number, line in enumerate(text.split("\n"), start=1):
        start = 0
        if quote is None and depth == 0:
            if header := _HEADER.match(line):
                table = _absolute(_parts(header[2]), counts)
                if header[1] == "[[":
                    lines.setdefault(table, number)
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                lines.setdefault(table, number)
                continue
            if assignment := _ASSIGNMENT.match(line):
                path = (*table, *_parts(assignment[1]))
                lines.setdefault(path, number)
                start = assignment.end()
        depth, quote = _after(line, start, depth, quote)
    return lines


def _parts(path):
    parts = re.findall(_KEY, path)
    return tuple(p[1:-1] if p[0] in "\"'" else p for p in parts)


def _absolute(parts, counts):
    """A header names the last table of every array on the way to it."""
    path: tuple = ()
    for k, part in enumerate(parts):
        path = (*path, part)
        if k < len(parts) - 1 and path in counts:
            path = (*path, counts[path])
    return path


def _after(line, start, depth, quote):
    """Bracket depth and open long string at the end of a line."""
    while True:
        if quote is not None:
            end = line.find(quote, start)
            if end < 0:
                return depth, quote
            start, quote = end + 3, None
        token = _TOKEN.search(line, start)
        if token is None:
            return depth, quote
        start = token.end()
        if token[0] in ('"""', "'''"):
            quote = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth = max(0, depth - 1)
