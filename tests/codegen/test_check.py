"""Every back end against the interpreter, and the interpreter against bad back ends."""

import zlib
from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sampling
from support.backends import COMPILER, all_exported_c, llvm, numpy_listing
from support.closeness import assert_close
from support.mechanisms import with_sensors, with_servos, with_tendons
from support.states import conditioning

import kinetree as kt
from kinetree.codegen.check import cases, check_backend
from kinetree.codegen.machine_code import optimization
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render import c, numpy
from kinetree.errors import BackendError
from kinetree.expr import interpret
from kinetree.model.define import DEFINITIONS, kernel_of
from kinetree.quantities import task_space
from kinetree.samples import random_tree


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code_computes_what_the_interpreter_does(lanes, dtype):
    check_backend(llvm(lanes), [dtype])


def test_machine_code_of_eight_lanes():
    check_backend(llvm(8))


def test_numpy_listing_computes_what_the_interpreter_does():
    check_backend(numpy_listing)


def test_exported_c_computes_what_the_interpreter_does(tmp_path):
    if COMPILER:
        together = {
            dtype: all_exported_c(
                tmp_path, {x.program.name: x.program for x in cases(dtype)}, dtype
            )
            for dtype in ("float64", "float32")
        }
        check_backend(lambda program, dtype: together[dtype][program.name])
    for case in cases("float64"):  # a machine without a compiler still sees the text
        text = c.render(case.program)
        assert text.startswith(("int ", "static int "))
        assert text.count("{") == text.count("}")
        for output in case.program.outputs:
            assert f" {c.argument_name(output)}[" in text


def test_a_wrong_function_is_found():
    def sine_is_cosine(program, dtype):
        namespace = {}
        exec(numpy.render(program).replace("np.sin", "np.cos"), namespace)
        return namespace["operations_on_1"]

    with pytest.raises(BackendError, match=r"operations_on_1.*float64.*sin has .* expected"):
        check_backend(sine_is_cosine)


def test_a_wrong_precision_is_found():
    def always_double(program, dtype):
        function = numpy_listing(program, "float64")
        return lambda *a: function(*a)

    check_backend(always_double, ["float64"])
    with pytest.raises(BackendError, match="dtype float64, expected float32"):
        check_backend(always_double, ["float32"])


def test_a_lost_batch_axis_is_found():
    def squeezed(program, dtype):
        function = numpy_listing(program, dtype)

        def run(*arrays):
            results = function(*arrays)
            results = results if isinstance(results, tuple) else (results,)
            return tuple(r[0] for r in results)

        return run

    with pytest.raises(BackendError, match="shape"):
        check_backend(squeezed)


# --- programs of any form ------------------------------------------------------------------------


@st.composite
def formulas(draw):
    """A function of three numbers, as Python text; all values stay moderate."""
    names = ["x[0]", "x[1]", "x[2]"]
    lines = []
    for k in range(draw(st.integers(3, 14))):
        a, b, d = (draw(st.sampled_from(names)) for _ in "abd")
        form = draw(
            st.sampled_from(
                [
                    "{a} + {b}", "{a} - {b}", "0.5 * {a} * {b}", "{a} * {b} + {d}", "-{a}",
                    "np.sin({a})", "np.cos({a} + {b})", "{a} / (2 + {b} * {b})", "abs({a})",
                    "np.sqrt(1 + {a} * {a})", "atan2({a}, 1 + {b} * {b})", "{d} - {a} * {b}",
                    "select({a} < {b}, {d}, {a})",
                ]
            )
        )  # fmt: skip
        lines.append(f"t{k} = sin(" + form.format(a=a, b=b, d=d) + ")")  # stays within ±1
        names.append(f"t{k}")
    results = ", ".join(names[-3:])
    return "\n    ".join(["def f(x):", *lines, f"return np.array([{results}])"])


@settings(max_examples=20)
@given(formulas(), st.integers(0, 2**32 - 1))
def test_random_formulas_agree_on_all_back_ends(text, seed):
    from kinetree.spatial.ops import atan2, select, sin

    namespace = {"np": np, "atan2": atan2, "select": select, "sin": sin}
    exec(text, namespace)
    program = trace(namespace["f"], [Argument("x", (3,))], "f")
    x = np.random.default_rng(seed).uniform(-2, 2, (5, 3))
    (expected,) = interpret.run(program, x)
    assert_close(numpy_listing(program, "float64")(x), expected, ulps=500, scale=1)
    assert_close(llvm(2)(program, "float64")(x), expected, ulps=500, scale=1)


# --- every public function -----------------------------------------------------------------------


def kernel_for(model, name):
    """The kernel of a quantity, for a frame where it wants one."""
    options = {
        "name": model.body_names[-1], "rows": ("x",), "free": (1,), "at_center": True,
        "frame": "aligned" if name in (*task_space.__all__, "_applied_force") else "body",
        "at": "center_of_mass", "part": "bearing", "joint": None,
    }  # fmt: skip
    wanted = DEFINITIONS[name].options
    options = {n: x for n, x in options.items() if n in wanted}
    return kernel_of(model, name, EXTRA.get(name, ()), **options)


EXTRA = {
    "joint_reactions": ("qdd",),
    "sensor_readings": ("qd", "qdd"),
    "_under": ("lam", "loop_tau"),
}
"""Arrays that may be left out, and are not here."""

OF_ACTUATORS = ("actuator_forces", "driving_force", "activation_after")
OF_INTEGRALS = ("integral_motion", "states_after")
OF_TENDONS = ("tendon_jacobian", "tendon_lengths")
OF_LOOPS = ("_constraint_matrix", "_under")
"""Where there is nothing to compute without a loop."""


