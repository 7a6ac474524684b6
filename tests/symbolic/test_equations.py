"""Equations of motion in closed form."""

import sys
from functools import cache

import numpy as np
import pytest
import sympy as sp
from support.closeness import assert_close
from support.textbook import Arm, point_mass, two_link_arm

import kinetree as kt
from kinetree.symbolic import equations_of_motion, lagrange_equations

L1, L2, m1, m2, g = sp.symbols("L1 L2 m1 m2 g")


@pytest.fixture(scope="module")
def planar():
    return equations_of_motion(two_link_arm(L1, L2, m1, m2, g))


@pytest.mark.covers("Lynch & Park 9.1", "Lynch & Park 9.4", by=equations_of_motion)
def test_planar_arm_comes_out_as_in_the_textbook(planar):
    """Form and all: these are comparisons of expressions, not of values."""
    (_, q2), (w1, w2), q1 = planar.q, planar.qd, planar.q[0]
    c2, s2, c12 = sp.cos(q2), sp.sin(q2), sp.cos(q1 + q2)
    M12 = m2 * (L1 * L2 * c2 + L2**2)
    M11 = (m1 + m2) * L1**2 + m2 * (2 * L1 * L2 * c2 + L2**2)
    assert sp.Matrix([[M11, M12], [M12, m2 * L2**2]]) == planar.H
    assert (
        sp.Matrix([-m2 * L1 * L2 * s2 * (2 * w1 * w2 + w2**2), m2 * L1 * L2 * s2 * w1**2])
        == planar.C
    )
    assert planar.g == sp.Matrix(
        [(m1 + m2) * g * L1 * sp.cos(q1) + m2 * g * L2 * c12, m2 * g * L2 * c12]
    )
    k = m2 * L1 * L2 * s2
    assert planar.coriolis_matrix == sp.Matrix([[-k * w2, -k * (w1 + w2)], [k * w1, 0]])


def test_planar_arm_in_numbers(planar):
    numbers = {"L1": 1.0, "L2": 0.5, "m1": 2.0, "m2": 1.0, "g": 9.81}
    assert_close(planar.evaluate(Arm.q, Arm.qd, Arm.qdd, **numbers), Arm.tau)
    assert list(planar.symbols) == [
        "q1",
        "q2",
        "qd1",
        "qd2",
        "qdd1",
        "qdd2",
        "L1",
        "L2",
        "g",
        "m1",
        "m2",
    ]
    with pytest.raises(kt.ShapeError, match="gives no number for L2, m2: pass them by name"):
        planar.evaluate(Arm.q, Arm.qd, Arm.qdd, L1=1, m1=2, g=9.81)
    with pytest.raises(kt.UnknownNameError, match="no parameter 'm3'; they have L1, L2, g"):
        planar.evaluate(Arm.q, Arm.qd, Arm.qdd, m3=1)
    with pytest.raises(kt.ShapeError, match="takes 2 positions, 2 velocities"):
        planar.evaluate([0.0], Arm.qd, Arm.qdd, **numbers)


@pytest.mark.covers("Lynch & Park 9.1", by=lagrange_equations)
def test_lagrange_and_newton_euler_agree(planar):
    """The Lagrangian of 9.1.1, its kinetic energy put right, gives the same equations."""
    (q1, q2), (w1, w2) = planar.q, planar.qd
    K1 = m1 * L1**2 * w1**2 / 2
    K2 = m2 / 2 * (
        (L1**2 + 2 * L1 * L2 * sp.cos(q2) + L2**2) * w1**2
        + 2 * (L2**2 + L1 * L2 * sp.cos(q2)) * w1 * w2
        + L2**2 * w2**2
    )  # fmt: skip
    P = m1 * g * L1 * sp.sin(q1) + m2 * g * (L1 * sp.sin(q1) + L2 * sp.sin(q1 + q2))
    f = lagrange_equations(K1 + K2 - P, planar.q, planar.qd, planar.qdd)
    assert sp.simplify(f - planar.tau) == sp.zeros(2, 1)


@pytest.mark.covers("Lynch & Park 9.1", by=lagrange_equations)
def test_particle_on_a_vertical_line():
    m, x, v, a = sp.symbols("m x v a")
    (f,) = lagrange_equations(m * v**2 / 2 - m * g * x, [x], [v], [a])
    assert f == m * a + m * g
    with pytest.raises(kt.ShapeError, match="got 1, 1 and 2 symbols"):
        lagrange_equations(m * v**2 / 2, [x], [v], [a, x])


