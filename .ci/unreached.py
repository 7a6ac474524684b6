"""Names that nothing in the source reaches: what only tests call, and what nobody calls.

    python .ci/unreached.py             lists them; exits with 1 when there is one not known
    python .ci/unreached.py --options   options of functions that no call gives, too (slower)

Definitions are functions, methods, classes, fields of records and constants. One is reached if its
name stands anywhere in code or in a string of ``src``, but in its own definition and in imports; in
``__all__`` or the stub of the package; or on a page, in an example or a benchmark. Comments and
docstrings do not count. Names are compared as they are written, whatever they belong to: so what is
listed is not reached, and a common name hides much. Files that no other file of the source imports
are listed, too, whatever pages say.

The textbook is for readers and tests. Methods of public classes are public. What stays is in
``unreached_known.txt``, with the reason.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "kinetree"
KNOWN = Path(__file__).with_name("unreached_known.txt")
PAGES = ("README.md", "CONTRIBUTING.md", "docs", "examples", "benchmarks")

_DOCSTRING = re.compile(r'^[ \t]*[rbf]?"""(?:[^"\\]|\\.|"(?!""))*"""[ \t]*$', re.M)
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$|  #.*$")
_IMPORT = re.compile(r"(?m)^[ \t]*from [\w.]+ import (?:\([^)]*\)|.*)$|^[ \t]*import .*$")
_FROM = re.compile(r"(?m)^[ \t]*from ([\w.]+) import (\([^)]*\)|.*)$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED = re.compile(
    r"(?m)^[ \t]*(?:async def|def|class) (\w+)|^[ \t]*(\w+)(?:: [^=\n]+)? = |^    (\w+): "
)
_BUILT = re.compile(r"\bf\"(\w*_)\{|\bf'(\w*_)\{|[\"'](\w*_)[\"'] \+")
PLAIN = {
    "cache", "cached_property", "classmethod", "contextmanager", "dataclass", "explains",
    "explains_itself", "explains_methods", "kernel", "lru_cache", "names_itself", "on_host",
    "procedure", "property", "record", "renamed", "staticmethod", "total_ordering", "wraps",
}  # fmt: skip
"""Decorators that do not register what they decorate."""


class Definition(NamedTuple):
    """A definition in the source."""

    place: str
    """File and line."""
    name: str
    """Qualified within the file."""
    kind: str
    """``"function"``, ``"class"``, ``"field"``, ``"constant"``, ``"option"`` or ``"file"``."""


def code_of(text: str) -> str:
    """Text of a file without docstrings, comments and imports."""
    return _IMPORT.sub("", _COMMENT.sub("", _DOCSTRING.sub("", text)))


def uses(codes: Iterable[str]) -> tuple[Counter, list[set[str]]]:
    """How often every name stands in code but where it is defined, and the definitions of each."""
    found, defined = Counter(), []
    for code in codes:
        found.update(_WORD.findall(code))
        names = [name for names in _DEFINED.findall(code) for name in names if name]
        found.subtract(names)
        defined.append(set(names))
    return found, defined


def shown(names: Iterable[str]) -> set[str]:
    """Which of some names stand on pages, in examples and in benchmarks."""
    left, found = set(names), set()
    for place in PAGES:
        path = ROOT / place
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.suffix in (".md", ".py", ".toml") and file.name != "book.md":
                text = file.read_text(encoding="utf-8")
                found |= {n for n in left if n in text and re.search(rf"\b{n}\b", text)}
                left -= found
    return found


def public_names(texts: Iterable[str]) -> set[str]:
    """Names in ``__all__`` of any module, and in the stub of the package."""
    found = set(_WORD.findall((SOURCE / "__init__.pyi").read_text(encoding="utf-8")))
    for text in texts:
        for listed in re.findall(r"(?ms)^__all__ = \[(.*?)\]", text):
            found.update(_WORD.findall(listed))
    return found


def definitions(path: Path, text: str, public: set[str]) -> Iterator[Definition]:
    """Definitions of a file that nothing registers and that are not public."""
    yield from _within(ast.parse(text), path.relative_to(ROOT).as_posix(), "", public)


def _within(node, file, owner, public):
    in_class = isinstance(node, ast.ClassDef)
    for part in getattr(node, "body", []):
        place = f"{file}:{getattr(part, 'lineno', 0)}"
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            kind = "class" if isinstance(part, ast.ClassDef) else "function"
            if all(_name_of(d) in PLAIN for d in part.decorator_list):
                yield Definition(place, owner + part.name, kind)
            if not (isinstance(part, ast.ClassDef) and part.name in public):
                yield from _within(part, file, f"{owner}{part.name}.", public)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield Definition(place, owner + part.target.id, "field" if in_class else "constant")
        elif isinstance(part, ast.Assign) and not isinstance(node, ast.FunctionDef):
            for target in part.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield Definition(place, owner + name.id, "constant")
        elif isinstance(part, (ast.If, ast.Try, ast.With)):
            yield from _within(part, file, owner, public)


def _name_of(decorator):
    """Last name of a decorator, called or not."""
    while isinstance(decorator, ast.Call):
        decorator = decorator.func
    return getattr(decorator, "attr", None) or getattr(decorator, "id", "")


def unreached() -> list[Definition]:
    """Definitions that nothing reaches, in the order of the files; those of the textbook aside."""
    texts = {p: p.read_text(encoding="utf-8") for p in sorted(SOURCE.rglob("*.py"))}
    codes = {path: code_of(text) for path, text in texts.items()}
    public = public_names(texts.values())
    used, defined = uses(codes.values())
    built = tuple(
        p for code in codes.values() for found in _BUILT.findall(code) for p in found if p
    )
    unused = {n for names in defined for n in names if used[n] <= 0 and n not in public}
    unused = {n for n in unused if not n.startswith(("__", *built))}
    unused -= shown(unused)
    found = []
    for (path, text), names in zip(texts.items(), defined, strict=True):
        if names & unused and path.parent.name != "textbook":
            parts = definitions(path, text, public)
            found += [d for d in parts if d.name.split(".")[-1] in unused]
    return found


def unimported() -> list[Definition]:
    """Files that neither another file nor the stub of the package imports; the textbook aside."""
    files = {p: p.read_text(encoding="utf-8") for p in sorted(SOURCE.rglob("*.py"))}
    stub = SOURCE / "__init__.pyi"
    imported: set[str] = set()
    for path, text in (*files.items(), (stub, stub.read_text(encoding="utf-8"))):
        imported |= _imports(text) - {_module_of(path)}
    found = []
    for path in files:
        apart = path.stem.startswith("__") or path.parent.name == "textbook"
        if not apart and _module_of(path) not in imported:
            place = f"{path.relative_to(ROOT).as_posix()}:1"
            found.append(Definition(place, path.stem, "file"))
    return found


def _module_of(path):
    """Name of the module in a file."""
    return ".".join([SOURCE.name, *path.relative_to(SOURCE).with_suffix("").parts])


def _imports(text):
    """Names of modules, and of what may be one, that a file imports or has as a string."""
    found = set(re.findall(rf"[\"\']({SOURCE.name}\.[\w.]+)", text))
    found |= set(re.findall(r"(?m)^[ \t]*import ([\w.]+)", text))
    for module, names in _FROM.findall(text):
        found |= {module, *(f"{module}.{name}" for name in _WORD.findall(names))}
    return found


# --- Options that no call gives ------------------------------------------------------------------


def options() -> list[Definition]:
    """Options of functions that are not public, with a default, that no call in ``src`` gives.

    Only functions whose name is defined once, and that are only ever called.
    """
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted(SOURCE.rglob("*.py"))}
    public = public_names(p.read_text(encoding="utf-8") for p in trees)
    functions, calls, mentioned = {}, {}, Counter()
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append((path, node))
            elif isinstance(node, ast.Call):
                name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                calls.setdefault(name, []).append(node)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                mentioned[getattr(node, "attr", None) or node.id] += 1
    found = []
    for name, known in functions.items():
        called = calls.get(name, [])
        if len(known) > 1 or name in public or mentioned[name] != len(called):
            continue
        ((path, node),) = known
        a = node.args
        most = max((len(c.args) for c in called), default=0)
        given = {k.arg for c in called for k in c.keywords}
        if (
            not called
            or None in given
            or any(isinstance(x, ast.Starred) for c in called for x in c.args)
        ):
            continue
        positional = [x.arg for x in (*a.posonlyargs, *a.args) if x.arg not in ("self", "cls")]
        first = len(positional) - len(a.defaults)
        with_default = [n for k, n in enumerate(positional) if k >= max(first, most)]
        with_default += [x.arg for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d]
        place = f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        found += [
            Definition(place, f"{name}({n}=)", "option") for n in with_default if n not in given
        ]
    on_pages = shown(d.name.partition("(")[0] for d in found)
    return [d for d in found if d.name.partition("(")[0] not in on_pages]


def known() -> set[str]:
    """What stays: files with names, without line numbers."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines() if KNOWN.exists() else []
    return {line.split("  ")[0] for line in lines if line and not line.startswith("#")}


def key_of(definition: Definition) -> str:
    """A definition as ``unreached_known.txt`` names it."""
    return f"{definition.place.rpartition(':')[0].removeprefix('src/kinetree/')}:{definition.name}"


def main(arguments=()) -> int:
    """List what is not reached; 1 where something is new, or what is known has gone."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--options", action="store_true", help="options that no call gives, too")
    parser.add_argument("--all", action="store_true", help="what is known, too")
    chosen = parser.parse_args(arguments)
    found, stay = [*unreached(), *unimported()], known()
    new = [d for d in found if key_of(d) not in stay]
    gone = sorted(stay - {key_of(d) for d in found})
    for d in found if chosen.all else new:
        print(f"{d.place}: {d.kind} {d.name}: nothing in the source reaches it; remove it")
    for key in gone:
        print(f"{KNOWN.name}: {key} is reached, or no longer there; remove the line")
    for d in options() if chosen.options else ():
        print(f"{d.place}: {d.name}: no call gives it")
    print(f"{len(new)} names that nothing reaches, {len(stay)} that stay")
    return int(bool(new or gone))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
