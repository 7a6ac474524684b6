"""Products with derivatives that never form the derivative: ``J v`` and ``wᵀ J``.

    push = kt.jvp(kt.inverse_dynamics, wrt=("q", "qd"))
    dtau = push(m, q, qd, qdd, tangents=(dq, dqd))

    pull = kt.vjp(kt.inverse_dynamics, wrt=("q", "qd"))
    g_q, g_qd = pull(m, q, qd, qdd, cotangent=w)

Each is one pass over the graph of the function, forward or backward, and costs a few times as much
as the function, whatever the number of its variables. Reverse mode through ``kinetree.repeat`` is
not supported: there ``vjp`` uses forward mode along all directions.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kinetree.arrays.kinds import is_foreign
from kinetree.codegen.inline import trace_of
from kinetree.codegen.program import Argument, Traced, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.errors import ShapeError
from kinetree.expr.calls import call as call_in
from kinetree.expr.diff import jacobian
from kinetree.functional import closed, geared
from kinetree.functional.ahead import CompiledFunction
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.prepare import apply, leaves_of, map_leaves, result_form
from kinetree.functional.transformed import (
    Transformed,
    Variables,
    checked_wrt,
    kept_with,
    takes_states,
    with_group,
)
from kinetree.model import Model
from kinetree.model.arrays import require_unit_parts
from kinetree.model.define import is_public


def jvp(function: Callable[..., Any], wrt: Any) -> Callable[..., Any]:
    """Jacobian-vector product ``J v``: rate of a function along a tangent, as a function.

    Args:
        function: what ``kinetree.differentiate`` takes, such as ``kinetree.inverse_dynamics``.
        wrt: with respect to what, a name or a tuple of names, as for ``kinetree.differentiate``.

    Returns:
        A function of the same arguments and ``tangents``, one array for a name or a tuple of arrays
        for a tuple of names, each shaped like the last axes of the derivative, (nv,) for ``q``.
        It returns what the function returns, with any batch axes.
    """
    return _product(JacobianVectorProduct, function, wrt, "kinetree.jvp")


def vjp(function: Callable[..., Any], wrt: Any) -> Callable[..., Any]:
    """Vector-Jacobian product ``wᵀ J``: gradient of a weighted sum of results, as a function.

    Args:
        function: what ``kinetree.differentiate`` takes.
        wrt: with respect to what, a name or a tuple of names.

    Returns:
        A function of the same arguments and ``cotangent``, the weights, in the form and shape of
        the result of the function. It returns one array for a name and a tuple of arrays for a
        tuple of names: (nv,) for ``q``, the shape of the argument otherwise.
    """
    return _product(VectorJacobianProduct, function, wrt, "kinetree.vjp")


def _product(kind, function, wrt, what):
    """Product of a derivative with a vector, for functions and other products."""
    if isinstance(function, CompiledFunction):
        wrt = with_group(wrt, "parameters", function.parameters)
        return function.with_function(_product(kind, function.function, wrt, what))
    wrt = checked_wrt(function, wrt, what)
    inner = function
    while isinstance(inner, Transformed):
        if isinstance(inner, kind):
            raise TypeError(
                f"{what} of {inner!r} would take two arguments {kind.keyword!r}; call the inner "
                f"one in a function of your own under @kinetree.kernel"
            )
        inner = inner.function
    # the same product twice is one object, with one set of kernels
    return kept_with(function, (kind, wrt), lambda: kind(function, wrt))


class Product(Transformed):
    """A function of the arguments of another and of a vector that is given by keyword.

    Attributes:
        keyword: name of the vector.
        by: name of the derivative of a kernel that is the product.
    """

    keyword: str
    by: str

    def __call__(self, model=None, *arrays, **options) -> Any:
        """The product for the arguments that the function takes, and the vector."""
        if len(options) == 1 and type(model) is Model:  # as in an earlier call
            known = model.memo.get(self)
            if known is not None and known[0] == len(arrays):
                parts = _plain_parts(options.get(self.keyword))
                if len(arrays) + len(parts) == len(known[1].inputs):
                    return known[1].call(*arrays, *parts)
        return super().__call__(model, *arrays, **options)

    def is_plain(self, call, count, options):
        """Whether all calls of this form pass the same plain arrays and no other arguments."""
        return (
            set(options) == {self.keyword}
            and len(_plain_parts(options[self.keyword])) == len(call.shapes) - count
            and takes_states(self.function, call.inner, count)
            and self.prepare_call(call).plain
        )

    def bind(self, *args, **options):
        """Call of the function, extended by the arrays of the given vector."""
        if options.get(self.keyword) is None:
            raise TypeError(f"{self.__name__} needs {self.keyword}=..., {self.vector_form()}")
        vector = options.pop(self.keyword)
        call = super().bind(*args, **options)
        values, shapes = {}, {}
        for name, shape, value in self.parts(call, vector):
            values[name], shapes[name] = value, shape
        return call.extend(values, shapes)

    def inside(self, call, arrays):
        """Function with the inner call and arrays, without the vector's arrays."""
        return self.function, call.inner, arrays[: len(call.inner.arrays)]

    def general_code(self, call, inputs, outputs, reference, validate):
        """Kernel of the product by calls of general code, or None."""
        inner, definition = call.inner, getattr(self.function, "definition", None)
        names, model = tuple(inner.arrays), inner.model
        if definition is None or not is_public(self.function) or model is None:
            return None
        if model.couplings or model.is_constrained:
            return self._of_arrays(inner, inputs, outputs, reference, validate)
        extra = names[len(definition.required) :]
        plain = names == (*definition.required, *extra) and set(extra) <= set(definition.optional)
        if not plain or not self._are_given(inner):
            return None
        function = definition.kernel(model, extra, **inner.options).general_kernel
        if not isinstance(function, LoopKernel):  # whose derivatives are loops, too
            return None
        derived = getattr(function, self.by)(tuple(names.index(n) for n in self.entries()))
        if derived is None:
            return None

        def text(*symbols):
            own, vector = symbols[: len(names)], symbols[len(names) :]
            arrays = dict(zip(names, own, strict=True))
            if "q" in arrays:
                require_unit_parts(model, arrays["q"])
            return self.by_call(model, arrays, derived, vector)

        traced = Traced(lambda: trace(text, inputs, self.__name__), "general")
        plain = Kernel(
            self.__name__, inputs, outputs, traced, reference=reference, validate=validate
        )
        return plain.with_general_calls()

    def _of_arrays(self, call, inputs, outputs, reference, validate):
        """Kernel of the product on batched arrays, for geared models and closed loops; or None."""
        if not self._are_given(call):
            return None
        derivative = differentiate(self.function, self.entries())
        if call.model.couplings:
            whole = geared.derivative_on_arrays(derivative, call)
        else:
            whole = closed.derivative_on_arrays(derivative, jvp, call)
        if whole is None:
            return None
        along = isinstance(self, JacobianVectorProduct)
        found = Kernel(self.__name__, inputs, outputs, None, reference=reference, validate=validate)
        found.on_arrays = geared.product_on_arrays(whole, len(call.shapes), along)
        return found

    def _are_given(self, call):
        """Whether all variables are arrays of the call, each named once."""
        entries = self.entries()
        return len(set(entries)) == len(entries) and all(n in call.arrays for n in entries)

    @abstractmethod
    def by_call(self, model, arrays, derived, vector) -> tuple:
        """Product for traced arrays and vector parts, by a call of the kernel ``derived``."""

    @abstractmethod
    def vector_form(self) -> str:
        """Shape that the vector must have, in words."""

    @abstractmethod
    def parts(self, call, vector) -> Iterator[tuple]:
        """Name, shape and value of every array of the vector, for a call of the function."""

    def evaluate(self, call, model, arrays, recursive):
        """Variables as symbols, the function's result, and the parts of the vector."""
        variables = Variables(call, model, arrays, tuple(self.names()))
        function, inner, own = self.inside(call, variables.arrays)
        y = apply(function, inner, variables.model, own, recursive)
        return variables, y, variables.arrays[len(own) :]


