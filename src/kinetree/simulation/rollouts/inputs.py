"""The arrays of a rollout: which are given, how one sample of each looks, and their batch."""

import math
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter, Signature
from types import SimpleNamespace

import numpy as np

from kinetree.arrays.batch import common_shape
from kinetree.codegen.program import Argument
from kinetree.contact.settings import TimeStepping
from kinetree.errors import ShapeError, UnknownNameError, require_known
from kinetree.functional.kernel import UserKernel
from kinetree.functional.parameters import check_parameter, of_shape, parameter
from kinetree.integration.prescription import check_rates, prescribed_start
from kinetree.loops.stepping.choice import closed_start
from kinetree.model.arrays import as_joint_vector, as_numbers, as_position_vector
from kinetree.quantities.actuators import activation_after


@dataclass(frozen=True)
class Given:
    """An array that goes into every step."""

    kind: str
    """``"tau"``, ``"controls"``, ``"activation"``, ``"inputs"``, ``"arguments"`` or
    ``"parameters"``."""
    name: str
    """What kernels call it, or the name of a parameter."""
    shape: tuple
    """Of one sample."""
    timed: bool
    """Whether there is a value for every step, the first axis of ``array``."""
    array: np.ndarray
    """Numbers, with one batch axis."""
    squeeze: bool = False
    """Whether the caller gave ``tau`` or controls without an axis for time."""

    @property
    def is_held(self) -> bool:
        """Whether the array holds joint forces or controls."""
        return self.kind in ("tau", "controls")

    @property
    def argument(self) -> Argument:
        """``Argument`` of a compiled function that takes this array."""
        return Argument(self.name, self.shape)

    def at(self, k, part=slice(None)):
        """Values for step ``k`` of a part of the batch."""
        return self.array[k, part] if self.timed else self.array[part]

    def part(self, part):
        """Values of a part of the batch for all steps."""
        return self.array[:, part] if self.timed else self.array[part]


@dataclass(frozen=True)
class RolloutArrays:
    """Start and arrays of a rollout with one batch axis.

    Attributes:
        q0, qd0: the start.
        given: what goes into every step.
        batch: shape of the batch as the caller has it.
        dtype: precision of the computation.
        total: samples in the batch.
    """

    q0: np.ndarray
    qd0: np.ndarray
    given: tuple[Given, ...]
    batch: tuple
    dtype: str
    total: int

    @property
    def size(self) -> int:
        """Number of samples in the batch."""
        return len(self.q0)

    def part(self, part):
        """Copy with the inputs of a part of the batch only."""
        given, q0 = tuple(replace(g, array=g.part(part)) for g in self.given), self.q0[part]
        return replace(self, q0=q0, qd0=self.qd0[part], given=given, batch=(len(q0),))

    @property
    def timed(self) -> bool:
        """Whether any array has separate values for every step."""
        return any(g.timed for g in self.given)


def collect(call, controls, kernels) -> RolloutArrays:
    """``RolloutArrays`` of a call: all inputs sorted, checked and broadcast.

    Args:
        call: the ``Call``: a start, ``tau``, and arrays by name.
        controls: of actuators, or None.
        kernels: say how samples look.
    """
    model, steps = call.model, call.steps
    q0 = as_position_vector(model, call.q0, "q0")
    qd0 = as_joint_vector(model, np.zeros(model.nv) if call.qd0 is None else call.qd0, "qd0")
    raw = [*_over_time("tau", call.tau, model.nv, steps, partial(as_joint_vector, model))]
    raw += _over_time("controls", controls, len(model.actuators), steps, as_numbers)
    for kind, arrays in (("inputs", call.inputs), ("arguments", call.arguments)):
        for name, value in (arrays or {}).items():
            check_name(name, kind, raw, kernels)
            array = as_numbers(value, name)
            shape = sample_shape(model, name, array, kernels, timed=kind == "inputs")
            raw.append(_check(kind, name, shape, array, steps, timed=kind == "inputs"))
    for name, value in (call.parameters or {}).items():
        p, array = parameter(model, name), as_numbers(value, name)
        if array.ndim == 0:  # of a joint of one variable
            array = of_shape(p, array)
        check_parameter(p, array)
        raw.append(Given("parameters", name, p.shape, False, array))
    check_wanted(raw, kernels)
    leads = [q0.shape[:-1], qd0.shape[:-1], *map(_lead, raw)]
    names = ("q0", "qd0", *(g.name for g in raw))
    batch = common_shape(names, leads, "batch axes of a rollout")
    dtype = _dtype([q0, qd0, *(g.array for g in raw)])
    return RolloutArrays(
        _flat(q0, (), batch, (model.nq,), dtype),
        _flat(qd0, (), batch, (model.nv,), dtype),
        tuple(_with_batch(g, batch, dtype) for g in raw),
        batch,
        dtype,
        math.prod(batch),
    )


