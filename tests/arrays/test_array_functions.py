"""Functions around kernels take arrays of other libraries: as one kernel, or on the CPU."""

import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from support.mechanisms import geared_robot
from torch.autograd import gradcheck

import kinetree as kt


def tensor(x, *, follow=False):
    return torch.tensor(np.asarray(x), requires_grad=follow)


# --- one kernel ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def body():
    """A body that floats."""
    builder = kt.ModelBuilder("body")
    builder.body(
        "body", joint=kt.Free(), inertia=kt.samples.random_inertia(np.random.default_rng(0))
    )
    return builder.build()


def test_models_move_arrays_of_other_libraries(body, rng):
    q, more = (body.random_configuration(rng, 3) for _ in range(2))
    qd = rng.normal(size=(3, 6))
    calls = {
        "integrate": (q, qd), "difference": (q, more), "configuration_rate": (q, qd),
        "normalize": (2 * q,), "expand": (q,), "expand_velocity": (q, qd),
        "expand_acceleration": (q, qd, qd), "reduce": (q,), "reduce_velocity": (qd,),
    }  # fmt: skip
    for name, given in calls.items():
        function = getattr(body, name)
        expected, found = function(*given), function(*map(tensor, given))
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-15)
        assert function(*(tensor(x, follow=True) for x in given)).requires_grad
        traced = jax.eval_shape(function, *map(np.float32, given))
        assert traced.shape == expected.shape


def test_steps_and_differences_have_derivatives(body, rng):
    q, more = (tensor(body.random_configuration(rng), follow=True) for _ in range(2))
    step = tensor(rng.normal(size=6), follow=True)
    assert gradcheck(lambda q, step: body.integrate(body.normalize(q), step), (q, step))
    assert gradcheck(lambda a, b: body.difference(*map(body.normalize, (a, b))), (q, more))
    still = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    jacobian = torch.autograd.functional.jacobian(
        lambda v: body.difference(q, body.integrate(q, v)), still
    )
    np.testing.assert_allclose(jacobian, np.eye(6), rtol=0, atol=1e-14)


def test_kernels_check_what_numpy_arrays_are_checked_for(body, rng):
    q, step = body.random_configuration(rng), np.zeros(6)
    with pytest.raises(kt.ShapeError, match="must have unit length, got length 2"):
        body.integrate(tensor(2 * q), tensor(step))
    geared = geared_robot(rng)
    q = geared.expand(geared.random_configuration(rng))
    np.testing.assert_array_equal(geared.reduce(tensor(q)).numpy(), geared.reduce(q))
    q[geared.uncoupled.q_slice[geared.couplings[0].joint].start] += 0.1
    with pytest.raises(kt.ShapeError, match="q violates coupling"):
        geared.reduce(tensor(q))


def test_the_two_views_of_a_floating_base_have_derivatives(rng):
    model = kt.edit.floating(kt.samples.pendulum())
    q, qd = model.random_configuration(rng, 2), rng.normal(size=(2, model.nv))
    expected = kt.floating.base_state(model, q, qd)
    found = kt.floating.base_state(model, *(tensor(x, follow=True) for x in (q, qd)))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(b.detach().numpy(), a)
    again = kt.floating.joint_state(tensor(q[:, :7]), *found[:3])
    for a, b in zip((q, qd), again, strict=True):
        assert b.requires_grad
        np.testing.assert_array_equal(b.detach().numpy(), a)


def test_quasi_velocities_have_derivatives(rng):
    model = kt.samples.pendulum()

    def scaled(model, q):
        return np.array([[2 + np.sin(q[0])]])

    given = [tensor(rng.normal(size=(2, 1)), follow=True) for _ in range(2)]
    assert gradcheck(lambda q, y: tuple(kt.quasi_velocity_dynamics(model, q, y, scaled)), given)


# --- by NumPy on the CPU -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def four_bar():
    return kt.samples.four_bar()


def test_arrays_computed_in_numpy_come_back_in_tuples_dicts_and_records(four_bar):
    q, rest = np.array(four_bar.neutral()), np.zeros(four_bar.nv)
    expected = kt.loops.solve(four_bar, q, rest, rest)
    for convert, kind in ((tensor, torch.Tensor), (jnp.asarray, jax.Array)):
        found = kt.loops.solve(four_bar, *map(convert, (q, rest, rest)))
        assert isinstance(found.qdd, kind)
        np.testing.assert_allclose(found.qdd, expected.qdd, rtol=1e-5)
        assert found.method == expected.method
        positions = kt.loops.loop_positions(four_bar, convert(q))
        assert all(isinstance(x, kind) for x in positions.values())
        moved = kt.loops.project_state(four_bar, convert(q), convert(rest))
        assert all(isinstance(x, kind) for x in moved)


