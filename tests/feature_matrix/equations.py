"""Equations in docstrings: where they are, and what has to hold for each.

A code span of a public docstring that relates quantities (``tau = H(q) qdd + C(q, qd)``) is an
equation. It is written again here, from public functions alone, and holds for every mechanism of
the matrix or the functions refuse it. A span without a line here fails ``test_every_equation``.
"""

import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from feature_matrix.walk import CHECKS, NAMESPACES, Checked, function_of, public_functions

import kinetree as kt

_SPAN = re.compile(r"``([^`]+)``", re.DOTALL)
_RELATION = re.compile(
    r"[ᵀ⁻⁺Σ½∂×·√∫]| == | = | [-+*/@] |\b[A-Z]\w* \w+|\bd\w+/d\w"
    r"|^\w+\(q, 0\)"
)
"""What makes a code span an equation, or one side of it: operators, and products of symbols."""

EQUATIONS = {}
"""From (function, span) to ``require(at)``: a left and a right side, and sizes of their terms."""
ALONE = set()
"""Equations that no model is part of."""
IN_MATRIX = {}
"""From (function, span) to the function whose check of the matrix is this equation."""
TESTED = {}
"""From (class, span) to the test elsewhere that is this equation, ``file::function``."""
NOTATION = {}
"""From a span to why it says nothing that could be wrong: names of arguments and conditions."""


def spans(name, function):
    """(function, span) for every equation of a docstring."""
    text = inspect.getdoc(function) or ""
    found = (" ".join(span.split()) for span in _SPAN.findall(text))
    return [(name, span) for span in found if _RELATION.search(span)]


def equations_in_docstrings():
    """All equations of public functions, and those of public classes that have an equals sign."""
    found = [e for name, function in public_functions().items() for e in spans(name, function)]
    for name, kind in public_classes().items():
        found += [e for e in spans(name, kind) if " = " in e[1] or " == " in e[1]]
    return found


def public_classes():
    """All public classes by name, each once."""
    found, seen = {}, set()
    for space in NAMESPACES:
        module: Any = getattr(kt, space) if space else kt
        for name in module.__all__:
            kind = getattr(module, name)
            if inspect.isclass(kind) and id(kind) not in seen:
                seen.add(id(kind))
                found[f"{space}.{name}" if space else name] = kind
    return found


def equation(name, *texts, alone=False):
    """Register what an equation of a docstring says."""

    def register(require):
        for text in texts:
            EQUATIONS[name, text] = require
            if alone:
                ALONE.add((name, text))
        return require

    return register


def in_matrix(name, *texts, by=None):
    """Name the check of the matrix that is this equation."""
    IN_MATRIX.update({(name, text): by or name for text in texts})


def by_test(test, name, *texts):
    """Name the test, ``file::function``, that is this equation."""
    TESTED.update({(name, text): test for text in texts})


def notation(why, *texts):
    """Say why a span is not an equation."""
    NOTATION.update(dict.fromkeys(texts, why))


def is_known(name, text):
    """Whether there is a check of an equation, or a reason for none."""
    if (name, text) in IN_MATRIX:
        return IN_MATRIX[name, text] in CHECKS
    if (name, text) in TESTED:
        file, _, test = TESTED[name, text].partition("::")
        source = (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
        return f"\ndef {test}(" in source
    return (name, text) in EQUATIONS or text in NOTATION


class At:
    """A model of the matrix in a state, and what public functions say of it.

    ``G``, ``g`` and ``columns`` are those of independent coordinates; of a tree, of all variables.
    """

    def __init__(self, case):
        self.case, self.model, self.name = case, case.plain, case.name
        self.q, self.qd, self.tau, self.f_ext = case.q, case.qd, case.tau, case.f_ext
        self.rest, self.unit = 0 * case.qd, np.eye(case.plain.nv)
        self.task = {"frame": "aligned", "rows": ("x",) if case.plain.loops else ("z",)}

    def __call__(self, name, *args, model=None, **options):
        """A public function of the model, as its text; after ``tree.`` of its spanning tree."""
        of_tree, name = name.startswith("tree."), name.removeprefix("tree.")
        model = self.model.spanning_tree if of_tree else model or self.model
        chosen_by_value = model.is_constrained and name in ("inverse_dynamics", "gravity_force")
        f = Checked(name, function_of(name), self.case, compiled=chosen_by_value)
        return f(model, *args, **options)

    @cached_property
    def motion(self):
        """``G``, ``g`` and the columns of the coordinates."""
        if not self.model.is_constrained:
            return self.unit, self.rest, np.arange(self.model.nv)
        found = kt.loops.null_space(self.model, self.q, self.qd)
        joints = zip(self.model.joint_names, self.model.joint[1:], strict=True)
        own = [n if j.nv == 1 else f"{n}[{k}]" for n, j in joints for k in range(j.nv)]
        return found.G, found.g, np.array([own.index(n) for n in found.coordinates])

    @property
    def G(self):
        return self.motion[0]

    @property
    def g(self):
        return self.motion[1]

    @property
    def columns(self):
        return self.motion[2]

    @property
    def yd(self):
        return self.qd[self.columns]

    @cached_property
    def qdd(self):
        """Accelerations that loops allow."""
        if not self.model.is_constrained:
            return self.case.qdd
        return self("forward_dynamics", self.q, self.qd, self.tau)

    @property
    def parameters(self):
        return np.asarray(kt.identification.inertial_parameters(self.model), float)

    @property
    def bodies_alone(self):
        """The spanning tree without springs, friction and armature."""
        tree = self.model.spanning_tree
        return tree.replace(dynamics=dict.fromkeys(tree.joint_names))

    @property
    def armature(self):
        """Joint forces of the armature at ``qdd``: those of the model, less those of its bodies."""
        whole, bodies = (
            np.asarray(self("inverse_dynamics", self.q, self.qd, self.qdd, model=model))
            for model in (self.model.spanning_tree, self.bodies_alone)
        )
        return whole - bodies

    def derivative(self, name, x, *before):
        """``∂f/∂x`` by complex steps, the last axis that of ``x``."""
        h = 1e-30
        function = function_of(name)
        columns = [
            np.imag(function(self.model, *before, x + 1j * h * e)) / h for e in np.eye(len(x))
        ]
        return np.stack(columns, -1) if columns else None
