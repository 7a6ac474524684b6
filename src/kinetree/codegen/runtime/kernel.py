"""A program as a function of NumPy arrays: compiled when first needed, in the variant needed.

One sample at a time goes through scalar code and the lean path; batches through SIMD code and, when
large, through threads. Each variant is compiled (or found in the cache) on first use, and again
when ``codegen.tiers`` says that better code pays.
"""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from kinetree.arrays.batch import batch_of, of_sample
from kinetree.arrays.device import Plans
from kinetree.arrays.kinds import foreign_call, refuse_masked
from kinetree.codegen import tiers
from kinetree.codegen.build import build, build_entry
from kinetree.codegen.loops.language import BODIES
from kinetree.codegen.program import Argument, calls_of, noting, regroup_sums
from kinetree.codegen.runtime import derived
from kinetree.codegen.runtime.on_arrays import ArraysVariant
from kinetree.codegen.runtime.single import ANY_NUMBER, gufunc, left_of, single_call
from kinetree.codegen.runtime.threads import run_threaded, run_whole
from kinetree.errors import KinetreeError, ShapeError, SingularError, TraceError
from kinetree.expr.calls import call, calls, calls_to
from kinetree.expr.counting import cost, cost_of_calls

_FLOAT64 = np.dtype(np.float64)
_LEAN = (("float64", False), ("float64", True))  # variants: for single samples, for batches
_LARGE = 250  # bodies: about 80,000 operations of forward dynamics
_BRIEF = 8192  # numbers of a batch that takes microseconds: no threads, the GIL is kept

LONG = 800  # weighted operations beside which a call costs nothing: see benchmarks/results.md

_NATIVE = frozenset((np.ndarray, float, int, list, tuple, np.float64, np.float32))


