"""Functions of numbers for GPUs, compiled for the CPU, against numbers of hundreds of digits."""

import ctypes
import math

import mpmath
import numpy as np
import pytest

from kinetree.codegen.device.interleaved import interleave, scalar_text
from kinetree.codegen.device.library import library_text
from kinetree.codegen.device.units import without_constants
from kinetree.codegen.machine_code import branching_code, load
from kinetree.errors import BackendError

RNG = np.random.default_rng(0)
FAR = [*10.0 ** RNG.uniform(6, 308, 200), 6381956970095103 * 2.0**797, 2.0**20, 1.7e308]
EVERYWHERE = 10.0 ** RNG.uniform(-300, 300, 200)
ARGUMENTS = {
    "sin": [*RNG.uniform(-1e3, 1e3, 200), *FAR, *(-x for x in FAR)], "log": [*EVERYWHERE, 5e-324],
    "cos": [*RNG.uniform(-1e3, 1e3, 200), *FAR], "tan": RNG.uniform(-1e3, 1e3, 200),
    "asin": RNG.uniform(-1, 1, 200), "acos": RNG.uniform(-1, 1, 200),
    "atan": RNG.standard_normal(200), "exp": RNG.uniform(-700, 700, 200),
}  # fmt: skip


@pytest.fixture(scope="module")
def code():
    return load(branching_code([library_text()], 0))


def function(code, name, count=1):
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * count)(code.address(name))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_errors_are_few_units_in_the_last_place(code, name):
    found = function(code, name)
    with mpmath.workprec(1300):
        for x in map(float, ARGUMENTS[name]):
            exact = getattr(mpmath, name)(mpmath.mpf(x))
            assert abs(found(x) - exact) <= 3 * math.ulp(float(exact)), x


def test_hypotenuses_neither_overflow_nor_vanish(code):
    found = function(code, "hypot", 2)
    for x, y in [*RNG.standard_normal((200, 2)), (3e300, 4e300), (3e-300, -4e-300), (0.0, 0.0)]:
        assert abs(found(x, y) - math.hypot(x, y)) <= 3 * math.ulp(math.hypot(x, y))


def test_what_has_no_value(code):
    log, sin = function(code, "log"), function(code, "sin")
    assert (log(0.0), log(1.0), log(math.inf)) == (-math.inf, 0.0, math.inf)
    assert all(math.isnan(x) for x in (log(-1.0), log(math.nan), sin(math.inf), sin(math.nan)))


def test_distances_are_those_of_interleaved_words():
    text = """define double @a.b(ptr noundef %x, i64 %n) #0 {
  %s = alloca [3 x double], align 16
  %p = getelementptr inbounds nuw i8, ptr %x, i64 16
  %q = getelementptr double, ptr %p, i64 %n
  %y = call double @c.d(ptr %q, ptr nonnull %s)
  ret double %y
}
declare double @c.d(ptr, ptr) local_unnamed_addr #1
attributes #0 = { nounwind }
"""
    found = interleave(text, "step")
    assert found.frames == {"a_b": 3}
    assert found.calls == {"a_b": ["c_d"]}
    for line in (
        "define double @a_b(ptr addrspace(1) %x, i64 %n, ptr addrspace(1) %stack) {",
        "  %p = getelementptr [32 x i8], ptr addrspace(1) %x, i64 16",
        "  %q = getelementptr [32 x double], ptr addrspace(1) %p, i64 %n",
        "  %stack.end = getelementptr [32 x i64], ptr addrspace(1) %stack, i64 3",
        "declare double @c_d(ptr addrspace(1), ptr addrspace(1), ptr addrspace(1))",
    ):
        assert line in found.text.splitlines()


def test_constant_arrays_are_given_by_functions():
    numbers = "[double 0x3FF0000000000000, double 0x4000000000000000]"
    text = (
        f"@t = private constant [2 x double] {numbers}"
        + """
define double @f(i64 %n) {
  %p = getelementptr double, ptr @t, i64 %n
  %y = load double, ptr %p
  ret double %y
}
"""
    )
    found, constants = without_constants(text)
    ((digest, words),) = constants.items()
    assert np.array(words).view(float).tolist() == [1.0, 2.0]
    assert f"%constant.{digest} = call ptr @constants_of_{digest}()" in found
    assert "@t" not in found


def test_vectors_of_one_number_are_numbers():
    text = "  %v = insertelement <1 x double> undef, double %x, i32 0"
    assert scalar_text(text) == "  %v = bitcast double %x to double"
    assert scalar_text("  %w = fadd <1 x double> %v, <double 0x0>") == "  %w = fadd double %v, 0x0"


def test_what_is_not_words_is_an_error():
    text = "define void @f() {\n  %s = alloca [3 x i8], align 1\n  ret void\n}\n"
    with pytest.raises(BackendError, match="a place on the stack that has no words: %s = alloca"):
        interleave(text, "step")