@pytest.mark.covers("Lynch & Park 9.4", by=equations_of_motion)
def test_rate_of_inertia_minus_twice_coriolis_is_skew(planar):
    rate = sum(
        (sp.diff(planar.H, x) * v for x, v in zip(planar.q, planar.qd, strict=True)), sp.zeros(2)
    )
    N = sp.expand(rate - 2 * planar.coriolis_matrix)
    assert sp.zeros(2) == N + N.T
    k = m2 * L1 * L2 * sp.sin(planar.q[1]) * (2 * planar.qd[0] + planar.qd[1])
    assert sp.expand(N - sp.Matrix([[0, k], [-k, 0]])) == sp.zeros(2)


MODELS = {
    "double_pendulum": kt.samples.double_pendulum,
    "cart_pole": kt.samples.cart_pole,
    "scara": kt.samples.scara,
    "general_axes": lambda: kt.samples.random_tree(
        2, 1, joints=[kt.Revolute((1, 2, 2)), kt.Helical("y", pitch=0.1)], branching=0
    ),
    "branches": lambda: kt.samples.random_tree(
        3, 2, joints=[kt.Revolute("z"), kt.Prismatic("x")], branching=1
    ),
    "universal": lambda: kt.samples.random_tree(1, 1, joints=[kt.Universal("xy")]),
    "planar": lambda: kt.samples.random_tree(1, 1, joints=[kt.Planar()]),
    "spherical": lambda: kt.samples.random_tree(1, 1, joints=[kt.Spherical()]),
}


@pytest.mark.parametrize("name", MODELS)
def test_formulas_agree_with_compiled_functions(name, rng):
    m = MODELS[name]()
    eq = equations_of_motion(m)
    for _ in range(3):
        q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
        tau = kt.inverse_dynamics(m, q, qd, qdd)
        assert_close(eq.evaluate(q, qd, qdd), tau, ulps=2e3)
        values = dict(zip((*eq.q, *eq.qd), (*q, *qd), strict=True))
        for formulas, numbers in (
            (eq.H, kt.mass_matrix(m, q)),
            (eq.g, kt.gravity_force(m, q)[:, None]),
            (eq.C, (kt.bias_force(m, q, qd) - kt.gravity_force(m, q))[:, None]),
            (eq.coriolis_matrix, kt.coriolis_matrix(m, q, qd)),
        ):
            actual = np.array(formulas.subs(values).evalf(), dtype=float)
            assert_close(actual, numbers, ulps=2e3, scale=np.max(np.abs(tau)) + 1)


def test_motion_that_time_prescribes_counts():
    spin = kt.Prescribed(kt.Revolute("z"), lambda t: ([2.0 * t], [2.0], [0.0]))
    m = (
        kt.ModelBuilder("governor")
        .body("shaft", joint=spin)
        .body("arm", on="shaft", joint=kt.Revolute("y"), inertia=point_mass(1.0, (0.5, 0, 0)))
        .build()
        .at(0.0)
    )
    eq = equations_of_motion(m)
    q, qd, qdd = [0.3], [0.1], [0.2]
    assert_close(eq.evaluate(q, qd, qdd), kt.inverse_dynamics(m, q, qd, qdd))
    assert sp.zeros(1, 1) != eq.C
    assert eq.coriolis_matrix is None  # no matrix times qd is what the shaft causes


class TestSymbols:
    def test_names_of_the_model_make_the_textbook_arm(self, planar):
        chosen = {
            "gravity": "g", "mass:upper": "m1", "mass:fore": "m2", "center:upper": "L1",
            "placement:fore_joint": "L1", "center:fore": "L2",
        }  # fmt: skip
        eq = equations_of_motion(two_link_arm(), symbols=chosen)
        assert str(eq.tau) == str(planar.tau)
        assert {str(s): float(v) for s, v in eq.values.items()} == {
            "L1": 1, "L2": 0.5, "m1": 2, "m2": 1, "g": 9.81,
        }  # fmt: skip
        assert_close(eq.evaluate(Arm.q, Arm.qd, Arm.qdd), Arm.tau)

    def test_names_are_made_from_bodies_and_joints(self, rng):
        m = kt.samples.double_pendulum()
        names = ("gravity", "mass:lower", "center:lower", "moments:lower", "placement:elbow")
        eq = equations_of_motion(m, symbols=names)
        assert set(map(str, eq.parameters)) == {"g", "m_lower", "c_lower", "I_lower_yy", "L_elbow"}
        q, qd, qdd = rng.standard_normal((3, 2))
        assert_close(eq.evaluate(q, qd, qdd), kt.inverse_dynamics(m, q, qd, qdd))
        heavy = m.replace(gravity=(0, 0, -1.62))
        assert_close(eq.evaluate(q, qd, qdd, g=1.62), kt.inverse_dynamics(heavy, q, qd, qdd))

    def test_a_mass_alone_makes_the_body_denser(self, rng):
        m = kt.samples.double_pendulum()
        eq = equations_of_motion(m, symbols=("mass:lower",))
        I = m.inertia[2]
        heavy = m.replace(inertia={"lower": I * (2.0 / I.mass)})
        q, qd, qdd = rng.standard_normal((3, 2))
        expected = kt.inverse_dynamics(heavy, q, qd, qdd)
        assert_close(eq.evaluate(q, qd, qdd, m_lower=2.0), expected)

    def test_several_coordinates_get_several_symbols(self):
        m = kt.samples.random_tree(2, 0, joints=[kt.Revolute("z")], branching=0)
        eq = equations_of_motion(m, symbols={"placement:body2_joint": "r"})
        assert {"r_x", "r_y"} <= set(eq.symbols)

    @pytest.mark.parametrize(
        ("symbols", "error", "message"),
        [
            (["mass"], kt.UnknownNameError, "has no body"),
            (["length:upper"], kt.UnknownNameError, "use 'gravity', 'mass:<body>'"),
            (["mass:base"], kt.ModelError, "the base does not move"),
            (["placement:upper_joint"], kt.ModelError, "all are zero"),
            (["moments:upper"], kt.ModelError, "of a point mass are zero"),
            (
                {"mass:upper": "m", "mass:fore": "m"},
                kt.ModelError,
                "symbol m stands for 2 and for 1",
            ),
        ],
    )
    def test_errors(self, symbols, error, message):
        with pytest.raises(error, match=message):
            equations_of_motion(two_link_arm(), symbols=symbols)

    def test_no_gravity_to_name(self):
        with pytest.raises(kt.ModelError, match="without gravity"):
            equations_of_motion(two_link_arm(g=0.0), symbols=["gravity"])


