"""Rigid-body dynamics that reads like the book.

    import kinetree as kt

    m = kt.samples.panda()
    tau = kt.inverse_dynamics(m, q, qd, qdd)

All array functions broadcast over leading axes; see ``docs/notation.md`` for conventions. What
``kt`` has, and where it comes from, is listed in ``__init__.pyi``; it is loaded on first use, the
functions of ``kinetree.quantities`` all at once.
"""

import ast
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from warnings import warn

from kinetree import errors

__version__ = "0.2.0"


def _module_of() -> dict[str, str]:
    """The module that every name of the stub comes from."""
    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.name != "*"
    }


_LISTED = _module_of()
_MOVED = {
    **{name: "errors" for name in errors.__all__ if name[0].isupper() and name not in _LISTED},
    **dict.fromkeys(
        (
            "AbstractJoint",
            "CustomJoint",
            "Euler",
            "Exponential",
            "RackAndPinion",
            "Reversed",
            "SphereInCylinder",
            "check_joint",
        ),
        "joints",
    ),
    "MechanismGraph": "model",
}
"""Names that ``kt`` used to have, and the module that has them."""


def __getattr__(name):
    if name == "__all__":
        return [*_functions(), *(each for each in _LISTED if not _is_module(each))]
    if name in _LISTED:
        where = _LISTED[name]
        if _is_module(name):
            return import_module(f"{where}.{name}")
        from kinetree.arguments import guard

        globals()[name] = found = guard(getattr(import_module(where), name))
        return found
    if name in _MOVED:
        place = f"kinetree.{_MOVED[name]}.{name}"
        warn(f"kinetree.{name} is {place} now", DeprecationWarning, stacklevel=2)
        return getattr(import_module(f"kinetree.{_MOVED[name]}"), name)
    # Tools look for their own names, such as __wrapped__; "from kinetree import files" looks here
    # before it imports the file, while the functions may be half loaded.
    if name.startswith("__") or Path(__file__).with_name(f"{name}.py").exists():
        raise AttributeError(f"module 'kinetree' has no attribute {name!r}")
    if name in _functions():
        return globals()[name]
    from kinetree.spelling import FUNCTIONS, name_here, suggesting

    here = name_here(name, FUNCTIONS)
    if here is not None:
        raise AttributeError(f"module 'kinetree' has no attribute {name!r}: it is kinetree.{here}")
    return suggesting("kinetree", __dir__())(name)


def __dir__():
    return sorted({*_LISTED, *_functions(), "__version__"})


@cache
def _functions() -> list[str]:
    """Names of the functions of a model and arrays, which are names of ``kt`` from then on."""
    quantities = import_module("kinetree.quantities")
    globals().update({name: getattr(quantities, name) for name in quantities.__all__})
    return quantities.__all__


@cache
def _is_module(name):
    """Whether a listed name is a module: they are in ``dir(kt)``, and not in ``__all__``."""
    place = Path(__file__).parent.joinpath(*_LISTED[name].split(".")[1:], name)
    return place.is_dir() or place.with_suffix(".py").exists()


class _Namespaces:
    """Import of ``kinetree.geometry`` and others by the names that they have in ``kt``."""

    def find_spec(self, name, path=None, target=None):
        """Spec of a listed module that is not a file of this folder; None for all else."""
        del path, target
        package, _, last = name.rpartition(".")
        if package == __name__ and _LISTED.get(last, package) != package and _is_module(last):
            return ModuleSpec(name, self)  # pyright: ignore[reportArgumentType]
        return None

    def create_module(self, spec):
        """None: an empty module, which is replaced."""

    def exec_module(self, module):
        """Put the listed module into its place."""
        last = module.__name__.rpartition(".")[2]
        sys.modules[module.__name__] = import_module(f"{_LISTED[last]}.{last}")


sys.meta_path.append(_Namespaces())  # pyright: ignore[reportArgumentType]

if "gymnasium" in sys.modules:
    import_module("kinetree.gymnasium_tasks")  # which registers the tasks
