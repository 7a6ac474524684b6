"""Loops inside loops whose number of runs is known only at run time."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt


def test_checks_inside_an_inner_loop_hold_while_the_outer_one_runs():
    """Newton's method in every run: its divisions are checked there, and the result is used."""

    @kt.kernel
    def roots(m, q, count: ()):
        def newton(state):
            qdd = kt.forward_dynamics(m, state, 0 * state, 0 * state)
            return state + 0.01 * qdd

        def run(state):
            return kt.repeat(newton, state, 3)

        return kt.repeat(run, q, count)

    m = kt.samples.double_pendulum()
    q = np.array([0.5, 0.2])
    compiled = roots(m, q, 4.0)
    assert_close(compiled, roots.reference(m, q, 4.0), ulps=1000)
    batch = roots(m, np.array([q, 2 * q]), np.array([4.0, 2.0]))
    assert_close(batch[0], compiled, ulps=1000)


@pytest.mark.parametrize("count", [0.0, 1.0, 3.0])
def test_any_number_of_outer_runs(count):
    @kt.kernel
    def power(x: (2,), count: ()):
        def double(state):
            return 2 * state

        return kt.repeat(lambda s: kt.repeat(double, s, 2), x, count)

    assert_close(power(np.array([1.0, 3.0]), count), 4**count * np.array([1.0, 3.0]))
