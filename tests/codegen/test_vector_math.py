"""Errors of the vector functions, in units in the last place, against mpmath."""

from functools import cache

import mpmath
import numpy as np
import pytest
from support.backends import llvm

from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render.llvm_math import RANGE
from kinetree.spatial.ops import atan2, sqrt

DTYPES = ["float64", "float32"]
SINE_ULPS = {"float64": 1.5, "float32": 1.6}  # as stated in kinetree.codegen.render.llvm_math
ATAN2_ULPS = {"float64": 1.7, "float32": 1.6}
EXPONENTIAL_ULPS = {"exp": 1.1, "tanh": 1.5, "log": 1.0}  # likewise in llvm_exponentials


@cache
def compiled(name, dtype, lanes=4):
    x, y = Argument("x", ()), Argument("y", ())
    programs = {
        "sincos": (lambda x: (np.sin(x), np.cos(x)), [x]),
        # Twice the angle is no input: these go through the blocks, not through the loop of angles.
        "sincos_of_sum": (lambda x, y: (np.sin(x + y), np.cos(x + y)), [x, y]),
        "atan2": (lambda y, x: np.array(atan2(y[()], x[()])), [y, x]),
        "sqrt": (lambda x: np.array(sqrt(x[()])), [x]),
        "exp": (np.exp, [x]),
        "log": (np.log, [x]),
        "tanh": (np.tanh, [x]),
    }
    function, inputs = programs[name]
    return llvm(lanes)(trace(function, inputs, name), dtype)


def ulps(actual, exact):
    """Largest error in units in the last place of the exact values."""
    largest = 0
    for a, e in zip(actual, exact, strict=True):
        unit = np.spacing(np.abs(actual.dtype.type(float(e))))
        largest = max(largest, abs(mpmath.mpf(float(a)) - e) / mpmath.mpf(float(unit)))
    return float(largest)


def exact(function, *arrays):
    with mpmath.workprec(300):
        return [function(*(mpmath.mpf(float(x)) for x in row)) for row in zip(*arrays, strict=True)]


