"""What a model must satisfy, message by message."""

import numpy as np
import pytest

from kinetree.algorithms import aba
from kinetree.errors import ModelError, ModelWarning, SingularError
from kinetree.joints import Fixed, Free, Prescribed, Prismatic, Revolute, Spherical
from kinetree.model import Body, Frame, Limits, Loop, Model, ModelBuilder, shapes
from kinetree.model.validate import check_model, inertia_defect, joints_without_inertia
from kinetree.samples import humanoid, random_inertia
from kinetree.spatial import Inertia, Plucker, xlt

ROD = shapes.cylinder(0.1, 1.0, mass=2.0)


def model_with(*, frames=(), loops=(), gravity=(0, 0, -9.81), **changes):
    parts = {
        "name": "arm",
        "parent": 0,
        "joint": Revolute("z"),
        "placement": xlt(0, 0, 1),
        "inertia": ROD,
        "joint_name": "j",
    }
    arm = Body(**(parts | changes))
    hand = Body("hand", 1, Revolute("x"), xlt(1, 0, 0), ROD, "wrist")
    return Model((arm, hand), frames=frames, loops=loops, gravity=gravity)


def inertia(m=1.0, I=((1, 0, 0), (0, 1, 0), (0, 0, 1))):
    return Inertia(m, np.zeros(3), np.array(I))


REFLECTION = Plucker(np.diag([1.0, 1.0, -1.0]), np.zeros(3))

CASES = {
    "parent outside": (
        {"parent": 7},
        r"parent of body 1 \('arm'\) is 7; the model has bodies 0 to 2",
    ),
    "cycle": (
        {"parent": 2},
        r"circle, not on the base: 1 \('arm'\) -> 2 \('hand'\) -> 1 \('arm'\)",
    ),
    "empty name": ({"name": ""}, "body name must be a non-empty string, got ''"),
    "number as name": ({"joint_name": 3}, "joint name must be a non-empty string, got 3"),
    "twice a body": ({"name": "hand"}, "body name 'hand' is used 2 times; names must be unique"),
    "twice a joint": ({"joint_name": "wrist"}, "joint name 'wrist' is used 2 times"),
    "loop named as a joint": ({"loops": [Loop("j", 1, 2)]}, "joint name 'j' is used 2 times"),
    "frame named as a body": (
        {"frames": [Frame("arm", 1)]},
        "frame name 'arm' is also a body name",
    ),
    "frame on nothing": (
        {"frames": [Frame("eye", 3)]},
        "frame 'eye' refers to body 3; the model has bodies 0 to 2",
    ),
    "no joint": (
        {"joint": "revolute"},
        r"joint 'j' must be a joint such as Revolute\('z'\), got 'revolute'",
    ),
    "class for joint": ({"joint": Revolute}, "got the class Revolute"),
    "no transform": (
        {"placement": np.zeros(3)},
        r"placement of joint 'j' must be a Plücker transform such as xlt\(x, y, z\), got ndarray",
    ),
    "reflection": (
        {"placement": REFLECTION},
        "placement of joint 'j' is not a proper rotation.*det E = -1",
    ),
    "scaled rotation": (
        {"placement": Plucker(2 * np.eye(3), np.zeros(3))},
        "E Eᵀ differs from 1 by 3",
    ),
    "infinite place": (
        {"placement": xlt(0, np.inf, 0)},
        r"position in the placement of joint 'j' must be finite, got \[0.0, inf, 0.0\]",
    ),
    "odd shape": (
        {"placement": Plucker(np.eye(3), np.zeros(2))},
        r"position in the placement of joint 'j' must have shape \(3,\), got \(2,\)",
    ),
    "no inertia": (
        {"inertia": 2.0},
        "inertia of body 'arm' must be an Inertia such as .*, got float",
    ),
    "NaN mass": (
        {"inertia": inertia(np.nan)},
        "mass in the inertia of body 'arm' must be finite, got nan",
    ),
    "NaN inertia": (
        {"inertia": inertia(I=np.full((3, 3), np.nan))},
        "rotational part of the inertia of body 'arm' must be finite",
    ),
    "inertia shape": (
        {"inertia": inertia(I=np.eye(2))},
        r"rotational part of the inertia of body 'arm' must have shape \(3, 3\)",
    ),
    "text mass": (
        {"inertia": inertia("heavy")},
        "mass in the inertia of body 'arm' must hold numbers, got 'heavy'",
    ),
    "negative mass": (
        {"inertia": inertia(-1.0)},
        "physically impossible: mass must not be negative, got -1 kg",
    ),
    "massless with inertia": ({"inertia": inertia(0.0)}, "a body without mass cannot have"),
    "asymmetric": (
        {"inertia": inertia(I=[[1, 1, 0], [0, 1, 0], [0, 0, 1]])},
        "rotational inertia must be symmetric, is off by 1",
    ),
    "negative moment": (
        {"inertia": inertia(I=np.diag([1, 1, -0.5]))},
        "principal moments must not be negative, got -0.5, 1, 1",
    ),
    "triangle": (
        {"inertia": inertia(I=np.diag([1, 1, 3]))},
        "no principal moment may exceed the sum of the other two, got 1, 1, 3",
    ),
    "gravity shape": ({"gravity": -9.81}, r"gravity must have shape \(3,\), got \(\)"),
    "gravity NaN": ({"gravity": (0, 0, np.nan)}, "gravity must be finite"),
    "gravity text": ({"gravity": "xyz"}, "gravity must have shape"),
    "limits type": ({"limits": (-1, 1)}, "limits of joint 'j' must be Limits, got tuple"),
    "limits size": (
        {"limits": Limits((0, 0), 1)},
        "limits of joint 'j': lower needs 1 entries, got 2",
    ),
    "limits order": ({"limits": Limits(2, 1)}, "lower bound 2 is above upper bound 1"),
    "limits NaN": (
        {"limits": Limits(np.nan, 1)},
        "lower is not a number; leave it out or use infinity",
    ),
    "limits sign": ({"limits": Limits(effort=-3)}, "effort must not be negative, got -3"),
    "loop to itself": (
        {"loops": [Loop("tie", 2, 2)]},
        "loop joint 'tie' connects body 'hand' to itself",
    ),
    "loop to nothing": ({"loops": [Loop("tie", 2, 9)]}, "loop joint 'tie' refers to body 9"),
    "loop without joint": (
        {"loops": [Loop("tie", 1, 2, joint=None)]},
        "loop joint 'tie' must be a joint such as",
    ),
    "loop placement": (
        {"loops": [Loop("tie", 1, 2, successor_placement=REFLECTION)]},
        "successor placement of loop joint 'tie' is not a proper rotation",
    ),
}


