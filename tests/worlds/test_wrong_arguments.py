"""Wrong arguments of steps and setters end in errors of kinetree; errors of users pass."""

import contextlib

import numpy as np
import pytest

import kinetree as kt

WRONG = (None, "x", b"x", 3.5, -1, [1, "y"], {"nobody": 1}, object(), np.zeros((2, 2)), 1 + 2j)


@pytest.fixture(scope="module")
def world():
    found = kt.World()
    found.add_ground()
    found.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, name="box", on="ground")
    found.add("panda", name="arm", at=(1, 0, 0))
    found.step()
    return found


def ends_in_ours(call):
    """Let a call end well, or in an error of kinetree."""
    with contextlib.suppress(kt.KinetreeError):
        call()


@pytest.mark.parametrize("x", WRONG, ids=lambda x: type(x).__name__)
def test_steps_and_setters(world, x):
    start = world.state
    ends_in_ours(lambda: world.step(x))
    ends_in_ours(lambda: world.step(1, x))
    ends_in_ours(lambda: world.step(1, {"arm": x}))
    ends_in_ours(lambda: world.step(1, np.array([x] * len(world.model.actuators))))
    ends_in_ours(lambda: world.step(1, tau=x))
    ends_in_ours(lambda: world.step(1, tau={"arm": x}))
    ends_in_ours(lambda: world.step(1, forces=x))
    ends_in_ours(lambda: world.step(1, forces={"box": x}))
    for name in ("time", "timestep", "q", "qd"):
        ends_in_ours(lambda name=name: setattr(world, name, x))
    for name in ("q", "qd", "pose"):
        ends_in_ours(lambda name=name: setattr(world["box"], name, x))
    world.timestep = 2e-3
    world.set_state(start)
    world.step()
    assert np.isfinite(world.q).all()


def test_messages_name_what_was_called_and_what_may_have_been_meant(world):
    with pytest.raises(kt.KinetreeError, match=r"step has no argument 'force'.*'forces'"):
        world.step(1, force=(0, 0, 1))
    with pytest.raises(TypeError, match=r"step.*it is called as step\(n=1, control=None, "):
        world.step(1, None, 2)
    with pytest.raises(kt.KinetreeError, match=r"World.q: could not convert string to float: 'x'"):
        world.q = "x"
    with pytest.raises(kt.KinetreeError, match=r"World.step: could not convert string to float"):
        world.step(1, tau="x")


def test_errors_of_controllers_pass(world):
    class OwnError(ValueError):
        pass

    def controller(t, q, qd):
        raise OwnError("mine")

    with pytest.raises(OwnError) as caught:
        world.step(1, controller)
    assert type(caught.value) is OwnError
