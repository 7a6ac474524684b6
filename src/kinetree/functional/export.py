"""A model's functions as text: standalone C to take elsewhere, NumPy source to read."""

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kinetree.codegen import tiers
from kinetree.codegen.export import CFunction, Sample, write_project
from kinetree.codegen.loops.language import BODIES
from kinetree.codegen.program import Argument, Program
from kinetree.codegen.render import numpy as numpy_renderer
from kinetree.codegen.render.cstyle import identifier
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.errors import BackendError, UnknownNameError, names_itself
from kinetree.expr.node import Graph
from kinetree.functional.kernel import kernel
from kinetree.functional.layout import labels, layout
from kinetree.functional.prepare import bind, leaves_of, prepare
from kinetree.model import Model
from kinetree.model.array_arguments import argument_shape
from kinetree.model.define import is_public, kernel_of
from kinetree.quantities import FUNCTIONS
from kinetree.spelling import did_you_mean

__all__ = ["export_c", "listing", "to_numpy"]

_RESULTS = {  # name of the result in listings, and its meaning
    "inverse_dynamics": ("tau", "joint forces [N, N m]"),
    "bias_force": ("tau", "joint forces [N, N m]"),
    "gravity_force": ("tau", "joint forces [N, N m]"),
    "forward_dynamics": ("qdd", "joint accelerations [m/s^2, rad/s^2]"),
    "mass_matrix": ("H", "joint-space inertia matrix [kg, kg m, kg m^2]"),
    "inverse_mass_matrix": ("H_inverse", "its inverse"),
    "coriolis_matrix": ("C", "Coriolis matrix"),
    "pose": ("T", "homogeneous matrix, frame to base coordinates"),
    "jacobian": ("J", "Jacobian, angular rows first"),
    "jacobian_rate": ("Jd", "rate of the Jacobian, angular rows first"),
    "velocity": ("v", "spatial velocity [rad/s, m/s], angular part first"),
    "acceleration": ("a", "acceleration [rad/s^2, m/s^2], angular part first"),
    "kinetic_energy": ("energy", "[J]"),
    "potential_energy": ("energy", "[J]"),
    "momentum": ("momentum", "[N m s, N s], moment first"),
    "center_of_mass": ("c", "[m], base coordinates"),
}
_ARGUMENTS = {
    "q": "joint positions [m, rad]",
    "qd": "joint velocities [m/s, rad/s]",
    "qdd": "joint accelerations [m/s^2, rad/s^2]",
    "tau": "joint forces [N, N m]",
    "f_ext": "force on every body [N m, N], base coordinates, moment first",
    "point": "point in frame coordinates [m]",
}
_SAMPLES = 4


@names_itself
def export_c(
    model: Model,
    functions: Sequence[Any],
    path: str | PathLike[str],
    *,
    name: str | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    tier: Literal["specialised", "general"] = "specialised",
) -> Path:
    """Write standalone C for functions of a model: header, source, self-test, Makefile.

    ``make test`` in that folder compiles the code and compares it with numbers computed here.

    Args:
        model: the mechanism.
        functions: what to export: names or functions such as ``"inverse_dynamics"`` or
            ``kt.mass_matrix``, or pairs of one and its options, such as
            ``("jacobian", {"name": "tool", "frame": "world"})``; derivatives, and functions of your
            own with parameters ``(model, q, ...)``, too.
        path: the folder; created if need be.
        name: start of all names in the code; by default the name of the folder.
        dtype: ``"float64"`` for double or ``"float32"`` for float.
        tier: ``"specialised"``: straight lines for this mechanism, the fastest; ``"general"``:
            loops over tables of it, whose text does not grow with the number of bodies.

    Returns:
        The folder.
    """
    from kinetree import __version__

    if tier not in ("specialised", "general"):
        raise UnknownNameError(f"tier must be 'specialised' or 'general', got {tier!r}")

    path = Path(path)
    prefix = identifier(name or path.resolve().name)
    several = [functions] if isinstance(functions, str) or callable(functions) else functions
    requests = [_Request(model, f, tier) for f in several]
    exported = [_c_function(r, dtype) for r in requests]
    origin = f"{__version__} from model {model.name!r} ({model.fingerprint[:16]})."
    return write_project(
        path, prefix, exported, origin=origin, notes=layout(model), dtype=str(np.dtype(dtype))
    )