def _over_time(name, values, size, steps, read):
    """Joint forces or controls as ``Given``, with or without a time axis; none for None."""
    if values is None:
        return
    array = read(values, name)
    held = array.ndim == 1
    array = array[np.newaxis] if held else array
    yield replace(_check(name, name, (size,), array, steps, timed=True), squeeze=held)


ACTIVATION = "activation, and its time"


def with_activation(arrays, model, servos, start, t0, dt) -> RolloutArrays:
    """Copy of the arrays with activations at the start of every step added.

    Activations follow from the controls alone, so that their values at the start of all steps are
    known beforehand; while controls stay the same, those at the start of the rollout are enough.

    Args:
        arrays: with controls.
        model: the mechanism.
        servos: its actuators.
        start: activations at the start, (m,).
        t0: time at the start [s].
        dt: length of a step [s].
    """
    given = next(g for g in arrays.given if g.kind == "controls")
    act = np.broadcast_to(start, (arrays.size, servos.states)).astype(arrays.dtype)
    if not given.timed:
        array = np.concatenate([act, np.full((arrays.size, 1), t0, arrays.dtype)], axis=-1)
    else:
        array = np.empty((len(given.array), arrays.size, servos.states + 1), arrays.dtype)
        for k, controls in enumerate(given.array):
            array[k, :, :-1], array[k, :, -1] = act, t0 + k * dt
            act = activation_after(model, controls, act, np.array(dt, arrays.dtype))
    more = Given("activation", ACTIVATION, array.shape[-1:], given.timed, array)
    return replace(arrays, given=(more, *arrays.given))


def _check(kind, name, shape, array, steps, *, timed):
    """``Given`` of an input array whose shape and time axis fit; else ShapeError."""
    n = array.ndim - len(shape)
    if 0 in shape:
        none = " for a model whose joints have no variables: leave it out" if 0 in shape else ""
        raise ShapeError(f"{name} of rollout is empty: one sample of it has shape {shape}{none}")
    if n < timed or array.shape[n:] != shape:
        expected = ", ".join([*(["steps"] if timed else []), "...", *map(str, shape)])
        raise ShapeError(f"{name} must have shape ({expected}), got {array.shape}")
    if not timed:
        return Given(kind, name, shape, False, array)
    if array.shape[0] == 1:
        return Given(kind, name, shape, False, array[0])
    if array.shape[0] != steps:
        raise ShapeError(
            f"{name} has time first: {steps} values, one for each step, or 1 for all; got shape "
            f"{array.shape}" + _hint(name)
        )
    return Given(kind, name, shape, True, array)


def _hint(name):
    """Hint for error messages on how to hold different inputs per sample."""
    if name not in ("tau", "controls"):
        return ""
    return f". To hold different {name} for every sample of a batch, give {name}[np.newaxis]"


def prescribed_arrays(prescription, model, arrays, t0, dt, steps, *, at_rest):
    """Copy of the arrays with prescribed joints set to their motion at the start."""
    check_rates(prescription, model, t0, t0 + steps * dt, dt)
    q0, qd0 = prescribed_start(prescription, model, t0, arrays.q0, arrays.qd0, at_rest=at_rest)
    return replace(arrays, q0=q0, qd0=qd0)


def closed_arrays(model, arrays, t0) -> RolloutArrays:
    """Copy of the arrays with slightly open loops closed at the start."""
    if not model.is_constrained:
        return arrays
    q0, qd0 = (x.reshape(*arrays.batch, -1) if arrays.size else x for x in (arrays.q0, arrays.qd0))
    q, qd = closed_start(model.at(t0), q0.astype(float), qd0.astype(float))
    q, qd = (x.reshape(arrays.size, -1).astype(arrays.dtype) for x in (q, qd))
    return replace(arrays, q0=q, qd0=qd)


# --- batches -------------------------------------------------------------------------------------


def _lead(given):
    """Batch shape of an input array: its axes after time and before those of a sample."""
    end = given.array.ndim - len(given.shape)
    return given.array.shape[given.timed : end]


