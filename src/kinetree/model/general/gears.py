"""Quantities of models with gears and mimic joints, on arrays — RBDA §9.6.

Where the ratios ``G`` are constant, results in the independent variables follow from those of all
joints, which general code computes: by a factor ``Gᵀ`` on every axis of velocity variables, of
forces, inertias, Jacobians, Coriolis matrices and their derivatives alike; accelerations by
solving with ``GᵀHG``. ``algorithms.coupled`` has the same for one sample and any numbers.
"""

from typing import Any

import numpy as np

from kinetree.model.define import kernel_of
from kinetree.model.gearing import Gearing
from kinetree.model.memo import remember


def gears_of(model) -> "Gears | None":
    """Gear ratios of a model whose couplings are linear; None otherwise, or with loops."""
    return remember(model, ("gears_of",), lambda: (_gears_of(model),))[0]


def _gears_of(model):
    """Gear ratios of a model with linear couplings and plain numbers, or None."""
    plain = all(c.is_linear for c in model.couplings) and model.scalar_type().kind in "fi"
    if not (model.couplings and plain and model.nv) or model.is_constrained:
        return None
    return Gears(model)


class Gears:
    """Couplings of constant ratios: which joints lead, and how others follow.

    Attributes:
        model: the model with couplings.
        full: the same without them.
        sizes: velocity variables of both.
        of_q, of_v: places of the variables of ``model`` among those of ``full``.
        following_q, following_v: those of joints that follow.
        ratios, slopes, offsets: ``G`` of their velocities, (followers, nv), and of their positions,
            (followers, nq), which have these values at zero.
    """

    def __init__(self, model):
        self.model, self.full = model, model.uncoupled
        self.sizes = model.nv, self.full.nv
        self.of_q, self.of_v = model.independent_variables
        at = Gearing(model, np.zeros(model.nq))
        joints = [c.joint for c in model.couplings]
        self.following_q = np.array([self.full.q_slice[i].start for i in joints])
        self.following_v = np.array([self.full.v_slice[i].start for i in joints])
        self.ratios = np.asarray(at.G[self.following_v], dtype=float)
        self.offsets = np.asarray(at.q[self.following_q], dtype=float)
        self.slopes = np.zeros((len(joints), model.nq))
        for joint, of_q, of_v in zip(model.joint, model.q_slice, model.v_slice, strict=True):
            if joint is not None and joint.nv == 1:  # others lead nothing
                self.slopes[:, of_q.start] = self.ratios[:, of_v.start]

    def positions(self, q) -> Any:
        """Positions of all joints, (..., nq) of ``full``."""
        found = np.empty((*q.shape[:-1], self.full.nq), q.dtype)
        found[..., self.of_q] = q
        found[..., self.following_q] = q @ self.slopes.T.astype(q.dtype) + self.offsets.astype(
            q.dtype
        )
        return found

    def velocities(self, qd) -> Any:
        """Velocities or accelerations of all joints, ``G qd``, (..., nv) of ``full``."""
        found = np.empty((*qd.shape[:-1], self.full.nv), qd.dtype)
        found[..., self.of_v] = qd
        found[..., self.following_v] = qd @ self.ratios.T.astype(qd.dtype)
        return found

    def expand_state(self, **arrays) -> dict[str, Any]:
        """State arrays by name expanded to all joints; other arrays unchanged."""
        by_name = {"q": self.positions, "qd": self.velocities, "qdd": self.velocities}
        return {n: by_name[n](a) if n in by_name else a for n, a in arrays.items()}

    def contract(self, x, *axes) -> Any:
        """Array with ``Gᵀ`` applied along some axes: sums over coupled joints."""
        x = np.asarray(x)
        for axis in axes:
            x = np.moveaxis(x, axis, -1)
            x = x[..., self.of_v] + x[..., self.following_v] @ self.ratios.astype(x.dtype)
            x = np.moveaxis(x, -1, axis)
        return x

    # --- equations of motion -----------------------------------------------------------------

    def inertia(self, q) -> Any:
        """Inertia matrix ``GᵀHG``, exactly symmetric, at positions ``q`` of all joints."""
        H = self.contract(self.kernel("mass_matrix").call(q), -1, -2)
        return 0.5 * (H + np.swapaxes(H, -1, -2))

    def forces(self, q, qd, qdd, *f_ext) -> Any:
        """Joint forces ``Gᵀ tau`` by inverse dynamics, in a state of all joints."""
        kernel = self.kernel("inverse_dynamics", ("f_ext",) if f_ext else ())
        return self.contract(kernel.call(q, qd, qdd, *f_ext), -1)

    def kernel(self, quantity, extra=()) -> Any:
        """Kernel of a quantity for the model without couplings."""
        return kernel_of(self.full, quantity, extra)


def solve_positive(H, b) -> Any:
    """Solutions ``H⁻¹ b`` for batches of positive definite matrices; LinAlgError otherwise."""
    np.linalg.cholesky(H)
    return np.linalg.solve(H, b)


def on_arrays(quantity, model, inputs, shape, options) -> Any:
    """Quantity of a model with linear couplings as a function of batched arrays, or None.

    Args:
        quantity: a ``Quantity``.
        model: a model with couplings.
        inputs: arguments of the function.
        shape: of one result.
        options: of the quantity.
    """
    gears = gears_of(model) if quantity.gears else None
    if gears is None:
        return None
    names = [i.name for i in inputs]
    if callable(quantity.gears):
        rule: Any = quantity.gears(model)
        if rule is None:
            return None
        return lambda *arrays: (rule(gears, **dict(zip(names, arrays, strict=True))),)
    extra = tuple(names[len(quantity.required) :])
    kernel = quantity.kernel(gears.full, extra, **options)
    if not kernel.has_general_code:
        return None
    whole = kernel.outputs[0].shape
    pairs = list(zip(shape, whole, strict=True))
    axes = [k - len(pairs) for k, pair in enumerate(pairs) if pair[0] != pair[1]]
    if any(pairs[k] != gears.sizes for k in axes):
        return None

    def of_arrays(*arrays):
        full = gears.expand_state(**dict(zip(names, arrays, strict=True)))
        return (gears.contract(kernel.call(*full.values()), *axes),)

    return of_arrays
