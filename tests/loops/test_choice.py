"""Which constraint equations a simulation solves, how healthy they are, and starts that are off."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import offset_four_bar

import kinetree as kt
from kinetree.algorithms.closed.rank import scaling
from kinetree.errors import LoopError
from kinetree.loops.kinematics.compiled_projection import Chosen
from kinetree.loops.kinematics.constraint import closure_error, constraint, rank
from kinetree.loops.kinematics.whitening import orthogonal, whitening
from kinetree.loops.stepping.choice import (
    _health,
    _near,
    _slack,
    _weight,
    better_choice,
    check_start,
    choose,
)
from kinetree.model import Coupling


def geared(count):
    """Hinges side by side, each of which follows the first."""
    ball = kt.Inertia.from_mass_center(1.0, (0, 0, 0.1), np.eye(3))
    builder = kt.ModelBuilder("geared")
    for i in range(count + 1):
        builder.body(f"b{i}", joint=kt.Revolute("z"), at=(i, 0, 0), inertia=ball)
    return builder.build()


def test_one_equation_is_in_the_best_of_health(rng):
    """Relative to the mean of all, whatever its size."""
    model = kt.samples.four_bar()
    q = np.array(model.posture("home").q)
    choice = choose(model, q).chosen
    for row, unit in zip(choice.rows, (1.0, 1e5), strict=True):
        one = Chosen((row,), (unit,), every=choice.every)
        assert_close(_health(model, q, one), 1.0)
    two = _health(model, q, choice)
    K = choice.matrix(constraint(model, q, np.zeros(3)).K)
    assert_close(two, min(orthogonal(whitening(model, q), K).health), ulps=1e4)
    assert 0 < two < 1


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "bennett"])
def test_next_to_a_configuration_loops_are_closed_too(name):
    model = getattr(kt.samples, name)()
    units, rng = scaling(model), np.random.default_rng(0)
    q = np.array(model.posture("home").q)
    K = constraint(model, q, np.zeros(model.nv)).K
    for _ in range(3):
        near = _near(model, q, K, units, rng)
        away = np.linalg.norm(model.difference(q, near) / units.columns)
        assert 0.9e-2 < away < 1.1e-2
        assert np.max(np.abs(closure_error(model, near))) < 1e-12


def test_worse_equations_are_replaced_and_keep_their_options():
    model = kt.samples.bennett()
    q = np.array(model.posture("home").q)
    units, best = scaling(model), choose(model, q).chosen
    K = units.apply(np.asarray(constraint(model, q, np.zeros(3)).K))
    values = {}
    for i in range(len(K)):
        for j in range(i + 1, len(K)):
            values[i, j] = np.linalg.svd(K[[i, j]], compute_uv=False)[-1]
    for rows, value in values.items():
        mine = Chosen(rows, tuple(units.rows[list(rows)]), (), (), 0.25, best.every, 0.125)
        found = better_choice(model, q, mine)
        if rows == best.rows or value >= 0.5 * values[best.rows]:
            assert found is None
        else:
            assert (found.rows, found.units) == (best.rows, best.units)
            assert (found.weight, found.slack, found.every) == (0.25, 0.125, best.every)
    assert rank(K) == 2


def test_the_row_that_is_torn_is_named():
    ladder = kt.samples.ladder(3)
    q = ladder.neutral()
    for k, loop in enumerate(ladder.loops):
        qd = np.zeros(ladder.nv)
        qd[ladder.v_slice[loop.successor]] = 1.0
        c = constraint(ladder, q, qd)
        assert np.max(np.abs(c.rate)) > 0.1
        with pytest.raises(LoopError, match=f"qd0 tears loop {loop.name!r} of model") as caught:
            check_start(ladder, q, qd)
        units = scaling(ladder).rows
        worst = int(np.argmax(np.abs(c.rate * units)))
        assert f"apart, at {abs(c.rate[worst]):.3g} m/s" in str(caught.value)
        batch = np.zeros((3, ladder.nv))
        batch[k] = qd
        with pytest.raises(LoopError, match=rf"qd0 of sample \({k},\) tears"):
            check_start(ladder, np.tile(q, (3, 1)), batch)
    model = geared(2).replace(couplings=(Coupling("gear", 2, 1), Coupling("other", 3, 1)))
    check_start(model, model.neutral(), np.zeros(model.nv))


def test_a_start_that_is_open_along_redundant_constraints_has_slack():
    """The constraint matrix shows nothing of it: hinges are parallel, the error is all."""
    q = kt.loops.assemble(offset_four_bar(0.0), [1.0, -0.4, 1.2])
    assert choose(offset_four_bar(0.0), q).chosen.slack == 0
    with pytest.warns(kt.errors.MisalignmentWarning, match="misaligned by up to"):
        choice = choose(offset_four_bar(1e-5), q)
    gap = np.max(np.abs(closure_error(offset_four_bar(1e-5), q) * choice.chosen.every))
    assert gap > 1e-6
    assert gap <= choice.chosen.slack < 100 * gap
    assert choice.chosen.largest_error(closure_error(offset_four_bar(1e-5), q)) < 1e-11


def test_a_truss_that_is_open_along_redundant_constraints_has_slack():
    """Two bars and the base: no freedom is left, along which others would be looked for."""

    def truss(z):
        bar = kt.Inertia.from_mass_center(1.0, (0.1, 0, 0), np.eye(3) / 100)
        hinge = kt.Revolute("z")
        builder = kt.ModelBuilder("truss")
        builder.body("one", joint=hinge, inertia=bar)
        builder.body("other", joint=hinge, at=(0.4, 0, 0), inertia=bar)
        builder.loop("pin", predecessor="one", successor="other", joint=hinge, at=(0.5, 0, 0),
                     successor_at=(0.4, 0, z))  # fmt: skip
        return builder.build()

    q = kt.loops.assemble(truss(0.0), [0.8, 1.6])
    assert choose(truss(0.0), q).chosen.slack == 0
    with pytest.warns(kt.errors.MisalignmentWarning, match="misaligned by up to"):
        chosen = choose(truss(1e-5), q).chosen
    assert 1e-6 < chosen.slack < 1e-3


@pytest.mark.parametrize(("k", "name"), [(0, "a weld"), (1, "b weld"), (2, "c weld")])
def test_the_first_row_of_a_loop_that_is_torn_is_named(k, name):
    ball = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    builder = kt.ModelBuilder("welded")
    for body in "abc":
        builder.body(body, joint=kt.Revolute("x"), inertia=ball)
        builder.loop(f"{body} weld", predecessor="base", successor=body, joint=kt.Fixed())
    model = builder.build()
    with pytest.raises(LoopError, match=f"tears loop '{name}' of model 'welded' apart, at 2 rad/s"):
        check_start(model, np.zeros(3), 2 * np.eye(3)[k])


def test_a_regular_start_is_judged_where_it_is():
    """Overconstrained, so that its neighbours are looked at as well."""
    model = kt.samples.bennett()
    q = np.array(model.posture("home").q)
    choice = choose(model, q)
    assert not choice.singular
    assert_close(choice.health, _health(model, q, choice.chosen))


def test_as_many_equations_as_were_chosen_or_none():
    """Where one of three becomes dependent, two do not replace them."""
    model = kt.samples.bennett()
    q = np.array(model.posture("home").q)
    units, best = scaling(model), choose(model, q).chosen
    for rows in ((0, 1, 2), (1, 3, 4)):
        mine = Chosen(rows, tuple(units.rows[list(rows)]), every=best.every)
        assert better_choice(model, q, mine) is None


def test_equations_have_the_weight_of_the_inertia_in_pure_numbers():
    """A mean of the diagonal, lengths measured in those of the mechanism."""
    model = kt.samples.actuated_arm(l1=3.0, l2=2.0)
    q = np.array(model.posture("home").q, dtype=float)
    units = scaling(model)
    assert np.ptp(units.columns) > 0.1
    assert _weight(model, q, units) == 0
    light = model.replace(inertia={"forearm": kt.Inertia.zero()})
    H = kt.mass_matrix(light.spanning_tree, q)
    expected = np.mean(np.diagonal(H) * scaling(light).columns ** 2)
    assert_close(_weight(light, q, scaling(light)), expected)
    point = kt.Inertia.from_mass_center(1.0, (0.2, 0.1, 0), np.zeros((3, 3)))
    points = model.replace(inertia={"arm": point, "forearm": point})
    assert _weight(points, q, scaling(points)) == 0


def test_a_start_has_slack_whichever_way_it_is_open():
    q = kt.loops.assemble(offset_four_bar(0.0), [1.0, -0.4, 1.2])
    for z in (1e-5, -1e-5):
        with pytest.warns(kt.errors.MisalignmentWarning, match="misaligned by up to"):
            slack = _slack(offset_four_bar(z), q, scaling(offset_four_bar(z)))
        assert slack > 1e-6


def test_the_loop_that_is_open_is_named():
    ball, builder = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3)), kt.ModelBuilder("pins")
    for k in range(3):
        for side in "ab":
            builder.body(f"{side}{k}", joint=kt.Prismatic("x"), at=(0, k, 0), inertia=ball)
        builder.loop(f"pin{k}", predecessor=f"a{k}", successor=f"b{k}", joint=kt.Revolute("z"))
    model = builder.build()
    for k in range(3):
        q = np.zeros(6)
        q[2 * k] = 0.25
        with pytest.raises(LoopError, match=f"q0 does not close loop 'pin{k}' of model 'pins'"):
            check_start(model, q, np.zeros(6))
