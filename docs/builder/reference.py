"""Pages of the API reference: every public name once, from its docstring.

A name belongs to the page of the module that defines it. A public module without a place in
``PAGES`` stops the build.
"""

from functools import reduce
from inspect import isclass, isfunction, ismodule

import kinetree as kt

PAGES = {
    "models": ("Models", ["model"], ["model", "edit", "shapes", "geometry", "samples"]),
    "joints": ("Joints", ["joints"], []),
    "kinematics": ("Kinematics", ["quantities.kinematics"], []),
    "dynamics": (
        "Dynamics",
        [
            "quantities.dynamics",
            "quantities.actuators",
            "quantities.reactions",
            "quantities.hybrid",
            "quantities.lagrangian",
            "quasi_velocities",
        ],
        [],
    ),
    "centroidal": ("Centre of mass and momentum", ["quantities.centroidal"], []),
    "task_space": (
        "Task space and Cartesian forces",
        ["quantities.task_space", "quantities.cartesian", "quantities.maximal"],
        [],
    ),
    "kernels": (
        "Kernels and derivatives",
        ["functional", "expr", "codegen", "symbolic"],
        ["symbolic"],
    ),
    "simulation": ("Simulation", ["simulation", "integration"], ["simulation"]),
    "loops": ("Closed loops", ["loops"], ["loops", "loops.charts", "loops.closed_forms"]),
    "worlds": ("Worlds", ["worlds"], ["worlds"]),
    "viewer": ("Viewer and plots", ["viewer"], ["viewer", "plot"]),
    "contact": ("Contact and impact", [], ["contact", "contact.complementarity"]),
    "special": ("Floating bases, gears, equivalence", [], ["floating", "gears", "equivalence"]),
    "control": ("Control", ["control"], ["control"]),
    "inverse_kinematics": ("Inverse kinematics", ["ik"], ["ik"]),
    "identification": (
        "Regressors and identification",
        ["quantities.regressors", "identification"],
        ["identification"],
    ),
    "files": (
        "Files and the doctor",
        ["loaders", "writers", "doctor"],
        ["loaders", "writers", "doctor"],
    ),
    "interop": ("Pinocchio and MuJoCo", [], ["interop.pinocchio", "interop.mujoco"]),
    "accuracy": ("Accuracy and cost", ["diagnosis"], ["counting"]),
    "spatial": ("Spatial algebra", ["spatial"], ["spatial", "spatial.planar", "spatial.lie"]),
    "errors": ("Errors and warnings", ["errors"], []),
}
"""Page: title, modules whose top-level names it shows, submodules whose own names it shows."""


def names_by_page() -> dict:
    """Public names as users write them (``kt.`` left out), by page."""
    pages = {page: [] for page in PAGES}
    seen = set()
    for name in kt.__all__:
        thing = getattr(kt, name)
        if not ismodule(thing):
            pages[_page_of(name, thing)].append(name)
            seen.add(id(thing))
    for page, (_, _, submodules) in PAGES.items():
        for module in submodules:
            for name, thing in _public(module):
                if id(thing) not in seen:
                    pages[page].append(f"{module}.{name}")
                    seen.add(id(thing))
    return pages


def _public(module):
    loaded = find(module)
    for name in loaded.__all__:
        thing = getattr(loaded, name)
        if isclass(thing) or isfunction(thing):
            yield name, thing


def _page_of(name, thing):
    module = thing.__module__.removeprefix("kinetree.")
    for page, (_, modules, _) in PAGES.items():
        if any(module == m or module.startswith(f"{m}.") for m in modules):
            return page
    raise LookupError(f"kt.{name} is of module {module!r}: add it to PAGES in {__file__}")


def find(name: str):
    """The thing that a public name means."""
    return reduce(getattr, name.split("."), kt)


def path(thing) -> str:
    """Where a thing is defined, which is its anchor in the reference."""
    return f"{thing.__module__}.{thing.__qualname__}"


def pages() -> dict:
    """Markdown by path on the site."""
    found = {}
    for page, names in names_by_page().items():
        title = PAGES[page][0]
        lines = [f"# {title}", ""]
        for name in names:
            lines += [f"::: {path(find(name))}", "    options:", f"      heading: kt.{name}", ""]
        found[f"reference/{page}.md"] = "\n".join(lines)
    return found


def anchors() -> dict:
    """Where the reference describes each public name: ``{"kt.pose": "reference/…html#…"}``."""
    return {
        f"kt.{name}": f"reference/{page}.html#{path(find(name))}"
        for page, names in names_by_page().items()
        for name in names
    }
