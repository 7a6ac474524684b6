"""No broken file brings anything down; ``pytest --hypothesis-profile=fuzz`` tries 10,000."""

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaders.fuzzing import SEEDS, SUFFIX, hurt, random_xml, survives
from support.effort import peak_memory

from kinetree.loaders import read

SLOWEST, MOST = 5.0, 600 * 2**20  # seconds, and bytes beyond what it took to get here
THOROUGH = settings.default.max_examples > 1000
MUTATED, GROWN = (1400, 600) if THOROUGH else (60, 40)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("format", SEEDS)
def test_the_seeds_themselves_are_read(format, folder):
    for k, seed in enumerate(SEEDS[format]):
        path = folder / f"seed{k}{SUFFIX[format]}"
        path.write_bytes(seed)
        assert read(path).model.body_count >= 0


@pytest.mark.parametrize("format", SEEDS)
def test_mutations_of_real_files(format, folder):
    before = peak_memory()

    @settings(max_examples=MUTATED, database=None)
    @given(st.integers(0, 2**63))
    def check(seed):
        rng = random.Random(seed)
        source = hurt(rng.choice(SEEDS[format]), rng)
        assert survives(source, format, folder, rng) < SLOWEST

    check()
    assert peak_memory() - before < MOST


@pytest.mark.parametrize("format", ["urdf", "sdf", "mjcf"])
def test_random_structures(format, folder):
    @settings(max_examples=GROWN, database=None)
    @given(st.integers(0, 2**63))
    def check(seed):
        rng = random.Random(seed)
        assert survives(random_xml(format, rng), format, folder, rng) < SLOWEST

    check()


@settings(max_examples=100, database=None)
@given(st.binary(max_size=2000), st.sampled_from(sorted(SUFFIX)), st.randoms())
def test_noise(source, format, rng):
    with tempfile.TemporaryDirectory() as name:
        assert survives(source, format, Path(name), rng) < SLOWEST
