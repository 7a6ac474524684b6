"""Gears and mimic joints on arrays: first answers without compiling, as code for one robot says."""

import numpy as np
import pytest

import kinetree as kt
from kinetree import joints
from kinetree.codegen import build, tiers
from kinetree.codegen.runtime import threads
from kinetree.model import ModelBuilder
from kinetree.model.coupling import Coupling
from kinetree.model.general.gears import gears_of
from kinetree.quantities import FUNCTIONS

GEARED = [f for f in FUNCTIONS.values() if getattr(f, "definition", None) and f.definition.gears]


@pytest.fixture(scope="module")
def model():
    """A floating arm with a joint that follows one that follows another, and one that has two."""
    b = ModelBuilder("geared").body(
        "trunk", joint=joints.Free(), inertia=kt.shapes.box(0.1, 0.2, 0.4, mass=2.0)
    )
    for k, axis in enumerate("xyzx"):
        on, box = f"l{k - 1}" if k else "trunk", kt.shapes.box(0.3, 0.1, 0.2, mass=1.0 + k)
        b.body(f"l{k}", on=on, joint=joints.Revolute(axis), at=(0.1, 0, 0.2), inertia=box)
    gear = Coupling("gear", 3, source=2, coefficients=(0.2, 0.7))
    return b.build().replace(
        couplings=[Coupling("last", 5, source=3, coefficients=(0.1, -0.4)), gear]
    )


@pytest.fixture(scope="module")
def state(model):
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    x = rng.normal(size=(3, 3, model.nv))
    forces = rng.normal(size=(3, model.body_count, 6))
    return {"q": q, "qd": x[0], "qdd": x[1], "tau": x[2], "f_ext": forces, "point": q[:, :3]}


def both(call, scale=1e-13):
    """Compare what two tiers say."""
    found = {}
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            found[tier] = call()
    pairs = [x if isinstance(x, tuple) else (x,) for x in found.values()]
    for a, b in zip(*pairs, strict=True):
        np.testing.assert_allclose(a, b, 0, scale * np.max(np.abs(b)))
    return found["general"]


def test_positions_and_velocities_are_those_of_the_model(model, state):
    gears, q, qd = gears_of(model), state["q"], state["qd"]
    np.testing.assert_allclose(gears.positions(q), model.expand(q), rtol=1e-15, atol=1e-15)
    full = model.expand_velocity(q, qd)
    np.testing.assert_allclose(gears.velocities(qd), full, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("function", GEARED, ids=lambda f: f.__name__)
def test_functions_agree_with_specialised_code(model, state, function):
    arrays = {n: state[n] for n in function.definition.required}
    found = both(lambda: function(model, **arrays))
    assert kt.tier_of(model, function) == "general"
    one = function(model, **{n: a[1] for n, a in arrays.items()})
    np.testing.assert_allclose(one, found[1], 0, 1e-13 * np.max(np.abs(one)))


@pytest.mark.parametrize("options", [{"friction": True, "rotors": True}, {"friction": "coulomb"}])
def test_regressors_with_effects_of_joints(model, state, options):
    arrays = [state[n] for n in ("q", "qd", "qdd")]
    both(lambda: kt.regressor(model, *arrays, **options))
    full = [model.expand(arrays[0]), *(model.expand_velocity(arrays[0], x) for x in arrays[1:])]
    both(lambda: kt.regressor(model.uncoupled, *full, **options))


@pytest.mark.parametrize("wrt", [("q", "qd", "tau"), "parameters", "inertia:l2"], ids=str)
def test_derivatives_of_accelerations(model, state, wrt):
    d = kt.differentiate(kt.forward_dynamics, wrt=wrt)
    arrays = [state[n] for n in ("q", "qd", "tau", "f_ext")]
    both(lambda: d(model, *arrays), scale=1e-12)
    assert kt.tier_of(model, d) == "general"


def test_products_with_derivatives(model, state):
    arrays, v = [state[n] for n in ("q", "qd", "tau")], state["qdd"]
    push, pull = kt.jvp(kt.forward_dynamics, ("q", "tau")), kt.vjp(kt.inverse_dynamics, ("q", "qd"))
    both(lambda: push(model, *arrays, tangents=(v, 2 * v)), scale=1e-12)
    both(lambda: pull(model, *arrays, cotangent=v), scale=1e-12)


def test_nothing_is_compiled_for_the_robot(model, state, monkeypatch):
    """Another ratio, and with it other tables: the code of all joints is there."""
    gears = [Coupling("gear", 3, source=2, coefficients=(0.0, -1.3))]
    other = model.replace(couplings=gears)
    q = other.neutral()
    zero = np.zeros(other.nv)
    kt.forward_dynamics(model, state["q"][0], state["qd"][0], state["tau"][0])

    def refused(kernel, *rest):
        raise AssertionError(f"{kernel.name} is compiled")

    monkeypatch.setattr(build, "_compile", refused)
    for function in (kt.forward_dynamics, kt.inverse_dynamics, kt.coriolis_matrix):
        function(other, *[q, zero, zero][: len(function.definition.required)])


def test_compiled_code_takes_over(model, state, monkeypatch):
    arrays = [state[n] for n in ("q", "qd", "qdd")]
    other = model.replace(gravity=(0.0, 0.0, -1.0))
    first = kt.inverse_dynamics(other, *arrays)
    monkeypatch.setattr(tiers, "SOME", 2)
    names, compiled = [], build._compile
    monkeypatch.setattr(build, "_compile", lambda k, *a: names.append(k.name) or compiled(k, *a))
    again = kt.inverse_dynamics(other, *arrays)
    assert names == ["inverse_dynamics"]
    assert kt.tier_of(other, kt.inverse_dynamics) == "general"
    np.testing.assert_allclose(first, again, 0, 1e-13 * np.abs(again).max())


def test_large_batches_do_not_wait_for_their_own_threads(model, state, monkeypatch):
    monkeypatch.setattr(threads._Setting, "count", 3)
    many = [np.tile(state[n], (400, 1)) for n in ("q", "qd", "tau")]
    few = kt.forward_dynamics(model, *(a[:3] for a in many))
    np.testing.assert_allclose(kt.forward_dynamics(model, *many)[-3:], few, rtol=1e-12)
    done = []

    def nested(k):
        threads.on_threads(lambda i: done.append((k, i)), 3)

    threads.on_threads(nested, 3)
    assert sorted(done) == [(k, i) for k in range(3) for i in range(3)]


def test_errors_name_the_sample(model, state):
    q = state["q"].copy()
    q[1, 3:7] = 0.0
    with pytest.raises(kt.errors.ShapeError, match=r"of sample \(1,\).*unit length"):
        kt.forward_dynamics(model, q, state["qd"], state["tau"])
    with pytest.raises(kt.errors.ShapeError, match=r"qd must be finite"):
        kt.forward_dynamics(model, state["q"], np.nan * state["qd"], state["tau"])


def test_ratios_that_change_and_bodies_without_extent_are_left_to_other_code(model):
    assert gears_of(model.uncoupled) is None
    cam = [Coupling("cam", 3, source=2, coefficients=(0.2, 0.7, 0.1))]
    assert gears_of(model.replace(couplings=cam)) is None
    point = model.replace(inertia={"l3": kt.shapes.sphere(0.1, mass=1.0) * 0.0})
    assert kt.forward_dynamics.definition.gears(point) is None
