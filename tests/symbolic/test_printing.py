"""Equations of motion as LaTeX and Python."""

import numpy as np
import pytest
import sympy as sp
from support.closeness import assert_close
from support.textbook import Arm, two_link_arm

import kinetree as kt
from kinetree.spatial import ops
from kinetree.symbolic import equations_of_motion

PLANAR = r"""\begin{aligned}
\tau_{1} &= \left(L_{1}^{2} \left(m_{1} + m_{2}\right) + m_{2} \left(2 L_{1} L_{2} \cos {\theta_{2}} + L_{2}^{2}\right)\right) \ddot{\theta}_{1} + m_{2} \left(L_{1} L_{2} \cos {\theta_{2}} + L_{2}^{2}\right) \ddot{\theta}_{2} - L_{1} L_{2} m_{2} \left(2 \dot{\theta}_{1} \dot{\theta}_{2} + \dot{\theta}_{2}^{2}\right) \sin {\theta_{2}} + L_{1} g \left(m_{1} + m_{2}\right) \cos {\theta_{1}} + L_{2} g m_{2} \cos{\left(\theta_{1} + \theta_{2} \right)} \\
\tau_{2} &= m_{2} \left(L_{1} L_{2} \cos {\theta_{2}} + L_{2}^{2}\right) \ddot{\theta}_{1} + L_{2}^{2} m_{2} \ddot{\theta}_{2} + L_{1} L_{2} m_{2} \dot{\theta}_{1}^{2} \sin {\theta_{2}} + L_{2} g m_{2} \cos{\left(\theta_{1} + \theta_{2} \right)}
\end{aligned}"""  # noqa: E501


@pytest.fixture(scope="module")
def planar():
    model = two_link_arm(*sp.symbols("L1 L2 m1 m2 g"))
    return equations_of_motion(model, coordinates="theta")


@pytest.mark.covers("Lynch & Park 9.1", by=equations_of_motion)
def test_latex_of_the_planar_arm(planar):
    assert planar.latex() == PLANAR


def test_latex_of_matrices(planar):
    text = planar.latex(form="matrices")
    for name in ("H &= ", "C &= ", "g &= "):
        assert name + r"\left[\begin{matrix}" in text
    with pytest.raises(kt.UnknownNameError, match="use 'equations' or 'matrices'"):
        planar.latex(form="words")


def test_numbers_are_decimals_of_the_requested_digits():
    eq = equations_of_motion(kt.samples.pendulum())
    assert eq.latex(digits=3) == (
        "\\begin{aligned}\n\\tau_{1} &= 1.07 \\ddot{q}_{1} + 10.8 \\sin {q_{1}}\n\\end{aligned}"
    )
    still = equations_of_motion(kt.samples.pendulum().replace(gravity=(0, 0, 0)))
    assert still.g == sp.zeros(1, 1)
    assert "sin" not in still.latex()


def test_python_source_runs(planar, rng):
    names = {}
    exec(planar.python("torques"), names)
    tau = names["torques"](Arm.q, Arm.qd, Arm.qdd, L1=1, L2=0.5, g=9.81, m1=2, m2=1)
    assert_close(np.array(tau), Arm.tau)
    m = kt.samples.scara()
    source = equations_of_motion(m).python()
    exec(source, names)
    q, qd, qdd = rng.standard_normal((3, 4))
    assert_close(
        np.array(names["inverse_dynamics"](q, qd, qdd)), kt.inverse_dynamics(m, q, qd, qdd)
    )
    assert source.startswith("from math import cos, sin\n")


def test_python_source_of_a_slide_along_a_curve(rng):
    curve = kt.joints.CustomJoint(lambda q: kt.xlt(q[0], 0, ops.exp(q[0]) * ops.tanh(q[0])), 1)
    b = kt.ModelBuilder("slide")
    b.body("bead", joint=curve, inertia=kt.Inertia.from_mass_center(2.0, [0, 0, 0], np.eye(3)))
    m, names = b.build(), {}
    source = equations_of_motion(m).python()
    assert source.startswith("from math import exp, tanh\n")
    exec(source, names)
    q, qd, qdd = rng.standard_normal((3, 1))
    assert_close(
        np.array(names["inverse_dynamics"](q, qd, qdd)), kt.inverse_dynamics(m, q, qd, qdd), ulps=50
    )


def test_representation(planar):
    assert repr(planar) == "EquationsOfMotion('2R arm': nv=2, parameters: L1, L2, g, m1, m2)"
