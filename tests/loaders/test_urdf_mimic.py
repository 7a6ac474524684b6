"""Mimic joints are couplings."""

import pytest
from support.urdf_files import joint, link, quietly, read, robot

from kinetree.errors import LoadError
from kinetree.model import Coupling


def chain(*mimics, kinds=None):
    """Joints j0, j1, ... in a row, each with its mimic."""
    links = [link(f"l{i}") for i in range(len(mimics) + 1)]
    kinds = kinds or ["continuous"] * len(mimics)
    joints = [
        joint(f"j{i}", f"l{i}", f"l{i + 1}", k, m)
        for i, (m, k) in enumerate(zip(mimics, kinds, strict=True))
    ]
    return robot(*links, *joints)


def test_mimic_is_a_coupling():
    model = quietly(chain("", "<mimic joint='j0' multiplier='-2' offset='0.5'/>"))
    assert model.couplings == (Coupling("j1_mimic", 2, 1, (0.5, -2.0)),)


def test_mimic_without_numbers_follows_one_to_one():
    model = quietly(chain("<mimic joint='j1'/>", ""))
    assert model.couplings == (Coupling("j0_mimic", 1, 2, (0.0, 1.0)),)


def test_chains_are_multiplied_out():
    second = "<mimic joint='j0' multiplier='2' offset='1'/>"
    third = "<mimic joint='j1' multiplier='3' offset='-1'/>"
    model = quietly(chain("", second, third))
    assert model.couplings[1] == Coupling("j2_mimic", 3, 1, (2.0, 6.0))


def test_a_joint_that_follows_a_fixed_one_stands_still():
    model = quietly(chain("", "<mimic joint='j0' offset='0.25'/>", kinds=["fixed", "continuous"]))
    assert model.couplings[0].source == 0
    assert model.couplings[0].coefficients == (0.25,)


def test_mimic_survives_a_floating_base_and_lumping():
    text = chain("", "", "<mimic joint='j0'/>", kinds=["continuous", "fixed", "continuous"])
    model = quietly(text, floating_base=True)
    [coupling] = model.couplings
    assert [model.joint_names[i - 1] for i in (coupling.joint, coupling.source)] == ["j2", "j0"]


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        (chain("", "<mimic joint='nobody'/>"), "there is no joint 'nobody' to follow"),
        (
            chain("", "<mimic joint='j0'/>", kinds=["continuous", "fixed"]),
            "a fixed joint follows nothing",
        ),
    ],
)
def test_mimics_that_say_nothing_are_noted(text, notice):
    model, notices = read(text)
    assert notice in notices[0]
    assert model.couplings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (chain("<mimic joint='j0'/>"), "<mimic joint='j0'>: joint 'j0' mimics itself, in a circle"),
        (chain("<mimic joint='j1'/>", "<mimic joint='j0'/>"), "joint 'j0' mimics itself"),
        (chain("", "<mimic joint='j2'/>", "<mimic joint='j1'/>"), "joint 'j1' mimics itself"),
        (chain("", "<mimic/>"), "<mimic>: attribute 'joint' is missing"),
        (chain("", "<mimic joint='j0' multiplier='x'/>"), "'multiplier' must hold numbers"),
        (
            chain("", "<mimic joint='j0'/>", kinds=["floating", "continuous"]),
            "6 degrees of freedom",
        ),
    ],
)
def test_mimics_that_cannot_be(text, message):
    with pytest.raises(LoadError, match=message):
        read(text)


def test_a_name_that_is_taken_does_not_stop_a_mimic():
    text = chain("", "<mimic joint='j0'/>").replace("'j0'", "'j1_mimic'")
    assert quietly(text).couplings[0].name == "j1_mimic_"
