"""Schedules: what is fused, where the line is cut, and that slots never clash."""

import numpy as np
import pytest
from support.effort import assert_linear

import kinetree as kt
from kinetree.codegen.check import cases
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.schedule import BLOCK_SIZE, LoopStep, schedule
from kinetree.expr import interpret
from kinetree.model.define import kernel_of


def plan_of(function, n=4, **options):
    program = trace(function, [Argument("x", (n,))], "f")
    return schedule(program.graph, program.roots, **options), program


def operations(plan):
    return [s.op for b in plan.blocks for s in b.statements if s.op != "input"]


# --- fusing --------------------------------------------------------------------------------------


def test_a_product_joins_the_sum_that_needs_it():
    plan, _ = plan_of(lambda x: np.array([x[0] * x[1] + x[2]]))
    assert operations(plan) == ["fma"]
    plan, _ = plan_of(lambda x: np.array([x[2] - x[0] * x[1]]))
    assert operations(plan) == ["fms"]


def test_a_difference_that_starts_with_a_product_is_left_alone():
    plan, _ = plan_of(lambda x: np.array([x[0] * x[1] - x[2]]))
    assert operations(plan) == ["*", "-"]


def test_a_product_that_is_needed_twice_is_computed_once():
    plan, _ = plan_of(lambda x: np.array([x[0] * x[1] + x[2], x[0] * x[1] + x[3]]))
    assert sorted(operations(plan)) == ["*", "+", "+"]
    plan, _ = plan_of(lambda x: np.array([x[0] * x[1] + x[2], x[0] * x[1]]))  # also a result
    assert sorted(operations(plan)) == ["*", "+"]


def test_a_sum_of_two_products_absorbs_one():
    plan, _ = plan_of(lambda x: np.array([x[0] * x[1] + x[2] * x[3]]))
    assert sorted(operations(plan)) == ["*", "fma"]


# --- sines and cosines ---------------------------------------------------------------------------


def test_sine_and_cosine_of_one_angle_are_one_statement():
    plan, _ = plan_of(lambda x: np.array([np.sin(x[0] + x[1]) * np.cos(x[0] + x[1])]))
    (pair,) = [s for b in plan.blocks for s in b.statements if s.op == "sincos"]
    assert None not in pair.targets
    plan, _ = plan_of(lambda x: np.array([2 * np.cos(x[0] + x[1])]))
    (alone,) = [s for b in plan.blocks for s in b.statements if s.op == "sincos"]
    assert alone.targets[0] is None


def test_angles_that_are_inputs_come_first():
    plan, program = plan_of(lambda x: np.array([2 * np.sin(x[k]) for k in range(3)]))
    assert [program.graph.nodes[i][2] for i in plan.angles] == [(0,), (1,), (2,)]
    assert "sincos" not in operations(plan)
    assert plan.slots >= 6


@pytest.mark.parametrize("group", [1, 2, 4])
def test_angles_have_slots_in_groups(group):
    plan, program = plan_of(
        lambda x: np.array([np.sin(x[k]) * np.cos(x[k]) for k in range(3)]), angle_group=group
    )
    where = {}
    for block in plan.blocks:
        for node, slot in block.loads.items():
            op, angle = program.graph.nodes[node]
            where[op, program.graph.nodes[angle][2][0]] = slot
    for (op, k), slot in where.items():
        base, lane = divmod(k, group)
        assert slot == (2 * base + (op == "cos")) * group + lane


def test_sines_that_are_results_are_stored_by_their_block():
    plan, _ = plan_of(lambda x: np.array([np.sin(x[0]), np.cos(x[1]) * x[2]]))
    assert operations(plan).count("sincos") == 1
    assert len(plan.angles) == 1


# --- blocks --------------------------------------------------------------------------------------