class JacobianVectorProduct(Product):
    """The rate of ``function`` along tangents of ``wrt``."""

    kind, keyword, by = "rate", "tangents", "rates"

    def by_call(self, model, arrays, derived, vector):
        """Traced rates by a call of ``derived``, which takes rates of the coordinates of ``q``."""
        rates = [
            model.configuration_rate(arrays["q"], v) if name == "q" else v
            for name, v in zip(self.entries(), vector, strict=True)
        ]
        given = [*arrays.values(), *rates]
        return call_in(trace_of(given), derived, given)

    def vector_form(self):
        """Shapes that the tangents must have, in words."""
        if isinstance(self.wrt, tuple):
            return f"a tuple of arrays, one each for {', '.join(map(str, self.wrt))}"
        return f"an array of the shape in which {self.wrt} can move"

    def parts(self, call, vector):
        """Tangent arrays for every entry of ``wrt``, with names and shapes."""
        if not isinstance(self.wrt, tuple):
            vector = (vector,)
        elif not isinstance(vector, (tuple, list)) or len(vector) != len(self.wrt):
            raise ShapeError(f"{self.__name__}: tangents must be {self.vector_form()}")
        for k, (entry, value) in enumerate(zip(self.entries(), vector, strict=True)):
            at = f"[{k}]" if isinstance(self.wrt, tuple) else ""
            yield f"tangents{at}", self.tangent(call, entry), value

    def result_form(self, call):
        """Form of the function's result, which the product shares."""
        return result_form(self.function, call.inner)

    def trace_sample(self, call, model, arrays, recursive=0):
        """Product for one traced sample, by forward mode along one direction."""
        variables, y, tangents = self.evaluate(call, model, arrays, recursive)
        directions = [d for name in self.names() for d in variables.directions[name]]
        direction = {}
        for d, rate in zip(directions, (x for t in tangents for x in np.ravel(t)), strict=True):
            for i, derivative in d.items():
                direction[i] = direction.get(i, 0) + derivative * rate
        leaves = [np.asarray(leaf, dtype=object) for leaf in leaves_of(y)]
        flat = np.concatenate([leaf.ravel() for leaf in leaves])
        rates = variables.restore(jacobian(variables.graph, flat, [direction], "forward")[:, 0])
        found = iter(np.split(rates, np.cumsum([leaf.size for leaf in leaves])[:-1]))
        return map_leaves(lambda leaf: next(found).reshape(np.shape(leaf)), y)


