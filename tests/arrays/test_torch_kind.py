"""Torch tensors: the same numbers, on the same memory, with derivatives."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.contact_scenes import BALL, particle
from support.public_calls import DIFFERENTIABLE, differentiable_functions, end_of_rollout
from torch.autograd import gradcheck, gradgradcheck

import kinetree as kt
from kinetree.arrays import torch_kind
from kinetree.contact import Scene, TimeStepping, with_ground


@pytest.fixture(scope="module")
def model():
    return kt.samples.double_pendulum()


@pytest.fixture
def state(model, rng):
    return [torch.tensor(rng.normal(size=(3, model.nv)), requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_in_both_directions_and_of_second_order(model, state, name):
    f = differentiable_functions(model)[name]
    expected = f(*(t.detach().numpy() for t in state))
    np.testing.assert_array_equal(f(*state).detach().numpy(), expected)
    assert gradcheck(f, state, check_forward_ad=True)
    assert gradgradcheck(f, state)


def test_derivatives_of_shared_inputs_are_added_up(model, state):
    q, qd, tau = state
    shared = q[0].detach().requires_grad_()
    f = differentiable_functions(model)["forward dynamics"]
    assert gradcheck(f, (shared, qd, tau[:1].detach().requires_grad_()))


def test_vmap_and_jacobians(model, state):
    q, qd, tau = (t.detach() for t in state)
    f = differentiable_functions(model)["forward dynamics"]
    each = torch.func.vmap(f, in_dims=(1, None, 0))(q.T, qd[0], tau)
    torch.testing.assert_close(each, f(q, qd[:1], tau), rtol=0, atol=1e-13)
    found = torch.func.vmap(torch.func.jacrev(f, argnums=(0, 1)))(q, qd, tau)
    expected = kt.differentiate(kt.forward_dynamics, wrt=("q", "qd"))(model, q, qd, tau)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    ahead = torch.func.vmap(torch.func.jacfwd(f))(q, qd, tau)
    torch.testing.assert_close(ahead, found[0], rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore")  # of torch's own modules, when they are loaded
def test_compile_makes_one_graph(model, state):
    f = kt.compile(kt.inverse_dynamics, model)
    f(*state)
    kt.gravity_force(model, state[0])

    def cost(q, qd, qdd):
        return (f(q, qd, qdd) - kt.gravity_force(model, q)).square().sum()

    compiled = torch.compile(cost, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*state), cost(*state), rtol=0, atol=1e-12)
    found = torch.autograd.grad(compiled(*state), state)
    for a, b in zip(found, torch.autograd.grad(cost(*state), state), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_kernels_work_on_the_memory_of_tensors(model, state, monkeypatch):
    kernel = kt.mass_matrix.definition.kernel(model)
    seen, lean = [], kernel.lean
    monkeypatch.setattr(kernel, "lean", lambda *a: (seen.append((a, r := lean(*a))), r)[1])
    q = state[0].detach()
    result = kt.mass_matrix(model, q)
    (arrays, computed), *_ = seen
    assert arrays[0].ctypes.data == q.data_ptr()
    assert computed.ctypes.data == result.data_ptr()


def test_precision_and_kind_stay(model, state):
    single = [t.detach().float() for t in state]
    assert kt.inverse_dynamics(model, *single).dtype is torch.float32
    assert kt.inverse_dynamics(model, *single[:2], state[2]).dtype is torch.float64
    assert kt.kinetic_energy(model, single[0][0], single[1][0]).shape == ()
    whole = torch.zeros(2, dtype=torch.int64)
    assert kt.gravity_force(model, whole).dtype is torch.float64
    assert type(kt.pose(model, state[0], model.body_names[1])) is torch.Tensor


def test_a_constant_may_be_a_list_or_one_sample_of_numpy(model, state):
    tip = model.body_names[-1]
    found = kt.velocity(model, *state[:2], tip, frame="body", point=[0.1, 0.0, 0.2])
    q, qd = (t.detach().numpy() for t in state[:2])
    expected = kt.velocity(model, q, qd, tip, frame="body", point=[0.1, 0.0, 0.2])
    np.testing.assert_array_equal(found.detach().numpy(), expected)


def test_own_kernels_and_compiled_functions(model, state):
    @kt.kernel
    def cost(model, q, qd, target: (3,)):
        error = kt.center_of_mass(model, q) - target
        return {"cost": error @ error, "momentum": kt.momentum(model, q, qd)}

    target = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    found = cost(model, *state[:2], target)
    assert found["cost"].shape == (3,)
    (derivative,) = torch.autograd.grad(found["cost"].sum(), target)
    expected = -2 * kt.center_of_mass(model, state[0]).sum(0)
    torch.testing.assert_close(derivative, expected, rtol=1e-12, atol=1e-12)
    heavier = kt.compile(kt.inverse_dynamics, model, parameters="gravity", dtype=np.float32)
    assert heavier(*state, torch.zeros(3, dtype=torch.float64)).dtype is torch.float32


def test_rollouts_have_derivatives():
    end = end_of_rollout(kt.samples.pendulum(), steps=3)
    q0 = torch.tensor([[0.3], [1.0]], dtype=torch.float64)
    tau = torch.full((3, 1, 1), 0.2, dtype=torch.float64)
    plain = end(q0, 0 * q0, tau)
    given = [t.clone().requires_grad_() for t in (q0, 0 * q0, tau)]
    for a, b in zip(end(*given), plain, strict=True):
        torch.testing.assert_close(a.detach(), b, rtol=0, atol=1e-15)
    assert gradcheck(end, given, check_forward_ad=True)
    assert gradgradcheck(end, given)
    each = torch.func.vmap(end, in_dims=(0, 0, None))(q0, 0 * q0, tau[:, 0])
    for a, b in zip(each, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-15)


def test_rollouts_by_the_engine_have_the_numbers_of_numpy():
    contact, start = TimeStepping(Scene(BALL)), np.tile(BALL.neutral(), (2, 1))
    with kt.tier("general"):
        found, expected = (
            kt.rollout(BALL, x, steps=3, contact=contact) for x in (torch.from_numpy(start), start)
        )
    for name in ("q", "residuals", "failed", "contact_force"):
        torch.testing.assert_close(getattr(found, name), torch.tensor(getattr(expected, name)))


def test_rollouts_have_derivatives_by_controls_of_servos():
    servo = kt.Actuator("servo", 1, gain=(20.0,), bias=(0.0, -20.0, -2.0))
    model = kt.samples.pendulum().replace(actuators=[servo])

    def end(q, u):
        return kt.rollout(model, q, controls=u, steps=3, dt=0.01).q[-1]

    q, u = torch.tensor([[0.3], [1.0]], dtype=torch.float64), torch.full((3, 2, 1), 0.2).double()
    assert gradcheck(end, [x.requires_grad_() for x in (q, u)])
    filtered = model.replace(actuators=[replace(servo, activation="filter", time_constant=0.1)])
    found = kt.rollout(filtered, q.detach(), controls=u.detach(), steps=3, dt=0.01)
    expected = kt.rollout(
        filtered, q.detach().numpy(), controls=u.detach().numpy(), steps=3, dt=0.01
    )
    np.testing.assert_array_equal(found.q, expected.q)
    with pytest.raises(kt.errors.ArrayKindError, match="activations of actuators of model"):
        kt.rollout(filtered, q, controls=u, steps=3)


def test_rollouts_of_loops_stay_on_their_device_and_have_derivatives(monkeypatch):
    model = kt.samples.four_bar()
    options = {"steps": 4, "dt": 1e-3, "integrator": "euler", "store_every": 2}
    q0 = torch.tensor(np.array(model.neutral()))
    expected = kt.rollout(model, q0, **options)
    monkeypatch.setattr(torch_kind, "is_on_host", lambda x: False)
    found = kt.rollout(model, q0, **options)
    for name in ("q", "qd", "work"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=0, atol=0)

    def end(tau):
        return kt.rollout(model, q0, None, tau, **(options | {"steps": 1})).qd[-1]

    assert gradcheck(end, torch.full((model.nv,), 0.1, dtype=torch.float64, requires_grad=True))
    with pytest.raises(
        kt.errors.ArrayKindError, match=r"which has loops: a rollout looks at the numbers where it"
    ):
        torch.func.vmap(lambda q: kt.rollout(model, q, **options).q)(q0[None])
    with pytest.raises(kt.LoopError, match="does not close loop 'pin'"):
        kt.rollout(model, q0 + 0.3, **options)


def test_rollouts_that_follow_motions_have_no_derivatives():
    model = kt.samples.pendulum()

    @kt.kernel
    def turning(t):
        return np.array([t]), np.array([1.0]), np.array([0.0])

    q0 = torch.zeros(1, dtype=torch.float64)
    options = {"prescribed": {model.joint_names[0]: turning}, "steps": 2}
    assert type(kt.rollout(model, q0, **options).q) is torch.Tensor
    with pytest.raises(kt.errors.ArrayKindError, match="prescribed joints are computed on the CPU"):
        kt.rollout(model, q0.requires_grad_(), **options)


def test_states_that_an_implicit_method_did_not_find_are_not_numbers(monkeypatch):
    model = kt.samples.double_pendulum()
    q0 = torch.tensor([[0.1, 0.2], [0.1, 0.2]], dtype=torch.float64)
    qd0 = torch.tensor([[0.0, 0.0], [10.0, -10.0]], dtype=torch.float64)
    options = {"steps": 1, "dt": 0.1, "integrator": "implicit_midpoint"}
    with pytest.raises(kt.SimulationError, match="did not find the state"):
        kt.rollout(model, q0, qd0, **options)
    monkeypatch.setattr(torch_kind, "is_on_host", lambda x: False)
    found = kt.rollout(model, q0, qd0, **options).q[-1]
    assert torch.isfinite(found[0]).all()
    assert torch.isnan(found[1]).all()


def test_a_rollout_on_a_device_takes_few_launches(monkeypatch):
    model = kt.samples.pendulum()
    q0 = torch.tensor([[0.3], [1.0]], dtype=torch.float64)
    options = {"steps": 10, "dt": 0.01, "store_every": 4}
    expected = kt.rollout(model, q0, **options)
    monkeypatch.setattr(torch_kind, "is_on_host", lambda x: False)
    found = kt.rollout(model, q0, **options)
    assert found.batch == (2,)
    assert len(found) == 4
    for name in ("q", "qd", "work"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=0, atol=0)
    with pytest.raises(kt.ShapeError, match=r"do not broadcast.*q0 \(2,\), qd0 \(3,\)"):
        kt.rollout(model, q0, torch.zeros(3, 1), **options)


@kt.kernel
def end(model, q, qd, weights):
    return weights @ np.concatenate([q, qd])


@pytest.mark.usefixtures("specialised")
@pytest.mark.parametrize("relaxation", [0.05, 0.0])
def test_rollouts_with_rigid_contact_have_the_motions_and_gradients_of_numpy(relaxation):
    block = with_ground(particle(0.1))
    scene = Scene(block, friction=0.3)
    contact = TimeStepping(scene, relaxation=relaxation)
    options = {"steps": 8, "dt": 4e-3, "contact": contact}
    start, mu = (np.array([0, 0.1, 0.11]), np.array([0.5, 0.2, -0.6])), np.array([0.3])
    weights = np.cos(np.arange(6) + 1.0)
    arguments = {"weights": weights, "contact_friction": mu}
    found = kt.rollout_gradient(block, *start, terminal=end, arguments=arguments, **options)
    expected = kt.rollout(block, *start, arguments={"contact_friction": mu}, **options)

    arrays = [torch.tensor(x, requires_grad=True) for x in (*start, mu)]
    ends = kt.rollout(block, *arrays[:2], arguments={"contact_friction": arrays[2]}, **options)
    value = torch.cat([ends.q[-1], ends.qd[-1]]) @ torch.tensor(weights)
    gradients = [x.numpy() for x in torch.autograd.grad(value, arrays)]
    np.testing.assert_allclose(ends.q.detach().numpy(), expected.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(gradients[1], found.qd0, rtol=0, atol=1e-10)
    by_friction = found.arguments["contact_friction"]
    np.testing.assert_allclose(gradients[2], by_friction, rtol=0, atol=1e-10)
