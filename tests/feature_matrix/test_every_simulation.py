"""Every option of ``simulate`` and ``rollout`` × every mechanism: right, or refused by name.

See ``option_cells``. ``docs/honours.md`` tells how many cells there are.
"""

import pytest
from feature_matrix.features import FEATURES
from feature_matrix.option_cells import Bench, cells, missing, outcome
from feature_matrix.page import PAGE, option_line


def test_every_option_is_in_the_matrix():
    assert not missing(), f"say in option_cells what to pass, and what is right, for {missing()}"


@pytest.mark.parametrize("feature", FEATURES)
def test_motions_honour_what_a_model_has_or_say_that_they_do_not(feature):
    bench, found, failures = Bench(feature), {}, []
    for cell in cells():
        try:
            found[cell] = outcome(cell, bench)
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)
    page = PAGE.read_text(encoding="utf-8")
    assert option_line(feature, found) in page, "run python docs/make_honours.py"
