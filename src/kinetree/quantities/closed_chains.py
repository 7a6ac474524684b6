"""Forward and inverse dynamics of mechanisms with loops: compiled, batched, never wrong.

Forward dynamics has three solvers in line; few samples of large mechanisms go to the last one at
once (``few_samples``). The first two are compiled for the model, with an order
of elimination that was chosen for it beforehand (``algorithms.closed.forward_dynamics``); every
sample comes back with a number that says whether its pivots were good, its loops closed, and its
redundant constraints satisfied. Samples for which they were not go to the next solver. The last one
decides ranks for every sample anew, in Python, and raises the errors that name what is wrong
(``algorithms.closed.joint_space``).

Inverse dynamics has compiled terms; ranks are decided sample by sample
(``algorithms.closed.inverse_dynamics``).
"""

from functools import partial
from itertools import islice
from math import prod

import numpy as np

from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.forward_dynamics import constrained_acceleration, is_closed, ways
from kinetree.algorithms.closed.independent import allowed_motion, coordinate_plan
from kinetree.algorithms.closed.inverse_dynamics import (
    Actuated,
    ClosedChainTerms,
    InverseSolution,
    actuated_freedoms,
    check_motion,
    solution,
    terms,
)
from kinetree.algorithms.closed.joint_space import CLOSURE_TOLERANCE
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.arrays.batch import of_sample, over_batch
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import good_samples, is_foreign
from kinetree.codegen.program import Argument, trace
from kinetree.errors import ShapeError, SingularError, TraceError
from kinetree.expr.node import Expr
from kinetree.model.array_arguments import argument_shape, validate
from kinetree.model.arrays import as_configuration, as_joint_vector, require_unit_parts
from kinetree.model.kernels import AtInstant, is_by_the_book, kernel_for
from kinetree.model.memo import remember
from kinetree.quantities.few_samples import are_few
from kinetree.spatial import Force
from kinetree.spatial.ops import less, select

__all__ = ["forward_dynamics"]


def forward_dynamics(model, arrays):
    """Joint accelerations of mechanisms with loops, (..., nv).

    Args:
        model: the mechanism, with loops or couplings.
        arrays: ``q``, ``qd``, ``tau`` and, if there are any, the external forces.
    """
    if any(map(is_foreign, arrays)):  # samples that the order of elimination does not suit: NaN
        qdd, health = _kernel(model, 0, len(arrays)).call(*arrays)
        return good_samples(qdd, health >= 1)
    if any(_is_traced(a) for a in arrays):
        return _trace_call(model, *arrays)
    core = [len(argument_shape(model, name)) for name in _NAMES[: len(arrays)]]
    if are_few(model.timeless, ("forward_dynamics",), arrays, core):
        return _by_numpy(model, *arrays)
    try:
        qdd, health = _kernel(model, 0, len(arrays)).call(*arrays)
    except TraceError:  # a joint of the user's own that cannot be compiled
        return _by_numpy(model, *arrays)
    return qdd if np.all(health >= 1) else _repair(model, arrays, qdd, health)


def forward_dynamics_program(model):
    """Compiled program of the forward dynamics of a mechanism with loops."""
    return _kernel(model, 0, 3).program


def inverse_dynamics(model, arrays):
    """Joint forces of mechanisms with loops, (..., nv), of least norm if not unique.

    ``forward_dynamics`` returns the acceleration again. The forces are those of the actuated joints
    (those with actuators; all joints of the tree, if there are none), of least sum of squares, and
    those of springs, dampers and friction.

    Args:
        model: the mechanism, with loops or couplings.
        arrays: ``q``, ``qd``, ``qdd`` and, if there are any, the external forces.

    Raises:
        ShapeError: the loops do not allow this position, velocity or acceleration.
        SingularError: the actuated joints cannot produce the acceleration.
        TraceError: inside a kernel; ranks cannot be traced.
    """
    return _inverse_dynamics(model, *arrays)


