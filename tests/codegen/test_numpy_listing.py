"""NumPy listings: readable, executable, batched, and shown by debuggers."""

import inspect
import traceback

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render import numpy as renderer
from kinetree.expr import interpret
from kinetree.functional.export import listing, to_numpy


@pytest.fixture(scope="module")
def pendulum():
    return kt.samples.double_pendulum()


def test_a_listing_reads_like_a_program(pendulum):
    text = listing(kt.inverse_dynamics, pendulum)
    assert "def inverse_dynamics(q, qd, qdd):" in text
    assert "    cos_q1 = np.cos(q1)" in text
    assert "    tau[..., 0] = " in text
    assert "lower_1 = " in text
    assert listing("inverse_dynamics", pendulum) == text
    assert all(not line.endswith(" ") for line in text.splitlines())


def test_a_listing_stands_alone(pendulum, rng):
    namespace = {}
    exec(listing(kt.mass_matrix, pendulum), namespace)
    q = rng.standard_normal((4, 2))
    H = namespace["mass_matrix"](q)
    assert_close(H, kt.mass_matrix(pendulum, q))


def test_batches_broadcast_and_precision_is_kept(pendulum, rng):
    f = to_numpy(kt.inverse_dynamics, pendulum)
    q, qd, qdd = rng.standard_normal((5, 1, 2)), rng.standard_normal((3, 2)), np.zeros(2)
    assert_close(f(q, qd, qdd), kt.inverse_dynamics(pendulum, q, qd, qdd))
    assert f(q[0, 0], qd[0], qdd).shape == (2,)
    assert f(q, qd, qdd).dtype == np.float64
    single = f(*(x.astype(np.float32) for x in (q, qd, qdd)))
    assert single.dtype == np.float32
    assert f(np.zeros((0, 2)), qdd, qdd).shape == (0, 2)


def test_options_choose_frames_and_forces(pendulum, rng):
    q, qd = rng.standard_normal((2, 2))
    J = to_numpy(kt.jacobian, pendulum, name="lower", frame="body")
    assert_close(J(q), kt.jacobian(pendulum, q, "lower", frame="body"))
    f_ext = rng.standard_normal((2, 6))
    tau = to_numpy("bias_force", pendulum, f_ext=True)
    assert_close(tau(q, qd, f_ext), kt.bias_force(pendulum, q, qd, f_ext))


def test_the_text_is_known_to_python(pendulum):
    f = to_numpy(kt.gravity_force, pendulum)
    assert inspect.getsource(f) in f.source
    assert "def gravity_force(q)" in inspect.getsource(f)
    try:
        f(np.array(["a", "b"]))
    except (TypeError, ValueError) as error:
        shown = "".join(traceback.format_exception(error))
        assert "np.cos(q0)" in shown or "np.sin(q0)" in shown
    else:
        pytest.fail("text has no sine")


def test_failed_checks_raise():
    model = (
        kt.ModelBuilder("top")
        .body("top", joint=kt.Spherical(), inertia=kt.shapes.sphere(0.1, mass=1))
        .build()
    )
    f = to_numpy(kt.kinetic_energy, model)
    assert f([1.0, 0, 0, 0], np.ones(3)) > 0
    with pytest.raises(ValueError, match="quaternion that does not have unit length"):
        f([2.0, 0, 0, 0], np.ones(3))


def test_choices_not_taken_do_not_warn():
    def guarded(x):
        return (x[0] < 1e-3).select(1 - x[0] * x[0] / 6, np.sin(x[0]) / x[0])

    f = renderer.function(trace(guarded, [Argument("x", (1,))], "sinc"))
    np.testing.assert_allclose(f(np.array([[0.0], [0.5]])), [1, np.sin(0.5) / 0.5], rtol=1e-15)


def test_association_is_kept():
    def order(x):
        a, b, c, d = x
        return np.array(
            [a - (b - c), a / (b / c), a * (b + c) / d, -(a + b), a - -b * c, (a + b) + (c + d)]
        )

    program = trace(order, [Argument("x", (4,))], "order")
    x = np.array([0.1, 0.7, 1e17, 3.0])
    np.testing.assert_array_equal(renderer.function(program)(x), interpret.run(program, x)[0])
    np.testing.assert_allclose(renderer.function(program)(x), order(x), rtol=1e-15)


def test_extreme_constants():
    def extreme(x):
        return np.array([x[0] * 1e300, x[0] + 5e-324, (x[0] < np.inf).select(x[0], 0)])

    program = trace(extreme, [Argument("x", (1,))], "extreme")
    np.testing.assert_array_equal(renderer.function(program)(np.array([2.0])), [2e300, 2.0, 2.0])
