"""Parameters and results of the public surface without an annotation: ``make check`` wants none.

The public surface is what the reference documents: ``kt``'s own names, those of its public
submodules, and the public methods of their classes.

    python .ci/annotations.py [module prefix ...]
"""

import inspect
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

from builder.reference import find, names_by_page


def public_functions():
    """Every public function and method once, by where it is defined."""
    found = {}
    for names in names_by_page().values():
        for name in names:
            thing = find(name)
            if inspect.isclass(thing):
                for key, member in vars(thing).items():
                    function = _function(member)
                    if function is not None and (key == "__init__" or not key.startswith("_")):
                        _add(found, function)
            elif inspect.isfunction(thing):
                _add(found, inspect.unwrap(thing))
    return found


def _function(member):
    if isinstance(member, property):
        return member.fget
    member = getattr(member, "__func__", None) or getattr(member, "func", None) or member
    return inspect.unwrap(member) if inspect.isfunction(member) else None


def _add(found, function):
    code = getattr(function, "__code__", None)
    written = code is not None and not code.co_filename.startswith("<")  # not by dataclasses
    if written and function.__module__.startswith("kinetree"):
        found[f"{function.__module__}.{function.__qualname__}"] = function


def missing(function):
    """Names of parameters without an annotation, and ``return``."""
    signature = inspect.signature(function)
    names = [
        n
        for n, p in signature.parameters.items()
        if p.annotation is p.empty and n not in ("self", "cls") and not n.startswith("_")
    ]
    if signature.return_annotation is signature.empty and function.__name__ != "__init__":
        names.append("return")
    return names


def main(prefixes) -> int:
    """Print the gaps; 1 if there are any."""
    functions = public_functions()
    gaps = {k: missing(f) for k, f in functions.items()}
    gaps = {k: v for k, v in gaps.items() if v and (not prefixes or k.startswith(tuple(prefixes)))}
    for where, names in sorted(gaps.items()):
        print(f"{where}: {', '.join(names)}")
    print(f"{len(functions)} public functions and methods, {len(gaps)} not fully annotated")
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
