"""Models as plain data and back."""

import copy
import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from support.mechanisms import assert_same_parts, gripper
from support.special_joints import Slot

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.joints import REPRESENTATIVES, Fixed, Prescribed, Revolute
from kinetree.model import Limits, Model, ModelBuilder
from kinetree.model.serialize import from_dict, to_dict
from kinetree.samples import four_bar, humanoid, panda, random_inertia, random_tree


@pytest.mark.parametrize(
    "model", [panda(), humanoid(), four_bar(), random_tree(40, 1)], ids=lambda m: m.name
)
@pytest.mark.covers("RBDA 4.6", by=(to_dict, from_dict))
def test_through_json_and_back_is_the_same_model(model):
    text = json.dumps(model.to_dict(), allow_nan=False)
    again = Model.from_dict(json.loads(text))
    assert again == model
    assert again.fingerprint == model.fingerprint
    assert json.dumps(again.to_dict()) == text


@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=repr)
def test_every_joint_survives(joint, rng):
    model = ModelBuilder().body("a", joint=joint, inertia=random_inertia(rng)).build()
    again = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again.joint[1] == joint
    assert again == model


def test_infinite_limits_survive():
    limits = Limits(-np.inf, 1.0, np.inf)
    model = ModelBuilder().body("a", joint=Revolute("z"), limits=limits).build()
    data = model.to_dict()
    assert data["bodies"][0]["limits"] == {
        "lower": [None], "upper": [1.0], "velocity": [None], "effort": [],
    }  # fmt: skip
    assert Model.from_dict(data).bodies[0].limits == limits


def test_joints_of_ones_own_are_given_by_class():
    model = ModelBuilder().body("a", joint=Slot(0.3)).build()
    data = json.loads(json.dumps(model.to_dict()))
    with pytest.raises(ModelError, match=r"unknown joint type 'Slot'.*joints=\["):
        Model.from_dict(data)
    assert Model.from_dict(data, joints=[Slot]) == model


def test_what_plain_data_cannot_express_is_rejected():
    driven = Prescribed(Revolute("z"), lambda t: ([t], [1], [0]))
    with pytest.raises(ModelError, match="joint 'a_joint' holds a function"):
        ModelBuilder().body("a", joint=driven).build().to_dict()
    with pytest.raises(ModelError, match=r"gravity holds a Fraction.*only models of floats"):
        panda().map_numbers(Fraction).to_dict()

    class Plain(type(Fixed()).__mro__[1]):
        nq = nv = 0
        jcalc, constraint_subspace, coordinates = Fixed.jcalc, Fixed.constraint_subspace, None

    with pytest.raises(ModelError, match="joint 'a_joint' is a Plain, which is not a dataclass"):
        ModelBuilder().body("a", joint=Plain()).build().to_dict()


@pytest.mark.parametrize("data", [{}, {"format": "urdf"}, [1, 2]])
def test_other_data_is_rejected(data):
    with pytest.raises(
        ModelError, match="expected a dictionary with format 'kinetree model 1', got"
    ):
        Model.from_dict(data)


def test_impossible_data_is_rejected():
    data = panda().to_dict()
    data["bodies"][0]["inertia"]["mass"] = -1.0
    with pytest.raises(ModelError, match="mass must not be negative"):
        Model.from_dict(data)


def test_a_class_of_ones_own_with_nested_joints():
    @dataclass(frozen=True)
    class Sticky(Fixed):
        inner: object = None

    model = ModelBuilder().body("a", joint=Sticky(Revolute((1.0, 2.0, 3.0)))).build()
    assert Model.from_dict(model.to_dict(), joints=[Sticky]) == model


class TestAttachments:
    def test_everything_goes_through_json_exactly(self, rng):
        model = gripper(rng)
        text = json.dumps(model.to_dict(), allow_nan=False)
        again = Model.from_dict(json.loads(text))
        assert again.fingerprint == model.fingerprint
        assert_same_parts(again, model)
        assert json.dumps(again.to_dict()) == text

    def test_data_from_before_there_were_any_can_be_read(self):
        model = panda().replace(geometry=(), actuators=(), postures=())
        model = model.replace(dynamics=dict.fromkeys(model.joint_names))
        data = model.to_dict()
        for name in ("couplings", "geometry", "actuators", "postures"):
            assert data.pop(name) == []
        for body in data["bodies"]:
            assert body.pop("dynamics") is None
        assert Model.from_dict(data) == model

    def test_unknown_shapes_are_rejected(self, rng):
        data = gripper(rng).to_dict()
        data["geometry"][0]["shape"]["type"] = "Torus"
        with pytest.raises(ModelError, match=r"unknown shape 'Torus'; known: .*'Box', 'Capsule'"):
            Model.from_dict(data)

    @pytest.mark.parametrize(
        ("entry", "value"),
        [
            ("bodies", 3), ("bodies", [3]), ("gravity", "down"), ("geometry", [{}]),
            ("couplings", None), ("actuators", [[]]), ("postures", [{"name": 1, "q": 2, "qd": 3}]),
        ],
    )  # fmt: skip
    def test_anything_else_is_a_model_error(self, rng, entry, value):
        with pytest.raises(ModelError):
            Model.from_dict(gripper(rng).to_dict() | {entry: value})


# --- numbers are numbers -------------------------------------------------------------------------

_WRONG = (None, "x", True, {}, [[1]], float("nan"))
_FREE = ("limits", "control", "effort", "friction", "torsion", "rolling", "lower", "upper")
"""Where null has a meaning: no limit, or the usual surface."""


def _places(x, path=()):
    """Paths to all leaves of plain data."""
    if isinstance(x, (dict, list)):
        for key, inner in x.items() if isinstance(x, dict) else enumerate(x):
            yield from _places(inner, (*path, key))
    else:
        yield path, x


def _with(data, path, value):
    changed = copy.deepcopy(data)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("name", ["panda", "four_bar", "cart_pole"])
def test_every_number_is_checked_by_the_schema(name):
    data, seen = kt.samples.load(name).to_dict(), set()
    for path, x in _places(data):
        kind = tuple("#" if isinstance(key, int) else key for key in path)
        if kind in seen or not isinstance(x, (int, float)):
            continue
        seen.add(kind)
        for wrong in _WRONG:
            if type(wrong) is type(x) and wrong == wrong:
                continue
            if wrong is None and any(key in _FREE for key in path):
                continue
            with pytest.raises(kt.KinetreeError):
                kt.Model.from_dict(_with(data, path, wrong))


@pytest.mark.parametrize(
    ("path", "wrong", "message"),
    [
        (("bodies", 0, "placement", "r", 1), None, "r must hold numbers, got"),
        (("bodies", 0, "limits", "upper", 0), True, r"upper of limits must hold numbers, got"),
        (
            ("geometry", 0, "visual"),
            "yes",
            "visual of geometry .* must be true or false, got 'yes'",
        ),
        (("actuators", 0, "gear", 0), None, "gear of actuator .* must be a list of numbers, got"),
        (("actuators", 0, "name"), 3, "name of actuator 3 must be text, got 3"),
    ],
)
def test_what_is_no_number_is_named(path, wrong, message):
    data = _with(kt.samples.panda().to_dict(), path, wrong)
    with pytest.raises(kt.ModelError, match=message):
        kt.Model.from_dict(data)
