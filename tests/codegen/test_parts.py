"""A program in parts, computed part by part by the interpreter."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen.parts import LEFT, in_parts
from kinetree.codegen.program import Argument, trace
from kinetree.expr import interpret
from kinetree.model.define import kernel_of


def assembled(program, parts, arrays):
    """Results of all parts together, and NaN where no part has written."""
    count = len(arrays[0])
    work = np.full((count, parts.slots), np.nan)
    whole = {a.name: np.full((count, a.size), np.nan) for a in program.outputs}
    for part in (*parts.parts, parts.assembly):
        found = interpret.run(part.program, *arrays, work)
        for argument, value in zip(part.program.outputs, found, strict=True):
            value = np.broadcast_to(value, (count, argument.size))
            if argument.name == LEFT:
                work[:, list(part.left)] = value
            else:
                name, start = part.slices[argument.name]
                assert np.isnan(whole[name][:, start : start + argument.size]).all()  # only once
                whole[name][:, start : start + argument.size] = value
    return [whole[a.name].reshape(count, *a.shape) for a in program.outputs]


def agrees(program, most, arrays):
    parts = in_parts(program, most)
    expected = interpret.run(program, *arrays)
    for found, e in zip(assembled(program, parts, arrays), expected, strict=True):
        np.testing.assert_array_equal(found, np.broadcast_to(e, found.shape))
    return parts


@pytest.mark.parametrize("most", [30, 300, 100_000])
def test_parts_compute_what_the_whole_does(most, rng):
    model = kt.samples.quadruped()
    program = kernel_of(model, "mass_matrix").program
    q = np.stack([model.random_configuration(rng) for _ in range(3)])
    parts = agrees(program, most, [q])
    assert len(parts.parts) > 1 or most == 100_000


def test_limbs_write_their_own_rows(rng):
    model = kt.samples.quadruped()
    program = kernel_of(model, "mass_matrix").program
    q = np.stack([model.random_configuration(rng) for _ in range(3)])
    parts = agrees(program, 500, [q])
    own = sum(a.size for p in parts.parts for a in p.program.outputs if a.name != LEFT)
    assert own >= 12 * 18  # the rows of four legs with three joints each
    assert parts.slots < 100


def test_rows_without_room_are_left_to_the_last_program(rng):
    def dense(x):
        a = np.sin(np.sum(x))
        return np.array([[a * x[i] + j for j in range(8)] for i in range(8)])

    program = trace(dense, [Argument("x", (8,))])
    arrays = [rng.normal(size=(4, 8))]
    parts = in_parts(program, 1000, lambda rows: sum(len(r.roots) for r in rows) <= 24)
    written = [a.size for p in parts.parts for a in p.program.outputs if a.name != LEFT]
    assert sum(written) == 24
    expected = interpret.run(program, *arrays)
    np.testing.assert_array_equal(assembled(program, parts, arrays)[0], expected[0])


def test_inputs_and_constants_among_the_results(rng):
    def mixed(x):
        a = np.sin(x[0]) * np.cos(x[1]) + x[2]
        return np.array([[x[0], 2.5, a], [0.0, a * a, x[1] * x[2]]])

    program = trace(mixed, [Argument("x", (3,))])
    for most in (1, 2, 100):
        agrees(program, most, [rng.normal(size=(4, 3))])


def test_what_divides_is_left_to_the_last_program(rng):
    def quotients(x):
        return np.array([[x[0] / x[1], x[0]], [x[2] / x[3], x[2] * x[3]]])

    program = trace(quotients, [Argument("x", (4,))])
    parts = agrees(program, 1, [rng.uniform(1, 2, size=(4, 4))])
    assert not any(p.slices for p in parts.parts)  # a sample that fails is NaN as a whole
    assert len(parts.watched) > 0
