"""Draw functions of the source at random, for somebody who sees only their names and first lines.

    python .ci/draw.py              twenty, by a new seed, which is printed
    python .ci/draw.py --seed 7     the same ones again
    python .ci/draw.py --count 50

Name and first line of the docstring, or the signature where there is none, should say what a
function does, without its file. Functions in functions and special methods are not drawn.
"""

import argparse
import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def functions(node, owner="") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Qualified names and definitions of functions and methods."""
    for part in node.body:
        if isinstance(part, ast.ClassDef):
            yield from functions(part, f"{owner}{part.name}.")
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name[:2] != "__":
            yield owner + part.name, part


def first_line(function) -> str:
    """First line of the docstring, or the parameters where there is none."""
    docstring = ast.get_docstring(function)
    return docstring.split("\n")[0] if docstring else f"({ast.unparse(function.args)})"


def main(arguments=()) -> int:
    """Print the seed and what is drawn by it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args(arguments)
    every = [
        (name, first_line(function), path.relative_to(ROOT).as_posix(), function.lineno)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8")))
    ]
    print(f"seed {options.seed}: {options.count} of {len(every):,d} functions")
    for name, line, file, number in random.Random(options.seed).sample(every, options.count):
        print(f"{name:40s} {line}\n{'':40s} [{file}:{number}]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
