"""Size and structure of the source, and the bounds that it has to keep.

    python .ci/house.py                 totals; exits with 1 when a bound is broken
    python .ci/house.py --by-package    files and lines of each package, too

Imports are counted wherever they stand, in functions as well; those for type checkers alone are
not. A *string import* is a call such as ``import_module("kinetree.viewer")``, which no linter sees;
the ``__init__`` of a package may load its own modules that way.
"""

import argparse
import ast
import inspect
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "kinetree"
sys.path[:0] = [str(SOURCE.parent), str(Path(__file__).parent)]

TOP = 39  # packages and modules at the top, at most; files and lines have no bound: nobody packs
IMPORTERS = ("import_module", "__import__")


def sizes() -> dict[str, tuple[int, int]]:
    """Files and lines of each package or module at the top, by name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        files, lines = found.get(name, (0, 0))
        found[name] = files + 1, lines + len(path.read_text(encoding="utf-8").splitlines())
    return found


def edges() -> set[tuple[str, str]]:
    """Pairs of packages or modules at the top, of which the first imports the second."""
    graph = grimp.build_graph("kinetree", exclude_type_checking_imports=True, cache_dir=None)
    found = set()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            found.add((_top(module), _top(other)))
    return {(a, b) for a, b in found if a and b and a != b}


def _top(module):
    """Which part of kinetree a module belongs to; empty for the ``__init__`` above them all."""
    return module.split(".")[1] if "." in module else ""


def cycles(pairs) -> list[list[str]]:
    """Groups of names that import each other, directly or by way of others."""
    reach = {a: {b for x, b in pairs if x == a} for a in {n for pair in pairs for n in pair}}
    for via in reach:
        for a in reach:
            if via in reach[a]:
                reach[a] |= reach[via]
    groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in reach if a in reach[a]}
    return sorted(sorted(group) for group in groups)


def string_imports() -> list[str]:
    """Places that import a module of kinetree by a string."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        package = ".".join(path.relative_to(SOURCE.parent).parent.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            text = _beginning(node.args[0]) if name in IMPORTERS else ""
            own = path.name == "__init__.py" and text.startswith(f"{package}.")
            if text.split(".")[0] == "kinetree" and not own:
                found.append(f"{path.relative_to(ROOT).as_posix()}:{node.lineno}")
    return found


def _beginning(argument):
    """The text with which a string or f-string begins."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    value = getattr(argument, "value", "")
    return value if isinstance(value, str) else ""


def annotated() -> tuple[int, int, int]:
    """Annotated and all parameters of public functions and methods; functions with gaps."""
    import annotations

    functions = annotations.public_functions().values()
    gaps = [annotations.missing(f) for f in functions]
    total = sum(
        n not in ("self", "cls") and not n.startswith("_")
        for f in functions
        for n in inspect.signature(f).parameters
    )
    unannotated = sum(name != "return" for names in gaps for name in names)
    return total - unannotated, total, sum(map(bool, gaps))


def main(arguments) -> int:
    """Print the counts; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by-package", action="store_true", help="files and lines of each package")
    options = parser.parse_args(arguments)

    import kinetree as kt

    by_name, pairs, strings = sizes(), edges(), string_imports()
    files, lines = (sum(s[k] for s in by_name.values()) for k in (0, 1))
    top = [name for name in by_name if not name.startswith("__")]
    loops = cycles(pairs)
    given, parameters, gaps = annotated()
    if options.by_package:
        for name, (count, length) in sorted(by_name.items(), key=lambda x: -x[1][1]):
            print(f"{name:20s} {count:5d} files {length:7,d} lines")
    rows = [
        ("files", files, None),
        ("lines", lines, None),
        ("packages and modules at the top", len(top), TOP),
        ("import edges between them", len(pairs), None),
        ("cycles between them", len(loops), 0),
        ("string imports", len(strings), 0),
        ("names in dir(kt)", sum(not n.startswith("_") for n in dir(kt)), None),
        ("names in kt.__all__", len(kt.__all__), None),
        ("public parameters", parameters, None),
        ("  of them annotated", given, None),
        ("public functions with a gap in annotations", gaps, 0),
    ]
    for what, count, most in rows:
        bound = "" if most is None else f"  at most {most:,d}"
        print(f"{what:45s} {count:7,d}{bound}{'  BROKEN' if bound and count > most else ''}")
    for group in loops:
        print("cycle:", ", ".join(group))
    for place in strings:
        print("string import:", place)
    return int(any(most is not None and count > most for _, count, most in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
