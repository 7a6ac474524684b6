"""Dense output: the motion inside a finished step, by the interpolant of each method."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import arm

import kinetree as kt
from kinetree.integration.field import Field
from kinetree.integration.interpolation import Interpolant, states_inside
from kinetree.integration.step import Stepper
from kinetree.simulation import INTEGRATORS

# Order of the interpolant: the method's own, or 3 of Hermite's cubic through ends of that order.
ORDERS = {"euler": 1, "midpoint": 2, "heun": 2, "rk4": 3, "dopri5": 4, "semi_implicit_euler": 1}


def a_step(name, h=0.1, model=None, seed=5):
    model = model or arm()
    rng = np.random.default_rng(seed)
    q, qd, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    return Stepper(model, INTEGRATORS[name], Field(), compiled=True).take(0.3, h, q, qd, tau)


@pytest.mark.covers("RBDA 11.5", by=(Interpolant, states_inside))
@pytest.mark.parametrize("name", ORDERS)
def test_interpolant_begins_and_ends_with_the_step(name):
    step = a_step(name)
    q, qd = states_inside(step, [0.0, 1.0])
    assert_close(q, np.stack([step.q0, step.q1]))
    assert_close(qd, np.stack([step.qd0, step.qd1]))


@pytest.mark.covers("RBDA 11.5", by=Interpolant)
def test_heun_has_the_slopes_of_its_stages():
    # RBDA (11.51): slope k1 at the start and k2 at two thirds.
    step = a_step("heun")
    d = 1e-6
    for k, theta in enumerate((0.0, 2 / 3)):
        _, qd = states_inside(step, [theta - d, theta + d])
        slope = (qd[1] - qd[0]) / (2 * d * 0.1)
        assert np.allclose(slope, step.stages.qd[k], rtol=1e-8)


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("kind", ["arm", "satellite"])
def test_error_inside_a_step_has_the_order_of_the_interpolant(name, kind):
    model = arm() if kind == "arm" else kt.samples.satellite()
    theta, errors = np.array([0.3, 0.7]), []
    for h in (0.02, 0.01):
        step = a_step(name, h, model)
        q, qd = states_inside(step, theta)
        worst = 0.0
        for k, part in enumerate(theta):
            exact = a_step("dopri5", part * h / 8, model)
            for _ in range(7):
                exact = exact.stepper.take(exact.t1, part * h / 8, exact.q1, exact.qd1, step.tau)
            worst = max(
                worst,
                np.max(np.abs(model.difference(exact.q1, q[k]))),
                np.max(np.abs(qd[k] - exact.qd1)),
            )
        errors.append(worst)
    assert np.log2(errors[0] / errors[1]) > ORDERS[name] + 1 - 0.35  # local: one order more


def test_many_instants_at_once_are_those_one_by_one():
    for name in ("dopri5", "rk4"):
        step = a_step(name, model=kt.samples.satellite())
        q, qd = states_inside(step, [0.25, 0.5])
        for k, theta in enumerate((0.25, 0.5)):
            one_q, one_qd = step.at(0.3 + theta * 0.1)
            assert_close(q[k], one_q)
            assert_close(qd[k], one_qd)


def test_a_step_taken_anew_ends_where_it_should():
    step = a_step("rk4", 0.01)
    cut = step.cut(0.305)
    again = step.stepper.take(0.3, 0.305 - 0.3, step.q0, step.qd0, step.tau)
    assert cut.t1 == 0.305
    assert_close(cut.q1, again.q1)
    assert np.allclose(cut.qd1, step.at(0.305)[1], atol=1e-6)
