"""The lean path for one sample: same answers, no leaks, and a way out for everything else."""

import ctypes
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render import llvm_shared, llvm_single
from kinetree.codegen.runtime import single
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import ShapeError, SingularError
from kinetree.model.define import kernel_of

X = Argument("x", (3,))
Y = Argument("y", ())


def make_kernel(function, inputs=(X, Y), **options):
    """A kernel; its reference says which road was taken by negating the result."""
    program = trace(function, list(inputs), "f")

    def reference(arrays):
        result = function(*arrays)
        return tuple(-np.asarray(r) for r in result) if isinstance(result, tuple) else -result

    defaults = {"reference": reference, "validate": lambda arrays: None}
    return Kernel("f", inputs, program.outputs, lambda: program, **defaults | options)


def scaled(x, y):
    return x * y


@pytest.fixture(scope="module")
def kernel():
    k = make_kernel(scaled)
    k.call(np.ones(3), np.array(1.0))
    assert k.call is not k.full
    return k


def test_the_first_call_installs_the_lean_path(rng):
    k = make_kernel(scaled)
    assert k.call == k.full
    x, y = rng.standard_normal(3), np.array(2.0)
    first = k.call(x, y)
    assert k.call != k.full
    assert type(k.call).__name__ == "builtin_function_or_method"
    np.testing.assert_array_equal(k.call(x, y), first)
    np.testing.assert_array_equal(first, 2 * x)


def test_results_are_new_arrays_of_their_own(kernel):
    x, y = np.ones(3), np.array(3.0)
    a, b = kernel.call(x, y), kernel.call(x, y)
    a[0] = 7
    np.testing.assert_array_equal(b, [3, 3, 3])
    assert a.flags.owndata
    assert a.flags.writeable
    assert type(a) is np.ndarray
    assert a.dtype == np.float64


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2, 3], 2),
        (np.array([1, 2, 3]), np.array(2)),
        (np.array([1.0, 2, 3]), 2.0),
        (np.array([1.0, 2, 3]).view(Sub), np.array(2.0).view(Sub)),
        (np.array([1.0, 9, 2, 9, 3])[::2], np.array(2.0)),
        (np.array([3.0, 2, 1])[::-1], np.array(2.0)),
        (np.array([1.0, 2, 3], ">f8"), np.array(2.0)),
        (np.frombuffer(b"\0" + np.arange(1.0, 4).tobytes(), "u1")[1:].view(float), np.array(2.0)),
        ((1.0, 2.0, 3.0), np.float32(2)),
        (np.array([True, True, True]) * [1, 2, 3], np.array(2, np.int8)),
    ],
    ids=["list", "ints", "float", "subclass", "strided", "backwards", "big-endian", "misaligned",
         "tuple", "bools"],
)  # fmt: skip
def test_other_arrays_take_the_general_path(kernel, x, y):
    result = kernel.call(x, y)
    np.testing.assert_array_equal(result, [2, 4, 6])
    assert type(result) is np.ndarray


def test_batches_and_single_precision_take_the_general_path(kernel):
    np.testing.assert_array_equal(kernel.call(np.ones((4, 3)), np.arange(4.0))[2], [2, 2, 2])
    result = kernel.call(np.ones(3, np.float32), np.array(2, np.float32))
    assert result.dtype == np.float32


def test_read_only_arrays_are_fine(kernel):
    x = np.ones(3)
    x.flags.writeable = False
    np.testing.assert_array_equal(kernel.call(x, np.array(2.0)), [2, 2, 2])


def test_keywords_reach_the_general_path(kernel):
    out = np.empty(3)
    assert kernel.call(np.ones(3), np.array(2.0), out=out) is out
    np.testing.assert_array_equal(out, [2, 2, 2])
    with pytest.raises(TypeError, match="unexpected keyword"):
        kernel.call(np.ones(3), np.array(2.0), wrong=1)


def test_wrong_numbers_and_shapes_of_arrays_are_named(kernel):
    with pytest.raises(TypeError, match=r"f takes 2 arrays \(x, y\), got 1"):
        kernel.call(np.ones(3))
    with pytest.raises(TypeError, match="got 0"):
        kernel.call()
    with pytest.raises(ShapeError, match=r"x must have shape \(\.\.\., 3\), got \(2,\)"):
        kernel.call(np.ones(2), np.array(1.0))
    with pytest.raises(ShapeError, match="do not broadcast"):
        kernel.call(np.ones((2, 3)), np.ones(5))


def test_a_number_comes_back_as_a_number():
    k = make_kernel(lambda x, y: x @ x + y[()])
    for _ in range(2):
        result = k.call(np.array([1.0, 2, 3]), np.array(1.0))
        assert type(result) is np.float64
        assert result == 15


def test_several_results_come_back_as_a_tuple():
    k = make_kernel(lambda x, y: (x * y, x @ x, np.array([[1.0, 2.0]])))
    for _ in range(2):
        product, square, constant = k.call(np.array([1.0, 2, 3]), np.array(2.0))
        np.testing.assert_array_equal(product, [2, 4, 6])
        assert square == 14
        np.testing.assert_array_equal(constant, [[1, 2]])


