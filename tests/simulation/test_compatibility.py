"""The table of what does not go together: documented, reachable, and said in its words."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import EventDriven, Scene, SoftContact, TimeStepping
from kinetree.simulation.compatibility import CONFLICTS, conflict_table, conflicts
from kinetree.simulation.setup import compose_setup

PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


def test_the_page_has_the_table():
    page = PAGE.read_text(encoding="utf-8")
    assert conflict_table() in page, "put conflict_table() into docs/simulation.md"


def test_every_pair_is_there_once():
    pairs = [(c.first.title, c.second.title) for c in CONFLICTS]
    assert len(set(pairs)) == len(pairs)


BALL = kt.samples.pendulum()
LOOP = kt.samples.four_bar()
ROUGH = BALL.replace(
    dynamics={BALL.joint_names[0]: kt.JointDynamics(friction=0.1)},
    limits={BALL.joint_names[0]: kt.Limits((-1.0,), (1.0,))},
)


GUIDED = BALL.with_constraint("guide", position=lambda q, t: q[0] - np.sin(t), unit="rad")


def patch(model):
    return SoftContact(Scene(model, []), stiffness=1e4, damping=50.0, law="patch")


def motion(t):
    return 0 * t, 0 * t, 0 * t


def options_of(model):
    """Options, each of which conflicts with others."""
    return {
        "integrator": ("rk4", "semi_implicit_euler", "rosenbrock", "variational"),
        "constraints": ("projection", "projection+energy", "charts", "generalized_alpha"),
        "contact": (
            None,
            TimeStepping(Scene(model, [])),
            EventDriven(Scene(model, [])),
            TimeStepping(Scene(model, []), relaxation=0.1),
        ),
        "forces": ((), (lambda model, t, q, qd: 0 * qd,), (patch(model),)),
        "friction": ("smooth", "exact"),
        "limits": ("stiff", "rigid"),
        "prescribed": (None, {model.joint_names[0]: motion}),
        "adaptive": (False, True),
        "batch": ((), (3,)),
    }


def pairs_of(model):
    """Setups in which at most two options differ from the first, each of them once."""
    options = options_of(model)
    first = {name: values[0] for name, values in options.items()}
    others = [(name, value) for name, values in options.items() for value in values[1:]]
    yield first
    for k, (a, x) in enumerate(others):
        yield {**first, a: x}
        for b, y in others[:k]:
            if b != a:
                yield {**first, a: x, b: y}


ROUGH_LOOP = LOOP.replace(  # in the tree, and where the loop closes
    dynamics={name: kt.JointDynamics(friction=0.1) for name in ("crank_joint", LOOP.loops[0].name)},
    limits={name: kt.Limits((-9.0,), (9.0,)) for name in ("crank_joint", LOOP.loops[0].name)},
)


@pytest.fixture(scope="module")
def found():
    seen = {}
    for function in ("simulate", "rollout", "rollout_gradient", "Environment"):
        for model in (ROUGH, LOOP, GUIDED, ROUGH_LOOP):
            for given in pairs_of(model):
                for conflict, message in conflicts(compose_setup(function, model, **given)):
                    seen.setdefault(conflict, message)
    return seen


ABOUT_JOINTS = (
    "joints of your own",
    "`model.at(t)`",
    "`Prescribed` joints",
    "mechanisms without degrees",
)  # tested elsewhere


def test_every_conflict_can_happen(found):
    never = [(c.first.title, c.second.title) for c in CONFLICTS if c not in found]
    assert all(second.startswith(ABOUT_JOINTS) for _, second in never), never


def test_messages_name_both_and_say_what_to_do(found):
    for conflict, message in found.items():
        first, rest = message.split(" cannot be combined with ")
        second, _, advice = rest.partition(": ")
        assert first, message
        assert second, message
        assert advice.endswith(conflict.instead.replace("`", ""))
        assert "`" not in message


def test_simulate_and_rollouts_raise_the_error_of_the_table():
    @kt.kernel
    def cost(model, q):
        return q[0]

    q = np.array(LOOP.posture("home").q)
    words = "integrator 'variational' cannot be combined with the loops of model"
    with pytest.raises(kt.LoopError, match=words):
        kt.simulate(LOOP, q, duration=0.1, integrator="variational")
    with pytest.raises(kt.LoopError, match=words):
        kt.rollout(LOOP, q, steps=1, integrator="variational")
    with pytest.raises(kt.LoopError, match=words):
        kt.rollout_gradient(LOOP, q, steps=1, integrator="variational", terminal=cost)
    words = "without contact=TimeStepping.* cannot be combined with exact friction of joint"
    for call in (partial(kt.simulate, duration=0.1), partial(kt.rollout, steps=1)):
        with pytest.raises(kt.ModelError, match=words):
            call(ROUGH_LOOP, q, friction="exact", limits=None)
    with pytest.raises(
        kt.UnknownNameError, match=r"^rollout_gradient cannot be combined with exact"
    ):
        kt.rollout_gradient(ROUGH, [0.0], steps=1, friction="exact", terminal=cost)