class VectorJacobianProduct(Product):
    """The gradient, with respect to ``wrt``, of a weighted sum of the results of ``function``."""

    kind, keyword, by = "gradient", "cotangent", "gradients"

    def by_call(self, model, arrays, derived, vector):
        """Traced gradients by a call of ``derived``; that of ``q`` is converted to tangents."""
        given = [*arrays.values(), *vector]
        found = call_in(trace_of(given), derived, given)
        return tuple(
            _along_tangents(model, arrays["q"], x) if name == "q" else x
            for name, x in zip(self.entries(), found, strict=True)
        )

    def vector_form(self):
        """Shape that the cotangent must have, in words."""
        return "weights in the form of what the function returns"

    def parts(self, call, vector):
        """Weight arrays for every part of the result, with names and shapes."""
        yield from _match(self._form(call), vector, "cotangent", self.__name__)

    def _form(self, call):
        """Form of the function's result; a user's function is run to know it."""
        form = result_form(self.function, call)
        if form is not None:
            return form
        kernels = self._kernels if call.model is None else call.model.memo
        key = (self, "form", call.key)
        if key not in kernels:

            def of_arrays(*symbols):
                y = apply(self.function, call, call.model, symbols)
                kernels[key] = map_leaves(lambda x: Argument("out", np.shape(x)), y)
                return tuple(np.asarray(x, dtype=object) for x in leaves_of(y))

            trace(of_arrays, [Argument(name, shape) for name, shape in call.shapes.items()])
        return kernels[key]

    def result_form(self, call):
        """Form of the product: a gradient for every entry of ``wrt``."""
        return self.pack([Argument("out", self.tangent(call, e)) for e in self.entries()])

    def trace_sample(self, call, model, arrays, recursive=0):
        """Product for one traced sample, by reverse mode; forward mode where there are loops."""
        variables, y, weights = self.evaluate(call, model, arrays, recursive)
        leaves = [np.ravel(np.asarray(leaf, dtype=object)) for leaf in leaves_of(y)]
        total = sum((np.ravel(w) @ leaf for w, leaf in zip(weights, leaves, strict=True)), 0)
        directions = [d for name in self.names() for d in variables.directions[name]]
        gradient = variables.restore(jacobian(variables.graph, np.array([total]), directions)[0])
        shapes = [self.tangent(call, entry) for entry in self.entries()]
        sizes = [int(np.prod(shape, dtype=int)) for shape in shapes]
        parts = np.split(gradient, np.cumsum(sizes)[:-1])
        return self.pack([p.reshape(s) for p, s in zip(parts, shapes, strict=True)])


