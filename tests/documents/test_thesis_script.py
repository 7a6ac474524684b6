"""The script of the thesis: its numbers, and that it draws every figure."""

import importlib.util
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot

SCRIPT = Path(__file__).parents[2] / "examples" / "thesis_chapter_3.py"


@pytest.fixture(scope="module")
def thesis():
    found = importlib.util.spec_from_file_location("thesis_chapter_3", SCRIPT)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_it_uses_the_public_interface_alone():
    text = SCRIPT.read_text(encoding="utf-8")
    assert "from kinetree" not in text
    assert "import kinetree as kt" in text
    assert "._" not in text


def test_passes_are_where_quadrature_says(thesis):
    times = thesis.passes()
    np.testing.assert_allclose(times[:2], [0.6508, 1.8538], rtol=0, atol=1e-4)
    np.testing.assert_allclose(times[2], 3.9098, rtol=0, atol=1e-3)


def test_eigenvalues_of_both_equilibria(thesis):
    expected = {
        "stable": [-3.96891j, -3.37326j, 3.37326j, 3.96891j],
        "unstable": [-3.04077, -3.99237j, 3.99237j, 3.04077],
    }
    for name, (reduced, whole) in thesis.eigenvalues().items():
        for values, zeros in ((reduced, 0), (whole, 4)):
            assert np.sum(np.abs(values) < 1e-6) == zeros
            for value in expected[name]:
                assert np.min(np.abs(values - value)) < 1e-5


def test_matrices_of_the_loader(thesis):
    rest, moving = thesis.loader_matrices(), thesis.loader_matrices((0.3, -0.2))
    angles, strokes = thesis.CHARTS
    for found, joints, A21, A22 in (
        (rest, angles, [[-1.52508, 0.17137], [5.83123, -2.92752]], np.zeros((2, 2))),
        (rest, strokes, [[-1.84677, 0.24998], [0.90036, -4.31394]], np.zeros((2, 2))),
        (moving, angles, [[-1.52507, 0.17567], [5.83008, -3.07178]],
         [[0.09432, 0.01653], [-0.9533, -0.04696]]),
        (moving, strokes, [[-2.0972, 0.32676], [0.90771, -4.73728]],
         [[0.4859, 0.15376], [-1.68682, -0.50993]]),
    ):  # fmt: skip
        np.testing.assert_allclose(found[joints][0], A21, rtol=0, atol=1e-5)
        np.testing.assert_allclose(found[joints][1], A22, rtol=0, atol=1e-5)


def test_every_figure_is_drawn(thesis):
    """From runs that are too short to show anything; their numbers are in test_five_bar_motion."""
    with mpl.rc_context():
        figures = thesis.pictures(*thesis.examples(duration=0.05, step=5e-3))
    shown = [axes.get_title() for name in ("example_1", "example_2") for axes in figures[name].axes]
    assert [title.split()[0] for title in shown] == [
        "3.3", "3.4", "3.5a", "3.5b", "3.6", "3.6", "3.7", "3.8", "3.9a", "3.9b", "3.10a", "3.10b",
    ]  # fmt: skip
    assert {"figure_3_2", "figure_4_2", "eigenvalues"} < set(figures)
    pyplot.close("all")
