"""Options of worlds: what cannot be one is told when the world is made, not by its first step."""

import dataclasses
from typing import Any

import pytest

import kinetree as kt
from kinetree.contact import TimeStepping
from kinetree.worlds.options import SETTINGS

WRONG = [
    ({"friction": "x"}, r"friction of world 'w' must be zero or positive, and finite, got 'x'"),
    ({"friction": -1.0}, r"friction of world 'w' must be zero or positive, and finite, got -1.0"),
    ({"friction": [0.5, 0.5]}, r"friction of world 'w' must be zero or .*, got \[0.5, 0.5\]"),
    ({"restitution": 2}, r"restitution of world 'w' must be from 0 to 1, got 2"),
    ({"tolerance": "x"}, r"tolerance of world 'w' must be between 0 and 1, got 'x'"),
    ({"limits": "x"}, r"limits must be 'stiff', 'rigid', None, .*, got 'x'"),
    ({"limits": 3}, r"limits must be 'stiff', 'rigid', None, .*, got int"),
    ({"joint_friction": "x"}, r"joint_friction must be 'smooth', 'exact', None .*, got 'x'"),
    ({"joint_friction": 0.1}, r"joint_friction must be 'smooth', 'exact', None .*, got float"),
    ({"sleeping": "no"}, r"sleeping of world 'w' must be True or False, got 'no'"),
    ({"strict": 2}, r"strict of world 'w' must be True or False, got 2"),
    ({"timestep": 0.0}, r"timestep must be a positive time in seconds, got 0.0"),
    ({"gravity": (0, -9.81)}, r"gravity must have shape \(3,\), got \(2,\)"),
    ({"rest_velocity": "x"}, r"rest_velocity must not be negative, got 'x'"),
    ({"correction_speed": 0}, r"correction_speed must be positive, got 0"),
    ({"rounds": None}, r"rounds must be positive, got None"),
    ({"slots": 2.5}, r"slots must be an integer from 1 to 64, got 2.5"),
    ({"conserving": "x"}, r"conserving must be True or False, got 'x'"),
    ({"stiffness": "x"}, r"stiffness of a controller must be one number or nv numbers, none nega"),
    ({"damping": -1.0}, r"damping of a controller must be one number or nv numbers, none nega"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_cannot_be_an_option_is_told_at_once(options, message):
    with pytest.raises(kt.KinetreeError, match=message):
        kt.World("w", **options)


def test_a_name_that_is_none_and_options_that_there_are_not():
    with pytest.raises(kt.ModelError, match=r"name of a world must be a string, got 3"):
        kt.World(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"World has no argument 'frictoin'.*friction"):
        kt.World(frictoin=0.5)


def test_usual_values_of_all_settings_are_options():
    usual: dict[str, Any] = {
        f.name: f.default for f in dataclasses.fields(TimeStepping) if f.name in SETTINGS
    }
    world = kt.World(limits=None, joint_friction=None, **usual)
    world.add_ground()
    box = world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, on="ground")
    world.step(10)
    assert abs(box.position[2] - 0.05) < 1e-9


def test_coefficients_may_be_functions():
    none: Any = lambda first, second: 0.0  # noqa: E731
    world = kt.World(friction=none, restitution=none)
    world.add_ground()
    box = world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, on="ground", velocity=(1, 0, 0))
    world.step(10)
    assert box.velocity[0] == pytest.approx(1.0, abs=1e-9)


def test_a_stiffness_of_another_size_is_told_by_what_knows_the_size():
    world = kt.World(stiffness=(1.0, 2.0))
    world.add_ground()
    world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, on="ground")
    with pytest.raises(kt.ModelError, match=r"stiffness of a controller must be .* nv = 6, none"):
        world.step()
