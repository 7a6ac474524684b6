"""What every simulation in the tests has to satisfy."""

import numpy as np


def assert_trusted(trajectory, *, energy, momentum=None, loops=1e-9):
    """Energy balance, momentum of what floats freely, and closed loops, within bounds."""
    report = trajectory.report
    assert report.energy_error <= energy, f"energy error {report.energy_error:.3g}"
    if report.momentum_error is not None:
        bound = energy if momentum is None else momentum
        assert report.momentum_error <= bound, f"momentum error {report.momentum_error:.3g}"
    assert report.loop_error <= loops, f"loop error {report.loop_error:.3g}"
    assert np.max(trajectory.loop_error, initial=0.0) == report.loop_error
    model, at = trajectory.model, trajectory.model.q_slice
    first = (0,) * (trajectory.q.ndim - 2)
    for q in (trajectory.q[(0, *first)], trajectory.q[(-1, *first)]):
        for i, body in enumerate(model.bodies, start=1):
            assert body.joint.defect(q[at[i]]) is None
