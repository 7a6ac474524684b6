"""Compile a function for the arguments of a call, for functions of functions.

A *traceable* is a function of ``kinetree.quantities``, a ``@kernel``, or a derivative of one.
``bind`` sorts the arguments of a call into model, arrays and options; ``apply`` runs the traceable
for one sample, on numbers of any kind; ``prepare`` compiles it, with the requested model parameters
as inputs.
"""

import copy
import inspect
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from kinetree.algorithms import crba, ltl
from kinetree.algorithms.crba import require_independent_joints
from kinetree.algorithms.propagation import has_full_inertia, joint_inertia_bound
from kinetree.arrays.batch import of_sample
from kinetree.codegen.inline import compact, evaluate, trace_of
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.errors import LoopError, SingularError
from kinetree.expr.calls import calls, calls_to
from kinetree.expr.counting import cost
from kinetree.expr.interpret import holds
from kinetree.functional.call import KernelCall, bound_to, check_arrays
from kinetree.functional.parameters import check_parameter, parameter, with_parameters
from kinetree.model import Model
from kinetree.model.arrays import require_unit_parts
from kinetree.model.define import is_public
from kinetree.model.kernels import by_the_book, is_by_the_book, kernel_for
from kinetree.quantities import FUNCTIONS, dynamics
from kinetree.quantities.external_forces import external_forces
from kinetree.spatial.ops import check_pivot

REPAID_BY_LOOPS = 2**11
"""Samples that repay compiling derivatives of mechanisms with loops: on arrays a single one takes
a hundred times as long, the compiler some seconds."""


@cache
def _signature(function):
    """Signature of a function, cached."""
    return inspect.signature(function)


def require_traceable(function, what):
    """Raise TypeError for a function that cannot be traced: neither public nor a kernel."""
    if not is_public(function) and not hasattr(function, "bind"):
        raise TypeError(
            f"{what} takes a function of kinetree such as kinetree.inverse_dynamics, or one of "
            f"your own under @kinetree.kernel; got {function!r}"
        )


def bind(function, args, options):
    """Arguments of a call sorted into model, arrays and options."""
    if not is_public(function):
        return function.bind(*args, **options)
    bound = bound_to(_signature(function), function.__name__, args, options)
    model, f_ext = bound.arguments["model"], bound.arguments.get("f_ext")
    if not isinstance(model, Model):
        raise TypeError(f"{function.__name__} takes a model first, got {type(model).__name__}")
    method = bound.arguments.get("method")
    if function is dynamics.forward_dynamics and method in ("implicit", "maximal"):
        raise LoopError(
            f"forward_dynamics by method {method!r} decides ranks for every sample, on the CPU "
            f"in Python, and cannot be compiled; leave out the method"
        )
    if isinstance(f_ext, dict):
        bound.arguments["f_ext"] = external_forces(model, f_ext)
    return KernelCall(_signature(function), function.__name__, bound.args, bound.kwargs)


def apply(function, call, model, arrays, recursive=0):
    """Result for one traced sample: an array, or nested tuples and dicts of arrays."""
    if hasattr(function, "trace_sample"):
        return function.trace_sample(call, model, arrays, recursive)
    call = copy.copy(call)
    call.model = model
    arrays = [a if np.shape(a) else np.asarray(a)[()] for a in arrays]
    return call.apply(function if is_public(function) else function.function, arrays)


