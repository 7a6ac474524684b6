"""The definition of a quantity: what a public function of a model and arrays is made of.

    @quantity(("nv", "nv"), crba.joint_space_inertia)
    def mass_matrix(model, q): ...

The decorator says which shape the result has, which algorithms give it and what they need of a
model. Everything else follows from the signature: arrays without a default are inputs of the
compiled code, arrays that may be None are inputs when they are given, and whatever is not an array
is an option that is compiled in. A function that names no algorithm is itself the algorithm.

This is the only place that builds a kernel for a model. ``Model.kernels`` keeps those of quantities
by name and options, and ``kept`` everything else that belongs to a model. Batches, arrays of other
libraries, derivatives, exported code, the reference and the tests find all functions in
``FUNCTIONS``.
"""

import functools
import inspect
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import attrgetter
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from kinetree import errors
from kinetree.arguments import guarded
from kinetree.arrays.batch import over_batch
from kinetree.codegen.inline import evaluated, shortest, trace_of
from kinetree.codegen.program import Argument, Traced, cheapest, note, noting, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import LoopError, ShapeError
from kinetree.expr.calls import call, calls_to
from kinetree.model.arrays import (
    as_configuration,
    as_joint_vector,
    as_model,
    as_numbers,
    as_position_vector,
    check_finite,
    require_unit_parts,
)
from kinetree.model.fingerprint import is_plain
from kinetree.model.views import code_key
from kinetree.spatial import Force
from kinetree.spelling import explains, no_argument

F = TypeVar("F", bound=Callable[..., Any])


# --- arguments -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """An array argument."""

    shape: tuple
    """Shape of one sample: integers, names of attributes of the model, or functions of the
    model and the options."""
    check: Callable[[Any, Any, str], Any] | None = None
    """Takes the model, the array and its name, and raises for numbers that make no sense; None
    where the shape says it all."""
    is_configuration: bool = False
    """Whether it has quaternions whose length compiled code must check."""


CONFIGURATION = Array(("nq",), as_configuration, is_configuration=True)
POSITION = Array(("nq",), as_position_vector)  # with quaternions of any length
VECTOR = Array(("nv",), as_joint_vector)

ARRAYS = {
    **dict.fromkeys(("q", "q0", "q1"), CONFIGURATION),
    **dict.fromkeys(("qd", "qdd", "tau", "dv"), VECTOR),
    "f_ext": Array(("body_count", 6)),
    "point": Array((3,)),
}
"""Arguments that mean the same in every function."""


def argument_shape(model, name) -> tuple:
    """Shape of one sample of an argument that means the same in every function."""
    return _sizes(model, ARRAYS[name].shape)


def validate(model, arrays):
    """Raise for arrays of ``ARRAYS``, by name, that make no sense for a model."""
    for name, array in arrays.items():
        _check(model, array, name, ARRAYS[name], {})


def _check(model, array, name, argument, options):
    if argument.check is not None:
        argument.check(model, array, name)
        return
    array = as_numbers(array, name)
    require_shape(model, array, name, argument.shape, options)
    check_finite(array, name, core=len(argument.shape))


def require_shape(model, array, name, axes, options=None):
    """Raise ShapeError unless an array has these last axes, given as in ``Array.shape``."""
    shape = _sizes(model, axes, options)
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        written = [n if isinstance(n, str) else str(k) for n, k in zip(axes, shape, strict=True)]
        sizes = [f"{n} = {k}" for n, k in zip(written, shape, strict=True) if n != str(k)]
        raise ShapeError(
            f"{name} must have shape ({', '.join(['...', *written])})"
            f"{' with ' + ', '.join(sizes) if sizes else ''}, got {array.shape}"
        )


def _sizes(model, shape, options=None):
    """A shape in numbers."""
    return tuple(
        n(model, options or {})
        if callable(n)
        else attrgetter(n)(model)
        if isinstance(n, str)
        else n
        for n in shape
    )


