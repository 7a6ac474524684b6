"""Public names of the source, and who cites which equation or figure of the literature."""

import ast
import inspect
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "kinetree"

TEXTS = {"RBDA": "RBDA", "Lynch & Park": "Lynch & Park", "Spencer": "Spencer", "thesis": "Spencer"}
"""Names of texts as comments write them, to those of the page."""
_NAMED = re.compile("|".join(TEXTS))
_CITED = re.compile(
    r"(?P<fig>Fig(?:s|ures?|)\.? )(?P<figure>\d+\.\d+)"
    r"|\((?P<first>\d+\.\d+)\)(?:[-–]\((?P<last>\d+\.\d+)\))?"
)


# --- public names --------------------------------------------------------------------------------


@cache
def public_names() -> dict[str, str]:
    """From ``"algorithms.rnea.inverse_dynamics"`` to the public name that it is, or serves."""
    import kinetree as kt
    from kinetree.quantities import FUNCTIONS

    found: dict[str, str] = {}
    for space, module in (("", kt), *_namespaces(kt)):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found.setdefault(place_of(thing), f"kt.{space}.{name}" if space else f"kt.{name}")
    for name, function in FUNCTIONS.items():
        defined = getattr(function, "definition", None)  # those that call others have none
        for algorithm in () if defined is None else defined.algorithms:
            text = inspect.unwrap(algorithm)
            if inspect.isfunction(text):
                found.setdefault(place_of(text), f"kt.{name}")
    return found


def _namespaces(kt):
    named = [(name, getattr(kt, name)) for name in dir(kt)]
    spaces = [(n, m) for n, m in named if inspect.ismodule(m) and hasattr(m, "__all__")]
    return [*spaces, ("loops.charts", kt.loops.charts)]


def place_of(thing) -> str:
    """``"spatial.vector.crm"``."""
    return f"{thing.__module__}.{thing.__qualname__}".removeprefix("kinetree.")


def public_name(place) -> str | None:
    """Public name of a function, class or method; None if it has none."""
    known = public_names()
    if place in known:
        return known[place]
    owner, _, method = place.rpartition(".")
    return f"{known[owner]}.{method}" if owner in known and method[:1] != "_" else None


@cache
def file_of(place) -> str | None:
    """The file of a place, relative to the root."""
    parts = place.split(".")
    for k in range(len(parts), 0, -1):
        for end in (".py", "/__init__.py"):
            path = SOURCE.joinpath(*parts[:k])
            path = Path(f"{path}{end}")
            if path.exists():
                return path.relative_to(ROOT).as_posix()
    return None


# --- citations -----------------------------------------------------------------------------------


@cache
def citations() -> tuple[dict, dict]:
    """From ``("RBDA", "(6.17)")`` to the places of the source, and to the files of tests."""
    code, tests = defaultdict(set), defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for item, inside in _cited_in(path):
            code[item].add(f"{module}.{inside}" if inside else module)
    for places in code.values():  # a file whose functions are listed need not be
        places -= {p for p in places if any(other.startswith(f"{p}.") for other in places)}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for item, _ in _cited_in(path):
            tests[item].add(path.relative_to(ROOT).as_posix())
    return code, tests


def cites(place, passage) -> bool:
    """Whether the text of a function, or of its file, names a passage: ``"RBDA Table 5.1"``."""
    path, short = file_of(place), passage.split(" ", 1)[-1]
    return path is not None and bool(re.search(rf"{re.escape(short)}(?![.\d])", _words(path)))


@cache
def _words(path):
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def _cited_in(path):
    """((text, number), enclosing definition) of every citation in comments and docstrings."""
    source = path.read_text(encoding="utf-8")
    if not _CITED.search(source) or not _NAMED.search(source):
        return
    tree = ast.parse(source)
    spans = [
        (node.lineno, node.end_lineno, name)
        for node, name in _definitions(tree)
        if not any(part.startswith("_") for part in name.split("."))
    ]
    usual = next(iter(_NAMED.findall(ast.get_docstring(tree) or "")), None)
    for line, text in _remarks(source):
        named = usual
        for match in re.finditer(f"{_NAMED.pattern}|{_CITED.pattern}", text):
            if match[0] in TEXTS:
                named = match[0]
            elif named is not None:
                here = line + text[: match.start()].count("\n")
                inside = [name for a, b, name in spans if a <= here <= (b or a)]
                for number in _numbers(match):
                    yield (TEXTS[named], number), inside[-1] if inside else ""


def _numbers(match):
    """Numbers that a citation names: ranges such as (9.14)–(9.16) in full."""
    if match["figure"]:
        return [f"Fig. {match['figure']}"]
    first, last = match["first"], match["last"] or match["first"]
    chapter, a = first.split(".")
    b = last.split(".")[1] if last.split(".")[0] == chapter else a
    if int(chapter) == 0:  # a number that is no equation's
        return []
    return [f"({chapter}.{n})" for n in range(int(a), max(int(a), int(b)) + 1)]


def _definitions(tree, prefix=""):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node, prefix + node.name
            yield from _definitions(node, f"{prefix}{node.name}.")


def _remarks(source):
    """Line and text of every comment block and docstring."""
    block, start, last = [], 0, -2
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                if block:
                    yield start, "\n".join(block)
                block, start = [], token.start[0]
            block.append(token.string)
            last = token.start[0]
        elif token.type == tokenize.STRING and token.string.lstrip("rRbBfF")[:3] == '"""':
            yield token.start[0], token.string
    if block:
        yield start, "\n".join(block)
