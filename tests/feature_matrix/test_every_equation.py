"""Every equation of a public docstring, on every kind of mechanism."""

import numpy as np
import pytest
from feature_matrix import (  # noqa: F401  # noqa: F401
    checks,
    class_equations,
    loop_checks,
    model_equations,
    motion_checks,
    other_checks,
    other_equations,
)
from feature_matrix.equations import (
    ALONE,
    EQUATIONS,
    IN_MATRIX,
    NOTATION,
    TESTED,
    At,
    equations_in_docstrings,
    is_known,
    spans,
)
from feature_matrix.features import FEATURES, case

from kinetree.errors import KinetreeError

HOLDS_FOR = ("nothing special", "loop", "prescribed, at an instant")
"""Features of which at least one takes part in every equation."""


def test_every_equation_of_a_docstring_has_a_check():
    missing = [(name, text) for name, text in equations_in_docstrings() if not is_known(name, text)]
    assert not missing, "write these equations in feature_matrix/model_equations.py:\n" + "\n".join(
        f"{name}: {text}" for name, text in missing
    )


def test_no_check_is_left_of_an_equation_that_is_gone():
    stated = set(equations_in_docstrings())
    assert not {*EQUATIONS, *IN_MATRIX, *TESTED} - stated
    assert not set(NOTATION) - {text for _, text in stated}


def test_an_equation_without_a_check_is_found():
    def weight():
        """The force of gravity, ``f = m g``, of ``body``, with ``frame="world"``."""

    assert spans("weight", weight) == [("weight", "f = m g")]
    assert not is_known("weight", "f = m g")


def sides(key, feature):
    """How far apart both sides are, in units of the largest term; None where one is refused."""
    try:
        left, right, *terms = EQUATIONS[key](At(case(feature)))
    except (KinetreeError, np.linalg.LinAlgError) as error:
        determined = not case(feature).singular and case(feature).plain.nv
        if isinstance(error, np.linalg.LinAlgError) and determined:
            raise
        return None
    left, right = np.asarray(left, float), np.asarray(right, float)
    assert left.shape == right.shape, (key, feature, left.shape, right.shape)
    if not left.size:
        return 0.0
    size = max(np.max(np.abs(x), initial=0.0) for x in (left, right, *terms))
    return float(np.max(np.abs(left - right))) / (size or 1.0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("feature", FEATURES)
def test_equations_of_docstrings_hold(feature):
    wrong, held = [], 0
    for key in EQUATIONS:
        if key in ALONE:
            continue
        error = sides(key, feature)
        held += error is not None
        if error is not None and not error <= 1e-8:
            wrong.append(f"{key[0]} of {feature}: {key[1]} is off by {error:.2g}")
    assert not wrong, "\n".join(wrong)
    if feature in HOLDS_FOR:
        assert held > len(EQUATIONS) / 3


@pytest.mark.parametrize("key", sorted(ALONE), ids=lambda key: key[0])
def test_equations_without_a_model_hold(key):
    assert sides(key, "nothing special") == pytest.approx(0.0, abs=1e-8)


def test_every_equation_is_tried_on_some_mechanism():
    tried = [k for k in EQUATIONS if k in ALONE or any(sides(k, f) is not None for f in HOLDS_FOR)]
    assert not set(EQUATIONS) - set(tried)
