"""Whole-body control in loops of compiled code: the same bits as by Python, through every door."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.control import Contact, FrameTask, PostureTask, WholeBody
from kinetree.errors import InfeasibleControlError, ShapeError, SimulationWarning

FEET = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
STEPS = 40


@pytest.fixture(scope="module")
def standing(dog):
    """The robot on the ground, as arguments of ``simulate``, and of ``rollout``."""
    robot = kt.contact.with_ground(dog)
    scene = kt.contact.Scene(robot, "feet", friction=0.8)
    return robot, {"contact": kt.contact.TimeStepping(scene, flight=False), "dt": 1e-3}


def stand(dog, **options):
    """A trunk that goes down a little."""
    home = dog.posture("home").q
    goal = kt.pose(dog, home, "trunk")
    goal[2, 3] -= 0.02
    tasks = [FrameTask("trunk", goal, kp=100.0), PostureTask(home, kp=20.0, weight=1e-2)]
    return WholeBody(dog, tasks, [Contact(f, friction=0.6) for f in FEET], **options)


def by_python(controller):
    """The controller as a function that compiled code cannot call."""
    return lambda t, q, qd: controller(t, q, qd)


def same(a, b):
    """Whether two motions are, with their forces, to the bit."""
    return all(np.array_equal(getattr(a, x), getattr(b, x)) for x in ("t", "q", "qd", "tau"))


def test_a_simulation_in_contact_has_the_bits_of_python(dog, standing):
    robot, options = standing
    home, duration = dog.posture("home").q, STEPS * 1e-3
    for store_every in (1, 7):
        given = options | {"duration": duration, "store_every": store_every}
        control = stand(dog)
        a = kt.simulate(robot, home, controller=control, **given)
        b = kt.simulate(robot, home, controller=by_python(stand(dog)), **given)
        assert same(a, b)
        assert np.abs(a.tau).max() > 1.0


def test_no_step_calls_python(dog, standing, monkeypatch):
    """Only the start and the end of a run do."""
    robot, options = standing
    control, calls, torques = stand(dog), [], WholeBody._torques
    monkeypatch.setattr(WholeBody, "_torques", lambda *a: calls.append(a) or torques(*a))
    kt.simulate(robot, dog.posture("home").q, duration=STEPS * 1e-3, controller=control, **options)
    assert len(calls) <= 2


def test_without_contact_too():
    m = kt.samples.panda()
    start = m.posture("home").q
    control = WholeBody(m, [PostureTask(start + 0.1, kp=50.0)])
    a = kt.simulate(m, start, duration=0.04, controller=control)
    b = kt.simulate(m, start, duration=0.04, controller=by_python(control))
    assert same(a, b)


def test_what_gives_way_gives_way_and_is_told(dog, standing):
    """Joints that turn so fast that neither limits nor contacts can hold."""
    robot, options = standing
    home, fast = dog.posture("home").q, np.zeros(18)
    fast[6:] = 15.0
    options = options | {"duration": 0.02}
    with pytest.warns(SimulationWarning, match="gives up joint limits"):
        a = kt.simulate(robot, home, fast, controller=stand(dog), **options)
    with pytest.warns(SimulationWarning, match="gives up joint limits"):
        b = kt.simulate(robot, home, fast, controller=by_python(stand(dog)), **options)
    assert same(a, b)


def test_a_strict_controller_ends_the_run_with_the_motion_so_far(dog, standing):
    """Where compiled code has no answer, Python is asked; here it raises the error."""
    robot, options = standing
    home, fast = dog.posture("home").q, np.zeros(18)
    fast[5] = 2.0  # it jumps, with legs that cannot follow for long
    errors = []
    for way in (lambda f: f, by_python):
        with pytest.raises(InfeasibleControlError) as caught:
            kt.simulate(robot, home, fast, duration=0.5, controller=way(stand(dog, strict=True)),
                        **options)  # fmt: skip
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])


def test_python_answers_where_compiled_code_cannot(dog, standing, monkeypatch):
    """As where rounding errors spoil a program: the motion goes on with the answer of Python."""
    robot, options = standing
    made = stand(dog)
    loop = WholeBody.loop

    def without(self, t, q, qd, out):
        found = loop(self, t, q, qd, out)
        found.strict = True  # so that Python is asked, which is not strict
        return found

    monkeypatch.setattr(WholeBody, "loop", without)
    fast = np.zeros(18)
    fast[6:] = 15.0
    given = options | {"duration": 0.01}
    with pytest.warns(SimulationWarning):
        a = kt.simulate(robot, dog.posture("home").q, fast, controller=made, **given)
    with pytest.warns(SimulationWarning):
        b = kt.simulate(
            robot, dog.posture("home").q, fast, controller=by_python(stand(dog)), **given
        )
    assert same(a, b)


def test_a_rollout_is_its_simulations(dog, standing, rng):
    robot, options = standing
    home, free = dog.posture("home").q, {"joint_limits": False}
    starts = np.array([dog.integrate(home, 0.002 * rng.standard_normal(18)) for _ in range(5)])
    starts[:, 2] += 0.004
    many = kt.rollout(robot, starts, steps=STEPS, controller=stand(dog, **free), **options)
    for k in (0, 4):
        control = by_python(stand(dog, **free))
        one = kt.simulate(robot, starts[k], duration=STEPS * 1e-3, controller=control, **options)
        assert np.array_equal(many.q[:, k], one.q)
        assert np.array_equal(many.tau[:, k], one.tau)


def two_dogs(dog):
    """A world of two, beside each other."""
    world, home = kt.World(timestep=1e-3), dog.posture("home").q
    world.add_ground(friction=0.8)
    world.add(dog, name="left", q=home)
    world.add(dog, name="right", q=home + np.eye(19)[1])
    return world


def test_parts_of_a_world_have_controllers_of_their_own(dog):
    """By ``step`` and by ``simulate``; the state that each is given is that of its part."""
    worlds = [two_dogs(dog) for _ in range(2)]
    control = stand(dog)
    for k in range(3):
        worlds[0].step(5, tau={"left": control, "right": np.zeros(18)} if k == 1 else
                       {"left": control, "right": control})  # fmt: skip
        other = np.zeros(18) if k == 1 else by_python(control)
        worlds[1].step(5, tau={"left": by_python(control), "right": other})
        assert np.array_equal(worlds[0].q, worlds[1].q)
    a = kt.simulate(two_dogs(dog), duration=0.02, controller={"left": control, "right": control})
    parts = {"left": by_python(control), "right": by_python(control)}
    b = kt.simulate(two_dogs(dog), duration=0.02, controller=parts)
    assert same(a, b)
    c = kt.rollout(two_dogs(dog), steps=20, controller={"left": control, "right": control})
    assert np.array_equal(c.q, b.q)
    with pytest.raises(ShapeError, match="part has"):
        worlds[0].step(tau={"left": WholeBody(kt.samples.arm(), [])})


def test_goals_that_depend_on_time_go_by_python(dog, standing):
    robot, options = standing
    goal = kt.pose(dog, dog.posture("home").q, "trunk")
    still = np.zeros(6)
    control = WholeBody(dog, [FrameTask("trunk", lambda t: (goal, still, still), kp=50.0)], FEET)
    assert control.compiled_control(robot) is None
    kt.simulate(robot, dog.posture("home").q, duration=3e-3, controller=control, **options)
    with pytest.raises(TypeError, match="depend on time"):
        kt.rollout(robot, dog.posture("home").q, steps=3, controller=control, **options)