def _dtype(arrays):
    """Float type of a rollout: float32 if all arrays are, else float64."""
    kinds = {a.dtype.kind for a in arrays}
    if kinds - set("fiub"):
        bad = next(a.dtype for a in arrays if a.dtype.kind not in "fiub")
        raise ShapeError(f"a rollout computes with real numbers, got an array of {bad}")
    return "float32" if all(a.dtype.char == "f" for a in arrays) else "float64"


def _with_batch(given, batch, dtype):
    """Input broadcast to the rollout's batch shape."""
    time = given.array.shape[:1] if given.timed else ()
    array = _flat(given.array, time, batch, given.shape, dtype)
    return Given(given.kind, given.name, given.shape, given.timed, array, given.squeeze)


def _flat(array, time, batch, shape, dtype):
    """Array reshaped to (*time, samples, *shape); shared values are broadcast, not copied."""
    array = np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)
    lead = array.shape[len(time) : array.ndim - len(shape)]
    size = math.prod(batch)
    if math.prod(lead) == 1:
        return np.broadcast_to(array.reshape(*time, 1, *shape), (*time, size, *shape))
    missing = (1,) * (len(batch) - len(lead))
    full = array.reshape(*time, *missing, *lead, *shape)
    return np.broadcast_to(full, (*time, *batch, *shape)).reshape(*time, size, *shape)


# --- kernels of a rollout: controllers and costs, and the arrays that they take by name ----------

FRICTION = "contact_friction"
"""The argument with the coefficients of friction of all contacts, (c,)."""
STATE = ("t", "q", "qd")
"""What every kernel of a rollout may take, besides the arrays that are given."""


def require_kernel(function, role):
    """``function`` itself; TypeError for a controller or cost that is not a ``@kernel``."""
    if function is not None and not isinstance(function, UserKernel):
        raise TypeError(
            f"{role} becomes part of a compiled loop and must be a function under "
            f"@kinetree.kernel, got {function!r}; kinetree.simulate takes any controller"
        )
    return function


def contact_arguments(contact, arguments):
    """Pseudo-kernels that take ``arguments["contact_friction"]``, as a list."""
    if FRICTION not in (arguments or {}) or not isinstance(contact, TimeStepping):
        return []
    size = (contact.scene.candidates.size,)
    taken = Parameter(FRICTION, Parameter.KEYWORD_ONLY, annotation=size)
    model = Parameter("model", Parameter.POSITIONAL_OR_KEYWORD)
    return [SimpleNamespace(__name__="contact", signature=Signature([model, taken]))]


def names_of(kernel):
    """Names of the arrays that a kernel takes, without the model."""
    return tuple(kernel.signature.parameters)[1:]


def check_name(name, kind, raw, kernels):
    """Raise UnknownNameError for an input name that no kernel takes."""
    if name in (*STATE, "tau", "controls"):
        raise UnknownNameError(
            f"{kind} cannot hold {name!r}, which kernels of a rollout get anyway"
        )
    if any(g.name == name for g in raw):
        raise UnknownNameError(f"{name!r} is in inputs and in arguments; give it once")
    wanted = sorted({n for k in kernels for n in names_of(k)} - {*STATE, "tau", "controls"})
    require_known(name, wanted, f"{kind} hold {name!r}, which no kernel of this rollout takes")


def check_wanted(raw, kernels):
    """Raise UnknownNameError for a kernel input that is not given."""
    known = {*STATE, "tau", *(g.name for g in raw)}
    for kernel in kernels:
        for name in names_of(kernel):
            if name not in known:
                raise UnknownNameError(
                    f"{kernel.__name__} takes {name!r}: put it into arguments, or into inputs "
                    f"if it has a value for every step"
                )


def sample_shape(model, name, array, kernels, *, timed):
    """Shape of one sample of a kernel input: annotated, or the array's last axis."""
    for kernel in kernels:
        p = kernel.signature.parameters.get(name)
        if p is not None and isinstance(p.annotation, tuple):
            return tuple(getattr(model, n) if isinstance(n, str) else n for n in p.annotation)
    return tuple(array.shape[-1:]) if array.ndim > timed else ()


def apply(kernel, model, values):
    """Result of a kernel for a model, with its inputs picked from ``values`` by name."""
    return kernel(model, **{name: values[name] for name in names_of(kernel)})


def number(kernel, value):
    """Result of a cost kernel, checked to be a scalar."""
    if np.shape(value) != ():
        raise ShapeError(
            f"cost {kernel.__name__!r} must return one number, got shape {np.shape(value)}"
        )
    return np.asarray(value, dtype=object)[()]
