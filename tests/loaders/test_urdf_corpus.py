"""Files as strangers write them: read as others read them, or refused for a reason."""

import mujoco
import numpy as np
import pinocchio
import pytest
from loaders.urdf_corpus import FILES, PICTURES, QUIET, REFUSED
from support.urdf_files import read_as_file

import kinetree as kt
from kinetree.errors import LoadError

ACCEPTED = [name for name in FILES if name not in REFUSED]
PLAIN = kt.mass_matrix(kt.loads(FILES["plain"]), np.zeros(1))
MOVES_OTHERWISE = {
    "mass zero", "mass negative", "inertia impossible", "second mimic", "inertia without ixy",
    "second mass", "second inertia",
}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file: the model, and notices."""
    return lambda text: read_as_file(tmp_path, text, "urdf")


def urdfdom(text):
    """The inertia of the first variable as Pinocchio has it, whose parser is urdfdom's; or None."""
    try:
        model = pinocchio.buildModelFromXML(text)
    except ValueError:
        return None
    if model.nv == 0:
        return 0.0
    return pinocchio.crba(model, model.createData(), pinocchio.neutral(model))[0, 0]


def mujoco_reads(text):
    """Whether MuJoCo's compiler reads a file."""
    settings = '<mujoco><compiler discardvisual="true"/></mujoco><link name="a"/>'
    try:
        mujoco.MjModel.from_xml_string(text.replace('<link name="a"/>', settings, 1))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_has_a_reading_is_read(name, read):
    model, notices = read(FILES[name])
    assert bool(notices) == (name not in QUIET), notices
    if model.nv and name not in MOVES_OTHERWISE:
        assert kt.mass_matrix(model, model.neutral())[0, 0] == PLAIN[0, 0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_none_is_refused_with_the_line(name, read):
    with pytest.raises(LoadError, match=r"r\.urdf(:\d+)?: "):
        read(FILES[name])


def test_what_others_agree_on_is_read():
    """Refused is only what one of them refuses, too; but for a second robot in the same file."""
    refused = [name for name in REFUSED if urdfdom(FILES[name]) is not None]
    assert [name for name in refused if mujoco_reads(FILES[name])] == ["robot after the end"]


def test_masses_are_those_of_urdfdom(read):
    """Where it reads a file; without ``ixy`` it leaves out the whole inertia."""
    for name in ACCEPTED:
        theirs = urdfdom(FILES[name])
        model, _ = read(FILES[name])
        if theirs is None or not model.nv or name == "inertia without ixy":
            continue
        ours = kt.mass_matrix(model, model.neutral())[0, 0]
        if name not in ("second mimic", "mass negative"):  # it does not mimic; nor has it -2 kg
            assert ours == pytest.approx(theirs, rel=1e-12), name


@pytest.mark.parametrize("name", PICTURES)
def test_oddities_of_pictures_bear_on_pictures_alone(name, read):
    for kind, effects in (("visual", {"picture"}), ("collision", {"picture", "contact"})):
        model, notices = read(FILES[f"{kind}: {name}"])
        assert model.nv == 1
        assert {notice.effect for notice in notices} <= effects
