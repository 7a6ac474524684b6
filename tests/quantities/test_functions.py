"""Which algorithms the compiler considers, and which it keeps."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import fewest_operations as fewest
from kinetree.codegen.program import trace
from kinetree.expr.counting import cost
from kinetree.functional.prepare import bind, prepare
from kinetree.model.define import DEFINITIONS, kernel_of
from kinetree.model.kernels import by_the_book

FACTORS = fewest.forward_dynamics_by_inertia_matrix


def considered(model, name="forward_dynamics"):
    candidates = DEFINITIONS[name].algorithms
    return [a for a in candidates if DEFINITIONS[name].suits(model, a)]


def test_factors_are_for_shallow_trees():
    assert FACTORS in considered(kt.samples.arm())
    assert FACTORS in considered(kt.samples.quadruped())
    assert FACTORS not in considered(kt.samples.chain(40))  # n³ operations against n
    name, by_factors = "inverse_mass_matrix", fewest.inverse_mass_matrix_by_factors
    assert by_factors in considered(kt.samples.quadruped(), name)
    assert by_factors not in considered(kt.samples.chain(40), name)


@pytest.mark.covers("RBDA 10.3", by=kernel_of)
def test_operations_grow_linearly_with_the_chain():
    def operations(n, name):
        program = kernel_of(kt.samples.chain(n), name).program
        return cost(program.graph, program.roots)

    for name in ("inverse_dynamics", "forward_dynamics"):
        few, more, many = (operations(n, name) for n in (10, 20, 30))
        assert abs((many - more) - (more - few)) < 0.01 * many


def test_the_shortest_program_is_kept(rng):
    model = kt.samples.arm()
    kept = kernel_of(model, "inverse_dynamics").make_program()
    book = DEFINITIONS["inverse_dynamics"].algorithms[0]
    reference = trace(lambda *a: book(model, *a), kept.inputs)
    assert cost(kept.graph, kept.roots) < 0.8 * cost(reference.graph, reference.roots)
    q, qd, qdd = rng.standard_normal((3, model.nv))
    assert_close(kt.inverse_dynamics(model, q, qd, qdd), book(model, q, qd, qdd))
    assert np.isfinite(kt.inverse_dynamics(model, q, qd, qdd)).all()


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "mass_matrix"])
def test_a_quantity_inside_a_kernel_is_the_shortest_program(name):
    model = kt.samples.arm()
    function = getattr(kt, name)
    alone = kernel_of(model, name).program
    states = [np.zeros(a.shape) for a in alone.inputs]

    @kt.kernel
    def inside(model, q, qd=None, tau=None):
        return function(*(a for a in (model, q, qd, tau) if a is not None))

    program = inside.compiled(model, *states).program
    assert cost(program.graph, program.roots) <= cost(alone.graph, alone.roots)


def test_a_quantity_of_traced_parameters_is_nearly_as_short(rng):
    model, names = kt.samples.arm(), ("inertia:elbow",)
    alone = kernel_of(model, "forward_dynamics").program
    q, qd, tau = rng.standard_normal((3, model.nv))
    call = bind(kt.forward_dynamics, (model, q, qd, tau), {})
    program = prepare(kt.forward_dynamics, call, names).kernel.program
    assert cost(program.graph, program.roots) < 1.1 * cost(alone.graph, alone.roots)
    compiled = kt.compile(kt.forward_dynamics, model, parameters=names)
    inertia = model.inertia[model.body_index("elbow")].parameters()
    assert_close(compiled(q, qd, tau, inertia), kt.forward_dynamics(model, q, qd, tau), ulps=1e3)


def test_by_the_book_nothing_is_combined_beforehand():
    model = kt.samples.arm()
    book = DEFINITIONS["inverse_dynamics"].algorithms[0]
    inputs = kernel_of(model, "inverse_dynamics").inputs
    with by_the_book():
        traced = trace(lambda *a: kt.inverse_dynamics(model, *a), inputs)
    text = trace(lambda *a: book(model, *a), inputs)
    assert cost(traced.graph, traced.roots) == cost(text.graph, text.roots)
