"""Functions compiled for one model, with parameters of the model as inputs."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.functional.ahead import compile
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.parameters import parameter, with_parameters
from kinetree.samples import random_inertia, random_placement


@pytest.fixture
def m():
    return kt.samples.double_pendulum()


@pytest.fixture
def state(m, rng):
    return rng.standard_normal((3, 2))


def names(m):
    return ("gravity", f"inertia:{m.body_names[2]}", f"mass:{m.body_names[1]}",
            f"placement:{m.joint_names[1]}")  # fmt: skip


def values(rng):
    return (
        rng.standard_normal(3), random_inertia(rng).parameters(), np.asarray(rng.uniform(0.5, 2.0)),
        random_placement(rng).to_pose(),
    )  # fmt: skip


def changed(m, arrays):
    return with_parameters(m, dict(zip(names(m), arrays, strict=True)))


def test_parameters_are_inputs(m, state, rng):
    f = compile(kt.inverse_dynamics, m, parameters=names(m))
    for _ in range(3):
        arrays = values(rng)
        assert_close(f(*state, *arrays), kt.inverse_dynamics(changed(m, arrays), *state), ulps=50)


def test_parameters_have_batch_axes(m, state, rng):
    f = compile(kt.inverse_dynamics, m, parameters=names(m))
    many = [np.stack(a) for a in zip(*(values(rng) for _ in range(5)), strict=True)]
    tau = f(*state, *many)
    assert tau.shape == (5, 2)
    third = changed(m, [a[3] for a in many])
    assert_close(tau[3], kt.inverse_dynamics(third, *state), ulps=50)


def test_options_stay_the_same(m, state):
    tool = m.body_names[-1]
    f = compile(kt.pose, m, name=tool)
    assert_close(f(state[0]), kt.pose(m, state[0], tool), ulps=4)
    assert_close(compile(kt.pose, m)(state[0], tool), kt.pose(m, state[0], tool), ulps=4)
    assert repr(f) == f"<kinetree pose compiled for {m.name!r}>"


def test_the_precision_can_be_set(m, state):
    assert compile(kt.inverse_dynamics, m, dtype=np.float32)(*state).dtype == np.float32
    single = compile(kt.inverse_dynamics, m, dtype="float64")(*state.astype(np.float32))
    assert single.dtype == np.float64


def test_derivatives_with_respect_to_parameters(m, state, rng):
    arrays = values(rng)
    f = compile(kt.inverse_dynamics, m, parameters=names(m))
    found = differentiate(f, wrt=names(m))(*state, *arrays)
    for k, d in enumerate(found[:3]):  # tau is linear in gravity, inertia and mass

        def shifted(x, k=k):
            return f(*state, *(x if n == k else a for n, a in enumerate(arrays)))

        size = arrays[k].size
        steps = np.eye(size).reshape(size, *arrays[k].shape)
        exact = np.stack([shifted(arrays[k] + e) - shifted(arrays[k]) for e in steps], axis=-1)
        assert_close(d.reshape(2, -1), exact.reshape(2, -1), ulps=500, scale=np.abs(d).max() + 10)
    p, h = parameter(m, names(m)[3]), 1e-30
    rates = p.rates(arrays[3])
    steps = [f(*state, *arrays[:3], arrays[3] + 1j * h * rates[..., j]).imag / h for j in range(6)]
    assert_close(found[3], np.stack(steps, axis=-1), ulps=100)


def test_what_does_not_depend_on_a_batched_parameter_has_its_axes(m, state):
    q, qd, _ = state
    energy = kt.compile(kt.kinetic_energy, m, parameters="gravity")
    derivative, gravity = kt.differentiate(energy, wrt="q"), np.ones((4, 3))
    for exact in (energy, derivative):  # complex numbers take part in complex-step derivatives
        plain, found = exact(q, qd, gravity), exact(q + 0j, qd, gravity)
        assert plain.shape == found.shape
        np.testing.assert_allclose(found, plain, rtol=1e-13)


def test_all_parameters_side_by_side(m, state, rng):
    arrays = values(rng)
    f = compile(kt.inverse_dynamics, m, parameters=names(m))
    together = differentiate(f, wrt="parameters")(*state, *arrays)
    apart = differentiate(f, wrt=names(m))(*state, *arrays)
    assert_close(together, np.concatenate([d.reshape(2, -1) for d in apart], axis=1), ulps=20)


def test_the_regressor_is_the_derivative_with_respect_to_the_parameters(m, state):
    Y = differentiate(kt.inverse_dynamics, wrt="parameters")(m, *state)
    assert Y.shape == (2, 20)
    p = np.concatenate([I.parameters() for I in m.inertia[1:]])
    assert_close(Y @ p, kt.inverse_dynamics(m, *state), ulps=50)


def test_derivatives_at_the_model_itself(m, state):
    """Without compile: the parameters keep the values that the model has."""
    d = differentiate(kt.potential_energy, wrt="gravity")(m, state[0])
    mass = sum(I.mass for I in m.inertia[1:])
    assert_close(d, -mass * kt.center_of_mass(m, state[0]), ulps=20)


def test_a_derivative_can_be_compiled_with_parameters(m, state, rng):
    gravity = rng.standard_normal(3)
    f = compile(differentiate(kt.gravity_force, wrt="q"), m, parameters="gravity")
    other = m.replace(gravity=gravity)
    exact = differentiate(kt.gravity_force, wrt="q")(other, state[0])
    assert_close(f(state[0], gravity), exact, ulps=50)


def test_kernels_of_users_take_parameters(m, state, rng):
    @kernel
    def lever(m, q, weight):
        return weight * kt.gravity_force(m, q)[0]

    gravity = rng.standard_normal(3)
    f = compile(lever, m, parameters=("gravity",))
    expected = 2.5 * kt.gravity_force(m.replace(gravity=gravity), state[0])[0]
    assert_close(f(state[0], np.asarray(2.5), gravity), expected, ulps=50)


def test_errors_name_what_is_wrong(m):
    with pytest.raises(UnknownNameError, match="target 'cuda' is not 'cpu'; on a GPU call"):
        compile(kt.pose, m, target="cuda")
    with pytest.raises(UnknownNameError, match="no parameter 'weight'"):
        compile(kt.pose, m, parameters=("weight",))
    with pytest.raises(UnknownNameError, match="parameters must be different"):
        compile(kt.pose, m, parameters=("gravity", "gravity"))
    with pytest.raises(UnknownNameError, match="dtype must be float64 or float32, got 'int8'"):
        compile(kt.pose, m, dtype="int8")
    with pytest.raises(TypeError, match=r"kinetree\.compile takes a function of kinetree"):
        compile(len, m)
    with pytest.raises(ModelError, match="set twice"):
        compile(kt.inverse_dynamics, m, parameters=("inertia", names(m)[1]))


def test_impossible_values_are_named(m, state):
    f = compile(kt.inverse_dynamics, m, parameters=names(m))
    good = [parameter(m, name).value(m) for name in names(m)]
    with pytest.raises(TypeError, match="takes the arguments of the function and then gravity, "):
        f(*good[:1])
    with pytest.raises(ShapeError, match=r"'gravity' must have shape \(\.\.\., 3\), got \(2,\)"):
        f(*state, np.zeros(2), *good[1:])
    with pytest.raises(ShapeError, match="parameter 'gravity' must be finite"):
        f(*state, np.full(3, np.nan), *good[1:])
    with pytest.raises(ShapeError, match="mass must not be negative, got -1 kg"):
        f(*state, *good[:2], -1.0, good[3])
    with pytest.raises(ShapeError, match=r"a pose is a rotation matrix .* det R = -1"):
        f(*state, *good[:3], np.diag([1.0, 1.0, -1.0, 1.0]))
