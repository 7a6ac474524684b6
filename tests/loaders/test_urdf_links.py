"""Inertias of links."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.urdf_files import MASS, arm, joint, link, loud, quietly, read, robot

from kinetree import loaders
from kinetree.errors import LoadError
from kinetree.spatial import Inertia
from kinetree.spatial.rotation import euler_rotation


def tip_with(inertial, **options):
    text = robot(
        link("base", ""), link("tip", inertial), joint("j", "base", "tip", "continuous", "")
    )
    return read(text, **options)


def test_inertia_at_the_centre_of_mass():
    model, _ = tip_with(MASS)
    expected = Inertia.from_mass_center(
        2.0, np.zeros(3), np.array([[0.1, 0.01, 0], [0.01, 0.2, 0], [0, 0, 0.25]])
    )
    assert_close(model.inertia[1].to_matrix(), expected.to_matrix(), ulps=1)


def test_origin_of_the_inertial_shifts_and_turns():
    origin = "<origin xyz='0.1 0.2 0.3' rpy='0.4 -0.5 0.6'/>"
    model, notices = tip_with(MASS.replace("<mass", origin + "<mass"))
    E = euler_rotation("zyx", (0.6, -0.5, 0.4))
    I_C = E.T @ np.array([[0.1, 0.01, 0], [0.01, 0.2, 0], [0, 0, 0.25]]) @ E
    expected = Inertia.from_mass_center(2.0, np.array([0.1, 0.2, 0.3]), I_C)
    assert_close(model.inertia[1].to_matrix(), expected.to_matrix(), ulps=4)
    assert notices == []


@pytest.mark.parametrize(
    ("origin", "effect"),
    [("xyz='0 -0 0.0' rpy='0 0 0'", "setting"), ("", "setting"), ("rpy='0 0 1e-3'", "motion")],
)
def test_an_origin_of_a_link_is_skipped_as_elsewhere(tmp_path, origin, effect):
    base, tip = link("base", ""), link("tip", f"<origin {origin}/>" + MASS)
    path = tmp_path / "arm.urdf"
    path.write_text(robot(base, tip, joint("j", "base", "tip", "continuous", "")))
    model, (notice,) = loaders.read(path)[:2]
    assert (notice.what, notice.effect) == ("<origin>", effect)
    assert notice.why.startswith("a link has none in URDF, and other programs skip it, too")
    assert not np.any(model.inertia[1].first_moment)


def test_link_without_inertial_is_massless():
    model, notices = tip_with("")
    assert model.inertia[1].mass == 0
    assert notices == []


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ("ixx='1' iyy='0.1' izz='0.1'", "no principal moment may exceed the sum of the other two"),
        ("ixx='1' iyy='-1' izz='1'", "principal moments must not be negative"),
    ],
)
def test_impossible_inertia_is_noted_with_the_line_and_kept(numbers, why):
    text = f"<inertial><mass value='1'/>\n<inertia {numbers}/></inertial>"
    model, notices = tip_with(text)
    assert notices[0].startswith("r.urdf:3: inertia of link 'tip': physically impossible, kept")
    assert why in notices[0]
    assert len(notices) == 1
    assert model.inertia[1].rotational[0, 0] == 1
    assert not model.strict


def test_possible_inertias_make_a_strict_model():
    assert quietly(arm()).strict


def test_inertia_without_mass_is_impossible_too():
    text = "<inertial><mass value='0'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
    assert "a body without mass cannot have" in tip_with(text)[1][0]


@pytest.mark.parametrize(
    ("inertial", "message"),
    [
        ("<inertial/>", "r.urdf:3: <inertial>: has no <mass>"),
        ("<inertial><mass value='1'/></inertial>", "<inertial>: has no <inertia>"),
        ("<inertial><mass/></inertial>", "<mass>: attribute 'value' is missing"),
        ("<inertial><mass value='nan'/></inertial>", "'value' must be finite, got 'nan'"),
        ("<inertial><mass value='1 2'/></inertial>", "'value' must be a number, got '1 2'"),
        (MASS.replace("ixx='0.1'", ""), "<inertia>: attribute 'ixx' is missing"),
        (MASS.replace("'2'", "'1e300'"), "'value' must be below 1e.50 in size, got '1e300'"),
        (MASS.replace("<mass", "<origin xyz='0 0'/><mass"), "'xyz' must be 3 numbers, got '0 0'"),
    ],
)
def test_what_is_wrong_with_an_inertial(inertial, message):
    with pytest.raises(LoadError, match=message):
        tip_with(inertial)


def test_strict_rejects_an_impossible_inertia():
    text = robot(
        link("base", ""),
        link("tip", MASS.replace("'0.25'", "'9'")),
        joint("j", "base", "tip", "continuous", ""),
    )
    with pytest.raises(LoadError, match="physically impossible"):
        loud(text, strict=True)
