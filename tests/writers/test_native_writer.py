"""Models as TOML read back as exactly themselves."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.special_joints import Slot

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.joints import REPRESENTATIVES, Prescribed, PrescribedInstant
from kinetree.loaders import load, loads
from kinetree.loaders.native.reader import VERSION
from kinetree.model import JointDynamics, geometry
from kinetree.samples.random_mechanisms import random_inertia, random_placement
from kinetree.writers.native import to_toml
from kinetree.writers.save import save


def assert_returns(model):
    text = to_toml(model)
    again = loads(text, "toml")
    assert again.to_dict() == model.to_dict()
    assert again.fingerprint == model.fingerprint
    return text


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(0, 12))
def test_random_trees_of_all_joints(seed, bodies):
    assert_returns(kt.samples.random_tree(bodies, seed))


@pytest.mark.parametrize("name", kt.samples.names())
def test_every_sample(name):
    assert_returns(getattr(kt.samples, name)())


NAMES = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from("\"'\\\n\r\t\0\x1f\x7f[]{}=#.,; \u2028é😀"),
    min_size=1,
)


@given(NAMES, NAMES, NAMES)
def test_names_of_any_kind(name, body, joint):
    m = (
        kt.ModelBuilder(name, base_name=f"{body} base")
        .body(body, joint=kt.Revolute("x"), joint_name=joint)
        .frame(f"{body} tip", on=body)
        .posture(name, q={joint: 0.5})
        .build()
    )
    text = to_toml(m)
    assert not any(ord(c) < 32 and c != "\n" for c in text)
    again = loads(text, "toml")
    assert again.to_dict() == m.to_dict()


def everything(rng):
    """A model with every kind of part, and numbers that are hard to write."""
    builder = kt.ModelBuilder("all", gravity=(0.1, 1e-300, -9.81), base_name="ground")
    on = None
    for i, joint in enumerate(REPRESENTATIVES):
        n, v = joint.nq, joint.nv
        builder.body(
            f"b{i}",
            on=on,
            joint=joint,
            at=random_placement(rng),
            inertia=random_inertia(rng),
            joint_name=f"j{i}",
            limits=kt.Limits([-math.inf] * n, [1e300] * n, [0.1] * v) if i % 3 else None,
            dynamics=JointDynamics([0.1] * v, [1 / 3] * v, [], [0.0] * v) if i % 2 else None,
        )
        on = f"b{i}" if i % 4 else None
    builder.frame("f", on="b3", at=random_placement(rng)).frame("g")
    builder.loop(
        "l",
        predecessor="b5",
        successor="b9",
        joint=kt.Planar((1, 2, 3)),
        at=random_placement(rng),
        successor_at=(1, 2, 3),
    )
    builder.loop("m", predecessor="ground", successor="b9", at=kt.rotx(0.3))
    builder.coupling("c", joint="j1", source="j2", coefficients=(0.1, 2, 0.3))
    builder.coupling("held", joint="j6", coefficients=(0.5,))
    for shape in (
        geometry.Box((1, 2, 3)), geometry.Sphere(0.1), geometry.Cylinder(1, 2),
        geometry.Capsule(1, 2), geometry.Ellipsoid((1, 2, 3)), geometry.Plane((3, 4)),
    ):  # fmt: skip
        builder.geometry(
            shape, on="b2", at=random_placement(rng), collision=False, color=(0, 0.5, 1, 0.25)
        )
    builder.geometry(geometry.Sphere(1 / 3), name="on the base", visual=False)
    builder.actuator("a", joint="j1", gear=100, control=(-1, 1), effort=(-math.inf, 7))
    builder.actuator("b", joint="j14", gear=rng.standard_normal(REPRESENTATIVES[14].nv))
    builder.posture("home").posture("moving", q={"j1": 0.1}, qd={"j2": -0.2})
    return builder.build()


def test_a_model_with_everything(rng):
    m = everything(rng)
    text = assert_returns(m)
    resting = m.replace(postures=[kt.model.Posture("rest", tuple(m.neutral()))])
    assert not loads(to_toml(resting), "toml").postures[0].moves
    text = assert_returns(loads(text, "toml"))
    assert assert_returns(loads(text, "toml")) == text


def test_joints_that_move_in_time():
    instant = PrescribedInstant(kt.Revolute("y"), (0.1,), (0.2,), (0.3,))
    assert_returns(kt.ModelBuilder().body("a", joint=instant).build())
    text = (
        "kinetree = 1\n[parameters]\nr = 0.1\n[[body]]\nname = 'a'\njoint = {type = 'prescribed', "
        "joint = {type = 'prismatic', axis = [1, 2, 3]}, motion = ['r*sin(t)']}\n[[body]]\n"
        "name = 'b'\njoint = {type = 'custom', variables = ['u', 'v'], at = ['u*r', '2 deg', 'v']}"
    )
    m = loads(text, "toml")
    again = loads(to_toml(m), "toml")
    assert again.fingerprint == m.fingerprint
    assert again.joint == m.joint


def test_numbers_stay_readable_where_they_can():
    builder = kt.ModelBuilder("arm").body(
        "rod",
        joint=kt.Revolute("-y"),
        at=(0, 0, 0.125),
        inertia=kt.Inertia.from_mass_center(2, (0, 0, 0.5), np.diag([3, 4, 5])),
        limits=kt.Limits(-1, 1),
    )
    assert assert_returns(builder.build()) == (
        f"kinetree = {VERSION}\n"
        'name = "arm"\n'
        'base = "base"\n'
        "gravity = [0.0, 0.0, -9.81]\n"
        "\n"
        "[[body]]\n"
        'name = "rod"\n'
        "at = [0.0, 0.0, 0.125]\n"
        'joint = { type = "revolute", axis = "-y" }\n'
        "inertia = { mass = 2, center = [0.0, 0.0, 0.5], moments = [3.0, 4.0, 5.0] }\n"
        "limits = { lower = -1.0, upper = 1.0 }\n"
    )
    quarter = kt.Plucker(np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]]), (0, 0, 0))
    text = assert_returns(kt.ModelBuilder().body("a", joint=kt.Fixed(), at=quarter).build())
    assert 'rpy = ["90 deg", 0, 0]' in text
    turned = loads("kinetree = 1\n[[frame]]\nname = 'f'\nrpy = [0.3, 0, 0.7]", "toml")
    assert "rpy = [0.3, 0, 0.7]" in assert_returns(turned)


def test_what_no_file_can_hold():
    slot = kt.ModelBuilder().body("a", joint=Slot()).build()
    with pytest.raises(ModelError, match="joint 'a_joint' is a Slot, which the native format does"):
        to_toml(slot)
    by_code = Prescribed(kt.Revolute("z"), lambda t: ([t], [1.0], [0.0]))
    with pytest.raises(ModelError, match="joint 'a_joint' moves by a Python function"):
        to_toml(kt.ModelBuilder().body("a", joint=by_code).build())
    half = kt.ModelBuilder("\ud800").build()
    with pytest.raises(ModelError, match="half a surrogate pair"):
        to_toml(half)
    symbolic = kt.samples.pendulum().map_numbers(Fraction)
    with pytest.raises(ModelError, match="holds a Fraction, which a TOML file cannot express"):
        to_toml(symbolic)


def test_saved_and_loaded(tmp_path, rng):
    m = everything(rng)
    save(m, tmp_path / "all.toml")
    assert load(tmp_path / "all.toml") == m
