"""``differentiate``: the derivative of a function is a function, compiled like any other.

    d = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    dtau_dq, dtau_dqd = d(m, q, qd, qdd)

Derivatives with respect to ``q`` are in the tangent space: column ``j`` is the derivative along
``model.integrate(q, t e_j)`` at ``t = 0``. So are those of derivatives: entry ``[..., j, k]`` of a
second derivative is the derivative along ``e_k`` of entry ``[..., j]`` of the first. Where the axes
of a joint do not commute (spherical, free, planar) it is not symmetric in ``j`` and ``k``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kinetree.algorithms import aba_derivatives, coupled, ltl, regressors, rnea_derivatives
from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.rnea_derivatives import is_applicable
from kinetree.codegen.inline import trace_of
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.expr.calls import call as call_in
from kinetree.expr.diff import estimates, jacobian
from kinetree.functional import closed
from kinetree.functional.ahead import CompiledFunction
from kinetree.functional.geared import derivative_on_arrays
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
from kinetree.model.array_arguments import ARRAYS
from kinetree.model.arrays import require_unit_parts
from kinetree.model.define import FUNCTIONS, is_public
from kinetree.model.general.kernels import loop_kernel, record_text, with_parameters_of
from kinetree.model.general.tables import Marked, data_of
from kinetree.spatial import Force
from kinetree.spelling import explains


@explains
def differentiate(function: Callable[..., Any], wrt: Any, *, order: int = 1) -> Callable[..., Any]:
    """Derivative of a function, as a function of the same arguments.

    Args:
        function: a function of kinetree such as ``kinetree.inverse_dynamics``, a function of your
            own under ``@kinetree.kernel``, a derivative of either, or what ``kinetree.compile``
            returned.
        wrt: with respect to what: the name of an array argument; or of a parameter of the model,
            such as ``"gravity"`` or ``"inertia:link3"`` (see ``functional.parameters``); or
            ``"parameters"``, all inertias in one axis of ``10 body_count`` (of a compiled
            function: all its parameters). Or a tuple of names.
        order: how often to differentiate.

    Returns:
        A function that returns one array for a name and a tuple of arrays for a tuple of names,
        nested once for each order. Its arrays have the axes of the function's result, then one
        set of axes for each derivative: (nv,) for ``q``, the shape of the argument otherwise,
        (6,) for a placement. It takes ``out=``, an array or tuple of arrays to write to.
    """
    if isinstance(function, CompiledFunction):
        wrt = with_group(wrt, "parameters", function.parameters)
        return function.with_function(differentiate(function.function, wrt, order=order))
    wrt = checked_wrt(function, wrt, "kinetree.differentiate")
    if order not in range(1, 9):
        raise ValueError(f"order must be an integer from 1 to 8, got {order!r}")
    for _ in range(order):
        function = _derivative(function, wrt)
    return function


_SHARED = 0.3  # of the operations that are estimated, what remains after simplification; at least


def _derivative(function, wrt):
    """Derivative object of a function; the same one for equal arguments."""
    return kept_with(function, (Derivative, wrt), lambda: Derivative(function, wrt))


class Derivative(Transformed):
    """The derivative of ``function`` with respect to ``wrt``, a name or a tuple of names."""

    kind = "derivative"

    def __call__(self, model=None, *arrays, **options) -> Any:
        """The derivative for the arguments that the function takes."""
        if not options and type(model) is Model:  # as in an earlier call
            known = model.memo.get(self)
            if known is not None and known[0] == len(arrays):
                return known[1].call(*arrays)
        return super().__call__(model, *arrays, **options)

    def is_plain(self, call, count, options):
        """Whether all calls of this form pass the same plain arrays and no other arguments."""
        return not options and takes_states(self.function, call, count)

    def result_form(self, call):
        """Shapes of the derivative without running the function; None if it must be run."""
        form = result_form(self.function, call)
        if form is None:
            return None
        return map_leaves(
            lambda y: self.pack(
                [
                    Argument("out", (*y.shape, *self.tangent(call, entry)))
                    for entry in self.entries()
                ]
            ),
            form,
        )

    # --- on traced numbers -------------------------------------------------------------------

    def recursion_count(self, call):
        """Number of recursive algorithms that give the innermost derivative."""
        if not is_public(self.function):
            return super().recursion_count(call)
        return len(self._recursions(call))

    def _recursions(self, call) -> Any:
        """Recursive algorithms for the derivative."""
        return recursions(self.function.__name__, call.model, tuple(self.names()))

    def general_code(self, call, inputs, outputs, reference, validate):
        """Kernel of the derivative by loops that serve every robot, or None."""
        entries, names = self.entries(), tuple(i.name for i in inputs)
        if call.model is not None and call.model.couplings:
            return self._of_gears(call, inputs, outputs, reference, validate)
        if call.model is not None and call.model.is_constrained:
            return self._of_loops(call, inputs, outputs, reference, validate)
        if (bodies := self._inertial_bodies(call)) is not None:
            return self._by_inertias(call, bodies, inputs, outputs, reference, validate)
        data = (
            data_of(call.model) if call.model is not None and self.recursion_count(call) else None
        )
        repeated = len(set(entries)) < len(entries)
        if data is None or repeated or not is_public(self.function):
            return None
        name = self.function.__name__
        of = _GENERAL[name]

        def text(model, *arrays):
            found = of(model, entries, **dict(zip(names, arrays, strict=True)))
            return tuple(found[entry] for entry in entries)

        key, shapes = (self.__name__, entries, names), {n: ARRAYS[n].shape for n in names}
        source = record_text(text, key, shapes, configurations=("q",))
        doors = {"reference": reference, "validate": validate}
        return loop_kernel(source, self.__name__, inputs, outputs, data, **doors)

    def _inertial_bodies(self, call):
        """Numbers of the bodies if only inertia parameters are varied, else None."""
        model, names = call.model, tuple(self.names())
        if len(names) != 1 or not is_public(self.function) or model is None:
            return None
        kind, _, body = names[0].partition(":")
        if kind != "inertia" or model.is_constrained or model.couplings:
            return None
        return [model.body_index(body)] if body else list(range(1, model.body_count + 1))

    def _by_inertias(self, call, bodies, inputs, outputs, reference, validate):
        """Kernel of the derivative by inertia parameters of some bodies, by regressors."""
        of = _GENERAL_BY_INERTIAS.get(self.function.__name__)
        data, names = data_of(call.model), tuple(i.name for i in inputs)
        if of is None or data is None:
            return None

        def text(model, *arrays):
            return of(model, **dict(zip(names, arrays, strict=True)), bodies=Marked())

        key, shapes = (self.__name__, "inertia", names), {n: ARRAYS[n].shape for n in names}
        source = record_text(text, key, shapes, configurations=("q",), marks=True)
        doors = {"reference": reference, "validate": validate}
        data = with_parameters_of(data, bodies)
        return loop_kernel(source, self.__name__, inputs, outputs, data, **doors)

    def _of_gears(self, call, inputs, outputs, reference, validate):
        """Kernel of the derivative for models with linear couplings, or None."""
        if not is_public(self.function):
            return None
        on_arrays = derivative_on_arrays(self, call)
        if on_arrays is None:
            return None
        traced = self._by_calls(call, inputs)
        found = Kernel(
            self.__name__, inputs, outputs, traced, reference=reference, validate=validate
        )
        found.on_arrays, found.calls_general_code = on_arrays, traced is not None
        return found

    def _of_loops(self, call, inputs, outputs, reference, validate):
        """Kernel of the derivative for closed loops, on batched arrays."""
        from kinetree.functional.products import jvp  # which are made of derivatives

        on_arrays = closed.derivative_on_arrays(self, jvp, call)
        if on_arrays is None or not is_public(self.function):
            return None
        found = Kernel(self.__name__, inputs, outputs, None, reference=reference, validate=validate)
        found.on_arrays = on_arrays
        return found

    def _by_calls(self, call, inputs):
        """Function that traces the derivative by calls of general code of all joints, or None."""
        model, entries = call.model, self.entries()
        of = _COUPLED[self.function.__name__]
        algorithm = coupled.for_couplings(of)(model)
        all_joints = recursions(self.function.__name__, model.uncoupled, tuple(self.names()))
        names = tuple(i.name for i in inputs)
        if algorithm is None or not all_joints or "f_ext" in names:
            return None

        def text(*symbols):
            arrays = dict(zip(names, symbols, strict=True))
            require_unit_parts(model, arrays["q"])
            found = algorithm(model, **arrays)
            return tuple(found[entry] for entry in entries)

        return lambda: trace(text, inputs, self.__name__)

    def estimated_cost(self, call):
        """Estimated least number of operations of the derivative by the graph."""
        if hasattr(self.function, "trace_sample"):
            return super().estimated_cost(call)
        found = {}

        def of_arrays(*arrays):
            variables = Variables(call, call.model, arrays, tuple(self.names()))
            y = apply(self.function, call, variables.model, variables.arrays)
            graph, roots = variables.graph, [variables.graph.number(x) for x in np.ravel(y)]
            directions = [d for name in self.names() for d in variables.directions[name]]
            seeds = [{i: graph.number(rate) for i, rate in d.items()} for d in directions]
            found.update(estimates(graph, roots, seeds))
            return y

        trace(of_arrays, [Argument(name, shape) for name, shape in call.shapes.items()])
        return _SHARED * min(found.values())

    def trace_sample(self, call, model, arrays, recursive=0):
        """Derivative for one traced sample, by a recursion or by differentiating the graph."""
        if recursive and is_public(self.function):
            found_by = self._recursions(call)[recursive - 1]
            found = found_by(model, **dict(zip(call.arrays, arrays, strict=True)))
            return self.pack([found[entry] for entry in self.entries()])
        variables = Variables(call, model, arrays, tuple(self.names()))
        y = apply(self.function, call, variables.model, variables.arrays, recursive)
        return self._jacobians(call, variables, y)

    def _jacobians(self, call, variables, y):
        """Derivatives of traced results with respect to all variables, by the graph."""
        leaves = [np.asarray(leaf, dtype=object) for leaf in leaves_of(y)]
        flat = np.concatenate([leaf.ravel() for leaf in leaves])
        directions = [d for name in self.names() for d in variables.directions[name]]
        J = variables.restore(jacobian(variables.graph, flat, directions))
        rows = iter(np.split(J, np.cumsum([leaf.size for leaf in leaves])[:-1]))
        sizes = [int(np.prod(self.tangent(call, entry), dtype=int)) for entry in self.entries()]

        def parts(leaf):
            blocks = np.split(next(rows), np.cumsum(sizes)[:-1], axis=1)
            return self.pack(
                [
                    block.reshape((*np.shape(leaf), *self.tangent(call, entry)))
                    for block, entry in zip(blocks, self.entries(), strict=True)
                ]
            )

        return map_leaves(parts, y)


# --- Public functions whose derivatives have their own recursions, cheaper on most models -----
# Each takes a model and the arrays of the function and returns the derivatives by argument. The
# compiler traces them beside the derivative of the graph and keeps what has fewest operations.


def recursions(name, model, wrt):
    """Recursive algorithms for derivatives of the public function ``name``; empty for none."""
    of, arguments = _RECURSIONS.get(name, (None, frozenset()))
    is_tree = not (model.is_constrained or model.couplings)
    if of is None or not set(wrt) <= arguments or not is_tree or not is_applicable(model):
        return ()
    return tuple(partial(of, in_body_coordinates) for in_body_coordinates in (False, True))


def _inverse_dynamics(in_body_coordinates, model, q, qd, qdd, f_ext=None):
    """Derivatives of inverse dynamics as a dict by variable."""
    d = fewest.inverse_dynamics_derivatives(
        model, q, qd, qdd, _forces(f_ext), in_body_coordinates=in_body_coordinates
    )
    return {"q": d.dq, "qd": d.dqd, "qdd": d.dqdd}


def _bias_force(in_body_coordinates, model, q, qd, f_ext=None):
    """Derivatives of the bias force as a dict by variable."""
    d = _inverse_dynamics(in_body_coordinates, model, q, qd, model.zero_velocity, f_ext)
    return {"q": d["q"], "qd": d["qd"]}


def _gravity_force(in_body_coordinates, model, q):
    """Derivatives of the gravity force as a dict by variable."""
    zero = model.zero_velocity
    return {"q": _inverse_dynamics(in_body_coordinates, model, q, zero, zero)["q"]}


def _forward_dynamics(in_body_coordinates, model, q, qd, tau, f_ext=None):
    """Derivatives of forward dynamics as a dict by variable."""
    d = fewest.forward_dynamics_derivatives(
        model, q, qd, tau, _forces(f_ext), in_body_coordinates=in_body_coordinates
    )
    return {"q": d.dq, "qd": d.dqd, "tau": d.dtau}


def _forces(f_ext):
    """External forces as spatial force objects, entry 0 None."""
    return None if f_ext is None else [None, *map(Force.from_array, f_ext)]


_RECURSIONS = {
    "inverse_dynamics": (_inverse_dynamics, {"q", "qd", "qdd"}),
    "bias_force": (_bias_force, {"q", "qd"}),
    "gravity_force": (_gravity_force, {"q"}),
    "forward_dynamics": (_forward_dynamics, {"q", "qd", "tau"}),
}


# --- The same for every robot: functions of a general model, ``wrt`` and arrays -----------------


def _general_inverse_dynamics(model, wrt, q, qd, qdd, f_ext=None):
    """Derivatives of inverse dynamics as a dict, in the form recorded for every robot."""
    d = rnea_derivatives.inverse_dynamics_derivatives(model, q, qd, qdd, f_ext)
    return {"q": d.dq, "qd": d.dqd, "qdd": d.dqdd}


def _general_bias_force(model, wrt, q, qd, f_ext=None):
    """Derivatives of the bias force as a dict, in the form recorded for every robot."""
    return _general_inverse_dynamics(model, wrt, q, qd, model.zero_velocity, f_ext)


def _general_gravity_force(model, wrt, q):
    """Derivatives of the gravity force as a dict, in the form recorded for every robot."""
    return _general_bias_force(model, wrt, q, model.zero_velocity)


def _general_forward_dynamics(model, wrt, q, qd, tau, f_ext=None):
    """Derivatives of forward dynamics as a dict, in the form recorded for every robot."""
    by_columns = aba_derivatives.forward_dynamics_derivatives_by_articulated_bodies
    d = by_columns(model, q, qd, tau, f_ext, wrt=wrt)
    return {"q": d.dq, "qd": d.dqd, "tau": d.dtau}


def _inverse_dynamics_by_inertias(model, q, qd, qdd, f_ext=None, *, bodies):
    """Derivatives of inverse dynamics by inertia parameters of bodies: the regressor."""
    return regressors.regressor_in_base_coordinates(model, q, qd, qdd, bodies=bodies)


def _bias_force_by_inertias(model, q, qd, f_ext=None, *, bodies):
    """Derivatives of the bias force with respect to inertia parameters of bodies."""
    return _inverse_dynamics_by_inertias(model, q, qd, model.zero_velocity, bodies=bodies)


def _gravity_force_by_inertias(model, q, *, bodies):
    """Derivatives of the gravity force with respect to inertia parameters of bodies."""
    return _bias_force_by_inertias(model, q, model.zero_velocity, bodies=bodies)


_GENERAL_BY_INERTIAS = {
    "inverse_dynamics": _inverse_dynamics_by_inertias,
    "bias_force": _bias_force_by_inertias,
    "gravity_force": _gravity_force_by_inertias,
    "forward_dynamics": aba_derivatives.forward_dynamics_by_inertias,
}


def _coupled_inverse_dynamics(model, q, qd, qdd):
    """Derivatives ``Gᵀ D G`` of inverse dynamics with constant ratios ``G``, by traced calls."""
    at = coupled.Expansion(model, {"q": q, "qd": qd, "qdd": qdd}, {})
    of_all = differentiate(FUNCTIONS["inverse_dynamics"], tuple(at.state))
    zero = np.zeros(at.model.nv)
    kernel = of_all.prepare_call(of_all.bind(at.model, at.model.neutral(), zero, zero)).kernel
    D = call_in(trace_of([q]), kernel.general_kernel, list(at.state.values()))
    return {name: at.G.T @ d @ at.G for name, d in zip(at.state, D, strict=True)}


def _coupled_bias_force(model, q, qd):
    """Derivatives of the bias force of a model with couplings."""
    return _coupled_inverse_dynamics(model, q, qd, model.zero_velocity)


def _coupled_gravity_force(model, q):
    """Derivatives of the gravity force of a model with couplings."""
    return _coupled_bias_force(model, q, model.zero_velocity)


def _coupled_forward_dynamics(model, q, qd, tau):
    """Derivatives of forward dynamics with couplings, from those of inverse dynamics."""
    qdd = coupled.called_forward_dynamics(model)(model, q, qd, tau)
    D, lam = _coupled_inverse_dynamics(model, q, qd, qdd), model.expanded_parent
    L = ltl.ltdl(D["qdd"], lam)

    def solve(B):
        return np.stack([ltl.solve_ltdl(L, lam, b) for b in B.T], axis=1)

    unit = np.eye(model.nv, dtype=int)
    return {"q": solve(-D["q"]), "qd": solve(-D["qd"]), "tau": solve(unit)}


_COUPLED = {
    "inverse_dynamics": _coupled_inverse_dynamics,
    "bias_force": _coupled_bias_force,
    "gravity_force": _coupled_gravity_force,
    "forward_dynamics": _coupled_forward_dynamics,
}
_GENERAL = {
    "inverse_dynamics": _general_inverse_dynamics,
    "bias_force": _general_bias_force,
    "gravity_force": _general_gravity_force,
    "forward_dynamics": _general_forward_dynamics,
}
