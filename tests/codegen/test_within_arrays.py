"""Compiled code reads and writes nothing beside its arrays, however many samples are left over."""

import numpy as np
import pytest
from support.guarded import HAS_PAGES, guarded

import kinetree as kt
from kinetree.codegen.machine_code import default_lanes
from kinetree.model.define import kernel_of

pytestmark = pytest.mark.skipif(not HAS_PAGES, reason="pages are locked as Linux does it")
SATELLITE = kt.samples.satellite()  # a free body and a joint: odd lengths


@pytest.mark.parametrize("tier", ["general", "specialised"])
@pytest.mark.parametrize("quantity", ["forward_dynamics", "mass_matrix", "kinetic_energy"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_code_stays_within_its_arrays(tier, quantity, dtype):
    rng = np.random.default_rng(0)
    kernel = kernel_of(SATELLITE, quantity)
    states = {"q": np.array([SATELLITE.random_configuration(rng) for _ in range(40)])}
    numbers = [states.get(a.name, rng.standard_normal((40, *a.shape))) for a in kernel.inputs]
    with kt.tier(tier):
        expected = kernel.full(*(x.astype(dtype) for x in numbers))
        for count in range(1, 2 * default_lanes(dtype) + 2):
            for at_end in (True, False):
                arrays = [guarded((count, *a.shape), dtype, at_end=at_end) for a in kernel.inputs]
                outs = tuple(
                    guarded((count, *a.shape), dtype, at_end=at_end) for a in kernel.outputs
                )
                for place, x in zip(arrays, numbers, strict=True):
                    place[...] = x[:count]
                kernel.full(*arrays, out=outs)
                found = expected if isinstance(expected, tuple) else (expected,)
                for out, whole in zip(outs, found, strict=True):
                    np.testing.assert_array_equal(out, whole[:count])
