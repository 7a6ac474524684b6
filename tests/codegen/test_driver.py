"""The loop around the blocks: any strides, any batch, any remainder, same numbers."""

import numpy as np
import pytest
from support.backends import llvm

from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render import llvm_driver

INPUTS = [Argument("a", (2, 3)), Argument("b", (3,)), Argument("c", ())]


def mixed(a, b, c):
    """A matrix, a vector and a number, all depending on everything."""
    v = a @ b + c
    return np.outer(v, b) * c, np.sin(v), v @ v


def expected(a, b, c):
    v = (a @ b[..., None])[..., 0] + c[..., None]
    return v[..., :, None] * b[..., None, :] * c[..., None, None], np.sin(v), np.sum(v * v, axis=-1)


@pytest.fixture(scope="module")
def run():
    return llvm(4)(trace(mixed, INPUTS, "mixed"), "float64")


def samples(rng, *batch):
    return [rng.standard_normal((*batch, *i.shape)) for i in INPUTS]


def assert_right(results, arrays):
    for result, value in zip(results, expected(*arrays), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-13, atol=1e-13)


def assert_same(results, others):
    for result, other in zip(results, others, strict=True):
        np.testing.assert_array_equal(result, other)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 30, 31])
def test_any_number_of_samples(run, rng, count):
    arrays = samples(rng, count)
    results = run(*arrays)
    assert_right(results, arrays)
    # Every sample alone, whatever its lane was.
    for k in range(count):
        assert_same([r[k] for r in results], run(*(a[k] for a in arrays)))


def test_no_batch_axis_gives_numbers(run, rng):
    matrix, vector, number = run(*samples(rng))
    assert matrix.shape == (2, 3)
    assert vector.shape == (2,)
    assert isinstance(number, np.float64)


@pytest.mark.parametrize("batch", [(0,), (3, 0), (0, 5)])
def test_empty_batches(run, rng, batch):
    shapes = [r.shape for r in run(*samples(rng, *batch))]
    assert shapes == [(*batch, 2, 3), (*batch, 2), batch]


def test_several_batch_axes(run, rng):
    arrays = samples(rng, 3, 2, 5)
    results = run(*arrays)
    assert_right(results, arrays)
    assert_same([r[2, 1, 3] for r in results], run(*(a[2, 1, 3] for a in arrays)))


def test_batch_axes_broadcast(run, rng):
    a, b, c = samples(rng, 6)
    a, b = a[:1], b[3]
    full = [np.broadcast_to(a, (6, 2, 3)), np.broadcast_to(b, (6, 3)), c]
    assert_same(run(a, b, c), run(*(x.copy() for x in full)))
    assert_same(run(*full), run(a, b, c))  # strides of zero
    outer = run(a, b, c[:, None])
    assert outer[0].shape == (6, 1, 2, 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.asfortranarray(x),
        lambda x: x[::-1].copy()[::-1],
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: np.repeat(x, 3, axis=-1)[..., ::3],
        lambda x: np.flip(np.flip(x, -1).copy(), -1),
        lambda x: np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0),
        lambda x: x.astype(">f8"),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
    ],
    ids=["Fortran", "backwards", "every second", "core strides", "core backwards", "batch last",
         "big-endian", "misaligned"],
)  # fmt: skip
def test_any_layout_in_memory(run, rng, change):
    arrays = samples(rng, 11)
    with np.errstate(all="ignore"):
        changed = [change(a) for a in arrays]
        assert_same(run.ufunc(*changed), run(*arrays))
    # One array alone changed: whether samples are contiguous is decided for all at once.
    assert_same(run(changed[0], *arrays[1:]), run(*arrays))


def test_results_go_where_they_are_wanted(run, rng):
    arrays = samples(rng, 9)
    wanted = run(*arrays)
    out = (
        np.empty((9, 3, 2)).transpose(0, 2, 1),
        np.empty((18, 4))[::2, 1:3],
        np.empty(9, np.float32),
    )
    results = run(*arrays, out=out, casting="same_kind")
    assert all(r is o for r, o in zip(results, out, strict=True))
    assert_same(out[:2], wanted[:2])
    np.testing.assert_array_equal(out[2], wanted[2].astype(np.float32))


def test_an_output_may_be_an_input(run, rng):
    arrays = samples(rng, 10)
    wanted = run(*arrays)
    a = arrays[0].copy()
    run(a, *arrays[1:], out=(a, None, None))
    np.testing.assert_array_equal(a, wanted[0])
    space = np.zeros((11, 2, 3))
    space[:10] = arrays[0]
    run(space[:10], *arrays[1:], out=(space[1:], None, None))  # one sample further on
    np.testing.assert_array_equal(space[1:], wanted[0])


def test_arrays_of_many_axes_in_any_layout(rng):
    inputs = [Argument("x", (2, 3, 2, 2))]
    run = llvm(2)(trace(lambda x: 2 * np.transpose(x, (3, 0, 2, 1)), inputs, "axes"), "float64")
    x = rng.standard_normal((5, 2, 3, 2, 2))
    wanted = 2 * np.transpose(x, (0, 4, 1, 3, 2))
    np.testing.assert_array_equal(run(x), wanted)
    strange = np.ascontiguousarray(x.transpose(2, 4, 0, 3, 1)).transpose(2, 4, 0, 3, 1)
    np.testing.assert_array_equal(run(strange), wanted)
    out = np.empty((2, 2, 5, 3, 2)).transpose(2, 0, 4, 1, 3)
    run(x, out=out)
    np.testing.assert_array_equal(out, wanted)


def test_large_samples_come_from_the_heap(run, rng):
    size = llvm_driver.STACK // 8 // 4  # one vector of samples of the last argument is too much
    large = llvm(4)(
        trace(lambda *x: mixed(*x[:3]), [*INPUTS, Argument("d", (size,))], "large"), "float64"
    )
    arrays, unused = samples(rng, 7), np.zeros((7, size))
    assert_same(large(*arrays, unused), run(*arrays))
    assert_same(large(*(a[::-1] for a in (*arrays, unused))), run(*(a[::-1] for a in arrays)))


def test_a_large_batch_axis(run, rng):
    arrays = samples(rng, 100_003)
    results = run(*arrays)
    for k in (0, 1, 65_536, 100_000, 100_001, 100_002):
        assert_same([r[k] for r in results], run(*(a[k] for a in arrays)))


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_lanes_do_not_change_results(run, rng, lanes):
    arrays = samples(rng, 13)
    other = llvm(lanes)(trace(mixed, INPUTS, "mixed"), "float64")
    assert_same(other(*arrays), run(*arrays))
