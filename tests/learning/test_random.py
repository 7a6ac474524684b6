"""Counter-based random numbers: bits, moments, independence."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.learning.random import DRAWS, Draws, uniform, words


@kt.kernel
def four(seed: (3,), world: (), counter: ()):
    return Draws(seed, world, counter, {}).uniform("numbers", 4)


@pytest.fixture(scope="module")
def numbers():
    world, counter = np.arange(300.0)[:, None], np.arange(100.0)
    return four(words(1), world, counter)


def test_the_same_bits_in_both_precisions_and_without_compiled_code(numbers):
    world, counter = np.arange(300, dtype="f4")[:, None], np.arange(100, dtype="f4")
    single = four(words(1).astype("f4"), world, counter)
    assert single.dtype == np.float32
    assert np.array_equal(single, numbers)
    plain = uniform(words(1), np.arange(300.0)[:, None], np.arange(100.0), 2)
    assert np.array_equal(plain, numbers[..., 2])


def test_numbers_are_uniform_and_independent_of_their_neighbours(numbers):
    n = numbers.size
    assert 0 <= numbers.min() < 1e-4
    assert 1 - 1e-4 < numbers.max() < 1
    counts = np.bincount((64 * numbers).astype(int).ravel(), minlength=64)
    assert np.sum((counts - n / 64) ** 2) / (n / 64) < 63 + 4 * np.sqrt(2 * 63)
    for axis in range(3):  # worlds, counters, draws: pairs fill the square
        x = np.moveaxis(numbers, axis, 0)
        for digit in (1, 2**12):  # of the high word, and of the low one
            a, b = ((16 * digit * y).astype(int) % 16 for y in (x[:-1], x[1:]))
            pairs = np.bincount((16 * a + b).ravel(), minlength=256)
            expected = a.size / 256
            assert np.sum((pairs - expected) ** 2) / expected < 255 + 4 * np.sqrt(2 * 255)


def test_seeds_differ_in_every_number():
    found = {four(words(seed), 0.0, 0.0).tobytes() for seed in (*range(50), 2**40, 2**80 + 1)}
    assert len(found) == 52


def test_normal_numbers_have_mean_0_and_variance_1():
    @kt.kernel
    def normal(seed: (3,), world: ()):
        return Draws(seed, world, 0.0, {}).normal("numbers", 3)

    x = normal(words(3), np.arange(20000.0))
    assert np.abs(x.mean(axis=0)).max() < 4 / np.sqrt(20000)
    assert np.abs(np.cov(x.T) - np.eye(3)).max() < 4 * np.sqrt(2 / 20000)
    assert np.abs((x**4).mean(axis=0) - 3).max() < 4 * np.sqrt(96 / 20000)


def test_a_draw_is_made_once_and_their_number_is_limited():
    draws = Draws(words(0), 0.0, 0.0, {})
    draws.uniform("first", 2)
    with pytest.raises(ValueError, match="'first' draws twice"):
        draws.uniform("first", 2)
    with pytest.raises(ValueError, match=f"more than {DRAWS}"):
        draws.uniform("second", DRAWS)
