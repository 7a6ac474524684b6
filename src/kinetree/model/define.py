"""The definition of a quantity: what a public function of a model and arrays is made of.

    @quantity(("nv", "nv"), crba.joint_space_inertia)
    def mass_matrix(model, q): ...

The decorator says which shape the result has, which algorithms give it and what they need of a
model. Everything else follows from the signature: arrays without a default are inputs of the
compiled code, arrays that may be None are inputs when they are given, and whatever is not an array
is an option that is compiled in. A function that names no algorithm is itself the algorithm.

``kernel_for`` of ``model/kernels.py`` is the only constructor of kernels for a model, and
``Model.kernels`` keeps those of quantities by name and options; ``remember`` of ``model/memo.py``
keeps everything else that belongs to a model. Batches, arrays of other libraries, derivatives,
exported code, the reference and the tests find all functions in ``FUNCTIONS``.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kinetree.arguments import with_guard
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import LoopError
from kinetree.model.array_arguments import ARRAYS, ArrayArgument, check_array, sample_shape
from kinetree.model.arrays import as_model
from kinetree.model.door import door_of
from kinetree.model.kernels import KernelBuild
from kinetree.spatial import Force
from kinetree.spelling import explains

F = TypeVar("F", bound=Callable[..., Any])

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
    """Shape of one result, as in ``ArrayArgument``; or a function of the model and the options
    that returns it."""
    algorithms: tuple[Callable, ...]
    """Functions of the model, the required arrays in order, and all else by name; the first is the
    reference, the one with the fewest operations is compiled."""
    needs: tuple[Callable, ...] = ()
    """Functions of the model and the name that raise where the quantity is undefined."""
    arrays: dict[str, ArrayArgument] = field(default_factory=dict)
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
        """Checked arguments of a call by name, names of optional arrays given, and options."""
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
        """Compiled kernel of the quantity for a model.

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
        """Key of the kernel in ``Model.kernels``: the name, with options if there are any."""
        key = (self.name, *options, *((extra,) if extra else ()))
        return key if len(key) > 1 else self.name

    def shape_of(self, model, options) -> tuple:
        """Shape of the quantity's result for one sample, without batch axes."""
        shape = self.shape(model, options) if callable(self.shape) else self.shape
        return sample_shape(model, shape, options)

    def inputs(self, model, extra=(), options=None) -> list[Argument]:
        """Input arguments of the compiled code."""
        names = (*self.required, *extra)
        return [Argument(n, sample_shape(model, self.known[n].shape, options)) for n in names]

    def _build(self, model, extra, options, key):
        """Build the kernel of the quantity for a model, after its checks."""
        for need in self.needs:
            need(model, self.called)
        return KernelBuild(self, model, extra, options).kernel(key)

    def validate(self, model, names, arrays, options):
        """Raise an error for argument arrays, given with names, that do not fit a model."""
        for name, array in zip(names, arrays, strict=True):
            check_array(model, array, name, self.known[name], options)

    def _bind(self, model, algorithm, names, options):
        """Algorithm as a function of arrays alone, with model and options bound."""
        count = len(self.required)

        def of_arrays(*arrays):
            arrays = [
                [None, *map(Force.from_array, a)] if n == "f_ext" else a
                for n, a in zip(names, arrays, strict=True)
            ]
            extra = dict(zip(names[count:], arrays[count:], strict=True))
            return algorithm(model, *arrays[:count], **extra, **options)

        return of_arrays


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
    """Decorator: compile a function of a model and arrays; its ``definition`` is a ``Quantity``.

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
        door: Any = door_of(defined, function, _name_after(function, rest or defined))
        door.definition = defined
        return _list(door) if public else door

    return decorate


def _name_after(function, otherwise):
    """Function for other calls, with an error guard that names the quantity."""

    @functools.wraps(function)
    def guarded_call(*args, **named):
        return otherwise(*args, **named)

    return with_guard(guarded_call)


def register(function: F) -> F:
    """Decorator: list a public function of a model and arrays in ``FUNCTIONS``.

    It consists of others, or decides about ranks on the CPU, and does what it did before.
    """
    return _list(with_guard(explains(function)))


def _list(function):
    """Enter a function into ``FUNCTIONS``."""
    FUNCTIONS[function.__name__] = function
    return function


def is_public(function) -> bool:
    """Whether a function is in ``FUNCTIONS``, and can be traced and differentiated."""
    return FUNCTIONS.get(getattr(function, "__name__", "")) is function


def kernel_of(model, quantity, /, extra=(), **options) -> Kernel:
    """Compiled kernel of a quantity for a model; arguments as in ``Quantity.kernel``."""
    return DEFINITIONS[quantity].kernel(model, extra, **options)


def require_tree(model, function):
    """Raise LoopError if the model has loops or user-defined constraints."""
    if model.is_constrained:
        raise LoopError(
            f"{function} is not defined for model {model.name!r}, whose "
            f"{first_constraint(model)}: its joint forces are not independent. "
            f"forward_dynamics(model, ...) and loops.inverse_dynamics(model, ...) support loops "
            f"and constraints; model.spanning_tree is the tree alone"
        )


def first_constraint(model) -> str:
    """First loop or constraint of a model, in words; empty for none."""
    if model.loops:
        return f"joint {model.loops[0].name!r} closes a loop"
    return f"constraint {model.constraints[0].name!r} is not a joint"
