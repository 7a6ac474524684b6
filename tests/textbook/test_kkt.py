"""Accelerations and constraint forces at once — RBDA §8.5, method 1."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

import kinetree as kt
from kinetree.algorithms.closed.systems import Implicit, implicit_equations
from kinetree.errors import LoopError, ShapeError, SingularError
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.samples import four_bar
from kinetree.textbook.loop_methods import solve_kkt as solve


@pytest.mark.covers("RBDA 8.1", "RBDA 8.5", by=implicit_equations)
@pytest.mark.parametrize("kind", ["spatial", "planar", "spherical", "doubled"])
def test_the_rank_of_the_matrix_is_n_plus_that_of_K(kind):
    instant = random_instant(2, kind=kind)
    A, b = implicit_equations(instant.system, Implicit(instant.K, instant.k))
    assert np.array_equal(A, A.T)
    assert np.linalg.matrix_rank(A, tol=1e-10) == instant.model.nv + instant.rank
    found = solve(instant)
    assert_close(A @ [*found.qdd, *-found.lam], b, ulps=1e5, scale=1 + np.abs(b).max())


def moving_four_bar():
    """The mechanism in motion, and the rows of its hinge along y that lie in the plane."""
    model, q = four_bar(), np.zeros(3)
    qd = kt.loops.project_velocity(model, q, np.array([1.0, -0.5, 0.3]))
    instant = ConstrainedEquations(model, q, qd, np.ones(3))
    planar = [n for n in range(5) if np.any(np.abs(instant.K[n]) > 1e-12)]
    assert len(planar) == 2
    return instant, planar


@pytest.mark.covers("RBDA 8.5", by=implicit_equations)
def test_known_rows_of_the_four_bar_make_the_matrix_regular():
    """The three out-of-plane rows of a hinge along y repeat what the other hinges do."""
    instant, planar = moving_four_bar()
    whole = implicit_equations(instant.system, Implicit(instant.K, instant.k))[0]
    pruned = Implicit(instant.K[planar], instant.k[planar])
    assert np.linalg.cond(whole) > 1e15
    assert np.linalg.cond(implicit_equations(instant.system, pruned)[0]) < 1e4


@pytest.mark.covers("RBDA 8.5", by=kt.loops.solve)
@pytest.mark.parametrize("method", ["null_space", "kkt", "range_space", "articulated", "sparse"])
def test_known_rows_of_the_four_bar_give_the_same_motion_by_every_method(method):
    instant, planar = moving_four_bar()
    given = (instant.model, instant.q, instant.qd, instant.tau)
    every = kt.loops.solve(*given)
    found = kt.loops.solve(*given, method=method, rows=planar)
    assert_close(found.qdd, every.qdd, ulps=1e4)
    assert_close(found.tau_c, every.tau_c, ulps=1e4, scale=1 + np.abs(every.tau_c).max())
    assert not np.any(np.delete(found.lam, planar))
    assert (found.rank, found.redundancy) == (2, 3)
    assert np.array_equal(found.unique, [n in planar for n in range(5)])


def test_rows_that_do_not_fit_are_rejected():
    instant, planar = moving_four_bar()
    given = (instant.model, instant.q, instant.qd, instant.tau)
    idle = [n for n in range(5) if n not in planar]
    chosen = ConstrainedEquations(*given, chosen_rows=np.array([*planar, idle[0]]), known_rank=3)
    with pytest.raises(SingularError, match=r"constraint rows \[.*\] of model 'four-bar' depend"):
        solve(chosen)
    with pytest.raises(LoopError, match=r"do not imply the others here: their rank is 1"):
        kt.loops.solve(*given, rows=planar[:1])
    for wrong in ([0, 0], [7], "planar", [0.5]):
        with pytest.raises(ShapeError, match="rows must be different numbers from 0 to 4"):
            kt.loops.solve(*given, rows=wrong)
    with pytest.raises(LoopError, match="method 'closure' does not take rows"):
        kt.loops.solve(*given, method="closure", rows=planar)


@pytest.mark.parametrize("seed", range(3))
def test_a_rank_that_the_caller_knows_gives_the_same(seed):
    instant = random_instant(seed, kind="planar")
    known = ConstrainedEquations(
        instant.model, instant.q, instant.qd, instant.tau, known_rank=instant.rank
    )
    assert_close(solve(known).qdd, solve(instant).qdd, ulps=1e5)
