"""Mistakes of the first hour: names from elsewhere, arguments in another order, degrees, ..."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.model.geometry import Sphere
from kinetree.spelling import FUNCTIONS, OF_MODELS

ARM = kt.ModelBuilder("arm")
for name, on in (("upper", None), ("lower", "upper")):
    ARM.body(
        name, on=on, joint=kt.Revolute("y"), inertia=kt.shapes.rod(1.0, mass=1.0, at=(0, 0, 0.5)),
        limits=kt.Limits(lower=-2.0, upper=2.0),
    )  # fmt: skip
ARM = ARM.frame("tip", on="lower").build()
Q = np.zeros(2)

WORDS = {
    "kt.rnea": (lambda: kt.rnea, "it is kinetree.inverse_dynamics"),
    "kt.nonLinearEffects": (lambda: kt.nonLinearEffects, "it is kinetree.bias_force"),
    "kt.forward": (lambda: kt.forward, "did you mean 'forward_dynamics'"),
    "kt.Simulate": (lambda: kt.Simulate, "did you mean 'simulate'"),
    "kt.banana": (lambda: kt.banana, "module 'kinetree' has no attribute 'banana'$"),
    "kt.control.PD": (lambda: kt.control.PD, "did you mean 'PDWithFeedforward'"),
    "kt.samples.pandas": (lambda: kt.samples.pandas, "did you mean 'panda'"),
    "kt.plot.joint": (lambda: kt.plot.joint, "did you mean 'joints'"),
    "model.limits": (lambda: ARM.limits, "write model.position_limits, .velocity_limits or"),
    "model.nbodies": (lambda: ARM.nbodies, "write model.body_count"),
    "model.simulate": (lambda: ARM.simulate, r"write kinetree.simulate\(model, ...\)"),
    "model.body_name": (lambda: ARM.body_name, "did you mean 'body_names'"),
    "model.mass_matrix": (lambda: ARM.mass_matrix, r"write kinetree.mass_matrix\(model, ...\)"),
    "model.com": (lambda: ARM.com, r"write kinetree.center_of_mass\(model, ...\)"),
    "model.dynamics": (lambda: ARM.dynamics, r"write model.bodies\[i\].dynamics"),
    "kt.rotation_vector": (lambda: kt.rotation_vector, "it is kinetree.control.pose_error"),
    "model.banana": (lambda: ARM.banana, "what is computed is a function"),
}


@pytest.mark.parametrize(("look", "message"), WORDS.values(), ids=WORDS.keys())
def test_a_name_from_elsewhere_leads_to_ours(look, message):
    with pytest.raises(AttributeError, match=message):
        look()


def test_names_here_exist_and_those_from_elsewhere_do_not():
    for there, here in FUNCTIONS.items():
        thing = kt
        for part in here.split("."):
            thing = getattr(thing, part)
        assert there.replace("_", "").lower() == there
        assert there not in kt.__all__
    assert not any(hasattr(ARM, name) for name in OF_MODELS)


def test_a_property_that_fails_tells_its_own_reason():
    broken = object.__new__(kt.Model)  # nothing is set: every property fails
    with pytest.raises(AttributeError, match="no attribute 'bodies'"):
        _ = broken.body_count


def test_models_can_still_be_copied_and_sent():
    assert copy.copy(ARM) == copy.deepcopy(ARM) == pickle.loads(pickle.dumps(ARM)) == ARM


CALLS = {
    "arrays first": (
        lambda: kt.mass_matrix(Q, ARM), kt.ModelError, "got ndarray: the model comes before the",
    ),
    "a path": (
        lambda: kt.mass_matrix("a.urdf", Q), kt.ModelError, r"kinetree.load\('a.urdf'\) makes one",
    ),
    "a sample not called": (
        lambda: kt.mass_matrix(kt.samples.panda, Q), kt.ModelError, r"call it first: panda\(\)",
    ),
    "a function first": (lambda: kt.tier_of(kt.pose, ARM), kt.ModelError, "comes before pose"),
    "a name for numbers": (
        lambda: kt.mass_matrix(ARM, "home"), kt.ShapeError, r"got 'home'; see model.posture\(",
    ),
    "a batch on its side": (
        lambda: kt.mass_matrix(ARM, np.zeros((2, 7))), kt.ShapeError, "so pass its transpose",
    ),
    "the frame before q": (
        lambda: kt.pose(ARM, "tip", Q), kt.UnknownNameError, "meant by its name, such as 'lower'",
    ),
    "a number for a frame": (lambda: kt.pose(ARM, Q, 2), kt.UnknownNameError, "by its name.*got 2"),
    "a joint for a body": (
        lambda: kt.pose(ARM, Q, "lower_joint"), kt.UnknownNameError, "carries body 'lower'",
    ),
    "a controller of the state alone": (
        lambda: kt.simulate(ARM, Q, duration=0.1, controller=lambda q, qd: q),
        TypeError, r"called with \(t, q, qd\), .*'<lambda>' takes \(q, qd\)",
    ),
    "a controller without return": (
        lambda: kt.simulate(ARM, Q, duration=0.1, controller=lambda t, q, qd: None),
        kt.SimulationError, "returned None at t = 0 s: it must return joint forces",
    ),
    "a controller of arrays": (
        lambda: kt.control.ComputedTorque(Q, ARM, kp=1.0), kt.ModelError, "got ndarray: the model",
    ),
    "the model of a compiled function": (
        lambda: kt.compile(kt.mass_matrix, ARM)(ARM, Q), TypeError, "has its model already: leave",
    ),
    "a derivative without the frame": (
        lambda: kt.differentiate(kt.pose, wrt="q")(ARM, Q),
        TypeError, r"argument: 'name'; it is pose\(model, q, name, \*, relative_to=None\)",
    ),
    "threads in words": (
        lambda: kt.set_threads("two"), ValueError, "integer of at least 1, got 'two'",
    ),
    "a plot of a mechanism": (
        lambda: kt.plot.joints(ARM), TypeError, r"draws a motion.*got Model; kinetree.plot.tree\(",
    ),
    "contact of a model": (
        lambda: kt.contact.TimeStepping(ARM), TypeError, r"got Model; Scene\(model, pairs='base'\)",
    ),
    "a scene for contact": (
        lambda: kt.simulate(ARM, Q, duration=0.1, contact=kt.contact.Scene(ARM)),
        TypeError, r"got Scene; say what happens there: TimeStepping\(scene\)",
    ),
    "soft, but how soft": (
        lambda: kt.contact.SoftContact(kt.contact.Scene(ARM)),
        kt.ModelError, "'hunt_crossley' needs stiffness and damping, say 1e6 ",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), CALLS.values(), ids=CALLS.keys())
def test_a_wrong_argument_raises_an_error_with_advice(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_positions_of_joints_that_follow_are_left_out():
    gear = kt.ModelBuilder("gear")
    for name in ("lead", "follow"):
        gear.body(name, joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1.0))
    gear.coupling("mesh", joint="follow_joint", source="lead_joint")
    m = gear.build()
    with pytest.raises(kt.ShapeError, match=r"model.reduce\(q\) leaves them out"):
        kt.gravity_force(m, [0.1, 0.1])
    with pytest.raises(kt.ShapeError, match=r"model.reduce_velocity\(qd\) leaves them out"):
        kt.bias_force(m, [0.1], [0.1, 0.1])
    assert kt.gravity_force(m, m.reduce([0.1, 0.1])).shape == (1,)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([0.0, 90.0], "'lower_joint' starts at 90, far outside its limits -2 to 2.*np.radians"),
        ([0.0, 2.5], "'lower_joint' starts at 2.5, far outside .*limits=None leaves the stops out"),
        ([Q, [0, 3]], r"'lower_joint' of sample \(1,\) starts at 3"),
    ],
)
def test_a_start_far_outside_the_limits_is_warned_of(start, message):
    soft = kt.StiffLimits(stiffness=1.0)
    with pytest.warns(kt.SimulationWarning, match=message) as warned:
        kt.simulate(ARM, start, duration=2e-3, limits=soft)
    assert warned[0].filename == __file__
    kt.simulate(ARM, start, duration=2e-3, limits=None)


def test_a_scene_without_solid_shapes_is_warned_of():
    m = kt.contact.with_ground(ARM)
    message = r"nothing can touch .*'arm': of its 1 shapes 1 have collision=True.*<collision>"
    with pytest.warns(kt.errors.ModelWarning, match=message) as warned:
        kt.contact.Scene(m)
    assert warned[0].filename == __file__
    panda = kt.samples.panda()
    panda = panda.replace(geometry=[replace(g, collision=False) for g in panda.geometry])
    with pytest.warns(kt.errors.ModelWarning, match=r"nothing can touch in the scene of 'panda'"):
        assert not kt.contact.Scene(panda).pairs
    with pytest.warns(kt.errors.ModelWarning, match=r"no two of its 2 solid shapes are a pair"):
        kt.contact.Scene(_two_links())
    assert not kt.contact.Scene(panda, pairs=[]).pairs  # meant so


def _two_links():
    """A pendulum of two links, which are neighbours and so never touch."""
    builder = kt.ModelBuilder("links")
    for name, on in (("upper", None), ("lower", "upper")):
        builder.body(name, on=on, joint=kt.Revolute("x"), inertia=kt.shapes.sphere(0.1, mass=1.0))
        builder.geometry(Sphere(0.1), on=name)
    return builder.build()


def test_a_ground_that_bodies_fall_through_is_warned_of():
    m = kt.contact.with_ground(_two_links(), point=(0, 0, -1))
    message = r"'links' has a ground, 'ground', and bodies pass .* no contact model.*Scene\(model"
    with pytest.warns(kt.SimulationWarning, match=message) as warned:
        kt.simulate(m, Q, duration=2e-3)
    assert warned[0].filename == __file__
    kt.simulate(_two_links(), Q, duration=2e-3)
    # A ground that nothing could touch is scenery.
    kt.simulate(kt.contact.with_ground(ARM), Q, duration=2e-3)


def test_a_motion_is_shown_in_one_line():
    motion = kt.simulate(ARM, Q, duration=0.01)
    assert repr(motion) == "<Trajectory of 'arm': 11 states, t = 0 to 0.01 s>"
    many = kt.simulate(ARM, np.zeros((3, 2)), duration=0.01)
    assert "11 states of a batch of shape (3,)" in repr(many)