@on_host
def _inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Actuator forces for a motion of a closed chain, (..., nv)."""
    return actuator_forces(model, actuated_freedoms(model), q, qd, qdd, f_ext).tau


def actuator_forces(
    model,
    freedoms: Actuated,
    q,
    qd,
    qdd,
    f_ext=None,
    *,
    weights=None,
    bounds=(None, None),
    tolerance=CLOSURE_TOLERANCE,
) -> InverseSolution:
    """Forces of the actuated degrees of freedom that produce an acceleration, batched.

    Args:
        model: the mechanism.
        freedoms: its actuated degrees of freedom.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        qdd: joint accelerations, (..., nv).
        f_ext: forces on bodies, (..., body_count, 6), or None.
        weights: of the squared forces, (p,); 1 by default.
        bounds: smallest and largest forces, (p,) each, or None.
        tolerance: loop error [rad, or fraction of the size of the loop] that is allowed as drift.
    """
    q = as_configuration(model, q)
    qd, qdd = as_joint_vector(model, qd, "qd"), as_joint_vector(model, qdd, "qdd")
    if any(x.dtype == object for x in (q, qd, qdd)):
        raise TraceError(
            f"inverse_dynamics of model {model.name!r}, which has loops, decides ranks and cannot "
            f"be traced: call it outside the kernel"
        )
    weights = np.ones(freedoms.count) if weights is None else weights
    given = (q, qd, qdd) if f_ext is None else (q, qd, qdd, f_ext)
    found = _inverse_terms(model, given, freedoms.in_loop_joints)
    check_motion(model, found, qd.astype(float), qdd.astype(float), tolerance)
    batch = found.total.shape[:-1]
    B = freedoms.matrix(np.broadcast_to(q, (*batch, model.nq)).astype(float), found.B_loops)
    samples = []
    for index in np.ndindex(batch):
        try:
            sample = ClosedChainTerms(*(x[index] for x in found))
            samples.append(solution(model, sample, B[index], freedoms, weights, *bounds))
        except SingularError as error:
            raise of_sample(error, index) from None
    sizes = ((freedoms.count,), (model.nv,), *[found.k.shape[-1:]] * 2, (), ())
    kinds = (float, float, float, bool, int, int)
    return InverseSolution(
        *(
            np.array([s[n] for s in samples], kind).reshape((*batch, *size))
            for n, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
        )
    )


def _inverse_terms(model, arrays, with_loop_joints) -> ClosedChainTerms:
    """Constraint and force terms of all samples, compiled where possible."""
    names = ("q", "qd", "qdd", "f_ext")[: len(arrays)]
    shapes = [argument_shape(model, name) for name in names]
    nc, nv = len(rows_of(model)), model.nv
    loops = sum(loop.joint.nv for loop in model.loops) if with_loop_joints else 0
    sizes = ClosedChainTerms((nc, nv), (nc,), (nc,), (nc,), (nv,), (nv,), (nv, loops))
    filled = [n for n, size in enumerate(sizes) if 0 not in size]  # empty ones cannot be compiled

    def text(model, q, qd, qdd, f_ext=None):
        forces = _as_forces(f_ext)
        found = terms(model, q, qd, qdd, forces, with_loop_joints=with_loop_joints)
        return tuple(found[n] for n in filled)

    def reference(model, arrays):
        pairs = [*zip(map(np.asarray, arrays), shapes, strict=True)]
        batch = np.broadcast_shapes(*(a.shape[: a.ndim - len(shape)] for a, shape in pairs))
        count = prod(batch)
        flat = [np.broadcast_to(a, batch + shape).reshape(count, *shape) for a, shape in pairs]
        samples = [text(model, *sample) for sample in zip(*flat, strict=True)]
        parts = [np.array(part, dtype=float) for part in zip(*samples, strict=True)]
        return tuple(part.reshape((*batch, *part.shape[1:])) for part in parts)

    key = ("closed_chains.inverse_dynamics", with_loop_joints)
    kernel = _compile(model, key, names, [sizes[n] for n in filled], text, reference)
    try:
        found = kernel.call(*arrays)
    except TraceError:  # a joint of the user's own that cannot be compiled
        found = reference(model, arrays)
    found = dict(zip(filled, found, strict=True))
    batch = found[4].shape[:-1] if found else ()
    return ClosedChainTerms(
        *(found.get(n, np.zeros((*batch, *size))) for n, size in enumerate(sizes))
    )


def _repair(model, arrays, qdd, health):
    """Accelerations with unreliable samples recomputed by other solvers."""
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
    """Compiled solver by number: accelerations and their health."""

    def check(model, q, *arrays):
        require_unit_parts(model, q)
        return _motion(model, q, *arrays, way=next(islice(ways(model), number, None)))

    def reference(model, arrays):
        qdd = _by_numpy(model, *arrays)
        return qdd, np.ones(qdd.shape[:-1])[()]

    key = ("closed_chains.forward_dynamics", number)
    return _compile(model, key, _NAMES[:count], ((model.nv,), ()), check, reference)


def _compile(model, key, names, sizes, text, reference):
    """Compile a kernel with several results, kept with the model.

    Args:
        model: the mechanism.
        key: of the kernel among those of the model; the first part names the function.
        names: of the arrays that it takes.
        sizes: shapes of the results of one sample.
        text: function of the model and the arrays of one sample.
        reference: function of the model and a list of arrays, where numbers are not plain.
    """
    function, *_ = key
    base, key = model.timeless, (*key, len(names))
    timed = base is not model  # the instant is one more input

    def now(arrays):
        """The model and the other arrays."""
        *arrays, t = arrays if timed else (*arrays, None)
        return base.at(np.asarray(t)[()]) if timed else model, arrays

    def trace_now(*arrays):
        model, arrays = now(arrays)
        return text(model, *arrays)

    def make():
        name = function.rpartition(".")[2]
        inputs = [Argument(n, argument_shape(model, n)) for n in names]
        inputs += [Argument("instant", ())] * timed
        return kernel_for(
            model,
            name,
            inputs,
            [Argument(f"out{n}", size) for n, size in enumerate(sizes)],
            lambda: trace(trace_now, inputs, name),
            reference=lambda arrays: reference(*now(arrays)),
            validate=lambda arrays: validate(model, dict(zip(names, arrays, strict=False))),
            key=None if timed else key,
        )

    if not timed:
        return remember(model, key, make)
    return AtInstant(remember(base, ("at an instant", *key), make), model.instant)


def _way(model, number):
    """Solution method with the given number for a model's loops, or None."""
    try:
        return next(islice(ways(model), number, None), None)
    except SingularError:
        return None