@names_itself
def listing(function: Callable[..., Any] | str, model: Model, **options: Any) -> str:
    """Python source that computes a function of a model with NumPy, one number at a time.

    Args:
        function: a function such as ``kt.inverse_dynamics``, its name, a derivative, or one of
            your own.
        model: the mechanism.
        options: what the function takes besides the model and arrays, such as ``name="tool"``;
            ``f_ext=True`` makes external forces an input.
    """
    request = _Request(model, (function, options))
    return numpy_renderer.render(request.program, labels(model))


@names_itself
def to_numpy(
    function: Callable[..., Any] | str, model: Model, **options: Any
) -> Callable[..., Any]:
    """Function of batched NumPy arrays from the listing; its text is ``.source``.

    Debuggers, tracebacks and ``inspect.getsource`` show that text.
    """
    request = _Request(model, (function, options))
    return numpy_renderer.function(request.program, labels(model))


class _Request:
    """A function with its options, found and traced."""

    def __init__(self, model, entry, tier="specialised"):
        function, options = entry if isinstance(entry, tuple) else (entry, {})
        self.model, self.options = model, dict(options)
        self.function = function = _traceable(function)
        while hasattr(function, "trace_sample"):  # what a derivative is of
            function = function.function
        self.root = getattr(function, "function", function)
        self.base, self.loops = self.function.__name__, None
        self.program = self._program() if tier == "specialised" else self._general_program()

    @property
    def name(self):
        """Name of the exported function, distinct for different options."""
        parts = [*self._derivatives(), *(v for v in self.options.values() if isinstance(v, str))]
        parts += [k for k, v in self.options.items() if v is True]
        return identifier("_".join([self.base, *map(str, parts)]))

    def _derivatives(self):
        """Names of the variables that the function is a derivative with respect to."""
        wrt = getattr(self.function, "wrt", ())
        return wrt if isinstance(wrt, tuple) else (wrt,)

    def compute(self, *arrays):
        """Results of the function called in Python, as float arrays."""
        named = dict(zip((a.name for a in self.program.inputs), arrays, strict=True))
        # A robot for which loops are wanted may be too large for its own code.
        with nullcontext() if self.loops is None else tiers.tier("general"):
            result = self.function(self.model, **{**self.options, **named})
        return tuple(np.asarray(r, dtype=float) for r in leaves_of(result))

    def about(self):
        """Description of each argument and result, by name."""
        about = {a.name: _ARGUMENTS.get(a.name, "") for a in self.program.inputs}
        outputs, parts = self.program.outputs, self._derivatives()
        if len(outputs) == len(parts):
            texts = [f"derivative with respect to {part}" for part in parts]
        else:
            texts = [_RESULTS.get(self.base, ("", ""))[1]] * len(outputs)
        return about | {o.name: text for o, text in zip(outputs, texts, strict=True)}

    def summary(self):
        """Purpose of the function in words, from its docstring and options."""
        text = (inspect.getdoc(self.root) or self.root.__name__).split("\n\n")[0]
        text = re.sub(r",? *\(\.\.\.[^)]*\)", "", " ".join(text.replace("``", "").split()))
        chosen = ", ".join(f"{k} = {v!r}" for k, v in self.options.items() if v is not True)
        text = f"Derivative of: {text}" if self._derivatives() else text
        return f"{text} Here {chosen}." if chosen else text

    def _program(self):
        """Program that is exported, of a public or a user's function."""
        if self._is_quantity():
            program = kernel_of(self.model, self.base, tuple(self.options)).program
        else:
            call = bind(self.function, (self.model,), {**self.options, **self._arrays()})
            program = prepare(self.function, call).kernel.program
        if len(program.outputs) != 1:
            return replace(program, name=self.name)
        result = _RESULTS.get(self.base, ("result", ""))[0]
        return replace(program, name=self.name, outputs=(replace(program.outputs[0], name=result),))

    def _general_program(self):
        """Arguments of the loop program that is exported; BackendError if there is none."""
        quantity, found = getattr(self.function, "definition", None), None
        if quantity is not None and quantity.general:
            extra = tuple(n for n in quantity.optional if self.options.get(n) is True)
            options = {n: v for n, v in self.options.items() if n in quantity.options}
            found = quantity.kernel(self.model, extra, **options).general_kernel
        if not isinstance(found, LoopKernel):
            raise BackendError(
                f"{self.base} has no general code for model {self.model.name!r}: export it with "
                f"tier='specialised'"
            )
        self.loops = found.source.program(found.data.rows(BODIES).kinds), found.data
        result = Argument(_RESULTS.get(self.base, ("result", ""))[0], found.outputs[0].shape)
        return Program(self.name, tuple(found.inputs), (result,), Graph(), ())

    def _is_quantity(self):
        """Whether the function is a compiled quantity of arrays alone, with default options."""
        if not is_public(self.function) or self.options not in ({}, {"f_ext": True}):
            return False
        needed = [p.name for p in self._parameters() if p.default is p.empty]
        definition = getattr(self.function, "definition", None)
        return definition is not None and tuple(needed) == definition.required

    def _parameters(self):
        """Parameters of the function after the model."""
        return list(inspect.signature(self.root, eval_str=True).parameters.values())[1:]

    def _arrays(self):
        """Example array for every array parameter, in the shape of a sample."""
        arrays = {}
        for p in self._parameters():
            if self.options.get(p.name) is not True and (
                p.name in self.options or p.default is not p.empty
            ):
                continue
            if isinstance(p.annotation, tuple):
                shape = [getattr(self.model, n) if isinstance(n, str) else n for n in p.annotation]
            elif p.name in _ARGUMENTS:
                shape = argument_shape(self.model, p.name)
            else:
                raise UnknownNameError(
                    f"{self.root.__name__} needs {p.name!r}: give its value as an option, or the "
                    f"shape of the array as its annotation, such as {p.name}: (3,)"
                )
            arrays[p.name] = np.zeros(shape)
        return arrays


