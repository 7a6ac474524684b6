"""``kinetree:`` elements."""

import numpy as np
import pytest
from support.urdf_files import arm, joint, link, quietly, read, robot

from kinetree.errors import LoadError
from kinetree.joints import REPRESENTATIVES, Fixed, Helical, Reversed, Revolute, Universal
from kinetree.loaders import loads
from kinetree.model import ModelBuilder
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import euler_rotation
from kinetree.writers.urdf import to_urdf

ENDS = """<predecessor link='a'><origin xyz='1 0 0'/></predecessor>
<successor link='b'><origin rpy='0 0 1'/></successor>"""


def looped(loop, attributes="xmlns:kinetree='urn:kinetree:urdf:1'"):
    return robot(
        link("base", ""),
        link("a"),
        link("b"),
        joint("i", "base", "a", "continuous", ""),
        joint("j", "base", "b", "continuous", ""),
        loop,
        attributes=attributes,
    )


@pytest.mark.parametrize(
    ("loop", "joint"),
    [
        ("<kinetree:loop name='l'>", Fixed()),
        ("<kinetree:loop name='l' type='revolute'><axis xyz='0 2 0'/>", Revolute("y")),
        ("<kinetree:loop name='l' type='continuous'>", Revolute("x")),
        (
            "<kinetree:loop name='l' type='helical' pitch='0.1'><axis xyz='0 0 1'/>",
            Helical("z", pitch=0.1),
        ),
        ("<kinetree:loop name='l' type='universal' axes='zy'>", Universal("zy")),
        ("<kinetree:loop name='l' type='universal' reversed='true'>", Reversed(Universal("xy"))),
    ],
)
def test_loops(loop, joint):
    model = quietly(looped(f"{loop}{ENDS}</kinetree:loop>"))
    [found] = model.loops
    assert (found.name, found.predecessor, found.successor) == ("l", 1, 2)
    assert found.joint == joint
    assert found.predecessor_placement.r.tolist() == [1, 0, 0]
    assert np.allclose(found.successor_placement.E, euler_rotation("zyx", (1, 0, 0)))


def test_loop_works_without_the_declaration_of_its_prefix():
    assert len(quietly(looped(f"<kinetree:loop name='l'>{ENDS}</kinetree:loop>", "")).loops) == 1


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (f"<kinetree:loop>{ENDS}</kinetree:loop>", "<kinetree:loop>: attribute 'name' is missing"),
        ("<kinetree:loop name='l'/>", "<kinetree:loop name='l'>: has no <predecessor>"),
        (f"<kinetree:loop name='i'>{ENDS}</kinetree:loop>", "the name 'i' is taken"),
        (
            f"<kinetree:loop name='l' type='x'>{ENDS}</kinetree:loop>",
            "unknown joint type 'x'; known",
        ),
        (f"<kinetree:loop name='l' type='helical'>{ENDS}</kinetree:loop>", "'pitch' is missing"),
        (f"<kinetree:loop name='l' type='universal' axes='q'>{ENDS}</kinetree:loop>", "'q'"),
        (f"<kinetree:loop name='l' reversed='maybe'>{ENDS}</kinetree:loop>", "'true' or 'false'"),
        (
            f"<kinetree:loop name='l'>{ENDS}</kinetree:loop>".replace("link='b'", "link='c'"),
            "<successor link='c'>: there is no link 'c'",
        ),
    ],
)
def test_what_is_wrong_with_a_loop(loop, message):
    with pytest.raises(LoadError, match=message):
        read(looped(loop))


def test_a_loop_from_a_body_to_itself_is_an_error():
    loop = f"<kinetree:loop name='l'>{ENDS}</kinetree:loop>".replace("link='b'", "link='a'")
    with pytest.raises(LoadError, match="loop joint 'l' connects body 'a' to itself"):
        loads(looped(loop), "urdf")


