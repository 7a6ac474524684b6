"""The function that users call for a quantity, written out for its signature."""

import functools
import linecache
from types import FunctionType
from typing import Any

from kinetree.spelling import no_argument


def door_of(defined, function, otherwise):
    """Public function of a quantity, with generated source that calls the kernel directly.

    Its source is written out for its signature, as that of dataclasses is: every call of every
    function passes here, and a general one would cost more than many a kernel. The first call
    writes it, so that an import need not compile those that are never called.
    """
    space: dict[str, Any] = {
        "__name__": function.__module__, "_otherwise": otherwise, "_read": defined.read,
        "_no_argument": lambda name: no_argument(defined.name, name, defined.signature.parameters),
    }  # fmt: skip

    def write():
        source, file = _door_text(defined), f"<{function.__module__}.{defined.name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), space)
        door.__code__ = space[defined.name].__code__
        return door

    space["_written"] = write
    door: Any = functools.wraps(function)(FunctionType(_first_call.__code__, space))
    door.__defaults__, door.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return door


def _first_call(*args, **named):
    """Generate the public function of a quantity at its first call, and call it."""
    return _written()(*args, **named)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def _door_text(defined):
    """Generated source of the public function of a quantity."""
    parameters = defined.signature.parameters.values()
    model = next(iter(parameters)).name
    key = ", ".join([repr(defined.name), *defined.options])
    read = {n: f"_read[{n!r}]({model}, {n})" if n in defined.read else n for n in defined.known}
    arrays = ", ".join(read[n] for n in defined.required)
    left_out = [*defined.optional, *defined.selects]
    lines = [f"def {defined.name}({_parameter_list(parameters)}, **_unknown):"]
    lines += ["    if _unknown:", "        raise TypeError(_no_argument(next(iter(_unknown))))"]

    def branch(condition, key, arrays):
        lines.extend(
            [
                f"    if {condition or True}:",
                "        try:",
                f"            kernel = {model}.kernels[{key}]",
                "        except (AttributeError, KeyError, TypeError):",
                "            pass",
                "        else:",
                f"            return kernel.call({arrays})",
            ]
        )

    branch(" and ".join(f"{n} is None" for n in left_out), key, arrays)
    for name in defined.optional:  # given alone
        others = [f"{n} is None" for n in left_out if n != name]
        given = " and ".join([f"{name} is not None", *others])
        branch(given, f"{key}, ({name!r},)", f"{arrays}, {read[name]}")
    passed = [f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in parameters]
    lines.append(f"    return _otherwise({', '.join(passed)})")
    return "\n".join(lines) + "\n"


def _parameter_list(parameters):
    """Parameters of a signature as text, without defaults."""
    names = [p.name for p in parameters]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return ", ".join(names[: len(names) - len(keywords)] + (["*", *keywords] if keywords else []))
