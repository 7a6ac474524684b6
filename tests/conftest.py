"""Shared fixtures: every test has its own seeded random generator."""

import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")


@pytest.fixture
def rng(request):
    """A random generator seeded by the name of the test: different tests, same run every time."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
