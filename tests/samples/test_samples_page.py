"""docs/samples.md: its table, its code and the drawing of what it shows."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from support.linkages import mobility

from kinetree import samples
from kinetree.model import geometry

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "samples.md").read_text(encoding="utf-8")


@pytest.fixture
def draw_samples(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, "draw_samples", raising=False)
    import draw_samples

    return draw_samples


def test_the_table_lists_every_sample_with_its_sizes():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", PAGE, re.M)
    assert tuple(row[0] for row in rows) == samples.names()
    for name, *numbers in rows:
        model = samples.load(name)
        freedoms = mobility(model, model.neutral()) if model.loops else model.nv
        assert [int(n) for n in numbers] == [model.nq, model.nv, len(model.loops), freedoms], name


def test_the_code_on_the_page_runs(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(block, "samples.md", "exec"), names)
    assert "leg1_stroke" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (geometry.Box((1, 2, 3)), 6),
        (geometry.Cylinder(1, 2), 2 * np.pi),
        (geometry.Sphere(1), 4 / 3 * np.pi),
        (geometry.Ellipsoid((1, 2, 3)), 8 * np.pi),
        (geometry.Capsule(1, 2), 2 * np.pi + 4 / 3 * np.pi),
    ],
)
def test_surfaces_are_closed_and_face_outwards(draw_samples, shape, volume):
    """By the divergence theorem: a third of the flux of the position is the volume."""
    a, b, c, d = draw_samples.patches_of(shape, count=200).transpose(1, 0, 2)
    middle, area = (a + b + c + d) / 4, np.cross(c - a, d - b) / 2
    assert np.sum(middle * area) / 3 == pytest.approx(volume, rel=2e-3)


def test_meshes_are_left_out_and_planes_are_flat(draw_samples):
    assert draw_samples.patches_of(geometry.Mesh("a.stl")) is None
    assert np.ptp(draw_samples.patches_of(geometry.Plane((2, 4)))[..., 2]) == 0


def test_a_model_can_be_drawn(draw_samples, tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model = samples.scara()
    figure = plt.figure(figsize=(2, 2))
    draw_samples.draw(figure.add_subplot(projection="3d"), model, model.neutral())
    figure.savefig(tmp_path / "scara.png")
    plt.close(figure)
    assert (tmp_path / "scara.png").stat().st_size > 1000


def test_the_picture_is_small():
    assert (DOCS / "samples.png").stat().st_size < 400_000
