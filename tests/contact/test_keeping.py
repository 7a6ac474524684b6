"""Islands that a step solves again though nothing has changed in them keep their answer."""

import numpy as np
import pytest
from support.islands import filled, missed, run

from kinetree.contact.newton.problem import CONE

MASSES, MU = np.array([1.3, 0.7, 2.1]), 0.4


def sliders(rng):
    """Three bodies that touch the ground at one point each, each an island of its own."""
    M, rows = np.diag(np.repeat(MASSES, 3)), []
    for k in range(3):
        J = np.zeros((3, 9))
        J[:, 3 * k : 3 * k + 3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        rows.append((CONE, J, np.zeros(3), MU, 0.0, 0.0))
    p = filled([-1, 0, 1, -1, 3, 4, -1, 6, 7], M, rows)
    p.label[:3] = 11, 4, 7
    p.free[:] = np.concatenate([J[:, 3 * k : 3 * k + 3].T @ (-1.0, 2.0, 0.3)
                                for k, (_, J, *_) in enumerate(rows)])  # fmt: skip
    return p, M, rows


def once_more(p, work):
    """Solve a problem again within a step, from its solution."""
    p.again, p.changed, p.start[:] = 1, 1, p.velocity
    p.velocity[:] = 0.0
    return run(p, work)


def test_what_has_not_changed_keeps_its_bits_and_what_has_is_solved(rng):
    p, M, rows = sliders(rng)
    status, work = run(p)
    assert status == 0
    velocity, impulse = p.velocity.copy(), p.impulse.copy()
    p.target[3] = 0.25
    rows[1][2][0] = 0.25
    p.impulse[:3] *= 0.5  # a start, which does not matter where there is an answer
    assert once_more(p, work)[0] == 0
    for k in (0, 2):
        np.testing.assert_array_equal(p.velocity[3 * k : 3 * k + 3], velocity[3 * k : 3 * k + 3])
        np.testing.assert_array_equal(p.impulse[3 * k : 3 * k + 3], impulse[3 * k : 3 * k + 3])
    assert np.max(np.abs(p.velocity[3:6] - velocity[3:6])) > 0.1
    assert max(missed(M, p.free, rows, p.velocity, p.impulse)) < 1e-8
    assert work.same[:3].tolist() == [0, -1, 2]


@pytest.mark.parametrize("what", ["free", "label", "step"])
def test_an_answer_of_another_problem_is_none(rng, what):
    p, M, rows = sliders(rng)
    _, work = run(p)
    if what == "free":
        p.free[0] += 1e-9
    elif what == "label":  # another contact in its place
        p.label[0] = 12
    else:
        p.begins = 1
    assert once_more(p, work)[0] == 0
    assert work.same[:3].tolist() == ([-1] * 3 if what == "step" else [-1, 1, 2])
    assert max(missed(M, p.free, rows, p.velocity, p.impulse)) < 1e-8


def test_errors_are_those_of_all_islands(rng):
    p, _, _ = sliders(rng)
    _, work = run(p)
    errors = p.error, p.velocity_error, p.cone_error, p.complementarity, p.momentum_error
    once_more(p, work)
    assert work.same[:3].tolist() == [0, 1, 2]
    assert p.newton == 0
    assert errors == (
        p.error, p.velocity_error, p.cone_error, p.complementarity, p.momentum_error
    )  # fmt: skip


def test_impulses_of_the_last_step_follow_contacts_that_join_and_move(rng):
    p, M, rows = sliders(rng)
    p.impulse[:9] = last = rng.normal(size=9)
    _, work = run(p)
    np.testing.assert_array_equal(work.lam_last[:9], last)
    other = filled([-1, 0, 1, -1, 3, 4, -1, 6, 7], M, [rows[2], rows[1], rows[0], rows[1]])
    other.label[:4] = 7, -4, 11, 4  # one of them new
    other.free[:], other.velocity[:] = p.free, p.velocity
    other.begins = 1
    assert once_more(other, work)[0] == 0
    now = work.lam_last[:12]
    np.testing.assert_array_equal(now, [*last[6:9], 0, 0, 0, *last[:3], *last[3:6]])
