"""Draw functions of the source at random, for somebody who sees only their names and first lines.

    python .ci/draw.py              twenty, by a new seed, which is printed
    python .ci/draw.py --seed 7     the same ones again
    python .ci/draw.py --count 50

Name and first line of the docstring, or the signature where there is none, should say what a
function does, without its file. A method without a docstring has that of the base class of kinetree
whose method it overrides. Functions in functions and special methods are not drawn.
"""

import argparse
import ast
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


Owner = ast.Module | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(node: Owner, path="") -> Iterator[tuple[str, Function, Owner]]:
    """Qualified names and definitions of functions and methods, and what they are in."""
    for part in node.body:
        if isinstance(part, ast.ClassDef):
            yield from functions(part, f"{path}{part.name}.")
        elif isinstance(part, Function) and part.name[:2] != "__":
            yield path + part.name, part, node


def classes_in(trees) -> dict[str, list[ast.ClassDef]]:
    """Classes of all files by name."""
    found = defaultdict(list)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(node)
    return found


def docstring_of(function: Function, owner: Owner, classes) -> str | None:
    """Docstring of a function, or that of the method of a base class that it overrides."""
    found = ast.get_docstring(function)
    bases = owner.bases if found is None and isinstance(owner, ast.ClassDef) else ()
    for base in bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        for other in classes.get(name, ()):
            same = [x for x in other.body if getattr(x, "name", "") == function.name]
            for method in same if other is not owner else ():
                found = found or docstring_of(method, other, classes)
            if not same and other is not owner:
                found = found or docstring_of(function, other, classes)
    return found


def first_line(function: Function, owner: Owner, classes) -> str:
    """First line of the docstring, or the parameters where there is none."""
    docstring = docstring_of(function, owner, classes)
    return docstring.split("\n")[0] if docstring else f"({ast.unparse(function.args)})"


def main(arguments=()) -> int:
    """Print the seed and what is drawn by it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args(arguments)
    paths = sorted((ROOT / "src").rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    classes = classes_in(trees.values())
    every = [
        (name, first_line(function, owner, classes), path.relative_to(ROOT).as_posix(), function)
        for path, tree in trees.items()
        for name, function, owner in functions(tree)
    ]
    print(f"seed {options.seed}: {options.count} of {len(every):,d} functions")
    for name, line, file, function in random.Random(options.seed).sample(every, options.count):
        print(f"{name:40s} {line}\n{'':40s} [{file}:{function.lineno}]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
