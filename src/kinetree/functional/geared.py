"""Derivatives of dynamics with gears and mimic joints on arrays, see ``model.general.gears``.

Those of all joints are general code. Forces have factors ``Gᵀ`` on all axes of velocity variables;
accelerations follow from forces, ``H ∂qdd = ∂tau - ∂ID``.
"""

from collections.abc import Callable

import numpy as np

from kinetree.model.define import FUNCTIONS
from kinetree.model.general.gears import gears_of, solve_positive

_FORCES = "inverse_dynamics", "bias_force", "gravity_force"


def derivative_on_arrays(derivative, call) -> Callable[..., tuple] | None:
    """Function of batched arrays that computes derivatives of a geared model; or None.

    Args:
        derivative: a ``Derivative`` of a public function.
        call: of it, with a model that has couplings.
    """
    name, gears = derivative.function.__name__, gears_of(call.model)
    if gears is None or name not in (*_FORCES, "forward_dynamics"):
        return None
    if name == "forward_dynamics":
        return _of_accelerations(derivative, call, gears)
    kernel = _of_all_joints(derivative, gears, derivative.entries(), name, call.shapes)
    if kernel is None:
        return None

    def of_arrays(*arrays):
        full = gears.expand_state(**dict(zip(call.shapes, arrays, strict=True)))
        return _contract(gears, kernel, derivative.entries(), full.values())

    return of_arrays


def _of_accelerations(derivative, call, gears):
    """Batched derivative of forward dynamics with constant gear ratios, or None."""
    if FUNCTIONS["forward_dynamics"].definition.gears(gears.model) is None:
        return None
    entries = derivative.entries()
    wanted = tuple(e for e in entries if e != "tau")
    shapes = {("qdd" if n == "tau" else n): s for n, s in call.shapes.items()}
    kernel = _of_all_joints(derivative, gears, wanted, "inverse_dynamics", shapes)
    if kernel is None and wanted:
        return None

    def of_arrays(*arrays):
        state = dict(zip(call.shapes, arrays, strict=True))
        state["qdd"] = FUNCTIONS["forward_dynamics"](call.model, **state)
        del state["tau"]
        full = gears.expand_state(**state)
        given = [full[n] for n in shapes]
        H = gears.inertia(full["q"])
        found = iter(_contract(gears, kernel, wanted, given) if wanted else ())
        one = np.broadcast_to(np.eye(H.shape[-1], dtype=H.dtype), H.shape)
        return tuple(solve_positive(H, one if e == "tau" else -next(found)) for e in entries)

    return of_arrays


def _of_all_joints(derivative, gears, wrt, name, shapes):
    """Kernel of a derivative for the model without couplings; None without general code."""
    if not wrt:
        return None
    of_all, full = type(derivative)(FUNCTIONS[name], tuple(wrt)), gears.full
    own = {"q": full.neutral(), "qd": np.zeros(full.nv), "qdd": np.zeros(full.nv)}
    arrays = {n: own[n] if n in own else np.zeros(shape) for n, shape in shapes.items()}
    kernel = of_all.prepare_call(of_all.bind(full, **arrays)).kernel
    return kernel if kernel.has_general_code else None


def _contract(gears, kernel, wrt, arrays):
    """Derivatives of all joints reduced to the independent variables by gear ratios."""
    found = kernel.call(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    return tuple(
        gears.contract(x, -2, -1) if name in ("q", "qd", "qdd") else gears.contract(x, -2)
        for x, name in zip(found, wrt, strict=True)
    )


def product_on_arrays(whole, count: int, along: bool) -> Callable[..., tuple]:
    """Function of a call's arrays and vectors to products of the derivative with these.

    Args:
        whole: the derivative as a function of arrays, one result for each entry.
        count: number of arrays of the call.
        along: whether vectors are tangents; else there is one of weights.
    """

    def rates(*arrays):
        pairs = zip(whole(*arrays[:count]), arrays[count:], strict=True)
        return (sum((D @ v[..., None])[..., 0] for D, v in pairs),)

    def gradients(*arrays):
        *arrays, weights = arrays
        return tuple((weights[..., None, :] @ D)[..., 0, :] for D in whole(*arrays))

    return rates if along else gradients
