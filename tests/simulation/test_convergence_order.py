"""Observed order equals nominal order, for every integrator on every kind of joint."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from kinetree import ModelBuilder, Spherical, kernel, mass_matrix, shapes
from kinetree.integration.explicit import DORMAND_PRINCE, ExplicitRungeKutta
from kinetree.integration.field import Field
from kinetree.integration.step import Stepper
from kinetree.joints import REPRESENTATIVES, Reversed
from kinetree.samples import random_inertia, random_placement
from kinetree.simulation import INTEGRATORS
from kinetree.spatial.ops import cos, sin

KINDS = {type(joint): joint for joint in REPRESENTATIVES if joint.nv}
KINDS[Reversed] = Reversed(Spherical())  # of several that are reversed
every_kind = pytest.mark.parametrize("joint", KINDS.values(), ids=lambda j: type(j).__name__)

LOW = [m for m in INTEGRATORS.values() if not m.differentiates and m.order < 5]
IMPLICIT = [m for m in INTEGRATORS.values() if m.differentiates]
DURATION, STEPS, BATCH = 0.2, (6, 12, 24, 48), 21


@kernel
def swaying(model, t, q, qd):
    """Depends on time, position and velocity, none of it linearly."""
    drive = np.array([cos(5 * t + k) for k in range(model.nv)])
    return drive * (1 + 0.3 * sin(q[0])) - 0.2 * qd * qd * qd


@cache
def mechanism(joint):
    """A body with a moment of inertia about every axis, so that no motion is abrupt."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder("one body")
    inertia = random_inertia(rng) + shapes.box(0.5, 0.6, 0.7, mass=2.0)
    return builder.body("body", joint=joint, at=random_placement(rng), inertia=inertia).build()


def states(model, rng):
    """Of many states those farthest from gimbal lock, where no step is short."""
    q = np.array([model.random_configuration(rng) for _ in range(4 * BATCH)])
    q = q[np.argsort(np.linalg.cond(mass_matrix(model, q)))[:BATCH]]
    return q, rng.uniform(-1, 1, (BATCH, model.nv)), np.zeros((BATCH, model.nv))


def observed_order(model, run):
    """Rate at which halving the step brings results closer together, for steps of length zero.

    The rate ``p + c h + ...`` is extrapolated from two lengths of the step. The median of a batch,
    since in a single motion errors may happen to cancel.
    """
    gaps = [gap(model, a, b) for a, b in pairwise([run(n) for n in STEPS])]
    assert np.median(gaps[-1]) > 1e-11, "too close to rounding errors"
    before, after = (np.log2(a / b) for a, b in pairwise(gaps))
    return np.median(2 * after - before)


def gap(model, a, b):
    """Distance of two states and works, for each sample."""
    parts = [model.difference(a[0], b[0]), a[1] - b[1], np.array(a[2] - b[2])[..., None]]
    return np.linalg.norm(np.concatenate(parts, axis=-1).astype(float), axis=-1)


def taken_on_the_host(stepper, duration, n, q, qd, tau):
    """``n`` steps, stage by stage."""
    h, work = duration / n, 0
    for k in range(n):
        q, qd, w = stepper.step(k * h, h, q, qd, tau)
        work = work + w
    return q, qd, work


@every_kind
def test_explicit_integrators_have_their_order(joint, rng):
    model = mechanism(joint)
    start = states(model, rng)
    for method in LOW:
        stepper = Stepper(model, method, Field((swaying,)), compiled=False)
        order = observed_order(
            model, lambda n, s=stepper: taken_on_the_host(s, DURATION, n, *start)
        )
        assert abs(order - method.order) < 0.2, (method.name, order)


@every_kind
def test_dormand_and_prince_have_order_five(joint, rng):
    """In many digits, and so for tiny steps: rounding would hide the order of their error."""
    model = mechanism(joint)
    method = ExplicitRungeKutta(exact_table())
    stepper = Stepper(model, method, Field((swaying,)), compiled=False)
    number = np.vectorize(mpmath.mpf, otypes=[object])
    with mpmath.workdps(60):
        q, qd = model.random_configuration(rng), rng.uniform(-1, 1, model.nv)
        q, qd, tau = number(q), number(qd), number(np.zeros(model.nv))
        for part in joint.unit_parts:
            q[part] = q[part] / mpmath.sqrt(q[part] @ q[part])
        start, duration = (q, qd, tau), mpmath.mpf(2) ** -20
        ends = [taken_on_the_host(stepper, duration, n, *start) for n in (1, 2, 4)]
        first, second = (gap(model, a, b) for a, b in pairwise(ends))
    assert abs(np.log2(first / second) - 5) < 0.2


def exact_table():
    """The method's table, with the fractions that its floats stand for."""

    def exact(x):
        if isinstance(x, tuple):
            return tuple(map(exact, x))
        f = Fraction(x).limit_denominator(10**6)
        assert float(f) == x
        return Constant(f)

    parts = {name: exact(getattr(DORMAND_PRINCE, name)) for name in ("a", "b", "c")}
    return replace(DORMAND_PRINCE, dense=(), b_embedded=(), **parts)


class Constant(Fraction):
    """A fraction that multiplies numbers of many digits."""

    def __mul__(self, x):
        if isinstance(x, np.ndarray):
            return NotImplemented
        return x * self.numerator / self.denominator

    __rmul__ = __mul__


@every_kind
@pytest.mark.parametrize("method", IMPLICIT, ids=lambda m: m.name)
def test_integrators_that_solve_equations_have_their_order(joint, method, rng):
    model = mechanism(joint)
    q0, qd0, tau = states(model, rng)
    stepper = Stepper(model, method, Field((swaying,)), compiled=True)
    order = observed_order(model, lambda n: stepper.steps(0.0, DURATION / n, q0, qd0, tau, n))
    assert abs(order - method.order) < 0.2
