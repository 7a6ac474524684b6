"""What an environment says about tasks that cannot work."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import ModelError, ShapeError, TraceError, UnknownNameError
from kinetree.model.geometry import Geometry, Sphere


@kt.kernel
def of_a_typo(m, q, velocity):
    return q


@kt.kernel
def a_vector(m, q):
    return q


@kt.kernel
def a_list(m):
    return [0.0, 0.0]


@kt.kernel
def too_short(m):
    return {"q": np.zeros(1)}


@kt.kernel
def of_a_taken_name(m):
    return {"q": np.zeros(2), "action": 1.0}


@kt.kernel
def unknown(m, q):
    return {"comand": 1.0}


@kt.kernel
def of_one_joint(m, action: (1,)):
    return action


@kt.kernel
def without_size(m, action):
    return action


@kt.kernel
def any_number(m, uniform):
    return {"q": uniform}


@kt.kernel
def decides(m, q):
    return 1.0 if q[0] > 0 else 0.0


def plain(m, q):
    return q


CASES = {
    "argument": ({"observe": of_a_typo}, UnknownNameError, "observe kernel 'of_a_typo' takes 'vel"),
    "none": ({"reward": None}, TypeError, r"needs a kernel reward="),
    "plain": ({"observe": plain}, TypeError, r"observe becomes part .*@kinetree\.kernel"),
    "vector": ({"reward": a_vector}, ShapeError, r"reward kernel 'a_vector' must return one numb"),
    "number": ({"observe": decides}, ShapeError, r"observe kernel 'decides' must return a vector"),
    "list": ({"reset": a_list}, ShapeError, r"reset kernel 'a_list' must return a dict .*'qd': qd"),
    "shape": ({"reset": too_short}, ShapeError, r"must return 'q' of shape \(2,\), got \(1,\)"),
    "taken": ({"reset": of_a_taken_name}, UnknownNameError, "'action', which is the name of somet"),
    "update": ({"update": unknown}, UnknownNameError, "update kernel 'unknown' returns 'comand'"),
    "forces": ({"act": of_one_joint}, ShapeError, r"joint forces of shape \(2,\), got shape \(1,"),
    "size": ({"act": without_size}, TypeError, r"must take action: \(n,\)"),
    "draws": ({"reset": any_number}, TypeError, r"how many random numbers it takes: uniform: \(n"),
    "extra": ({"arguments": {"gain": 1.0}}, UnknownNameError, "'gain', which no kernel"),
    "own": ({"arguments": {"q": 1.0}}, UnknownNameError, "'q', which kernels get anyway"),
    "mass": ({"parameters": {"mass:pole": "load"}}, UnknownNameError, "that reset returns, got 'l"),
    "decimation": ({"decimation": 0}, ShapeError, "decimation must be at least 1"),
    "arrays": ({"arrays": "jax"}, ModelError, "arrays must be 'numpy'"),
    "dtype": ({"dtype": "float16"}, ModelError, "dtype must be 'float32' or 'float64'"),
}


@pytest.mark.parametrize("name", CASES)
def test_mistakes_are_named(cart_pole, name):
    options, error, message = CASES[name]
    with pytest.raises(error, match=message):
        cart_pole(2, **options)


def test_decisions_in_kernels_are_found_with_their_line(cart_pole):
    env = cart_pole(2, reward=decides)
    with pytest.raises(TraceError, match=r"'decides' cannot be compiled(.|\n)*if q\[0\] > 0"):
        env.step(np.zeros((2, 1)))


def test_actions_of_the_wrong_shape(cart_pole):
    with pytest.raises(ShapeError, match=r"\(worlds, n\) = \(2, 1\), got \(2,\)"):
        cart_pole(2).step(np.zeros(2))


def test_mechanics_that_steps_of_environments_do_not_have(cart_pole):
    with pytest.raises(ModelError, match="'friction' is that of rigid contact"):
        cart_pole(2, parameters={"friction": "grip"}, reset=with_grip)
    model = kt.contact.with_ground(kt.samples.cart_pole())
    model = model.replace(geometry=[*model.geometry, Geometry(1, Sphere(0.1))])
    soft = kt.contact.SoftContact(kt.contact.Scene(model), stiffness=1e4, damping=1e2, law="patch")
    with pytest.raises(
        TraceError, match=r"Environment .*soft contact with a memory.*hunt_crossley"
    ):
        kt.learning.Environment(
            model, 2, observe=a_vector, reward=decides, reset=with_grip, contact=soft
        )


@kt.kernel
def with_grip(m):
    return {"q": np.zeros(2), "grip": 1.0}