# --- quantities ----------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Every public function of a model and arrays, by name."""

DEFINITIONS: dict[str, "Quantity"] = {}
"""Every quantity that is compiled, by name: public functions and what they consist of."""


@dataclass(eq=False)
class Quantity:
    """A quantity of a model, see ``quantity``."""

    name: str
    """Name of the public function."""
    signature: inspect.Signature
    """Of the public function."""
    shape: Any
    """Shape of one result, as in ``Array``; or a function of the model and the options that returns
    it."""
    algorithms: tuple[Callable, ...]
    """Functions of the model, the required arrays in order, and all else by name; the first is the
    reference, the one with the fewest operations is compiled."""
    needs: tuple[Callable, ...] = ()
    """Functions of the model and the name that raise where the quantity is undefined."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """Array arguments that mean something else than in ``ARRAYS``, or are not there."""
    read: dict[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    """Functions of the model and a value, by the name of an argument: they make what is compiled of
    what callers write."""
    check: Callable[[Any, dict], None] | None = None
    """Function of the model and all arguments, a dict, that raises for what does not fit together;
    called before a kernel is built."""
    selects: tuple[str, ...] = ()
    """Arguments that choose a way other than this one, unless they are None."""
    suits: Callable[[Any, Callable], bool] = lambda model, algorithm: True
    """Whether an algorithm is worth tracing for a model."""
    inverts_inertia: bool = False
    """Whether it is undefined where the inertia matrix is singular."""
    general: bool | Callable[[dict], Callable | None] = False
    """Whether the first algorithm can be recorded once for every robot, see
    ``kinetree.model.general``; or a function of the options that returns an algorithm that can
    be, of the model and arrays, or None."""
    general_for: Callable[[Any, dict], bool] = lambda model, options: True
    """Whether that serves a model with some options."""
    calls: Callable[[Any], Callable | None] | None = None
    """Function of the model that returns an algorithm which calls kernels of other quantities, by
    ``called``, or None: general code where no algorithm can be recorded."""
    on_arrays: Callable[[Any, dict], Callable | None] | None = None
    """Function of the model and the options that returns one of arrays with batch axes, by other
    quantities, for first answers where nothing else serves them; or None."""
    gears: bool | Callable[[Any], Callable | None] = False
    """Whether results for couplings of constant ratios follow from those of all joints by factors
    ``Gᵀ``; or a function of the model that returns one of ``Gears`` and the arrays by name, or
    None. See ``model.general.gears``."""
    called: str = ""
    """What messages call it, if not by its name."""

    def __post_init__(self):
        self.called = self.called or self.name
        parameters = list(self.signature.parameters.values())[1:]
        self.known = {
            p.name: (ARRAYS | self.arrays)[p.name]
            for p in parameters
            if p.name in ARRAYS or p.name in self.arrays
        }
        self.required = tuple(
            p.name for p in parameters if p.name in self.known and p.default is not None
        )
        self.optional = tuple(n for n in self.known if n not in self.required)
        rest = [p.name for p in parameters if p.name not in self.known]
        self.options = tuple(n for n in rest if n not in self.selects)

    def __call__(self, model, /, *args, **named) -> Any:
        """The result of any call: arguments read and checked, and a kernel built."""
        as_model(model)
        given, extra, options = self.arguments(model, *args, **named)
        kernel = self.kernel(model, extra, **options)
        return kernel.call(*(given[n] for n in (*self.required, *extra)))

    def arguments(self, model, /, *args, **named) -> tuple[dict[str, Any], tuple[str, ...], dict]:
        """All arguments of a call, read and checked; which optional arrays there are; options."""
        bound = self.signature.bind(model, *args, **named)
        bound.apply_defaults()
        given: dict[str, Any] = bound.arguments
        if self.check is not None:
            self.check(model, given)
        for name, read in self.read.items():
            if given.get(name) is not None:
                given[name] = read(model, given[name])
        extra = tuple(n for n in self.optional if given[n] is not None)
        return given, extra, {n: given[n] for n in self.options}

    def kernel(self, model, extra=(), **options) -> Kernel:
        """The kernel for a model.

        Args:
            model: the mechanism.
            extra: names of the optional arrays that are inputs, in the order of the signature.
            options: what the algorithm is specialised for, such as the name of a frame; those left
                out have the values of the signature.
        """
        options = {
            n: options[n] if n in options else self.signature.parameters[n].default
            for n in self.options
        }
        key = self.key(options.values(), extra)
        kernel = as_model(model).kernels.get(key)
        if kernel is None:
            kernel = model.kernels[key] = self._build(model, extra, options, key)
        return kernel

    def key(self, options, extra=()) -> Any:
        """Key of the kernel in ``Model.kernels``: the name, if nothing else matters."""
        key = (self.name, *options, *((extra,) if extra else ()))
        return key if len(key) > 1 else self.name

    def shape_of(self, model, options) -> tuple:
        """Shape of one sample of the result."""
        shape = self.shape(model, options) if callable(self.shape) else self.shape
        return _sizes(model, shape, options)

    def inputs(self, model, extra=(), options=None) -> list[Argument]:
        """Inputs of the compiled code."""
        names = (*self.required, *extra)
        return [Argument(n, _sizes(model, self.known[n].shape, options)) for n in names]

    def _build(self, model, extra, options, key):
        for need in self.needs:
            need(model, self.called)
        return _Build(self, model, extra, options).kernel(key)

    def validate(self, model, names, arrays, options):
        """Raise for arrays, by the names of arguments, that make no sense for a model."""
        for name, array in zip(names, arrays, strict=True):
            _check(model, array, name, self.known[name], options)

    def _bound(self, model, algorithm, names, options):
        """The algorithm as a function of arrays alone."""
        count = len(self.required)

        def of_arrays(*arrays):
            arrays = [
                [None, *map(Force.from_array, a)] if n == "f_ext" else a
                for n, a in zip(names, arrays, strict=True)
            ]
            extra = dict(zip(names[count:], arrays[count:], strict=True))
            return algorithm(model, *arrays[:count], **extra, **options)

        return of_arrays


class _Build:
    """Parts of a kernel of a quantity: texts, inputs, checks.

    Args:
        quantity: its definition.
        model: the mechanism.
        extra: names of the optional arrays that are inputs.
        options: what the algorithm is specialised for.
    """

    def __init__(self, quantity, model, extra, options):
        self.quantity, self.model, self.options = quantity, model, options
        self.inputs = quantity.inputs(model, extra, options)
        self.shape = quantity.shape_of(model, options)
        self.names = [i.name for i in self.inputs]
        self.outputs = [Argument("out0", self.shape)]

    def kernel(self, key) -> Kernel:
        """The kernel, to be kept as ``key``."""
        quantity = self.quantity
        self._kernel = self._kernel_for(
            self._cheapest_text,
            key=key,
            general_code=self._general_code if quantity.general or quantity.calls else None,
        )
        return self._kernel

    def _kernel_for(self, text, **options):
        return kernel_for(
            self.model,
            self.quantity.called,
            self.inputs,
            self.outputs,
            text,
            reference=self._reference,
            validate=self._validate,
            **options,
        )

    @functools.cached_property
    def _algorithms(self):
        """Functions of arrays alone, of the algorithms that suit the model."""
        suitable = [a for a in self.quantity.algorithms if self.quantity.suits(self.model, a)]
        return [self._bound(a) for a in suitable]

    def _bound(self, algorithm):
        return self.quantity._bound(self.model, algorithm, self.names, self.options)

    def _by(self, algorithm, arrays):
        """Results of one algorithm for all samples."""
        core = [len(i.shape) for i in self.inputs]
        named = dict(zip(self.names, arrays, strict=True))
        return over_batch(algorithm, named, core=core, shape=self.shape)

    def _reference(self, arrays):
        """Results without compiled code, or calls of it and its text where arrays are traced."""
        graph = trace_of(arrays)
        if graph is not None and calls_to() == "general" and not _BY_THE_BOOK.get():
            called = self._kernel.called_in(graph, arrays)
            if called is not None:
                return called
        if graph is None or len(self._algorithms) == 1 or _BY_THE_BOOK.get():
            return self._by(self._algorithms[0], arrays)
        if self.model.scalar_type().kind == "O":  # parameters of the model are traced, too
            texts = [functools.partial(self._by, a, arrays) for a in self._algorithms]
            return shortest(texts, graph)
        return evaluated(self._kernel.program, arrays)

    def _checked(self, algorithm):
        """An algorithm that requires unit quaternions of the configurations it is given."""

        def with_checks(*symbols):
            for name, symbol in zip(self.names, symbols, strict=True):
                if self.quantity.known[name].is_configuration:
                    require_unit_parts(self.model, symbol)
            return algorithm(*symbols)

        return with_checks

    def _cheapest_text(self):
        texts = [self._checked(a) for a in self._algorithms]
        return cheapest([trace(text, self.inputs, self.quantity.name) for text in texts])

    def _validate(self, arrays):
        self.quantity.validate(self.model, self.names, arrays, self.options)

    def _general_code(self):
        """Code for any mechanism, or None where there is none."""
        from kinetree.model.general.gears import on_arrays
        from kinetree.model.general.kernels import general_kernel

        quantity, model = self.quantity, self.model
        algorithm = None if quantity.calls is None else quantity.calls(model)
        if model.couplings:
            geared = on_arrays(quantity, model, self.inputs, self.shape, self.options)
            if geared is not None:
                return self._first_on_arrays(geared, algorithm)
        if algorithm is not None:
            traced = Traced(self._by_calls(algorithm), "general")
            return self._kernel_for(traced).with_general_calls()
        first = None if quantity.on_arrays is None else quantity.on_arrays(model, self.options)
        if first is not None:
            return self._first_on_arrays(lambda *arrays: (first(*arrays),), None)
        if not quantity.general or not quantity.general_for(model, self.options):
            return None
        return general_kernel(
            quantity,
            model,
            self.inputs,
            self.outputs,
            self.options,
            reference=self._reference,
            validate=self._validate,
        )

    def _by_calls(self, algorithm):
        """What traces an algorithm that calls other kernels."""
        text = self._checked(self._bound(algorithm))
        return lambda: trace(text, self.inputs, self.quantity.name)

    def _first_on_arrays(self, function, algorithm):
        """A kernel that takes first calls on arrays; later ones too where there is no algorithm."""
        found = self._kernel_for(None if algorithm is None else self._by_calls(algorithm))
        found.on_arrays, found.calls_general_code = function, algorithm is not None
        return found


def quantity(
    shape,
    *algorithms,
    tree=False,
    needs=(),
    otherwise: Callable | None = None,
    serve: Callable[[Quantity], Callable] | None = None,
    public=True,
    **definition,
) -> Callable[[F], F]:
    """Make a function of a model and arrays a compiled one; its ``definition`` is a ``Quantity``.

    Args:
        shape: shape of one result.
        *algorithms: what computes it; none where the function's own body does, for one sample.
        tree: whether it is undefined for mechanisms with loops.
        needs: as in ``Quantity``.
        otherwise: takes the calls for which there is no kernel, in place of the definition.
        serve: makes such a function of the definition.
        public: whether it is one of ``FUNCTIONS``.
        **definition: further attributes of ``Quantity``.
    """
    needs = (*((require_tree,) if tree else ()), *needs)

    def decorate(function):
        texts, signature = algorithms or (function,), inspect.signature(function)
        defined = Quantity(function.__name__, signature, shape, texts, needs, **definition)
        if defined.name in DEFINITIONS:  # kernels are kept by name
            raise TypeError(f"there are two quantities {defined.name!r}")
        DEFINITIONS[defined.name] = defined
        rest = otherwise if serve is None else serve(defined)
        door: Any = _door(defined, function, _named(function, rest or defined))
        door.definition = defined
        return _listed(door) if public else door

    return decorate


def _named(function, otherwise):
    """Function for other calls, with the name and the arguments of the first for errors."""

    @functools.wraps(function)
    def guarded_call(*args, **named):
        return otherwise(*args, **named)

    return guarded(guarded_call)


def _door(defined, function, otherwise):
    """The function that users call: straight to the kernel where there is one.

    Its source is written out for its signature, as that of dataclasses is: every call of every
    function passes here, and a general one would cost more than many a kernel. The first call
    writes it, so that an import need not compile those that are never called.
    """
    space: dict[str, Any] = {
        "__name__": function.__module__, "_otherwise": otherwise, "_read": defined.read,
        "_no_argument": lambda name: no_argument(defined.name, name, defined.signature.parameters),
    }  # fmt: skip

    def written():
        source, file = _door_text(defined), f"<{function.__module__}.{defined.name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), space)
        door.__code__ = space[defined.name].__code__
        return door

    space["_written"] = written
    door: Any = functools.wraps(function)(FunctionType(_first_call.__code__, space))
    door.__defaults__, door.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return door


def _first_call(*args, **named):
    return _written()(*args, **named)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def _door_text(defined):
    """The source of the function that users call."""
    parameters = defined.signature.parameters.values()
    model = next(iter(parameters)).name
    key = ", ".join([repr(defined.name), *defined.options])
    read = {n: f"_read[{n!r}]({model}, {n})" if n in defined.read else n for n in defined.known}
    arrays = ", ".join(read[n] for n in defined.required)
    left_out = [*defined.optional, *defined.selects]
    lines = [f"def {defined.name}({_parameter_list(parameters)}, **_unknown):"]
    lines += ["    if _unknown:", "        raise TypeError(_no_argument(next(iter(_unknown))))"]

    def branch(condition, key, arrays):
        lines.extend(
            [
                f"    if {condition or True}:",
                "        try:",
                f"            kernel = {model}.kernels[{key}]",
                "        except (AttributeError, KeyError, TypeError):",
                "            pass",
                "        else:",
                f"            return kernel.call({arrays})",
            ]
        )

    branch(" and ".join(f"{n} is None" for n in left_out), key, arrays)
    for name in defined.optional:  # given alone
        others = [f"{n} is None" for n in left_out if n != name]
        given = " and ".join([f"{name} is not None", *others])
        branch(given, f"{key}, ({name!r},)", f"{arrays}, {read[name]}")
    passed = [f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in parameters]
    lines.append(f"    return _otherwise({', '.join(passed)})")
    return "\n".join(lines) + "\n"


def _parameter_list(parameters):
    names = [p.name for p in parameters]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return ", ".join(names[: len(names) - len(keywords)] + (["*", *keywords] if keywords else []))


# --- what definitions have in common -------------------------------------------------------------

_BY_THE_BOOK = ContextVar("by_the_book", default=False)


@contextmanager
def by_the_book() -> Iterator[None]:
    """Trace the first algorithm of every quantity, whatever it costs.

    Others combine parameters of the model beforehand, with the rounding errors of floats; those of
    closed chains have pivots that were chosen beforehand, and do not suit every configuration.
    """
    token = _BY_THE_BOOK.set(True)
    try:
        yield
    finally:
        _BY_THE_BOOK.reset(token)


def called(kernel, arrays) -> Any:
    """The result of a kernel, in a program that is traced by a call of its general code.

    Where nothing is traced, or there is no such code, the kernel is called as usual.
    """
    graph = trace_of(arrays)
    if graph is None or calls_to() != "general" or kernel.general_entry is None:
        return kernel.call(*arrays)
    return call(graph, kernel.general_entry, arrays)[0]


def is_by_the_book() -> bool:
    """Whether what is traced now has to be right for all numbers, whatever it costs."""
    return _BY_THE_BOOK.get()


def composed(function: F) -> F:
    """Make a public function of a model and arrays one of ``FUNCTIONS``.

    It consists of others, or decides about ranks on the CPU, and does what it did before.
    """
    return _listed(guarded(explains(function)))


def _listed(function):
    FUNCTIONS[function.__name__] = function
    return function


def is_public(function) -> bool:
    """Whether this is one of ``FUNCTIONS``, which can be traced and differentiated."""
    return FUNCTIONS.get(getattr(function, "__name__", "")) is function


def kernel_for(
    model, name, inputs, outputs, make_program, *, reference, validate, key=None, general_code=None
) -> Kernel:
    """A kernel for a model, or for none; arguments as in ``Kernel``.

    Machine code is kept on disk under ``key`` and the content of the model, where that says all
    there is to say about it.
    """

    def full_key():  # not needed where code serves every robot
        return (code_key(model), key) if is_plain(model) else None

    return Kernel(
        name,
        inputs,
        outputs,
        make_program,
        reference=reference,
        validate=validate,
        key=None if key is None else full_key,
        general_code=general_code,
        warn=None if model is None else functools.partial(_warn, model),
    )


class AtInstant:
    """A kernel whose last input is time, at one instant."""

    def __init__(self, kernel, t):
        self.kernel, self.t = kernel, np.array(t, dtype=float)

    def call(self, *arrays):
        """The results for the other inputs, in their precision."""
        kinds = [a.dtype for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        return self.kernel.call(*arrays, self.t.astype(np.result_type(*kinds)) if kinds else self.t)

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "kernel"), name)


def kernel_of(model, quantity, /, extra=(), **options) -> Kernel:
    """The kernel of a quantity for a model; arguments as in ``Quantity.kernel``."""
    return DEFINITIONS[quantity].kernel(model, extra, **options)


def kept(model, key, make) -> Any:
    """Result of ``make()`` for a key, kept with the model as long as it lives.

    Args:
        model: the model.
        key: a tuple that begins with the name of the function that owns it.
        make: computes it the first time.
    """
    found = model.memo.get(key)
    if found is None:
        with noting() as noted:
            found = model.memo[key] = make()
        if noted:
            model.memo[_NOTED, key] = tuple(noted)
    elif (_NOTED, key) in model.memo:
        note(model.memo[_NOTED, key])
    return found


_NOTED = "warnings given by"


def warn_once(model, message, category):
    """Warn about a model, once for each model; to be called whenever what is wrong matters.

    Kernels that are traced meanwhile keep the warning with their code on disk, and processes that
    find it there are warned as well: what a script says does not depend on the cache.

    Args:
        model: the model.
        message: what to say.
        category: a class of ``kinetree.errors``.
    """
    warning = category.__name__, message
    note([warning])
    _warn(model, warning)


def _warn(model, warning):
    given = model.numeric.memo.setdefault("warnings given", set())
    if warning not in given:
        given.add(warning)
        name, message = warning
        errors.warn(message, getattr(errors, name))


def require_tree(model, function):
    """Raise LoopError when the model has loops, or its own constraints."""
    if model.is_constrained:
        raise LoopError(
            f"{function} is not defined for model {model.name!r}, whose "
            f"{first_constraint(model)}: its joint forces are not independent. "
            f"forward_dynamics(model, ...) and loops.inverse_dynamics(model, ...) support loops "
            f"and constraints; model.spanning_tree is the tree alone"
        )


def first_constraint(model) -> str:
    """The first loop or constraint of a model, in words."""
    if model.loops:
        return f"joint {model.loops[0].name!r} closes a loop"
    return f"constraint {model.constraints[0].name!r} is not a joint"