@pytest.mark.parametrize("kind", REPRESENTATIVES, ids=repr)
def test_every_joint_can_close_a_loop_and_be_written_and_read(kind, rng):
    at, there = (
        Plucker(euler_rotation("zyx", rng.uniform(-3, 3, 3)), rng.uniform(-1, 1, 3)) for _ in "ab"
    )
    model = (
        ModelBuilder("m")
        .body("a", joint=Revolute("x"))
        .body("b", joint=Revolute("y"))
        .loop("l", predecessor="a", successor="b", joint=kind, at=at, successor_at=there)
        .build()
    )
    [loop], [again] = model.loops, loads(to_urdf(model)).loops
    assert type(again.joint) is type(loop.joint)
    q = kind.random(rng)
    X, Y = loop.joint.transform(q), again.joint.transform(q)
    assert np.allclose(X.to_matrix(), Y.to_matrix(), atol=1e-14)
    for end in ("predecessor_placement", "successor_placement"):
        assert np.allclose(
            getattr(loop, end).to_matrix(), getattr(again, end).to_matrix(), atol=1e-14
        )


def test_armature_and_spring():
    inside = "<kinetree:dynamics armature='0.1' stiffness='5' rest='0.2'/><dynamics damping='3'/>"
    dynamics = quietly(arm("continuous", inside)).bodies[0].dynamics
    assert (dynamics.armature, dynamics.stiffness, dynamics.rest) == ((0.1,), (5.0,), (0.2,))
    assert (dynamics.damping, dynamics.friction) == ((3.0,), (0.0,))


def test_dynamics_without_numbers_are_none():
    dynamics = quietly(arm("continuous", "<kinetree:dynamics/>")).bodies[0].dynamics
    assert (dynamics.armature, dynamics.rest) == ((), ())


def test_damping_of_joints_with_several_variables():
    dynamics = quietly(arm("planar", "<kinetree:dynamics damping='1 2 3'/>")).bodies[0].dynamics
    assert dynamics.damping == (1.0, 2.0, 3.0)


def test_limits_of_joints_with_several_variables():
    inside = "<kinetree:limits lower='-1 -inf -3' upper='1 inf 3' effort='1 2 3'/>"
    limits = quietly(arm("planar", inside)).bodies[0].limits
    assert limits.lower == (-1.0, -np.inf, -3.0)
    assert limits.effort == (1.0, 2.0, 3.0)


def test_gravity_couplings_and_postures():
    text = arm(
        "continuous",
        "",
        """<kinetree:gravity xyz='0 0 -1.6'/>
    <kinetree:coupling name='c' joint='j' coefficients='0.5'/>
    <kinetree:posture name='home'><joint name='j' q='0.5' qd='1'/></kinetree:posture>""",
    )
    model = quietly(text)
    assert model.gravity.tolist() == [0, 0, -1.6]
    assert (model.couplings[0].name, model.couplings[0].coefficients) == ("c", (0.5,))
    assert (model.postures[0].q.size, model.postures[0].moves) == (0, False)  # the joint is held


@pytest.mark.parametrize(
    ("inside", "more", "message"),
    [
        ("<kinetree:dynamics armature='1 2'/>", "", "'armature' must be a number, got '1 2'"),
        ("<kinetree:limits lower='1 2'/>", "", "'lower' must be a number"),
        ("", "<kinetree:gravity xyz='1'/>", "'xyz' must be 3 numbers"),
        ("", "<kinetree:coupling name='c' joint='x' coefficients='0'/>", "there is no joint 'x'"),
        ("", "<kinetree:posture name='p'><joint name='j' q='a'/></kinetree:posture>", "'q' must"),
    ],
)
def test_what_is_wrong_with_other_elements(inside, more, message):
    with pytest.raises(LoadError, match=message):
        read(arm("continuous", inside, more))


def test_unknown_elements_of_kinetree_are_noted():
    assert (
        "<kinetree:magic>: kinetree does not use it"
        in read(arm("continuous", "", "<kinetree:magic/>"))[1][0]
    )
