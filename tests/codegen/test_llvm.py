"""The IR text: what is in it, what is not, and that a failed check is counted."""

import numpy as np
import pytest
from support.backends import llvm

from kinetree.codegen.machine_code import default_lanes, object_code
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render.llvm import render
from kinetree.codegen.render.llvm_shared import shared_symbols, shared_text
from kinetree.spatial.ops import atan2

X = Argument("x", (3,))


def program(function=lambda x: x * x[0] + 1, inputs=(X,)):
    return trace(function, list(inputs), "f")


def name(symbol):
    return symbol.split("_")[1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_the_text_has_the_entry_points(dtype, lanes):
    text = render(program(), dtype, lanes)
    scalar = {"float64": "double", "float32": "float"}[dtype]
    assert f"; f: {dtype} x {lanes}" in text
    assert "define void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %status)" in text
    assert ("define ptr @single(" in text) == (lanes == 1 or dtype == "float64")
    assert f"<{lanes} x {scalar}>" in text
    assert object_code(text)


def test_functions_that_nothing_calls_are_left_out():
    functions = (lambda x: x + 1, lambda x: np.array([atan2(x[0], x[1])]))
    plain, angle = (render(program(f), "float64", 2) for f in functions)
    assert "@prepare" not in plain + angle
    assert [name(s) for s in shared_symbols(plain)] == ["loop", "single"]
    assert [name(s) for s in shared_symbols(angle)] == ["atan2", "loop", "single"]
    assert angle.count("define ") == 3  # step, loop, single: what is shared is not in the text


@pytest.mark.parametrize(("angles", "wide"), [(1, 1), (2, 2), (3, 4), (5, 8), (9, 8)])
def test_no_more_angles_go_side_by_side_than_there_are(angles, wide):
    x = Argument("x", (angles,))
    text = render(program(lambda x: np.array([2 * np.sin(a) for a in x]), [x]), "float64", 1)
    (symbol,) = (s for s in shared_symbols(text) if name(s) == "angles")
    assert f"fmul <{wide} x double>" in shared_text(symbol)


def test_the_same_program_gives_the_same_text():
    assert render(program(), "float64", 2) == render(program(), "float64", 2)


def test_the_symbol_of_a_shared_function_tells_its_text():
    symbols = shared_symbols(render(program(lambda x: np.array([np.sin(x[0])])), "float32", 4))
    texts = list(map(shared_text, symbols))
    assert all("@shared(" in text for text in texts)
    assert len(set(texts)) == len(texts) == 2
    assert shared_text(symbols[0][:-4] + "0000") is None  # of another version of kinetree


def test_one_block_is_one_function():
    one = render(program(), "float64", 2)
    assert "@block_0" not in one
    many = render(program(lambda x: np.cumprod(np.repeat(x + 1, 400))), "float64", 2)
    assert "call void @block_1(" in many[many.index("@step(") :]


def test_equal_constants_are_stored_once():
    text = render(program(lambda x: np.array([0.1 * x[0] + 3 * x[1], 0.1 * x[2]])), "float64", 2)
    table = text[text.index("@constants =") :].partition("\n")[0]
    assert table.count("0x3FB999999999999A") == 1


def test_products_are_fused_with_sums():
    text = render(program(lambda x: np.array([x[0] * x[1] + x[2]])), "float64", 2)
    block = text[text.index("@step") :].partition("\n}")[0]
    assert "fmul" not in block
    assert "llvm.fma" in block


def test_fused_operations_round_once():
    run = llvm(2)(program(lambda x: np.array([x[0] * x[1] + x[2]])), "float64")
    a = 1 + 2.0**-30
    assert run(np.array([a, a, -1 - 2.0**-29]))[0] == 2.0**-60


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_failed_checks_are_counted(lanes):
    def checked(x):
        (x[0] < x[1]).require()
        return x

    run = llvm(lanes)(program(checked), "float64")
    run(np.tile([1.0, 2.0, 3.0], (9, 1)))
    assert run.status.value == 0
    x = np.tile([1.0, 2.0, 3.0], (9, 1))
    x[8, 1] = 0
    run(x)
    assert run.status.value == 1  # one vector, which is the last sample repeated


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_inputs_that_are_not_finite_are_counted(bad, place):
    run = llvm(2)(program(lambda x: np.array([np.sin(x[0]) * 2, x[1] + x[2]])), "float64")
    x = np.ones((5, 3))
    run(x)
    assert run.status.value == 0
    x[3, place] = bad
    run(x)
    assert run.status.value > 0


def test_extreme_finite_inputs_are_fine():
    run = llvm(2)(program(lambda x: x[:2] + x[1:]), "float64")
    x = np.array([[1e308, -1e308, 5e-324], [0.0, -0.0, 1.0]])
    run(x)
    assert run.status.value == 0


def test_lanes_fit_the_processor():
    assert default_lanes("float32") == 2 * default_lanes("float64")
    assert default_lanes("float64") in (2, 4, 8)
    assert default_lanes("float64", small=True) in (4, 8)
