"""Rates and gradients of loop programs against the complex step of the plain text."""

import numpy as np
import pytest
from support.general_texts import outlined, record

import kinetree as kt
from kinetree.codegen.loops.derivatives import gradients, rates
from kinetree.codegen.loops.meaning import interpret
from kinetree.errors import TraceError
from kinetree.model.general.tables import BODIES, data_of

from .test_loops_recording import TEXTS, agrees, arguments, robot

STEP = 1e-30


def along(text, model, arrays, directions):
    """The rate of a text along a direction, by the complex step."""

    def sample(x, dx):
        x = x + 1j * STEP * dx
        return [None, *map(kt.Force.from_array, x)] if x.ndim == 2 else x

    given = map(sample, arrays, directions)
    return np.imag(np.array(text(model, *given), complex)) / STEP


def given(name, seed):
    """Text, model, data, program and arrays of one sample."""
    text, names = TEXTS[name]
    model = robot(seed, 6)
    data = data_of(model)
    program = record(text, names, data.domains[BODIES].kinds, name)
    return text, model, data, program, [x[0] for x in arguments(model, names, seed, 1)]


@pytest.mark.parametrize(("seed", "name"), list(enumerate(TEXTS)))
def test_rates_are_those_of_the_complex_step(name, seed):
    rng = np.random.default_rng(1)
    text, model, data, program, arrays = given(name, seed)
    wrt = tuple(range(0, len(arrays), 2))
    directions = [rng.standard_normal(x.shape) * (k in wrt) for k, x in enumerate(arrays)]
    (found,) = interpret(rates(program, wrt), data, *arrays, *(directions[k] for k in wrt))
    assert agrees(found, along(text, model, arrays, directions))


@pytest.mark.parametrize(("seed", "name"), list(enumerate(n for n in TEXTS if n[0] != "m")))
def test_gradients_are_those_of_the_complex_step(name, seed):
    """``wᵀ J`` by one run backwards, times a direction: the rate of the weighted sum along it."""
    rng = np.random.default_rng(2)
    text, model, data, program, arrays = given(name, seed)
    weight = rng.standard_normal(interpret(program, data, *arrays)[0].shape)
    wrt = tuple(range(len(arrays)))
    found = interpret(gradients(program, wrt), data, *arrays, weight)
    assert [g.shape for g in found] == [x.shape for x in arrays]
    for _ in range(3):
        directions = [rng.standard_normal(x.shape) for x in arrays]
        expected = np.sum(weight * along(text, model, arrays, directions))
        terms = [np.sum(g * dx) for g, dx in zip(found, directions, strict=True)]
        assert abs(sum(terms) - expected) <= 2e-13 * np.sum(np.abs(terms))


def test_rates_of_gradients_are_loop_programs_too():
    """Second derivatives: the rate of the gradient of ``wᵀ tau`` along ``q``."""
    _, model, data, program, (q, qd, qdd) = given("inverse", 1)
    rng = np.random.default_rng(3)
    weight, dq = rng.standard_normal(model.nv), rng.standard_normal(model.nq)
    second = rates(gradients(program, (1,)), (0,))
    (found,) = interpret(second, data, q, qd, qdd, weight, dq)
    ahead = interpret(gradients(program, (1,)), data, q + 1j * STEP * dq, qd, qdd, weight)
    assert agrees(found, np.imag(ahead[0]) / STEP)


def test_a_row_that_changes_after_it_was_read_has_no_gradient():
    """The composite-rigid-body algorithm carries a force along the chain, in one row."""
    program = given("mass matrix", 1)[3]
    with pytest.raises(TraceError, match=r"mass matrix: rows of table .* change after they were"):
        gradients(program, (0,))


@pytest.mark.parametrize("derive", [rates, gradients])
def test_derivatives_of_a_kind_are_the_same_alone_and_with_others(derive):
    text, names = TEXTS["forward"]
    kinds, outline = data_of(robot(2)).domains[BODIES].kinds, outlined(text, names)
    together = derive(record(text, names, kinds, "forward", outline), (0, 1))
    for kind in kinds[::2]:
        alone = derive(record(text, names, (kind,), "forward", outline), (0, 1))
        assert alone.rows[BODIES, kind] == together.rows[BODIES, kind]
        for (one, _), (all_, _) in zip(alone.codes(), together.codes(), strict=True):
            for key, case in one.cases.items():
                assert case.outputs == all_.cases[key].outputs
                assert case.graph.nodes == all_.cases[key].graph.nodes
