"""Compiled loops as NumPy's own generalised ufuncs."""

import ctypes
import gc
import weakref

import numpy as np
import pytest
from support.backends import llvm

from kinetree.codegen.machine_code import load, object_code
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render.llvm import render
from kinetree.codegen.runtime.single import gufunc, signature

INPUTS = [Argument("a", (2, 3)), Argument("b", (3,)), Argument("c", ())]


def program(name="multiply"):
    return trace(lambda a, b, c: (a @ b + c, b @ b), INPUTS, name)


@pytest.fixture(scope="module")
def ufunc():
    return llvm(2)(program(), "float64").ufunc


def test_it_is_a_ufunc(ufunc):
    assert isinstance(ufunc, np.ufunc)
    assert ufunc.nin == 3
    assert ufunc.nout == 2
    assert ufunc.signature == "(2,3),(3),()->(2),()"
    assert signature(program()) == ufunc.signature
    assert ufunc.__name__ == "multiply"
    assert "kinetree" in ufunc.__doc__


def test_precision_is_that_of_the_loop(ufunc):
    assert ufunc.types == ["ddd->dd"]
    assert llvm(2)(program(), "float32").ufunc.types == ["fff->ff"]


def test_wrong_shapes_are_rejected_by_numpy(ufunc):
    with pytest.raises(ValueError, match="core dimension"):
        ufunc(np.ones((2, 4)), np.ones(4), 1.0)


def test_numpy_options_work(ufunc, rng):
    a, b, c = rng.standard_normal((4, 2, 3)), rng.standard_normal((4, 3)), rng.standard_normal(4)
    result, square = ufunc(a, b, c)
    np.testing.assert_allclose(result, np.einsum("nij,nj->ni", a, b) + c[:, None], rtol=1e-13)
    moved = ufunc(np.moveaxis(a, -1, 0), b.T, c, axes=[(-1, 0), 0, (), 0, ()])
    np.testing.assert_array_equal(moved[0], result.T)
    np.testing.assert_array_equal(moved[1], square)
    with pytest.raises(TypeError):
        ufunc(a.astype(complex), b, c)


def test_it_outlives_what_it_was_made_from(rng):
    made = [llvm(2)(program(f"p{k}"), "float64").ufunc for k in range(3)]
    for u in made:
        np.testing.assert_array_equal(u(np.ones((2, 3)), np.ones(3), 1.0)[0], [4, 4])


def test_what_it_refers_to_goes_with_it():
    status = ctypes.c_int64(0)
    code = load(object_code(render(program("goes"), "float64", 2)))
    ufunc = gufunc(program("goes"), "float64", code.address("loop"), status)
    gone = weakref.ref(status)
    del status
    assert gone() is not None
    np.testing.assert_array_equal(ufunc(np.ones((2, 3)), np.ones(3), 1.0)[0], [4, 4])
    del ufunc
    gc.collect()
    assert gone() is None