def _traceable(function):
    """Traceable function for a function, or a public one's name."""
    if callable(function):
        own = not is_public(function) and not hasattr(function, "bind")
        return kernel(function) if own else function
    if function not in FUNCTIONS:
        names = sorted(FUNCTIONS)
        hint = did_you_mean(function, names, f"choose from {names}", most=3)
        raise UnknownNameError(f"there is no function {function!r} to export; {hint}")
    return FUNCTIONS[function]


# --- C -------------------------------------------------------------------------------------------


def _c_function(request, dtype):
    """Function to be written as C, with test samples and variable labels."""
    return CFunction(
        name=request.name,
        program=request.program,
        summary=request.summary(),
        about=request.about(),
        samples=tuple(_samples(request, dtype)),
        labels=labels(request.model),
        loops=request.loops,
    )


def _samples(request, dtype):
    """Random inputs, expected results, and tolerances for rounding, for the C self-test.

    The tolerance comes from the function itself: how far results move when inputs do by an ulp.
    """
    rng = np.random.default_rng(0)
    eps = np.finfo(dtype).eps
    for _ in range(_SAMPLES):
        inputs = [_random(request.model, a, rng).astype(dtype) for a in request.program.inputs]
        exact = [a.astype(float) for a in inputs]
        outputs = request.compute(*exact)
        moved = np.zeros(len(outputs))
        for _ in range(3):
            near = [a * (1 + eps * rng.choice([-1, 1], a.shape)) for a in exact]
            change = zip(request.compute(*near), outputs, strict=True)
            moved = np.maximum(moved, [np.max(np.abs(x - y), initial=0) for x, y in change])
        size = np.array([np.max(np.abs(o), initial=0) for o in outputs])
        yield Sample(tuple(inputs), outputs, tuple(64 * (moved + eps * size) + eps))


def _random(model, argument, rng):
    """Random argument by its name; a valid configuration for ``q``."""
    if argument.name == "q" and argument.shape == (model.nq,):
        return np.asarray(model.random_configuration(rng))
    return rng.standard_normal(argument.shape)
