"""Suggestions for names that are not known."""

import inspect

import pytest

import kinetree as kt
from kinetree.spelling import close_names, did_you_mean

PENDULUM = kt.samples.double_pendulum()


def test_a_close_name_is_suggested():
    assert did_you_mean("elbo", ["elbow", "wrist"]) == "did you mean 'elbow'?"
    assert did_you_mean("arm", ["arm1", "arm2"], most=2) == "did you mean 'arm2' or 'arm1'?"


def test_otherwise_some_of_what_there_is():
    assert did_you_mean("x", ["elbow", "wrist"]) == "known: 'elbow', 'wrist'"
    assert did_you_mean("x", [f"joint{k}" for k in range(30)]).endswith("... (30 in all)")
    assert did_you_mean("x", []) == "there are none"
    assert did_you_mean("x", ["elbow"], "look around") == "look around"


def test_enormous_names_take_no_time():
    assert close_names("a" * 10**7, ["b" * 10**5] * 10**4) == []


GUESSES = {
    "simulate has no argument 'timestep'; did you mean 'dt'": (
        lambda: kt.simulate(PENDULUM, [0, 0], duration=1.0, timestep=1e-3)
    ),
    "simulate has no argument 'duratoin'; did you mean 'duration'": (
        lambda: kt.simulate(PENDULUM, [0, 0], duratoin=1.0)
    ),
    r"missing.*'duration'; it is called as simulate\(model, q0=None, qd0=None, \*, duration, ": (
        lambda: kt.simulate(PENDULUM, [0, 0], [0, 0])
    ),
    "rollout has no argument 'n_steps'; did you mean 'steps'": (
        lambda: kt.rollout(PENDULUM, [0, 0], n_steps=5)
    ),
    "inverse_kinematics has no argument 'tol'; did you mean 'tolerance'": (
        lambda: kt.inverse_kinematics(PENDULUM, "lower", [0, 0, 0], tol=1e-3)
    ),
    "jacobian has no argument 'reference'; did you mean 'frame'": (
        lambda: kt.jacobian(PENDULUM, [0, 0], "lower", reference="world")
    ),
    "mass_matrix has no argument 'x'; known: 'model', 'q', 'independent'": (
        lambda: kt.mass_matrix(PENDULUM, [0, 0], x=1)
    ),
    "load has no argument 'floating'; did you mean 'floating_base'": (
        lambda: kt.load("robot.urdf", floating=True)
    ),
    "World has no argument 'dt'; did you mean 'timestep'": lambda: kt.World(dt=1e-3),
    "World.add has no argument 'pos'; did you mean 'at'": (
        lambda: kt.World().add("panda", pos=(0, 0, 1))
    ),
    "World.add_ground has no argument 'mu'; did you mean 'friction'": (
        lambda: kt.World().add_ground(mu=0.8)
    ),
    "optimize has no argument 'target'; did you mean 'goal'": (
        lambda: kt.control.optimize(PENDULUM, [0, 0], steps=2, dt=0.1, target=[0, 0])
    ),
    "QuadraticCost has no argument 'tau'; did you mean 'effort'": (
        lambda: kt.control.QuadraticCost(tau=0.1)
    ),
    "Environment has no argument 'num_envs'; did you mean 'worlds'": (
        lambda: kt.learning.Environment(PENDULUM, num_envs=1024)
    ),
    "body has no argument 'parent'; did you mean 'on'": (
        lambda: kt.ModelBuilder("arm").body("link", parent="base")
    ),
    r"takes 2 positional arguments but 4 were given; it is called as Box\(size\)": (
        lambda: kt.geometry.Box(0.1, 0.1, 0.1)
    ),
    r"missing 2.*it is called as box\(x, y, z, \*, mass=None, density=None, at=None\)": (
        lambda: kt.shapes.box((1, 1, 1), mass=3.0)
    ),
}


@pytest.mark.parametrize("message", GUESSES)
def test_a_wrong_argument_is_answered_by_the_right_one(message):
    with pytest.raises(TypeError, match=message):
        GUESSES[message]()


def test_a_type_error_from_inside_stays_as_it_is():
    def controller(t, q, qd):
        try:
            return {}["kp"]
        except KeyError:
            return controller(t, q, qd, kp=1.0)

    with pytest.raises(
        TypeError, match=r"^.*controller\(\) got an unexpected keyword argument 'kp'$"
    ) as found:
        kt.simulate(PENDULUM, [0, 0], duration=1e-3, controller=controller)
    assert isinstance(found.value.__context__, KeyError)
    assert not found.value.__suppress_context__


PUBLIC = {
    f"{space.__name__}.{name}": getattr(space, name)
    for space in (kt, kt.control, kt.shapes, kt.edit)
    for name in space.__all__
    if inspect.isfunction(getattr(space, name)) and name != "xlt"  # hot, and x, y, z are all
}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_says_what_arguments_it_has(name):
    function = PUBLIC[name]
    parameters = list(inspect.signature(function).parameters.values())
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    if len(required) == len(parameters) or parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        return  # it has no options, or passes them on
    args = [PENDULUM for p in required if p.kind is not p.KEYWORD_ONLY]
    named = {p.name: PENDULUM for p in required if p.kind is p.KEYWORD_ONLY}
    with pytest.raises(TypeError, match="has no argument '_wrong'; "):
        function(*args, **named, _wrong=1)
