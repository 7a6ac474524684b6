"""Kernels for a model: ``kernel_for``, their only constructor, and the kernel of a quantity."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from kinetree.arrays.batch import over_batch
from kinetree.codegen.inline import evaluate, shortest, trace_of
from kinetree.codegen.program import Argument, Traced, cheapest, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.expr.calls import call, calls_to
from kinetree.model.arrays import require_unit_parts
from kinetree.model.fingerprint import is_plain
from kinetree.model.memo import give_once


def kernel_for(model, name, inputs, outputs, make_program, *, key=None, **options) -> Kernel:
    """Kernel of a program, kept with a model if one is given; arguments as in ``Kernel``.

    Machine code is kept on disk under ``key`` and the content of the model, where that says all
    there is to say about it.
    """

    def full_key():  # not needed where code serves every robot
        return (model.fingerprint, key) if is_plain(model) else None

    kernel = Kernel(
        name,
        inputs,
        outputs,
        make_program,
        key=None if key is None else full_key,
        **options,
    )
    if model is not None:
        kernel.warn = functools.partial(give_once, model)
    return kernel


class AtInstant:
    """A kernel whose last input is time, at one instant."""

    def __init__(self, kernel, t):
        self.kernel, self.t = kernel, np.array(t, dtype=float)

    def call(self, *arrays):
        """Results for the other inputs at the fixed time, in their precision."""
        kinds = [a.dtype for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        return self.kernel.call(*arrays, self.t.astype(np.result_type(*kinds)) if kinds else self.t)

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "kernel"), name)


def call_in_trace(kernel, arrays) -> Any:
    """Result of a kernel; in a program that is traced, a call of its general code.

    Where nothing is traced, or there is no such code, the kernel is called as usual.
    """
    graph = trace_of(arrays)
    if graph is None or calls_to() != "general" or kernel.general_entry is None:
        return kernel.call(*arrays)
    return call(graph, kernel.general_entry, arrays)[0]


# --- the first algorithm, whatever it costs ------------------------------------------------------

_BY_THE_BOOK = ContextVar("by_the_book", default=False)


@contextmanager
def by_the_book() -> Iterator[None]:
    """Context in which quantities are traced by their reference algorithm, whatever it costs.

    Others combine parameters of the model beforehand, with the rounding errors of floats; those of
    closed chains have pivots that were chosen beforehand, and do not suit every configuration.
    """
    token = _BY_THE_BOOK.set(True)
    try:
        yield
    finally:
        _BY_THE_BOOK.reset(token)


def is_by_the_book() -> bool:
    """Whether the reference algorithm must be traced, see ``by_the_book``."""
    return _BY_THE_BOOK.get()


# --- kernels of quantities -----------------------------------------------------------------------


class KernelBuild:
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
        """Build the kernel of the quantity for the model, to be kept as ``key``."""
        quantity = self.quantity
        self._kernel = self._kernel_for(
            self._cheapest_text,
            key=key,
            general_code=self._general_code if quantity.general or quantity.calls else None,
        )
        return self._kernel

    def _kernel_for(self, text, **options):
        """Kernel of a traced function with the inputs and outputs of this quantity."""
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
        """Algorithms that suit the model, as functions of arrays alone."""
        suitable = [a for a in self.quantity.algorithms if self.quantity.suits(self.model, a)]
        return [self._bind(a) for a in suitable]

    def _bind(self, algorithm):
        """Algorithm with its model and options bound."""
        return self.quantity._bind(self.model, algorithm, self.names, self.options)

    def _by(self, algorithm, arrays):
        """Results of one algorithm in Python, looped over all samples of a batch."""
        core = [len(i.shape) for i in self.inputs]
        named = dict(zip(self.names, arrays, strict=True))
        return over_batch(algorithm, named, core=core, shape=self.shape)

    def _reference(self, arrays):
        """Results in Python without compiled code; when traced, a call or the shortest formula."""
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
        return evaluate(self._kernel.program, arrays)

    def _check_units(self, algorithm):
        """Algorithm that checks unit quaternions of its configurations first."""

        def with_checks(*symbols):
            for name, symbol in zip(self.names, symbols, strict=True):
                if self.quantity.known[name].is_configuration:
                    require_unit_parts(self.model, symbol)
            return algorithm(*symbols)

        return with_checks

    def _cheapest_text(self):
        """Program with the fewest operations among the quantity's algorithms."""
        texts = [self._check_units(a) for a in self._algorithms]
        return cheapest([trace(text, self.inputs, self.quantity.name) for text in texts])

    def _validate(self, arrays):
        """Raise errors for arguments of wrong shape or value."""
        self.quantity.validate(self.model, self.names, arrays, self.options)

    def _general_code(self):
        """Kernel that serves any mechanism, by loops or calls; None where there is none."""
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
        """Function that traces an algorithm which calls other kernels."""
        text = self._check_units(self._bind(algorithm))
        return lambda: trace(text, self.inputs, self.quantity.name)

    def _first_on_arrays(self, function, algorithm):
        """Kernel that answers by a Python function on arrays, until its algorithm is compiled."""
        found = self._kernel_for(None if algorithm is None else self._by_calls(algorithm))
        found.on_arrays, found.calls_general_code = function, algorithm is not None
        return found
