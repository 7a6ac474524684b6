"""The files on the page about formats load, and mean what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.sdf_files import poses

import kinetree as kt
from kinetree.joints import KINDS
from kinetree.loaders import loads
from kinetree.model.dh import _KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs/formats.md").read_text(encoding="utf-8")
FORMATS = {"toml": "toml", "csv": "dh", "xml": "sdf"}
FILES = [
    (FORMATS[language], text)
    for language, text in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
    if language in FORMATS
]


@pytest.mark.parametrize(("format", "text"), FILES)
def test_file_on_the_page_loads_without_a_notice(format, text):
    loads(text, format)


def named(name):
    return next(m for m in (loads(text, f) for f, text in FILES) if m.name == name)


def test_the_page_has_the_files_it_speaks_of():
    names = [loads(text, f).name for f, text in FILES]
    assert names == ["arm", "cam", "slider-crank", "puma560", "ur5", "arm"]
    assert [loop.name for loop in named("slider-crank").loops] == ["small end"]


def test_the_ur5_stands_where_its_maker_says():
    """Stretched out: the reach is the sum of both links, the height of the two distances."""
    tool = poses(named("ur5"))["tool"][:3, 3]
    np.testing.assert_allclose(tool, [-0.425 - 0.39225, -0.10915 - 0.0823, 0.089159 - 0.09465])


def test_the_page_lists_every_joint():
    rows = re.findall(r"^\| (`[a-z_`, ]+) \|", PAGE.split("### Joints")[1], re.M)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set({kind.spelling for kind in KINDS}) <= listed


def test_the_page_lists_every_kind_of_dh_row():
    text = PAGE.split("## Denavit")[1]
    assert all(f"`{kind}`" in text for kind in _KINDS)
    assert kt.from_dh