def _along_tangents(model, q, gradient):
    """Gradient in velocity variables, (nv,), from one by the coordinates of ``q``."""
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        parts.append(model.joint[i].rate_matrix(q[at]).T @ gradient[at])
    return np.concatenate(parts)


def _plain_parts(vector):
    """Arrays of a vector given as one array or a tuple; empty for other forms."""
    if isinstance(vector, tuple) and len(vector) > 1:
        return vector
    return (vector,) if isinstance(vector, np.ndarray) or is_foreign(vector) else ()


def _match(form, value, path, name):
    """Arrays of ``value`` with names and shapes; ShapeError unless it has the given form."""
    if isinstance(form, dict):
        if not isinstance(value, dict) or set(value) != set(form):
            raise ShapeError(f"{name}: {path} must be a dict with the keys {sorted(form)}")
        for key, part in form.items():
            yield from _match(part, value[key], f"{path}[{key!r}]", name)
    elif isinstance(form, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(form):
            raise ShapeError(f"{name}: {path} must be a tuple of {len(form)} arrays")
        for k, part in enumerate(form):
            yield from _match(part, value[k], f"{path}[{k}]", name)
    else:
        yield path, form.shape, value


# --- What axes that turn with the body do to small changes of a configuration --------------------
# For joints whose ``qd`` is the derivative of ``q``, configurations add like vectors. Others, such
# as spherical joints, live on a curved manifold, in which directions do not commute.


@kernel
def _rate(m, q, qd):
    """Kernel: rate ``dq/dt`` of the position variables."""
    return m.configuration_rate(q, qd)


@kernel
def _integrate(m, q, qd):
    """Kernel: configuration after a displacement ``qd``."""
    return m.integrate(q, qd)


_rate_matrix = differentiate(_rate, wrt="qd")
_rate_by_position = differentiate(_rate, wrt="q")
_rate_matrix_along = jvp(_rate_matrix, wrt="q")
_moved_derivatives = differentiate(_integrate, wrt=("q", "qd"))


def is_vector_space(model) -> bool:
    """Whether all velocity variables are derivatives of position variables."""
    return all(joint.rates_are_velocities for joint in model.joint[1:])


def brackets(model, q, qd):
    """Matrices (..., nv, nv) of the Lie bracket ``dq -> [dq, qd]`` of the joints.

    With ``dq/dt = Q(q) qd``, the directions ``Q dq`` and ``Q qd`` as fields over all configurations
    have the bracket ``∂(Q qd) Q dq - ∂(Q dq) Q qd``.
    """
    if is_vector_space(model) or not np.any(qd):
        return np.zeros((*np.shape(qd), model.nv))
    bracket = _rate_by_position(model, q, qd) - _rate_matrix_along(model, q, qd, tangents=qd)
    return _velocities(model, q, bracket)


def step_derivatives(model, q, dv):
    """Derivatives of ``integrate(q, dv)`` by both arguments, in tangent coordinates."""
    if is_vector_space(model):
        return np.eye(model.nv), np.eye(model.nv)
    end = _integrate(model, q, dv)
    return [_velocities(model, end, rates) for rates in _moved_derivatives(model, q, dv)]


def _velocities(model, q, rates):
    """Velocity variables for given rates ``dq/dt``, column by column."""
    Q = _rate_matrix(model, q, np.zeros(model.nv))
    Q_T = np.swapaxes(Q, -1, -2)
    return np.linalg.solve(Q_T @ Q, Q_T @ rates)
