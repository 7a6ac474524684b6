"""Products with derivatives: forward along a tangent, backward from weights of the results."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import chain_of
from support.states import conditioning

import kinetree as kt
from kinetree.expr.counting import cost
from kinetree.functional.products import JacobianVectorProduct, jvp, vjp
from kinetree.functional.transformed import tangent_shape
from kinetree.model.define import kernel_of


@pytest.fixture
def m(rng):
    return chain_of(rng, kt.Spherical(), kt.Revolute("x"), kt.Universal("zy"))


def state(m, rng, batch=()):
    q = np.stack([m.random_configuration(rng) for _ in range(int(np.prod(batch, dtype=int)))])
    return q.reshape(*batch, m.nq), *rng.standard_normal((2, *batch, m.nv))


CASES = [
    (kt.inverse_dynamics, ("q", "qd", "qdd"), ()),
    (kt.forward_dynamics, ("q", "qd", "tau"), ()),
    (kt.pose, ("q",), ("tool",)),
    (kt.momentum, ("q", "qd"), ()),
    (kt.kinetic_energy, ("q", "qd"), ()),
    (kt.inverse_dynamics, ("q", "qd", "qdd", "gravity", "inertia:b1", "placement:b1_joint"), ()),
    (kt.center_of_mass, ("q", "inertia"), ()),
]


@pytest.mark.parametrize(("function", "wrt", "options"), CASES)
def test_both_products_are_those_of_the_derivative(function, wrt, options, m, rng):
    arrays = dict(zip(("q", "qd", "qdd"), state(m, rng), strict=True))
    arrays["tau"] = arrays["qdd"]
    given = [arrays[w] for w in wrt if w in arrays]
    given[0] = given[0] + 0j  # by the definition of the operations: many functions, quickly
    J = kt.differentiate(function, wrt=wrt)(m, *given, *options)
    J = [np.real(j) for j in J]
    call = kt.differentiate(function, wrt=wrt).bind(m, *given, *options)
    tangents = [rng.standard_normal(tangent_shape(call, w)) for w in wrt]
    rate = jvp(function, wrt)(m, *given, *options, tangents=tangents).real
    expected = sum(np.tensordot(j, t, t.ndim) for j, t in zip(J, tangents, strict=True))
    assert_close(rate, expected, ulps=500, condition=conditioning(m, arrays["q"]))
    weights = rng.standard_normal(np.shape(rate))
    gradients = vjp(function, wrt)(m, *given, *options, cotangent=weights)
    for g, j in zip(gradients, J, strict=True):
        exact = np.tensordot(weights, j, weights.ndim)
        assert_close(g.real, exact, ulps=500, condition=conditioning(m, arrays["q"]))


def test_machine_code_in_batches_and_alone(m, rng):
    q, qd, qdd = state(m, rng, (7,))
    dq, dqd, w = rng.standard_normal((3, 7, m.nv))
    push, pull = (f(kt.inverse_dynamics, ("q", "qd")) for f in (jvp, vjp))
    a, b = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))(m, q, qd, qdd)
    rate = push(m, q, qd, qdd, tangents=(dq, dqd))
    g_q, g_qd = pull(m, q, qd, qdd, cotangent=w)
    assert_close(rate, np.einsum("nij,nj->ni", a, dq) + np.einsum("nij,nj->ni", b, dqd), ulps=200)
    assert_close(g_q, np.einsum("ni,nij->nj", w, a), ulps=200)
    assert_close(g_qd, np.einsum("ni,nij->nj", w, b), ulps=200)
    one = push(m, q[2], qd[2], qdd[2], tangents=(dq[2], dqd[2]))
    assert_close(one, rate[2], ulps=50)
    assert push(m, q[2], qd[2], qdd[2], tangents=(dq, dqd[2])).shape == (7, m.nv)  # one state
    single = [x.astype(np.float32) for x in (q, qd, qdd, w)]
    assert pull(m, *single[:3], cotangent=single[3])[0].dtype == np.float32
    out = np.zeros_like(rate)
    assert push(m, q, qd, qdd, tangents=(dq, dqd), out=out) is out
    assert np.array_equal(out, rate)


def test_a_name_gives_one_array(m, rng):
    q, _, _ = state(m, rng)
    dq, w = rng.standard_normal(m.nv), rng.standard_normal(3)
    J = kt.differentiate(kt.center_of_mass, wrt="q")(m, q)
    assert_close(jvp(kt.center_of_mass, "q")(m, q, tangents=dq), J @ dq, ulps=50)
    assert_close(vjp(kt.center_of_mass, "q")(m, q, cotangent=w), w @ J, ulps=50)
    (alone,) = vjp(kt.center_of_mass, ("q",))(m, q, cotangent=w)
    assert_close(alone, w @ J, ulps=50)


def test_a_hessian_times_a_vector_without_the_hessian(m, rng):
    """Products of the gradient: forward over reverse, reverse over reverse, reverse of forward."""
    q, _, _ = state(m, rng)
    v, w = rng.standard_normal((2, m.nv))
    gradient = kt.differentiate(kt.potential_energy, wrt="q")
    H = kt.differentiate(gradient, wrt="q")(m, q)
    assert_close(jvp(gradient, "q")(m, q, tangents=v), H @ v, ulps=100)
    assert_close(vjp(gradient, "q")(m, q, cotangent=w), w @ H, ulps=100)
    pull = vjp(kt.inverse_dynamics, "q")
    qd, qdd = rng.standard_normal((2, m.nv))
    second = kt.differentiate(kt.inverse_dynamics, wrt="q", order=2)(m, q, qd, qdd)
    both = jvp(pull, "q")(m, q, qd, qdd, cotangent=w, tangents=v)
    assert_close(both, np.einsum("i,ijk,k->j", w, second, v), ulps=200)
    full = kt.differentiate(jvp(kt.inverse_dynamics, "q"), wrt="q")(m, q, qd, qdd, tangents=v)
    assert_close(full, np.einsum("ijk,j->ik", second, v), ulps=200)


def test_they_cost_a_few_times_what_the_function_costs(rng):
    m = kt.samples.quadruped()
    q, qd, qdd = state(m, rng)
    v = rng.standard_normal(m.nv)
    program = kernel_of(m, "inverse_dynamics").program
    least = cost(program.graph, program.roots)
    for product, vector in (
        (jvp(kt.inverse_dynamics, ("q", "qd")), {"tangents": (v, v)}),
        (vjp(kt.inverse_dynamics, ("q", "qd")), {"cotangent": v}),
    ):
        program = product.prepare_call(product.bind(m, q, qd, qdd, **vector)).kernel.program
        assert cost(program.graph, program.roots) < 5 * least


@kt.kernel
def two_results(m, q, gain: ()):
    return {"height": gain * kt.pose(m, q, "tool")[2, 3], "g": kt.gravity_force(m, q)}


@kt.kernel
def own_product(m, q, qd):
    return qd @ jvp(kt.gravity_force, "q")(m, q, tangents=qd)


@kt.kernel
def rollout(m, q, qd):
    def step(s):
        return s[0] + 0.01 * s[1], s[1] + 0.01 * kt.forward_dynamics(m, *s, 0 * s[1])

    return kt.repeat(step, (q, qd), 4)


def test_kernels_of_users(rng):
    m = kt.samples.double_pendulum().replace(frames=[kt.Frame("tool", 2)])
    q, qd, _ = state(m, rng)
    v = rng.standard_normal(2)
    d = kt.differentiate(two_results, wrt=("q", "gain"))(m, q, 2.0)
    rate = jvp(two_results, ("q", "gain"))(m, q, 2.0, tangents=(v, 3.0))
    for key in ("height", "g"):
        assert_close(rate[key], d[key][0] @ v + d[key][1] * 3.0, ulps=50)
    weights = {"height": 0.7, "g": v}
    g_q, g_gain = vjp(two_results, ("q", "gain"))(m, q, 2.0, cotangent=weights)
    assert_close(g_q, 0.7 * d["height"][0] + v @ d["g"][0], ulps=50)
    assert_close(g_gain, 0.7 * d["height"][1] + v @ d["g"][1], ulps=50)
    K = kt.differentiate(kt.gravity_force, wrt="q")(m, q)
    assert_close(own_product(m, q, v), v @ K @ v, ulps=50)
    assert_close(kt.differentiate(own_product, wrt="qd")(m, q, v), (K + K.T) @ v, ulps=50)
    J = kt.differentiate(rollout, wrt="q")(m, q, qd)
    rates = jvp(rollout, "q")(m, q, qd, tangents=v)
    for found, j in zip(rates, J, strict=True):
        assert_close(found, j @ v, ulps=100)
    assert_close(vjp(rollout, "q")(m, q, qd, cotangent=(v, qd)), v @ J[0] + qd @ J[1], ulps=100)


def test_compiled_functions_with_parameters(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = state(m, rng)
    f = kt.compile(kt.inverse_dynamics, m, parameters=("gravity",))
    g, dg, w = np.array([0.1, 0.2, -9.0]), *rng.standard_normal((2, 3))
    J = kt.differentiate(f, wrt="gravity")(q, qd, qdd, g)
    assert_close(jvp(f, "gravity")(q, qd, qdd, g, tangents=dg), J @ dg, ulps=50)
    assert_close(jvp(f, "parameters")(q, qd, qdd, g, tangents=dg), J @ dg, ulps=50)
    assert_close(vjp(f, "gravity")(q, qd, qdd, g, cotangent=w[:2]), w[:2] @ J, ulps=50)


def test_the_same_product_is_one_object(m, rng):
    push = jvp(kt.inverse_dynamics, ["q", "qd"])
    assert push is jvp(kt.inverse_dynamics, ("q", "qd"))
    assert isinstance(push, JacobianVectorProduct)
    assert repr(push) == "<kinetree rate of inverse_dynamics with respect to ('q', 'qd')>"


def test_a_second_call_reads_its_arguments_as_the_first(rng):
    m = kt.samples.pendulum()
    q = rng.standard_normal(1)
    derivative = kt.differentiate(kt.gravity_force, wrt="q")(m, q)[0]
    for wrt, vectors in (
        ("q", (np.array([2.0]), [2.0], (2.0,))),
        (("q",), ((np.array([2.0]),), [np.array([2.0])], ([2.0],))),
    ):
        for vector in vectors * 2:
            assert_close(jvp(kt.gravity_force, wrt)(m, q, tangents=vector), 2 * derivative, ulps=4)
    with pytest.raises(kt.ShapeError, match="tangents must be a tuple of arrays, one each for q"):
        jvp(kt.gravity_force, ("q",))(m, q, tangents=np.array([2.0]))
    pair = jvp(kt.kinetic_energy, ("q", "qd"))
    for tangents in ((q, q), [q, q], (q.tolist(), q)) * 2:
        assert_close(pair(m, q, q, tangents=tangents), 2 * kt.kinetic_energy(m, q, q), ulps=8)


def test_what_is_missing_is_named(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = state(m, rng)
    with pytest.raises(
        TypeError, match=r"needs tangents=\.\.\., a tuple of arrays, one each for q"
    ):
        jvp(kt.inverse_dynamics, ("q", "qd"))(m, q, qd, qdd)
    with pytest.raises(
        kt.ShapeError, match="tangents must be a tuple of arrays, one each for q, qd"
    ):
        jvp(kt.inverse_dynamics, ("q", "qd"))(m, q, qd, qdd, tangents=q)
    with pytest.raises(
        kt.ShapeError, match=r"tangents\[1\] must have shape \(\.\.\., 2\), got \(3,"
    ):
        jvp(kt.inverse_dynamics, ("q", "qd"))(m, q, qd, qdd, tangents=(q, np.zeros(3)))
    with pytest.raises(kt.ShapeError, match=r"cotangent must have shape \(\.\.\., 2\), got \(4,"):
        vjp(kt.inverse_dynamics, "q")(m, q, qd, qdd, cotangent=np.zeros(4))
    with pytest.raises(kt.ShapeError, match="cotangent must be a tuple of 2 arrays"):
        vjp(rollout, "q")(m, q, qd, cotangent=q)
    with pytest.raises(kt.UnknownNameError, match="not called with an array 'tau' here"):
        vjp(kt.inverse_dynamics, "tau")(m, q, qd, qdd, cotangent=q)
    with pytest.raises(TypeError, match="would take two arguments 'tangents'; call the inner one"):
        jvp(jvp(kt.inverse_dynamics, "q"), "q")
    with pytest.raises(TypeError, match=r"kinetree\.vjp takes a function of kinetree such as"):
        vjp(np.sin, "x")
    with pytest.raises(kt.ShapeError, match="must be finite, got nan"):
        jvp(kt.gravity_force, "q")(m, q, tangents=np.array([0.0, np.nan]))


def test_a_singular_sample_is_named():
    m = kt.ModelBuilder("rod").body("link", joint=kt.Revolute("z"), joint_name="idle").build()
    zero = np.zeros(1)
    with pytest.raises(kt.SingularError, match="joint 'idle' moves no inertia"):
        vjp(kt.forward_dynamics, "q")(m, zero, zero, zero, cotangent=zero)


def test_a_mechanism_without_freedom(rng):
    m = chain_of(rng, kt.Fixed())
    none = np.zeros(0)
    assert vjp(kt.potential_energy, "q")(m, none, cotangent=1.0).shape == (0,)
    assert jvp(kt.inverse_dynamics, "q")(m, none, none, none, tangents=none).shape == (0,)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "function", [kt.inverse_dynamics, kt.forward_dynamics, kt.bias_force, kt.kinetic_energy]
)
def test_products_by_code_for_every_robot_are_those_of_the_derivative(function, seed):
    model, rng = kt.samples.random_tree(6, 70 + seed, floating_base=seed == 1), _rng(seed)
    q, n = model.random_configuration(rng), len(function.definition.required) - 1
    rest, (dq, dv) = rng.standard_normal((n, model.nv)), rng.standard_normal((2, model.nv))
    with kt.tier("specialised"):
        by_q, by_v = kt.differentiate(function, wrt=("q", "qd"))(model, q, *rest)
    weight = rng.standard_normal(np.shape(by_q)[:-1])
    push, pull = kt.jvp(function, wrt=("q", "qd")), kt.vjp(function, wrt=("q", "qd"))
    with kt.tier("general"):
        rate = push(model, q, *rest, tangents=(dq, dv))
        gradient = pull(model, q, *rest, cotangent=weight)
        call = push.bind(model, q, *rest, tangents=(dq, dv))
        assert push.prepare_call(call).kernel.next_tier == "general"
    assert np.allclose(rate, by_q @ dq + by_v @ dv, rtol=1e-9, atol=1e-9)
    for found, by in zip(gradient, (by_q, by_v), strict=True):
        expected = np.tensordot(weight, by, axes=np.ndim(weight))
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)


def _rng(seed):
    return np.random.default_rng(seed)
