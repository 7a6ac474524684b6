"""Forward dynamics of mechanisms with loops and couplings: compiled, batched, never wrong.

Three solvers in line. The first two are compiled for the model, with an order of elimination that
was chosen for it beforehand (``algorithms.closed.forward_dynamics``); every sample comes back with
a number that says whether its pivots were good, its loops closed, and its redundant constraints
satisfied. Samples for which they were not go to the next solver. The last one decides ranks for
every sample anew, in Python, and raises the errors that name what is wrong
(``algorithms.closed.joint_space``).
"""

from functools import partial
from itertools import islice

import numpy as np

from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.forward_dynamics import constrained_acceleration, is_closed, ways
from kinetree.arrays.batch import of_sample, over_batch
from kinetree.arrays.kinds import is_foreign
from kinetree.arrays.namespace import good_samples
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import ShapeError, SingularError, TraceError
from kinetree.expr.node import Expr
from kinetree.model.arrays import require_unit_parts
from kinetree.model.fingerprint import is_plain
from kinetree.quantities.functions import argument_shape, validate
from kinetree.spatial import Force
from kinetree.spatial.ops import less, select

__all__ = ["forward_dynamics"]


def forward_dynamics(model, arrays):
    """Joint accelerations, (..., nv).

    Args:
        model: the mechanism, with loops or couplings.
        arrays: ``q``, ``qd``, ``tau`` and, if there are any, the external forces.
    """
    if any(map(is_foreign, arrays)):  # samples that the order of elimination does not suit: NaN
        qdd, health = _kernel(model, 0, len(arrays)).call(*arrays)
        return good_samples(qdd, health >= 1)
    if any(_is_traced(a) for a in arrays):
        return _traced(model, *arrays)
    try:
        qdd, health = _kernel(model, 0, len(arrays)).call(*arrays)
    except TraceError:  # a joint of the user's own that cannot be compiled
        return _on_host(model, *arrays)
    return qdd if np.all(health >= 1) else _repaired(model, arrays, qdd, health)


def _repaired(model, arrays, qdd, health):
    """``qdd`` with the samples that are not good replaced by those of the next solvers."""
    batch, count = np.shape(health), np.size(health)
    shapes = [argument_shape(model, name) for name in _NAMES[: len(arrays)]]
    flat = [
        np.broadcast_to(a, batch + shape).reshape(count, *shape)
        for a, shape in zip(arrays, shapes, strict=True)
    ]
    found, health = np.array(qdd).reshape(count, model.nv), np.reshape(health, count)
    weak = (health > 0) & (health < 1)  # the pivots; at zero it is the state
    if np.any(weak) and _way(model, 1) is not None:
        again, health_again = _kernel(model, 1, len(arrays)).call(*(a[weak] for a in flat))
        found[weak] = again
        health = health.copy()
        health[weak] = health_again
    for k in np.flatnonzero(~(health >= 1)):
        try:
            found[k] = _one(model, *(a[k] for a in flat))
        except (ShapeError, SingularError) as error:
            raise of_sample(error, np.unravel_index(k, batch)) from error
    return found.reshape(*batch, model.nv)


_NAMES = ("q", "qd", "tau", "f_ext")


def _kernel(model, number, count):
    """The compiled solver of a number, for so many arrays."""
    key = ("closed_chain", number, count)
    kernel = model.kernels.get(key)
    if kernel is None:
        kernel = model.kernels[key] = _build(model, number, _NAMES[:count], key)
    return kernel


def _build(model, number, names, key):
    inputs = [Argument(name, argument_shape(model, name)) for name in names]
    outputs = [Argument("out0", (model.nv,)), Argument("out1", ())]

    def checked(q, *arrays):
        require_unit_parts(model, q)
        return _motion(model, next(islice(ways(model), number, None)), q, *arrays)

    def reference(arrays):
        qdd = _on_host(model, *arrays)
        return qdd, np.ones(qdd.shape[:-1])[()]

    return Kernel(
        "forward_dynamics",
        inputs,
        outputs,
        lambda: trace(checked, inputs, "forward_dynamics"),
        reference=reference,
        validate=lambda arrays: validate(model, dict(zip(names, arrays, strict=True))),
        key=(model.fingerprint, key) if is_plain(model) else None,
    )


def _way(model, number):
    """The way of a number, or None."""
    try:
        return next(islice(ways(model), number, None), None)
    except SingularError:
        return None


def _motion(model, way, q, qd, tau, f_ext=None):
    """``qdd`` and the health of it, zero for a state that the mechanism cannot be in."""
    motion = constrained_acceleration(model, q, qd, tau, _as_forces(f_ext), way=way)
    health = motion.health
    for condition in is_closed(model, q, qd, motion.constraints):
        health = select(condition, health, 0)
    return motion.qdd, health


def _traced(model, *arrays):
    """Inside a kernel of the user's: what is not good there is computed outside it."""
    qdd, health = _motion(model, next(ways(model)), *map(np.asarray, arrays))
    is_good = less(1, health)
    if not isinstance(is_good, (bool, np.bool_)):
        is_good.require()
    return qdd


def _is_traced(a):
    a = np.asarray(a)
    return a.dtype == object and any(isinstance(x, Expr) for x in a.ravel())


def _one(model, q, qd, tau, f_ext=None):
    """One sample on the host; complex and exact numbers by the text that is compiled."""
    if any(np.asarray(a).dtype.kind in "cO" for a in (q, qd, tau)):
        return _motion(model, next(ways(model)), q, qd, tau, f_ext)[0]
    return joint_space.forward_dynamics(model, q, qd, tau, _as_forces(f_ext))


def _on_host(model, *arrays):
    """All samples, one after the other."""
    named = dict(zip(_NAMES, map(np.asarray, arrays), strict=False))
    validate(model, named)
    core = [len(argument_shape(model, name)) for name in named]
    return over_batch(partial(_one, model), named, core=core, shape=(model.nv,))


def _as_forces(f_ext):
    return None if f_ext is None else [None, *(Force.from_array(f) for f in f_ext)]
