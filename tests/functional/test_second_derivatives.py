"""Second derivatives against complex steps of the first ones, for every kind of joint.

Complex arrays go through the definition of the operations instead of machine code, which keeps the
tests of many mechanisms quick. A complex step of the first derivative is exact to rounding, and the
first derivative has been checked in the same way by itself.
"""

import numpy as np
import pytest

import kinetree as kt
from kinetree.functional.parameters import parameter
from kinetree.joints import REPRESENTATIVES
from kinetree.samples import random_inertia, random_placement

KINDS = tuple(
    {type(j): j for j in REPRESENTATIVES if not isinstance(j, kt.joints.Reversed)}.values()
)
REVERSED = (kt.joints.Reversed(kt.Planar("y")), kt.joints.Reversed(kt.Spherical()), kt.Planar("z"))
STEP = 1e-30


def mechanism(rng, joint):
    """``joint`` and a hinge, one after the other."""
    builder = kt.ModelBuilder("pair")
    for k, kind in enumerate((joint, kt.Revolute((1.0, 2.0, 2.0)))):
        on, at = (f"b{k - 1}" if k else None), random_placement(rng)
        builder.body(f"b{k}", on=on, joint=kind, at=at, inertia=random_inertia(rng))
    return builder.frame("tool", on="b1", at=random_placement(rng)).build()


def steps(model, name, x):
    """Rates of an argument along each direction in which it can move, as the first axis."""
    if name == "q":
        return np.stack([model.configuration_rate(x, e) for e in np.eye(model.nv)])
    return np.eye(x.size).reshape(-1, *x.shape)


def along(function, x, rates):
    """Derivatives of the arrays that a function returns along some rates of ``x``, last axis."""
    return [np.moveaxis(np.imag(c) / STEP, 0, -1) for c in function(x + 1j * STEP * rates)]


def agree(found, exact, scale=1.0):
    found = np.asarray(found)
    assert np.all(np.imag(found) == 0)
    error = np.max(np.abs(np.real(found).reshape(exact.shape) - exact), initial=0)
    assert error <= 1e-9 * max(np.max(np.abs(exact), initial=0), scale)


def check(function, model, arrays, *options, wrt, **more):
    """Every block of the second derivative of a function of named arrays."""
    names = tuple(arrays)
    first = kt.differentiate(function, wrt=wrt)
    second = kt.differentiate(function, wrt=wrt, order=2)
    q = arrays["q"] + 0j
    found = second(model, q, *list(arrays.values())[1:], *options, **more)
    for k, name in enumerate(wrt):

        def of(x, name=name):
            values = [x if n == name else arrays[n] + 0j for n in names]
            return first(model, *values, *options, **more)

        exact = along(of, arrays[name], steps(model, name, arrays[name]))
        for row, block in zip(found, exact, strict=True):
            agree(row[k], block)


@pytest.mark.parametrize("joint", [*KINDS, *REVERSED], ids=str)
def test_inverse_dynamics(joint, rng):
    m = mechanism(rng, joint)
    q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    check(kt.inverse_dynamics, m, {"q": q, "qd": qd, "qdd": qdd}, wrt=("q", "qd", "qdd"))


@pytest.mark.parametrize("joint", [*KINDS, *REVERSED], ids=str)
def test_forward_dynamics(joint, rng):
    m = mechanism(rng, joint)
    q, (qd, tau) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    check(kt.forward_dynamics, m, {"q": q, "qd": qd, "tau": tau}, wrt=("q", "qd", "tau"))


@pytest.mark.parametrize("joint", [*KINDS, *REVERSED], ids=str)
def test_kinematics_energy_and_momentum(joint, rng):
    m = mechanism(rng, joint)
    q, qd = m.random_configuration(rng), rng.standard_normal(m.nv)
    check(kt.pose, m, {"q": q}, "tool", wrt=("q",))
    check(kt.jacobian, m, {"q": q}, "tool", wrt=("q",), frame="aligned")
    check(kt.kinetic_energy, m, {"q": q, "qd": qd}, wrt=("q", "qd"))
    check(kt.potential_energy, m, {"q": q}, wrt=("q",))
    check(kt.momentum, m, {"q": q, "qd": qd}, wrt=("q", "qd"))


@pytest.mark.parametrize("joint", [kt.Spherical(), kt.Universal("zy")], ids=str)
@pytest.mark.parametrize("function", [kt.inverse_dynamics, kt.forward_dynamics])
def test_external_forces(function, joint, rng):
    m = mechanism(rng, joint)
    q, (qd, x) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    last = "qdd" if function is kt.inverse_dynamics else "tau"
    arrays = {"q": q, "qd": qd, last: x, "f_ext": rng.standard_normal((2, 6))}
    check(function, m, arrays, wrt=("q", "f_ext"))


PARAMETERS = ("gravity", "inertia:b1", "mass:b0", "placement:b1_joint")


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("function", [kt.inverse_dynamics, kt.forward_dynamics, kt.kinetic_energy])
def test_parameters_of_the_model(function, name, rng):
    """Along the parameter and then along the configuration or the parameter again."""
    m = mechanism(rng, kt.Cylindrical("z"))
    q, state = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    state = state[:1] if function is kt.kinetic_energy else state
    p = parameter(m, name)
    value = np.asarray(p.value(m), dtype=float)
    f = kt.compile(function, m, parameters=(name,))
    first = kt.differentiate(f, wrt=("q", name))
    second = kt.differentiate(f, wrt=("q", name), order=2)(q + 0j, *state, value)
    by_q = along(lambda x: first(x, *state, value), q, steps(m, "q", q))
    rates = np.moveaxis(np.asarray(p.rates(value), dtype=float), -1, 0)
    by_p = along(lambda x: first(q + 0j, *state, x), value, rates)
    for row, exact_q, exact_p in zip(second, by_q, by_p, strict=True):
        agree(row[0], exact_q)
        agree(row[1], exact_p)


@pytest.mark.parametrize("joint", [*KINDS, *REVERSED], ids=str)
def test_the_derivative_of_a_pose_is_a_velocity(joint, rng):
    """``T⁻¹ dT`` is the matrix of the body Jacobian, column by column."""
    m = mechanism(rng, joint)
    q = m.random_configuration(rng)
    T, J = kt.pose(m, q + 0j, "tool").real, kt.jacobian(m, q + 0j, "tool", frame="body").real
    rates = kt.differentiate(kt.pose, wrt="q")(m, q + 0j, "tool").real
    for k in range(m.nv):
        W = np.linalg.solve(T, rates[..., k])
        agree(W[[2, 0, 1], [1, 2, 0]], J[:3, k])
        agree(W[:3, 3], J[3:, k])
        agree(W[:3, :3], -W[:3, :3].T)


def test_machine_code_gives_the_same(rng):
    m = mechanism(rng, kt.Universal("xy"))
    q = np.stack([m.random_configuration(rng) for _ in range(5)])
    qd, tau = rng.standard_normal((2, 5, m.nv))
    d = kt.differentiate(kt.forward_dynamics, wrt=("q", "tau"), order=2)
    for row, exact in zip(d(m, q, qd, tau), d(m, q + 0j, qd, tau), strict=True):
        for block, definition in zip(row, exact, strict=True):
            assert block.shape == (5, m.nv, m.nv, m.nv)
            agree(definition, block)