class Kernel:
    """A compiled function of arrays whose leading axes are batches.

    Args:
        name: for messages.
        inputs: ``Argument``s in call order.
        outputs: ``Argument``s of the results.
        make_program: traces the program; called at most once, and not at all on a cache hit. None
            for a kernel that always answers ``on_arrays``.
        reference: computes the result of arrays without compiled code; takes any numbers.
        validate: raises for arrays that make no sense, naming what is wrong.
        key: what identifies the program before it is traced, or None; or a function for it.
        general_code: makes a kernel of the same inputs and results whose code serves every robot,
            or None where that cannot be had; None for a kernel that has no such code.

    Attributes:
        call: the fastest way in; takes the inputs in order.
        lean: the fastest way in for NumPy arrays.
        samples: that were requested of it, when its code was last chosen.
        tier, level: of the code chosen then; see ``codegen.tiers``.
        is_settled: whether specialised code of the highest level was requested, for good.
        task: within which the code was chosen, or None.
        warn: gives a warning that tracing gave when the code was compiled, for code found in the
            cache; takes a pair as in ``Program.warnings``. Ignores it unless set.
    """

    def __init__(
        self,
        name,
        inputs,
        outputs,
        make_program,
        *,
        reference,
        validate,
        key=None,
        general_code=None,
    ):
        self.name, self.inputs = name, tuple(inputs)
        self.outputs: tuple[Argument, ...] = tuple(outputs)
        self.make_program, self._key, self.general_code = make_program, key, general_code
        self.warn: Callable[[tuple], None] = lambda warning: None
        self.samples, self.tier, self.level = 0, "specialised", 0
        self.is_settled, self.task = False, None
        self._connected, self._budget = None, None  # what goes the lean path, and how far
        self._left: Any = None
        self._lasting: dict = {}  # variants that need not be chosen again
        self.reference, self.validate = reference, validate
        sizes = [a.size for a in (*self.inputs, *self.outputs)]
        self.numbers, self.is_empty = sum(sizes), 0 in sizes
        self._most = 0 if self.is_empty else _BRIEF // self.numbers
        self._cores = [(tuple(a.shape), len(a.shape)) for a in self.inputs]
        self.call: Callable[..., Any] = self.full
        self.lean: Callable[..., Any] = self.full
        self._lean_of: tuple = None, None, None  # machine code, the lean path, samples left on it
        self._variants, self._entries, self._derived, self._ways = {}, {}, {}, {}
        self.plans = Plans()  # launches on a GPU that were prepared
        self.on_gpu: Any = None  # layout and options of the compiler; None for the usual ones
        self._longest = 0  # samples of one of them

    @cached_property
    def key(self) -> Any:
        """Key that identifies the program before it is traced, or None."""
        return self._key() if callable(self._key) else self._key

    @cached_property
    def program(self):
        """The traced program without calls of other kernels, ready to be compiled."""
        with calls(None):
            return self._trace()

    @cached_property
    def program_with_calls(self):
        """The traced program with calls of other kernels, as it is compiled for the CPU."""
        with calls("general" if self.calls_general_code else "specialised"):
            program = self._trace()
        if not calls_of(program):
            self.__dict__.setdefault("program", program)
        return program

    def _trace(self):
        """Program of the kernel, with warnings that were noted while tracing."""
        with noting() as noted:
            program = self.make_program()
        program = replace(program, warnings=tuple(dict.fromkeys((*program.warnings, *noted))))
        if not self.calls_general_code:  # the first answer should not wait for regrouping
            program = regroup_sums(program)
        both = (program.outputs, self.outputs)
        traced, declared = ([a.shape for a in outputs] for outputs in both)
        if traced != declared:  # compiled code would write beyond its arrays
            raise TraceError(
                f"{self.name} is declared to return the shapes {declared}, and returns {traced}"
            )
        return program

    # --- calls from other programs: see kinetree.expr.calls --------------------------------------

    many = 0  # samples that repay specialised code; ``tiers.MANY``
    calls_general_code = False  # or is general code
    is_shared = False  # called by programs that call general code, copied by specialised ones

    def to_call(self) -> "Kernel":
        """Kernel that a traced program should call: the general one for every robot, or this."""
        return self.general_entry or self if calls_to() == "general" else self

    def called_in(self, graph, arrays) -> Any:
        """Traced call of the general kernel; None if inlining a copy is better.

        Only vectors and numbers are called for: what uses a matrix has to see which of its entries
        are zero.
        """
        if [len(o.shape) for o in self.outputs] not in ([0], [1]) or not self._takes(arrays):
            return None
        return None if self.general_entry is None else call(graph, self.general_entry, arrays)[0]

    def called_once(self, graph, arrays) -> Any:
        """Traced call of this kernel's code in programs that call; None if a copy is as good.

        None where the code is so short that a copy is as good.
        """
        if not self._takes(arrays) or self.own_cost < LONG:
            return None
        self.is_shared = True
        results: Any = call(graph, self, arrays)
        return results if len(results) > 1 else results[0]

    def _takes(self, arrays):
        """Whether arrays have the shapes of one sample, without batch axes."""
        given = zip(arrays, self.inputs, strict=True)
        return all(np.shape(a) == i.shape for a, i in given)

    def with_general_calls(self, *, always=False) -> "Kernel | None":
        """Kernel whose program calls general code for parts of the work; None if there is none.

        ``always``: also where the program calls none, so that other such programs share its code.
        """
        try:
            with calls("general"):
                program = self.make_program()
        except TraceError:  # loops have no derivative
            return None
        if not always and not any(k.calls_general_code or k.is_shared for k in calls_of(program)):
            return None
        found = Kernel(
            self.name,
            self.inputs,
            self.outputs,
            self.make_program,
            reference=self.reference,
            validate=self.validate,
        )
        found.calls_general_code = True
        return found

    @cached_property
    def constants(self) -> dict:
        """Entries of the results that are constant, by their number among all entries."""
        nodes, roots = self.program_with_calls.graph.nodes, self.program_with_calls.roots
        return {k: nodes[i][1] for k, i in enumerate(roots) if nodes[i][0] == "const"}

    @cached_property
    def cost(self) -> float:
        """Estimated time of a sample: operations weighted by their cost."""
        return cost(self.program_with_calls.graph, self.program_with_calls.roots)

    @cached_property
    def own_cost(self) -> float:
        """Estimated time of a sample without the kernels that it calls."""
        graph, roots = self.program_with_calls.graph, self.program_with_calls.roots
        return self.cost - cost_of_calls(graph, roots)

    def entry(self, dtype, lanes, level) -> Any:
        """Machine code of this kernel as a subroutine for other code."""
        found = self._entries.get((dtype, lanes))
        if found is None or found.code.level < level:
            found = self._entries[dtype, lanes] = build_entry(self, dtype, lanes, level)
        return found

    # --- arrays of other libraries, and derivatives with respect to what is in arrays -------------

    def take(self, kind, way):
        """Register ``way(*arrays)`` for calls with an array type; NotImplemented declines."""
        self._ways[kind] = way
        self.call = self._by_kind

    def _by_kind(self, *arrays):
        """Call the function registered for the arrays' type, else compiled code."""
        for a in arrays:
            way = self._ways.get(type(a))
            if way is not None:
                result = way(*arrays)
                if result is not NotImplemented:
                    return result
                break
        return self.lean(*arrays)

    def on_device(self, dtype, device, samples=0):
        """Kernel compiled for a CUDA device, general or specialised by ``samples`` to come."""
        from kinetree.codegen.runtime.cuda import cuda_kernel  # needs CuPy

        self._count()
        tiers.decide(self, samples)
        tiers.note_connection(self)
        general = self.tier == "general" or (tiers.setting() == "auto" and self.is_large)
        return cuda_kernel(self.general_entry or self if general else self, dtype, device)

    def plan_launch(self, compiled, count) -> Any:
        """Launch that later device calls may repeat; None while the tier may still change.

        Args:
            compiled: what a call has just launched.
            count: its samples.
        """
        if self.tier == "specialised" or tiers.setting() != "auto":
            return compiled
        self._longest = max(self._longest, count)
        return None if self.samples + self._longest > tiers.MANY else _Counted(self, compiled)

    def count(self, samples):
        """Count samples of a repeated launch; plans are dropped when the tier could change."""
        self.samples += samples
        if self.samples + self._longest > tiers.MANY:
            self.plans.clear()

    @property
    def is_large(self) -> bool:
        """Whether the robot has so many bodies that specialised code takes minutes to compile."""
        data = getattr(self.general_kernel, "data", None)  # none where general code is only called
        return data is not None and data.rows(BODIES).count > _LARGE

    def rates(self, wrt) -> "Kernel":
        """Kernel of directional derivatives: takes the inputs, then rates of those in ``wrt``."""
        return self._derive_once(derived.rates, wrt)

    def gradients(self, wrt) -> "Kernel":
        """Kernel of gradients of a weighted sum of results: takes the inputs, then the weights."""
        return self._derive_once(derived.gradients, wrt)

    def linear_transpose(self, wrt) -> "Kernel":
        """Kernel of ``gradients`` for a kernel linear in ``wrt``, whose values it does not take."""
        return self._derive_once(derived.linear_transpose, wrt)

    def _derive_once(self, derive, wrt):
        """Kernel of a derivative, derived once for each ``wrt``."""
        found = self._derived.get((derive, wrt))
        if found is None:
            found = self._derived[derive, wrt] = derive(self, wrt)
        return found

    # --- calls ------------------------------------------------------------------------------------

    def variant(self, dtype, wide, samples=0):
        """Compiled code for one precision, for single samples or batches, by the current tier.

        Args:
            dtype: the precision.
            wide: whether it is for batches.
            samples: that are about to be requested of it, for ``tiers`` to choose the code.
        """
        found = self._lasting.get((dtype, wide))
        if found is not None:
            return found
        self._count()
        tiers.decide(self, samples)
        key = self.tier, dtype, wide
        found, level = self._variants.get(key, (None, -1))
        if found is None or level < self.level:
            source = self.general_kernel if self.tier == "general" else self
            found = source.make_variant(dtype, wide, self.level)
            own = 0 if found.code is None else found.code.level
            self._variants[key] = found, max(self.level, own)
        self._connect()
        if tiers.samples_left(self) is None:
            self._lasting[dtype, wide] = found
        return found

    def code_variant(self, dtype, wide, samples=0) -> Any:
        """Compiled code that machine code can call, which plain Python answers cannot be."""
        found = self.variant(dtype, wide, samples)
        if found.code is not None:
            return found
        key = "code", dtype, wide
        found, level = self._variants.get(key, (None, -1))
        if found is None or level < self.level:
            found = Variant(self, dtype, wide, self.level)
            self._variants[key] = found, max(self.level, found.code.level)
        return found

    on_arrays: Callable[..., tuple] | None = None  # takes first calls in place of code

    def make_variant(self, dtype, wide, level) -> Any:
        """Compile code for one precision and width, or find it in the cache."""
        if self.on_arrays is not None and (self.make_program is None or not level):
            return ArraysVariant(self)
        return Variant(self, dtype, wide, level)

    @cached_property
    def general_kernel(self) -> Any:
        """Kernel of the same results by loops that serve every robot; None if there is none."""
        return None if self.general_code is None else self.general_code()

    @property
    def general_entry(self) -> Any:
        """General kernel that machine code can call; None if it only has a Python function."""
        found = self.general_kernel
        return found if found is not None and found.calls_general_code else None

    @property
    def has_general_code(self) -> bool:
        """Whether there is a general kernel, which serves every robot."""
        return self.general_kernel is not None

    @property
    def next_tier(self) -> Any:
        """Tier of code, general or specialised, that the next sample will run."""
        self._count()
        return tiers.next_tier(self)

    def settle(self):
        """Run specialised code, fully optimised, from now on."""
        self.is_settled = True
        self.disconnect()

    def _connect(self):
        """Install compiled functions that handle plain float64 calls without Python code."""
        found = [self._variants.get((self.tier, *k)) for k in _LEAN]
        codes = alone, wide = found[0] and found[0][0].code, found[1] and found[1][0].code
        if codes == (None, None):
            return
        left = tiers.samples_left(self)
        if codes != self._connected:
            if codes != self._lean_of[0]:  # else a task has ended meanwhile
                lean = single_call(self.name, "float64", self.full, alone, wide, self._most)
                self._lean_of = codes, lean, left_of(*codes)
            _, self.lean, self._left = self._lean_of
            if not self._ways:
                self.call = self.lean
            self._connected = codes
            tiers.note_connection(self)
        self._budget, self._left.value = left, ANY_NUMBER if left is None else left

    def disconnect(self):
        """Remove the compiled call path, so that the next call chooses its code again."""
        self._count()
        self._connected, self._budget, self.lean = None, None, self.full
        self._lasting.clear()
        self.plans.clear()
        if not self._ways:
            self.call = self.lean

    def _count(self):
        """Add the calls that compiled code answered since the last count to the samples."""
        if self._budget is not None:
            left = self._left.value
            self.samples += max(self._budget - left, 0)
            self._budget = left

    def full(self, *arrays, out=None) -> Any:
        """Evaluate the kernel on any arrays: converts, checks, broadcasts; errors get its name."""
        try:
            return self._full(arrays, out)
        except KinetreeError as error:
            error.put_name(self.name)
            raise

    def _full(self, arrays, out) -> Any:
        """Results for arguments of any kind: conversion, checks, broadcasting, compiled code."""
        batch = self._ready(arrays) if out is None else None
        if batch is not None:
            return self._run(arrays, batch, "float64", out)
        for a in arrays:
            if type(a) not in _NATIVE:
                result = foreign_call(self, arrays, out)
                if result is not NotImplemented:
                    return result
                for x, i in zip(arrays, self.inputs, strict=False):
                    refuse_masked(x, f"{self.name}: {i.name}")
                break
        try:
            arrays = [np.asarray(a) for a in arrays]
        except ValueError:  # rows of different lengths
            self.validate(arrays)
            raise
        if any(a.dtype.kind not in "fiub" or a.dtype.itemsize > 8 for a in arrays):
            self.validate(arrays)
            return self.reference(arrays)  # traced, complex or exact numbers
        dtype = "float32" if all(a.dtype.char == "f" for a in arrays) else "float64"
        arrays = [a if a.dtype == dtype else a.astype(dtype) for a in arrays]
        batch = self._batch(arrays)
        if out is not None:
            self._check_out(out, batch, dtype)
        if self.is_empty:
            self.validate(arrays)  # ufuncs have no axes of length zero
            return _copy_to(_of_type(self.reference(arrays), dtype), out)
        if out is not None:  # inputs may be needed again after results have been written
            arrays = [a.copy() if _overlaps(a, out) else a for a in arrays]
        return self._run(arrays, batch, dtype, out)

    def _check_out(self, out, batch, dtype):
        """Raise ShapeError if results cannot be written to the arrays ``out``."""
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(self.outputs):
            raise ShapeError(
                f"{self.name} returns {len(self.outputs)} arrays, so out= takes as many, got "
                f"{len(outs)}"
            )
        for k, (o, result) in enumerate(zip(outs, self.outputs, strict=True)):
            name = f"{self.name}: out" + (f"[{k}]" if len(outs) > 1 else "")
            shape = batch + result.shape
            if not isinstance(o, np.ndarray):
                raise ShapeError(f"{name} must be a NumPy array {shape}, got {type(o).__name__}")
            if o.shape[-len(shape) :] != shape and shape:
                raise ShapeError(f"{name} must have the shape of the result {shape}, got {o.shape}")
            if not np.can_cast(dtype, o.dtype, "same_kind"):
                raise ShapeError(f"{name} must be an array of {dtype}, got {o.dtype}")
            if not o.flags.writeable:
                raise ShapeError(f"{name} is read-only")

    def _ready(self, arrays):
        """Batch shape if all arrays are float64 and contiguous with equal batches; else None."""
        lead = None
        if len(arrays) == len(self._cores) and not self.is_empty:
            for a, (shape, n) in zip(arrays, self._cores, strict=True):
                if type(a) is not np.ndarray or a.dtype is not _FLOAT64 or a.ndim != n + 1:
                    return None
                whole = a.shape
                if whole[1:] != shape or (lead is not None and whole[0] != lead):
                    return None
                lead = whole[0]
        return None if lead is None else (lead,)

    def _run(self, arrays, batch, dtype, out) -> Any:
        """Results of compiled code for a batch."""
        try:
            samples = prod(batch)
            variant = self.variant(dtype, wide=samples > 1, samples=samples)
        except SingularError:  # in every configuration, so that tracing itself finds out
            self.validate(arrays)
            return self.reference(arrays)
        before = variant.status.value
        run = run_whole if variant.code is None else run_threaded
        result = run(variant.ufunc, arrays, self, batch, dtype, out)
        if variant.status.value != before:
            result = _copy_to(self._repair(arrays, result), out)
        return result

    def _repair(self, arrays, result):
        """Recompute failed samples in Python; an error names the sample that is wrong."""
        self.validate(arrays)
        shape = np.shape(result[0] if isinstance(result, tuple) else result)
        batch = shape[: len(shape) - len(self.outputs[0].shape)]
        full = [
            np.broadcast_to(a, batch + i.shape) for a, i in zip(arrays, self.inputs, strict=True)
        ]
        results = [np.array(r) for r in (result if isinstance(result, tuple) else (result,))]
        for index in np.ndindex(batch):
            sample = [a[index] for a in full]
            if not self._is_good(sample):
                exact = self._reference_sample(sample, index)
                for r, x in zip(
                    results, exact if isinstance(exact, tuple) else (exact,), strict=True
                ):
                    r[index] = x
        done = tuple(r if r.shape else r[()] for r in results)
        return done if isinstance(result, tuple) else done[0]

    def _reference_sample(self, sample, index):
        """Result of one sample by the reference in Python; errors name the sample."""
        try:
            return self.reference(sample)
        except (ShapeError, SingularError) as error:
            raise of_sample(error, index) from error

    def _is_good(self, sample):
        """Whether one sample passes all run-time checks."""
        variant = self.variant("float32" if sample[0].dtype.char == "f" else "float64", False)
        before = variant.status.value
        with np.errstate(all="ignore"):
            variant.ufunc(*sample)
        return variant.status.value == before

    def _batch(self, arrays):
        """Batch shape of arguments; ShapeError that says what is wrong."""
        try:
            return batch_of(self, [a.shape for a in arrays])
        except ShapeError:
            self.validate(arrays)  # which may know better what is wrong
            raise


