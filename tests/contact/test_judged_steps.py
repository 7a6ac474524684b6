"""Steps that cannot be trusted are counted, each limit by itself."""

import itertools

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.engine import step
from kinetree.contact.engine.energy import Balance
from kinetree.contact.engine.parts import Parts, StepState
from kinetree.contact.newton.problem import Problem

SUMMED = [5, 6, 7, 9]


@pytest.mark.parametrize("strict", [0, 1])
def test_steps_are_counted_and_what_they_miss(strict, rng):
    """Errors of velocities, overlaps that grow, and gains of energy, beside what is allowed."""
    kinetic, lifted = np.array([2.0, 3.0]), np.array([0.05, -0.4])
    limits = np.array([1e-3, 1e-2, 1e-4])
    counts, since, expected = np.zeros(6, dtype=np.int64), np.zeros(12), np.zeros(12)
    number, wrongs = 0, []
    for fast, deep, gain, was, shifts in itertools.product(
        (5e-4, 2e-3, np.nan), (0.0, 0.03), (1e-4, 0.01, 0.2), (0.0, 0.025), (0, 1)
    ):
        residuals = rng.uniform(0, 1e-5, 10)
        residuals[0], residuals[8] = fast, gain
        s = StepState(residuals=residuals, work=0.3, overlap=deep, overlap_before=was)
        b = Balance(kinetic=kinetic, lifted=lifted, shifts=shifts)
        a = Parts(step=s, balance=b, problem=Problem(trees=2), since=since, counts=counts,
                  limits=limits, strict=strict)  # fmt: skip
        before = counts.copy()
        code = step.judge(a)
        number += 1
        allowed = step.LEAST_GAIN + 1e-4 * 5.0 + 0.05 * shifts
        missed = [not fast <= 1e-3, deep > was + 1e-2, was <= 1e-2 and gain > allowed]
        assert (counts[3:] - before[3:]).tolist() == missed
        wrongs += [number] if any(missed) else []
        assert counts[:3].tolist() == [number, len(wrongs), wrongs[0] if wrongs else 0]
        assert code == (step.NO_TRUST if any(missed) and strict else 0)
        if np.isfinite(fast):
            for i in range(10):
                x = residuals[i]
                expected[i] = expected[i] + x if i in SUMMED else max(expected[i], x)
            expected[10] += 0.3
            expected[11] += gain
            assert_close(since, expected, scale=100.0)
        else:
            since[:] = expected
    assert 0 < len(wrongs) < number