def random_inputs(model, kernel, rng):
    """Values of all inputs; configurations are valid, and poses those of some configuration."""

    def value(a):
        if a.name in ("q", "q0", "q1", "near"):
            return model.random_configuration(rng)
        if a.name == "poses":
            return kt.poses(model, model.random_configuration(rng))
        return 0.2 * rng.standard_normal(a.shape)

    return [value(a) for a in kernel.inputs]


@cache
def example(name):
    """A mechanism for a function, its kernel and inputs, and what the interpreter computes."""
    test = f"tests/codegen/test_check.py::test_every_function_agrees_on_all_back_ends[{name}]"
    rng = np.random.default_rng(zlib.crc32(test.encode()))  # as the fixture of this name
    model = kt.samples.four_bar() if name in OF_LOOPS else random_tree(2, rng, branching=0.3)
    model = with_sensors(model) if name == "sensor_readings" else model
    model = with_tendons(model) if name in OF_TENDONS else model
    model = with_servos(model) if name in (*OF_ACTUATORS, *OF_INTEGRALS) else model
    if name in OF_INTEGRALS:
        bounded = {"integral": 0.7, "integral_zero": 0.1, "integral_range": (-0.05, 0.05)}
        model = model.replace(actuators=[replace(a, **bounded) for a in model.actuators])
    kernel = kernel_for(model, name)
    inputs = random_inputs(model, kernel, rng)
    return model, kernel, inputs, interpret.run(kernel.program, *inputs)[0]


@pytest.fixture(scope="module")
def in_c(tmp_path_factory, request):
    """What computes each function of this run in C, compiled together."""
    tested = sampling.values_of(request, "test_every_function_agrees_on_all_back_ends", "name")
    programs = {name: example(name)[1].program for name in DEFINITIONS if name in tested}
    return all_exported_c(tmp_path_factory.mktemp("c"), programs, level=0) if COMPILER else None


FORMS = {
    "alone": (1, "float64", lambda call, inputs: call(*inputs)),
    "batch": (2, "float64", lambda call, inputs: call(*(np.stack([x] * 3) for x in inputs))[1]),
    "single": (1, "float32", lambda call, inputs: call(*(x.astype(np.float32) for x in inputs))),
}
"""Compiled code: lanes, precision, and how the results of a sample are computed."""


@pytest.mark.covers("RBDA 10.4", by=("codegen.render.llvm.render", "codegen.render.c.render"))
@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_function_agrees_on_all_back_ends(name, in_c):
    model, kernel, inputs, expected = example(name)
    named = dict(zip((a.name for a in kernel.inputs), inputs, strict=True))
    condition = 1.0
    if "q" in named and name not in OF_LOOPS:
        condition = conditioning(model, named["q"]) ** 2
    size = max(1.0, float(np.max(np.abs(expected))))

    def agrees(result, dtype="float64"):
        assert np.asarray(result).dtype == dtype
        coarser = 2.0**29 if dtype == "float32" else 1.0
        result = np.asarray(result, float)
        assert_close(result, expected, condition=condition * coarser, scale=size, ulps=2000)

    agrees(kernel.reference(inputs))
    agrees(numpy_listing(kernel.program, "float64")(*inputs))
    if COMPILER:
        (result,) = in_c[name](*inputs)
        agrees(result)
    for lanes, dtype, computed in FORMS.values():
        with kt.tier("general"):  # the same where there is no general code
            agrees(computed(kernel.call, inputs), dtype)
        with kt.tier("specialised"):
            found = computed(kernel.call, inputs)
        agrees(found, dtype)
        # What LLVM has not optimised, which runs first, computes what it has to the last bit.
        assert (optimization(kernel.level), optimization()) == (0, 1)
        np.testing.assert_array_equal(llvm(lanes)(kernel.program, dtype)(*inputs), found)


def test_levels_compute_the_same_bits_in_loops_and_wide_vectors(rng):
    """Loops, choices, elementary functions, and sums that a compiler might fuse or reorder."""

    def body(state):
        x, y = state
        x, y = x - 0.1 * np.array([y[0] * x[1], np.sin(x[2]) * x[0], x[0] * x[1] + y[2]]), y + x
        return x, kt.select(x[0] < y[1], y, y * 0.5 + np.tanh(x))

    def formula(x, y):
        x, y = kt.repeat(body, (x, y), 7)
        return np.concatenate([x / (1 + y * y), np.exp(-y * y), [np.arctan2(x[0], y[1]), x @ y]])

    inputs = [Argument("x", (3,)), Argument("y", (3,))]
    program = trace(formula, inputs, "f")
    x, y = rng.standard_normal((2, 40, 3))
    for dtype in ("float64", "float32"):
        for lanes in (1, 2, 4, 8, 16):
            found = [llvm(lanes, level)(program, dtype)(x, y) for level in (0, 1)]
            np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", ["inverse_dynamics", "mass_matrix", "forward_dynamics", "pose"])
def test_double_precision_is_close_to_fifty_digits(name, rng):
    model = random_tree(4, rng, joints=[kt.Revolute("z"), kt.Prismatic("x"), kt.Revolute("y")])
    kernel = kernel_for(model, name)
    inputs = random_inputs(model, kernel, rng)
    with mpmath.workdps(50):
        exact = [np.vectorize(mpmath.mpf, otypes=[object])(x) for x in inputs]
        (oracle,) = interpret.run(kernel.program, *exact, functions=mpmath)
        error = max(abs(mpmath.mpf(float(a)) - b) for a, b in zip(
            np.ravel(kernel.call(*inputs)), np.ravel(oracle), strict=True))  # fmt: skip
        size = max(abs(b) for b in np.ravel(oracle))
    condition = conditioning(model, inputs[0]) if name == "forward_dynamics" else 1
    assert error <= 32 * 2.0**-53 * condition * size