def test_failed_checks_are_answered_by_the_reference():
    def checked(x, y):
        if y.dtype == object:
            (y[()] > 0).require()
        return x * y

    k = make_kernel(checked)
    x = np.ones(3)
    for _ in range(2):
        np.testing.assert_array_equal(k.call(x, np.array(2.0)), [2, 2, 2])
        np.testing.assert_array_equal(k.call(x, np.array(-2.0)), [2, 2, 2])  # negated
    out = np.zeros((2, 3))
    k.call(x, np.array([2.0, -3.0]), out=out)
    np.testing.assert_array_equal(out, [[2, 2, 2], [3, 3, 3]])


def test_exceptions_come_through():
    def refuse(arrays):
        raise SingularError("no answer")

    def checked(x, y):
        (y[()] > 0).require()
        return x * y

    k = make_kernel(checked, reference=refuse)
    k.call(np.ones(3), np.array(1.0))
    with pytest.raises(SingularError, match="no answer"):
        k.call(np.ones(3), np.array(-1.0))
    with pytest.raises(SingularError, match=r"sample \(1,\): no answer"):
        k.call(np.ones(3), np.array([1.0, -1.0]))


def test_a_number_that_is_not_finite_is_named():
    model = kt.samples.double_pendulum()
    q, qd, qdd = np.zeros((3, 2))
    kt.inverse_dynamics(model, q, qd, qdd)
    with pytest.raises(ShapeError, match="qd must be finite, got inf at index 1"):
        kt.inverse_dynamics(model, q, np.array([0, np.inf]), qdd)
    with pytest.raises(ShapeError, match=r"q must be finite, got nan at index 0 of sample \(2,\)"):
        kt.inverse_dynamics(model, np.array([[0, 0], [0, 0], [np.nan, 0]]), qd, qdd)


class OldPython:
    """The interpreter's symbols before 3.11, which had no PyObject_Vectorcall."""

    def __getattr__(self, name):
        if name == "PyObject_Vectorcall":
            raise AttributeError(f"undefined symbol: {name}")
        return getattr(PYTHON, name)


PYTHON = ctypes.pythonapi


def test_without_the_symbol_of_python_3_11(monkeypatch):
    """Every way into the full path: other arrays, keywords, mistakes, failed checks."""
    monkeypatch.setattr(ctypes, "pythonapi", OldPython())
    k = make_kernel(scaled)
    x, y = np.array([1.0, 2, 3]), np.array(2.0)
    k.call(x, y)
    monkeypatch.undo()
    assert k.call is not k.full
    np.testing.assert_array_equal(k.call(x, y), [2, 4, 6])
    np.testing.assert_array_equal(k.call([1, 2, 3], 2), [2, 4, 6])
    out = np.empty(3)
    assert k.call(x, y, out=out) is out
    with pytest.raises(TypeError, match="unexpected keyword"):
        k.call(x, y, wrong=1)
    with pytest.raises(TypeError, match=r"f takes 2 arrays \(x, y\), got 0"):
        k.call()


def test_what_has_no_vectorcall_is_rejected(monkeypatch):
    class Slow:
        def __call__(self):
            pass

    monkeypatch.setattr(ctypes, "pythonapi", OldPython())
    with pytest.raises(TypeError, match="must have a vectorcall, Slow has none"):
        single._vectorcall(Slow())


# --- memory --------------------------------------------------------------------------------------


def test_reference_counts_do_not_change(kernel):
    x, y, bad = np.ones(3), np.array(2.0), np.array([1.0, np.nan, 1.0])
    things = [x, y, bad, np.ndarray, kernel.call, x.dtype]

    def change():
        gc.collect()
        before = np.array([sys.getrefcount(t) for t in things])
        for _ in range(500):
            kernel.call(x, y)
            kernel.call([1, 2, 3], y)
            kernel.call(bad, y)
        return np.array([sys.getrefcount(t) for t in things]) - before

    changes = np.abs([change() for _ in range(4)][1:])
    assert np.all(changes.min(axis=0) < 50)  # of 1500 calls; other threads use these types, too
    np.testing.assert_array_equal(changes[:, :3], 0)
    result = kernel.call(x, y)
    fresh = np.ones(3)
    assert sys.getrefcount(result) == sys.getrefcount(fresh)


def test_no_memory_is_lost(kernel):
    several = make_kernel(lambda x, y: (x * y, x @ x, x + y))
    x, y, bad = np.ones(3), np.array(2.0), np.array([1.0, np.nan, 1.0])

    def work(count):
        for _ in range(count):
            kernel.call(x, y)
            several.call(x, y)
            kernel.call(bad, y)

    def growth():
        gc.collect()
        start = tracemalloc.get_traced_memory()[0]
        work(500)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - start

    work(50)
    tracemalloc.start()
    try:
        # what is lost is lost in every round; other threads of the process allocate in some
        assert min(growth() for _ in range(5)) < 5000
    finally:
        tracemalloc.stop()


