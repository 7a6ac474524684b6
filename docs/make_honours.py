"""Write docs/honours.md, what every function does with every feature of a model.

    python docs/make_honours.py

It takes about two minutes. ``tests/feature_matrix`` checks that the page is current.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from feature_matrix.features import FEATURES, case
from feature_matrix.option_cells import Bench, cells
from feature_matrix.option_cells import outcome as outcome_of_option
from feature_matrix.page import PAGE, whole
from feature_matrix.walk import CHECKS, outcome, public_functions


def main():
    """Walk the matrix and write the page."""
    functions = public_functions()
    found = {
        feature: {name: outcome(name, functions[name], case(feature)) for name in CHECKS}
        for feature in FEATURES
    }
    benches = {feature: Bench(feature) for feature in FEATURES}
    options = {
        feature: {cell: outcome_of_option(cell, bench) for cell in cells()}
        for feature, bench in benches.items()
    }
    PAGE.write_text(whole(found, options), encoding="utf-8")


if __name__ == "__main__":
    main()
