"""Few targets of large linkages on arrays, against compiled iterations."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.ik import on_arrays


@pytest.mark.parametrize(("name", "body"), [("stewart", "platform"), ("delta", "plate")])
def test_few_targets_agree_with_compiled_code(name, body, rng):
    model = getattr(kt.samples, name)()
    body = next(n for n in model.body_names if body in n)
    there = kt.pose(model, kt.loops.assemble(model), body)[:3, 3]
    near, far = there + 0.01 * rng.normal(size=(2, 3)), np.add(there, (0, 0, 30.0))[np.newaxis]
    for point, reason in ((near, "converged"), (far, None)):
        task = [kt.ik.PositionTask(body, point)]
        found = kt.inverse_kinematics(model, task)
        with kt.tier("specialised"):
            expected = kt.inverse_kinematics(model, task)
        assert list(found.reason) == list(expected.reason)
        assert reason is None or set(found.reason) == {reason}
        np.testing.assert_allclose(found.error, expected.error, rtol=1e-6, atol=1e-8)
        if reason:
            np.testing.assert_array_equal(found.iterations, expected.iterations)
            np.testing.assert_allclose(found.q, expected.q, atol=1e-9)


def test_many_targets_are_compiled(monkeypatch):
    model = kt.samples.delta()
    body = next(n for n in model.body_names if "plate" in n)
    there = kt.pose(model, kt.loops.assemble(model), body)[:3, 3]

    def refuse(*args, **options):
        raise AssertionError("on arrays")

    monkeypatch.setattr(on_arrays, "descend", refuse)
    task = [kt.ik.PositionTask(body, np.repeat(there[np.newaxis], 50, 0))]
    assert kt.inverse_kinematics(model, task).success.all()