def sine_and_cosine_ulps(x, dtype):
    x = x.astype(dtype)
    sine, cosine = compiled("sincos", dtype)(x)
    return max(ulps(sine, exact(mpmath.sin, x)), ulps(cosine, exact(mpmath.cos, x)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("limit", [1e-3, 1, 10, 1000, None])
def test_sine_and_cosine_over_the_whole_range(dtype, limit, rng):
    limit = limit or RANGE[dtype]
    x = rng.uniform(-limit, limit, 1500)
    assert sine_and_cosine_ulps(x, dtype) <= SINE_ULPS[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_sine_and_cosine_next_to_multiples_of_a_quarter_turn(dtype, rng):
    # The hard cases: almost everything cancels when the multiple is taken off.
    largest = int(RANGE[dtype] / 1.58)
    n = np.concatenate([np.arange(1, 300), rng.integers(300, largest, 300)])
    with mpmath.workprec(300):
        x = np.array([float(int(k) * mpmath.pi / 2) for k in n]).astype(dtype)
    x = np.concatenate([x, np.nextafter(x, x.dtype.type(0)), -np.nextafter(x, 2 * x)])
    assert sine_and_cosine_ulps(x, dtype) <= SINE_ULPS[dtype]


def test_sine_of_the_double_closest_to_a_multiple_of_a_quarter_turn():
    # n π/2 comes close to a double when n is a denominator of a continued fraction.
    with mpmath.workprec(400):
        ratio, best = mpmath.pi / 2, []
        for exponent in range(-1, 20):
            for n in _convergents(ratio * mpmath.mpf(2) ** (52 - exponent), 2**20):
                x = float(n * ratio)
                if 0 < x < 2**20:
                    best.append((abs(mpmath.mpf(x) - n * ratio), x))
    x = np.array([x for _, x in sorted(best)[:20]])
    assert sine_and_cosine_ulps(x, "float64") <= SINE_ULPS["float64"]


def _convergents(x, limit):
    """Denominators of the continued fraction of ``x`` below ``limit``."""
    before, now = 0, 1
    while now < limit:
        yield now
        x = x - mpmath.floor(x)
        if x == 0:
            return
        x = 1 / x
        before, now = now, int(mpmath.floor(x)) * now + before


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_angles_get_the_value_of_the_c_library(dtype, rng):
    limit = RANGE[dtype]
    x = np.concatenate([[1.0001 * limit, 1e6 * limit, 1e22, 1e30], rng.uniform(1, 9, 8) * limit])
    assert sine_and_cosine_ulps(np.concatenate([x, -x]), dtype) <= 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sincos", "sincos_of_sum"])
def test_a_lane_does_not_depend_on_its_neighbours(dtype, name):
    x = np.array([0.3, 1e9, -2.5, np.inf, 5.0, np.nan, 1.0, 2.0], dtype)
    arrays = (x,) if name == "sincos" else (x, np.zeros_like(x))
    for lanes in (1, 4):
        run = compiled(name, dtype, lanes)
        together = run(*arrays)
        alone = [run(*(np.repeat(a[k], lanes) for a in arrays)) for k in range(len(x))]
        for part in range(2):
            np.testing.assert_array_equal(together[part], [a[part][0] for a in alone])


@pytest.mark.parametrize("dtype", DTYPES)
def test_lanes_do_not_change_results(dtype, rng):
    x = (rng.standard_normal(37) * 10 ** rng.uniform(-3, 5, 37)).astype(dtype)
    y = rng.standard_normal(37).astype(dtype)
    for name, arrays in (
        ("sincos", (x,)),
        ("sincos_of_sum", (x, y)),
        ("atan2", (x, y)),
        ("exp", (x,)),
        ("tanh", (x,)),
    ):
        results = [np.asarray(compiled(name, dtype, lanes)(*arrays)) for lanes in (1, 2, 4, 8)]
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_keep_their_sign(dtype):
    sine, cosine = compiled("sincos", dtype)(np.array([0.0, -0.0]))
    assert not np.signbit(sine[0])
    assert np.signbit(sine[1])
    np.testing.assert_array_equal(sine, [0, 0])
    np.testing.assert_array_equal(cosine, [1, 1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_infinite_angles_give_nan_and_are_counted(dtype, bad):
    run = compiled("sincos", dtype)
    before = run.status.value
    run(np.array([0.1, 0.2]))
    assert run.status.value == before
    sine, cosine = run(np.array([0.1, bad, 0.2]))
    assert np.isnan(sine[1])
    assert np.isnan(cosine[1])
    assert np.all(np.isfinite(sine[[0, 2]]))
    assert run.status.value > before


@pytest.mark.parametrize("dtype", DTYPES)
def test_arctangent_in_all_quadrants_and_for_all_ratios(dtype, rng):
    y, x = rng.standard_normal((2, 1500))
    power = {"float64": 300, "float32": 18}[dtype]
    far = 10.0 ** rng.uniform(-power, power, (2, 700)) * rng.choice([-1, 1], (2, 700))
    near = 1 + rng.uniform(-0.01, 0.01, 700)  # next to the diagonals
    y = np.concatenate([y, far[0], near, -near]).astype(dtype)
    x = np.concatenate([x, far[1], np.ones(700), np.ones(700)]).astype(dtype)
    angle = compiled("atan2", dtype)(y, x)
    normal = np.abs(angle) > np.finfo(dtype).tiny
    assert np.mean(normal) > 0.9
    reference = exact(mpmath.atan2, y[normal], x[normal])
    assert ulps(angle[normal], reference) <= ATAN2_ULPS[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arctangent_of_zeros_and_infinities_is_that_of_c(dtype):
    tiny, large = np.finfo(dtype).tiny, np.finfo(dtype).max
    special = [0, 1, np.inf, np.nan, tiny, tiny / 8, large]
    special = np.array([*special, *(-x for x in special)], dtype)
    y, x = (a.ravel() for a in np.meshgrid(special, special))
    angle, expected = compiled("atan2", dtype)(y, x), np.arctan2(y, x)
    np.testing.assert_array_almost_equal_nulp(
        np.nan_to_num(angle, nan=9.0), np.nan_to_num(expected, nan=9.0), 2
    )
    np.testing.assert_array_equal(np.isnan(angle), np.isnan(expected))
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(angle[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_square_root_is_exact(dtype, rng):
    x = (10.0 ** rng.uniform(-30, 30, 1000)).astype(dtype)
    np.testing.assert_array_equal(compiled("sqrt", dtype)(x), np.sqrt(x))
    assert np.isnan(compiled("sqrt", dtype)(np.array([-1.0]))[0])
    assert np.signbit(compiled("sqrt", dtype)(np.array([-0.0]))[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
def test_exponential_logarithm_and_hyperbolic_tangent(name, dtype, rng):
    x = rng.standard_normal(300) * 10 ** rng.uniform(-6, 1.5, 300)
    x = np.append(x, 1 + 1e-3 * rng.standard_normal(50)).astype(dtype)
    x = np.abs(x) if name == "log" else np.clip(x, -80, 80)
    limit = EXPONENTIAL_ULPS[name]
    assert ulps(compiled(name, dtype)(x), exact(getattr(mpmath, name), x)) <= limit


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_and_zeros_of_exponentials(dtype):
    inf, large = np.inf, np.finfo(dtype).max
    np.testing.assert_array_equal(
        compiled("exp", dtype)(np.array([0.0, -0.0, large, -large, inf, -inf])),
        [1, 1, inf, 0, inf, 0],
    )
    np.testing.assert_array_equal(
        compiled("log", dtype)(np.array([1.0, 0.0, -0.0, -1.0, inf])), [0, -inf, -inf, np.nan, inf]
    )
    t = compiled("tanh", dtype)(np.array([0.0, -0.0, large, -large, inf, -inf]))
    np.testing.assert_array_equal(t, [0, 0, 1, -1, 1, -1])
    assert list(np.signbit(t[:2])) == [False, True]
    assert all(np.isnan(compiled(f, dtype)(np.array([np.nan]))) for f in ("exp", "log", "tanh"))
    least = np.finfo(dtype).smallest_subnormal
    subnormal = np.log(np.array([8 * least, 1e3 * least])).astype(dtype)
    np.testing.assert_allclose(
        compiled("exp", dtype)(subnormal), np.exp(subnormal), atol=1.5 * least, rtol=0
    )
