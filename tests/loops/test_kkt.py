"""Accelerations and constraint forces at once — RBDA §8.5, method 1."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

from kinetree.algorithms.closed.systems import Implicit, implicit_equations
from kinetree.errors import SingularError
from kinetree.loops.dynamics import methods
from kinetree.loops.dynamics.methods import Instant
from kinetree.loops.dynamics.methods import solve_kkt as solve
from kinetree.samples import four_bar


@pytest.mark.covers("RBDA 8.1", "RBDA 8.5", by=implicit_equations)
@pytest.mark.parametrize("kind", ["spatial", "planar", "spherical", "doubled"])
def test_the_rank_of_the_matrix_is_n_plus_that_of_K(kind):
    instant = random_instant(2, kind=kind)
    A, b = implicit_equations(instant.system, Implicit(instant.K, instant.k))
    assert np.array_equal(A, A.T)
    assert np.linalg.matrix_rank(A, tol=1e-10) == instant.model.nv + instant.rank
    found = solve(instant)
    assert_close(A @ [*found.qdd, *-found.lam], b, ulps=1e5, scale=1 + np.abs(b).max())


@pytest.mark.covers("RBDA 8.5", by=solve)
def test_known_rows_of_the_four_bar_will_do():
    """The three out-of-plane rows of a hinge along y repeat what the other hinges do."""
    model = four_bar()
    instant = Instant(model, np.zeros(3), np.array([1.0, -0.5, 0.3]), np.ones(3))
    planar = [n for n in range(5) if np.any(np.abs(instant.K[n]) > 1e-12)]
    assert len(planar) == 2
    assert_close(solve(instant, rows=planar).qdd, methods.solve_null_space(instant).qdd, ulps=1e4)
    assert not np.any(np.delete(solve(instant, rows=planar).lam, planar))


def test_dependent_rows_are_refused():
    model = four_bar()
    instant = Instant(model, np.zeros(3), np.zeros(3), np.ones(3))
    idle = [n for n in range(5) if not np.any(np.abs(instant.K[n]) > 1e-12)]
    with pytest.raises(SingularError, match=r"constraint rows \[.*\] of model 'four-bar' depend"):
        solve(instant, rows=idle)


@pytest.mark.parametrize("seed", range(3))
def test_a_rank_that_the_caller_knows_gives_the_same(seed):
    instant = random_instant(seed, kind="planar")
    known = Instant(instant.model, instant.q, instant.qd, instant.tau, known_rank=instant.rank)
    assert_close(solve(known).qdd, solve(instant).qdd, ulps=1e5)
