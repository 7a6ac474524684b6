# pyright: reportInvalidTypeForm=false, reportInvalidTypeArguments=false
"""Quantities of whole-body control: everything that depends on the state, from two kernels."""

from typing import Any

import numpy as np

from kinetree.codegen.procedures import procedure, record
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.tied import Code, run, tied_code
from kinetree.control.whole_body_gears import tied_inertia
from kinetree.functional.kernel import kernel
from kinetree.model import Model
from kinetree.model.define import kernel_of
from kinetree.model.general.gears import gears_of
from kinetree.model.memo import remember
from kinetree.quantities.dynamics import bias_force, mass_matrix, passive_force

_NAMES = "H", "h", "J", "drift", "arms", "Jt", "e", "v", "c"
"""Inertia and bias forces; rows of contacts, their drift, Jacobians of their points; Jacobians,
errors, velocities and bias accelerations of tasks."""


@record
class Codes:
    """Machine code of all quantities of a state, tied to arrays.

    Attributes:
        inertia: of the inertia matrix, which needs no compiler for a new robot.  rest: of all else.
    """

    inertia: Code
    rest: Code


class Quantities:
    """The kernels of a model with contacts and tasks, and the arrays that they read and write.

    Attributes:
        arrays: results by name, flat.
        q, qd, targets: what they are computed from.
    """

    def __init__(self, model: Model, contacts, rows, forces: int):
        self.model, nv = model, model.nv
        key = ("WholeBody", tuple(c.key for c in contacts), tuple(r.key for r in rows))
        damping = tuple(float(c.damping) for c in contacts)
        self._user = remember(model, (*key, *damping), lambda: _kernel(contacts, rows))
        moving = sum(r.size for r in rows)
        jacobians = sum(r.size for r in rows if r.fixed is None)
        held = sum(3 + len(c.turns) for c in contacts)
        sizes = nv * nv, nv, held * nv, held, forces * nv, jacobians * nv, moving, moving, moving
        self.arrays = {n: np.zeros(size) for n, size in zip(_NAMES, sizes, strict=True)}
        self._results = [self.arrays[n] for n, size in zip(_NAMES, sizes, strict=True) if size]
        self.q, self.qd = model.neutral().astype(float), np.zeros(nv)
        self.targets = np.concatenate([*(r.targets for r in rows), np.zeros(1)])
        self._calls, self._next, self._codes = 0, 1, None

    @property
    def codes(self) -> Codes | None:
        """Machine code that computes the quantities, renewed with more calls; or None."""
        self._calls = calls = self._calls + 1
        if calls >= self._next:  # more calls may have earned better code
            self._codes = self._tie(max(1, self._calls // 2))
            self._next = 2 * self._calls
        return self._codes

    def _tie(self, samples):
        """Machine code that writes the quantities of a state, or None if there is none."""
        found: Any = self._user.compiled(self.model, self.q, self.qd, self.targets)
        gears = gears_of(self.model)
        inertia = (
            kernel_of(self.model, "mass_matrix") if gears is None else gears.kernel("mass_matrix")
        )
        if not isinstance(found, Kernel):
            return None
        for each in (inertia, found):
            variant = each.code_variant("float64", wide=False, samples=samples)
            if getattr(variant, "code", None) is None:
                return None
        H, *rest = self._results
        return Codes(
            inertia=tied_code(inertia, self.q, H)
            if gears is None
            else tied_inertia(gears, self.q, H),
            rest=tied_code(found, self.q, self.qd, self.targets, *rest),
        )

    def compute(self) -> None:
        """Compute the quantities in Python, whose errors name what is wrong with a state."""
        found = self._user(self.model, self.q, self.qd, self.targets)
        found = (mass_matrix(self.model, self.q), *found)
        for array, value in zip(self._results, found, strict=True):
            array[:] = np.ravel(value)


@procedure
def run_all(codes: Codes) -> bool:
    """Compute all quantities by machine code; whether state and results are finite."""
    run(codes.inertia)
    run(codes.rest)
    return codes.inertia.status[0] + codes.rest.status[0] == 0


@procedure
def forget_failures(codes: Codes) -> None:
    """Reset the failure counts of tied code."""
    codes.inertia.status[0] = 0
    codes.rest.status[0] = 0


def _kernel(contacts, rows):
    """Kernel of all quantities except the inertia matrix, without empty results."""

    def whole_body(m, q, qd, targets):
        found = [bias_force(m, q, qd) - passive_force(m, q, qd)]
        J, drift, arms = [], [], []
        for c in contacts:
            Jc, v, a = c.motion(m, q, qd)
            J.append(Jc)
            drift.append(a + c.damping * v)
            arms.append(c.arms(m, q))
        parts, start = [], 0
        for r in rows:
            target = targets[start : start + len(r.targets)]
            parts.append(r.text(m, q, qd, target))
            start += len(r.targets)
        Jt = [p[0] for p in parts if p[0] is not None]
        found += [np.concatenate(x) for x in (J, drift, arms, Jt) if x]
        found += [np.concatenate([p[k] for p in parts]) for k in (1, 2, 3) if parts]
        return tuple(found)

    return kernel(whole_body)
