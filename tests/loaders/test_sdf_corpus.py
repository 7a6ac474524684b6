"""SDF as strangers write it: what only changes pictures or contact never refuses a robot."""

import numpy as np
import pytest
from loaders.sdf_corpus import FILES, MOTION, PICTURES, QUIET, REFUSED
from support.urdf_files import read_as_file

from kinetree.algorithms.crba import joint_space_inertia
from kinetree.errors import LoadError


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file: the model, and notices."""
    return lambda text: read_as_file(tmp_path, text, "sdf")


@pytest.fixture
def plain(read):
    """Mass matrix of the plain file."""
    model, _ = read(FILES["plain"])
    return joint_space_inertia(model, model.neutral())


@pytest.mark.parametrize("name", FILES)
def test_what_has_a_reading_is_read(name, read, plain):
    model, notices = read(FILES[name])
    np.testing.assert_array_equal(joint_space_inertia(model, model.neutral()), plain)
    assert bool(notices) == (name not in QUIET), notices
    if name in PICTURES:
        assert "motion" not in {notice.effect for notice in notices}
    assert len({(n.line, n.what, n.why) for n in notices}) == len(notices)


def test_what_may_bear_on_the_motion_is_said(read):
    for name in MOTION:
        assert "motion" in {notice.effect for notice in read(FILES[name])[1]}, name


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_none_is_refused_with_the_line(name, read):
    text, message = REFUSED[name]
    with pytest.raises(LoadError, match=r"r\.sdf(:\d+)?: ") as error:
        read(text)
    assert message in str(error.value)
