"""A TOML file, read with limits: its data, and the lines of its keys."""

import re
from functools import cached_property
from typing import Any

from kinetree.errors import LoadError
from kinetree.loaders.toml.expressions import ExpressionError, evaluate

try:
    import tomllib  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


_LARGEST = 2 * 2**20  # bytes, some four thousand bodies
_MOST_TABLES = 20_000
_MOST_DOTS = 100  # in one key or string
_MOST_STEPS = 1_000_000  # tomllib takes the square of the length of a dotted key
_KEY_ENDS = re.compile(r"[,={}\[\]#\n]|\Z")


class Document:
    """A decoded file, the lines of its keys and the values of its parameters."""

    def __init__(self, source: bytes | str, path):
        self.path = str(path)
        text = decode(source, self.path)
        self._text = text
        self._refuse_slow(text)
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise self._syntax_error(error, text) from None
        except RecursionError:
            raise LoadError(f"{self.path}:1: arrays or tables are nested too deeply") from None
        except ValueError as error:  # an impossible date, or an integer of 10,000 digits
            raise LoadError(f"{self.path}:1: not TOML: {error}") from None
        self.parameters: dict[str, float] = {}

    @cached_property
    def lines(self) -> dict[tuple, int]:
        """Line numbers of tables and keys by path, for messages."""
        return key_lines(self._text)

    def line(self, path) -> int:
        """Line number of ``path``, or of its closest known part."""
        path = tuple(path)
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path, message) -> LoadError:
        """LoadError that begins with file and line."""
        return LoadError(f"{self.path}:{self.line(path)}: {message}")

    def evaluate(self, path, text, what):
        """Value of an expression at ``path``; errors name its line."""
        try:
            return evaluate(text, self.parameters)
        except ExpressionError as error:
            raise self.error(path, f"{what}: {error}") from None

    def _refuse_slow(self, text):
        """Raise LoadError for texts that are slow to parse: many tables, long keys."""
        tables = text.count("\n[") + 1
        if tables > _MOST_TABLES:
            raise LoadError(f"{self.path}:1: {tables} tables; at most {_MOST_TABLES} are read")
        steps, start = 0, 0
        for end in _KEY_ENDS.finditer(text):
            dots, start = text.count(".", start, end.start()), end.end()
            if dots > _MOST_DOTS:
                line = text.count("\n", 0, end.start()) + 1
                raise LoadError(
                    f"{self.path}:{line}: a key or string with {dots} dots; at most {_MOST_DOTS} "
                    f"are read"
                )
            steps += dots**2 if end[0] in "=]" else 0
        if steps > _MOST_STEPS:
            raise LoadError(f"{self.path}:1: very many dotted keys; write tables in their place")

    def _syntax_error(self, error, text):
        """LoadError for text that is not valid TOML, with line and column."""
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        what = str(error).split(" (at ")[0]
        column = f", column {found[2]}" if found else ""
        return LoadError(f"{self.path}:{line}: not TOML: {what}{column}")


def decode(source: bytes | str, path: str) -> str:
    """Text of a UTF-8 file from its bytes; LoadError if it is too long."""
    if len(source) > _LARGEST:
        raise LoadError(f"{path}:1: the file has {len(source)} bytes; at most {_LARGEST} are read")
    if isinstance(source, str):
        return source.replace("\r\n", "\n")
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise LoadError(
            f"{path}:{line}: byte {error.start} is not UTF-8 text; save the file as UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise LoadError(f"{path}:{line}: the file holds a zero byte; it is not text")
    return text.replace("\r\n", "\n")


# --- Lines of keys -------------------------------------------------------------------------------
# ``tomllib`` says where a syntax error is and forgets the places of the rest. This finds the lines
# of table headers and of keys at the start of a line; whatever stands inside an inline table or an
# array is where its key is. Only messages depend on it.

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_PATH = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_PATH})[ \t]*\]")
_ASSIGNMENT = re.compile(rf"[ \t]*({_PATH})[ \t]*=")
# What ends or opens a value on a line: strings, comments and brackets.
_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#.*|[\[\]{}]')


def key_lines(text: str) -> dict[tuple, int]:
    """Line numbers by path, such as ``("body", 0, "joint")``."""
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
    """Keys of a dotted TOML path, without quotes."""
    parts = re.findall(_KEY, path)
    return tuple(p[1:-1] if p[0] in "\"'" else p for p in parts)


def _absolute(parts, counts):
    """Path of a table header with indices into arrays of tables."""
    path: tuple = ()
    for k, part in enumerate(parts):
        path = (*path, part)
        if k < len(parts) - 1 and path in counts:
            path = (*path, counts[path])
    return path


def _after(line, start, depth, quote):
    """Bracket depth and open multi-line string at the end of a TOML line."""
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
