"""Recordings keep everything, in order."""

import numpy as np
import pytest

from kinetree.errors import TraceError
from kinetree.spatial import Motion
from kinetree.textbook.record import Recording, savings


def test_nothing_is_shared_or_left_out():
    recording = Recording()
    x, y = recording.array("x", (2,))
    results = [x * y, x * y, 0 * x, x + 0, x - x]
    assert recording.operations == 5
    graph, roots = recording.simplify(results)
    assert roots[0] == roots[1]
    assert graph.nodes[roots[2]] == graph.nodes[roots[4]] == ("const", 0.0)
    assert graph.nodes[roots[3]] == ("input", "x", (0,))


def test_arrays_and_spatial_vectors_take_part():
    recording = Recording()
    x = recording.array("x", (3,))
    assert (np.ones(3) @ x).i
    assert (np.ones(3) * x[0]).shape == (3,)
    assert isinstance(x[0] * Motion.zero(), Motion)


def test_decisions_are_rejected_here_too():
    x = Recording().array("x", (1,))[0]
    with pytest.raises(TraceError, match="select"):
        bool(x < 0)
    with pytest.raises(TraceError, match="exp2 of a traced value"):
        np.exp2(np.array([x]))


def test_factor_counts_what_is_left():
    saved = savings(lambda x: np.sin(x[0]) * 1 + 0 * x[1], [("x", (2,))])
    assert saved.recorded == 4
    assert saved.factor == 4.0
    assert savings(lambda x: np.tanh(np.log(np.exp(-x))), [("x", (1,))]).factor == 1.0
    nothing = savings(lambda x: 0 * x, [("x", (2,))])
    assert nothing.factor == float("inf")