def _motion(model, q, qd, tau, f_ext=None, *, way):
    """Accelerations and their health; zero health where the loops are open."""
    motion = constrained_acceleration(model, q, qd, tau, _as_forces(f_ext), way=way)
    health = motion.health
    for condition in is_closed(model, q, qd, motion.constraints):
        health = select(condition, health, 0)
    return motion.qdd, health


def _trace_call(model, *arrays):
    """Traced forward dynamics in a user's kernel; samples of low health are recomputed outside."""
    arrays = [np.asarray(a) for a in arrays]
    solve = _anywhere if is_by_the_book() else partial(_motion, way=next(ways(model)))
    qdd, health = solve(model, *arrays)
    is_good = less(1, health)
    if not isinstance(is_good, (bool, np.bool_)):
        is_good.require()
    return qdd


def _anywhere(model, q, qd, tau, f_ext=None):
    """Accelerations and health by a method without chosen pivots, if there is one.

    Else for coordinates by orthogonal columns, which have no pivots that were chosen beforehand.
    """
    for way in ways(model):
        if way.method == "range space":
            return _motion(model, q, qd, tau, f_ext, way=way)
    chosen = coordinate_plan(model)
    if chosen is None:
        return _motion(model, q, qd, tau, f_ext, way=next(ways(model)))
    at, health = allowed_motion(model, q, qd, chosen, anywhere=True)
    qdd = at.g + at.response(tau - at.tree_force(at.g, _as_forces(f_ext)))
    return qdd, health()


def _is_traced(a):
    """Whether an array holds symbols of a program that is being traced."""
    a = np.asarray(a)
    return a.dtype == object and any(isinstance(x, Expr) for x in a.ravel())


def _one(model, q, qd, tau, f_ext=None):
    """Accelerations of one sample in Python, also for complex and exact numbers."""
    if any(np.asarray(a).dtype.kind in "cO" for a in (q, qd, tau)):
        return _anywhere(model, q, qd, tau, f_ext)[0]
    return joint_space.forward_dynamics(model, q, qd, tau, _as_forces(f_ext))


def _by_numpy(model, *arrays):
    """Forward dynamics by NumPy, one sample after the other."""
    named = dict(zip(_NAMES, map(np.asarray, arrays), strict=False))
    validate(model, named)
    core = [len(argument_shape(model, name)) for name in named]
    return over_batch(partial(_one, model), named, core=core, shape=(model.nv,))


def _as_forces(f_ext):
    """External forces as a list with None for the base, or None."""
    return None if f_ext is None else [None, *(Force.from_array(f) for f in f_ext)]
