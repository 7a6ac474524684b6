"""Steps of several past rates, and batches of motions on charts."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.textbook.chart_motion import _AdamsBashforth


def test_four_steps_of_equal_length_take_one_rate_each():
    """The first three of them, those in another chart and those of another length take five."""
    seen = []

    def rate(t, y):
        seen.append(t)
        return np.array([4 * t**3])

    one, other = SimpleNamespace(rate=rate), SimpleNamespace(rate=rate)
    advance, t, y, counts = _AdamsBashforth(), 0.0, np.zeros(1), []
    lengths = [0.25] * 6 + [0.125] * 5 + [0.25] * 5
    for chart, h in zip([one] * 11 + [other] * 5, lengths, strict=True):
        before = len(seen)
        y, t = advance(chart, t, y, h), t + h
        counts.append(len(seen) - before)
        assert y[0] == pytest.approx(t**4, rel=1e-13)  # of order 4, both of them
    assert counts == [5, 5, 5, 1, 1, 1, 5, 5, 5, 1, 1, 5, 5, 5, 1, 1]


def test_a_batch_moves_on_charts_as_its_samples_do():
    model = kt.samples.four_bar()
    home = np.array(model.posture("home").q, dtype=float)
    q = kt.loops.project_configuration(model, home + np.array([[0.1], [-0.2]]) * [1.0, 0, 0])
    qd = kt.loops.project_velocity(model, q, np.array([[1.0, 0, 0], [-2.0, 0, 0]]))
    options = {"duration": 0.02, "dt": 0.01, "constraints": "charts"}
    many = kt.simulate(model, q, qd, **options)
    for k in range(2):
        one = kt.simulate(model, q[k], qd[k], **options)
        assert_close(many.q[:, k], one.q, ulps=1e4)
        assert_close(many.qd[:, k], one.qd, ulps=1e4)
        assert np.max(np.abs(one.q[-1] - one.q[0])) > 1e-3
