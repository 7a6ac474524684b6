"""Arrays that are not what they should be: named errors, whatever the function."""

from decimal import Decimal

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt

ARM = kt.samples.double_pendulum()
Q = np.array([0.3, -0.4])
BALL = (
    kt.ModelBuilder("ball")
    .body(
        "ball", joint=kt.Spherical(), inertia=kt.shapes.box(0.3, 0.2, 0.1, mass=1.0, at=(0, 0, 1))
    )
    .build()
)
UNIT = np.array([0.5, -0.5, 0.5, 0.5])


@kt.kernel
def lifted(m, q):
    return kt.potential_energy(m, q)


# --- quaternions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [kt.gravity_force, lifted, kt.compile(kt.gravity_force, BALL), BALL.integrate]
)
def test_a_quaternion_off_unit_length_is_rejected(function):
    def call(q):
        if function == BALL.integrate:
            return function(q, np.zeros(3))
        return function(*([] if hasattr(function, "model") else [BALL]), q)

    message = r"'ball_joint': quaternion .* must have unit length, got length 1.000001; model.norm"
    for q in (UNIT * (1 + 1e-6), np.array([UNIT, UNIT * (1 + 1e-6)])):
        with pytest.raises(kt.ShapeError, match=message):
            call(q)
        call(BALL.normalize(q))
    call(UNIT * (1 + 2e-7))


def test_quaternions_of_single_precision_are_good_enough(rng):
    q = BALL.random_configuration(rng, 200)
    exact = kt.gravity_force(BALL, q)
    assert_close(kt.gravity_force(BALL, q.astype(np.float32)), exact, ulps=2**32, scale=10)
    assert_close(kt.gravity_force(BALL, q.astype(np.float32).astype(float)), exact, ulps=2**32)


# --- masks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda q: kt.gravity_force(ARM, q),
        lambda q: lifted(ARM, q),
        lambda q: kt.compile(kt.gravity_force, ARM)(q),
        lambda q: kt.differentiate(kt.gravity_force, wrt="q")(ARM, q),
        lambda q: kt.simulate(ARM, q, duration=0.0),
        lambda q: ARM.integrate(q, np.zeros(2)),
        lambda q: kt.bias_force(ARM, Q, Q, np.ma.array(np.ones((2, 6)), mask=6 * [q.mask])),
    ],
)
def test_masked_values_are_no_numbers(function):
    with pytest.raises(kt.ShapeError, match=r"has \d+ masked value.*leave those samples out"):
        function(np.ma.array(Q, mask=[False, True]))


def test_a_mask_that_hides_nothing_does_no_harm():
    assert_close(kt.gravity_force(ARM, np.ma.array(Q)), kt.gravity_force(ARM, Q))


# --- numbers as objects --------------------------------------------------------------------------


def test_floats_as_objects_are_floats():
    derivative = kt.differentiate(kt.inverse_dynamics, wrt="q")
    objects = Q.astype(object)
    found = derivative(ARM, objects, objects, objects)
    assert found.dtype == float
    assert_close(found, derivative(ARM, Q, Q, Q), scale=30)
    assert_close(
        derivative(ARM, np.array([0, 1], object), Q, Q), derivative(ARM, [0, 1], Q, Q), scale=30
    )
    for function in (derivative, kt.inverse_dynamics):
        with pytest.raises(kt.errors.ArrayKindError, match="Decimal"):
            function(ARM, np.array([Decimal(1), Decimal(2)]), Q, Q)


# --- out= ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros(3), r"out must have the shape of the result \(2,\), got \(3,\)"),
        (np.zeros(()), r"out must have the shape of the result \(2,\), got \(\)"),
        (np.zeros(2, int), "out must be an array of float64, got int64"),
        ([0.0, 0.0], r"out must be a NumPy array \(2,\), got list"),
        ("x", r"out must be a NumPy array \(2,\), got str"),
        (np.broadcast_to(0.0, 2), "out is read-only"),
        ((np.zeros(2), np.zeros(2)), "returns 1 arrays, so out= takes as many, got 2"),
    ],
)
def test_where_results_cannot_go(out, message):
    with pytest.raises(kt.ShapeError, match=f"inverse_dynamics.*{message}"):
        kt.compile(kt.inverse_dynamics, ARM)(Q, Q, Q, out=out)


def test_where_results_of_derivatives_and_batches_cannot_go():
    derivatives = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    with pytest.raises(kt.ShapeError, match=r"out\[1\] must have .* \(2, 2\), got \(2, 3\)"):
        derivatives(ARM, Q, Q, Q, out=(np.zeros((2, 2)), np.zeros((2, 3))))
    with pytest.raises(kt.ShapeError, match=r"out must have .* \(4, 2\), got \(3, 2\)"):
        kt.compile(kt.inverse_dynamics, ARM)(np.zeros((4, 2)), Q, Q, out=np.zeros((3, 2)))


# --- other arguments -----------------------------------------------------------------------------

SLIPS = {
    "frame": (lambda: kt.jacobian(ARM, Q, "lower", frame=Q), "frame must be 'world', 'body' or"),
    "rows": (
        lambda: kt.task_freedom(ARM, Q, "lower", rows=3.0),
        "rows must be 'linear', 'angular'",
    ),
    "a type": (lambda: kt.gravity_force(ARM, float), "q must hold numbers, got a type"),
    "batches": (
        lambda: kt.cartesian_forces(ARM, np.zeros((2, 2)), np.zeros((3, 2))),
        r"cartesian_forces: batch axes do not broadcast against each other: q \(2,\), tau \(3,\)",
    ),
    "integrator": (
        lambda: kt.simulate(ARM, Q, duration=1, integrator=["rk4"]),
        "got a list; names",
    ),
    "duration": (lambda: kt.simulate(ARM, Q, duration="1 s"), "duration must be a positive time"),
    "t0": (
        lambda: kt.simulate(ARM, Q, duration=1, t0="noon"),
        "t0 must be a time in seconds, got 'noon'",
    ),
    "hooks": (
        lambda: kt.simulate(ARM, Q, duration=1, hooks=None),
        "hooks must be functions of a st",
    ),
    "motors": (
        lambda: kt.simulate(ARM, Q, duration=1, motors="a"),
        "motors must be TorqueSpeed cur",
    ),
    "dt": (lambda: kt.rollout(ARM, Q, steps=1, dt="1 ms"), "dt must be a positive time in seconds"),
    "inputs": (lambda: kt.rollout(ARM, Q, steps=1, inputs=Q), "inputs must be arrays by name"),
    "forces": (lambda: kt.rollout(ARM, Q, steps=1, forces=None), "a force must be a function"),
    "linearize": (lambda: kt.linearize(ARM, Q, Q, Q, dt=[0.1]), "dt must be a positive time"),
    "dtype": (
        lambda: kt.compile(kt.gravity_force, ARM, dtype="half a"),
        "dtype must be float64 or",
    ),
    "parameters": (
        lambda: kt.compile(kt.gravity_force, ARM, parameters=None),
        "must be names such",
    ),
    "seed": (lambda: ARM.random_configuration("seven"), "rng must be a NumPy random generator or"),
    "count": (lambda: ARM.random_configuration(1, -1), "count must be an integer that is not"),
}


@pytest.mark.parametrize(("call", "message"), SLIPS.values(), ids=SLIPS.keys())
def test_mistakes_are_errors_of_kinetree(call, message):
    with pytest.raises(kt.KinetreeError, match=message):
        call()