@cache
def slider_crank_equations():
    return equations_of_motion(kt.samples.slider_crank(), symbols=["gravity"])


class TestLoops:
    """``H qdd + C + g = tau + Kᵀ lam`` and ``K qdd = k`` of a slider-crank — RBDA (8.36)."""

    model = kt.samples.slider_crank()

    @pytest.fixture
    def equations(self):
        return slider_crank_equations()

    @pytest.fixture
    def state(self):
        rng, model = np.random.default_rng(0), self.model
        q = kt.loops.assemble(model, 0.3 * rng.standard_normal(model.nv))
        qd = kt.loops.project_velocity(model, q, rng.standard_normal(model.nv))
        return q, qd, rng.standard_normal(model.nv)

    @pytest.mark.covers("RBDA 8.5", by=equations_of_motion)
    def test_they_have_the_motion_of_forward_dynamics(self, equations, state):
        model, (q, qd, tau) = self.model, state
        at = dict(zip((*equations.q, *equations.qd), (*q, *qd), strict=True)) | equations.values
        H, C, g, K, k, closure = (
            np.array(x.subs(at).tolist(), dtype=float)
            for x in (equations.H, equations.C, equations.g, equations.K, equations.k,
                      equations.closure)
        )  # fmt: skip
        assert np.abs(closure).max() < 1e-12
        assert np.linalg.matrix_rank(K) == len(K) == len(equations.lam)
        A = np.block([[H, -K.T], [K, np.zeros((len(K), len(K)))]])
        x = np.linalg.solve(A, np.concatenate([tau - C[:, 0] - g[:, 0], k[:, 0]]))
        qdd, lam = x[: model.nv], x[model.nv :]
        np.testing.assert_allclose(qdd, kt.forward_dynamics(model, q, qd, tau), rtol=1e-9)
        forces = {str(s): value for s, value in zip(equations.lam, lam, strict=True)}
        np.testing.assert_allclose(equations.evaluate(q, qd, qdd, **forces), tau, atol=1e-9)
        tree = kt.inverse_dynamics(model.spanning_tree, q, qd, qdd)
        np.testing.assert_allclose(equations.evaluate(q, qd, qdd), tree, rtol=1e-9)

    def test_they_are_written_with_the_forces_of_the_loop(self, equations, state):
        text = equations.latex()
        assert r"\lambda_{1}" in text
        assert text.count("&=") == len(equations.q) + len(equations.lam)
        assert "K &=" in equations.latex("matrices")
        space: dict = {}
        exec(equations.python(), space)
        q, qd, qdd = state
        lam = np.arange(1.0, 1 + len(equations.lam))
        found = space["inverse_dynamics"](q, qd, qdd, lam, 9.81)
        forces = {str(s): value for s, value in zip(equations.lam, lam, strict=True)}
        np.testing.assert_allclose(found, equations.evaluate(q, qd, qdd, g=9.81, **forces))
        with pytest.raises(kt.UnknownNameError, match="they have lam1"):
            equations.evaluate(q, qd, qdd, lam9=1.0)


def test_without_sympy_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(kt.errors.MissingPackageError, match=r'pip install "kinetree\[symbolic\]"'):
        kt.equations_of_motion(kt.samples.pendulum())