def test_a_kernel_that_nobody_needs_goes_away():
    k = make_kernel(scaled)
    k.call(np.ones(3), np.array(2.0))
    k.call(np.ones(3), np.array(2.0))
    call, gone = k.call, weakref.ref(k)
    del k
    gc.collect()
    np.testing.assert_array_equal(call(np.ones(3), np.array(2.0)), [2, 2, 2])  # kept by its call
    del call
    gc.collect()
    assert gone() is None


def test_many_threads_at_once(kernel):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            x, y = rng.standard_normal(3), np.array(rng.standard_normal())
            if not np.array_equal(kernel.call(x, y), x * y):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- other interpreters --------------------------------------------------------------------------


def test_unknown_object_layouts_use_the_general_path(monkeypatch):
    monkeypatch.setattr(single, "has_usual_objects", lambda: False)
    k = make_kernel(scaled)
    for _ in range(2):
        np.testing.assert_array_equal(k.call(np.ones(3), np.array(2.0)), [2, 2, 2])
    assert k.call == k.full


def test_the_layout_of_arrays_is_looked_at(monkeypatch):
    assert single._arrays_are_as_expected()
    monkeypatch.setattr(single, "FLAGS", 24)
    assert not single._arrays_are_as_expected()


def test_single_samples_equal_batches_bit_for_bit(rng):
    model = kt.samples.arm()
    x = rng.standard_normal((3, 9, 6))
    batch = kt.inverse_dynamics(model, *x)
    for k in range(9):
        np.testing.assert_array_equal(kt.inverse_dynamics(model, *x[:, k]), batch[k])
    assert kernel_of(model, "inverse_dynamics").call != kernel_of(model, "inverse_dynamics").full


def test_a_large_workspace_comes_from_the_heap(monkeypatch, rng):
    monkeypatch.setattr(llvm_single, "STACK", 0)  # instead of waiting for a large program
    cached = (llvm_shared.shared_symbol, llvm_shared._text)
    try:
        for function in cached:
            function.cache_clear()
        k = make_kernel(lambda x, y: (np.sin(x) + y, x * y))
        x, y = rng.standard_normal(3), np.array(2.0)
        results = [k.call(x, y), k.call(x, y)]
    finally:
        for function in cached:
            function.cache_clear()
    assert k.call != k.full
    for result in results:
        np.testing.assert_allclose(result[0], np.sin(x) + 2, rtol=1e-15)
        np.testing.assert_array_equal(result[1], 2 * x)


def test_the_definition_of_a_call_goes_with_it():
    k = make_kernel(scaled)
    k.call(np.ones(3), np.array(2.0))
    call = k.call
    gone = weakref.ref(call.__module__.method)
    assert call.__module__ == "kinetree.codegen.runtime.single"
    np.testing.assert_array_equal(call(np.ones(3), np.array(2.0)), [2, 2, 2])
    del call, k
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("count", [2, 3, 16, 57])
def test_small_batches_take_the_lean_path_too(count, rng, monkeypatch):
    """With the same bits as the full path, and without it once it has been compiled."""
    model = kt.samples.quadruped()
    q, qd = model.random_configuration(rng, count), rng.standard_normal((count, model.nv))
    energy, forces = kt.kinetic_energy(model, q, qd), kt.bias_force(model, q, qd)
    for name in ("kinetic_energy", "bias_force"):
        monkeypatch.setattr(kernel_of(model, name), "_full", None)
    assert np.array_equal(kt.kinetic_energy(model, q, qd), energy)
    assert np.array_equal(kt.bias_force(model, q, qd), forces)


def test_a_batch_that_fails_a_check_is_computed_again_by_the_general_path(rng):
    model = kt.samples.quadruped()
    q, qd = model.random_configuration(rng, 5), rng.standard_normal((5, model.nv))
    kt.bias_force(model, q, qd)
    q[3, 3] = np.nan
    with pytest.raises(kt.ShapeError, match=r"q must be finite, got nan at index 3 of sample \(3,"):
        kt.bias_force(model, q, qd)
    with pytest.raises(kt.ShapeError, match="batch axes do not broadcast"):
        kt.bias_force(model, q[:3], qd)


def test_code_for_batches_lives_as_long_as_what_calls_it(rng):
    """Kernels of equal programs share machine code; one of them may go before the other."""
    q = rng.standard_normal((4, 1))

    def model():
        return kt.samples.pendulum()

    kept = model()
    kt.gravity_force(kept, q[0])  # single samples alone
    other = model()
    expected = kt.gravity_force(other, q)
    kt.gravity_force(other, q[0])
    del other
    gc.collect()
    assert np.array_equal(kt.gravity_force(kept, q), expected)
    assert np.array_equal(kt.gravity_force(kept, q), expected)