def execute(plan, program, x):
    """Run a schedule by hand, with a workspace that is full of NaN wherever nothing was stored."""
    nodes = program.graph.nodes
    workspace = np.full((plan.slots, len(x)), np.nan)
    results = {}

    def evaluate(s, value):
        a = [value(i) for i in s.operands]
        if s.op == "input":
            return (x[:, nodes[s.targets[0]][2][0]],)
        if s.op in ("fma", "fms"):
            return (a[2] + a[0] * a[1] if s.op == "fma" else a[2] - a[0] * a[1],)
        if s.op == "sincos":
            return np.sin(a[0]), np.cos(a[0])
        return (interpret.MEANING[s.op](*a),)

    for block in plan.blocks:
        local = {}

        def value(i, local=local, block=block):
            if nodes[i][0] == "const":
                return nodes[i][1]
            if i not in local:
                local[i] = workspace[block.loads[i]].copy()
            return local[i]

        for s in block.statements:
            for target, result in zip(s.targets, evaluate(s, value), strict=True):
                if target is not None:
                    local[target] = result
                    results[target] = result
                    if target in block.stores:
                        workspace[block.stores[target]] = result
    return np.stack([results[i] * np.ones(len(x)) for i in program.roots], axis=-1)


@pytest.mark.parametrize("block_size", [1, 7, 50, BLOCK_SIZE])
def test_values_survive_until_their_last_reader(block_size):
    whole = [c for c in cases("float64", seed=3) if c.program.name.startswith("operations_")]
    for case in whole:
        if len(case.program.inputs) != 1 or case.program.inputs[0].shape != (6,):
            continue
        (x,) = case.arrays
        plan = schedule(case.program.graph, case.program.roots, block_size)
        assert all(len(b.statements) <= block_size for b in plan.blocks)
        expected = np.concatenate(
            [r.reshape(len(x), -1) for r in interpret.run(case.program, x)], axis=-1
        )
        np.testing.assert_array_equal(execute(plan, case.program, x), expected)


def test_slots_are_used_again():
    def long_chain(x):
        y = x[0]
        for k in range(400):
            y = y * x[k % 4] + x[(k + 1) % 4]
        return np.array([y])

    plan, program = plan_of(long_chain, block_size=20)
    assert len(plan.blocks) >= 20
    stored = sum(len(b.stores) for b in plan.blocks)
    assert plan.slots < stored / 2
    x = np.array([[0.1, -0.2, 0.3, 0.9]])
    np.testing.assert_allclose(execute(plan, program, x), interpret.run(program, x)[0], rtol=1e-12)


def test_one_block_needs_no_workspace():
    plan, _ = plan_of(lambda x: np.array([x[0] * x[1] + x[2]]))
    assert len(plan.blocks) == 1
    assert plan.slots == 0
    assert plan.blocks[0].loads == plan.blocks[0].stores == {}


def test_inputs_are_loaded_where_they_are_needed():
    plan, _ = plan_of(lambda x: np.array([(x[0] + x[1]) * x[2] - x[3]]))
    order = [s.op for s in plan.blocks[0].statements]
    assert order == ["input", "input", "+", "input", "*", "input", "-"]


def test_inputs_may_be_results():
    plan, program = plan_of(lambda x: x[::-1])
    assert [s.op for s in plan.blocks[0].statements] == ["input"] * 4
    assert {s.targets[0] for s in plan.blocks[0].statements} == set(program.roots)


def test_loops_are_steps():
    from kinetree.expr.repeat import repeat

    plan, _ = plan_of(lambda x: repeat(lambda y: y * y + x, x, 5))
    (loop,) = [s for s in plan.steps if isinstance(s, LoopStep)]
    assert loop.times == 5


@pytest.mark.parametrize("name", ["inverse_dynamics", "_forward_dynamics_aba"])
def test_size_is_linear_in_the_number_of_bodies(name):
    statements, slots, blocks = [], [], []
    for n in (10, 20, 40):
        program = kernel_of(kt.samples.chain(n), name).program
        plan = schedule(program.graph, program.roots)
        statements.append(len(operations(plan)))
        slots.append(plan.slots)
        blocks.append(len(plan.blocks))
    for sizes, slack in ((statements, 0.05), (slots, 0.3), (blocks, 0.5)):
        first, second = np.diff(sizes) / [10, 20]  # per body
        assert second <= (1 + slack) * first


def test_the_time_it_takes_is_linear_too():
    programs = {n: kernel_of(kt.samples.chain(n), "inverse_dynamics").program for n in (16, 40)}
    assert_linear(lambda n: schedule(programs[n].graph, programs[n].roots), (16, 40))