def map_leaves(f, tree):
    """Nested tuples and dicts with ``f`` applied to every leaf."""
    if isinstance(tree, dict):
        return {key: map_leaves(f, value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return tuple(map_leaves(f, part) for part in tree)
    return f(tree)


def leaves_of(tree):
    """Leaves of nested tuples and dicts, in order."""
    found = []
    map_leaves(found.append, tree)
    return found


class Prepared:
    """A compiled function of arrays, and the form of its result."""

    __slots__ = ("form", "kernel", "plain")

    def __init__(self, kernel, form):
        self.kernel, self.form = kernel, form
        flat = isinstance(form, tuple) and not any(isinstance(x, (tuple, dict)) for x in form)
        self.plain = not isinstance(form, (tuple, dict)) or (flat and len(form) > 1)

    def call(self, *arrays, out=None):
        """Results for arrays with any batch axes."""
        if out is None:
            result = self.kernel.call(*arrays)
        else:
            out = [out] if isinstance(out, list) else list(leaves_of(out))
            result = self.kernel.full(*arrays, out=tuple(out) if len(out) > 1 else out[0])
        if self.plain:
            return result
        flat = iter(result if len(self.kernel.outputs) > 1 else (result,))
        return map_leaves(lambda _: next(flat), self.form)


def prepare(function, call, parameters=()):
    """Compiled form of a function or derivative for a call's model, options and shapes.

    Args:
        function: a traceable.
        call: what ``bind`` returned.
        parameters: names of model parameters that follow the arrays as inputs.
    """
    return _Preparation(function, call, parameters).prepare()


class _Preparation:
    """Parts of the compiled form of a traceable: texts, inputs, checks; see ``prepare``."""

    def __init__(self, function, call, parameters):
        self.function, self.call, self.parameters = function, call, parameters
        self.model, self.count = call.model, len(call.shapes)
        self.name = getattr(function, "__name__", call.name)
        self.root = _innermost(function)
        if is_public(self.root):
            require_solvable(self.root.__name__, self.model, parameters)
        self.extra = [parameter(self.model, name) for name in parameters]
        self.inputs = [Argument(name, shape) for name, shape in call.shapes.items()]
        self.inputs += [Argument(p.name, p.shape) for p in self.extra]
        self._traced_form: Any = None  # of the result, once the function has run

    def prepare(self) -> Prepared:
        """Kernel of the call, and the form of its results."""
        function, call = self.function, self.call
        form, program = result_form(function, call), None
        if form is None:  # the function of a user: only running it tells what it returns
            program = self._program()
            form = map_leaves(lambda x: Argument("out", np.shape(x)), self._traced_form)
        self.outputs = [Argument(f"out{k}", a.shape) for k, a in enumerate(leaves_of(form))]
        key = None
        if self.model is not None and _description(function) is not None:
            key = (_description(function), self.parameters, call.key)
        is_general = not self.parameters and hasattr(function, "general_code")
        self.kernel = kernel_for(
            self.model,
            self.name,
            self.inputs,
            self.outputs,
            self._program if program is None else lambda: program,
            reference=self._reference,
            validate=self._validate,
            key=key,
            general_code=self._general_code if is_general else None,
        )
        if self.model is not None and self.model.is_constrained:
            self.kernel.many = REPAID_BY_LOOPS
        return Prepared(self.kernel, form)

    def _text(self, recursive):
        """Function of one sample's arrays that applies the call; 0: without recursion."""

        def of_arrays(*symbols):
            _require(self.call, self.extra, symbols)
            values = dict(zip(self.parameters, symbols[self.count :], strict=True))
            changed = with_parameters(self.model, values)
            if self.parameters and is_public(self.root):
                require_independent(self.root.__name__, changed, symbols[0], self.parameters)
            result = apply(self.function, self.call, changed, symbols[: self.count], recursive)
            self._traced_form = result
            return tuple(np.asarray(x, dtype=object) for x in leaves_of(result))

        return of_arrays

    def _program(self):
        """Program of the call with the fewest operations."""
        with calls(None):  # derivatives see through everything
            ways = _recursion_count(self.function, self.call)
            if ways == 0:
                return compact(self._trace(0))
            short = cheapest([self._trace(k) for k in range(1, ways + 1)])
            if self.function.estimated_cost(self.call) > cost(short.graph, short.roots):
                return compact(short)
            return compact(cheapest([short, self._trace(0)]))

    def _trace(self, recursive):
        """Program of the call by one of its recursions, or by none."""
        return trace(self._text(recursive), self.inputs, self.name)

    @cached_property
    def _exact_program(self):
        """Program by reference algorithms, for exact numbers and unusual configurations."""
        with by_the_book():
            return self._program()

    def _validate(self, arrays):
        """Raise errors for arguments and parameters with wrong shapes or values."""
        check_arrays(self.call.with_arrays(arrays[: self.count]))
        for p, array in zip(self.extra, arrays[self.count :], strict=True):
            check_parameter(p, array)

    def _reference(self, arrays):
        """Results in Python without compiled code; a call or its formula when traced."""
        model, count = self.model, self.count
        if all(a.dtype.kind in "fiub" for a in arrays):  # a check has failed: say why, if we can
            values = dict(zip(self.parameters, arrays[count:], strict=True))
            changed = with_parameters(model, values)
            _run_plainly(self.function, self.call, changed, arrays[:count])
            if model is not None and model.is_constrained:  # pivots that do not suit all samples
                _require_good(self._exact_program, arrays, model)
                return evaluate(self._exact_program, arrays)
        graph = trace_of(arrays)
        if graph is not None and calls_to() == "general" and not is_by_the_book():
            found = self.kernel.called_once(graph, arrays)
            if found is not None:
                return found
        is_exact = graph is None and any(a.dtype == object for a in arrays)
        return evaluate(self._exact_program if is_exact else self.kernel.program, arrays)

    def _general_code(self):
        """Kernel of the call by general code for every robot, or None."""
        given = self.call, self.inputs, self.outputs, self._reference, self._validate
        return self.function.general_code(*given)


def _require_good(program, arrays, model):
    """Raise SingularError for a sample where a closed chain has no derivative."""
    good = holds(program, *arrays)
    if not np.all(good):
        sample = np.argwhere(~good)[0]
        error = SingularError(
            f"{program.name} is lost to rounding errors in this configuration of model "
            f"{model.name!r}: the coordinates chosen for its loops or constraints hardly determine "
            f"the motion here; choose others, where independent= does, or move away from it"
        )
        raise of_sample(error, sample)


def _require(call, parameters, symbols):
    """Trace run-time checks of the inputs: unit quaternions, valid parameters."""
    arrays = dict(zip(call.shapes, symbols, strict=False))
    if call.model is not None and "q" in arrays:
        require_unit_parts(call.model, arrays["q"])
    for p, symbol in zip(parameters, symbols[len(call.shapes) :], strict=True):
        for condition in p.conditions(symbol):
            condition.require()


def result_form(function, call):
    """Shapes of a result without running the function; None if it must be run."""
    if hasattr(function, "trace_sample"):
        return function.result_form(call)
    definition = getattr(function, "definition", None)
    if definition is None or not is_public(function):
        return None
    return Argument("out", definition.shape_of(call.model, call.options))


def _description(function):
    """Text or tuple that identifies a function in every process, or None."""
    if hasattr(function, "trace_sample"):
        return function.description(_description)
    return function.__name__ if is_public(function) else None


def _recursion_count(function, call):
    """Number of recursive algorithms for a derivative; 0 for other functions."""
    return function.recursion_count(call) if hasattr(function, "trace_sample") else 0


def _innermost(function):
    """Function that nested derivatives are of."""
    while hasattr(function, "trace_sample"):
        function = function.function
    return function


def _run_plainly(function, call, model, arrays):
    """Run the innermost function on numbers, so that its errors are raised."""
    while hasattr(function, "trace_sample"):
        function, call, arrays = function.inside(call, arrays)
    apply(function, call, model, arrays)


# --- Reject what is singular in every configuration, as the public functions do ------------------
# Before it is compiled, as far as that is known; what depends on parameters, when the code runs.


def require_solvable(name, model, parameters=()):
    """Raise SingularError if joints move no inertia, for any inputs.

    Args:
        name: of a public function.
        model: the mechanism.
        parameters: names of parameters of the model that are inputs: they could have any value.
    """
    if not _inverts_inertia(name) or not model.nv:
        return
    if model.is_constrained:  # a joint that moves no inertia by itself may be driven by others
        return
    rng = np.random.default_rng(0)
    values = {p: _typical(parameter(model, p), model, rng) for p in parameters}
    require_independent_joints(with_parameters(model, values), name)


def require_independent(name, model, q, parameters):
    """Trace a run-time check that all joints move inertia, whatever the parameters.

    A motion that needs no force leaves bodies with full inertia where they are. So it is enough to
    look at the other ones, hung up at their parents, with bodies of full inertia at their ends. The
    pivots of their inertia matrix are compared with its rounding errors: these are proportional to
    the inertia beyond each joint about any axis, not just its own.

    Args:
        name: of a public function.
        model: the mechanism, with traced parameters.
        q: joint positions, traced.
        parameters: the names of these parameters.
    """
    if not _inverts_inertia(name) or not parameters:
        return
    part, q = _without_full_inertia(model, q)
    H, IC, S = crba.composite_bodies(part, q)
    lam, one = part.expanded_parent, np.eye(part.nv, dtype=int)
    L = ltl.ltdl(H, lam)
    bound = np.array(
        [
            joint_inertia_bound(IC[i], S[i], k)
            for i, at in enumerate(part.v_slice)
            for k in range(at.stop - at.start)
        ]
    )
    for k in range(part.nv):
        x = ltl.solve_l(L, lam, one[k], unit=True)  # D[k] is the least inertia with x[k] = 1
        scale = part.nv * (x * x) @ bound
        check_pivot(L[k, k], scale, lambda: f"{name} is singular for all parameters")


def _inverts_inertia(name):
    """Whether a public function divides by inertia, as forward dynamics does."""
    definition = getattr(FUNCTIONS.get(name), "definition", None)
    return definition is not None and definition.inverts_inertia


def _without_full_inertia(model, q):
    """Bodies without known full inertia, with what they carry, and the model in ``q``."""
    lam = model.parent
    weak = [False, *(not has_full_inertia(I) for I in model.inertia[1:])]
    kept = [i for i in range(1, len(weak)) if weak[i] or weak[lam[i]]]
    number = {old: new for new, old in enumerate(kept, start=1)}
    bodies = [
        replace(model.bodies[i - 1], parent=number[lam[i]] if weak[lam[i]] else 0) for i in kept
    ]
    part = Model(tuple(bodies), gravity=np.zeros(3, dtype=int))
    return part, np.concatenate([np.zeros(0, dtype=object), *(q[model.q_slice[i]] for i in kept)])


def _typical(p, model, rng):
    """Random generic value of a parameter, for estimates of rank."""
    kind = p.name.partition(":")[0]
    if kind == "inertia":
        ball = np.array([1, 0, 0, 0, 1, 0, 1, 0, 0, 1.0])
        return np.broadcast_to(ball, p.shape)
    if kind == "placement":
        T = np.eye(4)
        T[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        T[:3, :3] *= np.sign(np.linalg.det(T[:3, :3]))
        T[:3, 3] = rng.standard_normal(3)
        return T
    return p.value(model)
