"""The quantities of a model, compiled; ``catalogue`` lists them.

``quantity(model, name)`` is the kernel of a quantity for one model, traced and compiled when it is
first called. Where several algorithms give the same quantity, all are traced and the one with the
fewest operations is kept; so it is where the quantity is part of a larger trace.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.crba import require_independent_joints
from kinetree.algorithms.sparsity import sparsity
from kinetree.algorithms.task_space import task_rows
from kinetree.arrays import dispatch  # noqa: F401  (kernels take arrays of other libraries)
from kinetree.arrays.batch import over_batch
from kinetree.codegen.inline import evaluated, shortest, trace_of
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import LoopError
from kinetree.model.arrays import (
    as_configuration,
    as_joint_vector,
    as_model,
    require_unit_parts,
)
from kinetree.model.equivalence import code_key
from kinetree.model.fingerprint import is_plain
from kinetree.quantities.catalogue import FUNCTIONS, Function
from kinetree.spatial import Force

__all__ = ["FUNCTIONS", "Function", "by_the_book", "quantity", "result_shape"]

_BY_THE_BOOK = ContextVar("by_the_book", default=False)


@contextmanager
def by_the_book():
    """Trace the first algorithm of every quantity, whatever it costs.

    Others combine numbers of the model beforehand, with the rounding errors of floats.
    """
    token = _BY_THE_BOOK.set(True)
    try:
        yield
    finally:
        _BY_THE_BOOK.reset(token)


def quantity(model, name, extra=(), **options):
    """The kernel of a quantity for a model.

    Args:
        model: the mechanism.
        name: a key of ``FUNCTIONS``.
        extra: names of optional arrays that follow the others: ``"f_ext"``, ``"point"``, ....
        options: what the algorithm is specialised for, such as the name of a frame.
    """
    key = (name, extra, *sorted(options.items())) if extra or options else name
    kernel = as_model(model).quantities.get(key)
    if kernel is None:
        kernel = model.quantities[key] = _build(model, name, extra, options, key)
    return kernel


def _build(model, name, extra, options, key):
    function, called = FUNCTIONS[name], public_name(name)
    if function.needs_tree:
        require_tree(model, called)
    if function.inverts_inertia:
        require_independent_joints(model, called)
    names = function.arguments + extra
    inputs = [Argument(n, argument_shape(model, n, options)) for n in names]
    shape = result_shape(model, name, options)
    candidates = [a for a in function.algorithms if _is_worth_tracing(model, a)]
    algorithms = [_bound(model, a, names, len(extra), options) for a in candidates]

    def by(algorithm, arrays):
        core = [len(i.shape) for i in inputs]
        named = dict(zip(names, arrays, strict=True))
        return over_batch(algorithm, named, core=core, shape=shape)

    def reference(arrays):
        graph = trace_of(arrays)
        if graph is None or len(algorithms) == 1 or _BY_THE_BOOK.get():
            return by(algorithms[0], arrays)
        if model.scalar_type().kind == "O":  # parameters of the model are traced, too
            return shortest([partial(by, a, arrays) for a in algorithms], graph)
        return evaluated(kernel.program, arrays)

    def make_program():
        traced = [trace(_checked(model, a), inputs, name) for a in algorithms]
        return cheapest(traced)

    kernel = Kernel(
        called,
        inputs,
        [Argument("out0", shape)],
        make_program,
        reference=reference,
        validate=lambda arrays: validate(model, dict(zip(names, arrays, strict=True))),
        key=(code_key(model), key) if is_plain(model) else None,
    )
    return kernel


def public_name(name):
    """What the caller of a quantity has called."""
    name = name.removesuffix("_aba").removesuffix("_crba")
    return "hybrid_dynamics" if name == "hybrid" else name


_SMALL = 10
_BY_FACTORS = (fewest.forward_dynamics_by_inertia_matrix, fewest.inverse_mass_matrix_by_factors)


def _is_worth_tracing(model, algorithm):
    """Whether an algorithm can be the shortest; factors of a deep tree cannot, and take long."""
    if hasattr(algorithm, "as_built"):  # zeros of large robots are not worth tracing all twice
        return model.nv <= _SMALL and _is_worth_tracing(model, algorithm.as_built)
    if algorithm not in _BY_FACTORS:
        return True
    return 100 * model.nv >= sparsity(model.expanded_parent).D2


def result_shape(model, name, options):
    """Shape of one sample of a quantity."""

    def size(n):
        if callable(n):
            return n(model, options)
        return getattr(model, n) if isinstance(n, str) else n

    return tuple(map(size, FUNCTIONS[name].shape))


def argument_shape(model, name, options=None):
    """Shape of one sample of a named argument."""
    if name in _TASK_ARRAYS:
        return (len(task_rows((options or {}).get("rows"))),)
    shapes = {"q": (model.nq,), "f_ext": (model.body_count, 6), "point": (3,), "damping": ()}
    return shapes.get(name, (model.nv,))


_TASK_ARRAYS = ("acceleration", "force")
"""Arguments with one number for each coordinate of a task."""


def _bound(model, algorithm, names, extra, options):
    """The algorithm as a function of arrays alone; the last ``extra`` of them have names."""

    def of_arrays(*arrays):
        named = dict(zip(names, arrays, strict=True))
        if "f_ext" in named:
            named["f_ext"] = [None, *(Force.from_array(f) for f in named["f_ext"])]
        state = [named.pop(name) for name in names[: len(names) - extra]]
        return algorithm(model, *state, **named, **options)

    return of_arrays


def _checked(model, algorithm):
    """The algorithm, and conditions on ``q`` that the compiled code must check."""

    def with_checks(q, *arrays):
        require_unit_parts(model, q)
        return algorithm(q, *arrays)

    return with_checks


def validate(model, arrays):
    """Raise for wrong shapes, numbers that are not finite, quaternions not of unit length."""
    for name, array in arrays.items():
        if name == "q":
            as_configuration(model, array)
        elif name in ("f_ext", "point", "damping", *_TASK_ARRAYS):
            continue  # checked by the public function, which knows what the caller wrote
        else:
            as_joint_vector(model, array, name)


def require_tree(model, function):
    """Raise LoopError when the model has loops."""
    if model.loops:
        raise LoopError(
            f"{function} is not defined for model {model.name!r}, whose joint "
            f"{model.loops[0].name!r} closes a loop: its joint forces are not independent. "
            f"forward_dynamics(model, ...) and loops.inverse_dynamics(model, ...) honour loops; "
            f"model.replace(loops=()) is the spanning tree alone"
        )
