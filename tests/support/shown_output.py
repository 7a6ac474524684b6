"""Output that pages and examples show, beside what code prints."""

import re

import numpy as np


def assert_same_output(out, shown, *, numbers=True):
    """The same words, and numbers up to rounding; tiny ones, which are rounding errors, differ."""
    number = r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?"
    words = [" ".join(re.sub(number, " # ", text).split()) for text in (out, shown)]
    assert words[0] == words[1]
    if numbers:
        found, expected = ([float(x) for x in re.findall(number, text)] for text in (out, shown))
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=1e-6)


def titles(figure):
    """Titles of the panels of a figure."""
    return [axes.get_title(loc="left") for axes in figure.axes]