@pytest.mark.parametrize(("changes", "message"), CASES.values(), ids=CASES.keys())
@pytest.mark.covers("RBDA 4.6", "6-D Guide 2: Model Data Structure", by=check_model)
def test_message(changes, message):
    with pytest.raises(ModelError, match=message):
        model_with(**changes)


def test_a_sound_model_passes():
    loops, frames = [Loop("tie", 1, 2)], [Frame("eye", 2)]
    assert model_with(limits=Limits(-1, 1, 2, 3), loops=loops, frames=frames).nv == 2


def test_parts_of_the_wrong_kind():
    with pytest.raises(ModelError, match="a model needs Body objects here, got str; ModelBuilder"):
        Model(("arm",))
    with pytest.raises(ModelError, match="needs Frame objects here, got Loop"):
        Model((), frames=(Loop("a", 0, 1),))


@pytest.mark.covers("Lynch & Park 9.2", by=inertia_defect)
def test_impossible_inertias_are_distinguished_from_possible_ones(rng):
    assert "exceed the sum" in inertia_defect(inertia(I=np.diag([1.0, 1.0, 3.0])))
    assert inertia_defect(inertia(I=np.diag([1.0, 1.0, 2.0]))) is None  # a lamina just does it
    for _ in range(20):
        assert inertia_defect(random_inertia(rng)) is None
    assert inertia_defect(Inertia.zero()) is None


def test_impossible_inertias_only_warn_when_not_strict():
    body = Body("a", 0, Fixed(), Plucker.identity(), inertia(-1.0), "j")
    with pytest.warns(ModelWarning, match="mass must not be negative"):
        model = Model((body,), strict=False)
    with pytest.warns(ModelWarning, match="mass must not be negative"):
        assert model.replace(name="again").name == "again"


def test_joints_that_move_no_inertia_are_named():
    builder = ModelBuilder().body("arm", joint=Revolute("z"), inertia=ROD)
    assert joints_without_inertia(builder.build()) == ()
    massless = builder.body("laser", on="arm", joint=Revolute("x")).build()
    assert joints_without_inertia(massless) == ("laser_joint",)
    assert "no forward dynamics: laser_joint would move no inertia" in massless.summary()
    with pytest.raises(SingularError, match="joint 'laser_joint' moves no inertia"):
        aba.forward_dynamics(massless, np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(
    ("joint", "mass", "idle"),
    [
        (Revolute("z"), shapes.rod(1.0, mass=1.0), True),  # a rod has no inertia about itself
        (Revolute("x"), shapes.rod(1.0, mass=1.0), False),
        (Spherical(), shapes.point(mass=1.0, at=(0, 0, 1)), True),
        (Free(), shapes.sphere(0.1, mass=1.0), False),
        (Prismatic("x"), shapes.point(mass=1e-6), False),
        (Fixed(), Inertia.zero(), False),
        (Prescribed(Revolute("z"), lambda t: ([t], [1], [0])), Inertia.zero(), False),
    ],
)
def test_which_joints_move_no_inertia(joint, mass, idle):
    model = ModelBuilder().body("a", joint=joint, inertia=mass).build()
    assert joints_without_inertia(model) == (("a_joint",) if idle else ())


def test_all_joints_of_the_humanoid_move_something():
    assert joints_without_inertia(humanoid()) == ()
