"""Every public function of every kind of mechanism: the right answer, or an error that says why.

What is right is in ``checks`` and its like, against ``reference``: a slow dense computation from
definitions. An error has to be one of the library's own, and to name the function and the feature.
Functions enter by being public; one that nobody says how to check fails here. ``docs/honours.md``
tells what came of it, and how many cells there are.
"""

import pytest
from feature_matrix.features import FEATURES, case
from feature_matrix.page import PAGE, section
from feature_matrix.walk import CHECKS, NOT_OF_A_MODEL, outcome, public_functions


def test_every_public_function_is_in_the_matrix():
    functions = public_functions()
    unknown = [n for n in functions if n not in CHECKS and n not in NOT_OF_A_MODEL]
    assert not unknown, f"say in feature_matrix how to check {unknown}, or why they are left out"
    assert not [n for n in (*CHECKS, *NOT_OF_A_MODEL) if n not in functions]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what is near singular, and so on
@pytest.mark.parametrize("feature", FEATURES)
def test_functions_honour_what_a_model_has_or_say_that_they_do_not(feature):
    functions, found, failures = public_functions(), {}, []
    for name in CHECKS:
        try:
            found[name] = outcome(name, functions[name], case(feature))
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)
    page = PAGE.read_text(encoding="utf-8")
    assert section(feature, found) in page, "run python docs/make_honours.py"