def test_targets_of_inverse_kinematics_may_be_in_tasks():
    model = kt.samples.double_pendulum()
    target = kt.pose(model, np.array([0.3, 0.5]), "lower")[:3, 3]
    found = kt.inverse_kinematics(model, [kt.ik.PositionTask("lower", tensor(target))])
    assert type(found.require()) is torch.Tensor
    many = kt.inverse_kinematics(model, "lower", tensor([target, 10 + target]), restarts=0)
    assert many.success.tolist() == [True, False]
    with pytest.raises(
        kt.errors.UnreachableError, match=r"1 of 2 targets were not reached; .* \(1,\)"
    ):
        many.require()


def test_a_cost_of_a_rollout_and_its_derivatives_come_as_tensors():
    model = kt.samples.pendulum()

    @kt.kernel
    def cost(model, q):
        return q[0] ** 2

    options = {"steps": 2, "dt": 0.01, "integrator": "euler", "terminal": cost}
    q0, tau = np.array([[0.3], [0.4]]), np.full((2, 1, 1), 0.1)
    expected = kt.rollout_gradient(model, q0, None, tau, **options)
    found = kt.rollout_gradient(model, tensor(q0), None, tensor(tau), **options)
    for name in ("value", "q0", "qd0", "tau"):
        np.testing.assert_array_equal(getattr(found, name).numpy(), getattr(expected, name))


def test_what_is_followed_and_what_does_not_mix_is_rejected(four_bar):
    q = tensor(four_bar.neutral(), follow=True)
    refused = "computes on the CPU, in Python: it has no derivative, nor can it be traced by"
    with pytest.raises(
        kt.errors.ArrayKindError, match=f"assemble {refused} torch: detach q first, or"
    ):
        kt.loops.assemble(four_bar, q)
    with pytest.raises(kt.errors.ArrayKindError, match=f"mobilities {refused} jax"):
        jax.jit(lambda q: kt.loops.mobilities(four_bar, q))(jnp.asarray(four_bar.neutral()))
    with pytest.raises(
        kt.errors.ArrayKindError, match="project_velocity: arrays of different libraries"
    ):
        kt.loops.project_velocity(four_bar, q.detach(), jnp.zeros(four_bar.nv))
    with pytest.raises(
        kt.errors.ArrayKindError, match=r"q0: here NumPy arrays .* followed by autograd"
    ):
        kt.simulate(four_bar, q, duration=0.1)


# --- which is which ------------------------------------------------------------------------------

ARRAYS = {"q", "qd", "qdd", "tau", "q0", "q1", "v", "y", "K", "A", "velocities", "f_ext",
    "poses", "state",
}  # fmt: skip
PLACES = ("contact", "control", "floating", "gears", "loops")


def functions():
    """Public functions that take arrays of a state, by the names of the page."""
    found = {n: getattr(kt, n) for n in kt.__all__}
    found |= {f"Model.{n}": f for n, f in vars(kt.Model).items() if not n.startswith("_")}
    for place in PLACES:
        module = getattr(kt, place)
        found |= {f"{place}.{n}": getattr(module, n) for n in module.__all__}
    return {n: f for n, f in found.items() if callable(f) and ARRAYS & _parameters(f)}


def _parameters(function):
    code = getattr(inspect.unwrap(function), "__code__", None)
    return set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if code else set()


def test_the_page_says_of_every_function_where_it_is_computed():
    text = (Path(__file__).parents[2] / "docs" / "arrays.md").read_text(encoding="utf-8")
    listed = {}
    for names, by in re.findall(r"^\| (`.*`) \| (\w+) \|$", text, re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", names):
            assert listed.setdefault(name, by) == by
    known = functions()
    others = {"repeat", "view", "sweep", "support_margin", "xlt", "Model.jcalc"}  # of other things
    assert set(known) - others == set(listed) - others
    for name, function in known.items():
        if name not in others:
            assert (listed[name] == "CPU") == hasattr(function, "is_on_host"), name
