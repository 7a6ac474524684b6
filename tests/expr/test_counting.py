"""The counting scalar: what it counts, what is free, and that it computes right numbers."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba, crba, rnea
from kinetree.errors import ShapeError, SingularError
from kinetree.expr.counting import Counted, Tally, count, counting, fit_growth, variables
from kinetree.joints import Fixed, Prismatic, Revolute, Spherical
from kinetree.samples import chain, random_inertia, random_tree
from kinetree.spatial import ops


@pytest.mark.covers("RBDA 5.1", by=(Counted, counting))
def test_every_operation_counts_by_its_kind():
    x, y = Counted(2.0), Counted(3.0)
    with counting() as tally:
        results = [x + y, x - y, x * y, x / y, 5.0 / x, x + 1.5, 2.5 - x, x * 7, x**3]
        results += [ops.sqrt(x), ops.sin(x), ops.cos(x), ops.atan2(x, y)]
        results += [ops.exp(x), ops.log(x), ops.tanh(x), -ops.tanh(-x)]
    assert tally == Tally(
        multiplications=4, additions=4, divisions=2, square_roots=1, trigonometric=3, exponentials=3
    )
    assert tally.total == 11
    expected = [5, -1, 6, 2 / 3, 2.5, 3.5, 0.5, 14, 8]
    expected += [np.sqrt(2), np.sin(2), np.cos(2), np.arctan2(2, 3)]
    expected += [np.exp(2), np.log(2), np.tanh(2), np.tanh(2)]
    assert_close([float(r) for r in results], expected)


def test_sign_changes_zeros_and_ones_are_free():
    x = Counted(2.0)
    with counting() as tally:
        results = [-x, +x, abs(-x), x + 0, 0 - x, 1 * x, -1 * x, x / 1, x / -1, 0 * x, 0 / x, x**1]
    assert tally.total == 0
    assert str(tally) == "0"
    assert [float(r) for r in results] == [-2, 2, 2, 2, -2, 2, -2, 2, -2, 0, 0, 2]


def test_numbers_known_beforehand_cost_nothing_among_themselves():
    assert count(lambda x: x * (2.0 * 3.0 + np.float64(1.5)), 2.0).total == 1
    assert count(lambda x: x * Fraction(1, 3), 2.0).multiplications == 1


def test_the_same_operation_counts_once_up_to_sign():
    x, y = Counted(2.0), Counted(3.0)
    with counting() as tally:
        pairs = [
            (x * y, y * -x),
            (x - y, y - x),
            (x + y, -y - x),
            (x / y, x / -y),
            (ops.sin(x), ops.sin(-x)),
            (x * 2.5, -2.5 * x),
        ]
    assert (tally.multiplications, tally.additions, tally.divisions) == (2, 2, 1)
    assert tally.trigonometric == 1
    for a, b in pairs:
        assert a.serial == b.serial
        assert float(a) == -float(b)
    with counting() as tally:
        _ = ops.cos(x), ops.cos(-x), x + y, x - y, x / y, y / x
    assert (tally.trigonometric, tally.additions, tally.divisions) == (1, 2, 2)


def test_each_block_counts_by_itself():
    x, y = Counted(2.0), Counted(3.0)
    with counting() as outer:
        z = x * y
        with counting() as inner:
            _ = x * y + z
        _ = x + z
    assert str(outer) == "1m + 1a"
    assert str(inner) == "1m + 1a"
    _ = x * y  # outside any block: computed, not counted
    assert outer.multiplications == 1


def test_comparisons_are_free_and_go_by_value():
    x, y = Counted(2.0), Counted(3.0)
    with counting() as tally:
        assert x < y
        assert y > 2
        assert x <= 2
        assert y >= x
        assert ops.absolute(-y) > 0
        assert float(ops.select(ops.less(x, y), x, y)) == 2.0
        assert ops.check_pivot(x, y, lambda: "") is x
    assert tally.total == 0
    with pytest.raises(SingularError, match="pivot 3 vanishes"):
        ops.check_pivot(Counted(1e-20), Counted(1.0), lambda: "pivot 3 vanishes")


def test_works_in_numpy_arrays_with_integers_and_floats(rng):
    A, x = rng.standard_normal((3, 4)), rng.standard_normal(4)
    As, xs = variables(A), variables(x)
    with counting() as tally:
        y = As @ xs
    assert str(tally) == "12m + 9a"
    assert_close(y.astype(float), A @ x)
    with counting() as tally:
        y = np.int64(3) * xs[0], np.eye(4, dtype=int) @ xs, xs * np.int64(1), 2.5 + xs[:1]
    assert str(tally) == "1m + 1a"
    assert_close(y[1].astype(float), x)
    with pytest.raises(TypeError):
        Counted(1.0) + "2"
    with pytest.raises(TypeError):
        Counted(2.0) ** 0.5


def test_variables_keep_structure_and_symmetry(rng):
    I = random_inertia(rng)
    new = variables(I)
    assert type(new) is type(I)
    assert new.rotational[0, 1] is new.rotational[1, 0]
    assert new.rotational[0, 1] is not new.rotational[0, 2]
    assert_close(new.to_matrix().astype(float), I.to_matrix())
    assert variables(np.eye(3, dtype=int)).dtype == int
    assert variables("text") == "text"
    one, two = variables((1.5, [np.array([2.0]), 3]))
    assert isinstance(one, Counted)
    assert isinstance(two[0][0], Counted)
    assert two[1] == 3
    assert repr(one) == "Counted(1.5)"


@pytest.mark.covers("RBDA 5.1", by=counting)
@pytest.mark.parametrize(
    "algorithm", [rnea.inverse_dynamics, aba.forward_dynamics, crba.joint_space_inertia]
)
def test_counted_run_gives_the_same_numbers(algorithm, rng):
    joints = (Revolute("z"), Prismatic((1.0, 2.0, 2.0)), Spherical(), Fixed())
    model = random_tree(7, rng, joints=joints)
    arguments = [model.random_configuration(rng), *rng.standard_normal((2, model.nv))]
    if algorithm is crba.joint_space_inertia:
        arguments = arguments[:1]
    with counting() as tally:
        result = algorithm(model, *variables(arguments))
    assert tally.total > 0
    assert_close(result.astype(float), algorithm(model, *arguments), ulps=1000)


@pytest.mark.covers("RBDA 5.1", by=fit_growth)
def test_recursive_algorithms_grow_linearly_and_the_inertia_matrix_quadratically(rng):
    sizes = np.array([8, 10, 12, 14])

    def totals(algorithm, vectors):
        models = [chain(n) for n in sizes]
        states = [rng.standard_normal((vectors, n)) for n in sizes]
        return np.array(
            [count(algorithm, m, *state).total for m, state in zip(models, states, strict=True)]
        )

    # Beyond the first links each further one costs the same: growth is exactly linear.
    for algorithm in (rnea.inverse_dynamics, aba.forward_dynamics):
        costs = totals(algorithm, 3)
        assert len(set(np.diff(costs))) == 1
        assert 1.0 < fit_growth(sizes, costs) < 1.15
    costs = totals(crba.joint_space_inertia, 1)
    assert len(set(np.diff(costs, 2))) == 1
    assert np.diff(costs, 2)[0] > 0


@pytest.mark.covers("RBDA 5.1", by=fit_growth)
def test_growth_of_a_matrix_product_depends_on_what_is_called_size():
    sizes = np.array([4, 8, 12])
    costs = []
    for n in sizes:
        A, B = variables(np.arange(2.0 * n * n).reshape(2, n, n))
        with counting() as tally:
            _ = A @ B
        assert tally.multiplications == n**3
        costs.append(tally.multiplications)
    assert_close(fit_growth(sizes, costs), 3.0)
    assert_close(fit_growth(sizes**2, costs), 1.5)


def test_fit_growth_needs_two_sizes():
    with pytest.raises(ShapeError, match="at least two different sizes"):
        fit_growth([3, 3], [1, 2])
    with pytest.raises(ShapeError, match="a cost for each"):
        fit_growth([3, 4], [1, 2, 3])


def test_tally_prints_like_the_book():
    assert str(Tally(multiplications=24, additions=18)) == "24m + 18a"
    assert str(Tally(additions=6)) == "6a"
    assert str(Tally(1, 2, 3, 4, 5)) == "1m + 2a + 3d + 4r"
