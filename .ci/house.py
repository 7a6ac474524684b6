"""Size and structure of the source, and the bounds that it has to keep.

    python .ci/house.py                 totals; exits with 1 when a bound is broken
    python .ci/house.py --by-package    files and lines of each package, too
    python .ci/house.py --shrink        lower the sizes in house_known.txt to those of today

A function has 8 parameters and a body of 60 lines at most, and ``# fmt: skip`` is for tables of
data: literals that are assigned to a name. Functions and files that broke this when the bounds came
are in ``house_known.txt`` with their sizes: these may shrink, and no others may come.

Imports are counted wherever they stand, in functions as well; those for type checkers alone are
not. A *string import* is a call such as ``import_module("kinetree.viewer")``, which no linter sees;
the ``__init__`` of a package may load its own modules that way, and ``from_textbook`` of
``spelling.py`` names of the textbook that packages below it have as public ones.
"""

import argparse
import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "kinetree"
sys.path[:0] = [str(SOURCE.parent), str(Path(__file__).parent)]

KNOWN = Path(__file__).with_name("house_known.txt")
MOST = {"parameters": 8, "lines": 60, "skips": 0}
WORST = 10  # of each, shown
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
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(x in text for x in IMPORTERS) else ():
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            called = _beginning(node.args[0]) if name in IMPORTERS else ""
            own = path.name == "__init__.py" and called.startswith(f"{package}.")
            own |= path.name == "spelling.py" and called.startswith("kinetree.textbook.")
            if called.split(".")[0] == "kinetree" and not own:
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


# --- Functions and formatting that readers have to bear ------------------------------------------


def offenders() -> dict[str, dict[str, int]]:
    """Sizes beyond the bounds, by what is too large and where: a function, or a file."""
    found: dict[str, dict[str, int]] = {what: {} for what in MOST}
    for path in sorted(SOURCE.rglob("*.py")):
        where, text = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for name, node in functions_in(tree):
            for what, size in sizes_of(node).items():
                place = f"{where}:{name}"
                found[what][place] = max(size, found[what].get(place, 0))
        found["skips"][where] = skips_in(tree, text)
    return {
        what: {place: size for place, size in sizes.items() if size > MOST[what]}
        for what, sizes in found.items()
    }


def functions_in(tree, within="") -> list[tuple[str, ast.FunctionDef]]:
    """Functions and methods with their qualified names, also those in others."""
    found = []
    for node in statements_in(tree):
        name = f"{within}{getattr(node, 'name', '')}"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append((name, node))
        inner = f"{name}." if hasattr(node, "name") else within
        found += functions_in(node, inner)
    return found


def statements_in(node) -> Iterator[ast.AST]:
    """Statements directly in a statement, with handlers and cases; none is in an expression."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        parts = getattr(node, name, ())
        yield from parts if isinstance(parts, list) else ()


def all_statements(node) -> Iterator[ast.AST]:
    """The same, and those in these."""
    for part in statements_in(node):
        yield part
        yield from all_statements(part)


def sizes_of(function) -> dict[str, int]:
    """Parameters of a function but ``self`` and ``cls``, and lines of its body, docstring too."""
    a = function.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x]
    return {
        "parameters": sum(name not in ("self", "cls") for name in names),
        "lines": function.end_lineno - function.body[0].lineno + 1,
    }


def skips_in(tree, text) -> int:
    """How often ``# fmt: skip`` stands at something else than a table of data."""
    tables = {
        node.end_lineno
        for node in all_statements(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_table(node.value)
    }
    lines = enumerate(text.splitlines(), start=1)
    return sum("# fmt: skip" in line and k not in tables for k, line in lines)


def is_table(value) -> bool:
    """Whether an expression is a literal list, tuple, set, dictionary, or an array of one."""
    if isinstance(value, ast.Call):
        return bool(value.args) and is_table(value.args[0])
    return isinstance(value, (ast.List, ast.Tuple, ast.Set, ast.Dict))


def known() -> dict[str, dict[str, int]]:
    """Sizes that were there when the bounds came, as in ``offenders``."""
    found: dict[str, dict[str, int]] = {what: {} for what in MOST}
    for line in KNOWN.read_text(encoding="utf-8").splitlines() if KNOWN.exists() else ():
        if line and not line.startswith("#"):
            what, place, size = line.split()
            found[what][place] = int(size)
    return found


def grown(now, before) -> list[str]:
    """What is larger than it was, or new, as lines."""
    return [
        f"{what} of {place}: {size}, at most {before[what].get(place, MOST[what])}"
        for what, sizes in now.items()
        for place, size in sorted(sizes.items())
        if size > before[what].get(place, MOST[what])
    ]


def shrink(now, before) -> None:
    """Write the smaller of the sizes of today and those that are known."""
    lines = ["# Sizes beyond the bounds of house.py, which may shrink; see there."]
    for what, sizes in before.items():
        for place, size in sorted(sizes.items()):
            if place in now[what]:
                lines.append(f"{what} {place} {min(size, now[what][place])}")
    KNOWN.write_text("\n".join(lines) + "\n", encoding="utf-8")


def show_worst(now) -> None:
    """The largest of each kind."""
    for what, sizes in now.items():
        print(
            f"\n{what}: {len(sizes)} beyond {MOST[what]}, {sum(sizes.values()):,d} in all; worst:"
        )
        for place, size in sorted(sizes.items(), key=lambda x: -x[1])[:WORST]:
            print(f"  {size:5d}  {place}")


def main(arguments) -> int:
    """Print the counts; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by-package", action="store_true", help="files and lines of each package")
    parser.add_argument("--shrink", action="store_true", help="lower what is known to be too large")
    options = parser.parse_args(arguments)

    import kinetree as kt

    by_name, pairs, strings = sizes(), edges(), string_imports()
    files, lines = (sum(s[k] for s in by_name.values()) for k in (0, 1))
    top = [name for name in by_name if not name.startswith("__")]
    loops = cycles(pairs)
    given, parameters, gaps = annotated()
    too_large, before = offenders(), known()
    if options.shrink:
        shrink(too_large, before)
        before = known()
    worse = grown(too_large, before)
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
        ("functions of more than 8 parameters", len(too_large["parameters"]), None),
        ("functions of more than 60 lines", len(too_large["lines"]), None),
        ("# fmt: skip that is not at a table", sum(too_large["skips"].values()), None),
        ("  of these new, or larger than they were", len(worse), 0),
    ]
    for what, count, most in rows:
        bound = "" if most is None else f"  at most {most:,d}"
        print(f"{what:45s} {count:7,d}{bound}{'  BROKEN' if bound and count > most else ''}")
    show_worst(too_large)
    for line in worse:
        print("too large:", line)
    for group in loops:
        print("cycle:", ", ".join(group))
    for place in strings:
        print("string import:", place)
    return int(any(most is not None and count > most for _, count, most in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