class _Counted:
    """General code on a device, whose planned launches are counted."""

    def __init__(self, kernel, compiled):
        self.kernel, self.compiled = kernel, compiled

    def again(self, steps, count):
        """GPU launcher for arrays of equal strides and sample count, which counts samples."""
        launch, kernel = self.compiled.again(steps, count), self.kernel

        def launch_and_count(inputs, outputs, stream):
            launch(inputs, outputs, stream)
            kernel.count(count)

        return launch_and_count


def _overlaps(array, out):
    """Whether an input array shares memory with a result array."""
    outs = out if isinstance(out, tuple) else (out,)
    return any(o is not None and np.may_share_memory(array, o) for o in outs)


def _of_type(result, dtype):
    """Results converted to a precision where they came as object arrays."""
    if isinstance(result, tuple):
        return tuple(_of_type(r, dtype) for r in result)
    result = np.asarray(result)
    return result.astype(dtype) if result.dtype.kind == "O" else result[()]


def _copy_to(result, out):
    """Result copied into the arrays ``out``, or itself if there are none."""
    if out is None:
        return result
    outs, results = (x if isinstance(x, tuple) else (x,) for x in (out, result))
    for o, r in zip(outs, results, strict=True):
        o[...] = r
    return out if isinstance(result, tuple) else outs[0]


class Variant:
    """Machine code for one precision and one number of lanes."""

    def __init__(self, kernel, dtype, wide, level=1):
        self.code = build(kernel, dtype, wide, level)
        self.status = ctypes.c_int64(0)
        self.ufunc = gufunc(kernel, dtype, self.code.address("loop"), self.status)
