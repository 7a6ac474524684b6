"""Parts of rigid contact and of its phases, one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact import EventDriven
from kinetree.contact.event_driven import stepper
from kinetree.contact.event_driven.dynamics import PhaseDynamics
from kinetree.contact.event_driven.modes import OPEN, SLIDES, STICKS
from kinetree.contact.event_driven.transitions import Transitions
from kinetree.contact.rigid import friction
from kinetree.contact.rigid.forward_dynamics import forces_are_unique
from kinetree.contact.rigid.problem import RigidProblem
from kinetree.contact.scene import Scene, with_ground
from kinetree.errors import PainleveError
from kinetree.integration.field import Field
from kinetree.model.geometry import Geometry, Sphere


def problem_of(J, free, mu, zeta=None):
    """Contacts of no mechanism in particular, with unit inertia."""
    n, _, nv = np.shape(J)
    zeta = np.zeros((n, 3)) if zeta is None else np.asarray(zeta)
    names = tuple(f"c{k}" for k in range(n))
    return RigidProblem(
        np.asarray(J), np.eye(nv), np.asarray(free), np.zeros((n, 3)), zeta, np.asarray(mu), names
    )


# --- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_accelerations_are_as_large_as_the_terms_that_make_them_up(rng, unit):
    """Also where these cancel, or are small."""
    J, bias = -rng.uniform(0.5, 1, size=(2, 3, 4)), rng.normal(size=(2, 3)) * unit
    free = rng.normal(size=4) * unit
    problem = problem_of(J, free, np.ones(2))
    problem = RigidProblem(J, np.eye(4), free, bias, problem.zeta, problem.mu, problem.names)
    expected = max(
        sum(abs(J[k, i, v] * free[v]) for v in range(4)) + abs(bias[k, i])
        for k in range(2)
        for i in range(3)
    )
    assert_close(problem.scale, expected, ulps=10)
    assert problem.select([]).scale == 0


@pytest.mark.parametrize(("second", "unique"), [(0.3, True), (0.1, False)])
def test_parallel_contacts_that_begin_to_slide_differ_by_their_friction(second, unique):
    """A block that does not turn, on two feet: the same normals, and friction along x."""
    J, mu = np.array([[[0, 1.0], [1.0, 0], [0, 0]]] * 2), np.array([0.1, second])
    problem = problem_of(J, [5.0, -10.0], mu)
    lam = np.array([[5.0, -0.5, 0], [5.0, -5 * second, 0]])
    w = np.array([[0, 5.0 - 0.5 - 5 * second, 0]] * 2)
    still, closed = np.zeros((2, 2)), np.ones(2, bool)
    assert forces_are_unique(problem, lam, w, still, np.zeros(2, bool), closed) == unique


@pytest.mark.parametrize(("down", "kind"), [(-2.0, "inconsistent"), (2.0, "indeterminate")])
def test_paradox_is_that_of_the_contact_without_resistance(down, kind):
    """Beside one that rests and one that slides well; which paradox, its own acceleration says."""
    J = np.zeros((3, 3, 7))
    J[0, :, :3] = np.eye(3)
    J[1, 0, 3], J[1, 1, 4] = 1.0, 1.0
    J[2, 0, 5], J[2, 1] = 1.0, [0, 0, 0, 0, 0, 0.8, 0.6]  # feels friction along its normal
    free = np.array([-1.0, 0, 0, -3.0, 0.0, down, 0.0])
    zeta = np.array([[0, 0, 0], [0, 1.0, 0], [0, 1.0, 0]])
    problem = problem_of(J, free, [0.5, 0.5, 2.0], zeta)
    slip, slides = friction.directions(problem.zeta, 1e-9)
    of = friction.reduce_unknowns(problem.mu, slip, slides)
    d = of.Q @ problem.d
    with pytest.raises(PainleveError) as caught:
        friction.check_painleve(d, problem, of, slip)
    error = caught.value
    assert (error.contact, error.kind) == ("c2", kind)
    assert_close(error.resistance, 1 - 2.0 * 0.8)
    assert_close([error.friction, error.critical_friction], [2.0, 1 / 0.8])
    assert_close(error.acceleration, down)


# --- transitions ----------------------------------------------------------------------------------


def test_contacts_that_land_slowly_enough_stick():
    """A block on rails lands with a slip below ``stick_velocity``, which its friction takes."""
    block = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("block").body("rail", joint=kt.Prismatic("x"), inertia=block)
    m = builder.body("block", on="rail", joint=kt.Prismatic("z"), inertia=block).build()
    m = with_ground(m.replace(geometry=(Geometry(2, Sphere(0.1), name="block"),)))
    q = np.array([0.0, 0.1])
    for mu, slip in ((0.5, 0.0), (0.0, 4e-4)):
        scene = Scene(m, friction=mu)
        settings = EventDriven(scene, stick_velocity=1e-3)
        transitions = Transitions(settings, PhaseDynamics(m, m, scene, Field()))
        start = 4e-4 + mu * 1.0 / 2  # twice the mass moves along x
        _, qd, stay = transitions.hit(q, np.array([start, -1.0]))
        assert stay.tolist() == [0]
        assert_close(qd, [slip, 0.0], scale=1)


@pytest.mark.parametrize(
    ("kind", "speed", "hits"),
    [(OPEN, -1.0, True), (OPEN, 0.0, False), (STICKS, -1.0, False), (STICKS, 0.0, False)],
)
def test_what_was_closed_or_does_not_approach_closes_without_an_impact(kind, speed, hits):
    calls = []

    def hit(q, qd):
        calls.append("hit")
        return q, qd, [0]

    transitions = SimpleNamespace(
        of=SimpleNamespace(names=("tip",), restitution=[0.0]),
        mode=SimpleNamespace(kind=np.array([kind])), tau=None, hit=hit,
        settings=SimpleNamespace(velocity_tolerance=1e-8),
        velocities=lambda q, qd: np.array([[speed, 0, 0]]), settle=lambda *a: None,
    )  # fmt: skip
    name = Transitions.arrive(transitions, 0, 0.0, np.zeros(1), np.zeros(1))[2]
    assert name == ("tip lands" if hits else "tip closes")
    assert len(calls) == hits


# --- loads at the end of a step -------------------------------------------------------------------


def test_the_contact_that_bears_its_load_least_gives_way():
    gone, kept = [], []

    def give_way(k, t, q, qd):
        gone.append(k)
        mode.names = ("other",)
        return q, qd, f"c{k} opens"

    mode = SimpleNamespace(closed=np.arange(3), names=("first",))
    found = SimpleNamespace(margin=np.array([1.0, -0.5, 2.0]), motion="motion")
    this = SimpleNamespace(
        transitions=SimpleNamespace(mode=mode, give_way=give_way), _loads=lambda step: found,
        notes=SimpleNamespace(take=lambda step, motion: kept.append(motion)),
    )  # fmt: skip
    state = {"q1": np.zeros(1), "qd1": np.zeros(1), "t1": 0.5, "interpolant": None}
    step = SimpleNamespace(**state, events=[])
    assert stepper.PhaseStepper.recording_hook(this, step) is step
    assert gone == [1]
    assert [e.name for e in step.events] == ["c1 opens"]
    assert kept == ["motion"]


@pytest.mark.parametrize("margin", [[1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
@pytest.mark.parametrize("regular", [True, False])
def test_redundant_forces_are_centred_unless_a_contact_gives_way(monkeypatch, margin, regular):
    motion = SimpleNamespace(regular=regular, force=np.ones((2, 3)))
    found = stepper.Loads(motion, np.array(margin), {})
    mode = SimpleNamespace(closed=np.arange(2), force=np.zeros((2, 3)), kind=np.full(2, SLIDES))
    monkeypatch.setattr(stepper, "loads", lambda *a: found)
    monkeypatch.setattr(stepper, "centre", lambda *a: np.full((2, 3), 7.0))
    dynamics = SimpleNamespace(instant=lambda *a: None, motion=lambda *a: "centred")
    this = SimpleNamespace(transitions=SimpleNamespace(mode=mode), dynamics=dynamics)
    step = SimpleNamespace(t1=0.0, q1=None, qd1=None, tau=None)
    centred = not regular and min(margin) > 0
    after = stepper.PhaseStepper._loads(this, step)
    assert after.motion == ("centred" if centred else motion)
    assert np.all(mode.force == (7.0 if centred else 0.0))
