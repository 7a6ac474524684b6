"""Building models body by body."""

import pytest
from support.effort import assert_quick

from kinetree.errors import ModelError, UnknownNameError
from kinetree.joints import Fixed, Revolute
from kinetree.model import ModelBuilder
from kinetree.model.shapes import sphere


def test_bodies_may_come_before_their_parents():
    model = (
        ModelBuilder("arm")
        .frame("tool", on="hand", at=(0, 0, 1))
        .body("hand", on="fore", joint=Revolute("x"))
        .body("upper", joint=Revolute("z"))
        .loop("tie", predecessor="hand", successor="upper")
        .body("fore", on="upper", joint=Revolute("y"))
        .build()
    )
    assert model.body_names == ("base", "upper", "fore", "hand")
    assert model.parent == (-1, 0, 1, 2)
    assert model.joint_names == ("upper_joint", "fore_joint", "hand_joint")
    assert model.frame("tool").body == 3
    assert (model.loops[0].predecessor, model.loops[0].successor) == (3, 1)
    assert model.loops[0].joint == Fixed()


def test_regular_order_is_kept():
    builder = ModelBuilder()
    for name, on in (("a", None), ("b", None), ("c", "a"), ("d", "b"), ("e", "a")):
        builder.body(name, on=on, joint=Revolute("z"))
    assert builder.build().body_names == ("base", "a", "b", "c", "d", "e")


def test_base_may_be_named():
    model = ModelBuilder(base_name="ground").body("a", on="ground", joint=Fixed()).build()
    assert model.body_names == ("ground", "a")


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda b: b.body("hand", on="frearm", joint=Fixed()).body("forearm", joint=Fixed()),
            UnknownNameError,
            "parent of body 'hand' is 'frearm'.*did you mean 'forearm'",
        ),
        (
            lambda b: b.body("a", on="b", joint=Fixed()).body("b", on="a", joint=Fixed()),
            ModelError,
            r"in a circle.*1 \('a'\) -> 2 \('b'\) -> 1 \('a'\)",
        ),
        (
            lambda b: b.body("a", joint=Fixed()).body("a", joint=Fixed()),
            ModelError,
            "body name 'a' is used 2 times",
        ),
        (
            lambda b: b.body("base", joint=Fixed()),
            ModelError,
            "body name 'base' is used 2 times",
        ),
        (
            lambda b: b.frame("tool", on="hand"),
            UnknownNameError,
            r"body of frame 'tool' is 'hand'.*known: 'base'",
        ),
        (
            lambda b: b.loop("tie", predecessor="base", successor="hand"),
            UnknownNameError,
            "successor of loop 'tie' is 'hand'",
        ),
        (
            lambda b: b.body("a", joint=Fixed(), at=[[1, 2, 3]]),
            ModelError,
            "'at' must be a position of 3 numbers, a 4x4 pose as kinetree.pose returns it, or a Pl",
        ),
    ],
)
def test_messages(build, error, message):
    with pytest.raises(error, match=message):
        build(ModelBuilder()).build()


def test_building_takes_time_in_proportion_to_the_bodies():
    builder, link = ModelBuilder("chain"), sphere(0.1, mass=1)
    for k in range(10_000):
        on = f"b{k - 1}" if k else None
        builder.body(f"b{k}", on=on, joint=Revolute("y"), at=(0.1, 0, 0), inertia=link)
    assert_quick(builder.build, 4)  # 0.5 s; searching lists for names took 8
    assert builder.build().parent[-1] == 9999
