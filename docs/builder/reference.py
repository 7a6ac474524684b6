"""Pages of the API reference: every public name once, from its docstring.

A name belongs to the page of the module that defines it. A public module without a place in
``PAGES`` stops the build.
"""

from functools import reduce
from inspect import getdoc, isclass, isfunction, ismodule

import kinetree as kt

PAGES = {
    "models": ("Models", ["model"], ["edit", "model", "shapes", "geometry", "samples"]),
    "joints": ("Joints", ["joints"], []),
    "kinematics": ("Kinematics", ["quantities.kinematics"], []),
    "dynamics": (
        "Dynamics",
        [
            "quantities.dynamics",
            "quantities.actuators",
            "quantities.tendons",
            "quantities.reactions",
            "quantities.hybrid",
            "quantities.lagrangian",
            "functional.quasi_velocities",
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
    "viewer": ("Viewer and plots", ["viewer", "rendering"], ["viewer", "plot"]),
    "contact": ("Contact and impact", [], ["contact", "contact.complementarity"]),
    "special": ("Floating bases, gears, equivalence", [], ["floating", "gears", "equivalence"]),
    "control": ("Control", ["control"], ["control"]),
    "estimation": ("State estimation", ["estimation"], ["estimation"]),
    "learning": ("Reinforcement learning", [], ["learning"]),
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

ABOUT = {
    "models": "Build, change and inspect models. Guides: [models](../models.md), "
    "[samples](../samples.md).",
    "joints": "Kinds of joints, for `kt.ModelBuilder`. Guide: [joints](../joints.md).",
    "kinematics": "Poses, velocities, accelerations and Jacobians of frames. "
    "Guide: [kinematics](../kinematics.md).",
    "dynamics": "Inverse and forward dynamics, inertia matrices, energies and reactions. "
    "Guides: [kinematics and dynamics](../kinematics.md), [reactions](../reactions.md), "
    "[hybrid dynamics](../hybrid.md).",
    "centroidal": "Centre of mass, momentum and balance. Guide: [kinematics](../kinematics.md).",
    "task_space": "Dynamics in the space of a task, and forces on bodies instead of joints. "
    "Guide: [task space](../task_space.md).",
    "kernels": "Derivatives of every function, your own compiled functions, export, formulas. "
    "Guides: [derivatives](../derivatives.md), [kernels](../kernels.md), [export](../export.md), "
    "[equations](../equations.md).",
    "simulation": "Simulate motions, one or thousands, with forces, events and controllers. "
    "Guides: [simulation](../simulation.md), [rollouts](../rollouts.md), [sweeps](../sweeps.md).",
    "loops": "Mechanisms with closed loops: assembly, mobility, dynamics, charts, linear models. "
    "Guide: [closed loops](../closed_loops.md).",
    "worlds": "Robots, objects and terrain in rigid contact. Guide: [worlds](../worlds.md).",
    "viewer": "Look at models and motions in a browser, plot them, and film them. "
    "Guides: [viewer](../viewer.md), [plots](../plots.md).",
    "contact": "Contacts, impacts, friction, distances and rays. Guide: [contact](../contact.md).",
    "special": "Floating bases without a free joint, gears with rotors, mechanisms with "
    "the same dynamics. Guides: [floating bases](../floating.md), [gears](../gears.md), "
    "[equivalence](../equivalence.md).",
    "control": "Equilibria, LQR, whole-body control, trajectory optimization. "
    "Guides: [control](../control.md), [whole-body control](../whole_body.md), "
    "[trajectory optimization](../trajectory_optimization.md).",
    "estimation": "States of robots with floating bases from IMU, encoders and contacts. "
    "Guide: [state estimation](../estimation.md).",
    "learning": "Thousands of environments in parallel, for training libraries. "
    "Guide: [learning](../learning.md).",
    "inverse_kinematics": "Configurations in which frames reach given poses. "
    "Guide: [inverse kinematics](../inverse_kinematics.md).",
    "identification": "Masses, inertias and friction from measured motions. "
    "Guide: [identification](../identification.md).",
    "files": "Read and write robot files, and find problems in them. "
    "Guides: [loading](../loading.md), [formats](../formats.md), [doctor](../doctor.md).",
    "interop": "Convert models from and to Pinocchio and MuJoCo. "
    "Guides: [from Pinocchio](../from_pinocchio.md), [from MuJoCo](../from_mujoco.md).",
    "accuracy": "How accurate results are and how many operations they take. "
    "Guide: [accuracy and cost](../accuracy.md).",
    "spatial": "Spatial vectors, transforms and inertias, with the book's symbols. "
    "Guides: [notation](../notation.md), [spatial algebra](../theory/spatial.md).",
    "errors": "Every error and warning is a subclass of one of these, and says what to do.",
}
"""Page: what it is for, and the guides that explain it."""


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
        lines = [f"# {title}", "", ABOUT[page], "", *map(_entry, names), ""]
        for name in names:
            lines += [f"::: {path(find(name))}", "    options:", f"      heading: kt.{name}"]
            lines += ["      inherited_members: true"] * _is_split(find(name)) + [""]
        found[f"reference/{page}.md"] = "\n".join(lines)
    return found


def _is_split(thing):
    """Whether a class is written in several files, as bases that are named by it."""
    bases = thing.__mro__[1:] if isclass(thing) else ()
    return any(vars(base).get("_is_part_of") == thing.__qualname__ for base in bases)


def _entry(name):
    """A line of the list at the top: the name, linked, and the first line of its docstring."""
    thing = find(name)
    return f"- [`kt.{name}`][{path(thing)}]: {getdoc(thing).splitlines()[0]}"


def anchors() -> dict:
    """Where the reference describes each public name: ``{"kt.pose": "reference/…html#…"}``."""
    return {
        f"kt.{name}": f"reference/{page}.html#{path(find(name))}"
        for page, names in names_by_page().items()
        for name in names
    }
