"""What is made of a user's function goes with it: no table holds functions."""

import gc
import pickle
import weakref
from functools import update_wrapper

import numpy as np
import pytest

import kinetree as kt


def user_function():
    """A kernel of its own, as in a notebook cell that is run again."""

    @kt.kernel
    def stretched(x):
        return x * x

    return stretched


MAKERS = {
    "derivative": lambda f: kt.differentiate(f, wrt="x"),
    "second derivative": lambda f: kt.differentiate(f, wrt="x", order=2),
    "jvp": lambda f: kt.jvp(f, wrt="x"),
    "vjp": lambda f: kt.vjp(f, wrt="x"),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_functions_of_users_are_let_go(make):
    function = user_function()
    made, gone = make(function), weakref.ref(function)
    assert make(function) is made
    del function, made
    gc.collect()
    assert gone() is None


def test_maps_of_quasi_velocities_are_let_go():
    model = kt.samples.double_pendulum()

    def first(m, q):
        return np.array([[1.0], [q[0]]])

    found = [kt.quasi_velocity_dynamics(model, np.ones(2), np.ones(1), first) for _ in range(2)]
    assert np.array_equal(found[0].bias, found[1].bias)
    assert len([k for k in model.memo if getattr(k, "__name__", "") == "first"]) == 1
    gone = weakref.ref(first)
    del first, model
    gc.collect()
    assert gone() is None


def test_who_copies_attributes_has_derivatives_of_its_own():
    one, other = user_function(), user_function()
    d = kt.differentiate(one, wrt="x")
    update_wrapper(other, one)
    assert kt.differentiate(other, wrt="x").function is other
    assert kt.differentiate(one, wrt="x") is d


def test_derivatives_travel_without_what_is_made_of_them():
    d = kt.differentiate(kt.gravity_force, wrt="q")
    kt.differentiate(d, wrt="q")
    again = pickle.loads(pickle.dumps(d))
    model = kt.samples.double_pendulum()
    assert np.array_equal(again(model, np.ones(2)), d(model, np.ones(2)))
