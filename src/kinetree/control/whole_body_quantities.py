"""Quantities of whole-body control: everything that depends on the state, from one kernel."""

from typing import Any

import numpy as np

from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.tied import Code, tied_code
from kinetree.functional.kernel import kernel
from kinetree.model import Model
from kinetree.model.memo import kept
from kinetree.quantities.dynamics import bias_force, mass_matrix, passive_force

_NAMES = "H", "h", "J", "drift", "arms", "Jt", "e", "v", "c"
"""Inertia and bias forces; rows of contacts, their drift, Jacobians of their points; Jacobians,
errors, velocities and bias accelerations of tasks."""


class Quantities:
    """The kernel of a model with contacts and tasks, and the arrays that it reads and writes.

    Attributes:
        arrays: results by name, flat.
        q, qd, targets: what they are computed from.
    """

    def __init__(self, model: Model, contacts, rows, forces: int):
        self.model, nv = model, model.nv
        key = ("WholeBody", tuple(c.key for c in contacts), tuple(r.key for r in rows))
        damping = tuple(float(c.damping) for c in contacts)
        self._user = kept(model, (*key, *damping), lambda: _kernel(contacts, rows))
        moving = sum(r.size for r in rows)
        jacobians = sum(r.size for r in rows if r.fixed is None)
        held = sum(3 + len(c.turns) for c in contacts)
        sizes = nv * nv, nv, held * nv, held, forces * nv, jacobians * nv, moving, moving, moving
        self.arrays = {n: np.zeros(size) for n, size in zip(_NAMES, sizes, strict=True)}
        self._results = [self.arrays[n] for n, size in zip(_NAMES, sizes, strict=True) if size]
        self.q, self.qd = model.neutral().astype(float), np.zeros(nv)
        self.targets = np.concatenate([*(r.targets for r in rows), np.zeros(1)])
        self._calls, self._next, self._code = 0, 1, None

    @property
    def code(self) -> Code | None:
        """Machine code that computes them; None where there is none, such as at an instant."""
        self._calls = calls = self._calls + 1
        if calls >= self._next:  # more calls may have earned better code
            self._code = self._tied(max(1, self._calls // 2))
            self._next = 2 * self._calls
        return self._code

    def _tied(self, samples):
        found: Any = self._user.compiled(self.model, self.q, self.qd, self.targets)
        if not isinstance(found, Kernel):
            return None
        if getattr(found.variant("float64", wide=False, samples=samples), "code", None) is None:
            return None
        return tied_code(found, self.q, self.qd, self.targets, *self._results)

    def compute(self) -> None:
        """Compute them by a call of Python, which says what is wrong with a state."""
        found = self._user(self.model, self.q, self.qd, self.targets)
        for array, value in zip(self._results, found, strict=True):
            array[:] = np.ravel(value)


def _kernel(contacts, rows):
    """The compiled function of everything that depends on the state; empty results are left out."""

    def whole_body(m, q, qd, targets):
        found = [mass_matrix(m, q), bias_force(m, q, qd) - passive_force(m, q, qd)]
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
