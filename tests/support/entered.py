"""Whether a test really calls what its ``covers`` marker names.

Entered must be some of the code of what the marker names with ``by``: of a function or one that it
wraps, of an override of a method, of any function of a class or module. Compiled functions of a
model are entered by their doors; so the text of an algorithm counts as called, too, when a door
behind which it stands is entered. Other texts are executed when a kernel is traced. A test that
calls kernels and traces none, because all were found in memory or on disk, cannot be judged; in a
fresh clone, as in CI, nothing is on disk. Nor can one whose file keeps results for several tests.

``Watch`` notes which code is entered with the profiler of the standard library, and only in the
first case of each test function and in fixtures, which takes a few per cent of the time of tests.
"""

import cProfile
import functools
import importlib
import inspect
import os
import sys
import types

from kinetree import arguments

_CACHE = type(functools.cache(len))


@functools.cache
def entrances(thing) -> frozenset:
    """Code objects of which one must be entered; empty for data, which nothing enters."""
    if isinstance(thing, str):
        thing = _named(thing)
    if isinstance(thing, types.ModuleType):
        return _of_all(vars(thing).values(), lambda f: f.__module__ == thing.__name__)
    if isinstance(thing, type):
        classes = [c for c in (*thing.__mro__, *_subclasses(thing)) if c is not object]
        return _of_all(v for c in classes for v in vars(c).values())
    found = set()
    for function in _wrapped(thing):
        found |= _nested(function.__code__)
        found |= _of_all(_doors().get(function, ()))
        found |= _overrides(function)
    if not found and callable(thing):
        return entrances(type(thing))
    return frozenset(found)


def is_called(things, entered) -> bool:
    """Whether one of the things was called, given all code that was entered."""
    from kinetree.codegen.program import trace

    codes = [entrances(thing) for thing in things]
    if not all(codes) or any(code & entered for code in codes):
        return True
    return trace.__code__ not in entered and any(map(_calls_a_kernel, entered))


def keeps_results(module) -> bool:
    """Whether a test file has functions whose results are kept from one test to the next."""
    return any(isinstance(value, _CACHE) for value in vars(module).values())


def _calls_a_kernel(code):
    """Whether this is what calls compiled code: a door, whose text is generated, or a kernel."""
    file = code.co_filename.replace(os.sep, "/")
    return file.startswith("<kinetree.") or "/kinetree/codegen/runtime/" in file


def _nested(code):
    """Code with that of the functions that are defined in it, which run only when it did."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return {code}.union(*map(_nested, inner))


def _named(name):
    """What a string such as ``integration.explicit.HEUN`` names."""
    module, _, rest = name.rpartition(".")
    return getattr(importlib.import_module(f"kinetree.{module}"), rest)


def _of_all(values, condition=lambda f: True):
    functions = [f for value in values for f in _wrapped(value)]
    return frozenset(f.__code__ for f in functions if condition(f))


_LAYERS = {
    types.FunctionType: "__wrapped__", types.MethodType: "__func__", staticmethod: "__func__",
    classmethod: "__func__", property: "fget", functools.partial: "func",
    functools.cached_property: "func", _CACHE: "__wrapped__",
}  # fmt: skip


_SHARED = {c for c in arguments.with_guard.__code__.co_consts if isinstance(c, types.CodeType)}
"""Code around every public function, which tells of none of them that it was called."""


def _wrapped(value):
    """A function and those that it wraps, out of methods, properties and caches."""
    found = []
    while type(value) in _LAYERS:
        if isinstance(value, types.FunctionType) and value.__code__ not in _SHARED:
            found.append(value)
        value = getattr(value, _LAYERS[type(value)], None)
    return found


def _overrides(function):
    """Code of the methods of subclasses that stand for a method."""
    name, _, method = function.__qualname__.rpartition(".")
    owner = getattr(inspect.getmodule(function), name, None) if name else None
    if not isinstance(owner, type):
        return set()
    values = [vars(c)[method] for c in _subclasses(owner) if method in vars(c)]
    return set(_of_all(values))


def _subclasses(cls):
    return {c for d in cls.__subclasses__() for c in (d, *_subclasses(d))}


def _doors():
    """Functions of a model by the texts that are compiled behind them."""
    from kinetree.model.define import DEFINITIONS

    return _doors_of(len(DEFINITIONS))


@functools.cache
def _doors_of(count):
    from kinetree.model.define import DEFINITIONS

    found = {}
    modules = [vars(m) for name, m in [*sys.modules.items()] if name.startswith("kinetree.")]
    for name, definition in DEFINITIONS.items():
        doors = [m[name] for m in modules if getattr(m.get(name), "definition", 0) is definition]
        for text in (t for algorithm in definition.algorithms for t in _wrapped(algorithm)):
            found.setdefault(text, []).extend(doors)
    return found


class Watch:
    """Notes the code that is entered within ``with``, in this thread."""

    active: "list[Watch]" = []  # there is one profiler at a time: who comes later has it

    def __enter__(self):
        if self.active:
            self.active[-1].profile.disable()
        self.profile = cProfile.Profile(builtins=False, subcalls=False)
        self.active.append(self)
        self.profile.enable()
        return self

    def __exit__(self, *exception):
        self.profile.disable()
        self.active.pop()
        self.entered = frozenset(entry.code for entry in self.profile.getstats())
        if self.active:
            self.active[-1].profile.enable()
